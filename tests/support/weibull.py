"""Every way to fit a Weibull distribution, and records for it."""

import warnings

import numpy as np

from skdpsurv import DPWeibullFitter, PrivacyLeakWarning, PublicInputWarning, published

KINDS = {
    "tight": (DPWeibullFitter, {}),
    "exact": (published.PublishedWeibullFitter, {"ladder": "exact"}),
    "published": (published.PublishedWeibullFitter, {}),
    "laplace": (published.LaplaceWeibullFitter, {}),
    "blocks": (published.SampleAggregateWeibullFitter, {}),
    "no privacy": (DPWeibullFitter, {"epsilon": np.inf}),
}


def model(kind="tight", **parameters):
    make, own = KINDS[kind]
    return make(**{"max_time": 1.0, "random_state": 0, **own, **parameters})


def strictly(function, *args, **options):
    """Call with warnings as errors: one that depends on records would tell about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PublicInputWarning)
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return function(*args, **options)


def records(n=300, shape=1.3, scale=0.8, seed=0, horizon=1.0):
    """Weibull times with exponential censoring; some of both are beyond the horizon."""
    rng = np.random.default_rng(seed)
    time, last = scale * rng.weibull(shape, n), rng.exponential(1.0, n)
    return horizon * np.minimum(time, last), time <= last


def target(event, time):
    y = np.empty(len(time), dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = event, time
    return y
