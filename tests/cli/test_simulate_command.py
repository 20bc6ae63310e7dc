"""Made-up people in a file: marked in each row, and read by fit like any file."""

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPDiscreteTimeSurvival, PublicColumns
from tests.cli.study import HORIZON, TARGET

MADE = ("--people", "200", "--seed", "1")
MARK = "the people are made up"


@pytest.fixture
def published(study):
    survival = (*TARGET, *HORIZON, "--schema", "@columns.toml", "--drop", "id")
    study.run(
        "fit", "survival", "@study.csv", *survival, "--epsilon", "1", "--out", "@model.json", code=0
    )
    return study


def test_made_up_people_are_marked_and_can_be_fitted(published):
    study = published
    given = ("simulate", "@model.json", *MADE, "--out", "@made.csv")
    study.run(*given, code=0, says="200 made-up people: nobody's records")
    made = pd.read_csv(study.folder / "made.csv")
    assert made["made_up"].all()
    assert len(made) == 200
    kept = ["age", "stage", "smoking", "diagnosed", "treated", "died", "days"]
    assert made.columns.tolist() == [*kept, "made_up"]
    again = (*TARGET, *HORIZON, "--schema", "@columns.toml", "--drop", "made_up", "--strict")
    study.run(
        "fit", "survival", "@made.csv", *again, "--epsilon", "1", "--out", "@again.json", code=0
    )
    study.run(*given, code=7)  # nothing is written over
    assert not study.release().guarantee.assumptions[0].startswith(MARK)
    assert study.release("again").guarantee.assumptions[0].startswith(MARK)
    study.run("explain", "@again.json", code=0, says=MARK)


def test_whatever_reads_made_up_people_says_so(published):
    """The mark is a name in the header: what stands below it is not read."""
    study, given = published, ("--schema", "@columns.toml", "--epsilon", "1")
    study.write(study.frame.drop(columns="id").assign(made_up=""), "made.csv")
    study.km(data="@made.csv", code=0)
    drop = ("--drop", "days,died,made_up")
    study.run("table", "@made.csv", *given, *drop, "--out", "@table.json", code=0)
    for name in ("km", "table"):
        assert study.release(name).guarantee.assumptions[0].startswith(MARK)
    held = (*TARGET, "--drop", "made_up", "--epsilon", "1", "--out", "@e.json")
    found = study.json("evaluate", "@model.json", "@made.csv", *held)
    assert found["guarantee"]["assumptions"][0].startswith(MARK)
    study.km(out="@km2.json", code=0)
    study.run("pool", "@km.json", "@km2.json", "--out", "@pool.json", code=0)
    assert any(one.startswith(MARK) for one in study.release("pool").guarantee.assumptions)


def test_margins_and_censoring_come_from_other_releases(published):
    study = published
    table = ("--schema", "@columns.toml", "--drop", "id,days,died", "--epsilon", "9")
    study.run("table", "@study.csv", *table, "--out", "@table.json", code=0)
    km = (*TARGET, *HORIZON, "--group", "stage", "--groups", "I,II,III", "--epsilon", "9")
    study.run("fit", "km", "@study.csv", *km, "--out", "@km.json", code=0)
    given = ("simulate", "@model.json", *MADE, "--table", "@table.json")
    found = study.json(*given, "--censoring", study.path("km.json"), "--out", "@made.csv")
    assert set(found["margins"].values()) == {"Table 1"}
    assert found["made_up"].startswith("nobody's records")
    made = pd.read_csv(study.folder / "made.csv")
    assert (made["days"] < 3650)[made["died"] == 0].any()
    study.run("simulate", "@km.json", *MADE, "--out", "@curves.csv", code=0)
    curves = pd.read_csv(study.folder / "curves.csv")
    assert curves.columns.tolist() == ["group", "died", "days", "made_up"]
    study.run("simulate", "@table.json", *MADE, "--out", "@rows.csv", code=0)
    assert "died" not in pd.read_csv(study.folder / "rows.csv")


def test_classes_have_the_name_of_the_column(study):
    given = ("--target", "died", "--classes", "0,1", "--schema", "@columns.toml")
    given += ("--drop", "id,days", "--epsilon", "1", "--out", "@classes.json")
    study.run("fit", "logistic", "@study.csv", *given, code=0)
    study.run("simulate", "@classes.json", *MADE, "--out", "@made.csv", code=0)
    assert set(pd.read_csv(study.folder / "made.csv")["died"]) == {0, 1}


def test_a_file_has_no_two_columns_of_one_name(study):
    columns = PublicColumns.of(made_up=bool, time=bool)
    X = pd.DataFrame({"made_up": [True, False] * 50, "time": [True, False] * 50})
    model = DPDiscreteTimeSurvival(1.0, max_time=1.0, columns=columns)
    model.fit(X, (np.ones(100, dtype=bool), np.full(100, 0.5))).release_.save(
        study.folder / "names.json"
    )
    says = "two columns made_up, time"
    study.run("simulate", "@names.json", *MADE, "--out", "@made.csv", code=4, says=says)
    assert not (study.folder / "made.csv").exists()


def test_wrong_options_are_named(published):
    for wrong, says in (
        (("--people", "0", "--seed", "1"), "--people must be a"),
        (("--people", "9", "--seed", "-1"), "--seed must be a"),
        ((*MADE, "--censoring", "0"), "--censoring must be"),
        ((*MADE, "--censoring", "often"), "--censoring must be a rate"),
        ((*MADE, "--table", "@model.json"), "--table must be"),
    ):
        published.run("simulate", "@model.json", *wrong, "--out", "@made.csv", code=2, says=says)
    published.run("simulate", "@columns.toml", *MADE, "--out", "@made.csv", code=4)
