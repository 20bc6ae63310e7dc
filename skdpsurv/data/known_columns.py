r"""Centres and spreads of features by public knowledge, and what noisy moments add to it.

A feature between public ends l and h is read as :math:`u = (2x - l - h)/(h - l)`, in [-1, 1].
Variances of u have a prior: that of the stated spread, or one that all measured features of a kind
share,

.. math::
    g = \frac{\sum_j a_j v_j + .35/.3^2}{\sum_j a_j + 1/.3^2}, \quad a_j = \frac{1}{.2^2 + t_j^2},
    \qquad \hat v_j = \frac{(.6 g)^2 v_j + t_j^2 g}{(.6 g)^2 + t_j^2}

with :math:`v_j` a measured variance and :math:`t_j` the deviation of its noise. Features with two
values, and others, are kinds of their own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdpsurv.data.derived import Derived, derived_features
from skdpsurv.data.feature import Feature, same_features
from skdpsurv.dp.types import BoolArray, FloatArray

#: Mean and variance of a feature, on its scale, and the standard error of the variance.
Moments = tuple[float, float, float]
#: Prior of the variance that features of a kind share: its mean and deviation, and the deviation of
#: single features around it. Half the width of bounds is 1.
SHARED_VARIANCE, SHARED_DEVIATION, OWN_DEVIATION = 0.35, 0.3, 0.2
#: Deviation of a variance around a stated or shared one, relative to that.
RELATIVE_DEVIATION = 0.6
#: The smallest variance, relative to the stated or shared one: a scale a factor 3 below.
SMALLEST_PART = 1.0 / 9.0
#: The smallest variance of all, so that rows stay finite.
SMALLEST_VARIANCE = 1e-12
#: Expressions whose values are 0 and 1 alone, and those of which one column has one at a time.
TWO_VALUED, EXCLUSIVE = ("is", "missing", "above"), ("is", "missing")


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """What is public of features: their ends, and perhaps centres and variances, of u.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
    two_valued : ndarray of bool of shape (n_features,)
        True where only the ends occur.
    squared_move : int
        Bound on the squared distance of two records' vectors of u and of 1.6 (u² - 1/2), the latter
        for features of more than two values (docs/proofs/noise).
    center, variance : ndarray of shape (n_features,)
        NaN where nothing was stated.
    groups : tuple of tuple of int
        Places of features with two values; of those in one group at most one is at its high end.
    derived : tuple of Derived
        Features that follow from others.
    """

    low: FloatArray
    high: FloatArray
    two_valued: BoolArray
    squared_move: int
    center: FloatArray
    variance: FloatArray
    groups: tuple[tuple[int, ...], ...] = ()
    derived: tuple[Derived, ...] = ()

    @classmethod
    def of(cls, features: Sequence[Feature]) -> Self | None:
        """Read the public ends of features; None if one has none."""
        low, high = (
            np.array(ends) for ends in ([f.low for f in features], [f.high for f in features])
        )
        if not (features and np.isfinite(high - low).all() and (high > low).all()):
            return None
        two_valued = np.array([_is_two_valued(one) for one in features])
        # Of indicators of one column with different labels, a record has one at most: it leaves
        # one and enters another, each of which moves by 2.
        labels: Counter[Any] = Counter()
        groups: defaultdict[Any, list[int]] = defaultdict(list)
        for place, one in enumerate(features):
            if (made := one.expression).kind in EXCLUSIVE and made.of[0].kind == "column":
                column = made.of[0].numbers
                label = column, made.kind, tuple(map(repr, made.numbers))
                groups[column, labels[label]].append(place)
                labels[label] += 1
        exclusive = {place for group in groups.values() for place in group}
        alone = set(range(len(features))) - exclusive
        move = 4 * len(alone) + sum(min(8, 4 * len(group)) for group in groups.values())
        single = [[place] for place in sorted(alone) if two_valued[place]]
        together = tuple(map(tuple, [*groups.values(), *single]))
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        center, spread = (
            np.array([np.nan if v is None else v for v in stated], dtype=np.float64)
            for stated in ([f.center for f in features], [f.spread for f in features])
        )
        stated = (
            np.clip((center - middle) / half, -1.0, 1.0),
            np.maximum((spread / half) ** 2, SMALLEST_VARIANCE),
        )
        return cls(low, high, two_valued, move, *stated, together, derived_features(features))

    @property
    def _scale(self) -> tuple[FloatArray, FloatArray]:
        """Middles and halves of the ranges between the ends."""
        return self.low / 2 + self.high / 2, self.high / 2 - self.low / 2

    @property
    def is_complete(self) -> bool:
        """Whether all centres and spreads are stated."""
        return bool(np.isfinite(self.center).all() and np.isfinite(self.variance).all())

    @property
    def states_spreads(self) -> bool:
        """Whether the spread of a feature is stated."""
        return bool(np.isfinite(self.variance).any())

    def units(self, rows: FloatArray) -> FloatArray:
        """Return rows of features as numbers u in [-1, 1]."""
        middle, half = self._scale
        return np.clip((rows - middle) / half, -1.0, 1.0)

    def with_derived(self, rows: FloatArray) -> FloatArray:
        """Return rows of features within their ends, with those that follow from others."""
        rows = np.clip(rows, self.low, self.high)
        for one in self.derived:
            rows[:, one.place] = one.values(rows)
        return rows

    def in_features(
        self, center: FloatArray, variance: FloatArray, *, shared: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return centres and scales on the scale of the features, by those of u.

        ``shared``: features with two values have one scale, the root of their mean variance. The
        effect of a rare label is no larger than that of a common one, so that it matters less for
        predictions.
        """
        variance, two_valued = variance.copy(), self.two_valued
        if shared and two_valued.any():
            variance[two_valued] = variance[two_valued].mean()
        middle, half = self._scale
        return middle + half * center, half * np.sqrt(variance)

    def scales(self, *, shared: bool) -> tuple[FloatArray, FloatArray]:
        """Return centres and scales, as far as they are stated, on the scale of the features."""
        known = self.completed()
        return known.in_features(known.center, np.clip(known.variance, 0.0, 1.0), shared=shared)

    def completed(self) -> Self:
        """Return the columns with the middle of the bounds and a usual spread where unknown."""
        variance = np.nan_to_num(self.variance, nan=SHARED_VARIANCE)
        return replace(self, center=np.nan_to_num(self.center, nan=0.0), variance=variance)

    def variances(self, measured: FloatArray, noise: FloatArray) -> FloatArray:
        """Return variances of u, given measured ones and the variances of their noise."""
        shared = np.empty_like(measured)
        for kind in (self.two_valued, ~self.two_valued):
            precision = 1.0 / (OWN_DEVIATION**2 + noise[kind])
            total = precision.sum() + SHARED_DEVIATION**-2
            mean = (precision @ measured[kind] + SHARED_VARIANCE / SHARED_DEVIATION**2) / total
            shared[kind] = max(mean, 0.5 / np.sqrt(total))
        prior = np.where(np.isnan(self.variance), shared, self.variance)
        own = (RELATIVE_DEVIATION * prior) ** 2
        weight = own / (own + noise)
        found = prior + weight * (measured - prior)
        # Where noise is small, so may a variance be; elsewhere it would be noise.
        error = RELATIVE_DEVIATION * prior * np.sqrt(1.0 - weight)
        return np.clip(
            found, np.minimum(SMALLEST_PART * prior, np.maximum(error, SMALLEST_VARIANCE)), 1.0
        )

    def released(
        self, features: Sequence[Feature], found: Iterable[tuple[Feature, Moments]]
    ) -> Self:
        """Return the columns, of ``features``, with released moments of the same ones.

        NaN stands where nothing was released; what the columns state is kept.
        """
        theirs = {one.name: (one, moments) for one, moments in found}
        rows = np.full((3, len(features)), np.nan)
        for j, feature in enumerate(features):
            match = theirs.get(feature.name)
            if match is not None and same_features([match[0]], [feature]):
                rows[:, j] = match[1]
        center, variance, error = rows
        middle, half = self._scale
        known = np.isfinite(center) & np.isfinite(variance)
        measured = np.where(known, np.minimum(variance / half**2, 1.0), 0.0)
        noise = np.where(known, (error / half**2) ** 2, np.inf)
        variance = np.where(known, self.variances(measured, noise), np.nan)
        place = np.clip((center - middle) / half, -1.0, 1.0)
        return replace(
            self,
            center=np.where(np.isnan(self.center), place, self.center),
            variance=np.where(np.isnan(self.variance), variance, self.variance),
        )


def _is_two_valued(feature: Feature) -> bool:
    kind = feature.expression.kind
    return kind in TWO_VALUED or (kind == "column" and feature.level is True)
