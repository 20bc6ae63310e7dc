"""Run benchmarks one after the other; say at the end what was skipped, and what failed.

python -m benchmarks [NAME ...] [--quick] [--data-dir FOLDER] [other options of the scripts]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks._run import SKIPPED


def main() -> None:
    """Run those that are named, or all; exit with 1 if one failed."""
    given = sys.argv[1:]
    n_names = next((i for i, word in enumerate(given) if word.startswith("-")), len(given))
    every = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    skipped, failed = [], []
    for name in given[:n_names] or every:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-u", "-m", f"benchmarks.{name}", *given[n_names:]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                if line.startswith(SKIPPED):
                    skipped.append(line.strip())
        if process.returncode != 0:
            failed.append(name)
    print("== end", *skipped, sep="\n", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
