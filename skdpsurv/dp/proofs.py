"""The classes that theorems of docs/proofs are about, by name: all else is not proved.

A measurement is "proved" if all that its theorem rests on is one of these classes: itself, its
queries, its laws of noise, its loss and its link. A class of somebody else, or a new one, has the
status "none", or "asserted" if it says ``asserted = True`` itself: its author vouches for it.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

_THEOREMS = tomllib.loads(Path(__file__).with_name("proofs.toml").read_text("utf-8"))
#: The theorem about each class, as a page of docs/proofs and a heading.
PROOFS = {f"skdpsurv.{name}": theorem for theorem, names in _THEOREMS.items() for name in names}


def name_of(kind: type) -> str:
    """Return the module and the name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def is_proved(kind: type) -> bool:
    """Say whether a theorem is registered about this very class, and not one that it is made of."""
    found = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    return found is kind and name_of(kind) in PROOFS


def unproved(kinds: Iterable[type]) -> list[type]:
    """Return the classes that no theorem is about."""
    return [kind for kind in dict.fromkeys(kinds) if not is_proved(kind)]


def is_asserted(kind: type) -> bool:
    """Say whether a class itself asserts what it promises; its subclasses do not."""
    return vars(kind).get("asserted", False) is True


def status_of(kinds: Iterable[type]) -> str:
    """Say "proved", "asserted" or "none" for all that a theorem rests on."""
    missing = unproved(kinds)
    if not missing:
        return "proved"
    return "asserted" if all(map(is_asserted, missing)) else "none"
