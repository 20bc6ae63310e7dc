r"""Least squares from noisy tables: groups that have one size everywhere, and add up to n.

Noisy cells :math:`y_{jgc}` of column j, with :math:`m_j` cells, have noise of one variance v. With
:math:`S_{jg} = \sum_c y_{jgc}`, the squares of residuals under :math:`\sum_c x_{jgc} = n_g` and
:math:`\sum_g n_g = n` are least at

.. math::
   \hat x_{jgc} = y_{jgc} + \frac{\hat n_g - S_{jg}}{m_j},\qquad
   \hat n_g = \bar n_g + \frac{n - \sum_h \bar n_h}{G},\qquad
   \bar n_g = \frac{\sum_j S_{jg} / m_j}{\sum_j 1 / m_j} .

:math:`\hat n` has the covariance :math:`C = V (I - \mathbf 1 \mathbf 1^\top / G)` with
:math:`V = v / \sum_j m_j^{-1}`, and is uncorrelated with the cells' deviations from their mean. So
two sums :math:`a^\top \hat x_j`, :math:`b^\top \hat x_j` over all groups have the covariance

.. math::
   v \sum_g \Bigl(a_g^\top b_g - \frac{A_g B_g}{m_j}\Bigr)
   + \sum_{g,h} \frac{A_g B_h}{m_j^2}\,C_{gh},\qquad A_g = \sum_c a_{gc} .

If the sizes of groups are public, they take the place of :math:`\hat n`, with C = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdpsurv.dp.types import FloatArray


@dataclass(frozen=True, eq=False)
class Sizes:
    """Sizes of the groups, and the covariance of their noise."""

    estimate: FloatArray
    covariance: FloatArray

    @classmethod
    def known(cls, sizes: FloatArray) -> Sizes:
        """Return the sizes of public groups, without errors."""
        return cls(sizes, np.zeros((sizes.size, sizes.size)))

    @classmethod
    def solved(cls, tables: list[FloatArray], variance: float, n_records: int) -> Sizes:
        """Return sizes from the sums of all tables; each has the shape (n_groups, n_cells)."""
        precision = np.array([1.0 / table.shape[1] for table in tables])
        sums = np.array([table.sum(axis=1) for table in tables])
        found = precision @ sums / precision.sum()
        n_groups = found.size
        centring = np.eye(n_groups) - 1.0 / n_groups
        found = found + (n_records - found.sum()) / n_groups
        if variance == 0.0:
            found = np.rint(found)  # exact but for rounding
        return cls(found, variance / precision.sum() * centring)


@dataclass(frozen=True, eq=False)
class Solved:
    """The cells of one column by group, as :meth:`of` solves them; their sums have known errors."""

    cells: FloatArray
    variance: float
    sizes: Sizes

    @classmethod
    def of(cls, table: FloatArray, variance: float, sizes: Sizes) -> Solved:
        """Return the least-squares solution for one table."""
        shortfall = sizes.estimate - table.sum(axis=1)
        return cls(table + shortfall[:, None] / table.shape[1], variance, sizes)

    def sums(self, forms: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weighted sums of the cells, and their covariance.

        ``forms`` holds the weights, of shape (n_sums, n_groups, n_cells).
        """
        flat, totals = forms.reshape(len(forms), -1), forms.sum(axis=2)
        m = self.cells.shape[1]
        own = self.variance * (flat @ flat.T - totals @ totals.T / m)
        return flat @ self.cells.ravel(), own + totals @ self.sizes.covariance @ totals.T / m**2
