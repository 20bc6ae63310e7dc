"""Rules of public parameters.

An estimator declares one rule for each parameter of its constructor. Parameters are public: a
message may show them. Rules look at no record. Messages about unknown parameters suggest a name.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from skdpsurv.dp.containers import is_lazy
from skdpsurv.dp.references import WORDS

#: Called with the name and the value of a parameter; raises if the value breaks a rule.
Check = Callable[[str, Any], object]
#: How a value breaks a rule: type of the error, and the value in words.
Fault = tuple[type[Exception], str]
#: Largest ``n_jobs``: far more would overflow inside of joblib.
LARGEST_JOBS = 2**15


@dataclass(frozen=True)
class Rule:
    """Requirement on a parameter; a call returns the value, or raises TypeError or ValueError.

    Parameters
    ----------
    says : str
        What follows "must be" in a message.
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
    """Return a rule: TypeError unless ``kind`` is true, ValueError unless ``holds`` is."""

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
    return ValueError, str(value) if is_real(value) else repr(value)


def is_list(value: object) -> bool:
    """Return whether this is a sized collection, and no text."""
    sized = isinstance(value, Collection) and not isinstance(value, str | bytes)
    return sized and not (isinstance(value, np.ndarray) and value.ndim == 0)


def is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def is_integer(value: object) -> bool:
    return isinstance(value, Integral) and is_real(value)


def positive(*, allow_inf: bool = False) -> Rule:
    """Return the rule of positive numbers, not bools."""
    says = "a positive number or inf" if allow_inf else "a positive finite number"
    rule = number_in(0.0, math.inf, closed="right" if allow_inf else "neither")
    return Rule(says, rule.fault)


def number_in(
    low: float, high: float, *, closed: str = "both", allow_inf: bool = False, why: str = ""
) -> Rule:
    """Return the rule of numbers in an interval; ``closed`` names the ends that belong to it."""
    left, right = closed in ("both", "left"), closed in ("both", "right")
    ends = f"{low:.12g}, {high:.12g}"
    says = f"a number in {'[' if left else '('}{ends}{']' if right else ')'}"

    def holds(value: Real) -> bool:
        number = float(value)
        above = number > low or (left and number == low)
        below = number < high or (right and number == high)
        return (above and below) or (allow_inf and number == math.inf)

    return rule_of(f"{says}, or inf" if allow_inf else says, kind=is_real, holds=holds, why=why)


def integer(at_least: int = 1, at_most: float = math.inf, *, why: str = "") -> Rule:
    """Return the rule of integers, Python's or NumPy's, not bools."""
    says = {0: "a non-negative integer", 1: "a positive integer"}.get(at_least)
    if at_most < math.inf:
        says = f"an integer from {at_least:,} to {at_most:,}"
    return rule_of(
        says or f"an integer, at least {at_least:,}",
        kind=is_integer,
        holds=lambda value: at_least <= int(value) <= at_most,
        why=why,
    )


def choice(*words: str) -> Rule:
    return rule_of(
        f"one of {', '.join(map(repr, words))}",
        holds=lambda value: isinstance(value, str) and value in words,
    )


def instance(kind: type, says: str = "") -> Rule:
    return rule_of(says or f"a {kind.__name__}", kind=lambda value: isinstance(value, kind))


boolean = rule_of("True or False", kind=lambda value: isinstance(value, bool | np.bool_))
#: Rule of ``verbose``, which may be a bool.
verbosity = rule_of(
    integer(0).says, holds=lambda v: (isinstance(v, bool) or is_integer(v)) and v >= 0
)


def _allowing(word: str, allowed: Callable[[Any], bool], rule: Rule) -> Rule:
    says = f"{word}{',' if ' or ' in rule.says else ' or'} {rule.says}"
    return Rule(says, lambda value: None if allowed(value) else rule.fault(value), rule.why)


def optional(rule: Rule) -> Rule:
    return _allowing("None", lambda value: value is None, rule)


def auto_or(rule: Rule) -> Rule:
    words = Rule(rule.says, lambda v: _got(v) if isinstance(v, str) else rule.fault(v), rule.why)
    return _allowing("'auto'", lambda value: isinstance(value, str) and value == "auto", words)


def zero_or(rule: Rule) -> Rule:
    return _allowing("0", lambda value: is_real(value) and value == 0, rule)


def list_of(rule: Rule) -> Rule:
    """Return the rule of lists, tuples and arrays whose entries keep a rule."""

    def fault(value: Any) -> Fault | None:
        if not is_list(value) or isinstance(value, Set | Mapping):
            return TypeError, type(value).__name__
        return next(filter(None, map(rule.fault, value)), None)

    return Rule(f"a list, each {rule.says}", fault, rule.why)


def one_or_list_of(rule: Rule) -> Rule:
    listed = list_of(rule)
    return Rule(
        f"{rule.says}, or a list of such",
        lambda value: listed.fault(value) if is_list(value) else rule.fault(value),
        rule.why,
    )


def required(what: str, rule: Check) -> Check:
    """Return a check that refuses None, and says what must be given."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise ValueError(f"{name} must be given: {what}")
        rule(name, value)

    return check


def word_or(kind: type[Parameters] | tuple[type[Parameters], ...], *words: str) -> Check:
    """Return the check of one of some words, or of an object that checks itself."""
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
    """Base of parameters of a method; ``_rules`` has a rule for each."""

    _rules: ClassVar[Mapping[str, Check]]

    def check(self) -> None:
        """Raise TypeError or ValueError for a parameter that breaks its rule."""
        check_each(self._rules, self)


def custom(function: Callable[[Any], object]) -> Check:
    """Return the check by a function of the value; its message names the parameter."""
    return lambda name, value: function(value)


def unchecked(name: str, value: object) -> None:
    """Accept any value here; the estimator checks it later."""


#: Rule of ``random_state``.
seed = optional(
    integer(
        at_least=0,
        why="None is operating-system entropy, the only private choice; an integer is "
        "reproducible, not private. A generator object is refused: it is not a cryptographic "
        "stream, and whoever holds it can repeat the noise.",
    )
)
#: Rule of ``n_jobs``, as joblib takes it.
workers = optional(
    rule_of(
        f"an integer other than 0, to {LARGEST_JOBS}",
        holds=lambda value: is_integer(value) and 0 < abs(int(value)) <= LARGEST_JOBS,
    )
)


def horizon(rule: Rule) -> Check:
    """Return the rule of ``max_time``, which has no default."""
    return required(
        "a public horizon in the unit of the times, such as the planned length of follow-up. It "
        "has no safe default, since the largest time in the data is private.",
        rule,
    )


def positive_number(name: str, value: object, *, allow_inf: bool = False) -> float:
    return float(positive(allow_inf=allow_inf)(name, value))


def fraction(name: str, value: object, *, closed: str = "neither") -> float:
    """Return a number between 0 and 1 as a float; ``closed`` says which ends are allowed."""
    return float(number_in(0.0, 1.0, closed=closed)(name, value))


def positive_int(name: str, value: object) -> int:
    return int(integer()(name, value))


def one_of(name: str, value: object, allowed: Sequence[str]) -> str:
    return str(choice(*allowed)(name, value))


def required_horizon(max_time: Any) -> float:
    horizon(positive())("max_time", max_time)
    return float(max_time)


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
