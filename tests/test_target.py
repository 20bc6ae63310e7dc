"""Reading the survival target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sksurv.util import Surv

from skdpsurv.target import checked_times, event_and_time, fit_target, paired, split_target


@pytest.mark.parametrize(
    ("names", "event"),
    [
        (("event", "time"), 0),
        (("time", "event"), 1),
        (("futime", "death"), 1),
        (("Survival_in_days", "Status"), 1),
        (("cens", "time"), 0),
        (("months", "δ"), 1),
        (("δ", "months"), 0),
        (("first", "second"), 0),
        (("time_to_event", "DEATH_EVENT"), 1),
        (("died_within_years", "t"), 0),
        (("days", "weeks"), 0),
    ],
)
@pytest.mark.parametrize("kinds", ["?f", "f?", "ii", "ff"])
@pytest.mark.parametrize("made", [np.asarray, pd.DataFrame, "tuple"])
def test_names_say_which_is_the_event_and_types_nothing(names, event, kinds, made):
    columns = [np.array([0, 1, 1], dtype=kind) for kind in kinds]
    columns[event] = columns[event][::-1]
    if made == "tuple":
        y = paired(tuple(pd.Series(c, name=n) for n, c in zip(names, columns, strict=True)))
    else:
        y = np.zeros(3, dtype=[(n, c.dtype) for n, c in zip(names, columns, strict=True)])
        for name, column in zip(names, columns, strict=True):
            y[name] = column
        y = made(y)
    if columns[1 - event].dtype == bool:
        with pytest.raises(ValueError, match="the times of y must be numbers"):
            event_and_time(y)
        return
    found, time = event_and_time(y)
    assert found.dtype == bool
    assert time.dtype == np.float64
    assert found.tolist() == [True, True, False]
    assert time.tolist() == [0.0, 1.0, 1.0]


def test_arrays_without_names_are_events_and_times():
    event, time = event_and_time(paired((np.array([1, 0]), np.array([5.0, 6.0]))))
    assert (event.tolist(), time.tolist()) == ([True, False], [5.0, 6.0])
    with pytest.raises(ValueError, match=r"It was taken to be event, the first of two: name"):
        event_and_time(paired((np.array([5.0, 6.0]), np.array([True, False]))))


def test_split_refuses_names_that_say_the_opposite():
    frame = pd.DataFrame({"days": [1, 0], "died": [5.0, 6.0], "x": [0, 0]})
    with pytest.raises(ValueError, match="rename the columns"):
        split_target(frame, time="died", event="days")


def test_event_and_time_does_not_copy_what_has_the_right_type():
    y = Surv.from_arrays([True, False], [1.0, 2.0])
    event, time = event_and_time(y)
    assert np.shares_memory(event, y)
    assert np.shares_memory(time, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((2, 2)), "y must be 1-D, one entry per record, got 2-D"),
        (np.zeros(2, dtype=[("a", "?"), ("b", "f8"), ("c", "f8")]), "with two fields"),
        (np.array([(2, 7.5)], dtype=[("a", "i8"), ("b", "f8")]), "must be boolean, or 0 and 1"),
        (np.array([("x", 7.5)], dtype=[("a", "U1"), ("b", "f8")]), "must be boolean, or 0 and 1"),
        (np.array([(True, -7.5)], dtype=[("a", "?"), ("b", "f8")]), "finite and not negative"),
        (np.array([7.5, np.nan]), "finite and not negative"),
        (np.array([7.5, np.inf]), "finite and not negative"),
        (np.array(["7.5"]), "must be numbers"),
        (np.ma.array([1.0, 7.5], mask=[False, True]), "must not be a masked array"),
        (np.ma.array([1.0, 7.5]), "must not be a masked array"),
        (np.ma.array([(True, 7.5)], dtype=[("a", "?"), ("b", "f8")]), "must not be a masked array"),
        (np.array([(True, (7.5, 1))], dtype=[("a", "?"), ("b", "f8", 2)]), "hold one number each"),
        (np.array([(True, 7.5)], dtype=[("a", "?", (1,)), ("b", "f8")]), "hold one number each"),
        (np.array([((1, 0), 7.5)], dtype=[("a", "?", 2), ("b", "f8")]), "hold one number each"),
    ],
)
def test_event_and_time_refuses_without_showing_values(y, message):
    with pytest.raises(ValueError, match=message) as info:
        event_and_time(y)
    assert "7.5" not in str(info.value)


def test_a_span_of_time_in_a_list_is_one_record():
    """In an array of them, its unit would be that of the numbers of all others."""
    numbers = [5, 7, 8, 9, 10]
    mixed = [*numbers[:-1], np.timedelta64(36, "h")]
    np.testing.assert_array_equal(checked_times(mixed, "durations"), [5, 7, 8, 9, 1.5])
    np.testing.assert_array_equal(event_and_time(mixed)[1], [5, 7, 8, 9, 1.5])
    spans = [np.timedelta64(300 * 365, "D"), np.timedelta64(1, "ns")]  # in ns it overflows
    assert checked_times(spans, "durations")[0] == 300 * 365
    for wrong in (
        np.timedelta64("NaT"),
        np.timedelta64(1, "Y"),
        np.timedelta64(1, "ps"),
        np.timedelta64(1),
    ):
        with pytest.raises(ValueError, match="must be"):
            checked_times([*numbers, wrong], "durations")


@pytest.mark.parametrize("row", [[5.0], (5.0,), np.array([5.0])])
def test_the_first_record_does_not_say_what_those_of_all_others_are(row):
    times, events = [5.0, 3.0, 4.0, 2.0], [1, 0, 1, 0]
    assert fit_target(times, events)[1].tolist() == times
    for place in range(4):
        mixed = [*times[:place], row, *times[place + 1 :]]
        with pytest.raises(
            ValueError, match="durations must be a list of numbers, or X one of rows"
        ):
            fit_target(mixed, events)
