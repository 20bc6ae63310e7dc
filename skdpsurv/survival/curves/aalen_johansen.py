"""DPAalenJohansenFitter: private cumulative incidences of competing events."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skdpsurv.data.labels import stated_labels
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, fraction, positive_int, required, rule_of
from skdpsurv.dp.types import FloatArray
from skdpsurv.release import Release
from skdpsurv.survival.curves.event_counts import is_one_of, plain
from skdpsurv.survival.curves.kaplan_meier import LifeTableFitter
from skdpsurv.survival.curves.life_table_curve import LifeTableCurve
from skdpsurv.survival.released_curve import interval

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: Largest number of kinds of events.
MOST_CAUSES = 20

is_label = rule_of(
    "a label, a number or text",
    kind=lambda label: (
        isinstance(label, str | Integral | np.floating | float) and not isinstance(label, bool)
    ),
    holds=lambda label: isinstance(label, str) or np.isfinite(label),
)


def check_causes(name: str, causes: Any) -> None:
    if stated_labels(name, causes).size > MOST_CAUSES:
        raise ValueError(f"{name} must be at most {MOST_CAUSES}.")


class IncidenceCurve(LifeTableCurve):
    """Cumulative incidences of the causes in a noisy table."""

    short_name, median = "AJ", "median time to any event"
    main = predicts = "cumulative_density"
    needed = (*LifeTableCurve.needed, "causes", "censored")

    def __init__(self, release: Release) -> None:
        super().__init__(release)
        labels = self.causes.labels or []
        self.event_of_interest = release.parameters.get("event_of_interest", labels[0])
        self.causes.index(self.event_of_interest, "event_of_interest")

    @property
    def fitted(self) -> dict[str, Any]:
        """Labels of groups and of causes, and of those that are shown."""
        own = {"causes_": self.causes.labels, "event_of_interest_": self.event_of_interest}
        return {**super().fitted, **own}


class DPAalenJohansenFitter(
    LifeTableFitter,
    word="competing",
    adds_up="tables",
    takes=("causes", "group"),
    beyond_constructor=("event_of_interest",),
):
    r"""Cumulative incidences of competing events, which protect every record.

    One table is released: noisy numbers of people who had each event, or were censored, in each
    band of time. It is epsilon-differentially private under replacement of one record, whatever its
    time, event and group are.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` uses exact counts, for reference,
        without any privacy.
    max_time : float
        Public horizon, in the unit of the times: records beyond it count as censored at it.
    causes : list of labels
        Public labels of all possible events, such as ``["relapse", "death"]``. Required.
    censored : label, default=0
        Label of records without an observed event.
    n_intervals : int or "auto", default="auto"
        Bands of time.
    breakpoints : {"early", "equal"} or array-like, default="early"
        Ends of the bands, as for :class:`DPKaplanMeierFitter`.
    groups : list of labels or None, default=None
        Public labels of groups.
    alpha : float, default=0.05
        Intervals of tables cover 1 - alpha.
    random_state : None or int, default=None
        An int makes the fit reproducible and therefore not private.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    cumulative_density_ : pandas.DataFrame
        Probability of the event of interest by the times of ``timeline``, before any other event.
    confidence_interval_ : pandas.DataFrame
        Its pointwise intervals, for sampling and for privacy noise.
    causes_ : list
        Labels of the causes.
    event_of_interest_ : label
        The cause of ``cumulative_density_``, ``predict`` and intervals: that of ``fit``, or the
        first one. :meth:`cumulative_density_at_times` takes any other.
    survival_function_, event_table, timeline, groups_, group_
        As for :class:`DPKaplanMeierFitter`, of all events together.
    median_survival_time_ : float
        Until the first event of any kind.
    guarantee_ : PrivacyGuarantee
        The privacy guarantee.
    release_ : Release
        The result to publish.
    n_features_in_ : int
        Columns of X, which are not used.

    See Also
    --------
    DPKaplanMeierFitter : One kind of event.

    Notes
    -----
    Neighbours: replace-one. Each record is in one cell of a table by group, cause and band. Theorem
    and sensitivity: docs/proofs/curves.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv import DPAalenJohansenFitter
    >>> rng = np.random.default_rng(0)
    >>> days = rng.exponential(400.0, 2000)
    >>> what = rng.choice(["relapse", "death"], 2000, p=[0.7, 0.3])
    >>> fitter = DPAalenJohansenFitter(
    ...     epsilon=1.0, max_time=1000.0, causes=["relapse", "death"], censored="alive"
    ... )
    >>> fitter = fitter.fit(days, np.where(days < 800, what, "alive"))
    >>> print(f"{fitter.predict(700):.1f}")
    0.6
    """

    _curve_type = IncidenceCurve

    causes_: list[Any]
    event_of_interest_: Any

    _rules: ClassVar[dict[str, Check]] = {
        "causes": required("the public labels of all events that there could be.", check_causes),
        "censored": is_label,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_time: float | None = None,
        causes: Sequence[Any] | None = None,
        censored: Any = 0,
        n_intervals: int | str = "auto",
        breakpoints: str | ArrayLike = "early",
        groups: Sequence[Any] | None = None,
        alpha: float = 0.05,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        bands: Any = {"n_intervals": n_intervals, "breakpoints": breakpoints, "groups": groups}
        others: Any = {"alpha": alpha, "random_state": random_state, "accountant": accountant}
        super().__init__(epsilon, max_time=max_time, **bands, **others)
        self.causes = causes
        self.censored = censored

    def fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        event_of_interest: Any = None,
        durations: ArrayLike | None = None,
        event_observed: ArrayLike | None = None,
        entry: ArrayLike | None = None,
        group: ArrayLike | None = None,
        person: ArrayLike | None = None,
        timeline: ArrayLike | None = None,
        label: str | None = None,
        alpha: float | None = None,
    ) -> Self:
        """Fit the curves, spending ``epsilon`` once, whatever the number of causes and groups.

        Parameters
        ----------
        X, y, durations, event_observed, entry, group, person, timeline, label, alpha
            As for :class:`DPKaplanMeierFitter`; ``event_observed`` holds the cause of each event,
            or ``censored``.
        event_of_interest : label or None
            The cause of curves and intervals, as in lifelines. None: the first one. Others are
            free of cost: :meth:`cumulative_density_at_times`.

        Returns
        -------
        self
        """
        if event_of_interest is not None:
            self._check_parameters()
            self._causes().index(event_of_interest, "event_of_interest")
        records: Any = {"durations": durations, "event_observed": event_observed}
        records |= {"entry": entry, "group": group}
        shown: Any = {"timeline": timeline, "label": label, "alpha": alpha}
        super().fit(X, y, person=person, **records, **shown)
        return self if event_of_interest is None else self._about(event_of_interest)

    def of_cause(self, cause: Any) -> Self:
        """Return the curves of one cause, from the same release, at no cost.

        Parameters
        ----------
        cause : label
            One of ``causes``.

        Returns
        -------
        estimator
            Fitted, with the same methods.
        """
        self._cause(cause)
        return copy.copy(self)._about(cause)

    def _about(self, cause: Any) -> Self:
        shown, group = self._shown, getattr(self, "group_", None)
        start = self._curve.timeline[self._curve.first_band]
        parameters = {**self.release_.parameters, "event_of_interest": plain(cause)}
        self._set_release(replace(self.release_, parameters=parameters))
        self._show(shown)
        found = self if group is None else self.of_group(group)
        return found.given_alive_at(start) if start else found

    def _check_together(self) -> None:
        super()._check_together()
        if is_one_of(self.censored, self._causes().labels or []):
            raise ValueError("censored must not be one of causes.")

    def _cause(self, cause: Any) -> int:
        """Return the index of a cause; None: the cause of interest."""
        return self._curve.causes.index(self.event_of_interest_ if cause is None else cause)

    def cumulative_density_at_times(
        self, times: ArrayLike, label: str | None = None, cause: Any = None
    ) -> pd.Series:
        """Return the probability of an event up to each time, before any other event.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
            From 0 to ``max_time``, in its unit; later times are refused.
        label : str or None
            Name of the series.
        cause : label or None
            One of ``causes``, at no cost. None: ``event_of_interest_``.

        Returns
        -------
        pandas.Series
            Indexed by the times.
        """
        number, t, curve = self._cause(cause), self._times(times), self._curve
        at_ends = self._incidence(curve.hazards, number)
        # Within a band, events of each kind keep their share of all.
        gone, gone_by = -np.expm1(-curve.at_knots), -np.expm1(-curve.at(t))
        incidence = np.append(0.0, at_ends)
        band = np.searchsorted(curve.ends, t)
        whole, so_far = gone[band + 1] - gone[band], gone_by - gone[band]
        share = np.clip(so_far / np.where(whole > 0.0, whole, 1.0), 0.0, 1.0)
        values = incidence[band] + share * (incidence[band + 1] - incidence[band])
        return self._series(values, t, label)

    def cumulative_density_band(
        self, times: ArrayLike, level: float = 0.95, cause: Any = None, n_resamples: int = 1000
    ) -> pd.DataFrame:
        """Return pointwise intervals of the probability of an event up to each time.

        Parameters
        ----------
        times : array-like of shape (n_times,), or float
        level : float, default=0.95
            Nominal coverage.
        cause : label or None
            One of ``causes``. None: ``event_of_interest_``.
        n_resamples : int, default=1000
            Number of simulated curves.

        Returns
        -------
        pandas.DataFrame
            Indexed by the times, columns ``lower`` and ``upper``.
        """
        level, t = fraction("level", level), self._times(times)
        estimate = self.cumulative_density_at_times(t, cause=cause).to_numpy()
        curve = self._curve
        draws = curve.plausible_masses(positive_int("n_resamples", n_resamples))
        incidence = self._incidence(draws, self._cause(cause))
        # Linear within bands, as cumulative hazards are.
        drawn = np.clip(curve.cumulative_hazard(t, incidence), 0.0, 1.0)
        return interval(drawn, level, estimate, t)

    def _main(self, times: FloatArray) -> tuple[str, pd.Series, pd.DataFrame]:
        band = self.cumulative_density_band(times, self._level)
        found = self.cumulative_density_at_times(times)
        return f"incidence of {self.event_of_interest_}", found, band

    @property
    def confidence_interval_cumulative_density_(self) -> pd.DataFrame:
        """Pointwise intervals of ``cumulative_density_``."""
        band = self.cumulative_density_band(self.timeline, self._level)
        return self._named_ends(band.to_numpy())

    @staticmethod
    def _incidence(hazards: FloatArray, number: int) -> FloatArray:
        """Return incidences at the ends of bands, by hazards (..., n_causes, n_bands)."""
        total = hazards.sum(axis=-2)
        entering = np.exp(np.minimum(total - np.cumsum(total, axis=-1), 0.0))
        safe = np.where(np.abs(total) < 1e-12, 1.0, np.maximum(total, -50.0))
        part = np.where(np.abs(total) < 1e-12, 1.0, -np.expm1(-safe) / safe)
        return np.cumsum(entering * hazards[..., number, :] * part, axis=-1)

    def _formula(self, script: Script) -> str:
        times = self._curve.timeline
        knots = ", ".join(map(script.number, times))
        incidence = ", ".join(map(script.number, self.cumulative_density_at_times(times)))
        return f"incidence(time) is linear between\ntimes     {knots}\nincidence {incidence}"
