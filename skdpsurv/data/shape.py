"""The public shape of records, warnings of what looks wrong in public numbers, and rows of tables.

Values beyond bounds are private and never reported. Public numbers that hardly fit each other are,
before anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from skdpsurv.dp import containers
from skdpsurv.dp.checks import is_integer
from skdpsurv.dp.clipping import row_pieces
from skdpsurv.dp.containers import is_lazy
from skdpsurv.dp.input_errors import (
    INTEGERS,
    NO_TABLE,
    ROWS,
    all_of,
    call_or_none,
    call_without_data,
    refuse_masked,
)
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import BoolArray, FloatArray, IndexArray

#: With so many records, sums of multiples of 2^-30 up to 1 are exact in 64 bits.
MOST_RECORDS = 2**32


@dataclass(frozen=True)
class Shape:
    """Public size of the records, all that a plan may know of them.

    Parameters
    ----------
    n_records : int
    n_features : int
    has_entry : bool, default=False
        Whether the time is stated from which each record was seen.
    """

    n_records: int
    n_features: int
    has_entry: bool = field(default=False, kw_only=True)

    def require(self, n_records: int) -> None:
        """Refuse another number of records than was planned for."""
        if n_records != self.n_records:
            raise ValueError(
                f"X must hold the {self.n_records} records that it had when the fit began."
            )


def public_shape(estimator: Any, X: Any, *, used: bool = True) -> Shape:
    """Return the shape of X, and note number and names of its columns on the estimator."""
    if used:
        refuse_masked(X, "X")
    if getattr(containers.dtype_of(X), "kind", "") == "c":
        raise ValueError("Complex data not supported: X must be real.")
    seen = call_without_data(size, X)
    if len(seen) != 2:
        raise ValueError(NO_TABLE)
    for number, what in zip(seen, ("sample(s)", "feature(s)"), strict=True):
        if number < 1:
            raise ValueError(
                f"X must not be empty. Found array with 0 {what} (shape={seen}) while a minimum "
                "of 1 is required."
            )
    if seen[0] > MOST_RECORDS:
        raise ValueError(f"X must hold at most {MOST_RECORDS:,} records, got {seen[0]:,}.")
    call_without_data(validate_data, estimator, _named(X), skip_check_array=True)
    return Shape(*seen)


def _named(X: Any) -> Any:
    """Return the object with the names of columns; sources of blocks know these without records."""
    meta = X.meta if hasattr(type(X), "map_reduce") else None
    return X if meta is None else meta


def placeholder(X: Any, public: BoolArray, row: Sequence[Any]) -> Any:
    """Return rows of the shape of X that hold nothing private."""
    if public.any():
        indices = np.arange(public.size)
        return take(X, np.where(public, indices, indices[public][0]))
    names = containers.labels_of(X)
    rows = pd.DataFrame([list(row)] * size(X)[0], columns=names)
    return rows.to_numpy() if names is None else rows


def size(X: Any) -> tuple[int, ...]:
    """Return the shape of X; the first row of a list gives the number of columns."""
    shape = containers.shape_of(X)
    if shape is not None:
        return tuple(int(number) for number in shape)
    if not isinstance(X, list | tuple):
        raise TypeError
    rows = bool(X) and issubclass(type(X[0]), ROWS)
    return (len(X), len(X[0])) if rows else (len(X),)


# ---- Public numbers that look wrong.

#: Least n * epsilon for each coefficient.
LEAST_EACH = 50.0
#: Least n * epsilon for each squared number of features, with a fifth of epsilon for standard
#: errors: with less, most intervals of simulated columns are infinite.
INTERVALS_NEED, USUAL_SHARE = 100.0, 0.2
#: Number of features, and n * epsilon for each coefficient, between which a delta gained about 0.03
#: of C-index or AUC (docs/benchmarks/delta).
MANY_FEATURES, LARGE_GAIN_FROM, LARGE_GAIN_BELOW = 40, 5.0, 75.0


class PublicInputWarning(UserWarning):
    """The settings of a fit look inconsistent: units, bounds, horizon or epsilon.

    The fit would be private and perhaps useless. Nothing has been spent when it is issued.
    """


def small_budget(n_records: int, epsilon: float, n_coefficients: int) -> list[str]:
    """Return a warning if there are few records times epsilon for each coefficient."""
    budget = float(n_records) * epsilon / max(n_coefficients, 1)
    if budget >= LEAST_EACH:
        return []
    needed = math.ceil(LEAST_EACH * n_coefficients / epsilon)
    own = {"budget": budget, "needed": needed, "least": LEAST_EACH}
    return [phrase("small_budget", **own, number=n_coefficients, epsilon=epsilon)]


def helpful_delta(
    n_records: int, epsilon: float, n_coefficients: int, n_features: int
) -> list[str]:
    """Return a list: a warning if a delta would gain much, or nothing."""
    each = float(n_records) * epsilon / n_coefficients
    if n_features < MANY_FEATURES or not LARGE_GAIN_FROM <= each < LARGE_GAIN_BELOW:
        return []
    bound = float(n_records) ** -2
    return [phrase("helpful_delta", n_features=n_features, budget=each, bound=bound)]


def unstated_norm() -> list[str]:
    """Return the warning if neither columns nor a norm of rows are stated."""
    return [phrase("unstated_norm")]


def few_intervals(
    n_records: int, n_features: int, epsilon: float, share: float, least: float
) -> list[str]:
    """Return a list: a warning if there are no standard errors or few intervals, or nothing."""
    information = n_records * epsilon
    stated = {"share": share, "information": information, "n_features": n_features}
    if information < least:
        return [phrase("no_intervals", **stated, least=least)]
    need = INTERVALS_NEED * n_features**2 * USUAL_SHARE / share
    return [] if information >= need else [phrase("few_intervals", **stated, need=need)]


def missing_from_prior(columns: Sequence[str]) -> list[str]:
    """Return a list: a warning if a prior has columns that the records lack, or nothing."""
    return [phrase("missing_from_prior", columns=", ".join(columns))] if columns else []


# ---- Rows of arrays, data frames and lists.


def in_memory(*values: Any) -> bool:
    """Return whether all arguments are in the memory of this process."""
    return not any(map(is_lazy, values))


def decided_by_one(values: Any) -> bool:
    """Say whether one record may decide shape or type: of a list, a tuple, and a complex array."""
    if is_pair(values):
        return any(map(decided_by_one, values))
    kind = getattr(containers.dtype_of(values), "kind", "")
    return isinstance(values, list | tuple) or kind == "c"


def is_pair(values: Any) -> bool:
    """Say whether this is a tuple of two columns in memory, by their classes."""
    return (
        issubclass(type(values), tuple)
        and len(values) == 2
        and all(isinstance(one, np.ndarray) or containers.is_series(one) for one in values)
    )


def require_in_memory(*values: Any) -> None:
    """Refuse lazy rows, which scikit-learn would silently load into this process."""
    if not in_memory(*values):
        raise TypeError("X and y must be in memory here, got a collection of Dask, or chunks.")


def unusable_labels(labels: Sequence[Any]) -> ValueError:
    """Return the error for labels of columns that are no names, with what to write."""
    kinds = ", ".join(sorted({type(label).__name__ for label in labels} - {"str"}))
    return ValueError(
        "X must have text column names, by which its columns are described, and has labels of "
        f"type {kinds}. Rename them first: X = X.set_axis([...], axis=1), with the name of each "
        "column in the order of X."
    )


def require_names(X: Any, names: Sequence[str] = ()) -> None:
    """Refuse a table whose columns would be found by position, though they have names, or others.

    Labels 0, 1, 2 ... in order are positions, as those of an array in a frame.
    """
    labels = containers.labels_of(_named(X))
    if not labels or (all_of(INTEGERS, labels) and labels == list(range(len(labels)))):
        return
    if not all(type(label) is str for label in labels):
        raise unusable_labels(labels)
    if len(labels) == len(names) and labels != list(names):
        raise ValueError(f"X must have the columns {', '.join(names)}, in this order.")


def refuse_moments(X: Any) -> None:
    """Refuse dates and spans of time where numbers belong: NumPy makes nanoseconds of them."""
    found = ""
    if (labels := containers.labels_of(X)) is not None:
        kinds = zip(labels, containers.column_types(X), strict=False)
        moments = "date", "time", "duration"
        found = ", ".join(str(name) for name, kind in kinds if kind.startswith(moments))
    if found or getattr(containers.dtype_of(X), "kind", "") in ("m", "M"):
        raise TypeError(
            f"X must hold numbers, and no dates or spans of time{found and ', found in '}{found}: "
            "PublicColumns takes dates; divide a span by its unit, as in "
            "X['wait'] / pd.Timedelta('1D')."
        )


def length(values: Any) -> int:
    """Return the number of records."""
    shape = containers.shape_of(values)
    if shape == ():
        raise TypeError("X and y must be arrays with one row for each record.")
    return int(shape[0]) if shape else len(values)


def has_one_each(values: Any, n_records: int) -> bool:
    """Return whether there is an entry for each record; None needs none."""
    return values is None or bool(call_or_none(length, values) == n_records)


def refuse_no_target(y: Any) -> None:
    """Refuse None."""
    if y is None:
        raise ValueError(
            "y must be given: this estimator requires y to be passed, but the target y is None."
        )


def require_one_each(n_targets: int, n_records: int) -> None:
    """Refuse a target without exactly one entry for each record."""
    if n_targets != n_records:
        raise ValueError(
            "X and y must have the same number of records: found input variables with inconsistent "
            "numbers of samples."
        )


def row_products(rows: FloatArray, coef: FloatArray) -> FloatArray:
    """Return the product of each row with coefficients.

    Unlike a product of matrices, each row is summed by itself: not even its last digit depends on
    other rows.
    """
    rows, total = np.ascontiguousarray(rows), np.empty(len(rows))
    for piece in row_pieces(*rows.shape):  # singly where NumPy's order depends on their number
        total[piece] = np.einsum("ij,j->i", rows[piece], coef)
    return total


def take(values: Any, rows: slice | IndexArray) -> Any:
    """Return some of the records, in the container that they came in."""
    if values is None:
        return None
    if isinstance(values, containers.PANDAS):
        return values.iloc[rows]
    if containers.is_arrow(values) and not isinstance(rows, slice):
        return values.take(rows)
    known = isinstance(values, np.ndarray) or containers.is_series(values)
    if hasattr(type(values), "__array__") and not (known or containers.is_frame(values)):
        values = np.asarray(values)
    if containers.shape_of(values) is not None or isinstance(rows, slice):
        return values[rows]
    return [values[i] for i in rows.tolist()]


def take_parameters(
    parameters: Mapping[str, Any], rows: IndexArray, each: Collection[str]
) -> dict[str, Any]:
    """Return parameters of ``fit``, cutting to rows those that are named in ``each``.

    Lengths do not decide: they may be private, and others may be as long by chance.
    """
    return {name: take(v, rows) if name in each else v for name, v in parameters.items()}


def target_names(y: Any) -> tuple[str, ...]:
    """Return the names of fields or columns of a target, if it has any: they are public."""
    names = containers.fields_of(y) or containers.labels_of(y) or [containers.name_of(y)]
    return tuple(name for name in names if isinstance(name, str))


def column_index(parameter: str, column: Any, names: Sequence[str], n_columns: int) -> int:
    """Return the index of a column that a parameter names, by index or by name."""
    if isinstance(column, str):
        if column in names:
            return list(names).index(column)
        got = f"and {column!r} is none" if len(names) else "which has no column names: use indices"
        raise ValueError(f"{parameter} must hold columns of X, {got}.")
    if not is_integer(column):
        raise TypeError(
            f"{parameter} must hold indices or names of columns, got {type(column).__name__}."
        )
    index = int(column)
    if not 0 <= index < n_columns:
        raise ValueError(f"{parameter} must hold indices from 0 to {n_columns - 1}, got {index}.")
    return index
