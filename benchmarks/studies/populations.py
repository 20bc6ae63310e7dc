"""Simulated people, whose hazard ratios are known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdpsurv.likelihoods.links import LINKS

MAX_TIME, SHAPE, LOSS = 10.0, 1.3, 0.06
#: Log hazard ratios, one after another; the fourth is null.
EFFECTS = (0.8, -0.5, 0.3, 0.0, -0.2)
N_INTERVALS = 200
#: Effects on the scale of probit, relative to these.
PROBIT = 0.35


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
