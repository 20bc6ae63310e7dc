"""Labels of classes or groups: public if the caller states them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from skdpsurv.data.cells import positions
from skdpsurv.data.shape import refuse_no_target, require_one_each
from skdpsurv.dp.input_errors import (
    NUMBERS,
    TEXT,
    InputValueError,
    call_or_none,
    call_without_data,
    refuse_masked,
)
from skdpsurv.dp.types import FloatArray, IndexArray

LABELS = NUMBERS | TEXT | {bool, np.bool_}


def stated_labels(name: str, labels: ArrayLike) -> NDArray[Any]:
    """Return the labels that the caller states, in their order."""
    made: NDArray[Any] | None = call_or_none(np.asarray, labels)
    stated = np.empty(0) if made is None else made  # ragged
    mixed = stated.dtype.kind in "US" and not all(isinstance(c, str) for c in labels)  # type: ignore[union-attr]
    if stated.dtype.kind == "O" and stated.ndim == 1 and all(isinstance(c, str) for c in stated):
        stated = stated.astype(str)
    if stated.ndim != 1 or stated.size < 1 or stated.dtype.kind not in "biufU" or mixed:
        raise ValueError(f"{name} must be a list of labels, all numbers or all text.")
    if stated.dtype.kind == "f" and not np.isfinite(stated).all():
        raise ValueError(f"{name} must be finite.")
    if np.unique(stated).size < stated.size:
        raise ValueError(f"{name} must not hold a label twice.")
    return stated


def stated_classes(classes: ArrayLike | None) -> NDArray[Any] | None:
    """Return the classes that the caller states, sorted, or None."""
    return None if classes is None else np.unique(stated_labels("classes", classes))


def label_indices(
    values: ArrayLike, name: str, stated: NDArray[Any], among: str, error: str = ""
) -> IndexArray:
    """Return each record's label as its index among stated ones: a function of that label alone."""
    refuse_masked(values, name)
    found: IndexArray | None = call_or_none(positions, values, stated.tolist(), LABELS)
    if found is None or (found < 0).any():
        raise ValueError(
            error or f"{name} must hold, for each record, one of the labels in {among}."
        )
    return found


def class_indices(
    y: ArrayLike, classes: NDArray[Any] | None, n_records: int
) -> tuple[NDArray[Any], IndexArray]:
    """Return the classes and, for each record, the index of its class among them."""
    refuse_no_target(y)
    refuse_masked(y, "y")
    if classes is not None:
        # Any stated label may be in any record: whether y looks like labels must not matter.
        single = y if isinstance(y, list | tuple) else _validated(column_or_1d, y, warn=True)
        require_one_each(len(single), n_records)
        error = "y holds a label that is not among classes, or NaN."
        if classes.tolist() != [*range(classes.size)]:  # by the classes alone
            error += (
                " Ensembles of scikit-learn number the classes for their members: there, state "
                f"classes={[*range(classes.size)]}; with one against others, [0, 1]."
            )
        return classes, label_indices(single, "y", classes, "classes", error)
    labels = np.asarray(_validated(column_or_1d, y, warn=True))
    if labels.dtype.names:
        raise ValueError("y must be a 1d array of class labels, without fields.")
    require_one_each(labels.shape[0], n_records)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputValueError("y contains NaN or infinity; every record must have a label.")
    if _validated(type_of_target, labels) not in ("binary", "multiclass"):
        raise InputValueError(
            "Unknown label type: y must hold class labels, not continuous values."
        )
    found, index = _validated(np.unique, labels, return_inverse=True)
    return found, index


def one_vs_rest(index: IndexArray, n_classes: int) -> FloatArray:
    """Return signs, 1 for a class and -1 for the rest: a row for each class, or one for two."""
    positive = np.arange(n_classes) if n_classes > 2 else np.array([n_classes - 1])
    return np.where(index == positive[:, None], 1.0, -1.0)


def _validated(function: Any, *args: Any, **options: Any) -> Any:
    """Call a validation of labels; its own errors may quote them."""
    try:
        return call_without_data(function, *args, **options)
    except Exception as error:
        message = str(error)
        foreign = not isinstance(error, TypeError | ValueError)
        if foreign or "Expected 2D" in message or "X must" in message:
            message = "y must be a 1d array of class labels: numbers or text, not both."
    raise InputValueError(message)
