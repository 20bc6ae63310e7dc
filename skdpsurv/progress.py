"""A progress bar for long work, when ``verbose`` asks for one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")

#: Seconds between two looks of the bar at the work.
INTERVAL = 0.2


def check_verbose(verbose: object) -> None:
    """Refuse what is not a count; a bool is one."""
    if not isinstance(verbose, bool | int | np.integer) or verbose < 0:
        raise ValueError("verbose must be an integer, not negative.")


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
