"""Records on the workers of Dask: blocks stay where they are, and only sums come back.

A block is a task. What a function makes of it is another one, on the worker that holds the block,
and sums are added up in a tree of fixed order, so that what reaches the client is one sum a pass.
Noise is drawn there, once, whatever workers do: what a lost one had computed is computed again by
the engine, from the records.

Nothing fails on a worker, as an engine logs what failed on what: an error is caught, travels as a
value, and is raised in the client. Its text is kept if it is one of this package's own refusals,
which say what rule was broken and nothing of a record; errors of other kinds may quote one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial, wraps
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast
from uuid import uuid4

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.data.blocks import (
    Blocks,
    EmptyBlock,
    FirstPlaces,
    added,
    encoded_names,
    fingerprint,
    new_places,
    pairwise_sum,
)
from skdpsurv.dp import suppressed_float_errors
from skdpsurv.dp.checks import is_dask, is_lazy
from skdpsurv.dp.input_errors import InputValueError, call_or_none, call_user_step
from skdpsurv.dp.types import IndexArray

UNREAD = "X must be a collection whose records can be read: a step that makes it failed."
#: Errors with a text of this package's own: no subclasses, such as those of Unicode and of pandas.
OWN = (ValueError, TypeError, InputValueError)
#: So many sums are added up in one task: a power of 2, so that the tree is that of
# ``pairwise_sum``.
SPLIT_EVERY = 8
#: Blocks are held in memory if this many times their size is there.
ROOM = 3.0
#: Names are compared in at most so many tasks.
NAME_PARTS = 64

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
        return DaskBlocks(self._tasks(function, each), self.n_bytes, self.client)

    def results(self, function: Callable[..., Other], *each: Sequence[Any]) -> Iterator[Other]:
        """Yield what a function makes of every block that has records."""
        found = self.all_results(function, *each)
        return (one for one in found if not isinstance(one, EmptyBlock))

    def all_results(self, function: Callable[..., Any], *each: Sequence[Any]) -> Iterator[Any]:
        """Yield what a function makes of every block."""
        return map(raised, self._computed(self._tasks(function, each)))

    def map_reduce(self, function: Callable[..., Other], *each: Sequence[Any]) -> Other:
        """Return the sum over all blocks, added up on the workers."""
        tasks = self._tasks(function, each)
        while len(tasks) > 1:
            ends = range(0, len(tasks), SPLIT_EVERY)
            some = (tasks[start : start + SPLIT_EVERY] for start in ends)
            tasks = [task(_summed, *parts) for parts in some]
        found: Other = raised(self._computed(tasks)[0])
        return found

    def can_send(self, value: Any) -> bool:
        """Say whether a value can go to the workers."""
        return sendable(value)

    def first_of_each(self, names: Callable[[Block], NDArray[Any]]) -> Sequence[Any]:
        """Return tasks for the places of the records whose name no record before them has."""
        return call_user_step(lambda: _first_places(self.parts, names), UNREAD)

    def held(self, share: float = 1.0) -> DaskBlocks[Block]:
        """Return the same blocks, computed now and held on the workers, if there is room."""
        from dask.base import persist

        n_bytes = self.n_bytes * share
        room = n_bytes * ROOM <= _memory(self.client)
        parts = call_user_step(lambda: persist(*self.parts), UNREAD) if room else self.parts
        return DaskBlocks(parts, n_bytes, self.client)

    def _computed(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Return the results of tasks, or refuse what failed in words that quote no record."""
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
        once = task(partial(itself, function))
        return [task(applied, once, *given) for given in zip(self.parts, *each, strict=True)]


def current_client() -> Any:
    """Return the client that computes what is asked for now; None: threads of this process."""
    from distributed import get_client

    with suppress(ValueError):
        return get_client()
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
    return call_or_none(pickled, value) is not None


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


def task(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a task of other ones, and of values, which are taken as they are."""
    from dask.delayed import Delayed, delayed

    given = [
        one if isinstance(one, Delayed) else delayed(partial(itself, one), pure=False)()
        for one in arguments
    ]
    return delayed(function, pure=False)(*given)


def itself(value: Any) -> Any:
    return value


# ---- What runs on workers.


class RemoteError(NamedTuple):
    """An error on a worker, in words that show nothing of a record."""

    kind: type[Exception]
    message: str


def applied(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function makes of its arguments, or of the first that is none: that one."""
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


def raised(found: Any) -> Any:
    """Return what was found, or raise what it stands for."""
    if isinstance(found, RemoteError):
        raise found.kind(found.message)
    return found


def _unless_refused(function: Callable[[Any], Any], parts: Sequence[Any]) -> Any:
    """Return what a function makes of parts, or the first refusal among them."""
    refused = [part for part in parts if isinstance(part, RemoteError)]
    return refused[0] if refused else function(parts)


def _summed(*parts: Any) -> Any:
    return _unless_refused(partial(pairwise_sum, add=_added), parts)


def _added(one: Any, other: Any) -> Any:
    if isinstance(other, EmptyBlock):
        return one
    return other if isinstance(one, EmptyBlock) else added(one, other)


# ---- Names of records, compared where they are. They are dealt by a hash, so that all records of a
# name meet in one task. Names and places travel among workers, and nothing else.


class Dealt(NamedTuple):
    """Some names of a block, where they are in it, and what tells all of its names."""

    names: NDArray[Any]
    places: IndexArray
    fingerprint: bytes


def _first_places(parts: Sequence[Any], names_of: Callable[[Any], NDArray[Any]]) -> Sequence[Any]:
    """Return a task for each partition: where its first records of names are."""
    from dask.base import persist
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    of_names, of_parts = range(min(len(parts), NAME_PARTS)), range(len(parts))
    deal = partial(_listed, partial(_deal, names_of, len(of_names)), len(of_names))
    meet = partial(_listed, partial(_unless_refused, _meet), len(parts))
    # In one layer of a graph: so many ``delayed`` objects take long to put together.
    layer = uuid4().hex
    words = "dealt", "some", "met", "first", "places"
    dealt, some, met, first, places = (f"{word}-{layer}" for word in words)
    graph: dict[Any, Any] = {(dealt, i): (deal, part.key) for i, part in enumerate(parts)}
    for k, i in product(of_names, of_parts):
        graph[some, k, i] = itemgetter(k), (dealt, i)
        graph[first, k, i] = itemgetter(i), (met, k)
    graph |= {(met, k): (meet, [(some, k, i) for i in of_parts]) for k in of_names}
    graph |= {(places, i): (_together, [(first, k, i) for k in of_names]) for i in of_parts}
    whole = HighLevelGraph.from_collections(layer, graph, dependencies=parts)
    # Small, and else worked out again in every pass.
    found: Sequence[Any] = persist(*(Delayed((places, i), whole, layer=layer) for i in of_parts))
    return found


def _listed(function: Callable[[Any], Any], length: int, given: Any) -> list[Any]:
    """Return a list that is made, or as many times what could not be used."""
    found = applied(function, given)
    return found if isinstance(found, list) else [found] * length


def _deal(names_of: Callable[[Any], NDArray[Any]], n_parts: int, block: Any) -> list[Dealt]:
    names = names_of(block)
    told = fingerprint(names)
    keys = names if names.dtype.kind == "i" else pd.Series(encoded_names(names), dtype=object)
    hashed = pd.util.hash_array(np.asarray(keys), categorize=False) % np.uint64(n_parts)
    places = (np.flatnonzero(hashed == k) for k in range(n_parts))
    return [Dealt(names[at], at, told) for at in places]


def _meet(dealt: Sequence[Any]) -> list[Any]:
    """Return, for each block, which of some names stand nowhere before."""
    new = new_places([getattr(one, "names", one) for one in dealt])
    return [
        one if isinstance(one, EmptyBlock) else one._replace(places=one.places[first])
        for one, first in zip(dealt, new, strict=True)
    ]


def _together(some: Sequence[Any]) -> Any:
    """Return the places of all parts of a block's names, in their order."""
    for one in some:
        if isinstance(one, RemoteError | EmptyBlock):
            return one
    return FirstPlaces(np.sort(np.concatenate([one.places for one in some])), some[0].fingerprint)


# ---- Methods of estimators, on rows that are not in memory: what they make is not there either.

_Method = TypeVar("_Method", bound=Callable[..., Any])


def one_row(X: Any) -> Any:
    """Return a row of zeros with the columns of a collection: nothing of it is computed."""
    row = np.zeros((1, int(X.shape[1])))
    columns = getattr(X, "columns", None)
    return row if columns is None else pd.DataFrame(row, columns=columns)


def partitions(values: Any) -> list[Any]:
    """Return a task for each partition of rows."""
    if hasattr(values, "simplify"):  # of frames, files are read for the columns that are used
        # Nothing more: Dask would put small partitions together, here but not in another argument.
        return list(values.simplify().to_delayed(optimize_graph=False))
    if hasattr(values, "chunks") and values.ndim > 1:
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
        def asked(self: Any, X: Any, *args: Any, **options: Any) -> Any:
            if not is_lazy(X):
                return method(self, X, *args, **options)

            def of_rows(rows: Any) -> Any:
                return method(self, rows, *args, **options)

            n_columns = width(self, *args, **options)
            if not is_dask(X):
                return X.over_chunks(of_rows, n_columns)
            kind = np.float64 if dtype is None else dtype(self, *args, **options)
            return by_partition(of_rows, X, kind, n_columns)

        return cast(_Method, asked)

    return decorate


def by_partition(
    function: Callable[[Any], Any], X: Any, dtype: Any, width: int | None = None
) -> Any:
    """Return what a function makes of rows, as an array of Dask.

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
    sizes = X.chunks[0] if hasattr(X, "chunks") else (math.nan,) * len(parts)
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
