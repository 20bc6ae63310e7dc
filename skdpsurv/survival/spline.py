r"""Natural cubic spline over the time grid, for the baseline of a hazard model.

The published basis (Nguyen and Hui, arXiv 1708.07436, section 3.2), with knots
:math:`0 = k_1 < \dots < k_e = 1` equally spaced:

.. math::
    b_1 = 1,\quad b_2 = t,\quad b_{j+2} = d_j - d_{e-1},\qquad
    d_j(t) = \frac{(t - k_j)_+^3 - (t - k_e)_+^3}{k_e - k_j}

Its columns are nearly collinear. Fits use the same space in another basis: a constant column and
columns orthogonal to it and to each other over the grid. Both are public, and so is the map
between.
"""

from __future__ import annotations

import numpy as np

from skdpsurv.types import FloatArray


def published_basis(n_intervals: int, n_knots: int) -> FloatArray:
    """Return A of shape (n_intervals, n_knots): the paper's basis at s/q, s = 1..q.

    One knot leaves the constant, two leave the straight line.
    """
    t = np.arange(1, n_intervals + 1) / n_intervals
    columns = [np.ones(n_intervals), t][:n_knots]
    if n_knots > 2:
        knots = np.linspace(0.0, 1.0, n_knots)
        cubes = np.maximum(t[:, None] - knots, 0.0) ** 3
        d = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
        columns += [d[:, j] - d[:, -1] for j in range(n_knots - 2)]
    return np.stack(columns, axis=1)


def orthogonal_basis(n_intervals: int, n_knots: int) -> FloatArray:
    """Return the same space with orthogonal columns of mean square 1, the first one constant."""
    q, r = np.linalg.qr(published_basis(n_intervals, n_knots))
    return np.asarray(q * np.sign(np.diag(r)) * np.sqrt(n_intervals))


def to_published(values: FloatArray, n_knots: int) -> FloatArray:
    """Return the coefficients in the published basis of a baseline given on the grid."""
    basis = published_basis(values.size, n_knots)
    return np.asarray(np.linalg.lstsq(basis, values, rcond=None)[0])
