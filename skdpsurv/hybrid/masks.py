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
from skdpsurv.shape import length, refuse_no_target, require_one_each, size, take
from skdpsurv.types import BoolArray

NO_OUTCOME = "y must be a 1d array of labels or numbers."


def require_both(n_public: int, n_records: int) -> None:
    """Refuse a mask that leaves no public or no private record.

    Raises
    ------
    ValueError
    """
    if not 0 < n_public < n_records:
        raise ValueError(
            "public must be True for at least one record and False for at least one, got "
            f"{n_public} of n_samples={n_records}."
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
    found: Any = attempted(np.asarray, public)
    mask: NDArray[Any] = np.empty(0) if found is None else found
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
    refuse_no_target(y)
    refuse_masked(y, "y")
    listed = isinstance(y, list | tuple) or hasattr(y, "shape")
    values = y if listed else attempted(partial(np.asarray, dtype=object), y)
    n_records = attempted(length, values)
    if n_records is None:
        raise ValueError(NO_OUTCOME)
    require_one_each(n_records, mask.size)
    theirs = take(values, np.flatnonzero(mask))
    with warnings.catch_warnings():
        # Said once, of all records.
        warnings.simplefilter("ignore", DataConversionWarning)
        outcome = checked_outcome(theirs, int(mask.sum()), classifies)
    return take(X, np.flatnonzero(mask)), outcome


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
        raise ValueError(NO_OUTCOME)
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
