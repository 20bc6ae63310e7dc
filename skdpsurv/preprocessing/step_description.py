"""Public transformers as a release holds them: described as JSON has it, and rebuilt from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from skdpsurv.preprocessing.feature import raw_features
from skdpsurv.preprocessing.public_leaves import LEAVES, MOST_NESTED
from skdpsurv.preprocessing.public_steps import branches, features_of, is_dropped, is_nothing
from skdpsurv.privacy.guarantee import thawed

#: More than anybody writes.
MOST_STEPS = 100
DROP = "drop"

NAMES = {kind.__name__: kind for kind in LEAVES}


def made_names(description: Mapping[str, Any] | None, names: Sequence[str]) -> list[str]:
    """Return the names of what a described step makes of columns."""
    return [one.name for one in features_of(rebuild(description), raw_features(names))]


def describe(step: Any, names: Sequence[str]) -> dict[str, Any] | None:
    """Return a public transformer as JSON has it; None of one that does nothing.

    Parameters
    ----------
    step : transformer
    names : sequence of str
        Of the columns that go in.
    """
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
            [key, DROP if is_dropped(one) else describe(one, [names[j] for j in places]), places]
            for key, one, places in branches(step, names)
        ]
        verbose = bool(step.verbose_feature_names_out)
        return {"step": "ColumnTransformer", "parts": parts, "verbose_names": verbose}
    return {"step": type(step).__name__, "parameters": LEAVES[type(step)].described(step)}


def rebuild(description: Any, depth: int = 0) -> Any:
    """Return the transformer that :func:`describe` described, not fitted.

    Raises
    ------
    ValueError
        If there is none such.
    """
    if description is None:
        return "passthrough"
    found = None
    with suppress(LookupError, TypeError, AttributeError, ArithmeticError):
        found = _rebuilt(description, depth) if depth < MOST_NESTED else None
    if found is None:
        raise ValueError("columns of a release must describe public steps, as its schema has it.")
    return found


def _rebuilt(description: Mapping[str, Any], depth: int) -> Any:
    match description["step"]:
        case "Pipeline":
            steps = [(str(key), rebuild(one, depth + 1)) for key, one in description["steps"]]
            return Pipeline(steps) if 0 < len(steps) <= MOST_STEPS else None
        case "ColumnTransformer":
            parts = [
                (str(key), DROP if one == DROP else rebuild(one, depth + 1), _places(places))
                for key, one, places in description["parts"]
            ]
            # Its name is reserved: what remains, after all others.
            rest = [part[1] for part in parts if part[0] == "remainder"]
            return ColumnTransformer(
                [part for part in parts if part[0] != "remainder"],
                remainder=rest[0] if rest else DROP,
                verbose_feature_names_out=bool(description["verbose_names"]),
            )
        case name:
            leaf = LEAVES[NAMES[name]]
            parameters = thawed(description["parameters"])
            stated = set(parameters).difference(leaf.optional)
            return leaf.kind(**parameters) if stated == set(leaf.parameters) else None


def _places(value: Any) -> list[int]:
    if not isinstance(value, list | tuple) or any(type(j) is not int or j < 0 for j in value):
        raise TypeError
    return list(value)
