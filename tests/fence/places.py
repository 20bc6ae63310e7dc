"""Where old and new checkouts keep what the fence needs: the one place to mend after a renaming."""

import importlib
import inspect

#: Names, and the modules in which they are looked for: the first that has one is taken.
PLACES = {
    "RandomSource": ("skdpsurv.privacy.randomness", "skdpsurv.dp.random", "skdpsurv.dp.noise"),
    "REPLAYED": ("skdpsurv.dp.noise",),
    "uniform_below": ("skdpsurv.dp.selection", "skdpsurv.dp.noise"),
    "exact_spherical_laplace": ("skdpsurv.dp.random", "skdpsurv.dp.exact_vectors"),
    "exact_spherical_gaussian": ("skdpsurv.dp.random", "skdpsurv.dp.exact_vectors"),
    "AskedSource": ("skdpsurv.privacy.randomness", "tests.support.asked_source"),
    "asked_instead": ("skdpsurv.privacy.randomness", "tests.support.asked_source"),
    "private_survival_metrics": ("skdpsurv.metrics", "skdpsurv.evaluation"),
    "HazardChain": ("skdpsurv.survival.hazard_chain", "skdpsurv.survival.hazards.posterior"),
    "MeanOfRows": ("skdpsurv.mechanisms.moments", "skdpsurv.mechanisms.sums"),
    "SecondMoments": ("skdpsurv.mechanisms.moments", "skdpsurv.mechanisms.sums"),
    "RepeatedRuns": ("skdpsurv.model_selection",),
    "Perturbation": ("skdpsurv.classification",),
    "SubsetSelection": ("skdpsurv.hybrid",),
}
#: Where all others are looked for.
ANYWHERE = ("skdpsurv.published", "skdpsurv")


def _weibull(given):
    own = dict(given)
    method, calibration = own.pop("method", "ladder"), own.pop("calibration", "tight")
    names = {"laplace": "LaplaceWeibullFitter", "sample_aggregate": "SampleAggregateWeibullFitter"}
    if method in names:
        return names[method], own
    word = "ladder" if "ladder" in parameters_of("PublishedWeibullFitter") else "rungs"
    return "PublishedWeibullFitter", {**own, word: calibration}


CHAIN = ("sampler", "n_epochs", "batch_size", "step_size", "step_exponent", "verbose")


def _hazard(given):
    own = dict(given)
    published = own.pop("calibration", "tight") == "published"
    chain = {name: own.pop(name) for name in CHAIN if name in own}
    if chain and own.get("method") == "psgld":
        own["method"] = find("PosteriorSampling")(**chain)
    if not published:
        return "DPDiscreteTimeSurvival", own
    assert own.pop("max_cumulative_hazard") is None
    return "PublishedDiscreteTimeSurvival", own


def _search(given):
    own = dict(given)
    runs = {name: own.pop(name) for name in ("eta", "expected_runs", "holdout") if name in own}
    return "PrivateSearchCV", {**own, "strategy": find("RepeatedRuns")(**runs)}


def _logistic(given):
    own = dict(given)
    if own.pop("calibration", "tight") == "published":
        return "PublishedLogisticRegression", own
    method = {"max_residual": own.pop("max_residual")}
    own["method"] = find("Perturbation")(own["method"], **method)
    return "DPLogisticRegression", own


def _hybrid(given):
    own = dict(given)
    assert own["method"] == "subset"
    subset = {name: own.pop(name) for name in ("selection", "candidate_sizes") if name in own}
    return "HybridMEstimator", {**own, "method": find("SubsetSelection")(**subset)}


COLUMNS = {"feature_groups": "groups", "importances": "importances", "group_norms": "norms"}


def _stack(given):
    own = dict(given)
    published = own.pop("calibration", "tight") == "published"
    columns = {new: own.pop(old) for old, new in COLUMNS.items() if old in own}
    if columns:
        own["partition"] = find("FeaturePartition")(**columns)
    if "holdout" in own:
        own["combiner"] = find("LogisticCombiner")(holdout=own.pop("holdout"))
    return f"{'Published' if published else 'Private'}StackingClassifier", own


#: From old parameters to today's estimator and its parameters, if one is unknown to an estimator.
RESPELLED = {
    "DPWeibullFitter": _weibull,
    "DPDiscreteTimeSurvival": _hazard,
    "PrivateSearchCV": _search,
    "DPLogisticRegression": _logistic,
    "HybridMEstimator": _hybrid,
    "PrivateStackingClassifier": _stack,
}
#: Names that releases have of estimators, before and now.
RENAMED = {
    "LaplaceWeibullFitter": "DPWeibullFitter",
    "PublishedWeibullFitter": "DPWeibullFitter",
    "PublishedDiscreteTimeSurvival": "DPDiscreteTimeSurvival",
    "PublishedLogisticRegression": "DPLogisticRegression",
    "PublishedStackingClassifier": "PrivateStackingClassifier",
    "SampleAggregateWeibullFitter": "DPWeibullFitter",
}
#: Parameters that releases state of one checkout and not of the other.
MOVED = frozenset(
    {
        *("calibration", "event_of_interest_", "method", "n_rungs", "rungs", "ladder", "n_levels"),
        *("feature_groups", "feature_groups_", "importances", "weights_"),
    }
)


def find(name):
    """Return what has a name; LookupError if this checkout has it nowhere."""
    for place in PLACES.get(name, ANYWHERE):
        try:
            return getattr(importlib.import_module(place), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise LookupError(f"{name}: in none of the places that tests/fence/places.py knows.")


def parameters_of(name):
    return inspect.signature(find(name)).parameters.keys()


def make(name, **parameters):
    kind = find(name)
    if not parameters.keys() <= parameters_of(name):
        name, respelled = RESPELLED[name](parameters)
        kind, parameters = find(name), dict(respelled)
    return kind(**parameters)
