"""No warning may tell of the records, once a search has been charged."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silence() -> Iterator[None]:
    """Ignore all warnings, in the main thread of a process; in others do nothing.

    Filters of warnings belong to the process: threads that set and restore them would undo each
    other's work. A search silences them where its threads are started.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
