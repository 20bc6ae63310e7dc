"""Forecasts of accuracy: what is simulated is what was asked, and what comes out is of some use."""

import json
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone

from skdpsurv import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivacyAccountant,
    PublicColumns,
    forecast_accuracy,
)
from skdpsurv.classification.private_classifier import LabelledShape
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.data.shape import Shape
from skdpsurv.dp.guarantee import delta_warnings
from skdpsurv.evaluation import forecast_studies
from skdpsurv.evaluation.forecast import Minimisers, _noise, gain_in_figures, gain_of_delta
from skdpsurv.evaluation.forecast_records import (
    BASELINES,
    HazardTruth,
    Pairs,
    SimulatedTable,
    columns_within,
    plain_columns,
)
from skdpsurv.published import PublishedLogisticRegression
from skdpsurv.reference import fit_cox
from skdpsurv.survival.concordance import concordance_index

QUICK = {"n_repeats": 4, "random_state": 0}
COLUMNS = PublicColumns(
    {
        "age": {"bounds": [20, 90], "unit": "years", "missing": "midpoint"},
        "dose": (0, 10),
        "smoking": {"categories": ["never", "past", "now"], "missing": "category"},
        "grade": [1, 2, 3],
        "treated": {"boolean": True, "missing": "midpoint"},
        "male": bool,
        "entry": {"dates": ["2001-01-01", "2010-12-31"]},
        "seen": {"dates": ["2001-01-01", "2010-12-31"], "missing": "category"},
    }
)


def target(event, time):
    return np.array(list(zip(event, time, strict=True)), dtype="?,f8")


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """Each costs a fit; how wide intervals are is not tested with so few."""
    monkeypatch.setattr(forecast_studies, "N_RESAMPLES", 20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["survival", "logistic"])
def test_losses_shrink_as_epsilon_grows(kind):
    table = forecast_accuracy(kind, 3000, n_columns=6, n_repeats=6, random_state=0).table
    losses = table["loss"].to_numpy()
    assert list(table.index) == [0.1, 0.3, 1.0, 3.0, math.inf]
    # At 0.1 most of the signal is lost, at 3 hardly any.
    assert losses[0] > 0.03
    assert losses[0] > losses[1] > losses[2] > -0.005
    assert abs(losses[3]) < 0.02
    assert losses[-1] == 0.0
    assert (table["loss_low"] <= table["loss_high"]).all()
    assert table["risk_error"].iloc[0] > 2.0 * table["risk_error"].iloc[-1]
    assert table["brier"].iloc[0] > table["brier"].iloc[-1]
    assert table["calibration"].iloc[-1] == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["km", "weibull"])
def test_curves_come_nearer_as_epsilon_grows(kind):
    table = forecast_accuracy(kind, 2000, event_rate=0.7, epsilons=[0.03, 3.0], **QUICK).table
    for name in ("largest_error", "mean_error", "median_error", "width_middle", "width_horizon"):
        assert table[name].iloc[0] > 1.5 * table[name].iloc[1] > 0.0, name
        assert table[name].iloc[1] < 1.5 * table[name].iloc[2], name
    assert "c_index" not in table


@pytest.mark.parametrize(("kind", "concordance"), [("survival", 0.6), ("logistic", 0.85)])
def test_without_privacy_the_concordance_asked_for_is_reached(kind, concordance):
    given = {"n_columns": 5, "concordance": concordance, "epsilons": [1.0], **QUICK}
    table = forecast_accuracy(kind, 6000, **given).table
    assert table.iloc[-1, 0] == pytest.approx(concordance, abs=0.03)


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize(("event_rate", "censoring"), [(0.02, 1.0), (0.3, 0.5), (0.8, 0.0)])
def test_simulated_records_are_as_asked(baseline, event_rate, censoring):
    """Shares of 40,000 records: standard errors are 0.0025 at most; six of them are allowed."""
    rng = np.random.default_rng(1)
    table = SimulatedTable(plain_columns(6), None, rng)
    X, z = table.rows(40_000, rng)
    assert np.abs(X).max() <= 1.0
    z = z / z.std()
    shape, pairs = BASELINES[baseline], Pairs.among(2000)
    truth = pairs.truth(HazardTruth, z[:2000], 0.75, event_rate, censoring, shape)
    drawn = truth.draw(z, rng)
    event, time = drawn.event, drawn.exit
    assert time.min() >= 0.0
    assert time.max() <= 1.0
    assert not event[time == 1.0].any()
    # The law was found on 2,000 of them.
    assert event.mean() == pytest.approx(event_rate, abs=0.015 + 0.1 * event_rate)
    assert (time[~event] < 1.0).mean() == pytest.approx(censoring, abs=0.03)
    assert concordance_index(target(event, time), z) == pytest.approx(
        0.75, abs=0.03 if event_rate > 0.1 else 0.06
    )


def test_expected_concordance_is_that_of_drawn_outcomes():
    """Of a score that is not the truth's: 40,000 records, standard error 0.003."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=40_000)
    score = z + rng.normal(size=z.size)
    pairs = Pairs.among(z.size)
    truth = HazardTruth.of(z, 1.0, 0.5, 0.7, 2.0)
    drawn = truth.draw(z, rng)
    event, time = drawn.event, drawn.exit
    expected = pairs.concordance(score, *truth.firsts(z, pairs))
    assert concordance_index(target(event, time), score) == pytest.approx(expected, abs=0.015)
    survival = truth.survival(z, np.array([0.5]))[:, 0].mean()
    lifetimes = HazardTruth(1.0, truth.hazard, 0.0, 2.0).draw(z, rng).exit
    assert (lifetimes > 0.5).mean() == pytest.approx(survival, abs=0.015)


@pytest.mark.slow
def test_standard_errors_without_privacy_are_those_of_cox_regression():
    from lifelines import CoxPHFitter

    rng = np.random.default_rng(4)
    table = SimulatedTable(plain_columns(3), None, rng)
    X, z = table.rows(8000, rng)
    truth = HazardTruth.of(z, 0.5, 0.4, 0.8, 0.5)
    drawn = truth.draw(z, rng)
    event, time = drawn.event, drawn.exit
    frame = pd.DataFrame(X, columns=list("abc")).assign(time=np.maximum(time, 1e-9), event=event)
    cox = CoxPHFitter().fit(frame, "time", "event").standard_errors_.to_numpy()
    errors = np.sqrt(np.diag(np.linalg.inv(len(X) * truth.information(X, z))))
    np.testing.assert_allclose(errors, cox, rtol=0.08)
    # Effects of the columns are what the records are made with.
    found = X @ fit_cox(X, target(event, time)).coef_
    assert np.corrcoef(found, z)[0, 1] > 0.98


def test_raw_rows_are_within_the_description():
    rng = np.random.default_rng(5)
    table = SimulatedTable(columns_within(COLUMNS), COLUMNS._names(), rng)
    frame, z = table.rows(3000, rng)
    made = COLUMNS.fit_transform(frame)
    assert np.isfinite(made).all()
    assert np.isfinite(z).all()
    assert z.std() > 0.0
    assert frame["age"].between(20, 90).sum() == frame["age"].notna().sum() < 3000
    assert not frame["dose"].isna().any()
    assert set(frame["grade"]) == {1, 2, 3}
    assert (made.std(axis=0) > 0.05).all()


def test_rows_vary_as_is_stated():
    stated = PublicColumns(
        {
            "age": {"bounds": [0, 200], "typical": 60, "spread": 12},
            "seen": {"dates": ["2001-01-01", "2010-12-31"], "spread": 200},
            "nodes": {"log": [0, 1e4], "offset": 1, "typical": 4, "spread": 0.7},
            "stage": {"categories": ["I", "II", "III"], "prevalence": [0.1, 0.2, 0.7]},
            "ill": {"boolean": True, "prevalence": 0.2},
        }
    )
    rng = np.random.default_rng(6)
    table = SimulatedTable(columns_within(stated), stated._names(), rng)
    made = stated.fit_transform(table.rows(4000, rng)[0])
    features = stated._features()
    # Seven deviations of a mean of 4,000, and of a deviation: days and numbers are rounded.
    spreads = np.array([one.spread for one in features])
    centers = np.array([one.center or 0.0 for one in features])
    np.testing.assert_allclose(made.mean(axis=0), centers, atol=7 * spreads.max() / 4000**0.5)
    np.testing.assert_allclose(made.std(axis=0), spreads, rtol=0.15)


@pytest.mark.slow
def test_columns_go_the_way_of_real_ones():
    own = DPDiscreteTimeSurvival(max_time=10.0, columns=COLUMNS)
    given = DPDiscreteTimeSurvival(max_time=10.0)
    found = [
        forecast_accuracy(model, 1500, columns=columns, epsilons=[1.0], **QUICK)
        for model, columns in ((own, None), (given, COLUMNS))
    ]
    pd.testing.assert_frame_equal(found[0].table, found[1].table)
    assert found[0].about["n_columns"] == len(COLUMNS.columns)
    assert found[0].table["c_index"].iloc[-1] == pytest.approx(0.7, abs=0.03)


@pytest.mark.slow
def test_standard_errors_are_forecast_where_they_are_asked_for():
    given = {"n_columns": 3, "n_repeats": 2, "random_state": 0}
    model = DPDiscreteTimeSurvival(max_time=1.0, inference_share=0.2)
    table = forecast_accuracy(model, 20_000, epsilons=[0.001, 0.3, 3.0], **given).table
    # n times epsilon is too small for any: the release has none.
    assert table["finite_intervals"].iloc[0] == 0.0
    assert table["interval_width"].iloc[0] == math.inf
    assert table["interval_width"].iloc[1] > table["interval_width"].iloc[2] > 1.0
    assert table["finite_intervals"].iloc[2] == table["interval_width"].iloc[3] == 1.0
    errors = table["coefficient_error"]
    assert errors.iloc[1] > errors.iloc[2] > 0.9 * errors.iloc[3]
    # The root mean square of six normal numbers.
    assert 0.4 < errors.iloc[3] < 1.8
    model = DPLogisticRegression(data_norm=1.0, inference_share=0.2)
    odds = forecast_accuracy(model, 20_000, epsilons=[3.0], **given).table
    assert odds["interval_width"].iloc[0] > 1.0
    assert 0.4 < odds["coefficient_error"].iloc[1] < 1.8


@pytest.mark.slow
def test_terms_that_noise_will_hide_are_named_before():
    columns = PublicColumns(
        {
            "age": {"spline": (40, 100), "df": 2},
            "arm": ["a", "b", "c"],
            "age:arm": {"interaction": ["age", "arm"]},
        }
    )
    model = DPDiscreteTimeSurvival(max_time=1.0, columns=columns, inference_share=0.3)
    given = {"n_repeats": 2, "random_state": 0}
    forecast = forecast_accuracy(model, 50_000, epsilons=[0.02, 3.0], **given)
    terms = forecast.terms
    assert [*forecast.ranges] == ["age", "arm", "age:arm"]
    assert terms.loc[("age:arm", 3.0), "range"] == "55 to 85 × a to c"
    for term in forecast.ranges:
        errors = terms.loc[term, "se"]
        assert errors.loc[0.02] == math.inf > errors.loc[3.0] > errors.loc[math.inf] > 0.0
        assert f"{term} ({forecast.ranges[term]}) up to epsilon" in forecast.advice
    factor = np.exp(1.959964 * terms["se"])
    np.testing.assert_allclose(terms["factor"], factor, rtol=1e-6)
    assert not any(name.startswith("error of") for name in forecast.table)
    kept = json.loads(json.dumps(forecast.to_dict(), allow_nan=False))
    assert kept["terms"][0] == {
        "term": "age", "epsilon": 0.02, "range": "55 to 85", "se": "inf", "factor": "inf"
    }  # fmt: skip
    plain = forecast_accuracy(model.set_params(inference_share=0.0), 500, epsilons=[1.0], **given)
    assert plain.terms.empty
    assert "ratio" not in plain.advice


@pytest.mark.slow
def test_a_word_means_the_estimator_as_it_is_made_and_a_seed_says_it_all():
    for kind, *same in (
        ("survival", DPDiscreteTimeSurvival(max_time=1.0)),
        ("logistic", *(DPLogisticRegression(classes=[0, 1], data_norm=r) for r in (None, 1.0))),
        ("weibull", DPWeibullFitter(max_time=1.0)),
    ):

        def table(estimator=kind, **options):
            told = {"epsilons": [1.0], "n_repeats": 2, "random_state": 3, **options}
            return forecast_accuracy(estimator, 300, **told).table

        first = table()
        for one in same:
            pd.testing.assert_frame_equal(table(one), first)
        assert not table(random_state=4).equals(first)
        if kind == "logistic":
            assert not table(random_state=None).equals(table(random_state=None))
            with parallel_config("threading"):
                pd.testing.assert_frame_equal(table(n_jobs=2), first)


def test_nothing_is_charged_and_nobody_is_warned():
    ledger = PrivacyAccountant(epsilon=1.0)
    model = DPKaplanMeierFitter(max_time=1.0, accountant=ledger, epsilon=0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forecast_accuracy(model, 200, epsilons=[0.5, 5.0], **QUICK)
        forecast_accuracy(DPLogisticRegression(), 200, epsilons=[0.5], **QUICK)
    assert ledger.spent() == 0.0
    assert model.accountant is ledger
    assert model.epsilon == 0.25
    assert not hasattr(model, "release_")


@pytest.mark.slow
def test_what_comes_out_can_be_read_and_kept():
    forecast = forecast_accuracy("survival", 20_000, n_columns=3, epsilons=[3.0, 0.001], **QUICK)
    assert [forecast.smallest_epsilon(*tolerance) for tolerance in ((), (1.0,))] == [3.0, 0.001]
    assert "Epsilon 3 is the smallest of 0.001, 3" in forecast.advice
    kept = json.loads(json.dumps(forecast.to_dict(), allow_nan=False))
    assert [row["epsilon"] for row in kept["table"]] == [0.001, 3.0, "inf"]
    assert "nan" not in repr(forecast)
    assert "<table" in forecast._repr_html_()
    hopeless = forecast_accuracy("logistic", 100, epsilons=[0.01], **QUICK)
    assert hopeless.smallest_epsilon(0.02) is None
    assert hopeless.advice.startswith("At none of 0.01")
    with pytest.raises(ValueError, match="tolerance must be a number in"):
        forecast.smallest_epsilon(2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "cox"}, "estimator must be one of 'survival'"),
        ({"estimator": DPWeibullFitter}, "estimator must be one of"),
        ({"estimator": DPAalenJohansenFitter(max_time=1.0)}, "estimator must be one of"),
        ({"estimator": DPDiscreteTimeSurvival()}, "max_time must be given"),
        ({"estimator": DPLogisticRegression(classes=[0, 1, 2])}, "classes must be two"),
        ({"estimator": DPLogisticRegression(columns=PublicBoundsScaler(-1, 1))}, "columns must be"),
        ({"estimator": DPLogisticRegression(columns=COLUMNS), "columns": COLUMNS}, "must be None"),
        ({"columns": COLUMNS, "n_columns": 3}, "n_columns must be None where columns"),
        ({"columns": {"age": (0, 100)}}, "columns must be a PublicColumns"),
        ({"columns": PublicColumns({"age": (1, 0)})}, "age"),
        ({"columns": PublicColumns({"male": bool}), "concordance": 0.9}, "concordance must be at"),
        *(
            ({"estimator": "km", name: 3}, f"{name} must be None")
            for name in ("n_columns", "columns")
        ),
        ({"estimator": "weibull", "concordance": 0.7}, "concordance must be None"),
        *(({"n_records": n}, "n_records must be an integer from 20 to") for n in (19, 100.0)),
        ({"n_records": 10**7}, r"n \* epsilon"),
        *(({name: 0}, f"{name} must be") for name in ("n_columns", "n_repeats", "n_jobs")),
        *(({"event_rate": rate}, "event_rate must be") for rate in (0.0, 1.0)),
        ({"concordance": 0.4}, "concordance must be"),
        ({"censoring": 1.1}, "censoring must be"),
        ({"baseline": "steep"}, "baseline must be one of"),
        *(({"epsilons": e}, "epsilons must") for e in ([], [1.0, 0.0], 1.0, [math.inf])),
        ({"level": 1.0}, "level must be"),
        *(({name: -1}, f"{name} must be") for name in ("random_state", "verbose")),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_what_breaks_a_rule_is_refused(options, message):
    asked = {"estimator": "survival", "n_records": 100, "n_repeats": 1, "epsilons": [1.0]}
    with pytest.raises((ValueError, TypeError), match=message):
        forecast_accuracy(**{**asked, **options})


METHODS = [("method", "obj_pert"), ("method", "psgld")]
HAZARD, ODDS = DPDiscreteTimeSurvival(max_time=1.0), DPLogisticRegression(classes=[0, 1])


class TestGainOfDelta:
    @pytest.mark.parametrize("model", [HAZARD, ODDS, clone(ODDS).set_params(method="out_pert")])
    def test_what_is_left_of_the_noise_is_that_of_the_plans(self, model):
        said = gain_of_delta(model, 5000, 60, [1.0])
        text, share = re.fullmatch(
            r"With delta=(.*), which is at most 1/n\^2, the noise of coefficients would be (.*) of "
            r"what it is\.",
            said,
        ).groups()
        assert text == "4e-08"
        shape = Shape(5000, 60)
        if model is not HAZARD:
            shape = LabelledShape(5000, 60, np.array([0, 1]))
        plans = [
            clone(model).set_params(delta=delta)._plan_and_guarantee(shape)
            for delta in (0.0, float(text))
        ]
        assert plans[1][1].delta == float(text)
        noise = [plan.leaves[model is HAZARD and 2].noise for plan, _ in plans]
        assert float(share) == pytest.approx(noise[1] / noise[0], abs=0.006)

    def test_the_noise_is_that_of_the_strata(self):
        columns = PublicColumns({"site": ["A", "B", "C", "D"], "age": (0, 100)})
        model = clone(HAZARD).set_params(columns=columns, strata="site")
        own = model.as_fitted()
        assert own.columns.get_feature_names_out().tolist() == ["age"]
        plan, _ = own._plan_and_guarantee(Shape(5000, 1))
        noise = _noise(model, Shape(5000, 1), 1.0, 0.0)[0]
        assert noise == min(leaf.noise for leaf in plan.leaves if isinstance(leaf, Minimisers))
        assert noise > _noise(clone(HAZARD), Shape(5000, 1), 1.0, 0.0)[0]
        assert model.strata == "site"

    def test_nothing_is_said_where_nothing_is_gained(self):
        asked = [clone(HAZARD).set_params(**{n: v}) for n, v in [("delta", 1e-9), *METHODS]]
        published = PublishedLogisticRegression(classes=[0, 1])
        asked += [published, DPLogisticRegression(), DPKaplanMeierFitter(max_time=1.0)]
        for model, n_features in [(HAZARD, 5), (ODDS, 5), *((one, 60) for one in asked)]:
            before = dict(vars(model))
            assert gain_of_delta(model, 5000, n_features, [1.0]) == ""
            assert vars(model) == before

    def test_a_fit_would_not_ask_about_the_delta(self):
        for n in [20, 99, 100, 999, 1000, 2237, 5000, 54321]:
            said = gain_of_delta(ODDS, n, 1000, [0.5])
            delta = float(re.search("delta=(.*), which", said).group(1))
            assert delta_warnings(delta, True, n) == []
            assert delta > 0.4 / n**2

    @pytest.mark.slow
    def test_a_forecast_says_it(self):
        for n_columns, said in ((50, True), (3, False)):
            found = forecast_accuracy(HAZARD, 300, n_columns=n_columns, epsilons=[1.0], **QUICK)
            assert ("With delta=1e-05, which is at most 1/n^2," in found.advice) == said
            assert ("delta" in found.advice) == said
            assert ("By simulation at epsilon 1: C-index 0." in found.advice) == said

    def test_figures_are_said_where_one_gains(self):
        few, more = {"C-index": 0.6, "width": math.inf}, {"C-index": 0.61, "width": math.inf}
        said = "By simulation: C-index 0.61 in place of 0.6, width inf in place of inf."
        assert gain_in_figures([few, more]) == said
        assert gain_in_figures([more, few]) == gain_in_figures([few, few]) == ""
        assert "width 4 in place of inf" in gain_in_figures([{"C-index": 0.6}, few | {"width": 4}])

    def test_moments_gain_where_intervals_are_asked_for(self):
        model = clone(HAZARD).set_params(inference_share=0.3)
        said = gain_of_delta(model, 5000, 15, [1.0])
        share = float(re.search(r"intervals need, (0\.\d\d)\)", said).group(1))
        noise = [
            clone(model).set_params(delta=delta)._plan_and_guarantee(Shape(5000, 15))[0].leaves[-1]
            for delta in (0.0, 4e-8)
        ]
        assert share == pytest.approx(noise[1].noise / noise[0].noise, abs=0.006)
