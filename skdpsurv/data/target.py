"""The survival target y: times, each with an indicator of event or censoring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.shape import ROWS, is_pair, length, require_one_each, size
from skdpsurv.dp import containers
from skdpsurv.dp.input_errors import MISSING, NUMBERS, REAL, all_of, call_or_none, refuse_masked
from skdpsurv.dp.types import BoolArray, FloatArray

__all__ = ["event_and_time", "split_target"]

#: Types of cells that hold several entries.
NESTED: frozenset[type] = frozenset({*ROWS, np.void})
SPANS: frozenset[type] = frozenset({np.timedelta64})
#: A function that returns events and times of its arguments.
Reader = Callable[..., tuple[NDArray[Any], FloatArray]]
Arguments = tuple[Any, ...]

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
TIMES_ALONE = "y has neither fields nor columns"
ONE_COLUMN = (
    "X has 1 feature(s) and y has no fields, so that it is not said which of them are times: give "
    f"durations and event_observed by name, or {SURV}."
)


def event_and_time(y: Any, events: Any = None) -> tuple[NDArray[Any], FloatArray]:
    """Split a survival target into events and times.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Structured array with two fields under any names: the event indicator (boolean, or
        numbers 0 and 1) and the time. The event is the first of them, as in scikit-survival,
        unless names say otherwise: a word such as days or time in the name of the first alone, or
        such as event, status or died in the name of the second alone. Types do not decide, since
        one record may change the type of a column. A data frame of two such columns is read
        likewise. An array without fields holds times, all of them events.
    events : callable or None
        Reader of a column, by column and name, in place of :func:`checked_events`. Without a
        column it is called with None, and refuses that unless all are events.

    Returns
    -------
    event : ndarray of bool, shape (n_samples,)
        True where the event was observed, False where the time is censored; or the result of
        ``events``.
    time : ndarray of float, shape (n_samples,)
        Time of the event or of censoring, in the unit of ``y``.

    Raises
    ------
    ValueError
        If there are not two fields, the events are not 0 and 1, or a time is negative or not
        finite.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([(12.5, True), (3.0, False)], dtype=[("months", "f8"), ("died", "?")])
    >>> event_and_time(y)
    (array([ True, False]), array([12.5,  3. ]))
    """
    refuse_masked(y, "y")
    frame = containers.is_frame(y)
    y = y if frame else _column(_one_by_one(y), "y")
    labels = containers.labels_of(y)
    names = y.dtype.names if labels is None else tuple(labels)
    if names is None:
        return _all_observed(y, "the times of y", events, "y")
    if len(names) != 2:
        raise ValueError(
            "y must be 1-D with two fields, or a data frame with two columns, event and time, got "
            f"{list(map(str, names))}."
        )
    chosen = event_first(*names)
    event, time = (_column(y[name], "y") for name in chosen)
    if events is None:
        how = "the first of two" if chosen[0] == names[0] else "the second, by both names"
        hint = f"It was taken to be {chosen[0]!s}, {how}: name the columns event and time."
        events = partial(checked_events, hint=hint)
    found = events(event, f"the event {'column' if frame else 'field'} of y")
    return found, checked_times(time, "the times of y")


def _all_observed(
    times: Any, name: str, events: Any, event_name: str
) -> tuple[NDArray[Any], FloatArray]:
    """Return times that are all events, unless a reader of events refuses that."""
    if events is not None:
        events(None, event_name)
    time = checked_times(times, name)
    return np.ones(time.shape, dtype=bool), time


def paired(y: Any) -> Any:
    """Return two arrays in a tuple as a frame: events and times, unless names say otherwise."""
    # The classes are asked: no record is looked at yet.
    if not is_pair(y) or any(len(containers.shape_of(one) or ()) != 1 for one in y):
        return y
    for one in y:
        refuse_masked(one, "y")
    require_one_each(*(len(one) for one in y))
    names = [containers.name_of(one) for one in y]
    if None in names or names[0] == names[1]:
        names = ["event", "time"]
    named = dict(zip(names, y, strict=True))
    chosen = {name: containers.unlabelled(named[name]) for name in event_first(*names)}
    return pd.DataFrame({name: np.asarray(column) for name, column in chosen.items()})


def split_target(
    frame: Any, *, time: str, event: str, person: str | None = None
) -> tuple[Any, ...]:
    """Split a table of records into covariates and the survival target.

    Parameters
    ----------
    frame : data frame of pandas or Dask, or FrameChunks
        One row for each record. Private; nothing of it is computed.
    time, event : str
        Names of the columns with the time of event or censoring, and with the indicator of the
        event: booleans, or 0 and 1.
    person : str or None
        Name of the column with identifiers of persons, if a person may have several records.

    Returns
    -------
    X : data frame
        The other columns.
    y : data frame
        Event and time, in this order, as every ``fit`` of survival times takes them.
    person : series
        The parameter ``person`` of ``fit``; only returned if a column was named.

    Raises
    ------
    ValueError
        If a column is not there, two have its name, or one is named twice; or if a column of starts
        stands beside a time called stop: such rows are not provided for.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpsurv import split_target
    >>> frame = pd.DataFrame({"age": [61, 48], "days": [300.0, 41.5], "died": [False, True]})
    >>> X, y = split_target(frame, time="days", event="died")
    >>> X.columns.tolist(), y.columns.tolist()
    (['age'], ['died', 'days'])
    """
    if not containers.is_frame(frame):
        raise TypeError("frame must be a data frame of pandas or Dask, or FrameChunks.")
    named = {"time": time, "event": event} | ({} if person is None else {"person": person})
    for name, column in named.items():
        number = list(frame.columns).count(column)
        if number != 1:
            got = f"and {column!r} names {number}" if number else f"got {column!r}"
            raise ValueError(f"{name} must be the name of one column, {got}.")
    refuse_starts(time, frame.columns)
    columns = list(named.values())
    if len(set(columns)) < len(columns):
        raise ValueError(f"{' and '.join(named)} must be different columns.")
    if event_first(event, time) != (event, time):
        raise ValueError(
            f"event and time must not be named as each other, got {event!r} and {time!r}: rename "
            "the columns, for instance to event and time."
        )
    X, y = frame.drop(columns=columns), frame[[event, time]]
    if isinstance(y, pd.DataFrame):
        y = y.copy()  # so that pandas does not warn of changes to it
    return (X, y) if person is None else (X, y, frame[person])


def refuse_starts(time: Any, names: Iterable[Any]) -> None:
    """Refuse names of columns by which rows last from a start to a stop; no record is looked at."""
    starts = [str(name) for name in names if _words(name) & START_WORDS]
    if starts and _words(time) & STOP_WORDS:
        raise ValueError(
            f"{time!r} and {starts[0]!r} look like rows from a start to a stop, which are not "
            "provided for, nor are late entries: make one row of each person, with the time from "
            "a common start and the covariates known then. If they are something else, rename one."
        )


def _words(name: Any) -> set[str]:
    return set(re.findall("[a-z]+", str(name).lower()))


def event_first(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two names, that of events and that of times: in this order unless they say otherwise.

    Types do not decide: one record's NaN makes floats of a column of booleans, and the columns of
    all others would change places.
    """
    of_time, of_event = zip(*(_meaning(name) for name in (first, second)), strict=True)
    swapped = of_time == (True, False) or of_event == (False, True)
    return (second, first) if swapped else (first, second)


def _meaning(name: Any) -> tuple[bool, bool]:
    """Return whether a name means times, and whether events; time_to_event means neither."""
    words = _words(name)
    times, events = bool(words & TIME_WORDS), bool(words & EVENT_WORDS)
    return times and not events, events and not times


def checked_events(event: Any, name: str, hint: str = "") -> BoolArray:
    """Return event indicators as booleans: a view if they are booleans already.

    ``name`` and ``hint``, which follows where they are other numbers, are for messages.
    """
    if isinstance(event, list | tuple):
        event = [one if all_of(REAL | NESTED | MISSING, [one]) else "" for one in event]
    flags = _column(event, name)
    if flags.dtype.kind == "O" and all(isinstance(flag, bool | np.bool_) for flag in flags):
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
    times = _column(_one_by_one(time), name)
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


def fit_target(
    X: Any, y: Any, durations: Any = None, event_observed: Any = None, events: Any = None
) -> tuple[NDArray[Any], FloatArray]:
    """Return events and times from the arguments of a ``fit`` as in lifelines or scikit-learn.

    A one-dimensional X holds durations, and y then events; a two-dimensional one only matters by
    its length. Without events all are observed.
    """
    read, arguments = target_reader(X, y, durations, event_observed, events)
    n_targets(X, y, durations, event_observed)
    return read(*arguments)


def chosen_target(X: Any, y: Any, durations: Any, event_observed: Any) -> Arguments:
    """Return the arguments of a fit that hold its target: y, or durations and events."""
    if durations is None and not (X is None or is_two_dimensional(X) or containers.fields_of(y)):
        if y is not None and event_observed is not None:
            raise ValueError("event_observed must not be given twice, as y and by name.")
        return X, y if event_observed is None else event_observed
    if durations is not None:
        if X is not None or y is not None:
            raise ValueError("durations must be given instead of X and y, not beside them.")
        return durations, event_observed
    if event_observed is not None:
        raise ValueError("event_observed must be given with durations, not with y.")
    if y is None:
        raise ValueError(
            "y or durations must be given: this estimator requires y to be passed, but the target "
            "y is None."
        )
    # A frame of one column may hold the times, unless names say that y does.
    labels = containers.labels_of(X) if _is_table(X) else None
    if labels and len(labels) == 1 and not (containers.fields_of(y) or _is_table(y)):
        of_times = [_meaning(name)[0] for name in (labels[0], containers.name_of(y))]
        if of_times != [False, True]:
            raise ValueError(ONE_COLUMN)
    return (y,)


def n_targets(X: Any, y: Any, durations: Any, event_observed: Any) -> int:
    """Return the number of records in arguments of :func:`fit_target`, which is public."""
    number = call_or_none(length, chosen_target(X, y, durations, event_observed)[0])
    if number is None:
        raise ValueError("durations must be 1-D, as y must be: one entry per record.")
    if number == 0:
        raise ValueError("durations must hold at least one record: Found array with 0 sample(s).")
    return int(number)


def no_events(y: Any) -> list[str]:
    """Return a warning if y holds times alone, so that all of them count as events.

    Only its type is looked at; a source of records is taken to have events.
    """
    if y is None or containers.is_frame(y) or containers.fields_of(y):
        return []
    return [
        f"{TIMES_ALONE}: its numbers are times, and every one counts as an event, as if nobody "
        f"were censored. {SURV}, with event = numpy.ones(len(y), bool) where this is meant."
    ]


def target_reader(
    X: Any, y: Any, durations: Any, event_observed: Any, events: Any = None
) -> tuple[Reader, Arguments]:
    """Return a reader of the target of a fit, and its arguments, all or the same part of each.

    The choice is made once, for all records, and not again for some rows of X.
    """
    if isinstance(X, list | tuple) and len({isinstance(row, ROWS) for row in X}) > 1:
        # Else the first entry would decide what all others mean.
        raise ValueError(
            "durations must be a list of numbers, or X one of rows: not both in one list."
        )
    arguments = chosen_target(X, y, durations, event_observed)
    if len(arguments) == 2:
        return partial(_durations_and_events, events=events), arguments
    with suppress(TypeError):  # the reader refuses what has no length
        require_one_each(length(y), length(y if X is None else X))
    return partial(event_and_time, events=events), arguments


def _is_table(values: Any) -> bool:
    # A series of Dask or of chunks has columns, too.
    return containers.is_frame(values) and len(containers.shape_of(values) or (0, 0)) == 2


def event_and_time_of(
    y: Any, event_observed: Any = None, events: Any = None
) -> tuple[NDArray[Any], FloatArray]:
    """Return events and times of a target, or of durations beside events."""
    if event_observed is None:
        return event_and_time(y, events)
    return _durations_and_events(y, event_observed, events)


def _durations_and_events(
    durations: Any, event_observed: Any, events: Any
) -> tuple[NDArray[Any], FloatArray]:
    if event_observed is None:
        return _all_observed(durations, "durations", events, "event_observed")
    time = checked_times(durations, "durations")
    event = (events or checked_events)(event_observed, "event_observed")
    if event.size != time.size:
        raise ValueError(
            "durations and event_observed must have the same length: found input variables with "
            "inconsistent numbers of samples."
        )
    return event, time


def _one_by_one(times: Any) -> Any:
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


def survival_target(event: ArrayLike, time: ArrayLike) -> NDArray[Any]:
    """Return events and times as scikit-survival has them: a structured array of both."""
    y = np.empty(np.shape(time), dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = event, time
    return y


def single_column(X: Any) -> Any:
    """Return the column of a frame or array with a single one; anything else unchanged."""
    if (containers.shape_of(X) or ())[1:] != (1,) or isinstance(X, containers.SPARSE):
        return X
    return X.iloc[:, 0] if isinstance(X, containers.PANDAS) else X[:, 0]


def is_two_dimensional(X: Any) -> bool:
    """Return whether X has rows and columns; the first entry of a list decides."""
    shape = containers.shape_of(X)
    return len((call_or_none(size, X) or ()) if shape is None else shape) == 2


def _column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return values as a one-dimensional array."""
    refuse_masked(values, name)
    column: NDArray[Any] | None = call_or_none(np.asarray, containers.unlabelled(values))
    if column is None:
        raise ValueError(f"{name} must be an array with one entry for each record.")
    if column.ndim != 1:
        made = f"; {SURV}" if name == "y" else ""
        raise ValueError(f"{name} must be 1-D, one entry per record, got {column.ndim}-D{made}.")
    return column
