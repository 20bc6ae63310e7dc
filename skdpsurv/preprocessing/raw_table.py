"""Tables of raw columns: data frames, arrays and lists of rows, taken apart by public names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.preprocessing.column_cells import quietly
from skdpsurv.privacy import refuse_masked
from skdpsurv.privacy.refusals import NO_TABLE

PANDAS_MOMENTS = [f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns")]


def is_frame(X: Any) -> bool:
    """Return whether a table has names of columns, as those of pandas and polars."""
    # Asked of the class: labels of a series are attributes of it.
    return hasattr(type(X), "columns") and hasattr(type(X), "__getitem__")


def refuse_moments(X: Any) -> None:
    """Refuse dates and spans of time where numbers belong: NumPy makes nanoseconds of them.

    Raises
    ------
    TypeError
        Naming the columns, by their types alone.
    """
    found = ""
    if is_frame(X):
        kinds = [str(kind).lower() for kind in getattr(X, "dtypes", ())]
        moments = [kind.startswith(("date", "timedelta", "duration")) for kind in kinds]
        found = ", ".join(
            str(name) for name, wrong in zip(X.columns, moments, strict=False) if wrong
        )
    if found or getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise TypeError(
            f"X must hold numbers, and no dates or spans of time{found and ', found in '}{found}: "
            "PublicColumns takes dates; of a span, divide by its unit, as in "
            "X['wait'] / pd.Timedelta('1D')."
        )


def raw_columns(X: Any, names: Sequence[str], estimator: str) -> list[Any]:
    """Return the columns of a table, one for each name.

    Parameters
    ----------
    X : DataFrame, array or list of rows
        Private. Columns of a data frame may be in any order, those of arrays and rows are in the
        order of ``names``.
    names : sequence of str
    estimator : str
        For messages.

    Raises
    ------
    ValueError, TypeError
        If the table is masked, sparse, empty, not two-dimensional, or has other columns.
    """
    table = as_table(X, _names(X, names) if is_frame(X) else names, estimator)
    if not len(table):
        raise ValueError(
            f"Found array with 0 sample(s) while a minimum of 1 is required by {estimator}."
        )
    return [table[name] for name in names]


def _names(X: Any, names: Sequence[str]) -> list[str]:
    """Return the names of a frame, which must be some names in any order."""
    found = quietly(list, X.columns)
    if found is None or not all(isinstance(name, str) for name in found):
        raise ValueError("X must have text column names.")
    found = [str.__str__(name) for name in found]
    for what, some in (
        ("lacks", set(names) - set(found)),
        ("must hold no other columns than those described, got", set(found) - set(names)),
        ("must not have two columns of one name, got", {n for n in found if found.count(n) > 1}),
    ):
        if some:
            raise ValueError(f"X {what} {', '.join(map(repr, sorted(some)))}.")
    return found


def as_table(X: Any, names: Sequence[str] | None, estimator: str = "") -> pd.DataFrame:
    """Return rows as a data frame of pandas with known columns, in order.

    Cells stay what they are. NumPy and pandas look for a type that fits all of them: one text makes
    text of all numbers of a list, and one gap makes floats of integers.

    Parameters
    ----------
    X : data frame of pandas or polars, array, or list of rows
        Private. A frame's columns are in order.
    names : sequence of str, or None for the places of columns
    estimator : str
        For messages.

    Raises
    ------
    ValueError, TypeError
        If it is no table of so many columns.
    """
    refuse_masked(X, "X")
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense: sparse data is not supported.")
    table = X if isinstance(X, pd.DataFrame) else quietly(_table, X)
    if table is None:
        raise ValueError(NO_TABLE)
    width = table.shape[1]
    names = [str(j) for j in range(width)] if names is None else list(names)
    if width != len(names):
        expected = f"{estimator} is expecting {len(names)} features as input"
        expected = expected if estimator else f"{len(names)} features are expected"
        raise ValueError(f"X has {width} features, but {expected}.")
    return table.set_axis(names, axis=1)


def _table(X: Any) -> pd.DataFrame | None:
    if is_frame(X):
        columns = [_of_series(X[name]) for name in X.columns]
    elif isinstance(X, list | tuple):
        # NumPy would make text of numbers beside text, and look into cells that are sequences.
        arrays = [row for row in X if not isinstance(row, list | tuple)]
        if not all(type(row) is np.ndarray and row.ndim == 1 for row in arrays):
            return None
        columns = [_objects(column) for column in zip(*X, strict=True)]
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            return None
        if array.dtype.kind in "biuf":
            return pd.DataFrame(array)
        columns = [_of_array(array[:, j]) for j in range(array.shape[1])]
    if len(set(map(len, columns))) > 1:
        return None
    return pd.DataFrame({j: pd.Series(one, dtype=one.dtype) for j, one in enumerate(columns)})


def _objects(cells: Sequence[Any]) -> NDArray[Any]:
    return np.fromiter(cells, dtype=object, count=len(cells))


def _of_series(series: Any) -> NDArray[Any]:
    if str(series.dtype).startswith("Float"):
        return np.asarray(series.to_numpy())
    return _objects(series.to_list())


def _of_array(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells of a type that pandas has, or as objects."""
    if cells.dtype.kind == "O" or cells.dtype.name in PANDAS_MOMENTS:
        return cells
    return _objects(cells.tolist() if cells.dtype.kind in "UST" else list(cells))
