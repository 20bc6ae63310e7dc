"""Reading the survival target."""

from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sksurv.util import Surv

from skdpsurv import DPKaplanMeierFitter, FrameChunks, PrivacyAccountant
from skdpsurv.data.histories import checked_events, checked_times
from skdpsurv.data.target import event_and_time, fit_target, paired, split_target

#: Names that say nothing, or both: the first is taken for the event.
UNSAID = [("first", "second"), ("days", "weeks"), ("died_within_years", "t")]


@pytest.mark.parametrize(
    ("event", "time"),
    [
        *[("event", "time"), ("death", "futime"), ("Status", "Survival_in_days"), ("cens", "time")],
        *[("δ", "months"), ("DEATH_EVENT", "time_to_event"), *UNSAID],
    ],
)
@pytest.mark.parametrize("kinds", ["?f", "f?", "ii"])
@pytest.mark.parametrize("made", [np.asarray, pd.DataFrame, "tuple"])
def test_names_say_which_is_the_event_and_types_nothing(event, time, kinds, made):
    frame = pd.DataFrame({event: [1, 1, 0], time: [0, 1, 1]})
    frame = frame.astype({event: kinds[0], time: kinds[1]})
    for columns in ([event, time], [time, event])[: 1 if (event, time) in UNSAID else 2]:
        y = frame[columns]
        if made == "tuple":
            y = paired(tuple(y[name] for name in columns))
        elif made is np.asarray:
            y = np.array(y.to_records(index=False))
        if kinds == "f?":
            with pytest.raises(ValueError, match="the times of y must be numbers"):
                event_and_time(y)
            continue
        found = event_and_time(y)
        assert [one.dtype for one in found] == [bool, np.float64]
        assert [one.tolist() for one in found] == [[True, True, False], [0.0, 1.0, 1.0]]


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
    assert all(np.shares_memory(part, y) for part in event_and_time(y))


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (np.zeros((2, 2)), None, "y must be 1-D, one entry per record, got 2-D"),
        ([(0, 0, 0)], "?,f8,f8", "with two fields"),
        ([(2, 7.5)], "i8,f8", "must be boolean, or 0 and 1"),
        ([("x", 7.5)], "U1,f8", "must be boolean, or 0 and 1"),
        ([(True, -7.5)], "?,f8", "finite and not negative"),
        ([7.5, np.nan], None, "the times of y must not contain missing values"),
        ([7.5, np.inf], None, "finite and not negative"),
        (["7.5"], None, "must be numbers"),
        (np.ma.array([1.0, 7.5], mask=[False, True]), None, "must not be a masked array"),
        (np.ma.array([1.0, 7.5]), None, "must not be a masked array"),
        (np.ma.array([(True, 7.5)], dtype="?,f8"), None, "must not be a masked array"),
        ([(True, (7.5, 1))], "?,2f8", "y must be 1-D"),
        ([(True, 7.5)], [("a", "?", (1,)), ("b", "f8")], "y must be 1-D"),
        ([((1, 0), 7.5)], "2?,f8", "y must be 1-D"),
    ],
)
def test_event_and_time_refuses_without_showing_values(values, kind, message):
    with pytest.raises(ValueError, match=message) as info:
        event_and_time(np.asanyarray(values, dtype=kind))
    assert "7.5" not in str(info.value)


@pytest.mark.parametrize("column", ["event", "time"])
@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, None, 1], dtype=object),
        pd.Series([1, 0, None], dtype="Int8"),
        pd.Series([True, None, True], dtype="boolean"),
        pd.Series([1.0, np.nan, 1.0]),
        pd.Series([1, 0, None], dtype="timedelta64[s]"),
        pd.Series([1.0, np.nan, 1.0], dtype=object),
    ],
    ids=lambda values: str(values.dtype),
)
def test_missing_events_and_times_are_called_missing(column, values):
    if (column, str(values.dtype)) in (("event", "timedelta64[s]"), ("time", "boolean")):
        return
    good = {"event": [True, False, True], "time": [1.0, 2.0, 3.0]}
    what = f"the {'event column' if column == 'event' else 'times'} of y must not contain missing"
    with pytest.raises(ValueError, match=what):
        event_and_time(pd.DataFrame({**good, column: values}))
    listed = {**good, column: values.tolist()}
    name = {"event": "event_observed", "time": "durations"}[column]
    with pytest.raises(ValueError, match=f"{name} must not contain missing"):
        fit_target(None, None, listed["time"], listed["event"])


def test_other_things_than_numbers_are_not_called_missing():
    for wrong in (["yes", "no"], [2, 1, 1], [object(), 1, 1]):
        with pytest.raises(ValueError, match="must be boolean"):
            checked_events(wrong, "event_observed")
    with pytest.raises(ValueError, match="must be numbers"):
        checked_times([1.0, "2", 3.0], "durations")


def test_a_span_of_time_in_a_list_is_one_record():
    """In an array of them, its unit would be that of the numbers of all others."""
    numbers = [5, 7, 8, 9, 10]
    mixed = [*numbers[:-1], np.timedelta64(36, "h")]
    np.testing.assert_array_equal(checked_times(mixed, "durations"), [5, 7, 8, 9, 1.5])
    np.testing.assert_array_equal(event_and_time(mixed)[1], [5, 7, 8, 9, 1.5])
    spans = [np.timedelta64(300 * 365, "D"), np.timedelta64(1, "ns")]  # in ns it overflows
    assert checked_times(spans, "durations")[0] == 300 * 365
    for wrong in (("NaT",), (1, "Y"), (1, "ps"), (1,)):
        with pytest.raises(ValueError, match="must be"):
            checked_times([*numbers, np.timedelta64(*wrong)], "durations")


@pytest.mark.parametrize("row", [[5.0], (5.0,), np.array([5.0])])
def test_the_first_record_does_not_say_what_those_of_all_others_are(row):
    times, events = [5.0, 3.0, 4.0, 2.0], [1, 0, 1, 0]
    assert fit_target(times, events).exit.tolist() == times
    for place in range(4):
        mixed = [*times[:place], row, *times[place + 1 :]]
        with pytest.raises(ValueError, match="durations must be a list of numbers, or X one of"):
            fit_target(mixed, events)


@pytest.mark.parametrize("kind", [float, int, "category", object, "datetime64[ns]"])
@pytest.mark.parametrize(
    ("column", "name", "taken"),
    [
        ("ward", "days", True),
        ("ward", None, False),
        ("days", None, False),
        ("days", "months", False),
        ("days", "died", False),
        ("ward", "outcome", False),
    ],
)
def test_names_say_whether_one_column_holds_times_and_types_nothing(kind, column, name, taken):
    X = pd.DataFrame({column: pd.Series([1, 0, 2]).astype(kind)})
    y = pd.Series([5.0, 6.0, 7.0], name=name)
    chunks = FrameChunks([X.assign(y=y)])
    for rows, target in (
        (X, y),
        *([(X, y.to_numpy()), (chunks[[column]], chunks["y"])] if name is None else []),
    ):
        fitter = DPKaplanMeierFitter(1.0, max_time=9.0, accountant=PrivacyAccountant(1.0))
        if taken:
            fitter.fit(rows, target)
            assert fit_target(rows, target).exit.tolist() == y.tolist()
            continue
        with pytest.raises(ValueError, match="not said which of them are times"):
            fitter.fit(rows, target)
        assert fitter.accountant.spent() == 0.0
    y = pd.DataFrame({"died": [0, 1, 1], "days": [5.0, 6.0, 7.0]})
    assert fit_target(X, y).exit.tolist() == [5.0, 6.0, 7.0]


@pytest.mark.parametrize("wrong", [True, np.True_, "5", None, Decimal(5), [5.0], 1j, pd.NA])
@pytest.mark.parametrize("among", [[], [5.0], [5], [True], [np.float32(5)], [10**30]])
def test_what_is_no_number_is_none_whatever_the_others_are(wrong, among):
    """One truth value beside numbers was a number, and truth values alone were none."""
    for times in ([wrong, *among], [*among, wrong], (wrong, *among)):
        for read in (event_and_time, partial(checked_times, name="durations")):
            with pytest.raises(ValueError, match=r"must be|must not contain missing"):
                read(times)


def test_numbers_of_a_list_are_read_one_by_one():
    times = [1, 2.5, np.float32(0.1), np.uint8(3), 4, 10**30, np.int64(2**53 + 1)]
    expected = [1.0, 2.5, float(np.float32(0.1)), 3.0, 4.0, 1e30, float(2**53 + 1)]
    assert checked_times(times, "durations").tolist() == expected
    y = np.array([(True, 2.0), (False, 3.0)], dtype=[("event", "?"), ("time", "f8")])
    assert event_and_time(list(y))[1].tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="must be numbers"):
        checked_times([10**400], "durations")


def test_a_target_is_of_one_column_each():
    cells = np.ones((3, 5))
    for labels, name in (("atebt", "time"), ("etabe", "event"), ("pteap", "person")):
        frame = pd.DataFrame(cells, columns=list(labels))
        with pytest.raises(
            ValueError, match=f"{name} must be the name of one column, and '.' name"
        ):
            split_target(frame, time="t", event="e", person="p" if "p" in labels else None)


@pytest.mark.parametrize(
    ("start", "stop"), [("start", "stop"), ("tstart", "tstop"), ("Entry", "Exit"), ("begin", "end")]
)
def test_rows_from_a_start_to_a_stop_are_refused_by_their_names(start, stop):
    frame = pd.DataFrame({"id": [1], start: [0.0], stop: [5.0], "status": [1], "age": [61]})
    for person in (None, "id"):
        with pytest.raises(ValueError, match=f"{stop}' and '{start}' look like rows from a start"):
            split_target(frame, time=stop, event="status", person=person)
    renamed = frame.rename(columns={start: "first"})
    assert split_target(renamed, time=stop, event="status")[1].columns.tolist() == ["status", stop]
    several = frame.rename(columns={stop: "days"})
    assert split_target(several, time="days", event="status")[1].columns.tolist()[1] == "days"
