"""What a mechanism may ask of a likelihood, and nothing more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from skdpsurv.data.blocks import pairwise_sum
from skdpsurv.dp.checks import row_pieces
from skdpsurv.dp.types import FloatArray, IntArray

#: Rows that are added up one after another; longer sums are made of such pieces, in pairs, so that
#: rounding cannot pile up however many equal records there are.
SUM_ROWS = 256
#: Records whose derivatives are added up at once: a larger block is cut, so that the number of such
#: pieces is bounded whoever made the blocks.
LARGEST_BLOCK = 2**16
#: Units of 2^-53 that exp, expm1, expit and erfcx may be off by, relative to their values: eight in
#: the last place. An assumption about NumPy and SciPy, which the tests compare with 50 digits.
ELEMENTARY = 16.0
#: Roundings of the longest sum of :func:`weighted_sum`: of a piece, of pieces in pairs, and of what
#: is left over.
SUM_DEPTH = SUM_ROWS + 64.0 + 2.0


@dataclass(frozen=True)
class PrivacyConstants:
    """Bounds on one record's influence, known before any record is seen.

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
        Units of 2^-53 S that the computed gradient of one record, and its place in the sum over a
        block, may be off by, beside what the predictor is off by (docs/proofs/rounding).
    predictor_rounding : float
        Units of 2^-53 that a linear predictor may be off by, for coefficients and a row of norm 1.
    loss_at_zero : float
        The largest loss of a record at the coefficients 0, less the least anywhere. inf: not known.

    Notes
    -----
    Every proof about perturbation in this package starts from the first three numbers and from the
    convexity of a loss that is continuously differentiable with a Lipschitz gradient; the others
    are for the proof about the program (docs/proofs/rounding). Their defaults are for a likelihood
    that nobody has proved anything of.
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
    """Losses at a point, and the gradient there of any weighting of them.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        In the block's order.
    gradient : callable
        From weights of shape (n,) to the sum of the weighted gradients, of shape (n_params,).
    """

    losses: FloatArray
    gradient: Callable[[FloatArray], FloatArray]


class Likelihood(Protocol):
    """A convex per-record loss, summed over blocks of records, with its privacy constants.

    Losses and derivatives are sums over a block, so that blocks may live anywhere (memory, files,
    workers) and partial sums add up. Values are asked for apart (``losses``): minimisation needs
    none, and they cost a logarithm per record and interval.
    """

    @property
    def n_params(self) -> int:
        """Length of the coefficient vector."""
        ...

    @property
    def constants(self) -> PrivacyConstants:
        """S, tau and r of one record, from public quantities alone."""
        ...

    def n_records(self, block: Any) -> int:
        """Return the number of records in a block."""
        ...

    def thin(self, block: Any, step: int) -> Any:
        """Return every ``step``-th record, for a cheap starting point."""
        ...

    def take(self, block: Any, rows: IntArray | slice) -> Any:
        """Return the records at the positions ``rows``, ascending, possibly more than once."""
        ...

    def losses(self, coef: FloatArray, block: Any) -> FloatArray:
        """Return one loss per record, in the block's order."""
        ...

    def linearized(self, coef: FloatArray, block: Any, tolerance: float = 1e-15) -> Linearized:
        """Return losses and weighted gradients, for weights that depend on the losses.

        ``tolerance`` is the relative error that a caller does not mind.
        """
        ...

    def derivatives(
        self, coef: FloatArray, block: Any, weights: FloatArray | None = None, order: int = 2
    ) -> Derivatives:
        """Return the sums over the block of the (weighted) gradients and, at order 2, Hessians."""
        ...


def block_derivatives(
    likelihood: Likelihood, coef: FloatArray, order: int, block: Any
) -> Derivatives:
    """Return the derivatives summed over a block of any size, in pieces of ``LARGEST_BLOCK``.

    The block comes last: what goes to where blocks are is a partial of this, and no more than that.
    """
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


AnyBlock = TypeVar("AnyBlock", bound=tuple[Any, ...])


def each_field(block: AnyBlock, function: Callable[[Any], Any]) -> AnyBlock:
    """Return a block of what a function makes of each field; a field that is None stays so."""
    make: Callable[..., AnyBlock] = type(block)
    return make(*(None if field is None else function(field) for field in block))


class BlockLikelihood:
    """What likelihoods have in common whose blocks are named tuples of arrays, one with times."""

    def thin(self, block: AnyBlock, step: int) -> AnyBlock:
        """Return every ``step``-th record."""
        return each_field(block, lambda field: np.ascontiguousarray(field[::step]))

    def take(self, block: AnyBlock, rows: IntArray | slice) -> AnyBlock:
        """Return the records at the positions ``rows``, ascending."""
        return each_field(block, lambda field: field[rows])

    def linearized(self: Any, coef: FloatArray, block: Any, tolerance: float = 1e-15) -> Linearized:
        """Return losses and weighted gradients; always to rounding."""
        return Linearized(
            self.losses(coef, block),
            lambda weights: self.derivatives(coef, block, weights, order=1).gradient,
        )


def counted(own: FloatArray | None, weights: FloatArray | None) -> FloatArray | None:
    """Return weights of records times how often these count; None: each once."""
    if own is None or weights is None:
        return weights if own is None else own
    return own * weights


def weighted_sum(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Return ``weights @ rows`` with an error that does not grow with the number of rows.

    Pieces of ``SUM_ROWS`` rows are BLAS products; the pieces are added in pairs (NumPy adds along
    the last axis so), for an error of at most ``SUM_ROWS + log2(n)`` ulps of the sum of magnitudes.
    """
    n, width = rows.shape
    m = n // SUM_ROWS
    whole = m * SUM_ROWS
    pieces = weights[:whole].reshape(m, 1, SUM_ROWS) @ rows[:whole].reshape(m, SUM_ROWS, width)
    total = np.ascontiguousarray(pieces[:, 0, :].T).sum(axis=1)
    return np.asarray(total + weights[whole:] @ rows[whole:])


def gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the sum of ``weights[i] * outer(rows[i], rows[i])``."""
    n_columns = rows.shape[1]
    total = np.zeros((n_columns, n_columns))
    for piece in row_pieces(*rows.shape):
        part = rows[piece]
        total += (part * weights[piece, None]).T @ part
    return total
