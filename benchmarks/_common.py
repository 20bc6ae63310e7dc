"""What the benchmarks share: arguments, data sets with public bounds, tables in Markdown."""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from skdpsurv.datasets import load_flchain, load_survival_csv
from skdpsurv.preprocessing import PublicBoundsScaler

TABLES = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "tables"


@dataclass
class SurvivalData:
    """Covariates in [-1, 1] by bounds that were stated without looking at the records."""

    name: str
    X: np.ndarray
    y: np.ndarray
    max_time: float


def arguments(description: str, **extra: dict) -> argparse.Namespace:
    """Parse ``--data-dir``, ``--repetitions`` and whatever else a script asks for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--data-dir", type=Path, help="folder of the CSV files; without it, flchain only"
    )
    for name, options in extra.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    return parser.parse_args()


def flchain() -> SurvivalData:
    """Free light chain study, bundled with scikit-survival."""
    data = load_flchain()
    scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    X = np.asarray(scaler.fit_transform(data.X))
    return SurvivalData("flchain", X, data.y, data.max_time)


def _third_births(folder: Path) -> tuple[pd.DataFrame, np.ndarray, float, dict]:
    X, y = load_survival_csv(folder / "tb_third_births.csv.gz")
    sibs = pd.get_dummies(X.pop("sibs").astype(int), prefix="sibs", dtype=float)
    X = X.join(sibs.drop(columns="sibs_1"))
    bounds = {"age": (15, 45), "spacing": (0, 3652)} | dict.fromkeys(X.columns[2:], (0, 1))
    return X, y, 3652.0, bounds


def _unemployment(folder: Path) -> tuple[pd.DataFrame, np.ndarray, float, dict]:
    X, y = load_survival_csv(folder / "wt_unemployment_de.csv.gz")
    return X, y, 2192.0, {"age": (25, 50), "female": (0, 1), "wage": (0, 250)}


def _child(folder: Path) -> tuple[pd.DataFrame, np.ndarray, float, dict]:
    X, y = load_survival_csv(folder / "sb_standin_child_skelleftea.csv.gz")
    bounds = {"sex_male": (0, 1), "mother_age": (15, 50), "illeg": (0, 1)}
    bounds |= {"birth_year": (1850, 1885)}
    bounds |= {f"soc_{kind}": (0, 1) for kind in ("farming", "worker", "business")}
    return X[list(bounds)], y, 5479.0, bounds


FILES: dict[str, Callable[[Path], tuple[pd.DataFrame, np.ndarray, float, dict]]] = {
    "third births": _third_births,
    "unemployment": _unemployment,
    "child mortality": _child,
}


def survival_sets(data_dir: Path | None) -> Iterator[SurvivalData]:
    """Yield flchain and, with a folder, the other real data sets."""
    yield flchain()
    if data_dir is None:
        return
    for name, load in FILES.items():
        X, y, max_time, bounds = load(data_dir)
        scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
        yield SurvivalData(name, np.asarray(scaler.fit_transform(X)), y, max_time)


def split(n: int, repetition: int, share: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    """Return a random split that depends on n and the repetition only."""
    order = np.random.default_rng(repetition).permutation(n)
    cut = int(share * n)
    return order[:cut], order[cut:]


def table(name: str, header: Sequence[str], rows: Sequence[Sequence[object]], note: str) -> None:
    """Print a Markdown table, and write it where the documentation includes it."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    text = "\n".join([*lines, "", f"{note} {machine()}", ""])
    print(text)
    TABLES.mkdir(parents=True, exist_ok=True)
    (TABLES / f"{name}.md").write_text(text)


def machine() -> str:
    """Say what was run on, without naming the computer."""
    import sklearn
    import sksurv

    versions = f"NumPy {np.__version__}, scikit-learn {sklearn.__version__}"
    return (
        f"Python {platform.python_version()}, {versions}, scikit-survival {sksurv.__version__}, "
        f"{platform.machine()}."
    )


def in_new_process(script: str, *args: str) -> str:
    """Run a benchmark's ``--worker`` part in a process of its own, for its peak memory."""
    command = [sys.executable, script, "--worker", *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
