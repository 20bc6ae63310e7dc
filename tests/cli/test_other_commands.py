"""skdpsurv schema, predict, evaluate, explain, ledger and audit."""

import csv
import io
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    PrivacyAccountant,
    PrivacyGuarantee,
    PublicColumns,
    Release,
    audit,
    forecast_accuracy,
)
from skdpsurv.cli.failures import EXIT_CODES
from skdpsurv.evaluation import SurvivalEvaluation
from skdpsurv.report import explain
from skdpsurv.report.numbers import csv_text
from tests.cli.study import records

PAGE = Path(__file__).parents[2] / "docs" / "user_guide" / "command_line.md"


def test_the_page_has_all_exit_codes_and_the_header_of_the_file():
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| ([a-z ]+) \|", text, re.MULTILINE))
    assert {kind: int(code) for code, kind in rows.items()} == EXIT_CODES
    assert re.findall(r"^```text\n(.*)$", text, re.MULTILINE) == [",".join(records(3).columns)]


# ---- schema


def test_a_template_names_columns_and_fit_refuses_it(study):
    study.write(study.frame.rename(columns={"age": 'age "now", years'}))
    template = ("schema", "@study.csv", "--out", "@new.toml")
    study.run(*template, "--drop", "id,days", "--drop", "died", code=0)
    text = (study.folder / "new.toml").read_text()
    given = tomllib.loads(text)["columns"]
    guesses = [line.split(" = []  # ")[1] for line in text.splitlines() if " = []" in line]
    assert dict(zip(given, guesses, strict=True)) == {
        'age "now", years': "numbers",
        "stage": "text: categories",
        "smoking": "text: categories",
        "diagnosed": "dates",
        "treated": "1 and 0, or true and false",
    }
    study.survival(schema="@new.toml", code=4, says="must say what the column holds")
    study.run(*template, code=7)
    # Its examples are specifications; the last one of each name.
    examples = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#   ")]
    lines = {line.split(" = ")[0]: line.split("      ")[0] for line in examples}
    (study.folder / "examples.toml").write_text("[columns]\n" + "\n".join(lines.values()))
    columns = PublicColumns.from_toml(study.folder / "examples.toml")
    kinds = (
        "Number Category Category Boolean Date Date Number Number Log Spline Power Number Boolean"
    )
    assert [type(kind).__name__ for kind in columns._kinds()] == kinds.split()


# ---- predict


def test_predictions_are_those_of_the_release(study):
    study.survival(code=0)
    new = records(20, seed=9)
    study.write(new, "new.csv")
    given = ("predict", "@model.json", "@new.csv", "--keep", "id", "--times", "0,365")
    given += ("--times", "3650")
    study.run(*given, "--out", "@predicted.csv", code=0)
    found = pd.read_csv(study.path("predicted.csv"), dtype={"id": str})
    release, rows = study.release(), new.drop(columns="id")
    assert found["id"].tolist() == new["id"].tolist()
    np.testing.assert_allclose(found["risk"], release.predict(rows))
    functions = release.predict_survival_function(rows)
    assert (found["survival_0"] == 1.0).all()
    for time in (365.0, 3650.0):
        expected = [function(time) for function in functions]
        np.testing.assert_allclose(found[f"survival_{time:g}"], expected)


def test_predictions_take_the_horizon_unless_told_otherwise(study):
    study.survival(code=0)
    arguments = ("predict", "@model.json", "@study.csv", "--drop", "id")
    found = study.json(*arguments, "--out", "@a.csv")
    assert found["columns"] == ["risk", "survival_3650"]
    study.run(*arguments, "--out", "@a.csv", code=7)
    out = ("--out", "@b.csv")
    for time in ("4000", "soon"):
        study.run(*arguments, "--times", time, *out, code=2)
    study.run(*arguments[:3], *out, code=4, says="must describe id")
    study.run(*arguments[:2], *out, code=2)
    study.write(study.frame.drop(columns="id").assign(age=120.0), "new.csv")
    result = study.run("predict", "@model.json", "@new.csv", "--strict", *out, code=3)
    assert "120" not in result.stderr
    assert not (study.folder / "b.csv").exists()


def test_curves_are_predicted_at_times(study):
    study.km("--group", "stage", "--groups", "I,II,III", code=0)
    study.run("predict", "@km.json", "--times", "365,730", "--out", "@curves.csv", code=0)
    found = pd.read_csv(study.path("curves.csv"))
    fitter = study.release("km").to_estimator()
    assert found["group"].tolist() == ["I", "I", "II", "II", "III", "III"]
    for label, part in found.groupby("group"):
        one = fitter.of_group(label)
        np.testing.assert_allclose(part["survival"], one.predict([365.0, 730.0]))
        np.testing.assert_allclose(part[["lower", "upper"]], one.survival_band([365.0, 730.0]))
    study.run("predict", "@km.json", "@study.csv", "--out", "@b.csv", code=2)
    study.evaluate(model="@km.json", code=4)


def test_classes_are_predicted_with_their_probabilities(study):
    (study.folder / "small.toml").write_text("[columns]\nage = [30, 95]\n")
    frame = study.frame.dropna()[["age", "stage"]]
    study.write(frame, "small.csv")
    study.classes(code=0)
    study.run("predict", "@classes.json", "@small.csv", "--out", "@classes.csv", code=0)
    found, release = pd.read_csv(study.path("classes.csv")), study.release("classes")
    names = [f"probability_{label}" for label in ("I", "II", "III")]
    np.testing.assert_allclose(found[names], release.predict_proba(frame[["age"]]))
    assert found["class"].tolist() == release.predict(frame[["age"]]).tolist()


FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "-cmd|' /C calc'!A0"]


@pytest.mark.slow
def test_text_that_a_spreadsheet_would_run_is_written_as_text(study):
    """Of records, of classes, of a ledger; and none of it ends a row."""
    plain = ["-1.5", "+2", "-1,5", "-2e-3", "a=b", "007", "it's", ""]
    study.survival(code=0)
    new = records(14, seed=9).drop(columns="id").assign(**{"=who": FORMULAS + plain})
    study.write(new, "new.csv")
    given = ("predict", "@model.json", "@new.csv", "--keep", "=who", "--out", "@predicted.csv")
    study.run(*given, code=0)
    with open(study.path("predicted.csv"), newline="") as file:
        found = list(csv.reader(file))
    assert [row[0] for row in found] == ["'=who", *[f"'{cell}" for cell in FORMULAS], *plain]
    assert all(0.0 <= float(row[-1]) <= 1.0 for row in found[1:])
    text = csv_text(pd.DataFrame({"a": ["\r=1", "\n=1", "b\r=1"], "b": [1, 2, 3]}))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert [row[0] for row in rows] == ["a", "'\r=1", "'\n=1", "b\r=1"]
    study.write(pd.DataFrame({"age": [40.0, 60.0] * 50, "kind": ["=A1", "-"] * 50}), "small.csv")
    (study.folder / "small.toml").write_text("[columns]\nage = [30, 95]\n")
    study.classes(target=("kind", "=A1,-"), code=0)
    given = ("predict", "@classes.json", "@small.csv", "--drop", "kind", "--out", "@c.csv")
    study.run(*given, code=0)
    assert set(pd.read_csv(study.path("c.csv"))["class"]) <= {"'=A1", "'-"}
    ledger = PrivacyAccountant(1.0, path=study.path("l.sqlite"), who="=HYPERLINK(1)")
    ledger.charge(PrivacyGuarantee(0.5))
    study.run("ledger", "export", "@l.sqlite", "--out", "@l.csv", code=0)
    assert pd.read_csv(study.path("l.csv"))["who"].tolist() == ["'=HYPERLINK(1)"]


def test_a_file_that_is_no_release_is_refused(study):
    (study.folder / "no.json").write_text('{"schema_version": 2}')
    study.run("predict", "@no.json", "@study.csv", "--out", "@x", code=4, says="is no release")
    study.run("explain", "@no.json", code=4, says="is no release")
    study.run("explain", "@nothing.json", code=4)


def test_releases_are_verified(study):
    study.km(code=0)
    found = study.json("verify", "@km.json")["releases"]
    assert [one["word"] for one in found] == ["verified"]
    text = (study.folder / "km.json").read_text()
    (study.folder / "no.json").write_text(text.replace('"laplace"', '"gaussian"'))
    study.run("verify", "@km.json", "@no.json", code=9, says="refuted")
    (study.folder / "old.json").write_text('{"schema_version": 2}')
    study.run("verify", "@old.json", code=10, says="not covered")


# ---- evaluate and explain


@pytest.mark.slow
def test_an_evaluation_is_released_and_charged(study):
    study.survival(code=0)
    more = ("--epsilon", "2", "--ledger", "@others.sqlite", "--budget", "3")
    promised = json.loads(study.evaluate(*more, "--dry-run", "--json", code=0).stdout)
    assert promised["guarantee"]["epsilon"] == 2.0
    assert not (study.folder / "others.sqlite").exists()
    study.evaluate(*more, code=0, says="C-index")
    found = SurvivalEvaluation.from_dict(json.loads((study.folder / "e.json").read_text()))
    assert found.max_time == 3650.0
    assert promised["guarantee"] == found.guarantee.to_dict()
    assert study.spent("others") == 2.0
    study.evaluate(*more, "--out", "@more.json", code=5)


def test_an_explanation_says_what_python_says(study):
    study.survival(code=0)
    shown, release = study.run("explain", "@model.json").stdout, study.release()
    assert shown.startswith(explain(release))
    assert "exp(coef) is an odds ratio." in " ".join(shown.removeprefix(explain(release)).split())
    content = study.json("explain", "@model.json")
    assert Release.from_json(json.dumps(content)) == release


# ---- ledger


def test_a_ledger_is_made_shown_and_exported(study):
    made = study.json("ledger", "create", "@l.sqlite", "--budget", "3", "--rehearsal")
    assert made["ledger"]["budget"] == 3.0
    study.run("ledger", "create", "@l.sqlite", "--budget", "4", code=6)
    study.km("--ledger", "@l.sqlite", code=0)
    study.km("--ledger", "@l.sqlite", "--seed", "1", out="@s.json", code=0)
    shown = study.json("ledger", "show", "@l.sqlite")
    assert [entry["status"] for entry in shown["entries"]] == ["proved", "seeded"]
    assert shown["ledger"]["spent"] == 1.0  # a rehearsal stands apart
    said = study.run("ledger", "show", "@l.sqlite", code=0, says="spent 1 of 3, 2 left").stdout
    entries = PrivacyAccountant(path=study.path("l.sqlite")).entries()
    assert all(when in said for when in entries["when"])  # nothing is cut where it is piped
    study.run("ledger", "export", "@l.sqlite", "--out", "@l.csv", code=0)
    table = pd.read_csv(study.path("l.csv"))
    assert table.columns.tolist() == entries.columns.tolist()
    assert table["epsilon"].tolist() == [1.0, 1.0]
    study.run("ledger", "show", "@nothing.sqlite", code=6)
    made = study.json("ledger", "create", "@free.sqlite", "--budget", "inf")
    assert (made["ledger"]["budget"], made["ledger"]["remaining"]) == ("inf", "inf")


# ---- audit


slow = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("survival", "weibull")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["km", "logistic", "table", *slow])
def test_an_audit_attacks_each_kind(study, kind):
    found = study.json("audit", kind, "--trials", "100", "--pairs", "1", "--epsilon", "0.5")
    assert found["passed"]
    assert len(found["pairs"]) == 1
    assert found["pairs"][0]["resolution"] > 0.5


@pytest.mark.slow
def test_an_audit_that_refutes_a_claim_fails(study, monkeypatch):
    def refuted(*arguments, real=audit.audit_epsilon, **options):
        result = real(*arguments, **options)
        object.__setattr__(result, "lower_bound", 2.0)
        return result

    monkeypatch.setattr(audit, "audit_epsilon", refuted)
    given = ("audit", "km", "--trials", "100", "--pairs", "1", "--epsilon", "0.5")
    assert "REFUTED" in study.run(*given, code=9).stdout


def test_an_entry_of_a_registry_needs_what_the_publisher_knows(study):
    study.km(code=0)
    given = ("explain", "@km.json", "--registry", "@entry.yaml")
    study.run(*given, code=2)
    given += ("--publisher", "@publisher.toml")
    study.run(*given, code=4)
    name = 'name = "Survival on ward 7"\n'
    whole = (
        f'{name}data_curators = ["General Hospital"]\nintended_use = "Planning"\n'
        'data_product_region = "Norway"\npublication_date = 2026-03-01\n'
    )
    for facts, says in ((name, "data_curators"), (whole + "nonsense = 1\n", "nonsense")):
        (study.folder / "publisher.toml").write_text(facts)
        study.run(*given, code=4, says=says)
    (study.folder / "publisher.toml").write_text(whole)
    study.run(*given, code=0)
    assert "General Hospital" in (study.folder / "entry.yaml").read_text()


# ---- plan


@pytest.mark.parametrize("kind", ["km", "logistic", *slow])
def test_a_plan_is_a_forecast(study, kind):
    arguments = ("plan", kind, "--records", "200", "--epsilon", "1", "--repeats", "2")
    given = {"epsilons": [1.0], "n_repeats": 2, "random_state": 0}
    model, more = kind, ()
    if kind == "survival":
        model, more = DPDiscreteTimeSurvival(max_time=1.0, delta=6e-8), ("--delta", "6e-8")
    found = study.json(*arguments, "--seed", "0", *more)
    forecast = forecast_accuracy(model, 200, **given)
    assert found == json.loads(json.dumps(forecast.to_dict()).replace("Infinity", '"inf"'))
    if kind == "km":
        pytest.importorskip("matplotlib")
        given = ("--seed", "0", "--figure", "@plan.png")
        study.run(*arguments, *given, code=0, says=forecast.advice)
        assert (study.folder / "plan.png").read_bytes().startswith(b"\x89PNG")
        refused = study.run(*arguments, "--delta", "6e-8", code=2)
        assert "has no parameter 'delta'" in refused.stderr


@pytest.mark.slow
def test_a_plan_takes_a_schema_and_settings(study):
    given = ("plan", "survival", "--records", "200", "--epsilon", "1", "--repeats", "2")
    more = ("--schema", "@columns.toml", "--intervals", "0.2", "--set", "link=cloglog")
    study.run(*given, *more, code=0, says="width: of an interval of a coefficient")
    study.run(*given, *more, code=0, says="Factor by which the ratio of a term is uncertain")
    for wrong in ((*more[:2], "--columns", "3"), ("--figure", "@plan.gif"), ("--records", "5")):
        study.run(*given, *wrong, code=2)
    study.run("plan", "km", *given[2:], "--intervals", "0.2", code=2)
