"""Releases of when the papers' algorithms were words of other estimators load as today's."""

import json
from dataclasses import replace

import numpy as np
import pytest

from skdpsurv import (
    DPLogisticRegression,
    DPWeibullFitter,
    FeaturePartition,
    PrivateStackingClassifier,
    Release,
)
from skdpsurv import published as papers

X = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 3))
Y = X[:, 0] > 0
STACKS = PrivateStackingClassifier, papers.PublishedStackingClassifier
REGRESSIONS = DPLogisticRegression, papers.PublishedLogisticRegression


def fitted(kind, **parameters):
    if kind in STACKS:
        parameters = {"n_partitions": 2, **parameters}
    return kind(2.0, classes=[0, 1], random_state=0, **parameters).fit(X, Y)


def as_before(release, estimator, words, without=()):
    """Return a release that was written when it had these words, and not these parameters."""
    content = json.loads(release.to_json())
    for name in ("plan", "fit_plan", "noise"):
        del content[name]
    content["schema_version"] = 2
    own = {name: value for name, value in content["parameters"].items() if name not in without}
    changed = {"estimator": estimator, "parameters": own | words}
    return Release.from_json(json.dumps(content | changed))


def unplanned(release):
    """Return a release that does not state what was drawn, as the older ones."""
    return replace(release, plan=None, noise={})


def calibration_of(kind):
    return "published" if kind.__name__.startswith("Published") else "tight"


def stack_before(release, kind, importances=None):
    groups = json.loads(release.to_json())["parameters"].get("feature_groups_")
    words = {"calibration": calibration_of(kind), "feature_groups": groups}
    without = ("feature_groups_", "weights_")
    return as_before(release, STACKS[0].__name__, words | {"importances": importances}, without)


@pytest.mark.parametrize("kind", REGRESSIONS)
def test_of_logistic_regressions(kind):
    release = unplanned(fitted(kind).release_)
    words = {"method": "obj_pert", "calibration": calibration_of(kind)}
    other = as_before(release, "DPLogisticRegression", words)
    assert other == release
    np.testing.assert_array_equal(other.predict(X), kind.from_release(release).predict(X))


@pytest.mark.parametrize("kind", STACKS)
def test_of_stacks(kind):
    weighted = {"partition": FeaturePartition(importances=[1.0, 2.0, 0.5])}
    for how, importances in (
        ({"partition": "features"}, None),
        (weighted, [0.5, 1.0, 0.25]),
        ({"partition": "samples", "combiner": "logistic"}, None),
    ):
        release = unplanned(fitted(kind, **how).release_)
        other = stack_before(release, kind, importances)
        assert other == release
        expected = kind.from_release(release).predict_proba(X)
        np.testing.assert_array_equal(other.predict_proba(X), expected)
    prior = unplanned(fitted(kind).release_)
    one, other = (fitted(kind, prior=each).release_ for each in (prior, stack_before(prior, kind)))
    assert one == other


def test_of_weibull_fits(monkeypatch):
    monkeypatch.setattr(papers.weibull_fitters, "N_CELLS_PUBLISHED", 200)
    for kind, parameters, words in (
        (DPWeibullFitter, {}, ("ladder", "tight", None)),
        (papers.PublishedWeibullFitter, {"n_levels": 5}, ("ladder", "published", 5)),
        (papers.PublishedWeibullFitter, {"ladder": "exact"}, ("ladder", "exact", None)),
        (papers.LaplaceWeibullFitter, {}, ("laplace", "tight", None)),
        (papers.SampleAggregateWeibullFitter, {}, ("sample_aggregate", "tight", None)),
    ):
        model = kind(max_time=1.0, random_state=0, **parameters)
        release = model.fit(np.linspace(0.02, 0.9, 60), np.arange(60) % 3 > 0).release_
        given = dict(zip(("method", "calibration", "n_rungs"), words, strict=True))
        without = ("ladder", "n_levels", "tuning")
        other = as_before(release, "DPWeibullFitter", given, without)
        assert other == unplanned(release)
        assert type(other.to_estimator()) is kind
    odd = {"method": ["laplace"], "calibration": {}, "n_rungs": []}
    for change in ({"estimator": 3}, {"parameters": None}, {"parameters": odd}):
        text = json.dumps(json.loads(release.to_json()) | change)
        with pytest.raises((ValueError, TypeError)):
            Release.from_json(text).to_estimator()


@pytest.mark.parametrize("kind", [REGRESSIONS[1], STACKS[1]])
def test_the_papers_say_so(kind):
    one = fitted(kind)
    stated = one.guarantee_.public_inputs
    assert one.guarantee_.mechanism.endswith("as published")
    assert (one.guarantee_.status, stated["calibration"]) == ("seeded", "published")
    if kind in STACKS:
        assert stated["max_residual"] == 1.0
    else:
        assert (one.max_residual_, one.recalibration_slope_, one.inference_) == (1.0, 1.0, None)


@pytest.mark.parametrize("kinds", [STACKS, STACKS[::-1]])
def test_either_stack_is_a_prior_of_the_other(kinds):
    prior = fitted(kinds[0]).release_
    near = fitted(kinds[1], prior=prior, alpha=1e8)
    np.testing.assert_allclose(near.low_level_coef_[0], prior.values["low_level_coef_0"], atol=1e-4)


def test_a_stack_without_groups_or_weights_is_refused():
    content = json.loads(fitted(STACKS[0]).release_.to_json())
    for name in ("feature_groups_", "weights_"):
        rest = {k: v for k, v in content["parameters"].items() if k != name}
        release = Release.from_json(json.dumps(content | {"parameters": rest}))
        with pytest.raises(TypeError, match=f"^{name} of the release must be"):
            STACKS[0].from_release(release)
