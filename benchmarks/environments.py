"""Environments of their own, for rivals that cannot be where this package is.

A task is a script of its own with a function for each thing to do, which is given arrays and
options, and returns what JSON can hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, Missing, Setting

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


@dataclass(frozen=True)
class Environment:
    """An environment ``.venv-<name>`` with pinned requirements, and the script that runs there.

    Parameters
    ----------
    name : str
    requirements : sequence of str
    script : Path
        Run as ``python script TASK IN.npz OPTIONS.json OUT.json``, as
        ``benchmarks/rivals/worker.py`` serves it.
    """

    name: str
    requirements: Sequence[str]
    script: Path

    def python(self, setting: Setting) -> Path:
        """Return its interpreter; a quick run does not make an environment."""
        home = ROOT / f".venv-{self.name}"
        stamp = home / ".installed"
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        wanted = "\n".join(self.requirements)
        if stamp.exists() and stamp.read_text() == wanted:
            return python
        if setting.quick:
            raise Missing(f"a quick run does not install {self.name}")
        uv = ROOT / ".uv" / "bin" / "uv"
        try:
            subprocess.run(
                [uv, "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True
            )
            subprocess.run(
                [uv, "pip", "install", "--quiet", "--python", python, *self.requirements],
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise Missing(f"{self.name} cannot be installed") from error
        stamp.write_text(wanted)
        return python

    def run(self, setting: Setting, task: str, arrays: dict[str, Any], **options: Any) -> Any:
        """Run a task there on one thread, and return its result."""
        python = self.python(setting)
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.npz", Path(folder) / "out.json"
            wishes = Path(folder) / "options.json"
            np.savez(source, **arrays)
            wishes.write_text(json.dumps(options))
            command = [python, self.script, task, source, wishes, target]
            subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
            return json.loads(target.read_text())
