"""Records in blocks, and the one way over them: a sum over blocks.

A fit does two things with records: it turns each into what a likelihood wants, record by record
(:meth:`Blocks.map`), and it adds up what functions make of blocks (:meth:`Blocks.map_reduce`).
Where blocks live is for a backend to say: here, in memory (:class:`InMemory`); elsewhere by a
subclass of :class:`Blocks` with the three methods that are abstract here, which an estimator's
``fit`` takes in place of X.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import islice
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from skdpsurv.data.shape import length, take
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.dp.types import IndexArray

__all__ = ["Blocks", "InMemory", "in_blocks"]

#: Rows of a block: what a fit adds to memory is a few copies of one block.
BLOCK_ROWS = 2**16
#: Levels of the tree that sums are added in: 2^40 blocks are more than there can be.
MOST_LEVELS = 40

Block = TypeVar("Block")
Other = TypeVar("Other")


class EmptyBlock:
    """What stands for a block without records, and for what is made of it: no part of a sum."""


class Blocks(ABC, Generic[Block]):
    """Records in blocks, wherever these are.

    Of a source that is passed to ``fit``, a block is what :func:`in_blocks` makes of arrays: a
    tuple of the arguments of ``fit``, X and y, for some of the records; and it has a ``shape``, the
    number of records and of columns, which is public.

    A fit goes over its blocks many times, and what it has seen to be in the public domain it takes
    to stay there: a backend must return the same records every time, in as many blocks as it said.
    """

    #: The number of records and of columns of a source.
    shape: tuple[int, ...]
    #: The columns of its X as an empty frame, or None if they have no names.
    meta: pd.DataFrame | None = None
    #: A target without records, which says what names it has.
    target: Any = None
    #: Of its X, if it has one type.
    dtype: Any = None

    def describe(
        self, shape: tuple[int, int], columns: Any = None, target: Any = None, dtype: Any = None
    ) -> Self:
        """State what is public of these blocks, which are the arguments of a fit."""
        self.shape, self.target, self.dtype = shape, target, dtype
        self.meta = None if columns is None else pd.DataFrame(columns=columns)
        return self

    @property
    @abstractmethod
    def n_blocks(self) -> int:
        """How many blocks there are; public."""

    @abstractmethod
    def map(self, function: Callable[..., Other], *each: Sequence[Any]) -> Blocks[Other]:
        """Return what a function makes of every block, where the blocks are.

        Parameters
        ----------
        function : callable
            Of a block, and of one entry of each of ``each``.
        *each : sequence of length n_blocks
        """

    @abstractmethod
    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield what a function makes of every block, block by block, here."""

    def held(self, share: float = 1.0) -> Blocks[Block]:
        """Return the same blocks, for many passes: a backend that made them anew may keep them.

        Parameters
        ----------
        share : float
            About how much of the records they have; public.
        """
        return self

    def can_send(self, value: Any) -> bool:
        """Say whether a value, and functions that hold it, can go to where the blocks are.

        A fit asks this of its parameters and of its plan, before it is charged.
        """
        return True

    def all_results(self, function: Callable[..., Any], *each: Sequence[Any]) -> Iterator[Any]:
        """Yield the results of all blocks; ``Nothing`` of those that hold no records, if any do."""
        return self.results(function, *each)

    def sizes(self, size: Callable[[Block], int]) -> list[int]:
        """Return how many records each block holds: none, if it is empty."""
        return [0 if isinstance(one, EmptyBlock) else one for one in self.all_results(size)]

    def first_of_each(self, names: Callable[[Block], NDArray[Any]]) -> Sequence[Any]:
        """Return, for each block, the places of the records whose name no record before them has.

        Names are integers of 64 bits or text. What is returned, :class:`FirstPlaces` or
        ``Nothing``, :meth:`map` takes beside a function, wherever it is.
        """
        found = list(self.all_results(names))
        return [
            one if isinstance(one, EmptyBlock) else FirstPlaces(first, fingerprint(one))
            for one, first in zip(found, new_places(found), strict=True)
        ]

    def map_reduce(self, function: Callable[..., Other], *each: Sequence[Any]) -> Other:
        """Return the sum over all blocks of what a function makes of each, added in pairs.

        Parameters
        ----------
        function : callable
            Returns a number, an array, None, or a tuple of such, always of the same shape.
        *each : sequence of length n_blocks
        """
        return pairwise_sum(self.results(function, *each))

    def chosen(self, places: IndexArray, size: Callable[[Block], int], rows: Any) -> Blocks[Block]:
        """Return the records at some places, counted over all blocks.

        Parameters
        ----------
        places : ndarray of int
            Within each block, in the order in which they are wanted.
        size : callable
            Of a block: how many records it holds.
        rows : callable
            ``rows(block, places)`` returns some records of a block.
        """
        ends = np.cumsum(self.sizes(size))
        starts = np.append(0, ends[:-1])
        inside = [
            places[(places >= start) & (places < end)] - start
            for start, end in zip(starts, ends, strict=True)
        ]
        return self.map(rows, inside)


class InMemory(Blocks[Block]):
    """Blocks in the memory of this process.

    Parameters
    ----------
    blocks : iterable of blocks
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = tuple(blocks)

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.blocks)

    def map(self, function: Callable[..., Other], *each: Sequence[Any]) -> InMemory[Other]:
        """Return what a function makes of every block."""
        return InMemory(self.results(function, *each))

    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield what a function makes of every block."""
        return map(function, self.blocks, *each)


class FirstPlaces(NamedTuple):
    """Where in a block the first records of names are, and what names the block had then."""

    places: IndexArray
    fingerprint: bytes

    def of(self, names: NDArray[Any]) -> IndexArray:
        """Return the places, if the names are those that they were found for."""
        if fingerprint(names) != self.fingerprint:
            raise ValueError("records must come in the same order whenever they are read.")
        return self.places


def new_places(names: Sequence[Any]) -> list[Any]:
    """Return the places of names that stand nowhere before; ``Nothing`` of ``Nothing``."""
    given = [one for one in names if not isinstance(one, EmptyBlock)]
    if not given:
        return list(names)
    if len({one.dtype.kind for one in given}) > 1:
        raise InputValueError("person must hold whole numbers everywhere, or text everywhere.")
    first = ~pd.Series(np.concatenate(given)).duplicated().to_numpy()
    parts = iter(np.split(first, np.cumsum([one.size for one in given])))
    return [one if isinstance(one, EmptyBlock) else np.flatnonzero(next(parts)) for one in names]


def fingerprint(names: NDArray[Any]) -> bytes:
    """Return 16 bytes that other names, or another order of them, practically never have."""
    found = hashlib.blake2b(digest_size=16)
    if names.dtype.kind == "i":
        found.update(names.tobytes())
    else:
        for text in encoded_names(names):
            found.update(len(text).to_bytes(8) + text)
    return found.digest()


def encoded_names(names: NDArray[Any]) -> list[bytes]:
    """Return text as bytes, whatever encodings know of it."""
    return [name.encode("utf-8", "surrogatepass") for name in names.tolist()]


def pairwise_sum(parts: Iterable[Any], add: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return the sum of parts, added in a tree of pairs: the same for whoever adds them.

    The first with the second, the third with the fourth, then both sums, and so on; what is left
    over is added last. Rounding grows with the tree's height, and only as many sums are held.
    """
    add = added if add is None else add
    levels: list[Any] = []  # what waits for its second half, from the largest subtree down
    for number, part in enumerate(parts):
        total = part
        while number % 2:  # as in a binary counter
            total = add(levels.pop(), total)
            number //= 2
        levels.append(total)
    return reduce(lambda last, before: add(before, last), reversed(levels))


def added(one: Any, other: Any) -> Any:
    """Return the sum of two results: of numbers, arrays, or tuples of these; None stays None."""
    if one is None:
        return None
    if isinstance(one, tuple):
        parts = [added(a, b) for a, b in zip(one, other, strict=True)]
        return type(one)(*parts) if hasattr(one, "_fields") else tuple(parts)
    return one + other


def first(items: Iterator[Other], n_items: int, task: str, verbose: int = 0) -> Iterator[Other]:
    """Yield the first ``n_items``, with a progress bar on standard error if asked for."""
    some = islice(items, n_items)
    if verbose:
        yield from track(some, task, total=n_items, console=Console(stderr=True))
    else:
        yield from some


def in_blocks(X: Any, *others: Any) -> Blocks[tuple[Any, ...]]:
    """Return the arguments of a fit in blocks: X, and what has an entry for each of its records.

    Parameters
    ----------
    X : array-like, data frame, Blocks, or None
        A source of blocks is returned as it is: its blocks hold all that belongs to a record.
    *others : array-like or None

    Raises
    ------
    ValueError
        If there are others beside a source of blocks.
    """
    if isinstance(X, Blocks):
        if any(other is not None for other in others):
            raise ValueError("y must be None where X is a source of blocks, which hold both.")
        return X
    # A sparse matrix that cannot be cut is for the estimator to refuse, too.
    arguments = tuple(v.tocsr() if hasattr(v, "tocsr") else v for v in (X, *others))
    sizes: set[int] = set()
    with suppress(TypeError):  # of something that has none
        sizes = {length(values) for values in arguments if values is not None}
    # Whether lengths agree is for the estimator to say.
    if len(sizes) != 1 or max(sizes) <= BLOCK_ROWS:
        return InMemory([arguments])
    starts = range(0, max(sizes), BLOCK_ROWS)
    parts = (slice(start, start + BLOCK_ROWS) for start in starts)
    return InMemory(tuple(take(values, part) for values in arguments) for part in parts)


def same_records(one: Any, other: Any) -> bool:
    """Say whether two sets of records are alike, however they are kept: for audits."""
    if isinstance(one, Blocks):
        one, other = (list(each.results(lambda block: block)) for each in (one, other))
    elif isinstance(one, dict):
        one, other = list(one.items()), list(other.items())
    elif dataclasses.is_dataclass(one):
        fields = [field.name for field in dataclasses.fields(one)]
        one, other = ([getattr(each, name) for name in fields] for each in (one, other))
    elif names := getattr(getattr(one, "dtype", None), "names", None):
        one, other = ([each[name] for name in names] for each in (one, other))
    if isinstance(one, list | tuple):
        both = zip(one, other, strict=False)
        return len(one) == len(other) and all(same_records(a, b) for a, b in both)
    if hasattr(one, "equals"):  # of pandas
        return bool(one.equals(other))
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    same = np.frompyfunc(lambda a, b: a is b or a == b or (a != a and b != b), 2, 1)
    return bool(np.all(same(one, other)))
