"""Environments of their own, for packages that cannot be where the benchmarks run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks._run import ROOT, Missing


def environment(folder: Path, name: str, requirements: Sequence[str]) -> Path:
    """Make an environment, unless it is there; return its interpreter."""
    home, stamp = folder.resolve(), folder.resolve() / f".{name.replace(' ', '-')}"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not stamp.exists():
        uv = ROOT / ".uv" / "bin" / "uv"
        if uv.exists():
            run = [uv, "pip", "install", "--quiet", "--python", python, *requirements]
            make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, home]
        else:
            run = [python, "-m", "pip", "install", "--quiet", *requirements]
            make = [sys.executable, "-m", "venv", "--clear", home]
        try:
            subprocess.run(make, check=True)
            subprocess.run(run, check=True)
        except subprocess.CalledProcessError as error:
            raise Missing(f"{name} cannot be installed") from error
        stamp.touch()
    return python
