"""Features: the numbers that a likelihood sees, as formulas of raw columns.

A public transformer is known without data: what it makes of columns is written down here, feature
by feature. That gives a release its names, the coefficients their units, and whoever has neither
this package nor Python a formula to compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Expression:
    """A formula of raw columns.

    Parameters
    ----------
    kind : str
        What is computed of ``of``:

        ======== ========================= ====================================================
        kind     numbers                   value
        ======== ========================= ====================================================
        column   name                      the raw column of that name
        days     date, as "2001-12-31"     days since that date
        clip     low, high                 the nearest number in [low, high]
        scale    centre, half_width        (of - centre) / half_width, clipped to [-1, 1]
        fill     number                    that number where ``of`` is missing
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
        Of days: how dates may be written, as text, beside ISO 8601. The same formula in any form.
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
        Its public range.
    column : str or None
        The raw column that it is made of, if it is made of one alone.
    level : str, int, bool or None
        The category that it indicates; None of what is measured.
    per_unit : float or None
        How far it moves with one unit of the column, within the bounds, or from the reference to
        the level. None where that is no constant.
    unit : str
        Unit of the column.
    """

    name: str
    expression: Expression
    low: float = -math.inf
    high: float = math.inf
    column: str | None = None
    level: Any = None
    per_unit: float | None = None
    unit: str = ""


def raw_features(names: Sequence[str]) -> list[Feature]:
    """Return columns as they are."""
    return [
        Feature(name, Expression("column", numbers=(name,)), column=name, per_unit=1.0)
        for name in names
    ]


def known_names(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return names of columns; x0, x1 and so on, as scikit-learn has it, of those without."""
    return [f"x{j}" for j in range(n_features)] if names is None else list(names)


def same_features(some: Sequence[Feature], others: Sequence[Feature]) -> bool:
    """Say whether features are the same formulas of the same raw columns, in the same order."""
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
    """Refuse tables that measure a column in different units, of those that state one.

    Formulas are the same in years and in months where bounds are, and :func:`same_features` looks
    at no unit.

    Parameters
    ----------
    who : str
        Whose fault it is, for the message.
    *tables : sequence of Feature

    Raises
    ------
    ValueError
        Naming the column, the unit that is stated first, and another one.
    """
    units: dict[str, str] = {}
    for feature in (feature for features in tables for feature in features):
        if feature.column is None or not feature.unit:
            continue
        first = units.setdefault(feature.column, feature.unit)
        if feature.unit != first:
            raise ValueError(
                f"{who} must measure column {feature.column!r} in the same unit, {first}, "
                f"got {feature.unit}."
            )
