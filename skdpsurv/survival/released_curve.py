r"""A released distribution of survival times: all that follows from its cumulative hazard.

The mean time lived up to t is the area under the survival function, :math:`\int_0^t S(u)\,du`. It
is integrated between the knots of the curve, where that is smooth, by Gauss and Legendre's rule.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from skdpsurv.dp import clip_times
from skdpsurv.dp.types import BoolArray, FloatArray
from skdpsurv.release import Release

#: Of times, shape (n_times,), and parameters, shape (..., n_parameters).
CurveHook = Callable[[FloatArray, FloatArray], FloatArray]
#: Times of tables, where nothing else says which.
N_TIMES = 101
#: Points in each panel, and panels of a curve without knots.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
N_PANELS = 40


class ReleasedCurve(ABC):
    """What a release says of survival times.

    A subclass takes a release, refuses one that makes no sense, keeps what it needs of it, and sets
    ``estimates``, its parameters: attributes of the fitted estimator by their ``names``. It says
    what they mean:

    * ``cumulative_hazard(times, parameters)``: of shape (..., n_times), for times of shape
      (n_times,), and parameters as above in an array of shape (..., n_parameters).

    It may override ``time_of(cumulative_hazard)``, the inverse, where that has a closed form. Two
    more it may say; what needs them does not exist without:

    * ``hazard(times, parameters)``, for ``hazard_at_times`` and ``score``;
    * ``plausible(n_resamples)``: parameters that the release is compatible with, of shape
      (n_resamples, n_parameters), for ``confidence_interval`` and ``survival_band``. They must
      allow for sampling and for privacy noise, and be computed from the release alone.
    """

    #: What the estimate is called in tables; "" for the name of the estimator.
    short_name: ClassVar[str] = ""
    #: The curve that ``confidence_interval_``, ``subtract`` and ``divide`` are about.
    main: ClassVar[str] = "survival_function"
    #: The one that ``predict`` returns.
    predicts: ClassVar[str] = "survival_function"

    #: What parameters are called.
    names: ClassVar[Sequence[str]] = ()

    estimates: FloatArray
    hazard: CurveHook
    plausible: Callable[[int], FloatArray]

    def __init__(self, release: Release) -> None:
        self.max_time = float(release.parameters["max_time"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fitted})"

    @abstractmethod
    def cumulative_hazard(self, times: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return cumulative hazards, which rise with time."""

    @property
    def fitted(self) -> Mapping[str, Any]:
        """Attributes of the fitted estimator."""
        return dict(zip(self.names, self.estimates.tolist(), strict=True))

    @property
    def timeline(self) -> FloatArray:
        """Times that tables are of where ``fit`` was given none."""
        return np.linspace(0.0, self.max_time, N_TIMES)

    def at(self, times: FloatArray) -> FloatArray:
        """Return the estimated cumulative hazard."""
        return quietly(self.cumulative_hazard, times, self.estimates)

    def time_of(self, cumulative_hazard: float) -> float:
        """Return the first time by which the cumulative hazard is as large."""

        def has_come(bits: int) -> bool:
            time = np.array([bits]).view(np.float64)
            return bool(self.cumulative_hazard(time, self.estimates)[0] >= cumulative_hazard)

        # Positive doubles are ordered as the integers that their bits spell: 63 steps for all.
        end = int(np.float64(np.inf).view(np.int64))
        first = bisect_left(range(end), True, key=has_come)
        return float(np.int64(first).view(np.float64))

    def knots(self, end: float) -> FloatArray:
        """Return where panels end; closer together at the start, where curves may be steep."""
        return np.asarray(end * np.linspace(0.0, 1.0, N_PANELS + 1) ** 2)

    def mean(self, end: float, parameters: FloatArray) -> FloatArray:
        """Return areas under curves, for parameters of shape (..., n_parameters)."""
        knots = self.knots(end)
        middle, half = (knots[1:] + knots[:-1]) / 2.0, np.diff(knots) / 2.0
        times = (middle[:, None] + half[:, None] * NODES).ravel()
        with np.errstate(over="ignore", under="ignore"):
            survival = np.exp(-self.cumulative_hazard(times, parameters))
        return np.asarray(np.minimum(survival, 1.0) @ (half[:, None] * WEIGHTS).ravel())

    def percentiles(self, p: float, parameters: FloatArray) -> FloatArray:
        """Return times by which each of some curves has fallen to p; infinite beyond max_time."""
        knots = self.knots(self.max_time)
        with np.errstate(over="ignore", under="ignore"):
            hazards = self.cumulative_hazard(knots, parameters)
        hazards = np.maximum.accumulate(np.minimum(hazards, 1e9), axis=-1)
        return np.array([crossing(knots, one, -math.log(p)) for one in hazards])

    def mean_log_likelihood(self, time: FloatArray, event: BoolArray) -> float:
        """Return that of times that are not clipped yet."""
        time, event = clip_times(time, event, self.max_time)
        with np.errstate(divide="ignore"):
            log_hazard = np.log(quietly(self.hazard, time, self.estimates))
        return float(np.mean(np.where(event, log_hazard, 0.0) - self.at(time)))


def crossing(knots: FloatArray, hazards: FloatArray, target: float) -> float:
    """Return when a rising curve gets to a target, between knots in proportion."""
    k = int(np.searchsorted(hazards, target))
    if k == knots.size:
        return math.inf
    if k == 0:
        return float(knots[0])
    part = (target - hazards[k - 1]) / (hazards[k] - hazards[k - 1])
    return float(knots[k - 1] + part * (knots[k] - knots[k - 1]))


def quietly(curve: CurveHook, times: FloatArray, parameters: FloatArray) -> FloatArray:
    """Return a curve where numbers may be as large, or as small, as doubles are."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return np.asarray(curve(times, parameters))


def stated_records(release: Release, most: int) -> int:
    """Return the number of records of the fit; intervals are made of it."""
    for guarantee in (release.guarantee, release.made_by):
        number: Any = guarantee.public_inputs.get("n_records")
        if type(number) is not int or not 1 <= number <= most:
            raise ValueError(
                "public_inputs of the release must hold n_records, a positive integer."
            )
    return int(number)
