"""skdpsurv fit: the same releases as in Python, and what is charged for them."""

import json

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPAalenJohansenFitter,
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivacyAccountant,
    PublicColumns,
    Release,
    pool_releases,
)
from skdpsurv.evaluation import SurvivalEvaluation
from tests.cli.study import HORIZON, SCHEMA, TARGET

SEED = ("--seed", "3")
SMALL = "[columns]\nage = { bounds = [30, 95], missing = 'midpoint' }\ntreated = [0, 1]\n"


def python(model, *arguments, **options):
    """Return the release of a fit in Python with the same seed."""
    with pytest.warns(UserWarning, match="not private|promises nothing"):
        return model.set_params(random_state=3).fit(*arguments, **options).release_


def hazard(study, **parameters):
    columns = PublicColumns.from_toml(study.path("columns.toml"))
    model = DPDiscreteTimeSurvival(1.0, columns=columns, max_time=3650.0, **parameters)
    return python(model, study.frame[columns._names()], study.frame[["died", "days"]])


def test_a_survival_model_is_that_of_python(study):
    given = ("--link", "cloglog", "--set", "n_knots=5", "--intervals", "0.2")
    result = study.survival(*SEED, *given, code=0)
    assert "300 records, epsilon = 1, replace-one, status seeded" in result.stdout
    assert "status proved" not in result.stdout
    assert "not private" in result.stderr
    same = hazard(study, link="cloglog", n_knots=5, inference_share=0.2)
    assert study.release() == same


def test_curves_and_interactions_are_those_of_python(study):
    curved = SCHEMA.replace("bounds = [30, 95]", "spline = [30, 95], df = 2")
    more = '"age:stage" = { interaction = ["age", "stage"] }\n'
    (study.folder / "columns.toml").write_text(curved + more)
    study.survival(*SEED, code=0)
    same = hazard(study)
    assert study.release() == same
    names = [one.name for one in same.features]
    assert names[-4:] == [f"age_spline{j}:stage_{k}" for j in (1, 2) for k in ("II", "III")]


@pytest.mark.slow
def test_curves_and_a_weibull_fit_are_those_of_python(study):
    """Of groups, and where nobody is censored."""
    fitter, y = DPKaplanMeierFitter(1.0, max_time=3650.0), study.frame[["died", "days"]]
    study.km(*SEED, target=("--time", "days", "--all-events"), out="@all.json", code=0)
    assert study.release("all") == python(fitter, y=study.frame["days"])
    study.km(*SEED, "--group", "stage", "--groups", "I,II,III", code=0)
    fitter.set_params(groups=["I", "II", "III"])
    assert study.release("km") == python(fitter, y=y, group=study.frame["stage"])
    arguments = ("fit", "weibull", "@study.csv", *TARGET, *HORIZON, *SEED, "--epsilon", "1")
    study.run(*arguments, "--out", "@weibull.json", code=0)
    assert study.release("weibull") == python(DPWeibullFitter(1.0, max_time=3650.0), y=y)


@pytest.mark.parametrize("machine", [(), ("--json",)])
def test_a_horizon_in_another_unit_is_asked_about_after_the_fit(study, machine):
    """Noise moves the share by 2 of 100, as a rule; it is asked about below 5."""
    arguments = ("fit", "km", "@study.csv", *TARGET, *SEED, "--epsilon", "5", *machine)
    result = study.run(*arguments, "--max-time", "0.01", "--out", "@days.json", code=0)
    assert " of the records have an event by max_time=0.01" in result.stderr
    assert "Is max_time in the unit of the times?" in result.stderr
    result = study.run(*arguments, *HORIZON, "--out", "@years.json", code=0)
    assert "unit of the times" not in result.stderr
    assert ("of the records have an event by max_time=" in result.stdout) == (not machine)


def test_competing_events_are_those_of_python(study):
    which = study.frame["died"] * np.random.default_rng(1).integers(1, 3, len(study.frame))
    target = ("--time", "days", "--event", "which")
    arguments = ("fit", "competing", "@which.csv", *target, *HORIZON, *SEED, "--epsilon", "1")
    for labels, censored, more in (
        ([1, 2], 0, ()),
        (["relapse", "death"], "none yet", ("--censored-is", "none yet")),
    ):
        name = f"of_{labels[0]}"
        frame = study.frame.assign(which=which.map(dict(enumerate([censored, *labels]))))
        study.write(frame, "which.csv")
        causes = ("--causes", ",".join(map(str, labels)))
        study.run(*arguments, *causes, *more, "--out", f"@{name}.json", code=0)
        fitter = DPAalenJohansenFitter(1.0, max_time=3650.0, causes=labels, censored=censored)
        assert study.release(name) == python(fitter, y=frame[["which", "days"]])
        given = ("predict", f"@{name}.json", "--times", "365", "--out", f"@{name}.csv")
        study.run(*given, code=0)
        found = pd.read_csv(study.path(f"{name}.csv")).iloc[0]
        for label in labels:
            expected = fitter.cumulative_density_at_times(365.0, cause=label).iloc[0]
            np.testing.assert_allclose(found[f"incidence_{label}"], expected)
    result = study.run(*arguments, "--causes", "relapse", "--out", "@x.json", code=3)
    assert "death" not in result.stderr
    for more in (("--event-is", "1"), ("--all-events",), ("--censored-is", "0") * 2):
        study.run(*arguments, "--causes", "1,2", *more, "--out", "@x", code=2)


@pytest.mark.slow
def test_a_regression_of_competing_events_is_that_of_python(study):
    which = study.frame["died"] * np.random.default_rng(1).integers(1, 3, len(study.frame))
    words = dict(enumerate(["none yet", "relapse", "death"]))
    frame = study.frame.assign(died=which.map(words))
    study.write(frame, "which.csv")
    command = ("fit", "competing-regression", "@which.csv", "--schema", "@columns.toml", *TARGET)
    command += (*HORIZON, *SEED, "--epsilon", "1", "--drop", "id", "--out", "@causes.json")
    causes = ("--causes", "relapse,death", "--censored-is", "none yet")
    study.run(*command, code=2, says="--causes must be given")
    result = study.run(*command, *causes, "--set", "n_knots=2", code=0)
    assert "DPCompetingRisks" in result.stdout
    errors = ("--intervals", "0.3", "--epsilon", "200", "--out", "@errors.json")
    result = study.run(*command, *causes, *errors, code=0)
    assert "Wald tests that a term has no effect on death" in " ".join(result.stdout.split())
    assert study.release("errors").values["inference_estimate"].shape[0] == 2
    columns = PublicColumns.from_toml(study.path("columns.toml"))
    labels = {"causes": ["relapse", "death"], "censored": "none yet", "n_knots": 2}
    model = DPCompetingRisks(1.0, columns=columns, max_time=3650.0, **labels)
    same = python(model, frame[columns._names()], frame[["died", "days"]])
    assert study.release("causes") == same
    ask = {"model": "@causes.json", "data": "@which.csv"}
    study.evaluate(*SEED, "--cause", "none yet", **ask, code=2, says="--cause must be one of")
    study.evaluate(*SEED, "--cause", "death", **ask, code=0, says="incidence of death")
    found = SurvivalEvaluation.from_dict(json.loads((study.folder / "e.json").read_text()))
    assert (found.cause, found.guarantee.public_inputs["censored"]) == ("death", "none yet")
    page = ("--evaluation", "@e.json", "--html", "@page.html")
    study.run("explain", "@causes.json", *page, code=0)
    assert "Incidence of death to" in (study.folder / "page.html").read_text()
    frame.assign(seen=frame["days"] / 2.0).to_csv(study.path("which.csv"), index=False)
    late = ("--set", "n_knots=2", "--entry", "seen", "--out", "@late.json")
    study.run(*command, *causes, *late, code=0)
    model = DPCompetingRisks(1.0, columns=columns, max_time=3650.0, **labels)
    later = {"entry": frame["days"] / 2.0}
    same = python(model, frame[columns._names()], frame[["died", "days"]], **later)
    np.testing.assert_allclose(study.release("late").values["coef"], same.values["coef"])
    plan = ("plan", "competing-regression", "--records", "100")
    study.run(*plan, code=2, says="KIND must be survival, weibull, km or logistic here")


def test_a_classifier_is_that_of_python(study):
    study.classes(data="@study.csv", code=4, says="there is no schema")
    (study.folder / "small.toml").write_text(SMALL)
    dropped = ("--drop", "id,smoking,diagnosed", "--drop", "days", "--drop", "died")
    study.classes(*SEED, *dropped, data="@study.csv", code=0)
    columns = PublicColumns.from_toml(study.path("small.toml"))
    model = DPLogisticRegression(1.0, columns=columns, classes=["I", "II", "III"])
    same = python(model, study.frame[["age", "treated"]], study.frame["stage"])
    assert study.release("classes") == same


def test_a_dry_run_says_what_is_charged_and_charges_nothing(study):
    found = study.json(
        *("fit", "km", "@study.csv", *TARGET, *HORIZON, "--epsilon", "0.5"),
        *("--out", "@km.json", "--ledger", "@study.sqlite", "--budget", "2", "--dry-run"),
    )
    assert found["guarantee"]["epsilon"] == 0.5
    assert found["guarantee"]["public_inputs"]["n_records"] == 300
    assert found["ledger"]["remaining"] == 2.0
    assert sorted(path.name for path in study.folder.iterdir()) == ["columns.toml", "study.csv"]
    said = "300 records, epsilon = 1, replace-one, status proved"
    assert "Nothing was spent" in study.survival("--dry-run", code=0, says=said).stdout
    PrivacyAccountant(0.5, path=study.path("study.sqlite"))
    study.km("--ledger", "@study.sqlite", "--dry-run", code=5, says="only 0.5 is left")


def test_a_ledger_is_made_charged_and_exhausted(study):
    ledger = ("--ledger", "@study.sqlite")
    study.km(*ledger, code=6)  # nobody has stated its budget
    study.km(*ledger, "--budget", "2", code=0)
    study.survival(*ledger, "--dataset", "others", code=0)
    study.km(*ledger, out="@again.json", code=0)
    study.km(*ledger, out="@beyond.json", code=5, says="Nothing was charged")
    assert not (study.folder / "beyond.json").exists()
    accountant = PrivacyAccountant(path=study.path("study.sqlite"))
    assert (accountant.spent(), accountant.for_dataset("others").spent()) == (2.0, 1.0)
    study.km(*ledger, "--budget", "3", out="@x", code=6)  # it was made with 2


def test_labels_of_events_may_be_any(study):
    study.km(*SEED, code=0)
    study.write(study.frame.assign(died=study.frame["died"].map({1: 2, 0: 1})), "labels.csv")
    given = ("--event-is", 2, "--censored-is")
    study.km(*SEED, *given, 1, data="@labels.csv", out="@labels.json", code=0)
    assert study.release("labels") == study.release("km")
    study.write(study.frame.assign(died=study.frame["died"].map({1: 2, 0: 1})), "three.csv")
    for lists in (("2,3", "1,0"), ("3", "1", "--event-is", "2")):
        several = ("--event-is", lists[0], "--censored-is", *lists[1:])
        out = f"three{len(lists)}"
        study.km(*SEED, *several, data="@three.csv", out=f"@{out}.json", code=0)
        assert study.release(out) == study.release("km")
    study.km("--event-is", "1,,2", "--censored-is", "0", code=2, says="commas between them")
    # Others than those that were named are censored nowhere.
    study.km(*given, "gone", data="@labels.csv", out="@x", code=3, says="--event-is")


def test_people_are_protected_where_they_are_named(study):
    study.write(pd.concat([study.frame, study.frame.assign(days=1.0)]), "twice.csv")
    study.survival("--person", "id", data="@twice.csv", code=2)  # it is dropped already
    said = "300 people, epsilon = 1, replace-one-person"
    study.km(*SEED, "--person", "id", data="@twice.csv", code=0, says=said)
    study.km(*SEED, out="@once.json", code=0)
    both = [study.release(name).values for name in ("km", "once")]
    assert all(np.array_equal(both[0][name], both[1][name]) for name in both[0])


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_people_who_came_late(study, more):
    """Only estimators that take entries have them; the column is no covariate."""
    seen = study.frame.assign(seen=np.where(study.frame["died"] == 1, 50.0, 0.0))
    study.write(seen, "late.csv")
    late = ("--entry", "seen", *SEED, *more)
    study.survival(*late, data="@late.csv", code=0)
    study.km(*late, data="@late.csv", code=0)
    assert study.release().guarantee.public_inputs["late_entry"] is True
    assert {"entries", "counts"} <= study.release("km").values.keys()
    own = DPKaplanMeierFitter(epsilon=1.0, max_time=3650, random_state=3)
    own.fit(seen["days"], seen["died"], entry=seen["seen"])
    entries = study.release("km").values["entries"]
    np.testing.assert_array_equal(own.release_.values["entries"], entries)
    if not more:
        ask = ("--entry", "seen", "--ledger", "@e.sqlite", "--budget", "3")
        study.evaluate(*ask, "--epsilon", "2", data="@late.csv", code=0, says="C-index")
        content = json.loads((study.folder / "e.json").read_text())
        found = SurvivalEvaluation.from_dict(content)
        assert found.guarantee.public_inputs["late_entry"] is True
        assert all(group.since_entry is not None for group in found.groups)
    study.survival(*late, "--intervals", "0.3", data="@late.csv", out="@errors.json", code=0)
    study.survival(*late, data="@study.csv", out="@x.json", code=3, says="seen")
    given = ("--max-time", "3650", "--epsilon", "1", "--time", "days", "--event", "died")
    said = "--entry is for evaluate, and for fit survival"
    study.run("fit", "weibull", "@late.csv", *given, *late, "--out", "@x.json", code=2, says=said)
    study.run(
        "schema", "@late.csv", "--time", "days", "--entry", "seen", "--out", "@late.toml", code=0
    )
    assert "seen" not in (study.folder / "late.toml").read_text()


@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_a_file_in_other_forms(study, more):
    study.survival(*SEED, code=0)
    study.frame.to_csv(study.folder / "other.csv", index=False, sep=";", decimal=",", na_rep="-99")
    form = ("--separator", ";", "--decimal", ",", "--missing-value", "-99")
    study.survival(*SEED, *form, *more, data="@other.csv", out="@other.json", code=0)
    pytest.importorskip("pyarrow")
    study.frame.to_parquet(study.folder / "study.parquet")
    study.survival(*SEED, *more, data="@study.parquet", out="@parquet.json", code=0)
    first = study.release()
    for other in map(study.release, ("other", "parquet")):
        assert other.parameters == first.parameters
        for name, values in first.values.items():
            np.testing.assert_allclose(other.values[name], values, rtol=1e-9, atol=1e-12)


def test_a_label_is_never_taken_for_a_missing_cell(study):
    # "None" of smoking is a label; in another column it is missing.
    study.survival(code=0)
    assert "smoking_None" in study.release().feature_names
    study.frame.loc[0, "stage"] = "None"
    study.write(study.frame)
    study.survival(out="@other.json", code=3, says="column 'stage'")


@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_strata_are_a_category_of_the_schema(study, more):
    study.survival(*SEED, "--strata", "stage", *more, code=0)
    release = study.release()
    assert release.parameters["strata"] == "stage"
    assert not any(name.startswith("stage") for name in release.feature_names)
    if not more:
        assert release == hazard(study, strata="stage")
    dry = ("--strata", "stage", "--dry-run", *more)
    study.survival(*dry, out="@dry.json", code=0, says="Nothing was spent")
    study.survival("--strata", "age", out="@x.json", code=2, says="strata must name a category")
    study.survival("--set", "strata=stage", out="@x.json", code=2, says="use --strata")
    given = ("--max-time", "3650", "--epsilon", "1", "--time", "days", "--event", "died")
    study.run(
        *("fit", "km", "@study.csv", *given, "--strata", "stage", "--out", "@x.json"),
        code=2,
        says="--strata is not for km",
    )


def test_settings_are_parameters_of_the_estimator(study):
    for text, says in (
        ("n_knots", "NAME=VALUE"),
        *((f"{name}=1", "must name one of") for name in ("nothing", "accountant")),
        ("random_state=1", "use --seed"),
        ("inference_share=0.2", "use --intervals"),
        ("epsilon=2", "use --epsilon"),
        ("n_knots=0", "n_knots"),
        ("method=magic", "method"),
        *((f"method__{name}=1", "--set method=psgld") for name in ("n_epochs", "nothing")),
    ):
        study.survival("--set", text, code=2, says=says)
    assert not (study.folder / "model.json").exists()
    chain = ("--set", "method=psgld", "--set")
    study.survival(*chain, "method__n_epochs=1", code=2)
    study.survival(*SEED, *chain, "method__n_epochs=150", code=0)
    assert study.release().guarantee.public_inputs["n_steps"] == 150


def test_options_that_break_a_rule_are_named(study):
    for more, says in [
        (("--event-is", "dead"), "--censored-is"),
        (("--event-is", "1", "--censored-is", "1"), "be different labels"),
        (("--all-events",), "either --event or --all-events"),
        (("--budget", "2"), "--budget needs --ledger"),
        (("--group", "stage"), "--groups"),
        (("--group", "stage", "--groups", "I,,II"), "--groups"),
        (("--person", "days"), "different columns"),
        (("--epsilon", "nan"), "epsilon"),
        (("--max-time", "-1"), "--max-time must be"),
    ]:
        study.km(*more, code=2, says=says)
    # Of two columns names say which holds events, whatever a command is told.
    study.write(study.frame.rename(columns={"days": "death", "died": "day"}), "named.csv")
    target = ("--time", "death", "--event", "day")
    study.km(data="@named.csv", target=target, code=2, says="rename the columns")
    for arguments in (("fit", "km", "@study.csv", "--epsilon", "0,5"), ("fit", "no"), ("--no",)):
        (line,) = study.run(*arguments, code=2).stderr.splitlines()
        assert line.startswith("skdpsurv: parameter: ")
        study.run(*arguments, "--json", code=2, says='"exit_code": 2')
    assert not (study.folder / "km.json").exists()


def test_each_column_is_described_or_dropped_and_the_target_is_no_covariate(study):
    study.survival("--drop", "nothing", code=3)
    study.survival("--drop", "age", code=2)
    for text, code, says in (("died = [0, 1]", 4, "died"), ("weight = [30, 200]", 3, "weight")):
        (study.folder / "other.toml").write_text(f"[columns]\nage = [30, 95]\n{text}\n")
        study.survival(schema="@other.toml", code=code, says=says)
    given = ("fit", "survival", "@study.csv", *HORIZON, "--schema", "@columns.toml", "--out", "@a")
    study.run(*given, *TARGET, "--epsilon", "1", code=4, says="must describe id")
    every = ("--time", "days", "--all-events", "--epsilon", "2", "--drop", "id,died")
    said = study.run(*given, *every, *SEED, code=0).stderr
    assert said.count("warning") == said.count("not private") == 1


@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_a_code_for_missing_is_one_of_covariates_alone(study, more):
    """A time of 999 days is a time, whatever 999 means in a column of the laboratory."""
    frame = study.frame.assign(days=np.where(study.frame.index < 3, 999.0, study.frame["days"]))
    frame["id"] = [999, *range(1, len(frame))]
    study.write(frame.assign(age=frame["age"].fillna(999)), "coded.csv")
    study.write(frame, "plain.csv")
    given = ("--schema", "@columns.toml", *HORIZON, "--epsilon", "1", "--person", "id", *SEED)
    for name, coded in (("coded", ("--missing-value", "999")), ("plain", ())):
        out = ("--out", f"@{name}.json")
        study.run("fit", "survival", f"@{name}.csv", *TARGET, *given, *out, *more, *coded, code=0)
    one, other = (study.release(name).values for name in ("coded", "plain"))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_fit_starts_from_a_release(study):
    study.survival("--seed", "4", out="@first.json", code=0)
    study.survival(*SEED, "--prior", "@first.json", code=0)
    assert study.release() == hazard(study, prior=study.release("first"))
    for other in ("@study.csv", "@nowhere.json"):
        study.survival("--prior", other, out="@other.json", code=4)


@pytest.mark.slow
def test_releases_add_up(study):
    shares = ("--epsilon", "20", "--intervals", "0.3")
    for name, seed in (("north", "1"), ("south", "2")):
        study.km("--seed", seed, "--set", "n_intervals=12", out=f"@{name}.json", code=0)
        study.survival("--seed", seed, *shares, out=f"@{name}_model.json", code=0)
    curves, models = (
        ("pool", *(f"@{name}{kind}.json" for name in ("north", "south")), "--out")
        for kind in ("", "_model")
    )
    found = study.json(*curves, "@all.json")
    pooled = study.release("all")
    assert pooled == pool_releases([study.release(name) for name in ("north", "south")])
    assert found["guarantee"] == pooled.guarantee.to_dict()
    said = "2 releases, 600 records, epsilon = 2"
    study.run(*curves, "@sum.json", "--overlap", code=0, says=said)
    for names in (("@north.json",), ("@north.json", "@north.json"), ("@north.json", "@study.csv")):
        study.run("pool", *names, "--out", "@none.json", code=4)
    study.run(*curves, "@all.json", code=7)
    study.run(*models, "@model.json", "--effects", "random", code=0)
    members = [study.release(f"{name}_model") for name in ("north", "south")]
    assert study.release() == pool_releases(members, effects="random")


def test_what_means_missing_is_part_of_the_schema_and_of_the_release(study):
    study.write(study.frame.assign(age=study.frame["age"].fillna(999.0)), "coded.csv")
    schema = (study.folder / "columns.toml").read_text()
    (study.folder / "coded.toml").write_text('missing_values = ["999.0"]\n' + schema)
    study.survival(*SEED, out="@a.json", data="@coded.csv", schema="@coded.toml", code=0)
    option = ("--missing-value", "999.0")
    study.survival(*SEED, *option, out="@b.json", data="@coded.csv", code=0)
    a = study.release("a")
    assert a == study.release("b") == Release.from_json(a.to_json())
    assert a.transformer().missing_values == ["999.0"]
    for name in ("coded", "study"):
        given = ("predict", "@a.json", f"@{name}.csv", "--drop", "id", "--out", f"@{name}_out.csv")
        study.run(*given, code=0)
    read = [(study.folder / f"{name}_out.csv").read_text() for name in ("coded", "study")]
    assert read[0] == read[1]


def test_a_schema_may_be_that_of_a_release(study):
    """Of a release the columns are taken alone, and not its strata."""
    fits = {"a": (), "b": ("--strata", "stage"), "c": (), "d": ()}
    schemas = {"a": "@columns.toml", "b": "@a.json", "c": "@b.json", "d": "@a.json"}
    said = {}
    for name, more in fits.items():
        files = {"out": f"@{name}.json", "schema": schemas[name]}
        said[name] = study.survival(*SEED, *more, **files, code=0).stderr
    assert study.release("a") == study.release("c") == study.release("d") != study.release("b")
    taken = "has the columns age, stage, smoking, diagnosed, treated, and nothing else"
    assert [taken in text for text in said.values()] == [False, True, True, True]
    study.km("--group", "stage", "--groups", "I,II,III", code=0)
    (study.folder / "no.json").write_text("{}")
    for name, says in (("km", "states no columns as a schema does"), ("no", "description")):
        study.survival(out="@x.json", schema=f"@{name}.json", code=4, says=says)
