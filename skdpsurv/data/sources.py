"""Sources of records that are not in memory: collections of Dask, or chunks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from skdpsurv.data.blocks import Blocks, EmptyBlock
from skdpsurv.data.chunks import chunk_source
from skdpsurv.data.dask import DaskBlocks, current_client, identity, partitions, sendable, task
from skdpsurv.data.shape import has_one_each, in_memory, take
from skdpsurv.data.target import chosen_target
from skdpsurv.dp.containers import dtype_of, is_dask, is_dask_array, is_frame, unlabelled
from skdpsurv.dp.input_errors import InputValueError, call_user_step

UNCOUNTED = "X must be a collection whose records can be counted: a step that makes it failed."


def as_source(X: Any, y: Any, *, person: Any = None, **others: Any) -> Blocks[Any]:
    """Return the arguments of a fit, which are not in memory, as one source of blocks."""
    of_dask = any(map(is_dask, (X, y, person, *others.values())))
    return (dask_source if of_dask else chunk_source)(X, y, person=person, **others)


def one_target(
    X: Any, y: Any, durations: Any = None, event_observed: Any = None
) -> tuple[Any, Any, Any]:
    """Return X, y and events of a fit; durations, beside events, stand for y."""
    y, durations, events = chosen_target(X, y, durations, event_observed)
    if events is not None and in_memory(events):
        raise TypeError("event_observed must be where durations are, and not in memory.")
    return (X, y, None) if durations is None else (None, durations, events)


# ---- Collections of Dask: frames, arrays and series.


def dask_source(X: Any, y: Any = None, *, person: Any = None, **others: Any) -> DaskBlocks[Any]:
    """Return the arguments of a fit, in partitions that belong together.

    This looks at public numbers alone: counts of records and partitions, and names of columns. It
    takes one pass over the lengths of partitions, which Parquet files state.
    """
    from dask.delayed import delayed

    arguments = {"X": X, "y": y, **others} | ({} if person is None else {"person": person})
    cut = {name: values for name, values in arguments.items() if is_dask(values)}
    for name in ("X", "y", "person", "entry"):
        if arguments.get(name) is not None and name not in cut:
            raise TypeError(
                f"{name} must be a collection of Dask, as {next(iter(cut))} is: nothing private is "
                "sent to workers. dask.dataframe.from_pandas and dask.array.from_array make one."
            )
    first = "y" if X is None else "X"
    cut = {name: _cut_as(arguments[first], values, first, name) for name, values in cut.items()}
    parts = {name: partitions(values) for name, values in cut.items()}
    for name, tasks in parts.items():
        if not sendable(_task(tasks[0])):
            # Perhaps because of a cell: so it is refused as records are.
            raise InputValueError(
                f"{name} must be a collection that can be sent to workers: a step that makes it "
                "cannot be pickled."
            )
    sent = {name: v for name, v in arguments.items() if v is not None and name not in cut}
    if sent:
        lengths = _lengths(cut[first], parts[first])
        n_records = sum(lengths)
        parts |= {name: _pieces(name, values, lengths) for name, values in sent.items()}
    else:  # frames first: those of files know their lengths without being read
        n_records = _length(min(cut.values(), key=is_dask_array))
    none = [None] * len(parts[first])
    n_columns = 0 if X is None else int(X.shape[1])
    each = zip(*(parts.get(name, none) for name in arguments), strict=True)
    block = delayed(_block, pure=False)
    n_bytes = 8.0 * n_records * (n_columns + 2)
    blocks: DaskBlocks[Any] = DaskBlocks([block(*some) for some in each], n_bytes, current_client())
    # An empty target, for the names of its fields or columns.
    empty = None if y is None or is_frame(y) else np.empty(0, dtype=y.dtype)
    target = y._meta if is_frame(y) else empty
    columns = X.columns if is_frame(X) else None
    return blocks.describe((n_records, n_columns), columns, target, dtype_of(X))


def _task(part: Any) -> Any:
    """Return the tasks that make a partition, and those of no other."""
    from dask.optimization import cull

    tasks, _ = cull(dict(part.__dask_graph__()), part.__dask_keys__())
    return tasks


def _has_length(values: Any) -> bool:
    """Return whether the sizes of an array's chunks are known."""
    return is_dask_array(values) and not np.isnan(values.shape[0])


def _cut_as(guide: Any, values: Any, first: str, name: str) -> Any:
    """Return a collection with its chunks cut as another's, where their sizes are known."""
    if is_dask_array(guide) and guide.ndim > 2:
        raise ValueError(f"{first} must be two-dimensional: Expected 2D array.")
    if _has_length(guide) and _has_length(values):
        if guide.shape[0] != values.shape[0]:
            raise ValueError(f"{first} and {name} must have the same number of records.")
        return values.rechunk({0: guide.chunks[0]})
    # Frames with a known range of the index in each partition.
    if all(not is_dask_array(v) and bool(v.known_divisions) for v in (guide, values)):
        ends, others = ({v.divisions[0], v.divisions[-1]} for v in (guide, values))
        if ends == others:
            same = guide.divisions == values.divisions
            return values if same else values.repartition(divisions=guide.divisions)
    numbers = [v.numblocks[0] if is_dask_array(v) else v.npartitions for v in (guide, values)]
    if numbers[0] != numbers[1]:
        raise ValueError(
            f"{first} and {name} must have the same partitions: take both from one frame (as "
            f"split_target does), or cut them alike. Got {numbers[0]} and {numbers[1]}."
        )
    return values


def _lengths(values: Any, parts: Sequence[Any]) -> list[int]:
    """Return the number of records in each partition."""
    if _has_length(values):
        return [int(number) for number in values.chunks[0]]
    from dask.base import compute

    counts = [task(len, part) for part in parts]
    return list(call_user_step(lambda: compute(*counts), UNCOUNTED))


def _pieces(name: str, values: Any, lengths: Sequence[int]) -> list[Any]:
    """Return public values in memory, in pieces of some lengths."""
    if not has_one_each(values, sum(lengths)):
        raise ValueError(f"{name} must have one entry for each record.")
    ends = pairwise(np.cumsum([0, *lengths]).tolist())
    return [task(identity, take(values, slice(*some))) for some in ends]


def _length(values: Any) -> int:
    """Return the number of records."""
    if is_dask_array(values) and not _has_length(values):
        values = values.copy()
        call_user_step(values.compute_chunk_sizes, UNCOUNTED)
    return int(call_user_step(lambda: len(values), UNCOUNTED))


def _block(*arguments: Any) -> Any:
    """Return the arguments of a fit for one partition."""
    sizes = {len(values) for values in arguments if values is not None}
    return EmptyBlock() if sizes == {0} else tuple(map(unlabelled, arguments))
