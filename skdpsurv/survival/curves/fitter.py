"""What comes before a table of exits: parameters, records and their groups, bands, the plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.base import Weakness
from skdpsurv.data.labels import class_indices, label_places, stated_labels
from skdpsurv.data.shape import Shape, in_memory
from skdpsurv.data.target import single_column
from skdpsurv.dp import PrivacyAccountant, RefusedValueError
from skdpsurv.dp.checks import Check, auto_or, horizon, integer, number_in, required_horizon
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.refusals import attempted
from skdpsurv.dp.types import FloatArray, IndexArray
from skdpsurv.survival.curve_frames import Shown
from skdpsurv.survival.curves.table import (
    ASSUMED,
    IS_EPSILON,
    LARGEST_TABLE,
    LARGEST_TABLES,
    NARROWEST,
    ExactExits,
    ExitTable,
    band_ends,
    check_breakpoints,
    n_bands_for,
)
from skdpsurv.survival.univariate import UnivariateFitter

#: More groups than anybody draws.
MOST_GROUPS = 1000
NO_GROUP = "group must be given to fit where groups are stated: the group of each record."


@dataclass(frozen=True)
class GroupedShape(Shape):
    """The shape of records, and the labels of groups; None if there are none."""

    groups: NDArray[Any] | None = None

    @property
    def n_groups(self) -> int:
        """One, if there are no groups: everybody."""
        return 1 if self.groups is None else self.groups.size


@dataclass(frozen=True)
class Causes:
    """What ends a follow-up: an event, or one of several.

    Parameters
    ----------
    labels : list or None
        Of several kinds of events; None: there is one.
    censored : label
        What a record holds where no event was seen.
    """

    labels: list[Any] | None = None
    censored: Any = 0

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Causes:
        """Return those of an estimator, or of a release."""
        if "causes" not in parameters:
            return cls()
        labels = stated_labels("causes", parameters["causes"]).tolist()
        return cls(labels, plain(parameters["censored"]))

    @property
    def number(self) -> int:
        """Kinds of events."""
        return 1 if self.labels is None else len(self.labels)

    @property
    def reader(self) -> Any:
        """What reads the cause of each record from a column and its name; None: indicators."""
        if self.labels is None:
            return None
        return partial(_read_causes, [self.censored, *self.labels])

    def place(self, label: Any) -> int:
        """Return the number of one of the events; of None: of the first."""
        if label is None:
            return 0
        if self.labels is None or not is_one_of(label, self.labels):
            raise ValueError(f"cause must be one of {self.labels}, got {label!r}.")
        return self.labels.index(label)

    def stated(self) -> dict[str, Any]:
        """Return what a release states of them."""
        return {} if self.labels is None else {"causes": self.labels, "censored": self.censored}


def plain(label: Any) -> Any:
    """Return a label as Python's own number or text."""
    return label.item() if isinstance(label, np.generic) else label


def is_one_of(label: Any, labels: list[Any]) -> bool:
    """Say whether a label is one of some; True is not 1."""
    return any(type(label) is not bool and label == one for one in labels)


def _read_causes(labels: list[Any], values: Any, name: str) -> IndexArray:
    """Return the number of the cause of each record, 0 where it is censored."""
    if values is None:
        if len(labels) == 2:
            return np.empty(0, dtype=np.intp)
        raise ValueError("event_observed must be given, or y must have two fields: which event.")
    stated: NDArray[Any] = np.empty(len(labels), dtype=object)
    stated[:] = labels
    return label_places(values, name, stated, "causes, or censored")


def check_groups(name: str, groups: Any) -> None:
    """Refuse what are no labels of groups."""
    if groups is not None and stated_labels(name, groups).size > MOST_GROUPS:
        raise ValueError(f"{name} must be at most {MOST_GROUPS:,}.")


def found_groups(group: Any, n_records: int) -> NDArray[Any]:
    """Return the labels that records have, which is not private."""
    with suppress(TypeError, ValueError):
        if attempted(np.ndim, group) == 1:
            found, _ = class_indices(group, None, n_records)
            check_groups("groups", found)
            return found
    raise RefusedValueError(
        f"group must hold a label for each record, of at most {MOST_GROUPS:,} different ones."
    )


def _exits(
    read: Any, groups: NDArray[Any] | None, block: tuple[Any, ...]
) -> tuple[IndexArray, FloatArray, IndexArray]:
    *target, group = block
    event, time = read(*target)
    cause = np.asarray(event, dtype=np.intp)
    if groups is None:
        return cause, time, np.zeros(time.size, dtype=np.intp)
    if group is None:
        raise ValueError(NO_GROUP)
    place = label_places(group, "group", groups, "groups")
    if place.size != time.size:
        raise ValueError("group must have one entry for each record.")
    return cause, time, place


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
        shown = Shown.checked(timeline, label, alpha)
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
        self, X: Any, y: Any, durations: Any = None, event_observed: Any = None, group: Any = None
    ) -> GroupedShape:
        seen = super()._shape(X, y, durations, event_observed)
        labels = None if self.groups is None else stated_labels("groups", self.groups)
        if labels is None and group is not None:
            # To read them is to release them: the ledger must allow that before it is done.
            with self._refusals_charged("none"):
                labels = found_groups(group, seen.n_records)
        return GroupedShape(seen.n_records, seen.n_features, labels)

    def _weaknesses(self, shape: Any) -> list[Weakness]:
        found = super()._weaknesses(shape)
        if self.groups is None and shape is not None and shape.groups is not None:
            found.append(Weakness("none", GROUPS_FROM_DATA))  # a new label shows
        return found

    @property
    def _events(self) -> Any:
        return self._causes().reader

    def _block_reader(self, shape: GroupedShape, read: Any) -> Any:
        return partial(_exits, read, shape.groups)

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

    def _stated(self, shape: GroupedShape) -> dict[str, Any]:
        breakpoints, n_intervals, causes = self.breakpoints, self.n_intervals, self._causes()
        if not isinstance(breakpoints, str):
            breakpoints = np.asarray(breakpoints).tolist()
        elif isinstance(n_intervals, str):
            most = min(LARGEST_TABLE, math.isqrt(LARGEST_TABLES // shape.n_groups))
            worth = n_bands_for(shape.n_records, float(self.epsilon), shape.n_groups)
            n_intervals = min(worth, most // (causes.number + 1))
        else:
            n_intervals = int(n_intervals)
        stated = {
            "max_time": required_horizon(self.max_time),
            "n_intervals": n_intervals,
            "breakpoints": breakpoints,
        }
        if shape.groups is not None:
            stated["groups"] = shape.groups.tolist()
        return stated | causes.stated()

    def _plan(self, shape: GroupedShape) -> Plan:
        stated, epsilon = self._stated(shape), float(self.epsilon)
        check_size(stated)
        kind = ExactExits if math.isinf(epsilon) else ExitTable
        table = kind(
            price=epsilon,
            ends=stated_ends(stated),
            n_causes=self._causes().number,
            n_groups=shape.n_groups,
        )
        return Plan(
            table, epsilon, inputs={"n_records": shape.n_records, **stated}, assumed=ASSUMED
        )


def check_size(stated: Any) -> None:
    """Refuse a table that would take hours to make curves of, by public parameters."""
    n_masses = (Causes.of(stated).number + 1) * stated_ends(stated).size
    n_groups = len(stated.get("groups", [None]))
    if n_masses > LARGEST_TABLE or n_groups * n_masses**2 > LARGEST_TABLES:
        raise ValueError(
            f"n_intervals must be such that there are at most {LARGEST_TABLE:,} ways out by band, "
            f"and {LARGEST_TABLES:,} pairs of them in all groups: state fewer."
        )


def stated_ends(stated: Any) -> FloatArray:
    """Return the ends of bands, by public parameters."""
    breakpoints, number = stated["breakpoints"], stated["n_intervals"]
    return band_ends(float(stated["max_time"]), 0 if number == "auto" else number, breakpoints)
