"""Attacks by fits on every estimator, and on mechanisms that are known to be bad.

All worst pairs of an estimator are tried with a few fits; the pair that looks worst is then audited
with fresh ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.harness import Case, Experiment, Row, Setting
from benchmarks.pages import Pages
from benchmarks.studies.audited import ATTACKED, find
from skdpsurv.audit.epsilon import audit_epsilon
from skdpsurv.audit.neighbours import NeighbourPair
from tests.support import planted_defects

#: Chance that a private mechanism has a bound above its epsilon, for each line of the tables.
ERROR = 1e-3
#: Screening compares pairs; it needs no confidence.
SCREENING_CONFIDENCE = 0.5
#: Fits of either data set: of the worst pair, and of each while the worst is looked for.
TRIALS, SCREENING = 800, 60
WRONG = f"each wrong with probability at most {ERROR:g}"


def cases(setting: Setting) -> Iterator[Case]:
    for each in setting.of(ATTACKED, [a for a in ATTACKED if a.settings == "Laplace"]):
        yield {"estimator": each.name, "settings": each.settings}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the bound of the worst pair."""
    audited = find(ATTACKED, case["estimator"], case["settings"])
    # So many that a bound above the claim can be found.
    least = 30 if audited.estimator.epsilon <= 1.0 else 80
    few = max(least, int(audited.share * SCREENING))
    many = max(5 * least, setting.of(int(audited.share * TRIALS), 0))
    pairs = audited.neighbours(setting.of(audited.pairs, 1))
    worst = max(pairs, key=lambda pair: _screened(audited.estimator, pair, few))
    result = audit_epsilon(
        audited.estimator, worst.data, worst.neighbour, n_trials=many, confidence=1.0 - ERROR
    )
    return {
        "claimed": result.claimed,
        "bound": result.lower_bound,
        "resolution": result.resolution,
        "pairs": len(pairs),
        "fits": 2 * (few * len(pairs) + many),
    }


def _screened(estimator: Any, pair: NeighbourPair, trials: int) -> tuple[float, float]:
    """Return how bad a pair looks."""
    result = audit_epsilon(
        estimator, pair.data, pair.neighbour, n_trials=trials, confidence=SCREENING_CONFIDENCE
    )
    first, second = np.nan_to_num(np.array(result.rates)) + 1e-2
    return result.lower_bound, abs(float(np.log(first / second)))


def report(rows: pd.DataFrame, pages: Pages) -> None:
    found = {(row.estimator, row.settings): row for row in rows.itertuples()}
    rows_ = [found[a.name, a.settings] for a in ATTACKED if (a.name, a.settings) in found]
    over = [f"{row.estimator} ({row.settings})" for row in rows_ if row.bound > row.claimed]
    shares = [row.bound / row.claimed for row in rows_ if row.bound <= row.claimed]
    said = f"Above its claim: {', '.join(over)}." if over else "None is above its claim."
    if shares:
        said += f" Of the {len(shares)} others at most {max(shares):.0%} of the claim was found."
    pages.table(
        "audit",
        ("estimator", "settings", "claimed ε", "bound found", "could be found", "pairs", "fits"),
        [
            (
                row.estimator,
                row.settings,
                f"{row.claimed:g}",
                f"{row.bound:.2f}",
                f"{row.resolution:.1f}",
                row.pairs,
                f"{row.fits:,}",
            )
            for row in rows_
        ],
        said,
        f"Lower bounds on epsilon by audit_epsilon, {WRONG}, of the pair that looked worst.",
    )


def planted_cases(setting: Setting) -> Iterator[Case]:
    for name in setting.of(list(planted_defects.PLANTED), ["noise in floats"]):
        for defect in ("without", "with"):
            yield {"name": name, "defect": defect}


def planted(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the bound, with the defect in this process or without it."""
    tried = planted_defects.PLANTED[case["name"]]
    defect = tried.defect() if case["defect"] == "with" else nullcontext()
    with planted_defects.short_chains(), defect:
        result = audit_epsilon(
            clone(tried.estimator),
            tried.data,
            tried.neighbour,
            n_trials=tried.n_trials,
            statistic=tried.statistic,
            confidence=1.0 - ERROR,
        )
    return {"claimed": result.claimed, "bound": result.lower_bound, "trials": result.n_trials}


def planted_report(rows: pd.DataFrame, pages: Pages) -> None:
    bounds = rows.pivot(index="name", columns="defect", values="bound")
    bounds = bounds.reindex([name for name in planted_defects.PLANTED if name in bounds.index])
    first = rows.groupby("name").first()
    claimed, trials = first.claimed[bounds.index], first.trials[bounds.index]
    kinds = {name: type(planted_defects.PLANTED[name].estimator).__name__ for name in bounds.index}
    pages.table(
        "audit_planted",
        ("defect", "estimator", "claimed ε", "found without it", "found with it", "fits of either"),
        [
            (
                name,
                kinds[name],
                f"{claimed[name]:g}",
                f"{bounds['without'][name]:.2f}",
                f"{bounds['with'][name]:.2f}",
                f"{trials[name]:,}",
            )
            for name in bounds.index
        ],
        f"Of {len(bounds)} planted defects the attack refutes {(bounds['with'] > claimed).sum()}; "
        f"without the defect it refutes {(bounds['without'] > claimed).sum()}.",
        f"Lower bounds on epsilon by audit_epsilon, {WRONG}.",
    )


AUDIT = Experiment(cases, measure, report)
PLANTED = Experiment(planted_cases, planted, planted_report)
