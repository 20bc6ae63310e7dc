"""Specifications of public columns, in all their forms, and the kinds that they state."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skdpsurv.data.cells import quietly
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.column_kinds import KINDS
from skdpsurv.data.interaction import Interaction
from skdpsurv.data.over_time import OverTime
from skdpsurv.data.specification_rules import items, require
from skdpsurv.dp.checks import choice, is_real, one_of, optional

MISSING = ("error", "midpoint", "category")
#: How far the sum of shares may be from 1, as rounded ones are.
NEARLY = 0.02


def column_terms(
    columns: Any, missing: Any, drop: Any
) -> tuple[list[ColumnKind], list[Interaction]]:
    """Return kinds of columns, and interactions, that parameters of ``PublicColumns`` state."""
    one_of("missing", missing, MISSING)
    optional(choice("first", "if_binary"))("drop", drop)
    kinds, products = [], []
    for column, specification in _named(columns):
        if isinstance(specification, Mapping) and Interaction.key in specification:
            products.append((str.__str__(column), specification))
        else:
            try:
                kinds.append(_kind(column, specification, missing, drop))
            except OverflowError:
                rule = "hold no number beyond those of floating point"
                raise ValueError(f"columns[{column!r}] must {rule}.") from None
    interactions = [Interaction.specified(*one, kinds) for one in products]
    makers: dict[str, str] = {}
    made = [(kind.column, kind.features()) for kind in kinds]
    made += [(one.name, one.features()) for one in interactions]
    for maker, features in made:
        for name in (feature.name for feature in features):
            other = f"columns[{makers.get(name)!r}]"
            rule = f"make features of names of their own: {name!r} is also made by {other}"
            require(name not in makers, maker, rule)
            makers[name] = maker
    pairs = [{kind.column for kind in one.factors} for one in interactions]
    for one, pair in zip(interactions, pairs, strict=True):
        require(pairs.count(pair) == 1, one.name, "have an interaction that no other entry has")
    if not makers:
        raise ValueError("columns must make at least one feature; drop=None keeps all categories.")
    return kinds, interactions


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
        require(names.count(name) == 1, name, "be described once")
    return pairs


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(repr, words))


def _kind(column: str, specification: Any, missing: str, drop: str | None) -> ColumnKind:
    column = str.__str__(column)
    stated = expanded(column, specification)
    keys = [key for key in KINDS if key in stated]
    words = _listed([*KINDS, Interaction.key])
    rule = f"hold exactly one of {words}, got {_listed(keys) or 'none'}"
    require(len(keys) == 1, column, rule)
    kind: type[ColumnKind] = KINDS[keys[0]]
    of_kind = ("per", "spread") if kind.bounded else ("prevalence",)
    allowed = [kind.key, *kind.options, *of_kind, "missing", "typical", "over_time"]
    for key in stated:
        got = repr(key) if isinstance(key, str) else type(key).__name__
        rule = f"hold no other key than {_listed(allowed)}, got {got}"
        require(isinstance(key, str) and key in allowed, column, rule)
    ways = [word for word in MISSING if kind.fillable or word != "midpoint"]
    missing = stated.get("missing", missing if missing in ways else "error")
    rule = f"have missing as one of {_listed(ways)}"
    rule += "" if kind.fillable else ": categories have no middle"
    require(isinstance(missing, str) and missing in ways, column, rule)
    told = {**stated, "drop": drop}
    found: Any = kind._specified(column, str.__str__(missing), stated[kind.key], told)
    for key, step in (("per", kind.step), ("spread", 1.0)):
        if key in stated:
            fits = is_real(value := stated[key]) and 0.0 < value * step <= found.width
            rule = f"have as {key} a positive number, at most the width of its bounds"
            require(fits, column, rule)
            found = replace(found, **{key: float(value)})
    if "over_time" in stated:
        found = replace(found, over_time=OverTime.specified(column, stated["over_time"]))
    if "prevalence" in stated:
        found = _with_prevalence(found, stated["prevalence"])
    return _with_typical(found, stated["typical"]) if "typical" in stated else found


def _with_prevalence(kind: ColumnKind, stated: Any) -> ColumnKind:
    """Return a kind with the share of each label: of a condition, that of the second is stated."""
    shares = [stated] if kind.condition else items(kind.column, "prevalence", stated)
    fits = all(is_real(share) and 0.0 < share < 1.0 for share in shares)
    if fits and kind.condition:
        shares = [1.0 - shares[0], shares[0]]
    fits = fits and len(shares) == len(kind.labels) and abs(sum(shares) - 1.0) <= NEARLY
    rule = "the share of True" if kind.condition else "a share of each label, which add up to 1"
    require(fits, kind.column, f"have as prevalence {rule}, between 0 and 1")
    return replace(kind, prevalence=tuple(map(float, shares)))


def _with_typical(kind: ColumnKind, value: Any) -> ColumnKind:
    """Return a kind with a typical value, which the column must be able to hold."""
    cells = np.fromiter([value], dtype=object, count=1)
    flag = isinstance(value, bool | np.bool_)
    read = quietly(replace(kind, missing="error").read, cells)
    fits = (
        read is not None and flag == isinstance(kind.example, bool) and not kind.out_of_bounds(read)
    )
    require(fits, kind.column, "have a typical value that is within its bounds or categories")
    return replace(kind, typical=kind.cell(read[0]))


def expanded(column: str, specification: Any) -> Mapping[Any, Any]:
    """Return a specification as a mapping, whatever shorthand it is."""
    if isinstance(specification, Mapping):
        return specification
    if specification is bool:
        return {"boolean": True}
    if isinstance(specification, tuple):
        return {"bounds": specification}
    rule = "be (low, high), a list of labels, bool, or a mapping that holds one of "
    rule += f"{_listed(KINDS)}, got {type(specification).__name__}"
    require(isinstance(specification, list), column, rule, TypeError)
    rule = "not be a list of two numbers, which may be bounds or categories: write (low, high), or "
    rule += "{'categories': [one, other]}; the type bool for 0 and 1"
    require(len(specification) != 2 or not all(map(is_real, specification)), column, rule)
    return {"categories": specification}


def in_python(name: str, stated: Any) -> Any:
    """Return a column's entry in a file as the constructor has it: TOML has no tuples."""
    if stated == []:
        raise ValueError(
            f"columns[{name!r}] must say what the column holds, and [] says nothing: bounds such "
            'as [0, 100], or categories such as ["a", "b"].'
        )
    numbers = isinstance(stated, list) and all(type(one) in (int, float) for one in stated)
    return tuple(stated) if numbers and len(stated) == 2 else stated


def parameters_in_toml(text: str) -> dict[str, Any]:
    """Return the parameters of ``PublicColumns`` that a TOML file states."""
    parameters = tomllib.loads(text)
    known = {"columns", "missing", "drop", "missing_values"}
    if "columns" not in parameters or not known.issuperset(parameters):
        raise ValueError(
            "must hold a table of columns, and nothing else but missing, drop and missing_values."
        )
    if parameters.get("drop") == "none":
        parameters["drop"] = None
    if isinstance(parameters["columns"], dict):
        parameters["columns"] = {
            name: in_python(name, one) for name, one in parameters["columns"].items()
        }
    return parameters
