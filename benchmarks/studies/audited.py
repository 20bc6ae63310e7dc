"""Settings of every estimator that are attacked, and sizes of the data sets for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from sklearn.linear_model import LinearRegression

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    HybridMEstimator,
    PosteriorSampling,
    PrivateStackingClassifier,
)
from skdpsurv.audit.neighbours import NeighbourPair, worst_neighbours
from skdpsurv.classification import Perturbation
from skdpsurv.hybrid import SubsetSelection
from skdpsurv.model_selection import PrivateSearchCV, RepeatedRuns
from skdpsurv.published import (
    LaplaceWeibullFitter,
    PerturbedHistogramMEstimator,
    PublishedDiscreteTimeSurvival,
    PublishedLogisticRegression,
    PublishedStackingClassifier,
    PublishedWeibullFitter,
    SampleAggregateWeibullFitter,
)


class Audited(NamedTuple):
    """What is audited: sizes of the pairs, and fewer fits and pairs if fits are slow."""

    settings: str
    estimator: Any
    n: int = 2
    n_features: int = 1
    share: float = 1.0
    pairs: int = 8

    @property
    def name(self) -> str:
        return type(self.estimator).__name__

    def neighbours(self, most: int) -> list[NeighbourPair]:
        """Return at most so many pairs."""
        found = worst_neighbours(self.estimator, n=self.n, n_features=self.n_features)
        return list(islice(found, most))


FIXED = {"max_time": 1.0, "n_intervals": 4, "n_knots": 1, "data_norm": 1.0}
#: A strong ridge keeps minimisers where one record moves them farthest.
STRONG = 20.0


def hazard(kind: Callable[..., Any] = DPDiscreteTimeSurvival, **parameters: Any) -> Any:
    return kind(**{**FIXED, **parameters})


published = partial(hazard, PublishedDiscreteTimeSurvival)


def logistic(**parameters: Any) -> DPLogisticRegression:
    return DPLogisticRegression(**{"classes": [0, 1], **parameters})


def stack(kind: Callable[..., Any] = PrivateStackingClassifier, **parameters: Any) -> Any:
    return kind(**{"classes": [0, 1], "n_partitions": 2, **parameters})


def hybrid(**parameters: Any) -> HybridMEstimator:
    return HybridMEstimator(**parameters)


def search(strategy: Any) -> PrivateSearchCV:
    return PrivateSearchCV(logistic(), {"alpha": [0.1, 10.0]}, strategy=strategy)


weibull = partial(DPWeibullFitter, max_time=1.0)
levels = partial(PublishedWeibullFitter, max_time=1.0)
published_stack = partial(stack, PublishedStackingClassifier)
#: Without a pilot estimate, whose noise comes before that of the minimiser.
at_once = partial(hazard, pilot_share=0.0)

SHORT = {"method": PosteriorSampling(n_epochs=100), "n_intervals": 1}
STEPS = PosteriorSampling("psgld", n_epochs=500, step_size=0.2)
PSGLD = {"method": STEPS, "n_intervals": 1, "epsilon": 2.0}
CURVE = SubsetSelection("noisy_curve", candidate_sizes=[3, 6, 9])
#: The one that is known to break its claim: its status is "none".
BROKEN = "psgld, published (status none)"

#: Attacked by fits.
ATTACKED = (
    Audited("obj_pert", hazard()),
    Audited("obj_pert, alpha=20", hazard(alpha=STRONG)),
    Audited(
        "obj_pert, first look", hazard(epsilon=2.0, pilot_share=0.5, alpha=1.0), 100, share=0.5
    ),
    Audited("obj_pert, cloglog, 2 knots", hazard(alpha=STRONG, link="cloglog", n_knots=2)),
    Audited("out_pert, alpha=20", hazard(alpha=STRONG, method="out_pert")),
    Audited("out_pert, probit, alpha=20", hazard(alpha=STRONG, method="out_pert", link="probit")),
    Audited("obj_pert", published(alpha=STRONG)),
    Audited("out_pert", published(alpha=STRONG, method="out_pert")),
    Audited("psgld, sampler='mala', 100 steps", hazard(**SHORT), share=0.2, pairs=4),
    Audited("psgld, sampler='psgld', 500 epochs", hazard(**PSGLD), share=0.2, pairs=4),
    Audited(BROKEN, published(**PSGLD), share=0.2, pairs=4),
    Audited("obj_pert", logistic()),
    Audited("obj_pert, alpha=20", logistic(alpha=STRONG)),
    Audited(
        "obj_pert, max_residual=1, 2 columns",
        logistic(method=Perturbation(max_residual=1.0)),
        n_features=2,
    ),
    Audited(
        "obj_pert, intercept_scaling=10", logistic(method=Perturbation(intercept_scaling=10.0))
    ),
    Audited("obj_pert, 3 classes", logistic(classes=[0, 1, 2])),
    Audited("obj_pert, data_norm=100", logistic(data_norm=100.0, fit_intercept=False)),
    Audited("out_pert, alpha=20", logistic(method="out_pert", alpha=STRONG)),
    Audited("obj_pert", PublishedLogisticRegression(classes=[0, 1])),
    Audited("features, weighted vote", stack(alpha=STRONG), n_features=2),
    Audited("features, logistic", stack(combiner="logistic"), n=6, n_features=2),
    Audited("samples, logistic", stack(partition="samples", combiner="logistic"), n=6),
    Audited("features", published_stack(), n_features=2),
    Audited("ladder", weibull(), n=5),
    Audited("ladder, shape_fraction=0.9", weibull(shape_fraction=0.9), n=5),
    Audited("exact levels", levels(ladder="exact"), n=3, share=0.5),
    Audited("published levels", levels(), n=3, share=0.1, pairs=4),
    Audited("Laplace", LaplaceWeibullFitter(max_time=1.0)),
    Audited("sample and aggregate", SampleAggregateWeibullFitter(max_time=1.0)),
    *(
        Audited(method, hybrid(method=method), share=0.4)
        for method in ("auto", "cells", "residuals", "all", "subset")
    ),
    Audited("subset, noisy curve", hybrid(method=CURVE), share=0.4),
    Audited("cells, regression", hybrid(estimator=LinearRegression()), share=0.4),
    Audited(
        "3 bins",
        PerturbedHistogramMEstimator(bounds=[(-1, 1)], outcome=[0, 1], n_bins=3),
        share=0.5,
    ),
    Audited("split", search("split"), n=8, share=0.2, pairs=6),
    Audited("repeat", search(RepeatedRuns(expected_runs=1.0)), n=8, share=0.2, pairs=6),
)

#: Whose densities are known.
KNOWN = (
    Audited("obj_pert, alpha=20", at_once(alpha=STRONG)),
    Audited("obj_pert", at_once()),
    Audited("obj_pert, cloglog", at_once(alpha=STRONG, link="cloglog")),
    Audited("obj_pert, probit", at_once(alpha=STRONG, link="probit")),
    Audited("out_pert, alpha=20", at_once(alpha=STRONG, method="out_pert")),
    Audited("obj_pert", published(alpha=STRONG)),
    Audited("obj_pert", logistic()),
    Audited(
        "obj_pert, max_residual=1, 2 columns",
        logistic(method=Perturbation(max_residual=1.0)),
        n_features=2,
    ),
    Audited("obj_pert, 3 classes", logistic(classes=[0, 1, 2])),
    Audited("out_pert, alpha=20", logistic(method="out_pert", alpha=STRONG)),
    Audited("obj_pert", PublishedLogisticRegression(classes=[0, 1])),
    Audited("features, weighted vote", stack(alpha=STRONG), n_features=2),
    Audited("features", published_stack(), n_features=2),
    Audited("ladder", weibull(), n=5),
    Audited("exact levels", levels(ladder="exact"), n=3),
    Audited("published levels", levels(), n=3),
)


def find(kinds: tuple[Audited, ...], name: str, settings: str) -> Audited:
    """Return one of them."""
    (found,) = (each for each in kinds if (each.name, each.settings) == (name, settings))
    return found
