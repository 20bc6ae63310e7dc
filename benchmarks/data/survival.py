"""Times to an event, with columns, horizons and bounds that were stated without a look at records.

``survival(setting, name)`` is one of `SURVIVAL`. Columns are scaled to [-1, 1] by their bounds;
missing values become their middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from benchmarks.harness import Setting
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.data.target import event_and_time
from skdpsurv.datasets import load_flchain, load_survival_csv

FLAG = (0.0, 1.0)
Bounds = dict[str, tuple[float, float]]
#: Frame of covariates, events, times, the public horizon and bounds.
Raw = tuple[pd.DataFrame, np.ndarray, np.ndarray, float, Bounds]


@dataclass(frozen=True)
class Survival:
    """Covariates in [-1, 1], events and times within a public horizon.

    ``flags`` says which columns have two values; the others are numbers.
    """

    name: str
    X: np.ndarray
    event: np.ndarray
    time: np.ndarray
    max_time: float
    columns: tuple[str, ...]
    flags: tuple[bool, ...]

    @property
    def y(self) -> np.ndarray:
        """Events and times as scikit-survival has them."""
        y = np.empty(self.event.size, dtype=[("event", "?"), ("time", "f8")])
        y["event"], y["time"] = self.event, self.time
        return y


def _flchain(setting: Setting) -> Raw:
    data = load_flchain()
    return data.X, *event_and_time(data.y), data.max_time, data.bounds


def _third_births(setting: Setting) -> Raw:
    X, y = load_survival_csv(setting.file("tb_third_births.csv.gz"))
    sibs = pd.Categorical(X.pop("sibs").astype(int), categories=[1, 2, 3, 4])
    X = X.join(pd.get_dummies(sibs, prefix="sibs", dtype=float).drop(columns="sibs_1"))
    bounds = {"age": (15, 45), "spacing": (0, 3652)} | dict.fromkeys(X.columns[2:], FLAG)
    return X, *event_and_time(y), 3652.0, bounds


def _unemployment(setting: Setting) -> Raw:
    X, y = load_survival_csv(setting.file("wt_unemployment_de.csv.gz"))
    return X, *event_and_time(y), 2192.0, {"age": (25, 50), "female": FLAG, "wage": (0, 250)}


def _child(setting: Setting) -> Raw:
    X, y = load_survival_csv(setting.file("sb_standin_child_skelleftea.csv.gz"))
    bounds: Bounds = {"sex_male": FLAG, "mother_age": (15, 50), "illeg": FLAG}
    bounds |= {"birth_year": (1850, 1885)}
    bounds |= {f"soc_{kind}": FLAG for kind in ("farming", "worker", "business")}
    return X, *event_and_time(y), 5479.0, bounds


def _hdfail(setting: Setting) -> Raw:
    frame = pd.read_csv(setting.file("hd_hdfail.csv.gz"))
    flags = frame.columns.difference(["time", "event", "temp"], sort=False)
    return *_of(frame), 2500.0, {"temp": (10, 50)} | dict.fromkeys(flags, FLAG)


def _gbsg2(setting: Setting) -> Raw:
    from sksurv.datasets import load_gbsg2

    X, y = load_gbsg2()
    X["horTh"], X["menostat"] = X["horTh"] == "yes", X["menostat"] == "Post"
    X["tgrade"] = X["tgrade"].astype(str).str.len()
    bounds: Bounds = {"age": (20, 85), "estrec": (0, 500), "pnodes": (1, 20), "progrec": (0, 500)}
    bounds |= {"tsize": (0, 100), "horTh": FLAG, "menostat": FLAG, "tgrade": (1, 3)}
    return X, y["cens"], y["time"], 2557.0, bounds


def _whas500(setting: Setting) -> Raw:
    from sksurv.datasets import load_whas500

    X, y = load_whas500()
    bounds: Bounds = dict.fromkeys(
        ("afb", "av3", "chf", "cvd", "gender", "miord", "mitype", "sho"), FLAG
    )
    bounds |= {"age": (30, 105), "bmi": (15, 50), "diasbp": (30, 150), "hr": (40, 180)}
    bounds |= {"los": (0, 20), "sysbp": (60, 240)}
    return X, y["fstat"], y["lenfol"], 2200.0, bounds


def _aids(setting: Setting) -> Raw:
    from sksurv.datasets import load_aids

    X, y = load_aids()
    for label in ("2", "3"):
        X[f"raceth_{label}"] = X["raceth"].astype(str) == label
    bounds: Bounds = {"age": (15, 75), "cd4": (0, 400), "karnof": (70, 100), "priorzdv": (0, 200)}
    bounds |= {"ivdrug": (1, 3), "sex": (1, 2), "hemophil": FLAG, "strat2": FLAG, "tx": FLAG}
    bounds |= dict.fromkeys(("raceth_2", "raceth_3"), FLAG)
    return X, y["censor"], y["time"], 365.0, bounds


def _veterans(setting: Setting) -> Raw:
    from sksurv.datasets import load_veterans_lung_cancer

    X, y = load_veterans_lung_cancer()
    for label in ("adeno", "smallcell", "squamous"):
        X[label] = X["Celltype"].astype(str) == label
    X["prior"], X["test"] = X["Prior_therapy"] == "yes", X["Treatment"] == "test"
    bounds: Bounds = {"Age_in_years": (30, 85), "Karnofsky_score": (0, 100)}
    bounds |= {"Months_from_Diagnosis": (0, 60)}
    bounds |= dict.fromkeys(("adeno", "smallcell", "squamous", "prior", "test"), FLAG)
    return X, y["Status"], y["Survival_in_days"], 600.0, bounds


def _rossi(setting: Setting) -> Raw:
    from lifelines.datasets import load_rossi

    X = load_rossi()
    bounds: Bounds = dict.fromkeys(("fin", "race", "wexp", "mar", "paro"), FLAG)
    bounds |= {"age": (15, 45), "prio": (0, 18)}
    return X, X["arrest"].to_numpy(), X["week"].to_numpy(), 52.0, bounds


def _rotterdam(setting: Setting) -> Raw:
    """Deaths of 2,982 women with breast cancer (``rott2`` of SurvSet)."""
    frame = survset_frame("rott2")
    X = pd.DataFrame(
        {
            "hormon": frame.fac_hormon == "yes",
            "chemo": frame.fac_chemo == "yes",
            "meno": frame.fac_meno == "post",
            "grade3": frame.fac_grade.astype(str) == "3",
            "size>20": frame.fac_tsize.str.startswith(">20"),
            "size>50": frame.fac_tsize.str.startswith(">50"),
        }
    )
    days = frame.time.to_numpy() * 365.25 / 12.0
    return X, frame.event.to_numpy(), days, 7000.0, dict.fromkeys(X.columns, FLAG)


@cache
def survset_frame(name: str) -> pd.DataFrame:
    """Return a data set of the package SurvSet: columns ``event``, ``time`` and covariates."""
    from SurvSet.data import SurvLoader  # type: ignore[import-not-found, unused-ignore]

    return SurvLoader().load_dataset(name)["df"]


def _of(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    return frame, frame.event.to_numpy(), frame.time.to_numpy()


SURVIVAL: dict[str, Callable[[Setting], Raw]] = {
    "flchain": _flchain,
    "third births": _third_births,
    "unemployment": _unemployment,
    "child mortality": _child,
    "hdfail": _hdfail,
    "GBSG2": _gbsg2,
    "WHAS500": _whas500,
    "AIDS": _aids,
    "veterans": _veterans,
    "Rossi": _rossi,
    "Rotterdam": _rotterdam,
}


@cache
def survival(setting: Setting, name: str) -> Survival:
    """Return a data set, scaled; times beyond the horizon are censored there."""
    frame, event, time, max_time, bounds = SURVIVAL[name](setting)
    scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
    X = np.asarray(scaler.fit_transform(frame[list(bounds)].astype(float)))
    time = np.asarray(time, dtype=float)
    event = np.asarray(event).astype(bool) & (time <= max_time)
    flags = tuple(tuple(bound) == FLAG for bound in bounds.values())
    return Survival(name, X, event, np.minimum(time, max_time), max_time, tuple(bounds), flags)


def simulated(n: int, p: int, seed: int = 0, event_rate: float = 0.4) -> Survival:
    """Return Weibull proportional hazards with p columns, censored at random and at time 1."""
    rng = np.random.default_rng([seed, n, p])
    X = rng.uniform(-1.0, 1.0, (n, p))
    slopes = rng.normal(size=p) / np.sqrt(p)
    rate = -np.log(1.0 - event_rate) * np.exp(1.5 * X @ slopes)
    failure = (rng.exponential(size=n) / rate) ** (1.0 / 1.3)
    censored = np.minimum(1.5 * rng.random(n), 1.0)
    columns = tuple(f"x{j}" for j in range(p))
    time = np.minimum(failure, censored)
    return Survival("simulated", X, failure <= censored, time, 1.0, columns, (False,) * p)
