"""The survival target y: when a record was last seen, and whether in an event."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skdpsurv.preprocessing.raw_table import is_frame
from skdpsurv.privacy import refuse_masked
from skdpsurv.privacy.plain_cells import NUMBERS, REAL, all_of
from skdpsurv.privacy.silence import attempted
from skdpsurv.rows import length, require_one_each
from skdpsurv.shape import ROWS, size
from skdpsurv.types import BoolArray, FloatArray

__all__ = ["event_and_time", "split_target"]


#: Reads events and times of its arguments.
Reader = Callable[..., tuple[NDArray[Any], FloatArray]]
Arguments = tuple[Any, ...]

EVENTS_ALONE = "event_observed must be given with durations, not with y."
DURATIONS_ALONE = "durations must be given instead of X and y, not beside them."
SURV = "sksurv.util.Surv.from_arrays(event, time) makes a y of two arrays"
COMPARED = "Of labels, compare with the one that means an event, as in status == 'dead'."
#: Words in names of columns that say which of two holds events, and which times.
EVENT_WORDS = {
    *("event", "events", "status", "observed", "death", "deaths", "dead", "died", "deceased"),
    *("failure", "failed", "fail", "relapse", "relapsed", "recurrence", "cause", "arrest"),
}
TIME_WORDS = {
    *("time", "times", "timeline", "duration", "durations", "survival", "lifetime", "tenure"),
    *("day", "days", "week", "weeks", "month", "months", "year", "years", "futime", "followup"),
}
TAKEN = "It was taken to be"
TIMES_ALONE = "y has neither fields nor columns"
ONE_COLUMN = (
    "X has 1 feature(s) and y has no fields, so that it is not said which of them are times: give "
    f"durations and event_observed by name, or {SURV}."
)
NO_TARGET = (
    "y or durations must be given: this estimator requires y to be passed, but the target y is "
    "None."
)


def event_and_time(y: ArrayLike, events: Any = None) -> tuple[NDArray[Any], FloatArray]:
    """Take a survival target apart.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Structured array with two fields under any names: the event indicator (boolean, or
        numbers 0 and 1) and the time. The event is the first of them, as in scikit-survival,
        unless names say otherwise: a word such as days or time in that of the first alone, or
        such as event, status or died in that of the second alone. Types say nothing: that of a
        column may change with one record. A data frame of two such columns, likewise. An array
        without fields holds times, all of them events.
    events : callable or None
        Of a column and its name, for what is no indicator; None is :func:`checked_events`. It is
        called with None where there is no column, and refuses that unless all are events.

    Returns
    -------
    event : ndarray of bool, shape (n_samples,)
        True where the event was observed, False where the time is censored; or what ``events``
        returns.
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
    if is_frame(y):
        return _event_and_time_columns(y, events)
    y = _column(_one_by_one(y), "y")
    if y.dtype.names is None:
        if events is not None:
            events(None, "y")
        event, time, events = np.ones(y.shape, dtype=bool), y, None
    else:
        if len(y.dtype.names) != 2:
            raise ValueError(
                "y must be a structured array with two fields, event and time, got fields "
                f"{y.dtype.names}."
            )
        event, time = (y[name] for name in event_first(*y.dtype.names))
    if event.ndim != 1 or time.ndim != 1:
        raise ValueError("the fields of y must hold one number each.")
    found = (events or checked_events)(event, "the event field of y")
    return found, checked_times(time, "the times of y")


def paired(y: Any) -> Any:
    """Return two arrays in a tuple as a frame: events and times, unless their names say otherwise.

    Parameters
    ----------
    y : object
        Anything else is returned as it is.

    Returns
    -------
    object
    """
    # Asked of the class: nothing of the records is looked at yet.
    if not (issubclass(type(y), tuple) and len(y) == 2):
        return y
    if any(getattr(one, "ndim", 0) != 1 for one in y):
        return y
    require_one_each(*(len(one) for one in y))
    names = [getattr(one, "name", None) for one in y]
    if None in names or names[0] == names[1]:
        names = ["event", "time"]
    named = dict(zip(names, y, strict=True))
    return pd.DataFrame({name: np.asarray(named[name]) for name in event_first(*names)})


def split_target(
    frame: Any, *, time: str, event: str, person: str | None = None
) -> tuple[Any, ...]:
    """Take a table of records apart: what is known of people, and what became of them.

    Parameters
    ----------
    frame : data frame of pandas or Dask, or FrameChunks
        One row for each record. Private; nothing of it is computed.
    time, event : str
        Names of the columns with the time of event or censoring, and with the indicator of the
        event: booleans, or 0 and 1.
    person : str or None
        Name of the column that says whose each record is, where somebody may have several.

    Returns
    -------
    X : data frame
        The other columns.
    y : data frame
        Event and time, in this order, as every ``fit`` of survival times takes them.
    person : series
        As ``fit`` takes it by name; only if it is asked for.

    Raises
    ------
    ValueError
        If a column is not there, or two of them are one.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpsurv import split_target
    >>> frame = pd.DataFrame({"age": [61, 48], "days": [300.0, 41.5], "died": [False, True]})
    >>> X, y = split_target(frame, time="days", event="died")
    >>> X.columns.tolist(), y.columns.tolist()
    (['age'], ['died', 'days'])
    """
    named = {"time": time, "event": event}
    if person is not None:
        named["person"] = person
    for name, column in named.items():
        if column not in frame.columns:
            raise ValueError(f"{name} must be the name of a column, got {column!r}.")
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
        y = y.copy()  # which may be changed without a warning of pandas
    return (X, y) if person is None else (X, y, frame[person])


def _event_and_time_columns(y: Any, events: Any) -> tuple[NDArray[Any], FloatArray]:
    """Take a frame of two columns apart."""
    if len(y.columns) != 2:
        raise ValueError(
            "y must be 1-D, or a data frame with two columns, event and time, got columns "
            f"{[str(name) for name in y.columns]}."
        )
    names = event_first(*y.columns)
    event, time = (_column(y[name], "y") for name in names)
    if events is None:
        how = "the first of two" if names[0] == y.columns[0] else "the second, by both names"
        taken = f"{TAKEN} {names[0]!s}, {how}: name the columns event and time."
        events = partial(checked_events, hint=taken)
    found = events(event, "the event column of y")
    return found, checked_times(time, "the times of y")


def event_first(first: Any, second: Any) -> tuple[Any, Any]:
    """Return the names of events and of times: the first is the event unless names say otherwise.

    Names are public. Types are not asked: one record's NaN makes floats of a column of truth
    values, and the columns of all others would change places.
    """
    of_time, of_event = zip(*(_said(name) for name in (first, second)), strict=True)
    swapped = of_time == (True, False) or of_event == (False, True)
    return (second, first) if swapped else (first, second)


def _said(name: Any) -> tuple[bool, bool]:
    """Say whether a name is one of times, and whether one of events; time_to_event says neither."""
    words = set(re.findall("[a-z]+", str(name).lower()))
    times, events = bool(words & TIME_WORDS), bool(words & EVENT_WORDS)
    return times and not events, events and not times


def checked_events(event: ArrayLike, name: str, hint: str = "") -> BoolArray:
    """Return event indicators as booleans.

    Parameters
    ----------
    event : array-like of shape (n_samples,)
        Booleans, also those that are kept as objects, or numbers 0 and 1. Private.
    name : str
        What they are, for the message.
    hint : str
        What is said behind the rule where they are other numbers.

    Returns
    -------
    ndarray of bool, shape (n_samples,)
        A view if they are booleans already.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    if isinstance(event, list | tuple):
        event = [_flag(one) for one in event]
    flags = _column(event, name)
    if flags.dtype.kind == "b":
        return flags
    if flags.dtype.kind == "O" and all(isinstance(flag, bool | np.bool_) for flag in flags):
        return flags.astype(bool)
    if flags.dtype.kind not in "uif" or not np.isin(flags, (0, 1)).all():
        said = COMPARED if flags.dtype.kind in "OUST" else hint if flags.dtype.kind in "uif" else ""
        raise ValueError(f"{name} must be boolean, or 0 and 1. {said}".rstrip())
    return flags.astype(bool)


def checked_times(time: ArrayLike, name: str) -> FloatArray:
    """Return times as floats.

    Parameters
    ----------
    time : array-like of shape (n_samples,)
        Numbers, finite and not negative; time differences of NumPy or pandas count in days.
        Private.
    name : str
        What they are, for the message.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        A view if they are doubles already.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    times = _column(_one_by_one(time), name)
    if times.dtype.kind == "m" and _is_span(times):  # what is missing becomes NaN
        times = times / np.timedelta64(1, "D")
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


def fit_target(
    X: Any, y: Any, durations: Any = None, event_observed: Any = None
) -> tuple[BoolArray, FloatArray]:
    """Find events and times in the arguments of a ``fit`` that speaks lifelines and scikit-learn.

    Parameters
    ----------
    X : array-like of shape (n_samples,) or (n_samples, n_features), or None
        One-dimensional: durations. Two-dimensional: only its length matters.
    y : array-like of shape (n_samples,) or None
        A survival target as for :func:`event_and_time`; events, if X is one-dimensional and y has
        no fields.
    durations, event_observed : array-like of shape (n_samples,) or None
        The same by name. Without events all are observed.

    Returns
    -------
    event : ndarray of bool, shape (n_samples,)
    time : ndarray of float64, shape (n_samples,)

    Raises
    ------
    ValueError
        If arguments contradict each other, lengths differ, there is no record, or the values are
        not a target.
    """
    read, arguments = target_reader(X, y, durations, event_observed)
    event, time = read(*arguments)
    _refuse_nobody(time.size)
    return event, time


def n_targets(X: Any, y: Any, durations: Any, event_observed: Any) -> int:
    """Return how many records the arguments of :func:`fit_target` hold, which is public.

    Raises
    ------
    ValueError
        If there is no record, or nothing that could hold one, or two that could.
    """
    times = durations
    if times is None:
        refuse_one_column(X, y)
        times = y if X is None or is_two_dimensional(X) or _has_fields(y) else X
    if times is None:
        raise ValueError(NO_TARGET if event_observed is None else EVENTS_ALONE)
    try:
        number = length(times)
    except TypeError:
        number = None
    if number is None:
        raise ValueError("durations must be 1-D, as y must be: one entry per record.")
    _refuse_nobody(number)
    return number


def target_names(y: Any) -> tuple[str, ...]:
    """Return the names of fields or columns of a target, if it has any: they are public."""
    names = getattr(getattr(y, "dtype", None), "names", None) or getattr(y, "columns", None)
    if names is None:
        names = [getattr(y, "name", None)]
    return tuple(name for name in names if isinstance(name, str))


def _has_fields(y: Any) -> bool:
    return bool(getattr(getattr(y, "dtype", None), "names", None))


def no_events(y: Any) -> list[str]:
    """Return a question, where y holds times alone, so that all of them count as events.

    Parameters
    ----------
    y : object
        A target, of which only the type is asked; a source of records is taken to be one.

    Returns
    -------
    list of str
        For warnings; none where y has fields or columns.
    """
    if y is None or is_frame(y) or _has_fields(y):
        return []
    return [
        f"{TIMES_ALONE}: its numbers are times, and every one counts as an event, as if nobody "
        f"were censored. {SURV}, with event = numpy.ones(len(y), bool) where this is meant."
    ]


def _refuse_nobody(n_records: int) -> None:
    if n_records == 0:
        raise ValueError("durations must hold at least one record: Found array with 0 sample(s).")


def target_reader(
    X: Any, y: Any, durations: Any, event_observed: Any, events: Any = None
) -> tuple[Reader, Arguments]:
    """Return which arguments of :func:`fit_target` hold the target, and what reads them.

    Decided once, for all records: what X is must not be asked of some of its rows again.

    Parameters
    ----------
    X, y, durations, event_observed
        As for :func:`fit_target`.
    events : callable or None
        As for :func:`event_and_time`.

    Returns
    -------
    read : callable
        Returns events and times of what it is given: all of the arguments, or the same part of
        each.
    arguments : tuple

    Raises
    ------
    ValueError
        If arguments contradict each other, or lengths differ.
    """
    two_dimensional = is_two_dimensional(X)
    if isinstance(X, list | tuple) and len({isinstance(row, ROWS) for row in X}) > 1:
        # Else the first of them would say what those of all others mean.
        raise ValueError(
            "durations must be a list of numbers, or X one of rows: not both in one list."
        )
    if durations is not None:
        if X is not None or y is not None:
            raise ValueError(DURATIONS_ALONE)
    elif X is None or two_dimensional or _has_fields(y):
        if event_observed is not None:
            raise ValueError(EVENTS_ALONE)
        if y is None:
            raise ValueError(NO_TARGET)
        refuse_one_column(X, y)
        _refuse_other_length(X, y)
        return partial(event_and_time, events=events), (y,)
    else:
        if y is not None and event_observed is not None:
            raise ValueError("event_observed must not be given twice, as y and by name.")
        durations, event_observed = X, y if event_observed is None else event_observed
    return partial(_durations_and_events, events=events), (durations, event_observed)


def refuse_one_column(X: Any, y: Any) -> None:
    """Refuse a frame of one column beside a y without fields, unless names say which holds times.

    Raises
    ------
    ValueError
    """
    if y is None or _has_fields(y) or _is_table(y) or not _is_table(X) or len(X.columns) != 1:
        return
    of_times = [_said(name)[0] for name in (X.columns[0], getattr(y, "name", None))]
    if of_times != [False, True]:
        raise ValueError(ONE_COLUMN)


def _is_table(values: Any) -> bool:
    # Of Dask and of chunks, a series has columns, too.
    return is_frame(values) and getattr(values, "ndim", 2) == 2


def _refuse_other_length(X: Any, y: Any) -> None:
    try:
        sizes = length(y), length(y if X is None else X)
    except TypeError:
        return  # which is refused in words of its own
    require_one_each(*sizes)


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
    time = checked_times(durations, "durations")
    if event_observed is None:
        if events is not None:
            events(None, "event_observed")
        return np.ones(time.shape, dtype=bool), time
    event = (events or checked_events)(event_observed, "event_observed")
    if event.size != time.size:
        raise ValueError(
            "durations and event_observed must have the same length: found input variables with "
            "inconsistent numbers of samples."
        )
    return event, time


def _one_by_one(times: Any) -> Any:
    """Return a list in which each entry is read by itself; anything else as it is.

    In one array, one record's span makes spans, in its own unit, of the numbers of all others, and
    a number makes another of a truth value.
    """
    return [_time(t) for t in times] if isinstance(times, list | tuple) else times


def _time(time: Any) -> Any:
    """Return a number, of a span its days; None for what is neither; as it is, what has entries."""
    if type(time) is np.ndarray and time.ndim == 0:
        time = time[()]
    if type(time) in (*ROWS, np.void):
        return time
    try:
        if type(time) is np.timedelta64 and _is_span(time):
            return float(time / np.timedelta64(1, "D"))
        if all_of(NUMBERS, [time]):
            return float(time)
    except OverflowError:  # of picoseconds a day has too many
        pass
    return None


def _flag(event: Any) -> Any:
    """Return a truth value or a number as such; None for what is neither."""
    if type(event) is np.ndarray and event.ndim == 0:
        event = event[()]
    return event if all_of(REAL | set(ROWS), [event]) else None


def _is_span(times: Any) -> bool:
    """Say whether time differences have a length: months and years, or no unit, have none."""
    return np.datetime_data(times.dtype)[0] not in ("M", "Y", "generic")


def survival_target(event: ArrayLike, time: ArrayLike) -> NDArray[Any]:
    """Return events and times as scikit-survival has them: a structured array of both."""
    y = np.empty(np.shape(time), dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = event, time
    return y


def single_column(X: Any) -> Any:
    """Return the column of a frame or array that has one only; anything else as it is."""
    if getattr(X, "ndim", 0) != 2 or hasattr(X, "tocsr") or X.shape[1] != 1:
        return X
    return X.iloc[:, 0] if hasattr(X, "iloc") else X[:, 0]


def is_two_dimensional(X: Any) -> bool:
    """Say whether X has rows and columns; of a list, the first entry says it."""
    if hasattr(X, "tocsr"):
        return True
    try:
        return len(size(X)) == 2
    except (TypeError, ValueError):
        return False


def _column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return values as a one-dimensional array."""
    refuse_masked(values, name)
    column: NDArray[Any] | None = attempted(np.asarray, values)
    if column is None:
        raise ValueError(f"{name} must be an array with one entry for each record.")
    if column.ndim != 1:
        made = f"; {SURV}" if name == "y" else ""
        raise ValueError(f"{name} must be 1-D, one entry per record, got {column.ndim}-D{made}.")
    return column
