"""Records of several organisations, with public importances of columns.

``organisations(setting, name)`` is one of `ORGANISATIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from benchmarks.harness import Setting
from skdpsurv.data import PublicBoundsScaler


def about(share: float) -> tuple[float, float]:
    """Return bounds that map a 0/1 column to itself less the share that is thought to have a 1.

    What almost everybody has in common says nothing of anybody, and takes up the norm of rows.
    """
    return share - 1.0, share + 1.0


#: Bounds and typical shares from medicine, and importances of 30-day death after myocardial
#: infarction. Bounds have what is typical in their middle, which becomes 0; shares are rounded to
#: quarters. Importances are the points of the TIMI risk score (Morrow et al., Circulation 2000),
#: which was made from another trial, InTIME II; previous infarction has a point as in the index of
#: Norris et al. (Lancet 1969); a column that neither names has half a point. Nothing is computed
#: from the records.
GUSTO: dict[str, tuple[tuple[float, float], float]] = {
    "age": ((20, 100), 3.0),
    "sysbp": ((60, 200), 3.0),
    "hyp": (about(0.0), 3.0),  # systolic pressure below 100 mmHg
    "pulse": ((25, 125), 2.0),
    "hrt": (about(0.25), 2.0),  # fast heart rate
    "killip": ((-2, 4), 2.0),  # most are in class 1
    "sho": (about(0.0), 2.0),  # shock, the highest Killip class
    "weight": ((40, 120), 1.0),
    "ant": (about(0.5), 1.0),
    "miloc_anterior": (about(0.5), 1.0),
    "hig": (about(0.5), 1.0),  # high risk by other columns
    "dia": (about(0.25), 1.0),
    "htn": (about(0.5), 1.0),
    "pan": (about(0.25), 1.0),
    "pmi": (about(0.25), 1.0),
    "ttr": (about(0.5), 1.0),
    "ste": ((0, 8), 0.5),  # leads with ST elevation
    "height": ((140, 200), 0.5),
    "female": (about(0.25), 0.5),
    "prevcvd": (about(0.0), 0.5),
    "prevcabg": (about(0.0), 0.5),
    "fam": (about(0.5), 0.5),
    "miloc_inferior": (about(0.5), 0.5),
    "smk_label_current": (about(0.25), 0.5),
    "smk_label_quit": (about(0.25), 0.5),
    "tx_sk_tpa": (about(0.25), 0.5),  # one of four arms
    "tx_tpa": (about(0.25), 0.5),
}

#: Chest pain, age and sex are what Diamond and Forrester (NEJM 1979) predict coronary disease from;
#: angina and ST depression under exercise are in the Duke treadmill score (Mark et al. 1987).
HEART: dict[str, tuple[tuple[float, float], float]] = {
    "asymptomatic": (about(0.5), 3.0),
    "oldpeak": ((-4, 6), 3.0),
    "exang": (about(0.5), 3.0),
    "age": ((20, 90), 2.0),
    "sex": (about(0.75), 2.0),  # 1 for men, most patients at the time
    "thalach": ((80, 200), 1.0),
    "trestbps": ((60, 200), 0.5),
    "chol": ((100, 400), 0.5),
    "fbs": (about(0.25), 0.5),
    "restecg": ((-2, 2), 0.5),
}


@dataclass(frozen=True)
class Organisations:
    """Columns in [-1, 1] by stated bounds, public importances, and who has which rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    site: np.ndarray
    source: str
    importances: np.ndarray
    n_groups: int

    @property
    def data_norm(self) -> float:
        """Half of the largest norm that columns in [-1, 1] could have; longer rows are scaled."""
        return math.sqrt(self.X.shape[1]) / 2.0

    @property
    def targets(self) -> list[str]:
        """The other organisations, the largest first."""
        names, sizes = np.unique(self.site[self.site != self.source], return_counts=True)
        return names[np.argsort(-sizes, kind="stable")].tolist()


def _scaled(
    frame: pd.DataFrame, public: dict[str, tuple[tuple[float, float], float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns scaled by their public bounds, and their public importances."""
    bounds = {name: bound for name, (bound, _) in public.items()}
    scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
    X = np.asarray(scaler.fit_transform(frame[list(bounds)].astype(float)))
    return X, np.array([importance for _, importance in public.values()])


def _gusto(setting: Setting) -> Organisations:
    """Regions of the GUSTO-I trial; the largest is the source."""
    frame = pd.read_csv(setting.file("gusto1_16regions.csv.gz"))
    X, importances = _scaled(frame, GUSTO)
    site = frame["region"].astype(int).astype(str).to_numpy(dtype=str)
    names, sizes = np.unique(site, return_counts=True)
    source = str(names[sizes.argmax()])
    return Organisations("GUSTO-I", X, frame["y"].to_numpy(), site, source, importances, 5)


def _heart(setting: Setting) -> Organisations:
    """Four hospitals; columns that only Cleveland measured are left out, 0 mmHg and mg/dL are not
    values.
    """
    frame = pd.read_csv(setting.file("heart_disease_4sites.csv.gz"))
    frame["asymptomatic"] = (frame["cp"] == 4).astype(float)
    frame[["chol", "trestbps"]] = frame[["chol", "trestbps"]].replace(0, np.nan)
    X, importances = _scaled(frame, HEART)
    site = frame["site"].to_numpy(dtype=str)
    return Organisations(
        "heart disease", X, frame["y"].to_numpy(), site, "cleveland", importances, 3
    )


def _infarction(setting: Setting) -> Organisations:
    """Four parts of 1,253 patients, nine unnamed columns of 0 and 1."""
    frame = pd.read_csv(setting.file("mi_edinburgh_webglore.csv.gz"))
    X = frame.filter(regex="^F").to_numpy(dtype=float)
    site = ("part " + frame["part"].astype(str)).to_numpy(dtype=str)
    return Organisations("infarction", X, frame["y"].to_numpy(), site, "part 1", np.ones(9), 3)


ORGANISATIONS: dict[str, Callable[[Setting], Organisations]] = {
    "GUSTO-I": _gusto,
    "heart disease": _heart,
    "infarction": _infarction,
}


@cache
def organisations(setting: Setting, name: str) -> Organisations:
    """Return a data set."""
    return ORGANISATIONS[name](setting)
