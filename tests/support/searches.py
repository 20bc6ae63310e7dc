"""Searches, with the parameters of their strategy beside their own."""

from __future__ import annotations

from typing import Any

from skdpsurv.model_selection import DisjointParts, PrivateSearchCV, RepeatedRuns

OF_RUNS = ("eta", "expected_runs", "holdout")


def with_strategy(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a search, those of its strategy in an object; the split has no runs."""
    own = {name: value for name, value in parameters.items() if name in OF_RUNS}
    rest = {name: value for name, value in parameters.items() if name not in OF_RUNS}
    word = rest.get("strategy", "repeat")
    if word == "split":
        own = {name: value for name, value in own.items() if name == "holdout"}
    if not own or word not in ("repeat", "split"):
        return rest
    return {**rest, "strategy": RepeatedRuns(**own) if word == "repeat" else DisjointParts(**own)}


def search_of(estimator: Any, grid: Any, **parameters: Any) -> PrivateSearchCV:
    """Return a search."""
    return PrivateSearchCV(estimator, grid, **with_strategy(parameters))
