r"""Noisy gradient descent: the Gaussian law's way to a minimiser.

.. math::
    \tilde g_t = \sum_{i=1}^n \nabla\ell(f_t; z_i) + \xi_t, \qquad \xi_t \sim N(0, \sigma^2 I),
    \qquad f_{t+1} = f_t - \frac{\tilde g_t}{\kappa T}, \qquad t = 0, \dots, T - 1

from a public start :math:`f_0 = c`. Released is the mean of the points, later ones weighed more,

.. math:: \bar f = \sum_t w_t f_t, \qquad w_t = \frac{2t}{T(T - 1)}.

Neighbours: replace-one. Sensitivity: S of :class:`~skdpsurv.likelihoods.base.PrivacyConstants` for
every gradient, wherever it is taken. Theorem (docs/proofs/gaussian): with
:math:`\sigma = \sqrt T S/\mu` all T noisy gradients together are :math:`\tfrac12\mu^2`-zCDP (Bun
and Steinke 2016, adaptive composition of Gaussian mechanisms); the points are functions of them.
Nothing rests on convergence, on convexity or on how exactly anything is minimised, and no part of
the price pays for curvature as in objective perturbation.

How many steps there are costs no privacy: noise of T gradients is averaged again. On a quadratic
the mean point is, nearly, what a ridge :math:`\kappa` and one linear term of deviation
:math:`\sigma\|w\|_2` give, about :math:`1.15\,S/\mu`: stopping early is the ridge. And whatever the
loss, with the mean noisy gradient :math:`\bar g = \sum_t w_t \tilde g_t` and to first order in the
points' distances,

.. math:: \sum_i \nabla\ell(\bar f; z_i) - \bar g + b = 0, \qquad b \sim N(0, \sigma^2\|w\|^2 I),

so that :math:`-\bar g` takes the place that :math:`\kappa(\bar f - c)` has at a perturbed minimum.

Noisy Langevin steps: a draw of a posterior whose guarantee is that of the chain that was run.

.. math::
    f_{t+1} = f_t - h\,\Big(\sum_{i=1}^n \nabla\ell(f_t; z_i) + \xi_t + \kappa(f_t - c)\Big),
    \qquad \xi_t \sim N(0, \sigma^2 I), \qquad t = 0, \dots, T - 1

from the public point :math:`f_0 = c`. Released is the last point, :math:`f_T`.

Neighbours: replace-one. Sensitivity: S of :class:`~skdpsurv.likelihoods.base.PrivacyConstants` for
every gradient, wherever it is taken. Theorem (docs/proofs/posterior_sampling):
with :math:`\sigma \ge \sqrt T S/\mu` all T noisy gradients together are
:math:`\tfrac12\mu^2`-zCDP (Bun and Steinke 2016, adaptive composition of Gaussian mechanisms), and
the last point is a function of them. It is the chain that was run which is private, whether or not
it has come near its limit.

For small h the limit is :math:`e^{-F/\tau}` with F the sum of losses and the ridge, and
:math:`\tau = h\sigma^2/2`. So a price buys *time*, :math:`H = hT \le 2\tau\mu^2/S^2`, and however
many steps that time is cut into costs nothing. At :math:`\tau = 1` the limit is the posterior with
the normal prior :math:`N(c, I/\kappa)`. In time H the chain forgets all but :math:`e^{-H\kappa}` of
where it began, more where records add curvature; only the prior's can be counted on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp import RandomSource, lattice_step, round_to_lattice
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.base import Likelihood, PrivacyConstants, block_derivatives
from skdpsurv.mechanisms.certificate import gradient_error
from skdpsurv.mechanisms.newton import Move
from skdpsurv.mechanisms.vector_noise import (
    LATTICE_FRACTION,
    MARGIN,
    Drawn,
    SphericalGaussian,
    add_noise,
    with_noise,
)

#: Steps are so many, or else the ridge so large, that one step times the curvature of n records
#: like the most curved one is at most 2: points may overshoot, and never swing up.
CURVATURE_PART = 0.5
STEPS_RANGE = (30, 1000)
#: How far points may be from the start, in units of S / tau: as far as gradients alone could take
#: them. Useful models are within a few such units.
REACH = 2000.0
#: The ridge, in units of the noise that one gradient of the whole price would have
#: (docs/benchmarks/delta).
RIDGE = 0.7


class NoisyGradients:
    """What calibrations of noisy gradients have in common: each hides its part of the price."""

    n_steps: int
    each: SphericalGaussian
    #: Nothing is minimised, so nothing is certified; there is no noise on the point itself.
    certificate = None
    output = None

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on."""
        return self.each.scale

    def spent(self, move: Move) -> float:
        """Return what hides gradients so far apart, at every step: squares add up."""
        return math.sqrt(self.n_steps) * self.each.cost(move.gradient)


@dataclass(frozen=True)
class DescentCalibration(NoisyGradients):
    """How a descent goes; every number is public.

    Parameters
    ----------
    kappa : float
        One over the length of all steps together: what stopping early is worth as a ridge.
    n_steps : int
        T.
    each : SphericalGaussian
        Of the noise on each gradient.
    wanted : float
        The kappa that would do, if steps were not limited in number.
    """

    kappa: float
    n_steps: int
    each: SphericalGaussian
    wanted: float

    @property
    def excess(self) -> float:
        """How many times as much as wanted is left undone where steps end too early; 1 for not."""
        return self.kappa / self.wanted if self.wanted > 0.0 else math.inf

    @property
    def weights(self) -> FloatArray:
        """Of the points in their mean, w."""
        steps = np.arange(self.n_steps, dtype=np.float64)
        return np.asarray(steps / steps.sum())

    @property
    def linear(self) -> SphericalGaussian:
        """Of the noise on the mean of all gradients, b."""
        each = self.each
        return SphericalGaussian(each.dimension, each.scale * float(np.linalg.norm(self.weights)))


def reach(constants: PrivacyConstants) -> float:
    """Return how far from the start points may be: beyond, they are put back to that distance."""
    return REACH * constants.gradient_sensitivity / constants.hessian_trace


def apart(constants: PrivacyConstants, n_records: int, center_norm: float = 0.0) -> float:
    """Return how far one record moves a computed gradient: S, and what rounding may add.

    At any point within :func:`reach` of a start of norm ``center_norm`` (docs/proofs/rounding).
    """
    rounding = gradient_error(constants, n_records, center_norm, reach(constants))
    return MARGIN * (constants.gradient_sensitivity + 2.0 * rounding)


def within(point: FloatArray, start: FloatArray, distance: float) -> FloatArray:
    """Return a point, or that on the way to it at a distance from the start."""
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
        Norm of the start, where it is far from 0: rounding is larger there.

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
    return DescentCalibration(kappa, n_steps, each, wanted)


def joint_distance(distances: Sequence[float], weights: Sequence[float], whole: float) -> float:
    r"""Return the largest :math:`(\sum_k a_k^2 t_k^2)^{1/2}` for parts within bounds.

    Of several models of parts of one record, model k with noise of deviation proportional to
    :math:`1/a_k`: its gradient moves by :math:`t_k`, at most ``distances[k]``, and all together by
    at most ``whole`` in the Euclidean norm.
    """
    total, left = 0.0, whole**2
    for distance, weight in sorted(zip(distances, weights, strict=True), key=lambda p: -p[1]):
        square = min(distance**2, max(left, 0.0))
        total, left = total + weight**2 * square, left - square
    return math.sqrt(total) * MARGIN


@dataclass(frozen=True)
class _Steps:
    """Steps along gradients of private records.

    Parameters
    ----------
    likelihood : Likelihood
        Whose constants the calibration was made from.
    blocks : Blocks
        Private records, inside the public domain.
    calibration : DescentCalibration or LangevinCalibration
    start : ndarray of shape (n_params,)
        c, public.
    """

    likelihood: Likelihood
    blocks: Blocks[Any]
    calibration: Any
    start: FloatArray

    def _gradient(self, point: FloatArray) -> FloatArray:
        # What goes to the blocks is what they need, and no noise.
        return self.blocks.map_reduce(
            partial(block_derivatives, self.likelihood, point, 1)
        ).gradient


@dataclass(frozen=True)
class Descent(_Steps):
    """One noisy descent, its noise drawn.

    Parameters
    ----------
    noise : ndarray of shape (n_steps, n_params)
        xi.
    """

    calibration: DescentCalibration
    noise: Sequence[Drawn]

    def run(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean of all points, and the mean of their noisy gradients."""
        how = self.calibration
        step = 1.0 / (how.kappa * how.n_steps)
        farthest = reach(self.likelihood.constants)
        point, points = self.start, np.zeros_like(self.start)
        gradients = np.zeros_like(self.start)
        for weight, noise in zip(how.weights, self.noise, strict=True):
            noisy = with_noise(self._gradient(point), noise, how.each)
            points = points + weight * point
            gradients = gradients + weight * noisy
            point = within(point - step * noisy, self.start, farthest)
        return points, gradients


#: Of the law: that of the posterior. Hotter laws have longer chains with weaker priors, and predict
#: worse.
TEMPERATURE = 1.0
#: Time times the prior's precision, at least: exp(-3), one part in twenty, is kept of the start.
FORGETTING = 3.0
#: Steps are so many, or else the time so short, that one of them times the largest curvature there
#: can be is at most 1.
LANGEVIN_STEPS_RANGE = (30, 4000)


@dataclass(frozen=True)
class LangevinCalibration(NoisyGradients):
    """How a chain goes; every number is public.

    Parameters
    ----------
    kappa : float
        Precision of the normal prior around the start.
    n_steps : int
        T.
    step_size : float
        h.
    each : SphericalGaussian
        Of the noise on each gradient.
    temperature : float
        Of the law that the chain tends to: tau.
    """

    kappa: float
    n_steps: int
    step_size: float
    each: SphericalGaussian
    temperature: float
    #: There is no noise but that of the steps.
    linear = None

    @property
    def time(self) -> float:
        """Length of all steps together, H."""
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
    """Choose prior, steps and noise from public numbers.

    Parameters
    ----------
    constants : PrivacyConstants
    mu : float
        The price, of all gradients together.
    n_records : int
        n, public under replace-one.
    n_params : int
        p, the length of the coefficient vector.
    prior_precision : float
        Least precision wanted: it is raised to what makes the chain forget its start.
    n_steps : int or None, default=None
        T; None for as many as it takes.
    center_norm : float, default=0.0
        Norm of the start, or a bound on it.

    Returns
    -------
    LangevinCalibration
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
    # At least sqrt(T) S / mu, as the time is no longer than the price allows; more where steps end
    # before the price does.
    each = SphericalGaussian(n_params, math.sqrt(2.0 * TEMPERATURE / step_size))
    return LangevinCalibration(kappa, n_steps, step_size, each, TEMPERATURE)


@dataclass(frozen=True)
class Chain(_Steps):
    """One chain of noisy Langevin steps."""

    calibration: LangevinCalibration

    def states(self, source: RandomSource) -> Iterator[FloatArray]:
        """Yield the T points after the start: functions of noisy gradients, each of them.

        They are on a public lattice, far finer than one step's noise.
        """
        how = self.calibration
        lattice = lattice_step(how.step_size * how.each.scale * LATTICE_FRACTION)
        point, farthest = self.start, reach(self.likelihood.constants)
        for _ in range(how.n_steps):
            noisy = add_noise(self._gradient(point), how.each, source)
            pull = noisy + how.kappa * (point - self.start)
            point = within(point - how.step_size * pull, self.start, farthest)
            yield round_to_lattice(point, lattice)
