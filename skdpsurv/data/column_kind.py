"""Base classes of kinds of public columns, with all methods that other modules call.

A kind is known without data. It reads private cells into an array, and encodes that row by row.
Data may be passed as a specification by mistake: messages name columns, keys and rules alone.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from skdpsurv.data.cells import quietly
from skdpsurv.data.feature import Expression, Feature
from skdpsurv.data.over_time import OverTime
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.dp.types import FloatArray

_LARGEST = sys.float_info.max


@dataclass(frozen=True)
class ColumnKind:
    """A public description of one column: ``typical`` is a cell (ISO 8601), ``per`` a step.

    ``spread`` is a standard deviation, and ``prevalence`` holds the share of each label, as stated.
    It has ``labels``, as which values are numbered, or is ``bounded`` by ``ends``, or neither.
    """

    column: str
    missing: str
    typical: Any = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True)
    per: float | None = field(default=None, kw_only=True)
    spread: float | None = field(default=None, kw_only=True)
    prevalence: tuple[float, ...] | None = field(default=None, kw_only=True)
    #: How its effect changes over time, in hazard regressions; None: it does not.
    over_time: OverTime | None = field(default=None, kw_only=True)
    #: Public labels, and the one that others are compared with.
    labels: tuple[Any, ...] = field(default=(), kw_only=True)
    reference: Any = field(default=None, kw_only=True)

    #: The key of a specification that states this kind, and other keys that it may hold, beside
    #: those that all have. A kind is told the whole specification, and the ``drop`` of all.
    key: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()
    #: An example of the key's content, in JSON, with which tests try all kinds.
    such_as: ClassVar[Any]
    #: Subclasses implement these methods.
    _specified: ClassVar[Any]
    _values: ClassVar[Any]
    _encoded: ClassVar[Any]
    _features: ClassVar[Any]
    words: ClassVar[Any]
    #: Whether values lie between public bounds, and the bounds of the values that are read.
    bounded: ClassVar[bool] = False
    ends: ClassVar[tuple[float, float]] = (0.0, 0.0)
    #: How far one unit of effects moves what is scaled.
    step: ClassVar[float] = 1.0
    #: Whether missing cells may be filled by the middle of the bounds.
    fillable: ClassVar[bool] = True
    #: Whether values of a study are spread evenly between the bounds, as dates of entry are.
    even: ClassVar[bool] = False
    #: Whether its two labels say that something holds or not: tables show the second alone.
    condition: ClassVar[bool] = False
    #: For messages: the required contents, and a common mistake.
    must_hold: ClassVar[str]
    hint: ClassVar[str] = ""

    def read(self, cells: Any) -> Any:
        """Read cells into an array, or refuse them naming the column and the rule alone."""
        values = quietly(self._values, cells)
        if values is None:
            raise self._refusal(f"must hold {self.must_hold} alone in", self.hint)
        if np.isinf(values).any():
            raise self._refusal("must not contain infinity (inf), found in")
        if self.missing == "error" and np.isnan(values).any():
            remedy = "missing='midpoint' is the middle of its bounds, " * self.fillable
            remedy += "missing='category' makes a feature of it"
            raise self._refusal("must not contain NaN or None, found in", remedy)
        return values

    def _refusal(self, rule: str, remedy: str = "") -> ValueError:
        return InputValueError(f"X {rule} column {self.column!r}{remedy and ': '}{remedy}.")

    def encode(self, values: Any) -> list[Any]:
        """Return values, as :meth:`read` returned them, as features: a list of arrays."""
        missing = np.isnan(values)
        return [*self._encoded(values, missing), *[missing] * (self.missing == "category")]

    def features(self) -> list[Feature]:
        """Return the features of the column."""
        raw = Expression("column", numbers=(self.column,))
        found: list[Feature] = self._features(raw)
        if self.prevalence is not None:
            shares = dict(zip(self.labels, self.prevalence, strict=True))
            for j, one in enumerate(found):
                p = shares[one.level] / sum(self.prevalence)
                found[j] = replace(one, center=p, spread=math.sqrt(p * (1.0 - p)))
        found = [replace(one, over_time=self.over_time) for one in found]
        if self.missing == "category":
            found.append(self._indicator(Expression("missing", (raw,)), "missing"))
        return found

    def _indicator(self, expression: Expression, level: Any) -> Feature:
        name = f"{self.column}_{level}"
        return Feature(name, expression, 0.0, 1.0, self.column, level, per_unit=1.0)

    def _filled(self, expression: Expression, midpoint: float) -> Expression:
        if self.missing == "error":
            return expression
        return Expression("fill", (expression,), (midpoint,))

    def _specification(self) -> dict[str, Any]:
        return {self.key: list(self.labels or self.ends)}

    def described(self) -> dict[str, Any]:
        """Return the specification, as JSON has it."""
        stated = {"missing": self.missing, "typical": self.typical, "per": self.per}
        stated |= {"spread": self.spread, "prevalence": self.prevalence and [*self.prevalence]}
        if self.prevalence and self.condition:
            stated["prevalence"] = self.prevalence[-1]
        stated["over_time"] = self.over_time and self.over_time.described()
        return self._specification() | {k: v for k, v in stated.items() if v is not None}

    @property
    def reads_text(self) -> bool:
        """Whether cells of a file are text."""
        return isinstance(self.example, str)

    @property
    def example(self) -> Any:
        """The typical cell; else the middle of bounds, the first label, or False."""
        return self.cell(self.value_at(0.0)) if self.typical is None else self.typical

    def others(self) -> list[Any]:
        """Return other cells to compare with the example: all labels, or those at the bounds."""
        cells = self.labels or map(self.cell, self.ends)
        return [cell for cell in cells if cell != self.example]

    def cell_at(self, place: float) -> Any:
        """Return the cell at a place from the first end or label, 0, to the last, 1, or beyond."""
        if self.labels:
            return self.labels[round(min(place, 1.0) * (len(self.labels) - 1))]
        low, high = self.ends
        return self.cell(low + place * (high - low))

    def value_at(self, place: Any) -> Any:
        """Return the value that is scaled to a place, from the lower bound, -1, to the upper, 1."""
        low, high = self.ends  # halves first, since high - low may overflow
        return (low / 2 + high / 2) + place * (high / 2 - low / 2)

    def cell(self, value: Any) -> Any:
        """Return the cell that is read as a value."""
        return self.labels[int(value)]

    def cells(self, values: FloatArray) -> Any:
        """Return raw cells that would be read as these values."""
        return pd.Series(list(map(self.cell, values.tolist())))

    def out_of_bounds(self, values: FloatArray) -> bool:
        """Return whether a value lies beyond the bounds."""
        low, high = self.ends
        return self.bounded and bool(np.any((values < low) | (values > high)))


@dataclass(frozen=True)
class Bounded(ColumnKind):
    """A column with public bounds, by which it is scaled."""

    bounded: ClassVar[bool] = True

    @property
    def width(self) -> float:
        """The width of the bounds of what is scaled."""
        return 2.0 * self._scale()[0][1]

    def _scale(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return centre and half width, and the ends to which values are clipped before scaling."""
        low, high = self.ends
        # As PublicBoundsScaler has it: halve first, since high - low may overflow.
        centre, half_width = low / 2 + high / 2, high / 2 - low / 2
        # One rounding beyond the largest float is infinity, which JSON has not.
        ends = max(centre - half_width, -_LARGEST), min(centre + half_width, _LARGEST)
        return (centre, half_width), ends

    def _encoded(self, values: FloatArray, missing: Any) -> list[Any]:
        (centre, half_width), ends = self._scale()
        # First clip, then scale: differences of finite floats may overflow.
        values = self._transformed(np.clip(values, *ends))
        values = np.clip((values - centre) / half_width, -1.0, 1.0)
        values[missing] = 0.0
        return [values]

    def _features(self, raw: Expression) -> list[Feature]:
        scale, ends = self._scale()
        clipped = self._formula(Expression("clip", (raw,), ends))
        made = self._filled(Expression("scale", (clipped,), scale), 0.0)
        own = self.column, None, self.step / scale[1], self.unit, self.per or scale[1] / 5.0
        center = None
        if self.typical is not None:
            typical = self.read(np.array([self.typical], dtype=object))
            center = self._encoded(typical, np.isnan(typical))[0].item()
        spread = None if self.spread is None else self.spread / scale[1]
        return [Feature(self.column, made, -1.0, 1.0, *own, center, spread)]

    def _transformed(self, values: FloatArray) -> FloatArray:
        """Return clipped values as they are scaled; ``_formula`` says the same."""
        return values

    def _formula(self, clipped: Expression) -> Expression:
        return clipped
