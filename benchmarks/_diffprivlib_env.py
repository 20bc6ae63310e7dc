"""diffprivlib in an environment of its own, since it needs an older scikit-learn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._run import ROOT, Missing

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
    home, stamp = folder.resolve(), folder.resolve() / f".diffprivlib-{VERSION}"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not stamp.exists():
        uv = ROOT / ".uv" / "bin" / "uv"
        if uv.exists():
            run = [uv, "pip", "install", "--quiet", "--python", python, *REQUIREMENTS]
            make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, home]
        else:
            run = [python, "-m", "pip", "install", "--quiet", *REQUIREMENTS]
            make = [sys.executable, "-m", "venv", "--clear", home]
        try:
            subprocess.run(make, check=True)
            subprocess.run(run, check=True)
        except subprocess.CalledProcessError as error:
            raise Missing(f"diffprivlib {VERSION} cannot be installed") from error
        stamp.touch()
    return Diffprivlib(python)
