"""Protocols with late entries, and with dates of which times follow."""

import json

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DateColumns, PrivacyAccountant
from skdpsurv.study import Analysis, Protocol, Scenario, Study
from skdpsurv.study.people import People, raw_columns
from tests.cli.study import Study as Folder
from tests.study.studies import protocol, records

#: Hash of a protocol without entries or dates, as it was before protocols could have them.
BEFORE = "bf0fb9184fc4de1fa89f0c21c7670018ccd15f2c3431bba823a94d2841ea2c37"
DATES = DateColumns(entry="came", exit="left", origin="born", unit="days")
WHOLE = {"recalibration_share": 0.0}
LATE = (
    Analysis("table", "table"),
    Analysis("curves", "curves", 1.0, {"by": "stage"}),
    Analysis("regression", "regression", 2.0, WHOLE),
)
TOML = """
title = "Stage and survival"
dataset = "registry"
owner = "A. Curie"
purpose = "protocol 7"
schema = "small.toml"

[outcome]
event = "died"
person = "id"
entry_date = "came"
exit_date = "left"
origin_date = "born"
date_format = "%d.%m.%Y"
unit = "months"
max_time = 40

[budget]
epsilon = 6
ledger = "{ledger}"

[[analyses]]
kind = "table"

[[analyses]]
kind = "curves"
by = "stage"

[[analyses]]
kind = "regression"
recalibration_share = 0
"""
SCHEMA = (
    '[columns]\nage = { bounds = [30, 95], missing = "midpoint" }\nstage = ["I", "II", "III"]\n'
)


def dated(n_people=120):
    """Return records with entries, as times and as dates."""
    frame = records(n_people)
    frame["days"] = frame["days"].round()
    frame["seen"] = np.minimum(frame["days"], np.arange(len(frame)) % 90)
    first = pd.Timestamp("1999-12-31")
    dates = {"came": first + pd.to_timedelta(frame["seen"], "D")}
    return frame.assign(born=first, left=first + pd.to_timedelta(frame["days"], "D"), **dates)


def late(**changes):
    stated = {"analyses": LATE, "evaluation_share": 0.0}
    return protocol(**{**stated, **changes})


def of_dates(**changes):
    return late(**{"time": None, "dates": DATES, **changes})


def test_the_hash_of_protocols_without_them_is_what_it_was():
    assert protocol().sha256 == BEFORE
    assert late().sha256 != late(entry="seen").sha256 != of_dates().sha256


@pytest.mark.parametrize("own", [late(entry="seen"), of_dates()])
def test_the_text_makes_the_protocol_again(own):
    again = Protocol.from_text(own.text)
    assert again.text == own.text
    assert (again.time, again.entry, again.unit) == (own.time, own.entry, own.unit)
    assert again.dates == own.dates


def test_dates_are_the_times_that_follow():
    frame = dated()
    times, dates = late(entry="seen"), of_dates()
    people = [People.of(one, raw_columns(one, frame)) for one in (times, dates)]
    for one in LATE:
        given = [one.arguments(p, who.frame) for p, who in zip((times, dates), people, strict=True)]
        assert given[0].keys() == given[1].keys()
        assert ("entry" in given[0]) == (one.kind != "table")
        for name in given[0]:
            one_way, other = (pd.DataFrame(some[name]).to_numpy() for some in given)
            pd.testing.assert_frame_equal(pd.DataFrame(one_way), pd.DataFrame(other))


def test_a_study_has_late_entries(tmp_path):
    PrivacyAccountant(6.0, path=tmp_path / "l.sqlite")
    own = of_dates(ledger=tmp_path / "l.sqlite")
    report = Study(own).run(dated(), tmp_path / "out")
    assert report.found["regression"].guarantee.public_inputs["late_entry"] is True
    assert "entries" in report.found["curves"].values
    assert "days from born to left" in report.html
    assert "Seen from" in report.html
    assert "days from born to left" in own_page(own)


def own_page(own):
    return Study(own).plan(120).page()


@pytest.mark.slow
def test_late_entries_are_forecast():
    """By people who enter evenly, unless the scenario says otherwise; curves from 0 are not."""
    plan = Study(late(entry="seen")).plan(120)
    found = plan.forecast(Scenario(n_repeats=2))
    assert {*found.reset_index()["analysis"]} == {"table", "regression"}
    early = plan.forecast(Scenario(n_repeats=2, entry=[50.0, 1.0, 1.0, 1.0]))
    assert not early.equals(found)


def test_what_knows_of_no_entries_is_refused_by_name():
    analyses = (*LATE, Analysis("weibull", "weibull"))
    with pytest.raises(ValueError, match=r"'weibull': entry must not be .* DPWeibullFitter knows"):
        late(entry="seen", analyses=analyses)
    # Dates without an origin make no late entry.
    since_entry = DateColumns(entry="came", exit="left")
    protocol(time=None, dates=since_entry, analyses=analyses, evaluation_share=0.0)


@pytest.mark.slow
def test_an_evaluation_has_the_entries_of_those_held_out(tmp_path):
    PrivacyAccountant(6.0, path=tmp_path / "l.sqlite")
    evaluation = Analysis("evaluation", "evaluation", options={"of": "regression"})
    own = of_dates(ledger=tmp_path / "l.sqlite", analyses=(*LATE, evaluation), evaluation_share=0.3)
    found = Study(own).run(dated(), tmp_path / "out").found["evaluation"]
    assert found.guarantee.public_inputs["late_entry"] is True
    assert np.shape(found.released["entry_offsets"]) == (3,)
    assert all(group.since_entry is not None for group in found.groups)


@pytest.mark.slow
def test_intervals_of_people_who_enter_late_are_planned_and_forecast():
    analyses = (Analysis("regression", "regression", 1.0, {"intervals": 0.3}),)
    plan = Study(late(entry="seen", analyses=analyses)).plan(120)
    found = plan.forecast(Scenario(n_repeats=1))
    assert "regression" in {*found.reset_index()["analysis"]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"time": "days2", "dates": DATES}, "time must not be given beside dates"),
        ({"time": None, "dates": DATES, "unit": "years"}, "unit must not be given beside dates"),
        ({"time": None, "dates": DATES, "entry": "seen"}, "entry must not be given beside dates"),
        ({"time": None, "dates": DATES, "person": "born"}, "not name born"),
        ({"time": None, "dates": "came"}, "dates"),
        ({"time": None}, "time"),
        ({"entry": "days"}, "different columns"),
        ({"entry": "age"}, "not describe age"),
        ({"time": None, "dates": DateColumns(entry="age", exit="left")}, "not describe age"),
    ],
)
def test_protocols_refuse(changes, says):
    with pytest.raises((TypeError, ValueError), match=says):
        late(**changes)


@pytest.fixture
def folder(tmp_path):
    study = Folder(tmp_path)
    (tmp_path / "small.toml").write_text(SCHEMA)
    (tmp_path / "protocol.toml").write_text(TOML.replace("{ledger}", study.path("l.sqlite")))
    frame = dated().drop(columns=["days", "seen"])
    for name in ("born", "came", "left"):
        frame[name] = frame[name].dt.strftime("%d.%m.%Y")
    study.dated = frame
    study.write(frame, "dates.csv")
    return study


@pytest.mark.slow
def test_a_study_of_dates_from_the_command_line(folder):
    found = Protocol.from_toml(folder.folder / "protocol.toml")
    assert (found.time, found.entry) == ("months", "entry")
    assert json.loads(found.text)["outcome"]["date_format"] == "%d.%m.%Y"
    plan = ("study", "plan", "@protocol.toml", "--data", "@dates.csv", "--repeats", "1")
    folder.run(*plan, "--out", "@plan.html", code=0)
    PrivacyAccountant(6.0, path=folder.path("l.sqlite"))
    run = ("study", "run", "@protocol.toml", "@dates.csv", "--hash", found.sha256)
    folder.run(*run, "--out", "@out", code=0)
    folder.run("study", "check", "@out", code=0, says="belong together")


def test_a_cell_that_is_no_date_is_refused_and_not_charged(folder):
    folder.dated.loc[3, "left"] = "2000/02/31"
    folder.write(folder.dated, "bad.csv")
    found = Protocol.from_toml(folder.folder / "protocol.toml")
    PrivacyAccountant(6.0, path=folder.path("l.sqlite"))
    run = ("study", "run", "@protocol.toml", "@bad.csv", "--hash", found.sha256, "--out", "@out")
    result = folder.run(*run, code=3, says="missing values")
    assert "2000/02" not in result.output
    assert folder.spent("l") == 0.0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('exit_date = "left"\n', "", "exit_date must be given"),
        ('unit = "months"\n', "", "unit must be given"),
        ('unit = "months"', 'unit = "weeks"', "unit must be one of"),
        ('event = "died"', 'event = "died"\ntime = "days"', "time must not be given beside"),
    ],
)
def test_files_refuse(folder, old, new, says):
    path = folder.folder / "protocol.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=says):
        Protocol.from_toml(path)
