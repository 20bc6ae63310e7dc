"""Public transformers, which learn nothing: their features, and their form in releases.

The result for a row depends on that row and on the transformer's own parameters alone, as for the
entries of :data:`LEAVES`, and pipelines and column transformers of such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, combinations, combinations_with_replacement
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, Normalizer, PolynomialFeatures

from skdpsurv.data.bounds import PublicBoundsScaler
from skdpsurv.data.cells import as_table, rows_of_numbers
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.feature import Expression, Feature, known_names, product_of, raw_features
from skdpsurv.data.number_kinds import Number
from skdpsurv.data.shape import require_names
from skdpsurv.data.stratified_columns import StratifiedColumns
from skdpsurv.dp.guarantee import as_json, immutable
from skdpsurv.dp.input_errors import InputValueError, call_or_none, call_without_data, check_finite
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import FloatArray

Features = list[Feature]
#: Limits on features, nested steps and steps in all: a release with more was crafted.
MOST_FEATURES, MOST_NESTED, MOST_STEPS = 200_000, 20, 100
DROP = "drop"


def refuse_too_many(n_features: int) -> None:
    """Raise ValueError for more features than MOST_FEATURES."""
    if n_features > MOST_FEATURES:
        raise ValueError(f"columns must make at most {MOST_FEATURES:,} features.")


def _declared(step: PublicColumns, inputs: Features) -> Features:
    # A renamed column could pass for another one, and a boolean has been read before.
    read = (one.level is not None or one.expression.numbers != (one.name,) for one in inputs)
    if any(read) or any(one.expression.kind != "column" for one in inputs):
        raise ValueError("PublicColumns must come before all other steps: it reads raw columns.")
    given, stated = [one.name for one in inputs], step._names()
    missing = ", ".join(name for name in stated if name not in given)
    unknown = ", ".join(name for name in given if name not in stated)
    if missing or unknown:
        found = f"X has no {missing}" if missing else ""
        found += f"{found and '; '}columns does not describe {unknown}" if unknown else ""
        raise ValueError(f"columns of PublicColumns must be those of X: {found}.")
    return step._features()


def _normalized(step: Normalizer, inputs: Features) -> Features:
    if step.norm not in ("l1", "l2", "max"):
        raise ValueError(f"norm of Normalizer must be 'l1', 'l2' or 'max', got {step.norm!r}.")
    norm = Expression("norm", tuple(one.expression for one in inputs), (step.norm,))
    return [Feature(x.name, Expression("share", (x.expression, norm)), -1.0, 1.0) for x in inputs]


def _binarized(step: Binarizer, inputs: Features) -> Features:
    above = (float(step.threshold),)
    return [Feature(x.name, Expression("above", (x.expression,), above), 0.0, 1.0) for x in inputs]


def _multiplied(step: PolynomialFeatures, inputs: Features) -> Features:
    given = (0, step.degree) if isinstance(step.degree, Integral) else step.degree
    least, most = (int(degree) for degree in given)
    if not 0 <= least <= most <= MOST_NESTED:
        raise ValueError(f"degree of PolynomialFeatures must be at most {MOST_NESTED}.")
    n, distinct = len(inputs), step.interaction_only
    pick = combinations if distinct else combinations_with_replacement
    degrees = range(max(least, 1), most + 1)
    refuse_too_many(sum(comb(n, k) if distinct else comb(n + k - 1, k) for k in degrees))
    found: Features = [product_of("1", ())] if step.include_bias else []
    for factors in chain.from_iterable(pick(inputs, degree) for degree in degrees):
        if len(factors) == 1:
            found += factors
            continue
        counts = Counter(factor.name for factor in factors)
        name = " ".join(f"{one}^{count}" if count > 1 else one for one, count in counts.items())
        found.append(product_of(name, factors))
    return found


@dataclass(frozen=True)
class TransformerSpec:
    """A transformer of single rows, with its features; earlier releases lack ``optional`` ones."""

    kind: type
    parameters: tuple[str, ...]
    features: Callable[[Any, Features], Features]
    optional: tuple[str, ...] = ()


#: Parameters of described columns; those that earlier releases lack.
DESCRIBED, TEXTS = ("columns", "missing", "drop"), ("missing_values",)
#: Public transformers by their exact type: a subclass may do anything.
LEAVES = {
    leaf.kind: leaf
    for leaf in (
        TransformerSpec(
            PublicBoundsScaler, ("lower", "upper", "missing"), lambda s, i: s._features(i)
        ),
        TransformerSpec(PublicColumns, DESCRIBED, _declared, TEXTS),
        TransformerSpec(StratifiedColumns, (*DESCRIBED, "strata"), _declared, TEXTS),
        TransformerSpec(Normalizer, ("norm",), _normalized),
        TransformerSpec(Binarizer, ("threshold",), _binarized),
        TransformerSpec(
            PolynomialFeatures, ("degree", "interaction_only", "include_bias"), _multiplied
        ),
    )
}


def is_nothing(step: Any) -> bool:
    """Return whether a step leaves columns as they are."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def is_dropped(step: Any) -> bool:
    """Return whether a part of a column transformer leaves its columns out."""
    return isinstance(step, str) and step == DROP


def branches(step: ColumnTransformer, names: Sequence[str]) -> list[tuple[str, Any, list[int]]]:
    """Return name, transformer and indices of columns of each part; the remainder is the last."""
    found = [(name, one, _indices(columns, names)) for name, one, columns in step.transformers]
    rest = set(range(len(names))).difference(*(indices for _, _, indices in found))
    if rest and not is_dropped(step.remainder):
        found.append(("remainder", step.remainder, sorted(rest)))
    return found


def _indices(columns: Any, names: Sequence[str]) -> list[int]:
    chosen = columns.tolist() if isinstance(columns, np.ndarray) else columns
    if not isinstance(chosen, list | tuple | slice):
        raise TypeError(
            "columns of a ColumnTransformer must be lists of names or of indices, got "
            f"{type(columns).__name__}."
        )
    if not isinstance(chosen, slice):
        chosen = [list(names).index(one) if one in names else one for one in chosen]
    with suppress(IndexError, TypeError, ValueError):
        indices: list[int] = np.arange(len(names))[chosen].tolist()
        return indices
    raise ValueError(f"columns of a ColumnTransformer must be columns of X, got {columns!r}.")


def _inner(step: Any) -> list[tuple[str, Any]] | None:
    """Return the steps of a pipeline or column transformer; None for other transformers."""
    if type(step) is Pipeline:
        return list(step.steps)
    if type(step) is ColumnTransformer:
        return [*(part[:2] for part in step.transformers), ("remainder", step.remainder)]
    return None


def learned_steps(step: Any, name: str = "") -> list[str]:
    """Return the names of steps that may learn from records; none if all are public."""
    if is_nothing(step) or is_dropped(step) or type(step) in LEAVES:
        return []
    inside = f"{name}." if name else ""
    parts = _inner(step)
    if parts is None:
        kind = type(step).__name__
        return [f"{name} ({kind})" if name and name != kind.lower() else kind]
    found = [one for key, inner in parts for one in learned_steps(inner, inside + key)]
    if type(step) is ColumnTransformer:
        stated = dict(parts)
        found += [f"{inside}transformer_weights"] * (step.transformer_weights is not None)
        # A function sees the records, and may choose columns by them.
        found += [f"columns of {inside}{key}" for key, _, on in step.transformers if callable(on)]
        # Steps that were fitted as something else than they are stated to be now.
        for key, inner, *_ in getattr(step, "transformers_", ()):
            was = stated.get(key, "")
            if not isinstance(was, str) and type(inner) is not type(was):
                found.append(f"{inside}{key}")
    return list(dict.fromkeys(found))


def public_transformer(name: str, value: Any) -> None:
    """Refuse anything but a transformer that learns nothing from records."""
    if isinstance(value, type) or not hasattr(value, "fit_transform"):
        raise TypeError(
            f"{name} must be None or a public transformer, such as PublicColumns, got "
            f"{value.__name__ if isinstance(value, type) else type(value).__name__}."
        )
    if learned := learned_steps(value):
        raise ValueError(
            f"{name} must learn nothing from records, and {', '.join(learned)} may. Use "
            "PublicColumns or PublicBoundsScaler, whose bounds and categories are public."
        )
    _check(value)


def _check(step: Any) -> None:
    for _, inner in _inner(step) or ():
        if isinstance(inner, StratifiedColumns):
            raise ValueError("columns must not have strata inside of other steps.")
        _check(inner)
    if isinstance(step, PublicColumns):
        step._check()


def features_of(step: Any, inputs: Features) -> Features:
    """Return the features that a public transformer makes of others, without data."""
    if is_nothing(step):
        return inputs
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            inputs = features_of(inner, inputs)
            refuse_too_many(len(inputs))
        return inputs
    if isinstance(step, ColumnTransformer):
        if not isinstance(step.verbose_feature_names_out, bool):
            raise ValueError("verbose_feature_names_out of a ColumnTransformer must be a bool.")
        found: Features = []
        for key, inner, indices in branches(step, [one.name for one in inputs]):
            if is_dropped(inner):
                continue
            prefix = f"{key}__" if step.verbose_feature_names_out else ""
            made = features_of(inner, [inputs[j] for j in indices])
            found += [replace(one, name=f"{prefix}{one.name}") for one in made]
            refuse_too_many(len(found))
        return found
    return LEAVES[type(step)].features(step, inputs)


def input_names(step: Any, n_features: int, names: Sequence[str] | None) -> list[str] | None:
    """Return the names of raw columns, or those in their description; None without any."""
    if names is not None:
        return list(map(str, names))
    while isinstance(step, Pipeline) and step.steps:
        step = step.steps[0][1]
    stated = step._names() if isinstance(step, PublicColumns) else []
    return stated if len(stated) == n_features else None


def column_names(step: Any, n: int, names: Sequence[str] | None, X: Any = None) -> list[str]:
    """Return the names of raw columns, those in their description, or x0; X must have no others."""
    known = input_names(step, n, names)
    if known is not None:
        require_names(X, known)
    return known_names(known, n)


def features_in(step: Any, n_features: int, names: Sequence[str] | None) -> Features:
    """Return the features that a public transformer makes of raw columns, without data."""
    known = column_names(step, n_features, names)
    if len(set(known)) < len(known):
        raise ValueError("X must not have two columns of one name where columns describes them.")
    found = features_of(step, raw_features(known))
    if not found:
        raise ValueError("columns must make at least one feature.")
    return found


# ---- Descriptions in releases, as JSON has them.


def describe(step: Any, names: Sequence[str]) -> dict[str, Any] | None:
    """Return a public transformer as JSON has it; None if it does nothing."""
    if is_nothing(step):
        return None
    if isinstance(step, Pipeline):
        inner, inputs = [], raw_features(names)
        for key, one in step.steps:
            inner.append([key, describe(one, [feature.name for feature in inputs])])
            inputs = features_of(one, inputs)
        return {"step": "Pipeline", "steps": inner}
    if isinstance(step, ColumnTransformer):
        parts = [
            [key, DROP if is_dropped(one) else describe(one, [names[j] for j in indices]), indices]
            for key, one, indices in branches(step, names)
        ]
        verbose = bool(step.verbose_feature_names_out)
        return {"step": "ColumnTransformer", "parts": parts, "verbose_names": verbose}
    if hasattr(step, "_described"):
        parameters = dict(step._described())
    else:
        stated = LEAVES[type(step)].parameters
        parameters = {name: immutable(name, getattr(step, name)) for name in stated}
    return {"step": type(step).__name__, "parameters": parameters}


def rebuild(description: Any, depth: int = 0) -> Any:
    """Return the transformer that :func:`describe` described, not fitted."""
    if description is None:
        return "passthrough"
    found = call_or_none(_rebuilt, description, depth + 1) if depth < MOST_NESTED else None
    if found is None:
        raise ValueError("columns of a release must describe public steps, as its schema has it.")
    return found


def _rebuilt(description: Mapping[str, Any], depth: int) -> Any:
    match description["step"]:
        case "Pipeline":
            steps = [(str(key), rebuild(one, depth)) for key, one in description["steps"]]
            return Pipeline(steps) if 0 < len(steps) <= MOST_STEPS else None
        case "ColumnTransformer":
            parts = [
                (str(key), DROP if one == DROP else rebuild(one, depth), list(indices))
                for key, one, indices in description["parts"]
            ]
            if any(type(j) is not int or j < 0 for _, _, indices in parts for j in indices):
                return None
            # The name of the remainder, which comes last, is reserved.
            rest = [part[1] for part in parts if part[0] == "remainder"]
            return ColumnTransformer(
                [part for part in parts if part[0] != "remainder"],
                remainder=rest[0] if rest else DROP,
                verbose_feature_names_out=bool(description["verbose_names"]),
            )
        case name:
            (leaf,) = (leaf for kind, leaf in LEAVES.items() if kind.__name__ == name)
            parameters = as_json(description["parameters"])
            stated = set(parameters).difference(leaf.optional)
            return leaf.kind(**parameters) if stated == set(leaf.parameters) else None


# ---- Raw rows through a public transformer, block by block and cell by cell.


def encoded(step: Any, X: Any, n_columns: int, names: Sequence[str] | None) -> FloatArray:
    """Return the features of raw rows."""
    rows = _walked(step, X, n_columns, names, None)
    if not np.isfinite(rows).all():
        raise InputValueError(
            "columns must make finite numbers of X: it contains NaN or infinity, or values beyond "
            "all bounds."
        )
    return rows


def raw_values(
    step: PublicColumns,
    X: Any,
    n_columns: int,
    names: Sequence[str] | None,
    only: Sequence[str] | None = None,
) -> list[tuple[ColumnKind, FloatArray]]:
    """Return described columns' values as their kinds read them, NaN where missing."""
    table = as_table(X, column_names(step, n_columns, names, X))
    found: list[tuple[ColumnKind, FloatArray]] = call_without_data(step._read, table, None, only)
    return found


def columns_out_of_bounds(
    step: Any, X: Any, n_columns: int, names: Sequence[str] | None
) -> list[str]:
    """Return the columns in which a value lies beyond its public bounds, step by step."""
    found: list[str] = []
    _walked(step, X, n_columns, names, found)
    return list(dict.fromkeys(found))


def made_of_one(step: Any, n_columns: int, names: Sequence[str] | None) -> FloatArray:
    """Return the features of a placeholder row, to try a transformer."""
    row = valid_row(step, column_names(step, n_columns, names))
    return encoded(step, [row], n_columns, names)


def _walked(
    step: Any, X: Any, n_columns: int, names: Sequence[str] | None, beyond: list[str] | None
) -> FloatArray:
    known = column_names(step, n_columns, names, X)
    table, inputs = as_table(X, known), raw_features(known)
    if not len(table):  # a service may have no row today
        return np.empty((0, len(features_of(step, inputs))))
    with suppressed_warnings():  # a warning of scikit-learn would be about a record
        return rows_of_numbers(_through(step, table, inputs, beyond))


def _through(step: Any, X: Any, inputs: list[Feature], beyond: list[str] | None) -> Any:
    """Return rows through a public step; note columns beyond bounds in a list, if there is one."""
    if is_nothing(step):
        return X
    if isinstance(step, Pipeline):
        inners = [inner for _, inner in step.steps]
        for before, inner in zip([None, *inners], inners, strict=False):
            inputs = features_of(before, inputs)
            X = _through(inner, X, inputs, beyond)
        return X
    if isinstance(step, ColumnTransformer):
        parts = []
        for _, inner, indices in branches(step, [one.name for one in inputs]):
            if indices and not is_dropped(inner):
                own = X.iloc[:, indices] if isinstance(X, pd.DataFrame) else X[:, indices]
                parts.append(
                    rows_of_numbers(_through(inner, own, [inputs[j] for j in indices], beyond))
                )
        return np.hstack(parts) if parts else np.empty((X.shape[0], 0))
    raw, bounded = isinstance(step, PublicColumns), isinstance(step, PublicBoundsScaler)
    X = X if raw else rows_of_numbers(X)
    if bounded or (raw and not isinstance(X, pd.DataFrame)):
        X = pd.DataFrame(X, columns=[one.name for one in inputs])
    elif not raw:
        check_finite(X, "X")
    if beyond is not None and (raw or bounded):
        beyond += call_without_data(step._out_of_bounds, X)
    own = clone(step)
    return call_without_data(own.transform if raw else own.fit_transform, X)


def valid_row(step: Any, names: Sequence[str]) -> list[Any]:
    """Return a placeholder row that a public transformer takes."""
    return [0.0 if kind is None else kind.example for kind in raw_kinds(step, names)]


def raw_kinds(step: Any, names: Sequence[str]) -> list[ColumnKind | None]:
    """Return the kind of each raw column; None where no step states it."""
    if isinstance(step, Pipeline):
        inner = [one for _, one in step.steps if not is_nothing(one)]
        return raw_kinds(inner[0] if inner else None, names)
    found: dict[str, ColumnKind | None] = {}
    if isinstance(step, ColumnTransformer):
        parts = branches(step, names)
        for _, one, indices in sorted(parts, key=lambda part: not is_dropped(part[1])):
            own = [names[j] for j in indices]
            found |= {n: k for n, k in zip(own, raw_kinds(one, own), strict=True) if k}
    elif isinstance(step, PublicColumns | PublicBoundsScaler):
        found |= {kind.column: kind for kind in kinds_of(step, names)}
    elif is_dropped(step):  # nothing depends on it
        found |= {name: Number(name, "error", (0.0, 0.0)) for name in names}
    return [found.get(name) for name in names]


def kinds_of(step: PublicColumns | PublicBoundsScaler, names: Sequence[str]) -> list[ColumnKind]:
    """Return the kinds of columns that a step with public bounds reads."""
    if isinstance(step, PublicColumns):
        return step._kinds()
    ends = zip(*(end.tolist() for end in step._ends(names, len(names))), strict=True)
    return [Number(name, step.missing, both) for name, both in zip(names, ends, strict=True)]
