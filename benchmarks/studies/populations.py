"""People whose hazard ratios are known: simulated ones, and real ones that are drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd

from benchmarks.data import Survival, survival, survset_frame
from benchmarks.harness import Setting
from skdpsurv import DPDiscreteTimeSurvival
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.likelihoods.links import LINKS

MAX_TIME, SHAPE, LOSS = 10.0, 1.3, 0.06
#: Log hazard ratios, one after another; the fourth is null.
EFFECTS = (0.8, -0.5, 0.3, 0.0, -0.2)
N_INTERVALS = 200
#: Effects on the scale of probit, relative to these.
PROBIT = 0.35
#: Caps at which the capped fit without privacy is known; between them it is interpolated.
CAPS = np.geomspace(0.4, 13.0, 24)
#: Round bounds, and the horizon, of sets of SurvSet whose effects change over time: tests
#: of proportional hazards have chi squares of 565, 59 and 192 for one column. A text is the
#: category that counts as 1.
CHANGING: dict[str, tuple[dict[str, tuple[float, float] | str], float]] = {
    "support2": (
        {
            "num_age": (18, 100),
            "fac_sex": "male",
            "num_scoma": (0, 100),
            "num_sps": (0, 100),
            "num_meanbp": (0, 200),
            "num_temp": (32, 42),
        },
        2000.0,
    ),
    "rhc": (
        {
            "num_age": (18, 100),
            "fac_sex": "male",
            "num_scoma1": (0, 100),
            "num_aps1": (0, 150),
            "num_surv2md1": (0, 1),
            "num_paco21": (0, 160),
        },
        365.0,
    ),
    "UnempDur": (
        {
            "num_age": (20, 60),
            "num_tenure": (0, 40),
            "num_logwage": (3, 8),
            "num_disrate": (0, 1),
            "fac_ui": "yes",
        },
        28.0,
    ),
}


@dataclass(frozen=True)
class People:
    """A population with known coefficients."""

    columns: str
    n_columns: int
    rate: float
    link: str

    max_time = MAX_TIME

    @property
    def coef(self) -> np.ndarray:
        size = PROBIT if self.link == "probit" else 1.0
        return np.resize(EFFECTS, self.n_columns) * size * math.sqrt(5.0 / self.n_columns)

    def truth(self, cap: float) -> np.ndarray:
        return self.coef

    def rows(self, n: int, rng: np.random.Generator) -> np.ndarray:
        d = self.n_columns
        rows = rng.uniform(-1.0, 1.0, (n, d))
        if self.columns == "correlated":
            root = np.linalg.cholesky(np.full((d, d), 0.6) + 0.4 * np.eye(d))
            rows = np.clip(0.4 * rng.normal(size=(n, d)) @ root.T, -1.0, 1.0)
        elif self.columns == "half binary":
            rows[:, ::2] = np.sign(rows[:, ::2])
        elif self.columns == "skewed":
            rows = 2.0 * rng.beta(0.7, 4.0, (n, d)) - 1.0
        elif self.columns == "rare binary":
            rows[:, ::2] = 2.0 * (rng.random(rows[:, ::2].shape) < 0.05) - 1.0
        return rows

    @property
    def mean(self) -> np.ndarray:
        mean = np.full(self.n_columns, 1.4 / 4.7 - 1.0 if self.columns == "skewed" else 0.0)
        if self.columns == "rare binary":
            mean[::2] = -0.9
        return mean

    def sample(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = self.rows(n, rng)
        score = (X - self.mean) @ self.coef
        if self.link == "cloglog":
            risk = self.rate * np.exp(score)
            time = MAX_TIME * (rng.exponential(size=n) / risk) ** (1.0 / SHAPE)
        else:  # a constant hazard in each interval, by the link
            link = LINKS[self.link]
            level = link.predictor(-math.expm1(-self.rate / N_INTERVALS))
            intervals = np.ceil(rng.exponential(size=n) / link.survival(level + score).value)
            time = MAX_TIME * (intervals - 0.5) / N_INTERVALS
        last = np.minimum(rng.exponential(1.0 / LOSS, n), MAX_TIME)
        y = np.empty(n, dtype=[("event", "?"), ("time", "f8")])
        y["event"], y["time"] = time <= last, np.minimum(time, last)
        return X, y


@dataclass(frozen=True, eq=False)
class Resampled:
    """A real data set as a population: the truth is what a fit without privacy says of all of it.

    With the cap that a release used.
    """

    data: Survival
    link: str = "cloglog"

    @property
    def max_time(self) -> float:
        return self.data.max_time

    @property
    def coef(self) -> np.ndarray:
        return np.full(self.data.X.shape[1], np.nan)

    @cached_property
    def at_caps(self) -> np.ndarray:
        return np.array([self.exact(cap) for cap in CAPS])

    def exact(self, cap: float) -> np.ndarray:
        model = DPDiscreteTimeSurvival(
            math.inf, max_time=self.max_time, link=self.link, max_cumulative_hazard=cap
        )
        return model.fit(self.data.X, self.data.y).coef_

    def truth(self, cap: float) -> np.ndarray:
        return np.array([np.interp(math.log(cap), np.log(CAPS), c) for c in self.at_caps.T])

    def sample(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        places = np.random.default_rng(seed).integers(0, len(self.data.X), n)
        return self.data.X[places], self.data.y[places]


@cache
def resampled(setting: Setting, name: str) -> Resampled:
    """Return a real population."""
    return Resampled(_changing(name) if name in CHANGING else survival(setting, name))


def _changing(name: str) -> Survival:
    stated, horizon = CHANGING[name]
    frame = survset_frame(name)
    X = pd.DataFrame(
        {
            column: (frame[column].astype(str).str.lower() == bound).astype(float)
            if isinstance(bound, str)
            else frame[column]
            for column, bound in stated.items()
        }
    )
    flags = tuple(isinstance(bound, str) for bound in stated.values())
    bounds = {c: (0.0, 1.0) if isinstance(b, str) else b for c, b in stated.items()}
    scaler = PublicBoundsScaler.from_bounds(bounds, missing="midpoint")
    time = np.maximum(frame.time.to_numpy(dtype=float), 1e-9 * horizon)
    event = frame.event.to_numpy().astype(bool) & (time <= horizon)
    rows = np.asarray(scaler.fit_transform(X))
    return Survival(name, rows, event, np.minimum(time, horizon), horizon, tuple(stated), flags)
