"""Histories: until when each person was seen, and what happened then.

One value goes from the target of a fit to likelihoods, tables and evaluations. :class:`Columns`
says which columns of a table hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skdpsurv.dp import containers
from skdpsurv.dp.checks import is_integer
from skdpsurv.dp.clipping import clip_times
from skdpsurv.dp.input_errors import (
    MISSING,
    NUMBERS,
    REAL,
    ROWS,
    all_of,
    call_or_none,
    refuse_masked,
)
from skdpsurv.dp.types import BoolArray, FloatArray, IndexArray, IntArray

#: Types of cells that hold several entries.
NESTED: frozenset[type] = frozenset({*ROWS, np.void})
SPANS: frozenset[type] = frozenset({np.timedelta64})
BOOLEANS: frozenset[type] = frozenset({bool, np.bool_})
SURV = "sksurv.util.Surv.from_arrays(event, time) makes a y of two arrays"
#: Words in names of columns that hold events, or times.
EVENT_WORDS = {
    *("event", "events", "status", "observed", "death", "deaths", "dead", "died", "deceased"),
    *("failure", "failed", "fail", "relapse", "relapsed", "recurrence", "cause", "arrest"),
}
TIME_WORDS = {
    *("time", "times", "timeline", "duration", "durations", "survival", "lifetime", "tenure"),
    *("day", "days", "week", "weeks", "month", "months", "year", "years", "futime", "followup"),
}
#: Words in names of columns that hold where a row begins, or where it ends.
START_WORDS = {"start", "starts", "tstart", "starttime", "begin", "entry", "enter", "entrytime"}
STOP_WORDS = {"stop", "stops", "tstop", "stoptime", "end", "exit", "exittime"}
#: Why entries of another number are refused.
ONE_ENTRY = "entry must have one entry for each record."
#: Value of an event whose label is not stated: a fit refuses it.
UNSTATED = 2.0
#: One float in a column of integers makes floats of all, which hold integers below this.
LARGEST_LABEL = 2**53

#: A function that reads the causes of a column, by its name; None: all are observed.
CauseReader = Callable[[Any, str], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Histories:
    """Private columns with a cell for each record; None stands for the same in all.

    An estimator states by what it takes (:class:`skdpsurv.release.card.Card`) which columns it
    uses, and its base refuses the others. None takes ``person`` yet: of each person the first
    record is read.

    Parameters
    ----------
    exit : ndarray of shape (n,)
        Time of the event or of censoring; its logarithm, or its interval on a grid, from 1.
    cause : ndarray of shape (n,)
        True for an event and False where censored; or the number of the cause, 0 where censored.
    entry : ndarray of shape (n,) or None, default=None
        Time from which a record was seen, or its interval on a grid, from 0: at risk is who is
        in a later one. None: all are seen from 0.
    stratum : ndarray of int of shape (n,) or None, default=None
        Number of the public group; None: there is one.
    person : ndarray of int of shape (n,) or None, default=None
        Number of the person; None: all records are of different people.
    """

    exit: NDArray[Any]
    cause: NDArray[Any]
    entry: NDArray[Any] | None = None
    stratum: IndexArray | None = None
    person: IndexArray | None = None

    @classmethod
    def joined(cls, parts: Sequence[Histories]) -> Self:
        """Return the records of all parts, which have the same columns."""
        names = parts[0].columns
        return cls(**{name: np.concatenate([one.columns[name] for one in parts]) for name in names})

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that are not None, by name."""
        return {name: column for name, column in vars(self).items() if column is not None}

    @property
    def size(self) -> int:
        """Number of records."""
        return self.exit.size

    @property
    def event(self) -> BoolArray:
        """Whether there was an event, of any cause."""
        return self.cause.astype(bool, copy=False)

    @property
    def at_risk(self) -> BoolArray:
        """Whether the exit is after the entry: others are never at risk."""
        return np.ones(self.size, bool) if self.entry is None else self.entry < self.exit

    def take(self, rows: slice | NDArray[Any]) -> Self:
        """Return some of the records."""
        return replace(self, **{name: column[rows] for name, column in self.columns.items()})

    def clipped(self, max_time: float) -> Self:
        """Return histories that are censored at a public horizon."""
        found, event = clip_times(self.exit, self.event, max_time)
        cause = event if self.cause.dtype == bool else np.where(event, self.cause, 0)
        return replace(self, exit=found, cause=cause)

    def cells(self, band: IntArray, n_bands: int, end: float, n_causes: int = 1) -> IntArray:
        """Return each record's cell in a table of outcomes by band, of clipped histories.

        Causes come first, censoring then, and those who stay to the end have the last cell.
        """
        event = self.event
        outcome = np.where(event, self.cause.astype(np.int64) - 1, n_causes)
        stayed = ~event & (self.exit >= end)
        return np.where(stayed, (n_causes + 1) * n_bands, outcome * n_bands + band)

    def on_grid(self, max_time: float, n_intervals: int) -> Self:
        """Return histories whose exits are intervals, 1 to ``n_intervals``, each on its own.

        Entries are intervals, too, from 0: that of who entered in interval s is s. Whoever entered
        in the interval of the exit, or later, is at risk in none.
        """

        def interval(times: FloatArray, least: int) -> IntArray:
            with np.errstate(over="ignore"):  # near the largest double: infinity lands in q
                position = np.ceil(n_intervals * times / max_time)
            return np.clip(position, least, n_intervals).astype(np.int64)

        clipped = self.clipped(max_time)
        entry = None if self.entry is None else interval(self.entry, 0)
        return replace(clipped, exit=interval(clipped.exit, 1), entry=entry)


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table that hold histories; public.

    Parameters
    ----------
    time : str
        Column of exits.
    event : str or None, default=None
        Column of events; None: all are observed.
    person : str or None, default=None
        Column of identifiers of persons; None: nobody has two records.
    entry : str or None, default=None
        Column of entries; None: all are seen from 0.
    event_is, censored_is : sequence, default=()
        Labels of events, and of censored records; none for 1 and 0.
    """

    time: Any
    event: Any = None
    person: Any = None
    event_is: Sequence[Any] = ()
    censored_is: Sequence[Any] = ()
    entry: Any = None

    @property
    def stated(self) -> dict[str, Any]:
        """The columns that are stated, by name of the parameter."""
        names = ("time", "event", "person", "entry")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def check(self, names: Collection[Any] | None = None) -> None:
        """Refuse what contradicts itself, or the names of all columns of a table, if given."""
        stated = self.stated
        columns = list(stated.values())
        listed = [*dict.fromkeys(columns)] if names is None else list(names)
        for name, column in stated.items():
            if (number := listed.count(column)) != 1:
                got = f"and {column!r} names {number}" if number else f"got {column!r}"
                raise ValueError(f"{name} must be the name of one column, {got}.")
        refuse_starts([self.time], [name for name in listed if name != self.entry])
        if len(set(columns)) < len(columns):
            raise ValueError(f"{' and '.join(stated)} must be different columns.")
        order = self.event, self.time
        if self.event is not None and event_first(*order) != order:
            raise ValueError(
                f"event and time must not be named as each other, got {self.event!r} and "
                f"{self.time!r}: rename the columns, for instance to event and time."
            )
        seen, censored = {*self.event_is}, {*self.censored_is}
        if bool(seen) != bool(censored) or seen & censored or (seen and self.event is None):
            raise ValueError(
                "event_is and censored_is must be given together, for a column of events, and be "
                "different labels."
            )
        if any(is_integer(label) and abs(label) >= LARGEST_LABEL for label in seen | censored):
            raise ValueError("event_is and censored_is must hold integers below 2**53.")

    def events(self, frame: Any, counting: Collection[Any] = ()) -> Any:
        """Return the column of events; stated labels become 1 and 0. Dask stays lazy.

        Other labels become ``UNSTATED``, which a fit refuses. ``counting`` are the labels of the
        events that count, if not all do: the others become 0, too.
        """
        if not self.event_is:
            return frame[self.event]
        flags = dict.fromkeys([*self.event_is, *self.censored_is], 0.0)
        flags |= dict.fromkeys(counting or self.event_is, 1.0)

        def flag(label: Any) -> float:
            return flags.get(label, UNSTATED)

        def flagged(cells: pd.Series) -> pd.Series:
            found = call_or_none(lambda: cells.astype(object).map(flag, "ignore").astype(float))
            return pd.Series(UNSTATED, cells.index) if found is None else found

        cells = frame[self.event]
        lazy = containers.is_dask(cells)
        return cells.map_partitions(flagged, meta=(self.event, float)) if lazy else flagged(cells)

    def target(self, frame: Any) -> Any:
        """Return events and times for a fit, or times alone if all are observed."""
        if self.event is None:
            return frame[self.time]
        both = frame[[self.event, self.time]]
        return both.assign(**{self.event: self.events(frame)}) if self.event_is else both


def read_target(
    y: Any, durations: Any = None, event: Any = None, causes: CauseReader | None = None
) -> Histories:
    """Read y, or durations beside events, which may be None."""
    if durations is not None or event is not None:
        times = y if durations is None else durations
        return read_columns(times, event, ("durations", "event_observed"), causes)
    refuse_masked(y, "y")
    frame = containers.is_frame(y)
    y = y if frame else as_column(one_by_one(y), "y")
    labels = containers.labels_of(y)
    names = y.dtype.names if labels is None else tuple(labels)
    if names is None:
        return read_columns(y, None, ("the times of y", "y"), causes)
    if len(names) != 2:
        raise ValueError(
            "y must be 1-D with two fields, or a data frame with two columns, event and time, got "
            f"{list(map(str, names))}."
        )
    chosen = event_first(*names)
    event, time = (as_column(y[name], "y") for name in chosen)
    how = "the first of two" if chosen[0] == names[0] else "the second, by both names"
    hint = f"It was taken to be {chosen[0]!s}, {how}: name the columns event and time."
    words = "the times of y", f"the event {'column' if frame else 'field'} of y"
    return read_columns(time, event, words, causes or partial(checked_events, hint=hint))


# ---- What names of columns mean.


def refuse_starts(times: Iterable[Any], names: Iterable[Any]) -> None:
    """Refuse names of columns by which rows last from a start to a stop; no record is looked at."""
    starts = [str(name) for name in names if _words(name) & START_WORDS]
    stops = [str(name) for name in times if _words(name) & STOP_WORDS]
    # "days from entry to exit" is a duration, and "event at end" no time.
    starts = [name for name in starts if not _words(name) & (STOP_WORDS | EVENT_WORDS)]
    stops = [name for name in stops if not _words(name) & (START_WORDS | EVENT_WORDS)]
    if starts and stops:
        raise ValueError(
            f"{stops[0]!r} and {starts[0]!r} look like rows from a start to a stop, which are not "
            "provided for: make one row of each person, with the covariates known at the start. If "
            "that row has a late entry, state it apart from the times, as entry. If they are "
            "something else, rename one."
        )


def _words(name: Any) -> set[str]:
    return set(re.findall("[a-z]+", str(name).lower()))


def event_first(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two names, that of events and that of times: in this order unless they say otherwise.

    Types do not decide: one record's NaN makes floats of a column of booleans, and the columns of
    all others would change places.
    """
    of_time, of_event = zip(*(meaning(name) for name in (first, second)), strict=True)
    swapped = of_time == (True, False) or of_event == (False, True)
    return (second, first) if swapped else (first, second)


def meaning(name: Any) -> tuple[bool, bool]:
    """Return whether a name means times, and whether events; time_to_event means neither."""
    words = _words(name)
    times, events = bool(words & TIME_WORDS), bool(words & EVENT_WORDS)
    return times and not events, events and not times


# ---- Cells of the columns.


def read_columns(
    times: Any, event: Any, names: tuple[str, str], causes: CauseReader | None = None
) -> Histories:
    """Read times and events, which errors call by names; without events all are observed."""
    known = (causes or checked_events)(event, names[1])
    found = checked_times(times, names[0])
    cause = np.ones(found.shape, dtype=bool) if event is None else known
    if cause.size != found.size:
        raise ValueError(
            "durations and event_observed must have the same length: found input variables with "
            "inconsistent numbers of samples."
        )
    return Histories(found, cause)


def with_entry(found: Histories, entry: Any) -> Histories:
    """Return histories with their entries, in the unit of the times; None: all are seen from 0.

    An entry after its exit, or beyond the horizon, is allowed: such a record is never at risk.
    """
    if entry is None:
        return found
    times = checked_times(entry, "entry")
    if times.size != found.size:
        raise ValueError(ONE_ENTRY)
    return replace(found, entry=times)


def checked_events(event: Any, name: str, hint: str = "") -> BoolArray:
    """Return event indicators as booleans: a view if they are booleans already; None has none.

    ``name`` and ``hint``, which follows where they are other numbers, are for messages.
    """
    if event is None:
        return np.empty(0, dtype=bool)
    if isinstance(event, list | tuple):
        event = [one if all_of(REAL | NESTED | MISSING, [one]) else "" for one in event]
    flags = as_column(event, name)
    if flags.dtype.kind == "O" and all_of(BOOLEANS, flags):
        flags = flags.astype(bool)
    plain = flags.dtype.kind in "buif"
    refuse_missing(flags, name)
    if not plain or not np.isin(flags, (0, 1)).all():
        more = hint if plain else "Compare labels with that of an event, as in status == 'dead'."
        raise ValueError(f"{name} must be boolean, or 0 and 1. {more}".rstrip())
    return flags.astype(bool, copy=False)


def checked_times(time: ArrayLike, name: str) -> FloatArray:
    """Return times as floats: a view if they are doubles already.

    They must be finite and not negative; time differences of NumPy or pandas count in days.
    """
    times = as_column(one_by_one(time), name)
    if times.dtype.kind == "m" and _is_span(times):  # missing ones become NaN
        times = times / np.timedelta64(1, "D")
    refuse_missing(times, name)
    if times.dtype.kind not in "uif":
        hint = f": {SURV}" if name == "the times of y" else ""
        raise ValueError(
            f"Unknown label type: {name} must be numbers, which truth values are not{hint}."
        )
    with np.errstate(all="ignore"):  # long doubles overflow to infinity
        times = times.astype(np.float64, copy=False)
    if not np.isfinite(times).all() or (times < 0).any():
        raise ValueError(f"{name} must be finite and not negative.")
    return times


def refuse_missing(values: NDArray[Any], name: str) -> None:
    """Refuse missing values, also where they make objects of a column of numbers."""
    cells = values
    if values.dtype.kind == "O":  # no other cell may be asked
        known = [one for one in values if all_of(NUMBERS | MISSING, [one])]
        cells = np.array(known, dtype=object)
    if cells.dtype.kind in "fO" and pd.isna(cells).any():
        raise ValueError(f"{name} must not contain missing values (NaN).")


def one_by_one(times: Any) -> Any:
    """Return a list with each entry read by itself; anything else unchanged."""
    return [_time(time) for time in times] if isinstance(times, list | tuple) else times


def _time(time: Any) -> Any:
    """Return a number, or a span in days; text for anything else but nested or missing entries."""
    if all_of(NESTED | MISSING, [time]):
        return time
    with suppress(OverflowError):  # a day has too many picoseconds
        if all_of(NUMBERS, [time]):
            return float(time)
        if all_of(SPANS, [time]) and _is_span(time):
            return float(time / np.timedelta64(1, "D"))
    return ""


def _is_span(times: Any) -> bool:
    """Return whether time differences have a fixed length, unlike months and years."""
    return np.datetime_data(times.dtype)[0] not in ("M", "Y", "generic")


def as_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return values as a one-dimensional array."""
    refuse_masked(values, name)
    column: NDArray[Any] | None = call_or_none(np.asarray, containers.unlabelled(values))
    if column is None:
        raise ValueError(f"{name} must be an array with one entry for each record.")
    if column.ndim != 1:
        made = f"; {SURV}" if name == "y" else ""
        raise ValueError(f"{name} must be 1-D, one entry per record, got {column.ndim}-D{made}.")
    return column
