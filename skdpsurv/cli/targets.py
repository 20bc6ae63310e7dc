"""From the columns of a file to the arguments of ``fit``: times, events, classes, people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.cli.failures import CommandError
from skdpsurv.cli.options import SurvivalColumns
from skdpsurv.target import event_first

__all__ = [
    "check_survival_columns",
    "observed",
    "split_names",
    "survival_target",
    "target_labels",
    "target_names",
]


def split_names(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that options name: each by one of its own, or with commas."""
    found: list[str] = []
    for name in given:
        found += [name] if name in names or "," not in name else name.split(",")
    return [name.strip() if name not in names else name for name in found]


def check_survival_columns(columns: SurvivalColumns) -> None:
    """Refuse options that contradict each other.

    Raises
    ------
    CommandError
    """
    if (columns.event is None) != columns.all_events:
        raise CommandError(
            "parameter",
            "--event must name the column that says whether the event was seen, or --all-events "
            "say that nobody is censored.",
        )
    if bool(columns.event_is) != bool(columns.censored_is):
        raise CommandError("parameter", "--event-is and --censored-is must be given together.")
    if columns.event_is and columns.event is None:
        raise CommandError("parameter", "--event-is needs --event.")
    if both := set(columns.event_is) & set(columns.censored_is):
        raise CommandError(
            "parameter", f"--event-is and --censored-is must differ, and both hold {min(both)}."
        )


def target_names(columns: SurvivalColumns) -> list[str]:
    """Return the columns that say what became of whom.

    Raises
    ------
    CommandError
        If two of them are one, or their names say the opposite.
    """
    named = (columns.time, columns.event, columns.person)
    names = [name for name in named if name is not None]
    if len(set(names)) < len(names):
        raise CommandError("parameter", "--time, --event and --person must be different columns.")
    pair = columns.event, columns.time
    if columns.event is not None and event_first(*pair) != pair:
        raise CommandError(
            "parameter",
            f"--event and --time must not be named as each other, got {pair[0]} and {pair[1]}: "
            "rename the columns.",
        )
    return names


def target_labels(columns: SurvivalColumns) -> dict[str, tuple[str, ...]]:
    """Return which of these columns are read as text, and their labels."""
    found: dict[str, tuple[str, ...]] = {}
    if columns.event is not None and columns.event_is:
        found[columns.event] = (*columns.event_is, *columns.censored_is)
    if columns.person is not None:
        found[columns.person] = ()
    return found


def survival_target(frame: Any, columns: SurvivalColumns) -> Any:
    """Return event and time of each record, as ``fit`` takes them.

    Parameters
    ----------
    frame : data frame of pandas or Dask
    columns : SurvivalColumns

    Returns
    -------
    data frame
        Or the times alone, where all are events.
    """
    if columns.event is None:
        return frame[columns.time]
    if not columns.event_is:
        return frame[[columns.event, columns.time]]
    step = partial(_told, columns.event, columns.time, columns.event_is, columns.censored_is)
    if isinstance(frame, pd.DataFrame):
        return step(frame)
    meta = step(frame._meta)
    return frame.map_partitions(step, meta=meta)


def _told(
    event: str, time: str, seen: Sequence[str], censored: Sequence[str], frame: pd.DataFrame
) -> pd.DataFrame:
    return pd.DataFrame({event: observed(frame[event], seen, censored), time: frame[time]})


def observed(cells: pd.Series, seen: Sequence[str], censored: Sequence[str]) -> pd.Series:
    """Return 1 where the event was seen, 0 where it was not, NaN where neither is said.

    NaN is for the estimator to refuse: nothing is said of a cell here.
    """
    found = np.full(len(cells), np.nan)
    for labels, flag in ((seen, 1.0), (censored, 0.0)):
        for label in labels:
            found[_equal(cells, label)] = flag
    return pd.Series(found, index=cells.index, name=cells.name)


def _equal(cells: pd.Series, label: str) -> Any:
    if pd.api.types.is_bool_dtype(cells.dtype):
        return (cells.astype(str).str.lower() == label.lower()).to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(cells.dtype):
        try:
            return (cells == float(label)).fillna(False).to_numpy(dtype=bool)
        except ValueError:
            return np.zeros(len(cells), dtype=bool)
    return cells.map(lambda cell: isinstance(cell, str) and cell == label).to_numpy(dtype=bool)
