"""diffprivlib in an environment of its own, since it needs an older scikit-learn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

VERSION = "0.6.6"
REQUIREMENTS = (f"diffprivlib=={VERSION}", "scikit-learn>=1.6,<1.8")
ROOT = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).resolve().parent / "_diffprivlib_worker.py"
#: For ``_common.arguments``.
OPTION = {"type": Path, "help": "folder of an environment with diffprivlib, made if missing"}


@dataclass(frozen=True)
class Diffprivlib:
    """diffprivlib, in its environment.

    Parameters
    ----------
    python : Path
        Its interpreter.
    """

    python: Path

    def run(self, task: str, **arrays: Any) -> Any:
        """Run a task of the worker."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.npz", Path(folder) / "out.json"
            np.savez(source, **arrays)
            one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
            subprocess.run(
                [self.python, WORKER, task, source, target], check=True, env=os.environ | one_thread
            )
            return json.loads(target.read_text())


@contextmanager
def diffprivlib(folder: Path | None) -> Iterator[Diffprivlib]:
    """Make the environment, in a temporary folder unless one is given; reuse it if it is there."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary) / "env" if folder is None else folder.resolve()
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if not python.exists():
            uv = ROOT / ".uv" / "bin" / "uv"
            if uv.exists():
                run = [uv, "pip", "install", "--quiet", "--python", python, *REQUIREMENTS]
                make = [uv, "venv", "--quiet", "--python", sys.executable, home]
            else:
                run = [python, "-m", "pip", "install", "--quiet", *REQUIREMENTS]
                make = [sys.executable, "-m", "venv", home]
            subprocess.run(make, check=True)
            subprocess.run(run, check=True)
        yield Diffprivlib(python)
