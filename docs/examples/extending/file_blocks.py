"""Records in files: the blocks of a fit, one file at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skdpsurv.data.blocks import Blocks


class FileBlocks(Blocks[Any]):
    """Files that hold X and y of some records each, opened whenever they are needed.

    Parameters
    ----------
    paths : sequence of Path
        Of ``.npz`` files with arrays X and y.
    shape : tuple of (int, int)
        Number of records, and of columns; public.
    steps : tuple
        Functions that were mapped over the blocks, and their other arguments.
    """

    def __init__(self, paths: Sequence[Path], shape: tuple[int, int], steps: tuple = ()) -> None:
        self.paths, self.shape, self.steps = list(paths), shape, steps

    @property
    def n_blocks(self) -> int:
        return len(self.paths)

    def map(self, function: Callable[..., Any], *each: Sequence[Any]) -> FileBlocks:
        return FileBlocks(self.paths, self.shape, (*self.steps, (function, each)))

    def results(self, function: Callable[..., Any], *each: Sequence[Any]) -> Iterator[Any]:
        for i, path in enumerate(self.paths):
            with np.load(path) as file:
                block: Any = (file["X"], file["y"])
            for step, others in (*self.steps, (function, each)):
                block = step(block, *(other[i] for other in others))
            yield block
