"""What estimators have in common that release one table of exits: curves of all and of groups."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skdpsurv.checks import fraction
from skdpsurv.labels import stated_labels
from skdpsurv.privacy import random_source
from skdpsurv.release import Release, check_parameters, released_array
from skdpsurv.release.explanation import headline
from skdpsurv.survival.curve_frames import Shown, times_argument
from skdpsurv.survival.exit_fit import ExitFit, Table, fit_exits
from skdpsurv.survival.exit_intervals import HazardLaw
from skdpsurv.survival.exit_table import COUNT_VARIANCE, table_variance
from skdpsurv.survival.exit_table_fitter import ExitTableFitter, check_size, stated_ends
from skdpsurv.survival.univariate import stated_records
from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from skdpsurv.scoring.script import Script

__all__ = ["ExitCurves"]

#: Larger cumulative hazards are those of a curve that has come to 0.
LARGEST_HAZARD = 700.0
#: Doubles count parts of people as far as this.
MOST_RECORDS = 2**50
#: Rows of a summary.
N_ROWS = 10


class ExitCurves(ExitTableFitter):
    """Base of curves from one noisy table, of everybody and of groups.

    A subclass says which curve it is about (``_main``, ``_predicts``, ``_short_name``).
    """

    #: Labels of the groups in the order of the table; None if there are none.
    groups_: NDArray[Any] | None
    #: The group that this is the curve of; None: everybody.
    group_: Any
    #: Of everybody, then of each group.
    _tables: tuple[Table, ...]
    _fits: tuple[ExitFit, ...]
    _place: int
    #: Kinds of events in the table.
    _n_events: int
    _exact: dict[str, FloatArray]
    _band_ends: FloatArray

    def _set_parameters(self, release: Release) -> None:
        check_parameters(release, "max_time", "n_intervals", "breakpoints")
        check_size(release.parameters, self._n_causes)
        self._n_events = self._n_causes
        n_records = stated_records(release, MOST_RECORDS)
        labels = release.parameters.get("groups")
        self.groups_ = None if labels is None else stated_labels("groups", labels)
        self.group_ = None
        self._place = 0
        self._band_ends = ends = stated_ends(release.parameters)
        n_groups = 1 if self.groups_ is None else self.groups_.size
        n_ways = self._n_events + 1
        cells = released_array(release, "counts", (n_groups, n_ways * ends.size + 1))
        variance = table_variance(release)
        exact = variance > 0.0 or (cells.min() >= 0.0 and cells.sum() == n_records)
        if np.abs(cells).max() > 2.0**62 or np.any(cells != np.rint(cells)) or not exact:
            raise ValueError("values of the release must hold counts that are counts.")
        width = np.diff(ends, prepend=0.0) / ends[-1]
        whole = Table(cells.sum(axis=0), n_ways, n_groups * variance, n_records)
        tables = [whole]
        if n_groups > 1:
            others = (n_groups - 1) * cells.shape[1] * variance
            tables += [
                Table(own, n_ways, variance, n_records, (cells.sum() - own.sum(), others))
                for own in cells
            ]
        self._tables = tuple(tables)
        self._fits = tuple(fit_exits(table, width) for table in tables)
        self._exact = _exact(release, len(self._fits), self._n_events, ends.size)

    def of_group(self, label: Any) -> Self:
        """Return the curve of one group, which costs nothing: it is in the same release.

        Parameters
        ----------
        label : object
            One of ``groups``.

        Returns
        -------
        estimator
            Fitted, with the same methods. Its ``release_`` is the whole one.
        """
        check_is_fitted(self, "release_")
        labels = [] if self.groups_ is None else self.groups_.tolist()
        if np.ndim(label) > 0 or label not in labels:
            raise ValueError(f"label must be one of the groups {labels}, got {label!r}.")
        view = copy.copy(self)
        # One group is everybody.
        view._place = 1 + labels.index(label) if len(labels) > 1 else 0
        view.group_ = label
        view._shown = Shown(self._shown.timeline, str(label), self._shown.alpha)
        view.median_survival_time_ = view.percentile(0.5)
        return view

    @property
    def _fit_here(self) -> ExitFit:
        return self._fits[self._place]

    @property
    def _table_here(self) -> Table:
        return self._tables[self._place]

    @property
    def _cause_tested(self) -> int:
        """The number of the event that tests are about."""
        return 0

    @property
    def _law(self) -> HazardLaw:
        return HazardLaw(self._fit_here, self._band_ends)

    @abstractmethod
    def _formula(self, script: Script) -> None:
        """Write the curve in one of the languages."""

    def _estimates(self) -> pd.Series:
        return pd.Series(self._cumulated(), index=pd.Index(self._band_ends, name="timeline"))

    def _cumulated(self) -> FloatArray:
        """Return cumulative hazards at the ends of bands."""
        if self._exact:
            return self._exact_hazards()
        return np.cumsum(self._fit_here.hazards[: self._n_events].sum(axis=0))

    def _exact_hazards(self) -> FloatArray:
        """Return the same without privacy."""
        with np.errstate(divide="ignore"):
            hazards = np.abs(np.log(self._exact["survival"][self._place]))
        return np.minimum(hazards, LARGEST_HAZARD)

    def _cumulative_hazard(self, times: FloatArray, parameters: FloatArray) -> FloatArray:
        return self._law.between(times, parameters)

    def _time_of(self, cumulative_hazard: float) -> float:
        hazards = np.append(0.0, self._cumulated())
        k = int(np.searchsorted(hazards, cumulative_hazard))
        if k == hazards.size:
            return math.inf
        if k == 0:
            return 0.0
        part = (cumulative_hazard - hazards[k - 1]) / (hazards[k] - hazards[k - 1])
        knots = self._default_timeline()
        return float(knots[k - 1] + part * (knots[k] - knots[k - 1]))

    def _default_timeline(self) -> FloatArray:
        return np.append(0.0, self._band_ends)

    def _knots(self, end: float) -> FloatArray:
        return np.append(self._default_timeline()[self._default_timeline() < end], end)

    def _plausible(self, n_resamples: int) -> FloatArray:
        draws = self._law.draws(n_resamples, random_source(0, purpose="interval").generator)
        return np.cumsum(draws[:, : self._n_events].sum(axis=1), axis=-1)

    def confidence_interval(self, level: float = 0.95, n_resamples: int = 500) -> pd.DataFrame:
        """Return intervals of the cumulative hazards at the ends of the bands.

        Parameters
        ----------
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=500
            Not used: nothing is drawn.

        Returns
        -------
        pandas.DataFrame
            Indexed by the ends, columns ``lower`` and ``upper``.
        """
        band = self.survival_band(self._band_ends, level)
        with np.errstate(divide="ignore"):
            ends = np.abs(np.log(band[["upper", "lower"]].to_numpy()))
        return pd.DataFrame(ends, index=band.index, columns=["lower", "upper"])

    def survival_band(
        self, times: ArrayLike, level: float = 0.95, n_resamples: int = 500
    ) -> pd.DataFrame:
        """Return pointwise intervals of the survival function.

        They allow for sampling and for privacy noise, follow from the release alone, and hold the
        estimate. What smoothing did to the estimate is no part of them.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
        level : float, default=0.95
            Coverage asked for.
        n_resamples : int, default=500
            Not used: nothing is drawn.

        Returns
        -------
        pandas.DataFrame
            Indexed by the times, columns ``lower`` and ``upper``.
        """
        level, t = fraction("level", level), times_argument(times)
        survival = np.exp(-self._fitted_curve(self._cumulative_hazard, t))
        lower, upper = self._law.survival_interval(t, level, self._n_events)
        ends = np.column_stack([np.minimum(lower, survival), np.maximum(upper, survival)])
        return pd.DataFrame(ends, index=t, columns=["lower", "upper"])

    def smoothed_hazard_at_times(self, times: ArrayLike, label: str | None = None) -> pd.Series:
        """Return the hazard, as a smooth prior and the noisy table have it; positive.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            Not beyond ``max_time``.
        label : str or None
            Name of the series.

        Returns
        -------
        pandas.Series
            Of events per unit of time, indexed by the times.
        """
        t = times_argument(times)
        rate = self._fit_here.masses[: self._n_events].sum(axis=0)
        rate = rate / np.diff(self._default_timeline())
        band = np.minimum(np.searchsorted(self._band_ends, t), rate.size - 1)
        return pd.Series(rate[band], index=t, name=label or self.label)

    # --------------------------------------------------------------------------------------------
    # To be looked at
    # --------------------------------------------------------------------------------------------

    @property
    def event_table(self) -> pd.DataFrame:
        """Noisy counts by band, as lifelines has exact ones by time: fractions of people, too.

        Each is what was likely counted, by the released table and all else that is public: not
        negative, and together as many as there were.
        """
        fit = self._fit_here
        observed = np.append(0.0, fit.counts[: self._n_events].sum(axis=0))
        censored = np.append(0.0, fit.counts[self._n_events])
        censored[-1] += fit.stayed
        return pd.DataFrame(
            {
                "removed": observed + censored,
                "observed": observed,
                "censored": censored,
                "entrance": np.append(fit.n_people, np.zeros(observed.size - 1)),
                "at_risk": np.append(fit.n_people, fit.at_risk[:-1]),
            },
            index=pd.Index(self._default_timeline(), name="event_at"),
        )

    def number_at_risk(self, times: ArrayLike) -> pd.Series:
        """Return how many people were still followed at some times: noisy, and between bands even.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        t = times_argument(times)
        found = np.interp(t, self._default_timeline(), self._fit_here.at_risk)
        return pd.Series(found, index=t, name="at_risk")

    @property
    def summary(self) -> pd.DataFrame:
        """Numbers at risk, survival and its intervals at some times."""
        knots = self._default_timeline()
        times = knots[np.unique(np.linspace(0, knots.size - 1, N_ROWS).round().astype(int))]
        ends = self.survival_band(times, self._level)
        name = f"{100 * self._level:g}%"
        return pd.DataFrame(
            {
                "at risk": self.number_at_risk(times).to_numpy(),
                "survival": self.survival_function_at_times(times).to_numpy(),
                f"survival lower {name}": ends["lower"].to_numpy(),
                f"survival upper {name}": ends["upper"].to_numpy(),
            },
            index=pd.Index(times, name="timeline"),
        )

    def print_summary(self, decimals: int = 2) -> None:
        """Print what was promised, medians, and the curve of each group at some times.

        Parameters
        ----------
        decimals : int, default=2
        """
        print(headline(self.release_))
        for curve in self._curves():
            middle = curve.percentile_interval()
            shown = ", ".join(f"{end:.{decimals}f}" for end in middle[1:])
            who = "" if curve.group_ is None else f"{curve.group_}: "
            level = f"{100 * self._level:g} %"
            print(f"{who}median {middle.estimate:.{decimals}f} ({level}: {shown})")
            print(curve.summary.to_string(float_format=lambda x: f"{x:.{decimals}f}"))

    def _curves(self) -> list[Self]:
        """Return the curves of all groups, or the one that this is."""
        if self.groups_ is None or self.group_ is not None:
            return [self]
        return [self.of_group(label) for label in self.groups_.tolist()]

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the survival function of each group with a 95 % band.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        **options
            Of :func:`skdpsurv.plotting.plot_univariate`, such as ``at_risk_counts=True`` for noisy
            numbers at risk under the axes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from skdpsurv.plotting import plot_univariate  # needs the extra "plot"

        curves = self._curves()
        models = curves[0] if len(curves) == 1 else {str(one.group_): one for one in curves}
        return plot_univariate(models, ax=ax, **options)


def _exact(release: Release, n_curves: int, n_causes: int, n_bands: int) -> dict[str, FloatArray]:
    """Return curves without privacy, if the release holds them: sums of tables have none.

    Raises
    ------
    ValueError
        If they are no curves.
    """
    if not math.isinf(release.made_by.epsilon) or COUNT_VARIANCE in release.values:
        return {}
    shape = (n_curves, n_bands)
    names = ("survival", "cumulative_hazard")
    found = {name: released_array(release, name, shape) for name in names}
    found["incidence"] = released_array(release, "incidence", (n_curves, n_causes, n_bands))
    falls = np.diff(found["survival"], axis=-1, prepend=1.0) <= 0.0
    rises = [np.diff(found[name], axis=-1, prepend=0.0) >= 0.0 for name in list(found)[1:]]
    bounded = found["survival"].min() >= 0.0 and found["incidence"].sum(axis=1).max() <= 1.0 + 1e-9
    bounded = bounded and found["cumulative_hazard"].max() <= LARGEST_HAZARD
    if not falls.all() or not bounded or not all(map(np.all, rises)):
        raise ValueError("values of the release must hold curves that fall or rise.")
    return found
