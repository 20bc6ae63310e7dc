"""A lock among processes and threads, held on a file of its own.

SQLite locks its file by POSIX record locks, which a process loses as soon as any of its threads
closes any descriptor of that file: somebody who only reads the ledger, or copies it, opens it to
all. ``flock`` belongs to one opening of a file instead. Only closing that opening ends it, so it
holds whatever else the process opens and closes; and as each holder opens the file for itself, it
excludes the threads of one process as well. There is no lock in memory besides, which a fork could
copy while it is held.

The locked file is not the ledger but one beside it: over NFS a ``flock`` is a record lock of the
whole file and would meet SQLite's own.
"""

from __future__ import annotations

import os
import sys
import time

# A turn takes milliseconds: look again soon.
_FIRST_WAIT, _LONGEST_WAIT = 0.0005, 0.01

if sys.platform == "win32":
    import errno
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        # Locks of Windows belong to a handle, and exclude other handles of the same process.
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def acquire(path: str, seconds: float) -> int:
    """Take the lock at ``path``, which nobody holds then, this thread included.

    Parameters
    ----------
    path : str
        File to lock; made if missing, and left there, since removing a lock that somebody waits
        for would make two of it.
    seconds : float
        How long to wait for others.

    Returns
    -------
    int
        What :func:`release` takes.

    Raises
    ------
    TimeoutError
        If somebody else holds it for longer.
    OSError
        If the file cannot be made, or its file system has no locks.
    """
    deadline = time.monotonic() + seconds
    while True:
        descriptor = _open(path)
        try:
            _wait(path, descriptor, deadline)
            if is_named(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the file was removed meanwhile: this lock guards nothing


def release(descriptor: int) -> None:
    """Give back a lock."""
    # Not by closing alone: a child forked meanwhile has inherited the opening.
    try:
        _unlock(descriptor)
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        # Somebody else's lock file, or on a medium that cannot be written: it can be locked.
        if not os.path.exists(path):
            raise
        return os.open(path, os.O_RDONLY)


def _wait(path: str, descriptor: int, deadline: float) -> None:
    pause = _FIRST_WAIT
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path!r} is locked by another process")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_WAIT)


def is_named(path: str, descriptor: int) -> bool:
    """Say whether a lock is still the file of that name: if not, somebody may hold another."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
