"""The two ways to choose privately: who is trained on what, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Price
from skdpsurv.privacy.run_count import RunCount
from skdpsurv.privacy.run_price import Spend, concentrated, spend_of
from skdpsurv.privacy.shares import at_most
from skdpsurv.types import IndexArray

__all__ = ["Parts", "Repeat", "Split"]


class Parts(NamedTuple):
    """Disjoint parts of the private records, by their places; public.

    Parameters
    ----------
    training : sequence of ndarray
        What candidates are trained on: a part for each, or one for all.
    scoring : ndarray
        What all are scored on; shares no record with any of the others.
    """

    training: Sequence[IndexArray]
    scoring: IndexArray


@dataclass(frozen=True)
class Split:
    """Each candidate on a part of its own, and a choice by permute-and-flip.

    Parameters
    ----------
    epsilon : float
        Of the whole.
    n_candidates : int
    holdout : float
        Share of the records to score on.
    delta : float, default=0.0
    rho : float, default=0.0
        Of each candidate's training, and of the choice, where all noise of training is Gaussian.
    """

    epsilon: float
    n_candidates: int
    holdout: float
    delta: float = 0.0
    rho: float = 0.0

    word: ClassVar[str] = "split"
    mechanism: ClassVar[str] = "permute-and-flip among candidates on disjoint parts of the records"

    @property
    def run_epsilon(self) -> float:
        """Epsilon of each candidate's training, and of the choice."""
        # Permute-and-flip at e is (e**2 / 2)-zCDP.
        return concentrated(self.rho).mu if self.rho else self.epsilon

    @property
    def run_spend(self) -> Spend:
        """What each candidate is given to spend."""
        return spend_of(self.rho, self.delta) if self.rho else Spend(self.epsilon)

    @property
    def price(self) -> Price:
        """What each training costs, and the choice."""
        return concentrated(self.rho) if self.rho else self.epsilon

    def parts(self, n_records: int, source: RandomSource) -> Parts:
        """Deal records to parts, by their number and the stream alone."""
        training, scoring = _held_out(n_records, self.holdout, self.n_candidates, source)
        return Parts(np.array_split(training, self.n_candidates), scoring)

    def training(self, parts: Parts) -> Sequence[IndexArray]:
        """Return what each candidate is trained on."""
        return parts.training

    def public_inputs(self) -> dict[str, Any]:
        """Return the numbers that the guarantee rests on."""
        return {"rho_run": self.rho} if self.rho else {"epsilon_run": self.run_epsilon}


@dataclass(frozen=True)
class Repeat:
    """A random number of runs of random candidates, of which the best is kept.

    Parameters
    ----------
    epsilon : float
        Of the whole.
    n_candidates : int
    holdout : float
        Share of the records to score on.
    eta : float
        Of the law of the number of runs.
    expected_runs : float
        Its expectation.
    delta : float, default=0.0
    rho : float, default=0.0
        Of each run, where all of its noise is Gaussian.
    """

    epsilon: float
    n_candidates: int
    holdout: float
    eta: float
    expected_runs: float
    delta: float = 0.0
    rho: float = 0.0

    word: ClassVar[str] = "repeat"
    mechanism: ClassVar[str] = "best of a random number of private runs of random candidates"

    @property
    def run_epsilon(self) -> float:
        """Epsilon of one run: the maximum of training and scoring, on disjoint parts."""
        return at_most(self.epsilon, 2 + Fraction(self.eta))

    @property
    def run_spend(self) -> Spend:
        """What each candidate is given to spend."""
        return spend_of(self.rho, self.delta) if self.rho else Spend(self.run_epsilon)

    @property
    def price(self) -> Price:
        """What each training costs, and the noise on a sum of losses of other records."""
        return concentrated(self.rho) if self.rho else self.run_epsilon

    @property
    def count(self) -> RunCount:
        """The law of the number of runs."""
        return RunCount.with_mean(self.eta, self.expected_runs)

    def parts(self, n_records: int, source: RandomSource) -> Parts:
        """Deal records to two parts, by their number and the stream alone."""
        training, scoring = _held_out(n_records, self.holdout, 1, source)
        return Parts([training], scoring)

    def training(self, parts: Parts) -> Sequence[IndexArray]:
        """Return what each candidate is trained on."""
        return list(parts.training) * self.n_candidates

    def public_inputs(self) -> dict[str, Any]:
        """Return the numbers that the guarantee rests on."""
        return {
            **({"rho_run": self.rho} if self.rho else {"epsilon_run": self.run_epsilon}),
            "eta": self.eta,
            "expected_runs": self.expected_runs,
        }


def _held_out(
    n_records: int, holdout: float, n_parts: int, source: RandomSource
) -> tuple[IndexArray, IndexArray]:
    n_scoring = max(1, round(holdout * n_records))
    if n_records - n_scoring < n_parts:
        raise ValueError(
            f"X must hold a record for each of the {n_parts} parts to train on, and one to score "
            f"on, got n_samples={n_records}."
        )
    order = source.generator.permutation(n_records)
    return order[n_scoring:], order[:n_scoring]
