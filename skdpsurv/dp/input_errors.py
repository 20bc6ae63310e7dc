"""Errors and warnings that tell nothing of a record.

Calls of foreign code are guarded, since its errors may quote a record. Cells are recognised by
their exact type: an object of another type, a subclass included, may raise anything.

Filters of warnings belong to the process; ``warnings.catch_warnings`` in one thread undoes those of
another. The filters here hold for threads inside of :func:`suppressed_warnings`, and for threads
started meanwhile. They fail where another thread records warnings at the same time, or leaves a
``catch_warnings`` that it entered before (docs/user_guide/limits).
"""

from __future__ import annotations

import copyreg
import difflib
import functools
import inspect
import re
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, special
from sklearn.base import BaseEstimator

from skdpsurv.dp.containers import is_frame, labels_of, refuse_query, shape_of
from skdpsurv.dp.references import WORDS
from skdpsurv.dp.types import FloatArray

#: Parameters of other packages that are not needed here, and why.
REASONS = {name: reason for names, reason in WORDS["unneeded"].items() for name in names.split()}


def suggestion(name: str, names: Collection[str], made_with: Collection[str] = ()) -> str:
    """Return a sentence about an unknown parameter, or "".

    ``names`` are those that the method has; ``made_with`` those of the constructor.
    """
    known = [*names, *made_with]
    if name in made_with:
        return " It is a parameter of the constructor."
    if name in REASONS:
        return f" In its place: {REASONS[name]}."
    here, more = WORDS["elsewhere"].get(name, ("", ""))
    # Where there is no norm of rows, alpha is the level of intervals.
    if here in known and (here != "alpha" or "data_norm" in known):
        return f" In its place: {here}{'' if here in names else ' of the constructor'}{more}."
    near = difflib.get_close_matches(name, known, 1)
    where = " of the constructor" if near and near[0] not in names else ""
    return f" Did you mean {near[0]}{where}?" if near else ""


def with_suggestions(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a constructor or ``fit`` suggest a name for an unknown keyword."""
    kinds = inspect.signature(method).parameters
    takes_all = any(kind.kind is kind.VAR_KEYWORD for kind in kinds.values())

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **given: Any) -> Any:
        for name in given:
            if name not in kinds and not takes_all:
                names = list(kinds)[1:]
                raise TypeError(unknown_parameter(type(self), method.__name__, name, names))
        return method(self, *args, **given)

    return checked


def unknown_parameter(kind: type, method: str, name: str, names: Collection[str]) -> str:
    """Return the error message for an unknown keyword of a constructor or another method."""
    if method == "__init__":
        return f"{kind.__name__} has no parameter {name!r}.{suggestion(name, names)}"
    said = suggestion(name, names, list(inspect.signature(kind).parameters))
    return f"{method} of {kind.__name__} has no parameter {name!r}.{said}"


def refuse_unknown(kind: type, method: str, function: Any, given: Collection[str]) -> None:
    """Refuse options of a method that the function behind it does not have."""
    names = inspect.getfullargspec(function).kwonlyargs
    for name in given:
        if name not in names:
            raise TypeError(unknown_parameter(kind, method, name, names))


#: Without bools, and without NumPy's time spans, which count among its integers.
NUMBERS: frozenset[type] = frozenset({int, float}) | {
    kind
    for kind in np.sctypeDict.values()
    if issubclass(kind, np.integer | np.floating) and not issubclass(kind, np.timedelta64)
}
FLOATS = frozenset(kind for kind in NUMBERS if issubclass(kind, float | np.floating))
INTEGERS = frozenset(kind for kind in NUMBERS if issubclass(kind, int | np.integer))
#: Types that double precision has a number for.
REAL = NUMBERS | {bool, np.bool_, Decimal, Fraction}
TEXT: frozenset[type] = frozenset({str, np.str_})
MISSING: frozenset[type] = frozenset({type(None), type(pd.NA), type(pd.NaT)})
#: Types in a matrix of numbers; NumPy decides which text is a number.
MATRIX = REAL | TEXT | MISSING | {bytes, np.bytes_}


def all_of(types: frozenset[type], cells: Iterable[Any]) -> bool:
    """Return whether each cell is of one of the types itself, without asking any cell."""
    # By identity: a metaclass may redefine ==.
    known = frozenset(map(id, types))
    return all(id(type(cell)) in known for cell in cells)


def refuse_foreign_cells(X: Any) -> None:
    """Raise TypeError for a cell of a type that a matrix of numbers may not hold."""
    if not all(all_of(MATRIX, cells) for cells in _object_cells(X)):
        raise TypeError(
            "X must hold plain numbers alone: as of float, each argument must be a string or a "
            "real number, and of no class of its own."
        )


def _object_cells(X: Any) -> Iterable[Iterable[Any]]:
    """Return the cells that are not of NumPy's own types, in several parts."""
    if isinstance(X, list | tuple):
        return [_listed(row) if isinstance(row, list | tuple | np.ndarray) else () for row in X]
    if isinstance(X, pd.DataFrame):
        return [_listed(X.iloc[:, j]) for j in range(X.shape[1])]
    return [_listed(X)] if isinstance(X, np.ndarray) else []


def _listed(cells: Any) -> Iterable[Any]:
    if isinstance(cells, list | tuple):
        return cells
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.cat.categories
    return np.asarray(cells).ravel().tolist() if cells.dtype == object else ()


#: joblib's own threads outlive a search, and warn of how many jobs there were.
_JOBLIB = r"joblib(\.|$)"
_LOCK = threading.RLock()
#: Requests of each thread, innermost last: an action, and categories that are spared.
_thread = threading.local()
#: Open requests of the process, threads that were there before, and how warnings were shown.
_process = SimpleNamespace(depth=0, bystanders=frozenset(), shown=warnings.showwarning)


def _action(category: type[Warning]) -> str | None:
    """Return "ignore" or "error" for a warning of this thread, or None for no change."""
    requests = getattr(_thread, "requests", None)
    if requests:
        action, spared = requests[-1]
        return None if issubclass(category, spared) else action
    helper = _process.depth > 0 and threading.current_thread() not in _process.bystanders
    return "ignore" if helper else None


class _InThread(type):
    """Metaclass of categories to which a warning belongs if its thread has this action."""

    action: str

    def __subclasscheck__(cls, subclass: type) -> bool:
        return _action(subclass) == cls.action


class _Silenced(Warning, metaclass=_InThread):
    action = "ignore"


class _Raised(Warning, metaclass=_InThread):
    action = "error"


def _every_warning() -> Any:
    return Warning


# scikit-learn hands filters on to worker processes: there they hold for the whole of a call.
copyreg.pickle(_InThread, lambda _: (_every_warning, ()))

_FILTERS = [
    ("ignore", None, _Silenced, None, 0),
    ("error", None, _Raised, None, 0),
    ("ignore", None, Warning, re.compile(_JOBLIB), 0),
]


def _show(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
    """Show a warning if its thread may give it, for filters that others put before ours."""
    action = _action(category)
    if action == "error" and isinstance(message, Warning):  # as it always is
        raise message
    if action is None:
        _process.shown(message, category, *args, **kwargs)


def _put_in_place() -> None:
    if list(warnings.filters[: len(_FILTERS)]) != _FILTERS:
        warnings.filterwarnings("ignore", module=_JOBLIB)
        warnings.simplefilter("error", _Raised)
        warnings.simplefilter("ignore", _Silenced)
    if warnings.showwarning is not _show:
        _process.shown, warnings.showwarning = warnings.showwarning, _show


def _take_away() -> None:
    filters = cast("list[Any]", warnings.filters)
    for ours in _FILTERS:
        if ours in filters:
            filters.remove(ours)
    if warnings.showwarning is _show:
        warnings.showwarning = _process.shown


@contextmanager
def _requesting(action: str, spared: tuple[type[Warning], ...]) -> Iterator[None]:
    if not hasattr(_thread, "requests"):
        _thread.requests = []
    with _LOCK:
        if _process.depth == 0:
            _process.bystanders = frozenset(threading.enumerate())
        _process.depth += 1
        _put_in_place()
    _thread.requests.append((action, spared))
    try:
        yield
    finally:
        _thread.requests.pop()
        with _LOCK:
            _process.depth -= 1
            if _process.depth == 0:
                _take_away()
                _process.bystanders = frozenset()


@contextmanager
def suppressed_warnings(*spared: type[Warning]) -> Iterator[None]:
    """Drop warnings of this thread and of threads that it starts, but for spared categories."""
    with _requesting("ignore", spared):
        yield


@contextmanager
def warnings_as_errors() -> Iterator[None]:
    """Raise the warnings of this thread, and of no other."""
    with _requesting("error", ()):
        yield


def call_or_none(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call foreign code on private records; return None if it raises anything but an interrupt."""
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


NO_TABLE = (
    "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data with "
    "array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single record."
)
_NO_NUMBERS = "X must be a two-dimensional array of real numbers."


class InputValueError(ValueError):
    """An input has no place in the public domain; the message shows none of it."""


def call_user_step(step: Callable[[], Any], message: str) -> Any:
    """Return the result of a user's step, or raise InputValueError: its own may quote a record."""
    found = call_or_none(lambda: (step(),))
    if found is None:
        raise InputValueError(message)
    return found[0]


def call_without_data(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a validation, such as scikit-learn's, and replace errors, which may quote a record.

    Errors that scikit-learn raises for placeholder records of the same shape and names are kept.
    """
    try:
        with suppressed_float_errors():
            return function(*args, **options)
    except (KeyboardInterrupt, InputValueError):
        raise
    except BaseException as error:  # an object's own conversion may raise what it likes
        kind = TypeError if isinstance(error, TypeError) else ValueError
    # Outside the handler, so that no chained error holds the text.
    if function.__module__.startswith("sklearn."):
        same = [arg if isinstance(arg, BaseEstimator) else _placeholder(arg) for arg in args]
        if not any(arg is None for arg in same):
            function(*same, **options)
    tables = [X for X in args if _placeholder(X) is not None or sparse.issparse(X)]
    raise kind(_table_error(tables[-1]) if tables else NO_TABLE)


def _placeholder(X: Any) -> Any:
    """Return zeros with the shape and column names of a table; None if X is no table."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple | np.ndarray):
        return np.zeros((len(X), len(X[0])))
    framed = is_frame(X)
    shape = (shape_of(X) if framed or isinstance(X, np.ndarray) else None) or ()
    zeros = call_or_none(np.zeros, shape) if len(shape) == 2 else None
    return pd.DataFrame(zeros, columns=labels_of(X)) if framed and zeros is not None else zeros


def _table_error(X: Any) -> str:
    """Return the message of a table that cannot be read."""
    if sparse.issparse(X):
        return "Sparse data was passed for X, but dense data is required. Use '.toarray()'."
    cells: NDArray[Any] | None = call_or_none(np.asarray, X)
    if cells is None or cells.ndim != 2:
        return _NO_NUMBERS
    if cells.dtype.kind == "c":
        return "Complex data not supported: X must be real."
    for holds, message in _FAULTS.items():
        found = [j for j, column in enumerate(cells.T) if call_or_none(holds, column)]
        if found:
            return message.format(columns=_named(X, found))
    return _NO_NUMBERS


def _named(X: Any, indices: list[int]) -> str:
    labels = labels_of(X)
    names = [] if labels is None else [labels[j] for j in indices]
    if not names or not all_of(TEXT, names):
        return "at least one column"
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, map(str, names)))}"


def _has_text(column: NDArray[Any]) -> bool:
    texts = (cell for cell in column.tolist() if all_of(TEXT, [cell]))
    return any(call_or_none(float, text) is None for text in texts)


def _has_infinity(column: NDArray[Any]) -> bool:
    return not np.all(np.isfinite(column.astype(np.float64)))


#: Tests of a column, and what is wrong with a table where one holds.
_FAULTS: dict[Callable[[NDArray[Any]], Any], str] = {
    _has_text: WORDS["columns"]["text"],
    lambda column: np.any(pd.isna(column)): WORDS["columns"]["missing"],
    _has_infinity: "Input X contains infinity or a value too large for dtype('float64').",
}


@contextmanager
def suppressed_float_errors() -> Iterator[None]:
    """Keep floating-point errors of NumPy and SciPy from raising or warning.

    Past the charge of a fit nothing but its release may depend on the records.
    """
    # The stubs of SciPy misspell the word.
    with np.errstate(all="ignore"), special.errstate(all="ignore"):  # type: ignore[arg-type]
        yield


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array, as NumPy would use the values under the mask, and a query."""
    refuse_query(values, name)
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array: what is under the mask would be used."
        )


def check_finite(X: ArrayLike, name: str) -> None:
    """Raise ValueError for NaN or infinity; the message names the argument alone."""
    if not np.all(np.isfinite(as_float_array(X, name))):
        raise ValueError(
            f"{name} contains NaN or infinity; replace missing values with public constants "
            "before fitting."
        )


def as_float_array(values: ArrayLike, name: str) -> FloatArray:
    """Return values as float64; the ValueError for what is no number quotes none of them."""
    array: NDArray[Any] | None = call_or_none(np.asarray, values)
    floats: FloatArray | None = None
    if array is not None and (
        array.dtype.kind in "biuf"
        or (array.dtype.kind == "O" and all_of(MATRIX, array.ravel().tolist()))
    ):
        # Long doubles overflow to infinity; text may be no number.
        with np.errstate(all="ignore"):
            floats = call_or_none(np.asarray, array, np.float64)
    if floats is None:
        raise ValueError(f"{name} must be an array of real numbers.")
    return floats


#: Products of larger numbers may overflow.
LARGEST_UNCLIPPED = 1e100


def check_unclipped(rows: FloatArray, name: str) -> None:
    """Raise ValueError for numbers beyond 1e100, in a fit without privacy, which clips nothing."""
    if max(rows.max(initial=0.0), -rows.min(initial=0.0)) > LARGEST_UNCLIPPED:
        raise ValueError(
            f"{name} must be within {LARGEST_UNCLIPPED:g} with epsilon=inf, where nothing is "
            "clipped."
        )
