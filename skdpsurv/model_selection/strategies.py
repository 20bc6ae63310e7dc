"""Two ways to choose privately: which records train each candidate, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skdpsurv.dp import privacy_cost as cost
from skdpsurv.dp.checks import Check, Parameters, number_in, optional
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.privacy_cost import Price, run_rho, spend_of
from skdpsurv.dp.selection import RunCount
from skdpsurv.dp.types import IndexArray

#: Expected runs for each candidate, so that most are tried.
RUNS_PER_CANDIDATE = 10
#: Upper limit on the expected number of runs, and lower limit on gamma of its distribution.
MOST_RUNS, LEAST_GAMMA = 100_000, 1e-6
#: Gaussian noise is used if a candidate then has more than this part of its epsilon without.
ALMOST = 1.0 - 1e-6


class RepeatedRuns(Parameters):
    """Try random candidates a random number of times: ``PrivateSearchCV(strategy=...)``.

    Each run is trained on one part of the records with ``epsilon / (2 + eta)`` and scored on the
    other. ``strategy="repeat"`` is this with its defaults.

    Parameters
    ----------
    eta : float in (-1, 1], default=1.0
        Shape of the distribution of the number of runs: 0 is logarithmic, 1 geometric. A larger
        eta makes few runs less likely, and leaves less epsilon to each.
    expected_runs : float or None, default=None
        Expected number of runs. It costs time, but no privacy. None: ten for each candidate.
    holdout : float, default=0.2
        Share of the records to score on.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression, PrivateSearchCV
    >>> from skdpsurv.model_selection import RepeatedRuns
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> search = PrivateSearchCV(model, {"alpha": [0.01, 1.0]}, strategy=RepeatedRuns(eta=0.0))
    >>> search.set_params(strategy__expected_runs=8).strategy
    RepeatedRuns(eta=0.0, expected_runs=8)
    """

    _rules: ClassVar[dict[str, Check]] = {
        "eta": number_in(-1.0, 1.0, closed="right"),
        "expected_runs": optional(number_in(1.0, math.inf, closed="left")),
        "holdout": number_in(0.0, 1.0, closed="neither"),
    }

    def __init__(
        self, *, eta: float = 1.0, expected_runs: float | None = None, holdout: float = 0.2
    ) -> None:
        self.eta = eta
        self.expected_runs = expected_runs
        self.holdout = holdout


class DisjointParts(Parameters):
    """Train each candidate once, on its own part of the records, with all of epsilon.

    Use ``PrivateSearchCV(strategy=...)`` with this for many records and few candidates.
    ``strategy="split"`` is this with its default.

    Parameters
    ----------
    holdout : float, default=0.2
        Share of the records to score on.
    """

    _rules: ClassVar[dict[str, Check]] = {"holdout": number_in(0.0, 1.0, closed="neither")}

    def __init__(self, *, holdout: float = 0.2) -> None:
        self.holdout = holdout


#: Strategies of the search, by the words that select them.
STRATEGIES: dict[str, type[RepeatedRuns | DisjointParts]] = {
    "repeat": RepeatedRuns,
    "split": DisjointParts,
}


class RowParts(NamedTuple):
    """Disjoint parts of the private records, by public indices: to train on, and to score on."""

    training: Sequence[IndexArray]
    scoring: IndexArray


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """Base of both strategies.

    ``epsilon`` is that of the whole choice. ``rho`` is that of each run, if all noise is Gaussian.
    """

    epsilon: float
    n_candidates: int
    holdout: float
    delta: float = 0.0
    rho: float = 0.0

    word: ClassVar[str]
    mechanism: ClassVar[str]

    @property
    def run_epsilon(self) -> float:
        """Epsilon of one run."""
        raise NotImplementedError

    @property
    def run_spend(self) -> cost.Spend:
        """Privacy parameters of each candidate."""
        return spend_of(self.rho, self.delta) if self.rho else cost.Spend(self.run_epsilon)

    @property
    def price(self) -> Price:
        """Cost of each training, and of a choice or of a noisy sum of losses."""
        return cost.gaussian_price(self.rho) if self.rho else self.run_epsilon

    def parts(self, n_records: int, source: RandomSource, n_parts: int = 1) -> RowParts:
        """Shuffle records into parts, by their number and the random stream alone."""
        n_scoring = max(1, round(self.holdout * n_records))
        if n_records - n_scoring < n_parts:
            raise ValueError(
                f"X must hold a record for each of the {n_parts} parts to train on, and one to "
                f"score on, got n_samples={n_records}."
            )
        order = source.generator.permutation(n_records)
        return RowParts(np.array_split(order[n_scoring:], n_parts), order[:n_scoring])

    def training(self, parts: RowParts) -> Sequence[IndexArray]:
        """Return the training part of each candidate: its own, or one for all."""
        return list(parts.training) * (self.n_candidates // len(parts.training))

    def public_inputs(self) -> dict[str, Any]:
        """Return the public numbers of the guarantee."""
        return {"rho_run": self.rho} if self.rho else {"epsilon_run": self.run_epsilon}


@dataclass(frozen=True, kw_only=True)
class Split(Strategy):
    """Each candidate on its own part, and a choice by permute-and-flip."""

    word = "split"
    mechanism = "permute-and-flip among candidates on disjoint parts of the records"

    @property
    def run_epsilon(self) -> float:
        """Epsilon of each candidate's training, and of the choice."""
        # Permute-and-flip at e is (e**2 / 2)-zCDP.
        return cost.gaussian_price(self.rho).mu if self.rho else self.epsilon

    def parts(self, n_records: int, source: RandomSource, n_parts: int = 1) -> RowParts:
        """Shuffle records into a part for each candidate, and one to score on."""
        return super().parts(n_records, source, self.n_candidates)

    def run_rho(self, epsilon: float, delta: float, refit_rho: float) -> float:
        """Return the rho of each part for an epsilon at a delta."""
        return (cost.rho_for(epsilon, delta) - refit_rho) / cost.MARGIN**2

    def total(self, refit_rho: float) -> dict[str, Any]:
        """Return the rho of the whole search."""
        return {"rho": (self.rho + refit_rho) * cost.MARGIN}


@dataclass(frozen=True, kw_only=True)
class Repeat(Strategy):
    """A random number of runs of random candidates, of which the best is kept."""

    eta: float
    expected_runs: float

    word = "repeat"
    mechanism = "best of a random number of private runs of random candidates"

    @property
    def run_epsilon(self) -> float:
        """Epsilon of one run: the maximum of training and scoring, on disjoint parts."""
        return cost.divide_budget(self.epsilon, 2 + Fraction(self.eta))

    @property
    def count(self) -> RunCount:
        """The distribution of the number of runs."""
        return RunCount.with_mean(self.eta, self.expected_runs)

    def public_inputs(self) -> dict[str, Any]:
        """Return the public numbers of the guarantee."""
        return super().public_inputs() | {"eta": self.eta, "expected_runs": self.expected_runs}

    def run_rho(self, epsilon: float, delta: float, refit_rho: float) -> float:
        """Return the rho of each run for an epsilon at a delta."""
        return run_rho(epsilon, delta, self.count, refit_rho)

    def total(self, refit_rho: float) -> dict[str, Any]:
        """Return the Renyi divergences of the whole search."""
        return {"renyi": cost.search_curve(self.rho, self.count, refit_rho)}


class Share(NamedTuple):
    """Privacy parameters of a fit, its cost, and the public inputs that state it."""

    spend: cost.Spend
    price: Price
    inputs: dict[str, Any]


@dataclass(frozen=True)
class SearchBudget:
    """Allocation of a budget to a choice, and to a last fit to all records."""

    epsilon: float
    delta: float
    refit: float | None

    @property
    def refit_epsilon(self) -> float:
        """Epsilon of the last fit."""
        return 0.0 if self.refit is None else self.epsilon * self.refit

    @property
    def refit_rho(self) -> float:
        """Rho of the last fit if all noise is Gaussian: its share of mu."""
        if self.refit is None or not self.delta:
            return 0.0
        return self.refit**2 * cost.rho_for(self.epsilon, self.delta)

    def last_fit(self, strategy: Split | Repeat) -> Share | None:
        """Return the share of the last fit; None if there is none."""
        if self.refit is None:
            return None
        if strategy.rho:
            rho = self.refit_rho
            return Share(spend_of(rho, self.delta), cost.gaussian_price(rho), {"rho_refit": rho})
        epsilon = self.refit_epsilon
        return Share(cost.Spend(epsilon), epsilon, {"epsilon_refit": epsilon})

    def strategy(
        self, how: str | RepeatedRuns | DisjointParts, n_candidates: int
    ) -> Split | Repeat:
        """Return the strategy with the exact rest of the budget."""
        epsilon, how = self.epsilon, STRATEGIES[how]() if isinstance(how, str) else how
        if self.refit is not None and not math.isinf(epsilon):
            epsilon = cost.remaining_budget(epsilon, self.refit_epsilon)
        common: dict[str, Any] = {
            "epsilon": epsilon,
            "n_candidates": n_candidates,
            "holdout": float(how.holdout),
        }
        if isinstance(how, DisjointParts):
            return Split(**common)
        runs, eta = how.expected_runs, float(how.eta)
        if runs is None:
            runs = RUNS_PER_CANDIDATE * n_candidates
        gamma = RunCount.with_mean(eta, float(min(runs, MOST_RUNS))).gamma
        if runs > MOST_RUNS or gamma < LEAST_GAMMA:
            raise ValueError(
                f"expected_runs must be at most {MOST_RUNS:,}, and eta not so near -1 that they "
                f"are hardly ever reached, got expected_runs={runs:g} and eta={eta:g}."
            )
        return Repeat(**common, eta=eta, expected_runs=float(runs))

    def gaussian(self, strategy: Split | Repeat) -> Split | Repeat:
        """Return the strategy with Gaussian noise if that leaves more epsilon to a run.

        It hardly ever does with many runs and a small eta.
        """
        if not self.delta or math.isinf(self.epsilon):
            return strategy
        rho = strategy.run_rho(self.epsilon, self.delta, self.refit_rho)
        other = replace(strategy, delta=self.delta, rho=rho)
        more = rho and other.run_spend.epsilon > ALMOST * strategy.run_epsilon
        return other if more else strategy
