"""PublishedStackingClassifier: what it says of itself, and releases of when it was a word."""

from __future__ import annotations

import itertools
import json
import warnings

import numpy as np
import pytest

from skdpsurv import FeaturePartition, PrivacyLeakWarning, Release
from skdpsurv import PrivateStackingClassifier as Stack
from skdpsurv.published import PublishedStackingClassifier

X = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 3))
Y = X[:, 0] > 0
IMPORTANCES = [1.0, 2.0, 0.5]


def fitted(kind, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        given = {"n_partitions": 2, "classes": [0, 1], "random_state": 0, **parameters}
        return kind(2.0, **given).fit(X, Y)


def test_it_says_that_it_is_as_published():
    for combiner in ["weighted_vote", "logistic"]:
        guarantee = fitted(PublishedStackingClassifier, combiner=combiner).guarantee_
        assert guarantee.mechanism.endswith("as published")
        assert guarantee.public_inputs["calibration"] == "published"
        assert guarantee.public_inputs["max_residual"] == 1.0


def test_it_is_no_branch_of_what_people_use():
    assert not issubclass(PublishedStackingClassifier, Stack)
    assert not {"delta", "max_residual", "calibration"} & set(
        PublishedStackingClassifier().get_params()
    )


def test_either_is_a_prior_of_the_other():
    for kinds in [(Stack, PublishedStackingClassifier), (PublishedStackingClassifier, Stack)]:
        source, target = kinds
        prior = fitted(source).release_
        near = fitted(target, prior=prior, alpha=1e8)
        np.testing.assert_allclose(
            near.low_level_coef_[0], prior.values["low_level_coef_0"], atol=1e-4
        )


def earlier(release, calibration, importances=None):
    """Return the text of a release as it was written before there were objects."""
    content = json.loads(release.to_json())
    parameters = content["parameters"]
    groups = parameters.pop("feature_groups_", None)
    parameters.pop("weights_", None)
    words = {"calibration": calibration, "feature_groups": groups, "importances": importances}
    return json.dumps(content | {"estimator": Stack.__name__, "parameters": parameters | words})


def test_earlier_releases_load_as_todays_estimators():
    for kind, (how, importances) in itertools.product(
        [Stack, PublishedStackingClassifier],
        [
            ({"partition": "features"}, None),
            ({"partition": FeaturePartition(importances=IMPORTANCES)}, [0.5, 1.0, 0.25]),
            ({"partition": "samples", "combiner": "logistic"}, None),
        ],
    ):
        release = fitted(kind, **how).release_
        calibration = "published" if kind is PublishedStackingClassifier else "tight"
        other = Release.from_json(earlier(release, calibration, importances))
        assert other == release
        np.testing.assert_array_equal(
            other.predict_proba(X), kind.from_release(release).predict_proba(X)
        )


def test_an_earlier_release_is_a_prior():
    release = fitted(Stack).release_
    prior = Release.from_json(earlier(release, "tight"))
    one, other = (fitted(Stack, prior=each).release_ for each in (prior, release))
    assert one == other


def test_a_release_without_groups_or_weights_is_refused():
    content = json.loads(fitted(Stack).release_.to_json())
    for name in ("feature_groups_", "weights_"):
        parameters = {k: v for k, v in content["parameters"].items() if k != name}
        text = json.dumps(content | {"parameters": parameters})
        with pytest.raises(TypeError, match=f"^{name} of the release must be"):
            Stack.from_release(Release.from_json(text))
