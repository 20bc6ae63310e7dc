r"""Regressions with survival curves on a public grid, and hazard models on such a grid.

Bands follow "log-log" intervals as in lifelines and R: with :math:`\sigma` the first-order error of
:math:`\log\Lambda`, their ends are :math:`\exp(-\Lambda e^{\pm z\sigma})`, where the cumulative
hazard is :math:`\Lambda(t) = \sum_{s \le t} \varphi(\eta_s)`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.base.tabular import TabularEstimator
from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.dask import supports_lazy_input
from skdpsurv.data.feature import Feature, short_horizon
from skdpsurv.data.histories import Histories, read_target, with_entry
from skdpsurv.data.shape import Shape, refuse_no_target, require_in_memory, require_one_each
from skdpsurv.data.target import no_events, paired
from skdpsurv.dp import checks
from skdpsurv.dp.input_errors import check_unclipped
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import FloatArray, IndexArray
from skdpsurv.inference import Inference, Summarised
from skdpsurv.inference.uncertainty import NAMES, half_width
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.survival.concordance import concordance_index
from skdpsurv.survival.curves.event_counts import Causes
from skdpsurv.survival.hazards.changing import Changing
from skdpsurv.survival.hazards.hazard_formula import hazard_formula
from skdpsurv.survival.hazards.model import (
    N_BANDS,
    OVER_TIME,
    HazardModel,
    HazardRecords,
    Recalibration,
    Records,
    interval_ends,
    published_basis,
    released_caps,
)
from skdpsurv.survival.hazards.strata import labels_in, reading, stratum_of
from skdpsurv.survival.horizon import horizon_words
from skdpsurv.survival.step_function import StepFunction

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: A finer grid would fill the memory, and be finer than any study's clock.
MOST_INTERVALS = 1_000_000
#: A coefficient with a larger error (per half the range of a column) is shown as unknown.
LARGEST_ERROR = 1.0
#: Cells of rows by times that predictions hold at a time, 2 MiB in each array.
BLOCK_ELEMENTS = 2**18


def _survival(cumulative_hazard: FloatArray) -> FloatArray:
    return np.exp(-cumulative_hazard)


def _n_times(model: Any, return_array: bool = False) -> int | None:
    return model.unique_times_.size if return_array else None


def _curve_type(model: Any, return_array: bool = False) -> Any:
    return np.float64 if return_array else object


class SurvivalRegression(TabularEstimator, ABC, such_as={"max_time": 1.0}, measure="c_index"):
    """Base of private regressions with survival curves on a public grid of times.

    A subclass sets ``coef_`` and ``unique_times_`` from a release.
    """

    #: Name of a category of ``columns`` whose labels have a baseline each, if there is one.
    strata: str | None = None
    max_time: float | None
    n_intervals: int
    n_knots: int
    link: str
    data_norm: float | str
    alpha: float
    coef_: FloatArray
    unique_times_: FloatArray

    _rules: ClassVar[dict[str, checks.Check]] = {
        "max_time": checks.horizon(checks.positive()),
        "n_intervals": checks.integer(at_most=MOST_INTERVALS),
        "n_knots": checks.integer(),
        "data_norm": checks.auto_or(checks.positive()),
        "alpha": checks.zero_or(checks.positive()),
    }

    @abstractmethod
    def _cumulative_hazard(self, risk: FloatArray, stratum: IndexArray | None = None) -> FloatArray:
        """Return cumulative hazards at ``unique_times_`` for each risk score, in its stratum.

        They are of shape (n_samples, n_times), for scores and strata of shape (n_samples,).
        """

    def fit(self, X: ArrayLike, y: ArrayLike, *, person: ArrayLike | None = None) -> Self:
        """Fit the model, spending ``epsilon``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Covariates, finite; raw, if ``columns`` describes them. Private.
        y : structured array of shape (n_samples,), or array-like of times
            Event indicator (bool) and time of event or censoring, in this order unless names say
            otherwise (days, status), as in scikit-survival; a data frame of these two columns, or
            a tuple of two arrays. A 1-D array of numbers holds times, all observed. Private.
        person : array-like of shape (n_samples,), or None
            Identifier of the person of each record, whole numbers or text. The first record of
            each person is used, and the guarantee is about people. Private. None: each person has
            one record.

        Returns
        -------
        self
        """
        return self._fit(X, y, person=person)

    def _check_together(self) -> None:
        if self.n_knots > self.n_intervals:
            raise ValueError(f"n_knots must be at most n_intervals, got {self.n_knots}.")

    def _model(self, shape: Shape, *, exact_rows: bool, **others: Any) -> HazardModel:
        """Return the public model; with exact rows "auto" clips no row of a public scaler."""
        data_norm = self.data_norm
        if isinstance(data_norm, str):
            data_norm = math.sqrt(shape.n_features) / (1.0 if exact_rows else 2.0)
        if self.columns is not None:
            others["changing"] = self._changing(self._features(self.columns))
        return HazardModel(
            n_records=shape.n_records,
            n_features=shape.n_features,
            data_norm=float(data_norm),
            link=getattr(self, "link", "logit"),
            **self._grid(),
            **others,
        )

    def _changing(self, features: Sequence[Feature]) -> Changing | None:
        """Return how effects of features change over time; refuse what is not provided for."""
        if any(one.over_time is not None for one in features):
            raise ValueError(
                f"columns must not state over_time with {type(self).__name__}: use "
                "DPDiscreteTimeSurvival."
            )
        return None

    def _grid(self) -> dict[str, Any]:
        """Return the public description of time and of baselines."""
        return {
            "max_time": checks.required_horizon(self.max_time),
            "n_intervals": int(self.n_intervals),
            "n_knots": int(self.n_knots),
        }

    def _read(self, shape: Shape, X: ArrayLike, y: ArrayLike, entry: Any = None) -> Records:
        """Return blocks of rows and histories; a source of blocks has the entries in them."""
        grid: Any = checks.required_horizon(self.max_time), int(self.n_intervals)
        of_records = () if entry is None or isinstance(X, Blocks) else (entry,)
        records = in_blocks(X, y, *of_records, width=shape.n_features)
        records = records.map(self._without_ledger()._rows_and_target)
        records = records.persist(self._memory_ratio(shape))
        shape.require(records.map_reduce(lambda block: block[0].shape[0]))
        return records.map(lambda block: HazardRecords(block[0], block[1].on_grid(*grid)))

    def _input_warnings(self, shape: Shape, X: Any, y: Any = None, **options: Any) -> list[str]:
        found = super()._input_warnings(shape, X, y, **options) + no_events(y)
        if self.columns is not None and self.max_time is not None:
            found += short_horizon(self._features(self.columns), float(self.max_time))
        return found

    def _rows_and_target(self, block: tuple[Any, ...]) -> tuple[FloatArray, Histories]:
        """Return a block's rows and histories, after refusing values outside the domain."""
        X, y, entry = (*block, None)[:3]
        rows = self._fitting_rows(X)
        if math.isinf(self.epsilon):
            check_unclipped(rows, "X")
        refuse_no_target(y)
        histories = read_target(y, causes=self._stated_causes().reader)
        require_one_each(histories.size, rows.shape[0])
        histories = with_entry(histories, entry)
        return rows, replace(histories, stratum=stratum_of(self, X, self.columns))

    def _stated_causes(self) -> Causes:
        return Causes.of(vars(self))

    @supports_lazy_input(lambda self: None)
    def predict(self, X: ArrayLike) -> FloatArray:
        """Return risk scores: the covariates' part of the linear predictor, higher is riskier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        risk : ndarray of shape (n_samples,)
        """
        return self._scores(X)

    @supports_lazy_input(_n_times, _curve_type)
    def predict_cumulative_hazard_function(
        self, X: ArrayLike, return_array: bool = False
    ) -> NDArray[Any]:
        r"""Return cumulative hazards, :math:`-\log S(t)`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        cumulative_hazard : ndarray
            StepFunction objects, shape (n_samples,), defined on [0, max_time] and 0 before the
            first of ``unique_times_``; or floats, shape (n_samples, n_intervals).
        """
        return self._curves(X, return_array, np.asarray, 0.0)

    @supports_lazy_input(_n_times, _curve_type)
    def predict_survival_function(self, X: ArrayLike, return_array: bool = False) -> NDArray[Any]:
        """Return survival functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_array : bool, default=False
            Return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        survival : ndarray
            StepFunction objects, shape (n_samples,), defined on [0, max_time] and 1 before the
            first of ``unique_times_``; or floats, shape (n_samples, n_intervals).
        """
        return self._curves(X, return_array, _survival, 1.0)

    @supports_lazy_input(lambda self: None)
    def predict_median(self, X: ArrayLike) -> FloatArray:
        """Return the time by which the event has come with probability 1/2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        median : ndarray of shape (n_samples,)
            One of ``unique_times_``; infinite where the median is beyond the horizon.
        """

        def medians(hazard: FloatArray) -> FloatArray:
            has_come = _survival(hazard) <= 0.5
            median = self.unique_times_[has_come.argmax(axis=1)]
            return np.where(has_come.any(axis=1), median, np.inf)

        return self._by_blocks(X, medians)

    @supports_lazy_input(lambda self: None)
    def predict_expectation(self, X: ArrayLike) -> FloatArray:
        r"""Return the mean time until the event or the horizon, whichever is first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            :math:`\int_0^{t_m} S(t)\,dt` of the step functions, up to the last of
            ``unique_times_``; survival beyond the horizon is unknown.
        """
        widths = np.diff(self.unique_times_, prepend=0.0)

        def means(hazard: FloatArray) -> FloatArray:
            return np.asarray(widths[0] + _survival(hazard[:, :-1]) @ widths[1:])

        return self._by_blocks(X, means)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Harrell's concordance index, in O(n log² n). This score is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : structured array of shape (n_samples,), or array-like of times
        sample_weight : array-like of shape (n_samples,) or None
            Each pair counts with the product of its weights.

        Returns
        -------
        c_index : float
            0.5 if no pair can be compared.
        """
        require_in_memory(X, y, sample_weight)
        return concordance_index(paired(y), self.predict(X), sample_weight=sample_weight)

    def _by_blocks(
        self,
        X: ArrayLike,
        function: Callable[[FloatArray], Any],
        *shape: int,
        dtype: Any = float,
        of: Callable[..., FloatArray] | None = None,
    ) -> NDArray[Any]:
        """Return a function of the cumulative hazards of rows; only a block is held at a time.

        Or of what ``of`` gives in their place for risk scores and strata.
        """
        risk, stratum = self._scores(X), stratum_of(self, X, self.columns_)
        found, of = np.empty((len(risk), *shape), dtype), of or self._cumulative_hazard
        step = max(1, BLOCK_ELEMENTS // self.unique_times_.size)
        for start in range(0, len(risk), step):
            rows = slice(start, start + step)
            own = None if stratum is None else stratum[rows]
            found[rows] = function(of(risk[rows], own))
        return found

    def _scores(self, X: ArrayLike) -> FloatArray:
        """Return risk scores, of shape (n_samples,), or (n_samples, n_causes)."""
        return self._of_rows(X, lambda rows: np.asarray(rows @ self.coef_.T))

    def _curves(
        self, X: ArrayLike, return_array: bool, function: Any, at_zero: float, of: Any = None
    ) -> NDArray[Any]:
        """Return curves of rows, as an array or as step functions."""
        if return_array:
            return self._by_blocks(X, function, self.unique_times_.size, of=of)
        times = np.concatenate([[0.0], self.unique_times_])

        def steps(hazard: FloatArray) -> list[StepFunction]:
            return [StepFunction(times, np.append(at_zero, row)) for row in function(hazard)]

        return self._by_blocks(X, steps, dtype=object, of=of)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


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
        n_knots = int(stated["n_knots"])
        labels = labels_in(release)
        shape = (len(labels), n_knots) if labels else (n_knots,)
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
            combination = np.column_stack(
                [np.kron(own, basis), self._products(row), np.broadcast_to(row, (q, row.size))]
            )
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
        """Columns of the baseline over the grid, of shape (n_intervals, n_knots)."""
        stated = self.release_.parameters
        return published_basis(stated["n_intervals"], int(stated["n_knots"]))

    def _cumulative_hazard(self, risk: FloatArray, stratum: IndexArray | None = None) -> FloatArray:
        ends = interval_ends(1.0, self.release_.parameters["n_intervals"])
        own = self.baseline_coef_ if stratum is None else self.baseline_coef_[stratum]
        baseline = own @ self._basis.T if stratum is not None else self._basis @ own
        shift = self.recalibration_.at(ends)
        own = shift if shift.ndim == 1 else shift[stratum]
        eta = baseline + own + self.recalibration_.slope * self._predictor(risk)
        return np.cumsum(self._link.survival(eta).value, axis=1)

    def _products(self, row: FloatArray) -> FloatArray:
        """Return what multiplies coefficients of products with time, of shape (n_intervals, k)."""
        return np.zeros((self.unique_times_.size, 0))

    def _predictor(self, risk: FloatArray) -> FloatArray:
        """Return the covariates' part of the predictor in each interval, or in all of them."""
        return risk[:, None]

    def _formula(self, script: Script) -> str:
        return hazard_formula(self, script)
