"""Losses of single records, in [0, 1]: their sum has sensitivity 1, which no ranking score has.

The C-index and the area under the ROC curve compare pairs, so one record can move n of them, and
their normalisation depends on the records, too. What is added up here are losses of one record
each, under a model that was made from other records.

What a record's loss is must not depend on which others are asked about, nor on whether they fail: a
matrix product gives a row other last bits in a batch than by itself, and where two classes are
equally likely these decide. Hence the way that is taken depends on types, and never on values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import parallel_config
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import check_array, get_tags

from skdpsurv.classification.logistic_model import LogisticModel
from skdpsurv.classification.stacking_model import StackingModel
from skdpsurv.data import PublicColumns
from skdpsurv.data.cells import LoneRows, lone_target
from skdpsurv.data.public_steps import encoded, features_in
from skdpsurv.data.shape import is_frame, length, take
from skdpsurv.data.target import event_and_time, fit_target, is_two_dimensional
from skdpsurv.dp import suppressed_float_errors, suppressed_warnings
from skdpsurv.dp.checks import one_of, positive_number
from skdpsurv.dp.input_errors import call_or_none
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.hybrid.meta_estimator import PrivateMetaEstimator
from skdpsurv.hybrid.predictions import asked_alone, row_wise
from skdpsurv.mechanisms.sums import LOSS
from skdpsurv.model_selection.candidates import flat_steps, one_after_another, unprotected_steps
from skdpsurv.survival.hazards.base import DiscreteTimeModel
from skdpsurv.survival.weibull.fitter import WeibullCurve

Loss = Callable[[Any, Any, Any], ArrayLike]

#: Rows whose curves are in memory at once.
BLOCK_ROWS = 4096
#: Of this package: what they predict for a row is a function of that row, sums over its columns and
#: curves of them.
ROW_BY_ROW = (DiscreteTimeModel, LogisticModel, StackingModel, WeibullCurve)
#: Steps that take more than numbers.
RAW = (PublicColumns, ColumnTransformer)
#: What trees of scikit-learn take.
LARGEST_SINGLE = float(np.finfo(np.float32).max)


def error_loss(model: Any, X: Any, y: ArrayLike) -> FloatArray:
    """Return 1 where the predicted class is wrong, else 0."""
    said, truth = np.asarray(model.predict(X)).tolist(), _labels(y)
    return np.array([_differ(a, b) for a, b in zip(said, truth, strict=True)])


def _differ(one: Any, other: Any) -> float:
    # A label may compare with nothing, and say so as it likes.
    found = call_or_none(lambda: float(bool(one != other)))
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
    """Return the loss that ``scoring`` names."""
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


def summed_losses(loss: Loss, model: Any, X: Any, y: Any) -> int:
    """Return the sum of the records' losses, in units of 2^-30.

    It depends on each record through a term between 0 and 1 of its own. Losses beyond [0, 1]
    are clipped; a record for which there is none (NaN, or a failure) counts 1. Nothing is raised or
    warned.

    Records are shown one at a time, each to a fresh copy of the model. They are shown all at once
    where the loss is one of this package and the model is, too: then rows are computed with one by
    one inside, and :func:`_come_through` keeps any of them from failing for all.
    """
    n_records = length(X)
    if model is None:
        return n_records * LOSS.sensitivity
    # In one thread, as private predictions are.
    with suppressed_warnings(), suppressed_float_errors(), parallel_config("sequential"):
        if _goes_row_by_row(loss, model):
            losses = _at_once(loss, model, X, y)
        else:
            raw = _raw_steps(model) is not None

            def alone(one: Any, i: int) -> Any:
                # One by one, as a row that cannot be read must fail for itself alone.
                row = LoneRows.of(take(X, slice(i, i + 1)), raw=raw)[0]
                return loss(one, row, lone_target(take(y, slice(i, i + 1)), 0))

            losses = asked_alone(model, alone, n_records, (1,))[:, 0]
    return LOSS.total(np.where(np.isnan(losses), 1.0, np.clip(losses, 0.0, 1.0)))


def _goes_row_by_row(loss: Loss, model: Any) -> bool:
    """Say whether losses of many rows are known to be those of each row, by types alone."""
    *_, final = flat_steps(model)
    ours = isinstance(loss, SurvivalLoss) or loss in (error_loss, brier_loss)
    inside = isinstance(final, PrivateMetaEstimator) and type(final.estimator_) in row_wise()
    # Somebody else's subclass may predict in another way.
    own = type(final).__module__.startswith("skdpsurv.") and isinstance(final, ROW_BY_ROW)
    return ours and (inside or own) and not unprotected_steps(model)


def _raw_steps(model: Any) -> list[Any] | None:
    """Return the public steps that raw rows go through; None where all take numbers."""
    *steps, final = flat_steps(model)
    columns = getattr(final, "columns_", None)
    if columns is None and not any(isinstance(step, RAW) for step in steps):
        return None
    return steps if columns is None else [*steps, columns]


def _at_once(loss: Loss, model: Any, X: Any, y: Any) -> FloatArray:
    """Return losses of many rows; NaN of rows that a step refuses, and of all if there are none."""
    *steps, final = flat_steps(model)
    seen = np.ones(length(X), dtype=bool)
    if isinstance(final, WeibullCurve):
        pass  # it has no covariates
    elif (raw := _raw_steps(model)) is not None:
        X = _features(raw, model, X)
        final = final._of_features() if final.columns_ is not None else final
    else:
        for step in steps:
            gaps = bool(get_tags(step).input_tags.allow_nan)
            X, seen = _come_through(X, seen, gaps=gaps)
            X = step.transform(X)
    if isinstance(final, PrivateMetaEstimator):
        X, seen = _come_through(_matrix(final, X), seen, largest=LARGEST_SINGLE)
        final = final.estimator_
    elif not isinstance(final, WeibullCurve):
        X, seen = _come_through(X, seen)
    found = asked_alone(final, lambda one, _: loss(one, X, y), 1, (seen.size,), copies=False)
    return np.where(seen, found[0], np.nan)


def _come_through(
    X: Any, seen: BoolArray, *, largest: float = np.inf, gaps: bool = False
) -> tuple[FloatArray, BoolArray]:
    """Return rows that the next step takes, whatever they hold, and which of them are records'."""
    rows: FloatArray = check_array(X, dtype=np.float64, ensure_all_finite=False)
    seen = seen & ((np.abs(rows) < largest) | (np.isnan(rows) & gaps)).all(axis=1)
    return np.where(seen[:, None], rows, 0.0), seen


def _features(steps: list[Any], model: Any, X: Any) -> FloatArray:
    """Return the features of raw rows; NaN of a row that a step refuses."""
    whole = one_after_another(steps)
    first = flat_steps(model)[0]
    n_columns, names = int(first.n_features_in_), getattr(first, "feature_names_in_", None)
    n_features = len(features_in(whole, n_columns, names))
    rows = np.full((length(X), n_features), np.nan)

    def read(start: int, end: int) -> FloatArray:
        part = take(X, slice(start, end))
        if names is not None and is_frame(part):
            part = part[list(names)]
        return encoded(whole, part, n_columns, names)

    def encode(start: int, end: int) -> None:
        found = call_or_none(read, start, end)
        if found is not None:
            rows[start:end] = found
        elif end - start > 1:
            middle = (start + end) // 2
            encode(start, middle)
            encode(middle, end)

    most = 1 if _normalizes(whole) else len(rows)
    for start in range(0, len(rows), most):
        encode(start, start + most)
    return rows


def _normalizes(step: Any) -> bool:
    if isinstance(step, Pipeline):
        return any(_normalizes(inner) for _, inner in step.steps)
    if isinstance(step, ColumnTransformer):
        parts = [*(inner for _, inner, _ in step.transformers), step.remainder]
        return any(map(_normalizes, parts))
    return type(step) is Normalizer


def _matrix(final: PrivateMetaEstimator, X: Any) -> FloatArray:
    """Return rows as the estimator inside sees them, read one by one; NaN where that fails."""
    return asked_alone(
        final,
        lambda one, i: one._matrix(take(X, slice(i, i + 1))),
        length(X),
        (1, final.estimator_.n_features_in_),
        copies=False,
    )[:, 0]
