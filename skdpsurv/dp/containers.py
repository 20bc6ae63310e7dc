"""Containers of records, told apart by their types.

A private object is never asked whether it has an attribute, since a record may answer: labels in
the index of a Series are attributes of it, and NumPy and scikit-learn ask for such. Its class says
what it is, and which attributes it has.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

PANDAS = pd.DataFrame, pd.Series
SPARSE: Any = sparse.spmatrix, sparse.sparray


def loaded(library: str, *names: str) -> tuple[type, ...]:
    """Return classes of a library; none if it is not imported, as nothing is of them then."""
    return tuple(filter(None, (getattr(sys.modules.get(library), name, None) for name in names)))


def is_arrow(values: Any) -> bool:
    """Return whether this is a table or a column of pyarrow."""
    return isinstance(values, loaded("pyarrow", "Table", "RecordBatch", "ChunkedArray", "Array"))


def is_frame(values: Any) -> bool:
    """Return whether this is a table with names of columns, such as those of pandas and polars."""
    return hasattr(type(values), "columns") and hasattr(type(values), "__getitem__")


def is_series(values: Any) -> bool:
    """Return whether this is a column of pandas, polars or pyarrow."""
    kinds = loaded("polars", "Series") + loaded("pyarrow", "ChunkedArray", "Array")
    return isinstance(values, (pd.Series, *kinds))


def is_dask_array(values: Any) -> bool:
    """Return whether this is an array of Dask."""
    return isinstance(values, loaded("dask.array", "Array"))


def sparse_rows(values: Any) -> Any:
    """Return a sparse matrix as one that can be cut by rows, and anything else unchanged."""
    return values.tocsr() if isinstance(values, SPARSE) else values


def listed(series: Any) -> Any:
    """Return the cells of a series in types of their own."""
    return series.to_pylist() if is_arrow(series) else series.to_list()


def labels_of(values: Any) -> list[Any] | None:
    """Return the labels of the columns of a table; None if it has none."""
    labels = values.columns if is_frame(values) else None
    if labels is not None and is_arrow(values):  # its columns are the data
        labels = values.schema.names
    return None if labels is None else list(labels)


def select(table: Any, names: list[str]) -> Any:
    """Return some columns of a table, in order."""
    return table.select(names) if is_arrow(table) else table[names]


def column_types(values: Any) -> list[str]:
    """Return the names of the types of columns of a table in memory, in lower case."""
    types = values.schema.types if is_arrow(values) else values.dtypes
    return [str(kind).lower() for kind in types]


def dtype_of(values: Any) -> Any:
    """Return the type of the entries of an array or series; None if its class has none."""
    return values.dtype if isinstance(values, SPARSE) or hasattr(type(values), "dtype") else None


def fields_of(values: Any) -> tuple[str, ...]:
    """Return the names of the fields of a structured array."""
    return tuple(getattr(dtype_of(values), "names", None) or ())


def name_of(values: Any) -> Any:
    """Return the name of a series; None for anything else."""
    return values.name if hasattr(type(values), "name") else None


def shape_of(values: Any) -> tuple[int, ...] | None:
    """Return the shape of an array or table; None if its class has none."""
    if hasattr(type(values), "shape"):
        return tuple(values.shape)
    return np.asarray(values).shape if hasattr(type(values), "__array__") else None


def refuse_query(values: Any, name: str) -> None:
    """Raise TypeError for a lazy frame of polars."""
    if isinstance(values, loaded("polars", "LazyFrame")):
        raise TypeError(f"{name} must hold records: collect the LazyFrame, as in {name}.collect().")


def unlabelled(values: Any, name: str = "X") -> Any:
    """Return data of pandas with a neutral index, whose labels answer nothing; refuse queries."""
    refuse_query(values, name)
    if isinstance(values, PANDAS):
        values = values.copy(deep=False)
        values.index = pd.RangeIndex(len(values))
    return values


def is_dask(values: Any) -> bool:
    """Return whether this is a collection of Dask."""
    graph = getattr(type(values), "__dask_graph__", None)
    return graph is not None and values.__dask_graph__() is not None


def is_lazy(values: Any) -> bool:
    """Return whether rows are not in memory: collections of Dask, or chunks."""
    return is_dask(values) or hasattr(type(values), "over_chunks")
