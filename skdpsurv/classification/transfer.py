"""Read the models that a stack has released, here or at another organisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from skdpsurv.classification.group_fit import Coefficients
from skdpsurv.preprocessing.feature import Feature, require_same_units
from skdpsurv.priors import check_same_features
from skdpsurv.release import Release, released_array

__all__ = ["prior_centers", "released_models"]


def released_models(
    release: Release, groups: Sequence[Sequence[int]], n_outputs: int
) -> tuple[Coefficients, ...]:
    """Return the models below: one for each group of columns.

    Raises
    ------
    ValueError
        If the release does not hold just these.
    """
    intercepts = released_array(release, "low_level_intercept", (len(groups), n_outputs))
    return tuple(
        Coefficients(
            released_array(release, f"low_level_coef_{k}", (n_outputs, len(group))), intercepts[k]
        )
        for k, group in enumerate(groups)
    )


def prior_centers(
    prior: Release,
    *,
    groups: Sequence[Sequence[int]],
    n_features: int,
    names: Sequence[str] | None,
    features: Sequence[Feature] | None,
    classes: NDArray[Any],
    fit_intercept: bool,
) -> tuple[Coefficients, ...]:
    """Return the centres, after checking that the release speaks of the same groups and classes.

    Raises
    ------
    ValueError
        Naming what differs.
    """
    parameters = prior.parameters
    if not prior.has_columns(features):
        raise ValueError(
            "prior must have read its columns as these are read, by the same bounds and "
            "categories: pass columns=prior.transformer(), which is None if it does not say."
        )
    if features is not None:
        require_same_units("prior", features, prior.features)
    check_same_features(prior, n_features, names)
    if parameters.get("partition") != "features":
        raise ValueError("prior must come from a stack with partition='features'.")
    if not _equal(parameters.get("feature_groups_"), [list(group) for group in groups]):
        raise ValueError(
            "prior must have the same groups of columns, in the same order: pass its groups, "
            "partition=FeaturePartition(release.parameters['feature_groups_'])."
        )
    if not _equal(parameters.get("classes"), classes.tolist()):
        raise ValueError("prior must have the same classes.")
    if parameters.get("fit_intercept") is not fit_intercept:
        raise ValueError("prior must have been fitted with the same fit_intercept.")
    return released_models(prior, groups, classes.size if classes.size > 2 else 1)


def _equal(given: Any, wanted: list[Any]) -> bool:
    """Compare lists and tuples of whatever depth, and types of what is in them."""
    if isinstance(given, list | tuple) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(_equal, given, wanted))
    return type(given) is type(wanted) and bool(given == wanted)
