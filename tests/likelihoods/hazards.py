"""Records, hazard likelihoods and coefficients that several tests have in common."""

import numpy as np

from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS

N, D, Q = 40, 2, 9


def hazard(name, cap):
    rng = np.random.default_rng(0)
    basis = np.column_stack([np.full(Q, 0.7), rng.normal(size=(Q, 2))])
    return DiscreteHazard(basis, D, 1.0, LINKS[name].bounded_at(0.05), cap)


def records(n=N, seed=1):
    """Records of every kind; more than enough to hit events and censoring in each interval."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, rng.integers(1, Q + 1, size=n), rng.random(n) < 0.5


def some_coefs(likelihood, scales=(0.3, 1.0, 3.0)):
    rng = np.random.default_rng(2)
    return [scale * rng.normal(size=likelihood.n_params) for scale in scales]


def gap(likelihood, coef, pair):
    """Return the distance of the gradients of a block's two records, as a part of S."""
    found = likelihood.derivatives(coef, pair, np.array([1.0, -1.0]), order=1).gradient
    return float(np.linalg.norm(found)) / likelihood.constants.gradient_sensitivity
