"""Records on the workers of Dask: blocks stay where they are, and only sums come back.

A block is a task, and a function of a block is another, on the same worker. Sums are added in a
tree of fixed order; noise is drawn once, in the client. Errors on workers would be logged with
their data: they are caught, travel as values, and are raised in the client. Only messages of this
package's own refusals are kept, since others may quote a record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial, wraps
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.data.blocks import (
    Blocks,
    EmptyBlock,
    FirstRecords,
    add_results,
    fingerprint,
    new_records,
    pairwise_sum,
)
from skdpsurv.dp.containers import is_dask, is_dask_array, is_frame, is_lazy
from skdpsurv.dp.input_errors import (
    InputValueError,
    call_or_none,
    call_user_step,
    suppressed_float_errors,
)

UNREAD = "X must be a collection whose records can be read: a step that makes it failed."
#: Errors whose messages this package writes; subclasses, as of Unicode and pandas, are foreign.
OWN = (ValueError, TypeError, InputValueError)
#: Number of sums that one task adds: a power of 2 gives the tree of ``pairwise_sum``.
SPLIT_EVERY = 8
#: Blocks are persisted if this many times their size fits into memory.
MEMORY_FACTOR = 3.0

Block = TypeVar("Block")
Other = TypeVar("Other")


class DaskBlocks(Blocks[Block]):
    """Blocks that are results of tasks.

    Parameters
    ----------
    parts : sequence of dask.delayed.Delayed
        One for each block.
    n_bytes : float, default=inf
        Approximate size of all blocks; public. Blocks that fit into the memory of the workers are
        persisted while a fit goes over them.
    client : distributed.Client or None
        Client of the workers; None means threads of this process.
    """

    def __init__(self, parts: Sequence[Any], n_bytes: float = math.inf, client: Any = None) -> None:
        self.parts, self.n_bytes, self.client = tuple(parts), n_bytes, client

    def __reduce__(self) -> Any:
        raise TypeError("Blocks of records stay where they are: they cannot be pickled.")

    @property
    def n_blocks(self) -> int:
        """Number of blocks, with empty ones."""
        return len(self.parts)

    def map(self, function: Callable[..., Other], *each: Sequence[Any]) -> DaskBlocks[Other]:
        """Return lazy results of a function for every block."""
        return DaskBlocks(self._tasks(function, each), self.n_bytes, self.client)

    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield results of a function for every block that has records."""
        found = self.all_results(function, *each)
        return (one for one in found if not isinstance(one, EmptyBlock))

    def all_results(self, function: Callable[..., Any], *each: Sequence[Any]) -> Iterator[Any]:
        """Yield results of a function for every block."""
        return map(result_of, self._computed(self._tasks(function, each)))

    def map_reduce(self, function: Callable[..., Other], *each: Sequence[Any]) -> Other:
        """Return the sum of results, added on the workers."""
        tasks = self._tasks(function, each)
        while len(tasks) > 1:
            starts = range(0, len(tasks), SPLIT_EVERY)
            tasks = [task(_summed, *tasks[start : start + SPLIT_EVERY]) for start in starts]
        found: Other = result_of(self._computed(tasks)[0])
        return found

    def can_send(self, value: Any) -> bool:
        """Return whether a value can go to the workers."""
        return sendable(value)

    def first_of_each(self, names: Callable[[Block], NDArray[Any]]) -> Sequence[Any]:
        """Return tasks for the first record of each name; names travel among workers alone."""
        from dask.base import persist

        each = call_user_step(lambda: self._tasks(names, ()), UNREAD)
        new = task(_new_records, *each)
        first = [
            task(guarded_call, FirstRecords, task(guarded_call, itemgetter(i), new), given)
            for i, given in enumerate(task(guarded_call, fingerprint, one) for one in each)
        ]
        # Small, and otherwise computed again in every pass.
        found: Sequence[Any] = call_user_step(lambda: persist(*first), UNREAD)
        return found

    def persist(self, share: float = 1.0) -> DaskBlocks[Block]:
        """Return the same blocks, computed now and kept on the workers, if there is room."""
        from dask.base import persist

        n_bytes = self.n_bytes * share
        room = n_bytes * MEMORY_FACTOR <= _memory(self.client)
        parts = call_user_step(lambda: persist(*self.parts), UNREAD) if room else self.parts
        return DaskBlocks(parts, n_bytes, self.client)

    def _computed(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Return the results of tasks, or refuse failures in words that quote no record."""
        from dask.base import compute

        # Without its client Dask would go on in this process, with all of the records.
        if self.client is None or self.client.status == "running":
            try:
                results: Sequence[Any] = compute(*tasks)
                return results
            except Exception as error:
                gone = isinstance(error, CancelledError) or type(error).__name__ == "KilledWorker"
            if not gone:  # it was a step of whoever made the collection
                raise InputValueError(UNREAD)
        raise RuntimeError(
            "Dask's client or its workers went away. Nothing is released; what was charged before "
            "stays charged."
        )

    def _tasks(self, function: Callable[..., Any], each: Sequence[Sequence[Any]]) -> list[Any]:
        once = task(partial(identity, function))
        return [task(guarded_call, once, *given) for given in zip(self.parts, *each, strict=True)]


def current_client() -> Any:
    """Return Dask's current client; None means threads of this process."""
    from distributed import get_client

    with suppress(ValueError):
        return get_client()
    return None


def sendable(value: Any) -> bool:
    """Return whether a value can go to where tasks are computed now: threads take anything."""
    from cloudpickle import dumps
    from dask import local, threaded
    from dask.base import get_scheduler

    if get_scheduler() in (None, local.get_sync, threaded.get):
        return True
    # As Dask does it, but without its log of what cannot be pickled; arrays are not copied.
    pickled = partial(dumps, protocol=5, buffer_callback=lambda buffer: None)
    return call_or_none(pickled, value) is not None


def _memory(client: Any) -> float:
    """Return the memory of the workers, in bytes."""
    from distributed.system import MEMORY_LIMIT

    if client is None:
        return float(MEMORY_LIMIT)
    try:
        known = client.scheduler_info(n_workers=-1)
    except TypeError:  # before 2025.4, which returns all workers by itself
        known = client.scheduler_info()
    workers = known["workers"].values()
    return float(sum(worker["memory_limit"] or MEMORY_LIMIT for worker in workers))


def task(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a task of other tasks and of values; Dask does not look into values."""
    from dask.delayed import Delayed, delayed

    given = [
        one if isinstance(one, Delayed) else delayed(partial(identity, one), pure=False)()
        for one in arguments
    ]
    return delayed(function, pure=False)(*given)


# ---- Functions that run on workers.


def identity(value: Any) -> Any:
    return value


class RemoteError(NamedTuple):
    """An error on a worker, in words that show nothing of a record."""

    kind: type[Exception]
    message: str


def guarded_call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a function's result, an error as a value, or the first argument that is no block."""
    for one in arguments:
        if isinstance(one, RemoteError | EmptyBlock):
            return one
    try:
        with suppressed_float_errors():
            return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        kind: Any = type(error)
        if kind in OWN:
            return RemoteError(kind, str(error))
    return RemoteError(RuntimeError, "A block of records could not be used.")


def result_of(found: Any) -> Any:
    """Return a result, or raise the error that it stands for."""
    if isinstance(found, RemoteError):
        raise found.kind(found.message)
    return found


def _summed(*parts: Any) -> Any:
    return _unless_failed(partial(pairwise_sum, add=_added), parts)


def _new_records(*names: Any) -> Any:
    return _unless_failed(partial(guarded_call, new_records), names)


def _unless_failed(function: Callable[[Any], Any], parts: Sequence[Any]) -> Any:
    """Return a function of parts, or the first error among them."""
    failed = [part for part in parts if isinstance(part, RemoteError)]
    return failed[0] if failed else function(parts)


def _added(one: Any, other: Any) -> Any:
    if isinstance(other, EmptyBlock):
        return one
    return other if isinstance(one, EmptyBlock) else add_results(one, other)


# ---- Methods of estimators, on rows that are not in memory: what they make is not there either.

_Method = TypeVar("_Method", bound=Callable[..., Any])


def one_row(X: Any) -> Any:
    """Return a row of zeros with the columns of a collection: nothing of it is computed."""
    row = np.zeros((1, int(X.shape[1])))
    columns = X.columns if is_frame(X) else None
    return row if columns is None else pd.DataFrame(row, columns=columns)


def partitions(values: Any) -> list[Any]:
    """Return a task for each partition of rows."""
    if is_frame(values):  # of frames, files are read for the columns that are used
        # Nothing more: Dask would put small partitions together, here but not in another argument.
        return list(values.simplify().to_delayed(optimize_graph=False))
    if values.ndim > 1:
        values = values.rechunk({1: -1})
    return list(np.ravel(values.to_delayed()))


def supports_lazy_input(
    width: Callable[..., int | None], dtype: Callable[..., Any] | None = None
) -> Callable[[_Method], _Method]:
    """Have a method take collections of Dask, and chunks, as X.

    Its type stays that of the method for arrays in memory: what Dask makes has no types.

    Parameters
    ----------
    width : callable
        Of the estimator and of the method's other arguments: how many columns the result has, None
        if it is one-dimensional.
    dtype : callable, optional
        The same, for the type of its entries; float64 if omitted.
    """

    def decorate(method: _Method) -> _Method:
        @wraps(method)
        def lazy_method(self: Any, X: Any, *args: Any, **options: Any) -> Any:
            if not is_lazy(X):
                return method(self, X, *args, **options)

            def of_rows(rows: Any) -> Any:
                return method(self, rows, *args, **options)

            n_columns = width(self, *args, **options)
            if not is_dask(X):
                return X.over_chunks(of_rows, n_columns)
            kind = np.float64 if dtype is None else dtype(self, *args, **options)
            return by_partition(of_rows, X, kind, n_columns)

        return cast(_Method, lazy_method)

    return decorate


def by_partition(function: Callable[..., Any], X: Any, dtype: Any, width: int | None = None) -> Any:
    """Call a function on the rows of each partition; return an array of Dask.

    Parameters
    ----------
    function : callable
        Of rows, in a pandas data frame or an array; not called for none.
    X : dask DataFrame, Series or Array
    dtype : dtype
    width : int or None
        Columns of the result.

    Returns
    -------
    dask Array
        Of shape (n,) or (n, width), with unknown n if X has.
    """
    import dask.array as da
    from dask.delayed import delayed

    apply = delayed(partial(_of_rows, function, dtype, width), pure=False)
    parts = partitions(X)
    sizes = X.chunks[0] if is_dask_array(X) else (math.nan,) * len(parts)
    more = () if width is None else (width,)
    blocks = [
        da.from_delayed(apply(part), shape=(size, *more), dtype=dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _of_rows(function: Callable[[Any], Any], dtype: Any, width: int | None, rows: Any) -> Any:
    if not len(rows):
        return np.empty((0,) if width is None else (0, width), dtype=dtype)
    return function(rows)
