r"""Fitted hazard models of one kind of event, with bands of survival.

Bands follow "log-log" intervals as in lifelines and R: with :math:`\sigma` the first-order error of
:math:`\log\Lambda`, their ends are :math:`\exp(-\Lambda e^{\pm z\sigma})`, where the cumulative
hazard is :math:`\Lambda(t) = \sum_{s \le t} \varphi(\eta_s)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.data.shape import Shape
from skdpsurv.dp import checks
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import FloatArray, IndexArray
from skdpsurv.inference import Inference, Summarised
from skdpsurv.inference.uncertainty import NAMES, half_width
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.survival.hazards.hazard_formula import hazard_formula
from skdpsurv.survival.hazards.model import (
    N_BANDS,
    OVER_TIME,
    Recalibration,
    interval_ends,
    published_basis,
    released_caps,
)
from skdpsurv.survival.hazards.regression import SurvivalRegression
from skdpsurv.survival.hazards.strata import labels_in, reading, stratum_of
from skdpsurv.survival.horizon import horizon_words

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: A coefficient with a larger error (per half the range of a column) is shown as unknown.
LARGEST_ERROR = 1.0


class DiscreteTimeModel(Summarised, SurvivalRegression, takes=("rows", "times"), ratio="{link}"):
    """Base of private hazard models on a public grid; a subclass makes the plan of their fit."""

    method: Any

    _rules: ClassVar[dict[str, checks.Check]] = {"link": checks.choice(*LINKS)}

    @property
    def _sampling(self) -> Any:
        """Parameters of posterior sampling, if that is the method."""
        method = self.method
        if isinstance(method, str):
            return known[method]() if method in (known := self._card.methods) else None
        return method

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        strata = {} if self.strata is None else {"strata": str.__str__(self.strata)}
        return {**self._grid(), "link": self.link, **strata}

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, "max_time", "n_intervals", "n_knots", "link")
        stated = release.parameters
        self.coef_ = released_array(release, "coef", (release.n_features,))
        labels = labels_in(release)
        n_columns = self._basis.shape[1]
        shape = (len(labels), n_columns) if labels else (n_columns,)
        self.baseline_coef_ = released_array(release, "baseline_coef", shape)
        self.unique_times_ = interval_ends(stated["max_time"], stated["n_intervals"])
        self.recalibration_ = Recalibration.of(release, len(labels))
        self.inference_ = None
        if not release.values.keys().isdisjoint(NAMES):
            n_common = self.baseline_coef_.size + np.size(release.values.get(OVER_TIME, ()))
            self.inference_ = Inference.of(release, n_common + self.coef_.size)
        caps = released_caps(release)
        self.max_cumulative_hazard_ = None if caps is None else float(caps[0])

    def survival_band(self, X: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return pointwise intervals of survival functions, at ``unique_times_``.

        They allow for sampling and for privacy noise, and are about unshrunk estimates
        (``summary``): recalibrated predictions may be outside. A row of zeros gives the baseline's
        band. No budget is spent.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        level : float, default=0.95
            Coverage at each time.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_intervals)
            0 and 1 where nothing is known.

        Raises
        ------
        ValueError
            If the fit has no standard errors: ``inference_share`` was 0, or the data too few.
        """
        level, inference = checks.fraction("level", level), self._require_inference()
        rows, link, basis = self._prediction_rows(X), self._link, self._basis
        stratum = stratum_of(self, X, self.columns_)
        q, n_baselines = len(basis), self.baseline_coef_.size // basis.shape[1]
        lower, upper = np.zeros((len(rows), q)), np.ones((len(rows), q))
        for i, row in enumerate(rows):
            own = np.eye(n_baselines)[0 if stratum is None else stratum[i]]
            parts = [np.kron(own, basis), np.broadcast_to(row, (q, row.size))]
            if self._changes is not None:
                parts.insert(1, self._changes.products(row))
            combination = np.column_stack(parts)
            if (combination[:, ~inference.known] != 0.0).any():
                continue
            with np.errstate(all="ignore"):
                curve = link.survival(combination @ inference.estimate)
                hazard = np.cumsum(curve.value)
                slopes = np.cumsum(curve.slope[:, None] * combination, axis=0) / hazard[:, None]
                variance = np.einsum("ij,jk,ik->i", slopes, inference.covariance, slopes)
                factor = np.exp(half_width(level) * np.sqrt(np.maximum(variance, 0.0)))
                ends = np.exp(-hazard * factor), np.exp(-hazard / factor)
            lower[i], upper[i] = np.where(np.isfinite(ends), ends, [[0.0], [1.0]])
        return lower, upper

    def _horizon_words(self) -> list[str]:
        """Say what was seen by the horizon, and that nothing was learnt where noise hides all."""
        stated, released, known = self.release_.parameters, self.release_.values, self.inference_
        found = reading(self.release_)
        if "follow_up" in released and stated["n_intervals"] >= N_BANDS:
            shares = released_array(self.release_, "follow_up", (3,)).tolist()
            found += horizon_words(stated["max_time"], *shares)
        error = np.asarray(released.get("evidence_error", 0.0), dtype=np.float64)
        hidden = error > LARGEST_ERROR if known is None else ~known.known[-self.coef_.size :]
        return found + [phrase("learnt_nothing")] * bool(hidden.all())

    @property
    def _link(self) -> Any:
        return LINKS[self.release_.parameters["link"]]

    @property
    def _basis(self) -> FloatArray:
        """Columns of the baseline over the grid, of shape (n_intervals, n_columns)."""
        stated, changes = self.release_.parameters, self._changes
        changing = None if changes is None else changes.public
        return published_basis(stated["n_intervals"], int(stated["n_knots"]), changing)

    def _cumulative_hazard(self, risk: FloatArray, stratum: IndexArray | None = None) -> FloatArray:
        ends = interval_ends(1.0, self.release_.parameters["n_intervals"])
        own = self.baseline_coef_ if stratum is None else self.baseline_coef_[stratum]
        baseline = own @ self._basis.T if stratum is not None else self._basis @ own
        shift = self.recalibration_.at(ends)
        own = shift if shift.ndim == 1 else shift[stratum]
        changes = self._changes
        covariates = risk[:, None] if changes is None else changes.predictor(risk)
        eta = baseline + own + self.recalibration_.slope * covariates
        return np.cumsum(self._link.survival(eta).value, axis=1)

    def _formula(self, script: Script) -> str:
        return hazard_formula(self, script)
