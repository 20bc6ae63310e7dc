r"""Effect of a column over its range, against a reference: post-processing of released numbers.

With z(x) the features of a person who has x in that column, and public values in the others, the
effect is :math:`(z(x) - z(x_0))' \hat\theta`; its variance is :math:`d' \Sigma d` with d that
difference, and :math:`\Sigma` the released covariance of coefficients, by sampling and by noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skdpsurv.data import PublicColumns
from skdpsurv.data.cells import quietly
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.dp.types import FloatArray

#: Number of places between the bounds of a column.
N_PLACES = 101


def effect_of(
    model: Any, column: str, reference: Any, at: Mapping[str, Any] | None
) -> tuple[pd.Index, FloatArray, FloatArray]:
    """Return values of a column, their effects and standard errors; see ``Summarised.effect``."""
    check_is_fitted(model, "release_")
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


def _check_cell(name: str, kind: ColumnKind, cell: Any) -> None:
    """Refuse a value that is no cell of a column within its bounds."""
    values = quietly(kind.read, np.fromiter([cell], dtype=object, count=1))
    if values is None or kind.out_of_bounds(values) or np.isnan(values).any():
        raise ValueError(f"{name} must be a value of {kind.column}: {kind.words()}.")
