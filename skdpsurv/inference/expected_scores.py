"""Expected scores of a likelihood, by the model, over rows of which moments are known.

Records may be in public classes, whose rows have other means, and whose responses follow other laws
or have a common part of their own: expectations are sums over these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference.covariates import CovariateDistribution

#: Rows of each class.
Rows = list[FloatArray]


class Response(Protocol):
    """The distribution of a record's outcome, in C cells, given a linear predictor of n rows.

    The predictor has a common part, k coefficients ``a``, and the rows' part b, of shape (n,).
    Where effects change over time, b has shape (n, m), with a column for each function of time, and
    derivatives by b are m.
    """

    def outcome_probabilities(
        self, a: FloatArray, b: FloatArray, slopes: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return the cells' probabilities (n, C), and derivatives by a and b (k + 1, n, C).

        Without ``slopes`` the derivatives have shape (0, n, C).
        """

    def record_scores(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return derivatives, by a and b, of the loss of a record in each cell (k + 1, n, C)."""

    def expected_curvature(self, a: FloatArray, b: FloatArray, likely: FloatArray) -> FloatArray:
        """Return derivatives, by a and b, of scores that count as ``likely`` says (n, C).

        They are those of a row's sum over cells, of shape (n, k + 1, k + 1).
        """


class Part(NamedTuple):
    """Records of a class, whose outcomes have one law.

    Parameters
    ----------
    response : Response
    place : int
        Number of the class.
    own : ndarray of int or None
        Places of their parameters, the common part first; None: of all.
    changing : tuple of ndarray of int
        Covariates whose products with each function of time have a coefficient, after all others.
    by_row : callable or None
        The response of given rows, where their outcomes have laws of their own.
    """

    response: Response
    place: int = 0
    own: IntArray | None = None
    changing: tuple[IntArray, ...] = ()
    by_row: Callable[[FloatArray], Response] | None = None

    def of(self, theta: FloatArray) -> FloatArray:
        """Return the part's parameters."""
        return theta if self.own is None else theta[self.own]

    def designs(self, rows: FloatArray) -> list[FloatArray]:
        """Return the factors of coefficients: rows, and of each function some columns."""
        return [rows, *(rows[:, columns] for columns in self.changing)]

    def predictor(self, theta: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the common part of the part's parameters, and the rows' part of the predictor."""
        designs = self.designs(rows)
        sizes = [one.shape[1] for one in designs]
        k = theta.size - sum(sizes)
        each = np.split(theta[k:], np.cumsum(sizes)[:-1])
        found = [one @ coef for one, coef in zip(designs, each, strict=True)]
        return theta[:k], np.column_stack(found) if self.changing else found[0]

    def among(self, size: int, values: FloatArray) -> FloatArray:
        """Return a vector, or a matrix, of the part's parameters among all."""
        if self.own is None:
            return values
        found = np.zeros((size,) * values.ndim)
        found[np.ix_(*[self.own] * values.ndim)] = values
        return found


@dataclass(frozen=True)
class ExpectedScores:
    """Sums of scores over all records, and their variance, of ``size`` parameters."""

    parts: Sequence[Part]
    distribution: CovariateDistribution
    size: int

    def rows(self, shape: str) -> Rows:
        """Return rows of each class."""
        return [one.rows(shape) for one in self.distribution.classes]

    def scores(self, at: FloatArray, rows: Rows) -> list[FloatArray]:
        """Return the scores of rows at a point, in each outcome."""
        return [part.response.record_scores(a, b) for part, a, b in self._predictors(at, rows)]

    def probabilities(self, theta: FloatArray, rows: Rows) -> list[FloatArray]:
        """Return how often each outcome counts."""
        return self.outcomes(theta, rows, slopes=False)[0]

    def outcomes(
        self, theta: FloatArray, rows: Rows, slopes: bool = True
    ) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return how often each outcome counts, by probability and exposure, and derivatives."""
        found = []
        for part, a, b in self._predictors(theta, rows):
            likely, by_predictor = part.response.outcome_probabilities(a, b, slopes)
            own = self.distribution.classes[part.place]
            exposure = np.expand_dims(own.exposure(rows[part.place]), -1)
            found.append((likely * exposure, by_predictor * exposure))
        probabilities, by_predictors = map(list, zip(*found, strict=True))
        return probabilities, by_predictors

    def total(
        self, rows: Rows, scores: list[FloatArray], probabilities: list[FloatArray]
    ) -> FloatArray:
        """Return the expected sum of scores."""
        return self.distribution.mass * self._mean(_expected, rows, scores, probabilities)

    def by_truth(
        self, rows: Rows, scores: list[FloatArray], slopes: list[FloatArray]
    ) -> FloatArray:
        """Return the derivative of the sum of scores by the truth."""
        return self.distribution.mass * self._mean(_products, rows, scores, slopes)

    def variance(
        self, rows: Rows, scores: list[FloatArray], probabilities: list[FloatArray]
    ) -> FloatArray:
        """Return the variance of the sum of scores."""
        mean = self._mean(_expected, rows, scores, probabilities)
        square = self._mean(_squares, rows, scores, probabilities)
        return np.asarray(self.distribution.mass * (square - np.outer(mean, mean)))

    def curvature(self, rows: Rows, probabilities: list[FloatArray], at: FloatArray) -> FloatArray:
        """Return the derivative of the sum of scores by the point at which they are taken."""
        each = zip(self._predictors(at, rows), probabilities, strict=True)
        by_row = [part.response.expected_curvature(a, b, likely) for (part, a, b), likely in each]
        return self.distribution.mass * self._mean(_over_rows, rows, by_row)

    def _predictors(
        self, theta: FloatArray, rows: Rows
    ) -> Iterator[tuple[Part, FloatArray, FloatArray]]:
        """Yield each part with its common parameters and its rows' part of the predictor."""
        for part in self.parts:
            given = rows[part.place]
            a, b = part.predictor(part.of(theta), given)
            if part.by_row is not None:
                part = part._replace(response=part.by_row(given))
            yield part, a, b

    def having(self, places: Sequence[int]) -> ExpectedScores:
        """Return the sums over the records of some parts."""
        return replace(self, parts=[self.parts[place] for place in places])

    def _mean(self, of: Callable[..., FloatArray], rows: Rows, *given: Sequence[Any]) -> FloatArray:
        """Return the mean over records of what a part's values and its rows give."""
        total: Any = 0.0
        for part, *values in zip(self.parts, *given, strict=True):
            own = self.distribution.classes[part.place]
            found = part.among(self.size, of(*values, part.designs(rows[part.place])))
            total = total + (own.mass / self.distribution.mass) * found
        return np.asarray(total)


def _products(scores: FloatArray, slopes: FloatArray, designs: list[FloatArray]) -> FloatArray:
    """Return the derivative of the expected score by the truth."""
    return _over_rows(scores.transpose(1, 0, 2) @ slopes.transpose(1, 2, 0), designs)


def _squares(
    scores: FloatArray, probabilities: FloatArray, designs: list[FloatArray]
) -> FloatArray:
    """Return the expected square of the score."""
    by_row = scores.transpose(1, 0, 2)
    return _over_rows((by_row * probabilities[:, None, :]) @ by_row.transpose(0, 2, 1), designs)


def _expected(
    scores: FloatArray, probabilities: FloatArray, designs: list[FloatArray]
) -> FloatArray:
    """Return the mean over rows of a record's expected score."""
    expected = np.einsum("knc,nc->kn", scores, probabilities)
    k = len(expected) - len(designs)
    effects = [own @ one / len(one) for own, one in zip(expected[k:], designs, strict=True)]
    return np.concatenate([expected[:k].mean(axis=1), *effects])


def _over_rows(by_row: FloatArray, designs: list[FloatArray]) -> FloatArray:
    """Return the mean over rows x of T' J T, where T maps parameters to common ones and x b."""
    k, n = by_row.shape[1] - len(designs), len(by_row)
    places = list(enumerate(designs, k))
    common = by_row[:, :k, :k].mean(axis=0)
    blocks = [[common, *(by_row[:, :k, j].T @ one / n for j, one in places)]]
    for i, left in places:
        below = left.T @ by_row[:, i, :k] / n
        own = [(left * by_row[:, i, j, None]).T @ right / n for j, right in places]
        blocks.append([below, *own])
    return np.block(blocks)
