"""Estimators, not fitted, with the parameters of their methods and parts beside their own."""

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    FeaturePartition,
    LogisticCombiner,
    PosteriorSampling,
    PrivateStackingClassifier,
)
from skdpsurv.classification import Perturbation
from skdpsurv.model_selection import DisjointParts, PrivateSearchCV, RepeatedRuns
from skdpsurv.published import PublishedDiscreteTimeSurvival, PublishedStackingClassifier

CHAIN = tuple(PosteriorSampling().get_params())
OF_PERTURBATION = ("max_residual", "intercept_scaling", "recalibration_share")
OF_RUNS = ("eta", "expected_runs", "holdout")
OF_COLUMNS = {"feature_groups": "groups", "importances": "importances", "group_norms": "norms"}


def _taken(parameters, names):
    return {name: parameters.pop(name) for name in names if name in parameters}


def hazard(*args, published=False, **parameters):
    """Return a hazard model; with parameters of a chain one that samples a posterior."""
    if chain := _taken(parameters, CHAIN):
        assert parameters.get("method", "psgld") == "psgld"
        parameters["method"] = PosteriorSampling(**chain)
    make = PublishedDiscreteTimeSurvival if published else DPDiscreteTimeSurvival
    return make(*args, **parameters)


def logistic(*args, **parameters):
    if own := _taken(parameters, OF_PERTURBATION):
        parameters["method"] = Perturbation(parameters.get("method", "auto"), **own)
    return DPLogisticRegression(*args, **parameters)


def with_strategy(parameters):
    """Return parameters of a search, those of its strategy in an object; the split has no runs."""
    rest = {**parameters}
    own, word = _taken(rest, OF_RUNS), rest.get("strategy", "repeat")
    if word == "split":
        own = _taken(own, ["holdout"])
    if own and word in ("repeat", "split"):
        rest["strategy"] = (RepeatedRuns if word == "repeat" else DisjointParts)(**own)
    return rest


def search_of(estimator, grid, **parameters):
    return PrivateSearchCV(estimator, grid, **with_strategy(parameters))


def with_objects(parameters):
    """Return parameters of a stack, those of its partition and of its combiner in objects."""
    rest = {**parameters}
    columns, top = _taken(rest, OF_COLUMNS), _taken(rest, ["holdout"])
    if columns and rest.get("partition", "features") == "features":
        columns = {OF_COLUMNS[name]: value for name, value in columns.items()}
        rest["partition"] = FeaturePartition(**columns)
    if top and rest.get("combiner") == "logistic":
        rest["combiner"] = LogisticCombiner(**top)
    return rest


def stack_of(epsilon=1.0, *, calibration="tight", **parameters):
    kinds = {"tight": PrivateStackingClassifier, "published": PublishedStackingClassifier}
    return kinds[calibration](epsilon, **with_objects(parameters))
