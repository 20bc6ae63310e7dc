"""A release that stands alone predicts elsewhere, from raw rows, what its model predicts here."""

from __future__ import annotations

import json
import math
import pickle
import re
import subprocess
import sys
import textwrap
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    Release,
    make_release,
)
from skdpsurv.data.public_steps import encoded, learned_steps
from skdpsurv.report import explain, formula, units
from tests.support import checks
from tests.support.registry import (
    MAX_TIME,
    PRIVATE,
    RAW,
    WARDS,
    beyond_release,
    frame,
    labelled,
    raw_labelled,
    raw_survival,
)

ASKED = ("predict", "predict_proba", "predict_survival_function")
TABULAR = [
    s
    for s in PRIVATE
    if hasattr(s.kind, "predict") and s.kind not in (DPWeibullFitter, PrivateSearchCV)
]
HAZARD = DPDiscreteTimeSurvival(max_time=MAX_TIME, n_intervals=8)
LOGISTIC = DPLogisticRegression(classes=[0, 1])


def quietly(fit, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*arguments, **options)


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Return all that a model predicts, as bytes."""
    found = {}
    for name in ASKED:
        if hasattr(model, name):
            options = {"return_array": True} if name == "predict_survival_function" else {}
            made = np.asarray(getattr(model, name)(X, **options))
            found[name] = made.tobytes() if made.dtype != object else made.tolist()
    return found


# ---- On another machine.


def far_away(tmp_path: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what releases answer in a new process that has files of releases and rows alone."""
    for place, job in enumerate(jobs):
        job["release"].save(tmp_path / f"{place}.json")
    kept = [{name: job[name] for name in ("rows", "arguments")} for job in jobs]
    (tmp_path / "rows.pickle").write_bytes(pickle.dumps(kept))
    script = """
        import pickle, runpy, sys, warnings
        import numpy as np
        from pathlib import Path
        from skdpsurv import Release
        warnings.simplefilter("ignore")
        runpy.run_path(sys.argv[1])  # an estimator of somebody else
        found = []
        for place, job in enumerate(pickle.loads(Path("rows.pickle").read_bytes())):
            release = Release.load(f"{place}.json")
            asked = release.to_estimator(**job["arguments"]) if job["arguments"] else release
            kind = release.kinds[release.estimator]
            answers = {}
            for name in ("predict", "predict_proba", "predict_survival_function"):
                if hasattr(asked if job["arguments"] else kind, name):
                    more = {"return_array": True} if name.startswith("predict_s") else {}
                    made = np.asarray(getattr(asked, name)(job["rows"], **more))
                    answers[name] = made.tobytes() if made.dtype != object else made.tolist()
            found.append(answers)
        Path("answers.pickle").write_bytes(pickle.dumps(found))
    """
    poisson = Path(__file__).parents[1] / "docs/examples/extending/poisson.py"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(poisson)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return pickle.loads((tmp_path / "answers.pickle").read_bytes())


def of_setting(setting: Any) -> dict[str, Any]:
    data = setting.data()
    model = quietly(setting.make(3).fit, data.X, data.y, **data.options)
    arguments, rows = beyond_release(model, data), data.X
    if model.release_.columns is None and isinstance(rows, pd.DataFrame) and not arguments:
        rows = rows.to_numpy()
    wanted = quietly(answers, model, data.X)
    return {"release": model.release_, "rows": rows, "arguments": arguments, "wanted": wanted}


def pipelines() -> list[tuple[Any, Any]]:
    """Return pipelines of public steps, and the data that they are fitted to."""
    scaler = PublicBoundsScaler(-0.5, 0.5)
    by_name = PublicBoundsScaler.from_bounds(dict.fromkeys(("age", "dose", "size"), (-0.5, 0.4)))
    ward = PublicColumns({"ward": list(WARDS)})
    rest = PublicColumns({name: RAW[name] for name in ("age", "ill", "seen")})
    parts = ColumnTransformer([("ward", ward, ["ward"]), ("rest", rest, ["age", "ill", "seen"])])
    wards = ColumnTransformer([("ward", ward, [1])], remainder="drop")
    kept = ColumnTransformer(
        [("a", make_pipeline(Binarizer(threshold=0.1), scaler), [0, 2])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    stack = PrivateStackingClassifier(classes=[0, 1], n_partitions=2)
    squared = clone(LOGISTIC).set_params(columns=PolynomialFeatures(2))
    return [
        (make_pipeline(scaler, HAZARD), frame()),
        (make_pipeline(by_name, PolynomialFeatures(2, interaction_only=True), HAZARD), frame()),
        (make_pipeline(PublicColumns(RAW, drop=None), Normalizer(), HAZARD), raw_survival()),
        (make_pipeline("passthrough", PublicColumns(RAW), LOGISTIC), raw_labelled()),
        (make_pipeline(parts, stack), raw_labelled()),
        (make_pipeline(wards, LOGISTIC), raw_labelled()),
        (make_pipeline(make_pipeline(kept), Normalizer("l1"), LOGISTIC), labelled()),
        (make_pipeline(scaler, squared), frame_of_labels()),
    ]  # fmt: skip


def frame_of_labels() -> Any:
    data = labelled()
    return type(data)(pd.DataFrame(data.X, columns=["a", "b", "c"]), data.y)


@pytest.mark.slow
def test_round_trip_of_every_setting_to_another_process(tmp_path):
    check_far_away(tmp_path, [of_setting(setting) for setting in TABULAR])


def test_round_trip_to_another_process(tmp_path):
    jobs = [of_setting(setting) for setting in TABULAR if "columns" in setting.name]
    for model, data in pipelines():
        fitted = quietly(clone(model).fit, data.X, data.y)
        if isinstance(fitted[-1], DPDiscreteTimeSurvival):
            rows = data.X
            for step in [step for _, step in fitted.steps[:-1]]:
                rows = step.transform(rows)
            wanted = answers(fitted[-1], rows)
        else:
            wanted = answers(fitted, data.X)
        release = make_release(fitted)
        assert all(name in explain(release) for name in release.feature_names_in or ())
        jobs.append({"release": release, "rows": data.X, "arguments": {}, "wanted": wanted})
    check_far_away(tmp_path, jobs)


def check_far_away(tmp_path, jobs):
    found = far_away(tmp_path, jobs)
    for job, answer in zip(jobs, found, strict=True):
        assert job["wanted"].keys() <= answer.keys() or job["arguments"]
        for name, wanted in job["wanted"].items():
            assert answer[name] == wanted, (job["release"].estimator, name)


def test_a_release_of_a_search_stands_alone():
    data = raw_labelled()
    grid = {"dplogisticregression__alpha": [0.01, 1.0]}
    piped = make_pipeline(PublicColumns(RAW), LOGISTIC)
    search = quietly(PrivateSearchCV(piped, grid, epsilon=4.0, random_state=1).fit, data.X, data.y)
    release = make_release(search)
    assert release.guarantee == search.guarantee_
    assert release.fit_guarantee == search.release_.fit_guarantee
    np.testing.assert_array_equal(release.predict(data.X), search.predict(data.X))


# ---- make_release.


def named(step):
    return " ".join(learned_steps(step))


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        SimpleImputer(),
        # Types that one record may decide change what these make of all.
        SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
        OneHotEncoder(categories=[[0, 1]] * 3, handle_unknown="ignore", sparse_output=False),
        ColumnTransformer([("scaled", PublicBoundsScaler(), lambda X: [0])]),
        ColumnTransformer([("n", Normalizer(), [0])], transformer_weights={"n": 2.0}),
        SelectKBest(k=2),
        FunctionTransformer(),
        TargetEncoder(),
        ColumnTransformer([("half", StandardScaler(), [0])], remainder="passthrough"),
        make_pipeline(PublicBoundsScaler(), StandardScaler()),
    ],
)
def test_learned_steps_void_the_guarantee_and_are_named(step):
    data = labelled()
    model = quietly(make_pipeline(step, clone(LOGISTIC)).fit, data.X, data.y)
    found = re.search("StandardScaler|columns of|transformer_weights", repr(step) + named(step))
    name = found[0] if found else type(step).__name__
    with pytest.warns(PrivacyLeakWarning, match=name):
        release = make_release(model)
    assert release.guarantee.status == "none"
    assert any(name in part for part in release.guarantee.not_covered)
    assert name in release.guarantee.describe()
    assert name in release.guarantee._repr_html_()
    assert release.columns is None
    back = Release.from_json(release.to_json())
    assert back == release
    for rows in (data.X, pd.DataFrame(data.X)):
        with pytest.raises(ValueError, match="learned from records"):
            back.predict(rows)
    behind = model[:-1].transform(data.X)
    np.testing.assert_array_equal(back.to_estimator().predict(behind), model.predict(data.X))


def test_public_steps_change_nothing_of_the_guarantee():
    data = frame()
    model = make_pipeline(PublicBoundsScaler(), clone(HAZARD)).fit(data.X, data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = make_release(model)
    assert release.guarantee == model[-1].guarantee_
    assert release.feature_names_in == ("age", "dose", "size")
    assert release.target_names == ("event", "time")
    assert make_release(model[-1]) == model[-1].release_
    weibull = DPWeibullFitter(max_time=MAX_TIME).fit(data.X, data.y)
    assert make_release(weibull) == weibull.release_


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (make_pipeline(PublicBoundsScaler(), clone(HAZARD)), NotFittedError),
        (clone(HAZARD), NotFittedError),
        (PrivateSearchCV(LOGISTIC, {"alpha": [1.0]}), NotFittedError),
        (make_pipeline(PublicBoundsScaler(), StandardScaler()), TypeError),
        (StandardScaler(), TypeError),
        (None, TypeError),
    ],
)
def test_what_is_no_fitted_private_model_is_refused(model, error):
    with pytest.raises(error):
        make_release(model)


# ---- columns=.


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (StandardScaler(), "learn nothing from records, and StandardScaler may"),
        (make_pipeline(PublicBoundsScaler(), StandardScaler()), "StandardScaler may"),
        (ColumnTransformer([("ages", StandardScaler(), [0])]), "ages \\(StandardScaler\\) may"),
        (OneHotEncoder(), "OneHotEncoder may"),
        (OneHotEncoder(categories=[[1]]), "OneHotEncoder may"),
        (ColumnTransformer([("a", Normalizer(), lambda X: [0])]), "columns of a may"),
        (SimpleImputer(), "SimpleImputer may"),
        (PublicBoundsScaler, "public transformer, such as PublicColumns, got PublicBoundsScaler"),
        ({"age": (0, 1)}, "public transformer, such as PublicColumns, got dict"),
        (PublicBoundsScaler(1, 0), "lower must be smaller"),
        (PublicBoundsScaler([0, 0], 1), "one for each of the 3 columns"),
        (PublicBoundsScaler({"other": 0}, {"other": 1}), "'age'"),
        (PublicColumns({"age": (1, 0)}), "age"),
        (PublicColumns({"other": (0, 1)}), "other"),
        (make_pipeline(PublicBoundsScaler(), PublicColumns({"age": (0, 1)})), "before all other"),
        (ColumnTransformer([("no", PublicBoundsScaler(), ["other"])]), "other"),
        (ColumnTransformer([("none", "drop", ["age"])]), "at least one feature"),
        (PolynomialFeatures(100), "degree"),
    ],
)
def test_columns_are_checked_before_any_record_is_looked_at(columns, message):
    """Of what is public alone: the rows here could not be read."""
    X = pd.DataFrame({name: ["no number"] * 9 for name in ("age", "dose", "size")})
    outcome = checks.fit(clone(HAZARD).set_params(columns=columns), X, None, {})
    assert isinstance(outcome.error, ValueError | TypeError)
    with pytest.raises((ValueError, TypeError), match=message):
        raise outcome.error
    assert outcome.charges == []


def test_columns_are_cloned_and_kept_unfitted():
    data, columns = raw_survival(), PublicColumns(RAW)
    model = clone(HAZARD).set_params(columns=columns).fit(data.X, data.y)
    assert model.columns is columns
    assert not hasattr(columns, "n_features_in_")
    other = clone(model)
    assert other.columns is not columns
    other.set_params(columns__drop=None)
    assert (other.columns.drop, columns.drop) == (None, "first")
    # What is asked later is read as it was in fit.
    before = model.predict(data.X)
    model.set_params(columns=None)
    np.testing.assert_array_equal(model.predict(data.X), before)


def test_columns_in_a_grid_search():
    data = raw_survival()
    grid = {"columns__drop": ["first", None], "columns__missing": ["error", "midpoint"]}
    model = clone(HAZARD).set_params(columns=PublicColumns(RAW))
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(data.X, data.y)
    assert search.best_estimator_.release_.columns is not None
    assert np.isfinite(search.predict(data.X)).all()


def test_many_blocks_are_read_as_one(monkeypatch):
    data = raw_survival()
    model = clone(HAZARD).set_params(columns=PublicColumns(RAW), random_state=3)
    whole = quietly(clone(model).fit, data.X, data.y).release_.values["coef"]
    monkeypatch.setattr("skdpsurv.data.blocks.BLOCK_ROWS", 10)
    parts = quietly(clone(model).fit, data.X, data.y).release_.values["coef"]
    np.testing.assert_allclose(parts, whole, rtol=0.05)


def test_arrays_are_read_in_the_order_of_the_frame_that_was_fitted():
    data = raw_survival()
    X = data.X[["seen", "ward", "age", "ill"]]
    model = clone(HAZARD).set_params(columns=PublicColumns(RAW)).fit(X, data.y)
    wanted = model.predict(X)
    np.testing.assert_array_equal(model.predict(X.to_numpy(dtype=object)), wanted)
    np.testing.assert_array_equal(model.release_.predict(data.X), wanted)
    np.testing.assert_array_equal(model.release_.predict(X.to_numpy().tolist()), wanted)


def test_polars_frames():
    polars = pytest.importorskip("polars")
    data = raw_survival()
    X = polars.DataFrame({name: data.X[name].tolist() for name in data.X})
    seeded = clone(HAZARD).set_params(columns=PublicColumns(RAW), random_state=3)
    model = quietly(clone(seeded).fit, X, data.y)
    same = quietly(clone(seeded).fit, data.X, data.y)
    assert model.release_ == same.release_
    wanted = same.predict(data.X)
    np.testing.assert_array_equal(model.predict(X), wanted)
    np.testing.assert_array_equal(model.release_.predict(X[X.columns[::-1]]), wanted)
    with_gaps = X.with_columns(polars.lit(None).alias("ward"), polars.lit(None).alias("seen"))
    assert np.isfinite(model.predict(with_gaps)).all()


def test_a_stack_may_not_be_shrunk_towards_columns_that_were_read_otherwise():
    data = raw_labelled()
    stack = PrivateStackingClassifier(classes=[0, 1], n_partitions=2, columns=PublicColumns(RAW))
    theirs = quietly(stack.fit, data.X, data.y).release_
    again = clone(stack).set_params(prior=theirs, columns=theirs.transformer())
    quietly(again.fit, data.X, data.y)
    other = PublicColumns({**RAW, "age": (-0.5, 0.6)})
    for columns, X in ((other, data.X), (None, np.zeros((47, theirs.n_features)))):
        with pytest.raises(ValueError, match=r"columns=prior\.transformer"):
            clone(stack).set_params(prior=theirs, columns=columns).fit(X, data.y)


# ---- Rows that somebody has.


@pytest.fixture(scope="module")
def release():
    data = raw_survival()
    model = clone(HAZARD).set_params(columns=PublicColumns(RAW), random_state=3)
    return quietly(model.fit, data.X, data.y).release_


TABLES = {
    "missing": (lambda X: X.drop(columns="ward"), "column\\(s\\) ward"),
    "renamed": (lambda X: X.rename(columns={"ward": "Ward"}), "column\\(s\\) ward"),
    "extra": (lambda X: X.assign(other=1), "does not know: other"),
    "twice": (lambda X: pd.concat([X, X[["age"]]], axis=1), "two columns of one name"),
    "category": (lambda X: X.assign(ward="south"), "'ward'"),
    "text": (lambda X: X.assign(age="old"), "'age'"),
    "infinity": (lambda X: X.assign(age=np.inf), "'age'"),
    "no date": (lambda X: X.assign(seen="yesterday"), "'seen'"),
    "two": (lambda X: X.assign(ill=2), "'ill'"),
    "narrow": (lambda X: X.to_numpy(dtype=object)[:, :3], "3 features, but"),
    "flat": (lambda X: X["age"].to_numpy(), "2D array"),
    "empty": (lambda X: X.iloc[:0], "."),
    "nothing": (lambda X: None, "."),
    "a word": (lambda X: "rows", "."),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("method", ["predict", "predict_survival_function"])
def test_tables_that_are_none_of_its_own_are_refused(release, name, method):
    change, message = TABLES[name]
    table = change(raw_survival().X)
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(release, method)(table)


def test_targets_are_ignored_and_bounds_kept(release):
    data = raw_survival()
    table = data.X.assign(**{name: data.y[name] for name in data.y.dtype.names})
    np.testing.assert_array_equal(release.predict(table), release.predict(data.X))
    beyond = data.X.assign(age=7.0, seen="2050-01-01")
    np.testing.assert_array_equal(
        release.predict(beyond), release.predict(data.X.assign(age=0.5, seen="2010-12-31"))
    )
    with pytest.raises(ValueError, match="age, seen is not"):
        release.predict(beyond, strict=True)
    release.predict(data.X, strict=True)


def test_without_columns_frames_are_refused_and_arrays_taken():
    data = frame()
    model = quietly(clone(HAZARD).fit, data.X, data.y)
    with pytest.raises(ValueError, match="does not say what its columns hold"):
        model.release_.predict(data.X)
    wanted = model.predict(data.X)
    np.testing.assert_array_equal(model.release_.predict(data.X.to_numpy()), wanted)


@pytest.mark.parametrize("setting", [s for s in PRIVATE if ": raw columns" in s.name], ids=str)
def test_what_is_said_of_a_release(setting):
    """In words, as formula and per unit; or why not."""
    data = setting.data()
    release = quietly(setting.make(3).fit, data.X, data.y, **data.options).release_
    said = explain(release)
    for word in (*release.feature_names_in, "-0.5 to 0.5", "epsilon", "Not covered"):
        assert word in said
    for ask in (formula, units):
        if re.search("Hybrid|Histogram|Stacking|Poisson", setting.name):
            continue
        assert "age" in str(ask(release))


def test_units_of_raw_columns(release):
    table, coef = units(release), release.values["coef"]
    assert table.loc[("age", ""), "coef"] == pytest.approx(coef[0] / 0.5)
    assert table.loc[("age", ""), "unit"] == "years"
    assert table.loc[("ward", "west"), "coef"] == pytest.approx(coef[1])
    names = release.feature_names
    assert names[:4] == ["age", "ward_west", "ward_north", "ward_missing"]


# ---- Files.


def test_files_are_whole_and_not_overwritten(release, tmp_path):
    path = tmp_path / "model.json"
    release.save(path)
    assert Release.load(path) == release
    assert Release.load(str(path)) == release
    text = path.read_text()
    with pytest.raises(FileExistsError):
        release.save(path)
    assert path.read_text() == text
    with pytest.raises(FileNotFoundError):
        release.save(tmp_path / "no folder" / "model.json")
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_a_file_system_without_links(release, tmp_path, monkeypatch):
    def refuse(*paths):
        raise OSError("no links here")

    monkeypatch.setattr("os.link", refuse)
    release.save(tmp_path / "model.json")
    assert Release.load(tmp_path / "model.json") == release
    with pytest.raises(FileExistsError):
        release.save(tmp_path / "model.json")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{", b"[1]", b'{"schema_version": 2}'])
def test_files_that_are_no_releases(content, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="Release"):
        Release.load(path)


# ---- The layout.

ROOT = Path(__file__).parents[1]


@checks.each(
    [s if s.representative or "columns" in s.name else replace(s, slow=True) for s in PRIVATE]
)
def test_releases_keep_to_the_published_schema(setting):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs/schemas/release-2.json").read_text())
    check = jsonschema.Draft202012Validator(schema)
    data = setting.data()
    model = quietly(setting.make(3).fit, data.X, data.y, **data.options)
    content = json.loads(model.release_.to_json())
    check.validate(content)
    for name in content:
        with pytest.raises(ValueError, match="Release" if name == "schema_version" else name):
            Release.from_json(json.dumps({k: v for k, v in content.items() if k != name}))
        assert not check.is_valid({k: v for k, v in content.items() if k != name})
    assert not check.is_valid({**content, "more": 1})


def test_all_that_columns_may_say_is_in_the_published_schema():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs/schemas/release-2.json").read_text())
    columns = PublicColumns(
        {
            "age": {"bounds": [0, 90], "unit": "years", "missing": "midpoint", "typical": 63},
            "opened": {
                "dates": ["2001-01-01", "2010-12-31"],
                "format": "%d.%m.%Y",
                "typical": "2009-07-04",
            },
            "stage": {"categories": ["I", "II"], "typical": "II", "missing": "category"},
            "treated": {"boolean": True, "typical": True},
        },
        missing_values=["-99"],
    )
    model = DPLogisticRegression(epsilon=math.inf, classes=[0, 1], columns=columns)
    release = model.fit(pd.concat([columns.example()] * 30), [0, 1] * 15).release_
    content = json.loads(release.to_json())
    jsonschema.Draft202012Validator(schema).validate(content)
    again = Release.from_json(json.dumps(content)).transformer()
    pd.testing.assert_frame_equal(again.example(), columns.example())


@pytest.mark.parametrize("name", json.loads((ROOT / "tests/releases_v1.json").read_text()))
def test_files_of_version_1_still_load(name):
    kept = json.loads((ROOT / "tests/releases_v1.json").read_text())[name]
    setting = next(setting for setting in PRIVATE if str(setting) == name)
    release, data, arguments = Release.from_json(json.dumps(kept["release"])), setting.data(), {}
    assert release.schema_version == 2
    assert release.columns is None
    if "public" in data.options:
        public = data.options["public"]
        arguments = {"X": data.X[public], "y": data.y[public]}
    model = release.to_estimator(**arguments)
    if isinstance(model, DPWeibullFitter):
        found = model.predict([1.0, 5.0])
    else:
        found = model.predict(data.X[:3])
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, kept["predicted"], rtol=1e-12)
    else:
        assert found.tolist() == kept["predicted"]
    assert Release.from_json(release.to_json()) == release


def test_pipelines_do_not_hide_what_they_are_made_of():
    """A subclass may do anything."""

    class Mine(PublicBoundsScaler):
        pass

    class Pipe(Pipeline):
        pass

    data = labelled()
    for step in (Mine(), Pipe([("scaler", PublicBoundsScaler())])):
        with pytest.raises(ValueError, match="learn nothing"):
            clone(LOGISTIC).set_params(columns=step).fit(data.X, data.y)


def test_steps_that_were_changed_after_the_fit_are_noticed():
    data = labelled()
    model = quietly(make_pipeline(PublicBoundsScaler(), clone(LOGISTIC)).fit, data.X, data.y)
    model[0].set_params(upper=2.0)
    make_release(model)  # it learned nothing: that is what the pipeline predicts with, too
    parts = ColumnTransformer([("imputed", SimpleImputer(), [0, 1, 2])])
    model = quietly(make_pipeline(parts, clone(LOGISTIC)).fit, data.X, data.y)
    model[0].set_params(imputed=Normalizer())
    with pytest.warns(PrivacyLeakWarning, match="imputed"):
        assert make_release(model).guarantee.status == "none"
    parts = ColumnTransformer([("scaled", PublicBoundsScaler(), [0, 1, 2])])
    model = quietly(make_pipeline(parts, clone(LOGISTIC)).fit, data.X, data.y)
    model[0].set_params(scaled=PublicBoundsScaler(0.0, 9.0))
    with pytest.raises(ValueError, match="as they were when it was fitted"):
        make_release(model)


@pytest.mark.parametrize("other", ["x", None, 2.5, 2**60, True, np.float32(0.1), 10.0**300])
@pytest.mark.parametrize("container", ["list", "pandas", "polars", "objects"])
@pytest.mark.parametrize(
    "columns",
    [
        PublicColumns({"k": {"categories": [1, 2, 2**60], "missing": "category"}}, drop=None),
        PublicColumns({"k": {"bounds": [0, 3], "missing": "midpoint"}}),
        Binarizer(threshold=1.5),
        make_pipeline(PolynomialFeatures(3), Normalizer()),
        ColumnTransformer([("n", Normalizer(), [0])], remainder="passthrough"),
    ],
    ids=lambda columns: type(columns).__name__,
)
def test_no_record_decides_how_others_are_read(columns, container, other):
    """Whatever one cell holds, rows of others are what they were, or all is refused."""
    cells = [1, 2, 1]
    kinds = {"list": lambda c: [[one] for one in c], "pandas": lambda c: pd.DataFrame({"k": c})}
    kinds["objects"] = lambda c: np.array([[one] for one in c], dtype=object)
    if container == "polars":
        polars = pytest.importorskip("polars")
        kinds["polars"] = lambda c: polars.DataFrame({"k": polars.Series(c, strict=False)})

    def read(cells):
        return encoded(columns, kinds[container](cells), 1, ["k"])

    before = read([*cells, 1])
    try:
        after = read([*cells, other])
    except (ValueError, TypeError):
        return
    np.testing.assert_array_equal(after[:3], before[:3])


def nested(depth):
    step = None
    for _ in range(depth):
        step = {"step": "Pipeline", "steps": [["a", step]]}
    return step


def leaf(name, **parameters):
    return {"step": name, "parameters": parameters}


POWERS = leaf("PolynomialFeatures", degree=[20, 20], interaction_only=False, include_bias=False)
WIDE = leaf("PolynomialFeatures", degree=20, interaction_only=False, include_bias=True)
HUGE = 10**400
CRAFTED = {
    "no step": {},
    "another step": leaf("StandardScaler"),
    "no parameters": {"step": "Normalizer"},
    "half of the parameters": leaf("PublicBoundsScaler", lower=0.0, upper=1.0),
    "more parameters": leaf("Normalizer", norm="l2", copy=False),
    "another norm": leaf("Normalizer", norm="l3"),
    "a huge bound": leaf("PublicBoundsScaler", lower=-HUGE, upper=HUGE, missing="error"),
    "a huge threshold": leaf("Binarizer", threshold=HUGE),
    "no bounds": leaf("PublicBoundsScaler", lower=None, upper=None, missing="error"),
    "a list as name": {"step": ["Normalizer"], "parameters": {}},
    "no steps": {"step": "Pipeline", "steps": []},
    "names alike": {"step": "Pipeline", "steps": [["a", None], ["a", leaf("Binarizer")]]},
    "deep": nested(30),
    "very deep": nested(300),
    "many steps": {"step": "Pipeline", "steps": [["a", None]] * 3000},
    "a high degree": leaf("PolynomialFeatures", degree=HUGE, interaction_only=0, include_bias=0),
    "too wide": {"step": "Pipeline", "steps": [[f"{k}", WIDE] for k in range(3)]},
    "too wide side by side": {
        "step": "ColumnTransformer",
        "verbose_names": True,
        "parts": [[f"{k}", WIDE, [0, 1, 2, 0, 1, 2]] for k in range(50)],
    },
    "no places": {"step": "ColumnTransformer", "verbose_names": 1, "parts": [["a", None, []]]},
    "places of no column": {
        "step": "ColumnTransformer",
        "verbose_names": True,
        "parts": [["a", None, [7]]],
    },
    "half a place": {
        "step": "ColumnTransformer",
        "verbose_names": True,
        "parts": [["a", None, [0.5]]],
    },
    "columns of another table": leaf(
        "PublicColumns", columns=[{"name": "x", "bounds": [0, 1]}], missing="error", drop=None
    ),
    "a column twice": leaf(
        "PublicColumns", columns=[{"name": "age", "bounds": [0, 1]}] * 3, missing="error", drop=None
    ),
    "a list": [1],
    "a word": "Normalizer",
    "true": True,
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_columns_are_refused_at_once(name):
    data = frame()
    model = quietly(clone(HAZARD).fit, data.X, data.y)
    content = json.loads(model.release_.to_json()) | {"columns": CRAFTED[name]}
    with pytest.raises(ValueError, match=r"columns|bound|Release|lower|norm|degree|threshold"):
        Release.from_json(json.dumps(content))


@pytest.mark.parametrize(
    "changes",
    [
        {"n_features_in": 10**9},
        {
            "n_features_in": 10**7,
            "feature_names_in": None,
            "columns": leaf("Normalizer", norm="l2"),
        },
        {"estimator": []},
        {"estimator": {}},
        {"target_names": 3},
        {"target_names": [3]},
        {"made_with": None},
        {"feature_names_in": ["age", "age", "size"], "columns": leaf("Normalizer", norm="l2")},
        {"feature_names_in": {"age": 1}},
    ],
)
def test_crafted_fields_are_refused_at_once(changes):
    data = frame()
    model = quietly(clone(HAZARD).fit, data.X, data.y)
    content = json.loads(model.release_.to_json()) | changes
    with pytest.raises(ValueError, match=r"Release|release|columns|feature_names_in"):
        Release.from_json(json.dumps(content))


def test_powers_of_powers_are_no_formula():
    steps = {"step": "Pipeline", "steps": [[f"{k}", POWERS] for k in range(8)]}
    values = {"coef": [[1.0]], "intercept": [0.0], "max_residual": 1.0}
    release = Release(
        "DPLogisticRegression", PrivacyGuarantee(1.0), {"classes": [0, 1]}, values, 1, columns=steps
    )
    with pytest.raises(ValueError, match="too long to be written"):
        formula(release)
    assert release.predict(np.array([[1.0]])).tolist() == [1]


def second_by_name(name):
    first = PublicBoundsScaler(-0.5, 0.5)
    return make_pipeline(first, ColumnTransformer([("kept", "passthrough", [name])]))


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        (ColumnTransformer([("out", "drop", ["0"])], remainder="passthrough"), ["1", "2"]),
        (ColumnTransformer([("in", PublicBoundsScaler(), ["2"])]), ["2"]),
        (second_by_name("1"), ["1"]),
        (second_by_name("0"), ["0"]),
    ],
)
def test_columns_are_found_by_their_own_names_in_fit_and_later(columns, kept):
    """Names that look like places, and parts that are left out."""
    data = labelled()
    X = pd.DataFrame(data.X, columns=["1", "0", "2"])
    model = DPLogisticRegression(1e4, classes=[0, 1], columns=columns, random_state=0)
    model = quietly(model.fit, X, data.y)
    plain = DPLogisticRegression(1e4, classes=[0, 1], random_state=0)
    rows = X[kept] * (2.0 if "kept" in repr(columns) else 1.0)
    same = quietly(plain.fit, np.clip(rows, -1, 1).to_numpy(), data.y)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-6)
    back = Release.from_json(model.release_.to_json())
    assert all(name in explain(back) for name in X)
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(rows.to_numpy()))
    assert [name.split("__")[1].strip() for name in back.feature_names] == kept


@pytest.mark.parametrize(
    "cells",
    [
        np.array(["2001-01-01", "NaT", "2002-01-01"], dtype="M8[ns]"),
        np.array([1, 2, 3], dtype="m8[D]"),
        np.array([1, 2, 3 + 1j]),
        ["1", "2", "3"],
        [1.0, 2.0, "3"],
        [1.0, 2.0, None],
    ],
    ids=["dates", "spans", "complex", "text", "a text", "a gap"],
)
@pytest.mark.parametrize("step", [Binarizer(), PolynomialFeatures(2), PublicBoundsScaler()])
def test_what_is_no_number_is_not_taken_for_one(step, cells):
    X = pd.DataFrame({"k": cells})
    for table in (X, X.to_numpy(), X.to_numpy().tolist()):
        with pytest.raises((ValueError, TypeError)):
            encoded(step, table, 1, ["k"])


def test_two_columns_of_one_name_are_refused_before_any_charge():
    """Where they are described; of others, some versions of scikit-learn take them."""
    data = frame()
    X = data.X.set_axis(["age", "age", "size"], axis=1)
    for columns in (None, Normalizer()):
        outcome = checks.fit(clone(HAZARD).set_params(columns=columns), X, data.y, {})
        assert isinstance(outcome.error, ValueError) or columns is None
        assert len(outcome.charges) == (outcome.error is None)
