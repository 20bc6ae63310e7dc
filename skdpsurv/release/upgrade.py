"""Releases that earlier versions wrote, put as today's estimators put them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Public = Mapping[str, Any]
Changed = tuple[str, dict[str, Any]]

_WEIBULL = {"laplace": "LaplaceWeibullFitter", "sample_aggregate": "SampleAggregateWeibullFitter"}


def upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a release with today's names; values and guarantee stay."""
    change = _CHANGES.get(data["estimator"]) if isinstance(data["estimator"], str) else None
    if change is None or not isinstance(data["parameters"], dict):
        return data
    guarantee = data.get("fit_guarantee") or data["guarantee"]
    estimator, parameters = change(dict(data["parameters"]), guarantee.public_inputs)
    return {**data, "estimator": estimator, "parameters": parameters}


def _weibull(parameters: dict[str, Any], public: Public) -> Changed:
    """Return estimator and parameters: ways to fit were words of one estimator."""
    if not {"method", "calibration", "n_rungs"} <= parameters.keys():
        return "DPWeibullFitter", parameters
    method, calibration, n_rungs = (
        parameters.pop(name) for name in ("method", "calibration", "n_rungs")
    )
    if method in _WEIBULL:
        return _WEIBULL[method], parameters
    if calibration in ("exact", "published"):
        ladder = {"rungs": calibration, "n_rungs": n_rungs}
        return "PublishedWeibullFitter", {**parameters, **ladder}
    return "DPWeibullFitter", parameters


def _logistic(parameters: dict[str, Any], public: Public) -> Changed:
    """Return estimator and parameters: the papers' constants were a word of one estimator."""
    if parameters.pop("calibration", "tight") != "published":
        return "DPLogisticRegression", parameters
    parameters.pop("method", None)
    return "PublishedLogisticRegression", parameters


def _stack(parameters: dict[str, Any], public: Public) -> Changed:
    """Return estimator and parameters: weights were not stated, but followed from importances."""
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
