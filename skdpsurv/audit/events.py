r"""Events that happen more often on one of two neighbours, and their bounds on epsilon.

An (epsilon, delta)-private mechanism M has, for every event E and neighbours D and D',

.. math:: P(M(D) \in E) \le e^\epsilon P(M(D') \in E) + \delta,

so that :math:`\epsilon \ge \log\frac{p - \delta}{p'}`. From k hits in n trials, the bounds of
Clopper and Pearson (1934),

.. math:: p \ge B^{-1}_{k,\,n-k+1}(a), \qquad p' \le B^{-1}_{k'+1,\,n-k'}(1 - a),

with B the beta distribution function, are each wrong with probability at most a.

A distinguisher scores each release; an event is a score on one side of a threshold. Linear and
quadratic logistic regressions find shifts and changes of spread, a forest finds the rest. Noise has
heavy tails, so numbers are scaled by their quartiles and mapped by :math:`\mathrm{asinh}`. The
claim rests on counts of the other half alone (Ding et al. 2018; Bichsel et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skdpsurv.dp.types import FloatArray

#: Columns that are used: those that differ most between the neighbours.
MOST_COLUMNS, MOST_SQUARED_COLUMNS = 40, 10
#: Quantiles of the scores that are tried as thresholds.
QUANTILES = np.unique(np.r_[np.geomspace(1e-3, 0.05, 20), np.linspace(0.05, 0.5, 46)])
FOREST = {"n_estimators": 100, "max_features": None, "oob_score": True, "random_state": 0}
LEAF_SHARE, SMALLEST_LEAF = 1 / 150, 5

#: One array for each of the two data sets.
Both = tuple[FloatArray, FloatArray]


def probability_bounds(
    hits: ArrayLike, n_trials: int, error: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of Clopper and Pearson on a probability.

    Examples
    --------
    >>> low, high = probability_bounds([0, 5, 10], 10, 0.025)
    >>> low.round(2), high.round(2)
    (array([0.  , 0.19, 0.69]), array([0.31, 0.81, 1.  ]))
    """
    k = np.asarray(hits, dtype=np.float64)
    low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), n_trials - k + 1, error), 0.0)
    left = np.maximum(n_trials - k, 1)
    high = np.where(k < n_trials, special.betainccinv(k + 1, left, error), 1.0)
    return low, high


def epsilon_bound(
    hits: ArrayLike, other_hits: ArrayLike, n_trials: int, error: float, delta: float = 0.0
) -> FloatArray:
    """Return lower bounds on epsilon from the hits of events on two neighbours."""
    low, _ = probability_bounds(hits, n_trials, error / 2.0)
    _, high = probability_bounds(other_hits, n_trials, error / 2.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def largest_bound(n_trials: int, error: float, delta: float = 0.0) -> float:
    """Return the largest bound that can be found: all hits on one neighbour, none on the other."""
    return float(epsilon_bound(n_trials, 0, n_trials, error, delta))


def fewest_trials(epsilon: float, error: float, delta: float = 0.0) -> int:
    """Return the number of trials at which :func:`largest_bound` exceeds ``epsilon``.

    Both probabilities are then bounded by the n-th root of half the error.

    Examples
    --------
    >>> fewest_trials(1.0, 0.01)
    17
    """
    share = (1.0 - delta) * float(special.expit(-epsilon))
    if share == 0.0:
        raise ValueError(f"no number of trials can refute epsilon={epsilon}, delta={delta}.")
    return math.floor(math.log(error / 2.0) / math.log1p(-share)) + 1


class Scores(NamedTuple):
    """Scores of one distinguisher: of the first half, out of sample, and of the held-out half."""

    name: str
    learned: Both
    held_out: Both


class Event(NamedTuple):
    """Scores above a threshold, or not above it, and the data set that makes them likelier."""

    scores: Scores
    threshold: float
    above: bool
    likelier: int

    @property
    def hits(self) -> tuple[int, int]:
        """Held-out hits on the data set that makes it likelier, and on the other."""
        held_out = self.scores.held_out
        count = [int(np.count_nonzero((one > self.threshold) == self.above)) for one in held_out]
        return count[self.likelier], count[1 - self.likelier]


def learned_scores(learn: Both, held_out: Both) -> list[Scores]:
    """Train classifiers to tell the data sets apart; return their scores of held-out results."""
    # First the columns whose distributions differ most (Kolmogorov and Smirnov).
    pairs = zip(learn[0].T, learn[1].T, strict=True)
    differences = [stats.ks_2samp(*pair, method="asymp").statistic for pair in pairs]
    chosen = np.argsort(-np.array(differences), kind="stable")[:MOST_COLUMNS]
    pooled = np.vstack(learn)[:, chosen]
    low, center, high = np.quantile(pooled, [0.25, 0.5, 0.75], axis=0)
    deviation = pooled.std(axis=0)
    spread = np.where(high > low, high - low, np.where(deviation > 0, deviation, 1.0))
    rows = np.arcsinh((np.vstack([*learn, *held_out])[:, chosen] - center) / spread)
    ends = np.cumsum([len(one) for one in (*learn, *held_out)])
    label = np.repeat([0, 1], [len(one) for one in learn])
    leaf = max(SMALLEST_LEAF, int(LEAF_SHARE * label.size))
    found = []
    for name, n_columns, model in (
        ("linear", MOST_COLUMNS, _logistic(1)),
        ("quadratic", MOST_SQUARED_COLUMNS, _logistic(2)),
        ("forest", MOST_COLUMNS, RandomForestClassifier(min_samples_leaf=leaf, **FOREST)),
    ):
        X, own = rows[:, :n_columns], rows[: ends[1], :n_columns]
        model.fit(own, label)
        if name == "forest":
            scores = model.predict_proba(X)[:, 1]
            scores[: ends[1]] = model.oob_decision_function_[:, 1]
        else:
            scores = model.decision_function(X)
            unseen = cross_val_predict(model, own, label, cv=3, method="decision_function")
            scores[: ends[1]] = unseen
        parts = np.split(scores, ends[:-1])
        found.append(Scores(name, (parts[0], parts[1]), (parts[2], parts[3])))
    return found


def best_events(scores: Sequence[Scores], n_events: int, error: float, delta: float) -> list[Event]:
    """Return the events that give the largest bounds on the half that was learned from."""
    found: list[tuple[float, Event]] = []
    for one in scores:
        shares = np.concatenate([QUANTILES, 1.0 - QUANTILES])
        pooled = np.concatenate(one.learned)
        thresholds = np.unique(np.quantile(pooled, shares, method="lower"))
        n = one.learned[0].size
        above = [n - np.searchsorted(np.sort(s), thresholds, "right") for s in one.learned]
        hits = np.stack([above, n - np.array(above)], axis=1)  # by data set, side and threshold
        for likelier in (0, 1):
            bounds = epsilon_bound(hits[likelier], hits[1 - likelier], n, error, delta)
            side, place = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
            event = Event(one, float(thresholds[place]), bool(side == 0), likelier)
            found.append((float(bounds[side, place]), event))
    found.sort(key=lambda pair: -pair[0])
    return [event for _, event in found[:n_events]]


def _logistic(degree: int) -> Any:
    return make_pipeline(
        PolynomialFeatures(degree, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=1.0, max_iter=200),
    )
