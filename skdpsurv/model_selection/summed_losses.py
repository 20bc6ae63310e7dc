"""Add up losses of records, so that no record can move the sum by more than a loss of its own.

What a record's loss is must not depend on which others are asked about, nor on whether they fail: a
matrix product gives a row other last bits in a batch than by itself, and where two classes are
equally likely these decide. Hence the way that is taken depends on types, and never on values.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import check_array, get_tags

from skdpsurv.classification.logistic_model import LogisticModel
from skdpsurv.classification.stacking_model import StackingModel
from skdpsurv.hybrid.meta_estimator import PrivateMetaEstimator
from skdpsurv.hybrid.predictions import row_wise
from skdpsurv.mechanisms.sums import LOSS
from skdpsurv.model_selection.candidates import flat_steps, unprotected_steps
from skdpsurv.model_selection.losses import Loss, SurvivalLoss, brier_loss, error_loss
from skdpsurv.preprocessing import PublicColumns
from skdpsurv.preprocessing.encoding import encoded
from skdpsurv.preprocessing.lone_rows import LoneRows, lone_target
from skdpsurv.preprocessing.public_steps import features_in
from skdpsurv.preprocessing.raw_table import is_frame
from skdpsurv.privacy import silence, silent_arithmetic
from skdpsurv.privacy.silence import attempted
from skdpsurv.shape import length, take
from skdpsurv.survival.hazards.base import DiscreteTimeModel
from skdpsurv.survival.weibull.fitter import WeibullCurve
from skdpsurv.types import BoolArray, FloatArray

#: Of this package: what they predict for a row is a function of that row, sums over its columns and
#: curves of them.
ROW_BY_ROW = (DiscreteTimeModel, LogisticModel, StackingModel, WeibullCurve)
#: Steps that take more than numbers.
RAW = (PublicColumns, ColumnTransformer)
#: What trees of scikit-learn take.
LARGEST_SINGLE = float(np.finfo(np.float32).max)


def summed_losses(loss: Loss, model: Any, X: Any, y: Any) -> int:
    """Return the sum of the records' losses, in units of 2^-30.

    It depends on each record through a term between 0 and 1 of its own. Losses beyond [0, 1]
    are clipped; a record for which there is none (NaN, or a failure) counts 1. Nothing is raised or
    warned.

    Records are shown one at a time, each to a fresh copy of the model. They are shown all at once
    where the loss is one of this package and the model is, too: then rows are computed with one by
    one inside, and :func:`_come_through` keeps any of them from failing for all.

    Parameters
    ----------
    loss : callable
        ``loss(model, X, y)``, an array with the loss of each record.
    model : estimator or None
        Fitted. None, of a fit that failed, loses 1 everywhere.
    X, y : array-like
        Held-out records.

    Returns
    -------
    int
    """
    n_records = length(X)
    if model is None:
        return n_records * LOSS.sensitivity
    # In one thread, as private predictions are: threads that add up a forest in the order in which
    # they end would move the last bits of all rows at the pace of one.
    with silence(), silent_arithmetic(), parallel_config("sequential"):
        if _goes_row_by_row(loss, model):
            losses = _at_once(loss, model, X, y)
        else:
            raw = _raw_steps(model) is not None

            def alone(i: int) -> Any:
                # One by one, as a row that cannot be read must fail for itself alone.
                row = LoneRows.of(take(X, slice(i, i + 1)), raw=raw)[0]
                return loss(copy.deepcopy(model), row, lone_target(take(y, slice(i, i + 1)), 0))

            losses = np.concatenate([_found(alone, 1, i) for i in range(n_records)])
    return LOSS.total(np.where(np.isnan(losses), 1.0, np.clip(losses, 0.0, 1.0)))


def _found(loss: Callable[..., Any], n_records: int, *arguments: Any) -> FloatArray:
    """Return losses, of the shape that they must have; NaN if there are none."""
    found = attempted(lambda: np.asarray(loss(*arguments), dtype=np.float64))
    shaped = found is not None and found.shape == (n_records,)
    return found if shaped else np.full(n_records, np.nan)


def _goes_row_by_row(loss: Loss, model: Any) -> bool:
    """Say whether losses of many rows are known to be those of each row, by types alone."""
    *_, final = flat_steps(model)
    ours = isinstance(loss, SurvivalLoss) or loss in (error_loss, brier_loss)
    inside = isinstance(final, PrivateMetaEstimator) and type(final.estimator_) in row_wise()
    # Somebody else's subclass may predict in another way.
    own = type(final).__module__.startswith("skdpsurv.") and isinstance(final, ROW_BY_ROW)
    known = inside or own
    return ours and known and not unprotected_steps(model)


def _raw_steps(model: Any) -> list[Any] | None:
    """Return the public steps that raw rows go through; None where all take numbers."""
    *steps, final = flat_steps(model)
    columns = getattr(final, "columns_", None)
    if columns is None and not any(isinstance(step, RAW) for step in steps):
        return None
    return steps if columns is None else [*steps, columns]


def _at_once(loss: Loss, model: Any, X: Any, y: Any) -> FloatArray:
    *steps, final = flat_steps(model)
    if isinstance(final, WeibullCurve):  # it has no covariates
        return _found(loss, length(X), final, X, y)
    seen = np.ones(length(X), dtype=bool)
    rows = X
    if (raw := _raw_steps(model)) is not None:
        rows = _features(raw, model, X)
        final = final._of_features() if final.columns_ is not None else final
    else:
        for step in steps:
            gaps = bool(get_tags(step).input_tags.allow_nan)
            rows, seen = _come_through(rows, seen, gaps=gaps)
            rows = step.transform(rows)
    if isinstance(final, PrivateMetaEstimator):
        rows, seen = _come_through(_matrix(final, rows), seen, largest=LARGEST_SINGLE)
        final = final.estimator_
    else:
        rows, seen = _come_through(rows, seen)
    return np.where(seen, _found(loss, seen.size, final, rows, y), np.nan)


def _come_through(
    X: Any, seen: BoolArray, *, largest: float = np.inf, gaps: bool = False
) -> tuple[FloatArray, BoolArray]:
    """Return rows that the next step takes, whatever they hold, and which of them are records'.

    Every step and every prediction takes finite numbers. A row with another one has no loss; zeros
    go on in its place, so that shapes, and with them the arithmetic of other rows, stay.
    """
    rows: FloatArray = check_array(X, dtype=np.float64, ensure_all_finite=False)
    seen = seen & ((np.abs(rows) < largest) | (np.isnan(rows) & gaps)).all(axis=1)
    return np.where(seen[:, None], rows, 0.0), seen


def _features(steps: list[Any], model: Any, X: Any) -> FloatArray:
    """Return the features of raw rows; NaN of a row that a step refuses.

    Rows that are refused are found by halves: what is made of the others is computed cell by cell,
    and is the same to the last bit whatever rows are beside them. A norm may not be, so that rows
    are normalized one by one.
    """
    whole = Pipeline([(f"step_{k}", step) for k, step in enumerate(steps)])
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
        found = attempted(read, start, end)
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
    nobody = np.full((1, final.estimator_.n_features_in_), np.nan)

    def read(row: slice) -> FloatArray:
        found = attempted(lambda: final._matrix(take(X, row)))
        return nobody if found is None else found

    return np.vstack([read(slice(i, i + 1)) for i in range(length(X))])
