r"""Two Markov chains for the law of :mod:`skdpsurv.mechanisms.posterior_sampling`.

**MALA**, the Metropolis-adjusted Langevin algorithm, on all records at every step:

.. math:: f' = f - \tfrac{h}{2} P\,\nabla U(f) + \mathcal N(0, hP),

accepted by the rule of Metropolis and Hastings, with P the inverse curvature at the mode. Its
limit is the target, whatever h and P are.

**pSGLD**, preconditioned stochastic gradient Langevin dynamics (Nguyen and Hui, arXiv 1708.07436,
algorithm 4; Li, Chen, Carlson and Carin, AAAI 2016), on k records at every step:

.. math::
    f_{t+1} = f_t - \tfrac{a_t}{2}\,G_t\,n\bar g_t + \mathcal N(0, a_t G_t), \qquad
    G_t = 1 / (\lambda + \sqrt{V_t}), \quad V_t = \mu V_{t-1} + (1 - \mu)\,\bar g_t^2,

:math:`a_t = a_1 t^{-\tau}`. The paper moves by :math:`a_t G_t n \bar g_t`, twice as far: that chain
has the law of the target *squared*, at twice the epsilon. Its G also goes on changing with the
chain, for which a term is missing; here G is frozen after a burn-in (docs/errata).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skdpsurv.mechanisms.posterior_sampling import Target
from skdpsurv.privacy import RandomSource

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: The paper's lambda and mu.
DAMPING, MEMORY = 1e-5, 0.99
#: Random rows are drawn for at most this many steps of pSGLD, and about so many rows, at once.
STEPS_AT_ONCE, ROWS_AT_ONCE = 1000, 2**18
#: A coefficient beyond this is no draw of a prior with standard deviation 10.
LOST = 1e6
#: The acceptance rate at which MALA moves fastest (Roberts and Rosenthal 1998).
ACCEPTANCE = 0.574
#: Share of MALA's steps that propose a point from anywhere, and degrees of freedom of the
#: proposals around the mode.
JUMPS, JUMP_DF = 0.1, 5.0


@dataclass(frozen=True)
class MALA:
    """Metropolis-adjusted Langevin algorithm; one step is one pass over the records.

    Parameters
    ----------
    burn_in : int
        Steps in which h follows the acceptance rate; it is frozen afterwards.

    Notes
    -----
    C is bounded, so that U is nearly the prior's far from the data: with few records that region
    has weight, and local moves do not reach it. One step in ten is a proposal from a mixture, half
    the prior, half a Student t around the mode, which does.
    """

    burn_in: int

    def states(
        self, target: Target, start: FloatArray, source: RandomSource
    ) -> Iterator[FloatArray]:
        """Yield the chain's states without end, from a point near the mode."""
        rng = source.generator
        mode, curvature = target.mode(start)
        root = linalg.cholesky(curvature, lower=True)
        local = _Mixture(mode, root, target.sanitizer.prior_precision)
        size, step = mode.size, 1.65**2 / mode.size ** (1.0 / 3.0)
        # Coordinates x = root' (f - mode), in which U is nearly a standard normal's.
        point = _Point.at(target, mode, root, local.draw_near(rng))
        for t in count():
            if rng.random() < JUMPS:
                new = _Point.at(target, mode, root, local.draw(rng))
                gain = point.energy - new.energy
                gain += local.log_density(point.x) - local.log_density(new.x)
            else:
                noise = rng.standard_normal(size)
                x = point.x - 0.5 * step * point.gradient + math.sqrt(step) * noise
                new = _Point.at(target, mode, root, x)
                back = point.x - x + 0.5 * step * new.gradient
                gain = point.energy - new.energy
                gain += 0.5 * float(noise @ noise) - float(back @ back) / (2.0 * step)
                if t < self.burn_in:
                    rate = 0.0 if math.isnan(gain) else math.exp(min(gain, 0.0))
                    step *= math.exp((rate - ACCEPTANCE) / math.sqrt(t + 1.0))
                    step = min(max(step, 1e-6), 1e2)
            if math.log(1.0 - rng.random()) < gain:
                point = new
            yield point.coef


@dataclass(frozen=True)
class _Point:
    """A state with what the acceptance rule asks of it."""

    x: FloatArray
    coef: FloatArray
    energy: float
    gradient: FloatArray

    @staticmethod
    def at(target: Target, mode: FloatArray, root: FloatArray, x: FloatArray) -> _Point:
        coef = mode + linalg.solve_triangular(root, x, lower=True, trans="T", check_finite=False)
        energy, gradient = target.energy(coef)
        pulled = linalg.solve_triangular(root, gradient, lower=True, check_finite=False)
        return _Point(x, coef, energy, pulled)


@dataclass(frozen=True)
class _Mixture:
    """Half the prior, half a Student t around the mode, in the coordinates x."""

    mode: FloatArray
    root: FloatArray
    prior_precision: float

    def draw_near(self, rng: np.random.Generator) -> FloatArray:
        normal = rng.standard_normal(self.mode.size)
        return np.asarray(normal * math.sqrt(JUMP_DF / rng.chisquare(JUMP_DF)))

    def draw(self, rng: np.random.Generator) -> FloatArray:
        if rng.random() < 0.5:
            return self.draw_near(rng)
        prior = rng.standard_normal(self.mode.size) / math.sqrt(self.prior_precision)
        return np.asarray(self.root.T @ (prior - self.mode))

    def log_density(self, x: FloatArray) -> float:
        """Return the log-density in x, up to a constant."""
        size = self.mode.size
        near = math.lgamma(0.5 * (JUMP_DF + size)) - math.lgamma(0.5 * JUMP_DF)
        near -= 0.5 * size * math.log(0.5 * JUMP_DF)  # in units of (2 pi)^(-size/2)
        near -= 0.5 * (JUMP_DF + size) * math.log1p(float(x @ x) / JUMP_DF)
        coef = self.mode + linalg.solve_triangular(self.root, x, lower=True, trans="T")
        prior = 0.5 * size * math.log(self.prior_precision)
        prior -= float(np.sum(np.log(np.diag(self.root))))
        prior -= 0.5 * self.prior_precision * float(coef @ coef)
        return float(np.logaddexp(near, prior))


@dataclass(frozen=True)
class PSGLD:
    """Preconditioned stochastic gradient Langevin dynamics; one step looks at k records.

    Parameters
    ----------
    burn_in : int
        Steps after which G is frozen.
    batch_size : int
        k. All records, and no sampling, from n on.
    step_size : float or None
        a_1; None for the largest that is stable at the mode, under the first G, then the frozen.
    step_exponent : float
        tau.
    published : bool, default=False
        The paper's step to the letter: twice the drift, G never frozen, from f = 0.
    """

    burn_in: int
    batch_size: int
    step_size: float | None
    step_exponent: float
    published: bool = False

    def states(
        self, target: Target, start: FloatArray, source: RandomSource
    ) -> Iterator[FloatArray]:
        """Yield the chain's states without end.

        Raises
        ------
        ValueError
            If the chain leaves every bound: its step is too large.
        """
        rng = source.generator
        n = target.n_records
        sizes = [target.likelihood.n_records(block) for block in target.blocks]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        size = min(self.batch_size, n)
        coef, drift, floor = np.zeros_like(start), 1.0, np.zeros_like(start)
        first_step = 1.0 if self.step_size is None else self.step_size
        if not self.published:
            drift = 0.5
            coef, curvature = target.mode(start)
            # What V is about where curvature is the variance of gradients; without a floor G has
            # none where there is no such variance, as in a sum over all records at the mode.
            floor = target.sanitizer.rate * np.diag(curvature) / (n * size)
            if self.step_size is None:
                first_step = _stable_step(curvature, _preconditioner(floor))
        moment, scale = floor.copy(), np.zeros_like(coef)
        at_once = min(STEPS_AT_ONCE, max(1, ROWS_AT_ONCE // size))
        for t in count():
            now = t % at_once
            if now == 0:
                noise = rng.standard_normal((at_once, coef.size))
                if self.batch_size < n:
                    rows = rng.integers(0, n, (at_once, size))
                    rows.sort(axis=1)
            if self.batch_size < n:
                gradient = target.sampled_gradient(coef, rows[now], starts)
            else:
                gradient = target.energy(coef)[1]
            if self.published or t < self.burn_in:
                moment = MEMORY * moment + (1.0 - MEMORY) * (gradient / n) ** 2
                scale = _preconditioner(np.maximum(moment, floor))
            elif t == self.burn_in and self.step_size is None:
                first_step = _stable_step(curvature, scale)
            step = first_step * (t + 1.0) ** -self.step_exponent * scale
            coef = coef - drift * step * gradient + np.sqrt(step) * noise[now]
            if not np.abs(coef).max() < LOST:
                raise ValueError(
                    "sampler='psgld' has diverged: step_size is too large. Nothing is released, "
                    "and the budget stays charged."
                )
            yield coef


def _preconditioner(moment: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (DAMPING + np.sqrt(moment)))


def _stable_step(curvature: FloatArray, scale: FloatArray) -> float:
    """Return the a at which a step of a G / 2 goes to the mode along the steepest direction."""
    root = np.sqrt(scale)
    return 2.0 / float(np.linalg.eigvalsh(curvature * np.outer(root, root))[-1])
