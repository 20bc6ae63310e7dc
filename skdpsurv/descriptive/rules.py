"""Rules of the parameters of Table 1: columns, groups and grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.columns import PublicColumns
from skdpsurv.descriptive import column_tables
from skdpsurv.descriptive.summary import OVERALL
from skdpsurv.dp.checks import integer
from skdpsurv.dp.input_errors import call_or_none

#: Smallest distance between points of a grid, relative to the width of the bounds.
NARROWEST = 1e-9


def require_columns(columns: Any) -> None:
    if type(columns) is not PublicColumns:
        raise TypeError(
            "columns must be PublicColumns, which say what each column of X holds, got "
            f"{type(columns).__name__}."
        )
    columns._check()


def check_points(grid: Mapping[str, Any], kinds: Mapping[str, ColumnKind]) -> None:
    """Refuse points of columns that are no numbers, or that do not rise from bound to bound."""
    for name, stated in grid.items():
        kind = kinds.get(name)
        if kind is None or not kind.bounded:
            raise ValueError(f"grid must hold numbers or dates of columns, got {name!r}.")
        points, (low, high) = column_tables.points_of(kind, stated), kind.ends
        rises = 2 <= points.size <= column_tables.LARGEST_GRID and (points[0], points[-1]) == (
            low,
            high,
        )
        if not (rises and np.diff(points / 2).min() >= NARROWEST * (high / 2 - low / 2)):
            raise ValueError(
                f"grid must hold 2 to {column_tables.LARGEST_GRID:,} points for {name!r}, rising "
                "from bound to bound, and not too near each other."
            )


def check_sizes(groups: Sequence[Any], kinds: Sequence[ColumnKind]) -> None:
    """Refuse labels of groups that are not distinct in print, and what takes too long."""
    labels = list(map(str, groups))
    if len(labels) > column_tables.MOST_GROUPS:
        raise ValueError(f"by must have at most {column_tables.MOST_GROUPS} labels.")
    if len({OVERALL, *labels}) < len(labels) + 1:
        raise ValueError(
            f"by must have other labels than {OVERALL!r} and, beside missing groups, "
            f"{column_tables.NO_GROUP!r}."
        )
    for kind in kinds:
        if len(kind.labels) > column_tables.MOST_LABELS:
            raise ValueError(
                f"columns must have at most {column_tables.MOST_LABELS} categories each, and "
                f"{kind.column!r} has {len(kind.labels):,}."
            )
        if max(map(abs, kind.ends)) > column_tables.LARGEST_BOUND:
            raise ValueError(
                f"columns must have bounds up to {column_tables.LARGEST_BOUND:g}, and those of "
                f"{kind.column!r} are beyond."
            )


def check_grid(name: str, grid: Any) -> None:
    """Refuse a grid that is neither "auto", nor a number of points, nor such for columns."""
    if isinstance(grid, str) and grid == "auto":
        return
    stated = list(grid.values()) if isinstance(grid, Mapping) else [grid]
    for one in stated:
        if isinstance(one, Integral) and not isinstance(one, bool):
            integer(2, column_tables.LARGEST_GRID)(name, one)
        elif not (isinstance(grid, Mapping) and isinstance(one, list | tuple | np.ndarray)):
            raise TypeError(
                f"{name} must be 'auto', a number of points, or a mapping of columns to numbers or "
                f"lists of points, got {type(one).__name__}."
            )
        elif not all(isinstance(p, Real) and not isinstance(p, bool) for p in list(one)):
            raise TypeError(f"{name} must hold numbers as points.")
        elif call_or_none(np.asarray, one, np.float64) is None:
            raise ValueError(f"{name} must hold finite numbers as points.")
