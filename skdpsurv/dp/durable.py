"""Files that are locked, names that are durable, and which of all files one is.

A POSIX lock ends as soon as any thread of the process closes any descriptor of the file. ``flock``
belongs to one opening of a file: it excludes threads as well, and no fork copies it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Seconds between attempts to take a lock, which others hold for milliseconds.
_WAIT = 0.002
#: Linux's FS_IOC_GETVERSION, as most 64-bit machines have it.
_GENERATION = 0x80087601


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder durable, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def identity(path: str | Path) -> str:
    """Return numbers that tell a file from its copies, even one that took its place.

    A file system gives the number of a file that was removed to another one. Linux counts, or draws
    at random, a second one for each of them: 0 where that is not known.
    """
    second = b""
    if fcntl is not None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            with suppress(OSError):
                second = fcntl.ioctl(descriptor, _GENERATION, bytes(8))[:4]
        finally:
            os.close(descriptor)
    return f"{os.stat(path).st_ino} {int.from_bytes(second, sys.byteorder)}"


@contextmanager
def locked(path: str, seconds: float) -> Iterator[None]:
    """Hold the lock at ``path``, which nobody else holds then, other threads included.

    Parameters
    ----------
    path : str
        File to lock; made if missing, and left there, since removing a lock that somebody waits
        for would make two of it.
    seconds : float
        How long to wait for others.

    Raises
    ------
    RuntimeError
        If somebody else holds it for longer, the file cannot be made or locked, or it was removed
        while it was held.
    """
    if fcntl is None:
        yield
        return
    try:
        descriptor = _acquired(path, time.monotonic() + seconds)
    except OSError as error:
        raise RuntimeError(
            f"{path!r} could not be locked ({error}). Nothing was charged."
        ) from error
    try:
        yield
        if not _is_named(path, descriptor):
            raise RuntimeError(
                f"The lock {path!r} was removed while it was held: somebody may have undone what "
                "was just written. Leave the file there."
            )
    finally:
        # Not by closing alone: a child forked meanwhile has inherited the opening.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _acquired(path: str, deadline: float) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except PermissionError:  # somebody else's lock file can be locked
            descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(path, descriptor):  # else it was removed, and guards nothing
                return descriptor
        except BlockingIOError:
            pass
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise TimeoutError("by another process")
        time.sleep(_WAIT)


def _is_named(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
