"""Runs of a study that are killed: charged once, nothing drawn twice under one charge.

A run is a process of its own, forked from this one, which has imported all that it needs. It ends
by SIGKILL: at random moments, at each durable step, and inside of a file. Whoever watches is this
process, which reads what the killed ones noted.
"""

import multiprocessing
import os
import random
import resource
import signal
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import count

import pytest

from skdpsurv import PrivacyAccountant
from skdpsurv.evaluation import released_values
from skdpsurv.release import layout
from skdpsurv.report import curves, figures
from tests.dp.conftest import server, url  # noqa: F401, fixtures

from .ends import LIGHT, PLACES, WHOLE, Ended
from .test_ends import folder  # noqa: F401, a fixture
from .witness import ending, kill, replaced

N_KILLS = 30

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # forking with threads
]


@pytest.fixture(params=["file", "server"])
def start(request, folder, monkeypatch):  # noqa: F811
    """Return what makes a study, beside a new ledger with room for many; all it needs is warm."""
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    for module in (curves, released_values):
        monkeypatch.setattr(module, "N_RESAMPLES", 5)
    ledger = str(folder / "ledger.sqlite")
    if request.param == "server":
        ledger = request.getfixturevalue("url")
    PrivacyAccountant(1e6, **{"url" if "://" in ledger else "path": ledger})
    Ended(folder, ledger, "warm").run()
    return lambda number, *changes: Ended(folder, ledger, f"study {number}", *changes)


def run(study, end=nullcontext, stays=False):
    """Begin a process that runs a study in a context, and stays at its end if it should."""

    def target():
        with end():
            study.run()
        if stays:
            signal.pause()

    process = multiprocessing.get_context("fork").Process(target=target)
    process.start()
    return process


def require_whole(study, **end):
    """Let a study go on, and require that it kept all promises; return the seconds it took."""
    began = time.monotonic()
    process = run(study)
    process.join(60.0)
    seconds = time.monotonic() - began
    assert process.exitcode == 0, end
    assert study.faults() == [], end
    return seconds


def test_kills_at_random_moments(start):
    """Two of each study: a run, and the one that goes on."""
    length, draws, places = require_whole(start("whole")), random.Random(), Counter()
    for number in range(N_KILLS // 2):
        study, left = start(number), length
        for _ in range(2):
            moment = draws.uniform(0.0, left)
            left -= moment
            process = run(study, stays=True)
            process.join(moment)
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            places[study.look()] += 1
        require_whole(study, places=places)
    print(f"{length:.2f} s for a run; kills: {dict(places)}")


@pytest.mark.parametrize(
    ("start", "changes"), [("file", WHOLE), ("server", LIGHT)], indirect=["start"]
)
def test_kills_at_each_step(start, changes):
    places, step = Counter(), 0
    while not places[PLACES[-1]]:
        study = start(step, changes)
        process = run(study, partial(ending, step, kill))
        process.join(60.0)
        assert process.exitcode in (0, -signal.SIGKILL)
        places[study.look()] += 1
        require_whole(study, step=step)
        step += 1
    print(f"kills: {dict(places)}")
    assert list(places) == PLACES


@contextmanager
def half_a_file(name):
    """Kill this process as half of a file is written, by a limit of the system."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)

    def limited(real):
        def save(text, path, **options):
            if path.name == name:
                size = len(text.encode()) // 2
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            real(text, path, **options)

        return save

    with replaced(layout, "save", limited):
        yield


@contextmanager
def half_a_line(number):
    """Kill this process as half of a line of the journal is written."""
    lines = count()

    def torn(real):
        def write(descriptor, data):
            if data.startswith(b"{") and next(lines) == number:
                real(descriptor, data[: len(data) // 2])
                kill()
            return real(descriptor, data)

        return write

    with replaced(os, "write", torn):
        yield


@pytest.mark.parametrize("start", ["file"], indirect=True)
def test_kills_inside_of_a_file(start):
    whole = start("whole")
    require_whole(whole)
    names = sorted(path.name for path in whole.out.rglob("*.*[!k]") if path.is_file())
    assert len(names) == 7
    ends = [partial(half_a_file, name) for name in names]
    ends += [partial(half_a_line, number) for number in range(9)]
    for number, end in enumerate(ends):
        study = start(number)
        process = run(study, end)
        process.join(60.0)
        assert process.exitcode in (-signal.SIGKILL, -signal.SIGXFSZ), end
        study.look()
        require_whole(study, end=end)
