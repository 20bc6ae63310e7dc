r"""Noise on symmetric matrices, drawn in many digits: the difference of two semidefinite ones.

The noise is :math:`E = A - B` with A and B positive semidefinite, of joint density
:math:`\propto e^{-\max(\mathrm{tr} A, \mathrm{tr} B)/\text{scale}}`. With :math:`p = D(D + 1)/2`
for D rows, both matrices over their traces are independent Wishart matrices, of D + 1 degrees of
freedom, over theirs; the larger trace is a Gamma variable of shape 2p, the smaller one the largest
of p uniform numbers times this, and either of them may be the larger one.

Theorem (docs/proofs/noise, "The program's noise on matrices"): for :math:`2p \le 6 \cdot 10^5`, the
sum of a matrix and such noise, rounded to a lattice, has the distribution of the ideal one within a
total variation of :math:`10^{-30}`, as vectors with noise have (:mod:`~skdpsurv.dp.exact_vectors`).
"""

from __future__ import annotations

import math
from operator import mul

import numpy as np

from skdpsurv.dp.exact_vectors import BITS, ExactVector, exact_gamma, exact_normals, require_theorem
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.types import FloatArray


def n_entries(width: int) -> int:
    """Return the number of entries on and above the diagonal."""
    return width * (width + 1) // 2


def exact_semidefinite_laplace(width: int, scale: float, source: RandomSource) -> ExactVector:
    """Return the upper triangle of the noise, row by row, in many digits."""
    size = n_entries(width)
    require_theorem(2 * size)
    larger = exact_gamma(2 * size, source)
    smaller = larger * (max(source.words(size, BITS)) + 1) >> BITS
    traces = (larger, smaller) if source.bits(1) else (smaller, larger)
    first, second = (_with_trace(trace, width, source) for trace in traces)
    return ExactVector([a - b for a, b in zip(first, second, strict=True)], scale)


def _with_trace(trace: int, width: int, source: RandomSource) -> list[int]:
    """Return the upper triangle of a Wishart matrix of width + 1 degrees of freedom, rescaled.

    It is L L' with L lower triangular (Bartlett): normal numbers, and on the diagonal the length of
    those that are right of it in a row of width + 1.
    """
    normal = exact_normals(width * (width + 1), source)
    rows = []
    for i in range(width):
        row = normal[i * (width + 1) : (i + 1) * (width + 1)]
        rows.append([*row[:i], math.isqrt(sum(z * z for z in row[i:]))])
    own = max(sum(z * z for row in rows for z in row), 1)
    # The shorter of two rows ends where both have entries.
    return [
        trace * sum(map(mul, row, other)) // own for i, row in enumerate(rows) for other in rows[i:]
    ]


def semidefinite_laplace(width: int, scale: float, source: RandomSource) -> FloatArray:
    """Return the upper triangle of the noise: the nearest doubles or, of a seed, a draw in doubles.

    Examples
    --------
    >>> from skdpsurv.dp import random_source
    >>> from skdpsurv.dp.exact_matrices import semidefinite_laplace
    >>> semidefinite_laplace(3, 0.5, random_source(None)).shape
    (6,)
    """
    if source.exact:
        return exact_semidefinite_laplace(width, scale, source).nearest_doubles()
    generator, size = source.generator, n_entries(width)
    larger = generator.gamma(2 * size, scale)
    traces = [larger, larger * generator.random() ** (1.0 / size)]
    noise = np.zeros((width, width))
    for trace, sign in zip(generator.permutation(traces), (1.0, -1.0), strict=True):
        normal = generator.standard_normal((width, width + 1))
        noise += sign * trace / np.sum(normal**2) * (normal @ normal.T)
    return np.asarray(noise[np.triu_indices(width)])
