"""Features: the numbers that a likelihood sees, as formulas of raw columns.

A public transformer is known without data: what it makes of columns is written down here, feature
by feature. That gives a release its names, the coefficients their units, and whoever has neither
this package nor Python a formula to compute.

What looks wrong in public numbers, without a look at any record.

Wrong bounds and wrong units cost accuracy in silence: whether records are within bounds is private,
so that no fit may say it. Public numbers that hardly fit each other can be told apart from those
that do, and are asked about before anything is spent.
"""

from __future__ import annotations

import math
import warnings
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
    """
    units: dict[str, str] = {}
    named = [one for features in tables for one in features if one.unit and one.column is not None]
    for feature in named:
        first = units.setdefault(str(feature.column), feature.unit)
        if feature.unit != first:
            raise ValueError(
                f"{who} must measure column {feature.column!r} in the same unit, {first}, "
                f"got {feature.unit}."
            )


#: Of a span, or of an upper bound in units of a lower one.
WIDE = 1e6
#: Horizons up to this many are of years, as a rule; bounds of this many horizons are then of days.
SHORT, MANY = 20.0, 100.0
#: Of n times epsilon, for each coefficient.
LEAST_EACH = 50.0
SMALL_UNITS = frozenset(
    name + plural for name in ("minute", "hour", "day", "week", "month") for plural in ("", "s")
)


#: Records times epsilon, with a fifth of it for standard errors, per squared number of features:
#: with less, most intervals of made-up columns are infinite in simulated studies.
INTERVALS_NEED, USUAL_SHARE = 100.0, 0.2


class PublicInputWarning(UserWarning):
    """Public numbers of a fit that hardly fit each other: it is private, and may be useless."""


def wide_bounds(features: Sequence[Feature]) -> list[str]:
    """Return a question where public bounds of a column span a million."""
    wide = [
        f"column {feature.column!r} has public bounds {low:g} to {high:g}"
        for feature, (low, high) in _bounded(features)
        if high - low >= WIDE or (low > 0 and high / low >= WIDE)
    ]
    if not wide:
        return []
    others = f" (and {len(wide) - 1} more like it)" if len(wide) > 1 else ""
    return [
        f"{wide[0]}{others}. Noise is measured in spans of bounds, and values in a small part of a "
        "span can hardly be told apart: are these the bounds of the protocol, in the unit of the "
        "column? Values that differ by factors are better given as logarithms."
    ]


def small_budget(n_records: int, epsilon: float, n_coefficients: int) -> list[str]:
    """Return what is wrong where each coefficient has few records times epsilon."""
    budget = float(n_records) * epsilon / max(n_coefficients, 1)
    if budget >= LEAST_EACH:
        return []
    needed = math.ceil(LEAST_EACH * n_coefficients / epsilon)
    return [
        f"n * epsilon is {budget:.3g} for each of {n_coefficients:,} coefficients, and below "
        f"{LEAST_EACH:g} noise tends to hide what they say: it needs {needed:,} records at "
        f"epsilon={epsilon:g}, fewer columns, or a curve without any. Ask skdpsurv plan, or "
        "forecast_accuracy, what to expect."
    ]


def unstated_norm() -> list[str]:
    """Return what happens to rows of which neither the columns nor the norm were stated."""
    return [
        "neither columns nor data_norm is stated: rows are taken to be within [-1, 1] already (for "
        "classifiers and linear models, no longer than 1), and longer ones are cut down whatever "
        "their units. For raw numbers write columns=PublicColumns({name: (low, high), ...}) with "
        "the bounds of the protocol; for rows that are scaled, data_norm=, a public bound on their "
        "length."
    ]


def few_intervals(
    n_records: int, n_features: int, epsilon: float, share: float, least: float
) -> list[str]:
    """Return what stands against standard errors, where most intervals will be infinite."""
    signal = n_records * epsilon
    if signal < least:
        return [
            f"inference_share={share:g} buys nothing: standard errors need n * epsilon of at least "
            f"{least:g}, and it is {signal:.3g}. There will be none."
        ]
    need = INTERVALS_NEED * n_features**2 * USUAL_SHARE / share
    if signal >= need:
        return []
    return [
        f"inference_share={share:g} with {n_features} columns and n * epsilon = {signal:.3g}: less "
        f"than half of the intervals will be finite, as a rule, below {need:.3g}. Fewer columns, "
        "more records or a larger epsilon would help; forecast_accuracy tells how much."
    ]


def warn_of_wide_bounds(features: Sequence[Feature]) -> None:
    """Warn of wide bounds where a scaler is used by itself, in a pipeline of scikit-learn."""
    for doubt in wide_bounds(features):
        warnings.warn(doubt, PublicInputWarning, stacklevel=4)


def missing_from_prior(columns: Sequence[str]) -> list[str]:
    """Return a question where a prior speaks of columns that the records do not have."""
    said = (
        f"the prior speaks of columns that these records do not have: {', '.join(columns)}. What "
        "it says of the others allows for those: are they misspelt?"
    )
    return [said] if columns else []


def short_horizon(features: Sequence[Feature], max_time: float) -> list[str]:
    """Return a question where a horizon looks like years, and bounds are of days.

    Dates are no reason to ask: they are days whatever unit a study has its times in.
    """
    if max_time > SHORT:
        return []
    return [
        f"max_time={max_time:g} is short beside column {feature.column!r}, whose public bounds are "
        f"{high - low:g} {feature.unit} apart. If times are in {feature.unit}, the horizon is "
        f"{max_time:g} {feature.unit}, and whoever is seen for longer counts as censored there. "
        "max_time must be in the unit of the times."
        for feature, (low, high) in _bounded(features)
        if feature.unit.lower() in SMALL_UNITS and high - low >= MANY * max_time
    ][:1]


def _bounded(features: Sequence[Feature]) -> list[tuple[Feature, tuple[float, float]]]:
    """Return features that are numbers of a column, with its public bounds."""
    found = []
    for feature in features:
        step = feature.expression
        while step.kind in ("fill", "scale"):
            step = step.of[0]
        raw = step.kind == "clip" and step.of[0].kind == "column"
        if raw and feature.column is not None and feature.level is None:
            found.append((feature, (float(step.numbers[0]), float(step.numbers[1]))))
    return found
