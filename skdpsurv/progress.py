"""Long work: a progress bar when ``verbose`` asks for one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")

#: Seconds between two looks of the bar at the work.
INTERVAL = 0.2


def first(items: Iterator[Item], n_items: int, task: str, verbose: int = 0) -> Iterator[Item]:
    """Yield the first ``n_items``, with a progress bar on the standard error stream if asked for.

    Parameters
    ----------
    items : iterator
    n_items : int
    task : str
        What the bar says is going on: public.
    verbose : int
        0 for no bar.
    """
    if not verbose:
        yield from islice(items, n_items)
        return
    with Progress(console=Console(stderr=True)) as bar:
        entry = bar.add_task(task, total=n_items)
        looked = time.monotonic()
        for done, item in enumerate(islice(items, n_items), start=1):
            now = time.monotonic()
            if now - looked > INTERVAL:
                bar.update(entry, completed=done)
                looked = now
            yield item
        bar.update(entry, completed=n_items)
