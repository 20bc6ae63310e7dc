"""Features: the numbers that a likelihood sees, as formulas of raw columns.

Public transformers are known without data. Their formulas give a release its names, coefficients
their units, and other programs something to compute. Bounds that look wrong are warned of here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skdpsurv.data.over_time import OverTime
from skdpsurv.data.shape import PublicInputWarning
from skdpsurv.dp.references import phrase


@dataclass(frozen=True, eq=False)
class Expression:
    """A formula of raw columns.

    Parameters
    ----------
    kind : str
        The operation on ``of``:

        ======== ========================= ====================================================
        kind     numbers                   value
        ======== ========================= ====================================================
        column   name                      the raw column of that name
        days     date, as "2001-12-31"     days since that date
        clip     low, high                 the nearest number in [low, high]
        scale    centre, half_width        (of - centre) / half_width, clipped to [-1, 1]
        fill     number                    that number where ``of`` is missing
        log      offset, or none           the natural logarithm of (of + offset)
        power    exponent                  that power of it
        spline   a0, a1, t0, b0, t1, ...   a0 + a1 of + the sum of b max(of - t, 0)³
        missing                            1 where ``of`` is missing, else 0
        is       label                     1 where ``of`` is that label, else 0; 0 where missing
        above    threshold                 1 where ``of`` is larger than that number, else 0
        product                            the product of several; 1 of none
        norm     "l1", "l2" or "max"       the norm of several
        share                              the first of two, divided by the second, a norm, or by 1
                                           where that norm is below 2.2e-15
        ======== ========================= ====================================================
    of : tuple of Expression
    numbers : tuple
        Public constants.
    form : str, default=""
        Format of dates written as text, beside ISO 8601. It does not change the formula.
    """

    kind: str
    of: tuple[Expression, ...] = ()
    numbers: tuple[Any, ...] = ()
    form: str = ""


@dataclass(frozen=True, eq=False)
class Feature:
    """One number that a likelihood sees.

    Parameters
    ----------
    name : str
        As ``get_feature_names_out`` of scikit-learn has it.
    expression : Expression
    low, high : float
        Public range.
    column : str or None
        Its raw column, if it depends on one alone.
    level : str, int, bool or None
        The category that it indicates; None for measurements.
    per_unit : float or None
        Change of the feature for one unit of the column, within the bounds, or from the reference
        to the level; of a product, for one unit of each. None where that is not constant. One unit
        of a logarithm is a doubling of its column plus the offset.
    unit : str
        Unit of the column, or "doubling of" it.
    per : float
        Step, in units of the column, that figures show its effect for: as stated, or else a tenth
        of public bounds.
    center, spread : float or None
        Stated typical value and standard deviation, both of the feature itself; None where
        nothing was stated.
    over_time : OverTime or None
        How its effect changes over time, in a hazard regression; None: it does not.
    """

    name: str
    expression: Expression
    low: float = -math.inf
    high: float = math.inf
    column: str | None = None
    level: Any = None
    per_unit: float | None = None
    unit: str = ""
    per: float = 1.0
    center: float | None = None
    spread: float | None = None
    over_time: OverTime | None = None

    @property
    def change(self) -> str:
        """The step in words, such as "+10 years" or "×2"; "" for one unit without a name."""
        if self.is_log:
            offset = sum(self._unscaled.numbers)
            return f"×{2.0**self.per:.4g}" + (f" of {shifted('x', offset)}" if offset else "")
        unit = f" {self.unit}" if 0 < len(self.unit) <= 12 else ""
        return "" if self.per == 1.0 and not unit else f"+{self.per:.4g}{unit}"

    @property
    def raw_bounds(self) -> tuple[Any, ...] | None:
        """The bounds within which it moves with a column of numbers, if it is of such a one."""
        step = self._unscaled
        raw = step.kind == "clip" and step.of[0].kind == "column"
        return step.numbers if raw else None

    @property
    def is_log(self) -> bool:
        """Whether its unit is a doubling of a column plus an offset."""
        return self._unscaled.kind == "log" and self.per_unit is not None

    @property
    def is_curved(self) -> bool:
        """Whether it bends with a column of numbers: by a logarithm, a power or a spline."""
        return self._unscaled.kind in ("log", "power", "spline")

    @property
    def _unscaled(self) -> Expression:
        step = self.expression
        while step.kind in ("fill", "scale"):
            step = step.of[0]
        return step


def shifted(name: str, offset: float) -> str:
    """Return a sum in words, such as "nodes + 1"."""
    return f"{name} {'-' if offset < 0 else '+'} {abs(offset):.12g}" if offset else name


def raw_features(names: Sequence[str]) -> list[Feature]:
    """Return columns as they are."""
    return [
        Feature(name, Expression("column", numbers=(name,)), column=name, per_unit=1.0)
        for name in names
    ]


def product_of(name: str, factors: Sequence[Feature]) -> Feature:
    """Return a product of features: one unit of it is a unit of each, from where they are 0."""
    made = Expression("product", tuple(one.expression for one in factors))
    low, high = (-math.inf, math.inf) if factors else (1.0, 1.0)
    slopes = [one.per_unit for one in factors if one.per_unit is not None]
    slope = math.prod(slopes) if len(slopes) == len(factors) else None
    unit = " × ".join(one.unit for one in factors if one.unit)
    per = math.prod(one.per for one in factors)
    return Feature(name, made, low, high, per_unit=slope, unit=unit, per=per)


def known_names(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return names of columns; without any, x0, x1 and so on, as scikit-learn has it."""
    return [f"x{j}" for j in range(n_features)] if names is None else list(names)


def same_features(some: Sequence[Feature], others: Sequence[Feature]) -> bool:
    """Return whether features are the same formulas of the same raw columns, in the same order."""
    known: dict[tuple[int, int], bool] = {}

    def same(one: Expression, other: Expression) -> bool:
        key = id(one), id(other)
        if key not in known:
            alike = one.kind == other.kind and one.numbers == other.numbers
            alike = alike and len(one.of) == len(other.of)
            known[key] = alike and all(map(same, one.of, other.of))
        return known[key]

    return len(some) == len(others) and all(
        same(a.expression, b.expression) for a, b in zip(some, others, strict=True)
    )


def require_same_units(who: str, *tables: Sequence[Feature]) -> None:
    """Refuse tables that state different units for one column.

    :func:`same_features` ignores units: formulas in years and in months agree where bounds do.
    """
    units: dict[str, str] = {}
    for feature in (one for features in tables for one in features):
        if not feature.unit or feature.column is None:
            continue
        first = units.setdefault(str(feature.column), feature.unit)
        if feature.unit != first:
            raise ValueError(
                f"{who} must measure column {feature.column!r} in the same unit, {first}, "
                f"got {feature.unit}."
            )


#: Width of bounds, or ratio of positive ones, above which they are called wide.
WIDE = 1e6
#: Horizons up to ``SHORT`` are mostly in years; bounds ``MANY`` times as wide are in smaller units.
SHORT, MANY = 20.0, 100.0
SMALL_UNITS = frozenset(
    name + plural for name in ("minute", "hour", "day", "week", "month") for plural in ("", "s")
)


def wide_bounds(features: Sequence[Feature]) -> list[str]:
    """Return a warning if the public bounds of a column span a million."""
    wide = [
        f"column {feature.column!r} has public bounds {low:g} to {high:g}"
        for feature, low, high in _bounded(features)
        if high - low >= WIDE or (low > 0 and high / low >= WIDE)
    ]
    if not wide:
        return []
    others = f" (and {len(wide) - 1} more like it)" if len(wide) > 1 else ""
    return [phrase("wide_bounds", wide=f"{wide[0]}{others}")]


def warn_of_wide_bounds(features: Sequence[Feature]) -> None:
    """Warn of wide bounds where a scaler is used by itself, as in a pipeline of scikit-learn."""
    for message in wide_bounds(features):
        warnings.warn(message, PublicInputWarning, stacklevel=4)


def short_horizon(features: Sequence[Feature], max_time: float) -> list[str]:
    """Return a warning if a horizon looks like years beside bounds in smaller units.

    Dates do not count: they are days whatever the unit of the times.
    """
    if max_time > SHORT:
        return []
    return [
        phrase("short_horizon", max_time=max_time, column=f.column, width=high - low, unit=f.unit)
        for f, low, high in _bounded(features)
        if f.unit.lower() in SMALL_UNITS and high - low >= MANY * max_time
    ][:1]


def _bounded(features: Sequence[Feature]) -> list[Any]:
    """Return the features that are numbers of one column, with its public bounds."""
    return [(feature, *ends) for feature in features if (ends := feature.raw_bounds)]
