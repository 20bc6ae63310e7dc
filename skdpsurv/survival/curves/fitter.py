"""Curves of everybody and of groups from one noisy table of exits: parameters, plan, tables."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.cells import stated_labels
from skdpsurv.data.shape import Shape
from skdpsurv.data.target import single_column
from skdpsurv.dp import PrivacyAccountant
from skdpsurv.dp.checks import (
    Check,
    auto_or,
    fraction,
    horizon,
    integer,
    number_in,
    required_horizon,
)
from skdpsurv.dp.plan import Plan
from skdpsurv.release.raw_rows import headline
from skdpsurv.survival.curves.table import (
    ASSUMED,
    IS_EPSILON,
    LARGEST_TABLE,
    LARGEST_TABLES,
    NARROWEST,
    NO_GROUP,
    Causes,
    ExactExits,
    Exits,
    ExitTable,
    check_breakpoints,
    check_groups,
    check_size,
    exits_of,
    n_bands_for,
    stated_ends,
)
from skdpsurv.survival.released_curve import DisplayOptions, around, curves_of, times_argument
from skdpsurv.survival.univariate import UnivariateFitter, counted, target_blocks

#: Rows of a summary.
N_ROWS = 10


class ExitCurves(UnivariateFitter, released=False):
    """Base of curves from one noisy table of exits, of everybody and of groups.

    Kinds of events are those of its parameters ``causes`` and ``censored``, if it has them. A
    subclass says which curve it is about, by a kind of
    :class:`~skdpsurv.survival.curves.kaplan_meier.TableCurve`, and how it is written
    (``_formula``).
    """

    #: Labels of the groups in the order of the table; None if there are none.
    groups_: NDArray[Any] | None
    #: The group that this is the curve of; None: everybody.
    group_: Any

    n_intervals: int | str
    breakpoints: str | ArrayLike
    groups: Sequence[Any] | None
    max_time: float | None

    _rules: ClassVar[dict[str, Check]] = {
        "epsilon": IS_EPSILON,
        "max_time": horizon(number_in(1e-150, 1e150)),
        "n_intervals": auto_or(integer(1, LARGEST_TABLE // 2)),
        "breakpoints": check_breakpoints,
        "groups": check_groups,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_time: float | None = None,
        n_intervals: int | str = "auto",
        breakpoints: str | ArrayLike = "early",
        groups: Sequence[Any] | None = None,
        alpha: float = 0.05,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_time = max_time
        self.n_intervals = n_intervals
        self.breakpoints = breakpoints
        self.groups = groups
        self.alpha = alpha
        self.random_state = random_state
        self.accountant = accountant

    def fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
        group: ArrayLike | None = None,
        person: ArrayLike | None = None,
        timeline: ArrayLike | None = None,
        label: str | None = None,
        alpha: float | None = None,
    ) -> Self:
        """Fit the curves, spending ``epsilon`` once, whatever the number of groups.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_features), or None
            One-dimensional, or alone and of one column: durations. Two-dimensional: ignored but
            for its length.
        y : array-like of shape (n_samples,) or None
            Structured array of event and time, as scikit-survival has them. Else, events if X is
            one-dimensional, and times, all observed, if X is two-dimensional or None.
        durations : array-like of shape (n_samples,) or None
            Times of event or censoring, in the unit of ``max_time``. Private.
        event_observed : array-like of shape (n_samples,) or None
            Which event was seen, if one was. Private.
        group : array-like of shape (n_samples,) or None
            The group of each record, one of ``groups``. Private.
        person : array-like of shape (n_samples,), or None
            Whose each record is, as whole numbers or text: of each person the first record is used,
            and the guarantee is about people. Private. None: nobody has two records.
        timeline : array-like of shape (n_times,), or None
            Times that ``survival_function_`` and its like are tables of. Public. None: the ends of
            the bands.
        label : str or None
            Name of the estimate in these tables.
        alpha : float or None
            Their intervals cover 1 - alpha. None: the parameter ``alpha``.

        Returns
        -------
        self
        """
        shown = DisplayOptions.checked(timeline, label, alpha)
        if group is not None and self.groups is None:
            raise ValueError(NO_GROUP)
        if y is None and durations is None:
            X = single_column(X)
        options = {"durations": durations, "event_observed": event_observed, "group": group}
        self._fit(X, y, person=person, **options)
        self._show(shown)
        return self

    def _causes(self) -> Causes:
        return Causes.of(vars(self))

    _one_of_each = ("durations", "event_observed", "group")

    def _labels(self) -> NDArray[Any] | None:
        return None if self.groups is None else stated_labels("groups", self.groups)

    def _read(self, shape: Any, X: Any, y: Any, **options: Any) -> Exits:
        asked = (options.get(name) for name in self._one_of_each)
        targets = target_blocks(X, y, *asked, events=self._causes().reader)
        return counted(shape, targets.map(partial(exits_of, self._labels())))

    def _check_together(self) -> None:
        super()._check_together()
        if isinstance(self.breakpoints, str):
            return
        if self.n_intervals != "auto":
            raise ValueError("n_intervals must be 'auto' where breakpoints are times.")
        ends = np.append(np.asarray(self.breakpoints, float), required_horizon(self.max_time))
        if ends[-2] >= ends[-1]:
            raise ValueError("breakpoints must be before max_time, which ends the last interval.")
        if np.diff(ends, prepend=0.0).min() < NARROWEST * ends[-1]:
            raise ValueError(
                f"breakpoints must be further apart than {NARROWEST:g} times max_time."
            )

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        breakpoints, n_intervals, causes = self.breakpoints, self.n_intervals, self._causes()
        labels = self._labels()
        if not isinstance(breakpoints, str):
            breakpoints = np.asarray(breakpoints).tolist()
        elif isinstance(n_intervals, str):
            n_groups = 1 if labels is None else labels.size
            most = min(LARGEST_TABLE, math.isqrt(LARGEST_TABLES // n_groups))
            worth = n_bands_for(shape.n_records, float(self.epsilon), n_groups)
            n_intervals = min(worth, most // (causes.number + 1))
        else:
            n_intervals = int(n_intervals)
        return {
            "max_time": required_horizon(self.max_time),
            "n_intervals": n_intervals,
            "breakpoints": breakpoints,
            **({} if labels is None else {"groups": labels.tolist()}),
            **causes.stated(),
        }

    def _plan(self, shape: Shape) -> Plan:
        stated, epsilon = self._release_parameters(shape), float(self.epsilon)
        check_size(stated)
        kind = ExactExits if math.isinf(epsilon) else ExitTable
        table = kind(
            price=epsilon,
            ends=stated_ends(stated),
            n_causes=self._causes().number,
            n_groups=len(stated.get("groups", [None])),
        )
        inputs = {"n_records": shape.n_records, **stated}
        return Plan(table, epsilon, inputs=inputs, assumed=ASSUMED)

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
        curve = self._curve
        labels = [] if self.groups_ is None else self.groups_.tolist()
        if np.ndim(label) > 0 or label not in labels:
            raise ValueError(f"label must be one of the groups {labels}, got {label!r}.")
        view = copy.copy(self)
        view._released = curve.of_group(label)
        view.group_ = label
        view._shown = self._shown._replace(label=str(label))
        view.median_survival_time_ = view.percentile(0.5)
        return view

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
        band = self.survival_band(self._curve.ends, level)
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
        curve = self._curve
        survival = np.exp(-curve.at(t))
        lower, upper = curve.law.survival_interval(t, level, curve.causes.number)
        return around(lower, upper, survival, t)

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
        t, curve = times_argument(times), self._curve
        rate = curve.of_events(curve.fit.masses).sum(axis=0) / np.diff(curve.timeline)
        band = np.minimum(np.searchsorted(curve.ends, t), rate.size - 1)
        return self._series(rate[band], t, label)

    # --------------------------------------------------------------------------------------------
    # To be looked at
    # --------------------------------------------------------------------------------------------

    @property
    def event_table(self) -> pd.DataFrame:
        """Noisy counts by band, as lifelines has exact ones by time: fractions of people, too.

        Each is what was likely counted, by the released table and all else that is public: not
        negative, and together as many as there were.
        """
        curve = self._curve
        fit = curve.fit
        observed = np.append(0.0, curve.of_events(fit.counts).sum(axis=0))
        censored = np.append(0.0, fit.counts[-1])
        censored[-1] += fit.stayed
        return pd.DataFrame(
            {
                "removed": observed + censored,
                "observed": observed,
                "censored": censored,
                "entrance": np.append(fit.n_people, np.zeros(observed.size - 1)),
                "at_risk": np.append(fit.n_people, fit.at_risk[:-1]),
            },
            index=pd.Index(curve.timeline, name="event_at"),
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
        t, curve = times_argument(times), self._curve
        found = np.interp(t, curve.timeline, curve.fit.at_risk)
        return self._series(found, t, "at_risk")

    @property
    def summary(self) -> pd.DataFrame:
        """Numbers at risk, survival and its intervals at some times."""
        knots = self._curve.timeline
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
        for curve in curves_of(self):
            middle = curve.percentile_interval()
            shown = ", ".join(f"{end:.{decimals}f}" for end in middle[1:])
            who = "" if curve.group_ is None else f"{curve.group_}: "
            level = f"{100 * self._level:g} %"
            print(f"{who}median {middle.estimate:.{decimals}f} ({level}: {shown})")
            print(curve.summary.to_string(float_format=lambda x: f"{x:.{decimals}f}"))
