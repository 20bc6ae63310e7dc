"""Tables of raw columns: data frames, arrays and lists of rows, taken apart by public names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.preprocessing.column_cells import quietly
from skdpsurv.privacy import refuse_masked
from skdpsurv.privacy.refusals import NO_TABLE

__all__ = ["as_table", "is_frame", "raw_columns", "refuse_moments"]


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
    remedy = (
        "PublicColumns takes dates; of a span, divide by its unit, as in "
        "X['wait'] / pd.Timedelta('1D')."
    )
    if is_frame(X):
        found = [str(name) for name, kind in _types(X) if kind.startswith(("date", "timedelta"))]
        if found:
            raise TypeError(
                f"X must hold numbers, and dates or spans of time are in {', '.join(found)}: "
                f"{remedy}"
            )
    elif getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise TypeError(f"X must hold numbers, and not dates or spans of time: {remedy}")


def _types(X: Any) -> list[tuple[Any, str]]:
    """Return the names of columns, and those of their types in small letters."""
    kinds = getattr(X, "dtypes", ())
    return [
        (name, str(kind).lower().replace("duration", "timedelta"))
        for name, kind in zip(X.columns, kinds, strict=False)
    ]


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

    Returns
    -------
    list
        Of series or one-dimensional arrays.

    Raises
    ------
    ValueError, TypeError
        If the table is masked, sparse, empty, not two-dimensional, or has other columns.
    """
    _refuse_masked_and_sparse(X)
    columns = _by_name(X, names) if is_frame(X) else _by_position(X, names, estimator)
    if not len(columns[0]):
        raise ValueError(
            f"Found array with 0 sample(s) while a minimum of 1 is required by {estimator}."
        )
    return columns


def _refuse_masked_and_sparse(X: Any) -> None:
    refuse_masked(X, "X")
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense: sparse data is not supported.")


def _by_name(X: Any, names: Sequence[str]) -> list[Any]:
    found = quietly(list, X.columns)
    if found is None or not all(isinstance(name, str) for name in found):
        raise ValueError("X must have text column names.")
    found = [str.__str__(name) for name in found]
    for what, some in (
        ("lacks", [name for name in names if name not in found]),
        ("must hold no other columns than those described, got", set(found) - set(names)),
        ("must not have two columns of one name, got", {n for n in found if found.count(n) > 1}),
    ):
        if some:
            raise ValueError(f"X {what} {', '.join(map(repr, sorted(some)))}.")
    if isinstance(X, pd.DataFrame):
        return [X.iloc[:, found.index(name)] for name in names]
    columns = quietly(lambda: [X[name] for name in names])
    lengths = quietly(lambda: {len(column) for column in columns})
    if lengths is None or len(lengths) != 1:
        raise ValueError("X must be a table of columns of one length.")
    return list(columns)


def _by_position(X: Any, names: Sequence[str], estimator: str) -> list[Any]:
    columns = quietly(_of_rows if isinstance(X, list | tuple) else _of_array, X)
    if columns is None:
        raise ValueError(NO_TABLE)
    if len(columns) != len(names):
        raise ValueError(
            f"X has {len(columns)} features, but {estimator} is expecting {len(names)} features "
            "as input."
        )
    return list(columns)


def _of_array(X: Any) -> list[Any] | None:
    array = np.asarray(X)
    return [array[:, j] for j in range(array.shape[1])] if array.ndim == 2 else None


def _of_rows(rows: Sequence[Any]) -> list[Any] | None:
    # NumPy would make text of numbers beside text, and look into cells that are sequences.
    for row in rows:
        listed = isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)
        if not listed or isinstance(row, np.ma.MaskedArray):
            return None
    columns = zip(*rows, strict=True)
    return [np.fromiter(column, dtype=object, count=len(rows)) for column in columns]


def as_table(X: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return rows as a data frame of pandas with known columns, in order.

    Cells stay what they are. NumPy and pandas look for a type that fits all of them: one text makes
    text of all numbers of a list, and one gap makes floats of integers.

    Parameters
    ----------
    X : data frame of pandas or polars, array, or list of rows
        Private. A frame's columns are in order.
    names : sequence of str

    Raises
    ------
    ValueError, TypeError
        If it is no table of so many columns.
    """
    _refuse_masked_and_sparse(X)
    if isinstance(X, pd.DataFrame):
        table = X
    elif is_frame(X):
        table = quietly(lambda: _of_columns([_cells(X[name]) for name in X.columns]))
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        table = pd.DataFrame(X)
    else:
        split = _of_rows if isinstance(X, list | tuple) else _of_array
        table = quietly(lambda: _of_columns(split(X)))
    if table is None:
        raise ValueError(NO_TABLE)
    if table.shape[1] != len(names):
        raise ValueError(
            f"X has {table.shape[1]} features, but {len(names)} features are expected."
        )
    return table.set_axis(list(names), axis=1)


def _cells(series: Any) -> Any:
    if str(series.dtype).startswith("Float"):
        return series.to_numpy()
    listed = series.to_list()
    return np.fromiter(listed, dtype=object, count=len(listed))


def _of_columns(columns: list[Any] | None) -> pd.DataFrame | None:
    if columns is None:
        return None
    return pd.DataFrame({j: pd.Series(cells, dtype=cells.dtype) for j, cells in enumerate(columns)})
