"""Public values, at any depth, that nobody can change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np


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


#: Python's own type for each kind of value, tried in this order.
_PLAIN: dict[Any, Callable[[Any], object]] = {
    (bool, np.bool_): bool,
    str: str,
    Integral: int,
    Real: float,
}


def frozen(name: str, value: object) -> object:
    """Return an immutable copy made of Python's own types, which JSON can hold."""
    if value is None:
        return None
    for kind, plain in _PLAIN.items():
        if isinstance(value, kind):
            converted = plain(value)
            if converted != converted:
                raise ValueError(f"{name} must not hold NaN.")
            return converted
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
    """Return frozen values as dicts and lists, at any depth, each leaf converted."""
    if isinstance(value, Mapping):
        return {key: thawed(one, leaf) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [thawed(one, leaf) for one in value]
    return leaf(value)
