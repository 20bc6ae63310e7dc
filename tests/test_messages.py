"""What somebody does who comes from elsewhere: it works, or it is said what to do instead."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
)

N = 200
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.uniform(-1.0, 1.0, (N, 3)), columns=["age", "dose", "sex"])
TIME = RNG.exponential(5.0, N)
EVENT = RNG.random(N) < 0.6
STRUCTURED = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("e", "?"), ("t", "f8")])
FRAME = pd.DataFrame({"died": EVENT, "days": TIME})


def hazard(**settings):
    return DPDiscreteTimeSurvival(max_time=10.0, random_state=0, **settings)


def fitted(y, rows=X):
    with pytest.warns(UserWarning, match="random_state"):
        return hazard().fit(rows, y)


def test_two_columns_are_a_target_where_it_is_plain_which_is_which():
    expected = fitted(STRUCTURED)
    for y in (
        FRAME[["days", "died"]],
        (EVENT, TIME),
        (FRAME["days"], FRAME["died"]),
        FRAME.convert_dtypes(),
        pl.from_pandas(FRAME),
    ):
        model = fitted(y)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert model.score(X, y) == expected.score(X, FRAME)
        if isinstance(y, tuple):
            wanted = ("event", "time") if y[0] is EVENT else ("died", "days")
            assert model.release_.target_names == wanted


def test_what_is_no_target_is_refused():
    dates = pd.Timestamp("2001-01-01") + pd.to_timedelta(FRAME["days"], "D")
    length = pd.DataFrame({"length": TIME, "gone": EVENT.astype(int)})
    secret = FRAME.assign(died=np.where(EVENT, "secret", "alive"))
    for y, why in (
        *((y, r"Surv\.from_arrays\(event, time\)") for y in (FRAME.to_numpy(), EVENT, dates)),
        ((EVENT[:-1], TIME), r"same length|inconsistent"),
        (length, r"0 and 1\. It was taken to be length, the first of two"),
        ((TIME, EVENT), r"taken to be event, the first of two: name the columns"),
        (secret, "Compare labels with that of an event"),
    ):
        with pytest.raises(ValueError, match=why) as refused:
            hazard().fit(X, y)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("made", [pd.DataFrame, pl.from_pandas])
def test_missing_cells_text_and_unknown_columns_are_named(made):
    missing = made(X.assign(dose=np.where(X["dose"] > 0.9, np.nan, X["dose"])))
    text = made(X.assign(sex="secret"))
    for model, y in ((hazard(), FRAME), (DPLogisticRegression(classes=[0, 1]), EVENT.astype(int))):
        said = r"contains NaN.* column 'dose'\. columns=PublicColumns"
        with pytest.raises(ValueError, match=said):
            model.fit(missing, y)
        with pytest.raises((ValueError, TypeError)) as refused:
            model.fit(text, y)
        assert "secret" not in str(refused.value)
        assert made is pl.from_pandas or "text in column 'sex'" in str(refused.value)
    columns = PublicColumns(dict.fromkeys(["age", "dose", "weight"], (-1, 1)))
    with pytest.raises(ValueError, match="X has no weight; columns does not describe sex"):
        hazard(columns=columns).fit(made(X), FRAME)


@pytest.mark.parametrize(
    "cells",
    [pd.to_timedelta(np.arange(N), "D"), pd.Timestamp("2001-01-01") + pd.to_timedelta(TIME, "D")],
)
def test_dates_and_spans_are_no_numbers_of_nanoseconds(cells):
    rows = X.assign(wait=cells)
    scaler = PublicBoundsScaler.from_bounds(dict.fromkeys(rows, (0.0, 10.0)))
    for refuse in (lambda r: scaler.fit(r), lambda r: hazard().fit(r, FRAME)):
        for table in (rows, pl.from_pandas(rows)):
            with pytest.raises(TypeError, match=r"in wait: PublicColumns takes dates"):
                refuse(table)
        with pytest.raises(TypeError, match="and no dates or spans"):
            refuse(rows[["wait"]].to_numpy())


def test_a_path_is_no_release_and_a_list_no_bounds():
    with pytest.raises(TypeError, match=r"Release\.load\(path\)"):
        DPDiscreteTimeSurvival.from_release("model.json")
    with pytest.raises(TypeError, match="must be a mapping"):
        PublicBoundsScaler.from_bounds([(0.0, 1.0)])


def test_medians_and_means_are_those_of_the_curves():
    model, rows, grid = fitted(FRAME), X[:10], np.linspace(0.0, 10.0, 200_001)
    medians, means = model.predict_median(rows), model.predict_expectation(rows)
    for curve, median, mean in zip(
        model.predict_survival_function(rows), medians, means, strict=True
    ):
        if np.isfinite(median):
            assert curve(median) <= 0.5 < curve(np.nextafter(median, 0.0))
        else:
            assert curve(10.0) > 0.5
        np.testing.assert_allclose(mean, np.mean(curve(grid)[:-1]) * 10.0, rtol=1e-4)
    assert np.isfinite(medians).any()


@pytest.mark.parametrize(
    ("kind", "y"), [("split", (EVENT, TIME)), ("repeat", pl.from_pandas(FRAME))]
)
def test_a_search_takes_the_targets_that_a_fit_takes(kind, y):
    model, grid = DPDiscreteTimeSurvival(max_time=10.0), {"link": ["logit", "cloglog"]}
    search = PrivateSearchCV(model, grid, epsilon=6.0, strategy=kind, random_state=0)
    one, other = (clone(search).fit(X, target).best_estimator_.coef_ for target in (STRUCTURED, y))
    np.testing.assert_array_equal(one, other)


def test_four_columns_make_four_groups_and_rows_five_parts():
    rows, labels = np.column_stack([X, X["age"]]) / 2.0, EVENT.astype(int)
    model = PrivateStackingClassifier(classes=[0, 1]).fit(rows, labels)
    assert [len(group) for group in model.feature_groups_] == [1, 1, 1, 1]
    several = PrivateStackingClassifier(classes=[0, 1], partition="samples").fit(rows, labels)
    assert len(several.low_level_coef_) == 5


@pytest.mark.parametrize(
    ("container", "named"), [("default", False), ("pandas", True), ("polars", True)]
)
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_a_rebuilt_model_predicts_behind_public_steps_that_nobody_has_fitted(container, named):
    rows, bounds = 10.0 * X, dict.fromkeys(X, (-10.0, 10.0))
    scaler, columns = PublicBoundsScaler.from_bounds(bounds), PublicColumns(bounds)
    table = X if named else X.to_numpy()
    rebuilt = DPDiscreteTimeSurvival.from_release(hazard().fit(table, FRAME).release_)
    # scikit-learn's own ask for a fit, which any rows serve for.
    fitted = ColumnTransformer([("scaled", clone(scaler), list(rows))]).fit(rows[:1])
    for step in (scaler, columns, fitted):
        if step is not fitted:
            step.set_output(transform=container)
        found = make_pipeline(step, rebuilt).predict(rows)
        np.testing.assert_allclose(found, rebuilt.predict(table), atol=1e-12)
        assert step is fitted or not hasattr(step, "n_features_in_")
