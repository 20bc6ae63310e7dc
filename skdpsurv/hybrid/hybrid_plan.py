"""How a hybrid fit spends epsilon: decided from public numbers and public records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from skdpsurv.checks import list_of, positive
from skdpsurv.hybrid import auto_choices, weighings
from skdpsurv.hybrid.hybrid_records import HybridRecords, PublicRecords
from skdpsurv.hybrid.residual_moments import Residuals
from skdpsurv.hybrid.weighings import Fit, Weighing
from skdpsurv.mechanisms.vector_noise import MARGIN
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Concentrated, Price, amount, part, together
from skdpsurv.privacy.concentrated import parts as gaussian_parts
from skdpsurv.privacy.exact_vectors import require_theorem
from skdpsurv.references import reference

__all__ = ["METHODS", "SHARES", "WEIGHTS", "HybridPlan", "Spending", "make_plan", "shares"]

METHODS = ("auto", "cells", "residuals", "all", "subset")
WEIGHTS = ("auto", "signed", "nonnegative")
#: budget_split by default: see docs/benchmarks/hybrid.
SPLITS: dict[str, tuple[float, ...]] = {"auto": (0.5, 0.5), "subset": (0.1, 0.8, 0.1)}
N_CANDIDATES, SMALLEST_CANDIDATE = 10, 20
#: Double precision can work with parts of epsilon down to this, and up to its inverse.
LEAST_EPSILON = 1e-9


@dataclass(frozen=True)
class Spending:
    """What is released, and at which price.

    Parameters
    ----------
    kind : {"cells", "all", "subset"} or ""
        What is counted; "" for nothing.
    n_cells : int
        Cells, or distinct public records, that are counted.
    counts : tuple of float
        Epsilon of the counts; of order, candidates and choice for "subset".
    residuals : tuple of float or of Concentrated
        Price of each round of residuals.
    sizes : tuple of int
        Of the candidates.
    selection : str
    signed : bool
        Whether negative weights are to be kept.
    """

    kind: str
    n_cells: int
    counts: tuple[float, ...]
    residuals: tuple[Price, ...]
    sizes: tuple[int, ...]
    selection: str
    signed: bool

    @property
    def mechanism(self) -> str:
        """What was released, in words."""
        steps = {
            "cells": "noisy counts of private records in cells of the public ones",
            "all": "noisy counts of private records nearest to each public one",
            "subset": "noisy counts for nested sets of public records, and a private choice",
        }
        said = [steps[self.kind]] if self.kind else []
        if self.residuals:
            said.append("noisy moments of private residuals")
        return ", then ".join(said)

    @property
    def predicts(self) -> bool:
        """Whether estimators are asked for predictions of private records."""
        return self.kind == "subset" or bool(self.residuals)

    @property
    def rho(self) -> float | None:
        """What Gaussian noise costs, in zCDP; None if there is none."""
        gaussian = [price for price in self.residuals if isinstance(price, Concentrated)]
        return together(*gaussian).rho if gaussian else None

    def public_inputs(self) -> dict[str, Any]:
        """Return how epsilon is spent."""
        return {
            "n_cells": self.n_cells,
            "epsilon_counts": self.counts,
            f"{'mu' if self.rho else 'epsilon'}_residuals": tuple(map(amount, self.residuals)),
            "candidate_sizes": self.sizes,
        }

    def run(self, records: HybridRecords, equal: Any, fit: Fit, source: RandomSource) -> Weighing:
        """Release weights of public records.

        Parameters
        ----------
        records : HybridRecords
        equal : estimator
            Fitted to the public records alone.
        fit : callable
            Fits the estimator to public records with released weights.
        source : RandomSource
        """
        if self.kind == "all":
            return weighings.by_points(records, self.counts[0], source)
        if self.kind == "subset":
            order, candidates, choice = self.counts
            return weighings.by_subset(
                records, self.sizes, (order, candidates, choice), self.selection, fit, source
            )
        weights = np.ones(records.n_public)
        if self.kind == "cells":
            weights = weighings.by_cells(records, self.n_cells, self.counts[0], source).weights
            if self.residuals:
                equal = fit(records.design_public, records.y_public, weights)
        if not self.residuals:
            return Weighing(np.arange(records.n_public), weights)
        return weighings.by_residuals(records, self.residuals, equal, weights, fit, source)


#: Of ``budget_split``.
SHARES = list_of(positive())


@dataclass(frozen=True)
class HybridPlan:
    """The plan of a hybrid fit.

    Parameters
    ----------
    spending : Spending
    epsilon : float
    stated : mapping
        What the guarantee takes to be public, beside how epsilon is spent.
    assumptions : tuple of str
    equal : estimator
        Fitted to the public records alone.
    fit : callable
        Fits the estimator to public records with released weights.
    allowed_delta : float, default=0.0
        What Gaussian noise may use.
    """

    spending: Spending
    epsilon: float
    stated: Mapping[str, Any]
    assumptions: tuple[str, ...]
    equal: Any
    fit: Fit
    allowed_delta: float = 0.0

    @property
    def rho(self) -> float | None:
        """What Gaussian noise costs, in zCDP; None if there is none."""
        return self.spending.rho

    @property
    def delta(self) -> float:
        """What is used of the delta allowed: all of it, or nothing."""
        return 0.0 if self.rho is None else self.allowed_delta

    @property
    def proof(self) -> str:
        """Where it is proved."""
        if self.delta:
            return reference("docs/proofs/gaussian", "bun-steinke", "canonne")
        return reference("docs/proofs/hybrid", "wang", "dwork")

    @property
    def mechanism(self) -> str:
        """What is released, in words."""
        return self.spending.mechanism

    def spans(self) -> list[float]:
        """Return nothing: each part of epsilon was checked where it was made."""
        return []

    def public_inputs(self) -> dict[str, Any]:
        """Return what the guarantee takes to be public."""
        return {**self.stated, **self.spending.public_inputs()}

    def run(self, records: HybridRecords, source: RandomSource) -> dict[str, Any]:
        """Release weights of public records and, of a choice, its curve."""
        weighing = self.spending.run(records, self.equal, self.fit, source)
        values = {
            "public_index": weighing.index,
            "weights": weighing.weights,
            "n_cells": self.spending.n_cells,
            "signed": self.spending.signed,
        }
        return values if weighing.curve is None else {**values, "curve": weighing.curve}


def shares(split: Sequence[float] | None, method: str) -> tuple[float, ...]:
    """Return the parts of epsilon; a method that has one part gets all of it.

    Raises
    ------
    ValueError, TypeError
        If there are too many or too few, or one is not positive, or they do not add up to 1.
    """
    default = SPLITS.get(method, (1.0,))
    if split is None:
        return default
    SHARES("budget_split", split)
    stated = tuple(map(float, split))
    if len(stated) != len(default):
        raise ValueError(
            f"budget_split must have {len(default)} share(s) with method={method!r}, got "
            f"{len(stated)}."
        )
    total = math.fsum(stated)
    if not math.isclose(total, 1.0, rel_tol=1e-9):
        raise ValueError("budget_split must add up to 1.")
    return tuple(part / total for part in stated)


def make_plan(
    records: PublicRecords,
    equal: Any,
    *,
    epsilon: float,
    method: str,
    n_cells: int | None,
    split: Sequence[float] | None,
    candidate_sizes: Sequence[int] | None,
    selection: str,
    weights: str,
    may_sign: bool,
    delta: float = 0.0,
) -> Spending:
    """Decide how epsilon is spent, looking at public records and numbers only.

    Parameters
    ----------
    records : PublicRecords
    equal : estimator
        Fitted to the public records alone.
    may_sign : bool
        Whether the estimator is one for which negative weights are sound.
    delta : float, default=0.0
        Of Gaussian noise, which residuals have where it is less; 0 for none.
    """
    parts = [epsilon * share / MARGIN for share in shares(split, method)]
    n, n_public = records.n_private, records.n_public
    X = records.design_public
    counts: tuple[float, ...] = ()
    rounds: tuple[Price, ...] = ()
    sizes: tuple[int, ...] = ()
    kind, cells = "", 0

    def noise(budget: Price) -> float:
        bound = Residuals.at(equal, X, records.y_public).bound
        if not 0.0 < bound < math.inf:
            raise ValueError("public records must have numbers, and predictions, that are finite.")
        return auto_choices.noise_of_moments(n, X.shape[1], bound, budget)

    if method in ("all", "subset"):
        kind, counts = method, tuple(parts)
        cells = weighings.distinct(records.public_points()).size
        sizes = candidates(candidate_sizes, cells) if method == "subset" else ()
    elif method == "residuals" or (
        method == "auto" and X.shape[1] > auto_choices.MOST_COLUMNS_FOR_CELLS
    ):
        budget = math.fsum(parts)
        number = auto_choices.rounds_of_residuals(noise(budget / 2.0))
        rounds = (budget / number / MARGIN,) * number
        if delta and math.isfinite(epsilon):
            (whole,) = gaussian_parts(epsilon, delta, (1.0,))
            if noise(whole) < noise(budget):
                # Of several rounds the squares of mus add up.
                of_two = noise(part(whole, math.sqrt(0.5)))
                number = auto_choices.rounds_of_gaussian_residuals(of_two)
                rounds = (part(whole, 1.0 / math.sqrt(number) / MARGIN),) * number
    else:
        kind, counts = "cells", (parts[0],)
        if method == "auto" and auto_choices.follows_cells(noise(parts[1])):
            rounds = (parts[1],)
        elif method == "auto":
            counts = (math.fsum(parts) / MARGIN,)
        cells = n_cells or auto_choices.cell_number(n, n_public, X.shape[1], counts[0])
        if cells > n_public:
            raise ValueError(
                f"n_cells must be at most the number of public records, {n_public}, got {cells}."
            )
        cells = min(cells, weighings.distinct(records.public_points(weighings.CLIPPED_SHARE)).size)
    if math.isfinite(epsilon) and not all(
        LEAST_EPSILON <= amount(price) <= 1.0 / LEAST_EPSILON for price in (*counts, *rounds)
    ):
        raise ValueError(
            f"epsilon must be such that each part is between {LEAST_EPSILON:g} and "
            f"{1.0 / LEAST_EPSILON:g}, or inf."
        )
    if rounds and math.isfinite(epsilon):
        moments = Residuals.at(equal, X, records.y_public).moments(X[:1], records.y_public[:1])
        require_theorem(moments.size)
    signed = weights == "signed" or (
        weights == "auto"
        and may_sign
        and kind == "all"
        and auto_choices.keeps_signs(cells, n, records.rarest, counts[0])
    )
    return Spending(kind, int(cells), counts, rounds, sizes, selection, signed and not rounds)


def candidates(stated: Sequence[int] | None, n_points: int) -> tuple[int, ...]:
    """Return the sizes of the subsets, rising.

    Raises
    ------
    ValueError
        If they do not rise from at least 1 to at most the number of distinct public records.
    """
    if stated is None:
        low = min(SMALLEST_CANDIDATE, n_points)
        grid = np.geomspace(low, n_points, N_CANDIDATES).round().astype(int)
        return tuple(sorted(set(grid.tolist())))
    sizes = tuple(int(size) for size in stated)
    rising = all(a < b for a, b in pairwise(sizes))
    if not sizes or sizes[0] < 1 or sizes[-1] > n_points or not rising:
        raise ValueError(
            "candidate_sizes must rise from at least 1 to at most the number of distinct public "
            f"records, {n_points}."
        )
    return sizes
