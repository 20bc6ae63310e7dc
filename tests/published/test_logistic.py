"""PublishedLogisticRegression: what it says of itself, and releases of when it was a word."""

from __future__ import annotations

import json
import warnings

import numpy as np

from skdpsurv import DPLogisticRegression, PrivacyLeakWarning, Release
from skdpsurv.published import PublishedLogisticRegression

X = np.linspace(-1.0, 1.0, 300).reshape(-1, 1)


def fitted(kind, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return kind(2.0, classes=[0, 1], random_state=0, **parameters).fit(X, X[:, 0] > 0)


def test_it_is_proved_and_says_that_it_is_as_published():
    guarantee = fitted(PublishedLogisticRegression).guarantee_
    assert guarantee.status == "seeded"
    assert guarantee.mechanism.endswith("as published")
    assert guarantee.public_inputs["calibration"] == "published"
    assert guarantee.public_inputs["epsilon_recalibration"] == 0.0


def test_residuals_are_not_capped_and_there_are_no_standard_errors():
    one = fitted(PublishedLogisticRegression)
    assert (one.max_residual_, one.recalibration_slope_, one.inference_) == (1.0, 1.0, None)
    assert one.summary["se(coef)"].isna().all()


def test_earlier_releases_load_as_todays_estimators():
    for kind in [DPLogisticRegression, PublishedLogisticRegression]:
        release = fitted(kind).release_
        content = json.loads(release.to_json())
        calibration = "published" if kind is PublishedLogisticRegression else "tight"
        words = {"method": "obj_pert", "calibration": calibration}
        earlier = content | {
            "estimator": "DPLogisticRegression",
            "parameters": content["parameters"] | words,
        }
        other = Release.from_json(json.dumps(earlier))
        assert other == release
        np.testing.assert_array_equal(other.predict(X), kind.from_release(release).predict(X))
