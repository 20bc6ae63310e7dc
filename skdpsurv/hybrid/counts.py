r"""Noisy counts of private records in public cells.

One private record that changes moves at most one unit from one cell to another: counts have L1
sensitivity 2. Laplace noise of scale :math:`2/\epsilon`, on the integers, makes all of them
together epsilon-differentially private (docs/proofs/hybrid). Neighbours: replace-one among the
private records; which records are public, and how many are private, is public.
"""

from __future__ import annotations

import math

import numpy as np

from skdpsurv.privacy import RandomSource, lattice_laplace
from skdpsurv.types import FloatArray, IntArray

__all__ = ["noisy_counts"]

#: A record leaves one cell and enters another.
SENSITIVITY = 2.0
#: Double precision can work with parts of epsilon down to this, and up to its inverse.
LEAST_EPSILON = 1e-9


def noisy_counts(counts: IntArray, epsilon: float, source: RandomSource) -> FloatArray:
    """Release the counts of a partition.

    Parameters
    ----------
    counts : ndarray of int, shape (n_cells,)
        How many private records each cell holds. Private.
    epsilon : float
        Of all counts together; inf adds no noise.
    source : RandomSource

    Returns
    -------
    ndarray of shape (n_cells,)
        Whole numbers, some of them negative.
    """
    if math.isinf(epsilon):
        return counts.astype(np.float64)
    return np.asarray(lattice_laplace(counts, SENSITIVITY / epsilon, source), dtype=np.float64)
