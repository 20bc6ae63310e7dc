r"""A hazard model over discrete time, however it is fitted: its records, and what it predicts.

The cumulative hazard :math:`\Lambda(t) = \sum_{s \le t} \varphi(\eta_s)` is positive, and its
logarithm is nearer to normal than it is itself: with the error :math:`\sigma` that :math:`\log
\Lambda` has to first order, the ends of a band are :math:`\exp(-\Lambda e^{\pm z\sigma})`, as
lifelines and R's survival have them ("log-log").
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.data.blocks import Blocks
from skdpsurv.data.shape import Shape
from skdpsurv.dp.checks import (
    Check,
    auto_or,
    choice,
    fraction,
    horizon,
    integer,
    positive,
    required_horizon,
    zero_or,
)
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import Inference, Summarised
from skdpsurv.inference.inference import NAMES, half_width
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.survival.hazards.model import (
    HazardModel,
    HazardRecords,
    interval_ends,
    published_basis,
)
from skdpsurv.survival.hazards.recalibration import Recalibration
from skdpsurv.survival.regression import SurvivalRegression

if TYPE_CHECKING:
    from skdpsurv.release.script import Script
    from skdpsurv.survival.hazards.recalibration import Recalibration


#: Inverse links.
HAZARDS = {"logit": "expit({})", "cloglog": "1 - exp(-exp({}))", "probit": "normal_cdf({})"}


def _basis(n_knots: int, script: Script) -> list[str]:
    """Return the published basis on (0, 1], where what begins at the last knot is 0."""
    knots = [f"d(t, {script.number(knot)})" for knot in np.linspace(0.0, 1.0, n_knots)[:-1]]
    return ["1", "t", *(f"({knot} - {knots[-1]})" for knot in knots[:-1])][:n_knots]


def _broken_line(recalibration: Recalibration, script: Script) -> str:
    """Return what is added to the baseline, as a sum of a line and its bends; or nothing."""
    shift, slopes = recalibration.shift, recalibration.slopes
    if not shift.any():
        return ""
    weights = [shift[0], slopes[0], *np.diff(slopes)]
    bends = [f"bend(t, {script.number(knot)})" for knot in recalibration.knots[1:-1]]
    return f" + ({script.weighted(weights, ['1', 't', *bends])})"


#: Finer grids fill the memory, and are finer than any clock in a study.
MOST_INTERVALS = 1_000_000


class DiscreteTimeModel(Summarised, SurvivalRegression):
    """Base of private hazard models on a public grid: a subclass says by which plan they are fit.

    It has the parameters below and those of every
    :class:`~skdpsurv.survival.regression.SurvivalRegression`.
    """

    n_intervals: int
    n_knots: int
    link: str
    data_norm: float | str
    alpha: float

    _rules: ClassVar[dict[str, Check]] = {
        "max_time": horizon(positive()),
        "n_intervals": integer(at_most=MOST_INTERVALS),
        "n_knots": integer(),
        "link": choice(*LINKS),
        "data_norm": auto_or(positive()),
        "alpha": zero_or(positive()),
    }

    @abstractmethod
    def _plan(self, shape: Shape) -> Plan:
        """Decide from public numbers alone how epsilon is spent."""

    def _check_together(self) -> None:
        if self.n_knots > self.n_intervals:
            raise ValueError(
                f"n_knots must be at most n_intervals={self.n_intervals}, got {self.n_knots}."
            )

    def _model(self, shape: Shape, *, exact_rows: bool, **others: Any) -> HazardModel:
        """Return what is public of a fit; with exact rows "auto" clips none of a public scaler."""
        if not isinstance(self.data_norm, str):
            data_norm = float(self.data_norm)
        else:
            data_norm = math.sqrt(shape.n_features) / (1.0 if exact_rows else 2.0)
        return HazardModel(
            link=self.link,
            n_intervals=int(self.n_intervals),
            n_knots=int(self.n_knots),
            n_records=shape.n_records,
            n_features=shape.n_features,
            data_norm=data_norm,
            max_time=required_horizon(self.max_time),
            **others,
        )

    def _read(self, shape: Shape, X: ArrayLike, y: ArrayLike) -> Blocks[HazardRecords]:
        grid: Any = {
            "max_time": required_horizon(self.max_time),
            "n_intervals": int(self.n_intervals),
        }
        return super()._read(shape, X, y).map(lambda block: HazardRecords.on_grid(*block, **grid))

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        return {
            "max_time": required_horizon(self.max_time),
            "n_intervals": int(self.n_intervals),
            "n_knots": int(self.n_knots),
            "link": self.link,
        }

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, "max_time", "n_intervals", "n_knots", "link")
        self.coef_ = released_array(release, "coef", (release.n_features,))
        n_knots = int(release.parameters["n_knots"])
        self.baseline_coef_ = released_array(release, "baseline_coef", (n_knots,))
        self.unique_times_ = interval_ends(
            release.parameters["max_time"], release.parameters["n_intervals"]
        )
        self.recalibration_ = Recalibration.of(release)
        self.inference_ = None
        if not release.values.keys().isdisjoint(NAMES):
            self.inference_ = Inference.of(release, n_knots + release.n_features)
        self.max_cumulative_hazard_ = None
        if "inference_cap" in release.values:
            (self.max_cumulative_hazard_,) = released_array(release, "inference_cap", (1,)).tolist()

    def survival_band(self, X: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of survival functions, at ``unique_times_``.

        They allow for sampling and for privacy noise, and are about unshrunk estimates
        (``summary``): recalibrated predictions may be outside. That of the baseline is that of a
        row of zeros. No budget is spent.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        level : float, default=0.95
            Coverage asked for, at each time.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_intervals)
            0 and 1 where nothing is known.

        Raises
        ------
        ValueError
            If there are no standard errors: ``inference_share`` was 0, or the data too few.
        """
        level, found = fraction("level", level), self._require_inference()
        stated = self.release_.parameters
        basis = published_basis(stated["n_intervals"], stated["n_knots"])
        rows, link, q = self._prediction_rows(X), LINKS[stated["link"]], len(basis)
        lower, upper = np.zeros((len(rows), q)), np.ones((len(rows), q))
        for i, row in enumerate(rows):
            combination = np.column_stack([basis, np.broadcast_to(row, (q, row.size))])
            if (combination[:, ~found.known] != 0.0).any():
                continue
            with np.errstate(all="ignore"):
                curve = link.survival(combination @ found.estimate)
                hazard = np.cumsum(curve.value)
                slopes = np.cumsum(curve.slope[:, None] * combination, axis=0) / hazard[:, None]
                variance = np.einsum("ij,jk,ik->i", slopes, found.covariance, slopes)
                factor = np.exp(half_width(level) * np.sqrt(np.maximum(variance, 0.0)))
                ends = np.exp(-hazard * factor), np.exp(-hazard / factor)
            lower[i], upper[i] = np.where(np.isfinite(ends), ends, [[0.0], [1.0]])
        return lower, upper

    def _cumulative_hazard(self, risk: FloatArray) -> FloatArray:
        parameters = self.release_.parameters
        basis = published_basis(parameters["n_intervals"], parameters["n_knots"])
        ends = interval_ends(1.0, parameters["n_intervals"])
        baseline = basis @ self.baseline_coef_ + self.recalibration_.at(ends)
        eta = baseline + self.recalibration_.slope * risk[:, None]
        return np.cumsum(LINKS[parameters["link"]].survival(eta).value, axis=1)

    def _formula(self, script: Script) -> str:
        stated, recalibration = self.release_.parameters, self.recalibration_
        end, q = script.number(stated["max_time"]), script.number(stated["n_intervals"])
        n_knots = self.baseline_coef_.size
        spline = script.weighted(self.baseline_coef_, _basis(n_knots, script))
        line = _broken_line(recalibration, script)
        slope = "" if recalibration.slope == 1 else f"{script.number(recalibration.slope)} * "
        predictor = f"baseline(s / {q}) + {slope}score"
        lines = [
            f"score = {script.linear(self.coef_)}",
            f"\n# Survival up to a time in [0, {end}], on {q} intervals:",
            "d(t, k) = max(t - k, 0) ** 3 / (1 - k)" if n_knots > 2 else "",
            "bend(t, k) = max(t - k, 0)" if line else "",
            f"baseline(t) = {spline}{line}",
            f"hazard(s) = {HAZARDS[stated['link']].format(predictor)}",
            f"end(s) = {end} * (s / {q})",
            f"survival(time) = product(1 - hazard(s) for s in integers(1, {q}) if end(s) <= time)",
        ]
        return "\n".join(filter(None, lines))
