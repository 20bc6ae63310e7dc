"""The estimators' common part before the table: parameters, groups, bands, and the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.base import Weakness
from skdpsurv.checks import Check, auto_or, horizon, integer, number_in, required_horizon
from skdpsurv.labels import stated_labels
from skdpsurv.privacy import PrivacyAccountant
from skdpsurv.privacy.plan import Plan
from skdpsurv.sources import in_memory
from skdpsurv.survival.curve_frames import Shown
from skdpsurv.survival.exit_records import (
    Causes,
    GroupedShape,
    check_groups,
    found_groups,
    read_exits,
)
from skdpsurv.survival.exit_table import IS_EPSILON, exit_plan
from skdpsurv.survival.time_bands import (
    LARGEST_TABLE,
    LARGEST_TABLES,
    NARROWEST,
    band_ends,
    check_breakpoints,
    n_bands_for,
)
from skdpsurv.survival.univariate import UnivariateFitter
from skdpsurv.target import single_column
from skdpsurv.types import FloatArray

__all__ = ["ExitTableFitter", "check_size", "stated_ends"]

GROUPS_FROM_DATA = (
    "groups were read from the records: whether anybody is in a group shows, so this fit is not "
    "private. State them, as groups=[...]."
)


class ExitTableFitter(UnivariateFitter, released=False):
    """Base of estimators that release one noisy table of exits, and how records get into it.

    A subclass makes curves of the table. Kinds of events are those of its parameters ``causes`` and
    ``censored``, if it has them.
    """

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
        ci_labels: Sequence[str] | None = None,
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
        ci_labels : sequence of two str, or None
            Names of the lower and of the upper end of intervals.

        Returns
        -------
        self
        """
        shown = Shown.checked(timeline, label, alpha, ci_labels)
        if y is None and durations is None:
            X = single_column(X)
        self._fit(
            X, y, durations=durations, event_observed=event_observed, group=group, person=person
        )
        self._show(shown)
        return self

    def _causes(self) -> Causes:
        return Causes.of(vars(self))

    _one_of_each = ("durations", "event_observed", "group")

    def _sources(
        self, X: Any, y: Any, *, group: Any = None, **options: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        if group is not None and self.groups is None and not in_memory(X, y, group):
            raise ValueError("groups must be given where records are not in memory.")
        return super()._sources(X, y, group=group, **options)

    def _shape(
        self,
        X: Any,
        y: Any,
        durations: Any = None,
        event_observed: Any = None,
        group: Any = None,
    ) -> GroupedShape:
        seen = super()._shape(X, y, durations, event_observed)
        return GroupedShape(seen.n_records, seen.n_features, self._labels(group, seen.n_records))

    def _labels(self, group: Any, n_records: int) -> NDArray[Any] | None:
        """Return the labels of groups, as stated or, in memory, read from the records."""
        if self.groups is not None:
            return stated_labels("groups", self.groups)
        if group is None:
            return None
        # To read them is to release them: the ledger must allow that before it is done.
        with self._refusals_charged("none"):
            return found_groups(group, n_records)

    def _weaknesses(self, shape: Any) -> list[Weakness]:
        found = super()._weaknesses(shape)
        if self.groups is None and shape is not None and shape.groups is not None:
            found.append(Weakness("none", GROUPS_FROM_DATA))  # a new label shows
        return found

    def _read(  # type: ignore[override]
        self,
        shape: GroupedShape,
        X: Any,
        y: Any,
        durations: Any = None,
        event_observed: Any = None,
        group: Any = None,
    ) -> Any:
        events = self._causes().reader
        records = read_exits(shape, X, y, durations, event_observed, group, events)
        shape.require(records.map_sum(lambda block: block[1].size))
        return records

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

    def _bands(self, n_records: int, n_groups: int) -> int | str:
        """Return how many bands there are; "auto" where breakpoints say it."""
        if not isinstance(self.breakpoints, str):
            return "auto"
        if isinstance(self.n_intervals, str):
            n_ways = self._causes().number + 1
            most = min(LARGEST_TABLE, math.isqrt(LARGEST_TABLES // n_groups)) // n_ways
            return min(n_bands_for(n_records, float(self.epsilon), n_groups), most)
        return int(self.n_intervals)

    def _stated(self, shape: GroupedShape) -> dict[str, Any]:
        n_groups = 1 if shape.groups is None else shape.groups.size
        breakpoints = self.breakpoints
        stated = {
            "max_time": required_horizon(self.max_time),
            "n_intervals": self._bands(shape.n_records, n_groups),
            "breakpoints": (
                breakpoints if isinstance(breakpoints, str) else np.asarray(breakpoints).tolist()
            ),
        }
        if shape.groups is not None:
            stated["groups"] = shape.groups.tolist()
        return stated | self._causes().stated()

    def _plan(self, shape: GroupedShape) -> Plan:
        stated = self._stated(shape)
        check_size(stated)
        n_groups = 1 if shape.groups is None else shape.groups.size
        ends, n_causes = stated_ends(stated), self._causes().number
        return exit_plan(shape.n_records, float(self.epsilon), ends, n_causes, n_groups, stated)


def check_size(stated: Any) -> None:
    """Refuse a table that would take hours to make curves of, by public parameters.

    Raises
    ------
    ValueError
    """
    groups = stated.get("groups")
    n_masses = (Causes.of(stated).number + 1) * stated_ends(stated).size
    n_groups = 1 if groups is None else len(groups)
    if n_masses > LARGEST_TABLE or n_groups * n_masses**2 > LARGEST_TABLES:
        raise ValueError(
            f"n_intervals must be such that there are at most {LARGEST_TABLE:,} ways out by band, "
            f"and {LARGEST_TABLES:,} pairs of them in all groups: state fewer."
        )


def stated_ends(stated: Any) -> FloatArray:
    """Return the ends of bands, by public parameters."""
    breakpoints, number = stated["breakpoints"], stated["n_intervals"]
    return band_ends(float(stated["max_time"]), 0 if number == "auto" else number, breakpoints)
