"""How far two replays are apart: the log ratio of the laws of one draw, and where it is largest."""

import math
from dataclasses import replace

import numpy as np
from numpy.polynomial import legendre
from scipy import special

from skdpsurv.audit.density_ratio import DISTANCES, NEAR, grid_step, ladder_logs
from skdpsurv.mechanisms.semidefinite_noise import SemidefiniteLaplace, symmetric, trace_distance
from skdpsurv.mechanisms.vector_noise import SphericalGaussian, SphericalLaplace

# ---- Log probabilities of choices, without sampling.


def log_permute_and_flip(exponents):
    """Each candidate has a time in [0, 1] at which it is looked at; the first that is kept wins.

    The probability is an integral over that time of a polynomial, which a Gauss rule has exactly.
    """
    x = np.array([float(each) for each in exponents])
    points, weights = legendre.leggauss(x.size // 2 + 1)
    # Of each candidate, in a row, whether it was not kept before each time.
    missed = np.log1p(-np.exp(-x)[:, None] * (points + 1.0) / 2.0)
    others = missed.sum(axis=0) - missed
    return np.asarray(-x + special.logsumexp(others + np.log(weights / 2.0), axis=1))


def log_exponential_mechanism(exponents):
    x = np.array([float(each) for each in exponents])
    return np.asarray(-x - special.logsumexp(-x))


CHOICES = {
    "permute-and-flip": log_permute_and_flip,
    "exponential mechanism": log_exponential_mechanism,
}


def comparable(one, other):
    """Say whether two draws differ in nothing but what the records are."""
    return (
        (one.draw.law, one.draw.scale, one.step) == (other.draw.law, other.draw.scale, other.step)
        and np.shape(one.exact) == np.shape(other.exact)
        and _size(one) == _size(other)
        and one.used == other.used
        and (one.law is None) == (other.law is None)
    )


def ratio(one, other, n_cells, *, each=False):
    """Return the log ratio at the answer or, of Gaussian noise, the square of a mu."""
    if not comparable(one, other):
        return math.inf
    if one.law is not None and other.law is not None:
        laws = [_with_scale(each_one) for each_one in (one, other)]
        return laws[0].log_density(one.answer) - laws[1].log_density(one.answer)
    if one.draw.law.endswith("on a vector"):
        if not one.used:
            return math.inf  # drawn, and added to nothing
        law, gap = _noise_of(one), _gap(one.exact, other.exact)
        if one.is_gaussian:
            return law.cost(float(np.linalg.norm(gap))) ** 2
        if isinstance(law, SemidefiniteLaplace):  # its supremum: the density has no formula
            return law.cost(trace_distance(symmetric(gap, law.width)))
        return law.log_density(np.zeros_like(gap)) - law.log_density(gap)
    if one.draw.law.startswith("discrete"):
        moved = [abs(a - b) / one.draw.scale for a, b in zip(one.exact, other.exact, strict=True)]
        if one.is_gaussian:
            moved = [gap**2 for gap in moved]
        return max(moved) if each else math.fsum(moved)
    gaps = _gaps(one, other, n_cells)
    return float(gaps[one.answer // _step(one, n_cells)])


def best_answer(one, other, n_cells, n_before):
    """Return the answer to a choice at which the log ratio is largest."""
    if one.law is None or other.law is None:
        return int(np.argmax(_gaps(one, other, n_cells))) * _step(one, n_cells)
    laws = _with_scale(one), _with_scale(other)
    points = within_reach(near_points(*laws), one.part.what)
    gaps = [laws[0].log_density(point) - laws[1].log_density(point) for point in points]
    if not np.any(gaps):
        # Where the records are the same: models that say much, and contradict each other, have the
        # votes and losses that other records can move farthest.
        sums = points.sum(axis=1) * (-1.0) ** n_before
        return points[int(np.argmax(sums))]
    return points[int(np.nanargmax(gaps))]


def near_points(one, other):
    """Return fewer points: in both directions in which the record pulls, and of each parameter."""
    minima = one.minimum, other.minimum
    d = minima[0].size
    record_scores = [
        law.objective.derivatives(minima[0] - law.objective.center, order=1).gradient
        for law in (one, other)
    ]
    ways = np.vstack(
        [minima[1] - minima[0], record_scores[1] - record_scores[0], np.ones(d), np.eye(d)]
    )
    ways = ways[np.linalg.norm(ways, axis=1) > 0]
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    ways = np.vstack([ways, -ways])
    constants, kappa = one.objective.likelihood.constants, one.objective.kappa
    reach = max(one.linear.scale, constants.gradient_sensitivity) / kappa
    steps = [distance * reach * ways for distance in DISTANCES]
    steps += [distance * ways for distance in NEAR]
    return np.vstack([minima[0] + np.vstack([np.zeros((1, d)), *steps]), *minima])


def within_reach(points, problem):
    """Draw points towards the centre until a fit may release them.

    Those farther out take noise longer than any that is drawn, and a solver that looks for one
    ends with as many steps as it may take.
    """
    shifts = points - problem.center
    reach = 0.99 * problem.calibration.certificate.max_distance
    parts = np.linalg.norm(shifts, axis=1, keepdims=True) / reach
    return problem.center + shifts / np.maximum(parts, 1.0)


def _with_scale(one):
    """Return the law of a minimum for the noise that was drawn, whatever was planned."""
    return replace(one.law, linear=_noise_of(one))


def _noise_of(one):
    if not isinstance(one.draw.given, int):
        return one.draw.given
    kind = SphericalGaussian if one.is_gaussian else SphericalLaplace
    return kind(one.draw.given, one.draw.scale)


def _gap(one, other):
    with np.errstate(invalid="ignore"):
        gap = np.where(one == other, 0.0, one - other)
    return np.where(np.isnan(gap), np.inf, gap)


def _size(one):
    if one.draw.law in CHOICES:
        return len(one.draw.given)
    return one.draw.given if one.draw.law.endswith("on a vector") else None


def _step(one, n_cells):
    return 1 if one.draw.law in CHOICES else grid_step(one.draw.given[0], n_cells)


def _gaps(one, other, n_cells):
    def law(each):
        if each.draw.law in CHOICES:
            return CHOICES[each.draw.law](each.draw.given)
        levels, n_levels = each.draw.given
        return ladder_logs(levels, each.draw.scale, n_levels, n_cells)

    return law(one) - law(other)
