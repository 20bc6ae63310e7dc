r"""What a perturbed minimiser says of the truth: indirect inference, with expectations.

A released minimiser f solves :math:`\sum_i g(f; z_i) + \kappa(f - c) + b = 0` with g the gradient
of a loss that is capped, weighed and perturbed. It is not the truth :math:`\theta`: the ridge pulls
it to c, and the cap moves it. But what it would be at a truth is known, and so the truth is
estimated by the one at which f would be found on average,

.. math:: G(\theta) = N\,E_\theta[g(f; z)] + \kappa(f - c) = 0,

over rows of the released moments (:mod:`~skdpsurv.inference.row_moments`) and responses of the
model at :math:`\theta`. Ridge, cap and weights are undone at once. With
:math:`B = \partial G / \partial \theta` its error has covariance

.. math:: B^{-1}\big(N\,\mathrm{Var}\,g + \mathrm{Var}\,b + \mathrm{Var}_e\,G\big)B^{-\top},

where e is the noise on the moments: more of it, of the same law, is added to see what it does.
Estimates of several shapes of rows are averaged; their scatter is added, and so is a part of the
correction :math:`\theta - f`, in any direction: people are other than any of these laws.

Where the model is not quite true, a cap moves f to something else than the law says. Then the
estimate is the *limit* :math:`\beta`, at which the capped loss is least without ridge and noise,

.. math:: E_\theta[g(\beta; z)] = 0,

of which the law of the model tells only how far the ridge has moved f: the fewer records noise has
to hide, the less. B is then :math:`N\,\partial E_\theta[g(\beta; z)]/\partial\beta`, and
:math:`\mathrm{Var}_e` that of :math:`N\,E_\theta[g(\beta; z) - g(f; z)]`. How far :math:`\theta`
and :math:`\beta` are apart says what a false model may do, and widens.

All this is post-processing of what was released (docs/proofs/inference). That the intervals cover
is shown by simulation (docs/benchmarks/hazard_intervals). The idea is that of Gourieroux, Monfort
and Renault (1993); with a mechanism between model and estimate, Wang, Chang and Awan (2025, arXiv
2507.10746) simulate where this takes expectations.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol, Self

import numpy as np

from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.inference.row_moments import SHAPES, CovariateDistribution, ReleasedMoments
from skdpsurv.mechanisms.perturbation import Calibrated
from skdpsurv.mechanisms.vector_noise import NoiseDistribution

#: Pairs of draws, with both signs, of more noise on the moments.
N_PAIRS = 16
#: Steps of Newton's method at most, and the most that a step may move a linear predictor's
#: standard deviation. Beyond ``LARGEST`` of it there is no truth worth naming.
N_STEPS, LONGEST_STEP, LARGEST = 40, 1.5, 12.0
#: For derivatives by the release.
DIFFERENCE = 1e-4
#: A correction may be wrong, as rows and losses are other than the laws have them, by this part of
#: it, in any direction.
MISREAD = 0.2
#: And a limit, by so many times what the model's truth is from it.
APART = 3.0
#: A gradient this small beside that of one record is none.
TOLERANCE = 1e-7
#: A coefficient that a unit vector of an unknown direction has more of than this is unknown. Of
#: less, an effect of so many standard deviations of the predictor in that direction is allowed for.
LARGEST_PART, UNSEEN_EFFECT = 0.2, 0.5


class Response(Protocol):
    """How records respond to a linear predictor, in a few cells: ways out of a study, or labels.

    A predictor is that of the common part, k coefficients ``a``, and of the rows' part b. In both
    methods n is the number of rows, C that of cells.
    """

    def outcome_probabilities(
        self, a: FloatArray, b: FloatArray, slopes: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return the cells' probabilities (n, C), and derivatives by a and b (k + 1, n, C).

        Without ``slopes`` there are none of these, (0, n, C).
        """
        ...

    def record_scores(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return derivatives, by a and b, of the loss of a record in each cell (k + 1, n, C)."""
        ...


class Found(NamedTuple):
    """An estimate of truth or limit; not known where the release says nothing of a coefficient."""

    theta: FloatArray
    covariance: FloatArray
    known: BoolArray


class _At(NamedTuple):
    """An equation at a point: its value, its Jacobian, and the variance of its sum."""

    value: FloatArray
    jacobian: FloatArray
    variance: FloatArray


@dataclass(frozen=True)
class Indirect:
    """The equation for the truth; of released and public numbers only.

    Parameters
    ----------
    response : Response
    released : ndarray of shape (n_params,)
        f; the common part first.
    center : ndarray of shape (n_params,)
        c.
    kappa : float
    linear_variance : float
        Variance of each coordinate of b.
    output_variance : float
        Of noise on the minimiser itself.
    law : CovariateDistribution
    redrawn : callable
        Of a number: so many pairs of laws, with more noise and with the same noise less.
    limit : bool
        Whether the limit is estimated, and not the truth.
    """

    response: Response
    released: FloatArray
    center: FloatArray
    kappa: float
    linear_variance: float
    output_variance: float
    law: CovariateDistribution
    redrawn: Callable[[int], list[tuple[CovariateDistribution, CovariateDistribution]]]
    limit: bool = False

    @classmethod
    def after(
        cls,
        response: Response,
        released: FloatArray,
        center: FloatArray,
        calibration: Calibrated,
        moments: ReleasedMoments,
        limit: bool = False,
    ) -> Self:
        """Return the equation for what a perturbation has released, moments beside it."""
        return cls(
            response,
            released,
            center,
            calibration.kappa,
            _variance(calibration.linear),
            _variance(calibration.output),
            moments.law,
            moments.redrawn,
            limit,
        )

    @property
    def n_common(self) -> int:
        """How many parameters belong to no column."""
        return self.released.size - self.law.mean.size

    def solve(self) -> Found:
        """Return the truth at which the release would be expected, or the limit, with covariance.

        Whatever was released, there is an answer: where nothing can be said, that nothing is known.
        """
        with suppress(np.linalg.LinAlgError):
            found = self._solved()
            if found is not None and np.isfinite(found.theta).all():
                values = found.covariance
                if np.isfinite(values).all() and np.linalg.eigvalsh(values).min() > 0.0:
                    return found
        size = self.released.size
        return Found(self.released, np.zeros((size, size)), np.zeros(size, dtype=bool))

    def _solved(self) -> Found | None:
        if self.law.known.size and not self.law.known.any():
            return None
        truth = end = self.released
        ends: list[FloatArray] = []
        apart: list[FloatArray] = []
        covariances: list[FloatArray] = []
        for shape in SHAPES:
            root = self._root(partial(self._at, shape, self._pulls(shape)), truth)
            if root is None:
                return None
            truth, at = root
            if self.limit:
                root = self._root(partial(self._at_limit, shape, self._chance(shape, truth)), end)
                if root is None:
                    return None
            end, at = root
            if not ends:  # what noise does hardly depends on the shape
                noise = self._noise(shape, truth, at.jacobian)
                noise = noise + self._moments_noise(shape, truth, end)
            inverse = np.linalg.inv(at.jacobian)
            ends.append(end)
            apart.append(APART * (truth - end))
            covariances.append(inverse @ (at.variance + noise) @ inverse.T)
        found, doubt = np.stack(ends), np.mean(apart, axis=0)
        scatter = np.cov(found, rowvar=False, bias=True) + np.outer(doubt, doubt)
        end = found.mean(axis=0)
        covariance = (
            np.mean(covariances, axis=0)
            + scatter
            + self._unidentified()
            + self._misspecification(end)
        )
        return Found(end, 0.5 * (covariance + covariance.T), self._known())

    # ---- The equation.

    @property
    def _ridge(self) -> FloatArray:
        return self.kappa * (self.released - self.center)

    def _rows_part(self, theta: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = self.n_common
        return theta[:k], rows @ theta[k:]

    def _chance(self, shape: str, theta: FloatArray) -> FloatArray:
        rows = self.law.rows(shape)
        return self.response.outcome_probabilities(*self._rows_part(theta, rows), slopes=False)[0]

    def _pulls(self, shape: str, at: FloatArray | None = None) -> FloatArray:
        rows = self.law.rows(shape)
        return self.response.record_scores(
            *self._rows_part(self.released if at is None else at, rows)
        )

    def _value(self, theta: FloatArray, at: FloatArray, shape: str) -> FloatArray:
        """Return what all records are expected to pull with at a point, given a truth."""
        chance, record_scores = self._chance(shape, theta), self._pulls(shape, at)
        return self.law.mass * _expected(record_scores, chance, self.law.rows(shape))

    def _at(self, shape: str, record_scores: FloatArray, theta: FloatArray) -> _At:
        """Return the equation for the truth."""
        rows, mass = self.law.rows(shape), self.law.mass
        chance, slopes = self.response.outcome_probabilities(*self._rows_part(theta, rows))
        jacobian = record_scores.transpose(1, 0, 2) @ slopes.transpose(1, 2, 0)
        value = mass * _expected(record_scores, chance, rows) + self._ridge
        return _At(
            value, mass * _over_rows(jacobian, rows), self._variance(record_scores, chance, rows)
        )

    def _at_limit(self, shape: str, chance: FloatArray, end: FloatArray) -> _At:
        """Return the equation for the limit."""
        rows, record_scores = self.law.rows(shape), self._pulls(shape, end)
        value = self.law.mass * _expected(record_scores, chance, rows)
        curvature = self._curvature(shape, chance, end)
        return _At(value, curvature, self._variance(record_scores, chance, rows))

    def _variance(
        self, record_scores: FloatArray, chance: FloatArray, rows: FloatArray
    ) -> FloatArray:
        by_row, pull = record_scores.transpose(1, 0, 2), _expected(record_scores, chance, rows)
        square = (by_row * chance[:, None, :]) @ by_row.transpose(0, 2, 1)
        return np.asarray(self.law.mass * (_over_rows(square, rows) - np.outer(pull, pull)))

    def _curvature(self, shape: str, chance: FloatArray, at: FloatArray) -> FloatArray:
        """Return the derivative of what is expected by the point at which records pull."""
        rows = self.law.rows(shape)
        a, b = self._rows_part(at, rows)

        def moved(step: FloatArray) -> FloatArray:
            record_scores = self.response.record_scores(a + step[:-1], b + step[-1])
            return np.asarray(np.einsum("knc,nc->nk", record_scores, chance))

        # Rows pull as their predictor says, so that they need not be moved one column at a time.
        steps = DIFFERENCE * np.eye(self.n_common + 1)
        by_row = np.stack([moved(s) - moved(-s) for s in steps], axis=2) / (2.0 * DIFFERENCE)
        return self.law.mass * _over_rows(by_row, rows)

    def _root(
        self, equation: Callable[[FloatArray], _At], start: FloatArray
    ) -> tuple[FloatArray, _At] | None:
        """Return the root of an equation, by Newton's method; None if there is none."""
        theta, k, largest = start, self.n_common, np.inf
        for _ in range(N_STEPS):
            at = equation(theta)
            size = float(np.linalg.norm(at.value))
            if not (np.isfinite(size) and np.isfinite(at.jacobian).all()):
                return None
            if size <= TOLERANCE * self.law.mass:
                return theta, at
            step = np.asarray(np.linalg.solve(at.jacobian, at.value), dtype=np.float64)
            moved = max(float(np.abs(step[:k]).max(initial=0.0)) * 0.1, self._spread(step[k:]))
            # A step that did not help is not gone in full again.
            limit = LONGEST_STEP if size < largest else 0.5 * LONGEST_STEP
            theta, largest = theta - step * min(1.0, limit / max(moved, 1e-300)), size
            if self._spread(theta[k:]) > LARGEST:
                return None
        return None

    def _spread(self, coef: FloatArray) -> float:
        """Return the standard deviation of a linear predictor."""
        return float(np.linalg.norm(np.sqrt(self.law.values) * (self.law.vectors.T @ coef)))

    # ---- Noise.

    def _noise(self, shape: str, theta: FloatArray, jacobian: FloatArray) -> FloatArray:
        """Return the variance that noise in the objective and on the minimiser has in G."""
        unit = np.eye(self.released.size)
        if not self.output_variance:
            return self.linear_variance * unit
        # What hides the solver is tiny, so that this will do; it is exact where f is the truth.
        bend = jacobian if self.limit else -jacobian
        if not self.linear_variance:
            bend = self._curvature(shape, self._chance(shape, theta), self.released)
        bend = self.kappa * unit + bend
        return self.linear_variance * unit + self.output_variance * bend @ bend.T

    def _moments_noise(self, shape: str, theta: FloatArray, end: FloatArray) -> FloatArray:
        """Return the variance of G by the noise of the moments."""

        def value(law: CovariateDistribution) -> FloatArray:
            moved = replace(self, law=law)
            pull = moved._value(theta, self.released, shape)
            return moved._value(theta, end, shape) - pull if self.limit else pull

        gaps = np.stack([0.5 * (value(more) - value(less)) for more, less in self.redrawn(N_PAIRS)])
        return np.asarray(gaps.T @ gaps / len(gaps))

    # ---- What is not known.

    def _parts(self) -> FloatArray:
        """Return what each coefficient has of each unknown direction, shape (n_features, m)."""
        return self.law.vectors[:, ~self.law.known]

    def _known(self) -> BoolArray:
        parts = np.abs(self._parts()).max(axis=1, initial=0.0)
        return np.concatenate([np.ones(self.n_common, dtype=bool), parts <= LARGEST_PART])

    def _misspecification(self, theta: FloatArray) -> FloatArray:
        """Return the covariance of what the correction may be wrong by, where people are other."""
        size = MISREAD * self._spread((theta - self.released)[self.n_common :])
        return self._of_coefficients(self.law.vectors * (size / np.sqrt(self.law.values)))

    def _unidentified(self) -> FloatArray:
        """Return the covariance of effects in unknown directions, as far as allowed for."""
        unknown = self.law.values[~self.law.known]
        return self._of_coefficients(self._parts() * (UNSEEN_EFFECT / np.sqrt(unknown)))

    def _of_coefficients(self, root: FloatArray) -> FloatArray:
        """Return the covariance of parameters of which coefficients alone vary, given its root."""
        return np.pad(root @ root.T, (self.n_common, 0))


def _variance(law: NoiseDistribution | None) -> float:
    """Return the variance of each coordinate of noise; 0 of none."""
    return 0.0 if law is None else law.deviation**2


def _expected(record_scores: FloatArray, chance: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the mean over rows of what a record is expected to pull with."""
    expected = np.einsum("knc,nc->kn", record_scores, chance)
    return np.concatenate([expected[:-1].mean(axis=1), expected[-1] @ rows / len(rows)])


def _over_rows(by_row: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the mean over rows x of T' J T, where T maps parameters to common ones and x b."""
    k, n = by_row.shape[1] - 1, len(rows)
    common = by_row[:, :k, :k].mean(axis=0)
    right = by_row[:, :k, k].T @ rows / n
    below = rows.T @ by_row[:, k, :k] / n
    coef = (rows * by_row[:, k, k, None]).T @ rows / n
    return np.block([[common, right], [below, coef]])
