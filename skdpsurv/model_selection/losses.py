"""Losses of single records, in [0, 1]: their sum has sensitivity 1, unlike ranking scores.

The C-index and the area under the ROC curve compare pairs, so that one record can move n of them.
A record's loss must not depend on other records, nor on their failures: even the last bits of a
matrix product differ between a batch and a single row, and may decide between equally likely
classes. So types alone decide how losses are computed, never values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import parallel_config
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import check_array, get_tags

from skdpsurv.base.pipelines import flat_steps, one_after_another, unprotected_steps
from skdpsurv.base.tabular import ask_alone
from skdpsurv.classification.private_classifier import LogisticModel
from skdpsurv.classification.stacking_model import StackingModel
from skdpsurv.data import PublicColumns
from skdpsurv.data.histories import Histories, read_target, with_entry
from skdpsurv.data.public_steps import encoded, features_in
from skdpsurv.data.shape import length, take
from skdpsurv.data.single_rows import SingleRows, single_target
from skdpsurv.data.target import fit_target, is_two_dimensional
from skdpsurv.dp.checks import one_of, positive_number
from skdpsurv.dp.containers import is_frame, select
from skdpsurv.dp.input_errors import call_or_none, suppressed_float_errors
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.hybrid.meta_estimator import PrivateMetaEstimator, row_wise
from skdpsurv.mechanisms.sums import LOSS
from skdpsurv.survival.hazards.discrete_model import DiscreteTimeModel
from skdpsurv.survival.weibull.fitter import WeibullCurve

Loss = Callable[..., ArrayLike]

#: Number of rows whose survival curves are in memory at once.
BLOCK_ROWS = 4096
#: Models of this package that predict row by row: curves of sums over a row's columns.
ROW_BY_ROW = (DiscreteTimeModel, LogisticModel, StackingModel, WeibullCurve)
#: Steps of pipelines that take raw cells, not numbers alone.
RAW = (PublicColumns, ColumnTransformer)
#: Bound on the inputs of scikit-learn's trees.
LARGEST_SINGLE = float(np.finfo(np.float32).max)


def error_loss(model: Any, X: Any, y: ArrayLike) -> FloatArray:
    """Return 1 where the predicted class is wrong, else 0."""
    predicted = np.asarray(model.predict(X)).tolist()
    return np.array([_differ(a, b) for a, b in zip(predicted, _labels(y), strict=True)])


def _differ(one: Any, other: Any) -> float:
    found = call_or_none(lambda: float(bool(one != other)))  # a label may refuse comparisons
    return 1.0 if found is None else found


def _labels(y: Any) -> list[Any]:
    """Return labels with their own types, which an array would change."""
    return np.ravel(y).tolist() if isinstance(y, np.ndarray) else list(y)


def brier_loss(model: Any, X: Any, y: ArrayLike) -> FloatArray:
    """Return half the squared distance of probabilities and outcome: (1 - p)^2 for two classes."""
    likely = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), 0.0, 1.0)
    classes = np.asarray(model.classes_).tolist()
    outcome = np.zeros_like(likely)
    for row, label in enumerate(_labels(y)):
        outcome[row] = [1.0 - _differ(known, label) for known in classes]
    known = outcome.any(axis=1)
    return np.where(known, 0.5 * ((likely - outcome) ** 2).sum(axis=1), 1.0)


@dataclass(frozen=True)
class SurvivalLoss:
    r"""Loss of survival curves on a public grid, with or without censoring.

    Time up to the public horizon is divided into ``n_intervals`` equal intervals. With the
    cumulative hazard H interpolated linearly between their ends, and :math:`h` its slope in units
    of 1 / horizon, a record that leaves at t has

    * "likelihood": :math:`H(t) - \delta \log h(t)`, its negative log-likelihood, clipped to
      ``log_range`` and mapped to [0, 1];
    * "brier": :math:`\frac1J\sum_j (\delta_j - p_j)^2` over the intervals j at whose start it was
      at risk, with :math:`p_j = 1 - e^{-(H_j - H_{j-1})}`, and :math:`\delta_j = 1` if its event
      was in j. An interval in which it was censored does not count.

    With a late entry, "likelihood" is less the H of the entry, and "brier" is over the intervals
    after that of the entry. Who is never at risk has the loss 0, whatever the model.

    Both are proper, up to the clipping: under independent censoring the true model has the smallest
    expected loss on the grid.

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

    def __call__(self, model: Any, X: Any, y: Any, entry: Any = None) -> FloatArray:
        """Return the losses of records."""
        # A curve's X holds its times.
        found = read_target(y) if is_two_dimensional(X) else fit_target(X, y)
        found = with_entry(found, entry)
        losses = np.empty(found.size)
        for start in range(0, found.size, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            steps = np.diff(self._curves(model, take(X, part)), axis=1, prepend=0.0)
            losses[part] = self._losses(steps, found.take(part))
        return losses

    def _losses(self, steps: FloatArray, histories: Histories) -> FloatArray:
        """Return losses of histories from increments of H."""
        n_intervals, rows = self.n_intervals, np.arange(histories.size)
        t = histories.exit / self.horizon
        event = histories.event & (t <= 1.0)
        t = np.clip(t, 0.0, 1.0)
        last = np.clip(np.ceil(t * n_intervals), 1, n_intervals).astype(np.intp) - 1
        before = np.cumsum(steps, axis=1)[rows, last] - steps[rows, last]
        if self.kind == "likelihood":
            share = t * n_intervals - last
            slope = np.log(np.maximum(steps[rows, last] * n_intervals, 1e-300))
            loss = before + share * steps[rows, last] - np.where(event, slope, 0.0)
            low, high = self.log_range
            if (entry := histories.entry) is None:
                return np.clip((loss - low) / (high - low), 0.0, 1.0)
            start = np.minimum(entry / self.horizon, t) * n_intervals
            within = np.clip(start[:, None] - np.arange(n_intervals), 0.0, 1.0)
            lived = np.where(within > 0.0, within * steps, 0.0)  # hazards after it may be infinite
            loss = np.clip((loss - lived.sum(axis=1) - low) / (high - low), 0.0, 1.0)
            exit_ = np.minimum(histories.exit, self.horizon)
            return np.where((entry == 0.0) | (entry < exit_), loss, 0.0)
        p = -np.expm1(-steps)
        if histories.entry is not None:
            first = np.ceil(np.minimum(histories.entry / self.horizon, 2.0) * n_intervals)
            p = np.where(np.arange(n_intervals) >= first[:, None], p, 0.0)
        squares = np.where(np.arange(n_intervals) < last[:, None], p**2, 0.0).sum(axis=1)
        stayed = t >= 1.0  # was seen to survive the last interval
        final = np.where(event, (1.0 - p[rows, last]) ** 2, np.where(stayed, p[rows, last] ** 2, 0))
        if histories.entry is not None:
            final = np.where(last >= first, final, 0.0)
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
        # Between the ends of its intervals a step function is interpolated linearly.
        width = np.append(np.diff(grid), 1.0)[place]
        share = np.clip((ends - grid[place]) / width, 0.0, 1.0)
        beyond = np.minimum(place + 1, grid.size - 1)
        return np.asarray(padded[:, place] * (1.0 - share) + padded[:, beyond] * share)


def through_pipeline(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the final step of a pipeline, and transformed rows."""
    *steps, final = flat_steps(model)
    for step in steps:
        X = step.transform(X)
    return final, X


def chosen_loss(scoring: str | Loss | None, estimator: Any, horizon: object) -> Loss:
    """Return the loss named by ``scoring``."""
    if scoring is not None and not isinstance(scoring, str):
        if not callable(scoring):
            raise TypeError("scoring must be None, the name of a loss, or a callable.")
        return scoring
    if horizon is not None:
        if getattr(flat_steps(estimator)[-1], "causes", None) is not None:
            raise ValueError(
                "scoring must be a callable loss(estimator, X, y) with values in [0, 1] for an "
                "estimator of several causes of events."
            )
        kind = one_of("scoring", scoring or "likelihood", ("likelihood", "brier"))
        return SurvivalLoss(kind, positive_number("max_time", horizon))
    if not is_classifier(estimator):
        raise ValueError(
            "scoring must be a callable loss(estimator, X, y) with values in [0, 1] for an "
            "estimator that is neither a classifier nor a model of survival."
        )
    kind = one_of("scoring", scoring or "error", ("error", "brier"))
    if kind == "brier" and not hasattr(estimator, "predict_proba"):
        raise ValueError("scoring='brier' needs an estimator with predict_proba.")
    return brier_loss if kind == "brier" else error_loss


def summed_losses(loss: Loss, model: Any, X: Any, y: Any, entry: Any = None) -> int:
    """Return the sum of the records' losses, in units of 2^-30.

    Losses are clipped to [0, 1]; NaN and failures count 1. Nothing is raised or warned. Each record
    is shown to a fresh copy of the model. If the loss and the model are of this package, they see
    all rows at once: they compute row by row, and :func:`_readable` keeps a row from failing all.
    """
    n_records = length(X)
    if model is None:
        return n_records * LOSS.sensitivity
    # In one thread, as private predictions are.
    with suppressed_warnings(), suppressed_float_errors(), parallel_config("sequential"):
        if _goes_row_by_row(loss, model):
            losses = _at_once(loss if entry is None else partial(loss, entry=entry), model, X, y)
        else:
            raw = _raw_steps(model) is not None

            def loss_of_row(copied: Any, i: int) -> Any:
                # Read here, as an unreadable row must fail alone.
                row = SingleRows.of(take(X, slice(i, i + 1)), raw=raw)[0]
                target = single_target(take(y, slice(i, i + 1)), 0)
                late = {} if entry is None else {"entry": take(entry, slice(i, i + 1))}
                return loss(copied, row, target, **late)

            losses = ask_alone(model, loss_of_row, n_records, (1,))[:, 0]
    return LOSS.total(np.where(np.isnan(losses), 1.0, np.clip(losses, 0.0, 1.0)))


def _goes_row_by_row(loss: Loss, model: Any) -> bool:
    """Return whether the types of loss and model ensure that each row is predicted by itself."""
    *_, final = flat_steps(model)
    ours = isinstance(loss, SurvivalLoss) or loss in (error_loss, brier_loss)
    inside = isinstance(final, PrivateMetaEstimator) and type(final.estimator_) in row_wise()
    # Foreign subclasses may predict in another way.
    own = type(final).__module__.startswith("skdpsurv.") and isinstance(final, ROW_BY_ROW)
    return ours and (inside or own) and not unprotected_steps(model)


def _raw_steps(model: Any) -> list[Any] | None:
    """Return the public steps that read raw rows; None if all take numbers."""
    *steps, final = flat_steps(model)
    columns = getattr(final, "columns_", None)
    if columns is None and not any(isinstance(step, RAW) for step in steps):
        return None
    return steps if columns is None else [*steps, columns]


def _at_once(loss: Loss, model: Any, X: Any, y: Any) -> FloatArray:
    """Return losses of many rows; NaN for rows that a step refuses."""
    *steps, final = flat_steps(model)
    valid = np.ones(length(X), dtype=bool)
    if isinstance(final, WeibullCurve):
        pass  # it has no covariates
    elif (raw := _raw_steps(model)) is not None:
        X = _features(raw, model, X)
        final = final._of_features() if final.columns_ is not None else final
    else:
        for step in steps:
            X, valid = _readable(X, valid, gaps=bool(get_tags(step).input_tags.allow_nan))
            X = step.transform(X)
    if isinstance(final, PrivateMetaEstimator):
        X, valid = _readable(_matrix(final, X), valid, largest=LARGEST_SINGLE)
        final = final.estimator_
    elif not isinstance(final, WeibullCurve):
        X, valid = _readable(X, valid)
    found = ask_alone(final, lambda model, _: loss(model, X, y), 1, (valid.size,), copies=False)
    return np.where(valid, found[0], np.nan)


def _readable(
    X: Any, valid: BoolArray, *, largest: float = np.inf, gaps: bool = False
) -> tuple[FloatArray, BoolArray]:
    """Return rows that the next step takes, with zeros for invalid ones, and a mask of the rest."""
    rows: FloatArray = check_array(X, dtype=np.float64, ensure_all_finite=False)
    valid = valid & ((np.abs(rows) < largest) | (np.isnan(rows) & gaps)).all(axis=1)
    return np.where(valid[:, None], rows, 0.0), valid


def _features(steps: list[Any], model: Any, X: Any) -> FloatArray:
    """Return the features of raw rows; NaN for a row that a step refuses."""
    whole = one_after_another(steps)
    first = flat_steps(model)[0]
    n_columns, names = int(first.n_features_in_), getattr(first, "feature_names_in_", None)
    n_features = len(features_in(whole, n_columns, names))
    rows = np.full((length(X), n_features), np.nan)

    def read(start: int, end: int) -> FloatArray:
        part = take(X, slice(start, end))
        if names is not None and is_frame(part):
            part = select(part, list(names))
        return encoded(whole, part, n_columns, names)

    def encode(start: int, end: int) -> None:
        found = call_or_none(read, start, end)
        if found is not None:
            rows[start:end] = found
        elif end - start > 1:
            middle = (start + end) // 2
            encode(start, middle)
            encode(middle, end)

    size = 1 if _normalizes(whole) else len(rows)
    for start in range(0, len(rows), size):
        encode(start, start + size)
    return rows


def _normalizes(step: Any) -> bool:
    if isinstance(step, Pipeline):
        return any(_normalizes(inner) for _, inner in step.steps)
    if isinstance(step, ColumnTransformer):
        parts = [*(inner for _, inner, _ in step.transformers), step.remainder]
        return any(map(_normalizes, parts))
    return type(step) is Normalizer


def _matrix(final: PrivateMetaEstimator, X: Any) -> FloatArray:
    """Return rows as the inner estimator takes them, read one by one; NaN for failures."""

    def read(model: Any, i: int) -> Any:
        return model._matrix(take(X, slice(i, i + 1)))

    shape = (1, final.estimator_.n_features_in_)
    return ask_alone(final, read, length(X), shape, copies=False)[:, 0]
