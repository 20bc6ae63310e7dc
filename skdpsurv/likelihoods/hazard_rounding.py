"""How far computed gradients of the hazard likelihood are off: units of the proof.

Theorem 1 of docs/proofs/rounding, for the kernel, series and knees as they are computed.
"""

from __future__ import annotations

from skdpsurv.likelihoods.base import LARGEST_BLOCK, SUM_DEPTH, SUM_ROWS
from skdpsurv.likelihoods.links import Link
from skdpsurv.pieces import CHUNK_ELEMENTS

#: Units that a slope is off by, relative to it, whatever the number of intervals, and for each of
#: them. The links' constants, of which the largest is that of the powers of cloglog.
SLOPE_ROUNDING, INTERVAL_ROUNDING = 1500.0, 4.0


def of_predictors(link: Link) -> float:
    """Return the units of 2^-53 that a predictor is off by beside its two products.

    For coefficients and a row of norm 1: its own rounding, that of a series' exponents, or that of
    a knee, at which sums are off by twice 2 j + 1 and slopes by twice j, with j of the link.
    """
    j = link.roundings
    return max(12.0, 4.0 * (2.0 * j + 1.0) + 2.0 * j)


def of_gradients(n_intervals: int) -> float:
    """Return the units of 2^-53 S that a record's gradient and its place in sums are off by.

    Slopes; then either a record's sum over its intervals and the sum over records, or, for the
    baseline, the sums over records of each interval (of pieces, of pieces in a chunk, of chunks)
    and that over intervals. Weights are two roundings.
    """
    q = float(n_intervals)
    slope = SLOPE_ROUNDING + INTERVAL_ROUNDING * q
    rows = min(SUM_ROWS, max(1, CHUNK_ELEMENTS // n_intervals))
    n_chunks = LARGEST_BLOCK / rows + 2.0
    baseline = 2.0 * SUM_ROWS + n_chunks + 2.0 * q
    return slope + 2.0 + max(baseline, SUM_DEPTH)
