"""A power cut: a folder has what was synced of it, and nothing else."""

import os
import shutil
import stat
from contextlib import contextmanager
from os import link  # which is no step of what is watched
from pathlib import Path

import pytest

from .witness import replaced


class Disk:
    """What is durable of a folder: contents of files, and names in folders, as last synced.

    Nothing is synced in truth while this watches.

    Parameters
    ----------
    folder : Path
        May not be there yet.
    store : Path
        A folder on the same file system, where files outlive their names.
    """

    def __init__(self, folder, store):
        if not os.path.isdir("/proc/self/fd"):
            pytest.skip("only Linux names the files of descriptors")
        self.folder, self.store = folder, store
        self.contents, self.names = {}, {}

    @contextmanager
    def watching(self):
        with replaced(os, "fsync", lambda real: self._synced):
            yield

    def _synced(self, descriptor):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        found = os.fstat(descriptor)
        if not stat.S_ISDIR(found.st_mode):
            with open(path, "rb") as file:
                self.contents[found.st_ino] = file.read()
            return
        self.names[found.st_ino] = {entry.name: entry.inode() for entry in os.scandir(path)}
        for name, number in self.names[found.st_ino].items():
            own, kept = Path(path, name), self.store / str(number)
            if self.folder in own.parents and own.is_file() and not kept.exists():
                link(own, kept)

    def cut(self):
        """Take away what was not synced."""
        if self.folder.exists():
            self._cut(self.folder.parent, only=self.folder.name)

    def _cut(self, folder, only=None):
        durable = self.names.get(folder.stat().st_ino, {})
        for name in {only} if only else {*durable, *os.listdir(folder)}:
            path, number = folder / name, durable.get(name)
            if path.exists() and path.stat().st_ino != number:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if number is not None and not path.exists():
                link(self.store / str(number), path)
            if path.is_dir():
                self._cut(path)
            elif path.exists():
                path.write_bytes(self.contents.get(number, b""))
