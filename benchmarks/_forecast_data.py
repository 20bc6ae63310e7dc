"""Real data that a forecast is compared with, in view of its shapes or set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lifelines.datasets
import numpy as np
import pandas as pd
import sksurv.datasets

from benchmarks._common import FILES, SurvivalData, flchain
from benchmarks._run import data_file, part
from benchmarks.data.labelled import _DIABETES, _HEART
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.data.target import event_and_time

#: Sets that the shapes of simulated columns were found on.
IN_VIEW = ("flchain", "GBSG2", "unemployment", "myocardial infarction", "readmission")

#: Sets that were looked at after the last change of these shapes; all others before it.
UNSEEN = ("AIDS", "veterans")

FLAG = (0.0, 1.0)
_GBSG2 = {"age": (20, 85), "estrec": (0, 500), "pnodes": (1, 20), "progrec": (0, 500)}
_GBSG2 |= {"tsize": (0, 100), "horTh": FLAG, "menostat": FLAG, "tgrade": (1, 3)}
_WHAS500 = dict.fromkeys(("afb", "av3", "chf", "cvd", "gender", "miord", "mitype", "sho"), FLAG)
_WHAS500 |= {"age": (30, 105), "bmi": (15, 50), "diasbp": (30, 150), "hr": (40, 180)}
_WHAS500 |= {"los": (0, 20), "sysbp": (60, 240)}
_ROSSI = dict.fromkeys(("fin", "race", "wexp", "mar", "paro"), FLAG)
_ROSSI |= {"age": (15, 45), "prio": (0, 18)}
_AIDS = {"age": (15, 75), "cd4": (0, 400), "karnof": (70, 100), "priorzdv": (0, 200)}
_AIDS |= {"ivdrug": (1, 3), "sex": (1, 2), "hemophil": FLAG, "strat2": FLAG, "tx": FLAG}
_AIDS |= dict.fromkeys(("raceth_2", "raceth_3"), FLAG)
_VETERANS = {"Age_in_years": (30, 85), "Karnofsky_score": (0, 100)}
_VETERANS |= {"Months_from_Diagnosis": (0, 60)}
_VETERANS |= dict.fromkeys(("adeno", "smallcell", "squamous", "prior", "test"), FLAG)
_GUSTO = {"age": (20, 100), "height": (140, 200), "weight": (40, 140), "pulse": (40, 140)}
_GUSTO |= {"sysbp": (60, 220), "ste": (0, 12), "killip": (1, 4)}
_READMISSION = {"age_mid": (0, 100), "duration": (1, 14), "n_previous_visits": (0, 10)}
_READMISSION |= {"n_diagnoses": (1, 16), "n_procedures": (0, 6), "n_medications": (1, 60)}


@dataclass(frozen=True)
class LabelledData:
    """Columns in [-1, 1] by bounds that were stated without looking at the records, and labels."""

    name: str
    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Facts:
    """What somebody who plans a study would say of it: here, what is true of the records."""

    n_columns: int
    event_rate: float
    censoring: float


def facts(data: SurvivalData | LabelledData) -> Facts:
    n_columns = data.X.shape[1]
    if isinstance(data, LabelledData):
        return Facts(n_columns, float(np.mean(data.y)), 0.0)
    event, time = event_and_time(data.y)
    stayed = time >= data.max_time
    event = event & (time <= data.max_time)
    others = ~event
    return Facts(n_columns, float(event.mean()), float(np.mean(~stayed[others])))


def _survival(
    name: str, X: pd.DataFrame, event: Any, time: Any, max_time: float, bounds: dict[str, Any]
) -> SurvivalData:
    y = np.array(list(zip(event.astype(bool), time.astype(float), strict=True)), dtype="?,f8")
    scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
    scaled = scaler.fit_transform(X[list(bounds)].astype(float))
    return SurvivalData(name, np.asarray(scaled), y, max_time)


def _gbsg2(folder: Path | None) -> SurvivalData:
    X, y = sksurv.datasets.load_gbsg2()
    X["horTh"], X["menostat"] = X["horTh"] == "yes", X["menostat"] == "Post"
    X["tgrade"] = X["tgrade"].astype(str).str.len()
    return _survival("GBSG2", X, y["cens"], y["time"], 2557.0, _GBSG2)


def _whas500(folder: Path | None) -> SurvivalData:
    X, y = sksurv.datasets.load_whas500()
    return _survival("WHAS500", X, y["fstat"], y["lenfol"], 2200.0, _WHAS500)


def _rossi(folder: Path | None) -> SurvivalData:
    X = lifelines.datasets.load_rossi()
    return _survival("Rossi", X, X["arrest"], X["week"], 52.0, _ROSSI)


def _aids(folder: Path | None) -> SurvivalData:
    X, y = sksurv.datasets.load_aids()
    for label in ("2", "3"):
        X[f"raceth_{label}"] = X["raceth"].astype(str) == label
    return _survival("AIDS", X, y["censor"], y["time"], 365.0, _AIDS)


def _veterans(folder: Path | None) -> SurvivalData:
    X, y = sksurv.datasets.load_veterans_lung_cancer()
    for label in ("adeno", "smallcell", "squamous"):
        X[label] = X["Celltype"].astype(str) == label
    X["prior"], X["test"] = X["Prior_therapy"] == "yes", X["Treatment"] == "test"
    return _survival("veterans", X, y["Status"], y["Survival_in_days"], 600.0, _VETERANS)


def _of_file(name: str) -> Callable[[Path | None], SurvivalData]:
    def load(folder: Path | None) -> SurvivalData:
        X, y, max_time, bounds = FILES[name](folder)
        return _survival(name, X, *event_and_time(y), max_time, bounds)

    return load


def _labelled(
    name: str, file: str, bounds: dict[str, Any], others: tuple[str, ...] | None = None
) -> Callable[[Path | None], LabelledData]:
    """Return a loader; ``others``, what is no column, means that all the rest are flags."""

    def load(folder: Path | None) -> LabelledData:
        frame = pd.read_csv(data_file(folder, file))
        known = dict(bounds)
        if others is not None:
            rest = frame.columns.difference(["y", *others, *bounds], sort=False)
            known |= dict.fromkeys(rest, FLAG)
        scaler = PublicBoundsScaler.from_bounds(known, missing="midpoint")
        X = scaler.fit_transform(frame[list(known)].astype(float))
        return LabelledData(name, np.asarray(X), frame["y"].to_numpy(dtype=int))

    return load


LOADERS: dict[str, Callable[[Path | None], SurvivalData | LabelledData]] = {
    "flchain": lambda folder: flchain(),
    "GBSG2": _gbsg2,
    "unemployment": _of_file("unemployment"),
    "third births": _of_file("third births"),
    "child mortality": _of_file("child mortality"),
    "WHAS500": _whas500,
    "Rossi": _rossi,
    "AIDS": _aids,
    "veterans": _veterans,
    "myocardial infarction": _labelled(
        "myocardial infarction",
        "mi_edinburgh_webglore.csv.gz",
        {f"F{j}": FLAG for j in range(1, 10)},
    ),
    "readmission": _labelled(
        "readmission",
        "diabetes130_readmission.csv.gz",
        _READMISSION,
        ("site_admission_source", "site_insurer"),
    ),
    "heart disease": _labelled("heart disease", "heart_disease_4sites.csv.gz", _HEART),
    "diabetes": _labelled("diabetes", "nhanes_diabetes.csv.gz", _DIABETES),
    "GUSTO-I": _labelled(
        "GUSTO-I",
        "gusto1_16regions.csv.gz",
        _GUSTO,
        # The last is "miloc_anterior" once more.
        ("region", "group", "small_group", "ant"),
    ),
}


def real_sets(folder: Path | None) -> Iterator[SurvivalData | LabelledData]:
    """Yield the sets that are there."""
    for name, load in LOADERS.items():
        with part(name):
            yield load(folder)


def as_frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
