"""What is asked: a study in public numbers, and how often it is simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdpsurv.forecast.covariates import Column
from skdpsurv.privacy.silence import silence

__all__ = ["MEDIAN", "Measures", "Run", "Setting", "fitted"]

#: The measure of which the median over studies is told, not the mean.
MEDIAN = "interval_width"

#: Of one fit, by name.
Measures = dict[str, float]
#: Of one simulated study, by epsilon.
Run = dict[float, Measures]


@dataclass(frozen=True)
class Setting:
    """A study in public numbers.

    Parameters
    ----------
    n_records : int
    epsilons : tuple of float
        Rising; the last is infinite, no privacy.
    event_rate, concordance, censoring : float
    baseline_shape : float
        Of the Weibull distribution of a baseline.
    level : float
        Of intervals.
    columns : tuple of Column
        Empty for curves.
    names : tuple of str or None
        Those of raw columns; None: X is an array of numbers.
    """

    n_records: int
    epsilons: tuple[float, ...]
    event_rate: float
    concordance: float
    censoring: float
    baseline_shape: float
    level: float
    columns: tuple[Column, ...] = ()
    names: tuple[str, ...] | None = None


def fitted(
    estimator: Any, epsilon: float, rng: np.random.Generator, *records: Any, **options: Any
) -> Any:
    """Return a copy of an estimator, fitted to made-up records with noise of a seed."""
    model = clone(estimator)
    model.set_params(epsilon=epsilon, random_state=int(rng.integers(2**31)))
    with silence():  # that a seed voids a guarantee: these records are nobody's
        return model.fit(*records, **options)
