r"""The budget of a hybrid fit, from public numbers and public records alone.

The defaults (numbers of cells, weights, numbers of rounds) were found on the simulations of Wang et
al. (2018, section 5.1) and variants of them (2 to 100 columns, 500 to 20,000 records; logistic,
linear, Huber, median and Poisson regression), and on heart disease, GUSTO and infarction data in
both roles (docs/benchmarks/hybrid). They depend on the numbers of records and columns, epsilon and
the public records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from skdpsurv.dp import privacy_cost as cost
from skdpsurv.dp.checks import list_of, positive
from skdpsurv.dp.exact_vectors import require_theorem
from skdpsurv.dp.plan import Plan, Sequential
from skdpsurv.dp.privacy_cost import Concentrated, Price
from skdpsurv.dp.references import WORDS
from skdpsurv.hybrid import hybrid_measurements as measurements
from skdpsurv.hybrid.hybrid_records import PublicRecords, distinct
from skdpsurv.hybrid.meta_estimator import prediction_assumptions, takes_signed_weights
from skdpsurv.hybrid.subset import SELECTIONS, SubsetSelection
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.mechanisms.vector_noise import MARGIN

ASSUMPTIONS = tuple(WORDS["assumptions"]["hybrid"])
SUBSET = "noisy counts for nested sets of public records, and a private choice"

METHODS = ("auto", "cells", "residuals", "all", "subset")
WEIGHTS = ("auto", "signed", "nonnegative")
#: Default of ``budget_split`` (docs/benchmarks/hybrid).
SPLITS: dict[str, tuple[float, ...]] = {"auto": (0.5, 0.5), "subset": (0.1, 0.8, 0.1)}
N_CANDIDATES, SMALLEST_CANDIDATE = 10, 20
#: Largest number of dimensions in which cells locate records.
MOST_COLUMNS_FOR_CELLS = 4
LEAST_CELLS, MOST_CELLS = 10, 1000
#: Largest noise of signed weights, as a share of the number of records.
SIGNED_NOISE = 0.1
#: Largest noise of a moment with which residuals of the fit on cells are worth half of epsilon.
MOST_NOISE_AFTER_CELLS = 0.1
#: Rounds of residuals, by the largest noise of one moment in one of two rounds. Gaussian noise
#: grows little with the number of rounds.
ROUNDS = ((0.01, 3), (0.05, 2))
GAUSSIAN_ROUNDS = ((0.01, 5), (0.03, 4), (0.06, 3), (0.1, 2))
SHARES = list_of(positive())


def shares(split: Sequence[float] | None, method: str) -> tuple[float, ...]:
    """Return the parts of epsilon; a method that has one part gets all of it."""
    default = SPLITS.get(method, (1.0,))
    if split is None:
        return default
    SHARES("budget_split", split)
    stated = tuple(map(float, split))
    if len(stated) != (n := len(default)):
        raise ValueError(f"budget_split must have {n} share(s) with {method=}, got {len(stated)}.")
    if not math.isclose(total := math.fsum(stated), 1.0, rel_tol=1e-9):
        raise ValueError("budget_split must add up to 1.")
    return tuple(part / total for part in stated)


def hybrid_plan(
    records: PublicRecords,
    equal: Any,
    fit_with: Callable[[bool], measurements.Fit],
    *,
    epsilon: float,
    delta: float = 0.0,
    method: str,
    n_cells: int | None,
    split: Sequence[float] | None,
    weights: str,
    subset: SubsetSelection,
) -> Plan:
    """Return the plan of a fit; ``equal`` is the estimator fitted to public records alone."""
    parts = [epsilon * share / MARGIN for share in shares(split, method)]
    n, n_public = records.n_private, records.n_public
    n_columns = records.design_public.shape[1]
    assumptions, signed = prediction_assumptions(equal), weights == "signed"
    residuals = cache(lambda: measurements.Residuals.of(equal, records))

    def noise(budget: Price) -> float:
        bound = residuals().bound
        if not 0.0 < bound < math.inf:
            raise ValueError("public records must have numbers, and predictions, that are finite.")
        return noise_of_moments(n, n_columns, bound, budget)

    cells = 0
    sizes: tuple[int, ...] = ()
    rounds: tuple[Price, ...] = ()
    context: dict[str, Any] = {"public_index": np.arange(n_public)}
    counted: list[Any] = []
    if method in ("all", "subset"):
        cells = distinct(records.mapped()[1]).size
    if method == "all":
        counted = [measurements.PointCounts(price=parts[0], public=records)]
        if weights == "auto" and takes_signed_weights(equal):
            deviation = math.sqrt(cells) * HISTOGRAM.deviation(parts[0])
            signed = deviation <= SIGNED_NOISE * n * records.rarest
    elif method == "subset":
        sizes = candidates(subset.candidate_sizes, cells)
        choice = SELECTIONS[subset.selection]
        counted = [
            measurements.Order(price=parts[0], public=records),
            measurements.NestedCounts(
                price=parts[1], public=records, sizes=sizes, fit=fit_with(signed)
            ),
            choice(price=parts[2], public=records, n_fits=len(sizes), assumptions=assumptions),
        ]
    elif method == "residuals" or (method == "auto" and n_columns > MOST_COLUMNS_FOR_CELLS):
        rounds = _rounds(epsilon, delta, math.fsum(parts), noise)
        context |= {"weights": measurements.lifted(np.ones(n_public), n), "_residuals": residuals()}
    else:
        price = parts[0]
        if method == "auto" and noise(parts[1]) <= MOST_NOISE_AFTER_CELLS:
            rounds = (parts[1],)
        elif method == "auto":
            price = math.fsum(parts) / MARGIN
        cells = n_cells or cell_number(n, n_public, n_columns, price)
        if cells > n_public:
            raise ValueError(f"n_cells must be at most the {n_public} public records, got {cells}.")
        cells = min(cells, distinct(records.mapped(measurements.CLIPPED_SHARE)[1]).size)
        later = fit_with(False) if rounds else None
        counted = [measurements.CellCounts(price=price, public=records, n_cells=cells, fit=later)]
    if n_cells is not None and not any(isinstance(one, measurements.CellCounts) for one in counted):
        raise ValueError(f"n_cells must be None: with {method=} no cells are counted here.")
    if rounds and math.isfinite(epsilon):
        require_theorem(residuals().size)
    fits = [fit_with(False)] * (len(rounds) - 1) + [None]
    moments = [
        measurements.ResidualMoments(price=price, public=records, fit=fit, assumptions=assumptions)
        for price, fit in zip(rounds, fits, strict=False)
    ]
    inputs: dict[str, Any] = {"n_private": n, "n_public": n_public}
    inputs |= {"estimator": type(equal).__name__, "method": method, "n_cells": cells}
    inputs["epsilon_counts"] = tuple(one.price for one in counted)
    unit = "mu" if any(isinstance(price, Concentrated) for price in rounds) else "epsilon"
    inputs[f"{unit}_residuals"] = tuple(map(cost.epsilon_or_mu, rounds))
    inputs["candidate_sizes"] = sizes
    context |= {"n_cells": cells, "signed": signed and not rounds}
    words, tree = SUBSET if method == "subset" else "", Sequential((*counted, *moments))
    return Plan(
        tree, epsilon, delta, inputs=inputs, assumed=ASSUMPTIONS, words=words, context=context
    )


def _rounds(
    epsilon: float, delta: float, budget: float, noise: Callable[[Price], float]
) -> tuple[Price, ...]:
    """Return the prices of rounds of residuals that share all of a budget."""
    if delta and math.isfinite(epsilon):
        (whole,) = cost.split_gaussian(epsilon, delta, (1.0,))
        if noise(whole) < noise(budget):
            # Squares of mus of several rounds add up.
            of_two = noise(cost.share_of(whole, math.sqrt(0.5)))
            number = rounds_of_residuals(of_two, GAUSSIAN_ROUNDS)
            return (cost.share_of(whole, 1.0 / math.sqrt(number) / MARGIN),) * number
    number = rounds_of_residuals(noise(budget / 2.0), ROUNDS)
    return (budget / number / MARGIN,) * number


def candidates(stated: Sequence[int] | None, n_points: int) -> tuple[int, ...]:
    """Return the sizes of the subsets to choose from, ascending."""
    if stated is None:
        low = min(SMALLEST_CANDIDATE, n_points)
        grid = np.geomspace(low, n_points, N_CANDIDATES).round().astype(int)
        return tuple(sorted(set(grid.tolist())))
    sizes = tuple(int(size) for size in stated)
    rising = all(a < b for a, b in pairwise(sizes))
    if not sizes or sizes[0] < 1 or sizes[-1] > n_points or not rising:
        raise ValueError(f"candidate_sizes must rise from at least 1 to at most {n_points}.")
    return sizes


def cell_number(n_private: int, n_public: int, n_columns: int, epsilon: float) -> int:
    """Return m, which grows with the records, and leaves at least 5 public ones for a cell."""
    wanted = math.ceil(max(n_columns, 1) * math.sqrt(n_private * min(epsilon, 1e6)))
    return max(1, min(max(wanted, LEAST_CELLS), n_public // 5, MOST_CELLS), min(n_public, 2))


def noise_of_moments(n_private: int, n_columns: int, bound: float, price: Price) -> float:
    """Return the standard deviation of one moment's noise."""
    epsilon = cost.as_laplace(price, n_columns + 1)
    return math.sqrt(n_columns + 2) * 2.0 * bound / (epsilon * n_private)


def rounds_of_residuals(noise: float, rounds: Sequence[tuple[float, int]]) -> int:
    """Return the number of rounds of residuals, by the deviation of a moment's noise."""
    return next((number for most, number in rounds if noise <= most), 1)
