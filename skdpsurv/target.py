"""The survival target y: when a record was last seen, and whether in an event."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.privacy import refuse_masked

__all__ = ["checked_events", "checked_times", "event_and_time"]


def event_and_time(y: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Take a survival target apart.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Structured array with two fields under any names: the event indicator (boolean, or
        numbers 0 and 1) and the time. The boolean field is the event wherever it stands; if
        both or neither are boolean, the first is, as in scikit-survival. An array without
        fields holds times, all of them events.

    Returns
    -------
    event : ndarray of bool, shape (n_samples,)
        True where the event was observed, False where the time is censored.
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
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be 1-D, one entry per record, got {y.ndim}-D.")
    if y.dtype.names is None:
        event, time = np.ones(y.shape, dtype=bool), y
    else:
        if len(y.dtype.names) != 2:
            raise ValueError(
                "y must be a structured array with two fields, event and time, got fields "
                f"{y.dtype.names}."
            )
        first, second = y.dtype.names
        if y.dtype[second].kind == "b" and y.dtype[first].kind != "b":
            first, second = second, first
        event, time = y[first], y[second]
    if event.ndim != 1 or time.ndim != 1:
        raise ValueError("the fields of y must hold one number each.")
    events = checked_events(event, "the event field of y")
    return events, checked_times(time, "the times of y")


def checked_events(event: ArrayLike, name: str) -> NDArray[np.bool_]:
    """Return event indicators as booleans.

    Parameters
    ----------
    event : array-like of shape (n_samples,)
        Booleans, or numbers 0 and 1. Private.
    name : str
        What they are, for the message.

    Returns
    -------
    ndarray of bool, shape (n_samples,)
        A view if they are booleans already.

    Raises
    ------
    ValueError
        If they are anything else.
    """
    refuse_masked(event, name)
    flags = np.asarray(event)
    if flags.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one entry per record, got {flags.ndim}-D.")
    if flags.dtype.kind == "b":
        return flags
    if flags.dtype.kind not in "uif" or not np.isin(flags, (0, 1)).all():
        raise ValueError(f"{name} must be boolean, or 0 and 1.")
    return flags.astype(bool)


def checked_times(time: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return times as floats.

    Parameters
    ----------
    time : array-like of shape (n_samples,)
        Numbers, finite and not negative. Private.
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
    refuse_masked(time, name)
    times = np.asarray(time)
    if times.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one entry per record, got {times.ndim}-D.")
    if times.dtype.kind not in "uif":
        raise ValueError(f"Unknown label type: {name} must be numbers.")
    times = times.astype(np.float64, copy=False)
    if not np.isfinite(times).all() or (times < 0).any():
        raise ValueError(f"{name} must be finite and not negative.")
    return times
