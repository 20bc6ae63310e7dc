"""Kinds of public columns: numbers, dates, booleans and categories.

A kind is known without data. It reads cells, which are private, into an array, and turns the array
into features, each row by itself.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, ClassVar

import numpy as np

from skdpsurv.data.cells import days, numbers, places, quietly
from skdpsurv.data.feature import Expression, Feature
from skdpsurv.dp import InputValueError
from skdpsurv.dp.types import FloatArray, IndexArray

_LARGEST = sys.float_info.max


@dataclass(frozen=True)
class ColumnKind:
    """What all kinds share.

    Parameters
    ----------
    column : str
    missing : {"error", "midpoint", "category"}
    typical : float, str, int, bool or None, default=None
        What its description calls typical, of a cell: a date as ISO 8601 has it.
    unit : str
        Of what is measured.
    """

    column: str
    missing: str
    typical: Any = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True)

    #: What subclasses say: how cells are read, what becomes of them, and which features those are;
    #: the specification, as JSON has it; the cell that is read as a value; the column in words.
    _values: ClassVar[Any]
    _encoded: ClassVar[Any]
    _features: ClassVar[Any]
    _said: ClassVar[Any]
    cell: ClassVar[Any]
    words: ClassVar[Any]
    #: The bounds of what is read, if it has such.
    ends: ClassVar[tuple[float, float]] = (0.0, 0.0)
    #: What cells must be, for messages, and what is often mistaken for it.
    must_hold: ClassVar[str]
    hint: ClassVar[str] = ""
    #: What may be done with missing cells, for messages.
    remedies: ClassVar[str] = (
        "missing='midpoint' of that column is the middle of the public values, missing='category' "
        "also makes a feature of it"
    )

    def read(self, cells: Any) -> Any:
        """Read cells into an array, or refuse them naming the column and the rule alone."""
        values = quietly(self._values, cells)
        if values is None:
            raise self._refusal(f"must hold {self.must_hold} alone in", self.hint)
        if np.isinf(values).any():
            raise self._refusal("must not contain infinity (inf), found in")
        if self.missing == "error" and self._absent(values).any():
            raise self._refusal("must not contain NaN or None, found in", self.remedies)
        return values

    def _absent(self, values: Any) -> Any:
        return np.isnan(values)

    def encode(self, values: Any) -> list[Any]:
        """Return what was read as features, an array for each."""
        missing = self._absent(values)
        return [*self._encoded(values, missing), *[missing] * (self.missing == "category")]

    def features(self) -> list[Feature]:
        """Return what is made of the column."""
        raw = Expression("column", numbers=(self.column,))
        found: list[Feature] = self._features(raw)
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

    def described(self) -> dict[str, Any]:
        """Return the specification, as JSON has it."""
        typical = {} if self.typical is None else {"typical": self.typical}
        said: dict[str, Any] = self._said()
        return said | {"missing": self.missing} | typical

    @property
    def example(self) -> Any:
        """What is typical; else the middle of bounds, the first label, or False."""
        low, high = self.ends
        return self.cell(low / 2 + high / 2) if self.typical is None else self.typical

    def beyond(self, values: Any) -> bool:
        """Return whether anything that was read lies beyond the bounds."""
        return False

    def _refusal(self, rule: str, remedy: str = "") -> ValueError:
        return InputValueError(f"X {rule} column {self.column!r}{remedy and ': '}{remedy}.")


@dataclass(frozen=True)
class Bounded(ColumnKind):
    """What has public bounds, and is scaled by them."""

    def _measured(self, raw: Expression) -> Expression:
        return raw

    def _scale(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return centre and half width, and what numbers are clipped to before they are scaled."""
        low, high = self.ends
        # As PublicBoundsScaler has it: halve first, since high - low may overflow.
        centre, half_width = low / 2 + high / 2, high / 2 - low / 2
        # One rounding beyond the largest float is infinity, which JSON has not.
        ends = max(centre - half_width, -_LARGEST), min(centre + half_width, _LARGEST)
        return (centre, half_width), ends

    def _encoded(self, values: FloatArray, missing: Any) -> list[Any]:
        (centre, half_width), ends = self._scale()
        # First clip, then scale: differences of finite floats may overflow.
        values = np.clip(values, *ends)
        values = np.clip((values - centre) / half_width, -1.0, 1.0)
        values[missing] = 0.0
        return [values]

    def _features(self, raw: Expression) -> list[Feature]:
        scale, ends = self._scale()
        clipped = Expression("clip", (self._measured(raw),), ends)
        made = self._filled(Expression("scale", (clipped,), scale), 0.0)
        slope = 1.0 / scale[1]
        return [Feature(self.column, made, -1.0, 1.0, self.column, None, slope, self.unit)]

    def beyond(self, values: FloatArray) -> bool:
        """Return whether a number lies beyond the bounds."""
        low, high = self.ends
        return bool(np.any((values < low) | (values > high)))


@dataclass(frozen=True)
class Number(Bounded):
    """A number with public bounds.

    Parameters
    ----------
    column, missing : str
    low, high : float
    """

    low: float
    high: float

    must_hold: ClassVar[str] = "numbers"
    hint: ClassVar[str] = "text is none, even of digits"

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        """The bounds."""
        return self.low, self.high

    def _values(self, cells: Any) -> FloatArray:
        return numbers(cells)

    def _said(self) -> dict[str, Any]:
        return {"bounds": [self.low, self.high], "unit": self.unit}

    def cell(self, value: Any) -> float:
        """Return the number."""
        return float(value)

    def words(self) -> str:
        """Return what the column is, in plain words."""
        ends = f"{self.low:.12g} to {self.high:.12g}{self.unit and ' '}{self.unit}"
        return f"a number from {ends}, beyond which it counts as the bound"


@dataclass(frozen=True)
class Date(Bounded):
    """A date, of a public span of time.

    Parameters
    ----------
    column, missing : str
    first, last : datetime.date
    form : str, default=""
        Of text, such as "%d.%m.%Y", beside that of ISO 8601.
    """

    first: date
    last: date
    form: str = ""
    unit: str = field(default="days", kw_only=True)

    must_hold: ClassVar[str] = "dates"
    hint: ClassVar[str] = (
        "text must be of the form '2001-12-31', or of the stated format, and nothing have a time "
        "zone"
    )

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        """The bounds, as days since the first date."""
        return 0.0, float((self.last - self.first).days)

    def _values(self, cells: Any) -> FloatArray:
        return days(cells, self.first, self.form)

    def _measured(self, raw: Expression) -> Expression:
        return Expression("days", (raw,), (self.first.isoformat(),), self.form)

    def _said(self) -> dict[str, Any]:
        ends = [self.first.isoformat(), self.last.isoformat()]
        return {"dates": ends} | ({"format": self.form} if self.form else {})

    def cell(self, value: Any) -> str:
        """Return the date, so many days after the first."""
        return (self.first + timedelta(days=int(value))).isoformat()

    def words(self) -> str:
        """Return what the column is, in plain words."""
        written = f", written as {self.form}," if self.form else ""
        ends = f"{self.first} to {self.last}"
        return f"a date{written} from {ends}, beyond which it counts as the bound"


@dataclass(frozen=True)
class Boolean(ColumnKind):
    """True or False, or 1 or 0.

    Parameters
    ----------
    column, missing : str
    """

    must_hold: ClassVar[str] = "booleans"
    hint: ClassVar[str] = "the numbers 1 and 0 are such, and text is none"

    def _values(self, cells: Any) -> FloatArray | None:
        values = numbers(cells)
        return values if np.all((values == 0) | (values == 1) | np.isnan(values)) else None

    def _encoded(self, values: FloatArray, missing: Any) -> list[Any]:
        # Where minus nought is nought.
        return [np.where(missing, 0.5, values + 0.0)]

    def _features(self, raw: Expression) -> list[Feature]:
        return [Feature(self.column, self._filled(raw, 0.5), 0.0, 1.0, self.column, True, 1.0)]

    def _said(self) -> dict[str, Any]:
        return {"boolean": True}

    def cell(self, value: Any) -> bool:
        """Return the truth value."""
        return bool(value)

    def words(self) -> str:
        """Return what the column is, in plain words."""
        return "true or false"


@dataclass(frozen=True)
class Category(ColumnKind):
    """One of a few public labels.

    Parameters
    ----------
    column : str
    missing : {"error", "category"}
    labels : tuple of str, or tuple of int
    reference : str, int or None
        The label that has no indicator, if one has none.
    """

    labels: tuple[str, ...] | tuple[int, ...]
    reference: str | int | None = None

    must_hold: ClassVar[str] = "its public categories"
    remedies: ClassVar[str] = "missing='category' of that column makes a feature of it"

    def _values(self, cells: Any) -> IndexArray:
        return places(cells, self.labels)

    def _absent(self, values: IndexArray) -> Any:
        return values < 0

    def _encoded(self, values: IndexArray, missing: Any) -> list[Any]:
        return [values == j for j, label in enumerate(self.labels) if label != self.reference]

    def _features(self, raw: Expression) -> list[Feature]:
        kept = (label for label in self.labels if label != self.reference)
        return [self._indicator(Expression("is", (raw,), (label,)), label) for label in kept]

    def _said(self) -> dict[str, Any]:
        return {"categories": list(self.labels)}

    def cell(self, value: Any) -> str | int:
        """Return the label in a place."""
        return self.labels[int(value)]

    def words(self) -> str:
        """Return what the column is, in plain words."""
        compared = "" if self.reference is None else f" (compared with {self.reference})"
        return f"one of {', '.join(map(str, self.labels))}{compared}"
