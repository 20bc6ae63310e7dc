"""A hazard model over discrete time, however it is fitted: its records, and what it predicts."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.blocks import Blocks
from skdpsurv.checks import (
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
from skdpsurv.inference import Inference, Summarised
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.privacy.plan import Plan
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.shape import Shape
from skdpsurv.survival.hazard_bands import survival_band
from skdpsurv.survival.hazard_formula import write_survival
from skdpsurv.survival.hazard_plans import HazardModel, HazardRecords
from skdpsurv.survival.recalibration import Recalibration
from skdpsurv.survival.regression import SurvivalRegression
from skdpsurv.survival.spline import published_basis
from skdpsurv.survival.time_grid import interval_ends
from skdpsurv.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from skdpsurv.scoring.script import Script

__all__ = ["DiscreteTimeModel"]


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
        horizon, n_intervals = required_horizon(self.max_time), int(self.n_intervals)
        records = super()._read(shape, X, y)

        def on_grid(block: tuple[FloatArray, BoolArray, FloatArray]) -> HazardRecords:
            rows, event, time = block
            return HazardRecords.on_grid(rows, event, time, horizon, n_intervals)

        return records.map(on_grid)

    def _stated(self, shape: Shape) -> dict[str, Any]:
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
        return survival_band(found, basis, LINKS[stated["link"]], self._asked_rows(X), level)

    def _cumulative_hazard(self, risk: FloatArray) -> FloatArray:
        parameters = self.release_.parameters
        basis = published_basis(parameters["n_intervals"], parameters["n_knots"])
        ends = interval_ends(1.0, parameters["n_intervals"])
        baseline = basis @ self.baseline_coef_ + self.recalibration_.at(ends)
        eta = baseline + self.recalibration_.slope * risk[:, None]
        return np.cumsum(LINKS[parameters["link"]].survival(eta).value, axis=1)

    def _formula(self, script: Script) -> str:
        stated = self.release_.parameters
        public = {name: stated[name] for name in ("max_time", "n_intervals", "link")}
        return write_survival(
            script, self.coef_, self.baseline_coef_, self.recalibration_, **public
        )
