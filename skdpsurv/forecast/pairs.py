"""Pairs of records: how often a score ranks the two as their outcomes will."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from skdpsurv.types import FloatArray, IndexArray

__all__ = ["Pairs", "strength_for"]

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
        return cls(
            np.tile(places, len(shifts)), np.concatenate([np.roll(places, -k) for k in shifts])
        )

    def concordance(self, score: FloatArray, first: FloatArray, second: FloatArray) -> float:
        """Return the expected concordance of a score; equal ones count one half.

        Parameters
        ----------
        score : ndarray of shape (n_records,)
        first, second : ndarray of shape (n_pairs,)
            Probabilities that the one, or the other, is the case, or has the first event.
        """
        order = np.sign(score[self.one] - score[self.other])
        won = first * (1.0 + order) + second * (1.0 - order)
        return float(won.sum() / (2.0 * (first + second).sum()))


def strength_for(reached: Callable[[float], float], concordance: float) -> float:
    """Return how strong effects must be for a concordance.

    Parameters
    ----------
    reached : callable
        Of a strength; it rises from 0.5.
    concordance : float

    Raises
    ------
    ValueError
        If no strength gives it.
    """
    if concordance == 0.5:
        return 0.0
    most = reached(STRONGEST)
    if most < concordance:
        raise ValueError(
            f"concordance must be at most {most:.2f} for such columns and such a share of events, "
            f"got {concordance:g}."
        )
    return float(
        brentq(lambda strength: reached(strength) - concordance, 1e-9, STRONGEST, xtol=1e-4)
    )
