"""Class labels: public if the caller states them, and read from the data, at a price, if not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from skdpsurv.privacy import call_without_data, refuse_masked
from skdpsurv.rows import refuse_no_target, require_one_each
from skdpsurv.types import FloatArray, IndexArray

__all__ = ["class_indices", "one_vs_rest", "stated_classes"]


def stated_classes(classes: ArrayLike | None) -> NDArray[Any] | None:
    """Return the classes that the caller states, sorted, or None.

    Raises
    ------
    ValueError
        If they are not different labels, all numbers or all text.
    """
    if classes is None:
        return None
    try:
        stated = np.asarray(classes)
    except ValueError:  # ragged
        stated = np.empty(0)
    mixed = stated.dtype.kind in "US" and not all(isinstance(c, str) for c in classes)  # type: ignore[union-attr]
    if stated.dtype.kind == "O" and stated.ndim == 1 and all(isinstance(c, str) for c in stated):
        stated = stated.astype(str)
    if stated.ndim != 1 or stated.size < 1 or stated.dtype.kind not in "biufU" or mixed:
        raise ValueError("classes must be a list of labels, all numbers or all text.")
    if stated.dtype.kind == "f" and not np.isfinite(stated).all():
        raise ValueError("classes must be finite.")
    unique = np.unique(stated)
    if unique.size < stated.size:
        raise ValueError("classes must not hold a label twice.")
    return unique


def class_indices(
    y: ArrayLike, classes: NDArray[Any] | None, n_records: int
) -> tuple[NDArray[Any], IndexArray]:
    """Return the classes and, for each record, the place of its class among them.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels. Private.
    classes : ndarray or None
        Sorted, as stated by the caller; None reads them from y.
    n_records : int

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    index : ndarray of shape (n_samples,)

    Raises
    ------
    ValueError
        If y is no list of labels, has another length, or holds a label outside the stated classes.
        Messages show no label.
    """
    refuse_no_target(y)
    refuse_masked(y, "y")
    labels = np.asarray(_without_data(column_or_1d, y, warn=True))
    if labels.dtype.names:
        raise ValueError("y must be a 1d array of class labels, without fields.")
    require_one_each(labels.shape[0], n_records)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y contains NaN or infinity; every record must have a label.")
    found, index = _without_data(np.unique, labels, return_inverse=True)
    if classes is None:
        if _without_data(type_of_target, labels) not in ("binary", "multiclass"):
            raise ValueError("Unknown label type: y must hold class labels, not continuous values.")
        return found, index
    # Any stated label may be in any record: whether y looks like labels must not matter.
    # Python's own equality: 1 is 1.0, and text is text whatever NumPy keeps it in.
    places = {label: place for place, label in enumerate(classes.tolist())}
    try:
        order = [places[label] for label in found.tolist()]
    except (KeyError, TypeError):
        order = []
    if len(order) < len(found):
        raise ValueError("y holds a label that is not among classes.")
    return classes, np.asarray(order, dtype=np.intp)[index]


def one_vs_rest(index: IndexArray, n_classes: int) -> FloatArray:
    """Return signs, 1 for a class and -1 for the rest: a row for each class, or one for two.

    Parameters
    ----------
    index : ndarray of shape (n_samples,)
    n_classes : int

    Returns
    -------
    ndarray of shape (n_outputs, n_samples)
    """
    positive = np.arange(n_classes) if n_classes > 2 else np.array([n_classes - 1])
    return np.where(index == positive[:, None], 1.0, -1.0)


def _without_data(function: Any, *args: Any, **options: Any) -> Any:
    """Call a validation of labels; its own errors may quote them."""
    try:
        return call_without_data(function, *args, **options)
    except Exception as error:  # whatever compares or hashes a label may raise what it likes
        message = str(error)
        foreign = not isinstance(error, TypeError | ValueError)
        if foreign or "Expected 2D" in message or "X must" in message:
            message = "y must be a 1d array of class labels: numbers or text, not both."
    raise ValueError(message)
