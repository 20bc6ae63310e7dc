"""Bands of time, and the one cell that each record is in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.survival.curves import event_counts
from skdpsurv.survival.curves.event_counts import EventCounts, band_ends, check_size, n_bands_for

LARGEST = float(np.finfo(float).max)


def test_bands_end_where_they_are_said_to():
    np.testing.assert_allclose(band_ends(8.0, 4, "equal"), [2.0, 4.0, 6.0, 8.0])
    np.testing.assert_allclose(band_ends(8.0, 4, "early"), [0.5, 2.0, 4.5, 8.0])
    np.testing.assert_array_equal(band_ends(8.0, 0, [1.0, 3.0]), [1.0, 3.0, 8.0])
    for number in (1, 7, 64, 1000):
        for kind in ("equal", "early"):
            ends = band_ends(0.1, number, kind)
            assert ends[-1] == 0.1
            assert (np.diff(ends, prepend=0.0) > 0).all()
    assert [n_bands_for(n, 1.0, 1, 1) for n in (1, 200, 2000, 10**9)] == [4, 11, 36, 200]
    assert n_bands_for(2000, 1.0, 4, 1) < 36
    assert n_bands_for(10, np.inf, 1, 1) == 200


def test_times_are_in_the_first_band_that_does_not_end_before():
    ends = np.array([1.0, 3.0, 8.0])
    time = np.array([0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 8.0, 8.0, 9.0, LARGEST])
    event = np.array([True, False, True, True, True, False, True, False])
    clipped, band = event_counts.bands_of(Histories(time, event), ends)
    seen, stayed = clipped.event, clipped.cells(band, 3, 8.0) == 6
    assert band.tolist() == [0, 0, 0, 1, 2, 2, 2, 2]
    assert seen.tolist() == [True, False, True, True, True, False, False, False]
    assert stayed.tolist() == [False] * 5 + [True] * 3


def test_what_is_no_list_of_rising_times_is_refused():
    rows = ["late", [], [0.0, 1.0], [2.0, 1.0], [1.0, 1.0], [np.nan], ["a"], [[1.0]]]
    for breakpoints in (*rows, None, 3.0, {"a": 1}, {1.0}):
        with pytest.raises((TypeError, ValueError), match="breakpoints must be"):
            event_counts.check_breakpoints("breakpoints", breakpoints)


RECORD = st.tuples(
    st.integers(0, 2),
    st.one_of(
        st.floats(0.0, LARGEST),
        st.sampled_from([0.0, -0.0, 5e-324, 1.0, 2.5, 10.0, np.nextafter(10.0, 11.0), LARGEST]),
    ),
    st.integers(0, 2),
)


def counts(records, plan):
    cause, time, group = (np.array(part) for part in zip(*records, strict=True))
    return plan.exact_answer({}, InMemory([Histories(time.astype(float), cause, stratum=group)]))


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(records=st.lists(RECORD, min_size=1, max_size=6), other=RECORD, data=st.data())
def test_replacing_a_record_moves_two_cells_by_one(records, other, data):
    """The sensitivity that the proof is about, by brute force."""
    plan = EventCounts(price=1.0, ends=np.array([1.0, 2.5, 10.0]), n_causes=2, n_groups=3)
    place = data.draw(st.integers(0, len(records) - 1))
    neighbours = [*records[:place], other, *records[place + 1 :]]
    one, two = counts(records, plan), counts(neighbours, plan)
    assert one.shape == (3, 3 * 3 + 1)
    assert one.sum() == two.sum() == len(records)
    assert np.abs(one - two).sum() <= 2


def test_counts_are_those_of_each_cell():
    plan = EventCounts(price=1.0, ends=np.array([1.0, 10.0]), n_causes=2, n_groups=2)
    records = [(1, 0.5, 0), (2, 1.0, 0), (0, 3.0, 0), (2, 3.0, 1), (1, 11.0, 1), (0, 10.0, 1)]
    found = counts(records, plan)
    # First cause, second cause, censored, each in two bands; and who stays.
    assert found.tolist() == [[1, 0, 1, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0, 2]]


def test_tables_of_which_curves_take_hours_are_refused():
    """Two masses a band; a thousand of them, and twenty groups with so many, are the most."""
    stated = {"breakpoints": "equal", "max_time": 1.0, "n_intervals": 500}
    check_size(stated)
    check_size(stated | {"groups": list(range(20))})
    for more in ({"n_intervals": 501}, {"groups": list(range(21))}):
        with pytest.raises(ValueError, match="n_intervals must be smaller"):
            check_size(stated | more)
