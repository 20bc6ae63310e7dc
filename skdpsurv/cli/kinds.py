"""The models that commands fit, by the names that commands have for them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from skdpsurv.base import PrivateEstimator
from skdpsurv.classification import DPLogisticRegression
from skdpsurv.survival import DPDiscreteTimeSurvival, DPKaplanMeierFitter, DPWeibullFitter

__all__ = ["KINDS", "MADE_UP", "Kind"]


class Kind(StrEnum):
    """What ``skdpsurv fit`` has a command for."""

    survival = "survival"
    weibull = "weibull"
    km = "km"
    logistic = "logistic"


KINDS: dict[Kind, type[PrivateEstimator]] = {
    Kind.survival: DPDiscreteTimeSurvival,
    Kind.weibull: DPWeibullFitter,
    Kind.km: DPKaplanMeierFitter,
    Kind.logistic: DPLogisticRegression,
}

#: What each needs beside epsilon, where records are made up.
MADE_UP: dict[Kind, dict[str, Any]] = {
    Kind.survival: {"max_time": 1.0},
    Kind.weibull: {"max_time": 1.0},
    Kind.km: {"max_time": 1.0},
    Kind.logistic: {"classes": [0, 1]},
}
