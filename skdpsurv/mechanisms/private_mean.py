r"""Mean of norm-bounded rows, with noise on all of it.

Neighbours: replace-one. Sensitivity: with rows clipped to :math:`\|x\|_2 \le R`, changing one of n
rows moves the mean by at most :math:`2R/n`. Theorem: adding noise with density :math:`\propto
e^{-\epsilon n\|e\|_2/(2R)}` is epsilon-differentially private (docs/proofs/noise), and Gaussian
noise of deviation :math:`2R/(n\mu)` is :math:`\tfrac12\mu^2`-zCDP (docs/proofs/gaussian). The
sum is exact, and the noise as a program within 1e-30 of its law (docs/proofs/noise).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.mechanisms.vector_noise import Spherical, add_noise, law_hiding
from skdpsurv.pieces import row_pieces
from skdpsurv.privacy import RandomSource, clip_rows, to_lattice
from skdpsurv.privacy.concentrated import Price, amount
from skdpsurv.privacy.measurement import Distances
from skdpsurv.types import FloatArray, IntArray

#: Share of the expected squared noise that is taken off. James and Stein take it all; a quarter
#: keeps more of a noisy mean, and did better on simulated data (docs/benchmarks/accuracy).
SHRINKAGE = 0.25


@dataclass(frozen=True)
class MeanOfRows:
    """A query for the mean of rows; public.

    Parameters
    ----------
    n_records, n_features : int
    data_norm : float
        R: longer rows are clipped to it.
    """

    n_records: int
    n_features: int
    data_norm: float

    @property
    def sensitivity(self) -> float:
        """How far one record moves the mean in L2, with what rounding may add."""
        # Rows in the unit ball are rounded to multiples of 2^-30, which moves one by at most
        # sqrt(n_features) 2^-31; that the exact sum becomes a double costs n 2^-52 more.
        slack = math.sqrt(self.n_features) * (2.0**-31 + self.n_records * 2.0**-52)
        return 2.0 * (1.0 + slack) * self.data_norm / self.n_records

    def law(self, price: Price) -> Spherical:
        """Return the law of the noise."""
        return law_hiding(self.n_features, self.sensitivity, price)

    def deviation(self, price: Price) -> float:
        """Return the standard deviation of the noise on each number."""
        return self.law(price).deviation

    def mean(self, blocks: Blocks[FloatArray]) -> FloatArray:
        """Return the mean of private rows, finite, which are clipped here: an exact sum."""
        total = blocks.map_sum(partial(_lattice_total, self.data_norm))
        return np.asarray(total * (2.0**-30 * self.data_norm / self.n_records))

    def release(self, exact: FloatArray, price: Price, source: RandomSource) -> FloatArray:
        """Return the mean with noise; without privacy as it is."""
        if math.isinf(amount(price)):
            return exact
        return add_noise(exact, self.law(price), source)

    def distances(self, one: FloatArray, other: FloatArray) -> Distances:
        """Return how far means of neighbours are apart, and may be."""
        return [("in L2", float(np.linalg.norm(one - other)), self.sensitivity)]

    def shrunk(self, noisy: FloatArray, price: Price) -> tuple[FloatArray, float]:
        """Return a released mean, shrunk by what its own noise level says.

        Returns
        -------
        mean : ndarray of shape (n_features,)
            Of norm at most R. Shrunk towards 0 as James and Stein do, by the public noise level: a
            mean that is nothing but noise comes out as 0.
        spread : float
            Bound on the root mean square distance of the clipped rows from their mean, by
            Pythagoras: ``sqrt(R^2 - ||mean||^2)``; a function of the released mean.
        """
        length = float(np.linalg.norm(noisy))
        if length == 0.0:
            return noisy, self.data_norm
        noise_length = self.law(price).mean_norm
        kept = min(max(0.0, length - SHRINKAGE * noise_length**2 / length), self.data_norm)
        return noisy * (kept / length), float(np.sqrt(self.data_norm**2 - kept**2))


def _lattice_total(data_norm: float, rows: FloatArray) -> IntArray:
    """Return the sum of the clipped rows, in the unit ball, in multiples of 2^-30; exact."""
    total = np.zeros(rows.shape[1], dtype=np.int64)
    for piece in row_pieces(*rows.shape):
        total += to_lattice(clip_rows(rows[piece], data_norm) / data_norm).sum(axis=0)
    return total
