"""Linear algebra of small matrices, for which threads cost more than they bring.

BLAS wakes a thread for each core from some 60 rows on. These wait for each other in loops, which
takes minutes of processor time where other processes use the cores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

#: Lock for changes of the number of BLAS threads, which belongs to the process.
_LOCK = threading.RLock()
_controller = cache(ThreadpoolController)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread, and afterwards as many as before."""
    with _LOCK, _controller().limit(limits=1, user_api="blas"):
        yield
