"""Rows of whatever holds records: arrays, data frames, lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from skdpsurv.preprocessing.raw_table import is_frame
from skdpsurv.types import FloatArray, IndexArray


def length(values: Any) -> int:
    """Return the number of records.

    Raises
    ------
    TypeError
        If there is no such number.
    """
    shape = getattr(values, "shape", None)
    if shape == ():
        raise TypeError("X and y must be arrays with one row for each record.")
    return int(shape[0]) if shape else len(values)


def has_one_each(values: Any, n_records: int) -> bool:
    """Say whether there is an entry for each record; of None there need be none."""
    try:
        return values is None or length(values) == n_records
    except TypeError:
        return False


def refuse_no_target(y: Any) -> None:
    """Refuse None.

    Raises
    ------
    ValueError
    """
    if y is None:
        raise ValueError(
            "y must be given: this estimator requires y to be passed, but the target y is None."
        )


def require_one_each(n_targets: int, n_records: int) -> None:
    """Refuse a target that has not one entry for each record.

    Raises
    ------
    ValueError
    """
    if n_targets != n_records:
        raise ValueError(
            "X and y must have the same number of records: found input variables with inconsistent "
            "numbers of samples."
        )


def row_products(rows: FloatArray, coef: FloatArray) -> FloatArray:
    """Return the product of each row with coefficients.

    Each in an order of its own, unlike a product of matrices: what comes out for a record does not
    depend on the others, not in its last digit either.
    """
    return np.asarray(np.sum(np.ascontiguousarray(rows * coef), axis=1))


def take(values: Any, rows: slice | IndexArray) -> Any:
    """Return some of the records, in the container that they came in."""
    if values is None:
        return None
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    known = isinstance(values, list | tuple | np.ndarray) or is_frame(values)
    if not known and hasattr(values, "__array__"):
        values = np.asarray(values)
    if hasattr(values, "shape"):
        return values[rows]
    if isinstance(rows, slice):
        return values[rows]
    return [values[i] for i in rows.tolist()]


def take_parameters(
    parameters: Mapping[str, Any], rows: IndexArray, each: Collection[str]
) -> dict[str, Any]:
    """Return parameters of ``fit``, of which those that are named are cut to rows.

    Names say which have an entry for each record: how many there are may be private, and another
    parameter may be as long by chance.
    """
    return {
        name: take(value, rows) if name in each else value for name, value in parameters.items()
    }
