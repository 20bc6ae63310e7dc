"""What of the records is public: how many there are, and their columns. No value is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from skdpsurv.blocks import Blocks
from skdpsurv.privacy import call_without_data, refuse_masked
from skdpsurv.privacy.refusals import NO_TABLE
from skdpsurv.rows import take
from skdpsurv.types import BoolArray

#: Sums of multiples of 2^-30 up to 1 are exact in integers of 64 bits, with a bit to spare.
MOST_RECORDS = 2**32
#: What the rows of a list may be.
ROWS = (list, tuple, np.ndarray)


@dataclass(frozen=True)
class Shape:
    """What a plan may know of the records: all of it is public.

    Parameters
    ----------
    n_records : int
    n_features : int
    """

    n_records: int
    n_features: int

    def require(self, n_records: int) -> None:
        """Refuse records that are not as many as were planned for.

        Raises
        ------
        ValueError
            If something has changed X or y meanwhile, or X misstates its own shape.
        """
        if n_records != self.n_records:
            raise ValueError(
                f"X must hold the {self.n_records} records that it had when the fit began."
            )


def seen_shape(estimator: Any, X: Any, *, used: bool = True) -> Shape:
    """Return the shape of X, and note number and names of its columns on the estimator.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_``, and ``feature_names_in_`` if the columns have names.
    X : array-like of shape (n_samples, n_features)
        Of a list of rows, the first says how many columns there are.
    used : bool, default=True
        Whether its values matter: else they may be masked.

    Raises
    ------
    ValueError, TypeError
        If X is not two-dimensional, or empty.
    """
    if used:
        refuse_masked(X, "X")
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: X must be real.")
    seen = call_without_data(size, X)
    if len(seen) != 2:
        raise ValueError(NO_TABLE)
    for number, what in zip(seen, ("sample(s)", "feature(s)"), strict=True):
        if number < 1:
            raise ValueError(
                f"X must not be empty. Found array with 0 {what} (shape={seen}) while a minimum "
                "of 1 is required."
            )
    if seen[0] > MOST_RECORDS:
        raise ValueError(f"X must hold at most {MOST_RECORDS:,} records, got {seen[0]:,}.")
    # Of a source, the names of columns are known without records.
    named = X.meta if isinstance(X, Blocks) and X.meta is not None else X
    call_without_data(validate_data, estimator, named, skip_check_array=True)
    return Shape(*seen)


def made_up(X: Any, public: BoolArray, row: Sequence[Any]) -> Any:
    """Return rows of the shape of X that hold nothing private.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    public : ndarray of bool, shape (n_samples,)
        Which rows are public: these stay, and the first of them stands in for all others.
    row : sequence of length n_features
        All rows, where none is public.
    """
    if public.any():
        places = np.arange(public.size)
        return take(X, np.where(public, places, places[public][0]))
    names = X.columns if isinstance(X, pd.DataFrame) else None
    rows = pd.DataFrame([list(row)] * size(X)[0], columns=names)
    return rows.to_numpy() if names is None else rows


def size(X: Any) -> tuple[int, ...]:
    """Return the shape of X; of a list of rows, the first says how many columns there are.

    Raises
    ------
    TypeError
        If X is no array, frame or list.
    """
    shape = getattr(X, "shape", None)
    if shape is None and hasattr(X, "__array__"):
        shape = np.asarray(X).shape
    if isinstance(shape, tuple):
        return tuple(int(number) for number in shape)
    if not isinstance(X, list | tuple):
        raise TypeError
    rows = bool(X) and isinstance(X[0], ROWS)
    return (len(X), len(X[0])) if rows else (len(X),)
