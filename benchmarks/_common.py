"""What the benchmarks share: data sets with public bounds, tables in Markdown, figures."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks._run import QUICK, QUICK_NOTE, data_file, output, part
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.datasets import load_flchain, load_survival_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class SurvivalData:
    """Covariates in [-1, 1] by bounds that were stated without looking at the records."""

    name: str
    X: np.ndarray
    y: np.ndarray
    max_time: float


def flchain() -> SurvivalData:
    """Free light chain study, bundled with scikit-survival."""
    data = load_flchain()
    scaler = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint")
    X = np.asarray(scaler.fit_transform(data.X))
    return SurvivalData("flchain", X, data.y, data.max_time)


def _third_births(folder: Path | None) -> tuple[pd.DataFrame, np.ndarray, float, dict]:
    X, y = load_survival_csv(data_file(folder, "tb_third_births.csv.gz"))
    sibs = pd.get_dummies(X.pop("sibs").astype(int), prefix="sibs", dtype=float)
    X = X.join(sibs.drop(columns="sibs_1"))
    bounds = {"age": (15, 45), "spacing": (0, 3652)} | dict.fromkeys(X.columns[2:], (0, 1))
    return X, y, 3652.0, bounds


def _unemployment(folder: Path | None) -> tuple[pd.DataFrame, np.ndarray, float, dict]:
    X, y = load_survival_csv(data_file(folder, "wt_unemployment_de.csv.gz"))
    return X, y, 2192.0, {"age": (25, 50), "female": (0, 1), "wage": (0, 250)}


def _child(folder: Path | None) -> tuple[pd.DataFrame, np.ndarray, float, dict]:
    X, y = load_survival_csv(data_file(folder, "sb_standin_child_skelleftea.csv.gz"))
    bounds = {"sex_male": (0, 1), "mother_age": (15, 50), "illeg": (0, 1)}
    bounds |= {"birth_year": (1850, 1885)}
    bounds |= {f"soc_{kind}": (0, 1) for kind in ("farming", "worker", "business")}
    return X[list(bounds)], y, 5479.0, bounds


FILES: dict[str, Callable[[Path | None], tuple[pd.DataFrame, np.ndarray, float, dict]]] = {
    "third births": _third_births,
    "unemployment": _unemployment,
    "child mortality": _child,
}


def survival_sets(folder: Path | None, names: Sequence[str] = tuple(FILES)) -> list[SurvivalData]:
    """Return flchain and those of the other real data sets that are there."""
    found = [flchain()]
    for name in names:
        with part(name):
            X, y, max_time, bounds = FILES[name](folder)
            scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
            found.append(SurvivalData(name, np.asarray(scaler.fit_transform(X)), y, max_time))
    return found


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
    if QUICK:
        text = f"{QUICK_NOTE}\n\n{text}"
    print(text)
    (output("tables") / f"{name}.md").write_text(text)


def sheet(width: float, height: float) -> Figure:
    """Return an empty figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, name: str) -> None:
    """Write a figure where the documentation shows it."""
    figure.savefig(output("figures") / f"{name}.png", dpi=100)


def machine() -> str:
    """Say what was run on, without naming the computer."""
    import sklearn
    import sksurv

    versions = f"NumPy {np.__version__}, scikit-learn {sklearn.__version__}"
    return (
        f"Python {platform.python_version()}, {versions}, scikit-survival {sksurv.__version__}, "
        f"{platform.machine()}."
    )
