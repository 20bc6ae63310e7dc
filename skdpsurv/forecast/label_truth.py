r"""What is true of made-up labels: log odds :math:`a + s z_i`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy.optimize import brentq

from skdpsurv.forecast.pairs import Pairs, strength_for
from skdpsurv.types import BoolArray, FloatArray

__all__ = ["LabelTruth"]


@dataclass(frozen=True)
class LabelTruth:
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

    @classmethod
    def found(
        cls, z: FloatArray, pairs: Pairs, concordance: float, event_rate: float
    ) -> LabelTruth:
        """Return the truth whose own probabilities have an area under the ROC curve.

        Raises
        ------
        ValueError
            If no strength gives it.
        """

        def reached(strength: float) -> float:
            return pairs.concordance(z, *cls.of(z, strength, event_rate).firsts(z, pairs))

        return cls.of(z, strength_for(reached, concordance), event_rate)

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
        weight = p * (1.0 - p)
        centred = X - weight @ X / weight.sum()
        return np.asarray((centred.T * weight) @ centred / z.size)
