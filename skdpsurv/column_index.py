"""Columns that a parameter names, by index or by name."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np


def column_index(parameter: str, column: Any, names: Sequence[str], n_columns: int) -> int:
    """Return the index of a column.

    Parameters
    ----------
    parameter : str
        Name of the parameter, for the message.
    column : int or str
    names : sequence of str
        Of the columns; empty if they have none.
    n_columns : int

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        Naming the parameter and the rule.
    """
    if isinstance(column, str):
        if column in names:
            return list(names).index(column)
        said = f"and {column!r} is none" if len(names) else "which has no column names: use indices"
        raise ValueError(f"{parameter} must hold columns of X, {said}.")
    if isinstance(column, bool | np.bool_) or not isinstance(column, Integral):
        raise TypeError(
            f"{parameter} must hold indices or names of columns, got {type(column).__name__}."
        )
    index = int(column)
    if not 0 <= index < n_columns:
        raise ValueError(f"{parameter} must hold indices from 0 to {n_columns - 1}, got {index}.")
    return index
