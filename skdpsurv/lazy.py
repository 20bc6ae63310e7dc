"""Methods of rows that are not in memory: what they make is not there either.

Of collections of Dask scikit-learn's validation would pull every row into this process without a
word. Here a method that asks something of rows is asked it of each partition, where that is, once
somebody computes it; and of chunks that are read one after the other, whenever one is read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

_Method = TypeVar("_Method", bound=Callable[..., Any])


def is_dask(values: Any) -> bool:
    """Say whether something is a collection of Dask."""
    graph = getattr(type(values), "__dask_graph__", None)
    return graph is not None and values.__dask_graph__() is not None


def is_lazy(values: Any) -> bool:
    """Say whether rows are somewhere else: collections of Dask, or chunks."""
    return is_dask(values) or hasattr(type(values), "over_chunks")


def one_row(X: Any) -> Any:
    """Return a row of zeros with the columns of a collection: nothing of it is computed."""
    row = np.zeros((1, int(X.shape[1])))
    columns = getattr(X, "columns", None)
    return row if columns is None else pd.DataFrame(row, columns=columns)


def partitions(values: Any) -> list[Any]:
    """Return a task for each partition of rows."""
    if hasattr(values, "simplify"):  # of frames, files are read for the columns that are used
        # Nothing more: Dask would put small partitions together, here but not in another argument.
        return list(values.simplify().to_delayed(optimize_graph=False))
    if hasattr(values, "chunks") and values.ndim > 1:
        values = values.rechunk({1: -1})
    return list(np.ravel(values.to_delayed()))


def lazily(
    width: Callable[..., int | None], dtype: Callable[..., Any] | None = None
) -> Callable[[_Method], _Method]:
    """Have a method take collections of Dask, and chunks, as X.

    Its type stays that of the method for arrays in memory: what Dask makes has no types.

    Parameters
    ----------
    width : callable
        Of the estimator and of the method's other arguments: how many columns the result has, None
        if it is one-dimensional.
    dtype : callable, optional
        The same, for the type of its entries; float64 if omitted.
    """

    def decorate(method: _Method) -> _Method:
        @functools.wraps(method)
        def asked(self: Any, X: Any, *args: Any, **options: Any) -> Any:
            if not is_lazy(X):
                return method(self, X, *args, **options)

            def of_rows(rows: Any) -> Any:
                return method(self, rows, *args, **options)

            n_columns = width(self, *args, **options)
            if not is_dask(X):
                return X.over_chunks(of_rows, n_columns)
            kind = np.float64 if dtype is None else dtype(self, *args, **options)
            return by_partition(of_rows, X, kind, n_columns)

        return cast(_Method, asked)

    return decorate


def by_partition(
    function: Callable[[Any], Any], X: Any, dtype: Any, width: int | None = None
) -> Any:
    """Return what a function makes of rows, as an array of Dask.

    Parameters
    ----------
    function : callable
        Of rows, in a pandas data frame or an array; not called for none.
    X : dask DataFrame, Series or Array
    dtype : dtype
    width : int or None
        Columns of the result.

    Returns
    -------
    dask Array
        Of shape (n,) or (n, width), with unknown n if X has.
    """
    import dask.array as da
    from dask.delayed import delayed

    apply = delayed(functools.partial(_of_rows, function, dtype, width), pure=False)
    parts = partitions(X)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (math.nan,) * len(parts)
    more = () if width is None else (width,)
    blocks = [
        da.from_delayed(apply(part), shape=(size, *more), dtype=dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _of_rows(function: Callable[[Any], Any], dtype: Any, width: int | None, rows: Any) -> Any:
    if not len(rows):
        return np.empty((0,) if width is None else (0, width), dtype=dtype)
    return function(rows)
