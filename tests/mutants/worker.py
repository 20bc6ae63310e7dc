"""Run tests against mutants in forked children, so that each starts with NumPy and the rest loaded.

Reads jobs as lines of JSON from standard input and answers each with a line. The current directory
is a copy of the project that nobody else uses.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = os.getcwd()
    sys.dont_write_bytecode = True

import hypothesis  # noqa: F401
import opendp.prelude  # noqa: F401
import pandas  # noqa: F401
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401
import sklearn.linear_model
import sklearn.model_selection
import sklearn.utils.estimator_checks  # noqa: F401

_ARGUMENTS = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not slow"]


def _tests_fail(tests: list[str], timeout: float) -> tuple[str, float]:
    """Run tests in a child; "survived" if all pass, else "killed", or "timeout"."""
    began, child = time.monotonic(), os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        try:
            code = int(pytest.main([*_ARGUMENTS, *tests]))
        except BaseException:
            code = 1
        os._exit(code)
    while time.monotonic() - began < timeout:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            passed = os.waitstatus_to_exitcode(status) == 0
            return ("survived" if passed else "killed"), time.monotonic() - began
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout", time.monotonic() - began


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        module = Path(job["module"])
        original = module.read_text()
        Path(importlib.util.cache_from_source(str(module))).unlink(missing_ok=True)
        try:
            module.write_text(job["source"])
            outcome, seconds = _tests_fail(job["tests"], job["timeout"])
        finally:
            module.write_text(original)
        print(json.dumps({"outcome": outcome, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
