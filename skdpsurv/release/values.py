"""Released values with checked shapes, released parameters, and the number of records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skdpsurv.dp.types import FloatArray
from skdpsurv.release.release import Release


def released_array(release: Release, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return a copy of released numbers; ValueError if they are missing or of another shape."""
    array = np.array(release.values.get(name, np.nan))
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"values of the release must hold {name!r} of shape {shape}.")
    return array


#: Largest variance of a sum of tables.
LARGEST_VARIANCE = 1e24


def released_noise(release: Release, name: str) -> tuple[str, float]:
    """Return law and variance of the noise on a released value; ValueError if not stated."""
    stated: Any = release.noise.get(name, {"law": "", "variance": math.inf})
    law, variance = stated["law"], float(stated["variance"])
    if not variance <= LARGEST_VARIANCE:
        raise ValueError(f"noise of the release must hold the variance of {name!r}.")
    return law, variance


def stated_records(release: Release, most: int) -> int:
    """Return the public number of records of the fit."""
    for guarantee in (release.guarantee, release.made_by):
        number: Any = guarantee.public_inputs.get("n_records")
        if type(number) is not int or not 1 <= number <= most:
            raise ValueError("public_inputs of the release must hold a positive n_records.")
    return int(number)


def check_parameters(release: Release, *names: str) -> None:
    """Raise ValueError for a release without the parameters that its estimator needs."""
    if missing := [name for name in names if name not in release.parameters]:
        raise ValueError(f"parameters of the release must hold {', '.join(missing)}.")
