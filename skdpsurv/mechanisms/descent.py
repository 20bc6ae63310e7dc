r"""Noisy gradient descent and noisy Langevin steps.

Descent starts at a public :math:`f_0 = c` and takes the steps

.. math::
    \tilde g_t = \sum_{i=1}^n \nabla\ell(f_t; z_i) + \xi_t, \qquad \xi_t \sim N(0, \sigma^2 I),
    \qquad f_{t+1} = f_t - \frac{\tilde g_t}{\kappa T}, \qquad t = 0, \dots, T - 1

The release is the mean of the points, with larger weights for later ones,

.. math:: \bar f = \sum_t w_t f_t, \qquad w_t = \frac{2t}{T(T - 1)}.

Neighbours: replace-one. Sensitivity: S of :class:`~skdpsurv.likelihoods.loss.PrivacyConstants` for
every gradient, wherever it is taken. Theorem (docs/proofs/gaussian): with
:math:`\sigma = \sqrt T S/\mu` all T noisy gradients together are :math:`\tfrac12\mu^2`-zCDP (Bun
and Steinke 2016, adaptive composition of Gaussian mechanisms); the points are functions of them.
Privacy needs neither convergence nor convexity, and does not depend on the number of steps.

On a quadratic the mean point is nearly that of a ridge :math:`\kappa` and one linear term of
deviation :math:`\sigma\|w\|_2`, about :math:`1.15\,S/\mu`. For any loss, with :math:`\bar g =
\sum_t w_t \tilde g_t` and to first order in the points' distances,

.. math:: \sum_i \nabla\ell(\bar f; z_i) - \bar g + b = 0, \qquad b \sim N(0, \sigma^2\|w\|^2 I),

so that :math:`-\bar g` takes the place that :math:`\kappa(\bar f - c)` has at a perturbed minimum.

Langevin steps draw from a posterior, and the chain that was run is private:

.. math::
    f_{t+1} = f_t - h\,\Big(\sum_{i=1}^n \nabla\ell(f_t; z_i) + \xi_t + \kappa(f_t - c)\Big),
    \qquad \xi_t \sim N(0, \sigma^2 I), \qquad t = 0, \dots, T - 1

from the public point :math:`f_0 = c`. The release is the last point, :math:`f_T`. Neighbours and
sensitivity are as above. Theorem (docs/proofs/posterior_sampling): with :math:`\sigma \ge \sqrt T
S/\mu` all T noisy gradients together are :math:`\tfrac12\mu^2`-zCDP, and the last point is a
function of them, near its limit or not.

For small h the limit is :math:`e^{-F/\tau}` with F the sum of losses and the ridge, and
:math:`\tau = h\sigma^2/2`. A price buys *time*, :math:`H = hT \le 2\tau\mu^2/S^2`, cut into any
number of steps. At :math:`\tau = 1` the limit is the posterior with the normal prior
:math:`N(c, I/\kappa)`. In time H the chain forgets all but :math:`e^{-H\kappa}` of its start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.noise import RandomSource, lattice_step, round_to_lattice
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.loss import Likelihood, PrivacyConstants, Sensitivity, block_derivatives
from skdpsurv.mechanisms.newton import ZERO, Center, gradient_error
from skdpsurv.mechanisms.vector_noise import (
    LATTICE_FRACTION,
    MARGIN,
    Drawn,
    SphericalGaussian,
    add_noise,
    with_noise,
)

#: One step times the largest curvature of n records is at most 2: points may overshoot, and never
#: diverge. The number of steps, or else the ridge, is as large as that needs.
CURVATURE_PART = 0.5
STEPS_RANGE = (30, 1000)
#: Largest distance of points from the start, in units of S / tau; useful models are within a few.
MAX_DISTANCE = 2000.0
#: The ridge, in units of the noise that one gradient of the whole price would have
#: (docs/benchmarks/delta).
RIDGE = 0.7


class NoisyGradients:
    """Base of calibrations of noisy gradients, each of which has a part of the price."""

    n_steps: int
    each: SphericalGaussian
    #: What the rounding of a gradient follows from.
    n_records: int
    center: Center
    #: Nothing is minimised or certified, and there is no noise on the point itself.
    certificate = None
    output = None

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on."""
        return self.each.scale

    def cost(self, move: Sensitivity) -> float:
        """Return the mu that hides gradients so far apart, at every step: squares add up."""
        return math.sqrt(self.n_steps) * self.each.cost(move.gradient)


@dataclass(frozen=True)
class DescentCalibration(NoisyGradients):
    """Public numbers of a descent.

    Parameters
    ----------
    kappa : float
        One over the length of all steps together, which stopping early is worth as a ridge.
    n_steps : int
        T.
    each : SphericalGaussian
        Distribution of the noise on each gradient.
    wanted : float
        The kappa of a descent without a limit on its steps.
    """

    kappa: float
    n_steps: int
    each: SphericalGaussian
    wanted: float
    n_records: int = 0
    center: Center = ZERO

    @property
    def excess(self) -> float:
        """The ratio of kappa to that of a descent without a limit on its steps."""
        return self.kappa / self.wanted if self.wanted > 0.0 else math.inf

    @property
    def weights(self) -> FloatArray:
        """The weights w of the points in their mean."""
        steps = np.arange(self.n_steps, dtype=np.float64)
        return np.asarray(steps / steps.sum())

    @property
    def linear(self) -> SphericalGaussian:
        """Distribution of b, the noise on the mean of all gradients."""
        each = self.each
        return SphericalGaussian(each.dimension, each.scale * float(np.linalg.norm(self.weights)))


def max_distance(constants: PrivacyConstants) -> float:
    """Return the largest distance of points from the start: farther ones are put back to it."""
    return MAX_DISTANCE * constants.gradient_sensitivity / constants.hessian_trace


def apart(constants: PrivacyConstants, n_records: int, center_norm: float = 0.0) -> float:
    """Return the sensitivity of a computed gradient: S and rounding (docs/proofs/rounding).

    It holds at any point within :func:`max_distance` of a start of norm ``center_norm``.
    """
    rounding = gradient_error(constants, n_records, center_norm, max_distance(constants))
    return MARGIN * (constants.gradient_sensitivity + 2.0 * rounding)


def within(point: FloatArray, start: FloatArray, distance: float) -> FloatArray:
    """Return a point, moved towards the start if it is farther than a distance."""
    shift = point - start
    length = float(np.linalg.norm(shift))
    return point if length <= distance else start + shift * (distance / length)


def calibrate(
    constants: PrivacyConstants,
    mu: float,
    n_records: int,
    n_params: int,
    alpha: float = 0.0,
    *,
    ridge: float | None = None,
    center_norm: float = 0.0,
) -> DescentCalibration:
    """Choose steps and noise from public numbers.

    Parameters
    ----------
    constants : PrivacyConstants
    mu : float
        The price, of all gradients together.
    n_records : int
        n, public under replace-one.
    n_params : int
        p, the length of the coefficient vector.
    alpha : float, default=0.0
        Least ridge wanted, on the scale of the mean loss: kappa >= n alpha.
    ridge : float or None, default=None
        Kappa, if there is a better rule for it than the size of the noise.
    center_norm : float, default=0.0
        Norm of the start, on which rounding depends.

    Returns
    -------
    DescentCalibration
    """
    distance = apart(constants, n_records, center_norm)
    curvature = CURVATURE_PART * n_records * constants.hessian_trace
    wanted = max(n_records * alpha, RIDGE * distance / mu if ridge is None else ridge)
    kappa = max(wanted, curvature / STEPS_RANGE[1])
    n_steps = min(max(math.ceil(curvature / kappa), STEPS_RANGE[0]), STEPS_RANGE[1])
    each = SphericalGaussian.calibrated_to(n_params, distance, mu / math.sqrt(n_steps))
    return DescentCalibration(kappa, n_steps, each, wanted, n_records, Center(center_norm))


def joint_distance(distances: Sequence[float], weights: Sequence[float], whole: float) -> float:
    r"""Return the largest :math:`(\sum_k a_k^2 t_k^2)^{1/2}` for parts within bounds.

    Model k has noise of deviation proportional to :math:`1/a_k`, and its gradient moves by
    :math:`t_k`, at most ``distances[k]``; all move by at most ``whole`` in the Euclidean norm.
    """
    total, remaining = 0.0, whole**2
    for distance, weight in sorted(zip(distances, weights, strict=True), key=lambda p: -p[1]):
        square = min(distance**2, max(remaining, 0.0))
        total, remaining = total + weight**2 * square, remaining - square
    return math.sqrt(total) * MARGIN


@dataclass(frozen=True)
class _Steps:
    """Steps along gradients of private records, from a public start c."""

    likelihood: Likelihood
    blocks: Blocks[Any]
    calibration: Any
    start: FloatArray

    def _gradient(self, point: FloatArray) -> FloatArray:
        return self.blocks.map_reduce(
            partial(block_derivatives, self.likelihood, point, 1)
        ).gradient


@dataclass(frozen=True)
class Descent(_Steps):
    """One noisy descent, with its noise xi drawn."""

    calibration: DescentCalibration
    noise: Sequence[Drawn]

    def run(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean of all points, and the mean of their noisy gradients."""
        how = self.calibration
        step = 1.0 / (how.kappa * how.n_steps)
        farthest = max_distance(self.likelihood.constants)
        point, points = self.start, np.zeros_like(self.start)
        gradients = np.zeros_like(self.start)
        for weight, noise in zip(how.weights, self.noise, strict=True):
            noisy = with_noise(self._gradient(point), noise, how.each)
            points = points + weight * point
            gradients = gradients + weight * noisy
            point = within(point - step * noisy, self.start, farthest)
        return points, gradients


#: The posterior's temperature; higher ones predict worse.
TEMPERATURE = 1.0
#: Least time times the prior's precision: exp(-3), one part in twenty, is kept of the start.
FORGETTING = 3.0
#: One step times the largest curvature is at most 1: steps are so many, or the time so short.
LANGEVIN_STEPS_RANGE = (30, 4000)


@dataclass(frozen=True)
class LangevinCalibration(NoisyGradients):
    """Public numbers of a chain: the prior's precision, T, h, noise on each gradient and tau."""

    kappa: float
    n_steps: int
    step_size: float
    each: SphericalGaussian
    temperature: float
    n_records: int = 0
    center: Center = ZERO
    linear = None

    @property
    def time(self) -> float:
        """H, the length of all steps together."""
        return self.step_size * self.n_steps


def calibrate_langevin(
    constants: PrivacyConstants,
    mu: float,
    n_records: int,
    n_params: int,
    prior_precision: float,
    n_steps: int | None = None,
    center_norm: float = 0.0,
) -> LangevinCalibration:
    """Choose prior, steps and noise from public numbers, for a price of mu.

    The precision of the prior is raised until the chain forgets its start. ``n_steps`` is T; None
    for as many as it takes.
    """
    distance = apart(constants, n_records, center_norm)
    curvature = n_records * constants.hessian_trace
    most = LANGEVIN_STEPS_RANGE[1] if n_steps is None else n_steps
    # Stability is max(prior, FORGETTING / time) + curvature <= steps / time, solved for time.
    time = min(
        2.0 * TEMPERATURE * (mu / (MARGIN * distance)) ** 2,
        most / (curvature + prior_precision),
        (most - FORGETTING) / curvature,
    )
    kappa = max(prior_precision, FORGETTING / time)
    if n_steps is None:
        n_steps = min(max(math.ceil(time * (curvature + kappa)), LANGEVIN_STEPS_RANGE[0]), most)
    step_size = time / n_steps
    # At least sqrt(T) S / mu, as the time is no longer than the price allows.
    each = SphericalGaussian(n_params, math.sqrt(2.0 * TEMPERATURE / step_size))
    public = n_records, Center(center_norm)
    return LangevinCalibration(kappa, n_steps, step_size, each, TEMPERATURE, *public)


@dataclass(frozen=True)
class Chain(_Steps):
    """One chain of noisy Langevin steps."""

    calibration: LangevinCalibration

    def states(self, source: RandomSource) -> Iterator[FloatArray]:
        """Yield the T points after the start, on a public lattice finer than one step's noise."""
        how = self.calibration
        lattice = lattice_step(how.step_size * how.each.scale * LATTICE_FRACTION)
        point, farthest = self.start, max_distance(self.likelihood.constants)
        for _ in range(how.n_steps):
            noisy = add_noise(self._gradient(point), how.each, source)
            total = noisy + how.kappa * (point - self.start)
            point = within(point - how.step_size * total, self.start, farthest)
            yield round_to_lattice(point, lattice)
