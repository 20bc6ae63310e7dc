"""Rules of public parameters and arrays, and the clip into public bounds.

An estimator declares one rule for each parameter of its constructor. Parameters are public: a
message may show them. Rules look at no record.

Clipping maps each record into the bounds on its own. How many were clipped is private, so nothing
here counts, warns or logs. Rows are clipped in pieces that a cache holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from skdpsurv.dp.input_errors import MATRIX, all_of, call_or_none
from skdpsurv.dp.types import BoolArray, FloatArray


def is_dask(values: Any) -> bool:
    """Say whether something is a collection of Dask."""
    graph = getattr(type(values), "__dask_graph__", None)
    return graph is not None and values.__dask_graph__() is not None


def is_lazy(values: Any) -> bool:
    """Say whether rows are somewhere else: collections of Dask, or chunks."""
    return is_dask(values) or hasattr(type(values), "over_chunks")


#: What is called with the name and the value of a parameter, and raises if the value breaks a rule.
Check = Callable[[str, Any], object]
#: How a value breaks a rule: the error, and what was got.
Fault = tuple[type[Exception], str]

#: More workers than any machine has; far more would overflow inside of joblib.
LARGEST_JOBS = 2**15


@dataclass(frozen=True)
class Rule:
    """What a parameter must be.

    Parameters
    ----------
    says : str
        What comes after "must be" in a message.
    fault : callable
        Takes a value, and returns None or how it breaks the rule.
    why : str
        A sentence for whoever breaks it.

    Examples
    --------
    >>> from skdpsurv.dp.checks import auto_or, positive
    >>> auto_or(positive())("data_norm", -1)
    Traceback (most recent call last):
    ...
    ValueError: data_norm must be 'auto' or a positive finite number, got -1.
    """

    says: str
    fault: Callable[[Any], Fault | None]
    why: str = ""

    def __call__(self, name: str, value: Any) -> Any:
        """Return a value, or raise TypeError or ValueError if it breaks the rule."""
        fault = self.fault(value)
        if fault is not None:
            error, got = fault
            raise error(f"{name} must be {self.says}, got {got}.{self.why and ' ' + self.why}")
        return value


def rule_of(
    says: str,
    *,
    kind: Callable[[Any], bool] = lambda value: True,
    holds: Callable[[Any], bool] = lambda value: True,
    why: str = "",
) -> Rule:
    """Return the rule that a value is of some kind, else TypeError, and holds, else ValueError."""

    def fault(value: Any) -> Fault | None:
        if not kind(value):
            return TypeError, type(value).__name__
        try:
            return None if holds(value) else _got(value)
        except OverflowError:
            return ValueError, "one beyond all floating-point numbers"

    return Rule(says, fault, why)


def _got(value: object) -> Fault:
    # Numbers without the name of NumPy's type.
    return ValueError, str(value) if _is_real(value) else repr(value)


def is_list(value: object) -> bool:
    """Return whether a value can be gone through more than once, and is no text."""
    sized = isinstance(value, Collection) and not isinstance(value, str | bytes)
    return sized and not (isinstance(value, np.ndarray) and value.ndim == 0)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not _is_bool(value)


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not _is_bool(value)


# ---- Rules.


def positive(*, allow_inf: bool = False) -> Rule:
    """Return the rule of positive numbers; a bool is none."""
    says = "a positive number or inf" if allow_inf else "a positive finite number"
    return rule_of(
        says,
        kind=_is_real,
        holds=lambda value: float(value) > 0 and (allow_inf or float(value) < math.inf),
    )


def number_in(
    low: float, high: float, *, closed: str = "both", allow_inf: bool = False, why: str = ""
) -> Rule:
    """Return the rule of numbers in an interval, or infinity.

    ``closed`` says which ends are in it: "both", "left", "right" or "neither".
    """
    left, right = closed in ("both", "left"), closed in ("both", "right")
    ends = f"{low:.12g}, {high:.12g}"
    says = f"a number in {'[' if left else '('}{ends}{']' if right else ')'}"

    def holds(value: Real) -> bool:
        number = float(value)
        above = number > low or (left and number == low)
        below = number < high or (right and number == high)
        return (above and below) or (allow_inf and number == math.inf)

    return rule_of(f"{says}, or inf" if allow_inf else says, kind=_is_real, holds=holds, why=why)


def integer(at_least: int = 1, at_most: float = math.inf, *, why: str = "") -> Rule:
    """Return the rule of integers, Python's or NumPy's; neither a bool nor a float is one."""
    says = {0: "a non-negative integer", 1: "a positive integer"}.get(at_least)
    if at_most < math.inf:
        says = f"an integer from {at_least:,} to {at_most:,}"
    return rule_of(
        says or f"an integer, at least {at_least:,}",
        kind=_is_count,
        holds=lambda value: at_least <= int(value) <= at_most,
        why=why,
    )


def choice(*words: str) -> Rule:
    """Return the rule of a few words."""
    return rule_of(
        f"one of {', '.join(map(repr, words))}",
        holds=lambda value: isinstance(value, str) and value in words,
    )


def instance(kind: type, says: str = "") -> Rule:
    """Return the rule of objects of a class."""
    return rule_of(says or f"a {kind.__name__}", kind=lambda value: isinstance(value, kind))


boolean = rule_of("True or False", kind=_is_bool)
#: Of ``verbose``: a bool of Python is one.
verbosity = rule_of(
    integer(0).says, holds=lambda value: isinstance(value, Integral) and int(value) >= 0
)


# ---- Rules of rules.


def _allowing(word: str, allowed: Callable[[Any], bool], rule: Rule) -> Rule:
    says = f"{word}{',' if ' or ' in rule.says else ' or'} {rule.says}"
    return Rule(says, lambda value: None if allowed(value) else rule.fault(value), rule.why)


def optional(rule: Rule) -> Rule:
    """Allow None, too."""
    return _allowing("None", lambda value: value is None, rule)


def auto_or(rule: Rule) -> Rule:
    """Allow the word "auto", too."""
    words = Rule(rule.says, lambda v: _got(v) if isinstance(v, str) else rule.fault(v), rule.why)
    return _allowing("'auto'", lambda value: isinstance(value, str) and value == "auto", words)


def zero_or(rule: Rule) -> Rule:
    """Allow the number zero, too."""
    return _allowing("0", lambda value: _is_real(value) and value == 0, rule)


def list_of(rule: Rule) -> Rule:
    """Return the rule of lists, tuples and arrays of what keeps a rule; a set has no order."""

    def fault(value: Any) -> Fault | None:
        if not is_list(value) or isinstance(value, Set | Mapping):
            return TypeError, type(value).__name__
        return next(filter(None, map(rule.fault, value)), None)

    return Rule(f"a list, each {rule.says}", fault, rule.why)


def one_or_list_of(rule: Rule) -> Rule:
    """Allow a list, too."""
    listed = list_of(rule)
    return Rule(
        f"{rule.says}, or a list of such",
        lambda value: listed.fault(value) if is_list(value) else rule.fault(value),
        rule.why,
    )


def required(what: str, rule: Check) -> Check:
    """Refuse None, the default of what has none, and say what must be given."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise ValueError(f"{name} must be given: {what}")
        rule(name, value)

    return check


def word_or(kind: type[Parameters] | tuple[type[Parameters], ...], *words: str) -> Check:
    """Return the rule of one of some words, or of an object that checks itself."""
    word, kinds = choice(*words), kind if isinstance(kind, tuple) else (kind,)
    names = " or ".join(f"a {each.__name__}" for each in kinds)
    rule = Rule(f"{word.says}, or {names}", word.fault)

    def check(name: str, value: object) -> None:
        if isinstance(value, kind):
            value.check()
        else:
            rule(name, value)

    return check


def check_each(rules: Mapping[str, Check], parameters: object) -> None:
    """Raise TypeError or ValueError for the first attribute that breaks its rule."""
    for name, rule in rules.items():
        value = getattr(parameters, name)
        if is_lazy(value):
            raise TypeError(f"{name} must be public, and in memory; got a collection of rows.")
        rule(name, value)


class Parameters(BaseEstimator):  # type: ignore[misc]
    """Base of what holds the parameters of a method, and is passed in place of its word.

    A subclass has a rule for each parameter of its constructor, in ``_rules``.
    """

    _rules: ClassVar[Mapping[str, Check]]

    def check(self) -> None:
        """Refuse parameters that break a rule.

        Raises
        ------
        ValueError, TypeError
            Naming the parameter.
        """
        check_each(self._rules, self)


def custom(function: Callable[[Any], object]) -> Check:
    """Return the check by a function of the value that names the parameter by itself."""
    return lambda name, value: function(value)


def unchecked(name: str, value: object) -> None:
    """Refuse nothing: the rule needs other parameters, or the shape of the records."""


#: Of ``random_state``.
seed = optional(
    integer(
        at_least=0,
        why="None is operating-system entropy, the only private choice; an integer is "
        "reproducible, not private. A generator object is refused: it is not a cryptographic "
        "stream, and whoever holds it can repeat the noise.",
    )
)
#: Of ``n_jobs``, as joblib takes it.
workers = optional(
    rule_of(
        f"an integer other than 0, to {LARGEST_JOBS}",
        holds=lambda value: _is_count(value) and 0 < abs(int(value)) <= LARGEST_JOBS,
    )
)


def horizon(rule: Rule) -> Check:
    """Return the rule of ``max_time``, which has no default."""
    return required(
        "a public horizon in the unit of the times, such as the planned length of follow-up. It "
        "has no safe default, since the largest time in the data is private.",
        rule,
    )


# ---- Parameters as Python's own numbers and words, or a refusal.


def positive_number(name: str, value: object, *, allow_inf: bool = False) -> float:
    """Return a positive number as a float."""
    return float(positive(allow_inf=allow_inf)(name, value))


def fraction(name: str, value: object, *, closed: str = "neither") -> float:
    """Return a number between 0 and 1 as a float; ``closed`` says whether these are allowed."""
    return float(number_in(0.0, 1.0, closed=closed)(name, value))


def positive_int(name: str, value: object) -> int:
    """Return a positive integer as an int."""
    return int(integer()(name, value))


def one_of(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return one of a few words."""
    return str(choice(*allowed)(name, value))


def required_horizon(max_time: Any) -> float:
    """Return max_time as a float; it has no default."""
    horizon(positive())("max_time", max_time)
    return float(max_time)


#: Rows that are worked on at once, times columns. Two or three such arrays of doubles fit a
#: second-level cache.
CHUNK_ELEMENTS = 2**15


def row_pieces(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield the pieces of rows, in their order."""
    step = max(1, CHUNK_ELEMENTS // max(1, n_columns))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def by_pieces(function: Callable[[slice], FloatArray], n_rows: int, n_columns: int) -> FloatArray:
    """Return rows that a function makes piece by piece, in one array of doubles.

    Parameters
    ----------
    function : callable
        Of a slice: the rows there, of shape (n_piece, n_columns).
    n_rows, n_columns : int
    """
    made = np.empty((n_rows, n_columns))
    for piece in row_pieces(n_rows, n_columns):
        made[piece] = function(piece)
    return made


def clip_rows(X: ArrayLike, norm: float) -> FloatArray:
    """Scale each row down to Euclidean norm at most ``norm``; shorter rows are unchanged.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Private records, finite.
    norm : float
        Public bound, positive and finite.

    Returns
    -------
    ndarray of float64, shape (n_samples, n_features)
        A new array. The norm of every row is at most ``norm``, in real numbers and in floats
        summed in any order.

    Raises
    ------
    ValueError
        If ``X`` is not two-dimensional, not numeric, or holds NaN or infinity.

    Notes
    -----
    Clipping is the projection onto a ball, row by row, so it does not change who is a neighbour
    of whom. Rows on the sphere are shortened by a further relative (n_features + 8) * 2^-53: a
    float sum of n squares has relative error at most n * 2^-53, which must not push a row
    outside the ball that the sensitivity is proved for. Norms are taken after dividing by the
    row's largest magnitude, so that neither huge nor tiny values overflow or vanish.

    Examples
    --------
    >>> from skdpsurv.dp import clip_rows
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], norm=1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    norm = positive_number("norm", norm)
    rows = as_float_array(X, "X")
    if rows.ndim != 2:
        raise ValueError("X must be two-dimensional.")
    check_finite(rows, "X")
    radius = norm * (1.0 - (rows.shape[1] + 8) * 2.0**-53)
    return by_pieces(lambda piece: _clipped(rows[piece], radius), *rows.shape)


def _clipped(rows: FloatArray, radius: float) -> FloatArray:
    if rows.size == 0:
        return rows
    rows = rows.copy(order="C")
    largest = np.max(np.abs(rows), axis=1)
    # Where every entry is far below radius / sqrt(n_features) no norm is needed; this also keeps
    # zero rows and tiny ones out of the division.
    may_exceed = largest > 0.5 * radius / math.sqrt(rows.shape[1])
    largest = np.where(may_exceed, largest, 1.0)
    unit = np.where(may_exceed[:, None], rows, 0.0) / largest[:, None]  # entries in [-1, 1]
    length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
    # length * largest > radius, written so that nothing overflows.
    outside = may_exceed & (length > radius / largest)
    rows[outside] = unit[outside] * (radius / length[outside])[:, None]
    return rows


def row_weights(rows: FloatArray, norm: float) -> FloatArray:
    """Return how often each row may count instead of being scaled down to a norm.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Private, finite, of moderate size: clipped to a multiple of the norm.
    norm : float
        Public, positive and finite.

    Returns
    -------
    ndarray of shape (n_samples,)
        1 within the norm, else the square of the norm over that of the row's. Rounded down, as
        :func:`clip_rows` rounds: a weight times the square of a row's norm is at most ``norm**2``
        in floats summed in any order.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.dp import row_weights
    >>> row_weights(np.array([[6.0, 8.0], [0.3, 0.4]]), norm=5.0).round(6)
    array([0.25, 1.  ])
    """
    square = np.einsum("ij,ij->i", rows, rows)
    inside = norm**2 * (1.0 - (rows.shape[1] + 16) * 2.0**-51)
    return np.asarray(inside / np.maximum(square, inside))


def clip_times(time: ArrayLike, event: ArrayLike, max_time: float) -> tuple[FloatArray, BoolArray]:
    """Censor at the public horizon: times beyond ``max_time`` become censored at ``max_time``.

    Parameters
    ----------
    time : array-like of shape (n_samples,)
        Private follow-up times.
    event : array-like of shape (n_samples,)
        True where the event was seen, False where censored.
    max_time : float
        Public horizon, positive and finite, in the unit of ``time``.

    Returns
    -------
    time : ndarray of float64, shape (n_samples,)
    event : ndarray of bool, shape (n_samples,)
        New arrays. An event exactly at ``max_time`` stays an event.

    Raises
    ------
    ValueError
        If the arguments are not one-dimensional of one length, ``time`` holds NaN or infinity,
        or ``event`` holds something else than booleans or 0 and 1.

    Examples
    --------
    >>> from skdpsurv.dp import clip_times
    >>> clip_times([2.0, 5.0, 9.0], [True, True, True], max_time=5.0)
    (array([2., 5., 5.]), array([ True,  True, False]))
    """
    max_time = positive_number("max_time", max_time)
    times = as_float_array(time, "time")
    check_finite(times, "time")
    flags = as_float_array(event, "event")
    if times.ndim != 1 or flags.shape != times.shape:
        raise ValueError("time and event must be one-dimensional and of the same length.")
    if not np.all((flags == 0) | (flags == 1)):
        raise ValueError("event must hold booleans, or 0 for censored and 1 for an event.")
    events = flags == 1
    return np.minimum(times, max_time), events & (times <= max_time)


def check_finite(X: ArrayLike, name: str) -> None:
    """Refuse NaN and infinity, naming the argument and nothing else.

    Parameters
    ----------
    X : array-like of numbers
        Private values.
    name : str
        Name of the argument, for the message.

    Raises
    ------
    ValueError
        If any value is NaN or infinite. The refusal reveals that such a value exists, and no
        more: neither where, nor how many.
    """
    if not np.all(np.isfinite(as_float_array(X, name))):
        raise ValueError(
            f"{name} contains NaN or infinity; replace missing values with public constants "
            "before fitting."
        )


def as_float_array(values: ArrayLike, name: str) -> FloatArray:
    """Return ``values`` as float64, with an error that shows none of them.

    numpy's own message for a value that is no number quotes the value.

    Parameters
    ----------
    values : array-like of numbers
        Private values. Not copied if already float64.
    name : str
        Name of the argument, for the message.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ValueError
        If the values are not numbers, or the rows differ in length.
    """
    array: NDArray[Any] | None = call_or_none(np.asarray, values)
    found: FloatArray | None = None
    if array is not None and (array.dtype.kind in "biuf" or _is_plain(array)):
        # Long doubles overflow to infinity; text may be no number.
        with np.errstate(all="ignore"):
            found = call_or_none(partial(np.asarray, dtype=np.float64), array)
    if found is None:
        raise ValueError(f"{name} must be an array of real numbers.")
    return found


def _is_plain(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "O" and all_of(MATRIX, array.ravel().tolist())


#: Products of larger numbers may be none.
LARGEST_UNCLIPPED = 1e100


def check_unclipped(rows: FloatArray, name: str) -> None:
    """Refuse numbers that a fit without privacy, which clips nothing, could not multiply.

    Raises
    ------
    ValueError
        If one is beyond 1e100 in size.
    """
    if max(rows.max(initial=0.0), -rows.min(initial=0.0)) > LARGEST_UNCLIPPED:
        raise ValueError(
            f"{name} must be within {LARGEST_UNCLIPPED:g} with epsilon=inf, where nothing is "
            "clipped."
        )


class FrozenMapping(Mapping[str, object]):
    """A read-only, hashable dict; unlike MappingProxyType it can be pickled and copied."""

    def __init__(self, items: Mapping[str, object]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> object:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


#: Of each kind of value, tried in this order: what Python has for it.
_PLAIN: dict[Any, Callable[[Any], object]] = {
    (bool, np.bool_): bool,
    str: str,
    Integral: int,
    Real: float,
}


def frozen(name: str, value: object) -> object:
    """Return an immutable copy made of Python's own types, so that it can go to JSON and back."""
    if value is None:
        return None
    for kind, plain in _PLAIN.items():
        if isinstance(value, kind):
            made = plain(value)
            if made != made:
                raise ValueError(f"{name} must not hold NaN.")
            return made
    if isinstance(value, np.ndarray):
        return frozen(name, value.tolist())
    if isinstance(value, list | tuple):
        return tuple(frozen(name, v) for v in value)
    if isinstance(value, Mapping):
        return FrozenMapping({str(k): frozen(f"{name}[{str(k)!r}]", v) for k, v in value.items()})
    raise TypeError(
        f"{name} must be made of numbers, strings, None, sequences and mappings, "
        f"got {type(value).__name__}."
    )


def thawed(value: object, leaf: Callable[[Any], object] = lambda value: value) -> Any:
    """Return what :func:`frozen` froze as dicts and lists, at any depth, each leaf converted."""
    if isinstance(value, Mapping):
        return {key: thawed(one, leaf) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [thawed(one, leaf) for one in value]
    return leaf(value)
