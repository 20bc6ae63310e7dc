"""Stacks, with the parameters of their partition and combiner beside their own."""

from __future__ import annotations

from typing import Any

from skdpsurv import FeaturePartition, LogisticCombiner, PrivateStackingClassifier
from skdpsurv.published import PublishedStackingClassifier

OF_COLUMNS = {"feature_groups": "groups", "importances": "importances", "group_norms": "norms"}


def with_objects(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a stack, those of its partition and of its combiner in objects."""
    rest = {**parameters}
    columns = {own: rest.pop(name) for name, own in OF_COLUMNS.items() if name in rest}
    if columns and rest.get("partition", "features") == "features":
        rest["partition"] = FeaturePartition(**columns)
    top = {name: rest.pop(name) for name in ("holdout",) if name in rest}
    if top and rest.get("combiner") == "logistic":
        rest["combiner"] = LogisticCombiner(**top)
    return rest


def stack_of(epsilon: float = 1.0, *, calibration: str = "tight", **parameters: Any) -> Any:
    """Return a stack, or that of the paper."""
    kinds = {"tight": PrivateStackingClassifier, "published": PublishedStackingClassifier}
    return kinds[calibration](epsilon, **with_objects(parameters))
