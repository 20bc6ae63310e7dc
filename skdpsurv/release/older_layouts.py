"""Files of older layouts, by literals: what they did not state, and names that have changed.

What stands here describes files that exist. It follows no constant of today's code, and is changed
only to add an older layout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Public = Mapping[str, Any]
Changed = tuple[str, dict[str, Any]]

_WEIBULL = {"laplace": "LaplaceWeibullFitter", "sample_aggregate": "SampleAggregateWeibullFitter"}


def upgraded(data: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the fields of a release as today's layout has them; what was released stays."""
    if version > 2:
        return data
    if version == 1:  # which said nothing of columns, nor of what made it
        data = {**data, "columns": None, "target_names": (), "made_with": "skdpsurv 0.1"}
    made = data.get("fit_guarantee") or data["guarantee"]
    noise = noise_of_counts(data["estimator"], data["values"], made)
    data = {**data, "plan": None, "fit_plan": None, "noise": noise}
    change = _CHANGES.get(data["estimator"]) if isinstance(data["estimator"], str) else None
    if change is None or not isinstance(data["parameters"], dict):
        return data
    estimator, parameters = change(dict(data["parameters"]), made.public_inputs)
    return {**data, "estimator": estimator, "parameters": parameters}


def require_noise(noise: Any, *made_of: Any) -> None:
    """Refuse noise of a release without a plan, if files of older layouts did not have it."""
    if noise != noise_of_counts(*made_of):
        raise ValueError("noise of a release without a plan must be that of an older layout.")


def noise_of_counts(estimator: Any, values: Mapping[str, Any], made: Any) -> dict[str, Any]:
    """Return law and variance of the noise on a table of counts."""
    pooled = "pooled" in made.public_inputs
    if pooled or (estimator == "DPTableOne" and "count_variance" in values):
        law = "sum" if pooled else "gaussian" if made.delta else "laplace"
        variance = values.get("count_variance")
        return {} if variance is None else {"counts": {"law": law, "variance": variance}}
    if estimator not in ("DPKaplanMeierFitter", "DPAalenJohansenFitter"):
        return {}
    if math.isinf(made.epsilon):
        return {"counts": {"law": "none", "variance": 0.0}}
    variance = (math.sqrt(2.0) * 2 / max(made.epsilon, 1e-100)) ** 2
    return {"counts": {"law": "laplace", "variance": variance}}


def _weibull(parameters: dict[str, Any], public: Public) -> Changed:
    """Return today's class, and the parameters, of an older release of a Weibull fit."""
    names, tuned = ("method", "calibration", "n_rungs"), {**parameters, "tuning": 1}
    if not parameters.keys() >= set(names):
        return "DPWeibullFitter", tuned
    method, calibration, n_levels = map(parameters.pop, names)
    if method in _WEIBULL:
        return _WEIBULL[method], parameters
    if calibration in ("exact", "published"):
        return "PublishedWeibullFitter", {**parameters, "ladder": calibration, "n_levels": n_levels}
    return "DPWeibullFitter", {**parameters, "tuning": 1}


def _logistic(parameters: dict[str, Any], public: Public) -> Changed:
    """Give the papers' constants a class of their own."""
    if parameters.pop("calibration", "tight") != "published":
        return "DPLogisticRegression", parameters
    parameters.pop("method", None)
    return "PublishedLogisticRegression", parameters


def _stack(parameters: dict[str, Any], public: Public) -> Changed:
    """Give the papers' constants a class of their own, and state the weights."""
    published = parameters.pop("calibration", "tight") == "published"
    estimator = "PublishedStackingClassifier" if published else "PrivateStackingClassifier"
    if "feature_groups" not in parameters:
        return estimator, parameters
    groups, _ = parameters.pop("feature_groups"), parameters.pop("importances", None)
    if parameters.get("partition") == "samples":
        return estimator, parameters
    return estimator, {**parameters, "feature_groups_": groups, "weights_": public.get("weights")}


_CHANGES = {
    "DPLogisticRegression": _logistic,
    "DPWeibullFitter": _weibull,
    "PrivateStackingClassifier": _stack,
}
