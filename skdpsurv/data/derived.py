"""Features that follow from others: the curves of a spline from its line, products from factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skdpsurv.data.feature import Expression, Feature
from skdpsurv.data.natural_spline import curve
from skdpsurv.dp.types import FloatArray


class Derived(NamedTuple):
    """A feature that follows from others: their product, or a curve of one, with its numbers."""

    place: int
    of: tuple[int, ...]
    numbers: tuple[float, ...] = ()

    def values(self, rows: FloatArray) -> FloatArray:
        """Return the feature of rows that have the others."""
        if not self.numbers:
            return np.asarray(np.prod(rows[:, list(self.of)], axis=1))
        return np.clip(curve(self.numbers, rows[:, self.of[0]]), -1.0, 1.0)


def derived_features(features: Sequence[Feature]) -> tuple[Derived, ...]:
    """Return the features that follow from others, each after those that it follows from.

    Examples
    --------
    >>> from skdpsurv import PublicColumns
    >>> from skdpsurv.data.derived import derived_features
    >>> interaction = {"interaction": ["age", "treat"]}
    >>> columns = PublicColumns({"age": (0, 90), "treat": bool, "age:treat": interaction})
    >>> derived_features(columns._features())
    (Derived(place=2, of=(0, 1), numbers=()),)
    """
    steps = [_unscaled(one.expression) for one in features]
    if not {"spline", "product"} & {step.kind for step in steps}:
        return ()
    table: dict[tuple[object, ...], int] = {}
    known: dict[int, int] = {}

    def same(step: Expression) -> int:
        """Return a number that equal formulas share."""
        if id(step) not in known:
            parts = tuple(map(same, step.of))
            key = step.kind, repr(step.numbers), parts
            known[id(step)] = table.setdefault(key, len(table))
        return known[id(step)]

    places = {same(one.expression): j for j, one in enumerate(features)}
    lines = {same(step.of[0]): j for j, step in enumerate(steps) if _is_line(step)}
    found = []
    for j, step in enumerate(steps):
        parents: list[int | None] = []
        if step.kind == "product":
            parents = [places.get(same(one)) for one in step.of]
        elif step.kind == "spline" and not _is_line(step):
            parents = [lines.get(same(step.of[0]))]
        # Factors come first, as scikit-learn and interactions have it.
        of = tuple(place for place in parents if place is not None and place != j)
        if of and len(of) == len(parents):
            found.append(Derived(j, of, step.numbers))
    return tuple(sorted(found, key=lambda one: (not one.numbers, one.place)))


def _unscaled(step: Expression) -> Expression:
    """Return the curve that is clipped to its range, or the formula itself."""
    return step.of[0] if step.kind == "scale" and step.of[0].kind == "spline" else step


def _is_line(step: Expression) -> bool:
    """Return whether a spline is the identity: the first of its basis."""
    a0, a1, *bends = step.numbers if step.kind == "spline" else (1.0, 0.0)
    return a0 == 0.0 and a1 == 1.0 and not any(bends[1::2])
