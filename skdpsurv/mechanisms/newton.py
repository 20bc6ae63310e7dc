r"""Minimise a regularised likelihood to a certified gradient norm.

.. math:: F(f) = \sum_i \ell(f; z_i) + \tfrac\kappa2\|f - c\|^2 + \langle b, f\rangle

Privacy rests on the certificate alone: :math:`\|\nabla F\| \le g` at the point returned, which lies
within :math:`g/\kappa` of the minimiser however it was found. At a point no further than M from the
centre c, gradients in double precision are within

.. math::
    E = 2^{-53}\Big(n\big[k S + m\,\tau(\|c\| + M)\big] + 6\big[\kappa(2M + \|c\|) + \|b\| + nS\big]
        + 2(n\tau + \kappa)(M + \|c\|)\Big)

of the true one, with k and m of the likelihood's
:class:`~skdpsurv.likelihoods.loss.PrivacyConstants`. All points with a smaller F than the centre
are within

.. math::
    M = \min\Big(\frac{2\|b\|}\kappa + \sqrt{\frac{2n\ell_c}\kappa},\
        \frac{2(nS + \|b\|)}\kappa\Big)

with :math:`\ell_c` the largest loss of a record at c. A computed gradient of norm at most 3E, at a
point within M, has a true one below :math:`g = 4E`, and gradient descent from the centre always
finds such a point (docs/proofs/rounding).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from skdpsurv.data.blocks import MOST_LEVELS, Blocks
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.loss import Derivatives, Likelihood, PrivacyConstants, block_derivatives
from skdpsurv.mechanisms.newton_steps import WIDE, Goal, newton

# ---- The certificate.

UNIT = 2.0**-53
#: Factor for products of roundings and the rounding of the bound itself: all are below 1e-6.
SECOND_ORDER = 1.001
#: Smallest tolerance g of a certificate.
LEAST_TOLERANCE = 1e-9
#: Part of g that a computed gradient may have; the rest is for rounding.
COMPUTED_PART = 0.75


@dataclass(frozen=True)
class Center:
    """Public bounds on the norm of the centre c and on the loss of any record there.

    The loss is relative to the least loss anywhere; None: it follows from the norm.
    """

    norm: float = 0.0
    loss: float | None = None


ZERO = Center()


@dataclass(frozen=True)
class Certificate:
    """Public conditions on a point to be released.

    Parameters
    ----------
    tolerance : float
        g, the largest norm of the true gradient.
    max_distance : float
        M, the largest distance from the centre.
    n_records, center : int, Center
        What they follow from, beside the likelihood's constants, ridge and noise.
    """

    tolerance: float
    max_distance: float
    n_records: int = 0
    center: Center = ZERO

    @property
    def computed(self) -> float:
        """Largest norm that a computed gradient may have."""
        return COMPUTED_PART * self.tolerance


def gradient_error(
    constants: PrivacyConstants,
    n_records: int,
    center_norm: float,
    max_distance: float,
    kappa: float = 0.0,
    noise_norm: float = 0.0,
) -> float:
    """Return E, the largest error of a computed gradient, from public numbers.

    With ``kappa`` and ``noise_norm`` of 0 it is that of the sum of records alone.
    """
    total = n_records * constants.gradient_sensitivity
    curvature = n_records * constants.hessian_trace
    records = (constants.rounding + MOST_LEVELS) * total
    predictors = constants.predictor_rounding * curvature * (center_norm + max_distance)
    ridge = 6.0 * (kappa * (2.0 * max_distance + center_norm) + noise_norm + total)
    # Half for the point that a step rounds to, half for the sum with the centre.
    step = 2.0 * (curvature + kappa) * (max_distance + center_norm)
    return SECOND_ORDER * UNIT * (records + predictors + ridge + step)


def largest_distance(
    constants: PrivacyConstants, n_records: int, kappa: float, noise_norm: float, center: Center
) -> float:
    """Return M, the distance from the centre of all points where F is no larger than there."""
    slope = constants.gradient_sensitivity
    # By slopes alone, or by losses, which are finite at the centre and nowhere negative.
    distance = 2.0 * (n_records * slope + noise_norm) / kappa
    loss = constants.loss_at_zero + slope * center.norm if center.loss is None else center.loss
    if math.isfinite(loss):
        by_loss = 2.0 * noise_norm / kappa + math.sqrt(2.0 * n_records * loss / kappa)
        distance = min(distance, by_loss)
    return SECOND_ORDER * distance


def certificate(
    constants: PrivacyConstants,
    n_records: int,
    kappa: float,
    noise_norm: float,
    center: Center = ZERO,
) -> Certificate:
    """Return the conditions for a ridge ``kappa`` and a linear term of at most ``noise_norm``."""
    distance = largest_distance(constants, n_records, kappa, noise_norm, center)
    error = gradient_error(constants, n_records, center.norm, distance, kappa, noise_norm)
    tolerance = max(LEAST_TOLERANCE, error / (1.0 - COMPUTED_PART))
    return Certificate(tolerance, distance, n_records, center)


def least_where(
    holds: Callable[[float], bool],
    least: float,
    n_halvings: int,
    mean: Callable[[float, float], float] = lambda low, high: 0.5 * (low + high),
) -> float:
    """Return nearly the least number above ``least`` from which on ``holds`` is true, or inf."""
    low, high = least, 2.0 * least
    while not holds(high) and high < math.inf:
        low, high = high, 2.0 * high
    if high < math.inf:
        for _ in range(n_halvings):
            middle = mean(low, high)
            low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def certifiable_ridge(tolerance: Callable[[float], float], least: float, ratio: float) -> float:
    """Return nearly the least ridge, from ``least`` on, with a g of at most ``ratio`` times it.

    ``tolerance`` is g as a function of the ridge. Return inf where the centre is so far that its
    own rounding is more: plans refuse such a ridge before anything is charged.
    """

    def holds(kappa: float) -> bool:
        return tolerance(kappa) <= ratio * kappa

    if holds(least):
        return least
    return least_where(holds, least, 30, lambda low, high: math.sqrt(low * high))


# ---- The solver.

#: Records of the smallest sample that a starting point is found on; each next one is 4 times it.
PILOT_RECORDS = 1200
#: Records for each coefficient, below which a sample's Hessian is no start for other samples.
RECORDS_OF_A_COLUMN = 4
#: Without privacy, standard errors that the last step may leave.
NEGLIGIBLE = 1e-8
#: Least ridge of the pilot: a rare column may be constant or separated in a thinned sample.
PILOT_RIDGE = 1.0
#: Least ridge of a private fit in units of tau: with less, records could keep a solver busy for
#: hours.
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
        Blocks of the likelihood.
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
        # Workers get the point, and neither noise nor other blocks.
        gradient, hessian = self.blocks.map_reduce(
            partial(block_derivatives, self.likelihood, coef, order)
        )
        if hessian is not None:
            hessian = self.kappa * np.eye(coef.size) + hessian
        return Derivatives(gradient + (self.kappa * shift + self.linear), hessian)

    def thinned(self, step: int) -> Objective:
        """Return nearly the same problem on every ``step``-th record, held in memory."""
        return Objective(
            self.likelihood,
            self.blocks.map(partial(_thin, self.likelihood, step)).persist(1.0 / step),
            max(self.kappa / step, PILOT_RIDGE),
            self.center,
            self.linear / step,
        )

    @property
    def mean_curvature(self) -> float:
        """About the mean eigenvalue of the Hessian, if no record is far from its largest."""
        trace = self.likelihood.constants.hessian_trace
        return self.n_records * trace / self.center.size + self.kappa

    @property
    def smoothness(self) -> float:
        """The Lipschitz constant of the gradient, n tau + kappa, rounded upwards."""
        trace = self.likelihood.constants.hessian_trace
        return (self.n_records * trace + self.kappa) * (1.0 + 2.0**-40)


def _thin(likelihood: Likelihood, step: int, block: Any) -> Any:
    return likelihood.thin(block, step)


def minimize(objective: Objective, certificate: Certificate) -> FloatArray:
    """Return a point that satisfies the certificate of an objective with ``kappa`` > 0.

    Newton's method starts from the solution on a thinned sample. If it stalls, Nesterov's
    accelerated gradient goes on, and then gradient descent from the centre, which surely ends in
    double precision (docs/proofs/rounding). No error depends on data.
    """
    computed = certificate.computed

    def allowed(shift: FloatArray) -> bool:
        return float(np.linalg.norm(shift)) <= certificate.max_distance

    goal = Goal(computed)
    start, hessian = _pilot(objective, np.zeros_like(objective.center), goal)
    if hessian is None and start.size > WIDE:  # gradients and secants find a better one
        hessian = objective.mean_curvature * np.eye(start.size)
    shift, certified, _ = newton(objective, start, goal, hessian)
    if not (certified and allowed(shift)):
        shift, certified = accelerated_gradient(objective, shift, computed)
    if not (certified and allowed(shift)):
        shift = gradient_descent(objective, computed)
    return objective.center + shift


def maximum_likelihood(
    likelihood: Likelihood, blocks: Blocks[Any], center: FloatArray, start: FloatArray | None = None
) -> FloatArray:
    """Minimise the sum of losses without privacy, inside ``PUBLIC_BOX`` around ``center``.

    ``start`` may depend on data; None: the centre.
    """
    objective = Objective(likelihood, blocks, 0.0, center, np.zeros_like(center))
    shift = None if start is None else start - center
    return minimize_without_privacy(objective, shift, PUBLIC_BOX)


def minimize_without_privacy(
    objective: Objective, start: FloatArray | None = None, box: float = math.inf
) -> FloatArray:
    """Minimise as well as Newton's method can inside a box, with no certificate."""
    goal = Goal(max(1e-9, 1e-14 * objective.n_records), error=NEGLIGIBLE)
    start = np.zeros_like(objective.center) if start is None else np.clip(start, -box, box)
    shift, hessian = _pilot(objective, start, goal)
    found = newton(objective, np.clip(shift, -box, box), goal, hessian, box)
    return objective.center + found.shift


def _pilot(
    objective: Objective, start: FloatArray, goal: Goal
) -> tuple[FloatArray, FloatArray | None]:
    """Return a shift and a Hessian to start from, found on ever larger samples.

    A sample is done with at a Newton decrement of one per coefficient, its own sampling error.
    """
    shift, hessian = start, None
    step, fewer = objective.n_records // PILOT_RECORDS, 1
    if step < 3:
        return shift, hessian
    goal = replace(goal, decrement=float(shift.size), error=0.0)
    while step >= 12:
        step, fewer = step // 4, 4 * fewer
    # The largest sample first: the others are samples of it, and all records are read once.
    sample = objective.thinned(step)
    while fewer:
        some = sample.thinned(fewer) if fewer > 1 else sample
        if fewer == 1 and RECORDS_OF_A_COLUMN * shift.size > PILOT_RECORDS:
            hessian = None  # the smallest sample's says too little
        shift, _, hessian = newton(some, shift, goal, hessian)
        hessian = hessian * (4 if fewer > 1 else step)
        fewer //= 4
    return shift, hessian


def accelerated_steps(objective: Objective, gradient_norm: float, tolerance: float) -> int:
    r"""Return the number of accelerated steps that reach ``tolerance`` in real arithmetic.

    With :math:`L = n\tau + \kappa` and :math:`\rho = \sqrt{\kappa/L}`,
    :math:`F(x_k) - F^* \le \frac{L + \kappa}{2}\|x_0 - x^*\|^2 (1 - \rho)^k` (Nesterov 2004,
    theorem 2.2.3), :math:`\|\nabla F\|^2 \le 2L(F - F^*)` and :math:`\|x_0 - x^*\| \le \|\nabla
    F(x_0)\|/\kappa`.
    """
    smooth = objective.smoothness
    rate = min(math.sqrt(objective.kappa / smooth), 0.99)
    start = (smooth + objective.kappa) * (gradient_norm / objective.kappa) ** 2 * smooth
    if start <= tolerance**2:
        return 0
    return math.ceil((math.log(start) - 2.0 * math.log(tolerance)) / -math.log1p(-rate))


def accelerated_gradient(
    objective: Objective, start: FloatArray, tolerance: float
) -> tuple[FloatArray, bool]:
    """Minimise by Nesterov's method; return the last point and whether its gradient is small."""
    smooth = objective.smoothness
    roots = math.sqrt(smooth), math.sqrt(objective.kappa)
    momentum = (roots[0] - roots[1]) / (roots[0] + roots[1])
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
    r"""Return the number of gradient descent steps that reach ``tolerance`` in doubles.

    With computed gradients within E = ``tolerance`` / 3 of the true ones, each step lowers
    :math:`F - F^*` by a part :math:`\tfrac{3\kappa}{4L}` of it. It is at most :math:`\|\nabla
    F\|^2/(2\kappa)` at first, and no less than :math:`2E^2/L` at the last step.
    """
    smooth, kappa = objective.smoothness, objective.kappa
    first = (4.0 / 3.0 * gradient_norm) ** 2 / (2.0 * kappa)
    last = 2.0 * (tolerance / 3.0) ** 2 / smooth
    if first <= last:
        return 1
    logs = math.log(first) - math.log(max(last, sys.float_info.min))
    return math.ceil(4.0 * smooth / (3.0 * kappa) * logs) + 2


def gradient_descent(objective: Objective, tolerance: float) -> FloatArray:
    """Minimise by steps of 1/L from the centre, to a certified gradient (docs/proofs/rounding)."""
    smooth = objective.smoothness
    shift = np.zeros_like(objective.center)
    gradient = objective.derivatives(shift, order=1).gradient
    for _ in range(descent_steps(objective, float(np.linalg.norm(gradient)), tolerance)):
        if np.linalg.norm(gradient) <= tolerance:
            break
        shift = shift - gradient / smooth
        gradient = objective.derivatives(shift, order=1).gradient
    return shift
