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
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    Release,
)

N = 200
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.uniform(-1.0, 1.0, (N, 3)), columns=["age", "dose", "sex"])
TIME = RNG.exponential(5.0, N)
EVENT = RNG.random(N) < 0.6
FRAME = pd.DataFrame({"died": EVENT, "days": TIME})


def hazard(**settings):
    return DPDiscreteTimeSurvival(max_time=10.0, random_state=0, **settings)


def fitted(y, rows=X):
    with pytest.warns(UserWarning, match="random_state"):
        return hazard().fit(rows, y)


@pytest.mark.parametrize(
    "y",
    [
        FRAME,
        FRAME[["days", "died"]],
        (EVENT, TIME),
        (FRAME["died"], FRAME["days"]),
        (FRAME["days"], FRAME["died"]),
        FRAME.convert_dtypes(),
        pl.from_pandas(FRAME),
    ],
)
def test_two_columns_are_a_target_where_it_is_plain_which_is_which(y):
    expected = fitted(
        np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("e", "?"), ("t", "f8")])
    )
    model = fitted(y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.score(X, y) == expected.score(X, FRAME)


def test_series_in_a_tuple_keep_their_names():
    assert fitted((FRAME["days"], FRAME["died"])).release_.target_names == ("died", "days")
    assert fitted((EVENT, TIME)).release_.target_names == ("event", "time")


@pytest.mark.parametrize(
    "y",
    [
        np.column_stack([EVENT, TIME]),
        EVENT,
        pd.Timestamp("2001-01-01") + pd.to_timedelta(FRAME["days"], "D"),
    ],
)
def test_what_is_no_target_is_told_how_to_make_one(y):
    with pytest.raises(ValueError, match=r"Surv\.from_arrays\(event, time\)"):
        hazard().fit(X, y)


def test_lengths_of_a_tuple_must_agree():
    with pytest.raises(ValueError, match=r"same length|inconsistent"):
        hazard().fit(X, (EVENT[:-1], TIME))


@pytest.mark.parametrize("kind", [DPWeibullFitter, DPKaplanMeierFitter])
def test_a_frame_of_times_beside_events_is_never_taken_for_times_of_events(kind):
    with pytest.raises(ValueError, match="durations and event_observed by name"):
        kind(max_time=10.0).fit(FRAME[["days"]], FRAME["died"].astype(int))
    assert kind(max_time=10.0).fit(FRAME[["days"]], FRAME).release_ is not None


@pytest.mark.parametrize("wide", [X, pl.from_pandas(X)])
def test_missing_cells_and_text_are_named_by_column(wide):
    pandas = isinstance(wide, pd.DataFrame)
    missing = X.assign(dose=np.where(X["dose"] > 0.9, np.nan, X["dose"]))
    text = X.assign(sex="secret")
    for model, y in ((hazard(), FRAME), (DPLogisticRegression(classes=[0, 1]), EVENT.astype(int))):
        rows = missing if pandas else pl.from_pandas(missing)
        with pytest.raises(
            ValueError, match=r"contains NaN.* column 'dose'\. columns=PublicColumns"
        ):
            model.fit(rows, y)
        rows = text if pandas else pl.from_pandas(text)
        with pytest.raises((ValueError, TypeError)) as refused:
            model.fit(rows, y)
        assert "secret" not in str(refused.value)
        if pandas:
            assert "text in column 'sex'" in str(refused.value)


def test_nobody_is_told_to_drop_rows():
    with pytest.raises(ValueError, match="contains NaN") as refused:
        hazard().fit(X.mask(X > 0.9).to_numpy(), FRAME)
    assert "Rows must not be dropped" in str(refused.value)


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
    for kind in (DPDiscreteTimeSurvival, DPWeibullFitter, DPLogisticRegression):
        with pytest.raises(TypeError, match=r"Release\.load\(path\)"):
            kind.from_release("model.json")
    with pytest.raises(TypeError, match="must be a mapping"):
        PublicBoundsScaler.from_bounds([(0.0, 1.0)])


def test_medians_and_means_are_those_of_the_curves():
    model = fitted(FRAME)
    curves = model.predict_survival_function(X)
    medians, means = model.predict_median(X), model.predict_expectation(X)
    grid = np.linspace(0.0, 10.0, 200_001)
    for curve, median, mean in list(zip(curves, medians, means, strict=True))[:10]:
        if np.isfinite(median):
            assert curve(median) <= 0.5 < curve(np.nextafter(median, 0.0))
        else:
            assert curve(10.0) > 0.5
        np.testing.assert_allclose(mean, np.mean(curve(grid)[:-1]) * 10.0, rtol=1e-4)
    assert np.isfinite(medians).any()


@pytest.mark.parametrize("kind", ["split", "repeat"])
@pytest.mark.parametrize(
    "y", [FRAME, FRAME[["days", "died"]], (EVENT, TIME), pl.from_pandas(FRAME)]
)
def test_a_search_takes_the_targets_that_a_fit_takes(kind, y):
    structured = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("e", "?"), ("t", "f8")])
    searches = [
        PrivateSearchCV(
            DPDiscreteTimeSurvival(max_time=10.0),
            {"link": ["logit", "cloglog"]},
            epsilon=6.0,
            strategy=kind,
            random_state=0,
        ).fit(X, target)
        for target in (structured, y)
    ]
    one, other = (search.best_estimator_.coef_ for search in searches)
    np.testing.assert_array_equal(one, other)


def test_four_columns_make_four_groups_and_a_release_of_them():
    rows, labels = np.column_stack([X, X["age"]]) / 2.0, EVENT.astype(int)
    model = PrivateStackingClassifier(classes=[0, 1]).fit(rows, labels)
    assert [len(group) for group in model.feature_groups_] == [1, 1, 1, 1]
    again = PrivateStackingClassifier.from_release(Release.from_json(model.release_.to_json()))
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    several = PrivateStackingClassifier(classes=[0, 1], partition="samples").fit(rows, labels)
    assert len(several.low_level_coef_) == 5


@pytest.mark.parametrize("container", ["default", "pandas", "polars"])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_a_rebuilt_model_predicts_behind_public_steps_that_nobody_has_fitted(container, named):
    rows = 10.0 * X
    bounds = dict.fromkeys(rows, (-10.0, 10.0))
    steps = [PublicBoundsScaler.from_bounds(bounds), PublicColumns(bounds)]
    table = X if named else X.to_numpy()
    rebuilt = DPDiscreteTimeSurvival.from_release(hazard().fit(table, FRAME).release_)
    for step in steps:
        pipeline = make_pipeline(step.set_output(transform=container), rebuilt)
        np.testing.assert_allclose(pipeline.predict(rows), rebuilt.predict(table), atol=1e-12)
        assert not hasattr(step, "n_features_in_")
    # scikit-learn's own ask for a fit, which any rows serve for.
    columns = ColumnTransformer([("scaled", clone(steps[0]), list(rows))])
    pipeline = make_pipeline(columns.fit(rows[:1]), rebuilt)
    np.testing.assert_allclose(pipeline.predict(rows), rebuilt.predict(table), atol=1e-12)


def test_it_is_said_which_column_was_taken_for_the_event():
    y = pd.DataFrame({"length": TIME, "gone": EVENT.astype(int)})
    with pytest.raises(ValueError, match=r"0 and 1\. It was taken to be length, the first of two"):
        hazard().fit(X, y)
    with pytest.raises(ValueError, match=r"taken to be event, the first of two: name the columns"):
        hazard().fit(X, (TIME, EVENT))
    with pytest.raises(ValueError, match="Compare labels with that of an event"):
        hazard().fit(X, FRAME.assign(died=np.where(EVENT, "secret", "alive")))


def test_columns_that_are_not_described_are_named():
    columns = PublicColumns(dict.fromkeys(["age", "dose", "weight"], (-1, 1)))
    with pytest.raises(ValueError, match="X has no weight; columns does not describe sex"):
        hazard(columns=columns).fit(X, FRAME)
