"""Releases of made-up sites."""

import numpy as np

from skdpsurv import PrivacyGuarantee, Release

PARAMETERS = {"max_time": 1.0, "n_intervals": 20, "n_knots": 2, "link": "logit"}


def guarantee(n_records=1000, epsilon=1.0, **changes):
    said = {"public_inputs": {"n_records": n_records}, "status": "proved"} | changes
    if np.isinf(epsilon):
        said["status"] = "none"
    return PrivacyGuarantee(epsilon, **said)


def covariance(rng, size):
    root = rng.normal(size=(size, size + 2))
    return root @ root.T / size


def site(seed=0, *, estimate=None, cov=None, known=None, promised=None, **changes):
    rng = np.random.default_rng(seed)
    estimate = rng.normal(size=4) if estimate is None else np.asarray(estimate, float)
    cov = covariance(rng, 4) if cov is None else np.asarray(cov, float)
    values = {
        "baseline_coef": estimate[:2] / 2,
        "coef": estimate[2:] / 2,
        "inference_estimate": estimate,
        "inference_covariance": 0.5 * (cov + cov.T),
        "inference_known": np.ones(4) if known is None else np.asarray(known, float),
    }
    fields = {
        "estimator": "DPDiscreteTimeSurvival",
        "guarantee": guarantee() if promised is None else promised,
        "parameters": PARAMETERS,
        "values": values,
        "n_features_in": 2,
    }
    return Release(**(fields | changes))
