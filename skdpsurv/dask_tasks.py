"""What runs on the workers of Dask: nothing fails there, as an engine logs what failed on what.

What is raised is caught, travels as a value, and is raised in the client. Its text is kept if it is
one of this package's own refusals, which say what rule was broken and nothing of a record; errors
of other kinds may quote one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from skdpsurv.blocks import Nothing, added, in_pairs
from skdpsurv.privacy import silent_arithmetic
from skdpsurv.privacy.refusals import RefusedValueError

__all__ = ["Refused", "applied", "raised", "summed"]

#: Errors with a text of this package's own: no subclasses, such as those of Unicode and of pandas.
OWN = (ValueError, TypeError, RefusedValueError)


class Refused(NamedTuple):
    """An error on a worker, in words that show nothing of a record."""

    kind: type[Exception]
    message: str


def applied(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function makes of its arguments, or of the first that is none: that one."""
    for one in arguments:
        if isinstance(one, Refused | Nothing):
            return one
    try:
        with silent_arithmetic():
            return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        kind: Any = type(error)
        if kind in OWN:
            return Refused(kind, str(error))
    return Refused(RuntimeError, "A block of records could not be used.")


def summed(parts: Sequence[Any]) -> Any:
    """Return the sum of parts, or the first refusal among them."""
    refused = [part for part in parts if isinstance(part, Refused)]
    return refused[0] if refused else in_pairs(parts, _added)


def _added(one: Any, other: Any) -> Any:
    if isinstance(other, Nothing):
        return one
    return other if isinstance(one, Nothing) else added(one, other)


def raised(found: Any) -> Any:
    """Return what was found, or raise what it stands for."""
    if isinstance(found, Refused):
        raise found.kind(found.message)
    return found
