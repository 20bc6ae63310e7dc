"""Regressions on curves and products of columns, and the effect of one column over its range."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from lifelines import CoxPHFitter
from lifelines.datasets import load_gbsg2
from matplotlib.figure import Figure
from patsy import dmatrix
from scipy import stats
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression, PublicColumns, Release
from skdpsurv.plotting import plot_effect
from skdpsurv.reference import person_period
from skdpsurv.report import save_report
from skdpsurv.report.explain import units
from skdpsurv.survival.hazards.model import published_basis
from tests.support.checks import quietly

#: A trial of 686 patients, with bounds that a protocol could state.
FORMULA = "spline(age, knots=[40, 60]) + log(pnodes + 1) + power(progrec, 0.5) * treat + tsize"
BOUNDS = {
    "age": (20, 80),
    "pnodes": (0, 51),
    "progrec": (0, 2400),
    "treat": bool,
    "tsize": (0, 120),
}
CURVES = "cr(age, knots=[40, 60], lower_bound=20, upper_bound=80) - 1"
THEIRS = "curve1 + curve2 + curve3 + np.log(pnodes + 1) + I(progrec ** 0.5) * treat + tsize"


def with_curves(X):
    """X and patsy's natural spline of age: its curves add up to 1, so that one can go."""
    curves = np.asarray(dmatrix(CURVES, X))
    return X.assign(**{f"curve{i}": curves[:, i] for i in (1, 2, 3)})


@pytest.fixture(scope="module")
def trial():
    frame = load_gbsg2().assign(treat=lambda d: (d.horTh == "yes").astype(int))
    return frame[list(BOUNDS)], pd.DataFrame({"event": frame.cens == 1, "time": frame.time * 1.0})


@pytest.fixture(scope="module")
def columns():
    return PublicColumns.from_formula(FORMULA, BOUNDS)


class TestWithoutPrivacy:
    def test_hazards_are_those_of_statsmodels(self, trial, columns):
        X, y = trial
        how = {"max_time": 2700.0, "n_intervals": 8}
        model = DPDiscreteTimeSurvival(math.inf, columns=columns, n_knots=3, **how).fit(X, y)
        structured = y.to_records(index=False).view(np.ndarray)
        basis = published_basis(8, 3)
        design, died = person_period(columns.transform(X), structured, basis=basis, **how)
        options = {"disp": 0, "method": "newton", "tol": 1e-14, "maxiter": 100}
        theirs = sm.Logit(died, design).fit(**options).params
        np.testing.assert_allclose(model.coef_, theirs[3:], rtol=0.0, atol=1e-8)
        np.testing.assert_allclose(model.baseline_coef_, theirs[:3], rtol=0.0, atol=1e-8)

    def test_odds_are_those_of_statsmodels(self, trial, columns):
        """But for the smallest ridge that the fit has."""
        X, y = trial
        model = DPLogisticRegression(math.inf, columns=columns, classes=[False, True], alpha=0.0)
        model.fit(X, y["event"])
        design = sm.add_constant(columns.transform(X))
        theirs = sm.Logit(y["event"].to_numpy(float), design).fit(disp=0, tol=1e-14).params
        np.testing.assert_allclose(np.ravel(model.coef_), theirs[1:], rtol=0.0, atol=1e-5)

    def test_effects_and_raw_coefficients_are_those_of_lifelines(self, trial, columns):
        """Within a tenth of lifelines' standard errors: what a grid of 200 intervals loses."""
        X, y = trial
        model = DPDiscreteTimeSurvival(
            math.inf, columns=columns, max_time=2660.0, n_intervals=200, n_knots=8, link="cloglog"
        ).fit(X, y)
        cox = CoxPHFitter().fit(with_curves(X).assign(**y), "time", "event", formula=THEIRS)
        found, error = model.summary["coef"], cox.standard_errors_
        raw = dict(cox.params_)
        middle = math.sqrt(2400.0) / 2.0
        raw["treat"] += middle * raw["I(progrec ** 0.5):treat"]
        treat_error = math.sqrt(
            np.array([1.0, middle]) @ cox.variance_matrix_.loc[
                ["treat", "I(progrec ** 0.5):treat"], ["treat", "I(progrec ** 0.5):treat"]
            ].to_numpy() @ np.array([1.0, middle])
        )  # fmt: skip
        for name, theirs, factor in (
            ("pnodes", "np.log(pnodes + 1)", math.log(2.0)),
            ("progrec", "I(progrec ** 0.5)", 1.0),
            ("tsize", "tsize", 1.0),
            ("progrec:treat", "I(progrec ** 0.5):treat", 1.0),
        ):
            assert abs(found[name] - factor * raw[theirs]) < 0.1 * factor * error[theirs], name
        assert abs(found["treat"] - raw["treat"]) < 0.1 * treat_error
        effect = model.effect("age", reference=50)
        people = X.iloc[[0] * len(effect)].assign(age=effect.index.to_numpy(float))
        scores = cox.predict_log_partial_hazard(with_curves(people)).to_numpy()
        scores = scores - np.interp(50.0, people["age"], scores)
        np.testing.assert_allclose(effect["coef"], scores, atol=0.06)
        assert np.ptp(scores) > 2.0


# ---- The effect of a column.

AGE = {"spline": (20, 80), "typical": 50, "spread": 12, "unit": "years"}
DESCRIBED = {
    "age": AGE,
    "treat": {"boolean": True, "prevalence": 0.5},
    "x": {"bounds": (0, 10), "typical": 5, "spread": 2},
    "x:treat": {"interaction": ["x", "treat"]},
}
COLUMNS = PublicColumns(DESCRIBED)
COEF = np.array([0.8, 0.8, 0.3, -0.5, 0.8, -0.6])
SLOPES = np.array([1.0 if one.per_unit is None else one.per_unit for one in COLUMNS._features()])


def people(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"age": rng.normal(50, 12, n), "treat": rng.random(n) < 0.5, "x": rng.normal(5, 2, n)}
    )
    return X, rng, COLUMNS.transform(X) @ COEF


def hazards(n=5_000, seed=0, epsilon=3.0, **options):
    X, rng, score = people(n, seed)
    exits, ends = rng.exponential(np.exp(-score) / 0.7), rng.uniform(0.0, 1.5, n)
    y = pd.DataFrame({"event": exits <= ends, "time": np.minimum(exits, ends)})
    options = {"inference_share": 0.3, "columns": COLUMNS, "link": "cloglog", **options}
    return quietly(
        DPDiscreteTimeSurvival(epsilon, max_time=1.0, random_state=seed, **options).fit, X, y
    )


def odds(n=5_000, seed=0, epsilon=3.0, **options):
    X, rng, score = people(n, seed)
    y = (rng.random(n) < expit(score - 0.5)).astype(int)
    options = {"inference_share": 0.2, "columns": COLUMNS, "classes": [0, 1], **options}
    return quietly(DPLogisticRegression(epsilon, random_state=seed, **options).fit, X, y)


@pytest.fixture(scope="module", params=[hazards, odds])
def model(request):
    return request.param()


class TestEffect:
    def test_of_a_line_it_is_the_coefficient_and_its_interval(self, model):
        row, table = model.summary.loc["x"], model.effect("x", reference=4.0)
        assert table.index.name == "x"
        assert (table.index[0], table.index[-1]) == (0.0, 10.0)
        steps = table.index.to_numpy(float) - 4.0
        np.testing.assert_allclose(table["coef"], row["coef"] * steps, atol=1e-12)
        np.testing.assert_allclose(table["se(coef)"], row["se(coef)"] * np.abs(steps), atol=1e-12)
        labels = model.effect("treat", at={"x": 5.0})
        assert labels.index.tolist() == [False, True]
        assert labels.loc[True, "coef"] == pytest.approx(model.summary.loc["treat", "coef"])

    def test_beside_a_product_it_depends_on_the_other_column(self, model):
        at = model.effect("treat", at={"x": 8.0}).loc[True, "coef"]
        summary = model.summary["coef"]
        assert at == pytest.approx(summary["treat"] + 3.0 * summary["x:treat"])

    def test_of_a_curve_it_is_near_the_truth(self, model):
        table = model.effect("age")
        rows = pd.DataFrame({"age": [*table.index, 50.0], "treat": False, "x": 5.0})
        Z = COLUMNS.transform(rows)
        truth = (Z[:-1] - Z[-1]) @ COEF
        apart = np.abs(table["coef"] - truth) / table["se(coef)"].replace(0.0, 1.0)
        assert apart.max() < 4.0
        assert table.loc[50.0, ["coef", "se(coef)"]].tolist() == [0.0, 0.0]
        narrow = model.effect("age", level=0.5)
        inner = narrow["coef upper 50%"] - narrow["coef lower 50%"]
        assert (inner <= table["coef upper 95%"] - table["coef lower 95%"]).all()

    def test_a_release_has_the_same(self, model):
        again = Release.from_json(model.release_.to_json()).to_estimator()
        pd.testing.assert_frame_equal(again.effect("age"), model.effect("age"))

    @pytest.mark.parametrize("size", [1e308, -1e160])
    def test_the_largest_numbers_of_a_file_have_tests_and_effects(self, model, size):
        file = json.loads(model.release_.to_json())
        for name in ("coef", "inference_estimate"):
            file["values"][name] = np.full_like(file["values"][name], size).tolist()
        again = Release.from_json(json.dumps(file)).to_estimator()
        terms = again.test_terms()
        assert np.isfinite(terms["chi2"]).all()
        assert (terms["p"] == 0.0).all()
        assert len(again.effect("age")) == len(model.effect("age"))

    def test_without_standard_errors_there_are_none(self):
        table = hazards(500, inference_share=0.0).effect("age")
        assert np.isfinite(table["coef"]).all()
        assert table["se(coef)"].isna().all()
        assert table["coef lower 95%"].isna().all()

    def test_where_noise_hides_a_coefficient_it_is_unknown(self):
        model = hazards(500, epsilon=0.5)
        assert not model.inference_.known[-6:].all()
        table = model.effect("age").drop(index=50.0)
        assert np.isinf(table["se(coef)"]).all()
        assert table["coef"].isna().all()
        assert (table["coef lower 95%"] == -np.inf).all()

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            ({"column": "weight"}, "column must be one of age, treat, x, got 'weight'"),
            ({"column": "age", "reference": 90}, "reference must be a value of age: a number"),
            ({"column": "age", "reference": "50"}, "reference must be a value of age"),
            ({"column": "age", "at": {"x": 11}}, r"at\['x'\] must be a value of x"),
            ({"column": "age", "at": {"age": 50}}, "at must hold other columns"),
            ({"column": "age", "at": {"weight": 50}}, "at must hold other columns"),
            ({"column": "age", "level": 1.5}, "level must"),
        ],
    )
    def test_others_are_refused_by_name(self, model, arguments, why):
        with pytest.raises(ValueError, match=why):
            model.effect(**arguments)

    def test_it_needs_described_columns_and_two_classes(self):
        with pytest.raises(ValueError, match="effect needs a model with columns=PublicColumns"):
            quietly(DPLogisticRegression(1.0, classes=[0, 1]).fit, np.eye(4), [0, 1, 0, 1]).effect(
                "x0"
            )
        X, rng, _ = people(300, 0)
        three = DPLogisticRegression(1.0, columns=COLUMNS, classes=[0, 1, 2])
        with pytest.raises(ValueError, match="two classes"):
            quietly(three.fit, X, rng.integers(0, 3, 300)).effect("age")
        with pytest.raises(NotFittedError):
            DPLogisticRegression(classes=[0, 1]).effect("age")


class TestFigures:
    def test_the_axis_is_the_raw_column_and_the_band_is_the_interval(self, model):
        ax = plot_effect(model.release_, "age", reference=40, ax=Figure().subplots())
        assert ax.get_xlabel() == "age (years)"
        assert ax.get_ylabel() == "exp(coef), against age = 40"
        table = model.effect("age", reference=40)
        (line,) = (one for one in ax.lines if len(one.get_xdata()) > 2)
        np.testing.assert_allclose(line.get_xdata(), table.index.to_numpy(float))
        np.testing.assert_allclose(line.get_ydata(), table["exp(coef)"])
        (band,) = ax.collections
        corners = band.get_paths()[0].vertices
        assert corners[:, 1].max() == pytest.approx(table["exp(coef) upper 95%"].max())

    def test_labels_have_points_and_several_models_a_legend(self, model):
        ax = plot_effect(
            {"one": model, "two": model}, "treat", ratios=False, ax=Figure().subplots()
        )
        assert [text.get_text() for text in ax.get_xticklabels()] == ["False", "True"]
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
        assert ax.get_yscale() == "linear"

    def test_a_hidden_effect_spans_the_figure(self):
        model = hazards(500, epsilon=0.5)
        ax = plot_effect(model, "age", ax=Figure().subplots())
        (band,) = ax.collections
        assert np.isfinite(band.get_paths()[0].vertices).all()

    def test_what_has_no_effects_is_refused(self):
        with pytest.raises(TypeError, match=r"models\['a'\] must be a regression with effects"):
            plot_effect({"a": object()}, "age")

    def test_units_leave_curves_out(self, model):
        table = units(model.release_)
        assert table.index.get_level_values("column").tolist() == ["treat", "x", "x:treat"]
        np.testing.assert_allclose(table["coef"], (np.ravel(model.coef_) * SLOPES)[3:])

    def test_a_report_draws_each_curve(self, model, tmp_path):
        save_report(model.release_, tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert page.count("over the range of age, against its typical value") >= 1
        assert "over the range of x" not in page


# ---- What private fits find.


def test_a_logarithm_holds_a_logarithmic_effect_where_a_line_does_not():
    """Of a skewed marker, of which each doubling raises the hazard by a half."""
    rng, n = np.random.default_rng(0), 20_000
    X = pd.DataFrame({"marker": np.exp(rng.normal(1.0, 1.0, n))})
    slope = math.log(1.5)
    exits = rng.exponential(1.0 / X["marker"] ** (slope / math.log(2.0)))
    y = pd.DataFrame({"event": exits <= 1.0, "time": np.minimum(exits, 1.0)})
    held = {}
    for word in ("log", "bounds"):
        columns = PublicColumns({"marker": {word: (0.1, 60.0), "typical": 2.7}})
        options = {"columns": columns, "link": "cloglog", "inference_share": 0.3}
        model = quietly(
            DPDiscreteTimeSurvival(3.0, max_time=1.0, random_state=0, **options).fit, X, y
        )
        table = model.effect("marker", reference=2.7)
        truth = slope * np.log2(table.index.to_numpy(float) / 2.7)
        inside = (table["coef lower 95%"] <= truth) & (truth <= table["coef upper 95%"])
        held[word] = inside.mean()
    assert held["log"] == 1.0
    assert held["bounds"] < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("fitted", [hazards, odds])
def test_intervals_of_curves_and_products_hold_the_truth(fitted):
    """60 fits; each of 6 coefficients fails by chance with a probability below 1e-7."""
    tables = [fitted(seed=seed).summary for seed in range(60)]
    lower, upper = (
        np.array([table[f"coef {end} 95%"] for table in tables]) for end in ("lower", "upper")
    )
    truth = COEF * SLOPES
    missed = ((lower > truth) | (truth > upper)).sum(axis=0)
    assert (missed <= stats.binom.isf(1e-7, 60, 0.05)).all()
    assert np.isfinite(upper).mean() > 0.95
