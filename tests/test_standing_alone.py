"""A release that stands alone predicts elsewhere, from raw rows, what its model predicts here."""

import inspect
import json
import math
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, Normalizer, PolynomialFeatures, StandardScaler

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    Release,
    make_release,
)
from skdpsurv.report import explain
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

OTHERS = (DPWeibullFitter, PrivateSearchCV)
TABULAR = [s for s in PRIVATE if hasattr(s.kind, "predict") and s.kind not in OTHERS]
HAZARD = DPDiscreteTimeSurvival(max_time=MAX_TIME, n_intervals=8)
LOGISTIC = DPLogisticRegression(classes=[0, 1])
ROOT = Path(__file__).parents[1]


def answers(model: Any, X: Any, kind: Any = None) -> dict[str, Any]:
    """Return all that a model predicts, as bytes."""
    found = {}
    for name in ("predict", "predict_proba", "predict_survival_function"):
        if hasattr(kind or model, name):
            options = {"return_array": True} if name == "predict_survival_function" else {}
            made = np.asarray(getattr(model, name)(X, **options))
            found[name] = made.tobytes() if made.dtype != object else made.tolist()
    return found


def far_away(tmp_path: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what releases answer in a new process that has files of releases and rows alone."""
    for place, job in enumerate(jobs):
        job["release"].save(tmp_path / f"{place}.json")
    kept = [{name: job[name] for name in ("rows", "arguments")} for job in jobs]
    (tmp_path / "rows.pickle").write_bytes(pickle.dumps(kept))
    script = f"""
import pickle, runpy, sys, warnings
import numpy as np
from pathlib import Path
from typing import Any
from skdpsurv import Release
{inspect.getsource(answers)}
warnings.simplefilter("ignore")
runpy.run_path(sys.argv[1])  # an estimator of somebody else
found = []
for place, job in enumerate(pickle.loads(Path("rows.pickle").read_bytes())):
    release = Release.load(f"{{place}}.json")
    if job["arguments"]:
        asked, kind = release.to_estimator(**job["arguments"]), None
    else:
        asked, kind = release, release.kinds[release.estimator]
    found.append(answers(asked, job["rows"], kind))
Path("answers.pickle").write_bytes(pickle.dumps(found))
"""
    poisson = str(ROOT / "docs/examples/extending/poisson.py")
    subprocess.run([sys.executable, "-c", script, poisson], cwd=tmp_path, check=True)
    return pickle.loads((tmp_path / "answers.pickle").read_bytes())


def of_setting(setting: Any) -> dict[str, Any]:
    data, model = setting.data(), checks.seeded(setting)
    arguments, rows = beyond_release(model, data), data.X
    if model.release_.columns is None and isinstance(rows, pd.DataFrame) and not arguments:
        rows = rows.to_numpy()
    schema().validate(json.loads(model.release_.to_json()))
    wanted = checks.quietly(answers, model, data.X)
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
    named = pd.DataFrame(labelled().X, columns=["a", "b", "c"])
    squared = clone(LOGISTIC).set_params(columns=PolynomialFeatures(2))
    return [
        (make_pipeline(scaler, HAZARD), frame()),
        (make_pipeline(by_name, PolynomialFeatures(2, interaction_only=True), HAZARD), frame()),
        (make_pipeline(PublicColumns(RAW, drop=None), Normalizer(), HAZARD), raw_survival()),
        (make_pipeline("passthrough", PublicColumns(RAW), LOGISTIC), raw_labelled()),
        (make_pipeline(parts, stack), raw_labelled()),
        (make_pipeline(wards, LOGISTIC), raw_labelled()),
        (make_pipeline(make_pipeline(kept), Normalizer("l1"), LOGISTIC), labelled()),
        (make_pipeline(scaler, squared), replace(labelled(), X=named)),
    ]  # fmt: skip


@pytest.mark.slow
def test_round_trip_of_every_setting_to_another_process(tmp_path):
    check_far_away(tmp_path, [of_setting(setting) for setting in TABULAR])


def test_round_trip_to_another_process(tmp_path):
    jobs = [of_setting(s) for s in TABULAR if "columns" in s.name and s.one_of_its_plan]
    for model, data in pipelines():
        model, rows = checks.quietly(clone(model).fit, data.X, data.y), data.X
        release, asked = make_release(model), model
        if isinstance(model[-1], DPDiscreteTimeSurvival):
            for _, step in model.steps[:-1]:
                rows = step.transform(rows)
            asked = model[-1]
        assert all(name in explain(release) for name in release.feature_names_in or ())
        job = {"release": release, "rows": data.X, "arguments": {}, "wanted": answers(asked, rows)}
        jobs.append(job)
    check_far_away(tmp_path, jobs)


def check_far_away(tmp_path, jobs):
    for job, answer in zip(jobs, far_away(tmp_path, jobs), strict=True):
        assert job["wanted"].keys() <= answer.keys() or job["arguments"]
        for name, wanted in job["wanted"].items():
            assert answer[name] == wanted, (job["release"].estimator, name)


def test_a_release_of_a_search_stands_alone():
    data, piped = raw_labelled(), make_pipeline(PublicColumns(RAW), LOGISTIC)
    grid = {"dplogisticregression__alpha": [0.01, 1.0]}
    search = PrivateSearchCV(piped, grid, epsilon=4.0, random_state=1)
    release = make_release(checks.quietly(search.fit, data.X, data.y))
    assert release.guarantee == search.guarantee_
    assert release.fit_guarantee == search.release_.fit_guarantee
    np.testing.assert_array_equal(release.predict(data.X), search.predict(data.X))


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


def test_what_is_no_fitted_private_model_is_refused():
    scaler, search = PublicBoundsScaler(), PrivateSearchCV(LOGISTIC, {"alpha": [1.0]})
    for model in (make_pipeline(scaler, clone(HAZARD)), clone(HAZARD), search):
        with pytest.raises(NotFittedError):
            make_release(model)
    for other in (make_pipeline(scaler, StandardScaler()), StandardScaler(), None):
        with pytest.raises(TypeError):
            make_release(other)


@pytest.fixture(scope="module")
def release():
    data = raw_survival()
    model = clone(HAZARD).set_params(columns=PublicColumns(RAW), random_state=3)
    return checks.quietly(model.fit, data.X, data.y).release_


TABLES = [
    (lambda X: X.drop(columns="ward"), "column\\(s\\) ward"),
    (lambda X: X.rename(columns={"ward": "Ward"}), "column\\(s\\) ward"),
    (lambda X: X.assign(other=1), "does not know: other"),
    (lambda X: pd.concat([X, X[["age"]]], axis=1), "two columns of one name"),
    (lambda X: X.assign(ward="south"), "'ward'"),
    (lambda X: X.assign(age="old"), "'age'"),
    (lambda X: X.assign(age=np.inf), "'age'"),
    (lambda X: X.assign(seen="yesterday"), "'seen'"),
    (lambda X: X.assign(ill=2), "'ill'"),
    (lambda X: X.to_numpy(dtype=object)[:, :3], "3 features, but"),
    (lambda X: X["age"].to_numpy(), "2D array"),
    (lambda X: None, "."),
    (lambda X: "rows", "."),
]


@pytest.mark.parametrize("method", ["predict", "predict_survival_function"])
def test_tables_that_are_none_of_its_own_are_refused(release, method):
    for change, message in TABLES:
        table = change(raw_survival().X)
        with pytest.raises((ValueError, TypeError), match=message):
            getattr(release, method)(table)


def test_targets_are_ignored_and_bounds_kept(release):
    data = raw_survival()
    table = data.X.assign(**{name: data.y[name] for name in data.y.dtype.names})
    beyond, within = (
        data.X.assign(age=age, seen=day) for age, day in ((7.0, "2050-01-01"), (0.5, "2010-12-31"))
    )
    for one, other in ((table, data.X), (beyond, within)):
        np.testing.assert_array_equal(release.predict(one), release.predict(other))
    with pytest.raises(ValueError, match="age, seen is not"):
        release.predict(beyond, strict=True)
    release.predict(data.X, strict=True)


def test_without_columns_frames_are_refused_and_arrays_taken():
    data = frame()
    model = checks.quietly(clone(HAZARD).fit, data.X, data.y)
    with pytest.raises(ValueError, match="does not say what its columns hold"):
        model.release_.predict(data.X)
    wanted = model.predict(data.X)
    np.testing.assert_array_equal(model.release_.predict(data.X.to_numpy()), wanted)


@pytest.mark.parametrize("links", [True, False])
def test_files_are_whole_and_not_overwritten(release, tmp_path, monkeypatch, links):
    """On file systems without links, too."""
    if not links:
        monkeypatch.setattr("os.link", mock.Mock(side_effect=OSError))
    path = tmp_path / "model.json"
    release.save(path)
    assert Release.load(path) == Release.load(str(path)) == release
    text = path.read_text()
    with pytest.raises(FileExistsError):
        release.save(path)
    assert path.read_text() == text
    with pytest.raises(FileNotFoundError):
        release.save(tmp_path / "no folder" / "model.json")
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_files_that_are_no_releases(tmp_path):
    for content in (b"", b"\xff\xfe", b"{", b"[1]", b'{"schema_version": 2}'):
        (tmp_path / "model.json").write_bytes(content)
        with pytest.raises(ValueError, match="Release"):
            Release.load(tmp_path / "model.json")


def schema():
    jsonschema = pytest.importorskip("jsonschema")
    text = (ROOT / "docs/schemas/release-3.json").read_text()
    return jsonschema.Draft202012Validator(json.loads(text))


@checks.each(PRIVATE)
def test_releases_keep_to_the_published_schema(setting):
    check, content = schema(), json.loads(checks.seeded(setting).release_.to_json())
    check.validate(content)
    for name in content:
        fewer = {k: v for k, v in content.items() if k != name}
        with pytest.raises(ValueError, match="Release" if name == "schema_version" else name):
            Release.from_json(json.dumps(fewer))
        assert not check.is_valid(fewer)
    assert not check.is_valid({**content, "more": 1})


def test_all_that_columns_may_say_is_in_the_published_schema():
    opened = {"dates": ["2001-01-01", "2010-12-31"], "format": "%d.%m.%Y", "typical": "2009-07-04"}
    stated = {
        "age": {"bounds": [0, 90], "unit": "years", "missing": "midpoint", "typical": 63},
        "opened": opened,
        "stage": {"categories": ["I", "II"], "typical": "II", "missing": "category"},
        "treated": {"boolean": True, "typical": True},
    }
    columns = PublicColumns(stated, missing_values=["-99"])
    model = DPLogisticRegression(epsilon=math.inf, classes=[0, 1], columns=columns)
    release = model.fit(pd.concat([columns.example()] * 30), [0, 1] * 15).release_
    schema().validate(json.loads(release.to_json()))
    again = Release.from_json(release.to_json()).transformer()
    pd.testing.assert_frame_equal(again.example(), columns.example())


def test_files_of_version_1_still_load():
    for name, kept in json.loads((ROOT / "tests/releases_v1.json").read_text()).items():
        setting = next(setting for setting in PRIVATE if str(setting) == name)
        release, data = Release.from_json(json.dumps(kept["release"])), setting.data()
        assert (release.schema_version, release.columns) == (3, None)
        public = data.options.get("public")
        arguments = {} if public is None else {"X": data.X[public], "y": data.y[public]}
        model = release.to_estimator(**arguments)
        found = model.predict([1.0, 5.0] if isinstance(model, DPWeibullFitter) else data.X[:3])
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, kept["predicted"], rtol=1e-12)
        else:
            assert found.tolist() == kept["predicted"]
        assert Release.from_json(release.to_json()) == release
