r"""Two Markov chains for the law of :mod:`skdpsurv.mechanisms.posterior_sampling`.

Both start from a draw of the prior, which knows no record, and are annealed from there
(:mod:`skdpsurv.mechanisms.annealing`); a mode is looked for afterwards, to steer, near where the
state is then, and the state stays where it is.

**MALA**, the Metropolis-adjusted Langevin algorithm, on all records at every step:

.. math:: f' = f - \tfrac{h}{2} P\,\nabla U(f) + \mathcal N(0, hP),

accepted by the rule of Metropolis and Hastings (:mod:`skdpsurv.mechanisms.metropolis`), with P the
inverse curvature at that mode. Its limit is the target, whatever h and P are.

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

from skdpsurv.mechanisms.annealing import anneal
from skdpsurv.mechanisms.metropolis import Frame, Walk
from skdpsurv.mechanisms.posterior_sampling import Sanitizer, Target
from skdpsurv.privacy import RandomSource
from skdpsurv.types import FloatArray

#: The paper's lambda and mu.
DAMPING, MEMORY = 1e-5, 0.99
#: Random rows are drawn for at most this many steps of pSGLD, and about so many rows, at once.
STEPS_AT_ONCE, ROWS_AT_ONCE = 1000, 2**18
#: A coefficient beyond this is no draw of a prior with standard deviation 10.
LOST = 1e6
#: Share of MALA's burn-in that is annealed, and passes over the records that pSGLD's warm-up takes.
ANNEALED, WARM_UP = 0.6, 100
#: A chain of pSGLD keeps at most about exp(-10) of where it began, by a public estimate.
FORGETTING = 10.0


@dataclass(frozen=True)
class MALA:
    """Metropolis-adjusted Langevin algorithm; one step is one pass over the records.

    Parameters
    ----------
    burn_in : int
        Steps in which the chain adapts: it is annealed first, then h follows the acceptance rate.
        Afterwards nothing changes any more.
    """

    burn_in: int

    def states(self, target: Target, source: RandomSource) -> Iterator[FloatArray]:
        """Yield the chain's states without end; the first is a draw of the prior."""
        rng = source.generator
        annealed = math.floor(ANNEALED * self.burn_in)
        for coef, step in anneal(target, annealed, rng):  # noqa: B007
            yield coef
        # The search moves the proposals, never the state.
        walk = Walk(target, Frame.around(target, *target.mode(coef)), coef, step)
        for t in count():
            adapts = annealed + t < self.burn_in
            walk.move(rng, 1.0 / math.sqrt(t + 1.0) if adapts else 0.0)
            yield walk.coef


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
        a_1; None for the largest that is stable at the mode near the first state, under the first
        G, then the frozen.
    step_exponent : float
        tau.
    published : bool, default=False
        The paper's step to the letter: twice the drift, G never frozen, from f = 0, no warm-up.

    Notes
    -----
    Before the first step the state is annealed on all records, :data:`WARM_UP` passes: from a draw
    of the prior, gradients alone do not find back through the flat parts of U.
    """

    burn_in: int
    batch_size: int
    step_size: float | None
    step_exponent: float
    published: bool = False

    def states(self, target: Target, source: RandomSource) -> Iterator[FloatArray]:
        """Yield the chain's states without end, after those of its warm-up.

        Raises
        ------
        ValueError
            If the chain leaves every bound: its step is too large.
        """
        rng = source.generator
        n = target.n_records
        sizes = target.blocks.sizes(target.likelihood.n_records)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        size = min(self.batch_size, n)
        coef = np.zeros(target.likelihood.n_params)
        drift, floor = 1.0, np.zeros_like(coef)
        first_step = 1.0 if self.step_size is None else self.step_size
        if not self.published:
            drift = 0.5
            for coef, _ in anneal(target, WARM_UP, rng):  # noqa: B007
                pass
            _, curvature = target.mode(coef)
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


def least_step(law: Sanitizer, n_records: int, batch_size: int, n_steps: int, tau: float) -> float:
    r"""Return the a_1 below which n steps of pSGLD hardly leave the state where they began.

    From public numbers. Gradients of losses have norms of about 1, so that G is about
    :math:`1 / (\lambda + \text{rate}/\sqrt k)` and the curvature of U about the prior's plus
    rate n; a step forgets a share :math:`a_t G c / 2` of where it began, and the sum of these has
    to be :data:`FORGETTING`.
    """
    scale = 1.0 / (DAMPING + law.rate / math.sqrt(batch_size))
    curvature = law.prior_precision + law.rate * n_records
    # The sum of t ** -tau is at least its integral.
    end = n_steps + 1.0
    total = math.log(end) if tau == 1.0 else (end ** (1.0 - tau) - 1.0) / (1.0 - tau)
    return 2.0 * FORGETTING / (scale * curvature * total)


def _stable_step(curvature: FloatArray, scale: FloatArray) -> float:
    """Return the a at which a step of a G / 2 goes to the mode along the steepest direction."""
    root = np.sqrt(scale)
    return 2.0 / float(np.linalg.eigvalsh(curvature * np.outer(root, root))[-1])
