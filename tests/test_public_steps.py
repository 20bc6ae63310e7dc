"""Steps before a model that learn nothing: which they are, and how they read rows."""

import contextlib
import json
import re

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
)
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
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    Release,
    make_release,
)
from skdpsurv.data.public_steps import encoded, learned_steps
from skdpsurv.report import explain, formula, units
from tests.support import checks
from tests.support.registry import MAX_TIME, RAW, frame, labelled, raw_labelled, raw_survival

HAZARD = DPDiscreteTimeSurvival(max_time=MAX_TIME, n_intervals=8)
LOGISTIC = DPLogisticRegression(classes=[0, 1])


def named(step):
    return " ".join(learned_steps(step))


LEARNED = [
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
]


@pytest.mark.parametrize("step", LEARNED)
def test_learned_steps_void_the_guarantee_and_are_named(step):
    data = labelled()
    model = checks.quietly(make_pipeline(step, clone(LOGISTIC)).fit, data.X, data.y)
    found = re.search("StandardScaler|columns of|transformer_weights", repr(step) + named(step))
    name = found[0] if found else type(step).__name__
    with pytest.warns(PrivacyLeakWarning, match=name):
        release = make_release(model)
    assert release.guarantee.status == "none"
    assert any(name in part for part in release.guarantee.not_covered)
    assert name in release.guarantee._repr_html_()
    assert release.columns is None
    back = Release.from_json(release.to_json())
    assert back == release
    for rows in (data.X, pd.DataFrame(data.X)):
        with pytest.raises(ValueError, match="learned from records"):
            back.predict(rows)
    behind = model[:-1].transform(data.X)
    np.testing.assert_array_equal(back.to_estimator().predict(behind), model.predict(data.X))


def test_columns_are_checked_before_any_record_is_looked_at():
    """Of what is public alone: the rows here could not be read."""
    X = pd.DataFrame({name: ["no number"] * 9 for name in ("age", "dose", "size")})
    for columns, message in [
        (StandardScaler(), "StandardScaler may"),
        (make_pipeline(PublicBoundsScaler(), StandardScaler()), "StandardScaler may"),
        (ColumnTransformer([("ages", StandardScaler(), [0])]), "ages \\(StandardScaler\\) may"),
        (OneHotEncoder(), "OneHotEncoder may"),
        (OneHotEncoder(categories=[[1]]), "OneHotEncoder may"),
        (ColumnTransformer([("a", Normalizer(), lambda X: [0])]), "columns of a may"),
        (SimpleImputer(), "SimpleImputer may"),
        (Mine(), "learn nothing"),
        (Pipe([("scaler", PublicBoundsScaler())]), "learn nothing"),
        (PublicBoundsScaler, "got PublicBoundsScaler"),
        ({"age": (0, 1)}, "got dict"),
        (PublicBoundsScaler(1, 0), "lower must be smaller"),
        (PublicBoundsScaler([0, 0], 1), "one for each of the 3 columns"),
        (PublicBoundsScaler({"other": 0}, {"other": 1}), "'age'"),
        (PublicColumns({"age": (1, 0)}), "age"),
        (PublicColumns({"other": (0, 1)}), "other"),
        (make_pipeline(PublicBoundsScaler(), PublicColumns({"age": (0, 1)})), "before all other"),
        (ColumnTransformer([("no", PublicBoundsScaler(), ["other"])]), "other"),
        (ColumnTransformer([("none", "drop", ["age"])]), "at least one feature"),
        (PolynomialFeatures(100), "degree"),
    ]:
        outcome = checks.fit(clone(HAZARD).set_params(columns=columns), X, None, {})
        assert isinstance(outcome.error, ValueError | TypeError)
        assert re.search(message, str(outcome.error)), outcome.error
        assert outcome.charges == []


class Mine(PublicBoundsScaler):
    """A subclass may do anything."""


class Pipe(Pipeline):
    pass


def test_columns_are_cloned_and_kept_unfitted():
    data, columns = raw_survival(), PublicColumns(RAW)
    model = clone(HAZARD).set_params(columns=columns).fit(data.X, data.y)
    assert model.columns is columns
    assert not hasattr(columns, "n_features_in_")
    other = clone(model).set_params(columns__drop=None)
    assert (other.columns.drop, columns.drop) == (None, "first")
    # What is asked later is read as it was in fit.
    before = model.predict(data.X)
    model.set_params(columns=None)
    np.testing.assert_array_equal(model.predict(data.X), before)
    grid = {"columns__drop": ["first", None], "columns__missing": ["error", "midpoint"]}
    search = GridSearchCV(other, grid, cv=2, error_score="raise").fit(data.X, data.y)
    assert search.best_estimator_.release_.columns is not None


def test_rows_are_read_in_any_container_and_arrays_in_the_order_of_the_fit():
    data = raw_survival()
    X = data.X[["seen", "ward", "age", "ill"]]
    frame = polars.DataFrame({name: X[name].tolist() for name in X})
    seeded = clone(HAZARD).set_params(columns=PublicColumns(RAW), random_state=3)
    model, same = (checks.quietly(clone(seeded).fit, rows, data.y) for rows in (X, frame))
    assert model.release_ == same.release_
    wanted = model.predict(X)
    for rows in (X.to_numpy(dtype=object), frame):
        np.testing.assert_array_equal(model.predict(rows), wanted)
    for rows in (data.X, X.to_numpy().tolist(), frame[frame.columns[::-1]]):
        np.testing.assert_array_equal(model.release_.predict(rows), wanted)
    with_gaps = frame.with_columns(polars.lit(None).alias("ward"), polars.lit(None).alias("seen"))
    assert np.isfinite(model.predict(with_gaps)).all()


def test_a_stack_may_not_be_shrunk_towards_columns_that_were_read_otherwise():
    data = raw_labelled()
    stack = PrivateStackingClassifier(classes=[0, 1], n_partitions=2, columns=PublicColumns(RAW))
    theirs = checks.quietly(clone(stack).fit, data.X, data.y).release_
    stack.set_params(prior=theirs)
    again = clone(stack).set_params(columns=theirs.transformer())
    checks.quietly(again.fit, data.X, data.y)
    other = PublicColumns({**RAW, "age": (-0.5, 0.6)})
    for columns, X in ((other, data.X), (None, np.zeros((47, theirs.n_features)))):
        with pytest.raises(ValueError, match=r"columns=prior\.transformer"):
            clone(stack).set_params(columns=columns).fit(X, data.y)


def test_steps_that_were_changed_after_the_fit_are_noticed():
    data = labelled()

    def changed(step, **parameters):
        model = checks.quietly(make_pipeline(step, clone(LOGISTIC)).fit, data.X, data.y)
        model[0].set_params(**parameters)
        return model

    # It learned nothing: that is what the pipeline predicts with, too.
    make_release(changed(PublicBoundsScaler(), upper=2.0))
    parts = ColumnTransformer([("imputed", SimpleImputer(), [0, 1, 2])])
    with pytest.warns(PrivacyLeakWarning, match="imputed"):
        release = make_release(changed(parts, imputed=Normalizer()))
    assert release.guarantee.status == "none"
    parts = ColumnTransformer([("scaled", PublicBoundsScaler(), [0, 1, 2])])
    with pytest.raises(ValueError, match="as they were when it was fitted"):
        make_release(changed(parts, scaled=PublicBoundsScaler(0.0, 9.0)))


@pytest.mark.parametrize(
    "container",
    [
        lambda cells: [[one] for one in cells],
        lambda cells: np.array([[one] for one in cells], dtype=object),
        lambda cells: pd.DataFrame({"k": cells}),
        lambda cells: polars.DataFrame({"k": polars.Series(cells, strict=False)}),
    ],
)
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
def test_no_record_decides_how_others_are_read(columns, container):
    """Whatever one cell holds, rows of others are what they were, or all is refused."""

    def read(last):
        return encoded(columns, container([1, 2, 1, last]), 1, ["k"])

    before, n_read = read(1), 0
    for other in ("x", None, 2.5, 2**60, True, np.float32(0.1), 10.0**300):
        with contextlib.suppress(ValueError, TypeError):
            after = read(other)
            n_read += 1
            np.testing.assert_array_equal(after[:3], before[:3])
    assert n_read > 0


def nested(depth):
    step = None
    for _ in range(depth):
        step = {"step": "Pipeline", "steps": [["a", step]]}
    return step


def leaf(name, **parameters):
    return {"step": name, "parameters": parameters}


def parts(*those):
    return {"step": "ColumnTransformer", "verbose_names": True, "parts": list(those)}


POWERS = leaf("PolynomialFeatures", degree=[20, 20], interaction_only=False, include_bias=False)
WIDE = leaf("PolynomialFeatures", degree=20, interaction_only=False, include_bias=True)
HUGE = 10**400
CRAFTED = [
    {},
    leaf("StandardScaler"),
    {"step": "Normalizer"},
    leaf("PublicBoundsScaler", lower=0.0, upper=1.0),  # half of the parameters
    leaf("Normalizer", norm="l2", copy=False),
    leaf("Normalizer", norm="l3"),
    leaf("PublicBoundsScaler", lower=-HUGE, upper=HUGE, missing="error"),
    leaf("Binarizer", threshold=HUGE),
    leaf("PublicBoundsScaler", lower=None, upper=None, missing="error"),
    {"step": ["Normalizer"], "parameters": {}},
    {"step": "Pipeline", "steps": []},
    {"step": "Pipeline", "steps": [["a", None], ["a", leaf("Binarizer")]]},
    nested(30),
    nested(300),
    {"step": "Pipeline", "steps": [["a", None]] * 3000},
    leaf("PolynomialFeatures", degree=HUGE, interaction_only=0, include_bias=0),
    {"step": "Pipeline", "steps": [[f"{k}", WIDE] for k in range(3)]},  # too wide
    parts(*([f"{k}", WIDE, [0, 1, 2, 0, 1, 2]] for k in range(50))),  # side by side
    parts(["a", None, []]) | {"verbose_names": 1},
    parts(["a", None, [7]]),  # of no column
    parts(["a", None, [0.5]]),
    *(
        leaf("PublicColumns", columns=columns, missing="error", drop=None)
        for columns in ([{"name": "x", "bounds": [0, 1]}], [{"name": "age", "bounds": [0, 1]}] * 3)
    ),
    *([1], "Normalizer", True),
]


FIELDS = [
    {"n_features_in": 10**9},
    {"n_features_in": 10**7, "feature_names_in": None, "columns": leaf("Normalizer", norm="l2")},
    {"estimator": []},
    {"estimator": {}},
    {"target_names": 3},
    {"target_names": [3]},
    {"made_with": None},
    {"feature_names_in": ["age", "age", "size"], "columns": leaf("Normalizer", norm="l2")},
    {"feature_names_in": {"age": 1}},
]


def test_crafted_columns_and_fields_are_refused_at_once():
    data = frame()
    content = json.loads(checks.quietly(clone(HAZARD).fit, data.X, data.y).release_.to_json())
    Release.from_json(json.dumps(content))
    said = r"[Rr]elease|columns|bound|lower|norm|degree|threshold|feature_names_in"
    for changes in (*({"columns": one} for one in CRAFTED), *FIELDS):
        with pytest.raises(ValueError, match=said):
            Release.from_json(json.dumps(content | changes))


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
    model = checks.quietly(model.fit, X, data.y)
    plain = DPLogisticRegression(1e4, classes=[0, 1], random_state=0)
    rows = X[kept] * (2.0 if "kept" in repr(columns) else 1.0)
    same = checks.quietly(plain.fit, np.clip(rows, -1, 1).to_numpy(), data.y)
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-6)
    back = Release.from_json(model.release_.to_json())
    assert all(name in explain(back) for name in X)
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(rows.to_numpy()))
    assert [name.split("__")[1].strip() for name in back.feature_names] == kept


@pytest.mark.parametrize("step", [Binarizer(), PolynomialFeatures(2), PublicBoundsScaler()])
def test_what_is_no_number_is_not_taken_for_one(step):
    for cells in (
        np.array(["2001-01-01", "NaT", "2002-01-01"], dtype="M8[ns]"),
        np.array([1, 2, 3], dtype="m8[D]"),
        np.array([1, 2, 3 + 1j]),
        ["1", "2", "3"],
        [1.0, 2.0, "3"],
        [1.0, 2.0, None],
    ):
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


@pytest.mark.parametrize("selector", [SelectFromModel, RFE, RFECV, SequentialFeatureSelector])
def test_selectors_choose_among_features_and_not_among_described_columns(selector):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(-1, 1, 60), "stage": rng.choice(["I", "II", "III"], 60)})
    columns = PublicColumns({"age": (-1, 1), "stage": ["I", "II", "III"]})
    ledger, y = PrivacyAccountant(100.0), np.arange(60) % 2
    model = DPLogisticRegression(classes=[0, 1], accountant=ledger)
    described = selector(clone(model).set_params(columns=columns))
    for rows in (X, X.assign(stage="I")):
        with pytest.raises(TypeError, match="coefficients are of the features that columns makes"):
            described.fit_transform(rows, y)
    assert ledger.spent() == 0.0
    assert "columns=" in repr(described)
    chosen = make_pipeline(columns, selector(model)).fit(X, y).get_feature_names_out()
    assert set(chosen) <= {"age", "stage_II", "stage_III"}


def test_coefficients_of_products_are_per_unit_of_each_factor():
    """Differences of scores around the middle of the bounds, which are exact for squares."""
    rng, n = np.random.default_rng(0), 200
    X = pd.DataFrame({"age": rng.uniform(20, 90, n), "bmi": rng.uniform(15, 50, n)})
    X["sex"] = rng.choice(["f", "m"], n)
    years, kilos = {"bounds": [20, 90], "unit": "years"}, {"bounds": [15, 50], "unit": "kg/m²"}
    columns = make_pipeline(
        PublicColumns({"age": years, "bmi": kilos, "sex": ["f", "m"]}), PolynomialFeatures(2)
    )
    model = DPDiscreteTimeSurvival(np.inf, max_time=1.0, n_intervals=5, columns=columns)
    model.fit(X, (rng.random(n) < 0.5, rng.random(n)))
    found = units(model.release_)
    np.testing.assert_array_equal(found["coef"], model.summary["coef"])
    coef = dict(zip(model.release_.feature_names, found["coef"], strict=True))

    def score(age, bmi, sex="f"):
        return float(model.predict(pd.DataFrame([[age, bmi, sex]], columns=list(X)))[0])

    assert coef["age"] == pytest.approx((score(57, 32.5) - score(53, 32.5)) / 4)
    squared = score(57, 32.5) - 2 * score(55, 32.5) + score(53, 32.5)
    assert coef["age^2"] == pytest.approx(squared / 8)
    crossed = score(57, 34) - score(57, 32.5) - score(55, 34) + score(55, 32.5)
    assert coef["age bmi"] == pytest.approx(crossed / 3)
    men = score(57, 32.5, "m") - score(57, 32.5) - score(55, 32.5, "m") + score(55, 32.5)
    assert coef["age sex_m"] == pytest.approx(men / 2)
    assert found.loc[("age bmi", ""), "unit"] == "years × kg/m²"
    with pytest.raises(ValueError, match="and these are none: '1', 'age', 'bmi'"):
        units(
            clone(model)
            .set_params(columns=make_pipeline(*columns, Normalizer()))
            .fit(X, (rng.random(n) < 0.5, rng.random(n)))
            .release_
        )
