"""skdpsurv fit: the same releases as in Python, and what is charged for them."""

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivacyAccountant,
    PublicColumns,
    Release,
    pool_releases,
)
from tests.cli.study import HORIZON, TARGET

SEED = ("--seed", "3")


def test_a_survival_model_is_that_of_python(study):
    result = study.survival(*SEED, "--link", "cloglog", "--set", "n_knots=5", "--intervals", "0.2")
    assert result.exit_code == 0, result.output
    assert "300 records, epsilon = 1, replace-one, status seeded" in result.stdout
    assert "status proved" not in result.stdout
    assert "but not private" in result.stderr
    columns = PublicColumns.from_toml(study.path("columns.toml"))
    model = DPDiscreteTimeSurvival(
        1.0,
        columns=columns,
        max_time=3650.0,
        link="cloglog",
        n_knots=5,
        inference_share=0.2,
        random_state=3,
    )
    frame = study.frame
    with pytest.warns(UserWarning, match="not private"):
        model.fit(frame[columns._names()], frame[["died", "days"]])
    assert Release.load(study.path("model.json")) == model.release_


def test_curves_of_groups_and_a_weibull_fit_are_those_of_python(study):
    frame = study.frame
    y = frame[["died", "days"]]
    assert study.km(*SEED, "--group", "stage", "--groups", "I,II,III").exit_code == 0
    fitter = DPKaplanMeierFitter(1.0, max_time=3650.0, groups=["I", "II", "III"], random_state=3)
    with pytest.warns(UserWarning, match="not private"):
        fitter.fit(y=y, group=frame["stage"])
    assert Release.load(study.path("km.json")) == fitter.release_
    arguments = ("fit", "weibull", "@study.csv", *TARGET, *HORIZON, *SEED, "--epsilon", "1")
    assert study.run(*arguments, "--out", "@weibull.json").exit_code == 0
    weibull = DPWeibullFitter(1.0, max_time=3650.0, random_state=3)
    with pytest.warns(UserWarning, match="not private"):
        weibull.fit(y=y)
    assert Release.load(study.path("weibull.json")) == weibull.release_


def test_competing_events_are_those_of_python(study):
    rng = np.random.default_rng(1)
    which = study.frame["died"] * rng.integers(1, 3, len(study.frame))
    target = ("--time", "days", "--event", "which")
    arguments = ("fit", "competing", "@which.csv", *target, *HORIZON, *SEED, "--epsilon", "1")
    for name, labels, more in (
        ("numbers", [1, 2], ("--causes", "1,2")),
        ("texts", ["relapse", "death"], ("--causes", "relapse,death", "--censored-is", "none yet")),
    ):
        censored = more[-1] if name == "texts" else 0
        cells = which.map({0: censored, 1: labels[0], 2: labels[1]})
        frame = study.frame.assign(which=cells)
        study.write(frame, "which.csv")
        result = study.run(*arguments, *more, "--out", f"@{name}.json")
        assert result.exit_code == 0, result.output
        fitter = DPAalenJohansenFitter(
            1.0, max_time=3650.0, causes=labels, censored=censored, random_state=3
        )
        with pytest.warns(UserWarning, match="not private"):
            fitter.fit(y=frame[["which", "days"]])
        assert Release.load(study.path(f"{name}.json")) == fitter.release_
        result = study.run("predict", f"@{name}.json", "--times", "365", "--out", f"@{name}.csv")
        assert result.exit_code == 0, result.output
        found = pd.read_csv(study.path(f"{name}.csv")).iloc[0]
        for label in labels:
            expected = fitter.cumulative_density_at_times(365.0, cause=label).iloc[0]
            np.testing.assert_allclose(found[f"incidence_{label}"], expected)
    result = study.run(*arguments, "--causes", "relapse", "--out", "@x.json")
    assert result.exit_code == 3
    assert "death" not in result.stderr
    for more in (("--event-is", "1"), ("--all-events",), ("--censored-is", "0") * 2):
        assert study.run(*arguments, "--causes", "1,2", *more, "--out", "@x").exit_code == 2


def test_a_classifier_is_that_of_python(study):
    result = study.run(
        *("fit", "logistic", "@study.csv", "--target", "stage", "--classes", "I,II,III"),
        *("--schema", "@small.toml", "--epsilon", "1", "--out", "@classes.json", *SEED),
    )
    assert result.exit_code == 4
    assert "there is no schema" in result.stderr
    schema = "[columns]\nage = { bounds = [30, 95], missing = 'midpoint' }\ntreated = [0, 1]\n"
    (study.folder / "small.toml").write_text(schema)
    dropped = ("id", "smoking", "diagnosed", "days", "died")
    result = study.run(
        *("fit", "logistic", "@study.csv", "--target", "stage", "--classes", "I,II,III"),
        *("--schema", "@small.toml", "--epsilon", "1", "--out", "@classes.json", *SEED),
        *(word for name in dropped for word in ("--drop", name)),
    )
    assert result.exit_code == 0, result.output
    columns = PublicColumns.from_toml(study.path("small.toml"))
    model = DPLogisticRegression(1.0, columns=columns, classes=["I", "II", "III"], random_state=3)
    with pytest.warns(UserWarning, match="not private"):
        model.fit(study.frame[["age", "treated"]], study.frame["stage"])
    assert Release.load(study.path("classes.json")) == model.release_


def test_a_dry_run_says_what_is_charged_and_charges_nothing(study):
    found = study.json(
        *("fit", "km", "@study.csv", *TARGET, *HORIZON, "--epsilon", "0.5"),
        *("--out", "@km.json", "--ledger", "@study.sqlite", "--budget", "2", "--dry-run"),
    )
    assert found["guarantee"]["epsilon"] == 0.5
    assert found["guarantee"]["public_inputs"]["n_records"] == 300
    assert found["ledger"]["remaining"] == 2.0
    assert sorted(path.name for path in study.folder.iterdir()) == ["columns.toml", "study.csv"]
    result = study.survival("--dry-run")
    assert result.exit_code == 0, result.output
    assert "300 records, epsilon = 1, replace-one, status proved" in result.stdout
    assert "Nothing was spent" in result.stdout


def test_a_fit_says_what_a_delta_would_gain_where_it_would(study):
    study.write(study.frame[["stage"]].assign(code=[f"c{k % 60}" for k in range(300)]))
    levels = ", ".join(f"'c{k}'" for k in range(60))
    (study.folder / "codes.toml").write_text(f"[columns]\ncode = [{levels}]\n")
    arguments = (
        *("fit", "logistic", "@study.csv", "--target", "stage", "--classes", "I,II,III"),
        *("--schema", "@codes.toml", "--epsilon", "1"),
    )
    said = "With delta=1e-05, which is at most 1/n^2, the noise of coefficients would be 0."
    assert said in study.run(*arguments, "--out", "@a.json", "--dry-run").stdout
    assert said in study.run(*arguments, "--out", "@b.json").stdout
    result = study.run(*arguments, "--out", "@c.json", "--delta", "1e-5")
    assert result.exit_code == 0
    assert "the noise of coefficients" not in result.stdout


def test_a_dry_run_tells_of_an_exhausted_budget(study):
    PrivacyAccountant(0.5, path=study.path("study.sqlite"))
    result = study.km("--ledger", "@study.sqlite", "--dry-run")
    assert result.exit_code == 5
    assert "only 0.5 is left" in result.stderr


def test_a_ledger_is_made_charged_and_exhausted(study):
    ledger = ("--ledger", "@study.sqlite")
    assert study.km(*ledger).exit_code == 6  # nobody has stated its budget
    assert study.km(*ledger, "--budget", "2").exit_code == 0
    assert study.survival(*ledger, "--dataset", "others").exit_code == 0
    assert study.km(*ledger, out="@again.json").exit_code == 0
    result = study.km(*ledger, out="@beyond.json")
    assert result.exit_code == 5
    assert "Nothing was charged" in result.stderr
    assert not (study.folder / "beyond.json").exists()
    accountant = PrivacyAccountant(path=study.path("study.sqlite"))
    assert (accountant.spent(), accountant.for_dataset("others").spent()) == (2.0, 1.0)
    assert study.km(*ledger, "--budget", "3", out="@x").exit_code == 6  # it was made with 2


def test_labels_of_events_may_be_any(study):
    frame = study.frame.assign(died=study.frame["died"].map({1: "dead", 0: "alive"}))
    study.write(frame, "labels.csv")
    labels = ("--event-is", "dead", "--censored-is", "alive")
    assert study.km(*SEED).exit_code == 0
    assert study.km(*SEED, *labels, data="@labels.csv", out="@labels.json").exit_code == 0
    study.write(study.frame.assign(died=study.frame["died"] + 1), "numbers.csv")
    numbers = ("--event-is", "2", "--censored-is", "1")
    assert study.km(*SEED, *numbers, data="@numbers.csv", out="@numbers.json").exit_code == 0
    releases = [Release.load(study.path(f"{n}.json")) for n in ("km", "labels", "numbers")]
    assert releases[0] == releases[1] == releases[2]
    # Others than those that were named are censored nowhere.
    result = study.km("--event-is", "dead", "--censored-is", "gone", data="@labels.csv", out="@x")
    assert result.exit_code == 3
    assert "--event-is" in result.stderr


def test_nobody_may_be_censored(study):
    target = ("--time", "days", "--all-events")
    assert study.km(*SEED, target=target).exit_code == 0
    fitter = DPKaplanMeierFitter(1.0, max_time=3650.0, random_state=3)
    with pytest.warns(UserWarning, match="not private"):
        fitter.fit(y=study.frame["days"])
    assert Release.load(study.path("km.json")) == fitter.release_


def test_people_are_protected_where_they_are_named(study):
    frame = pd.concat([study.frame, study.frame.assign(days=1.0)])
    study.write(frame, "twice.csv")
    result = study.survival("--person", "id", data="@twice.csv")
    assert result.exit_code == 2  # it is dropped already
    result = study.km(*SEED, "--person", "id", data="@twice.csv")
    assert result.exit_code == 0, result.output
    assert "300 people, epsilon = 1, replace-one-person" in result.stdout
    assert study.km(*SEED, out="@once.json").exit_code == 0
    both = [Release.load(study.path(name)).values for name in ("km.json", "once.json")]
    assert all(np.array_equal(both[0][name], both[1][name]) for name in both[0])


@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_a_file_in_other_forms(study, more):
    assert study.survival(*SEED).exit_code == 0
    study.frame.to_csv(study.folder / "other.csv", index=False, sep=";", decimal=",", na_rep="-99")
    form = ("--separator", ";", "--decimal", ",", "--missing-value", "-99")
    result = study.survival(*SEED, *form, *more, data="@other.csv", out="@other.json")
    assert result.exit_code == 0, result.output
    pytest.importorskip("pyarrow")
    study.frame.to_parquet(study.folder / "study.parquet")
    result = study.survival(*SEED, *more, data="@study.parquet", out="@parquet.json")
    assert result.exit_code == 0, result.output
    names = ("model.json", "other.json", "parquet.json")
    first, *others = (Release.load(study.path(name)) for name in names)
    for other in others:
        assert other.parameters == first.parameters
        for name, values in first.values.items():
            np.testing.assert_allclose(other.values[name], values, rtol=1e-9, atol=1e-12)


def test_a_label_is_never_taken_for_a_missing_cell(study):
    # "None" of smoking is a label; in another column it is missing.
    frame = study.frame.assign(stage=study.frame["stage"].where(study.frame.index > 0, "None"))
    study.write(frame, "missing.csv")
    result = study.survival(data="@missing.csv")
    assert result.exit_code == 3
    assert "column 'stage'" in result.stderr
    assert study.survival().exit_code == 0
    release = Release.load(study.path("model.json"))
    assert "smoking_None" in release.feature_names


def test_settings_are_parameters_of_the_estimator(study):
    for text, says in (
        ("n_knots", "NAME=VALUE"),
        ("nothing=1", "must name one of"),
        ("random_state=1", "use --seed"),
        ("inference_share=0.2", "use --intervals"),
        ("epsilon=2", "use --epsilon"),
        ("accountant=1", "must name one of"),
        ("n_knots=0", "n_knots"),
        ("method=magic", "method"),
        ("method__n_epochs=400", "must go with --set method=psgld"),
        ("method__nothing=1", "must go with --set method=psgld"),
    ):
        result = study.survival("--set", text)
        assert result.exit_code == 2, text
        assert says in result.stderr
    assert not (study.folder / "model.json").exists()


def test_methods_have_parameters_of_their_own(study):
    chain = ("--set", "method=psgld", "--set", "method__n_epochs=150")
    assert study.survival(*chain[:2], "--set", "method__n_epochs=1").exit_code == 2
    result = study.survival(*SEED, *chain)
    assert result.exit_code == 0, result.stderr
    found = Release.load(study.folder / "model.json").guarantee.public_inputs
    assert (found["sampler"], found["n_steps"]) == ("mala", 150)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--event-is", "dead"), "--censored-is"),
        (("--event-is", "1", "--censored-is", "1"), "must differ"),
        (("--all-events",), "either --event or --all-events"),
        (("--budget", "2"), "--budget needs --ledger"),
        (("--group", "stage"), "--groups"),
        (("--group", "stage", "--groups", "I,,II"), "--groups must be labels"),
        (("--person", "days"), "different columns"),
        (("--epsilon", "0"), "epsilon"),
        (("--epsilon", "nan"), "epsilon"),
        (("--max-time", "-1"), "max_time"),
    ],
)
def test_options_that_break_a_rule_are_named(study, more, says):
    result = study.km(*more)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())
    assert not (study.folder / "km.json").exists()


def test_each_column_is_described_or_dropped_and_the_target_is_no_covariate(study):
    result = study.run(
        *("fit", "survival", "@study.csv", *TARGET, *HORIZON, "--schema", "@columns.toml"),
        *("--epsilon", "1", "--out", "@model.json"),
    )
    assert result.exit_code == 4
    assert "must describe id" in result.stderr
    (study.folder / "target.toml").write_text("[columns]\nage = [30, 95]\ndied = [0, 1]\n")
    result = study.survival(schema="@target.toml")
    assert result.exit_code == 4
    assert "must not describe died" in result.stderr
    (study.folder / "more.toml").write_text("[columns]\nage = [30, 95]\nweight = [30, 200]\n")
    result = study.survival(schema="@more.toml")
    assert result.exit_code == 3
    assert "must have the column(s) weight" in result.stderr
    assert study.survival("--drop", "nothing").exit_code == 3
    assert study.survival("--drop", "age").exit_code == 2


@pytest.mark.parametrize("more", [(), ("--dask",)])
def test_a_code_for_missing_is_one_of_covariates_alone(study, more):
    """A time of 999 days is a time, whatever 999 means in a column of the laboratory."""
    frame = study.frame.assign(days=np.where(study.frame.index < 3, 999.0, study.frame["days"]))
    frame["id"] = [999, *range(1, len(frame))]
    study.write(frame.assign(age=frame["age"].fillna(999)), "coded.csv")
    study.write(frame, "plain.csv")
    person = ("--person", "id", *SEED, *more)
    for name, coded in (("coded", ("--missing-value", "999")), ("plain", ())):
        given = ["--schema", "@columns.toml", *HORIZON, "--epsilon", "1", "--out", f"@{name}.json"]
        result = study.run("fit", "survival", f"@{name}.csv", *TARGET, *given, *person, *coded)
        assert result.exit_code == 0, result.output
    one, other = (Release.load(study.path(f"{name}.json")).values for name in ("coded", "plain"))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_columns_named_as_each_other_are_refused(study):
    """Of two columns names say which holds events, whatever a command is told."""
    study.write(study.frame.rename(columns={"days": "death", "died": "day"}), "named.csv")
    result = study.km(data="@named.csv", target=("--time", "death", "--event", "day"))
    assert result.exit_code == 2
    assert "rename the columns" in result.stderr


def test_all_events_is_said_once(study):
    given = ["--schema", "@columns.toml", *HORIZON, "--epsilon", "2", "--drop", "id,died"]
    result = study.run(
        "fit",
        "survival",
        "@study.csv",
        "--time",
        "days",
        "--all-events",
        *given,
        "--out",
        "@a.json",
    )
    assert result.exit_code == 0, result.output
    assert "warning" not in result.stderr


def test_a_fit_starts_from_a_release(study):
    assert study.survival("--seed", "4", out="@first.json").exit_code == 0
    result = study.survival(*SEED, "--prior", "@first.json")
    assert result.exit_code == 0, result.output
    columns = PublicColumns.from_toml(study.path("columns.toml"))
    prior = Release.load(study.path("first.json"))
    model = DPDiscreteTimeSurvival(
        1.0, columns=columns, max_time=3650.0, prior=prior, random_state=3
    )
    frame = study.frame
    with pytest.warns(UserWarning, match="not private|promises nothing"):
        model.fit(frame[columns._names()], frame[["died", "days"]])
    assert Release.load(study.path("model.json")) == model.release_
    for other, code in (("@study.csv", 4), ("@nowhere.json", 4)):
        assert study.survival("--prior", other, out="@other.json").exit_code == code


def test_releases_add_up(study):
    bands = ("--set", "n_intervals=12")
    for name, seed in (("north", "1"), ("south", "2")):
        assert study.km("--seed", seed, *bands, out=f"@{name}.json").exit_code == 0
    members = [Release.load(study.path(f"{name}.json")) for name in ("north", "south")]
    found = study.json("pool", "@north.json", "@south.json", "--out", "@all.json")
    pooled = Release.load(study.path("all.json"))
    assert pooled == pool_releases(members)
    assert found["guarantee"] == pooled.guarantee.to_dict()
    shown = study.run("pool", "@north.json", "@south.json", "--out", "@sum.json", "--overlap")
    assert "2 releases, 600 records, epsilon = 2" in shown.stdout
    for names in (("@north.json",), ("@north.json", "@north.json"), ("@north.json", "@study.csv")):
        result = study.run("pool", *names, "--out", "@none.json")
        assert result.exit_code == 4
        assert not (study.folder / "none.json").exists()
    assert study.run("pool", "@north.json", "@south.json", "--out", "@all.json").exit_code == 7


def test_coefficients_add_up(study):
    shares = ("--epsilon", "20", "--intervals", "0.3")
    for name, seed in (("north", "1"), ("south", "2")):
        assert study.survival("--seed", seed, *shares, out=f"@{name}.json").exit_code == 0
    names = ("@north.json", "@south.json")
    found = study.json("pool", *names, "--out", "@all.json", "--effects", "random")
    members = [Release.load(study.path(f"{name}.json")) for name in ("north", "south")]
    assert Release.load(study.path("all.json")) == pool_releases(members, effects="random")
    assert {"Q", "tau2"} <= set(found["heterogeneity"][0])
    page = study.run("explain", "@all.json", "--html", "@page.html")
    assert page.exit_code == 0
    assert "Releases that this one was made of" in (study.folder / "page.html").read_text()


def test_what_means_missing_is_part_of_the_schema_and_of_the_release(study):
    coded = study.frame.drop(columns="id").assign(age=study.frame["age"].fillna(999.0))
    study.write(coded, "coded.csv")
    schema = (study.folder / "columns.toml").read_text()
    (study.folder / "coded.toml").write_text('missing_values = ["999.0"]\n' + schema)
    option = ("--missing-value", "999.0")
    for name, toml, more in (("a", "@coded.toml", ()), ("b", "@columns.toml", option)):
        result = study.run(
            *("fit", "survival", "@coded.csv", *TARGET, *HORIZON, "--schema", toml, *more),
            *("--epsilon", "1", "--seed", "0", "--out", f"@{name}.json"),
        )
        assert result.exit_code == 0, result.output
    a, b = (Release.load(study.path(f"{name}.json")) for name in "ab")
    assert a == b
    assert a.transformer().missing_values == ["999.0"]
    assert Release.from_json(a.to_json()) == a
    study.write(study.frame.drop(columns="id"), "plain.csv")
    for name in ("coded", "plain"):
        arguments = ("predict", "@a.json", f"@{name}.csv", "--out", f"@{name}_out.csv")
        assert study.run(*arguments).exit_code == 0
    read = [(study.folder / f"{name}_out.csv").read_text() for name in ("coded", "plain")]
    assert read[0] == read[1]
