"""Kinds of public columns: numbers, dates, booleans and categories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, ClassVar

import numpy as np

from skdpsurv.preprocessing.column_cells import days, numbers, places
from skdpsurv.preprocessing.column_kind import Bounded, ColumnKind, Measured
from skdpsurv.preprocessing.feature import Expression, Feature
from skdpsurv.types import FloatArray, IndexArray

__all__ = ["Boolean", "Category", "Date", "Number"]


@dataclass(frozen=True)
class Number(Bounded):
    """A number with public bounds.

    Parameters
    ----------
    column, missing : str
    low, high : float
    unit : str
    """

    low: float
    high: float
    unit: str = ""

    must_hold: ClassVar[str] = "numbers"
    hint: ClassVar[str] = "text is none, even of digits"

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds."""
        return self.low, self.high

    def read(self, cells: Any) -> FloatArray:
        """Read numbers; NaN where missing."""
        values: FloatArray = self._read(numbers, cells)
        if np.isinf(values).any():
            raise self._refusal("must not contain infinity (inf), found in")
        self._refuse_missing(np.isnan(values))
        return values

    def features(self) -> list[Feature]:
        """Return what is made of the column."""
        return [self._feature(self.raw, self.unit), *self._missing_feature()]

    def described(self) -> dict[str, Any]:
        """Return the specification, as JSON has it."""
        said = {"bounds": [self.low, self.high], "unit": self.unit, "missing": self.missing}
        return said | self._said()

    @property
    def middle(self) -> float:
        """The middle of the bounds."""
        return self.low / 2 + self.high / 2

    @property
    def specimen(self) -> float:
        """The lower bound."""
        return self.low

    def words(self) -> str:
        """Return what the column is, in plain words."""
        ends = f"{self.low:.12g} to {self.high:.12g}{self.unit and ' '}{self.unit}"
        return f"a number from {ends}, beyond which it counts as the bound"

    def shown(self) -> tuple[str, str]:
        """Return what the column is, and its unit."""
        return f"number, {_short(self.low)} to {_short(self.high)}", self.unit


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

    must_hold: ClassVar[str] = "dates"
    hint: ClassVar[str] = "text must be of the form '2001-12-31', and nothing have a time zone"

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds, as days since the first date."""
        return 0.0, float((self.last - self.first).days)

    def read(self, cells: Any) -> FloatArray:
        """Read days since the first date; NaN where missing."""
        values: FloatArray = self._read(days, cells, self.first, self.form)
        self._refuse_missing(np.isnan(values))
        return values

    def _hint(self) -> str:
        iso = "'2001-12-31'"
        return self.hint.replace(iso, f"{iso} or {self.form!r}") if self.form else self.hint

    def features(self) -> list[Feature]:
        """Return what is made of the column."""
        since = Expression("days", (self.raw,), (self.first.isoformat(),), self.form)
        return [self._feature(since, "days"), *self._missing_feature()]

    def described(self) -> dict[str, Any]:
        """Return the specification, as JSON has it."""
        ends = [self.first.isoformat(), self.last.isoformat()]
        form = {"format": self.form} if self.form else {}
        return {"dates": ends, "missing": self.missing, **form, **self._said()}

    @property
    def middle(self) -> str:
        """The day in the middle."""
        return (self.first + timedelta(days=(self.last - self.first).days // 2)).isoformat()

    @property
    def specimen(self) -> str:
        """The first date."""
        return self.first.isoformat()

    def words(self) -> str:
        """Return what the column is, in plain words."""
        written = f", written as {self.form}," if self.form else ""
        ends = f"{self.first} to {self.last}"
        return f"a date{written} from {ends}, beyond which it counts as the bound"

    def shown(self) -> tuple[str, str]:
        """Return what the column is, and its unit."""
        return f"date, {self.first} to {self.last}", "days"


@dataclass(frozen=True)
class Boolean(Measured):
    """True or False, or 1 or 0.

    Parameters
    ----------
    column, missing : str
    """

    must_hold: ClassVar[str] = "booleans"
    hint: ClassVar[str] = "the numbers 1 and 0 are such, and text is none"
    midpoint: ClassVar[float] = 0.5

    def read(self, cells: Any) -> FloatArray:
        """Read 1 and 0; NaN where missing."""
        values: FloatArray = self._read(self._flags, cells)
        self._refuse_missing(np.isnan(values))
        return values

    @staticmethod
    def _flags(cells: Any) -> FloatArray | None:
        values = numbers(cells)
        return values if np.all((values == 0) | (values == 1) | np.isnan(values)) else None

    def _scaled(self, values: FloatArray) -> FloatArray:
        # A copy, in which minus nought is nought.
        return values + 0.0

    def features(self) -> list[Feature]:
        """Return what is made of the column."""
        flag = self._filled(self.raw, self.midpoint)
        indicator = Feature(self.column, flag, 0.0, 1.0, self.column, level=True, per_unit=1.0)
        return [indicator, *self._missing_feature()]

    def described(self) -> dict[str, Any]:
        """Return the specification, as JSON has it."""
        return {"boolean": True, "missing": self.missing, **self._said()}

    @property
    def specimen(self) -> bool:
        """False."""
        return False

    def words(self) -> str:
        """Return what the column is, in plain words."""
        return "true or false"

    def shown(self) -> tuple[str, str]:
        """Return what the column is, and its unit."""
        return "boolean", ""


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

    def read(self, cells: Any) -> IndexArray:
        """Read places among the labels; -1 where missing."""
        index: IndexArray = self._read(places, cells, self.labels)
        self._refuse_missing(index < 0)
        return index

    def encode(self, values: IndexArray) -> list[Any]:
        """Return an indicator of each label but the reference, and of missing ones."""
        kept = [j for j, label in enumerate(self.labels) if label != self.reference]
        return [values == j for j in kept] + [values < 0] * (self.missing == "category")

    def features(self) -> list[Feature]:
        """Return what is made of the column."""
        kept = (label for label in self.labels if label != self.reference)
        indicators = [
            self._indicator(Expression("is", (self.raw,), (label,)), label) for label in kept
        ]
        return indicators + self._missing_feature()

    def described(self) -> dict[str, Any]:
        """Return the specification, as JSON has it."""
        return {"categories": list(self.labels), "missing": self.missing, **self._said()}

    @property
    def specimen(self) -> str | int:
        """The first label."""
        return self.labels[0]

    def words(self) -> str:
        """Return what the column is, in plain words."""
        compared = "" if self.reference is None else f" (compared with {self.reference})"
        return f"{self.shown()[0]}{compared}"

    def shown(self) -> tuple[str, str]:
        """Return what the column is, and its unit."""
        return f"one of {', '.join(map(str, self.labels))}", ""


def _short(number: float) -> str:
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
