"""The protocol of likelihoods: all methods that a mechanism may call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from skdpsurv.data.blocks import Blocks, pairwise_sum
from skdpsurv.dp.clipping import row_pieces
from skdpsurv.dp.types import FloatArray, IntArray

#: Rows that are added up one after another. Longer sums add such pieces in pairs, so that rounding
#: does not grow with the number of records.
SUM_ROWS = 256
#: Records whose derivatives are added up at once; larger blocks are cut.
LARGEST_BLOCK = 2**16
#: Units of 2^-53 that exp, expm1, expit and erfcx may be off by, relative to their values: eight in
#: the last place. An assumption about NumPy and SciPy, which the tests compare with 50 digits.
ELEMENTARY = 16.0
#: Roundings of :func:`weighted_sum`: a piece, pieces in pairs, and the remainder.
SUM_DEPTH = SUM_ROWS + 64.0 + 2.0


@dataclass(frozen=True)
class PrivacyConstants:
    """Bound one record's influence, before any record is seen.

    Parameters
    ----------
    gradient_sensitivity : float
        S, the largest ``||grad l(f; z) - grad l(f; z')||_2`` over every coefficient vector f and
        every two records z, z' of the public domain. No gradient by itself is longer, either.
    hessian_trace : float
        tau, the largest trace of the Hessian of one record's loss, wherever it exists.
    hessian_rank : int
        r, the largest rank of that Hessian.
    rounding : float
        Units of 2^-53 S that one record's computed gradient may be off by, its place in the sum
        over a block included and its predictor excluded (docs/proofs/rounding).
    predictor_rounding : float
        Units of 2^-53 that a linear predictor may be off by, for coefficients and a row of norm 1.
    loss_at_zero : float
        The largest loss of a record at the coefficients 0, less the least anywhere; inf if unknown.

    Notes
    -----
    Every proof about perturbation starts from the first three numbers and from a convex loss that
    is continuously differentiable with a Lipschitz gradient. The others are for the proof about
    the program (docs/proofs/rounding); their defaults suit a likelihood without such a proof.
    """

    gradient_sensitivity: float
    hessian_trace: float
    hessian_rank: int
    rounding: float = 2.0**12
    predictor_rounding: float = 2.0**8
    loss_at_zero: float = math.inf


class Derivatives(NamedTuple):
    """Sums over a block: gradient (n_params,), Hessian (n_params, n_params) or None."""

    gradient: FloatArray
    hessian: FloatArray | None


class Linearized(NamedTuple):
    """Losses at a point, in the block's order; and a map from weights to the weighted gradient."""

    losses: FloatArray
    gradient: Callable[[FloatArray], FloatArray]


class Likelihood(Protocol):
    """A convex per-record loss with its privacy constants.

    Derivatives are sums over a block, so that blocks may live anywhere (memory, files, workers) and
    partial sums add up. Minimisation needs no values of losses.
    """

    @property
    def n_params(self) -> int:
        """Length of the coefficient vector."""

    @property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record, from public quantities alone."""

    def stated(self) -> Mapping[str, Any]:
        """Return the public numbers that the constants follow from, for a release."""

    def n_records(self, block: Any) -> int:
        """Return the number of records in a block."""

    def thin(self, block: Any, step: int) -> Any:
        """Return every ``step``-th record, for a cheap starting point."""

    def take(self, block: Any, rows: IntArray | slice) -> Any:
        """Return the records at the positions ``rows``, ascending, possibly more than once."""

    def losses(self, coef: FloatArray, block: Any) -> FloatArray:
        """Return one loss per record, in the block's order."""

    def linearized(self, coef: FloatArray, block: Any, tolerance: float = 1e-15) -> Linearized:
        """Return losses and weighted gradients, to a relative error of ``tolerance``."""

    def derivatives(
        self, coef: FloatArray, block: Any, weights: FloatArray | None = None, order: int = 2
    ) -> Derivatives:
        """Return the sums over the block of the (weighted) gradients and, at order 2, Hessians."""


def block_derivatives(
    likelihood: Likelihood, coef: FloatArray, order: int, block: Any
) -> Derivatives:
    """Return the derivatives summed over a block of any size, in pieces of ``LARGEST_BLOCK``."""
    n = likelihood.n_records(block)
    if n <= LARGEST_BLOCK:
        return likelihood.derivatives(coef, block, order=order)
    pieces = (
        likelihood.take(block, slice(start, start + LARGEST_BLOCK))
        for start in range(0, n, LARGEST_BLOCK)
    )
    total: Derivatives = pairwise_sum(
        likelihood.derivatives(coef, piece, order=order) for piece in pieces
    )
    return total


class BlockLikelihood:
    """Base of likelihoods whose blocks are named tuples of arrays; a field may be None."""

    def thin(self, block: Any, step: int) -> Any:
        return type(block)(*(None if f is None else np.ascontiguousarray(f[::step]) for f in block))

    def take(self, block: Any, rows: IntArray | slice) -> Any:
        return type(block)(*(None if field is None else field[rows] for field in block))

    def linearized(self: Any, coef: FloatArray, block: Any, tolerance: float = 1e-15) -> Linearized:
        return Linearized(
            self.losses(coef, block),
            lambda weights: self.derivatives(coef, block, weights, order=1).gradient,
        )


def counted(own: FloatArray | None, weights: FloatArray | None) -> FloatArray | None:
    """Return the product of records' own weights and others; None means 1."""
    if own is None or weights is None:
        return weights if own is None else own
    return own * weights


def weighted_sum(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Return ``weights @ rows``, off by at most ``SUM_ROWS + log2(n)`` ulps of the magnitudes' sum.

    Pieces of ``SUM_ROWS`` rows are BLAS products; NumPy adds the pieces in pairs (last axis).
    """
    n, width = rows.shape
    m = n // SUM_ROWS
    whole = m * SUM_ROWS
    pieces = weights[:whole].reshape(m, 1, SUM_ROWS) @ rows[:whole].reshape(m, SUM_ROWS, width)
    total = np.ascontiguousarray(pieces[:, 0, :].T).sum(axis=1)
    return np.asarray(total + weights[whole:] @ rows[whole:])


#: Rows that :func:`gram` takes at once are at least those of so many columns, 512.
GRAM_COLUMNS = 64


def gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the sum of ``weights[i] * outer(rows[i], rows[i])``."""
    n_rows, n_columns = rows.shape
    total = np.zeros((n_columns, n_columns))
    # Products of many columns are fast with many rows.
    for piece in row_pieces(n_rows, min(n_columns, GRAM_COLUMNS)):
        part, weight = rows[piece], weights[piece, None]
        if 2 * np.count_nonzero(weight) < weight.size:
            used = np.flatnonzero(weight)
            part, weight = part[used], weight[used]
        if weight.min(initial=0.0) < 0.0:
            total += (part * weight).T @ part
        else:
            part = part * np.sqrt(weight)
            total += part.T @ part  # NumPy sees that this is symmetric, and computes one half
    return total


# ---- Distances of neighbours, at public points: measured, where proofs have bounds.

#: Distances from a centre at which derivatives are compared, and the most coordinates used.
STEPS, MOST_COORDINATES = (0.3, 1.0, 3.0, 10.0, 100.0), 6
#: Eigenvalues below this part of the largest trace are rounding.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Sensitivity:
    """Distance of neighbours' gradients at a point, and eigenvalues of the Hessians' difference.

    One record's Hessian adds positive eigenvalues and the other's negative ones, so that neither
    side has a larger trace or rank than a record's Hessian.
    """

    gradient: float
    eigenvalues: FloatArray

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """The sizes of positive eigenvalues, and of negative ones."""
        return np.maximum(self.eigenvalues, 0.0), np.maximum(-self.eigenvalues, 0.0)

    @property
    def trace(self) -> float:
        """Larger one of the traces of the positive and of the negative part."""
        return max(float(side.sum()) for side in self.sides)

    def rank(self, largest_trace: float) -> int:
        """Return the larger one of the ranks of the positive and of the negative part."""
        least = RANK_TOLERANCE * largest_trace
        return max(int(np.count_nonzero(side > least)) for side in self.sides)


def sensitivities(
    likelihood: Likelihood, one: Blocks[Any], other: Blocks[Any], center: FloatArray
) -> Iterator[Sensitivity]:
    """Yield the distance of two data sets' derivatives, at points around a centre."""

    def difference(point: FloatArray) -> tuple[FloatArray, Sensitivity]:
        at = partial(block_derivatives, likelihood, point, 2)
        mine, theirs = one.map_reduce(at), other.map_reduce(at)
        gradient = mine.gradient - theirs.gradient
        hessian = np.asarray(mine.hessian) - np.asarray(theirs.hessian)
        return gradient, Sensitivity(float(np.linalg.norm(gradient)), np.linalg.eigvalsh(hessian))

    gradient, move = difference(center)
    yield move
    for point in around(center, gradient):
        yield difference(point)[1]


def around(center: FloatArray, *directions: FloatArray) -> Iterator[FloatArray]:
    """Yield points around a centre: in given directions, in that of all coordinates, in single."""
    size = center.size
    found = np.vstack([*directions, np.ones(size), np.eye(size)[:MOST_COORDINATES]])
    found = found[np.linalg.norm(found, axis=1) > 0.0]
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    for step in STEPS:
        for direction in (*found, *-found):
            yield center + step * direction
