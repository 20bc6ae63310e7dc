"""dask-ml in an environment of its own: it brings numba, and is not kept up with scikit-learn."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks._environment import environment
from benchmarks._run import ROOT

VERSION = "2025.1.0"
WORKER = Path(__file__).resolve().parent / "_dask_ml_worker.py"
#: For ``_run.arguments``.
OPTION = {
    "type": Path,
    "default": ROOT / ".venv-dask-ml",
    "help": "folder of an environment with dask-ml, made if missing",
}


def dask_ml(folder: Path, solvers: Sequence[str], **task: Any) -> dict[str, Any]:
    """Return seconds and accuracy of each solver: a fresh process, with the Dask of this one."""
    same = [f"{name}=={version(name)}" for name in ("dask", "distributed", "pyarrow", "numpy")]
    python = environment(folder, f"dask-ml {VERSION}", [f"dask-ml=={VERSION}", *same])
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "task.json"
        source.write_text(json.dumps(task | {"solvers": list(solvers)}))
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        # Else its folder comes first, with a module of the name of Dask's.
        command: list[Any] = [python, "-P", WORKER, source]
        printed = subprocess.run(command, check=True, env=own, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(printed.stdout.splitlines()[-1])
    return found
