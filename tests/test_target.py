"""Reading the survival target."""

from __future__ import annotations

import numpy as np
import pytest
from sksurv.util import Surv

from skdpsurv.target import event_and_time


@pytest.mark.parametrize(
    "dtype",
    [
        [("event", "?"), ("time", "f8")],
        [("time", "f8"), ("event", "?")],
        [("δ", "?"), ("months", "i4")],
        [("first", "i8"), ("second", "f4")],
        [("first", "f8"), ("second", "f8")],
    ],
)
def test_event_and_time_under_any_names(dtype):
    y = np.zeros(3, dtype=dtype)
    names = list(y.dtype.names)
    event_name = next((name for name in names if y.dtype[name].kind == "b"), names[0])
    names.remove(event_name)
    y[event_name] = [1, 0, 1]
    y[names[0]] = [5, 6, 0]
    event, time = event_and_time(y)
    assert event.dtype == bool
    assert time.dtype == np.float64
    np.testing.assert_array_equal(event, [True, False, True])
    np.testing.assert_array_equal(time, [5, 6, 0])


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
