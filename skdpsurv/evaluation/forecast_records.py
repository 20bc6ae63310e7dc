r"""Simulated records of a forecast: covariates within public bounds, and outcomes given these.

**Covariates.** A latent normal vector, with equal correlations, is turned into columns one by one.
Noise in a coefficient hurts less if its column varies little, but such a column also says little.
Numbers fill about a third of their bounds, as in studies whose bounds come from a protocol
(docs/benchmarks/evaluation).

**Survival times.** Record i has its event at time t (the horizon being 1) with the cumulative
hazard :math:`r_i H t^k`, where :math:`r_i = \exp(s z_i)`. Its follow-up is uniform between 0 and
:math:`1/d`, as with even enrolment, and ends at the horizon at the latest. An event at the
cumulative hazard :math:`h t^k` is seen, while m records are all followed, with probability

.. math:: q_m(h) = 1 - e^{-h} (1 - d)^m - \int_0^1 e^{-h t^k}\, m d\, (1 - d t)^{m - 1}\, dt .

So the expected share of events seen is :math:`E\, q_1(r H)`, and of two records i, j the first
event, seen while both are followed, is that of i with probability

.. math:: \frac{r_i}{r_i + r_j}\, q_2\big((r_i + r_j) H\big).

The expected concordance of any score is a ratio of sums of these; no outcome is drawn for it.

**Late entries** are spread evenly over each of some equal parts of the horizon, which have stated
shares of the people seen. From its entry e, a record has the cumulative hazard
:math:`r_i H (t^k - e^k)`, and its follow-up is uniform between e and :math:`1/d`. Shares of events
and of censoring are those of such records; the concordance stays that of people seen from 0.

**Labels** have the log odds :math:`a + s z_i`. The first of two records is the only positive one
with probability :math:`p_i (1 - p_j)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special
from scipy.optimize import brentq

from skdpsurv.data import PublicColumns
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.histories import Histories
from skdpsurv.dp import checks
from skdpsurv.dp.types import BoolArray, FloatArray, IndexArray

#: Correlation of any two columns' latent normal values.
CORRELATION = 0.2
#: Standard deviation of normal columns with bounds -1 and 1.
NORMAL = 0.4
#: Median of log-normal columns with bounds 0 and 1, and standard deviation of the logarithm.
LOGNORMAL_MEDIAN, LOGNORMAL_DEVIATION = 0.1, 0.8
#: Probabilities of boolean columns, in turn.
SHARES = (0.5, 0.1, 0.03)
#: Share of missing values, if a column may have some.
MISSING = 0.05
#: Mean effect of a column per standard deviation, in standard deviations of such effects. Bounds
#: are often such that more is worse, so that correlated effects add up.
EFFECT = 0.5
#: Number of points at which moments of a column are computed.
N_POINTS = 2000
#: Weibull shapes of the baseline.
BASELINES = {"front-loaded": 0.5, "flat": 1.0, "rising": 2.0}
#: Nodes and weights of Gauss-Legendre quadrature on (0, 1).
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
NODES, WEIGHTS = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0
#: Smallest and largest log cumulative hazard at the horizon.
LOG_HAZARDS = (-60.0, 60.0)
#: Number of points that stand for all late entries, unless there are more parts.
N_ENTRIES = 8
#: Number of distances between indices of paired records: each is in twice as many pairs.
SHIFTS = 6
#: Largest strength of effects.
STRONGEST = 12.0

#: A function of latent normal values.
Map = Callable[[FloatArray], FloatArray]


def normal(latent: FloatArray, center: float = 0.0, spread: float = NORMAL) -> FloatArray:
    """Return normal numbers, clipped to [-1, 1]."""
    return np.clip(center + spread * latent, -1.0, 1.0)


def lognormal(latent: FloatArray) -> FloatArray:
    """Return log-normal numbers, clipped to [-1, 1]; most are near -1."""
    return np.minimum(2.0 * LOGNORMAL_MEDIAN * np.exp(LOGNORMAL_DEVIATION * latent) - 1.0, 1.0)


def uniform(latent: FloatArray) -> FloatArray:
    """Return uniform numbers between -1 and 1."""
    return np.asarray(2.0 * special.ndtr(latent) - 1.0)


def steps(weights: Any, latent: FloatArray) -> FloatArray:
    """Return 0, 1, ... with probabilities in proportion to weights."""
    ends = np.cumsum(weights / np.sum(weights))[:-1]
    return np.searchsorted(special.ndtri(ends), latent).astype(np.float64)


def bernoulli(share: float, latent: FloatArray) -> FloatArray:
    """Return 1 with probability ``share``, else -1."""
    return 2.0 * steps([1.0 - share, share], latent) - 1.0


@dataclass(frozen=True)
class Column:
    """A column as a function of latent normal values; ``n_labels`` is 0 for numbers."""

    values: Map
    n_labels: int = 0
    cells: Callable[[FloatArray], Any] = np.asarray
    may_miss: bool = False

    def effect(self, rng: np.random.Generator) -> Map:
        """Draw how values act on the outcome: linearly, or by label, around 0."""
        labels = rng.normal(size=self.n_labels)

        def raw(values: FloatArray) -> FloatArray:
            return np.asarray(labels[values.astype(int)] if self.n_labels else values)

        typical = raw(self.values(special.ndtri((np.arange(N_POINTS) + 0.5) / N_POINTS)))
        size = rng.normal(EFFECT, 1.0) / max(float(typical.std()), 1e-9)
        return lambda values: size * (raw(values) - typical.mean())


def plain_columns(n_columns: int) -> list[Column]:
    """Return columns in [-1, 1]: normal, lognormal and Bernoulli, in turn."""
    shapes = (f for share in cycle(SHARES) for f in (normal, lognormal, partial(bernoulli, share)))
    return [Column(shape) for shape in islice(shapes, n_columns)]


def label_counts(kinds: Sequence[ColumnKind]) -> dict[Any, int]:
    """Return how many labels columns have, by name; a condition has two."""
    return {kind.column: len(kind.labels) for kind in kinds if kind.labels}


def check_shares(shares: Mapping[str, Any], counts: Mapping[Any, int]) -> None:
    """Refuse shares that are not one positive number for each label of a column."""
    for column, stated in shares.items():
        checks.list_of(checks.positive())(f"shares of {column}", stated)
        if len(stated) != counts.get(column):
            raise ValueError(
                f"shares of {column} must be one for each of its labels, and it has "
                f"{counts.get(column, 'none')}."
            )


def columns_within(
    described: PublicColumns, stated: Mapping[str, Sequence[float]] = MappingProxyType({})
) -> list[Column]:
    """Return simulated columns of raw cells that fit a public description, with stated shares."""
    check_shares(stated, label_counts(described._kinds()))
    shapes, shares, found = cycle((normal, lognormal)), cycle(SHARES), []
    for kind in described._kinds():
        weights, n_labels = stated.get(kind.column, kind.prevalence), len(kind.labels)
        values: Map = uniform
        if kind.condition:
            share = next(shares)
            share = weights[1] / sum(weights) if weights else share
            n_labels, values = 0, partial(bernoulli, share)
        elif n_labels:  # the k-th has a probability in proportion to 1 / k
            values = partial(steps, weights or 1.0 / np.arange(1, n_labels + 1))
        elif kind.spread is not None and (one := kind.features()[0]).spread is not None:
            values = partial(normal, center=one.center or 0.0, spread=one.spread)
        elif not kind.even:
            values = next(shapes)
        cells = kind.cells if n_labels else partial(_cells_at, kind)
        found.append(Column(values, n_labels, cells, kind.missing != "error"))
    return found


def _cells_at(kind: ColumnKind, values: FloatArray) -> Any:
    """Return cells of a kind for values in [-1, 1]."""
    return kind.cells((values + 1.0) / 2.0 if kind.labels else kind.value_at(values))


class SimulatedTable:
    """Columns with random effects on an outcome; without names, rows are an array of numbers."""

    def __init__(
        self, columns: Sequence[Column], names: Sequence[str] | None, rng: np.random.Generator
    ) -> None:
        self.columns, self.names = columns, names
        self.effects = [column.effect(rng) for column in columns]

    def rows(self, n_rows: int, rng: np.random.Generator) -> tuple[Any, FloatArray]:
        """Draw rows, and the sum of their columns' effects, up to a factor."""
        shared = np.sqrt(CORRELATION) * rng.normal(size=n_rows)
        table, total = [], np.zeros(n_rows)
        for column, effect in zip(self.columns, self.effects, strict=True):
            values = column.values(shared + np.sqrt(1.0 - CORRELATION) * rng.normal(size=n_rows))
            acting, cells = effect(values), column.cells(values)
            if column.may_miss:
                missing = rng.random(n_rows) < MISSING
                acting, cells = np.where(missing, 0.0, acting), pd.Series(cells).mask(missing)
            table.append(cells)
            total += acting
        if self.names is None:
            return np.column_stack(table), total
        return pd.DataFrame(dict(zip(self.names, table, strict=True))), total


class Pairs(NamedTuple):
    """Some pairs of records, by their indices."""

    first: IndexArray
    second: IndexArray

    @classmethod
    def among(cls, n_records: int) -> Pairs:
        """Return pairs of independent records, with every record in equally many."""
        indices = np.arange(n_records)
        others = [np.roll(indices, -k) for k in range(1, 1 + min(SHIFTS, n_records - 1))]
        return cls(np.tile(indices, len(others)), np.concatenate(others))

    def concordance(self, score: FloatArray, first: FloatArray, second: FloatArray) -> float:
        """Return the expected concordance of a score; equal scores count one half."""
        order = np.sign(score[self.first] - score[self.second])
        won = first * (1.0 + order) + second * (1.0 - order)
        return float(won.sum() / (2.0 * (first + second).sum()))

    def truth(self, kind: Any, z: FloatArray, concordance: float, *settings: float) -> Any:
        """Return the distribution of outcomes under which the risk itself has a concordance."""

        def excess(strength: float) -> float:
            return (
                self.concordance(z, *kind.of(z, strength, *settings).firsts(z, self)) - concordance
            )

        strength = 0.0
        if concordance > 0.5:
            if (missing := excess(STRONGEST)) < 0.0:
                raise ValueError(
                    f"concordance must be at most {concordance + missing:.2f} for such columns "
                    f"and such a share of events, got {concordance:g}."
                )
            strength = float(brentq(excess, 1e-9, STRONGEST, xtol=1e-4))
        return kind.of(z, strength, *settings)


@dataclass(frozen=True)
class HazardTruth:
    """Distribution of survival times: strength s of effects, hazard H, dropout d, shape k."""

    strength: float
    hazard: float
    dropout: float
    shape: float
    entries: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        z: FloatArray,
        strength: float,
        event_rate: float,
        censoring: float,
        shape: float,
        entries: tuple[float, ...] = (),
    ) -> HazardTruth:
        """Return the distribution with these shares of events, and of dropouts among the rest.

        ``entries`` are shares of those who enter in equal parts of the horizon; none: all at 0.
        """
        ratios = _ratios(strength * z)
        stay = (1.0 - event_rate) * (1.0 - censoring)

        def truth(log_hazard: float) -> HazardTruth:
            hazard = math.exp(log_hazard)
            if entries:
                late = partial(_followed, ratios * hazard, shape, entries, 1.0)
                enough = late(0.0).mean() > stay
                dropout = brentq(lambda d: late(d).mean() - stay, 0.0, 1.0) if enough else 0.0
                return cls(strength, hazard, float(dropout), shape, entries)
            free = float(np.mean(np.exp(-ratios * hazard)))
            return cls(strength, hazard, max(1.0 - stay / max(free, 1e-300), 0.0), shape)

        def surplus(log_hazard: float) -> float:
            found = truth(log_hazard)
            rates = ratios * found.hazard
            seen = found._seen_late(rates) if entries else found._seen(rates, 1)
            return float(seen.mean()) - event_rate

        return truth(brentq(surplus, *LOG_HAZARDS, xtol=1e-6))

    def _seen_late(self, rates: FloatArray) -> FloatArray:
        """Return the probability of an event while followed, from a late entry."""
        total = np.zeros(rates.size)
        for entry, share in zip(*_entry_nodes(self.entries), strict=True):
            times = entry + (1.0 - entry) * NODES
            hazards = np.outer(rates, times**self.shape - entry**self.shape)
            lost = np.exp(-hazards) @ WEIGHTS * (1.0 - entry) * self.dropout
            stayed = np.exp(-rates * (1.0 - entry**self.shape)) * (1.0 - self.dropout)
            total += share * np.maximum(1.0 - (stayed + lost) / (1.0 - self.dropout * entry), 0.0)
        return total

    def _seen(self, hazards: FloatArray, n_followed: int) -> FloatArray:
        """Return q: the probability of an event while some records are all followed."""
        # A power of time in which both factors are smooth.
        power = max(1.0, 1.0 / self.shape)
        times = NODES**power
        density = n_followed * self.dropout * (1.0 - self.dropout * times) ** (n_followed - 1)
        density *= WEIGHTS * power * NODES ** (power - 1.0)
        lost = np.exp(-np.outer(hazards, times**self.shape)) @ density
        stayed = np.exp(-hazards) * (1.0 - self.dropout) ** n_followed
        return np.asarray(np.maximum(1.0 - stayed - lost, 0.0))

    def firsts(self, z: FloatArray, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities that either record of a pair has the first event."""
        ratios = _ratios(self.strength * z)
        first, second = ratios[pairs.first], ratios[pairs.second]
        seen = self._seen((first + second) * self.hazard, 2) / (first + second)
        return first * seen, second * seen

    def survival(self, z: FloatArray, times: FloatArray) -> FloatArray:
        """Return the survival probability of each record at shares of the horizon."""
        ratios = _ratios(self.strength * z)
        return np.asarray(np.exp(-np.outer(ratios * self.hazard, times**self.shape)))

    def survival_each(self, z: FloatArray, times: FloatArray) -> FloatArray:
        """Return the survival probability of each record at a time of its own."""
        return np.asarray(np.exp(-_ratios(self.strength * z) * self.hazard * times**self.shape))

    def draw(self, z: FloatArray, rng: np.random.Generator) -> Histories:
        """Draw histories; their exits are shares of the horizon."""
        rates = _ratios(self.strength * z) * self.hazard
        if self.entries:
            parts = len(self.entries)
            shares = np.array(self.entries) / sum(self.entries)
            entry = (rng.choice(parts, z.size, p=shares) + rng.random(z.size)) / parts
            lived = entry**self.shape + rng.exponential(size=z.size) / rates
            followed = rng.random(z.size) * (1.0 / max(self.dropout, 1e-12) - entry)
            lifetime, ends = lived ** (1.0 / self.shape), np.minimum(entry + followed, 1.0)
            return Histories(np.minimum(lifetime, ends), np.asarray(lifetime <= ends), entry)
        lifetime = (rng.exponential(size=z.size) / rates) ** (1.0 / self.shape)
        # Beyond the horizon where a uniform number is beyond d.
        ends = np.minimum(rng.random(z.size) / max(self.dropout, 1e-12), 1.0)
        return Histories(np.minimum(lifetime, ends), np.asarray(lifetime <= ends))

    def information(self, X: FloatArray, z: FloatArray) -> FloatArray:
        r"""Return a record's mean information on log hazard ratios, by the partial likelihood.

        .. math::

            \int_0^1 E\big[r H e^{-rHv}\big]\, (1 - d v^{1/k})\,
            \mathrm{Cov}_{r e^{-rHv}}(x)\, dv , \qquad v = t^k .
        """
        ratios = _ratios(self.strength * z)
        total = np.zeros((X.shape[1], X.shape[1]))
        followed_at = 1.0 - self.dropout * NODES ** (1.0 / self.shape)
        for node, weight, followed in zip(NODES, WEIGHTS, followed_at, strict=True):
            at_risk = ratios * np.exp(-ratios * self.hazard * node)
            if self.entries:
                time, rates = node ** (1.0 / self.shape), ratios * self.hazard
                there = _followed(rates, self.shape, self.entries, time, self.dropout)
                if not there.any():  # nobody has entered yet
                    continue
                at_risk, followed = ratios * there, 1.0
            total += weight * followed * self.hazard * _weighted_covariance(X, at_risk)
        return total


def _entry_nodes(entries: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Return points of entries that stand for all, with their shares."""
    each = max(N_ENTRIES // len(entries), 1)
    at = (np.arange(len(entries) * each) + 0.5) / (len(entries) * each)
    return at, np.repeat(np.array(entries) / sum(entries), each) / each


def _followed(
    rates: FloatArray, shape: float, entries: tuple[float, ...], time: float, dropout: float
) -> FloatArray:
    """Return the probability that a record has entered, lives and is followed at a time."""
    at, share = _entry_nodes(entries)
    at, share = at[at < time], share[at < time]
    kept = share * (1.0 - dropout * time) / (1.0 - dropout * at)
    return np.asarray(np.exp(-np.outer(rates, time**shape - at**shape)) @ kept)


def _weighted_covariance(X: FloatArray, weights: FloatArray) -> FloatArray:
    centred = X - weights @ X / weights.sum()
    return np.asarray((centred.T * weights) @ centred / weights.size)


def _ratios(log_ratios: FloatArray) -> FloatArray:
    # A hazard e^40 times as large means an event at once.
    return np.asarray(np.exp(np.clip(log_ratios, -40.0, 40.0)))


@dataclass(frozen=True)
class LabelTruth:
    """Distribution of labels: logistic, with strength s of the effects and intercept a."""

    strength: float
    intercept: float

    @classmethod
    def of(cls, z: FloatArray, strength: float, event_rate: float) -> LabelTruth:
        """Return the distribution with a given expected share of positives."""
        scores = strength * z
        middle = float(special.logit(event_rate))
        low, high = middle - scores.max() - 1.0, middle - scores.min() + 1.0
        intercept = brentq(lambda a: special.expit(a + scores).mean() - event_rate, low, high)
        return cls(strength, float(intercept))

    def probability(self, z: FloatArray) -> FloatArray:
        """Return each record's probability of being positive."""
        return np.asarray(special.expit(self.intercept + self.strength * z))

    def firsts(self, z: FloatArray, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities that either record of a pair is its only positive one."""
        p = self.probability(z)
        first, second = p[pairs.first], p[pairs.second]
        return first * (1.0 - second), second * (1.0 - first)

    def draw(self, z: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Draw labels."""
        return np.asarray(rng.random(z.size) < self.probability(z))

    def information(self, X: FloatArray, z: FloatArray) -> FloatArray:
        """Return a record's mean information on log odds ratios, with unknown intercept."""
        p = self.probability(z)
        return _weighted_covariance(X, p * (1.0 - p))
