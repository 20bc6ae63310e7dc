"""Read the models that a stack has released, here or at another organisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.classification.group_fit import Coefficients
from skdpsurv.release import Release

__all__ = ["hypothesis_centers", "released_models"]


def released_array(release: Release, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a copy of released numbers.

    Raises
    ------
    ValueError
        If they are missing or of another shape.
    """
    array = np.array(release.values.get(name, np.nan))
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"values of the release must hold {name!r} of shape {shape}.")
    return array


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


def hypothesis_centers(
    hypothesis: Release,
    *,
    groups: Sequence[Sequence[int]],
    n_features: int,
    names: NDArray[Any] | None,
    classes: NDArray[Any],
    fit_intercept: bool,
) -> tuple[Coefficients, ...]:
    """Return the centres, after checking that the release speaks of the same groups and classes.

    Raises
    ------
    ValueError
        Naming what differs.
    """
    parameters = hypothesis.parameters
    if hypothesis.n_features_in != n_features:
        raise ValueError(
            f"hypothesis must have as many columns as X, {n_features}, got "
            f"{hypothesis.n_features_in}."
        )
    theirs = hypothesis.feature_names_in
    if names is not None and theirs is not None and tuple(map(str, names)) != theirs:
        raise ValueError("hypothesis must have columns of the same names and order as X.")
    if parameters.get("partition") != "features":
        raise ValueError("hypothesis must come from a stack with partition='features'.")
    if not _equal(parameters.get("feature_groups"), [list(group) for group in groups]):
        raise ValueError(
            "hypothesis must have the same groups of columns, in the same order: pass its "
            "feature_groups, release.parameters['feature_groups']."
        )
    if not _equal(parameters.get("classes"), classes.tolist()):
        raise ValueError("hypothesis must have the same classes.")
    if parameters.get("fit_intercept") is not fit_intercept:
        raise ValueError("hypothesis must have been fitted with the same fit_intercept.")
    return released_models(hypothesis, groups, classes.size if classes.size > 2 else 1)


def _equal(given: Any, wanted: list[Any]) -> bool:
    """Compare lists and tuples of whatever depth, and types of what is in them."""
    if isinstance(given, list | tuple) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(_equal, given, wanted))
    return type(given) is type(wanted) and bool(given == wanted)
