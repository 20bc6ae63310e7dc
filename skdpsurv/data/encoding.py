"""Raw rows through a public transformer, block by block and cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from skdpsurv.data.bounds import PublicBoundsScaler
from skdpsurv.data.cells import as_table, numbers, quietly
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.feature import Feature, raw_features
from skdpsurv.data.public_steps import branches, column_names, features_of, is_dropped, is_nothing
from skdpsurv.dp import RefusedValueError, call_without_data, check_finite, silence
from skdpsurv.dp.types import FloatArray


def encoded(transformer: Any, X: Any, n_columns: int, names: Sequence[str] | None) -> FloatArray:
    """Return the features of raw rows.

    A public transformer learns nothing: to fit it is a formality, which any rows serve for.
    """
    rows = _walked(transformer, X, n_columns, names, None)
    if not np.isfinite(rows).all():
        raise RefusedValueError(
            "columns must make finite numbers of X: it contains NaN or infinity, or values beyond "
            "all bounds."
        )
    return rows


def columns_beyond(
    transformer: Any, X: Any, n_columns: int, names: Sequence[str] | None
) -> list[str]:
    """Return the columns of which some value lies beyond its public bounds, step by step."""
    found: list[str] = []
    _walked(transformer, X, n_columns, names, found)
    return list(dict.fromkeys(found))


def made_of_one(transformer: Any, n_columns: int, names: Sequence[str] | None) -> FloatArray:
    """Return the features of a placeholder row, which shows if a transformer can be used."""
    known = column_names(transformer, n_columns, names)
    return encoded(transformer, [valid_row(transformer, known)], n_columns, names)


def _walked(
    transformer: Any, X: Any, n_columns: int, names: Sequence[str] | None, beyond: list[str] | None
) -> FloatArray:
    known = column_names(transformer, n_columns, names)
    table = as_table(X, known)
    with silence():  # what scikit-learn warns of, some record has
        return _numbers(_through(transformer, table, raw_features(known), beyond))


def _through(step: Any, X: Any, inputs: list[Feature], beyond: list[str] | None) -> Any:
    """Return what a public step makes of rows; note columns beyond bounds, if there is a list."""
    if is_nothing(step):
        return X
    if isinstance(step, Pipeline):
        inners = [inner for _, inner in step.steps]
        for before, inner in zip([None, *inners], inners, strict=False):
            inputs = features_of(before, inputs)
            X = _through(inner, X, inputs, beyond)
        return X
    if isinstance(step, ColumnTransformer):
        parts = [
            _numbers(_through(inner, _columns(X, places), [inputs[j] for j in places], beyond))
            for _, inner, places in branches(step, [one.name for one in inputs])
            if places and not is_dropped(inner)
        ]
        return np.hstack(parts) if parts else np.empty((X.shape[0], 0))
    if not isinstance(step, PublicColumns):
        X = _numbers(X)
    if isinstance(step, PublicBoundsScaler):
        X = pd.DataFrame(X, columns=[one.name for one in inputs])
    elif not isinstance(step, PublicColumns):
        check_finite(X, "X")
    if beyond is not None and hasattr(step, "_beyond"):
        beyond += call_without_data(step._beyond, X)
    own = clone(step)
    make = own.transform if isinstance(step, PublicColumns) else own.fit_transform  # needs no fit
    return call_without_data(make, X)


def _columns(X: Any, places: list[int]) -> Any:
    return X.iloc[:, places] if hasattr(X, "iloc") else X[:, places]


def _numbers(X: Any) -> FloatArray:
    """Return rows in double precision, each cell by itself; NaN where missing."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return X.astype(np.float64, copy=False)
    rows = pd.DataFrame(X)
    if all(getattr(dtype, "kind", "") in "biuf" for dtype in rows.dtypes):
        return np.asarray(rows.to_numpy(dtype=np.float64, na_value=np.nan))
    read = [quietly(numbers, rows.iloc[:, j]) for j in range(rows.shape[1])]
    if any(column is None for column in read):
        raise RefusedValueError("X must hold numbers alone in columns of numbers.")
    return np.column_stack(read)


def valid_row(transformer: Any, names: Sequence[str]) -> list[Any]:
    """Return one raw row that a public transformer takes: made up, and so of nobody."""
    row: list[Any] = [0.0] * len(names)
    if isinstance(transformer, Pipeline) and transformer.steps:
        first = [step for _, step in transformer.steps if not is_nothing(step)]
        return valid_row(first[0], names) if first else row
    if isinstance(transformer, ColumnTransformer):
        for _, step, places in branches(transformer, names):
            inside = valid_row(step, [names[j] for j in places])
            for j, value in zip(places, inside, strict=True):
                row[j] = value
    elif isinstance(transformer, PublicColumns):
        cells = {kind.column: kind.cell(kind.ends[0]) for kind in transformer._kinds()}
        row = [cells[name] for name in names] if set(names) == set(cells) else row
    return row
