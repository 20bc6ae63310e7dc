r"""Minimise to a certified gradient norm, and say how far a record moves the derivatives.

How far one record moves the derivatives of a sum of losses: measured, where proofs have bounds.

The points are public: a theorem about a perturbed minimiser speaks of all coefficients at once.

Minimise a regularised likelihood to a certified gradient norm.

.. math:: F(f) = \sum_i \ell(f; z_i) + \tfrac\kappa2\|f - c\|^2 + \langle b, f\rangle

Privacy rests on the certificate alone: the point returned has :math:`\|\nabla F\| \le g`, hence
lies within :math:`g/\kappa` of the minimiser. How it was found is free, so starting from a thinned
sample is too. The certificate is a computed gradient below 3/4 of g, at a point that is not too far
out; that rounding takes no more than the rest, and that such a point is found, is a theorem about
the program (docs/proofs/rounding).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import linalg

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.base import Derivatives, Likelihood, block_derivatives
from skdpsurv.mechanisms.certificate import Certificate

#: How far from a centre derivatives are compared, along at most so many coordinates.
STEPS, MOST_COORDINATES = (0.3, 1.0, 3.0, 10.0, 100.0), 6
#: Eigenvalues below this part of the largest trace are rounding.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Move:
    """How far neighbours are apart at one point.

    Parameters
    ----------
    gradient : float
        Norm of the difference of gradients.
    eigenvalues : ndarray
        Of the difference of Hessians. What one record adds is positive and what the other takes
        away negative, so that neither side has a larger trace, or rank, than a record's Hessian.
    """

    gradient: float
    eigenvalues: FloatArray

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """The sizes of positive eigenvalues, and of negative ones."""
        return np.maximum(self.eigenvalues, 0.0), np.maximum(-self.eigenvalues, 0.0)

    @property
    def trace(self) -> float:
        """That of the larger side."""
        return max(float(side.sum()) for side in self.sides)

    def rank(self, largest_trace: float) -> int:
        """Return that of the larger side."""
        least = RANK_TOLERANCE * largest_trace
        return max(int(np.count_nonzero(side > least)) for side in self.sides)


def moves(
    likelihood: Likelihood, one: Blocks[Any], other: Blocks[Any], center: FloatArray
) -> Iterator[Move]:
    """Yield how far neighbours are apart, at points around a centre.

    Parameters
    ----------
    likelihood : Likelihood
    one, other : Blocks
        Of the likelihood's blocks: the same but for one record.
    center : ndarray of shape (n_params,)
    """

    def apart(point: FloatArray) -> tuple[FloatArray, Move]:
        at = partial(block_derivatives, likelihood, point, 2)
        mine, theirs = one.map_reduce(at), other.map_reduce(at)
        pull = mine.gradient - theirs.gradient
        bend = np.asarray(mine.hessian) - np.asarray(theirs.hessian)
        return pull, Move(float(np.linalg.norm(pull)), np.linalg.eigvalsh(bend))

    pull, move = apart(center)
    yield move
    for point in around(center, pull):
        yield apart(point)[1]


def around(center: FloatArray, *ways: FloatArray) -> Iterator[FloatArray]:
    """Yield points around a centre: in given directions, in that of all coordinates, in single."""
    size = center.size
    found = np.vstack([*ways, np.ones(size), np.eye(size)[:MOST_COORDINATES]])
    found = found[np.linalg.norm(found, axis=1) > 0.0]
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    for step in STEPS:
        for way in (*found, *-found):
            yield center + step * way


#: Newton steps before the method with a proved number of steps takes over. Six to ten are usual.
NEWTON_STEPS = 60
#: Records of the smallest sample that a starting point is found on; each next one is 4 times it.
PILOT_RECORDS = 1200
#: The pilot stops at this Newton decrement: about its own sampling error in one coefficient.
PILOT_DECREMENT = 1.0
#: Least ridge of the pilot: a rare column may be constant or separated in a thinned sample.
PILOT_RIDGE = 1.0

#: Least ridge of a private fit in units of tau: with less, records could be made that keep a solver
#: busy for hours.
LEAST_RIDGE = 0.01

#: Coefficients of a fit without privacy stay inside this box: an optimum at infinity stops there.
PUBLIC_BOX = 50.0


@dataclass(frozen=True)
class Objective:
    """F as a function of the shift f - c, in which the ridge is computed to its last digit.

    Parameters
    ----------
    likelihood : Likelihood
    blocks : Blocks
        Of the likelihood's blocks.
    kappa : float
        Ridge strength in the sum, per unit of squared distance.
    center : ndarray of shape (n_params,)
        c, public.
    linear : ndarray of shape (n_params,)
        b, the noise of objective perturbation or zeros.
    """

    likelihood: Likelihood
    blocks: Blocks[Any]
    kappa: float
    center: FloatArray
    linear: FloatArray

    @cached_property
    def n_records(self) -> int:
        """Number of records over all blocks."""
        return self.blocks.map_reduce(self.likelihood.n_records)

    def derivatives(self, shift: FloatArray, order: int = 2) -> Derivatives:
        """Return gradient and, at order 2, Hessian of F at ``center + shift``."""
        coef = self.center + shift
        # What goes to the blocks is what they need: neither the noise, nor other blocks.
        gradient, hessian = self.blocks.map_reduce(
            partial(block_derivatives, self.likelihood, coef, order)
        )
        if hessian is not None:
            hessian = self.kappa * np.eye(coef.size) + hessian
        return Derivatives(gradient + (self.kappa * shift + self.linear), hessian)

    def thinned(self, step: int) -> Objective:
        """Return nearly the same problem on every ``step``-th record."""
        return Objective(
            self.likelihood,
            # Held also where all records are too many.
            self.blocks.map(partial(_thin, self.likelihood, step)).persist(1.0 / step),
            max(self.kappa / step, PILOT_RIDGE),
            self.center,
            self.linear / step,
        )


def _thin(likelihood: Likelihood, step: int, block: Any) -> Any:
    return likelihood.thin(block, step)


def minimize(objective: Objective, certificate: Certificate) -> FloatArray:
    """Return a point that satisfies a certificate.

    Parameters
    ----------
    objective : Objective
        With ``kappa`` > 0.
    certificate : Certificate
        Of this objective, or a weaker one.

    Returns
    -------
    coef : ndarray of shape (n_params,)

    Notes
    -----
    Newton's method with the exact Hessian, started from the solution on a thinned sample. Should it
    stall, Nesterov's accelerated gradient goes on, which in real arithmetic needs at most
    :func:`accelerated_steps` steps; and where rounding is in its way, gradient descent from the
    centre, which surely ends in double precision, too (docs/proofs/rounding). Nothing is raised for
    reasons that depend on data.
    """
    computed = certificate.computed

    def allowed(shift: FloatArray) -> bool:
        return float(np.linalg.norm(shift)) <= certificate.reach

    shift, certified = _newton(objective, _pilot(objective, computed), computed)
    if not (certified and allowed(shift)):
        shift, certified = accelerated_gradient(objective, shift, computed)
    if not (certified and allowed(shift)):
        shift = gradient_descent(objective, computed)
    return objective.center + shift


def maximum_likelihood(
    likelihood: Likelihood, blocks: Blocks[Any], start: FloatArray
) -> FloatArray:
    """Minimise the sum of losses itself, without privacy.

    Parameters
    ----------
    likelihood : Likelihood
    blocks : Blocks
    start : ndarray of shape (n_params,)

    Returns
    -------
    coef : ndarray of shape (n_params,)
        Where the optimum is not unique (constant columns) or lies at infinity (no events,
        separated data), the point that Newton's method reaches inside ``PUBLIC_BOX``.
    """
    objective = Objective(likelihood, blocks, 0.0, start, np.zeros_like(start))
    return minimize_without_privacy(objective, PUBLIC_BOX)


def minimize_without_privacy(objective: Objective, box: float = math.inf) -> FloatArray:
    """Minimise as well as Newton's method can, with no certificate.

    Parameters
    ----------
    objective : Objective
        Over records that need not be inside any bound.
    box : float, default=inf
        Where an optimum may lie at infinity, the search ends at this distance in one coefficient.

    Returns
    -------
    coef : ndarray of shape (n_params,)
    """
    tolerance = max(1e-9, 1e-14 * objective.n_records)
    pilot = np.clip(_pilot(objective, tolerance), -box, box)
    return objective.center + _newton(objective, pilot, tolerance, box=box)[0]


def _pilot(objective: Objective, tolerance: float) -> FloatArray:
    """Return a starting shift: the solution on ever larger samples, or 0 if n is small."""
    shift = np.zeros_like(objective.center)
    step, fewer = objective.n_records // PILOT_RECORDS, 1
    if step < 3:
        return shift
    while step >= 12:
        step, fewer = step // 4, 4 * fewer
    # The largest sample first: the others are samples of it, and all records are gone over once.
    sample = objective.thinned(step)
    while fewer:
        some = sample.thinned(fewer) if fewer > 1 else sample
        shift = _newton(some, shift, tolerance, PILOT_DECREMENT)[0]
        fewer //= 4
    return shift


def _newton(
    objective: Objective,
    start: FloatArray,
    tolerance: float,
    decrement: float = 0.0,
    box: float = math.inf,
) -> tuple[FloatArray, bool]:
    """Return the last point, and whether its gradient (or its decrement) is small enough."""
    shift = start
    gradient, hessian = objective.derivatives(shift)
    norm, ratio, fresh = float(np.linalg.norm(gradient)), 1.0, True
    for _ in range(NEWTON_STEPS):
        if norm <= tolerance:
            return shift, True
        if hessian is None:
            hessian, fresh = objective.derivatives(shift).hessian, True
        assert hessian is not None
        direction = _newton_direction(hessian, gradient)
        slope = float(direction @ gradient)
        if not slope < 0.0:
            break
        if -slope <= decrement:
            return shift + direction, True
        # Where convergence is quadratic and two more steps will do, gradients alone are asked for:
        # the second step takes the last Hessian once more.
        order = 1 if norm * ratio**4 <= tolerance else 2
        shift, gradient, new = _line_search(objective, shift, direction, slope, order)
        hessian, fresh = (hessian, False) if new is None and fresh else (new, True)
        before, norm = norm, float(np.linalg.norm(gradient))
        ratio = norm / before
        if np.max(np.abs(shift)) > box:
            return np.clip(shift, -box, box), False
    return shift, norm <= tolerance


def _newton_direction(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    try:
        return np.asarray(-linalg.cho_solve(linalg.cho_factor(hessian), gradient))
    except linalg.LinAlgError:  # rounding made a tiny ridge vanish beside a large Hessian
        return np.asarray(-np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0])


def _line_search(
    objective: Objective, shift: FloatArray, direction: FloatArray, slope: float, order: int
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Bisect on the derivative along a descent direction: F is convex, so no values are needed."""
    low, high = 0.0, math.inf
    step = 1.0
    for _ in range(40):
        point = shift + step * direction
        gradient, hessian = objective.derivatives(point, order)
        along = float(direction @ gradient)
        if along <= -0.5 * slope:
            break
        high = step
        step = 0.5 * (low + high)
    return point, gradient, hessian


def accelerated_steps(objective: Objective, gradient_norm: float, tolerance: float) -> int:
    r"""Return how many accelerated steps surely reach ``tolerance``, in real arithmetic.

    With :math:`L = n\tau + \kappa` and :math:`\rho = \sqrt{\kappa/L}`,
    :math:`F(x_k) - F^* \le \frac{L + \kappa}{2}\|x_0 - x^*\|^2 (1 - \rho)^k` (Nesterov 2004,
    theorem 2.2.3), :math:`\|\nabla F\|^2 \le 2L(F - F^*)` and :math:`\|x_0 - x^*\| \le \|\nabla
    F(x_0)\|/\kappa`.
    """
    smooth = _smoothness(objective)
    rate = min(math.sqrt(objective.kappa / smooth), 0.99)
    start = (smooth + objective.kappa) * (gradient_norm / objective.kappa) ** 2 * smooth
    if start <= tolerance**2:
        return 0
    return math.ceil((math.log(start) - 2.0 * math.log(tolerance)) / -math.log1p(-rate))


def _smoothness(objective: Objective) -> float:
    trace = objective.likelihood.constants.hessian_trace
    # Rounded upwards.
    return (objective.n_records * trace + objective.kappa) * (1.0 + 2.0**-40)


def accelerated_gradient(
    objective: Objective, start: FloatArray, tolerance: float
) -> tuple[FloatArray, bool]:
    """Minimise by Nesterov's method for strongly convex functions.

    Returns the last point, and whether its gradient is small enough.
    """
    smooth = _smoothness(objective)
    momentum = (math.sqrt(smooth) - math.sqrt(objective.kappa)) / (
        math.sqrt(smooth) + math.sqrt(objective.kappa)
    )
    point = ahead = start
    gradient = objective.derivatives(start, order=1).gradient
    for _ in range(accelerated_steps(objective, float(np.linalg.norm(gradient)), tolerance)):
        new = ahead - gradient / smooth
        ahead = new + momentum * (new - point)
        point = new
        gradient = objective.derivatives(ahead, order=1).gradient
        if np.linalg.norm(gradient) <= tolerance:
            return ahead, True
    return ahead, bool(np.linalg.norm(gradient) <= tolerance)


def descent_steps(objective: Objective, gradient_norm: float, tolerance: float) -> int:
    r"""Return how many steps of gradient descent surely reach ``tolerance``, in doubles.

    If computed gradients are within E = ``tolerance`` / 3 of the true ones, each step from a longer
    one lowers :math:`F - F^*` by a part :math:`\tfrac{3\kappa}{4L}` of it; it is at most
    :math:`\|\nabla F\|^2/(2\kappa)` at first, and no less than :math:`2E^2/L` at the last.
    """
    smooth, kappa = _smoothness(objective), objective.kappa
    first = (4.0 / 3.0 * gradient_norm) ** 2 / (2.0 * kappa)
    last = 2.0 * (tolerance / 3.0) ** 2 / smooth
    if first <= last:
        return 1
    logs = math.log(first) - math.log(max(last, sys.float_info.min))
    return math.ceil(4.0 * smooth / (3.0 * kappa) * logs) + 2


def gradient_descent(objective: Objective, tolerance: float) -> FloatArray:
    """Minimise by steps of 1/L from the centre, to a certified gradient (docs/proofs/rounding)."""
    smooth = _smoothness(objective)
    shift = np.zeros_like(objective.center)
    gradient = objective.derivatives(shift, order=1).gradient
    for _ in range(descent_steps(objective, float(np.linalg.norm(gradient)), tolerance)):
        if np.linalg.norm(gradient) <= tolerance:
            break
        shift = shift - gradient / smooth
        gradient = objective.derivatives(shift, order=1).gradient
    return shift
