"""What experiments on hybrid data share: tables of records, an error, subsets of Algorithm 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.pages import interval, panel
from skdpsurv import DPLogisticRegression
from skdpsurv.dp import random_source
from skdpsurv.hybrid.hybrid_records import PointMap, distinct, nearest, nested_counts, read_table
from skdpsurv.hybrid.meta_estimator import fit_weighted
from skdpsurv.mechanisms import sums

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PUBLIC, DEFAULT, RIVAL = "public only", "**default**", "DPLogisticRegression, private rows"
#: Curves of Algorithm 2: what each of k candidates' weights cost.
NOISELESS, EACH, DIVIDED = "no noise", "ε₂ for each candidate", "ε₂/k for each candidate"
CURVES = (NOISELESS, EACH, DIVIDED)
HISTOGRAM = "histogram, ε₁ + ε₂"
STYLES = {
    NOISELESS: {"color": "black", "marker": "o"},
    DIVIDED: {"color": "#E69F00", "marker": "^"},
    EACH: {"color": "#D55E00", "marker": "s"},
}
LINES = {
    PUBLIC: {"color": "#0072B2", "linestyle": "-"},
    HISTOGRAM: {"color": "#CC79A7", "linestyle": "-."},
    DEFAULT: {"color": "#009E73", "linestyle": "--"},
    RIVAL: {"color": "0.45", "linestyle": ":"},
}


@dataclass(frozen=True, eq=False)
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


def two_tables(p: int, n: int, repetition: int, outcome: str = "logistic") -> TwoTables:
    """Return n records of each kind as in section 5.1; other outcomes have the same columns.

    Repetitions draw the coefficients anew.
    """
    rng = np.random.default_rng([p, repetition])
    variance = np.full(p, 0.5)
    if p == 2:
        variance[1] = 1.0
    X_private = rng.normal(size=(n, p))
    X_public = rng.normal(size=(n, p)) * np.sqrt(variance)
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


def logistic() -> LogisticRegression:
    """Return the estimator of all comparisons."""
    return LogisticRegression(max_iter=1000)


def likely(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the probability of class 1."""
    return np.asarray(model.predict_proba(X))[:, 1]


class Errors:
    """t = ||h(model) - h(fit without privacy)||, with probabilities h on the private rows."""

    def __init__(self, data: TwoTables) -> None:
        self.X = data.X_private
        self.theirs = likely(logistic().fit(data.X_private, data.y_private), self.X)

    def __call__(self, model: Any) -> float:
        return float(np.linalg.norm(likely(model, self.X) - self.theirs))


def private_rows(data: TwoTables, epsilon: float, random_state: int) -> Pipeline:
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


class Candidates:
    """Parts I and II of Algorithm 2: public points in the order of noisy weights, nested subsets.

    Weights are nonnegative, as in the paper's section 5.
    """

    def __init__(self, data: TwoTables, errors: Errors) -> None:
        public = read_table(data.X_public, ()), data.y_public
        point_map = PointMap.of(*public, True)
        points = point_map.points(*public)
        self.data, self.errors = data, errors
        self.index = distinct(points)
        self.points = points[self.index]
        self.private = point_map.points(read_table(data.X_private, ()), data.y_private)
        place = nearest(self.private, self.points)
        self.counts = np.bincount(place, minlength=self.index.size)
        self.equal = logistic().fit(data.X_public, data.y_public)

    def curves(
        self, split: tuple[float, float], sizes: Sequence[int], n_candidates: int, random_state: int
    ) -> dict[str, np.ndarray]:
        """Return t of subsets of these sizes, some of k candidates, for each of `CURVES`.

        The order costs epsilon_1, and the weights of all candidates epsilon_2.
        """
        to_order, to_count = split
        source = random_source(random_state)
        order = np.argsort(-sums.HISTOGRAM.release(self.counts, to_order, source), kind="stable")
        prices = {NOISELESS: np.inf, EACH: to_count, DIVIDED: to_count / n_candidates}
        found: dict[str, list[float]] = {name: [] for name in CURVES}
        held = nested_counts(self.private, self.points[order], sizes)
        for size, counts in zip(sizes, held, strict=True):
            rows = self.index[order[:size]]
            X, y = self.data.X_public[rows], self.data.y_public[rows]
            for name, price in prices.items():
                weights = sums.HISTOGRAM.release(counts, price, source)
                model = fit_weighted(logistic(), X, y, weights, False, lambda: self.equal)
                found[name].append(self.errors(model))
        return {name: np.array(values) for name, values in found.items()}


def text(values: np.ndarray, digits: int = 2) -> str:
    """Return a mean and its interval; one value has none."""
    mean, width = interval(values)
    return f"{mean:.{digits}f}" + ("" if np.isnan(width) else f" ± {width:.{digits}f}")


def some_of(n: int, most: int) -> list[int]:
    """Return at most so many of n places, the first and the last too, denser at the start."""
    return sorted({round(place) - 1 for place in np.geomspace(1, n, most)})


def draw(
    ax: Axes, curves: dict[str, tuple[np.ndarray, ...]], levels: dict[str, float], title: str
) -> None:
    """Draw one panel: sizes, errors and half-widths of curves, and errors of other fits."""
    for name, style in STYLES.items():
        sizes, middle, width = curves[name]
        bars = None if np.isnan(width).all() else width
        looks = {"markersize": 4, "linewidth": 1.5, "elinewidth": 1.0, **style}
        ax.errorbar(sizes, middle, yerr=bars, label=f"Algorithm 2, {name}", **looks)
    for name, style in LINES.items():
        if name in levels:
            ax.axhline(levels[name], label=name.strip("*"), linewidth=1.8, **style)
    ax.set_title(title, loc="left", fontsize=10, fontweight="bold")
    panel(ax)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
