"""What looks wrong in public numbers is asked about before anything is spent; records are not."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    FeaturePartition,
    PrivacyAccountant,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    PublicInputWarning,
)
from tests.support.extensions import extension

N = 600
RNG = np.random.default_rng(3)
X = pd.DataFrame({"wait": RNG.uniform(0, 3650, N), "income": RNG.uniform(0, 9e4, N)})
Y = pd.DataFrame({"died": RNG.random(N) < 0.5, "time": RNG.uniform(0, 5, N)})
SCALED, LABELS = X.to_numpy() / [3650.0, 9e4], Y["died"].astype(int).to_numpy()
DAYS = {"bounds": [0, 3650], "unit": "days"}


def hazard(columns, max_time=5.0, **settings):
    if columns is None:
        settings.setdefault("data_norm", 0.8)
    return DPDiscreteTimeSurvival(max_time=max_time, columns=columns, **settings)


def asked(fit):
    """Return what is asked in a fit, in order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in caught if one.category is PublicInputWarning]


def test_bounds_that_span_a_million_are_asked_about():
    both = {"wait": (0, 3650), "income": (-5e5, 5e5)}
    columns, scaler = PublicColumns(both), PublicBoundsScaler.from_bounds(both)
    logistic = DPLogisticRegression(columns=columns, classes=[0, 1])
    for fit in (
        lambda: hazard(columns).fit(X, Y),
        lambda: hazard(columns).prepare(X, Y).warn(),
        lambda: logistic.fit(X, LABELS),
        lambda: columns.fit(X),
        lambda: make_pipeline(columns, hazard(None)).fit(X, Y),
        lambda: make_pipeline(scaler, hazard(None)).fit(X, Y),
        lambda: hazard(scaler).fit(X, Y),
    ):
        (question,) = asked(fit)
        assert question.startswith("column 'income' has public bounds -500000 to ")
    for wide, n in (((0, 1e6), 1), ((1e-3, 1e3), 1), ((1, 9e5), 0)):
        assert len(asked(lambda: PublicColumns({**both, "income": wide}).fit(X))) == n  # noqa: B023


def test_a_horizon_of_five_beside_bounds_in_days_is_asked_about():
    wide = PublicColumns(dict.fromkeys(X, (0, 1e8)))
    (question,) = asked(lambda: hazard(wide).fit(X, Y))
    assert "(and 1 more like it)" in question
    (question,) = asked(lambda: hazard(PublicColumns({"wait": DAYS, "income": (0, 1e5)})).fit(X, Y))
    assert question.startswith("max_time=5 is short beside column 'wait'")
    # Dates are days whatever the unit of the times is.
    dates = PublicColumns({"seen": {"dates": ["2001-01-01", "2010-12-31"]}})
    rows = pd.DataFrame({"seen": pd.Timestamp("2001-01-01") + pd.to_timedelta(X["wait"], "D")})
    assert asked(lambda: hazard(dates).fit(rows, Y)) == []


@pytest.mark.parametrize("kind", ["hazard", "logistic"])
def test_columns_that_are_skewed_by_their_typical_value_are_asked_about(kind):
    def of(columns, **settings):
        if kind == "hazard":
            return asked(lambda: hazard(columns, 3650.0, **settings).fit(X, Y))
        model = DPLogisticRegression(columns=columns, classes=[0, 1], **settings)
        return asked(lambda: model.fit(X, LABELS))

    def columns(low, high, typical):
        income = {"bounds": [low, high], "typical": typical}
        return PublicColumns({"wait": {"bounds": [0, 3650], "typical": 50}, "income": income})

    (question,) = of(columns(0, 1e5, 2e4))
    assert question.startswith("column 'wait': 50 is typical, and near an end of its ")
    assert "0 to 3650" in question
    assert '{"log": [0, 3650], "offset": 1}' in question
    (question,) = of(make_pipeline(columns(0, 1e5, 6e4), PolynomialFeatures(2)))
    assert question.startswith("column 'wait'")
    assert of(columns(0, 1e5, 9e4)) == [question]
    for low, typical, said in ((100, 630, '{"log": [100, 3650]} '), (-9, 530, '"offset": 10} ')):
        near = PublicColumns({"wait": {"bounds": [low, 3650], "typical": typical}})
        (question,) = asked(lambda c=near: hazard(c, 3650.0).fit(X[["wait"]], Y))
        assert said in question
    far = PublicColumns({"wait": {"bounds": [0, 3650], "typical": 3200}})
    (question,) = asked(lambda: hazard(far, 3650.0).fit(X[["wait"]], Y))
    assert question.endswith("State narrower bounds.")
    logs = {"log": [0, 3650], "offset": 1, "typical": 1}
    for wait in (
        logs,
        {"bounds": [0, 1e4], "typical": 1501},
        {"bounds": [0, 1e4], "typical": 8499},
    ):
        columns_ = PublicColumns({"wait": wait})
        assert asked(lambda c=columns_: hazard(c, 3650.0).fit(X[["wait"]], Y)) == []
    for settings in ({"epsilon": np.inf}, {}):
        usual = PublicColumns({"wait": {"bounds": [0, 3650], "typical": 1000}, "income": (0, 1e5)})
        assert of(columns(0, 1e5, 2e4) if settings else usual, **settings) == []


def test_usual_numbers_are_not():
    for columns, max_time in (
        ({"wait": DAYS, "income": (0, 1e5)}, 3650.0),
        ({"wait": DAYS, "income": (0, 1e5)}, 30.0),
        ({"wait": (0, 3650), "income": (0, 1e5)}, 5.0),
        ({"wait": {"bounds": [0, 100], "unit": "years"}, "income": (1, 9e5)}, 5200.0),
    ):
        assert asked(lambda: hazard(PublicColumns(columns), max_time).fit(X, Y)) == []  # noqa: B023


def test_records_are_not_looked_at():
    columns = PublicColumns({"wait": DAYS, "income": (0, 1e7)})
    questions = [
        asked(lambda rows=rows, y=y: hazard(columns).fit(rows, y))
        for rows, y in ((X, Y), (X * 0.0, Y), (X * 1e9, Y.assign(time=1e9)))
    ]
    assert len(questions[0]) == 2
    assert questions[0] == questions[1] == questions[2]


def test_an_error_instead_of_a_warning_costs_nothing():
    ledger = PrivacyAccountant(epsilon=1.0)
    model = hazard(PublicColumns({"wait": DAYS, "income": (0, 1e5)}), accountant=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PublicInputWarning)
        with pytest.raises(PublicInputWarning, match="max_time"):
            model.fit(X, Y)
    assert ledger.spent() == 0.0


def test_times_without_events_are_asked_about():
    scaled, times = X / 1e5, Y["time"]
    for fit in (
        lambda: hazard(None).fit(scaled, times),
        lambda: hazard(None).fit(scaled, times.astype(int).to_numpy()),
        lambda: DPWeibullFitter(max_time=5.0).fit(scaled, times),
    ):
        (question,) = asked(fit)
        assert question.startswith("y has neither fields nor columns")
    # As in lifelines.
    assert asked(lambda: DPWeibullFitter(max_time=5.0).fit(times)) == []
    assert asked(lambda: DPWeibullFitter(max_time=5.0).fit(times, Y["died"])) == []
    assert asked(lambda: hazard(None).fit(scaled, Y)) == []


CLASSIFIER = {"classes": [0, 1], "data_norm": 1.5}


DESCENT = {"method": "noisy_gd"}


@pytest.mark.parametrize(
    ("n", "settings", "said"),
    [
        (3000, {"epsilon": 9.9}, None),
        (3000, {"epsilon": 10.0}, "epsilon=10 is hardly a limit"),
        (3000, {"epsilon": np.float32(30.0)}, "epsilon=30 is hardly a limit"),
        (3000, {"epsilon": np.inf}, None),
        (3000, {"delta": 1e-8, **DESCENT}, None),
        (3000, {"delta": 1e-4, **DESCENT}, "above 1/n^2 = 1.1e-07"),
        (3000, {"delta": 1.0 / 3000, **DESCENT}, "at or above 1/n = 0.00033"),
        (3000, {"delta": 1e-8, "method": "obj_pert", "epsilon": 2.0}, "delta=1e-08 is not used"),
        (3000, {"delta": 1e-8, "method": "obj_pert", "epsilon": np.inf}, None),
        (101, {}, None),
        (99, {}, "49.5 for each of 2 "),
        (90, {}, "45 for each of 2 coefficients"),
        (90, {"epsilon": 2.0}, None),
        (290, {"classes": [0, 1, 2]}, "48.3 for each of 6 coefficients"),
        (310, {"classes": [0, 1, 2]}, None),
        (90, {"epsilon": np.inf}, None),
    ],
)
def test_what_hardly_limits_anything_and_what_is_hardly_learnt_is_asked_about(n, settings, said):
    rows, labels = np.resize(SCALED, (n, 2)), np.resize(LABELS, n)
    model = DPLogisticRegression(**CLASSIFIER | settings)
    found = asked(lambda: model.fit(rows, labels))
    assert [said in one for one in found] == ([] if said is None else [True])
    if settings.keys() == {"epsilon"} and n == 3000:
        search = PrivateSearchCV(
            DPLogisticRegression(**CLASSIFIER), {"alpha": [0.01, 0.1]}, epsilon=float(model.epsilon)
        )
        assert len(asked(lambda: search.fit(rows, labels))) == len(found)
        curve = DPWeibullFitter(max_time=5.0, epsilon=model.epsilon)
        assert len(asked(lambda: curve.fit(Y["time"]))) == len(found)


def test_few_records_are_asked_about_once_in_a_search_and_in_a_survival_model():
    few, both = X[:90], Y[:90]
    model = hazard(PublicColumns({"wait": (0, 3650), "income": (0, 1e5)}))
    search = PrivateSearchCV(model, {"link": ["logit", "cloglog"]}, epsilon=1.0)
    for fit in (lambda: model.fit(few, both), lambda: search.fit(few, both)):
        (question,) = asked(fit)
        assert "for each of 2 coefficients" in question
    # Curves have no coefficients.
    assert asked(lambda: DPWeibullFitter(max_time=5.0).fit(both["time"])) == []


def test_rows_of_which_nothing_is_stated_are_asked_about():
    model = DPDiscreteTimeSurvival(max_time=5.0)
    links = {"link": ["logit", "cloglog"]}
    for fit in (
        lambda: model.fit(X, Y),
        lambda: model.prepare(X, Y).warn(),
        lambda: make_pipeline(StandardScaler(), model).fit(X, Y),
        lambda: PrivateSearchCV(model, links, epsilon=2.0).fit(X, Y),
    ):
        (question,) = asked(fit)
        assert question.startswith("neither columns nor data_norm is stated")
    assert asked(lambda: clone(model).set_params(data_norm=0.8).fit(X / 1e5, Y)) == []
    assert asked(lambda: clone(model).set_params(epsilon=np.inf).fit(X / 1e5, Y)) == []
    # A search sees the bounds that the steps before it have.
    scaled = make_pipeline(PublicColumns({"wait": (0, 3650), "income": (0, 1e5)}), model)
    grid = {f"dpdiscretetimesurvival__{name}": values for name, values in links.items()}
    assert asked(lambda: PrivateSearchCV(scaled, grid, epsilon=2.0).fit(X, Y)) == []


@pytest.mark.parametrize(
    "kind",
    [
        partial(DPLogisticRegression, classes=[0, 1]),
        partial(PrivateStackingClassifier, classes=[0, 1]),
        extension("poisson").DPPoissonRegressor,
    ],
    ids=["logistic", "stack", "linear"],
)
def test_such_rows_are_taken_to_be_no_longer_than_1(kind):
    model = kind(random_state=0)
    (question,) = asked(lambda: model.fit(SCALED, LABELS))
    assert question.startswith("neither columns nor data_norm is stated")
    stated = clone(model).set_params(data_norm=1.0)
    assert asked(lambda: stated.fit(SCALED, LABELS)) == []
    assert stated.release_.to_json() == model.release_.to_json()
    assert asked(lambda: model.from_release(model.release_).fit(SCALED, LABELS)) == []
    if isinstance(model, PrivateStackingClassifier):
        groups = clone(model).set_params(partition=FeaturePartition(norms=[1.0, 1.0]))
        assert asked(lambda: groups.fit(SCALED, LABELS)) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0.3}, "standard errors need n * epsilon of at least 200"),
        ({"epsilon": 0.3, "inference_share": 0.0}, None),
        ({"epsilon": np.inf}, None),
        ({"epsilon": 0.5}, "less than half of the intervals will be finite"),
        ({"epsilon": 0.9}, None),
    ],
)
def test_intervals_that_cannot_be_had_are_asked_about(settings, said):
    columns = PublicColumns({"wait": (0, 3650), "income": (0, 9e4)})
    model = hazard(columns, **{"inference_share": 0.2, **settings})
    found = [words for words in asked(lambda: model.fit(X, Y)) if "inference_share" in words]
    assert [said in one for one in found] == ([] if said is None else [True])


@pytest.mark.parametrize(
    ("n_features", "settings", "is_said"),
    [
        (40, {}, True),
        (40, {"epsilon": 5.0}, False),
        (40, {"epsilon": 0.3}, False),
        (39, {}, False),
        (40, {"delta": 1e-6}, False),
        (40, {"method": "obj_pert"}, False),
        (40, {"epsilon": np.inf}, False),
    ],
)
def test_a_delta_that_would_gain_much_is_asked_about(n_features, settings, is_said):
    rows = RNG.uniform(-0.1, 0.1, (N, n_features))
    for kind, target, options in (
        (DPDiscreteTimeSurvival, Y, {"max_time": 5.0, "data_norm": 0.8}),
        (DPLogisticRegression, LABELS, CLASSIFIER),
    ):
        found = kind(**options | settings).prepare(rows, target).warnings
        said = [one for one in found if "a delta gained" in one]
        assert [f"with {n_features} features" in one for one in said] == [True] * is_said
        assert all("1/n^2 = 2.8e-06" in one for one in said)
