"""Records on the workers of Dask: blocks stay where they are, and only sums come back.

A block is a task. What a function makes of it is another one, on the worker that holds the block,
and sums are added up in a tree of fixed order, so that what reaches the client is one sum a pass.
Noise is drawn there, once, whatever workers do: what a lost one had computed is computed again by
the engine, from the records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, TypeVar

from numpy.typing import NDArray

from skdpsurv.blocks import Blocks, Nothing
from skdpsurv.dask_layer import Layer
from skdpsurv.dask_names import first_of_partitions
from skdpsurv.dask_tasks import applied, raised, summed
from skdpsurv.privacy.refusals import RefusedValueError, step_of_callers
from skdpsurv.privacy.silence import attempted

__all__ = ["DaskBlocks", "current_client", "sendable"]

UNREAD = "X must be a collection whose records can be read: a step that makes it failed."
#: So many sums are added up in one task: a power of 2, so that the tree is that of ``in_pairs``.
SPLIT_EVERY = 8
#: Blocks are held in memory if this many times their size is there.
ROOM = 3.0

Block = TypeVar("Block")
Other = TypeVar("Other")


class DaskBlocks(Blocks[Block]):
    """Blocks that are results of tasks.

    Parameters
    ----------
    parts : sequence of dask.delayed.Delayed
        One for each block.
    n_bytes : float, default=inf
        About how many bytes all blocks take; public. Blocks that are known to be small enough for
        the memory of the workers are held there while a fit goes over them.
    client : distributed.Client or None
        Of the workers; None: threads of this process.
    """

    def __init__(self, parts: Sequence[Any], n_bytes: float = math.inf, client: Any = None) -> None:
        self.parts, self.n_bytes, self.client = tuple(parts), n_bytes, client

    def __reduce__(self) -> Any:
        raise TypeError("Blocks of records stay where they are: they cannot be pickled.")

    @property
    def n_blocks(self) -> int:
        """How many blocks there are, with those that are empty."""
        return len(self.parts)

    def map(self, function: Callable[..., Other], *each: Sequence[Any]) -> DaskBlocks[Other]:
        """Return what a function will make of every block, when it is asked for."""
        layer = Layer()
        return self._of(layer.wanted(self._tasks(layer, function, each)))

    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield what a function makes of every block that has records."""
        found = self._made(function, each)
        return (one for one in found if not isinstance(one, Nothing))

    def sizes(self, size: Callable[[Block], int]) -> list[int]:
        """Return how many records each block holds: none, if it is empty."""
        found = self._made(size, ())
        return [0 if isinstance(one, Nothing) else one for one in found]

    def map_sum(self, function: Callable[..., Other], *each: Sequence[Any]) -> Other:
        """Return the sum over all blocks, added up on the workers."""
        layer = Layer()
        tasks = self._tasks(layer, function, each)
        while len(tasks) > 1:
            ends = range(0, len(tasks), SPLIT_EVERY)
            some = (tasks[start : start + SPLIT_EVERY] for start in ends)
            tasks = [layer.task("summed", summed, parts) for parts in some]
        (sums,) = self._computed(layer.wanted(tasks))
        found: Other = raised(sums)
        return found

    def can_send(self, value: Any) -> bool:
        """Say whether a value can go to the workers."""
        return sendable(value)

    def first_of_each(self, names: Callable[[Block], NDArray[Any]]) -> Sequence[Any]:
        """Return tasks for the places of the records whose name no record before them has."""
        return step_of_callers(lambda: first_of_partitions(self.parts, names), UNREAD)

    def held(self, share: float = 1.0) -> DaskBlocks[Block]:
        """Return the same blocks, computed now and held on the workers, if there is room."""
        from dask.base import persist

        n_bytes = self.n_bytes * share
        room = n_bytes * ROOM <= _memory(self.client)
        parts = step_of_callers(lambda: persist(*self.parts), UNREAD) if room else self.parts
        return DaskBlocks(parts, n_bytes, self.client)

    def _of(self, parts: Sequence[Any]) -> DaskBlocks[Any]:
        """Return other blocks on the same workers."""
        return DaskBlocks(parts, self.n_bytes, self.client)

    def _made(self, function: Callable[..., Any], each: Sequence[Sequence[Any]]) -> list[Any]:
        layer = Layer()
        tasks = layer.wanted(self._tasks(layer, function, each))
        return [raised(one) for one in self._computed(tasks)]

    def _computed(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Return the results of tasks.

        Raises
        ------
        RefusedValueError
            If a step that makes the collection failed; its text may quote a record.
        RuntimeError
            If the client or its workers went away.
        """
        from dask.base import compute

        # Without its client Dask would go on in this process, with all of the records.
        if self.client is None or self.client.status == "running":
            try:
                results: Sequence[Any] = compute(*tasks)
                return results
            except Exception as error:
                gone = isinstance(error, CancelledError) or type(error).__name__ == "KilledWorker"
            if not gone:  # it was a step of whoever made the collection
                raise RefusedValueError(UNREAD)
        raise RuntimeError(
            "Dask's client or its workers went away. Nothing is released; what was charged before "
            "stays charged."
        )

    def _tasks(
        self, layer: Layer, function: Callable[..., Any], each: Sequence[Sequence[Any]]
    ) -> list[Any]:
        from dask.delayed import Delayed

        once = layer.value("function", function)

        def entry(one: Any) -> Any:
            return one if isinstance(one, Delayed) else layer.value("given", one)

        return [
            layer.task("applied", applied, once, part, *map(entry, rest))
            for part, *rest in zip(self.parts, *each, strict=True)
        ]


def current_client() -> Any:
    """Return the client that computes what is asked for now; None: threads of this process."""
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def sendable(value: Any) -> bool:
    """Say whether a value can go to where tasks are computed now: threads take anything."""
    from cloudpickle import dumps
    from dask import local, threaded
    from dask.base import get_scheduler

    if get_scheduler() in (None, local.get_sync, threaded.get):
        return True
    # As Dask does it, but that it logs what it cannot pickle; arrays are not copied.
    pickled = partial(dumps, protocol=5, buffer_callback=lambda buffer: None)
    return attempted(pickled, value) is not None


def _memory(client: Any) -> float:
    """Return how much memory workers have, in bytes."""
    from distributed.system import MEMORY_LIMIT

    if client is None:
        return float(MEMORY_LIMIT)
    try:
        known = client.scheduler_info(n_workers=-1)
    except TypeError:  # before 2025.4, which tells of all workers by itself
        known = client.scheduler_info()
    workers = known["workers"].values()
    return float(sum(worker["memory_limit"] or MEMORY_LIMIT for worker in workers))
