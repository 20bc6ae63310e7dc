"""Dates of entry, exit and origin in a file, on the command line."""

import numpy as np
import pandas as pd
import pytest

from tests.cli.study import Study

SEED = ("--seed", "3")
DATES = ("--entry-date", "came", "--exit-date", "left", "--event", "died")
FORM = ("--date-format", "%d.%m.%Y")
ORIGIN = ("--origin-date", "born")
UNIT = ("--max-time", "3650", "--epsilon", "1")


@pytest.fixture
def study(tmp_path):
    """Records with whole days, as times in study.csv and as dates in dates.csv."""
    study = Study(tmp_path)
    frame = study.frame
    frame["days"] = frame["days"].round()
    seen = np.minimum(frame["days"], np.arange(len(frame)) % 400)
    first = pd.Timestamp("2000-02-01")
    came, left = (first + pd.to_timedelta(days, "D") for days in (seen, frame["days"]))
    dated = frame.drop(columns="days").assign(born="01.02.2000")
    dated["came"], dated["left"] = came.dt.strftime("%d.%m.%Y"), left.dt.strftime("%Y-%m-%d")
    study.dated = dated
    study.write(dated, "dates.csv")
    study.write(frame.assign(seen=seen), "late.csv")
    study.write(frame.assign(days=frame["days"] - seen), "stay.csv")
    return study


def regression(study, *more, data="@dates.csv", **expected):
    given = ("fit", "survival", data, *UNIT, "--schema", "@columns.toml", "--drop", "id")
    return study.run(*given, *SEED, *more, **expected)


@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_dates_give_the_releases_of_times(study, more):
    times = ("--time", "days", "--event", "died")
    own = ("--drop", "born", "--out")
    regression(study, *DATES, *FORM, *more, *own, "@dates.json", code=0)
    regression(study, *times, *more, "--out", "@stay.json", data="@stay.csv", code=0)
    whole = ("--set", "recalibration_share=0", "--out")
    regression(study, *DATES, *FORM, *ORIGIN, *more, *whole, "@origin.json", code=0)
    late = ("--entry", "seen", *times, *more)
    regression(study, *late, *whole, "@late.json", data="@late.csv", code=0)
    for one, other in (("dates", "stay"), ("origin", "late")):
        found, wanted = study.release(one).values, study.release(other).values
        assert found.keys() == wanted.keys()
        for name in found:
            np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["km", "weibull", "competing"])
def test_every_fit_of_times_takes_dates(study, kind):
    labels = ("--causes", "1") if kind == "competing" else ()
    for data, outcome in (("stay", ("--time", "days", "--event", "died")), ("dates", DATES + FORM)):
        given = ("fit", kind, f"@{data}.csv", *outcome, *UNIT, *labels, *SEED)
        study.run(*given, "--out", f"@{data}.json", code=0)
    one, other = (study.release(name).values for name in ("stay", "dates"))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    late = ("fit", kind, "@dates.csv", *DATES, *FORM, *ORIGIN, *UNIT, *labels, *SEED)
    says = "" if kind != "weibull" else "--origin-date makes a late entry"
    study.run(*late, "--out", "@late.json", code=2 * (kind == "weibull"), says=says)


def test_years_have_a_horizon_in_years(study):
    given = ("fit", "km", "@dates.csv", *DATES, *FORM, "--date-unit", "years", "--max-time", "10")
    study.run(*given, "--epsilon", "1", "--out", "@years.json", code=0)
    assert study.release("years").parameters["max_time"] == 10.0


@pytest.mark.slow
def test_an_evaluation_takes_dates(study):
    own = ("--drop", "born", "--out", "@model.json")
    regression(study, *DATES, *FORM, *own, code=0)
    given = ("evaluate", "@model.json", "@dates.csv", *DATES, *FORM, "--epsilon", "1")
    drop = ("--drop", "id")
    study.run(*given, *drop, "--drop", "born", *SEED, "--out", "@e.json", code=0)
    study.run(*given, *drop, *ORIGIN, *SEED, "--out", "@x.json", code=0)


def test_a_schema_leaves_dates_out(study):
    given = ("schema", "@dates.csv", *DATES, *ORIGIN, "--out", "@made.toml")
    study.run(*given, code=0)
    made = (study.folder / "made.toml").read_text()
    assert "diagnosed" in made
    assert not any(name in made for name in ("came", "left", "born"))


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("", "missing values"),
        ("31.02.2001", "missing values"),
        ("02/03/2001", "missing values"),
        ("2001-01-01T00:00+01:00", "missing values"),
        ("01.01.1970", "not negative"),
    ],
)
def test_a_cell_is_refused_as_a_time_is(study, cell, says):
    study.dated.loc[4, "left"] = cell
    study.write(study.dated, "wrong.csv")
    given = ("fit", "km", "@wrong.csv", *DATES, *FORM, *UNIT, "--out", "@x.json")
    ledger = ("--ledger", "@study.sqlite", "--budget", "2")
    result = study.run(*given, *ledger, code=3, says=says)
    assert not cell or cell not in result.stderr
    assert study.spent() == 0.0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--entry-date", "came", "--event", "died"), "go together"),
        (("--origin-date", "born", "--event", "died"), "needs both"),
        ((*DATES, "--time", "age"), "either --time"),
        ((*DATES, "--entry", "age"), "either --time"),
        ((*DATES, "--date-format", "%d"), "format of %d, %m and %Y"),
        ((*DATES, "--date-unit", "weeks"), "unit must be"),
        ((*DATES, "--origin-date", "came"), "different columns"),
        (("--time", "age", "--event", "died", *FORM), "are for --entry-date"),
        (("--event", "died"), "--entry-date and --exit-date"),
    ],
)
def test_options_that_contradict_each_other(study, given, says):
    study.run("fit", "km", "@dates.csv", *given, *UNIT, "--out", "@x.json", code=2, says=says)


def test_names_are_refused_before_rows_are_read(study):
    schema = (study.folder / "columns.toml").read_text()
    (study.folder / "columns.toml").write_text(schema + "days = [0, 9]\n")
    study.write(study.dated.assign(days=1.0), "both.csv")
    own = ("--out", "@x.json", "--drop", "born")
    says = "which is there already"
    regression(study, *DATES, *FORM, *own, data="@both.csv", code=3, says=says)
    (study.folder / "columns.toml").write_text(
        schema + 'came = { dates = ["2000-01-01", "2001-01-01"] }\n'
    )
    regression(study, *DATES, *FORM, *own, code=4, says="must not describe came")
    logistic = ("--target", "stage", "--classes", "I,II,III", "--schema", "@columns.toml")
    given = ("fit", "logistic", "@dates.csv", *DATES[:4], *logistic, "--epsilon", "1", *own)
    study.run(*given, code=2, says="--entry-date is not for logistic")
