r"""Learn, on one half of the releases, by which number the two neighbours are told apart best.

A distinguisher gives each release a score, the higher the likelier that it comes from the second
data set. Linear and quadratic logistic regressions find shifts and changes of spread, a forest
whatever else there is. Tails of noise are heavy, so numbers are first put in units of their
quartiles and squeezed, :math:`x \mapsto \mathrm{asinh}(x)`. Nothing that is learned here needs to
be right: what is claimed is counted on the other half (Ding et al. 2018; Bichsel et al. 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skdpsurv.audit.bounds import epsilon_bound
from skdpsurv.types import FloatArray, IndexArray

__all__ = ["Event", "Scores", "best_events", "learned_scores"]


#: Columns that enter: of more, those which differ most between the neighbours.
MOST_COLUMNS, MOST_SQUARED_COLUMNS = 40, 10
#: Quantiles of the scores that are tried as thresholds.
QUANTILES = np.unique(np.r_[np.geomspace(1e-3, 0.05, 20), np.linspace(0.05, 0.5, 46)])
FOREST = {"n_estimators": 100, "max_features": None, "oob_score": True, "random_state": 0}
LEAF_SHARE, SMALLEST_LEAF = 1 / 150, 5


class Scores(NamedTuple):
    """What one distinguisher says of the releases, for both data sets.

    Parameters
    ----------
    name : str
    learned : tuple of ndarray
        Scores of the first half, each by a model that has not seen it.
    held_out : tuple of ndarray
        Scores of the second half.
    """

    name: str
    learned: tuple[FloatArray, FloatArray]
    held_out: tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Event:
    """Scores on one side of a threshold.

    Parameters
    ----------
    scores : int
        Which distinguisher's.
    threshold : float
    above : bool
        Whether scores above it count, or those at it and below.
    likelier : {0, 1}
        The data set that makes it likelier.
    """

    scores: int
    threshold: float
    above: bool
    likelier: int

    def hits(self, scores: tuple[FloatArray, FloatArray]) -> tuple[int, int]:
        """Return how often it happened on the data set that makes it likelier, and the other."""
        count = [int(np.count_nonzero((one > self.threshold) == self.above)) for one in scores]
        return count[self.likelier], count[1 - self.likelier]


def learned_scores(
    learn: tuple[FloatArray, FloatArray], held_out: tuple[FloatArray, FloatArray]
) -> list[Scores]:
    """Train all distinguishers.

    Parameters
    ----------
    learn, held_out : tuple of ndarray of shape (n_trials, n_columns)
        Releases of both data sets: the half to learn from, and the other one.

    Returns
    -------
    list of Scores
        Empty if all releases are equal.
    """
    if learn[0].shape[1] == 0:
        return []
    chosen = _columns_that_differ(learn)
    squeeze = _squeezer(np.vstack(learn)[:, chosen])
    X = squeeze(np.vstack(learn)[:, chosen])
    tests = [squeeze(one[:, chosen]) for one in held_out]
    label = np.repeat([0, 1], [len(one) for one in learn])
    squared = slice(0, MOST_SQUARED_COLUMNS)
    found = []
    for name, part, model in (
        ("linear", slice(None), _logistic(1)),
        ("quadratic", squared, _logistic(2)),
        ("forest", slice(None), _forest(label.size)),
    ):
        if name == "forest":
            own = model.fit(X[:, part], label).oob_decision_function_[:, 1]
        else:
            own = cross_val_predict(model, X[:, part], label, cv=3, method="decision_function")
            model.fit(X[:, part], label)
        score = model.predict_proba if name == "forest" else model.decision_function
        others = [np.asarray(score(one[:, part])) for one in tests]
        others = [one[:, 1] if one.ndim > 1 else one for one in others]
        cut = len(learn[0])
        found.append(Scores(name, (own[:cut], own[cut:]), (others[0], others[1])))
    return found


def best_events(scores: Sequence[Scores], n_events: int, error: float, delta: float) -> list[Event]:
    """Return the events that give the largest bounds on the half that was learned from.

    Parameters
    ----------
    scores : sequence of Scores
    n_events : int
        At most so many: the best of a distinguisher in either direction count as different.
    error, delta : float
        As for :func:`~skdpsurv.audit.bounds.epsilon_bound`, for each event.
    """
    found: list[tuple[float, Event]] = []
    for which, one in enumerate(scores):
        pooled = np.concatenate(one.learned)
        shares = np.concatenate([QUANTILES, 1.0 - QUANTILES])
        thresholds = np.unique(np.quantile(pooled, shares, method="lower"))
        n = one.learned[0].size
        above = np.array(
            [n - np.searchsorted(np.sort(s), thresholds, "right") for s in one.learned]
        )
        for likelier in (0, 1):
            bounds = np.array(
                [
                    epsilon_bound(hits[likelier], hits[1 - likelier], n, error, delta)
                    for hits in (above, n - above)
                ]
            )
            side, place = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
            event = Event(which, float(thresholds[place]), side == 0, likelier)
            found.append((float(bounds[side, place]), event))
    found.sort(key=lambda pair: -pair[0])
    return [event for _, event in found[:n_events]]


def _columns_that_differ(learn: tuple[FloatArray, FloatArray]) -> IndexArray:
    """Return the columns, those first whose laws differ most (Kolmogorov and Smirnov)."""
    n_columns = learn[0].shape[1]
    differences = [
        stats.ks_2samp(learn[0][:, j], learn[1][:, j], method="asymp").statistic
        for j in range(n_columns)
    ]
    return np.argsort(-np.array(differences), kind="stable")[:MOST_COLUMNS]


def _squeezer(pooled: FloatArray) -> Callable[[FloatArray], FloatArray]:
    low, center, high = np.quantile(pooled, [0.25, 0.5, 0.75], axis=0)
    deviation = pooled.std(axis=0)
    spread = np.where(high > low, high - low, np.where(deviation > 0, deviation, 1.0))
    return lambda rows: np.arcsinh((rows - center) / spread)


def _logistic(degree: int) -> Any:
    return make_pipeline(
        PolynomialFeatures(degree, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=1.0, max_iter=200),
    )


def _forest(n_releases: int) -> RandomForestClassifier:
    return RandomForestClassifier(
        min_samples_leaf=max(SMALLEST_LEAF, int(LEAF_SHARE * n_releases)), **FOREST
    )
