"""Hazard models for tests: parameters of a chain go into its method."""

from __future__ import annotations

from typing import Any

from skdpsurv import DPDiscreteTimeSurvival, PosteriorSampling
from skdpsurv.published import PublishedDiscreteTimeSurvival

CHAIN = tuple(PosteriorSampling().get_params())


def hazard(*args: Any, published: bool = False, **parameters: Any) -> Any:
    """Return a model, not fitted; with parameters of a chain one that samples a posterior."""
    chain = {name: parameters.pop(name) for name in CHAIN if name in parameters}
    if chain:
        assert parameters.get("method", "psgld") == "psgld"
        parameters["method"] = PosteriorSampling(**chain)
    make = PublishedDiscreteTimeSurvival if published else DPDiscreteTimeSurvival
    return make(*args, **parameters)
