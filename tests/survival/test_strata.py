"""Hazard models with strata: a baseline for each label, beside statsmodels and lifelines."""

import json
import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from lifelines import CoxPHFitter, KaplanMeierFitter
from lifelines.datasets import load_larynx, load_lung, load_rossi
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    PrivacyAccountant,
    PublicColumns,
    Release,
)
from skdpsurv.data.stratified_columns import StratifiedColumns, stratified
from skdpsurv.data.target import survival_target
from skdpsurv.evaluation import private_survival_metrics
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.report import explain, formula
from skdpsurv.survival.concordance import concordance_index
from skdpsurv.survival.hazards.life_table import entry_counts, outcome_counts
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.test_scoring import run_text

SITES = ["A", "B", "C"]
COLUMNS = PublicColumns({"site": SITES, "x": (-2, 2), "z": bool})
MODEL = {"columns": COLUMNS, "strata": "site", "max_time": 2.0, "recalibration_share": 0.0}


def people(n=3000, seed=0, late=False):
    """Return people of three sites whose hazards have other shapes, and x of another mean."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 3, n)
    x, z = 0.5 * rng.normal(size=n) + 0.3 * (site - 1), rng.random(n) < 0.5
    rate = np.array([0.5, 1.0, 0.3])[site] * np.exp(0.8 * x - 0.5 * z)
    time = (rng.exponential(size=n) / rate) ** (1.0 / np.array([0.7, 1.0, 1.8])[site])
    last = rng.uniform(0.0, 3.0, n)
    X = pd.DataFrame({"site": np.array(SITES)[site], "x": x, "z": z.astype(int)})
    y = survival_target(time <= last, np.minimum(time, last))
    return (X, y, rng.uniform(0.0, 1.5, n) * (rng.random(n) < 0.5)) if late else (X, y)


def fitted(X, y, epsilon=3.0, seed=0, entry=None, **options):
    model = DPDiscreteTimeSurvival(epsilon, random_state=seed, **{**MODEL, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, entry=entry)


class TestWithoutPrivacy:
    @pytest.mark.parametrize("late", [False, True])
    def test_person_periods_with_a_baseline_by_site_have_the_same_coefficients(self, late):
        (X, y, *entry), q = people(1500, late=late), 12
        model = fitted(X, y, np.inf, n_intervals=q, entry=entry[0] if late else None)
        exit_ = np.ceil(np.minimum(y["time"], 2.0) * q / 2.0).clip(1).astype(int)
        event = y["event"] & (y["time"] <= 2.0)
        entered = np.ceil(entry[0] * q / 2.0).clip(0, q).astype(int) if late else 0 * exit_
        seen = [(i, s) for i in range(len(X)) for s in range(entered[i], exit_[i])]
        person, period = np.array(seen).T
        dummies = (X.site.to_numpy()[:, None] == SITES).astype(float)[person]
        baseline = (dummies[:, :, None] * orthogonal_basis(q, 3)[period][:, None, :]).reshape(
            person.size, -1
        )
        rows = np.column_stack([X.x.clip(-2, 2) / 2, X.z])[person]
        response = event[person] & (period == exit_[person] - 1)
        theirs = sm.Logit(response, np.column_stack([baseline, rows])).fit(
            disp=0, method="newton", tol=1e-14, maxiter=100
        )
        np.testing.assert_allclose(model.coef_, theirs.params[-2:], rtol=1e-8)
        expected = theirs.params[:9].reshape(3, 3) @ orthogonal_basis(q, 3).T
        np.testing.assert_allclose(model.baseline_coef_ @ model._basis.T, expected, atol=1e-7)

    @pytest.mark.parametrize(
        ("load", "time", "event", "strata"),
        [
            (load_lung, "time", "status", "sex"),
            (load_larynx, "time", "death", "Stage_II"),
            (load_rossi, "week", "arrest", "race"),
        ],
    )
    def test_stratified_cox_regression_is_near(self, load, time, event, strata):
        frame = load().drop(columns=["inst", "wt.loss", "meal.cal"], errors="ignore").dropna()
        numbers = [name for name in frame if name not in (time, event, strata)]
        cox = CoxPHFitter().fit(frame, time, event, strata=[strata])
        labels = sorted(frame[strata].astype(int).unique().tolist())
        bounds = {name: (frame[name].min() - 1.0, frame[name].max() + 1.0) for name in numbers}
        columns = PublicColumns({strata: {"categories": labels}, **bounds})
        X = frame[[strata, *numbers]].astype({strata: int})
        y = survival_target(frame[event].to_numpy(bool), frame[time].to_numpy(float))
        how = {"columns": columns, "strata": strata, "max_time": float(frame[time].max())}
        model = fitted(X, y, np.inf, n_intervals=500, n_knots=4, link="cloglog", **how)
        half = np.array([(high - low) / 2 for low, high in bounds.values()])
        off = (model.coef_ / half - cox.params_[numbers]) / cox.standard_errors_[numbers]
        assert np.abs(off).max() < 0.3

    def test_curves_are_those_of_each_site(self):
        X, y = people(6000)
        curves = fitted(X, y, np.inf, n_knots=4).predict_survival_function(X, return_array=True)
        for site in SITES:
            own = (X.site == site).to_numpy()
            known = KaplanMeierFitter().fit(y["time"][own], y["event"][own])
            expected = known.predict([0.5, 1.0, 2.0]).to_numpy()
            np.testing.assert_allclose(curves[own].mean(axis=0)[[49, 99, 199]], expected, atol=0.02)

    def test_a_site_without_people_changes_nothing(self):
        X, y = people(1000)
        more = PublicColumns({"site": [*SITES, "D"], "x": (-2, 2), "z": bool})
        model = fitted(X, y, np.inf, columns=more)
        known = fitted(X, y, np.inf)
        np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-7)
        assert np.isfinite(model.baseline_coef_).all()


class TestPrivate:
    @pytest.mark.parametrize("late", [False, True])
    def test_coefficients_and_curves_are_near(self, late):
        (X, y, *entry), known = people(4000, 1, late), None
        how = {"entry": entry[0] if late else None, "n_intervals": 50, "link": "cloglog"}
        known = fitted(X, y, np.inf, **how)
        found = [fitted(X, y, 3.0, seed, **how) for seed in range(5)]
        assert all(model.baseline_coef_.shape == (3, 3) for model in found)
        gaps = [np.abs(model.coef_ - known.coef_).max() for model in found]
        assert np.median(gaps) < 0.45
        rows = X.groupby("site").head(1)
        curves = [one.predict_survival_function(rows, return_array=True) for one in (known, *found)]
        assert np.median([np.abs(one - curves[0]).max() for one in curves[1:]]) < 0.12

    @pytest.mark.parametrize(("cap", "more"), [(1.0, 1.0), (2.0, 1.037), (4.0, 1.037)])
    def test_sensitivity_is_that_of_neighbours_in_two_strata(self, cap, more):
        X, y = people(500)
        plain = {**MODEL, "strata": None, "max_cumulative_hazard": cap}
        one = DPDiscreteTimeSurvival(1.0, **plain).prepare(X, y).guarantee
        own = DPDiscreteTimeSurvival(1.0, **{**plain, "strata": "site"}).prepare(X, y).guarantee
        size = "gradient_sensitivity"
        ratio = own.public_inputs[size] / one.public_inputs[size]
        assert ratio == pytest.approx(more, abs=1e-3)
        assert own.public_inputs["n_strata"] == 3
        assert "n_strata" not in one.public_inputs
        assert own.status == "proved"

    def test_each_record_is_in_one_cell_of_its_stratum(self):
        X, y, entry = people(300, late=True)
        model = DPDiscreteTimeSurvival(3.0, **MODEL)
        for late, count in ((None, outcome_counts), (entry, entry_counts)):
            records = model.prepare(X, y, **({} if late is None else {"entry": late})).records
            counts = count(records, 200, 4, 3).reshape(3, -1)
            sizes = [(X.site == site).sum() for site in SITES]
            np.testing.assert_array_equal(counts.sum(axis=1), sizes)

    def test_releases_stand_alone_and_say_what_strata_are(self):
        X, y = people(500)
        model = fitted(X, y)
        release = Release.from_json(model.release_.to_json())
        again = DPDiscreteTimeSurvival.from_release(release)
        for predict in ("predict", "predict_median", "predict_expectation"):
            np.testing.assert_array_equal(getattr(again, predict)(X), getattr(model, predict)(X))
        assert release.feature_names == ["x", "z"]
        assert release.parameters["strata"] == "site"
        assert model.columns is COLUMNS
        assert isinstance(again.columns_, StratifiedColumns)
        assert "one of A, B, C; each has a baseline of its own" in " ".join(
            explain(release).split()
        )
        assert 'indicator(site == "B")' in formula(release)
        assert (
            "Each label of site has a baseline of its own (A, B, C)." in again._horizon_words()[0]
        )

    def test_formulas_compute_the_curves(self):
        X, y = people(500)
        model, rows = fitted(X, y, n_intervals=10), X.head(9)
        survival = run_text(model, rows, model.release_.features)["survival"]
        curves = model.predict_survival_function(rows, return_array=True)
        np.testing.assert_allclose(survival(1.0), curves[:, 4], rtol=1e-12)
        assert len(set(survival(1.0))) == 9

    def test_blocks_people_and_lazy_tables_are_read_alike(self):
        X, y = people(600)
        known = fitted(X, y).coef_
        table = dd.from_pandas(X.assign(event=y["event"], time=y["time"]), npartitions=3)
        lazy = fitted(table[list(X)], table[["event", "time"]])
        np.testing.assert_allclose(lazy.coef_, known, rtol=1e-8)
        curves = lazy.predict_survival_function(table[list(X)], return_array=True).compute()
        expected = lazy.predict_survival_function(X, return_array=True)
        np.testing.assert_array_equal(curves, expected)
        twice = pd.concat([X, X.assign(site="A")], ignore_index=True)
        model = DPDiscreteTimeSurvival(3.0, random_state=0, **MODEL)
        person = np.tile(np.arange(600), 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(twice, np.concatenate([y, y]), person=person)
        np.testing.assert_allclose(model.coef_, known, rtol=1e-8)

    def test_products_with_the_strata_are_covariates(self):
        X, y = people(800)
        columns = PublicColumns({**COLUMNS.columns, "site:z": {"interaction": ["site", "z"]}})
        model = fitted(X, y, columns=columns)
        names = ["x", "z", "site_B:z", "site_C:z"]
        assert model.release_.feature_names == names
        assert model.coef_.shape == (4,)

    def test_an_estimand_is_of_the_same_strata(self):
        X, y = people(3000)
        model = fitted(X, y, 3.0, max_cumulative_hazard=3.0, n_intervals=50)
        exact = fitted(X, y, np.inf, n_intervals=50).coef_ / [2.0, 1.0]
        assert np.abs(model.estimand(X, y) - exact).max() < 0.1

    @pytest.mark.slow
    def test_metrics_of_other_people_take_their_curves(self):
        X, y = people(2000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = private_survival_metrics(
                fitted(X, y), *people(2000, 5), epsilon=5.0, max_time=2.0
            )
        assert abs(found.expected_observed.value - 1.0) < 0.2

    def test_a_prior_and_scales_are_taken_from_them(self):
        X, y = people(1000)
        release = fitted(X, y).release_
        for name in ("prior", "scales"):
            assert np.isfinite(fitted(X, y, **{name: release}).coef_).all()


def test_pairs_of_two_strata_do_not_count():
    X, y, entry = people(400, late=True)
    model = fitted(X, y, entry=entry)
    risk = model.predict(X)
    for late in (None, entry):
        concordant = comparable = 0.0
        for i in range(len(X)):
            if not y["event"][i] or (late is not None and late[i] >= y["time"][i]):
                continue
            other = (X.site == X.site[i]).to_numpy() & (y["time"] > y["time"][i])
            if late is not None:
                other &= (late < y["time"][i]) | ((late == 0.0) & (y["time"][i] > 0.0))
            comparable += other.sum()
            concordant += (risk[i] > risk[other]).sum() + 0.5 * (risk[i] == risk[other]).sum()
        assert model.score(X, y, entry=late) == pytest.approx(concordant / comparable)
    theirs = CoxPHFitter().fit(X.assign(t=y["time"], e=y["event"]), "t", "e", strata=["site"])
    cox = X[["x", "z"]].to_numpy() @ theirs.params_[["x", "z"]].to_numpy()
    own = concordance_index(y, cox, strata=X.site.to_numpy())
    assert own == pytest.approx(theirs.concordance_index_, abs=1e-12)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"strata": "town"}, "strata must name a category of columns with two labels or more"),
            ({"strata": "x"}, "strata must name a category of columns with two labels or more"),
            ({"strata": "z"}, "strata must name a category of columns with two labels or more"),
            ({"strata": 3}, "strata must be None or text, got int"),
            ({"columns": None}, "strata must be None without columns that are a PublicColumns"),
            (
                {"columns": PublicColumns({**COLUMNS.columns, "site": ["A"]}, drop=None)},
                "with two labels or more",
            ),
            (
                {"columns": PublicColumns(COLUMNS.columns, missing="category")},
                "that has missing='error'",
            ),
            ({"method": "psgld"}, "strata must be None with method='psgld'"),
        ],
    )
    def test_settings_that_do_not_fit_cost_nothing(self, given, says):
        X, y = people(100)
        ledger = PrivacyAccountant(epsilon=9.0)
        model = DPDiscreteTimeSurvival(3.0, accountant=ledger, **{**MODEL, **given})
        with pytest.raises((ValueError, TypeError), match=says):
            model.fit(X, y)
        assert ledger.spent() == 0.0

    @pytest.mark.parametrize("cell", ["D", "a", None, np.nan, 1])
    def test_other_labels_are_refused_in_fits_and_predictions(self, cell):
        X, y = people(100)
        model, ledger = fitted(X, y), PrivacyAccountant(epsilon=9.0)
        wrong = X.astype({"site": object})
        wrong.at[7, "site"] = cell
        asked = DPDiscreteTimeSurvival(3.0, accountant=ledger, **MODEL)
        for ask in (lambda: asked.fit(wrong, y), lambda: model.predict_median(wrong)):
            with pytest.raises(ValueError, match="column 'site'") as refused:
                ask()
            assert "7" not in str(refused.value)
        assert ledger.spent() == 0.0

    def test_columns_with_strata_are_for_models_that_have_them(self):
        X, y = people(100)
        columns = stratified(COLUMNS, "site")
        for model in (
            DPLogisticRegression(3.0, columns=columns, classes=[False, True]),
            DPDiscreteTimeSurvival(3.0, columns=columns, max_time=2.0),
        ):
            with pytest.raises(ValueError, match="columns must make features of 'site'"):
                model.fit(X, y["event"] if isinstance(model, DPLogisticRegression) else y)

    def test_nobody_changes_labels_while_a_fit_runs(self):
        """Another label would have a number that no table has a place for."""
        X, y = people(100)
        sites = list(SITES)
        columns = PublicColumns({"site": sites, "x": (-2, 2), "z": bool})
        fit = DPDiscreteTimeSurvival(3.0, **{**MODEL, "columns": columns}).prepare(X, y)
        sites.append("D")
        assert fit.run().baseline_coef_.shape == (3, 3)

    @pytest.mark.parametrize("crafted", ["no strata", "other strata", "plain columns"])
    def test_releases_name_the_strata_of_their_columns(self, crafted):
        content = json.loads(fitted(*people(200)).release_.to_json())
        if crafted == "no strata":
            del content["parameters"]["strata"]
        elif crafted == "other strata":
            content["parameters"]["strata"] = "z"
        else:
            content["columns"]["step"] = "PublicColumns"
            del content["columns"]["parameters"]["strata"]
        with pytest.raises(ValueError, match=r"strata of a release must be|must hold|shape"):
            DPDiscreteTimeSurvival.from_release(Release.from_json(json.dumps(content)))

    @pytest.mark.parametrize(
        "step", [make_pipeline, lambda one: ColumnTransformer([("a", one, [0, 1, 2])])]
    )
    def test_strata_are_not_inside_of_other_steps(self, step):
        X, y = people(100)
        columns = step(stratified(COLUMNS, "site"))
        with pytest.raises(ValueError, match="must not have strata inside of other steps"):
            DPLogisticRegression(3.0, columns=columns, classes=[False, True]).fit(X, y["event"])

    def test_searches_know_one_baseline(self):
        X, y = people(100)
        search = PrivateSearchCV(DPDiscreteTimeSurvival(**MODEL), {"n_knots": [2, 3]}, epsilon=3.0)
        with pytest.raises(ValueError, match="strata must be None in a search"):
            search.fit(X, y)
