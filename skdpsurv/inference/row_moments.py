r"""Second moments of rows as a likelihood sees them: one private query, and the laws it tells of.

A row x comes with its weight w and is lengthened by a constant C, so that the moments :math:`\sum w
(C, x)(C, x)^\top` hold the number of records (each counted with its weight) and their mean, too. A
caller promises that :math:`w(\|x\|^2 + C^2) \le 1 + C^2`.

Moments say how many records there are, their mean :math:`\mu` and their covariance S, and nothing
of the shape of their law. Rows :math:`\mu + S^{1/2} z` are made of standard ones z of three shapes:
normal, uniform, and signs. What follows from all three alike follows from the moments. Where noise
hides how far rows spread in a direction, nothing can be said of what it does: an eigenvalue of S
below :data:`KNOWN` standard deviations of the noise is *unknown*.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special
from scipy.stats import qmc

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp import random_source
from skdpsurv.dp.checks import row_pieces
from skdpsurv.dp.plan import Known, NoisySum
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.mechanisms.moments import SecondMoments

#: Standard rows of each shape, at least; and so many times the number of columns.
N_ROWS, ROWS_PER_COLUMN = 256, 8
#: Eigenvalues of fewer standard deviations of the noise are unknown.
KNOWN = 2.0
SHAPES = ("normal", "uniform", "signs")


@dataclass(frozen=True)
class CovariateDistribution:
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
    ) -> CovariateDistribution:
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


#: Where there are standard errors, rows longer than the bound are weighed instead of scaled down,
#: up to so many times the bound.
REACH = 4.0
#: The constant that rows are lengthened by, at least. A small one makes little noise on the
#: moments, a large one little noise on number and mean of the rows.
CONSTANT = 0.5

#: With more features there are too many moments for any noise.
MOST_FEATURES = 500


@dataclass(frozen=True, eq=False, kw_only=True)
class RowMoments(NoisySum):
    """What is asked of the records. A subclass says which rows, and what follows.

    Parameters
    ----------
    price : float or Concentrated
    n_records, n_features : int
    constant : float
        C.

    Raises
    ------
    ValueError
        If there are more features than anything could be said of.
    """

    n_records: int
    n_features: int
    constant: float = CONSTANT

    name = "second moments"
    theorem = reference("docs/proofs/inference", "dwork")

    def __post_init__(self) -> None:
        if self.n_features > MOST_FEATURES:
            raise ValueError(
                f"inference_share must be 0 with more than {MOST_FEATURES} features: their second "
                f"moments would drown in noise, got {self.n_features}."
            )
        self.query({})  # whose theorem is for so many numbers

    def query(self, known: Known) -> SecondMoments:
        """Of lengthened rows in units of :attr:`longest`."""
        return SecondMoments(self.n_records, self.n_features + 1, 1.0)

    def scales(self) -> list[float]:
        """Return the scale of the noise."""
        return [self.query({}).law(self.price).scale]

    @property
    def longest(self) -> float:
        """The largest norm of a lengthened row, times the root of its weight."""
        return math.hypot(1.0, self.constant)

    @abstractmethod
    def seen(self, known: Known, records: Any) -> Blocks[Any]:
        """Return records as the likelihood sees them: blocks with rows ``X`` and a ``weight``."""

    def ask(self, known: Known, records: Any) -> FloatArray:
        """Return the exact moments."""
        blocks = self.seen(known, records)
        return self.query(known).total(blocks, lambda block: self.rows(block.X, block.weight))

    def rows(self, X: FloatArray, weight: FloatArray | None) -> Iterator[FloatArray]:
        """Yield lengthened rows, times the roots of their weights, in pieces."""
        for piece in row_pieces(X.shape[0], self.n_features + 1):
            rows = X[piece, : self.n_features]
            root = 1.0 if weight is None else np.sqrt(weight[piece])
            root = np.broadcast_to(root / self.longest, rows.shape[:1])
            yield np.column_stack([self.constant * root, rows * root[:, None]])


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Noisy moments, and what rows may be that have them."""

    asked: RowMoments
    moments: FloatArray

    @property
    def law(self) -> CovariateDistribution:
        """The law that rows with these moments have, up to its shape."""
        return self._law(self.moments)

    def redrawn(self, number: int) -> list[tuple[CovariateDistribution, CovariateDistribution]]:
        """Return pairs of laws with more noise, and with the same noise less: what noise does."""
        # Noise that hides nothing: the same for everybody.
        source, query = random_source(0, purpose="moments"), self.asked.query({})
        draws = [query.noise(self.asked.price, source) for _ in range(number)]
        return [(self._law(self.moments + e), self._law(self.moments - e)) for e in draws]

    def _law(self, moments: FloatArray) -> CovariateDistribution:
        asked, unit = self.asked, self.asked.longest**2
        deviation = asked.query({}).deviation(asked.price)
        return CovariateDistribution.of_moments(
            moments * unit, asked.constant, asked.n_records, deviation * unit
        )
