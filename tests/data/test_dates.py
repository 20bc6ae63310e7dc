"""Times from dates: each cell is read by itself, and what is none is refused by the fit alone."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DateColumns,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    FrameChunks,
    PrivacyAccountant,
    PublicColumns,
    split_target,
)

DATES = DateColumns(entry="came", exit="left")
LATE = DateColumns(entry="came", exit="left", origin="born", format="%d.%m.%Y", unit="years")


def table(came, left, born="01.03.1940", **more):
    n = len(left)
    columns = {"age": np.arange(n), "came": came, "left": left, "died": [0, 1] * n}
    columns = {name: list(cells)[:n] for name, cells in columns.items()}
    return pd.DataFrame({**columns, "born": [born] * n, **more})


def split(frame, dates=DATES, **more):
    return split_target(frame, event="died", dates=dates, **more)


@pytest.mark.parametrize(
    ("came", "left", "expected"),
    [
        ("2000-02-28", "2000-03-01", 2.0),  # a leap day is a day
        ("2001-02-28", "2001-03-01", 1.0),
        ("1900-02-28", "1900-03-01", 1.0),
        ("2001-01-01", "2001-01-01", 0.0),
        ("2001-01-01 12:00", "2001-01-02", 0.5),
        (date(2001, 1, 1), datetime(2001, 1, 3, 6), 2.25),
        (pd.Timestamp("2001-01-01"), np.datetime64("2001-02-01"), 31.0),
        ("2001-01-02", "2001-01-01", -1.0),  # which the fit refuses
        ("2001-02-29", "2001-03-01", np.nan),
        ("2001-01-01", None, np.nan),
        (pd.NaT, "2001-01-01", np.nan),
        ("2001-01-01", "2001-01-01T00:00+02:00", np.nan),
        ("2001-01-01", pd.Timestamp("2001-01-01", tz="UTC"), np.nan),
        ("2001-01-01", 20010102, np.nan),
        ("2001-01-01", [1, 2], np.nan),
        ("1.1.2001", "2001-01-02", np.nan),  # no format was stated
    ],
)
def test_a_cell_is_read_by_itself(came, left, expected):
    """Those beside it keep their times, whatever it is."""
    frame = table(["2001-01-01", came, "2003-05-01"], ["2001-01-11", left, "2003-06-01"])
    _, y = split(frame)
    np.testing.assert_array_equal(y["days"], [10.0, expected, 31.0])


def test_a_column_with_a_time_zone_has_no_dates():
    """Its day depends on the place, as in ``PublicColumns``."""
    came = pd.to_datetime(["2001-01-01", "2001-01-02"]).tz_localize("Europe/Berlin")
    assert split(table(came, ["2001-01-03"] * 2))[1]["days"].isna().all()


def test_an_origin_makes_the_entry_late():
    frame = table(["01.03.2000", "1.3.2004"], ["1.3.2004", "01.03.2001"])
    X, y, entry = split(frame, LATE)
    assert list(X) == ["age"]
    assert list(y) == ["died", "years"]
    np.testing.assert_allclose(entry, [60.0, 64.0], atol=1e-9)  # 1940 to 2000 has 15 leap days
    np.testing.assert_allclose(y["years"], [64.0, 61.0], atol=1e-3)
    months = split(frame, DateColumns(**{**vars(LATE), "unit": "months"}))[1]
    np.testing.assert_allclose(months["months"], 12 * y["years"], rtol=1e-14)


def test_dates_and_times_give_the_same_fit():
    rng = np.random.default_rng(0)
    entry, stay = rng.integers(0, 300, 200), rng.integers(1, 700, 200)
    born = pd.Timestamp("2001-01-01")
    frame = table(born + pd.to_timedelta(entry, "D"), born + pd.to_timedelta(entry + stay, "D"))
    frame["born"] = born
    late = DateColumns(entry="came", exit="left", origin="born")
    _, y, entered = split(frame, late)
    fits = [DPKaplanMeierFitter(epsilon=1.0, max_time=800, random_state=1) for _ in range(2)]
    fits[0].fit(y=y, entry=entered)
    fits[1].fit(entry + stay, frame["died"], entry=entry)
    assert fits[0].release_.values.keys() == fits[1].release_.values.keys()
    for name, values in fits[0].release_.values.items():
        np.testing.assert_array_equal(values, fits[1].release_.values[name])


@pytest.mark.parametrize("how", ["chunks", "dask"])
@pytest.mark.parametrize("dates", [DATES, LATE])
def test_lazy_rows_have_the_times_of_those_in_memory(how, dates):
    frame = table(["2001-01-01", None, "2001-02-01"], ["2001-01-11"] * 2 + ["2002-01-01"])
    if how == "dask":
        dd = pytest.importorskip("dask.dataframe")
        lazy = split(dd.from_pandas(frame, npartitions=2), dates)
        found = [one.compute() for one in lazy]
    else:
        lazy = split(FrameChunks([frame[:1], frame[1:]]), dates)
        found = [pd.concat(list(one)) for one in lazy]
    for one, other in zip(found, split(frame, dates), strict=True):
        got = one.to_frame() if one.ndim == 1 else one
        wanted = other.to_frame() if other.ndim == 1 else other
        pd.testing.assert_frame_equal(got, wanted, check_dtype=False)


@pytest.mark.parametrize("charge_refusals", [False, True])
@pytest.mark.parametrize(
    ("left", "says"),
    [
        (None, "must not contain missing values"),
        ("secret", "must not contain missing values"),
        ("1999-01-01", "must be finite and not negative"),
    ],
)
def test_refusals_are_those_of_times(left, says, charge_refusals):
    """Nothing is asked of cells before the fit, which charges its refusals if its ledger does."""
    accountant = PrivacyAccountant(epsilon=5.0, charge_refusals=charge_refusals)
    _, y = split(table(["2001-01-01"] * 2, ["2001-02-01", left]))
    model = DPKaplanMeierFitter(epsilon=1.0, max_time=99, accountant=accountant)
    with pytest.raises(ValueError, match=says) as caught:
        model.fit(y=y)
    assert "secret" not in str(caught.value)
    assert "1999" not in str(caught.value)
    assert accountant.spent() == 1.0 * charge_refusals


def test_an_entry_after_its_exit_is_no_refusal():
    frame = table(["2001-01-01", "2003-01-01"], ["2001-02-01", "2002-01-01"], born="2000-01-01")
    late = DateColumns(entry="came", exit="left", origin="born")
    _, y, entry = split(frame, late)
    assert entry[1] > y["days"][1]
    DPKaplanMeierFitter(epsilon=1.0, max_time=800, random_state=1).fit(y=y, entry=entry)


def test_later_rows_of_a_person_are_not_looked_at():
    frame = table(["2001-01-01"] * 3, ["2001-02-01", "secret", "2001-03-01"], id=[1, 1, 2])
    _, y, person = split(frame, person="id")
    DPKaplanMeierFitter(epsilon=1.0, max_time=99, random_state=1).fit(y=y, person=person)


def test_entries_of_dates_fit_a_regression():
    frame = table(["01.03.2000", "1.3.2004"] * 9, ["1.3.2002", "01.03.2007"] * 9)
    X, y, entry = split(frame, LATE)
    settings = {
        "columns": PublicColumns.of(age=(0, 20)),
        "recalibration_share": 0.0,
        "random_state": 1,
    }
    model = DPDiscreteTimeSurvival(epsilon=9.0, max_time=70.0, **settings)
    model.fit(X, y, entry=entry)
    assert model.guarantee_.public_inputs["late_entry"] is True


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"unit": "weeks"}, "unit"),
        ({"format": "%y%m%d"}, "format"),
        ({"exit": "came"}, "different columns"),
        ({"origin": 3}, "origin"),
        ({"entry": None}, "entry"),
    ],
)
def test_dates_have_rules(stated, says):
    with pytest.raises((TypeError, ValueError), match=says):
        DateColumns(**{"entry": "came", "exit": "left", **stated})


def test_split_refuses_by_names():
    frame = table(["2001-01-01"], ["2001-01-02"])
    with pytest.raises(ValueError, match="'gone'"):
        split(frame, DateColumns(entry="came", exit="gone"))
    with pytest.raises(ValueError, match="'days', which is there already"):
        split(frame.assign(days=1.0))
    with pytest.raises(ValueError, match="from a start to a stop"):
        split(
            frame.rename(columns={"left": "exit"}).assign(tstart=1.0),
            DateColumns(entry="came", exit="exit"),
        )
    for more in ({"time": "age"}, {"entry": "age"}):
        with pytest.raises(ValueError, match="dates in their place"):
            split(frame, **more)
    with pytest.raises(ValueError, match="dates in their place"):
        split_target(frame, event="died")
    with pytest.raises(TypeError, match="dates"):
        split(frame, dates={"entry": "came"})
