"""Attacks on private logistic regression, at the two places where such packages have gone wrong.

These are rows of a norm other than 1, and the intercept. A forest learns from one half of the
releases; a correct mechanism passes an audit with probability at most ``CONFIDENCE``.
"""

from typing import Any, NamedTuple

import numpy as np

from tests.support.attacks import by_forest
from tests.support.estimators import logistic as perturbed

CONFIDENCE = 1e-8
#: Fits of either data set. No bound above some 2.7, 3.6 and 4.5 can be found with so many.
QUICK, SLOW, MANY = 600, 1500, 3500
#: As if the norm stood in place of its square, at this norm.
LARGE = 1000.0


class Pair(NamedTuple):
    """Two data sets that differ in one record, and the public parameters of the fit."""

    X: tuple[Any, Any]
    y: tuple[Any, Any]
    parameters: dict[str, Any]


def column(*values):
    return np.array(values, dtype=float)[:, None]


def without_intercept(norm):
    return {"data_norm": norm, "fit_intercept": False}


def with_constant(size, norm=1.0):
    return {"data_norm": norm, "fit_intercept": True, "intercept_scaling": size}


def flipped(X, parameters):
    """The last record has the other label."""
    labels = np.zeros(len(X), dtype=int)
    return Pair((X, X), (labels, labels + (np.arange(len(X)) == len(X) - 1)), parameters)


def moved(first, second, parameters, labels=(0, 1)):
    """The last record is in another place."""
    return Pair((column(*first), column(*second)), (labels, labels), parameters)


TEN = without_intercept(10.0)
PAIRS = {
    "norm 10, label": flipped(column(10), TEN),
    "norm 10, row and its negative": moved((0, 3, -10), (0, 3, 10), TEN, (0, 1, 1)),
    "norm 1000, row at zero or at the norm": moved((0, 0), (0, LARGE), without_intercept(LARGE)),
    "norm 10, row far beyond it": moved((10, -1e9), (10, 1e9), TEN),
    "two columns": Pair((np.array([[10.0, 0.0]]), np.array([[0.0, 10.0]])), ([1], [1]), TEN),
    "constant 0.1, label": flipped(column(0, 0, 0), with_constant(0.1)),
    "constant 1, label": flipped(column(0), with_constant(1.0)),
    "constant 10, label": flipped(column(0, 0, 0, 0, 0), with_constant(10.0)),
    **{
        f"constant {size:g}, row moved": moved((0, 0), (0, 1), with_constant(size))
        for size in (0.1, 1.0, 10.0)
    },
    "constant 1, norm 10, label": flipped(column(10), with_constant(1.0, norm=10.0)),
}
STRONGEST = ("norm 10, label", "norm 1000, row at zero or at the norm", "constant 1, row moved")
#: In units of the squared norm. A small ridge leaves most to the curvature; a large one keeps
#: minimisers near zero, where one record moves them farthest.
ALPHA = {"obj_pert": 0.0, "out_pert": 20.0}


def releases(pair, trials, **parameters):
    """Coefficients and intercepts of fits of either data set, of shape (2, trials, columns)."""
    found = []
    for which in range(2):
        model = perturbed(**pair.parameters, **parameters, classes=[0, 1])
        X, y = pair.X[which], pair.y[which]
        fits = (model.set_params(random_state=2 * i + which).fit(X, y) for i in range(trials))
        found.append([np.append(fit.coef_, fit.intercept_) for fit in fits])
    return np.array(found)


def what_is_seen(released, pair):
    """Releases, and their predictors at the rows that differ."""
    rows = np.unique(np.vstack([np.asarray(X)[-1] for X in pair.X]), axis=0)
    rows = np.clip(rows, -pair.parameters["data_norm"], pair.parameters["data_norm"])
    predictors = released[:, :-1] @ rows.T + released[:, -1:]
    # Fits without a minimum end anywhere; how far away tells nothing.
    seen = np.clip(np.hstack([released, predictors]), -1e4, 1e4)
    return np.hstack([seen, np.abs(seen)])


def attack(released, pair, error=CONFIDENCE):
    samples = [what_is_seen(each, pair) for each in released]
    shares = np.linspace(0.002, 0.998, 400)
    return by_forest(samples, shares, error, min_samples_leaf=15, max_features=None)


def audit(name, trials, *, method="obj_pert", **parameters):
    """Cap residuals at a half, at an epsilon of 1, unless parameters say otherwise."""
    pair = PAIRS[name]
    alpha = ALPHA[method] * pair.parameters["data_norm"] ** 2
    given = {"max_residual": 0.5, "epsilon": 1.0, "alpha": alpha, **parameters}
    return attack(releases(pair, trials, method=method, **given), pair)
