"""Labelled records: two classes, columns within public bounds.

``labelled(setting, name)`` is one of `LABELLED`. Columns are scaled to [-1, 1] by their bounds;
missing values become their middle. Images and texts are principal components, rows of norm 1: these
are computed on all rows, as in the paper they are taken from, and are not private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import minmax_scale, normalize

from benchmarks.data.survival import FLAG, Bounds
from benchmarks.harness import Setting
from skdpsurv.data import PublicBoundsScaler

N_COMPONENTS = 100


@dataclass(frozen=True)
class Labelled:
    """Columns in [-1, 1], labels 0 and 1, and how many rows a repetition takes.

    ``data_norm`` is the largest norm of a row, stated; ``importances`` are variances of principal
    components where columns are such, else 1.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    data_norm: float
    n_train: int
    n_test: int
    flags: tuple[bool, ...]
    importances: np.ndarray

    def split(self, repetition: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a random split that depends on the sizes and the repetition only."""
        order = np.random.default_rng(repetition).permutation(self.y.size)
        return order[: self.n_train], order[self.n_train : self.n_train + self.n_test]


_HEART: Bounds = {"age": (20, 90), "sex": FLAG, "cp": (1, 4), "trestbps": (80, 200)}
_HEART |= {"chol": (100, 400), "fbs": FLAG, "restecg": (0, 2), "thalach": (60, 200), "exang": FLAG}
_HEART |= {"oldpeak": (0, 5), "slope": (1, 3), "ca": (0, 3), "thal": (3, 7)}
_DIABETES: Bounds = {"female": FLAG, "age": (20, 80), "bmi": (15, 50), "weight": (40, 150)}
_DIABETES |= {"height": (140, 200), "pulse": (40, 120), "bp_sys": (80, 200), "bp_dia": (40, 120)}
_DIABETES |= {"chol_direct": (0.5, 3), "chol_total": (2, 9), "poverty": (0, 5)}
_DIABETES |= dict.fromkeys(("smoke100", "phys_active"), FLAG)
_DIABETES |= dict.fromkeys(
    [f"race_{who}" for who in ("black", "hispanic", "mexican", "other")], FLAG
)
_GUSTO: Bounds = {"age": (20, 100), "height": (140, 200), "weight": (40, 140), "pulse": (40, 140)}
_GUSTO |= {"sysbp": (60, 220), "ste": (0, 12), "killip": (1, 4)}
_READMISSION: Bounds = {"age_mid": (0, 100), "duration": (1, 14), "n_previous_visits": (0, 10)}
_READMISSION |= {"n_diagnoses": (1, 16), "n_procedures": (0, 6), "n_medications": (1, 60)}

#: Bounds of what is no flag, stated without a look at the records.
TABLE_BOUNDS = {
    "heart disease": _HEART,
    "diabetes": _DIABETES,
    "GUSTO-I": _GUSTO,
    "readmission": _READMISSION,
}


def _table(file: str, bounds: Bounds, leave: tuple[str, ...] | None = None) -> Callable[..., tuple]:
    """Return a loader; with ``leave``, what is no column, all the rest are flags."""

    def load(setting: Setting) -> tuple:
        frame = pd.read_csv(setting.file(file))
        known = dict(bounds)
        if leave is not None:
            rest = frame.columns.difference(["y", *leave, *bounds], sort=False)
            known |= dict.fromkeys(rest, FLAG)
        scaler = PublicBoundsScaler.from_bounds(known, missing="midpoint")
        X = np.asarray(scaler.fit_transform(frame[list(known)].astype(float)))
        flags = tuple(bound == FLAG for bound in known.values())
        return X, frame["y"].to_numpy(dtype=int), float(np.sqrt(X.shape[1])), flags

    return load


def _digits(negative: int, positive: int) -> Callable[..., tuple]:
    def load(setting: Setting) -> tuple:
        X, y = load_digits(return_X_y=True)
        kept = (y == negative) | (y == positive)
        return normalize(X[kept]), 1 * (y[kept] == positive), 1.0, (False,) * 64

    return load


def _breast_cancer(setting: Setting) -> tuple:
    """Columns by the data's own extremes, which is not private."""
    X, y = load_breast_cancer(return_X_y=True)
    return normalize(minmax_scale(X, (-1, 1))), 1 * y, 1.0, (False,) * 30


def _images(low: int, high: int) -> Callable[..., tuple]:
    def load(setting: Setting) -> tuple:
        with np.load(setting.file(f"mnist_{low}v{high}.npz")) as file:
            images, labels = file["X"], file["y"]
        pixels = images / 255.0
        pixels = pixels - pixels.mean(axis=0)
        _, axes = np.linalg.eigh(pixels.T @ pixels)
        components = pixels @ axes[:, : -N_COMPONENTS - 1 : -1]
        return *_components(components), (labels == high).astype(int), 3000, 2000

    return load


def _news(setting: Setting) -> tuple:
    with np.load(setting.file("news20_sci_v_talk_svd100.npz")) as file:
        columns, labels = file["X"].astype(float), (file["y"] > 0).astype(int)
        n_train = int((file["is_test"] == 0).sum())
    return *_components(columns), labels, n_train, labels.size - n_train


def _components(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return normalize(columns), columns.var(axis=0)


#: Principal components: rows, importances, labels and sizes.
COMPONENTS: dict[str, Callable[[Setting], tuple]] = {
    "MNIST 0 or 8": _images(0, 8),
    "MNIST 4 or 9": _images(4, 9),
    "NEWS20": _news,
}
#: Tables: rows, labels, norm, flags.
TABLES: dict[str, Callable[[Setting], tuple]] = {
    "digits 0 or 8": _digits(0, 8),
    "digits 3 or 8": _digits(3, 8),
    "digits 1 or 7": _digits(1, 7),
    "breast cancer": _breast_cancer,
    "heart disease": _table("heart_disease_4sites.csv.gz", _HEART),
    "infarction": _table(
        "mi_edinburgh_webglore.csv.gz", {f"F{number}": FLAG for number in range(1, 10)}
    ),
    "diabetes": _table("nhanes_diabetes.csv.gz", _DIABETES),
    "GUSTO-I": _table(
        "gusto1_16regions.csv.gz",
        _GUSTO,
        # The last is "miloc_anterior" once more.
        ("region", "group", "small_group", "ant"),
    ),
    "readmission": _table(
        "diabetes130_readmission.csv.gz", _READMISSION, ("site_admission_source", "site_insurer")
    ),
}
LABELLED = (*COMPONENTS, *TABLES)


@cache
def labelled(setting: Setting, name: str) -> Labelled:
    """Return a data set; of tables 70 % are for training."""
    if name in COMPONENTS:
        X, importances, y, n_train, n_test = COMPONENTS[name](setting)
        flags = (False,) * X.shape[1]
        if setting.quick:
            n_train, n_test = min(n_train, y.size // 2), min(n_test, y.size // 2)
        return Labelled(name, X, y, 1.0, n_train, n_test, flags, importances)
    X, y, norm, flags = TABLES[name](setting)
    n_train = int(0.7 * y.size)
    ones = np.ones(X.shape[1])
    return Labelled(name, X, y, norm, n_train, y.size - n_train, flags, ones)
