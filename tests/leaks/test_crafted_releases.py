"""A release comes from elsewhere: whatever is in it, it is refused in our words, or can be used."""

import copy
import json

import numpy as np
import pytest

from skdpsurv import HybridMEstimator, Release
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.survival.univariate import UnivariateFitter
from tests.support import checks
from tests.support.registry import PRIVATE, beyond_release

MISSING = object()
FAULTS = [
    *(MISSING, None, "x", "nan", "Infinity", "", [], [1.0], [[1.0]], ["x"], [None], {}, {"a": 1}),
    *(True, -1, -0.5, 0, 1, 2, 0.5, 5e-324, 1e300, 1e308, 10**6, 2**63, 10**400),
]
#: Settings whose releases have the shapes of others.
BUILT = [s for s in PRIVATE if s.kind is not PrivateSearchCV]
QUICK = {
    "DPDiscreteTimeSurvival: objective",
    "DPWeibullFitter: ladder",
    "DPLogisticRegression: objective",
    "PrivateStackingClassifier: columns, stacked",
    "HybridMEstimator: auto",
    "PerturbedHistogramMEstimator: labels",
    "DPDiscreteTimeSurvival: raw columns",
    "DPLogisticRegression: columns of steps",
}
LONG = {"PrivateStackingClassifier: raw columns"}


def places(content, path=()):
    """Yield the way to each field, and to the first and last of each list."""
    if path:
        yield path
    if isinstance(content, dict):
        for name in content:
            inner = None if name == "plan" else content[name]  # nothing is made of it
            yield from places(inner, (*path, name))
    elif isinstance(content, list) and content:
        for place in {0, len(content) - 1}:
            yield from places(content[place], (*path, place))


def with_fault(content, path, fault):
    changed = copy.deepcopy(content)
    part = changed
    for step in path[:-1]:
        part = part[step]
    if fault is MISSING:
        del part[path[-1]]
    else:
        part[path[-1]] = fault
    return json.dumps(changed)


def made(setting):
    """Return the content of a good release, what is needed to rebuild it, and rows."""
    data = setting.data()
    fitted = checks.quietly(setting.make(random_state=0).fit, data.X, data.y, **data.options)
    content = json.loads(fitted.release_.to_json())
    return content, beyond_release(fitted, data), data.X


def used(model, X):
    repr(model.guarantee_)
    model.guarantee_.describe()
    if isinstance(model, UnivariateFitter):
        model.predict([0.25, 0.5])  # max_time may be made 0.5
        if hasattr(model, "hazard_at_times"):
            model.hazard_at_times([0.5])
        groups = getattr(model, "groups_", None)
        for label in () if groups is None else groups.tolist():
            model.of_group(label).percentile_interval(n_resamples=2)
        model.confidence_interval(n_resamples=1)
        model.survival_band([0.5], n_resamples=1)
        return
    rows = X[:3]
    if hasattr(rows, "set_axis") and hasattr(model, "feature_names_in_"):
        rows = rows.set_axis(list(model.feature_names_in_), axis=1)
    # As many columns as it says.
    if not isinstance(model, HybridMEstimator) and getattr(model, "columns_", None) is None:
        rows = np.resize(np.asarray(rows), (3, model.n_features_in_))
    for name in ("predict", "predict_proba", "decision_function", "predict_survival_function"):
        if hasattr(model, name):
            getattr(model, name)(rows)


def rebuilt(setting, text, arguments):
    try:
        return setting.kind.from_release(Release.from_json(text), **arguments)
    except (ValueError, TypeError):
        return None


def failures(setting, every):
    """Put each fault, or every so many of them, in each field; return what neither worked."""
    content, arguments, X = made(setting)
    assert rebuilt(setting, json.dumps(content), arguments) is not None
    found = []
    for i, path in enumerate(places(content)):
        # Another part of the faults for the next field.
        for fault in FAULTS[i % every :: every]:
            try:
                with np.errstate(all="ignore"):
                    text = with_fault(content, path, fault)
                    model = checks.quietly(rebuilt, setting, text, arguments)
                    if model is not None:
                        checks.quietly(used, model, X)
            except Exception as error:  # whatever it is, it comes too late, or is no refusal
                found.append((path, str(fault)[:20], repr(error)[:200]))
    return found


@checks.each(
    [s for s in BUILT if str(s) in {*QUICK, *LONG}], quick=lambda setting: str(setting) in QUICK
)
def test_some_faults(setting):
    assert failures(setting, 13) == []


@pytest.mark.slow
@pytest.mark.parametrize("setting", BUILT, ids=str)
def test_more_faults(setting):
    assert failures(setting, 5) == []


def test_number_of_records_of_a_weibull_fit():
    setting = next(s for s in BUILT if str(s) == "DPWeibullFitter: ladder")
    content, arguments, _ = made(setting)
    for n_records in [f for f in FAULTS if f not in (1, 2, 10**6)]:
        text = with_fault(content, ("guarantee", "public_inputs", "n_records"), n_records)
        with pytest.raises(ValueError, match="n_records"):
            setting.kind.from_release(Release.from_json(text), **arguments)
