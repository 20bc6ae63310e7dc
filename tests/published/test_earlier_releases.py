"""Releases of when the papers' algorithms were words of other estimators load as today's."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from skdpsurv import (
    DPLogisticRegression,
    DPWeibullFitter,
    FeaturePartition,
    PrivacyLeakWarning,
    PrivateStackingClassifier,
    Release,
)
from skdpsurv.published import (
    LaplaceWeibullFitter,
    PublishedLogisticRegression,
    PublishedStackingClassifier,
    PublishedWeibullFitter,
    SampleAggregateWeibullFitter,
    weibull,
)

X = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 3))
Y = X[:, 0] > 0
TIME, EVENT = np.linspace(0.02, 0.9, 60), np.arange(60) % 3 > 0
STACKS = PrivateStackingClassifier, PublishedStackingClassifier


def fitted(kind, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return kind(2.0, classes=[0, 1], random_state=0, **parameters).fit(X, Y)


def stack(kind, **parameters):
    return fitted(kind, **{"n_partitions": 2, **parameters})


def as_before(release, estimator, words, without=()):
    """Return a release that was written when it had these words, and not these parameters."""
    content = json.loads(release.to_json())
    parameters = {k: v for k, v in content["parameters"].items() if k not in without} | words
    return Release.from_json(
        json.dumps(content | {"estimator": estimator, "parameters": parameters})
    )


def calibration_of(kind):
    return "published" if kind.__name__.startswith("Published") else "tight"


def stack_before(release, kind, importances=None):
    words = {
        "calibration": calibration_of(kind),
        "feature_groups": json.loads(release.to_json())["parameters"].get("feature_groups_"),
        "importances": importances,
    }
    without = ("feature_groups_", "weights_")
    return as_before(release, "PrivateStackingClassifier", words, without)


@pytest.mark.parametrize("kind", [DPLogisticRegression, PublishedLogisticRegression])
def test_of_logistic_regressions(kind):
    release = fitted(kind).release_
    words = {"method": "obj_pert", "calibration": calibration_of(kind)}
    other = as_before(release, "DPLogisticRegression", words)
    assert other == release
    np.testing.assert_array_equal(other.predict(X), kind.from_release(release).predict(X))


@pytest.mark.parametrize("kind", STACKS)
def test_of_stacks(kind):
    for how, importances in (
        ({"partition": "features"}, None),
        ({"partition": FeaturePartition(importances=[1.0, 2.0, 0.5])}, [0.5, 1.0, 0.25]),
        ({"partition": "samples", "combiner": "logistic"}, None),
    ):
        release = stack(kind, **how).release_
        other = stack_before(release, kind, importances)
        assert other == release
        expected = kind.from_release(release).predict_proba(X)
        np.testing.assert_array_equal(other.predict_proba(X), expected)
    prior = stack(kind).release_
    one, other = (stack(kind, prior=each).release_ for each in (prior, stack_before(prior, kind)))
    assert one == other


def test_of_weibull_fits(monkeypatch):
    monkeypatch.setattr(weibull, "N_CELLS_PUBLISHED", 200)
    for kind, parameters, words in (
        (DPWeibullFitter, {}, ("ladder", "tight", None)),
        (PublishedWeibullFitter, {"n_rungs": 5}, ("ladder", "published", 5)),
        (PublishedWeibullFitter, {"rungs": "exact"}, ("ladder", "exact", None)),
        (LaplaceWeibullFitter, {}, ("laplace", "tight", None)),
        (SampleAggregateWeibullFitter, {}, ("sample_aggregate", "tight", None)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            release = kind(max_time=1.0, random_state=0, **parameters).fit(TIME, EVENT).release_
        given = dict(zip(("method", "calibration", "n_rungs"), words, strict=True))
        other = as_before(release, "DPWeibullFitter", given, ("rungs", "n_rungs"))
        assert other == release
        assert type(other.to_estimator()) is kind
    for change in (
        {"estimator": 3},
        {"parameters": None},
        {"parameters": {"method": ["laplace"], "calibration": {}, "n_rungs": []}},
    ):
        text = json.dumps(json.loads(release.to_json()) | change)
        with pytest.raises((ValueError, TypeError)):
            Release.from_json(text).to_estimator()


@pytest.mark.parametrize("kind", [PublishedLogisticRegression, PublishedStackingClassifier])
def test_the_papers_say_so(kind):
    one = stack(kind) if kind is PublishedStackingClassifier else fitted(kind)
    assert one.guarantee_.status == "seeded"
    assert one.guarantee_.mechanism.endswith("as published")
    assert one.guarantee_.public_inputs["calibration"] == "published"
    if kind is PublishedLogisticRegression:
        assert (one.max_residual_, one.recalibration_slope_, one.inference_) == (1.0, 1.0, None)
    else:
        assert one.guarantee_.public_inputs["max_residual"] == 1.0
        assert not issubclass(kind, PrivateStackingClassifier)


@pytest.mark.parametrize("kinds", [STACKS, STACKS[::-1]])
def test_either_stack_is_a_prior_of_the_other(kinds):
    prior = stack(kinds[0]).release_
    near = stack(kinds[1], prior=prior, alpha=1e8)
    coef = prior.values["low_level_coef_0"]
    np.testing.assert_allclose(near.low_level_coef_[0], coef, atol=1e-4)


def test_a_stack_without_groups_or_weights_is_refused():
    content = json.loads(stack(STACKS[0]).release_.to_json())
    for name in ("feature_groups_", "weights_"):
        parameters = {k: v for k, v in content["parameters"].items() if k != name}
        text = json.dumps(content | {"parameters": parameters})
        with pytest.raises(TypeError, match=f"^{name} of the release must be"):
            STACKS[0].from_release(Release.from_json(text))
