r"""Indirect inference from a perturbed minimiser, with expectations in place of simulations.

A released minimiser f solves :math:`\sum_i g(f; z_i) + \kappa(f - c) + b = 0` with g the gradient
of a loss that is capped, weighted and perturbed. The truth :math:`\theta` is estimated by the one
at which f would be found on average,

.. math:: G(\theta) = N\,E_\theta[g(f; z)] + \kappa(f - c) = 0,

over rows of the released moments (:mod:`~skdpsurv.inference.covariates`) and responses of the
model at :math:`\theta`. This corrects for ridge, cap and weights at once. Records may be in public
classes, whose rows have other means, and whose responses follow other laws, or have a common part
of their own: expectations are sums over these. With
:math:`B = \partial G / \partial \theta` the error has covariance

.. math:: B^{-1}\big(N\,\mathrm{Var}\,g + \mathrm{Var}\,b + \mathrm{Var}_e\,G\big)B^{-\top},

where e is the noise on the moments, of which more is added to see its effect. Estimates of several
shapes of rows are averaged. Their scatter is added, and a part of the correction
:math:`\theta - f`, in any direction: real covariates follow none of these distributions.

If the model is not quite true, the estimate is the *limit* :math:`\beta`, at which the capped loss
is least without ridge and noise,

.. math:: E_\theta[g(\beta; z)] = 0.

Then B is :math:`N\,\partial E_\theta[g(\beta; z)]/\partial\beta`, and :math:`\mathrm{Var}_e` that
of :math:`N\,E_\theta[g(\beta; z) - g(f; z)]`. The distance of :math:`\theta` and :math:`\beta`
bounds the effect of a false model. It widens by the ridge's part :math:`\kappa(A + \kappa)^{-1}`
of it, with A the curvature at :math:`\beta`: without a ridge, f is the limit of any model.

Noise may leave an equation without a root. The estimate is then one step of Newton's method from
f, with the model at f in place of the truth: for the limit, :math:`f + A^{-1}\kappa(f - c)` with
A the curvature at f. How far the curvature halfway would move it is added, as an error.

All this is post-processing (docs/proofs/inference). Coverage is shown by simulation
(docs/benchmarks/intervals). The idea is that of Gourieroux, Monfort and Renault (1993); with
a mechanism between model and estimate, Wang, Chang and Awan (2025, arXiv 2507.10746).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from scipy import linalg

from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference.covariates import SHAPES, CovariateDistribution
from skdpsurv.inference.expected_scores import ExpectedScores, Part, Rows
from skdpsurv.inference.row_moments import ReleasedMoments
from skdpsurv.inference.uncertainty import Inference
from skdpsurv.inference.wald import LARGEST_PART
from skdpsurv.mechanisms.perturbation import Calibrated, ridge_and_variances

#: Pairs of draws, with both signs, of more noise on the moments.
N_PAIRS = 16
#: Steps of Newton's method at most, and the most that a step may move a linear predictor's
#: standard deviation. Beyond ``LARGEST`` of it no plausible coefficients explain the release, and
#: a coefficient whose standard error moves it further is unknown.
N_STEPS, LONGEST_STEP, LARGEST = 40, 1.5, 12.0
#: Allowance for misspecification: this part of the correction, in any direction.
MISSPECIFICATION = 0.2
#: Allowance for a false model: this many times the ridge's part of the distance of truth and limit.
LIMIT_FACTOR = 3.0
#: With a larger standard error of the log hazard of the mean row, the number of events and so the
#: information are unknown, and a root says nothing.
LARGEST_LEVEL_ERROR = 0.5
#: One step is taken only if the error of the curvature's logarithm is at most this, and standard
#: errors are widened by it: noise on the level of the baseline hides how many events there are.
CURVATURE_ERROR = 0.4
#: A gradient this small beside that of one record is 0.
TOLERANCE = 1e-7
#: In unknown directions an effect of so many standard deviations of the predictor is allowed for.
UNIDENTIFIED_EFFECT = 0.5


class _At(NamedTuple):
    """An equation at a point: its value, its Jacobian, and the variance of its sum."""

    value: FloatArray
    jacobian: FloatArray
    variance: FloatArray


class _Ends(NamedTuple):
    """The truth, what is estimated, its equation, an error to allow for, and G at other rows.

    And a factor of standard errors.
    """

    truth: FloatArray
    end: FloatArray
    at: _At
    distance: FloatArray
    value: Callable[[Indirect, Rows], FloatArray]
    widening: float = 1.0


@dataclass(frozen=True)
class Indirect:
    """The equation for the truth, of released and public numbers only.

    Parameters
    ----------
    parts : sequence of Part
    released, center : ndarray of shape (n_params,)
        f and c; the common part first.
    kappa : float
    linear_variance, output_variance : float
        Variances of each coordinate of b and of noise on the minimiser.
    distribution : CovariateDistribution
    redrawn : callable
        Map from a number to pairs of distributions, with more noise and with the same noise less.
    limit : bool
        True to estimate the limit in place of the truth.
    """

    parts: Sequence[Part]
    released: FloatArray
    center: FloatArray
    kappa: float
    linear_variance: float
    output_variance: float
    distribution: CovariateDistribution
    redrawn: Callable[[int], list[tuple[CovariateDistribution, CovariateDistribution]]]
    limit: bool = False

    @classmethod
    def after(
        cls,
        parts: Sequence[Part],
        released: FloatArray,
        center: FloatArray,
        calibration: Calibrated,
        moments: ReleasedMoments,
        limit: bool = False,
    ) -> Self:
        """Return the equation for a released perturbation and released moments."""
        noise, drawn = ridge_and_variances(calibration), (moments.distribution, moments.redrawn)
        return cls(parts, released, center, *noise, *drawn, limit)

    @property
    def n_common(self) -> int:
        """Number of parameters that belong to no column."""
        return self.released.size - self.distribution.mean.size - self._changing.size

    @property
    def _changing(self) -> IntArray:
        """Covariates of the products with functions of time, whose coefficients come last."""
        return np.concatenate([np.arange(0), *self.parts[0].changing])

    def solve(self, level: FloatArray | None = None) -> Inference:
        """Return the truth, or the limit, with covariance; unknown where nothing can be said.

        Of roots, the error of a ``level``, a sum of parameters, must be small: it tells of the
        number of events. A step asks for that in its own way.
        """
        for ends, must_know in ((self._roots, level), (self._steps, None)):
            with suppress(np.linalg.LinAlgError):
                found = self._solved(ends)
                if found is not None and np.isfinite(found.estimate).all():
                    values = found.covariance
                    known = must_know is None or (
                        must_know @ values @ must_know <= LARGEST_LEVEL_ERROR**2
                    )
                    is_sane = np.isfinite(values).all() and np.linalg.eigvalsh(values).min() > 0.0
                    if known and is_sane:
                        return found
        size, every = self.released.size, np.eye(self.distribution.mean.size)
        nothing = np.zeros((size, size)), np.zeros(size, dtype=bool)
        return Inference(self.released, *nothing, every)

    def _solved(self, find: Callable[..., _Ends | None]) -> Inference | None:
        known = self.distribution.known
        if known.size and not known.any():
            return None
        truth = end = self.released
        ends: list[FloatArray] = []
        distances: list[FloatArray] = []
        covariances: list[FloatArray] = []
        for shape in SHAPES:
            rows = self._sums.rows(shape)
            point = find(rows, truth, end)
            if point is None:
                return None
            truth, end, at, distance, value, widening = point
            if not ends:  # the effect of noise hardly depends on the shape
                noise = self._noise(rows, truth, at.jacobian)
                noise = noise + self._moments_noise(shape, value)
            inverse = np.linalg.inv(at.jacobian)
            ends.append(end)
            distances.append(distance)
            covariances.append(widening**2 * inverse @ (at.variance + noise) @ inverse.T)
        found, distance = np.stack(ends), np.mean(distances, axis=0)
        scatter = np.cov(found, rowvar=False, bias=True) + np.outer(distance, distance)
        end = found.mean(axis=0)
        unidentified, misspecified = self._unidentified(), self._misspecified(end)
        covariance = np.mean(covariances, axis=0) + scatter + unidentified + misspecified
        parts = np.abs(self._unknown_parts()).max(axis=1, initial=0.0)
        spreads = np.sqrt(np.square(self.distribution.vectors) @ self.distribution.values)
        own = np.concatenate([np.arange(spreads.size), self._changing])
        errors = spreads[own] * np.sqrt(np.diag(covariance))[self.n_common :]
        seen = (parts[own] <= LARGEST_PART) & (errors <= LARGEST)
        known = np.concatenate([np.ones(self.n_common, dtype=bool), seen])
        hidden = self._unknown_parts() @ self._unknown_parts().T
        symmetric = (0.5 * (one + one.T) for one in (covariance, hidden))
        return Inference(end, next(symmetric), known, next(symmetric))

    def _roots(self, rows: Rows, truth: FloatArray, end: FloatArray) -> _Ends | None:
        """Return the roots of the equations, searched from ``truth`` and ``end``; None for none."""
        scores = self._sums.scores(self.released, rows)
        found = self._root(partial(self._at_truth, rows, scores), truth)
        if found is None:
            return None
        truth, _ = found
        if self.limit:
            probabilities = self._sums.probabilities(truth, rows)
            found = self._root(partial(self._at_limit, rows, probabilities), end)
            if found is None:
                return None
        end, at = found
        distance = truth - end
        if self.limit:
            curvature = at.jacobian + self.kappa * np.eye(end.size)
            part = np.linalg.solve(curvature, self.kappa * distance)
            distance = np.asarray(LIMIT_FACTOR * part, dtype=np.float64)

        def value(one: Indirect, rows: Rows) -> FloatArray:
            return one._value(rows, truth, end)

        return _Ends(truth, end, at, distance, value)

    def _steps(self, rows: Rows, *_: FloatArray) -> _Ends | None:
        """Return one step from the release in place of the roots; None if it leads too far."""
        start, (equation, at) = self.released, self._at_release(rows)
        end = start - np.linalg.solve(at.jacobian, at.value)
        curvature = at.jacobian if self.limit else -at.jacobian
        is_least = np.linalg.eigvalsh(curvature + curvature.T).min() > 0.0
        if not is_least or not self._spread(end[self.n_common :]) <= LARGEST:
            return None
        unsure = self._curvature_error(rows, equation, at)
        if not unsure <= CURVATURE_ERROR:
            return None
        halfway = equation(0.5 * (start + end)).jacobian

        def line(one: Indirect, rows: Rows) -> FloatArray:
            _, at = one._at_release(rows)
            return at.value + at.jacobian @ (end - start)

        distance = start - np.linalg.solve(halfway, at.value) - end
        return _Ends(end, end, at, distance, line, math.exp(unsure))

    def _curvature_error(self, rows: Rows, equation: Callable[[FloatArray], _At], at: _At) -> float:
        """Return the error of the curvature's logarithm by that of the common parts.

        Parts that share no common part are moved one after another.
        """
        start, k, inverse = self.released, self.n_common, np.linalg.inv(at.jacobian)
        noise = at.variance + self._noise(rows, start, at.jacobian)
        variance, whole = (inverse @ noise @ inverse.T)[:k, :k], np.trace(at.jacobian)
        blocks: dict[tuple[int, ...], list[int]] = {}
        for place, part in enumerate(self.parts):
            own = np.arange(start.size) if part.own is None else part.own
            blocks.setdefault(tuple(own[own < k].tolist()), []).append(place)
        if len(blocks) == 1:
            moves, traces = _moves(variance, start.size), []
            traces = [np.trace(equation(start + move).jacobian) for move in moves]
            return float(np.linalg.norm(np.log(np.abs(traces / whole))))
        logs: list[float] = []
        roots = np.zeros((0, k))
        for common, places in blocks.items():
            at_own = np.ix_(common, common)
            moves = np.zeros((len(common), start.size))
            moves[:, list(common)] = _moves(variance[at_own], len(common))
            trace = self._trace(rows, places)
            changes = np.array([trace(start + move) for move in moves]) - trace(start)
            logs += np.log(np.abs((whole + changes) / whole)).tolist()
            roots = np.concatenate([roots, moves[:, :k]])
        # Moves of blocks are correlated: the root of t' R t, with R the correlation.
        unit = roots / np.maximum(np.square(roots).sum(axis=1, keepdims=True), 1e-300)
        correlation = unit @ variance @ unit.T
        return float(np.sqrt(max(np.array(logs) @ correlation @ np.array(logs), 0.0)))

    def _trace(self, rows: Rows, places: Sequence[int]) -> Callable[[FloatArray], float]:
        """Return the trace of the derivative of some parts of the equation, by its point."""
        sums, start = self._sums.having(places), self.released
        if self.limit:
            likely = sums.probabilities(start, rows)
            return lambda at: float(np.trace(sums.curvature(rows, likely, at)))
        scores = sums.scores(start, rows)
        return lambda at: float(np.trace(sums.by_truth(rows, scores, sums.outcomes(at, rows)[1])))

    def _at_release(self, rows: Rows) -> tuple[Callable[[FloatArray], _At], _At]:
        """Return the equation with the model at the release, and its value there."""
        start = self.released
        if not self.limit:
            equation = partial(self._at_truth, rows, self._sums.scores(start, rows))
            return equation, equation(start)
        equation = partial(self._at_limit, rows, self._sums.probabilities(start, rows))
        # The sum of scores, up to noise.
        return equation, equation(start)._replace(value=-self.kappa * (start - self.center))

    # ---- The equation.

    @property
    def _sums(self) -> ExpectedScores:
        return ExpectedScores(self.parts, self.distribution, self.released.size)

    def _at_truth(self, rows: Rows, scores: list[FloatArray], theta: FloatArray) -> _At:
        """Return the equation for the true coefficients, at ``theta``."""
        sums = self._sums
        probabilities, slopes = sums.outcomes(theta, rows)
        ridge = self.kappa * (self.released - self.center)
        value = sums.total(rows, scores, probabilities) + ridge
        jacobian = sums.by_truth(rows, scores, slopes)
        return _At(value, jacobian, sums.variance(rows, scores, probabilities))

    def _at_limit(self, rows: Rows, probabilities: list[FloatArray], end: FloatArray) -> _At:
        """Return the equation for the limit of fits without noise, at ``end``."""
        sums = self._sums
        scores = sums.scores(end, rows)
        value, curvature = (
            sums.total(rows, scores, probabilities),
            sums.curvature(rows, probabilities, end),
        )
        return _At(value, curvature, sums.variance(rows, scores, probabilities))

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
            if size <= TOLERANCE * self.distribution.mass:
                return theta, at
            step = np.asarray(np.linalg.solve(at.jacobian, at.value), dtype=np.float64)
            moved = max(float(np.abs(step[:k]).max(initial=0.0)) * 0.1, self._spread(step[k:]))
            # After a step that did not help, the next is shorter.
            limit = LONGEST_STEP if size < largest else 0.5 * LONGEST_STEP
            theta, largest = theta - step * min(1.0, limit / max(moved, 1e-300)), size
            if self._spread(theta[k:]) > LARGEST:
                return None
        return None

    def _spread(self, coef: FloatArray) -> float:
        """Return the standard deviation of a linear predictor.

        With products, that for functions of time which are 1.
        """
        roots, d = np.sqrt(self.distribution.values), self.distribution.mean.size
        each, start = [coef[:d]], d
        for columns in self.parts[0].changing:
            each.append(np.zeros(d))
            each[-1][columns] = coef[start : start + columns.size]
            start += columns.size
        spreads = [np.linalg.norm(roots * (self.distribution.vectors.T @ own)) for own in each]
        return float(spreads[0] if len(spreads) == 1 else np.linalg.norm(spreads))

    # ---- Noise.

    def _noise(self, rows: Rows, theta: FloatArray, jacobian: FloatArray) -> FloatArray:
        """Return the variance of G by noise in the objective and on the minimiser."""
        unit = np.eye(self.released.size)
        if not self.output_variance:
            return self.linear_variance * unit
        # Exact where f is the truth; noise that hides the solver is tiny elsewhere.
        curvature = jacobian if self.limit else -jacobian
        if not self.linear_variance:
            curvature = self._sums.curvature(
                rows, self._sums.probabilities(theta, rows), self.released
            )
        curvature = self.kappa * unit + curvature
        return self.linear_variance * unit + self.output_variance * curvature @ curvature.T

    def _moments_noise(
        self, shape: str, value: Callable[[Indirect, Rows], FloatArray]
    ) -> FloatArray:
        """Return the variance of G by the noise of the moments."""

        def at(distribution: CovariateDistribution) -> FloatArray:
            one = replace(self, distribution=distribution)
            return value(one, one._sums.rows(shape))

        gaps = np.stack([0.5 * (at(more) - at(less)) for more, less in self.redrawn(N_PAIRS)])
        return np.asarray(gaps.T @ gaps / len(gaps))

    def _value(self, rows: Rows, truth: FloatArray, end: FloatArray) -> FloatArray:
        """Return what is random in G by the moments."""
        sums = self._sums
        probabilities = sums.probabilities(truth, rows)
        released, at_end = (
            sums.total(rows, sums.scores(at, rows), probabilities) for at in (self.released, end)
        )
        return at_end - released if self.limit else released

    # ---- Unknown directions and misspecification.

    def _unknown_parts(self) -> FloatArray:
        """Return each coefficient's part of each unknown direction, shape (n_features, m)."""
        return self.distribution.vectors[:, ~self.distribution.known]

    def _misspecified(self, theta: FloatArray) -> FloatArray:
        """Return the covariance of the error of the correction by misspecification."""
        size = MISSPECIFICATION * self._spread((theta - self.released)[self.n_common :])
        roots = np.sqrt(self.distribution.values)
        return self._of_coefficients(self.distribution.vectors * (size / roots))

    def _unidentified(self) -> FloatArray:
        """Return the covariance of effects in unknown directions, as far as allowed for."""
        unknown = self.distribution.values[~self.distribution.known]
        return self._of_coefficients(
            self._unknown_parts() * (UNIDENTIFIED_EFFECT / np.sqrt(unknown))
        )

    def _of_coefficients(self, root: FloatArray) -> FloatArray:
        """Return the covariance of parameters of which coefficients alone vary, given its root.

        Those of products with time vary alike, independently.
        """
        square = root @ root.T
        blocks = [square, *(square[np.ix_(own, own)] for own in self.parts[0].changing)]
        return linalg.block_diag(np.zeros((self.n_common, self.n_common)), *blocks)


def _moves(variance: FloatArray, size: int) -> FloatArray:
    """Return uncorrelated errors of the first parameters, of one deviation each, in rows."""
    values, vectors = np.linalg.eigh(variance)
    moves = np.zeros((len(variance), size))
    moves[:, : len(variance)] = vectors.T * np.sqrt(np.maximum(values, 0.0))[:, None]
    return moves
