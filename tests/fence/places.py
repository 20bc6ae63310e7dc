"""Where old and new checkouts keep what the fence needs: the one place to mend after a renaming."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

PUBLIC = "skdpsurv"
#: Names, and the modules in which they are looked for: the first that has one is taken.
PLACES: dict[str, tuple[str, ...]] = {
    "RandomSource": ("skdpsurv.privacy.randomness", "skdpsurv.dp.random"),
    "AskedSource": ("skdpsurv.privacy.randomness", "skdpsurv.dp.random"),
    "asked_instead": ("skdpsurv.privacy.randomness", "skdpsurv.dp.random"),
    "private_survival_metrics": ("skdpsurv.metrics", "skdpsurv.evaluation"),
}
#: From a parameter's old name or value to today's, by estimator: used if a parameter is unknown.
RESPELLED: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {}


def find(name: str) -> Any:
    """Return what has a name; LookupError if this checkout has it nowhere."""
    for place in PLACES.get(name, (PUBLIC,)):
        try:
            return getattr(importlib.import_module(place), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise LookupError(f"{name}: in none of the places that tests/fence/places.py knows.")


def make(name: str, **parameters: Any) -> Any:
    """Return an estimator, not fitted."""
    kind = find(name)
    if not parameters.keys() <= inspect.signature(kind).parameters.keys():
        parameters = dict(RESPELLED[name](parameters))
    return kind(**parameters)
