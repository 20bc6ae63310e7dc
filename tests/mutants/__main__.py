"""``make mutants``: how many small defects of the modules that privacy rests on do tests find?

Defects are those of cosmic-ray: a sign, a comparison, a number, a branch. A sample of places is
drawn with a seed; each mutant runs against the tests that modules.toml names for its module, in
two processes. A survivor that cannot be told from the code by any test has its reason in
survivors.toml, and does not count; every other survivor is printed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from pathlib import Path

from tests.mutants.sample import Mutant, drawn

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
#: A mutant whose tests take so many times as long as without it, and at least a minute, loops.
LOOPS = 5.0


class Copy:
    """A copy of the project, and a process that runs tests in it."""

    def __init__(self, folder: str, commit: str) -> None:
        self.root = Path(folder)
        archive = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "x"], cwd=self.root, input=archive.stdout, check=True)
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "worker.py")],
            cwd=self.root,
            env={**os.environ, **single, "MPLBACKEND": "Agg", "PYTHONPATH": str(self.root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, module: str, source: str, tests: list[str], timeout: float) -> tuple[str, float]:
        job = {"module": module, "source": source, "tests": tests, "timeout": timeout}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["outcome"], answer["seconds"]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def _in_turn(jobs: list, copies: list[Copy], run) -> list:
    """Do all jobs, each with the next copy that is free; results in the jobs' order."""
    results, places, lock = [None] * len(jobs), iter(range(len(jobs))), threading.Lock()

    def work(copy: Copy) -> None:
        while True:
            with lock:
                place = next(places, None)
            if place is None:
                return
            results[place] = run(copy, jobs[place])

    threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _measured(modules: dict[str, list[str]], copies: list[Copy], options) -> list[tuple]:
    def unmutated(copy: Copy, module: str) -> tuple[str, float]:
        source = (copy.root / module).read_text()
        outcome, seconds = copy.run(module, source, modules[module], 600.0)
        print(f"{module}: its tests take {seconds:.0f} s", file=sys.stderr)
        return outcome, seconds

    without = dict(zip(modules, _in_turn(list(modules), copies, unmutated), strict=True))
    failing = [module for module, (outcome, _) in without.items() if outcome != "survived"]
    if failing:
        raise SystemExit(f"their tests fail without a mutant: {failing}")
    mutants = drawn(modules, copies[0].root, options.seed, options.mutants)

    def tried(copy: Copy, mutant: Mutant) -> tuple[Mutant, str, float]:
        source = mutant.applied_to((copy.root / mutant.module).read_text())
        timeout = max(60.0, LOOPS * without[mutant.module][1])
        outcome, seconds = copy.run(mutant.module, source, modules[mutant.module], timeout)
        print(f"{outcome:8} {seconds:5.1f} s  {mutant.module}:{mutant.line}", file=sys.stderr)
        return mutant, outcome, seconds

    return _in_turn(mutants, copies, tried)


def _report(results: list[tuple], equivalent: dict[str, str]) -> None:
    survivors = [m for m, outcome, _ in results if outcome == "survived"]
    unexplained = [m for m in survivors if m.key not in equivalent]
    counted, alive = (
        Counter(m.module for m, _, _ in results),
        Counter(m.module for m in unexplained),
    )
    for module in sorted(counted):
        print(f"{module:48} {counted[module] - alive[module]:4} of {counted[module]:4}")
    n_counted = len(results) - (len(survivors) - len(unexplained))
    killed = n_counted - len(unexplained)
    print(
        f"{killed} of {n_counted} mutants killed ({killed / n_counted:.1%}); "
        f"{len(survivors) - len(unexplained)} more are equivalent to the code"
    )
    for m in unexplained:
        print(f"survives: {m.key} {m.module}:{m.line} {m.definition} {m.operator[5:]}: {m.text}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=300, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", default="HEAD", help="of which commit code and tests are")
    parser.add_argument("--only", default="", help="a part of the modules' names")
    parser.add_argument("--csv", type=Path, help="where results are written")
    options = parser.parse_args()
    table = tomllib.loads((HERE / "modules.toml").read_text())
    equivalent = tomllib.loads((HERE / "survivors.toml").read_text())["equivalent"]
    modules = {name: tests.split() for name, tests in table.items() if options.only in name}
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        copies = [Copy(folder, options.commit) for folder in (one, two)]
        results = _measured(modules, copies, options)
        for copy in copies:
            copy.close()
    if options.csv:
        with options.csv.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("key", "module", "line", "definition", "operator", "text", "outcome"))
            rows.writerows(
                (m.key, m.module, m.line, m.definition, m.operator, m.text, outcome)
                for m, outcome, _ in results
            )
    _report(results, equivalent)


if __name__ == "__main__":
    main()
