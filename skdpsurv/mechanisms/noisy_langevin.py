r"""Noisy Langevin steps: a draw of a posterior whose guarantee is that of the chain that was run.

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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.base import Likelihood, PrivacyConstants, block_derivatives
from skdpsurv.mechanisms.moves import Move
from skdpsurv.mechanisms.noisy_descent import apart, reach, within
from skdpsurv.mechanisms.vector_noise import LATTICE_FRACTION, MARGIN, SphericalGaussian, add_noise
from skdpsurv.privacy import RandomSource, lattice_step, round_to_lattice
from skdpsurv.types import FloatArray

#: Of the law: that of the posterior. Hotter laws have longer chains with weaker priors, and predict
#: worse.
TEMPERATURE = 1.0
#: Time times the prior's precision, at least: exp(-3), one part in twenty, is kept of the start.
FORGETTING = 3.0
#: Steps are so many, or else the time so short, that one of them times the largest curvature there
#: can be is at most 1.
STEPS_RANGE = (30, 4000)


@dataclass(frozen=True)
class LangevinCalibration:
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
    #: Nothing is minimised, so nothing is certified.
    certificate: None = None
    #: There is no noise but that of the steps.
    linear: None = None
    output: None = None

    @property
    def noise_scale(self) -> float:
        """Size of the noise that privacy rests on."""
        return self.each.scale

    def spent(self, move: Move) -> float:
        """Return what hides gradients so far apart, at every step: squares add up."""
        return math.sqrt(self.n_steps) * self.each.cost(move.gradient)

    @property
    def time(self) -> float:
        """Length of all steps together, H."""
        return self.step_size * self.n_steps


def calibrate(
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
    most = STEPS_RANGE[1] if n_steps is None else n_steps
    # Stability is max(prior, FORGETTING / time) + curvature <= steps / time, solved for time.
    time = min(
        2.0 * TEMPERATURE * (mu / (MARGIN * distance)) ** 2,
        most / (curvature + prior_precision),
        (most - FORGETTING) / curvature,
    )
    kappa = max(prior_precision, FORGETTING / time)
    if n_steps is None:
        n_steps = min(max(math.ceil(time * (curvature + kappa)), STEPS_RANGE[0]), most)
    step_size = time / n_steps
    # At least sqrt(T) S / mu, as the time is no longer than the price allows; more where steps end
    # before the price does.
    each = SphericalGaussian(n_params, math.sqrt(2.0 * TEMPERATURE / step_size))
    return LangevinCalibration(kappa, n_steps, step_size, each, TEMPERATURE)


@dataclass(frozen=True)
class Chain:
    """One chain of noisy Langevin steps.

    Parameters
    ----------
    likelihood : Likelihood
        Whose constants the calibration was made from.
    blocks : Blocks
        Private records, inside the public domain.
    calibration : LangevinCalibration
    start : ndarray of shape (n_params,)
        c, public.
    """

    likelihood: Likelihood
    blocks: Blocks[Any]
    calibration: LangevinCalibration
    start: FloatArray

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

    def _gradient(self, point: FloatArray) -> FloatArray:
        # What goes to the blocks is what they need, and no noise.
        return self.blocks.map_sum(partial(block_derivatives, self.likelihood, point, 1)).gradient
