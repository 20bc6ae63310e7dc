"""What the benchmarks of posterior sampling share: targets, chains on disk, how well they mix."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._common import SurvivalData
from benchmarks._run import QUICK, setting
from skdpsurv import DPDiscreteTimeSurvival, PosteriorSampling
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.shape import Shape
from skdpsurv.data.target import event_and_time
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.langevin import MALA
from skdpsurv.mechanisms.posterior_sampling import Sanitizer, Target
from skdpsurv.published import PublishedDiscreteTimeSurvival
from skdpsurv.survival.hazards.model import HazardRecords, orthogonal_basis
from skdpsurv.survival.hazards.posterior import PosteriorDraw

#: States of a pSGLD chain that are kept, per epoch.
KEPT = 100
#: States of MALA that are left out.
BURN_IN = setting(1000, quick=30)
#: The paper's length of a chain.
EPOCHS = setting(250, quick=1)


def on_grid(
    data: SurvivalData, rows: np.ndarray | slice = slice(None), n_intervals: int = 200
) -> HazardRecords:
    """Return records on the grid."""
    event, t = event_and_time(data.y[rows])
    X = np.asarray(data.X[rows], dtype=float)
    return HazardRecords.on_grid(X, event, t, data.max_time, n_intervals)


@dataclass(eq=False)
class Problem:
    """The sanitised posterior of one data set at one epsilon, as the estimator samples it."""

    data: SurvivalData
    epsilon: float
    link: str = "logit"
    data_norm: float | str = "auto"
    n_intervals: int = 200
    n_knots: int = 3

    def plan(self, published: bool = False, **options: Any) -> PosteriorDraw:
        """Return what the estimator would run, with options of its chain."""
        make = PublishedDiscreteTimeSurvival if published else DPDiscreteTimeSurvival
        model = make(
            self.epsilon,
            method=PosteriorSampling(**options),
            max_time=self.data.max_time,
            link=self.link,
            data_norm=self.data_norm,
            n_intervals=self.n_intervals,
            n_knots=self.n_knots,
        )
        draw = model._plan(Shape(*self.data.X.shape)).alone
        assert isinstance(draw, PosteriorDraw)
        return draw

    def records(self) -> InMemory[HazardRecords]:
        """Return the records on the grid of the estimator."""
        return InMemory([on_grid(self.data, n_intervals=self.n_intervals)])

    def target(self) -> tuple[Target, np.ndarray]:
        """Return the law, and the point from which a random walk looks for its mode."""
        plan = self.plan()
        model = plan.model
        basis = orthogonal_basis(model.n_intervals, model.n_knots)
        likelihood = DiscreteHazard(basis, model.n_features, link=LINKS[model.link])
        start = np.zeros(likelihood.n_params)
        start[0] = likelihood.link.predictor(model.prior_hazard) / basis[0, 0]
        blocks = self.records().map(lambda block: block.within(0.0, model.data_norm))
        return Target(likelihood, blocks, plan.sanitizer), start

    def draws(self, n_steps: int, burn_in: int = BURN_IN) -> np.ndarray:
        """Return states of MALA after its burn-in, as coefficients on the scale of X."""
        model = self.plan().model
        states = islice(mala(self.target()[0], burn_in), n_steps)
        return np.array(list(states))[:, model.n_knots :] / model.data_norm

    def mle(self) -> np.ndarray:
        """Return the coefficients of the non-private fit."""
        model = DPDiscreteTimeSurvival(np.inf, max_time=self.data.max_time, link=self.link)
        return np.asarray(model.fit(self.data.X, self.data.y).coef_)

    def chain_path(self, kind: str, draw: int, folder: Path) -> Path:
        """Return where a chain is kept."""
        name = f"{self.data.name}_{self.epsilon:g}_{kind.replace(' ', '_')}_{draw}"
        return folder / f"{name}{setting('', quick='_quick')}.npz"


def errors(coefs: np.ndarray, mle: np.ndarray) -> np.ndarray:
    """Return relative errors of rows of coefficients."""
    return np.asarray(np.linalg.norm(coefs - mle, axis=-1) / np.linalg.norm(mle))


#: pSGLD as shipped; with the drift doubled and nothing else; and to the letter.
CORRECTED, DOUBLED, LETTER = "corrected", "doubled", "to the letter"


def psgld_states(problem: Problem, kind: str, n_steps: int, **options: Any) -> Iterator:
    """Yield coefficients on the scale of X, state by state."""
    plan = problem.plan(kind == LETTER, sampler="psgld", **options)
    if kind == DOUBLED:
        # Twice the energy, twice its gradient; the noise is the same.
        law = plan.sanitizer
        twice = Sanitizer(law.ceiling, 2.0 * law.rate, 2.0 * law.prior_precision)
        object.__setattr__(plan, "sanitizer", twice)
    for state in islice(plan.states(problem.records(), random_source(None)), n_steps):
        yield state[plan.model.n_knots :] / plan.model.data_norm


def psgld_chain(
    problem: Problem, kind: str, draw: int, folder: Path, fresh: bool = False
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return kept states, their epochs and CPU seconds, from disk unless ``fresh``."""
    path = problem.chain_path(kind, draw, folder)
    if fresh or QUICK or not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        n = len(problem.data.y)
        n_steps, every = EPOCHS * n, max(1, n // KEPT)
        kept, t0 = [], time.process_time()
        for t, coef in enumerate(psgld_states(problem, kind, n_steps), start=1):
            if t % every == 0 or t == n_steps:
                kept.append((t / n, *coef))
        seconds = time.process_time() - t0
        np.savez(path.with_suffix(".part.npz"), kept=np.array(kept), seconds=seconds)
        path.with_suffix(".part.npz").rename(path)
    with np.load(path) as found:
        return found["kept"][:, 1:], found["kept"][:, 0], float(found["seconds"])


def mala(target: Target, burn_in: int = BURN_IN) -> Iterator[np.ndarray]:
    """Yield states of MALA after its burn-in, without end."""
    return islice(MALA(burn_in).states(target, random_source(None)), burn_in, None)


def enough(states: Iterator[np.ndarray], size: float = 2000.0, most: int = 400_000) -> np.ndarray:
    """Return so many states that each column has an effective sample size of ``size``."""
    found: list[np.ndarray] = []
    while len(found) < setting(most, quick=1):
        found += islice(states, max(setting(8000, quick=100), len(found) // 4))
        if effective_size(np.array(found)).min() >= size:
            break
    return np.array(found)


def effective_size(x: np.ndarray) -> np.ndarray:
    """Return the effective sample size of each column (Geyer's initial positive sequence)."""
    n = len(x)
    spectrum = np.fft.rfft(x - x.mean(axis=0), 2 * n, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:n]
    correlation = covariance / covariance[0]
    pairs = correlation[: n // 2 * 2 : 2] + correlation[1 : n // 2 * 2 : 2]
    sizes = []
    for column in pairs.T:
        end = int(np.argmax(column < 0.0)) or len(column)
        sizes.append(n / max(2.0 * column[:end].sum() - 1.0, 1.0 / n))
    return np.array(sizes)


#: Nodes of the table from which survived losses are interpolated.
NODES = 60


class GridLosses:
    """Uncapped losses from a table of survived losses over the covariates' predictor.

    Cubic interpolation and plain sums, nothing of the estimator's own code for the energy, so that
    it checks that as well as the chains; and several times as fast.
    """

    def __init__(self, likelihood: DiscreteHazard, block: HazardBlock) -> None:
        self.X, self.survived, event = block
        self.basis, self.link = likelihood.basis, likelihood.link
        self.events = np.flatnonzero(event)
        self.last = self.survived[self.events]

    def __call__(self, coef: np.ndarray) -> np.ndarray:
        n_basis = self.basis.shape[1]
        a, b = self.basis @ coef[:n_basis], self.X @ coef[n_basis:]
        low, width = b.min(), max(np.ptp(b), 1e-6) / (NODES - 4)
        nodes = low + width * (np.arange(NODES) - 1.5)
        sums = np.zeros((NODES, a.size + 1))
        np.cumsum(self.link.survival(nodes[:, None] + a).value, axis=1, out=sums[:, 1:])
        place = (b - nodes[0]) / width
        i = place.astype(int)
        p = place - i
        at, row = sums.ravel(), a.size + 1
        j = i * row + self.survived
        losses = (1 - p) * (2 - p) * (3 * (1 + p) * at[j] - p * at[j - row]) / 6
        losses += p * (1 + p) * (3 * (2 - p) * at[j + row] - (1 - p) * at[j + 2 * row]) / 6
        losses[self.events] += self.link.event(a[self.last] + b[self.events]).value
        return losses


def grid_energy(target: Target) -> Callable[[np.ndarray], float]:
    """Return U, from GridLosses."""
    (block,) = target.blocks.blocks
    losses, sanitizer = GridLosses(target.likelihood, block), target.sanitizer

    def energy(coef: np.ndarray) -> float:
        v = sanitizer.ceiling
        total = v * float(np.tanh(losses(coef) / v).sum())
        return 0.5 * sanitizer.prior_precision * float(coef @ coef) + sanitizer.rate * total

    return energy


def random_walk(
    target: Target, start: np.ndarray, burn_in: int = setting(5000, quick=100)
) -> Iterator[np.ndarray]:
    """Yield states of a random-walk Metropolis chain after its burn-in, without end."""
    rng, energy = np.random.default_rng(), grid_energy(target)
    coef, curvature = target.mode(start)
    root, size = np.linalg.cholesky(np.linalg.inv(curvature)), 2.4 / np.sqrt(coef.size)
    value = energy(coef)
    for t in count():
        ahead = coef + size * (root @ rng.standard_normal(coef.size))
        new = energy(ahead)
        accepted = np.log(rng.random()) < value - new
        if accepted:
            coef, value = ahead, new
        if t < burn_in:
            size *= np.exp((float(accepted) - 0.25) / np.sqrt(t + 1.0))
        else:
            yield coef
