"""Descriptions of columns from a formula, such as ``log(nodes) + age * treat + spline(bmi, 3)``.

formulaic reads the formula, and nothing evaluates it: terms are of an allow-list, and what would
learn from records or call Python is refused by name.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from skdpsurv.data.column_specifications import expanded
from skdpsurv.dp.input_errors import call_or_none
from skdpsurv.dp.references import extra

#: Functions of a formula: their arguments after the column, which are keys of a specification.
FUNCTIONS = {"log": ("offset",), "power": ("exponent",), "spline": ("df", "knots")}


def columns_of_formula(formula: Any, bounds: Any) -> dict[str, Any]:
    """Return the columns that a formula has, as ``PublicColumns`` takes them."""
    if not isinstance(formula, str):
        raise TypeError(f"formula must be text, got {type(formula).__name__}.")
    if not isinstance(bounds, Mapping):
        raise TypeError(f"bounds must be a mapping, got {type(bounds).__name__}.")
    for name in bounds:  # formulaic drops the backticks, and with them what is a name
        mistaken = str(name).isdecimal() or ":" in str(name)
        _require(not (mistaken and f"`{name}`" in formula), f"have no column named {name}")
    every = _terms(formula)
    terms = [factors for factors in every if factors != ["1"]]
    _require(len(terms) < len(every), "keep the intercept, which all models have")
    found: dict[str, Any] = {}
    stated: dict[str, str] = {}
    for factors in terms:
        many = ":".join(factors)
        _require(len(factors) <= 2, f"have products of two columns at most, got {many:.60}")
    for (factor,) in (factors for factors in terms if len(factors) == 1):
        column, specification = _factor(factor, bounds)
        _require(column not in found, f"have each column in one form, got {column} in two")
        found[column], stated[column] = specification, factor
    for one, other in (factors for factors in terms if len(factors) == 2):
        pair = []
        for factor in (one, other):
            column, _ = _factor(factor, bounds)
            rule = f"have {factor} by itself, too, beside {one}:{other}"
            _require(_same(stated.get(column), factor), rule)
            pair.append(column)
        _require(pair[0] != pair[1], f"have products of different columns, got {one}:{other}")
        found[":".join(pair)] = {"interaction": pair}
    _require(bool(found), "have a column")
    return found


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"formula must {rule}.")


def _terms(formula: str) -> list[list[str]]:
    """Return the factors of each term; the intercept is "1"."""
    with extra("formula", "formulaic", "PublicColumns.from_formula"):
        from formulaic.errors import FormulaParsingError
        from formulaic.parser import DefaultFormulaParser
    try:
        terms = DefaultFormulaParser().get_terms(formula)
        _require(not hasattr(terms, "lhs"), "have no left side: times and events go to fit")
        _require(all(hasattr(term, "factors") for term in terms), "have no parts, as by |")
        return [[factor.expr for factor in term.factors] for term in terms]
    except (FormulaParsingError, SyntaxError, RecursionError, KeyError):
        raise ValueError(
            f"formula must be sums and products of terms, got {formula!r:.200}."
        ) from None


def _same(one: str | None, other: str) -> bool:
    return one is not None and ast.dump(_parsed(one)) == ast.dump(_parsed(other))


def _parsed(factor: str) -> ast.expr:
    try:
        return ast.parse(factor, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Name(factor)  # a column's name in backticks


def _factor(factor: str, bounds: Mapping[str, Any]) -> tuple[str, Any]:
    """Return a column, and what a factor of a formula says of it."""
    parsed = _parsed(factor)
    if factor in bounds:
        is_term = isinstance(parsed, ast.Call) and getattr(parsed.func, "id", None) in FUNCTIONS
        _require(not is_term, f"have no column named {factor}")
        return factor, bounds[factor]
    if isinstance(parsed, ast.Name):
        raise ValueError(f"formula must have columns that bounds describe, got {factor!r:.60}.")
    named = _call(parsed)
    if named is None:
        raise ValueError(
            "formula must have columns, +, :, * and the functions log, power and spline of a "
            "column with numbers as options, since nothing may be learnt from records and no "
            f"Python is run, got {factor!r:.60}."
        )
    function, column, options = named
    _require(column in bounds, f"have columns that bounds describe, got {column!r:.60}")
    stated = dict(expanded(column, bounds[column]))
    _require("bounds" in stated, f"have {function} of a column with bounds, which {column} is not")
    return column, {function: stated.pop("bounds")} | stated | options


def _call(parsed: ast.expr) -> tuple[str, str, dict[str, Any]] | None:
    """Return function, column and options of a call that is allowed, else None."""
    match parsed:
        case ast.Call(func=ast.Name(id=name), args=[of, *more]) if name in FUNCTIONS:
            keys = FUNCTIONS[name]
        case _:
            return None
    nodes = [*zip(keys, more, strict=False), *((key.arg, key.value) for key in parsed.keywords)]
    if name == "log" and isinstance(of, ast.BinOp) and isinstance(of.op, ast.Add | ast.Sub):
        offset = of.right if isinstance(of.op, ast.Add) else ast.UnaryOp(ast.USub(), of.right)
        nodes, of = [*nodes, ("offset", offset)], of.left
    options = {key: call_or_none(ast.literal_eval, node) for key, node in nodes}
    n_options = len(more) + len(parsed.keywords) + (of is not parsed.args[0])
    fits = len(options) == n_options and options.keys() <= {*keys}
    if not fits or None in options.values() or not isinstance(of, ast.Name):
        return None
    return name, of.id, {str(key): value for key, value in options.items()}
