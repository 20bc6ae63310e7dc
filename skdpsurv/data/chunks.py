"""Tables that come in chunks, one after the other, of which one is in memory at a time.

A fit goes over its records several times, so iterators of frames do not suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pandas as pd

from skdpsurv.data.blocks import Blocks, EmptyBlock, InMemory
from skdpsurv.dp.containers import unlabelled
from skdpsurv.dp.input_errors import InputValueError, call_user_step

__all__ = ["FrameChunks"]

#: Records that take less memory than this, once they are read, are kept while a fit goes over them.
PERSISTED_BYTES = 2**30
UNREAD = (
    "frames must be readable to the last record: a step that reads them failed. Its message is not "
    "shown, since it may quote a record."
)
END = object()
NO_FRAME = "frames must hold at least one pandas DataFrame, and nothing else."

Block = TypeVar("Block")
Other = TypeVar("Other")


class FrameChunks:
    r"""Read a table in chunks, which are pandas data frames with the same columns.

    ``fit`` of the estimators takes it in place of a data frame. Records that do not fit into memory
    are read chunk by chunk, as many times as a fit needs them.
    :func:`~skdpsurv.split_target` splits covariates from the target.

    Parameters
    ----------
    frames : callable or iterable of DataFrame
        A function without arguments that returns a new iterator, or an iterable that can be used
        many times, such as a list. Private, and the same every time.

    Attributes
    ----------
    columns : pandas.Index
        Names of the columns in the first chunk; public.

    Raises
    ------
    TypeError
        If ``frames`` is an iterator, which ends.

    Examples
    --------
    >>> from io import StringIO  # in place of a large file
    >>> import pandas as pd
    >>> from skdpsurv import FrameChunks, split_target
    >>> text = "age,days,died\n61,300.0,0\n48,41.5,1\n"
    >>> records = FrameChunks(lambda: pd.read_csv(StringIO(text), chunksize=1))
    >>> X, y = split_target(records, time="days", event="died")
    >>> X.columns.tolist(), y.columns.tolist()
    (['age'], ['died', 'days'])
    """

    def __init__(self, frames: Callable[[], Iterable[Any]] | Iterable[Any]) -> None:
        if not callable(frames) and (not isinstance(frames, Iterable) or iter(frames) is frames):
            raise TypeError(
                "frames must be a function without arguments that begins anew, such as "
                "lambda: pandas.read_csv(path, chunksize=100_000), or a list of data frames: a fit "
                "goes over records several times, and an iterator ends."
            )
        self._frames = frames
        self._steps: tuple[Callable[[Any], Any], ...] = ()
        self._seen: pd.Index | None = None
        self._width: int | None = None

    @property
    def columns(self) -> Any:
        """Names of the columns in the first chunk; None for arrays made of chunks."""
        if self._seen is None and not self._steps:
            first = next(iter(self), None)
            if not isinstance(first, pd.DataFrame):
                raise TypeError(NO_FRAME)
            self._seen = first.columns
        return self._seen

    @property
    def ndim(self) -> int:
        """2; 1 for a single column."""
        return len(self.shape)

    @property
    def shape(self) -> tuple[float, ...]:
        """Number of records, NaN until they are read, and of columns."""
        width = self._width if self._steps else len(self.columns)
        return (math.nan,) if width is None else (math.nan, width)

    @property
    def name(self) -> Any:
        """Name of a single column; None for a table."""
        return self._seen[0] if self._seen is not None and self.ndim == 1 else None

    def __iter__(self) -> Iterator[Any]:
        """Yield the chunks, from the first."""
        frames = call_user_step(
            lambda: iter(self._frames() if callable(self._frames) else self._frames), UNREAD
        )
        while (frame := call_user_step(lambda: next(frames, END), UNREAD)) is not END:
            yield self._applied(frame)

    def __getitem__(self, columns: Any) -> FrameChunks:
        """Return one column, or some of the columns, of all chunks."""
        wanted = columns if isinstance(columns, list) else [columns]
        for name in wanted:
            if self.columns is None or name not in self.columns:
                raise KeyError(f"columns must be among those of the chunks, got {name!r}.")
        width = len(wanted) if isinstance(columns, list) else None
        return self.over_chunks(partial(_selected, columns), width, pd.Index(wanted))

    def drop(self, *, columns: Sequence[Any]) -> FrameChunks:
        """Return the other columns of all chunks."""
        return self[[name for name in self.columns if name not in columns]]

    def over_chunks(
        self, function: Callable[[Any], Any], width: int | None, columns: pd.Index | None = None
    ) -> FrameChunks:
        """Return a function's results for all chunks: arrays of so many columns, or of none."""
        view = FrameChunks(self._frames)
        view._steps, view._width, view._seen = (*self._steps, function), width, columns
        return view

    def _applied(self, frame: Any) -> Any:
        for step in self._steps:
            frame = step(frame)
        return frame


def _selected(columns: Any, frame: Any) -> Any:
    """Return a column, or some of the columns, of a chunk."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(NO_FRAME)
    for name in columns if isinstance(columns, list) else [columns]:
        if list(frame.columns).count(name) != 1:  # its name may be made of records
            raise InputValueError("frames must all have the columns of the first, each once.")
    return frame[columns]


class ChunkBlocks(Blocks[Block]):
    """Blocks that are read anew in every pass.

    Parameters
    ----------
    begin : callable
        Returns an iterator of the blocks, with ``EmptyBlock`` for those without records.
    n_blocks : int
    n_bytes : float
        Approximate size of all blocks; public.
    """

    def __init__(
        self, begin: Callable[[], Iterator[Block | EmptyBlock]], n_blocks: int, n_bytes: float
    ) -> None:
        self.begin, self._n_blocks, self.n_bytes = begin, n_blocks, n_bytes

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self._n_blocks

    def map(self, function: Callable[..., Other], *each: Sequence[Any]) -> ChunkBlocks[Other]:
        """Return blocks of a function's results, computed when they are read."""
        begin: Callable[[], Iterator[Any]] = partial(self.all_results, function, *each)
        return ChunkBlocks(begin, self.n_blocks, self.n_bytes)

    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield a function's results for every block that has records."""
        found = self.all_results(function, *each)
        return (one for one in found if not isinstance(one, EmptyBlock))

    def all_results(self, function: Callable[..., Any], *each: Sequence[Any]) -> Iterator[Any]:
        """Yield the result of a function of each block."""
        number = 0
        for number, block in enumerate(self.begin(), 1):
            if number > self.n_blocks:
                break
            given = (block, *(one[number - 1] for one in each))
            empty = [one for one in given if isinstance(one, EmptyBlock)]
            yield empty[0] if empty else function(*given)
        if number != self.n_blocks:
            raise ValueError("frames must hold the same chunks whenever they begin anew.")

    def persist(self, share: float = 1.0) -> Blocks[Block]:
        """Return the blocks in memory, if they are small."""
        if self.n_bytes * share > PERSISTED_BYTES:
            return ChunkBlocks(self.begin, self.n_blocks, self.n_bytes * share)
        return InMemory(one for one in self.begin() if not isinstance(one, EmptyBlock))


def chunk_source(X: Any, y: Any = None, *, person: Any = None, **others: Any) -> Blocks[Any]:
    """Return the arguments of a fit, chunk by chunk, person last; one pass counts the records."""
    arguments = (X, y, *others.values(), *(() if person is None else (person,)))
    some = [values for values in arguments if values is not None]
    if not all(isinstance(one, FrameChunks) and one._frames is some[0]._frames for one in some):
        raise TypeError(
            f"{', '.join(('X', 'y', 'person', *others))} must all be taken from one FrameChunks."
        )
    table = FrameChunks(some[0]._frames)

    def begin() -> Iterator[Any]:
        for frame in table:
            block = tuple(None if v is None else unlabelled(v._applied(frame)) for v in arguments)
            yield block if len(frame) else EmptyBlock()

    lengths = []
    for frame in table:
        if not isinstance(frame, pd.DataFrame):
            raise TypeError(NO_FRAME)
        lengths.append(len(frame))
    n_records = sum(lengths)
    n_columns = 0 if X is None else int(X.shape[1])
    target = None
    if y is not None:
        target = pd.DataFrame(columns=y.columns) if y.ndim == 2 else pd.Series([], name=y.name)
    blocks: Blocks[Any] = ChunkBlocks(begin, len(lengths), 8.0 * n_records * (n_columns + 2))
    return blocks.describe((n_records, n_columns), None if X is None else X.columns, target)
