"""Effects that change over time: beside statsmodels, private, in releases, studies and formulas."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdpsurv import (
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    PublicBoundsScaler,
    PublicColumns,
    Release,
)
from skdpsurv.data.over_time import OverTime
from skdpsurv.data.target import survival_target
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.pooling import pool_releases
from skdpsurv.report import explain, formula, html_report
from skdpsurv.study import Analysis
from skdpsurv.survival.hazards.model import published_basis
from tests.study.studies import protocol
from tests.test_scoring import run_text

END, Q, STEP = 5.0, 20, 2.0
KINDS = {"log": "log", "steps": {"steps": [STEP]}, "spline": {"spline": 2}}


def columns(kind="steps", **others):
    over_time = {"over_time": KINDS[kind]}
    described = {
        "x": {"bounds": [-2, 2], **over_time},
        "z": (-2, 2),
        "arm": {"boolean": True, **over_time},
    }
    return PublicColumns(described | others)


def people(n=5000, seed=0, arm=(-0.8, 0.3), level=0.12, correlation=0.0):
    """Return people whose hazards cross at 2, if effects of the arm differ; censored evenly."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    b = correlation * a + np.sqrt(1.0 - correlation**2) * b
    x, z, treated = a.clip(-2, 2), b.clip(-2, 2), rng.integers(0, 2, n)
    base = level * np.exp(0.5 * x + 0.4 * z)
    early, late = (base * np.exp(effect * treated) for effect in arm)
    e = rng.exponential(size=n)
    time = np.where(e < STEP * early, e / early, STEP + (e - STEP * early) / late)
    last = np.minimum(rng.uniform(1.0, 8.0, n), END)
    X = pd.DataFrame({"x": x, "z": z, "arm": treated.astype(bool)})
    return X, survival_target(time <= last, np.minimum(time, last))


def fitted(X, y, epsilon=3.0, kind="steps", seed=0, entry=None, **options):
    given = {"columns": columns(kind), "link": "cloglog", "max_time": END, "n_intervals": Q}
    model = DPDiscreteTimeSurvival(epsilon, random_state=seed, **given | options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, entry=entry)


def design(X, y, kind, center=0.0):
    """Return person-periods: the event, and columns of baseline, products with time, and rows."""
    time, event = y["time"], y["event"]
    exits = np.clip(np.ceil(Q * time / END), 1, Q).astype(int)
    person = np.repeat(np.arange(len(X)), exits)
    period = np.concatenate([np.arange(k) for k in exits])
    rows = columns(kind).transform(X)
    share = (np.arange(Q) + 1) / Q
    functions = {
        "log": np.log(share)[:, None],
        "steps": (share[:, None] * END > STEP).astype(float),
    }[kind]
    functions = functions - functions.mean(axis=0)
    own = (rows - center)[:, [0, 2]]
    products = [own[person] * f[period, None] for f in functions.T]
    happened = event[person] & (period == exits[person] - 1)
    baseline = published_basis(Q, 3)
    if kind == "steps":  # which the baseline has, too
        baseline = np.column_stack([baseline, functions])
    return happened, np.column_stack([baseline[period], *products, rows[person]])


class TestWithoutPrivacy:
    @pytest.mark.parametrize("kind", ["log", "steps"])
    @pytest.mark.parametrize("link", ["logit", "cloglog"])
    def test_person_periods_times_functions_of_time_have_the_same_coefficients(self, kind, link):
        X, y = people(1500)
        model = fitted(X, y, np.inf, kind, None, link=link)
        event, rows = design(X, y, kind)
        theirs = {"logit": sm.families.links.Logit, "cloglog": sm.families.links.CLogLog}[link]
        found = sm.GLM(event, rows, sm.families.Binomial(theirs())).fit(tol=1e-14, maxiter=100)
        ours = np.concatenate([model.baseline_coef_, model.over_time_coef_, model.coef_])
        np.testing.assert_allclose(ours, found.params, rtol=1e-8, atol=1e-8)
        # and the predictions that follow from them
        survived = model.predict_survival_function(X[:3], return_array=True)
        whole = people(1500)[1][:3].copy()
        whole["time"], whole["event"] = END, False
        _, at = design(X[:3], whole, kind)
        hazard = model._link.survival(at @ found.params).value.reshape(3, Q)
        np.testing.assert_allclose(survived, np.exp(-np.cumsum(hazard, axis=1)), rtol=1e-8)

    def test_risk_is_the_cumulative_hazard_at_the_horizon(self):
        X, y = people(500)
        model = fitted(X, y, np.inf, seed=None)
        hazard = model.predict_cumulative_hazard_function(X, return_array=True)[:, -1]
        risk = model.predict(X)
        np.testing.assert_allclose(risk - risk[0], np.log(hazard / hazard[0]), atol=1e-12)
        assert 0.5 < model.score(X, y) < 1.0


class TestPrivate:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_with_hardly_any_noise_errors_are_those_of_person_periods(self, kind):
        X, y = people(8000)
        options = {"inference_share": 0.3, "max_cumulative_hazard": 5.0}
        model = fitted(X, y, 1e5, kind, **options)
        if kind == "spline":
            assert np.isfinite(model.summary["se(coef)"]).all()
            return
        event, rows = design(X, y, kind, model._changes.center)
        theirs = sm.GLM(event, rows, sm.families.Binomial(sm.families.links.CLogLog())).fit()
        inference = model.inference_
        own = model.baseline_coef_.size
        np.testing.assert_allclose(inference.estimate[own:], theirs.params[own:], atol=0.02)
        ratio = inference.standard_errors() / theirs.bse
        np.testing.assert_allclose(ratio, 1.0, atol=0.06)

    def test_a_crossing_is_found_where_constant_effects_see_none(self):
        X, y = people(5000)
        model = fitted(X, y, inference_share=0.3)
        early, late = model.effect_over_time("arm", [1.0, 4.0])["coef"]
        assert early < -0.4 < 0.0 < late
        plain = fitted(X, y, columns=columns("steps", **PLAIN))
        truth = [y["time"][(y["event"]) & (X["arm"] == arm)] for arm in (False, True)]
        first = [np.mean(one <= STEP) for one in truth]
        assert first[1] < first[0]
        gap = [np.diff(arm_curves(one, X))[:, 0] for one in (model, plain)]
        at = np.searchsorted(model.unique_times_, STEP)
        assert gap[0][at] > gap[1][at] + 0.02  # more of the treated are alive at 2

    def test_a_fit_keeps_nothing_of_the_one_before(self):
        X, y = people(500)
        model = fitted(X, y)
        model.set_params(columns=columns(**PLAIN), recalibration_share=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        plain = fitted(X, y, columns=columns(**PLAIN), recalibration_share=0.0)
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
        pd.testing.assert_frame_equal(model.summary, plain.summary)

    def test_a_release_predicts_what_the_model_does(self):
        X, y = people(1000)
        model = fitted(X, y, inference_share=0.3)
        again = DPDiscreteTimeSurvival.from_release(Release.from_json(model.release_.to_json()))
        for method in ("predict", "predict_median"):
            np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
        pd.testing.assert_frame_equal(again.summary, model.summary)
        tests = [one.proportional_hazards_test() for one in (again, model)]
        pd.testing.assert_frame_equal(*tests)

    def test_the_estimand_is_what_the_summary_is_about(self):
        X, y = people(4000)
        model = fitted(X, y, 1e6, inference_share=0.3)
        found = model.estimand(X, y)
        assert list(found.index) == list(model.summary.index)
        np.testing.assert_allclose(found, model.summary["coef"], atol=0.01)

    def test_band_is_around_the_curve_of_the_estimates(self):
        X, y = people(5000)
        model = fitted(X, y, 1e5, inference_share=0.3)
        lower, upper = model.survival_band(X[:5])
        curves = model.predict_survival_function(X[:5], return_array=True)
        assert ((lower < curves) & (curves < upper)).all()
        assert (upper - lower).max() < 0.15


PLAIN = {"x": {"bounds": [-2, 2]}, "arm": {"boolean": True}}


def arm_curves(model, X):
    curves = model.predict_survival_function(X, return_array=True)
    return np.column_stack([curves[X["arm"] == arm].mean(axis=0) for arm in (False, True)])


class TestProportionalHazardsTest:
    def test_finds_a_change_and_not_where_there_is_none(self):
        X, y = people(5000)
        found = fitted(X, y, inference_share=0.3).proportional_hazards_test()
        assert list(found.index) == ["x", "arm", "GLOBAL"]
        assert list(found["df"]) == [1, 1, 2]
        assert found.loc["arm", "p"] < 1e-4
        assert found.loc["x", "p"] > 1e-4

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["log", "steps"])
    def test_rejects_a_true_null_seldom(self, kind):
        """Of 60 fits; with a level of 5 % more than 15 have a probability below 1e-7."""
        rejected = 0
        for seed in range(60):
            heavy = {"arm": (0.3, 0.3), "level": 0.5, "correlation": 0.7}
            model = fitted(*people(2500, seed, **heavy), 3.0, kind, seed, inference_share=0.3)
            rejected += model.proportional_hazards_test().loc["GLOBAL", "p"] < 0.05
        assert rejected <= 15

    @pytest.mark.slow
    def test_intervals_hold_at_stated_times(self):
        """Of 60 fits; with a coverage of 95 % fewer than 45 have a probability below 1e-7."""
        inside = np.zeros(2)
        for seed in range(60):
            model = fitted(*people(2500, seed), 3.0, "steps", seed, inference_share=0.3)
            found = model.effect_over_time("arm", [1.0, 4.0])
            inside += (found.iloc[:, 3] <= [-0.8, 0.3]) & (found.iloc[:, 4] >= [-0.8, 0.3])
        assert inside.min() >= 45

    def test_is_refused_without_changes_or_errors(self):
        X, y = people(1000)
        with pytest.raises(ValueError, match="columns must state over_time"):
            fitted(X, y, columns=columns(**PLAIN)).proportional_hazards_test()
        with pytest.raises(ValueError, match="inference_share must be positive"):
            fitted(X, y).proportional_hazards_test()

    def test_names_what_noise_hides(self):
        X, y = people(300)
        model = fitted(X, y, 1.0, "spline", inference_share=0.3)
        found = model.proportional_hazards_test()
        assert (found["p"].isna() == (found["df"] == 0)).all()


class TestRefusals:
    def fit(self, match, **options):
        X, y = people(300)
        with pytest.raises(ValueError, match=match):
            fitted(X, y, **options)

    def test_what_is_not_provided_for(self):
        X, y = people(300)
        self.fit("must not state over_time with method='psgld'", method="psgld")
        self.fit("recalibration_share must be 0", recalibration_share=0.1)
        release = fitted(X, y, columns=columns(**PLAIN)).release_
        self.fit("prior must be None where columns state over_time", prior=release)
        changing = fitted(X, y).release_
        with pytest.raises(ValueError, match="prior must be of effects that do not change"):
            fitted(X, y, columns=columns(**PLAIN), prior=changing)
        with pytest.raises(ValueError, match="releases must be of effects that do not change"):
            pool_releases([changing, fitted(X, y, seed=1).release_])
        with pytest.raises(ValueError, match="releases must be of effects that do not change"):
            pool_releases([release, changing])

    def test_columns_that_a_later_step_mixes_and_strata(self):
        mixed = make_pipeline(columns(), Normalizer())
        self.fit("must not state over_time of 'x', whose values later steps mix", columns=mixed)
        sites = columns(arm={"categories": ["a", "b"], "over_time": "log"})
        self.fit("must not state over_time of 'arm'", columns=sites, strata="arm")

    def test_releases_without_a_centre(self):
        X, y = people(300)
        content = json.loads(fitted(X, y).release_.to_json())
        content["values"].pop("row_center")
        with pytest.raises(ValueError, match="row_center"):
            DPDiscreteTimeSurvival.from_release(Release.from_json(json.dumps(content)))

    def test_functions_that_the_grid_cannot_tell_apart(self):
        late = columns(x={"bounds": [-2, 2], "over_time": {"steps": [9.0]}})
        self.fit(r"columns\['x'\] must have over_time with steps before max_time", columns=late)
        self.fit("enough intervals", columns=columns("spline"), n_intervals=2, n_knots=2)

    def test_competing_risks_do_not_know_them(self):
        X, y = people(300)
        model = DPCompetingRisks(causes=[1], max_time=END, columns=columns())
        with pytest.raises(ValueError, match="must not state over_time with DPCompetingRisks"):
            model.fit(X, (y["event"].astype(int), y["time"]))

    @pytest.mark.parametrize(
        "stated",
        [{"steps": []}, {"steps": [0]}, {"steps": [3, 2]}, {"spline": 1}, "line", {"a": 1}, 5],
        ids=str,
    )
    def test_what_is_no_function_of_time(self, stated):
        with pytest.raises((ValueError, TypeError), match=r"columns\['x'\] must have over_time"):
            PublicColumns({"x": {"bounds": [0, 1], "over_time": stated}})._check()

    def test_models_without_time_ignore_them(self):
        X, y = people(300)
        model = DPLogisticRegression(classes=[False, True], columns=columns(), random_state=0)
        plain = DPLogisticRegression(
            classes=[False, True], columns=columns(**PLAIN), random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ends = [one.fit(X, y["event"]).coef_ for one in (model, plain)]
        np.testing.assert_array_equal(*ends)


class TestFunctions:
    @pytest.mark.parametrize("kind", ["log", "steps", "spline"])
    def test_are_centred_and_written_as_they_are(self, kind):
        stated = OverTime.specified("x", KINDS[kind])
        values = stated.values(Q, END)
        np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-15)
        names = {"np": np, "log": np.log, "cube": lambda v: max(v, 0.0) ** 3, "indicator": float}
        for k, text in enumerate(stated.written(Q, END, lambda x: repr(float(x)))):
            found = [eval(text, names | {"t": (s + 1) / Q}) for s in range(Q)]
            np.testing.assert_allclose(found, values[:, k], atol=1e-14)

    def test_scaled_functions_are_orthogonal_and_within_a_ball(self):
        X, y = people(300)
        changing = fitted(X, y, kind="spline")._changes.public
        inside = changing.scaled.values
        assert np.linalg.norm(inside, axis=1).max() == pytest.approx(0.5)
        centred = inside - inside.mean(axis=0)
        product = centred.T @ centred
        np.testing.assert_allclose(product, np.diag(np.diag(product)), atol=1e-12)
        published = changing.functions @ changing.to_published + changing.level
        np.testing.assert_allclose(published, inside, atol=1e-14)

    def test_the_baseline_steps_where_effects_do(self):
        X, y = people(600)
        stated = {"x": {"steps": [STEP]}, "arm": {"steps": [STEP, 4.0]}}
        described = {"x": {"bounds": [-2, 2]}, "arm": {"boolean": True}}
        for name, steps in stated.items():
            described[name]["over_time"] = steps
        model = fitted(X, y, columns=columns(**described))
        public = model._changes.public
        assert public.step_times == (STEP, 4.0)  # each once
        assert model.baseline_coef_.shape == (5,)
        ends = np.arange(1, Q + 1) * END / Q
        for step, time in zip(public.steps.T, public.step_times, strict=True):
            np.testing.assert_allclose(np.ptp(step[ends <= time]), 0.0, atol=1e-15)
            np.testing.assert_allclose(step[-1] - step[0], 1.0)
        scope = run_text(model, X[:5], model.release_.features)
        survived = [one(4.5) for one in model.predict_survival_function(X[:5])]
        np.testing.assert_allclose(scope["survival"](4.5), survived, rtol=1e-9)

    @pytest.mark.parametrize(("q", "steps", "expected"), [(4, [2.0], 4), (4, [2, 3], 3)])
    def test_steps_that_few_intervals_cannot_tell_are_left_out(self, q, steps, expected):
        x = {"bounds": [-2, 2], "over_time": {"steps": steps}}
        model = fitted(*people(600), columns=columns(x=x, arm={"boolean": True}), n_intervals=q)
        assert model.baseline_coef_.size == expected

    @pytest.mark.parametrize("n_knots", [1, 2, 8, 12])
    def test_steps_stay_beside_many_knots(self, n_knots):
        model = fitted(*people(600), n_intervals=50, n_knots=n_knots)
        assert model.baseline_coef_.size == n_knots + 1


class TestEverywhere:
    def test_formula_report_and_explanation(self):
        X, y = people(1000)
        model = fitted(X, y, kind="spline", inference_share=0.3)
        scope = run_text(model, X[:5], model.release_.features)
        survived = [one(3.0) for one in model.predict_survival_function(X[:5])]
        np.testing.assert_allclose(scope["survival"](3.0), survived, rtol=1e-9)
        assert "change(t) = " in formula(model.release_)
        page = html_report(model.release_)
        assert "test of proportional hazards" in page.lower() or "proportional hazards" in page
        assert "its effect changes over time (time spline 1, time spline 2)" in explain(
            model.release_
        )

    def test_a_study_tests_each_column(self):
        base = {"columns": columns(**PLAIN), "max_time": END, "person": None}
        base["evaluation_share"] = 0.0
        table = {"ph_test": True, "intervals": 0.3}
        study = protocol(**base, analyses=(Analysis("regression", "fit", options=table),))
        (analysis,) = study.analyses
        own = analysis.estimator(study, Spend(1.0)).columns
        assert all(one.over_time == OverTime("log") for one in own._features())
        with pytest.raises(ValueError, match="intervals must be positive"):
            protocol(**base, analyses=(Analysis("regression", "fit", options={"ph_test": True}),))
        constant = {**base, "columns": columns()}
        table = {"over_time": False}
        study = protocol(**constant, analyses=(Analysis("regression", "fit", options=table),))
        (analysis,) = study.analyses
        own = analysis.estimator(study, Spend(1.0)).columns
        assert not any(one.over_time for one in own._features())

    def test_steps_after_the_columns_keep_effects(self):
        X, y = people(300)
        piped = make_pipeline(columns(), PublicBoundsScaler(-1.0, 1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fitted(X, y, columns=piped)
        assert model.over_time_coef_.size == 2
