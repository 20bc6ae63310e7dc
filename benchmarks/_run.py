"""How every benchmark runs: its arguments, its quick setting, and what it skips and says so."""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
#: A quick run has fewer repetitions and sizes. It shows that scripts run, and measures nothing.
#: Known on import, for constants; joblib's processes do not have it.
QUICK = "--quick" in sys.argv
QUICK_NOTE = "QUICK RUN, with fewer repetitions and sizes: not the numbers of the documentation."
#: What a line that says what was skipped starts with.
SKIPPED = "skipped: "
#: Packages that only a part of a benchmark needs.
OPTIONAL = ("matplotlib", "statsmodels", "SurvSet")

T = TypeVar("T")
_complete = not QUICK


class Missing(Exception):  # noqa: N818  a reason to skip, not to fail
    """Data or a package that is not there."""


def setting(full: T, quick: T) -> T:
    """Return the first, or in a quick run the second."""
    return quick if QUICK else full


def number(full: Any, quick: Any = None) -> dict[str, Any]:
    """Return an option, for `arguments`, with its default and that of a quick run."""
    return {"type": type(full), "default": full if quick is None else setting(full, quick)}


def arguments(description: str, **extra: dict[str, Any]) -> argparse.Namespace:
    """Parse ``--data-dir``, ``--quick`` and whatever else a script asks for."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument(
        "--data-dir", type=Path, help="folder of the data files; what is not there is skipped"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and sizes")
    for name, options in extra.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    return parser.parse_args()


def data_file(folder: Path | None, name: str) -> Path:
    """Return where a data file is, if it is there."""
    if folder is None:
        raise Missing(f"needs --data-dir, with {name}")
    if not (folder / name).exists():
        raise Missing(f"{name} is not in --data-dir")
    return folder / name


@contextmanager
def part(name: str) -> Iterator[None]:
    """Skip the rest of this block, or of the function decorated, when what it needs is missing."""
    global _complete
    try:
        yield
        return
    except Missing as error:
        reason = str(error)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in OPTIONAL:
            raise
        reason = f"{package} is not installed"
    _complete = False
    print(f"{SKIPPED}{Path(sys.argv[0]).stem}: {name}: {reason}", flush=True)


def output(kind: str) -> Path:
    """Return where results go: to the documentation, unless a part of them is missing."""
    folder = ROOT / ("docs/benchmarks" if _complete else "benchmarks/output") / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(main: Callable[[], None], worker: Callable[..., None] | None = None) -> None:
    """Run a benchmark, or the part of it that was started in a process of its own."""
    warnings.simplefilter("ignore")
    if worker is not None and "--worker" in sys.argv:
        worker(*sys.argv[sys.argv.index("--worker") + 1 :])
        return
    if QUICK:
        print(QUICK_NOTE, flush=True)
    with part("all of it"):
        main()


def in_new_process(name: str, *args: str) -> str:
    """Run a benchmark's worker in a process of its own, for its peak memory."""
    quick = ["--quick"] if QUICK else []
    command = [sys.executable, "-m", f"benchmarks.{name}", *quick, "--worker", *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
