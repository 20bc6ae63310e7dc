"""Where the records of a fit come from: memory, an engine, or chunks."""

from __future__ import annotations

from typing import Any

from skdpsurv.blocks import Blocks
from skdpsurv.dask_source import dask_source
from skdpsurv.frame_chunks import chunk_source
from skdpsurv.lazy import is_dask, is_lazy
from skdpsurv.target import chosen_target

__all__ = ["as_source", "in_memory", "one_target", "require_in_memory"]


def in_memory(*values: Any) -> bool:
    """Say whether all arguments are in the memory of this process."""
    return not any(map(is_lazy, values))


def require_in_memory(*values: Any) -> None:
    """Refuse rows that are somewhere else, which scikit-learn would pull here without a word.

    Raises
    ------
    TypeError
    """
    if not in_memory(*values):
        raise TypeError("X and y must be in memory here, got a collection of Dask, or chunks.")


def as_source(X: Any, y: Any, *, person: Any = None, **others: Any) -> Blocks[Any]:
    """Return the arguments of a fit, which are not in memory, as one source of blocks.

    Raises
    ------
    TypeError, ValueError
        If they do not belong together.
    """
    of_dask = any(map(is_dask, (X, y, person, *others.values())))
    return (dask_source if of_dask else chunk_source)(X, y, person=person, **others)


def one_target(
    X: Any, y: Any, durations: Any = None, event_observed: Any = None
) -> tuple[Any, Any, Any]:
    """Return X, y and events of a fit that speaks lifelines, too: durations beside events are y.

    Raises
    ------
    ValueError, TypeError
        If arguments contradict each other, or some are in memory.
    """
    values, *events = chosen_target(X, y, durations, event_observed)
    if events and events[0] is not None and in_memory(events[0]):
        raise TypeError("event_observed must be where durations are, and not in memory.")
    return (None, values, events[0]) if events else (X, values, None)
