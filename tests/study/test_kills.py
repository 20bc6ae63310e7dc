"""Runs of a study that are killed: charged once, nothing drawn twice under one charge.

A run is a process of its own, which ends by SIGKILL: at random moments, and at every durable step.
Whoever watches is another process, which reads what the killed ones noted.
"""

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter

import pytest

from skdpsurv import PrivacyAccountant, Release
from skdpsurv.study.charges import ledger_of
from skdpsurv.study.check import check
from skdpsurv.study.folder import Folder
from skdpsurv.study.journal import Journal
from skdpsurv.study.run import run
from tests.dp.conftest import server, url  # noqa: F401, fixtures

from .studies import ANALYSES, protocol, records
from .witness import ending, kill, witnessed

N_KILLS = 30
FRAME = records(60)
LAST = ANALYSES[1:]
NAMES = [analysis.name for analysis in LAST]
#: Enough for the Weibull distribution again, and for nothing else.
RESERVE = 2.5

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # forking with threads
]


@pytest.fixture(params=["file", "server"])
def ledger(request, tmp_path):
    """Return the address of a new ledger with room for many studies."""
    address = str(tmp_path / "ledger.sqlite")
    if request.param == "server":
        address = request.getfixturevalue("url")
    PrivacyAccountant(1e6, **{"url" if "://" in address else "path": address})
    return address


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory):
    """Import all that a run imports, once for all processes."""
    run(a_study(None, 0.0, 0), FRAME, tmp_path_factory.mktemp("warm") / "study", None)


def a_study(ledger, reserve, number):
    named = {"title": f"Study {number}", "analyses": LAST}
    return protocol(ledger, reserve=reserve, epsilon=6.0 + reserve, **named)


def one_run(stated, folder, step):
    """Run a study, in a process of its own, up to a step at most; note draws and what is shown."""
    noted = os.open(folder.with_suffix(".noted"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(text):
        os.write(noted, f"{text}\n".encode())  # a page that was written outlives its process

    def show(name, found):
        place = Folder(folder)
        marked = Journal(place.journal).last_of(name)
        durable = (marked["what"], marked["sha256"]) == ("released", place.sha256_of(name))
        released = isinstance(found, Release)
        values = json.loads(found.to_json())["values"] if released else found.to_dict()["released"]
        note(f"show {name} {durable} {json.dumps(values, sort_keys=True)}")

    with witnessed(note), ending(step, kill):
        run(stated, FRAME, folder, ledger_of(stated), show)


def begin(stated, folder, step=-1):
    process = multiprocessing.get_context("fork").Process(
        target=one_run, args=(stated, folder, step)
    )
    process.start()
    return process


def finish(stated, folder):
    process = begin(stated, folder)
    process.join(60.0)
    assert process.exitcode == 0


def noted(folder):
    lines = folder.with_suffix(".noted").read_text().splitlines()
    return [line.split(" ", 3) for line in lines]


def require_kept(stated, folder, n_before):
    """Require all that is promised of a study that has come to its end, whatever was killed."""
    journal, accountant = Journal(Folder(folder).journal), ledger_of(stated)
    entries = accountant.entries()[n_before:]
    receipts = [line["receipt"]["entries"] for line in journal.of("charged")]
    # Charged once, and once more for each analysis that was lost and that the reserve pays for.
    assert list(range(n_before + 1, n_before + 1 + len(entries))) == receipts
    assert entries["epsilon"].sum() <= stated.epsilon
    assert (entries["epsilon"] == stated.first_epsilon).tolist()[:1] == [True]
    # Nothing was drawn twice under one charge: an evaluation and a model draw from one source each.
    draws = Counter((name, charge) for what, name, charge, *_ in noted(folder) if what == "draw")
    assert set(draws.values()) <= {1}
    # Nothing was shown before it was marked, and nothing was shown that had been shown otherwise.
    shown = {(name, *rest) for what, name, *rest in noted(folder) if what == "show"}
    assert all(durable == "True" for _, durable, _ in shown)
    assert len({name for name, *_ in shown}) == len(shown)
    last = {name: journal.last_of(name) for name in NAMES}
    released = {name for name, line in last.items() if line and line["what"] == "released"}
    assert {name for name, *_ in shown} == released
    lost = {name for name, line in last.items() if line and line["what"] == "lost"}
    assert released | lost | ({"evaluation"} if "regression" in lost else set()) == set(NAMES)
    assert check(folder, accountant) == []
    assert not list(folder.rglob(".*"))
    return lost


def test_kills_at_random_moments(ledger, tmp_path):
    started = time.monotonic()
    finish(a_study(ledger, RESERVE, "whole"), tmp_path / "whole")
    whole = time.monotonic() - started
    draws, kills, n_lost, number = random.Random(), 0, 0, 0
    while kills < N_KILLS:
        number += 1
        stated = a_study(ledger, RESERVE, number)
        before = len(ledger_of(stated).entries())
        folder = tmp_path / f"study_{number}"
        process = begin(stated, folder)
        process.join(draws.uniform(0.0, whole))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += process.exitcode == -signal.SIGKILL
        finish(stated, folder)
        n_lost += len(require_kept(stated, folder, before))
    assert n_lost < 2 * kills


def test_kills_at_every_durable_step(ledger, tmp_path):
    lost, step, ended = set(), 0, False
    while not ended:
        stated = a_study(ledger, RESERVE, step)
        before = len(ledger_of(stated).entries())
        folder = tmp_path / f"study_{step}"
        process = begin(stated, folder, step)
        process.join(60.0)
        ended = process.exitcode == 0
        assert ended or process.exitcode == -signal.SIGKILL
        if not ended:
            finish(stated, folder)
        lost |= require_kept(stated, folder, before)
        step += 1
    assert step > 30
    assert lost == {"regression", "evaluation"}
