"""The survival target y: when a record was last seen, and whether in an event."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.privacy import refuse_masked

__all__ = ["event_and_time"]


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
    if event.dtype.kind not in "buif" or not np.isin(event, (0, 1)).all():
        raise ValueError("the event field of y must be boolean, or 0 and 1.")
    if time.dtype.kind not in "uif":
        raise ValueError("Unknown label type: the times of y must be numbers.")
    time = time.astype(np.float64)
    if not np.isfinite(time).all() or (time < 0).any():
        raise ValueError("the times of y must be finite and not negative.")
    return event.astype(bool), time
