"""What other packages call a parameter, and what it is here: for messages."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

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


def instead_of(name: str, names: Collection[str], made_with: Collection[str] = ()) -> str:
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
                raise TypeError(unknown(type(self), method.__name__, name, list(kinds)[1:]))
        return method(self, *args, **given)

    return checked


def unknown(kind: type, method: str, name: str, names: Collection[str]) -> str:
    """Return what is said of a keyword that a constructor or another method does not have."""
    if method == "__init__":
        return f"{kind.__name__} has no parameter {name!r}.{instead_of(name, names)}"
    said = instead_of(name, names, list(inspect.signature(kind).parameters))
    return f"{method} of {kind.__name__} has no parameter {name!r}.{said}"
