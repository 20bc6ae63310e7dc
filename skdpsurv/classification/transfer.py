"""What another organisation released, as the centre that models here are shrunk towards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.classification.group_fit import Coefficients
from skdpsurv.release import Release

#: Released coefficients beyond this, times ``data_norm``, are no model that a fit can start from.
LARGEST_COEFFICIENT = 1e4


def low_level_models(release: Release) -> list[Coefficients]:
    """Return the models below, as a stack released them."""
    values = release.values
    intercepts = np.asarray(values["low_level_intercept"])
    return [
        Coefficients(np.array(values[f"low_level_coef_{k}"]), np.array(intercept))
        for k, intercept in enumerate(intercepts)
    ]


def hypothesis_centers(
    hypothesis: Release,
    *,
    groups: Sequence[Sequence[int]],
    n_features: int,
    names: NDArray[Any] | None,
    classes: NDArray[Any],
    fit_intercept: bool,
    data_norm: float,
) -> list[Coefficients]:
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
    if [list(g) for g in parameters.get("feature_groups") or []] != [list(g) for g in groups]:
        raise ValueError(
            "hypothesis must have the same groups of columns, in the same order: pass its "
            "feature_groups, release.parameters['feature_groups']."
        )
    if list(parameters["classes"]) != classes.tolist():
        raise ValueError("hypothesis must have the same classes.")
    if bool(parameters["fit_intercept"]) != fit_intercept:
        raise ValueError("hypothesis must have been fitted with the same fit_intercept.")
    n_outputs = classes.size if classes.size > 2 else 1
    models = low_level_models(hypothesis)
    shapes = [(n_outputs, len(group)) for group in groups]
    if [model.coef.shape for model in models] != shapes or any(
        model.intercept.shape != (n_outputs,) for model in models
    ):
        raise ValueError("hypothesis must hold coefficients for each group and class.")
    largest = max(max(np.abs(m.coef).max() * data_norm, np.abs(m.intercept).max()) for m in models)
    if not largest <= LARGEST_COEFFICIENT:
        raise ValueError(
            f"coefficients of hypothesis, times data_norm, must be at most {LARGEST_COEFFICIENT:g}."
        )
    return models
