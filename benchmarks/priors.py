"""A prior from another site: what it gives where populations agree, and costs where they do not.

python -m benchmarks.priors --data-dir FOLDER

Sites are random parts of one data set, so that they agree; the same prior with all its coefficients
reversed, or with one of the same length in a random direction, does not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

from benchmarks._common import SurvivalData, table
from benchmarks._forecast_data import LabelledData, real_sets
from benchmarks._run import arguments, number, run, setting
from benchmarks.absolute_risk import survset
from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, PrivacyLeakWarning, Release
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.evaluation import concordance_index

SIZES = setting((300, 500, 1000), quick=(500,))
#: Records behind the prior, and at most so many to judge by.
PRIOR, JUDGED = 2000, 4000
#: Where the rule was found: all others were looked at after its last change.
FOUND_ON = ("flchain", "third births", "unemployment", "child mortality", "simulated, 5 columns")
FOUND_ON += ("simulated, 15 columns", "rott2", "acath", "support2", "colon")
KEPT_APART = ("Framingham", "dataDIVAT3", "prostateSurvival", "smarto", "Aids2")


@dataclass(frozen=True)
class Site:
    """Which records, of which data."""

    data: SurvivalData | LabelledData
    rows: np.ndarray

    def fit(self, seed: int, epsilon: float = 1.0, prior: Release | None = None) -> Any:
        """Fit with noise that is the same whatever the prior."""
        X, y = self.data.X[self.rows], self.data.y[self.rows]
        if isinstance(self.data, LabelledData):
            model: Any = DPLogisticRegression(epsilon, classes=[0, 1], prior=prior)
        else:
            model = DPDiscreteTimeSurvival(epsilon, max_time=self.data.max_time, prior=prior)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            return model.set_params(random_state=seed).fit(X, y)

    def ranking(self, model: Any) -> float:
        """Return C, or the area under the curve."""
        X, y = self.data.X[self.rows], self.data.y[self.rows]
        if isinstance(self.data, LabelledData):
            return float(roc_auc_score(y, model.decision_function(X)))
        return float(concordance_index(y, model.predict(X)))


def turned(prior: Release, coef: np.ndarray) -> Release:
    return replace(prior, values={**prior.values, "evidence_coef": coef})


def once(data: SurvivalData | LabelledData, n: int, repetition: int) -> list[float]:
    """Return rankings: alone, without privacy, the prior's; with it, reversed, and random."""
    rng = np.random.default_rng([repetition, n])
    order = rng.permutation(len(data.X))
    size = min(PRIOR, len(order) - n - 300)
    here, there, judge = (Site(data, rows) for rows in np.split(order, [n, n + size]))
    judge = replace(judge, rows=judge.rows[:JUDGED])
    prior = there.fit(1000 + repetition)
    coef = np.asarray(prior.release_.values["evidence_coef"])
    direction = rng.standard_normal(coef.shape)
    direction *= np.linalg.norm(coef) / np.linalg.norm(direction)
    with_priors = [
        here.fit(repetition, 1.0, turned(prior.release_, c)) for c in (coef, -coef, direction)
    ]
    models = [here.fit(repetition), here.fit(repetition, math.inf), prior, *with_priors]
    return [judge.ranking(model) for model in models]


def simulated() -> Iterator[SurvivalData]:
    for d in (5, 15):
        made = make_discrete_time_survival(9000, d, random_state=d)
        yield SurvivalData(f"simulated, {d} columns", made.X, made.y, 1.0)
    for d, rate, baseline in ((3, 0.1, "rising"), (10, 0.3, "front-loaded"), (25, 0.5, "flat")):
        coef = np.random.default_rng(d).standard_normal(d) * 1.2 / math.sqrt(d)
        made = make_discrete_time_survival(
            9000, d, coef=coef, baseline=baseline, event_rate=rate, random_state=d
        )
        yield SurvivalData(f"simulated, {d} columns", made.X, made.y, 1.0)


def all_sets(folder: Path | None) -> Iterator[SurvivalData | LabelledData]:
    yield from real_sets(folder)
    yield from simulated()
    try:
        yield from map(survset, (*FOUND_ON[-4:], *KEPT_APART))
    except ModuleNotFoundError:
        print("skipped: priors: SurvSet is not installed")


def kind(data: SurvivalData | LabelledData) -> str:
    if isinstance(data, LabelledData):
        return "labels"
    return "survival, found on" if data.name in FOUND_ON else "survival, kept apart"


def main() -> None:
    args = arguments(__doc__ or "", repetitions=number(16, quick=1))
    rows, means = [], {}
    for data in all_sets(args.data_dir):
        for n in SIZES:
            if n + 900 > len(data.X):
                continue
            found = Parallel(n_jobs=2)(delayed(once)(data, n, r) for r in range(args.repetitions))
            mean = np.mean(found, axis=0)
            means.setdefault((kind(data), n), []).append(mean)
            alone, bound, prior, same, reverse, other = mean
            rankings = [f"{one:.3f}" for one in (alone, bound, prior, same)]
            changes = [f"{one - alone:+.3f}" for one in (reverse, other)]
            rows.append((data.name, n, *rankings, *changes))
    note = (
        "C-index, or area under the curve of labels, at ε = 1, mean of "
        f"{args.repetitions} parts. Reversed and random: the loss against the fit alone."
    )
    header = ("data", "n", "alone", "no privacy", "the prior", "with it", "reversed", "random")
    table("priors", header, rows, note)
    summary = []
    for (name, n), found in sorted(means.items()):
        alone, bound, _, same, reverse, other = np.array(found).T
        gap = bound - alone
        closed = (same - alone)[gap > 0.01] / gap[gap > 0.01]
        lost = [f"{np.mean(x - alone):+.3f} ({np.min(x - alone):+.3f})" for x in (reverse, other)]
        median = f"{np.median(closed):.2f}" if closed.size else ""
        summary.append((name, n, len(found), f"{np.mean(same - alone):+.3f}", median, *lost))
    header = ("data sets", "n", "sets", "gain", "of the gap closed", "reversed", "random")
    table(
        "priors_summary",
        header,
        summary,
        "Mean gain over the fit alone; the median part of the gap to the fit without privacy that "
        "is closed, of sets with a gap above .01; mean change with a prior that is reversed or "
        "random, and of the worst set.",
    )


if __name__ == "__main__":
    run(main)
