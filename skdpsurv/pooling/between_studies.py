r"""How far studies differ by more than their errors, one coordinate at a time.

Of one coordinate let :math:`y_i` be the k estimates that know it, :math:`v_i` their variances,
:math:`w_i = 1 / v_i` and :math:`\bar y` their mean with these weights. Then

.. math::
   Q = \sum_i w_i (y_i - \bar y)^2, \qquad
   \tau^2 = \max\Bigl(0,\; \frac{Q - (k - 1)}{\sum_i w_i - \sum_i w_i^2 / \sum_i w_i}\Bigr),
   \qquad I^2 = \max\Bigl(0,\; \frac{Q - (k - 1)}{Q}\Bigr).

Q is Cochran's: about chi squared with k - 1 degrees of freedom where all studies have one truth.
:math:`\tau^2` is the estimate by DerSimonian and Laird of the variance of their truths, and
:math:`I^2` the part of Q beyond what errors explain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from skdpsurv.inference import Inference
from skdpsurv.types import FloatArray


@dataclass(frozen=True, eq=False)
class Spread:
    """Of each coordinate; all arrays have the shape (n_params,).

    Parameters
    ----------
    tau2 : ndarray
        Variance between the truths of studies; 0 where fewer than two know the coordinate.
    q : ndarray
        Cochran's statistic.
    df : ndarray of int
        Its degrees of freedom; -1 where no study knows the coordinate.
    """

    tau2: FloatArray
    q: FloatArray
    df: FloatArray

    @classmethod
    def of(cls, members: Sequence[Inference]) -> Self:
        """Return that of estimates of the same coordinates."""
        error = np.stack([member.standard_errors() for member in members])
        known = np.stack([member.known for member in members])
        y = np.where(known, np.stack([member.estimate for member in members]), 0.0)
        weight = np.where(known, error, np.inf) ** -2.0
        df = known.sum(axis=0) - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            total = weight.sum(axis=0)
            mean = (weight * y).sum(axis=0) / total
            q = np.where(df > 0, (weight * (y - mean) ** 2).sum(axis=0), 0.0)
            freedom = total - (weight**2).sum(axis=0) / total
            tau2 = np.where(df > 0, np.maximum(0.0, (q - df) / freedom), 0.0)
        return cls(tau2, q, df)

    @property
    def p(self) -> FloatArray:
        """Of Q, if all studies had one truth; no number where fewer than two know it."""
        found = special.chdtrc(np.maximum(self.df, 1), self.q)
        return np.where(self.df > 0, found, np.nan)

    @property
    def i2(self) -> FloatArray:
        """The part of Q beyond what errors explain; no number where fewer than two know it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(self.q > self.df, (self.q - self.df) / self.q, 0.0)
        return np.where(self.df > 0, part, np.nan)
