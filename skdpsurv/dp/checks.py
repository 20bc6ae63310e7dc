"""Rules of public parameters, and the words in which what breaks one is refused.

An estimator declares one rule for each parameter of its constructor, beside the signature.
Parameters are public: a message may show them. No rule looks at a record.

Methods of rows that are not in memory: what they make is not there either.

Of collections of Dask scikit-learn's validation would pull every row into this process without a
word. Here a method that asks something of rows is asked it of each partition, where that is, once
somebody computes it; and of chunks that are read one after the other, whenever one is read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

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


def supports_lazy_input(
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
        da.from_delayed(  # type: ignore[no-untyped-call]
            apply(part), shape=(size, *more), dtype=dtype
        )
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(  # type: ignore[no-untyped-call]
        blocks, allow_unknown_chunksizes=True
    )


def _of_rows(function: Callable[[Any], Any], dtype: Any, width: int | None, rows: Any) -> Any:
    if not len(rows):
        return np.empty((0,) if width is None else (0, width), dtype=dtype)
    return function(rows)


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


def given(what: str, rule: Check) -> Check:
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


def by(function: Callable[[Any], object]) -> Check:
    """Return the check by a function of the value that names the parameter by itself."""
    return lambda name, value: function(value)


def later(name: str, value: object) -> None:
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
    return given(
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
