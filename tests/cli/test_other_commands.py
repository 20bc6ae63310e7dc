"""skdpsurv schema, predict, evaluate, explain, ledger and audit."""

import csv
import html
import io
import json
import tomllib

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    PrivacyAccountant,
    PrivacyGuarantee,
    PublicColumns,
    Release,
    forecast_accuracy,
)
from skdpsurv.cli import simulate
from skdpsurv.cli.output import csv_text
from skdpsurv.evaluation import SurvivalEvaluation
from skdpsurv.report import explain, html_report
from tests.cli.study import TARGET, records

# ---- schema


def test_a_template_names_columns_and_fit_refuses_it(study):
    result = study.run(
        *("schema", "@study.csv", "--out", "@new.toml"),
        *(word for name in ("id", "days", "died") for word in ("--drop", name)),
    )
    assert result.exit_code == 0, result.output
    text = (study.folder / "new.toml").read_text()
    columns = tomllib.loads(text)["columns"]
    assert columns == {name: [] for name in ("age", "stage", "smoking", "diagnosed", "treated")}
    guesses = dict(line.split(" = []  # ") for line in text.splitlines() if " = []" in line)
    assert guesses == {
        "age": "numbers",
        "stage": "text: categories",
        "smoking": "text: categories",
        "diagnosed": "dates",
        "treated": "1 and 0, or true and false",
    }
    result = study.survival(schema="@new.toml")
    assert result.exit_code == 4
    assert "must say what the column holds" in result.stderr
    assert study.run("schema", "@study.csv", "--out", "@new.toml").exit_code == 7


def test_a_template_quotes_names_and_its_examples_are_specifications(study):
    frame = study.frame.rename(columns={"age": 'age "now", years', "stage": "Stufe ä"})
    study.write(frame, "odd.csv")
    assert study.run("schema", "@odd.csv", "--out", "@odd.toml").exit_code == 0
    text = (study.folder / "odd.toml").read_text()
    assert {'age "now", years', "Stufe ä"} <= set(tomllib.loads(text)["columns"])
    examples = [line[1:].split("   ")[0].strip() for line in text.splitlines() if "# " in line]
    examples = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#   ")]
    lines = {line.split(" = ")[0]: line for line in examples}  # the last one of each name
    (study.folder / "examples.toml").write_text(
        "[columns]\n" + "\n".join(line.split("      ")[0] for line in lines.values())
    )
    columns = PublicColumns.from_toml(study.folder / "examples.toml")
    assert [type(kind).__name__ for kind in columns._kinds()] == [
        *("Number", "Category", "Category", "Boolean", "Date", "Date", "Number")
    ]


# ---- predict


def test_predictions_are_those_of_the_release(study):
    assert study.survival().exit_code == 0
    new = records(20, seed=9)
    study.write(new, "new.csv")
    result = study.run(
        *("predict", "@model.json", "@new.csv", "--keep", "id", "--times", "0,365,3650"),
        *("--out", "@predicted.csv"),
    )
    assert result.exit_code == 0, result.output
    found = pd.read_csv(study.path("predicted.csv"), dtype={"id": str})
    release = Release.load(study.path("model.json"))
    rows = new.drop(columns="id")
    assert found["id"].tolist() == new["id"].tolist()
    np.testing.assert_allclose(found["risk"], release.predict(rows))
    functions = release.predict_survival_function(rows)
    assert (found["survival_0"] == 1.0).all()
    for time in (365.0, 3650.0):
        expected = [function(time) for function in functions]
        np.testing.assert_allclose(found[f"survival_{time:g}"], expected)


def test_predictions_take_the_horizon_unless_told_otherwise(study):
    assert study.survival().exit_code == 0
    arguments = ("predict", "@model.json", "@study.csv", "--drop", "id")
    found = study.json(*arguments, "--out", "@a.csv")
    assert found["columns"] == ["risk", "survival_3650"]
    assert study.run(*arguments, "--times", "4000", "--out", "@b.csv").exit_code == 2
    assert study.run(*arguments, "--times", "soon", "--out", "@b.csv").exit_code == 2
    assert study.run(*arguments, "--out", "@a.csv").exit_code == 7
    result = study.run("predict", "@model.json", "@study.csv", "--out", "@b.csv")
    assert result.exit_code == 4
    assert "must describe id" in result.stderr
    result = study.run("predict", "@model.json", "--out", "@b.csv")
    assert result.exit_code == 2
    beyond = study.frame.drop(columns="id").assign(age=120.0)
    study.write(beyond, "beyond.csv")
    strict = ("predict", "@model.json", "@beyond.csv", "--strict", "--out", "@b.csv")
    result = study.run(*strict)
    assert result.exit_code == 3
    assert "120" not in result.stderr
    study.write(study.frame.drop(columns=["id", "age"]), "short.csv")
    result = study.run("predict", "@model.json", "@short.csv", "--out", "@b.csv")
    assert result.exit_code == 3
    assert "age" in result.stderr
    assert not (study.folder / "b.csv").exists()


def test_curves_are_predicted_at_times(study):
    groups = ("--group", "stage", "--groups", "I,II,III")
    assert study.km(*groups).exit_code == 0
    result = study.run("predict", "@km.json", "--times", "365,730", "--out", "@curves.csv")
    assert result.exit_code == 0, result.output
    found = pd.read_csv(study.path("curves.csv"))
    fitter = Release.load(study.path("km.json")).to_estimator()
    assert found["group"].tolist() == ["I", "I", "II", "II", "III", "III"]
    for label, part in found.groupby("group"):
        one = fitter.of_group(label)
        np.testing.assert_allclose(part["survival"], one.predict([365.0, 730.0]))
        band = one.survival_band([365.0, 730.0])
        np.testing.assert_allclose(part[["lower", "upper"]], band)
    assert study.run("predict", "@km.json", "@study.csv", "--out", "@b.csv").exit_code == 2


def test_classes_are_predicted_with_their_probabilities(study):
    (study.folder / "small.toml").write_text("[columns]\nage = [30, 95]\n")
    frame = study.frame.dropna()[["age", "stage"]]
    study.write(frame, "small.csv")
    result = study.run(
        *("fit", "logistic", "@small.csv", "--target", "stage", "--classes", "I,II,III"),
        *("--schema", "@small.toml", "--epsilon", "1", "--out", "@classes.json"),
    )
    assert result.exit_code == 0, result.output
    result = study.run("predict", "@classes.json", "@small.csv", "--out", "@classes.csv")
    assert result.exit_code == 0, result.output
    found = pd.read_csv(study.path("classes.csv"))
    release = Release.load(study.path("classes.json"))
    names = [f"probability_{label}" for label in ("I", "II", "III")]
    np.testing.assert_allclose(found[names], release.predict_proba(frame[["age"]]))
    assert found["class"].tolist() == release.predict(frame[["age"]]).tolist()


FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "-cmd|' /C calc'!A0"]


def test_text_that_a_spreadsheet_would_run_is_written_as_text(study):
    plain = ["-1.5", "+2", "-1,5", "-2e-3", "a=b", "007", "it's", ""]
    assert study.survival().exit_code == 0
    new = records(14, seed=9).drop(columns="id").assign(**{"=who": FORMULAS + plain})
    study.write(new, "new.csv")
    result = study.run(
        *("predict", "@model.json", "@new.csv", "--keep", "=who", "--out", "@predicted.csv")
    )
    assert result.exit_code == 0, result.output
    with open(study.path("predicted.csv"), newline="") as file:
        found = list(csv.reader(file))
    cells = [row[0] for row in found]
    assert cells == ["'=who", *[f"'{cell}" for cell in FORMULAS], *plain]
    assert all(0.0 <= float(row[-1]) <= 1.0 for row in found[1:])


def test_text_ends_no_row():
    text = csv_text(pd.DataFrame({"a": ["\r=1", "\n=1", "b\r=1"], "b": [1, 2, 3]}))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert [row[0] for row in rows] == ["a", "'\r=1", "'\n=1", "b\r=1"]


def test_so_are_labels_of_classes_and_entries_of_a_ledger(study):
    rows = pd.DataFrame({"age": [40.0, 60.0] * 50, "kind": ["=A1", "-"] * 50})
    study.write(rows, "small.csv")
    (study.folder / "small.toml").write_text("[columns]\nage = [30, 95]\n")
    result = study.run(
        *("fit", "logistic", "@small.csv", "--target", "kind", "--classes", "=A1,-"),
        *("--schema", "@small.toml", "--epsilon", "1", "--out", "@classes.json"),
    )
    assert result.exit_code == 0, result.output
    arguments = ("predict", "@classes.json", "@small.csv", "--drop", "kind", "--out", "@c.csv")
    assert study.run(*arguments).exit_code == 0
    assert set(pd.read_csv(study.path("c.csv"))["class"]) <= {"'=A1", "'-"}
    ledger = PrivacyAccountant(1.0, path=study.path("l.sqlite"), who="=HYPERLINK(1)")
    ledger.charge(PrivacyGuarantee(0.5))
    assert study.run("ledger", "export", "@l.sqlite", "--out", "@l.csv").exit_code == 0
    assert pd.read_csv(study.path("l.csv"))["who"].tolist() == ["'=HYPERLINK(1)"]


def test_a_file_that_is_no_release_is_refused(study):
    (study.folder / "no.json").write_text('{"schema_version": 2}')
    for command in (("predict", "@no.json", "@study.csv", "--out", "@x"), ("explain", "@no.json")):
        result = study.run(*command)
        assert result.exit_code == 4
        assert "is no release" in result.stderr
    assert study.run("explain", "@nothing.json").exit_code == 4


# ---- evaluate


def test_an_evaluation_is_released_and_charged(study):
    assert study.survival().exit_code == 0
    arguments = (
        *("evaluate", "@model.json", "@study.csv", *TARGET, "--drop", "id", "--epsilon", "2"),
        *("--ledger", "@others.sqlite", "--budget", "3", "--out", "@found.json"),
    )
    promised = study.json(*arguments, "--dry-run")
    assert promised["guarantee"]["epsilon"] == 2.0
    assert not (study.folder / "others.sqlite").exists()
    result = study.run(*arguments)
    assert result.exit_code == 0, result.output
    assert "C-index" in result.stdout
    found = SurvivalEvaluation.from_dict(json.loads((study.folder / "found.json").read_text()))
    assert found.max_time == 3650.0
    assert found.guarantee.epsilon == 2.0
    assert promised["guarantee"] == found.guarantee.to_dict()
    assert PrivacyAccountant(path=study.path("others.sqlite")).spent() == 2.0
    result = study.run(*arguments[:-1], "@more.json")
    assert result.exit_code == 5


def test_only_models_of_survival_are_evaluated(study):
    assert study.km().exit_code == 0
    result = study.run(
        *("evaluate", "@km.json", "@study.csv", *TARGET, "--drop", "id"),
        *("--epsilon", "1", "--out", "@found.json"),
    )
    assert result.exit_code == 4


# ---- explain


def test_an_explanation_says_what_python_says(study):
    assert study.survival().exit_code == 0
    result = study.run("explain", "@model.json")
    release = Release.load(study.path("model.json"))
    assert result.stdout.startswith(explain(release))
    assert "exp(coef)" in result.stdout.removeprefix(explain(release))
    content = study.json("explain", "@model.json")
    assert Release.from_json(json.dumps(content)) == Release.load(study.path("model.json"))


# ---- ledger


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--link", "cloglog"), "exp(coef) is a hazard ratio."),
        (("--link", "logit"), "exp(coef) is an odds ratio."),
        (("--link", "probit"), "no logarithms of ratios"),
        (
            ("--intervals", "0.2", "--epsilon", "3"),
            "Among several intervals some may miss the truth",
        ),
    ],
)
def test_coefficients_are_shown_with_the_caution_of_the_page(study, more, said):
    fitted = study.survival(*more)
    explained = study.run("explain", "@model.json")
    release = Release.load(study.path("model.json"))
    page = " ".join(html.unescape(html_report(release)).split())
    cautions = ["Do not conclude from one of them that a column matters or does not.", said]
    for output in (fitted.stdout, explained.stdout):
        flat = " ".join(output.split())
        assert said in flat
        assert (cautions[0] in flat) == (cautions[0] in page) == ("--intervals" not in more)


def test_a_ledger_is_made_shown_and_exported(study):
    made = study.json("ledger", "create", "@l.sqlite", "--budget", "3", "--rehearsal")
    assert made["ledger"]["budget"] == 3.0
    assert study.run("ledger", "create", "@l.sqlite", "--budget", "4").exit_code == 6
    assert study.km("--ledger", "@l.sqlite").exit_code == 0
    assert study.km("--ledger", "@l.sqlite", "--seed", "1", out="@s.json").exit_code == 0
    shown = study.json("ledger", "show", "@l.sqlite")
    assert [entry["status"] for entry in shown["entries"]] == ["proved", "seeded"]
    assert shown["ledger"]["spent"] == 1.0  # a rehearsal stands apart
    result = study.run("ledger", "show", "@l.sqlite")
    assert "spent 1 of 3, 2 left" in result.stdout
    assert study.run("ledger", "export", "@l.sqlite", "--out", "@l.csv").exit_code == 0
    table = pd.read_csv(study.path("l.csv"))
    accountant = PrivacyAccountant(path=study.path("l.sqlite"))
    assert table.columns.tolist() == accountant.entries().columns.tolist()
    assert table["epsilon"].tolist() == [1.0, 1.0]
    assert study.run("ledger", "show", "@nothing.sqlite").exit_code == 6


def test_a_ledger_is_whole_where_it_is_piped(study):
    who, purpose = "anna.of.the.registry@example.org", "protocol 7, second amendment, table 3"
    ledger = PrivacyAccountant(1.0, path=study.path("l.sqlite"), who=who, purpose=purpose)
    ledger.charge(PrivacyGuarantee(0.5), estimator="DPDiscreteTimeSurvival")
    shown = study.run("ledger", "show", "@l.sqlite").stdout
    (row,) = [line for line in shown.splitlines() if who in line]
    assert purpose in row
    assert "DPDiscreteTimeSurvival" in row
    assert ledger.entries()["when"].iloc[0] in row
    assert max(map(len, shown.splitlines())) < 400


def test_the_file_is_named_with_all_columns_that_are_refused(study):
    study.write(study.frame.assign(stage="IV", treated="perhaps"))
    result = study.survival()
    assert result.exit_code == 3
    assert "column 'stage'" in result.stderr
    assert "column 'treated'" in result.stderr
    assert "perhaps" not in result.stderr


def test_an_unlimited_budget_is_json(study):
    made = study.json("ledger", "create", "@l.sqlite", "--budget", "inf")
    assert (made["ledger"]["budget"], made["ledger"]["remaining"]) == ("inf", "inf")


# ---- audit


@pytest.mark.parametrize("kind", ["survival", "weibull", "km", "logistic"])
def test_an_audit_attacks_each_kind(study, kind):
    found = study.json("audit", kind, "--trials", "100", "--pairs", "1", "--epsilon", "0.5")
    assert found["passed"]
    assert len(found["pairs"]) == 1
    assert found["pairs"][0]["resolution"] > 0.5


def test_an_audit_that_refutes_a_claim_fails(study, monkeypatch):
    real = simulate.audit_epsilon

    def refuted(*arguments, **options):
        result = real(*arguments, **options)
        object.__setattr__(result, "lower_bound", 2.0)
        return result

    monkeypatch.setattr(simulate, "audit_epsilon", refuted)
    result = study.run("audit", "km", "--trials", "100", "--pairs", "1", "--epsilon", "0.5")
    assert result.exit_code == 9
    assert "REFUTED" in result.stdout


def test_an_entry_of_a_registry_needs_what_the_publisher_knows(study):
    assert study.km().exit_code == 0
    facts = study.folder / "publisher.toml"
    arguments = (
        "explain",
        "@km.json",
        "--registry",
        "@entry.yaml",
        "--publisher",
        "@publisher.toml",
    )
    assert study.run(*arguments[:4]).exit_code == 2
    assert study.run(*arguments).exit_code == 4
    facts.write_text('name = "Survival on ward 7"')
    result = study.run(*arguments)
    assert result.exit_code == 4
    assert "data_curators" in result.stderr
    facts.write_text(
        'name = "Survival on ward 7"\ndata_curators = ["General Hospital"]\n'
        'intended_use = "Planning"\ndata_product_region = "Norway"\npublication_date = 2026-03-01\n'
    )
    assert study.run(*arguments).exit_code == 0
    assert "General Hospital" in (study.folder / "entry.yaml").read_text()
    facts.write_text(facts.read_text() + "nonsense = 1\n")
    result = study.run(*arguments[:3], "@other.yaml", *arguments[4:])
    assert result.exit_code == 4
    assert "nonsense" in result.stderr


# ---- plan


def test_a_plan_takes_a_delta(study):
    arguments = ("--records", "4000", "--columns", "20", "--epsilon", "1", "--repeats", "2")
    found = study.json("plan", "survival", *arguments, "--delta", "6e-8", "--seed", "0")
    forecast = forecast_accuracy(
        DPDiscreteTimeSurvival(max_time=1.0, delta=6e-8),
        4000,
        n_columns=20,
        epsilons=[1.0],
        n_repeats=2,
        random_state=0,
    )
    assert found == json.loads(json.dumps(forecast.to_dict()).replace("Infinity", '"inf"'))
    refused = study.run("plan", "km", *arguments[:2], "--delta", "6e-8")
    assert "has no parameter 'delta'" in refused.stderr


@pytest.mark.parametrize("kind", ["survival", "weibull", "km", "logistic"])
def test_a_plan_is_a_forecast(study, kind):
    arguments = ("plan", kind, "--records", "200", "--epsilon", "1", "--repeats", "2")
    found = study.json(*arguments, "--seed", "0")
    forecast = forecast_accuracy(kind, 200, epsilons=[1.0], n_repeats=2, random_state=0)
    assert found == json.loads(json.dumps(forecast.to_dict()).replace("Infinity", '"inf"'))
    pytest.importorskip("matplotlib")
    result = study.run(*arguments, "--seed", "0", "--figure", "@plan.png")
    assert result.exit_code == 0, result.output
    assert forecast.advice in " ".join(result.stdout.split())
    assert (study.folder / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_plan_takes_a_schema_and_settings(study):
    arguments = ("plan", "survival", "--records", "200", "--epsilon", "1", "--repeats", "2")
    result = study.run(
        *arguments, "--schema", "@columns.toml", "--intervals", "0.2", "--set", "link=cloglog"
    )
    assert result.exit_code == 0, result.output
    assert "width: of an interval of a coefficient" in " ".join(result.stdout.split())
    assert study.run(*arguments, "--schema", "@columns.toml", "--columns", "3").exit_code == 2
    assert study.run(*arguments, "--figure", "@plan.gif").exit_code == 2
    assert study.run("plan", "km", "--records", "200", "--intervals", "0.2").exit_code == 2
    assert study.run("plan", "survival", "--records", "5").exit_code == 2
