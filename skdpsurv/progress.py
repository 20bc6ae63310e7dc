"""Long work: a progress bar when ``verbose`` asks for one, and how many workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")

#: More workers than any machine has; far more would overflow inside of joblib.
LARGEST_JOBS = 2**15
#: Seconds between two looks of the bar at the work.
INTERVAL = 0.2


def check_verbose(verbose: object) -> None:
    """Refuse what is not a count; a bool is one."""
    if not isinstance(verbose, bool | int | np.integer) or verbose < 0:
        raise ValueError("verbose must be an integer, not negative.")


def check_n_jobs(n_jobs: object) -> None:
    """Refuse what is no number of workers."""
    if n_jobs is None:
        return
    integer = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if not integer or not 0 < abs(n_jobs) <= LARGEST_JOBS:  # type: ignore[arg-type]
        raise ValueError(f"n_jobs must be None or an integer other than 0, to {LARGEST_JOBS}.")


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
