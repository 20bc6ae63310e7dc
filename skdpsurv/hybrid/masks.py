"""The public mask, and the outcome: checked without showing a value."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning

from skdpsurv.privacy import check_finite, refuse_masked
from skdpsurv.privacy.domain import as_float_array
from skdpsurv.privacy.silence import attempted
from skdpsurv.rows import length, refuse_no_target, require_one_each, take
from skdpsurv.shape import size
from skdpsurv.types import BoolArray

__all__ = ["boolean_mask", "checked_outcome", "public_part", "require_both"]


def require_both(n_public: int, n_records: int) -> None:
    """Refuse a mask that leaves no public or no private record.

    Raises
    ------
    ValueError
    """
    if n_records < 2:
        raise ValueError(
            f"public must leave a public and a private record, got n_samples={n_records}."
        )
    if n_public < 1:
        raise ValueError(
            "public must be True for at least one record: there are no public records."
        )
    if n_public >= n_records:
        raise ValueError(
            "public must be False for at least one record: there are no private records."
        )


def boolean_mask(public: ArrayLike | None, n_records: int) -> BoolArray:
    """Return a mask that may be all True or all False.

    Raises
    ------
    TypeError, ValueError
        If it is no boolean for each record.
    """
    if public is None:
        raise ValueError(
            "public must be given: a boolean for each record, True for those that may be published."
        )
    refuse_masked(public, "public")
    try:
        mask = np.asarray(public)
    except ValueError:
        mask = np.empty(0)
    if mask.dtype.kind == "O" and all(isinstance(value, bool | np.bool_) for value in mask.ravel()):
        mask = mask.astype(bool)
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise TypeError("public must be a one-dimensional array of booleans.")
    if mask.size != n_records:
        raise ValueError(
            f"public must have one boolean for each of the {n_records} records, got {mask.size}."
        )
    return mask


def public_part(classifies: bool, block: tuple[Any, ...]) -> tuple[Any, NDArray[Any]]:
    """Return the public ones of some records, and their outcomes; no private one is looked at.

    Parameters
    ----------
    classifies : bool
    block : tuple
        X, y and the public mask of some records.

    Raises
    ------
    TypeError, ValueError
        As :func:`boolean_mask` and :func:`checked_outcome` do.
    """
    X, y, public = block
    mask = boolean_mask(public, size(X)[0])
    return take(X, np.flatnonzero(mask)), _public_outcome(y, mask, classifies)


def _public_outcome(y: Any, mask: BoolArray, classifies: bool) -> NDArray[Any]:
    refuse_no_target(y)
    refuse_masked(y, "y")
    try:
        values = y
        if not isinstance(y, list | tuple) and not hasattr(y, "shape"):
            values = np.asarray(y, dtype=object)
        n_records = length(values)
    except (TypeError, ValueError):
        n_records = -1
    if n_records < 0:
        raise ValueError("y must be a 1d array of labels or numbers.")
    require_one_each(n_records, mask.size)
    theirs = take(values, np.flatnonzero(mask))
    with warnings.catch_warnings():
        # Said once, of all records.
        warnings.simplefilter("ignore", DataConversionWarning)
        return checked_outcome(theirs, int(mask.sum()), classifies)


def checked_outcome(y: Any, n_records: int, classifies: bool) -> NDArray[Any]:
    """Return labels, as Python's own objects, or numbers.

    Raises
    ------
    ValueError
        If there is not one for each record, or one is missing.
    """
    refuse_no_target(y)
    refuse_masked(y, "y")
    # Objects: one private label must not change the type of the public ones.
    outcome: Any = attempted(partial(np.asarray, dtype=object if classifies else None), y)
    outcome = np.empty((0, 0, 0)) if outcome is None else outcome
    if outcome.ndim == 2 and outcome.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            DataConversionWarning,
            stacklevel=3,
        )
        outcome = outcome[:, 0]
    if outcome.ndim != 1:
        raise ValueError("y must be a 1d array of labels or numbers.")
    require_one_each(outcome.size, n_records)
    if not classifies:
        numbers = as_float_array(outcome, "y")
        check_finite(numbers, "y")
        return numbers
    # Of an object that compares with nothing there is no answer.
    missing = attempted(lambda: bool(pd.isna(outcome).any()))
    if missing is not False:
        raise ValueError("y contains NaN or missing labels; every record must have a label.")
    return outcome
