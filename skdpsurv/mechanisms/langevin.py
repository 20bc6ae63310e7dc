r"""Two Markov chains for a sanitised posterior (:mod:`skdpsurv.mechanisms.posterior_sampling`).

**MALA**, the Metropolis-adjusted Langevin algorithm, uses all records at every step:

.. math:: f' = f - \tfrac{h}{2} P\,\nabla U(f) + \mathcal N(0, hP),

accepted by the rule of Metropolis and Hastings, with P the inverse curvature near a mode. Its limit
is the target, whatever h and P are. It moves in coordinates :math:`x = L^\top (f - c)` with
:math:`LL^\top` a curvature of U, in which U is nearly a standard normal's where losses are not
saturated. One move in ten is a **jump**: a proposal from half the prior, half a Student t around c.
C is bounded, so that U is nearly the prior's far from the data, where local moves do not lead.

**pSGLD**, preconditioned stochastic gradient Langevin dynamics (Nguyen and Hui, arXiv 1708.07436,
algorithm 4; Li, Chen, Carlson and Carin, AAAI 2016), uses k records at every step:

.. math::
    f_{t+1} = f_t - \tfrac{a_t}{2}\,G_t\,n\bar g_t + \mathcal N(0, a_t G_t), \qquad
    G_t = 1 / (\lambda + \sqrt{V_t}), \quad V_t = \mu V_{t-1} + (1 - \mu)\,\bar g_t^2,

:math:`a_t = a_1 t^{-\tau}`. The paper moves twice as far, by :math:`a_t G_t n \bar g_t`: that chain
has the distribution of the target *squared*, at twice the epsilon. Its G goes on changing with the
chain, for which a term is missing; here G is frozen after a burn-in (docs/errata).

**Annealing.** Both chains start from a draw of the prior, which knows no record, and move under

.. math:: p_h \propto \pi\, e^{-h \frac\epsilon2 \sum_i C_v(\ell_i) / v}

with h rising from where the records together weigh one nat to 1, in stages. Between modes the state
moves at small h, where :math:`p_h` differs between neighbours by a factor of at most
:math:`e^{h\epsilon}`. **Nothing is proved** about a finite number of moves
(docs/proofs/posterior_sampling). A mode found afterwards only steers; the state stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from scipy import linalg

from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.types import FloatArray
from skdpsurv.mechanisms.posterior_sampling import Sanitizer, Target

#: The acceptance rate at which local moves are fastest (Roberts and Rosenthal 1998).
ACCEPTANCE = 0.574
#: Smallest and largest step h of the chain.
STEPS = (1e-6, 1e2)
#: Share of moves that are jumps, and the degrees of freedom of their Student's t.
JUMPS, JUMP_DF = 0.1, 5.0


@dataclass(frozen=True)
class Frame:
    """The coordinates, by c and a lower triangular L, and the jumps in them."""

    center: FloatArray
    root: FloatArray
    prior_precision: float

    @staticmethod
    def around(target: Target, center: FloatArray, curvature: FloatArray) -> Frame:
        """Return the frame of a curvature at a point."""
        root = linalg.cholesky(curvature, lower=True)
        return Frame(center, root, target.sanitizer.prior_precision)

    def coef(self, x: FloatArray) -> FloatArray:
        moved = linalg.solve_triangular(self.root, x, lower=True, trans="T", check_finite=False)
        return np.asarray(self.center + moved)

    def x(self, coef: FloatArray) -> FloatArray:
        return np.asarray(self.root.T @ (coef - self.center))

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw the point that a jump proposes."""
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
    """A state of the chain, with its energy and gradient."""

    x: FloatArray
    coef: FloatArray
    energy: float
    gradient: FloatArray


class Walk:
    """A state that moves from ``coef`` under one target and one frame.

    ``step`` is h of the first move; the default suits a normal distribution.
    """

    def __init__(
        self, target: Target, frame: Frame, coef: FloatArray, step: float | None = None
    ) -> None:
        self.target, self.frame = target, frame
        self.step = 1.65**2 / coef.size ** (1.0 / 3.0) if step is None else step
        self._at = self._point(frame.x(coef), coef)

    @property
    def coef(self) -> FloatArray:
        """The state of the chain, as coefficients."""
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
        in_frame = linalg.solve_triangular(
            self.frame.root, gradient, lower=True, check_finite=False
        )
        return _Point(x, coef, energy, in_frame)


#: Least moves in a stage, and most stages: each costs a Hessian, as much as some six moves.
STAGE_MOVES, MOST_STAGES = 10, 10
#: Rate at which the step follows the acceptance rate.
ADAPTATION = 0.5


def prior_draw(target: Target, rng: np.random.Generator) -> FloatArray:
    """Return a draw of the prior, of public numbers alone."""
    normal = rng.standard_normal(target.likelihood.n_params)
    return np.asarray(normal / math.sqrt(target.sanitizer.prior_precision))


def weights(target: Target, n_stages: int) -> FloatArray:
    """Return the weight h of the likelihood at each stage of annealing."""
    nats = target.sanitizer.rate * target.sanitizer.ceiling * target.n_records
    return np.geomspace(min(1.0, 1.0 / nats), 1.0, n_stages)


def anneal(
    target: Target, n_moves: int, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, float | None]]:
    """Yield the state and its step at first and after each of n moves."""
    coef, step = prior_draw(target, rng), None
    yield coef, step
    if not n_moves:
        return
    n_stages = min(MOST_STAGES, max(1, n_moves // STAGE_MOVES))
    sanitizer, done = target.sanitizer, 0
    for stage, h in enumerate(weights(target, n_stages), start=1):
        warm = replace(target, sanitizer=replace(sanitizer, rate=h * sanitizer.rate))
        walk = Walk(warm, Frame.around(warm, coef, warm.curvature(coef)), coef, step)
        until = n_moves * stage // n_stages
        for _ in range(until - done):
            walk.move(rng, ADAPTATION)
            yield walk.coef, walk.step
        done, coef, step = until, walk.coef, walk.step


#: Lambda and mu of RMSprop preconditioning, as in the paper.
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
        k; all records, without sampling, from n on.
    step_size : float or None
        a_1; None for the largest that is stable at the mode near the first state.
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
        """Yield the chain's states without end, after its warm-up; ValueError if it diverges."""
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


def least_step(
    sanitizer: Sanitizer, n_records: int, batch_size: int, n_steps: int, tau: float
) -> float:
    r"""Return the a_1 below which n steps of pSGLD hardly leave their start, from public numbers.

    Gradients of losses have norms of about 1, so that G is about :math:`1 / (\lambda +
    \text{rate}/\sqrt k)` and the curvature of U about the prior's plus rate n. A step forgets a
    share :math:`a_t G c / 2` of its start, and the sum of these has to be :data:`FORGETTING`.
    """
    scale = 1.0 / (DAMPING + sanitizer.rate / math.sqrt(batch_size))
    curvature = sanitizer.prior_precision + sanitizer.rate * n_records
    # The sum of t ** -tau is at least its integral.
    end = n_steps + 1.0
    total = math.log(end) if tau == 1.0 else (end ** (1.0 - tau) - 1.0) / (1.0 - tau)
    return 2.0 * FORGETTING / (scale * curvature * total)


def _stable_step(curvature: FloatArray, scale: FloatArray) -> float:
    """Return the a at which a step of a G / 2 goes to the mode along the steepest direction."""
    root = np.sqrt(scale)
    return 2.0 / float(np.linalg.eigvalsh(curvature * np.outer(root, root))[-1])
