"""Kinds of public columns that hold numbers: as they are, or by a logarithm, a power, a curve."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from scipy import special

from skdpsurv.data.cells import numbers, quietly
from skdpsurv.data.column_kind import Bounded, ColumnKind
from skdpsurv.data.feature import Expression, Feature, shifted
from skdpsurv.data.natural_spline import curve, natural_basis
from skdpsurv.data.specification_rules import items, require
from skdpsurv.dp.checks import is_integer, is_real
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import FloatArray

#: Degrees of freedom of splines: the smallest, the usual and the largest number.
DF = (2, 3, 5)
#: Least distance of knots, as a part of the distance of the bounds.
APART = 0.01
#: Part of the bounds at either end in which the typical value of a skewed column lies.
SKEWED = 0.15
#: Number of points of a normal distribution for means and deviations of curves.
N_POINTS = 200


@dataclass(frozen=True)
class Number(Bounded):
    """A number with public bounds."""

    ends: tuple[float, float]  # type: ignore[misc]

    key: ClassVar[str] = "bounds"
    such_as: ClassVar[Any] = [0, 100]
    options: ClassVar[tuple[str, ...]] = ("unit",)
    cell: ClassVar[Any] = float
    _values: ClassVar[Any] = staticmethod(numbers)
    must_hold: ClassVar[str] = "numbers"
    hint: ClassVar[str] = "text is none, even of digits or with a decimal comma"

    @classmethod
    def _specified(cls, column: str, missing: str, bounds: Any, stated: Any) -> Self:
        ends, unit = items(column, cls.key, bounds), stated.get("unit", "")
        require(all(map(is_real, ends)), column, "have numbers as bounds", TypeError)
        floats = quietly(lambda: [float(end) for end in ends]) if len(ends) == 2 else None
        low, high = floats or (np.nan, np.nan)
        apart = high / 2 - low / 2 >= sys.float_info.min  # below, the inverse overflows
        rule = "have two finite bounds, the lower one first, and not too near each other"
        require(apart and bool(np.isfinite([low, high]).all()), column, rule)
        rule = f"have text as unit, got {type(unit).__name__}"
        require(isinstance(unit, str), column, rule, TypeError)
        # Plain text, whatever its class: str() of a member of an enumeration is its name.
        return cls(column, missing, (low, high), unit=str.__str__(unit))

    def _specification(self) -> dict[str, Any]:
        return super()._specification() | {"unit": self.unit}

    def words(self) -> str:
        """Return a description in plain words."""
        ends = f"{self.ends[0]:.12g} to {self.ends[1]:.12g}{self.unit and ' '}{self.unit}"
        return f"a number from {ends}, beyond which it counts as the bound"


@dataclass(frozen=True)
class Log(Number):
    """A number that acts by the logarithm of its sum with an offset: per doubling of that."""

    offset: float = field(default=0.0, kw_only=True)

    key: ClassVar[str] = "log"
    such_as: ClassVar[Any] = [0.1, 50]
    options: ClassVar[tuple[str, ...]] = ("offset", "unit")
    step: ClassVar[float] = math.log(2.0)

    @classmethod
    def _specified(cls, column: str, missing: str, bounds: Any, stated: Any) -> Self:
        found, offset = super()._specified(column, missing, bounds, stated), stated.get("offset", 0)
        require(is_real(offset), column, "have a number as offset", TypeError)
        low, high = (end + float(offset) for end in found.ends)
        rule = "have an offset, such as 1, with which its bounds have unequal logarithms"
        require(0.0 < low < high < math.inf and math.log(low) < math.log(high), column, rule)
        return replace(found, offset=float(offset))

    def _scale(self) -> tuple[tuple[float, float], tuple[float, float]]:
        low, high = (math.log(end + self.offset) for end in self.ends)
        return (low / 2 + high / 2, high / 2 - low / 2), self.ends

    def _transformed(self, values: FloatArray) -> FloatArray:
        return _one_by_one(math.log, values + self.offset)

    def _formula(self, clipped: Expression) -> Expression:
        return Expression("log", (clipped,), (self.offset,))

    def _features(self, raw: Expression) -> list[Feature]:
        (one,) = super()._features(raw)
        unit = f"doubling of {shifted(self.column, self.offset)}"
        unit += f" ({self.unit})" if self.unit else ""
        return [replace(one, unit=unit, per=self.per or 1.0)]

    def value_at(self, place: Any) -> Any:
        """Return the value whose logarithm is at a place between those of the bounds."""
        (centre, half_width), ends = self._scale()
        return np.clip(np.exp(centre + place * half_width) - self.offset, *ends)

    def _specification(self) -> dict[str, Any]:
        return super()._specification() | {"offset": self.offset}

    def words(self) -> str:
        """Return a description in plain words."""
        return f"{super().words()}; effects are per doubling of {shifted('it', self.offset)}"


@dataclass(frozen=True)
class Power(Number):
    """A number that acts by a power of it, such as its square or its inverse."""

    exponent: float = field(default=2.0, kw_only=True)

    key: ClassVar[str] = "power"
    such_as: ClassVar[Any] = [0, 9]
    options: ClassVar[tuple[str, ...]] = ("exponent", "unit")

    @classmethod
    def _specified(cls, column: str, missing: str, bounds: Any, stated: Any) -> Self:
        found, exponent = (
            super()._specified(column, missing, bounds, stated),
            stated.get("exponent", 2),
        )
        rule = "have as exponent a number other than 0, from -10 to 10"
        require(is_real(exponent) and 0.0 < abs(exponent) <= 10.0, column, rule)
        found = replace(found, exponent=float(exponent))
        least = "positive" if exponent < 0 else "not negative"
        fits = found.ends[0] > 0.0 or (found.ends[0] == 0.0 and exponent > 0)
        require(fits, column, f"have bounds that are {least}, for its exponent")
        (_, half), _ = quietly(found._scale) or ((0.0, 0.0), ())
        rule = "have bounds whose powers are finite, and not too near each other"
        require(sys.float_info.min <= half < math.inf, column, rule)
        return found

    def _scale(self) -> tuple[tuple[float, float], tuple[float, float]]:
        low, high = sorted(math.pow(end, self.exponent) for end in self.ends)
        return (low / 2 + high / 2, high / 2 - low / 2), self.ends

    def _transformed(self, values: FloatArray) -> FloatArray:
        return _one_by_one(partial(_power, exponent=self.exponent), values)

    def _formula(self, clipped: Expression) -> Expression:
        return Expression("power", (clipped,), (self.exponent,))

    def _features(self, raw: Expression) -> list[Feature]:
        (one,) = super()._features(raw)
        unit = f"{self.column}^{self.exponent:g}"
        return [replace(one, unit=f"{unit} ({self.unit})" if self.unit else unit)]

    def value_at(self, place: Any) -> Any:
        """Return the value whose power is at a place between those of the bounds."""
        (centre, half_width), ends = self._scale()
        turned = place * half_width * math.copysign(1.0, self.exponent)
        least, most = sorted(math.pow(end, self.exponent) for end in ends)
        return np.clip(np.clip(centre + turned, least, most) ** (1.0 / self.exponent), *ends)

    def _specification(self) -> dict[str, Any]:
        return super()._specification() | {"exponent": self.exponent}

    def words(self) -> str:
        """Return a description in plain words."""
        return f"{super().words()}; effects are of its power {self.exponent:g}"


@dataclass(frozen=True)
class Spline(Number):
    """A number that acts by a natural cubic spline with knots at the bounds and ``knots``."""

    knots: tuple[float, ...] = field(default=(), kw_only=True)
    stated: bool = field(default=False, kw_only=True)

    key: ClassVar[str] = "spline"
    such_as: ClassVar[Any] = [15, 60]
    options: ClassVar[tuple[str, ...]] = ("df", "knots", "unit")

    @classmethod
    def _specified(cls, column: str, missing: str, bounds: Any, stated: Any) -> Self:
        found = super()._specified(column, missing, bounds, stated)
        (low, high), has_knots = found.ends, "knots" in stated
        inner = items(column, "knots", stated["knots"]) if has_knots else []
        require(all(map(is_real, inner)), column, "have numbers as knots", TypeError)
        df = stated.get("df", len(inner) + 1 if has_knots else DF[1])
        rule = f"have as df an integer from {DF[0]} to {DF[-1]}"
        rule += ", one more than there are knots between the bounds" * has_knots
        fits = is_integer(df) and DF[0] <= df <= DF[-1]
        require(fits and (not has_knots or df == len(inner) + 1), column, rule)
        evenly = [low + (high - low) * j / int(df) for j in range(1, int(df))]
        every = [low, *(map(float, inner) if has_knots else evenly), high]
        rule = "have rising knots between its bounds, a hundredth of their distance apart"
        gaps = [after / 2 - before / 2 for before, after in pairwise(every)]
        require(all(gap >= APART * (high / 2 - low / 2) for gap in gaps), column, rule)
        return replace(found, knots=tuple(every[1:-1]), stated=has_knots)

    def _basis(self) -> tuple[tuple[float, ...], ...]:
        (centre, half_width), _ = self._scale()
        return natural_basis(tuple((knot - centre) / half_width for knot in self.knots))

    def _encoded(self, values: FloatArray, missing: Any) -> list[Any]:
        (places,) = super()._encoded(values, missing)
        return [np.clip(curve(terms, places), -1.0, 1.0) for terms in self._basis()]

    def _features(self, raw: Expression) -> list[Feature]:
        (line,), found = super()._features(raw), []
        means, spreads = self._known()
        for j, (terms, mean, spread) in enumerate(zip(self._basis(), means, spreads, strict=True)):
            made = Expression("spline", (line.expression,), terms)
            made = Expression("scale", (made,), (0.0, 1.0))
            # Neither a unit nor a step: a curve has no slope.
            one = replace(line, name=f"{self.column}_spline{j + 1}", unit="", per=1.0)
            found.append(replace(one, expression=made, per_unit=None, center=mean, spread=spread))
        return found

    def _known(self) -> tuple[list[float | None], list[float | None]]:
        """Return means and deviations of the curves where the number is normal, as it is stated."""
        unknown: list[float | None] = [None] * (len(self.knots) + 1)
        if self.typical is None and self.spread is None:
            return unknown, unknown
        middle = self.value_at(0.0) if self.typical is None else float(self.typical)
        z = special.ndtri((np.arange(N_POINTS) + 0.5) / N_POINTS)
        values = middle + z * (0.0 if self.spread is None else self.spread)
        curves = self._encoded(values, np.zeros(N_POINTS, dtype=bool))
        means, spreads = ([f(one).item() for one in curves] for f in (np.mean, np.std))
        has_spread = self.spread is not None
        return unknown if self.typical is None else means, spreads if has_spread else unknown

    def _specification(self) -> dict[str, Any]:
        more = {"knots": list(self.knots)} if self.stated else {"df": len(self.knots) + 1}
        return super()._specification() | more

    def words(self) -> str:
        """Return a description in plain words."""
        knots = ", ".join(f"{knot:.12g}" for knot in self.knots)
        return f"{super().words()}; effects are a smooth curve with knots at {knots} and the bounds"


def _one_by_one(function: Callable[[float], float], values: FloatArray) -> FloatArray:
    # Loops of NumPy might round a number by its place among others.
    return np.array([*map(function, values.tolist())], dtype=np.float64)


def _power(value: float, exponent: float) -> float:
    return math.pow(value, exponent)


def skewed_columns(kinds: Iterable[ColumnKind | None]) -> list[str]:
    """Return a warning if the typical value of a number is near an end of its bounds."""
    for one in kinds:
        center = (
            one.features()[0].center if type(one) is Number and one.typical is not None else None
        )
        if one and center is not None and abs(center) > 1.0 - 2.0 * SKEWED:
            low, high = one.ends
            offset = "" if low > 0.0 else f', "offset": {1.0 - low:g}'
            logs = phrase("or_logarithms", low=low, high=high, offset=offset) if center < 0 else ""
            told = {"column": one.column, "typical": one.typical, "low": low, "high": high}
            return [phrase("skewed", **told, logs=logs)]
    return []
