"""Kinds of public columns (numbers, dates, booleans, categories) and their specifications.

A kind is known without data. It reads private cells into an array, and encodes that row by row.
Data may be passed as a specification by mistake: messages name columns, keys and rules alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import permutations, product
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np

from skdpsurv.data.cells import days, numbers, positions, quietly
from skdpsurv.data.feature import Expression, Feature
from skdpsurv.dp.checks import choice, one_of, optional
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.dp.types import FloatArray

MISSING = ("error", "midpoint", "category")
_LARGEST = sys.float_info.max
#: Below, the inverse of a width overflows.
_SMALLEST_HALF_WIDTH = sys.float_info.min
#: Formats of dates as text, beside ISO 8601; '%Y-%d-%m' looks like that.
_FORMATS = {
    f"{first}{one}{second}{other}{third}"
    for first, second, third in permutations(("%d", "%m", "%Y"))
    for one, other in product("./ -", repeat=2)
} - {"%Y-%d-%m"}
#: Plain text, whatever its class: str() of a member of an enumeration is its name.
_text = str.__str__


@dataclass(frozen=True)
class ColumnKind:
    """A public description of one column: ``typical`` is a cell (ISO 8601), ``per`` a step."""

    column: str
    missing: str
    typical: Any = field(default=None, kw_only=True)
    unit: str = field(default="", kw_only=True)
    per: float | None = field(default=None, kw_only=True)

    #: The key of a specification that states this kind, and another key that it may hold.
    key: ClassVar[str]
    option: ClassVar[str] = ""
    #: Subclasses implement these methods.
    _specified: ClassVar[Any]
    _values: ClassVar[Any]
    _encoded: ClassVar[Any]
    _features: ClassVar[Any]
    _specification: ClassVar[Any]
    cell: ClassVar[Any]
    words: ClassVar[Any]
    #: Bounds of the values that are read.
    ends: ClassVar[tuple[float, float]] = (0.0, 0.0)
    #: For messages: the required contents, a common mistake, and remedies for missing cells.
    must_hold: ClassVar[str]
    hint: ClassVar[str] = ""
    remedies: ClassVar[str] = (
        "missing='midpoint' is the middle of its bounds, missing='category' makes a feature of it"
    )

    def read(self, cells: Any) -> Any:
        """Read cells into an array, or refuse them naming the column and the rule alone."""
        values = quietly(self._values, cells)
        if values is None:
            raise self._refusal(f"must hold {self.must_hold} alone in", self.hint)
        if np.isinf(values).any():
            raise self._refusal("must not contain infinity (inf), found in")
        if self.missing == "error" and np.isnan(values).any():
            raise self._refusal("must not contain NaN or None, found in", self.remedies)
        return values

    def _refusal(self, rule: str, remedy: str = "") -> ValueError:
        return InputValueError(f"X {rule} column {self.column!r}{remedy and ': '}{remedy}.")

    def encode(self, values: Any) -> list[Any]:
        """Return the features of values that were read, in arrays of one or more columns."""
        missing = np.isnan(values)
        return [*self._encoded(values, missing), *[missing] * (self.missing == "category")]

    def features(self) -> list[Feature]:
        """Return the features of the column."""
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
        stated = {"missing": self.missing, "typical": self.typical, "per": self.per}
        return self._specification() | {k: v for k, v in stated.items() if v is not None}

    @property
    def example(self) -> Any:
        """The typical cell; else the middle of bounds, the first label, or False."""
        low, high = self.ends
        return self.cell(low / 2 + high / 2) if self.typical is None else self.typical

    def beyond(self, values: Any) -> bool:
        """Return whether anything that was read lies beyond the bounds."""
        return False


@dataclass(frozen=True)
class Bounded(ColumnKind):
    """A column with public bounds, by which it is scaled."""

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
        values = np.clip(values, *ends)
        values = np.clip((values - centre) / half_width, -1.0, 1.0)
        values[missing] = 0.0
        return [values]

    def _features(self, raw: Expression) -> list[Feature]:
        scale, ends = self._scale()
        made = self._filled(Expression("scale", (Expression("clip", (raw,), ends),), scale), 0.0)
        own = self.column, None, 1.0 / scale[1], self.unit, self.per or scale[1] / 5.0
        return [Feature(self.column, made, -1.0, 1.0, *own)]

    def beyond(self, values: FloatArray) -> bool:
        """Return whether a value lies beyond the bounds."""
        low, high = self.ends
        return bool(np.any((values < low) | (values > high)))


@dataclass(frozen=True)
class Number(Bounded):
    """A number with public bounds ``low`` and ``high``."""

    low: float
    high: float

    key: ClassVar[str] = "bounds"
    option: ClassVar[str] = "unit"
    cell: ClassVar[Any] = float
    _values: ClassVar[Any] = staticmethod(numbers)
    must_hold: ClassVar[str] = "numbers"
    hint: ClassVar[str] = "text is none, even of digits or with a decimal comma"

    @classmethod
    def _specified(cls, column: str, missing: str, bounds: Any, unit: Any) -> Self:
        ends = _items(column, "bounds", bounds)
        _require(all(map(_is_number, ends)), column, "have numbers as bounds", TypeError)
        floats = quietly(lambda: [float(end) for end in ends]) if len(ends) == 2 else None
        low, high = floats or (np.nan, np.nan)
        apart = high / 2 - low / 2 >= _SMALLEST_HALF_WIDTH
        rule = "have two finite bounds, the lower one first, and not too near each other"
        _require(apart and bool(np.isfinite([low, high]).all()), column, rule)
        rule = f"have text as unit, got {type(unit).__name__}"
        _require(isinstance(unit, str), column, rule, TypeError)
        return cls(column, missing, low, high, unit=_text(unit))

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        """The bounds."""
        return self.low, self.high

    def _specification(self) -> dict[str, Any]:
        return {"bounds": [self.low, self.high], "unit": self.unit}

    def words(self) -> str:
        """Return a description in plain words."""
        ends = f"{self.low:.12g} to {self.high:.12g}{self.unit and ' '}{self.unit}"
        return f"a number from {ends}, beyond which it counts as the bound"


@dataclass(frozen=True)
class Date(Bounded):
    """A date between ``first`` and ``last``; text may also have the format ``form``."""

    first: date
    last: date
    form: str = ""
    unit: str = field(default="days", kw_only=True)

    key: ClassVar[str] = "dates"
    option: ClassVar[str] = "format"
    must_hold: ClassVar[str] = "dates"
    hint: ClassVar[str] = "as '2001-12-31' or of the stated format, without a time zone"

    @classmethod
    def _specified(cls, column: str, missing: str, dates: Any, form: Any) -> Self:
        ends = [_date(column, end) for end in _items(column, "dates", dates)]
        _require(len(ends) == 2 and ends[0] < ends[1], column, "have two dates, the earlier first")
        rule = "have a format of %d, %m and %Y, each once, joined by . / - or space; no '%Y-%d-%m'"
        _require(isinstance(form, str) and _text(form) in ("", *_FORMATS), column, rule)
        return cls(column, missing, ends[0], ends[1], _text(form))

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
        """Return the date, so many days after the first."""
        return (self.first + timedelta(days=int(value))).isoformat()

    def words(self) -> str:
        """Return a description in plain words."""
        written = f", written as {self.form}," if self.form else ""
        ends = f"{self.first} to {self.last}"
        return f"a date{written} from {ends}, beyond which it counts as the bound"


@dataclass(frozen=True)
class Boolean(ColumnKind):
    """True or False, or 1 or 0."""

    key: ClassVar[str] = "boolean"
    cell: ClassVar[Any] = bool
    must_hold: ClassVar[str] = "booleans"
    hint: ClassVar[str] = "the numbers 1 and 0 are such; text is none, and makes a category"

    @classmethod
    def _specified(cls, column: str, missing: str, stated: Any, option: Any) -> Self:
        _require(stated is True, column, "have boolean as true, or another kind")
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

    labels: tuple[str, ...] | tuple[int, ...]
    reference: str | int | None = None

    key: ClassVar[str] = "categories"
    must_hold: ClassVar[str] = "its public categories"
    hint: ClassVar[str] = "case and spaces count"
    remedies: ClassVar[str] = "missing='category' makes a feature of it"

    @classmethod
    def _specified(cls, column: str, missing: str, categories: Any, drop: str | None) -> Self:
        labels = _items(column, "categories", categories)
        texts = all(isinstance(label, str) for label in labels)
        integers = all(isinstance(label, Integral) and _is_number(label) for label in labels)
        rule = "have labels as categories, at least one, all text or all integers"
        _require(bool(labels) and (texts or integers), column, rule)
        plain: tuple[Any, ...] = tuple(map(_text if texts else int, labels))
        _require(len(set(plain)) == len(plain), column, "not have a category twice")
        dropped = drop == "first" or (drop == "if_binary" and len(plain) == 2)
        return cls(column, missing, plain, plain[0] if dropped else None)

    def _values(self, cells: Any) -> FloatArray:
        found = positions(cells, self.labels)
        return np.where(found < 0, np.nan, found)

    def _encoded(self, values: FloatArray, missing: Any) -> list[Any]:
        kept = [j for j, label in enumerate(self.labels) if label != self.reference]
        return [values[:, None] == np.array(kept, dtype=float)]

    def _features(self, raw: Expression) -> list[Feature]:
        kept = (label for label in self.labels if label != self.reference)
        return [self._indicator(Expression("is", (raw,), (label,)), label) for label in kept]

    def _specification(self) -> dict[str, Any]:
        return {"categories": list(self.labels)}

    def cell(self, value: Any) -> str | int:
        """Return the label at a position."""
        return self.labels[int(value)]

    def words(self) -> str:
        """Return a description in plain words."""
        compared = "" if self.reference is None else f" (compared with {self.reference})"
        return f"one of {', '.join(map(str, self.labels))}{compared}"


KINDS = {kind.key: kind for kind in (Number, Category, Boolean, Date)}


def column_kinds(columns: Any, missing: Any, drop: Any) -> list[ColumnKind]:
    """Return the kinds of columns that parameters of ``PublicColumns`` state."""
    one_of("missing", missing, MISSING)
    optional(choice("first", "if_binary"))("drop", drop)
    kinds = [_kind(*named, missing, drop) for named in _named(columns)]
    makers: dict[str, str] = {}
    for kind in kinds:
        for name in (feature.name for feature in kind.features()):
            other = f"columns[{makers.get(name)!r}]"
            rule = f"make features of names of their own: {name!r} is also made by {other}"
            _require(name not in makers, kind.column, rule)
            makers[name] = kind.column
    if not makers:
        raise ValueError("columns must make at least one feature; drop=None keeps all categories.")
    return kinds


def _named(columns: Any) -> list[tuple[str, Any]]:
    """Return names and specifications, which may also be a list of tables with names."""
    if isinstance(columns, list | tuple):
        if not all(isinstance(table, Mapping) and "name" in table for table in columns):
            raise TypeError("columns must hold mappings with a 'name', where it is a list.")
        pairs = [(table["name"], {k: table[k] for k in table if k != "name"}) for table in columns]
    elif isinstance(columns, Mapping):
        pairs = list(columns.items())
    else:
        raise TypeError(
            "columns must be a mapping of names of columns to what they are, got "
            f"{type(columns).__name__}."
        )
    if not pairs:
        raise ValueError("columns must describe at least one column.")
    names = [name for name, _ in pairs]
    if not all(isinstance(name, str) for name in names):
        raise TypeError("columns must have text as names.")
    for name in names:
        _require(names.count(name) == 1, name, "be described once")
    return pairs


def _require(holds: bool, column: str, rule: str, error: type[Exception] = ValueError) -> None:
    if not holds:
        raise error(f"columns[{column!r}] must {rule}.")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(repr, words))


def _kind(column: str, specification: Any, missing: str, drop: str | None) -> ColumnKind:
    column = _text(column)
    stated = _expanded(column, specification)
    keys = [key for key in KINDS if key in stated]
    rule = f"hold exactly one of {_listed(KINDS)}, got {_listed(keys) or 'none'}"
    _require(len(keys) == 1, column, rule)
    kind: type[ColumnKind] = KINDS[keys[0]]
    step = "per" * issubclass(kind, Bounded)
    allowed = tuple(filter(None, (kind.key, kind.option, step, "missing", "typical")))
    for key in stated:
        got = repr(key) if isinstance(key, str) else type(key).__name__
        rule = f"hold no other key than {_listed(allowed)}, got {got}"
        _require(isinstance(key, str) and key in allowed, column, rule)
    categories = kind is Category
    words = [word for word in MISSING if not (categories and word == "midpoint")]
    missing = stated.get("missing", missing if missing in words else "error")
    rule = f"have missing as one of {_listed(words)}"
    rule += ": categories have no middle" if categories else ""
    _require(isinstance(missing, str) and missing in words, column, rule)
    option = drop if categories else stated.get(kind.option, "")
    found: ColumnKind = kind._specified(column, _text(missing), stated[kind.key], option)
    if "per" in stated:
        fits = _is_number(per := stated["per"]) and 0.0 < per <= found.ends[1] - found.ends[0]
        _require(fits, column, "have as per a positive number, at most the width of its bounds")
        found = replace(found, per=float(per))
    return _with_typical(found, stated["typical"]) if "typical" in stated else found


def _with_typical(kind: ColumnKind, value: Any) -> ColumnKind:
    """Return a kind with a typical value, which the column must be able to hold."""
    cells = np.fromiter([value], dtype=object, count=1)
    flag = isinstance(value, bool | np.bool_)
    read = quietly(replace(kind, missing="error").read, cells)
    fits = read is not None and flag == isinstance(kind, Boolean) and not kind.beyond(read)
    _require(fits, kind.column, "have a typical value that is within its bounds or categories")
    return replace(kind, typical=kind.cell(read[0]))


def _expanded(column: str, specification: Any) -> Mapping[Any, Any]:
    """Return a specification as a mapping, whatever shorthand it is."""
    if isinstance(specification, Mapping):
        return specification
    if specification is bool:
        return {"boolean": True}
    if isinstance(specification, tuple):
        return {"bounds": specification}
    rule = "be (low, high), a list of labels, bool, or a mapping that holds 'bounds', "
    rule += f"'categories', 'boolean' or 'dates', got {type(specification).__name__}"
    _require(isinstance(specification, list), column, rule, TypeError)
    rule = "not be a list of two numbers, which may be bounds or categories: write (low, high), or "
    rule += "{'categories': [one, other]}; the type bool for 0 and 1"
    _require(len(specification) != 2 or not all(map(_is_number, specification)), column, rule)
    return {"categories": specification}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def _items(column: str, key: str, values: Any) -> list[Any]:
    flat = isinstance(values, list | tuple) or (type(values) is np.ndarray and values.ndim == 1)
    _require(flat, column, f"have {key} as a list, got {type(values).__name__}", TypeError)
    return list(values)


def _date(column: str, value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return date(value.year, value.month, value.day)
    rule = "have text or datetime.date objects as dates"
    _require(isinstance(value, str), column, rule, TypeError)
    written = re.fullmatch(r"\d{4}-\d\d-\d\d", value, flags=re.ASCII)
    found: date | None = quietly(date.fromisoformat, value) if written else None
    if found is None:
        raise ValueError(f"columns[{column!r}] must have dates of the form '2001-12-31'.")
    return found
