"""What callers' code prints is dropped, whatever thread it runs in.

``contextlib.redirect_stdout`` belongs to the process: where two threads leave it in another order
than they entered it, output stays dropped for good, or is shown while one of them still runs.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from types import SimpleNamespace

_LOCK = threading.Lock()
#: Threads that are inside, and the streams that were there before the first one.
_process = SimpleNamespace(depth=0, streams=None)


@contextmanager
def silent_output() -> Iterator[None]:
    """Drop what is printed by any thread until the last one leaves.

    Examples
    --------
    >>> from skdpsurv.dp.silent_output import silent_output
    >>> with silent_output():
    ...     print("a record's value")
    """
    with _LOCK:
        if not _process.depth:
            _process.streams = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = StringIO()
        _process.depth += 1
    try:
        yield
    finally:
        with _LOCK:
            _process.depth -= 1
            if not _process.depth:
                sys.stdout, sys.stderr = _process.streams
