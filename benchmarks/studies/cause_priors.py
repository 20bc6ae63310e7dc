"""A prior for competing risks: ranking, calibration and Brier score of a small site, by cause.

The small site and the one behind the prior are random parts of one data set. A cause turns to the
prior and keeps its size; *size of both* is the plain combination, which takes the prior's size,
too. No constant of it was found on these sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks.data.causes import competing
from benchmarks.harness import Case, Experiment, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.competing_risks import QUARTERS, aalen_johansen, fitted, predicted, quality
from skdpsurv.survival.hazards.causes import CausesFit
from skdpsurv.survival.hazards.fit import HazardFit

SETS = ("flchain", "hospital stays", "three, 10,000", "follic")
EPSILON = 1.0
#: Records of the small site, of that behind the prior, and to judge by; at most these shares.
SIZES, SHARES = (500, 4000, 3000), (0.2, 0.5, 0.3)
ALONE, KEPT, FREE = "no prior", "prior", "prior, size of both"


def cases(setting: Setting) -> Iterator[Case]:
    yield from ({"data": name} for name in setting.of(SETS, SETS[-1:]))


def measure(setting: Setting, case: Case, repetition: int) -> list[Row]:
    """Return what fits with a prior and without say of other people."""
    data, key = competing(case["data"]), seed("cause priors", case["data"], repetition)
    order = np.random.default_rng(key).permutation(data.time.size)
    sizes = [min(n, int(s * order.size)) for n, s in zip(SIZES, SHARES, strict=True)]
    own, others, test = np.split(order[: sum(sizes)], np.cumsum(sizes)[:-1])
    prior = fitted(data, others, EPSILON, key + 1).release_
    models = {
        ALONE: fitted(data, own, EPSILON, key + 2),
        KEPT: fitted(data, own, EPSILON, key + 2, prior=prior),
    }
    with patch.object(CausesFit, "posterior_mean", HazardFit.posterior_mean):
        models[FREE] = fitted(data, own, EPSILON, key + 2, prior=prior)
    rows: list[Row] = []
    for name, model in models.items():
        for j, (risk, incidence) in enumerate(zip(*predicted(model, data, test), strict=True)):
            constant = aalen_johansen(data, others, data.causes[j])
            found = quality(data, test, j, risk, incidence, constant)
            each = {kind: _mean(found, kind) for kind in ("off", "gain")}
            rows.append(
                {"fit": name, "n": own.size, "others": others.size, "c": found["c"], **each}
            )
    return rows


def _mean(found: Row, kind: str) -> float:
    return float(np.mean([found[f"{kind}{quarter}"] for quarter in range(1, QUARTERS + 1)]))


def report(rows: pd.DataFrame, pages: Pages) -> None:
    mean = rows.groupby(["data", "n", "others", "fit"], sort=False)[["c", "off", "gain"]].mean()
    table = [
        (name, f"{n:,}", f"{others:,}", fit, f"{c:.3f}", f"{off:.4f}", f"{gain:.3f}")
        for (name, n, others, fit), (c, off, gain) in zip(mean.index, mean.to_numpy(), strict=True)
    ]
    by_fit = mean.unstack("fit")
    nearer = int((by_fit["off"][KEPT] < by_fit["off"][FREE]).sum())
    ranked = (by_fit["c"][KEPT] - by_fit["c"][ALONE]).to_numpy()
    pages.table(
        "cause_priors",
        ("data", "records", "behind the prior", "fit", "C", "calibration", "Brier"),
        table,
        f"A prior adds {ranked.min():.3f} to {ranked.max():.3f} of C. Where causes keep their size "
        f"they are better calibrated than with that of both in {nearer} of {len(ranked)} sets.",
        f"Means over causes, quarters of the horizon and {rows.repetition.max() + 1:,.0f} "
        f"divisions, of what the first table has; epsilon = {EPSILON:g} of each site.",
    )


EXPERIMENT = Experiment(cases, measure, report, repetitions=20)
