"""diffprivlib in an environment of its own, since it needs an older scikit-learn."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._environment import environment
from benchmarks._run import ROOT

VERSION = "0.6.6"
REQUIREMENTS = (f"diffprivlib=={VERSION}", "scikit-learn>=1.6,<1.8")
WORKER = Path(__file__).resolve().parent / "_diffprivlib_worker.py"
#: For ``_run.arguments``.
OPTION = {
    "type": Path,
    "default": ROOT / ".venv-diffprivlib",
    "help": "folder of an environment with diffprivlib, made if missing",
}


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


def diffprivlib(folder: Path) -> Diffprivlib:
    """Make the environment, unless it is there."""
    return Diffprivlib(environment(folder, f"diffprivlib {VERSION}", REQUIREMENTS))
