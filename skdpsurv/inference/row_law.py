r"""Laws that rows may have, given their released second moments.

Moments say how many records there are (each counted with its weight), their mean :math:`\mu` and
their covariance S, and nothing of the shape of their law. Rows :math:`\mu + S^{1/2} z` are made of
standard ones z of three shapes: normal, uniform, and signs. What follows from all three alike
follows from the moments.

Where noise hides how far rows spread in a direction, nothing can be said of what it does: an
eigenvalue of S below :data:`KNOWN` standard deviations of the noise is *unknown*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special
from scipy.stats import qmc

from skdpsurv.types import BoolArray, FloatArray

__all__ = ["SHAPES", "RowLaw", "standard_rows"]

#: Standard rows of each shape, at least; and so many times the number of columns.
N_ROWS, ROWS_PER_COLUMN = 256, 8
#: Eigenvalues of fewer standard deviations of the noise are unknown.
KNOWN = 2.0
SHAPES = ("normal", "uniform", "signs")


@dataclass(frozen=True)
class RowLaw:
    """Rows of unknown shape, with these moments.

    Parameters
    ----------
    mass : float
        Number of records, each counted with its weight.
    mean : ndarray of shape (n_features,)
    values : ndarray of shape (n_features,)
        Eigenvalues of the covariance; those below what is known are raised to it.
    vectors : ndarray of shape (n_features, n_features)
        Eigenvectors, in columns.
    known : ndarray of bool of shape (n_features,)
        Which eigenvalues were.
    """

    mass: float
    mean: FloatArray
    values: FloatArray
    vectors: FloatArray
    known: BoolArray

    @classmethod
    def of_moments(
        cls, moments: FloatArray, constant: float, n_records: int, deviation: float
    ) -> RowLaw:
        """Return the law of rows with released second moments.

        Parameters
        ----------
        moments : ndarray of shape (n_features + 1, n_features + 1)
            Sums of outer products of rows and, first, a constant.
        constant : float
            Which one.
        n_records : int
            The largest mass that there can be.
        deviation : float
            Standard deviation of the noise on a diagonal entry.
        """
        least = max(1.0, 2.0 * deviation / constant**2)
        mass = float(np.clip(moments[0, 0] / constant**2, min(least, n_records), n_records))
        mean = moments[0, 1:] / (constant * mass)
        covariance = moments[1:, 1:] / mass - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance)
        least = max(KNOWN * deviation / mass, 1e-12)
        return cls(mass, mean, np.maximum(values, least), vectors, values >= least)

    def rows(self, shape: str) -> FloatArray:
        """Return rows of a shape, whose mean and covariance are those of the law."""
        root = (self.vectors * np.sqrt(self.values)) @ self.vectors.T
        return np.asarray(self.mean + standard_rows(shape, self.mean.size) @ root)


@lru_cache(maxsize=8)
def standard_rows(shape: str, n_features: int) -> FloatArray:
    """Return rows of a shape with mean 0 and the identity for covariance, always the same ones."""
    if n_features == 0:
        return np.zeros((1, 0))
    n_rows = max(N_ROWS, 2 ** int(np.ceil(np.log2(ROWS_PER_COLUMN * n_features))))
    # Shifted, as the first of Sobol's points is 0.
    uniform = qmc.Sobol(n_features, scramble=False).random(n_rows // 2)
    uniform = (uniform + np.random.default_rng(0).random(n_features)) % 1.0
    uniform = np.clip(uniform, 1e-9, 1.0 - 1e-9)
    if shape == "normal":
        rows = special.ndtri(uniform)
    else:
        rows = uniform - 0.5 if shape == "uniform" else np.sign(uniform - 0.5)
    rows = np.concatenate([rows, -rows])
    values, vectors = np.linalg.eigh(rows.T @ rows / n_rows)
    made = np.asarray(rows @ ((vectors / np.sqrt(values)) @ vectors.T))
    made.setflags(write=False)
    return made
