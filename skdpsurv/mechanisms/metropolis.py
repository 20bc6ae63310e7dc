r"""Moves that leave a law as it is: the rule of Metropolis and Hastings over two proposals.

Coordinates :math:`x = L^\top (f - c)` with :math:`LL^\top` a curvature of U, so that U is nearly a
standard normal's in them where the losses are not saturated. A **local** move is a Langevin step,

.. math:: x' = x - \tfrac h2 \nabla_x U + \mathcal N(0, hI),

and one move in ten is a **jump**: a proposal from half the prior, half a Student t around c. C is
bounded, so that U is nearly the prior's far from the data: with few records that region has weight,
and local moves do not reach it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from skdpsurv.mechanisms.posterior_sampling import Target
from skdpsurv.types import FloatArray

#: The acceptance rate at which local moves are fastest (Roberts and Rosenthal 1998).
ACCEPTANCE = 0.574
#: Bounds on h.
STEPS = (1e-6, 1e2)
#: Share of jumps, and degrees of freedom of those around c.
JUMPS, JUMP_DF = 0.1, 5.0


@dataclass(frozen=True)
class Frame:
    """The coordinates, and the jumps in them.

    Parameters
    ----------
    center : ndarray of shape (n_params,)
        c.
    root : ndarray of shape (n_params, n_params)
        L, lower triangular.
    prior_precision : float
    """

    center: FloatArray
    root: FloatArray
    prior_precision: float

    @staticmethod
    def around(target: Target, center: FloatArray, curvature: FloatArray) -> Frame:
        """Return the frame of a curvature at a point."""
        root = linalg.cholesky(curvature, lower=True)
        return Frame(center, root, target.sanitizer.prior_precision)

    def coef(self, x: FloatArray) -> FloatArray:
        """Return f at x."""
        moved = linalg.solve_triangular(self.root, x, lower=True, trans="T", check_finite=False)
        return np.asarray(self.center + moved)

    def x(self, coef: FloatArray) -> FloatArray:
        """Return x at f."""
        return np.asarray(self.root.T @ (coef - self.center))

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Return where a jump goes."""
        normal = rng.standard_normal(self.center.size)
        if rng.random() < 0.5:
            return np.asarray(normal * math.sqrt(JUMP_DF / rng.chisquare(JUMP_DF)))
        return self.x(normal / math.sqrt(self.prior_precision))

    def log_density(self, x: FloatArray) -> float:
        """Return the log-density of jumps at x, up to a constant."""
        size = self.center.size
        near = math.lgamma(0.5 * (JUMP_DF + size)) - math.lgamma(0.5 * JUMP_DF)
        near -= 0.5 * size * math.log(0.5 * JUMP_DF)  # in units of (2 pi)^(-size/2)
        near -= 0.5 * (JUMP_DF + size) * math.log1p(float(x @ x) / JUMP_DF)
        coef = self.coef(x)
        prior = 0.5 * size * math.log(self.prior_precision)
        prior -= float(np.sum(np.log(np.diag(self.root))))
        prior -= 0.5 * self.prior_precision * float(coef @ coef)
        return float(np.logaddexp(near, prior))


@dataclass(frozen=True)
class _Point:
    """A state with what the acceptance rule asks of it."""

    x: FloatArray
    coef: FloatArray
    energy: float
    gradient: FloatArray


class Walk:
    """A state that moves under one target and one frame.

    Parameters
    ----------
    target : Target
    frame : Frame
    coef : ndarray of shape (n_params,)
        Where it starts.
    step : float or None, default=None
        h of the first move; None for what is right for a normal law.
    """

    def __init__(
        self, target: Target, frame: Frame, coef: FloatArray, step: float | None = None
    ) -> None:
        self.target, self.frame = target, frame
        self.step = 1.65**2 / coef.size ** (1.0 / 3.0) if step is None else step
        self._at = self._point(frame.x(coef), coef)

    @property
    def coef(self) -> FloatArray:
        """The state."""
        return self._at.coef

    def move(self, rng: np.random.Generator, rate: float = 0.0) -> None:
        """Propose once; h follows the acceptance rate of local moves at the given rate."""
        at, step = self._at, self.step
        if rng.random() < JUMPS:
            x = self.frame.draw(rng)
            new = self._point(x, self.frame.coef(x))
            gain = at.energy - new.energy
            gain += self.frame.log_density(at.x) - self.frame.log_density(new.x)
        else:
            noise = rng.standard_normal(at.x.size)
            x = at.x - 0.5 * step * at.gradient + math.sqrt(step) * noise
            new = self._point(x, self.frame.coef(x))
            back = at.x - x + 0.5 * step * new.gradient
            gain = at.energy - new.energy
            gain += 0.5 * float(noise @ noise) - float(back @ back) / (2.0 * step)
            accepted = 0.0 if math.isnan(gain) else math.exp(min(gain, 0.0))
            step *= math.exp(rate * (accepted - ACCEPTANCE))
            self.step = min(max(step, STEPS[0]), STEPS[1])
        if math.log(1.0 - rng.random()) < gain:
            self._at = new

    def _point(self, x: FloatArray, coef: FloatArray) -> _Point:
        energy, gradient = self.target.energy(coef)
        pulled = linalg.solve_triangular(self.frame.root, gradient, lower=True, check_finite=False)
        return _Point(x, coef, energy, pulled)
