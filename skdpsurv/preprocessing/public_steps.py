"""Which transformers learn nothing, and what pipelines and column transformers of these make.

A transformer is public if what it makes of a row depends on that row and on its own parameters
alone: the leaves (:mod:`~skdpsurv.preprocessing.public_leaves`), and steps that are made of such.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from skdpsurv.preprocessing.feature import known_names as known_names
from skdpsurv.preprocessing.feature import raw_features
from skdpsurv.preprocessing.public_columns import PublicColumns
from skdpsurv.preprocessing.public_leaves import LEAVES, Features, refuse_too_many


def is_nothing(step: Any) -> bool:
    """Say whether a step leaves columns as they are."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def is_dropped(step: Any) -> bool:
    """Say whether a part of a column transformer leaves its columns out."""
    return isinstance(step, str) and step == "drop"


def branches(step: ColumnTransformer, names: Sequence[str]) -> list[tuple[str, Any, list[int]]]:
    """Return name, transformer and places of columns of each part, what remains last.

    Parts that are dropped are among them; what remains is, unless it is dropped.

    Raises
    ------
    ValueError, TypeError
        If columns are not named by a list of names or indices that X has.
    """
    found, rest = [], set(range(len(names)))
    for name, inner, columns in step.transformers:
        places = _places(columns, names)
        found.append((name, inner, places))
        rest -= set(places)
    if rest and not is_dropped(step.remainder):
        found.append(("remainder", step.remainder, sorted(rest)))
    return found


def _places(columns: Any, names: Sequence[str]) -> list[int]:
    chosen = columns.tolist() if isinstance(columns, np.ndarray) else columns
    if not isinstance(chosen, list | tuple | slice):
        raise TypeError(
            "columns of a ColumnTransformer must be lists of names or of indices, got "
            f"{type(columns).__name__}."
        )
    if not isinstance(chosen, slice):
        chosen = [list(names).index(one) if one in names else one for one in chosen]
    with suppress(IndexError, TypeError, ValueError):
        places: list[int] = np.arange(len(names))[chosen].tolist()
        return places
    raise ValueError(f"columns of a ColumnTransformer must be columns of X, got {columns!r}.")


def _inner(step: Any) -> list[tuple[str, Any]] | None:
    """Return the steps that a pipeline or column transformer is made of; None of others."""
    if type(step) is Pipeline:
        return list(step.steps)
    if type(step) is ColumnTransformer:
        return [*(part[:2] for part in step.transformers), ("remainder", step.remainder)]
    return None


def learned_steps(step: Any, name: str = "") -> list[str]:
    """Return the steps that may learn from records, by their names; none if it is public.

    Parameters
    ----------
    step : transformer
        Or a pipeline or column transformer of such.
    name : str
        What it is called where it comes from.
    """
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
        weighted = step.transformer_weights is not None
        found += [f"{inside}transformer_weights"] * weighted
        # A function sees the records, and may choose by what they hold.
        chosen = [key for key, _, which in step.transformers if callable(which)]
        found += [f"columns of {inside}{key}" for key in chosen]
        # What was fitted as something else than it is stated to be now.
        fitted = [part[:2] for part in getattr(step, "transformers_", ()) if part[0] in stated]
        found += [
            f"{inside}{key}"
            for key, inner in fitted
            if not isinstance(stated[key], str) and type(inner) is not type(stated[key])
        ]
    return list(dict.fromkeys(found))


def public_transformer(name: str, value: Any) -> None:
    """Refuse what is no transformer, or learns from records; None is neither.

    The check of ``columns``.
    """
    if value is None:
        return
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
        _check(inner)
    if isinstance(step, PublicColumns):
        step._check()


def features_of(step: Any, inputs: Features) -> Features:
    """Return what a public transformer makes of columns, known without data.

    Parameters
    ----------
    step : transformer
    inputs : list of Feature
        What goes in.

    Raises
    ------
    ValueError, TypeError
        If its parameters do not fit the columns.
    """
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
        for key, inner, places in branches(step, [one.name for one in inputs]):
            if is_dropped(inner):
                continue
            prefix = f"{key}__" if step.verbose_feature_names_out else ""
            made = features_of(inner, [inputs[j] for j in places])
            found += [replace(one, name=f"{prefix}{one.name}") for one in made]
            refuse_too_many(len(found))
        return found
    return LEAVES[type(step)].features(step, inputs)


def input_names(step: Any, n_features: int, names: Sequence[str] | None) -> list[str] | None:
    """Return the names of raw columns, which they or their description have; None if neither has.

    Parameters
    ----------
    step : transformer
    n_features : int
        How many columns there are.
    names : sequence of str or None
        Theirs, if they have any.
    """
    if names is not None:
        return list(map(str, names))
    while isinstance(step, Pipeline) and step.steps:
        step = step.steps[0][1]
    stated = step._names() if isinstance(step, PublicColumns) else []
    return stated if len(stated) == n_features else None


def column_names(step: Any, n_features: int, names: Sequence[str] | None) -> list[str]:
    """Return the names of raw columns: theirs, those of their description, or x0 and so on."""
    return known_names(input_names(step, n_features, names), n_features)


def features_in(step: Any, n_features: int, names: Sequence[str] | None) -> Features:
    """Return what a public transformer makes of raw columns, known without data.

    Parameters
    ----------
    step : transformer or None
    n_features : int
        How many columns there are.
    names : sequence of str or None
        Of the columns.

    Raises
    ------
    ValueError, TypeError
        If its parameters do not fit the columns, or nothing is left of them.
    """
    known = column_names(step, n_features, names)
    if len(set(known)) < len(known):
        raise ValueError("X must not have two columns of one name where columns describes them.")
    found = features_of(step, raw_features(known))
    if not found:
        raise ValueError("columns must make at least one feature.")
    return found
