r"""Standardised differences between two groups, with intervals that know the noise.

Numbers: :math:`d = (\mu_1 - \mu_0) / s` with :math:`s^2 = (\sigma_0^2 + \sigma_1^2) / 2`. Two
labels: the same with shares, :math:`\sigma^2 = p (1 - p)`.

Noise makes small differences and standard deviations look larger or smaller. So the interval holds
all d of values within the intervals of both means and both deviations, or of both shares, which are
so wide that all of them hold together (Bonferroni). There is none for more than two labels: their
difference is a length, which noise only adds to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter

import numpy as np

from skdpsurv.descriptive.intervals import UNKNOWN, Ends, Estimated, Level, Moments, share
from skdpsurv.descriptive.solution import Solved
from skdpsurv.dp.types import FloatArray

UNSAID = Estimated(math.nan, UNKNOWN, UNKNOWN)
#: Values of each share at which differences are looked at.
STEPS = 65
#: The interval for these people, and that for their population.
WHOM: tuple[Callable[[Estimated], Ends], ...] = attrgetter("people"), attrgetter("population")


def of_numbers(solved: Solved, points: FloatArray, pair: FloatArray, level: Level) -> Estimated:
    """Return the standardised difference of means; ``pair`` chooses the two groups."""
    both = [Moments(solved, points, chosen, level.split(4)) for chosen in pair]
    (mean, spread), (other_mean, other_spread) = ((one.mean(), one.deviation()) for one in both)

    def ends(of: Callable[[Estimated], Ends]) -> Ends:
        first, second = of(mean), of(other_mean)
        move = second.low - first.high, second.high - first.low
        scales = [_scale(of(spread)[k], of(other_spread)[k]) for k in (0, 1)]
        if not scales[0] > 0.0:
            return UNKNOWN
        return Ends(min(move[0] / s for s in scales), max(move[1] / s for s in scales))

    scale = _scale(spread.estimate, other_spread.estimate)
    if not scale > 0.0:
        return UNSAID
    d = (other_mean.estimate - mean.estimate) / scale
    return Estimated(d, *map(ends, WHOM))


def of_labels(solved: Solved, n_labels: int, pair: FloatArray, level: Level) -> Estimated:
    """Return the standardised difference of the shares of two labels; of more there is none."""
    if n_labels != 2:
        return UNSAID
    n_cells = solved.cells.shape[1]
    last, present = np.eye(n_cells)[1], (np.arange(n_cells) < 2).astype(np.float64)
    first, second = (
        share(solved, np.outer(chosen, last), np.outer(chosen, present), level.split(2))
        for chosen in pair
    )

    def ends(of: Callable[[Estimated], Ends]) -> Ends:
        p, q = np.linspace(*of(first), STEPS)[:, None], np.linspace(*of(second), STEPS)
        scale = np.sqrt(0.5 * (p * (1.0 - p) + q * (1.0 - q)))
        if not scale.min() > 0.0:
            return UNKNOWN
        found = (q - p) / scale
        return Ends(float(found.min()), float(found.max()))

    p, q = first.estimate, second.estimate
    scale = math.sqrt(0.5 * (p * (1.0 - p) + q * (1.0 - q)))
    if not scale > 0.0:
        return UNSAID
    return Estimated((q - p) / scale, *map(ends, WHOM))


def _scale(one: float, other: float) -> float:
    return math.sqrt(0.5 * (one**2 + other**2))
