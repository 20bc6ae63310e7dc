"""Tasks of Dask in one layer of a graph.

So many ``delayed`` objects, each with a graph of its own, take longer to put together than a pass
over few records takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

__all__ = ["Layer"]


class Layer:
    """Tasks that are entered one after the other, and asked for together.

    Names are drawn: no hash is made of what tasks hold.
    """

    def __init__(self) -> None:
        self._name = uuid4().hex
        self._tasks: dict[Any, Any] = {}
        self._others: list[Any] = []

    def task(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Enter a task, and return its key.

        Parameters
        ----------
        name : str
            What Dask's own displays call it.
        function : callable
        *arguments
            Keys of tasks of this layer, lists of them, or ``dask.delayed.Delayed``.
        """
        key = (f"{name}-{self._name}", len(self._tasks))
        self._tasks[key] = (function, *map(self._argument, arguments))
        return key

    def value(self, name: str, value: Any) -> Any:
        """Enter a value that tasks share, or an argument of theirs as it is; return its key."""
        return self.task(name, partial(_itself, value))

    def wanted(self, keys: Sequence[Any]) -> list[Any]:
        """Return tasks as ``dask.delayed.Delayed``."""
        from dask.delayed import Delayed
        from dask.highlevelgraph import HighLevelGraph

        graph = HighLevelGraph.from_collections(self._name, self._tasks, dependencies=self._others)
        return [Delayed(key, graph, layer=self._name) for key in keys]

    def _argument(self, argument: Any) -> Any:
        from dask.delayed import Delayed

        if not isinstance(argument, Delayed):
            return argument
        self._others.append(argument)
        return argument.key


def _itself(value: Any) -> Any:
    return value
