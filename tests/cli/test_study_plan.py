"""skdpsurv study plan: costs, forecast, advice, and a page to sign; nothing is spent."""

import json

import pytest

from skdpsurv import PrivacyAccountant
from skdpsurv.study import Protocol
from tests.cli.study import SCHEMA

TOML = """
title = "Stage and survival"
dataset = "registry"
owner = "A. Curie"
purpose = "protocol 7"
schema = "columns.toml"
evaluation_share = 0.3
[outcome]
time = "days"
event = "died"
person = "id"
max_time = 3650
unit = "days"
[budget]
epsilon = 3
ledger = "{ledger}"
[[analyses]]
kind = "curves"
by = "stage"
[[analyses]]
kind = "regression"
share = 2
columns = ["age", "stage"]
[[analyses]]
kind = "evaluation"
of = "regression"
"""


@pytest.fixture
def planned(study):
    text = TOML.format(ledger=study.path("registry.sqlite"))
    (study.folder / "protocol.toml").write_text(text)
    (study.folder / "columns.toml").write_text(SCHEMA)
    return study


def plan(study, *more, **expected):
    return study.run("study", "plan", "@protocol.toml", *more, **expected)


def test_costs_forecast_and_advice(planned):
    given = ("--n-people", "2000", "--repeats", "1", "--out", "@page.html")
    found = planned.json("study", "plan", "@protocol.toml", *given)
    assert [one["analysis"] for one in found["analyses"]] == ["curves", "regression", "evaluation"]
    assert [one["number"] for one in found["analyses"]] == [2000, 1400, 600]
    assert found["guarantee"]["epsilon"] == 3.0
    assert {one["analysis"] for one in found["forecast"]} == set(found["best_shares"])
    protocol = Protocol.from_toml(planned.folder / "protocol.toml")
    assert found["sha256"] == protocol.sha256
    assert protocol.sha256 in (planned.folder / "page.html").read_text()
    assert planned.spent("registry") == 0.0
    assert not (planned.folder / "registry.sqlite").exists()


def test_what_the_ledger_has_room_for(planned):
    given = ("--n-people", "2000", "--repeats", "0")
    plan(planned, *given, code=0, says="registry.sqlite is not there, or cannot be asked now.")
    PrivacyAccountant(2.0, path=planned.path("registry.sqlite"))
    plan(planned, *given, code=0, says="Ledger: the study would be refused. The privacy budget of")
    (planned.folder / "registry.sqlite").unlink()
    (planned.folder / "registry.sqlite.lock").unlink(missing_ok=True)
    PrivacyAccountant(4.0, path=planned.path("registry.sqlite"))
    plan(planned, *given, code=0, says="Ledger: spent 0 of 4, 4 left")
    plan(planned, "--repeats", "0", code=2, says="or n_people in the protocol")
    text = (planned.folder / "protocol.toml").read_text()
    (planned.folder / "protocol.toml").write_text(f"n_people = 900\n{text}")
    plan(planned, "--repeats", "0", code=0, says="900 people")
    plan(planned, *given, code=2, says="n_people must be that of the protocol, 900")


def test_people_are_counted_and_nothing_else_is_read(planned):
    twice = planned.frame.assign(age="secret", days="secret", died="secret", stage="secret")
    planned.write(twice.loc[[*range(len(twice)), 0, 1, 2]], "twice.csv")
    given = ("--data", "@twice.csv", "--repeats", "0", "--json")
    found = plan(planned, *given, code=0)
    assert json.loads(found.stdout)["analyses"][0]["number"] == 300
    assert "secret" not in found.output
    assert plan(planned, *given[:-1], code=0).stdout.endswith("Nothing was spent.\n")


def test_people_are_not_counted_where_refusals_are_charged(planned):
    """Any column may be named as person, in a protocol of one's own."""
    PrivacyAccountant(4.0, path=planned.path("registry.sqlite"), charge_refusals=True)
    planned.write(planned.frame.assign(id=None), "nobody.csv")
    for data in ("@study.csv", "@nobody.csv", "@nothing.csv"):
        plan(planned, "--data", data, "--repeats", "0", code=2, says="state --n-people")
    plan(planned, "--n-people", "300", "--repeats", "0", code=0, says="Ledger: spent 0 of 4")


def test_wrong_entries_end_in_one_line(planned):
    plan(planned, code=2)
    plan(planned, "--n-people", "1", code=2, says="n_people must be an integer")
    plan(planned, "--n-people", "9", "--data", "@study.csv", code=2, says="give either --n-people")
    planned.run("study", "plan", "@none.toml", "--n-people", "9", code=4, says="no protocol")
    path = planned.folder / "protocol.toml"
    path.write_text(path.read_text().replace("max_time", "max_tim"))
    says = "outcome has no key 'max_tim'. Did you mean max_time?"
    plan(planned, "--n-people", "900", code=4, says=says)
    path.write_text(path.read_text().replace("max_tim", "max_time"))
    plan(planned, "--data", "@study.csv", "--dask", code=2, says="a study reads rows in memory")
    given = ("--data", "@study.csv", "--missing-value", "-9")
    plan(planned, *given, code=2, says="it stands in its schema")
    plan(planned, "--n-people", "900", "--baseline", "steep", code=2, says="baseline must be one")


def test_a_file_must_have_the_columns_and_a_name_for_each_person(planned):
    planned.write(planned.frame.drop(columns="stage"), "without.csv")
    plan(planned, "--data", "@without.csv", code=3, says="must have the column(s) stage")
    planned.write(planned.frame.assign(id=None), "nobody.csv")
    plan(planned, "--data", "@nobody.csv", code=3, says="person must hold whole numbers or text")
