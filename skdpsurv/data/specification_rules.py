"""Rules of specifications of columns, and errors that name the column alone."""

from __future__ import annotations

from typing import Any

import numpy as np


def require(holds: bool, column: str, rule: str, error: type[Exception] = ValueError) -> None:
    """Raise an error that names a column and the rule that its specification breaks."""
    if not holds:
        raise error(f"columns[{column!r}] must {rule}.")


def items(column: str, key: str, values: Any) -> list[Any]:
    """Return a list that a specification holds under a key."""
    flat = isinstance(values, list | tuple) or (type(values) is np.ndarray and values.ndim == 1)
    require(flat, column, f"have {key} as a list, got {type(values).__name__}", TypeError)
    return list(values)
