r"""What is true of made-up records: proportional hazards with dropout, or log odds of labels.

Record i has its event at time t (the horizon being 1) with the cumulative hazard
:math:`r_i H t^k`, where :math:`r_i = \exp(s z_i)`. Its follow-up is uniform between 0 and
:math:`1/d`, as where people enter a study at an even pace, and ends at the horizon at the latest.
An event that comes at the cumulative hazard :math:`h t^k` is seen, while m records are all
followed, with probability

.. math:: q_m(h) = 1 - e^{-h} (1 - d)^m - \int_0^1 e^{-h t^k}\, m d\, (1 - d t)^{m - 1}\, dt .

So the expected share of events seen is :math:`E\, q_1(r H)`, and of two records i, j the first
event, seen while both are followed, is that of i with probability

.. math:: \frac{r_i}{r_i + r_j}\, q_2\big((r_i + r_j) H\big).

The expected concordance of any score is a ratio of sums of these: no outcome is drawn, and nothing
of its randomness is in the comparison of two scores.

Labels have the log odds :math:`a + s z_i`, and of two records the first is the only positive one
with the probability :math:`p_i (1 - p_j)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from scipy import special
from scipy.optimize import brentq

from skdpsurv.dp.types import BoolArray, FloatArray, IndexArray

#: Shapes of the baseline's Weibull distribution.
BASELINES = {"front-loaded": 0.5, "flat": 1.0, "rising": 2.0}
#: Of Gauss and Legendre's rule.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
NODES, WEIGHTS = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0
#: Logarithms of the least and the largest cumulative hazard at the horizon.
LOG_HAZARDS = (-60.0, 60.0)
#: Each record is in twice as many pairs.
SHIFTS = 6
#: The strongest effects that are looked at: log ratios of standard deviation times this.
STRONGEST = 12.0


@dataclass(frozen=True)
class Pairs:
    """Some of all pairs of records.

    Parameters
    ----------
    one, other : ndarray of int
        Places of the records.
    """

    one: IndexArray
    other: IndexArray

    @classmethod
    def among(cls, n_records: int) -> Pairs:
        """Return pairs of records that were drawn independently, each in as many."""
        places = np.arange(n_records)
        shifts = range(1, 1 + min(SHIFTS, n_records - 1))
        others = [np.roll(places, -k) for k in shifts]
        return cls(np.tile(places, len(others)), np.concatenate(others))

    def concordance(self, score: FloatArray, first: FloatArray, second: FloatArray) -> float:
        """Return the expected concordance of a score; equal ones count one half."""
        order = np.sign(score[self.one] - score[self.other])
        won = first * (1.0 + order) + second * (1.0 - order)
        return float(won.sum() / (2.0 * (first + second).sum()))


class Truth:
    """The law of outcomes, given how strongly covariates act: what both kinds have in common.

    ``of(z, strength, ...)`` is the truth in which expected shares are as asked.
    """

    @classmethod
    def found(cls, z: FloatArray, pairs: Pairs, concordance: float, *asked: float) -> Self:
        """Return the truth whose own risk has a concordance."""
        kind: Any = cls

        def short(strength: float) -> float:
            truth = kind.of(z, strength, *asked)
            return pairs.concordance(z, *truth.firsts(z, pairs)) - concordance

        strength = 0.0
        if concordance > 0.5:
            if (beyond := short(STRONGEST)) < 0.0:
                raise ValueError(
                    f"concordance must be at most {concordance + beyond:.2f} for such columns and "
                    f"such a share of events, got {concordance:g}."
                )
            strength = float(brentq(short, 1e-9, STRONGEST, xtol=1e-4))
        return cast(Self, kind.of(z, strength, *asked))


@dataclass(frozen=True)
class HazardTruth(Truth):
    """The law of survival times, given how strongly covariates act.

    Parameters
    ----------
    strength : float
        s: what log hazard ratios are multiplied with.
    hazard : float
        H: the baseline's cumulative hazard at the horizon.
    dropout : float
        d: probability that the follow-up ends before the horizon.
    shape : float
        k: that of the Weibull baseline.
    """

    strength: float
    hazard: float
    dropout: float
    shape: float

    @classmethod
    def of(
        cls, z: FloatArray, strength: float, event_rate: float, censoring: float, shape: float
    ) -> HazardTruth:
        """Return the truth in which expected shares of events and dropouts are as asked."""
        ratios = _ratios(strength * z)
        stay = (1.0 - event_rate) * (1.0 - censoring)

        def dropout(hazard: float) -> float:
            free = float(np.mean(np.exp(-ratios * hazard)))
            return max(1.0 - stay / max(free, 1e-300), 0.0)

        def surplus(log_hazard: float) -> float:
            hazard = math.exp(log_hazard)
            law = cls(strength, hazard, dropout(hazard), shape)
            return float(law._seen(ratios * hazard, 1).mean()) - event_rate

        hazard = math.exp(brentq(surplus, *LOG_HAZARDS, xtol=1e-6))
        return cls(strength, hazard, dropout(hazard), shape)

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
        one, other = ratios[pairs.one], ratios[pairs.other]
        seen = self._seen((one + other) * self.hazard, 2) / (one + other)
        return one * seen, other * seen

    def survival(self, z: FloatArray, times: FloatArray) -> FloatArray:
        """Return the survival probability of each record at shares of the horizon."""
        ratios = _ratios(self.strength * z)
        return np.asarray(np.exp(-np.outer(ratios * self.hazard, times**self.shape)))

    def draw(self, z: FloatArray, rng: np.random.Generator) -> tuple[BoolArray, FloatArray]:
        """Draw whether each record's event is seen, and when its follow-up ends, up to 1."""
        rates = _ratios(self.strength * z) * self.hazard
        lifetime = (rng.exponential(size=z.size) / rates) ** (1.0 / self.shape)
        # Beyond the horizon where a uniform number is beyond d.
        ends = np.minimum(rng.random(z.size) / max(self.dropout, 1e-12), 1.0)
        return np.asarray(lifetime <= ends), np.asarray(np.minimum(lifetime, ends))

    def information(self, X: FloatArray, z: FloatArray) -> FloatArray:
        r"""Return a record's mean information on log hazard ratios, without privacy.

        That of the partial likelihood: the covariance of the covariates among those at risk, each
        weighed by the hazard ratio, at the times of events,

        .. math::

            \int_0^1 E\big[r H e^{-rHv}\big]\, (1 - d v^{1/k})\,
            \mathrm{Cov}_{r e^{-rHv}}(x)\, dv , \qquad v = t^k .
        """
        ratios = _ratios(self.strength * z)
        total = np.zeros((X.shape[1], X.shape[1]))
        followed_at = 1.0 - self.dropout * NODES ** (1.0 / self.shape)
        for node, weight, followed in zip(NODES, WEIGHTS, followed_at, strict=True):
            at_risk = ratios * np.exp(-ratios * self.hazard * node)
            total += weight * followed * self.hazard * _spread(X, at_risk)
        return total


def _spread(X: FloatArray, weights: FloatArray) -> FloatArray:
    centred = X - weights @ X / weights.sum()
    return np.asarray((centred.T * weights) @ centred / weights.size)


def _ratios(log_ratios: FloatArray) -> FloatArray:
    # Hazards beyond e^40 times others' are those of an event at once.
    return np.asarray(np.exp(np.clip(log_ratios, -40.0, 40.0)))


@dataclass(frozen=True)
class LabelTruth(Truth):
    """The law of labels, given how strongly covariates act.

    Parameters
    ----------
    strength : float
        s: what log odds ratios are multiplied with.
    intercept : float
        a.
    """

    strength: float
    intercept: float

    @classmethod
    def of(cls, z: FloatArray, strength: float, event_rate: float) -> LabelTruth:
        """Return the truth in which the expected share of positives is as asked."""
        scores = strength * z
        middle = float(special.logit(event_rate))
        low, high = middle - scores.max() - 1.0, middle - scores.min() + 1.0
        intercept = brentq(lambda a: special.expit(a + scores).mean() - event_rate, low, high)
        return cls(strength, float(intercept))

    def probability(self, z: FloatArray) -> FloatArray:
        """Return the probability of each record to be positive."""
        return np.asarray(special.expit(self.intercept + self.strength * z))

    def firsts(self, z: FloatArray, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities that either record of a pair is its only positive one."""
        p = self.probability(z)
        one, other = p[pairs.one], p[pairs.other]
        return one * (1.0 - other), other * (1.0 - one)

    def draw(self, z: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Draw labels."""
        return np.asarray(rng.random(z.size) < self.probability(z))

    def information(self, X: FloatArray, z: FloatArray) -> FloatArray:
        """Return a record's mean information on log odds ratios, the intercept not known."""
        p = self.probability(z)
        return _spread(X, p * (1.0 - p))
