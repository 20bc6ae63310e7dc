"""Losses of single records, in [0, 1]: their sum has sensitivity 1, which no ranking score has.

The C-index and the area under the ROC curve compare pairs, so one record can move n of them, and
their normalisation depends on the records, too. What is added up here are losses of one record
each, under a model that was made from other records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from skdpsurv.checks import one_of, positive_number
from skdpsurv.model_selection.candidates import flat_steps
from skdpsurv.privacy.silence import attempted
from skdpsurv.shape import length, take
from skdpsurv.target import event_and_time, fit_target, is_two_dimensional
from skdpsurv.types import BoolArray, FloatArray

Loss = Callable[[Any, Any, Any], ArrayLike]

#: Rows whose curves are in memory at once.
BLOCK_ROWS = 4096


def error_loss(model: Any, X: Any, y: ArrayLike) -> FloatArray:
    """Return 1 where the predicted class is wrong, else 0."""
    said, truth = np.asarray(model.predict(X)).tolist(), _labels(y)
    return np.array([_differ(a, b) for a, b in zip(said, truth, strict=True)])


def _differ(one: Any, other: Any) -> float:
    # A label may compare with nothing, and say so as it likes.
    found = attempted(lambda: float(bool(one != other)))
    return 1.0 if found is None else found


def _labels(y: Any) -> list[Any]:
    """Return labels as they are: an array made of them would have one type for all."""
    return np.ravel(y).tolist() if isinstance(y, np.ndarray) else list(y)


def brier_loss(model: Any, X: Any, y: ArrayLike) -> FloatArray:
    """Return half the squared distance of probabilities and outcome: (1 - p)^2 for two classes."""
    likely = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), 0.0, 1.0)
    classes, truth = np.asarray(model.classes_).tolist(), _labels(y)
    outcome = np.zeros_like(likely)
    for row, label in enumerate(truth):
        outcome[row] = [1.0 - _differ(one, label) for one in classes]
    known = outcome.any(axis=1)
    return np.where(known, 0.5 * ((likely - outcome) ** 2).sum(axis=1), 1.0)


@dataclass(frozen=True)
class SurvivalLoss:
    r"""How badly survival curves foretell a time, on a public grid, whatever the censoring.

    Time up to the public horizon is cut into ``n_intervals`` intervals of equal length, and curves
    are read off at their ends. With the cumulative hazard H interpolated linearly between, and
    :math:`h` its slope in units of 1 / horizon, a record that leaves at t has

    * "likelihood": :math:`H(t) - \delta \log h(t)`, its negative log-likelihood, clipped to
      ``log_range`` and mapped to [0, 1];
    * "brier": :math:`\frac1J\sum_j (\delta_j - p_j)^2` over the intervals j at whose start it was
      at risk, with :math:`p_j = 1 - e^{-(H_j - H_{j-1})}`, and :math:`\delta_j` whether its event
      was in j. An interval in which it was censored does not count.

    Both are proper, up to the clipping: under independent censoring no model has a smaller
    expected loss than the true one (for the grid).

    Parameters
    ----------
    kind : {"likelihood", "brier"}
    horizon : float
        Public: ``max_time`` of the estimator.
    n_intervals : int, default=20
        J.
    log_range : (float, float), default=(-2.0, 6.0)
        Smallest and largest negative log-likelihood.
    """

    kind: str
    horizon: float
    n_intervals: int = 20
    log_range: tuple[float, float] = (-2.0, 6.0)

    def __call__(self, model: Any, X: Any, y: Any) -> FloatArray:
        """Return the losses of records."""
        # What X is, is asked of a fit: one of covariates may have a single one.
        rows = is_two_dimensional(X)
        event, time = event_and_time(y) if rows else fit_target(X, y, None, None)
        losses = np.empty(time.size)
        for start in range(0, time.size, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            steps = np.diff(self._curves(model, take(X, part)), axis=1, prepend=0.0)
            losses[part] = self._losses(steps, time[part] / self.horizon, event[part])
        return losses

    def _losses(self, steps: FloatArray, t: FloatArray, event: BoolArray) -> FloatArray:
        """Return losses from increments of H and times in units of the horizon."""
        n_intervals, rows = self.n_intervals, np.arange(t.size)
        event = event & (t <= 1.0)
        t = np.clip(t, 0.0, 1.0)
        last = np.clip(np.ceil(t * n_intervals), 1, n_intervals).astype(np.intp) - 1
        before = np.cumsum(steps, axis=1)[rows, last] - steps[rows, last]
        if self.kind == "likelihood":
            share = t * n_intervals - last
            slope = np.log(np.maximum(steps[rows, last] * n_intervals, 1e-300))
            loss = before + share * steps[rows, last] - np.where(event, slope, 0.0)
            low, high = self.log_range
            return np.clip((loss - low) / (high - low), 0.0, 1.0)
        p = -np.expm1(-steps)
        squares = np.where(np.arange(n_intervals) < last[:, None], p**2, 0.0).sum(axis=1)
        stayed = t >= 1.0  # was seen to survive the last interval
        final = np.where(event, (1.0 - p[rows, last]) ** 2, np.where(stayed, p[rows, last] ** 2, 0))
        return np.asarray((squares + final) / n_intervals)

    def _curves(self, model: Any, X: Any) -> FloatArray:
        """Return cumulative hazards at the ends of the intervals, (n_records, n_intervals)."""
        final, rows = through_pipeline(model, X)
        ends = np.arange(1, self.n_intervals + 1) / self.n_intervals * self.horizon
        if not hasattr(final, "predict_cumulative_hazard_function"):
            curve = np.asarray(final.cumulative_hazard_at_times(ends), dtype=np.float64)
            return np.broadcast_to(curve, (length(rows), curve.size))
        curves = final.predict_cumulative_hazard_function(rows, return_array=True)
        # The model's own grid is public, and may be a candidate's parameter.
        grid = np.concatenate([[0.0], final.unique_times_])
        place = np.searchsorted(grid, ends * (1.0 + 1e-9), side="right") - 1
        padded = np.hstack([np.zeros((curves.shape[0], 1)), curves])
        # Between the ends of its intervals a step function is read as a straight line.
        width = np.append(np.diff(grid), 1.0)[place]
        share = np.clip((ends - grid[place]) / width, 0.0, 1.0)
        beyond = np.minimum(place + 1, grid.size - 1)
        return np.asarray(padded[:, place] * (1.0 - share) + padded[:, beyond] * share)


def through_pipeline(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the final step of a pipeline, and rows as it sees them."""
    *steps, final = flat_steps(model)
    for step in steps:
        X = step.transform(X)
    return final, X


def chosen_loss(scoring: str | Loss | None, estimator: Any, horizon: object) -> Loss:
    """Return the loss that ``scoring`` names.

    Parameters
    ----------
    scoring : str, callable or None
    estimator : estimator
        Not fitted; says whether it is a classifier.
    horizon : float or None
        ``max_time``, of an estimator of survival.

    Raises
    ------
    ValueError, TypeError
        If there is no such loss, or none for this estimator.
    """
    if scoring is not None and not isinstance(scoring, str):
        if not callable(scoring):
            raise TypeError("scoring must be None, the name of a loss, or a callable.")
        return scoring
    if horizon is not None:
        kind = one_of("scoring", scoring or "likelihood", ("likelihood", "brier"))
        return SurvivalLoss(kind, positive_number("max_time", horizon))
    if not is_classifier(estimator):
        raise ValueError(
            "scoring must be a callable loss(estimator, X, y) with values in [0, 1] for an "
            "estimator that is neither a classifier nor a model of survival: its outcome has no "
            "bounds of its own."
        )
    kind = one_of("scoring", scoring or "error", ("error", "brier"))
    if kind == "brier":
        if not hasattr(estimator, "predict_proba"):
            raise ValueError("scoring='brier' needs an estimator with predict_proba.")
        return brier_loss
    return error_loss
