"""Regressions with survival curves on a public grid."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.base.tabular import TabularEstimator
from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.dask import supports_lazy_input
from skdpsurv.data.feature import Feature, short_horizon
from skdpsurv.data.histories import Histories, read_target, with_entry
from skdpsurv.data.known_columns import KnownColumns, Moments
from skdpsurv.data.shape import Shape, refuse_no_target, require_in_memory, require_one_each
from skdpsurv.data.target import no_events, paired
from skdpsurv.dp import checks
from skdpsurv.dp.input_errors import check_unclipped
from skdpsurv.dp.types import FloatArray, IndexArray
from skdpsurv.inference import ROW_VALUES
from skdpsurv.release import released_array
from skdpsurv.survival.concordance import concordance_index
from skdpsurv.survival.curves.event_counts import Causes
from skdpsurv.survival.hazards.changing import Changing, FittedChanges
from skdpsurv.survival.hazards.model import HazardModel, HazardRecords, Records
from skdpsurv.survival.hazards.strata import stratum_of
from skdpsurv.survival.step_function import StepFunction

if TYPE_CHECKING:
    pass

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
    #: How effects change over time; None: they do not.
    _changes: FittedChanges | None = None

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
        super()._check_together()
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

    def _draw_outcomes(
        self, X: ArrayLike, censored: FloatArray, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw outcomes of made-up people, so that a fit without privacy has no bias.

        It reads intervals: when in its interval an event comes is nobody's knowledge, and whoever
        is lost has survived the interval. So an event in the same interval is seen.
        """
        place, cause = self._draw_events(X, rng)
        end, q = float(self.unique_times_[-1]), self.unique_times_.size
        lost = np.minimum(censored, end)
        seen = place < Histories(lost, np.zeros(lost.size, dtype=bool)).on_grid(end, q).exit
        time = (place + 1.0 - rng.random(lost.size)) * (end / q)
        causes = Causes.of(self.release_.parameters)
        return causes.target(np.where(seen, cause, 0), np.where(seen, time, lost))

    def _draw_events(self, X: ArrayLike, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
        """Draw the index of each row's interval, beyond the last without an event, and a cause."""

        def drawn(hazard: FloatArray) -> IndexArray:
            return np.asarray((hazard < rng.exponential(size=(len(hazard), 1))).sum(axis=1))

        place = self._by_blocks(X, drawn, dtype=np.intp)
        return place, np.ones_like(place)

    def _measured_moments(self) -> Iterator[tuple[Feature, Moments]]:
        """Yield features with the moments that the fit measured, NaN where it did not.

        What it did not measure is the public centre and scale of the columns, or 0 and 1.
        """
        release, features = self.release_, self.release_.features
        if ROW_VALUES[0] in release.values:
            shape, known = (release.n_features,), KnownColumns.of(features)
            center, scale = (released_array(release, name, shape) for name in ROW_VALUES[:2])
            public = (0.0, 1.0) if known is None else known.scales(shared=True)
            means = np.where((center == public[0]) | (center == 0.0), np.nan, center)
            variances = np.where((scale == public[1]) | (scale == 1.0), np.nan, scale**2)
            for one, *moments in zip(features, means.tolist(), variances.tolist(), strict=True):
                yield one, (moments[0], moments[1], 0.0)

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
        """Return risk scores, of shape (n_samples,), or (n_samples, n_causes).

        Where effects change, those and the factors of functions of time, (n_samples, 1 + k).
        """
        changes = self._changes

        def scores(rows: FloatArray) -> FloatArray:
            found = np.asarray(rows @ self.coef_.T)
            return found if changes is None else changes.with_factors(rows, found)

        return self._of_rows(X, scores)

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
