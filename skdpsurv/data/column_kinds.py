"""Kinds of public columns: dates, booleans, categories, and numbers; all in ``KINDS``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import permutations, product
from typing import Any, ClassVar, Self

import numpy as np

from skdpsurv.data.cells import days, numbers, positions, quietly
from skdpsurv.data.column_kind import Bounded, ColumnKind
from skdpsurv.data.feature import Expression, Feature
from skdpsurv.data.number_kinds import Log, Number, Power, Spline
from skdpsurv.data.specification_rules import items, require
from skdpsurv.dp.checks import is_integer
from skdpsurv.dp.types import FloatArray

#: Formats of dates as text, beside ISO 8601; '%Y-%d-%m' looks like that.
DATE_FORMATS = {
    f"{first}{one}{second}{other}{third}"
    for first, second, third in permutations(("%d", "%m", "%Y"))
    for one, other in product("./ -", repeat=2)
} - {"%Y-%d-%m"}
DATE_RULE = "have a format of %d, %m and %Y, each once, joined by . / - or space; no '%Y-%d-%m'"


@dataclass(frozen=True)
class Date(Bounded):
    """A date between ``first`` and ``last``; text may also have the format ``form``."""

    first: date
    last: date
    form: str = ""
    unit: str = field(default="days", kw_only=True)

    key: ClassVar[str] = "dates"
    such_as: ClassVar[Any] = ["2001-01-01", "2010-12-31"]
    options: ClassVar[tuple[str, ...]] = ("format",)
    even: ClassVar[bool] = True
    must_hold: ClassVar[str] = "dates"
    hint: ClassVar[str] = "as '2001-12-31' or of the stated format, without a time zone"

    @classmethod
    def _specified(cls, column: str, missing: str, dates: Any, stated: Any) -> Self:
        form = stated.get("format", "")
        ends = [_date(column, end) for end in items(column, "dates", dates)]
        require(len(ends) == 2 and ends[0] < ends[1], column, "have two dates, the earlier first")
        known = isinstance(form, str) and str.__str__(form) in ("", *DATE_FORMATS)
        require(known, column, DATE_RULE)
        return cls(column, missing, ends[0], ends[1], str.__str__(form))

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        """The bounds, as days since the first date."""
        return 0.0, float((self.last - self.first).days)

    def _values(self, cells: Any) -> FloatArray:
        return days(cells, self.first, self.form)

    def _features(self, raw: Expression) -> list[Feature]:
        return super()._features(Expression("days", (raw,), (self.first.isoformat(),), self.form))

    def _specification(self) -> dict[str, Any]:
        ends = [self.first.isoformat(), self.last.isoformat()]
        return {"dates": ends} | ({"format": self.form} if self.form else {})

    def cell(self, value: Any) -> str:
        """Return the date that is ``value`` days after the first."""
        return (self.first + timedelta(days=int(value))).isoformat()

    def cell_at(self, place: float) -> str:
        """Return the date at a place between the bounds: dates far beyond do not exist."""
        return super().cell_at(min(place, 1.0))

    def cells(self, values: FloatArray) -> Any:
        """Return dates: the nearest to each number of days since the first."""
        return np.datetime64(self.first) + np.rint(values).astype("timedelta64[D]")

    def words(self) -> str:
        """Return a description in plain words."""
        written = f", written as {self.form}," if self.form else ""
        ends = f"{self.first} to {self.last}"
        return f"a date{written} from {ends}, beyond which it counts as the bound"


@dataclass(frozen=True)
class Boolean(ColumnKind):
    """True or False, or 1 or 0."""

    labels: tuple[Any, ...] = field(default=(False, True), kw_only=True)

    key: ClassVar[str] = "boolean"
    such_as: ClassVar[Any] = True
    condition: ClassVar[bool] = True
    must_hold: ClassVar[str] = "booleans"
    hint: ClassVar[str] = "the numbers 1 and 0 are such; text is none, and makes a category"

    @classmethod
    def _specified(cls, column: str, missing: str, holds: Any, stated: Any) -> Self:
        require(holds is True, column, "have boolean as true, or another kind")
        return cls(column, missing)

    def _values(self, cells: Any) -> FloatArray | None:
        values = numbers(cells)
        return values if np.all((values == 0) | (values == 1) | np.isnan(values)) else None

    def _encoded(self, values: FloatArray, missing: Any) -> list[Any]:
        return [np.where(missing, 0.5, values + 0.0)]  # no negative zero

    def _features(self, raw: Expression) -> list[Feature]:
        return [Feature(self.column, self._filled(raw, 0.5), 0.0, 1.0, self.column, True, 1.0)]

    def _specification(self) -> dict[str, Any]:
        return {"boolean": True}

    def words(self) -> str:
        """Return a description in words."""
        return "true or false"


@dataclass(frozen=True)
class Category(ColumnKind):
    """One of a few public labels; ``reference`` has no indicator."""

    key: ClassVar[str] = "categories"
    such_as: ClassVar[Any] = ["never", "past", "now"]
    must_hold: ClassVar[str] = "its public categories"
    hint: ClassVar[str] = "case and spaces count"
    fillable: ClassVar[bool] = False

    @classmethod
    def _specified(cls, column: str, missing: str, categories: Any, stated: Any) -> Self:
        labels, drop = items(column, "categories", categories), stated["drop"]
        texts = all(isinstance(label, str) for label in labels)
        integers = all(map(is_integer, labels))
        rule = "have labels as categories, at least one, all text or all integers"
        require(bool(labels) and (texts or integers), column, rule)
        plain: tuple[Any, ...] = tuple(map(str.__str__ if texts else int, labels))
        require(len(set(plain)) == len(plain), column, "not have a category twice")
        dropped = drop == "first" or (drop == "if_binary" and len(plain) == 2)
        return cls(column, missing, labels=plain, reference=plain[0] if dropped else None)

    def _values(self, cells: Any) -> FloatArray:
        found = positions(cells, self.labels)
        return np.where(found < 0, np.nan, found)

    def _encoded(self, values: FloatArray, missing: Any) -> list[Any]:
        kept = [j for j, label in enumerate(self.labels) if label != self.reference]
        return [values[:, None] == np.array(kept, dtype=float)]

    def _features(self, raw: Expression) -> list[Feature]:
        kept = (label for label in self.labels if label != self.reference)
        return [self._indicator(Expression("is", (raw,), (label,)), label) for label in kept]

    def words(self) -> str:
        """Return a description in plain words."""
        compared = "" if self.reference is None else f" (compared with {self.reference})"
        return f"one of {', '.join(map(str, self.labels))}{compared}"


def _date(column: str, value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return date(value.year, value.month, value.day)
    rule = "have text or datetime.date objects as dates"
    require(isinstance(value, str), column, rule, TypeError)
    written = re.fullmatch(r"\d{4}-\d\d-\d\d", value, flags=re.ASCII)
    found: date | None = quietly(date.fromisoformat, value) if written else None
    if found is None:
        raise ValueError(f"columns[{column!r}] must have dates of the form '2001-12-31'.")
    return found


#: All kinds, by the key of a specification that states one: a new kind is its class and this line.
KINDS = {kind.key: kind for kind in (Number, Log, Power, Spline, Category, Boolean, Date)}
