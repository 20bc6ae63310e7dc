"""Messages about parameters that an estimator does not have, with a suggestion."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

from skdpsurv.dp.references import WORDS

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
