"""Survival data from a CSV file that the user keeps."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skdpsurv.target import survival_target


def load_survival_csv(
    path: str | os.PathLike[str], *, time: str = "time", event: str = "event"
) -> tuple[pd.DataFrame, NDArray[Any]]:
    r"""Read covariates and outcome from a CSV file, plain or compressed.

    Parameters
    ----------
    path : str or path-like
        File with a header line; ``.gz`` and the other endings known to :func:`pandas.read_csv`
        are decompressed.
    time : str, default="time"
        Name of the column with the time of the event or of censoring.
    event : str, default="event"
        Name of the column with the event indicator: 1 or true where the event was observed, 0 or
        false where the time is censored.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        All other columns, in the order of the file, missing values kept.
    y : structured array of shape (n_samples,)
        Fields ``event`` (bool) and ``time`` (float).

    Raises
    ------
    ValueError
        If a column is missing from the file, an event is not 0 or 1, or a time is missing,
        infinite or negative. No record is ever dropped: with records dropped for what they hold,
        their number would no longer be public.

    Examples
    --------
    >>> import io
    >>> X, y = load_survival_csv(io.StringIO("time,event,age\n12,1,70\n30,0,55\n"))
    >>> y["time"]
    array([12., 30.])
    >>> list(X)
    ['age']
    """
    frame = pd.read_csv(path)
    for name, column in (("time", time), ("event", event)):
        if column not in frame.columns:
            raise ValueError(f"{name} must name a column of the file, got {column!r}.")
    times = pd.to_numeric(frame[time], errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(times).all() or (times < 0).any():
        raise ValueError(f"column {time!r} must hold finite times that are not negative.")
    events = frame[event]
    if not events.isin([0, 1]).all():
        raise ValueError(f"column {event!r} must hold 0 (censored) and 1 (event) only.")
    return frame.drop(columns=[time, event]), survival_target(events.to_numpy(dtype=bool), times)
