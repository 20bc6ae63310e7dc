"""Tests of one ledger under many processes, kills, restarts and lost connections."""

import contextlib
import multiprocessing
import os
import random
import signal
import time

import pytest

from skdpsurv.dp import BudgetExceededError, PrivacyAccountant

from .conftest import run
from .costs import cost

PROCESSES, ROOM = 8, 600
CUT_OFF = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"""


def spend(place, acknowledged):
    """Charge until nothing is left; write each hash that came back to a file of this process."""
    accountant = None
    with open(acknowledged, "a", encoding="ascii") as file:
        while True:
            try:
                accountant = accountant or PrivacyAccountant(**place)
                receipt = accountant.charge(cost(0.1))
            except BudgetExceededError:
                return
            except RuntimeError:  # away, or cut off
                time.sleep(0.05)
                continue
            file.write(f"{receipt.hash}\n")
            file.flush()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads
def test_never_overspent_and_nothing_acknowledged_is_lost(place, request, tmp_path):
    server = request.getfixturevalue("server") if "url" in place else None
    accountant = PrivacyAccountant(0.1 * ROOM, **place)
    context = multiprocessing.get_context("fork")
    draws = random.Random(0)

    def begin(number):
        process = context.Process(target=spend, args=(place, tmp_path / f"{number}.txt"))
        process.start()
        return process

    alive, started = [begin(number) for number in range(PROCESSES)], PROCESSES
    deadline, turn = time.monotonic() + 120.0, 0
    while any(process.is_alive() for process in alive) and time.monotonic() < deadline:
        time.sleep(0.05)
        turn += 1
        if turn % 2 == 0 and started < 3 * PROCESSES:
            # Somewhere in a charge, or between two.
            victim = draws.randrange(len(alive))
            if alive[victim].is_alive():
                os.kill(alive[victim].pid, signal.SIGKILL)
                alive[victim].join()
                alive[victim] = begin(started)
                started += 1
        if server and turn % 3 == 0:
            try:
                run(place["url"], CUT_OFF)
            except Exception:  # it is being restarted
                continue
        if server and turn in (10, 30):
            restart(server)
    assert not any(process.is_alive() for process in alive)
    assert (len(accountant.entries()), accountant.remaining()) == (ROOM, 0.0)
    kept = {receipt.hash for receipt in accountant._ledger.receipts()}
    # Without a line that was cut off.
    texts = [file.read_text().rpartition("\n")[0] for file in tmp_path.glob("*.txt")]
    written = [line for text in texts for line in text.splitlines()]
    assert len(written) == len(set(written))
    assert set(written) <= kept
    # What was not acknowledged: at most the one charge that each killed process was at.
    assert ROOM - len(written) <= started - PROCESSES


def restart(server):
    """Stop a server as a crash would, and start it again."""
    os.kill(server.get_pid(), signal.SIGQUIT)
    with contextlib.suppress(ProcessLookupError):
        for _ in range(100):
            time.sleep(0.05)
            if server.get_pid() is None:
                break
            os.kill(server.get_pid(), 0)  # whether it still runs
    server.ensure_postgres_running()
