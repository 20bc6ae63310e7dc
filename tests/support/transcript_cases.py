"""Estimators, and pairs of neighbours that together move each of their parts as far as they can.

Used by the tests of the audit of transcripts and by benchmarks/studies/checks.py.
"""

import functools
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from skdpsurv import (
    DPAalenJohansenFitter,
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPTableOne,
    DPWeibullFitter,
    HybridMEstimator,
    PosteriorSampling,
    PrivateStackingClassifier,
    PublicColumns,
    published,
)
from skdpsurv.evaluation import private_survival_metrics
from skdpsurv.hybrid import SubsetSelection
from tests.support.estimators import logistic as perturbed
from tests.support.estimators import search_of
from tests.support.extensions import extension
from tests.support.worst_pairs import pair


@dataclass
class Case:
    estimator: Any
    pairs: Any
    n_places: int
    unmoved: dict[int, str] = field(default_factory=dict)

    def made(self):
        if callable(self.pairs):
            return list(self.pairs())
        return [pair(self.estimator, name, **sizes) for name, sizes in self.pairs.items()]


def hazard(**parameters):
    given = {"max_time": 1.0, "n_intervals": 4, "n_knots": 1, "epsilon": 60.0, "alpha": 10.0}
    return DPDiscreteTimeSurvival(**{**given, "inference_share": 0.2, **parameters})


def logistic(**parameters):
    return perturbed(**{"classes": [0, 1], "alpha": 10.0, **parameters})


class Predicted:
    """Survival curves by the first column."""

    def predict_survival_function(self, X):
        return [functools.partial(_curve, float(np.asarray(row)[0])) for row in np.asarray(X)]


def _curve(rate, times):
    return np.exp(-rate * np.asarray(times))


def evaluated():
    """Pairs for cells and places in them; and crowds next to the first candidate for an edge."""
    rates, times = np.geomspace(0.02, 4.0, 12), np.linspace(0.05, 0.95, 12)
    risky, early = np.full(12, 10.0), np.full(12, 3e-5)
    for rate, time, first, last in (
        (rates, times, (0.01, 1e-3, True), (6.0, 1.0, False)),
        (rates, times, (0.0, 1e-3, True), (6.0, 0.97, True)),
        (risky, times, (20.0, 0.5, True), (0.0, 0.5, True)),
        (rates, early, (1.0, 0.0, True), (1.0, 0.97, True)),
        (rates, times, (0.0, 0.0, True), (0.0, 1.0, False)),
    ):
        made = []
        for own_rate, own_time, event in (first, last):
            y = np.array([(True, t) for t in time], dtype=[("event", "?"), ("time", "f8")])
            X = np.r_[own_rate, rate[1:]][:, None]
            y[0] = event, own_time
            made.append((X, y))
        yield tuple(made)


def disagreed():
    """A private record that either candidate predicts rightly, and the other wrongly."""
    x = np.r_[1.0, -1.0, -1.0, -1.0, np.linspace(-1.0, 1.0, 20)]
    y = (x > 0).astype(int)
    other = y.copy()
    other[0] = 0
    public = np.arange(x.size) > 3
    yield (x[:, None], y, public), (x[:, None], other, public)


def rolled(estimator, names, **sizes):
    """Return what makes pairs in which each record in turn is the one that differs."""

    def made():
        for name in names:
            both = pair(estimator, name, **sizes)
            for place in range(len(both[0][1])):
                yield tuple(tuple(np.roll(e, place, axis=0) for e in one) for one in both)

    return made


AT_ZERO = "others at zero and censored"
AT_ONCE = f"event at once or censored at the end, {AT_ZERO}"
OPPOSITE = "row and its negative, others at zero and censored"
ANGLES = "rows at right angles, others at zero and censored"
FAR = "rows far beyond the bound, others at zero and censored"
FOUR, TWO_COLUMNS = {"n": 4}, {"n": 4, "n_features": 2}
HAZARD = {AT_ONCE: FOUR, OPPOSITE: FOUR, ANGLES: TWO_COLUMNS, FAR: FOUR}
FLIPPED = "label flipped, others at zero"
LOGISTIC = {FLIPPED: FOUR, "rows at right angles, others at zero": TWO_COLUMNS}
CLASSES = {FLIPPED: FOUR, "label of one class or of another, others alike": FOUR}
OUTCOME = {"outcome flipped, others alike": FOUR}
CENSORED = "event at zero or censored at the horizon"
EARLY_OR_LATE = "event at zero or at the horizon"
LAST = "others censored at the horizon"
LEVELS = {
    f"{CENSORED}, others half at zero, half censored": FOUR,
    f"{EARLY_OR_LATE}, others with events at the horizon": FOUR,
}

search = functools.partial(
    search_of, logistic(max_residual=0.5), {"alpha": [10.0, 20.0]}, epsilon=4.0, expected_runs=1.5
)
stacked = PrivateStackingClassifier(
    classes=[0, 1], n_partitions=2, partition="samples", combiner="logistic", alpha=10.0
)
tree = DecisionTreeClassifier(random_state=0)
stump = DecisionTreeClassifier(max_depth=1, random_state=0)
poisson = functools.partial(extension("poisson").DPPoissonRegressor, max_residual=2.0, alpha=10.0)
table = PublicColumns.of(arm=["old", "new"], age=(18, 100), smoker=bool)
noisy = {"delta": 0.2, "epsilon": 51.0}
langevin = PosteriorSampling("psgld")
scaled = PublicColumns({"x0": {"bounds": [-1, 1]}})
SHORT: dict[str, Any] = {"n_intervals": 4, "n_knots": 1, "alpha": 10.0}
OF_COLUMNS = dict.fromkeys((AT_ONCE, OPPOSITE, FAR), FOUR)
CASES = {
    "hazard": Case(hazard(), HAZARD, 8),
    "hazard, columns": Case(
        *(hazard(columns=scaled), OF_COLUMNS, 8),
        unmoved={6: "by rows at right angles alone, of two columns"},
    ),
    "hazard, output": Case(hazard(method="out_pert"), HAZARD, 7),
    "hazard, descent": Case(hazard(method="noisy_gd", **noisy), HAZARD, 7),
    "hazard, Langevin": Case(hazard(method=langevin, inference_share=0.0, **noisy), HAZARD, 5),
    "competing risks": Case(
        DPCompetingRisks(60.0, causes=["a", "b"], censored="c", max_time=1.0, **SHORT),
        {**HAZARD, "events of two causes at once, opposite rows, " + AT_ZERO: FOUR},
        4,
    ),
    "logistic": Case(
        logistic(epsilon=30.0, inference_share=0.2, alpha=2.0),
        {name: {**sizes, "n": 20} for name, sizes in LOGISTIC.items()},
        4,
    ),
    "logistic, output": Case(
        logistic(epsilon=160.0, inference_share=0.2, method="out_pert"), LOGISTIC, 3
    ),
    "logistic, descents": Case(
        logistic(classes=[0, 1, 2], method="noisy_gd", delta=1e-4), CLASSES, 3
    ),
    "logistic, three classes": Case(logistic(classes=[0, 1, 2]), CLASSES, 6),
    "columns": Case(
        PrivateStackingClassifier(classes=[0, 1], n_partitions=2),
        {"label flipped at a row of all columns, others alike": TWO_COLUMNS},
        4,
    ),
    "rows, stacked": Case(stacked, rolled(stacked, ["label flipped, others alike"], n=9), 6),
    "Weibull": Case(
        DPWeibullFitter(max_time=1.0),
        {
            f"{change}, others half at zero, half censored": FOUR
            for change in (CENSORED, EARLY_OR_LATE)
        },
        4,
    ),
    "Weibull, exact": Case(
        published.PublishedWeibullFitter(max_time=1.0, ladder="exact"), LEVELS, 2
    ),
    "Weibull, corrected": Case(
        DPWeibullFitter(max_time=1.0, epsilon=500.0),
        {
            f"{CENSORED}, others with events at zero": {"n": 6},
            f"{EARLY_OR_LATE}, others with events at zero": {"n": 6},
            "event or censored at the horizon, others with events at zero": {"n": 6},
            "event in mid course or at the horizon, others spread out": {"n": 6},
            f"{EARLY_OR_LATE}, others with events at the horizon": {"n": 6},
        },
        6,
    ),
    "Weibull, Laplace": Case(
        published.LaplaceWeibullFitter(max_time=1.0),
        {f"{change}, {LAST}": FOUR for change in (CENSORED, EARLY_OR_LATE)},
        2,
    ),
    "Poisson": Case(poisson(), OUTCOME, 2),
    "Poisson, output": Case(poisson(method="out_pert"), OUTCOME, 1),
    "Kaplan-Meier": Case(DPKaplanMeierFitter(max_time=1.0), {f"{EARLY_OR_LATE}, {LAST}": FOUR}, 1),
    "Aalen-Johansen": Case(
        DPAalenJohansenFitter(max_time=1.0, causes=["a", "b"], censored="c"),
        {f"{EARLY_OR_LATE}, {LAST}": FOUR},
        1,
    ),
    "Table 1": Case(
        DPTableOne(columns=table, by="arm", grid=3),
        {"all columns at either end, others spread out": FOUR},
        2,
    ),
    "hybrid": Case(
        HybridMEstimator(epsilon=200.0),
        {
            "at opposite ends, other outcomes, its cell emptied": FOUR,
            "at opposite ends, one outcome, its cell emptied": TWO_COLUMNS,
        },
        2,
    ),
    "hybrid, subset": Case(
        HybridMEstimator(tree, method=SubsetSelection(candidate_sizes=[1, 20])),
        disagreed,
        4,
        unmoved={1: "all records are in one cell"},
    ),
    "hybrid, curve": Case(
        HybridMEstimator(stump, method=SubsetSelection("noisy_curve", candidate_sizes=[10, 20])),
        disagreed,
        4,
    ),
    "histogram": Case(
        published.PerturbedHistogramMEstimator(bounds=[(-1, 1)], outcome=[0, 1]),
        {"outcome flipped in the middle, others in its cell": FOUR},
        1,
    ),
    "search": Case(search(refit=0.5), rolled(search(), [FLIPPED], n=6), 5),
    "search, split": Case(search(strategy="split"), rolled(search(), [FLIPPED], n=8), 5),
    "evaluation": Case(
        functools.partial(
            private_survival_metrics, Predicted(), epsilon=1.0, max_time=0.98, n_groups=3, n_bands=2
        ),
        evaluated,
        8,
    ),
}


def some_neighbours(setting):
    """Yield pairs with an extreme record each; one of a setting that stands for its kind."""
    sets = [
        (each.X, each.y, each.options)[: 3 if each.options else 2]
        for each in setting.data().neighbours()
    ]
    pairs = itertools.pairwise(sets[1:])
    yield from itertools.islice(pairs, 1) if setting.representative else pairs
