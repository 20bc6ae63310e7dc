"""What other packages call a parameter, and what it is here: for messages."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

__all__ = ["instead_of", "with_suggestions"]

_COLUMNS = "y holds times and events: Surv.from_arrays of scikit-survival, or split_target"
#: By the name elsewhere: the name here, or what to do.
OTHERS = {
    "penalizer": "alpha",
    "C": "alpha, which grows as C falls",
    "l1_ratio": "nothing: penalties are of squares alone",
    "sample_weight": "nothing: a weight would change what one record can move",
    "weights_col": "nothing: a weight would change what one record can move",
    "duration_col": _COLUMNS,
    "event_col": _COLUMNS,
    "eps": "epsilon",
    "budget": "epsilon, and accountant for what several fits may spend",
    "bounds": "columns",
    "seed": "random_state",
}


def instead_of(name: str, names: Collection[str]) -> str:
    """Return a sentence about a parameter that is none of these; "" if there is nothing to say."""
    if name in OTHERS:
        return f" In its place: {OTHERS[name]}."
    near = difflib.get_close_matches(name, names, 1)
    return f" Did you mean {near[0]}?" if near else ""


def with_suggestions(init: Callable[..., None]) -> Callable[..., None]:
    """Let a constructor say what an unknown keyword is called here."""
    names = list(inspect.signature(init).parameters)[1:]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        for name in given:
            if name not in names:
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}.{instead_of(name, names)}"
                )
        init(self, *args, **given)

    return checked
