"""Strata of hazard models: groups with a baseline each, that a public column tells apart.

The parameter ``strata`` names a category of ``columns``. While a fit runs, and in its release,
these make no features of it: they are :class:`~skdpsurv.data.stratified_columns.StratifiedColumns`.
"""

from __future__ import annotations

from typing import Any

from skdpsurv.data.public_steps import raw_values
from skdpsurv.data.stratified_columns import stratified
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import IndexArray
from skdpsurv.release import Release


def n_strata(model: Any) -> int:
    """Return the number of strata that parameters state; 1 without any."""
    return 1 if model.strata is None else len(stratified(model.columns, model.strata).labels)


def stratum_of(model: Any, X: Any, columns: Any) -> IndexArray | None:
    """Return the number of the stratum of each row; None without strata.

    A label that is not stated is refused, and so is a missing one.
    """
    if model.strata is None:
        return None
    only = (columns.strata,)
    ((_, values),) = raw_values(columns, X, model.n_features_in_, model._raw_names(), only)
    return values.astype(int)


def labels_in(release: Release) -> tuple[Any, ...]:
    """Return the labels of the strata of a release; none without strata."""
    if "strata" not in release.parameters:
        return ()
    return stratified(release.transformer(), release.parameters["strata"]).labels


def reading(release: Release) -> list[str]:
    """Say which strata a release has; nothing if none."""
    if not (labels := labels_in(release)):
        return []
    column, listed = release.parameters["strata"], ", ".join(map(str, labels))
    return [phrase("by_stratum", column=column, labels=listed)]


def refuse_with_strata(model: Any) -> None:
    """Refuse methods that are not provided for with strata."""
    if model._sampling is not None:
        raise ValueError("strata must be None with method='psgld'.")
