"""A prior from another site: what it gives where populations agree, and costs where they do not.

Sites are random parts of one data set, so that they agree; the same prior with all its coefficients
reversed, or with one of the same length in a random direction, does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import Survival
from benchmarks.harness import Case, Experiment, Missing, Row, Setting, seed
from benchmarks.pages import Pages
from benchmarks.studies.models import Data, estimator, ranking, real
from skdpsurv import Release
from skdpsurv.datasets import make_discrete_time_survival

EPSILON = 1.0
SIZES = (300, 500, 1000)
#: Records behind the prior, and at most so many, and at least, to judge by.
PRIOR, JUDGED, LEAST = 2000, 4000, 300
#: Columns, and whatever else is not the default of the simulation.
SIMULATED: dict[str, dict[str, Any]] = {
    "simulated, 5 columns": {"n_features": 5},
    "simulated, 15 columns": {"n_features": 15},
    "simulated, 3 columns": {"n_features": 3, "event_rate": 0.1, "baseline": "rising"},
    "simulated, 10 columns": {"n_features": 10, "event_rate": 0.3, "baseline": "front-loaded"},
    "simulated, 25 columns": {"n_features": 25, "event_rate": 0.5, "baseline": "flat"},
}
#: Where the rule was found; the others were looked at twice before its last two steps.
FOUND_ON = ("flchain", "third births", "unemployment", "child mortality", *list(SIMULATED)[:2])
FOUND_ON += ("rott2", "acath", "support2")
APART = (*list(SIMULATED)[2:], "Framingham", "dataDIVAT3", "prostateSurvival", "smarto", "Aids2")
#: With two classes; the first has records for the smallest size only.
CLASSES = ("infarction", "readmission", "diabetes", "GUSTO-I")
KINDS = {"survival, kept apart": APART, "survival, found on": FOUND_ON, "two classes": CLASSES}
CHANGES = {"same": "the prior", "reversed": "reversed", "random": "random"}


@cache
def records(setting: Setting, name: str) -> Data:
    """Return a data set, real or simulated."""
    if name not in SIMULATED:
        return real(setting, name)
    options = dict(SIMULATED[name])
    d = options.pop("n_features")
    if options:
        options["coef"] = np.random.default_rng(d).standard_normal(d) * 1.2 / math.sqrt(d)
    made = make_discrete_time_survival(9000, d, random_state=d, **options)
    event, time = made.y[made.y.dtype.names[0]], made.y[made.y.dtype.names[1]]
    columns = tuple(f"x{j}" for j in range(d))
    return Survival(name, np.asarray(made.X), event, time, 1.0, columns, (False,) * d)


def cases(setting: Setting) -> Iterator[Case]:
    sets = setting.of((*APART, *FOUND_ON, *CLASSES), (*list(SIMULATED)[1:3], "diabetes"))
    for name in sets:
        for n in SIZES[:1] if name == "infarction" else setting.of(SIZES, (500,)):
            yield {"data": name, "n": n}


def measure(setting: Setting, case: Case, repetition: int) -> Row:
    """Return the rankings of a fit alone, without privacy, of the prior, and with three priors."""
    data, n = records(setting, case["data"]), case["n"]
    rng = np.random.default_rng([repetition, n])
    order = rng.permutation(len(data.X))
    size = min(PRIOR, len(order) - n - LEAST)
    if size < LEAST:
        raise Missing(f"{case['data']} has too few records")
    here, there, judge = np.split(order, [n, n + size])

    def fit(rows: np.ndarray, epsilon: float = EPSILON, prior: Release | None = None) -> Any:
        """Fit with noise that is the same whatever the prior."""
        key = seed(case["data"], n, repetition, rows is there)
        model = estimator(data, epsilon=epsilon, prior=prior, random_state=key)
        return model.fit(data.X[rows], data.y[rows])

    source = fit(there)
    coef = np.asarray(source.release_.values["evidence_coef"])
    direction = rng.standard_normal(coef.shape)
    direction *= np.linalg.norm(coef) / np.linalg.norm(direction)
    models = {"alone": fit(here), "without": fit(here, math.inf), "source": source}
    for name, turned in zip(CHANGES, (coef, -coef, direction), strict=True):
        values = {**source.release_.values, "evidence_coef": turned}
        models[name] = fit(here, EPSILON, replace(source.release_, values=values))
    return {name: ranking(model, data, judge[:JUDGED]) for name, model in models.items()}


def report(rows: pd.DataFrame, pages: Pages) -> None:
    means = rows.groupby(["data", "n"])[["alone", "without", "source", *CHANGES]].mean()
    change = means[list(CHANGES)].sub(means["alone"], axis=0)
    gap = means["without"] - means["alone"]
    closed = (change["same"] / gap)[gap > 0.01]
    cells, apart = [], pd.DataFrame()
    for kind, names in KINDS.items():
        for n in SIZES:
            here = change[change.index.isin([(name, n) for name in names])]
            if here.empty:
                continue
            share = closed[closed.index.isin(here.index)]
            lost = [
                f"{here[one].mean():+.3f} ({here[one].min():+.3f}, {here[one].idxmin()[0]})"
                for one in ("reversed", "random")
            ]
            median = f"{share.median():.0%}" if len(share) else "–"
            cells.append((kind, n, len(here), f"{here['same'].mean():+.3f}", median, *lost))
            if kind == "survival, kept apart":
                apart = pd.concat([apart, here])
                pages.fact(f"prior_closes_{n}", median)
    said = ""
    if len(apart):
        lost = {one: (-change.mean(), -change.min()) for one, change in apart.items()}
        pages.fact("prior_reversed_loss", _loss(lost["reversed"][0]))
        helped = change["same"] > 0.0
        said = (
            f"A prior that agrees raises the ranking in {helped.sum()} of {len(change)} pairs of "
            f"set and n. On sets kept apart the mean gain is {apart['same'].mean():.3f}; a prior "
            f"with all signs reversed costs {_loss(lost['reversed'][0])} on average and "
            f"{_loss(lost['reversed'][1])} at most, one in a random direction "
            f"{_loss(lost['random'][0])} and {_loss(lost['random'][1])}."
        )
        ahead = (means["source"] >= means["same"]).sum()
        said += (
            f" The prior's own model, of {PRIOR:,} records, ranks at least as well as the fit that "
            f"starts from it in {ahead} of {len(means)}."
        )
    pages.table(
        "priors_summary",
        ("data sets", "n", "sets", "gain", "of the gap closed", "reversed", "random"),
        cells,
        said,
        f"C-index, or area under the curve for two classes, at ε = {EPSILON:g}; "
        f"{rows.repetition.max() + 1} divisions. Mean gain over the fit alone; median part of the "
        "gap to the fit without privacy that is closed, of sets with a gap above .01; mean change "
        "with a prior that is reversed or random, and of the worst set.",
    )


def _loss(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"


EXPERIMENT = Experiment(cases, measure, report, repetitions=16)
