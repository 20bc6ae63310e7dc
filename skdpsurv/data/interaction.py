r"""Interactions: products of the features of two described columns.

A number is in [-1, 1] there, from the middle m of its bounds in halves h of their width. The
coefficient b of its product with a category is one of raw columns but for h: with an indicator d,

.. math:: a \frac{x - m}{h} + c\,d + b\,\frac{x - m}{h}\,d
    = \mathrm{const} + \frac{a}{h} x + \left(c - \frac{b m}{h}\right) d + \frac{b}{h} x d.

So b per unit of x is the coefficient that a regression on x, d and x d has. The coefficient of d is
its effect in the middle of the bounds, where that regression has its effect at x = 0. Both models
are the same. A centred product is little correlated with its factors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.feature import Feature, product_of
from skdpsurv.data.specification_rules import items, require
from skdpsurv.dp.types import FloatArray


@dataclass(frozen=True)
class Interaction:
    """Products of the features of two columns, but for indicators of missing values."""

    name: str
    factors: tuple[ColumnKind, ColumnKind]

    key: ClassVar[str] = "interaction"

    @classmethod
    def specified(cls, name: str, stated: Mapping[Any, Any], kinds: Sequence[ColumnKind]) -> Any:
        """Return the interaction that a specification states of columns of these kinds."""
        require(len(stated) == 1, name, "hold no other key than 'interaction'")
        of = items(name, cls.key, stated[cls.key])
        require(len(of) == 2, name, "have as interaction the names of two columns")
        known = {kind.column: kind for kind in kinds}
        for one in of:
            rule = "have an interaction of described columns, which have their own effects, too"
            require(isinstance(one, str) and one in known, name, rule)
        require(of[0] != of[1], name, "have an interaction of two columns, not of one with itself")
        return cls(name, (known[of[0]], known[of[1]]))

    def features(self) -> list[Feature]:
        """Return the products as features: those of the first column in turn."""
        return [_product(*pair) for pair in product(*map(kept_features, self.factors))]

    def encode(self, encoded: Mapping[str, FloatArray]) -> FloatArray:
        """Return the products of rows of encoded columns, by the names of these."""
        a, b = (encoded[kind.column][:, : len(kept_features(kind))] for kind in self.factors)
        return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)

    def described(self) -> dict[str, Any]:
        """Return the specification, as JSON has it."""
        return {"name": self.name, self.key: [kind.column for kind in self.factors]}


def kept_features(kind: ColumnKind) -> list[Feature]:
    """Return features without the indicator of missing values, which is the last one."""
    return [one for one in kind.features() if one.expression.kind != "missing"]


def _product(one: Feature, other: Feature) -> Feature:
    made = product_of(f"{one.name}:{other.name}", [one, other])
    ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    center = spread = None
    if one.center is not None and other.center is not None:  # as if they were independent
        center = one.center * other.center
        if one.spread is not None and other.spread is not None:
            squares = (one.spread**2 + one.center**2) * (other.spread**2 + other.center**2)
            spread = math.sqrt(max(squares - center**2, 0.0)) or None
    return replace(made, low=min(ends), high=max(ends), center=center, spread=spread)
