"""What a run does, in its order, and runs that end before a step of it, by an error or SIGKILL.

A step changes what the next run finds: a sync, a name that is given or taken away, or a charge.
"""

import os
import signal
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from skdpsurv.base import prepared
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
    """Call ``end`` before a step, counted from 0; after a charge is a step, too."""
    steps = count()

    def counted(real):
        def call(*args, **kwargs):
            if next(steps) == step:
                end()
            found = real(*args, **kwargs)
            if real is charge and next(steps) == step:
                end()
            return found

        return call

    charge = SQLLedger.charge
    with ExitStack() as stack:
        for owner, name in ((os, "fsync"), (os, "link"), (os, "unlink"), (SQLLedger, "charge")):
            stack.enter_context(replaced(owner, name, counted))
        yield


@contextmanager
def witnessed(note):
    """Call ``note`` for each draw, with the analysis and the number of its charge."""
    current, names = [], {}

    def named(real):
        def call(plan, name, frame, model=None):
            fit = real(plan, name, frame, model)
            names[fit] = name
            return fit

        return call

    def begun(real):
        def run(fit, receipt):
            current[:] = [names[fit], 0 if receipt is None else receipt.entries]
            return real(fit, receipt)

        return run

    def drawing(real):
        def source(*args, **kwargs):
            note(f"draw {current[0]} {current[1]}")
            return real(*args, **kwargs)

        return source

    with (
        replaced(fits, "prepared", named),
        replaced(fits, "run", begun),
        replaced(prepared, "random_source", drawing),
    ):
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
