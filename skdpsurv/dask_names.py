"""Names of records in partitions of Dask, compared where they are.

Names are dealt by a hash, so that all records of a name meet in one task. Names and places travel
among workers, and nothing else; what comes of it is where the first record of each name is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdpsurv.blocks import Nothing, new_places
from skdpsurv.dask_layer import Layer
from skdpsurv.dask_tasks import Refused, applied
from skdpsurv.first_names import FirstPlaces, fingerprint, name_parts
from skdpsurv.types import IndexArray

__all__ = ["first_of_partitions"]

#: Names are compared in at most so many tasks.
NAME_PARTS = 64


class Dealt(NamedTuple):
    """Some names of a block, where they are in it, and what tells all of its names."""

    names: NDArray[Any]
    places: IndexArray
    fingerprint: bytes


def first_of_partitions(
    parts: Sequence[Any], names_of: Callable[[Any], NDArray[Any]]
) -> Sequence[Any]:
    """Return a task for each partition: where its first records of names are.

    Parameters
    ----------
    parts : sequence of dask.delayed.Delayed
    names_of : callable
        Of a partition: the name of each record.
    """
    from dask.base import persist

    layer, n_parts = Layer(), min(len(parts), NAME_PARTS)
    deal = partial(_dealt, names_of, n_parts)
    dealt = [layer.task("dealt", deal, part) for part in parts]
    first: list[list[Any]] = [[] for _ in parts]
    for k in range(n_parts):
        met = layer.task("met", _met, [layer.task("some", itemgetter(k), names) for names in dealt])
        for i, mine in enumerate(first):
            mine.append(layer.task("first", itemgetter(i), met))
    # Small, and else worked out again in every pass.
    places: Sequence[Any] = persist(
        *layer.wanted([layer.task("places", _together, mine) for mine in first])
    )
    return places


def _dealt(names_of: Callable[[Any], NDArray[Any]], n_parts: int, block: Any) -> list[Any]:
    found = applied(partial(_deal, names_of, n_parts), block)
    return found if isinstance(found, list) else [found] * n_parts


def _deal(names_of: Callable[[Any], NDArray[Any]], n_parts: int, block: Any) -> list[Dealt]:
    names = names_of(block)
    part, told = name_parts(names, n_parts), fingerprint(names)
    places = (np.flatnonzero(part == k) for k in range(n_parts))
    return [Dealt(names[at], at, told) for at in places]


def _met(dealt: Sequence[Any]) -> list[Any]:
    """Return, for each block, which of some names stand nowhere before."""
    refused = [one for one in dealt if isinstance(one, Refused)]
    found = refused[0] if refused else applied(_meet, dealt)
    return found if isinstance(found, list) else [found] * len(dealt)


def _meet(dealt: Sequence[Any]) -> list[Any]:
    new = new_places([getattr(one, "names", one) for one in dealt])
    return [
        one if isinstance(one, Nothing) else one._replace(places=one.places[first])
        for one, first in zip(dealt, new, strict=True)
    ]


def _together(some: Sequence[Any]) -> Any:
    """Return the places of all parts of a block's names, in their order."""
    refused = [one for one in some if isinstance(one, Refused | Nothing)]
    if refused:
        return refused[0]
    return FirstPlaces(np.sort(np.concatenate([one.places for one in some])), some[0].fingerprint)
