"""Specifications of columns: what may be written of a column, and the kind that it means.

Specifications are public, but one may pass data in their place by mistake: messages name columns,
keys and rules, and show no other value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from numbers import Integral, Real
from typing import Any

import numpy as np

from skdpsurv.data.cells import quietly
from skdpsurv.data.column_kinds import Boolean, Category, ColumnKind, Date, Number
from skdpsurv.dp.checks import choice, one_of, optional

MISSING = ("error", "midpoint", "category")
_FORMS = "(low, high), a list of labels, bool, or a mapping that holds 'bounds', 'categories', "
_FORMS += "'boolean' or 'dates'"
#: Below, the inverse of a width overflows.
_SMALLEST_HALF_WIDTH = sys.float_info.min
#: Of dates as text.
_FORM = re.compile(r"%[dmY][./ -]%[dmY][./ -]%[dmY]")
#: Text alone, of whatever class; str() of a member of an enumeration is its name.
_text = str.__str__


def column_kinds(columns: Any, missing: Any, drop: Any) -> list[ColumnKind]:
    """Return what columns are, as ``PublicColumns`` is told."""
    one_of("missing", missing, MISSING)
    optional(choice("first", "if_binary"))("drop", drop)
    kinds = [_kind(*named, missing, drop) for named in _named(columns)]
    makers: dict[str, str] = {}
    for kind in kinds:
        for name in (feature.name for feature in kind.features()):
            if name in makers:
                other = f"columns[{makers[name]!r}]"
                rule = f"make features of names of their own: {name!r} is also made by {other}"
                _require(False, kind.column, rule)
            makers[name] = kind.column
    if not makers:
        raise ValueError("columns must make at least one feature; drop=None keeps all categories.")
    return kinds


def _named(columns: Any) -> list[tuple[str, Any]]:
    """Return names and specifications; of tables that say their names themselves, too."""
    if isinstance(columns, list | tuple):
        if not all(isinstance(table, Mapping) and "name" in table for table in columns):
            raise TypeError("columns must hold mappings with a 'name', where it is a list.")
        tables = [dict(table) for table in columns]
        pairs = [(table.pop("name"), table) for table in tables]
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
    said = _expanded(column, specification)
    keys = [key for key in _KINDS if key in said]
    got = _listed(keys) or "none"
    _require(len(keys) == 1, column, f"hold exactly one of {_listed(_KINDS)}, got {got}")
    key = keys[0]
    make, own = _KINDS[key]
    allowed = (key, *own, "missing", "typical")
    for other in said:
        got = repr(other) if isinstance(other, str) else type(other).__name__
        rule = f"hold no other key than {_listed(allowed)}, got {got}"
        _require(isinstance(other, str) and other in allowed, column, rule)
    categories = key == "categories"
    words = [word for word in MISSING if word != "midpoint" or not categories]
    missing = said.get("missing", missing if missing in words else "error")
    rule = f"have missing as one of {_listed(words)}"
    rule += ": categories have no middle" if categories else ""
    _require(isinstance(missing, str) and missing in words, column, rule)
    more = drop if categories else next((said.get(name, "") for name in own), "")
    found = make(column, _text(missing), said[key], more)
    return _with_typical(found, said["typical"]) if "typical" in said else found


def _with_typical(kind: ColumnKind, value: Any) -> ColumnKind:
    """Return a kind with a value that is typical, which the column must be able to hold."""
    cells = np.fromiter([value], dtype=object, count=1)
    flag = isinstance(value, bool | np.bool_)
    read = quietly(replace(kind, missing="error").read, cells)
    _require(
        read is not None and flag == isinstance(kind, Boolean) and not kind.beyond(read),
        kind.column,
        "have as typical what it may hold: a number or a date within its bounds, one of its "
        "categories, true or false",
    )
    return replace(kind, typical=kind.cell(read[0]))


def _expanded(column: str, specification: Any) -> Mapping[Any, Any]:
    """Return a specification as a mapping, whatever shorthand it is."""
    if isinstance(specification, Mapping):
        return specification
    if specification is bool:
        return {"boolean": True}
    if isinstance(specification, tuple):
        return {"bounds": specification}
    rule = f"be {_FORMS}, got {type(specification).__name__}"
    _require(isinstance(specification, list), column, rule, TypeError)
    _require(
        len(specification) != 2 or not all(map(_is_number, specification)),
        column,
        "not be a list of two numbers, which may be bounds or categories: write (low, high) or "
        "{'bounds': [low, high]}, or {'categories': [one, other]}; the type bool for 0 and 1",
    )
    return {"categories": specification}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def _items(column: str, key: str, values: Any) -> list[Any]:
    flat = isinstance(values, list | tuple) or (type(values) is np.ndarray and values.ndim == 1)
    _require(flat, column, f"have {key} as a list, got {type(values).__name__}", TypeError)
    return list(values)


def _floats(values: list[Any]) -> list[float]:
    return [float(value) for value in values]


def _number(column: str, missing: str, bounds: Any, unit: Any) -> Number:
    ends = _items(column, "bounds", bounds)
    _require(all(map(_is_number, ends)), column, "have numbers as bounds", TypeError)
    low, high = (len(ends) == 2 and quietly(_floats, ends)) or (np.nan, np.nan)
    apart = high / 2 - low / 2 >= _SMALLEST_HALF_WIDTH
    rule = "have two finite bounds, the lower one first, and not too near each other"
    _require(apart and bool(np.isfinite([low, high]).all()), column, rule)
    rule = f"have text as unit, got {type(unit).__name__}"
    _require(isinstance(unit, str), column, rule, TypeError)
    return Number(column, missing, low, high, unit=_text(unit))


def _category(column: str, missing: str, categories: Any, drop: str | None) -> Category:
    labels = _items(column, "categories", categories)
    texts = all(isinstance(label, str) for label in labels)
    integers = all(isinstance(label, Integral) and _is_number(label) for label in labels)
    rule = "have labels as categories, at least one, all text or all integers"
    _require(bool(labels) and (texts or integers), column, rule)
    plain: tuple[Any, ...] = tuple(map(_text if texts else int, labels))
    _require(len(set(plain)) == len(plain), column, "not have a category twice")
    dropped = drop == "first" or (drop == "if_binary" and len(plain) == 2)
    return Category(column, missing, plain, plain[0] if dropped else None)


def _dates(column: str, missing: str, dates: Any, form: Any) -> Date:
    ends = [_date(column, end) for end in _items(column, "dates", dates)]
    rule = "have two dates, the earlier one first"
    _require(len(ends) == 2 and ends[0] < ends[1], column, rule)
    _require(
        form == "" or (isinstance(form, str) and _FORM.fullmatch(form) is not None and _once(form)),
        column,
        "have a format of %d, %m and %Y, each once, with one of . / - or a space between them, "
        "such as '%d.%m.%Y'; not '%Y-%d-%m', which looks like another",
    )
    return Date(column, missing, ends[0], ends[1], _text(form))


def _boolean(column: str, missing: str, stated: Any, _: Any) -> Boolean:
    _require(stated is True, column, "have boolean as true, or another kind")
    return Boolean(column, missing)


def _once(form: str) -> bool:
    return {form[:2], form[3:5], form[6:]} == {"%d", "%m", "%Y"} and form != "%Y-%d-%m"


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


#: What makes a kind, by the key that says it, and what else its specification may say.
_KINDS: dict[str, tuple[Callable[..., ColumnKind], tuple[str, ...]]] = {
    "bounds": (_number, ("unit",)),
    "categories": (_category, ()),
    "boolean": (_boolean, ()),
    "dates": (_dates, ("format",)),
}
