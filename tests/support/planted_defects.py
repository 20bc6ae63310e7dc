"""Mechanisms that are not private enough, and where they show it.

Used by the tests of the audit and by benchmarks/studies/audit.py.
"""

import functools
import math
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeClassifier

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPTableOne,
    HybridMEstimator,
    PosteriorSampling,
    PrivacyGuarantee,
    PublicColumns,
    Release,
)
from skdpsurv.classification.logistic_measurements import ColumnGroup
from skdpsurv.dp import random_source
from skdpsurv.dp.noise import lattice_laplace
from skdpsurv.hybrid import SubsetSelection
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.mechanisms import langevin, sums, vector_noise
from skdpsurv.mechanisms.langevin import PSGLD
from skdpsurv.mechanisms.vector_noise import SphericalGaussian
from skdpsurv.published import LaplaceWeibullFitter
from skdpsurv.survival.curves import event_counts as curve_table
from skdpsurv.survival.hazards import posterior as hazard_posterior
from skdpsurv.survival.weibull import log_time_counts as weibull_counts
from tests.support.estimators import logistic as perturbed
from tests.support.worst_pairs import pair


class Planted(NamedTuple):
    estimator: Any
    data: tuple[Any, ...]
    neighbour: tuple[Any, ...]
    n_trials: int
    defect: Callable[[], Any]
    statistic: Callable[[Any], float] | None = None


def less_vector_noise(part):
    """A part of Laplace noise on vectors, in floats and on a lattice."""
    stack = ExitStack()
    for name in ("spherical_laplace", "exact_spherical_laplace"):
        honest = getattr(vector_noise, name)
        small = functools.partial(_scaled, honest, part)
        stack.enter_context(mock.patch.object(vector_noise, name, small))
    return stack


def less_lattice_noise(part):
    """A part of Laplace noise on sums."""
    small = functools.partial(_scaled, lattice_laplace, part)
    return mock.patch.object(sums, "lattice_laplace", small)


def _scaled(honest, part, what, scale, source):
    return honest(what, part * scale, source)


def less_gaussian_noise(part):
    """A deviation of Gaussian noise on vectors that is too small."""
    honest = SphericalGaussian.calibrated_to

    def calibrated_to(dimension, sensitivity, mu):
        return honest(dimension, part * sensitivity, mu)

    return mock.patch.object(SphericalGaussian, "calibrated_to", calibrated_to)


def halved(kind, name="sensitivity"):
    """Half of a bound of a query."""
    honest = getattr(kind, name).fget

    def half(query):
        return honest(query) / 2 if honest(query) % 2 else honest(query) // 2

    return mock.patch.object(kind, name, property(half))


def half_of_gradients(kind=DiscreteHazard):
    """Half of the sensitivity of a likelihood's gradients."""
    held = kind.constants
    honest = held.fget if isinstance(held, property) else held.func

    def half(self):
        whole = honest(self)
        return replace(whole, gradient_sensitivity=whole.gradient_sensitivity / 2)

    return mock.patch.object(kind, "constants", property(half))


def all_of_the_price_for_each():
    """Histograms of the same records that share nothing."""
    return mock.patch.object(sums.Histograms, "each", lambda query, price: price)


def half_of_histograms():
    """Half of the sensitivity of the counts of a curve."""
    return mock.patch.object(curve_table.EventCounts, "query", sums.Histogram(1))


def doubled(levels):
    """Levels of a ladder that move by two levels."""

    class Doubled(levels):
        def down_to(self, node):
            return 2 * super().down_to(node)

        def up_to(self, node):
            return 2 * super().up_to(node)

    return Doubled


def doubled_ladder(module=weibull_counts, name="ReleasedMeanLevels"):
    return mock.patch.object(module, name, doubled(getattr(module, name)))


def intercept_outside_the_norm():
    return mock.patch.object(ColumnGroup, "bound", property(lambda self: self.factor * self.norm))


N_CANDIDATES = 10


def noisy_curve_as_published():
    """Noise of scale 1 / epsilon on each of k points, at the price of one."""
    return less_lattice_noise(1 / N_CANDIDATES)


class NoisySum(BaseEstimator):
    """The sum of one column within [0, 1], with noise on a lattice or in floats."""

    def __init__(self, epsilon=1.0, *, random_state=None, lattice=True):
        self.epsilon, self.random_state, self.lattice = epsilon, random_state, lattice

    def fit(self, X, y=None):
        source = random_source(self.random_state)
        terms = np.clip(np.ravel(X), 0.0, 1.0)
        if self.lattice:
            total = int(np.rint(np.ldexp(terms, 30)).sum())
            noisy = math.ldexp(lattice_laplace(total, 2.0**30 / self.epsilon, source), -30)
        else:
            noisy = terms.sum() + source.generator.laplace(scale=1.0 / self.epsilon)
        guarantee = PrivacyGuarantee(self.epsilon, status="seeded")
        self.release_ = Release("NoisySum", guarantee, {}, {"sum": noisy}, 1)
        return self


def noise_in_floats():
    honest = NoisySum.fit

    def fit(self, X, y=None):
        return honest(self.set_params(lattice=False), X, y)

    return mock.patch.object(NoisySum, "fit", fit)


def low_bits(fitted):
    """Whether the number has bits below 2^-53."""
    return float(math.ldexp(fitted.release_.values["sum"], 53) % 1.0 != 0.0)


@contextmanager
def short_chains():
    """Chains shorter than any that is allowed: their drift shows all the same."""
    with (
        mock.patch.dict(hazard_posterior.LEAST_STEPS, psgld=100),
        mock.patch.object(langevin, "WARM_UP", 10),
        mock.patch.object(langevin, "FORGETTING", 1.0),
    ):
        yield


def published_drift():
    """The step of the paper, whose limit is the target squared."""
    return mock.patch.object(hazard_posterior, "PSGLD", functools.partial(PSGLD, published=True))


def mean_of_curve(fitted):
    """Sums of losses are nearly 0, or nearly 1: for Laplace noise the likelihood ratio."""
    return float(np.clip(fitted.curve_, 0.0, 1.0).mean())


def predictor(fitted):
    """Of rows at their bound: all that the losses see."""
    return float(fitted.baseline_coef_[0] + fitted.coef_[0])


def at_either_end(fitted):
    """All labels of booleans together."""
    return float(fitted.release_.values["counts"][0] @ np.tile([-1.0, 1.0], fitted.n_features_in_))


def right_or_wrong():
    """A private record that every candidate predicts rightly, or wrongly."""
    x = np.repeat([-1.0, 1.0], 15) * np.tile(np.linspace(0.5, 1.0, 15), 2)
    X, public = np.r_[1.0, -1.0, x][:, None], np.arange(32) > 1
    y = (X[:, 0] > 0).astype(int)
    other = y.copy()
    other[0] = 0
    return (X, y, public), (X, other, public)


def _planted():
    small = {"max_time": 1.0, "n_knots": 1, "data_norm": 1.0}
    linear = {"n_intervals": 4, "max_cumulative_hazard": 1.0, "pilot_share": 0.0, "alpha": 20.0}
    hazard = DPDiscreteTimeSurvival(**small, **linear)
    at_once = pair(hazard, "event at once or censored at the end, alone", n=1)
    logistic = perturbed(classes=[0, 1], intercept_scaling=10.0, alpha=0.0, max_residual=0.5)
    flipped = pair(logistic, "label flipped, others at zero with one label", n=6)
    curve = HybridMEstimator(
        DecisionTreeClassifier(max_depth=1, random_state=0),
        method=SubsetSelection("noisy_curve", candidate_sizes=list(range(20, 20 + N_CANDIDATES))),
        budget_split=(0.02, 0.08, 0.9),
    )
    steps = PosteriorSampling("psgld", step_size=0.2, n_epochs=50)  # within short_chains
    chain = DPDiscreteTimeSurvival(epsilon=2.0, method=steps, n_intervals=1, **small)
    far_away = "event at once or censored at the end, others with events at once"
    far_away = pair(chain, far_away, n=2)
    weibull = LaplaceWeibullFitter(max_time=1.0)
    late = "event at zero or at the horizon, others with events at the horizon"
    late = pair(weibull, late, n=2)
    table = DPTableOne(columns=PublicColumns({f"x{j}": bool for j in range(24)}))
    ends = pair(table, "all columns at either end, others alike", n=2)
    sixth = (
        functools.partial(less_vector_noise, 1 / 6),
        functools.partial(less_lattice_noise, 1 / 6),
    )
    bits = NoisySum(), ([[0.0]], [0]), ([[1.0]], [0]), 2000, noise_in_floats, low_bits
    losses = noisy_curve_as_published, mean_of_curve
    return {
        "a sixth of the noise, objective perturbation": Planted(hazard, *at_once, 3000, sixth[0]),
        "a sixth of the noise, noisy estimates": Planted(weibull, *late, 600, sixth[1]),
        "each column at the price of all": Planted(
            table, *ends, 500, all_of_the_price_for_each, at_either_end
        ),
        "intercept outside the norm": Planted(logistic, *flipped, 700, intercept_outside_the_norm),
        "noise in floats": Planted(*bits),
        "noisy curve at the price of a point": Planted(curve, *right_or_wrong(), 500, *losses),
        "twice the drift in every step": Planted(
            chain, *far_away, 1500, published_drift, predictor
        ),
    }


PLANTED = _planted()
