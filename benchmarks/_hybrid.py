"""What the benchmarks of hybrid estimators share: simulated records, the rival, text of a cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._classification import interval
from skdpsurv import DPLogisticRegression


@dataclass(frozen=True)
class TwoTables:
    """Public and private records."""

    X_public: np.ndarray
    y_public: np.ndarray
    X_private: np.ndarray
    y_private: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """All records, the public ones first."""
        return np.vstack([self.X_public, self.X_private])

    @property
    def outcomes(self) -> np.ndarray:
        """Their outcomes."""
        return np.concatenate([self.y_public, self.y_private])

    @property
    def public(self) -> np.ndarray:
        """The mask."""
        return np.arange(self.outcomes.size) < self.y_public.size


def simulated(
    p: int, n_private: int, n_public: int, repetition: int, outcome: str = "logistic"
) -> TwoTables:
    """Return records as in section 5.1 of Wang et al.; other outcomes have the same columns.

    Repetitions draw the coefficients anew.
    """
    rng = np.random.default_rng([p, repetition])
    variance = np.full(p, 0.5)
    if p == 2:
        variance[1] = 1.0
    X_private = rng.normal(size=(n_private, p))
    X_public = rng.normal(size=(n_public, p)) * np.sqrt(variance)
    slopes = rng.uniform(-1.0, 1.0, p), rng.uniform(0.0, 0.5, p)

    def outcomes(X: np.ndarray, slope: np.ndarray) -> np.ndarray:
        z = X @ slope
        if outcome == "logistic":
            return (rng.random(z.size) < 1.0 / (1.0 + np.exp(-z))).astype(int)
        if outcome == "Poisson":
            return rng.poisson(np.exp(0.8 * z / max(np.sqrt(p / 3.0), 1.0))).astype(float)
        noise = {
            "linear": rng.normal(size=z.size),
            "Huber": rng.standard_t(2, size=z.size),
            "median": rng.laplace(size=z.size),
        }
        return z + noise[outcome]

    y_private = outcomes(X_private, slopes[0])
    return TwoTables(X_public, outcomes(X_public, slopes[1]), X_private, y_private)


def rival(data: TwoTables, epsilon: float, random_state: int) -> Pipeline:
    """Fit private records alone; public ones only say how to scale columns and bound rows."""
    scaler = StandardScaler().fit(data.X_public)
    norms = np.linalg.norm(scaler.transform(data.X_public), axis=1)
    model = DPLogisticRegression(
        epsilon,
        classes=[0, 1],
        data_norm=1.1 * float(np.quantile(norms, 0.99)),
        random_state=random_state,
    )
    model.fit(scaler.transform(data.X_private), data.y_private)
    return make_pipeline(scaler, model)


def likely(model: LogisticRegression, X: np.ndarray) -> np.ndarray:
    """Return the probability of class 1."""
    return np.asarray(model.predict_proba(X))[:, 1]


def text(values: np.ndarray, digits: int = 2) -> str:
    """Return a mean and its interval."""
    mean, width = interval(values)
    return f"{mean:.{digits}f} ± {width:.{digits}f}"
