r"""A private life table, and the baseline hazard that it suggests.

Counts of records by band of the exit time and by event: each record is in one cell, so replacing
one record changes two cells by one. Neighbours: replace-one. Sensitivity: 2 in L1, and the root of
2 in L2. Theorem: that of a histogram (:mod:`skdpsurv.mechanisms.sums`), however many bands there
are. What follows is post-processing of public
numbers.
"""

from __future__ import annotations

import math

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.likelihoods.discrete_hazard import DiscreteHazard, hazard_block
from skdpsurv.likelihoods.links import Link
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.privacy.concentrated import Price
from skdpsurv.types import BoolArray, FloatArray, IntArray

#: Bands of the table: enough for the shape of a baseline with three knots.
N_BANDS = 4
#: How far, in standard deviations, the log-odds of the hazard and its shape may be from the prior.
LEVEL_DEVIATION, SHAPE_DEVIATION = 2.0, 0.7


def life_table_counts(exits: Blocks[tuple[IntArray, BoolArray]], n_intervals: int) -> IntArray:
    """Count private records, censored and with events, in each band of exit intervals."""
    n_bands = min(N_BANDS, n_intervals)

    def counts(block: tuple[IntArray, BoolArray]) -> IntArray:
        interval, event = block
        cell = 2 * ((interval - 1) * n_bands // n_intervals) + event
        return np.bincount(cell, minlength=2 * n_bands).astype(np.int64)

    return exits.map_sum(counts)


def baseline_from_life_table(
    counts: IntArray,
    price: Price,
    basis: FloatArray,
    link: Link,
    prior: FloatArray,
) -> FloatArray:
    """Fit baseline coefficients to a released life table, pulled to a prior as its noise demands.

    Parameters
    ----------
    counts : ndarray of shape (2 * n_bands,)
        Noisy, as :func:`life_table_counts` has them.
    price : float or Concentrated
        That the table cost: its noise is known.
    basis : ndarray of shape (n_intervals, n_basis)
        Orthogonal columns, the first one constant.
    link : Link
    prior : ndarray of shape (n_basis,)

    Returns
    -------
    coef : ndarray of shape (n_basis,)
    """
    q, n_basis = basis.shape
    table = np.maximum(counts, 0).reshape(-1, 2).astype(np.float64)
    n_bands = table.shape[0]
    middle = np.clip(np.rint((np.arange(n_bands) + 0.5) * q / n_bands), 1, q)
    censored = middle.copy()
    censored[-1] = q  # most of the last band's censored records reached the horizon
    block = hazard_block(
        np.zeros((2 * n_bands, 0)),
        np.concatenate([censored, middle]).astype(np.int64),
        np.repeat([False, True], n_bands),
    )
    weights = _in_block_order(table.T.ravel(), censored, middle)
    likelihood = DiscreteHazard(basis, 0, 0.0, link)
    # Variance of the sum of the cells' noise.
    noise = HISTOGRAM.deviation(price) ** 2 * table.size
    size = np.sqrt(np.mean(basis**2, axis=0))
    deviation = np.full(n_basis, SHAPE_DEVIATION)
    deviation[0] = LEVEL_DEVIATION
    # Ridge that minimises the squared error of a coefficient of this deviation: noise variance
    # over information and variance.
    ridge = noise * size**2 / (max(table[:, 1].sum(), math.sqrt(noise)) * deviation**2)
    coef = prior
    for _ in range(25):
        gradient, hessian = likelihood.derivatives(coef, block, weights)
        assert hessian is not None
        # The small multiple of the identity keeps the system regular beside any table.
        damping = np.diag(ridge + 1e-9 * np.trace(hessian))
        step = np.linalg.solve(hessian + damping, gradient + ridge * (coef - prior))
        largest = float(np.max(np.abs(step * size)))
        coef = coef - step * min(1.0, 1.5 / max(largest, 1e-12))
        if largest < 1e-6:
            break
    return coef


def _in_block_order(weights: FloatArray, censored: FloatArray, middle: FloatArray) -> FloatArray:
    """Sort weights as ``hazard_block`` sorts the records that they belong to."""
    survived = np.concatenate([censored, middle - 1])
    return weights[np.argsort(survived, kind="stable")]
