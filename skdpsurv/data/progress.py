"""Long work: a progress bar when ``verbose`` asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


def first(items: Iterator[Item], n_items: int, task: str, verbose: int = 0) -> Iterator[Item]:
    """Yield the first ``n_items``, with a progress bar on standard error if asked for."""
    some = islice(items, n_items)
    if verbose:
        yield from track(some, task, total=n_items, console=Console(stderr=True))
    else:
        yield from some
