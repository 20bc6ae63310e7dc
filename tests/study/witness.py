"""What a run does, in its order, and runs that end at a step of it: by an error, or by SIGKILL.

A step is durable: a sync of a file or folder, or a charge. A run may end before each or after it.
"""

import os
import signal
from contextlib import contextmanager
from pathlib import Path

from skdpsurv import base
from skdpsurv.dp.sql_ledger import SQLLedger
from skdpsurv.study import fits
from skdpsurv.study import run as running
from skdpsurv.study.journal import Journal


class KilledError(BaseException):
    """Ends a run as no handler expects it."""


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def stop():
    raise KilledError


@contextmanager
def replaced(owner, name, make):
    real = getattr(owner, name)
    setattr(owner, name, make(real))
    try:
        yield
    finally:
        setattr(owner, name, real)


@contextmanager
def ending(step, end):
    """Call ``end`` before or after one of the steps: 0 is before the first, 1 after it."""
    done = [0]

    def counted(real):
        def call(*args, **kwargs):
            for number in range(2):
                if done[0] == step:
                    end()
                done[0] += 1
                if not number:
                    found = real(*args, **kwargs)
            return found

        return call

    with replaced(os, "fsync", counted), replaced(SQLLedger, "charge", counted):
        yield done


@contextmanager
def witnessed(note):
    """Call ``note`` for each draw, with the analysis and the number of its charge."""
    current = []

    def named(real):
        def run(plan, name, frame, begin, model=None):
            def began():
                receipt = begin()
                current[:] = [name, 0 if receipt is None else receipt.entries]
                return receipt

            return real(plan, name, frame, began, model)

        return run

    def drawing(real):
        def source(*args, **kwargs):
            note(f"draw {current[0]} {current[1]}")
            return real(*args, **kwargs)

        return source

    with replaced(fits, "run", named), replaced(base, "random_source", drawing):
        yield


@contextmanager
def everything(note):
    """Call ``note`` for each draw, line of the journal, file and charge."""

    def line(real):
        def add(journal, what, **fields):
            real(journal, what, **fields)
            note(" ".join([what, *filter(None, [fields.get("analysis")])]))

        return add

    def charge(real):
        def charging(*args, **kwargs):
            found = real(*args, **kwargs)
            note("charge")
            return found

        return charging

    def save(real):
        def saving(text, path, **options):
            real(text, path, **options)
            note(f"file {Path(path).name}")

        return saving

    layout = running.Folder.save.__globals__["layout"]
    with (
        witnessed(note),
        replaced(Journal, "add", line),
        replaced(SQLLedger, "charge", charge),
        replaced(layout, "save", save),
    ):
        yield
