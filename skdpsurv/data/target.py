"""The survival target y: times, each with an indicator of event or censoring."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skdpsurv.data.dates import DateColumns
from skdpsurv.data.histories import (
    SURV,
    Columns,
    Histories,
    event_first,
    meaning,
    read_target,
    with_entry,
)
from skdpsurv.data.labels import label_indices
from skdpsurv.data.shape import is_pair, length, require_one_each, size
from skdpsurv.dp import containers
from skdpsurv.dp.checks import instance
from skdpsurv.dp.input_errors import ROWS, call_or_none, refuse_masked
from skdpsurv.dp.types import FloatArray

__all__ = ["event_and_time", "split_target"]

#: y, or durations and events: the others are None.
Target = tuple[Any, Any, Any]

TIMES_ALONE = "y has neither fields nor columns"
ONE_COLUMN = (
    "X has 1 feature(s) and y has no fields, so that it is not said which of them are times: give "
    f"durations and event_observed by name, or {SURV}."
)
NO_GROUP = (
    "group must be given to fit if groups are stated, and only then: the group of each record."
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
    found = read_target(y, causes=events)
    return found.cause, found.exit


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
    columns = {name: np.asarray(containers.unlabelled(named[name])) for name in event_first(*names)}
    if any(column.dtype.kind in "mM" for column in columns.values()):
        # pandas has spans of some units alone, and quotes what is beyond them.
        y = np.empty(len(named[names[0]]), [(str(name), c.dtype) for name, c in columns.items()])
        for name, column in columns.items():
            y[str(name)] = column
        return y
    return pd.DataFrame(columns)


def split_target(
    frame: Any,
    *,
    time: str | None = None,
    event: str,
    person: str | None = None,
    entry: str | None = None,
    dates: DateColumns | None = None,
) -> tuple[Any, ...]:
    """Split a table of records into covariates and the survival target.

    Parameters
    ----------
    frame : data frame of pandas or Dask, or FrameChunks
        One row for each record. Private; nothing of it is computed.
    time, event : str
        Names of the columns with the time of event or censoring, and with the indicator of the
        event: booleans, or 0 and 1. ``dates`` stand in place of ``time``.
    person : str or None
        Name of the column with identifiers of persons, if a person may have several records.
    entry : str or None
        Name of the column with the time from which each record was seen, if some entered late.
    dates : DateColumns or None
        Columns of dates of which times follow, in place of ``time`` and ``entry``.

    Returns
    -------
    X : data frame
        The other columns.
    y : data frame
        Event and time, in this order, as every ``fit`` of survival times takes them.
    person : series
        The parameter ``person`` of ``fit``; only returned if a column was named.
    entry : series
        The parameter ``entry`` of ``fit``, of the estimators that have it; likewise, and last.

    Raises
    ------
    ValueError
        If a column is not there, two have its name, or one is named twice; or if a column of starts
        stands beside a time called stop and is not named as ``entry``.

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
    if (time is None) == (dates is None) or (dates is not None and entry is not None):
        raise ValueError("time must be given, and entry if it is late, or dates in their place.")
    if dates is not None:
        instance(DateColumns)("dates", dates)
        frame, time, entry = dates.replaced(frame), dates.unit, dates.times.get("entry")
    named = Columns(time, event, person, entry=entry)
    named.check(frame.columns)
    X, y = frame.drop(columns=list(named.stated.values())), frame[[event, time]]
    if isinstance(y, pd.DataFrame):
        y = y.copy()  # so that pandas does not warn of changes to it
    return X, y, *(frame[name] for name in (person, entry) if name is not None)


def fit_target(
    X: Any,
    y: Any,
    durations: Any = None,
    event_observed: Any = None,
    causes: Any = None,
    entry: Any = None,
) -> Histories:
    """Read histories from the arguments of a ``fit`` as in lifelines or scikit-learn.

    A one-dimensional X holds durations, and y then events; a two-dimensional one only matters by
    its length. Without events all are observed, and without entries all are seen from 0.
    """
    target = target_arguments(X, y, durations, event_observed)
    n_targets(X, y, durations, event_observed)
    found = read_target(*target, causes)
    return with_entry(found, entry)


def chosen_target(X: Any, y: Any, durations: Any, event_observed: Any) -> Target:
    """Return the arguments of a fit that hold its target: y, or durations and events."""
    if durations is None and not (X is None or is_two_dimensional(X) or containers.fields_of(y)):
        if y is not None and event_observed is not None:
            raise ValueError("event_observed must not be given twice, as y and by name.")
        return None, X, y if event_observed is None else event_observed
    if durations is not None:
        if X is not None or y is not None:
            raise ValueError("durations must be given instead of X and y, not beside them.")
        return None, durations, event_observed
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
        of_times = [meaning(name)[0] for name in (labels[0], containers.name_of(y))]
        if of_times != [False, True]:
            raise ValueError(ONE_COLUMN)
    return y, None, None


def n_targets(X: Any, y: Any, durations: Any, event_observed: Any) -> int:
    """Return the number of records in arguments of :func:`fit_target`, which is public."""
    y, durations, _ = chosen_target(X, y, durations, event_observed)
    number = call_or_none(length, durations if y is None else y)
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


def target_arguments(X: Any, y: Any, durations: Any = None, event_observed: Any = None) -> Target:
    """Return the arguments of a fit that hold its target, after comparing them with the others.

    The choice is made once, for all records, and not again for some rows of X.
    """
    if isinstance(X, list | tuple) and len({issubclass(type(row), ROWS) for row in X}) > 1:
        # Else the first entry would decide what all others mean.
        raise ValueError(
            "durations must be a list of numbers, or X one of rows: not both in one list."
        )
    target = chosen_target(X, y, durations, event_observed)
    if target[0] is not None:
        with suppress(TypeError):  # the reader refuses what has no length
            require_one_each(length(y), length(y if X is None else X))
    return target


def read_block(causes: Any, groups: NDArray[Any] | None, block: tuple[Any, ...]) -> Histories:
    """Read a block: X, which holds durations if y is None, y, events, groups and entries."""
    X, y, event, group, entry = (*block, None, None, None, None)[:5]
    found = with_entry(read_target(y, X if y is None else None, event, causes), entry)
    if (group is None) != (groups is None):
        raise ValueError(NO_GROUP)
    if groups is None:
        return found
    stratum = label_indices(group, "group", groups, "groups")
    if stratum.size != found.size:
        raise ValueError("group must have one entry for each record.")
    return replace(found, stratum=stratum)


def _is_table(values: Any) -> bool:
    # A series of Dask or of chunks has columns, too.
    return containers.is_frame(values) and len(containers.shape_of(values) or (0, 0)) == 2


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
