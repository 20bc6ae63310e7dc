"""Records of a fit that come in blocks: what of them is public, beside the blocks themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pandas as pd

from skdpsurv.blocks import Blocks

__all__ = ["Arguments", "Source"]

#: Of a fit, for some of the records: X, y, and what else has an entry for each record.
Arguments = tuple[Any, ...]

Other = TypeVar("Other")


class Source(Blocks[Arguments]):
    """Blocks of the arguments of a fit.

    Parameters
    ----------
    blocks : Blocks
    n_records : int
    columns : Index or None
        Names of the columns of X, if they have any.
    n_columns : int
    target : object or None
        A target without records, which says what names it has.
    dtype : dtype or None
        Of X, if it has one.
    """

    def __init__(
        self,
        blocks: Blocks[Arguments],
        n_records: int,
        *,
        columns: pd.Index | None = None,
        n_columns: int = 0,
        target: Any = None,
        dtype: Any = None,
    ) -> None:
        self.blocks = blocks
        self.shape = (n_records, n_columns)
        self.dtype = dtype
        #: The columns of X as an empty frame, or None if they have no names.
        self.meta = None if columns is None else pd.DataFrame(columns=columns)
        self.target = target

    def with_blocks(self, blocks: Blocks[Arguments], n_records: int) -> Source:
        """Return a source of other records, of the same columns."""
        return Source(
            blocks,
            n_records,
            columns=None if self.meta is None else self.meta.columns,
            n_columns=self.shape[1],
            target=self.target,
            dtype=self.dtype,
        )

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return self.blocks.n_blocks

    def map(self, function: Callable[..., Other], *each: Sequence[Any]) -> Blocks[Other]:
        """Return what a function makes of every block, where the blocks are."""
        return self.blocks.map(function, *each)

    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield what a function makes of every block, here."""
        return self.blocks.results(function, *each)

    def sizes(self, size: Callable[[Arguments], int]) -> list[int]:
        """Return how many records each block holds."""
        return self.blocks.sizes(size)

    def map_sum(self, function: Callable[..., Other], *each: Sequence[Any]) -> Other:
        """Return the sum over all blocks of what a function makes of each."""
        return self.blocks.map_sum(function, *each)

    def can_send(self, value: Any) -> bool:
        """Say whether a value can go to where the blocks are."""
        return self.blocks.can_send(value)

    def first_of_each(self, names: Callable[[Arguments], Any]) -> Sequence[Any]:
        """Return, for each block, the places of the first record of each name."""
        return self.blocks.first_of_each(names)
