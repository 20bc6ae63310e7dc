r"""Effect of a column over its range, against a reference: post-processing of released numbers.

With z(x) the features of a person who has x in that column, and public values in the others, the
effect is :math:`(z(x) - z(x_0))' \hat\theta`; its variance is :math:`d' \Sigma d` with d that
difference, and :math:`\Sigma` the released covariance of coefficients, by sampling and by noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data import PublicColumns
from skdpsurv.data.cells import quietly
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.dp.types import FloatArray

#: Number of places between the bounds of a column.
N_PLACES = 101
#: Places in the bounds of a column between which a term acts, for forecasts.
MIDDLE = (0.25, 0.5, 0.75)


def effect_of(
    model: Any, column: str, reference: Any, at: Mapping[str, Any] | None
) -> tuple[pd.Index, FloatArray, FloatArray]:
    """Return values of a column, their effects and standard errors; see ``Summarised.effect``."""
    columns = model.release_.transformer()
    if not isinstance(columns, PublicColumns):
        raise ValueError(
            "effect needs a model with columns=PublicColumns(...), whose bounds it has."
        )
    if np.ndim(model.coef_) == 2 and len(model.coef_) > 1:
        raise ValueError("effect is of a model of two classes.")
    kinds = {kind.column: kind for kind in columns._kinds()}
    if column not in kinds:
        raise ValueError(f"column must be one of {', '.join(kinds)}, got {column!r:.60}.")
    kind, others = kinds[column], dict(at or {})
    for name, cell in others.items():
        if name not in kinds or name == column:
            raise ValueError(f"at must hold other columns of the model, got {name!r:.60}.")
        _check_cell(f"at[{name!r}]", kinds[name], cell)
    reference = kind.example if reference is None else reference
    _check_cell("reference", kind, reference)
    places = np.linspace(0.0, 1.0, N_PLACES).tolist()
    cells = list(kind.labels) or list(dict.fromkeys(map(kind.cell_at, places)))
    (person,) = columns.example().to_dict("records")
    rows = pd.DataFrame(
        [person | others | {column: cell} for cell in [*cells, reference]], dtype=object
    )
    features = columns.transform(rows)
    change = features[:-1] - features[-1]
    size = change.shape[1]
    with np.errstate(all="ignore"):  # coefficients in a file may be near the largest number
        coef, error = change @ np.ravel(model.coef_), np.full(len(cells), np.nan)
        if (found := model.inference_) is not None:
            coef = change @ found.estimate[-size:]
            error = errors_of(found, change)
    return pd.Index(cells, name=column), coef, error


def errors_of(inference: Any, change: FloatArray) -> FloatArray:
    """Return standard errors of combinations of coefficients, in rows; infinite if hidden."""
    size = change.shape[1]
    lost = (change[:, ~inference.known[-size:]] != 0.0).any(axis=1)
    variance = np.einsum("ij,jk,ik->i", change, inference.covariance[-size:, -size:], change)
    return np.where(lost, np.inf, np.sqrt(np.maximum(variance, 0.0)))


def term_changes(columns: PublicColumns) -> dict[str, tuple[str, FloatArray]]:
    """Return the range of each term in words, and how features change there, in rows.

    A column changes over the middle half of its bounds, or between its labels, and others have
    typical values. A product is the change of a change.

    Examples
    --------
    >>> from skdpsurv import PublicColumns
    >>> from skdpsurv.inference.effects import term_changes
    >>> columns = PublicColumns({"age": (20, 80), "arm": ["a", "b"]})
    >>> term_changes(columns)["age"]
    ('35 to 65', array([[0.5, 0. ],
           [1. , 0. ]]))
    """
    kinds, interactions = columns._terms()
    (person,) = columns.example().to_dict("records")
    terms: list[tuple[str, tuple[ColumnKind, ...]]] = [(one.column, (one,)) for one in kinds]
    terms += [(one.name, one.factors) for one in interactions]
    found: dict[str, tuple[str, FloatArray]] = {}
    for name, factors in terms:
        each = [list(one.labels) or [*map(one.cell_at, MIDDLE)] for one in factors]
        names = [one.column for one in factors]
        rows = [person | dict(zip(names, cells, strict=True)) for cells in product(*each)]
        values = np.asarray(columns.transform(pd.DataFrame(rows, dtype=object)))
        changes = values.reshape(*map(len, each), -1)
        for axis in range(len(each)):
            first = changes.take([0], axis)
            changes = changes.take(range(1, changes.shape[axis]), axis) - first
        words = " × ".join(f"{_in_words(cells[0])} to {_in_words(cells[-1])}" for cells in each)
        if changes.any():  # a stratum has no feature
            found[name] = words, changes.reshape(-1, values.shape[1])
    return found


def _in_words(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _check_cell(name: str, kind: ColumnKind, cell: Any) -> None:
    """Refuse a value that is no cell of a column within its bounds."""
    values = quietly(kind.read, np.fromiter([cell], dtype=object, count=1))
    if values is None or kind.out_of_bounds(values) or np.isnan(values).any():
        raise ValueError(f"{name} must be a value of {kind.column}: {kind.words()}.")
