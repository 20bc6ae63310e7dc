"""Records in blocks.

A fit transforms records one by one (:meth:`Blocks.map`), and adds up functions of blocks
(:meth:`Blocks.map_reduce`). A backend says where blocks live: :class:`InMemory`, or a subclass of
:class:`Blocks` with its three abstract methods, which ``fit`` takes in place of X.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import islice
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from skdpsurv.data.shape import length, size, take
from skdpsurv.dp.containers import PANDAS, fields_of, labels_of, sparse_rows
from skdpsurv.dp.input_errors import InputValueError, call_or_none
from skdpsurv.dp.types import IndexArray

__all__ = ["Blocks", "InMemory", "in_blocks"]

#: Largest number of rows of a block, and of entries (128 MiB): a fit holds copies of a block.
BLOCK_ROWS, BLOCK_ENTRIES = 2**16, 2**24
#: Error for a block whose columns have names of their own, which may be made of its records.
OTHER_COLUMNS = (
    "X and y must have the same columns, in the same order, in all partitions or chunks: those "
    "that are stated before these are read. Steps that make columns of cells, such as "
    "pandas.get_dummies, need a public list of categories: use PublicColumns."
)
#: Levels of the tree that sums are added in: 2^40 blocks are more than there can be.
MOST_LEVELS = 40

Block = TypeVar("Block")
Other = TypeVar("Other")


class EmptyBlock:
    """Marker for a block without records, and for results of it; sums ignore it."""


class Blocks(ABC, Generic[Block]):
    """Records in blocks, wherever these are.

    A source that is passed to ``fit`` has blocks as :func:`in_blocks` makes them: tuples of the
    arguments of ``fit``, X and y, for some of the records. Its ``shape``, the number of records
    and of columns, is public.

    A fit goes over its blocks many times, and checks them against the public domain once. A backend
    must return the same records every time, in ``n_blocks`` blocks.
    """

    #: Number of records and of columns of a source.
    shape: tuple[int, ...] = ()
    #: Columns of X as an empty frame, or None if they have no names.
    meta: pd.DataFrame | None = None
    #: An empty target, which has the names of its fields or columns; None if nothing is stated.
    target: Any = None
    #: Type of X, if it has a single one.
    dtype: Any = None

    def describe(
        self, shape: tuple[int, int], columns: Any = None, target: Any = None, dtype: Any = None
    ) -> Self:
        """Set the public attributes of blocks that are arguments of a fit."""
        self.shape, self.target, self.dtype = shape, target, dtype
        self.meta = None if columns is None else pd.DataFrame(columns=columns)
        return self

    @property
    @abstractmethod
    def n_blocks(self) -> int:
        """Number of blocks; public."""

    @abstractmethod
    def map(self, function: Callable[..., Other], *each: Sequence[Any]) -> Blocks[Other]:
        """Return blocks of a function's results, where the blocks are.

        Parameters
        ----------
        function : callable
            Takes a block, and one entry of each of ``each``.
        *each : sequence of length n_blocks
        """

    @abstractmethod
    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield a function's results, block by block, in this process."""

    def persist(self, share: float = 1.0) -> Blocks[Block]:
        """Return the same blocks, kept for many passes if a backend would make them anew.

        Parameters
        ----------
        share : float
            Approximate size of the blocks relative to the records; public.
        """
        return self

    def can_send(self, value: Any) -> bool:
        """Return whether a value, and functions that hold it, can go to where the blocks are.

        A fit checks its parameters and its plan with it before the charge.
        """
        return True

    def all_results(self, function: Callable[..., Any], *each: Sequence[Any]) -> Iterator[Any]:
        """Yield the results of all blocks, with ``EmptyBlock`` for those without records."""
        return self.results(function, *each)

    def sizes(self, size: Callable[[Block], int]) -> list[int]:
        """Return the number of records in each block."""
        return [0 if isinstance(one, EmptyBlock) else one for one in self.all_results(size)]

    def first_of_each(self, names: Callable[[Block], NDArray[Any]]) -> Sequence[Any]:
        """Return, for each block, its records with a name that no record before them has.

        Names are integers of 64 bits or text. The result is an argument of :meth:`map`.
        """
        found = list(self.all_results(names))
        return [
            one if isinstance(one, EmptyBlock) else FirstRecords(first, fingerprint(one))
            for one, first in zip(found, new_records(found), strict=True)
        ]

    def map_reduce(self, function: Callable[..., Other], *each: Sequence[Any]) -> Other:
        """Return the sum of a function's results over all blocks, added in pairs.

        Parameters
        ----------
        function : callable
            Returns a number, an array, None, or a tuple of such, always of the same shape.
        *each : sequence of length n_blocks
        """
        return pairwise_sum(self.results(function, *each))

    def chosen(self, indices: IndexArray, size: Callable[[Block], int], rows: Any) -> Blocks[Block]:
        """Return the records at some indices, counted over all blocks.

        Parameters
        ----------
        indices : ndarray of int
            Their order is kept within each block.
        size : callable
            Returns the number of records in a block.
        rows : callable
            ``rows(block, indices)`` returns some records of a block.
        """
        ends = np.cumsum(self.sizes(size))
        starts = np.append(0, ends[:-1])
        inside = [
            indices[(indices >= start) & (indices < end)] - start
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
        """Number of blocks."""
        return len(self.blocks)

    def map(self, function: Callable[..., Other], *each: Sequence[Any]) -> InMemory[Other]:
        """Return blocks of the results of a function of each block."""
        return InMemory(self.results(function, *each))

    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield the result of a function of each block."""
        return map(function, self.blocks, *each)


class FirstRecords(NamedTuple):
    """Indices of the first records of names in a block, and a fingerprint of its names."""

    indices: IndexArray
    fingerprint: bytes

    def of(self, names: NDArray[Any]) -> IndexArray:
        """Return the indices, if the names are those that they were found for."""
        if fingerprint(names) != self.fingerprint:
            raise ValueError("records must come in the same order whenever they are read.")
        return self.indices


def new_records(names: Sequence[Any]) -> list[Any]:
    """Return, for each block's names, the indices of those that stand nowhere before."""
    present = [one for one in names if not isinstance(one, EmptyBlock)]
    if not present:
        return list(names)
    if len({one.dtype.kind for one in present}) > 1:
        raise InputValueError("person must hold whole numbers everywhere, or text everywhere.")
    first = ~pd.Series(np.concatenate(present)).duplicated().to_numpy()
    parts = iter(np.split(first, np.cumsum([one.size for one in present])))
    return [one if isinstance(one, EmptyBlock) else np.flatnonzero(next(parts)) for one in names]


def fingerprint(names: NDArray[Any]) -> bytes:
    """Return 16 bytes that other names, or another order of them, practically never have."""
    found = hashlib.blake2b(digest_size=16)
    if names.dtype.kind == "i":
        found.update(names.tobytes())
    else:
        for name in names.tolist():
            text = name.encode("utf-8", "surrogatepass")
            found.update(len(text).to_bytes(8) + text)
    return found.digest()


def pairwise_sum(parts: Iterable[Any], add: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return the sum of parts, added in a tree of pairs that depends on their number alone.

    Rounding grows with the height of the tree, and only as many sums are kept.
    """
    add = add_results if add is None else add
    levels: list[Any] = []  # sums that wait for their second half, from the largest subtree down
    for number, part in enumerate(parts):
        total = part
        while number % 2:  # as in a binary counter
            total = add(levels.pop(), total)
            number //= 2
        levels.append(total)
    return reduce(lambda last, before: add(before, last), reversed(levels))


def add_results(one: Any, other: Any) -> Any:
    """Return the sum of two results: numbers, arrays, or tuples of these; None stays None."""
    if one is None:
        return None
    if isinstance(one, tuple):
        parts = [add_results(a, b) for a, b in zip(one, other, strict=True)]
        return type(one)(*parts) if hasattr(type(one), "_fields") else tuple(parts)
    return one + other


def first(items: Iterator[Other], n_items: int, task: str, verbose: int = 0) -> Iterator[Other]:
    """Yield the first ``n_items``, with a progress bar on standard error if ``verbose``."""
    some = islice(items, n_items)
    if verbose:
        yield from track(some, task, total=n_items, console=Console(stderr=True))
    else:
        yield from some


def in_blocks(X: Any, *others: Any, width: int = 1) -> Blocks[tuple[Any, ...]]:
    """Return the arguments of a fit in blocks.

    Parameters
    ----------
    X : array-like, data frame, Blocks, or None
        A source of blocks is returned unchanged.
    *others : array-like or None
        Arrays with an entry for each record, such as y.
    width : int, default=1
        Columns of what is made of a block; public.

    Returns
    -------
    Blocks
        Blocks of tuples of the arguments.

    Raises
    ------
    ValueError
        If there are others beside a source of blocks.
    """
    if isinstance(X, Blocks):
        if any(other is not None for other in others):
            raise ValueError("y must be None where X is a source of blocks, which hold both.")
        stated = int(X.shape[1]), labels_of(X.meta), _fields(X.target)
        return X.map(partial(_with_stated_columns, stated))
    # Estimators refuse sparse matrices themselves, once they can be cut.
    arguments = tuple(map(sparse_rows, (X, *others)))
    sizes: set[int] = set()
    with suppress(TypeError):  # for objects without a length
        sizes = {length(values) for values in arguments if values is not None}
    # Estimators refuse unequal lengths.
    step = max(1, min(BLOCK_ROWS, BLOCK_ENTRIES // max(1, width)))
    if len(sizes) != 1 or max(sizes) <= step:
        return InMemory([arguments])
    starts = range(0, max(sizes), step)
    parts = (slice(start, start + step) for start in starts)
    return InMemory(tuple(take(values, part) for values in arguments) for part in parts)


def _fields(y: Any) -> list[Any] | None:
    """Return the names of a target's columns or fields; None if it has none."""
    return labels_of(y) or list(fields_of(y)) or None


def _with_stated_columns(stated: tuple[Any, ...], block: Any) -> Any:
    """Return a block whose columns are those that its source states, or refuse to name others."""
    X, y = (*block, None)[:2]
    n_columns, names, fields = stated

    def same() -> bool:
        of_y = fields is None or _fields(y) == fields
        return of_y and (X is None or (size(X)[1], labels_of(X)) == (n_columns, names))

    if not call_or_none(same):
        raise InputValueError(OTHER_COLUMNS)
    return block


def same_records(one: Any, other: Any) -> bool:
    """Return whether two sets of records are equal, in any container: for audits."""
    if isinstance(one, Blocks):
        one, other = (list(each.results(lambda block: block)) for each in (one, other))
    elif isinstance(one, dict):
        one, other = list(one.items()), list(other.items())
    elif dataclasses.is_dataclass(one):
        fields = [field.name for field in dataclasses.fields(one)]
        one, other = ([getattr(each, name) for name in fields] for each in (one, other))
    elif names := fields_of(one):
        one, other = ([each[name] for name in names] for each in (one, other))
    if isinstance(one, list | tuple):
        both = zip(one, other, strict=False)
        return len(one) == len(other) and all(same_records(a, b) for a, b in both)
    if isinstance(one, PANDAS):
        return bool(one.equals(other))
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    same = np.frompyfunc(lambda a, b: a is b or a == b or (a != a and b != b), 2, 1)
    return bool(np.all(same(one, other)))
