"""Refusals and warnings that tell nothing of a record.

What other packages call a parameter, and what it is here: for messages.

Types of cells that answer for themselves, by exact terms.

An object of another type, a subclass included, may say of itself what it likes, and warn or raise
what it likes: of NumPy's conversions, ``float(cell)`` is a method of the record's own.

No warning may tell of private records, or of how often something was done with them.

Filters of warnings belong to the process: ``warnings.catch_warnings`` in one thread undoes what
another has set. The filters here are added and taken away by themselves, by the first who needs
them and the last, and hold for some threads alone: those inside of
:func:`suppressed_warnings`, and those that were started meanwhile, which inner estimators and
joblib do. All other threads warn as ever.

What remains is out of reach, as filters are nobody's own: another thread that, at the same time,
records warnings, or leaves a ``catch_warnings`` that it entered before (docs/user_guide/limits).

Refusals that say what rule was broken and nothing of the record that broke it.
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
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.base import BaseEstimator

#: By the name elsewhere: the name here, and what else to know. Said where there is one of the name.
OTHERS = {
    "penalizer": ("alpha", ""),
    "C": ("alpha", ", which grows as C falls"),
    "robust": ("inference_share", ""),
    "cluster_col": ("person", ", which says whose each record is"),
    "formula": ("columns", ""),
    "bounds": ("columns", ""),
    "eps": ("epsilon", ""),
    "budget": ("epsilon", ", and accountant for what several fits may spend"),
    "seed": ("random_state", ""),
}
#: By names elsewhere: what to do.
_REASONS = {
    "sample_weight weights weights_col": "nothing: a weight would change what one record can move",
    "duration_col event_col durations event_observed": (
        "y holds times and events: Surv.from_arrays of scikit-survival, or split_target"
    ),
    "entry entry_col": "nothing: people who enter late are not provided for",
    "l1_ratio": "nothing: penalties are of squares alone",
    "strata": "nothing: make it a column of X, or fit curves with groups",
}
REASONS = {name: reason for names, reason in _REASONS.items() for name in names.split()}


def suggestion(name: str, names: Collection[str], made_with: Collection[str] = ()) -> str:
    """Return a sentence about a parameter that is none of these; "" if there is nothing to say.

    Where ``names`` are those of a method, ``made_with`` are those of the constructor.
    """
    known = [*names, *made_with]
    if name in made_with:
        return " It is a parameter of the constructor."
    if name in REASONS:
        return f" In its place: {REASONS[name]}."
    here, more = OTHERS.get(name, ("", ""))
    # Where there is no norm of rows, alpha is the level of intervals.
    if here in known and (here != "alpha" or "data_norm" in known):
        return f" In its place: {here}{'' if here in names else ' of the constructor'}{more}."
    near = difflib.get_close_matches(name, known, 1)
    where = " of the constructor" if near and near[0] not in names else ""
    return f" Did you mean {near[0]}{where}?" if near else ""


def with_suggestions(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a constructor or ``fit`` say what an unknown keyword is called here."""
    kinds = inspect.signature(method).parameters
    takes_all = any(kind.kind is kind.VAR_KEYWORD for kind in kinds.values())

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **given: Any) -> Any:
        for name in given:
            if name not in kinds and not takes_all:
                raise TypeError(
                    unknown_parameter(type(self), method.__name__, name, list(kinds)[1:])
                )
        return method(self, *args, **given)

    return checked


def unknown_parameter(kind: type, method: str, name: str, names: Collection[str]) -> str:
    """Return what is said of a keyword that a constructor or another method does not have."""
    if method == "__init__":
        return f"{kind.__name__} has no parameter {name!r}.{suggestion(name, names)}"
    said = suggestion(name, names, list(inspect.signature(kind).parameters))
    return f"{method} of {kind.__name__} has no parameter {name!r}.{said}"


#: Truth values are none, and spans of time, which NumPy counts among the integers.
NUMBERS: frozenset[type] = frozenset({int, float}) | {
    kind
    for kind in np.sctypeDict.values()
    if issubclass(kind, np.integer | np.floating) and not issubclass(kind, np.timedelta64)
}
FLOATS = frozenset(kind for kind in NUMBERS if issubclass(kind, float | np.floating))
INTEGERS = frozenset(kind for kind in NUMBERS if issubclass(kind, int | np.integer))
#: What double precision has a number for.
REAL = NUMBERS | {bool, np.bool_, Decimal, Fraction}
TEXT: frozenset[type] = frozenset({str, np.str_})
MISSING: frozenset[type] = frozenset({type(None), type(pd.NA), type(pd.NaT)})
#: NumPy's own rules say which text is a number.
MATRIX = REAL | TEXT | MISSING | {bytes, np.bytes_}


def all_of(types: frozenset[type], cells: Iterable[Any]) -> bool:
    """Say whether each cell is of one of the types itself; nothing is asked of any cell."""
    known = _identities(types)
    return all(id(type(cell)) in known for cell in cells)


@cache
def _identities(types: frozenset[type]) -> frozenset[int]:
    # A class of classes may make of == what it likes.
    return frozenset(map(id, types))


def refuse_foreign_cells(X: Any) -> None:
    """Refuse a matrix with a cell of another type than a matrix of numbers may hold.

    Parameters
    ----------
    X : object
        Arrays of objects, frames of pandas with such columns, and lists are looked through.

    Raises
    ------
    TypeError
    """
    if not all(all_of(MATRIX, cells) for cells in _objects(X)):
        raise TypeError(
            "X must hold plain numbers alone: as of float, each argument must be a string or a "
            "real number, and of no class of its own."
        )


def _objects(X: Any) -> Iterable[Iterable[Any]]:
    """Return what is not of a type of NumPy's, in several parts."""
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
#: What each thread asks for, innermost last: an action, and categories that are spared.
_HERE = threading.local()
#: How many are silent in this process, who was there before, and how warnings were shown.
_process = SimpleNamespace(depth=0, bystanders=frozenset(), shown=warnings.showwarning)


def _action(category: type[Warning]) -> str | None:
    """Return what becomes of a warning of this thread: "ignore", "error", or None for as ever."""
    asked = getattr(_HERE, "asked", None)
    if asked:
        action, spared = asked[-1]
        return None if issubclass(category, spared) else action
    helper = _process.depth > 0 and threading.current_thread() not in _process.bystanders
    return "ignore" if helper else None


class _InThread(type):
    """Of categories that take in, for a filter, every warning that a thread may not give."""

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
    """Show a warning, if its thread may give it: for filters that others have put before ours."""
    action = _action(category)
    if action == "error" and isinstance(message, Warning):  # as it always is
        raise message
    if action is None:
        _process.shown(message, category, *args, **kwargs)


def _put_in_place() -> None:
    """Put our filters in front, and our function in place, wherever they are not."""
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
def _asking(action: str, spared: tuple[type[Warning], ...]) -> Iterator[None]:
    if not hasattr(_HERE, "asked"):
        _HERE.asked = []
    with _LOCK:
        if _process.depth == 0:
            _process.bystanders = frozenset(threading.enumerate())
        _process.depth += 1
        _put_in_place()
    _HERE.asked.append((action, spared))
    try:
        yield
    finally:
        _HERE.asked.pop()
        with _LOCK:
            _process.depth -= 1
            if _process.depth == 0:
                _take_away()
                _process.bystanders = frozenset()


@contextmanager
def suppressed_warnings(*spared: type[Warning]) -> Iterator[None]:
    """Drop the warnings of this thread and of those that it starts, whatever filters there are.

    Parameters
    ----------
    *spared : type of Warning
        Categories that are treated as ever.
    """
    with _asking("ignore", spared):
        yield


@contextmanager
def warnings_as_errors() -> Iterator[None]:
    """Raise the warnings of this thread, and of no other."""
    with _asking("error", ()):
        yield


def call_or_none(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what foreign code makes of private records; None if it raises anything at all.

    What it raises may speak of a record, and so may that it ends the program. Whoever sits in front
    of the program may still interrupt it.
    """
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


#: What is said of whatever has not rows and columns.
NO_TABLE = (
    "Expected 2D array: X must have shape (n_samples, n_features). Reshape your data with "
    "array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single record."
)
_NO_NUMBERS = "X must be a two-dimensional array of real numbers."


class InputValueError(ValueError):
    """A value has no place in the public domain: said in words that show none of it."""


def call_user_step(step: Callable[[], Any], message: str) -> Any:
    """Return what a step of the caller's own gives, or raise InputValueError with a message.

    What it raises itself may quote a record.
    """
    found = call_or_none(lambda: (step(),))
    if found is None:
        raise InputValueError(message)
    return found[0]


def call_without_data(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a validation, such as scikit-learn's; its errors may quote a record, so ours are raised.

    What scikit-learn says of made-up records with the same shape and names is raised as it is.

    Raises
    ------
    ValueError, TypeError
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
        same = [one if isinstance(one, BaseEstimator) else _made_up(one) for one in args]
        if not any(one is None for one in same):
            function(*same, **options)
    tables = [X for X in args if _made_up(X) is not None or sparse.issparse(X)]
    raise kind(_fault(tables[-1]) if tables else NO_TABLE)


def _made_up(X: Any) -> Any:
    """Return zeros of a table's shape, with the names of its columns; None if it is none."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple | np.ndarray):
        return np.zeros((len(X), len(X[0])))
    framed = _is_frame(X)
    shape = X.shape if framed or isinstance(X, np.ndarray) else ()
    zeros = call_or_none(np.zeros, shape) if len(shape) == 2 else None
    return pd.DataFrame(zeros, columns=X.columns) if framed and zeros is not None else zeros


def _is_frame(X: Any) -> bool:
    return hasattr(type(X), "columns") and hasattr(type(X), "shape")


def _fault(X: Any) -> str:
    """Say what is wrong with a table."""
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


def _named(X: Any, places: list[int]) -> str:
    names = [X.columns[j] for j in places] if _is_frame(X) else []
    if not names or not all_of(TEXT, names):
        return "at least one column"
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, map(str, names)))}"


def _has_text(column: NDArray[Any]) -> bool:
    return any(
        all_of(TEXT, [cell]) and call_or_none(float, cell) is None for cell in column.tolist()
    )


def _has_missing(column: NDArray[Any]) -> bool:
    return bool(np.any(pd.isna(column)))


def _has_infinity(column: NDArray[Any]) -> bool:
    return not np.all(np.isfinite(column.astype(np.float64)))


_FAULTS = {
    _has_text: (
        "X must be numeric, got text in {columns}. columns=PublicColumns({{...}}) makes indicators "
        "of categories that are public; those found in the data are not."
    ),
    _has_missing: (
        "Input X contains NaN: missing values are not accepted, and found in {columns}. "
        "columns=PublicColumns({{...}}) says what they count as: the middle of public bounds, or a "
        "category of their own. Rows must not be dropped for what they hold, nor cells filled in "
        "by statistics of the data: no guarantee covers that."
    ),
    _has_infinity: "Input X contains infinity or a value too large for dtype('float64').",
}


@contextmanager
def suppressed_float_errors() -> Iterator[None]:
    """Keep floating-point events from raising or warning, whatever NumPy and SciPy were told.

    Past the charge of a fit nothing but its release may depend on the records.
    """
    # The stubs of SciPy misspell the word.
    with np.errstate(all="ignore"), special.errstate(all="ignore"):  # type: ignore[arg-type]
        yield


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array: NumPy would use what is under the mask.

    Raises
    ------
    ValueError
        If ``values`` is a masked array.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array: what is under the mask would be used."
        )
