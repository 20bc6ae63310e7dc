r"""How a hybrid fit spends epsilon: decided from public numbers and public records.

The rules of what to do by default (how many cells, which weights, how many rounds) were
found on the simulations of Wang et al. (2018, section 5.1) and variants of them (2 to 100 columns,
500 to 20,000 records; logistic, linear, Huber, median and Poisson regression), and on heart
disease, GUSTO and infarction data in both roles; docs/benchmarks/hybrid says how. A rule may know
the numbers of records and columns, epsilon and everything about the public records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from skdpsurv.dp.checks import list_of, positive
from skdpsurv.dp.exact_vectors import require_theorem
from skdpsurv.dp.plan import NoisySum, Plan, Sequential
from skdpsurv.dp.privacy_cost import Concentrated, Price, as_laplace, epsilon_or_mu, share_of
from skdpsurv.dp.privacy_cost import split_gaussian as gaussian_parts
from skdpsurv.hybrid.hybrid_measurements import (
    CLIPPED_SHARE,
    CellCounts,
    Fit,
    NestedCounts,
    Order,
    PointCounts,
    ResidualMoments,
    Residuals,
    lifted,
)
from skdpsurv.hybrid.hybrid_records import PublicRecords
from skdpsurv.hybrid.points import distinct
from skdpsurv.hybrid.predictions import prediction_assumptions
from skdpsurv.hybrid.selection import SELECTIONS, SubsetChoice
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.mechanisms.vector_noise import MARGIN

ASSUMPTIONS = (
    "which records are public, and with it their number and that of the private ones, is public",
    "public records may be published as they are",
    "the types of the columns of X, and of y, are public, as is the place of each record",
)
SUBSET = "noisy counts for nested sets of public records, and a private choice"

METHODS = ("auto", "cells", "residuals", "all", "subset")
WEIGHTS = ("auto", "signed", "nonnegative")
#: budget_split by default: see docs/benchmarks/hybrid.
SPLITS: dict[str, tuple[float, ...]] = {"auto": (0.5, 0.5), "subset": (0.1, 0.8, 0.1)}
N_CANDIDATES, SMALLEST_CANDIDATE = 10, 20
#: Cells tell where records are in a few dimensions only.
MOST_COLUMNS_FOR_CELLS = 4
LEAST_CELLS, MOST_CELLS = 10, 1000
#: Share of the records' number that the noise of signed weights may reach.
SIGNED_NOISE = 0.1
#: Residuals of the fit on cells are worth half of epsilon if a moment's noise is no larger.
MOST_NOISE_AFTER_CELLS = 0.1
#: Rounds of residuals up to a noise of one moment, in one of two rounds; where it is Gaussian, each
#: of many rounds has little more of it than each of few.
ROUNDS = ((0.01, 3), (0.05, 2))
GAUSSIAN_ROUNDS = ((0.01, 5), (0.03, 4), (0.06, 3), (0.1, 2))
#: Of ``budget_split``.
SHARES = list_of(positive())


def shares(split: Sequence[float] | None, method: str) -> tuple[float, ...]:
    """Return the parts of epsilon; a method that has one part gets all of it."""
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
    if not math.isclose(total := math.fsum(stated), 1.0, rel_tol=1e-9):
        raise ValueError("budget_split must add up to 1.")
    return tuple(part / total for part in stated)


def hybrid_plan(
    records: PublicRecords,
    equal: Any,
    fit_with: Callable[[bool], Fit],
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
) -> Plan:
    """Decide how epsilon is spent, looking at public records and numbers only."""
    parts = [epsilon * share / MARGIN for share in shares(split, method)]
    n, n_public = records.n_private, records.n_public
    n_columns = records.design_public.shape[1]
    asked, signed = prediction_assumptions(equal), weights == "signed"
    residuals = cache(lambda: Residuals.of(equal, records))

    def noise(budget: Price) -> float:
        bound = residuals().bound
        if not 0.0 < bound < math.inf:
            raise ValueError("public records must have numbers, and predictions, that are finite.")
        return noise_of_moments(n, n_columns, bound, budget)

    cells = 0
    sizes: tuple[int, ...] = ()
    counted: list[NoisySum | SubsetChoice] = []
    rounds: tuple[Price, ...] = ()
    known: dict[str, Any] = {"public_index": np.arange(n_public)}
    if method in ("all", "subset"):
        cells = distinct(records.mapped()[1]).size
    if method == "all":
        counted = [PointCounts(price=parts[0], public=records)]
    elif method == "subset":
        sizes = candidates(candidate_sizes, cells)
        choice = SELECTIONS[selection]
        counted = [
            Order(price=parts[0], public=records),
            NestedCounts(price=parts[1], public=records, sizes=sizes, fit=fit_with(signed)),
            choice(price=parts[2], public=records, n_fits=len(sizes), assumptions=asked),
        ]
    elif method == "residuals" or (method == "auto" and n_columns > MOST_COLUMNS_FOR_CELLS):
        rounds = _rounds(epsilon, delta, math.fsum(parts), noise)
        known |= {"weights": lifted(np.ones(n_public), n), "_residuals": residuals()}
    else:
        price = parts[0]
        if method == "auto" and noise(parts[1]) <= MOST_NOISE_AFTER_CELLS:
            rounds = (parts[1],)
        elif method == "auto":
            price = math.fsum(parts) / MARGIN
        cells = n_cells or cell_number(n, n_public, n_columns, price)
        if cells > n_public:
            raise ValueError(
                f"n_cells must be at most the number of public records, {n_public}, got {cells}."
            )
        cells = min(cells, distinct(records.mapped(CLIPPED_SHARE)[1]).size)
        later = fit_with(False) if rounds else None
        counted = [CellCounts(price=price, public=records, n_cells=cells, fit=later)]
    if n_cells is not None and not any(isinstance(one, CellCounts) for one in counted):
        raise ValueError(
            f"n_cells must be None with method={method!r} and these columns: no cells are counted."
        )
    if rounds and math.isfinite(epsilon):
        require_theorem(residuals().size)
    if method == "all" and weights == "auto" and may_sign:
        signed = keeps_signs(cells, n, records.rarest, parts[0])
    fits = [fit_with(False)] * (len(rounds) - 1) + [None]
    moments = [
        ResidualMoments(price=price, public=records, fit=fit, assumptions=asked)
        for price, fit in zip(rounds, fits, strict=False)
    ]
    gaussian = any(isinstance(price, Concentrated) for price in rounds)
    return Plan(
        Sequential((*counted, *moments)),
        epsilon,
        delta,
        inputs={
            "n_private": n,
            "n_public": n_public,
            "estimator": type(equal).__name__,
            "method": method,
            "n_cells": cells,
            "epsilon_counts": tuple(one.price for one in counted),
            f"{'mu' if gaussian else 'epsilon'}_residuals": tuple(map(epsilon_or_mu, rounds)),
            "candidate_sizes": sizes,
        },
        assumed=ASSUMPTIONS,
        words=SUBSET if method == "subset" else "",
        known={**known, "n_cells": cells, "signed": signed and not rounds},
    )


def _rounds(
    epsilon: float, delta: float, budget: float, noise: Callable[[Price], float]
) -> tuple[Price, ...]:
    """Return the prices of rounds of residuals that share all of a budget."""
    number = rounds_of_residuals(noise(budget / 2.0), ROUNDS)
    if delta and math.isfinite(epsilon):
        (whole,) = gaussian_parts(epsilon, delta, (1.0,))
        if noise(whole) < noise(budget):
            # Of several rounds the squares of mus add up.
            of_two = noise(share_of(whole, math.sqrt(0.5)))
            number = rounds_of_residuals(of_two, GAUSSIAN_ROUNDS)
            return (share_of(whole, 1.0 / math.sqrt(number) / MARGIN),) * number
    return (budget / number / MARGIN,) * number


def candidates(stated: Sequence[int] | None, n_points: int) -> tuple[int, ...]:
    """Return the sizes of the subsets, rising."""
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


def cell_number(n_private: int, n_public: int, n_columns: int, epsilon: float) -> int:
    """Return m: more where there are more records to count, at least 5 public ones a cell."""
    signal = n_private * min(epsilon, 1e6)
    wanted = math.ceil(max(n_columns, 1) * math.sqrt(signal))
    return max(1, min(max(wanted, LEAST_CELLS), n_public // 5, MOST_CELLS), min(n_public, 2))


def keeps_signs(n_cells: int, n_private: int, rarest: float, epsilon: float) -> bool:
    """Return whether noise is small enough for negative weights to do no harm."""
    noise = math.sqrt(n_cells) * HISTOGRAM.deviation(epsilon)
    return noise <= SIGNED_NOISE * n_private * rarest


def noise_of_moments(n_private: int, n_columns: int, bound: float, price: Price) -> float:
    """Return the standard deviation of one moment's noise."""
    return math.sqrt(n_columns + 2) * 2.0 * bound / (as_laplace(price, n_columns + 1) * n_private)


def rounds_of_residuals(noise: float, rounds: Sequence[tuple[float, int]]) -> int:
    """Return how many times to look at residuals, by the deviation of a moment's noise."""
    return next((number for most, number in rounds if noise <= most), 1)
