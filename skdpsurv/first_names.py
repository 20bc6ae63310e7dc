"""The first record of each name, over all blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.privacy.refusals import RefusedValueError
from skdpsurv.types import IndexArray

__all__ = ["FirstPlaces", "fingerprint", "first_places", "name_parts"]


class FirstPlaces(NamedTuple):
    """Where in a block the first records of names are, and what names the block had then."""

    places: IndexArray
    fingerprint: bytes

    def of(self, names: NDArray[Any]) -> IndexArray:
        """Return the places, if the names are those that they were found for.

        Raises
        ------
        ValueError
            If a block comes with other names, or in another order, than before: some people would
            be used twice.
        """
        if fingerprint(names) != self.fingerprint:
            raise ValueError("records must come in the same order whenever they are read.")
        return self.places


def first_places(names: Sequence[NDArray[Any]]) -> list[IndexArray]:
    """Return, for each array of names, the places of those that stand nowhere before.

    Raises
    ------
    ValueError
        If some are numbers and others text: 7 and "7" might be one person.
    """
    if len({one.dtype.kind for one in names}) > 1:
        raise RefusedValueError("person must hold whole numbers everywhere, or text everywhere.")
    if not names:
        return []
    first = ~pd.Series(np.concatenate(names)).duplicated().to_numpy()
    ends = np.cumsum([one.size for one in names])
    return [np.flatnonzero(part) for part in np.split(first, ends[:-1])]


def fingerprint(names: NDArray[Any]) -> bytes:
    """Return 16 bytes that other names, or another order of them, practically never have."""
    found = hashlib.blake2b(digest_size=16)
    if names.dtype.kind == "i":
        found.update(names.tobytes())
    else:
        for name in names.tolist():
            text = _bytes(name)
            found.update(len(text).to_bytes(8) + text)
    return found.digest()


def name_parts(names: NDArray[Any], n_parts: int) -> NDArray[np.uint64]:
    """Return a part for each name, by a hash: the same for equal names wherever they are."""
    if names.dtype.kind != "i":
        encoded = np.empty(names.size, dtype=object)
        encoded[:] = [_bytes(name) for name in names.tolist()]
        names = encoded
    hashed: NDArray[np.uint64] = pd.util.hash_array(names, categorize=False)
    return hashed % np.uint64(n_parts)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
