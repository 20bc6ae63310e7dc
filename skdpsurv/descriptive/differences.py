r"""Standardised differences between two groups, with intervals that know the noise.

Numbers: :math:`d = (\mu_1 - \mu_0) / s` with :math:`s^2 = (\sigma_0^2 + \sigma_1^2) / 2`. Two
labels: the same with shares, :math:`\sigma^2 = p (1 - p)`.

Noise makes small differences and standard deviations look larger or smaller. The interval is made
of those of both means and both deviations, or of both shares, by squaring and adding (Newcombe,
Statistics in Medicine 17, 1998; Zou and Donner, Statistics in Medicine 27, 2008):

.. math:: d - \Big(\sum_{ij} \rho_{ij} \Delta_i \Delta_j\Big)^{1/2},

where :math:`|\Delta_i|` is how much less d is at the worse end of the interval of the i-th and the
other estimates, negative if that is the lower end; above d likewise. :math:`\rho` are correlations:
of mean and deviation of one group. There is none for more than two labels: their difference is a
length, which noise only adds to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from skdpsurv.descriptive.share_intervals import UNKNOWN, Ends, Estimated, Level, Moments, share
from skdpsurv.descriptive.solution import Solved
from skdpsurv.dp.types import FloatArray

UNSAID = Estimated(math.nan, UNKNOWN, UNKNOWN)
#: The interval for these people, and that for their population.
WHOM: tuple[Callable[[Estimated], Ends], ...] = attrgetter("people"), attrgetter("population")


def of_numbers(solved: Solved, points: FloatArray, pair: FloatArray, level: Level) -> Estimated:
    """Return the standardised difference of means; ``pair`` chooses the two groups."""
    first, second = (Moments(solved, points, chosen, level) for chosen in pair)
    parts = first.mean(), second.mean(), first.deviation(), second.deviation()
    each = zip(first.correlations(), second.correlations(), strict=True)
    correlations = [np.block([[np.eye(2), r], [r, np.eye(2)]]) for r in map(np.diag, each)]
    return _with_intervals(_of_moments, parts, correlations)


def of_labels(solved: Solved, n_labels: int, pair: FloatArray, level: Level) -> Estimated:
    """Return the standardised difference of the shares of two labels; of more there is none."""
    if n_labels != 2:
        return UNSAID
    n_cells = solved.cells.shape[1]
    last, present = np.eye(n_cells)[1], (np.arange(n_cells) < 2).astype(np.float64)
    shares = [
        share(solved, np.outer(chosen, last), np.outer(chosen, present), level) for chosen in pair
    ]
    return _with_intervals(_of_shares, shares, [np.eye(2)] * 2)


def _of_moments(mean: float, other: float, spread: float, other_spread: float) -> float:
    """Return the standardised difference of two means; NaN where both deviations are 0."""
    scale = math.sqrt(0.5 * (spread**2 + other_spread**2))
    return (other - mean) / scale if scale > 0.0 else math.nan


def _of_shares(p: float, q: float) -> float:
    return _of_moments(p, q, *(math.sqrt(one * (1.0 - one)) for one in (p, q)))


def _with_intervals(
    d: Callable[..., float], parts: Sequence[Estimated], correlations: Sequence[FloatArray]
) -> Estimated:
    """Return d of some parts; where all of them may have no deviation it has no interval."""
    values = [one.estimate for one in parts]
    estimate = d(*values)

    def ends(of: Callable[[Estimated], Ends], correlation: FloatArray) -> Ends:
        moves = np.array(
            [
                [d(*values[:k], end, *values[k + 1 :]) - estimate for end in of(part)]
                for k, part in enumerate(parts)
            ]
        )
        corners = [d(*both) for both in zip(*map(of, parts), strict=True)]
        if not np.isfinite([*moves.ravel(), *corners]).all():
            return UNKNOWN
        found = []
        for sign in (-1.0, 1.0):
            reach = np.max(sign * moves, axis=1).clip(min=0.0)
            reach *= np.where(np.argmax(sign * moves, axis=1), 1.0, -1.0)
            found.append(estimate + sign * math.sqrt(max(reach @ correlation @ reach, 0.0)))
        return Ends(*found)

    return Estimated(estimate, *map(ends, WHOM, correlations))
