"""skdpsurv table: the release and the table of Python, and what is charged for them."""

import json

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPTableOne, PublicColumns
from skdpsurv.report import explain
from tests.cli.study import Study

SEED = ("--seed", "3")
DROP = ("--drop", "id,days", "--drop", "died")


def table(study: Study, *more, data="@study.csv", out="@table.json", drop=DROP, **expected):
    given = ("table", data, "--schema", "@columns.toml", *drop, "--epsilon", "1", "--out", out)
    return study.run(*given, *more, **expected)


def python(study: Study, person=None, **parameters):
    columns = PublicColumns.from_toml(study.path("columns.toml"))
    model = DPTableOne(1.0, columns=columns, random_state=3, **parameters)
    with pytest.warns(UserWarning, match="not private"):
        return model.fit(study.frame[columns._names()], person=person)


def test_a_table_is_that_of_python(study):
    result = table(study, *SEED, "--by", "stage", "--set", "grid=12", "--delta", "1e-6", code=0)
    same = python(study, by="stage", grid=12, delta=1e-6)
    assert study.release("table") == same.release_
    assert "300 records, epsilon = 1, replace-one, status seeded" in result.stdout
    for text in same.to_frame(intervals="people").loc[("age years, mean (SD)", "")]:
        assert text in result.stdout
    for shown, intervals in (("population", "population"), ("none", None)):
        more = ("--nonnormal", "age", "--intervals", shown)
        result = table(study, *SEED, *more, out=f"@{shown}.json", code=0)
        frame = python(study).to_frame(intervals=intervals, nonnormal=["age"])
        for text in frame.loc[("age years, median [Q1,Q3]", "")]:
            assert text in result.stdout
        assert ("{" in result.stdout) == (intervals is not None)


def test_it_is_explained_and_predicts_nothing(study):
    table(study, "--by", "stage", "--by-is-public", code=0)
    release = study.release("table")
    shown = study.run("explain", "@table.json", "--html", "@page.html", code=0).stdout
    assert "page.html" in shown
    shown = study.run("explain", "@table.json", code=0).stdout
    assert shown.startswith(explain(release))
    assert "SMD (I,II)" in shown
    said = " ".join(explain(release).split())
    assert "for each group of stage, and by standardised differences between groups" in said
    assert "missing ones are counted" in said
    for data in ((), ("@study.csv",)):
        study.run("predict", "@table.json", *data, "--out", "@x", code=2, says="predicts nothing")


def test_ledger_rehearsal_and_machines(study):
    ledger = ("--ledger", "@study.sqlite", "--budget", "1")
    found = json.loads(table(study, *ledger, "--dry-run", "--json", code=0).stdout)
    assert found["guarantee"]["public_inputs"]["n_columns"] == 5
    assert {(one["column"], one["statistic"]) for one in found["expected"]} >= {("age", "mean")}
    assert all(0.0 < one["± people"] <= one["± population"] for one in found["expected"])
    assert (study.spent(), (study.folder / "table.json").exists()) == (0.0, False)
    found = json.loads(table(study, *ledger, "--json", code=0).stdout)
    assert study.spent() == 1.0
    rows = pd.DataFrame(found["table"])
    means = rows[rows.statistic.isin(["mean", "median"])]
    assert np.isfinite(means[["estimate", "people_low", "population_high"]].astype(float)).all(None)
    table(study, *ledger, out="@again.json", code=5, says="Nothing was charged")
    assert not (study.folder / "again.json").exists()


def test_people_blocks_and_strict_bounds(study):
    study.write(pd.concat([study.frame, study.frame.assign(treated=False)]), "twice.csv")
    drop = ("--drop", "days,died")
    said = "300 people, epsilon = 1, replace-one-person"
    table(study, *SEED, "--person", "id", data="@twice.csv", drop=drop, code=0, says=said)
    same = python(study, person=study.frame["id"]).release_
    assert study.release("table").values["counts"].tolist() == same.values["counts"].tolist()
    pytest.importorskip("dask")
    table(study, *SEED, "--dask", out="@blocks.json", code=0)
    assert study.release("blocks") == python(study).release_
    study.write(study.frame.assign(age=-99.0))
    result = table(study, "--strict", out="@x", code=3, says="beyond the bounds of age")
    assert "99" not in result.stderr


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (("--by", "age"), 2, "by must be a category"),
        (("--by-is-public",), 2, "by_is_public must be False"),
        (("--nonnormal", "age,stage"), 2, "--nonnormal must name numbers of the schema, not stage"),
        (("--intervals", "both"), 2, "people"),
        (("--set", "by=stage"), 2, "use --by"),
        (("--set", "columns=1"), 2, "use --schema"),
        (("--set", "grid=1"), 2, "grid"),
        (("--person", "age"), 4, "must not describe age"),
        (("--drop", "age"), 2, "in use"),
    ],
)
def test_wrong_options_cost_nothing(study, more, code, says):
    table(study, *more, "--ledger", "@study.sqlite", "--budget", "1", code=code, says=says)
    assert study.spent() == 0.0
    assert not (study.folder / "table.json").exists()


def test_no_cell_is_shown(study):
    for column in ("age", "stage", "diagnosed", "treated"):
        frame = study.frame.astype({column: object})
        frame.loc[7, column] = "JaneDoe1957"
        study.write(frame)
        result = table(study, "--ledger", "@study.sqlite", "--budget", "1", code=3)
        assert "Jane" not in result.stdout + result.stderr
    table(study, drop=("--drop", "id,days"), code=4, says="must describe died")
    assert study.spent() == 0.0
