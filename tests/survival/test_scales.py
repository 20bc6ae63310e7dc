"""Columns that are centred and divided by their spreads before rows are clipped."""

import math

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPTableOne,
    PrivateSearchCV,
    PublicColumns,
)
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.descriptive.released_moments import features_of, moments_of
from skdpsurv.survival.hazards.fit import SCALED_RANGE
from skdpsurv.survival.hazards.life_table import LifeTable
from skdpsurv.survival.hazards.model import HazardRecords
from skdpsurv.survival.hazards.spreads import LARGEST_NOISE, SPREADS_SHARE, ColumnSpreads, RowMean

WIDE = {"age": {"bounds": (0, 400), "missing": "midpoint"}, "ill": bool, "arm": ["a", "b", "c"]}
STATED = {
    "age": WIDE["age"] | {"typical": 60, "spread": 10},
    "ill": {"boolean": True, "prevalence": 0.2},
    "arm": {"categories": ["a", "b", "c"], "prevalence": [0.5, 0.25, 0.25]},
}


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(60.0, 10.0, n), "ill": rng.random(n) < 0.2})
    X["arm"] = rng.choice(["a", "b", "c"], n, p=[0.5, 0.25, 0.25])
    risk = 0.07 * (X.age - 60.0) + 0.8 * X.ill
    time = rng.exponential(np.exp(-risk))
    y = np.array([*zip(time < 1.0, np.minimum(time, 1.0), strict=True)], [("e", "?"), ("t", "f8")])
    return X, y


def model(columns=WIDE, **given):
    described = None if columns is None else PublicColumns(columns)
    options = {"max_time": 1.0, "link": "cloglog", "epsilon": 2.0, "columns": described}
    return DPDiscreteTimeSurvival(**{**options, **given})


def table(**given):
    X, _ = people()
    options = {"epsilon": 50.0, "columns": PublicColumns(WIDE), "by": "arm"}
    return DPTableOne(**{**options, **given}).fit(X).release_


def moments(release, columns):
    """Return means, variances and errors of the latter; NaN where there are none."""
    found = {one.name: row for one, row in moments_of(DPTableOne.from_release(release))}
    unknown = 3 * (math.nan,)
    return np.array([found.get(one.name, unknown) for one in columns._features()]).T


def pilot(estimator, n=3000):
    """Return the classes of a plan's first measurements, and the epsilon that they cost."""
    X, y = people(n)
    plan = estimator.prepare(X, y).plan
    kinds = [type(leaf) for leaf in plan.leaves]
    return kinds[: kinds.index(type(plan.tree.nodes[1]))], plan.public_inputs()["epsilon_center"]


class TestWhatIsAsked:
    def test_where_nothing_is_known_the_mean_of_rows(self):
        assert pilot(model()) == ([LifeTable, RowMean], pytest.approx(0.2))

    def test_with_standard_errors_the_spreads_of_columns(self):
        share = pytest.approx(2.0 * SPREADS_SHARE)
        assert pilot(model(inference_share=0.2)) == ([LifeTable, ColumnSpreads], share)

    def test_where_all_are_stated_nothing(self):
        for given in ({}, {"inference_share": 0.2}):
            assert pilot(model(STATED, **given)) == ([LifeTable], pytest.approx(0.2 / 3))
        assert pilot(model(scales=table())) == ([LifeTable], pytest.approx(0.2 / 3))

    def test_where_some_are_stated_the_rest(self):
        some = WIDE | {"age": STATED["age"]}
        assert pilot(model(some))[0] == [LifeTable, RowMean]
        assert pilot(model(some, inference_share=0.2))[0] == [LifeTable, ColumnSpreads]

    @pytest.mark.parametrize("n", [120, 500])
    def test_noise_that_would_hide_them_is_not_paid_for(self, n):
        """At most LARGEST_NOISE of half the width of bounds, by public numbers."""
        found, _ = pilot(model(inference_share=0.2), n)
        query = ColumnSpreads(price=2.0 * SPREADS_SHARE * 2 / 3, fit=fit_of(n)).query_for({})
        pays = query.deviation(2.0 * SPREADS_SHARE * 2 / 3) <= LARGEST_NOISE
        assert pays == (ColumnSpreads in found)
        assert pays == (n == 500)

    def test_a_share_that_is_given_is_kept(self):
        assert pilot(model(STATED, pilot_share=0.3))[1] == pytest.approx(0.6)
        assert pilot(model(inference_share=0.2, pilot_share=0.3))[1] == pytest.approx(0.6)

    def test_a_stated_norm_asks_for_no_scales(self):
        found = pilot(model(STATED, inference_share=0.2, data_norm=1.0))
        assert found == ([LifeTable, RowMean], pytest.approx(0.2))


def fit_of(n):
    estimator = model(inference_share=0.2)
    X, y = people(n)
    return estimator.prepare(X, y).plan.leaves[1].fit


class TestRows:
    def test_they_are_divided_by_stated_spreads(self, monkeypatch):
        seen = []
        original = HazardRecords.clipped
        monkeypatch.setattr(HazardRecords, "clipped", lambda *a: seen.append(a[1:]) or original(*a))
        X, y = people()
        model(STATED).fit(X, y)
        mean, radius, bound, scales = seen[0]
        np.testing.assert_allclose(mean, [60 / 200 - 1, 0.2, 0.25, 0.25])
        shared = math.sqrt((0.2 * 0.8 + 2 * 0.25 * 0.75) / 3)
        np.testing.assert_allclose(scales, [10 / 200, shared, shared, shared])
        assert bound is None
        least, most = SCALED_RANGE
        assert least * 2.0 < radius <= most * 2.0

    @pytest.mark.parametrize("columns", [STATED, WIDE])
    def test_much_epsilon_finds_the_exact_coefficients(self, columns):
        X, y = people()
        exact = model(epsilon=math.inf).fit(X, y).coef_
        given = {"epsilon": 1e5, "inference_share": 0.2, "max_cumulative_hazard": 20.0}
        found = model(columns, **given).fit(X, y)
        np.testing.assert_allclose(found.inference_.estimate[-4:], exact, rtol=0.05, atol=0.05)

    def test_measured_spreads_are_near_the_true_ones(self, monkeypatch):
        seen = []
        original = HazardRecords.clipped
        monkeypatch.setattr(HazardRecords, "clipped", lambda *a: seen.append(a[1:]) or original(*a))
        X, y = people()
        model(epsilon=500.0, inference_share=0.2).fit(X, y)
        mean, _, bound, scales = seen[0]
        rows = PublicColumns(WIDE).fit_transform(X)
        np.testing.assert_allclose(mean, rows.mean(axis=0), atol=0.01)
        assert scales[0] == pytest.approx(rows[:, 0].std(), rel=0.1)
        assert bound == 4.0

    def test_wide_bounds_cost_little_where_spreads_are_stated(self):
        """Of 8 fits each, the mean loss of C; seeds are fixed."""
        X, y = people()
        best = model(epsilon=math.inf).fit(X, y).score(X, y)
        loss = {}
        for name, spec in (("stated", STATED), ("wide", WIDE)):
            made = (model(spec, epsilon=0.5, random_state=i).fit(X, y) for i in range(8))
            loss[name] = best - np.mean([one.score(X, y) for one in made])
        assert loss["stated"] < 0.5 * loss["wide"]


class TestTable:
    def test_its_moments_are_those_of_the_features(self):
        X, _ = people()
        found = moments(table(), PublicColumns(WIDE))
        rows = PublicColumns(WIDE).fit_transform(X)
        np.testing.assert_allclose(found[0], rows.mean(axis=0), atol=0.02)
        np.testing.assert_allclose(np.sqrt(found[1]), rows.std(axis=0), atol=0.02)
        assert (found[2] > 0.0).all()
        assert (found[2] < 0.02).all()

    def test_a_spread_that_noise_made_nothing_is_not_believed(self):
        """Of 20 small tables, with much noise; seeds are fixed."""
        X, _ = people(300)
        X["ill"] = np.arange(300) < 6
        columns = PublicColumns(WIDE)
        features, least = columns._features(), []
        for seed in range(20):
            noisy = DPTableOne(epsilon=0.3, columns=columns, random_state=seed).fit(X)
            known = KnownColumns.of(features).released(features, moments_of(noisy))
            least.append(known.variance.min())
        assert min(least) > 0.01

    def test_gaps_are_in_the_middle_of_bounds_or_an_indicator(self):
        X, _ = people()
        X.loc[:999, "age"] = np.nan
        for missing in ("midpoint", "category"):
            columns = PublicColumns({"age": {"bounds": (0, 400), "missing": missing}})
            release = DPTableOne(epsilon=100.0, columns=columns).fit(X[["age"]]).release_
            found = moments(release, columns)
            rows = columns.fit_transform(X[["age"]])
            np.testing.assert_allclose(found[0], rows.mean(axis=0), atol=0.02)
            np.testing.assert_allclose(np.sqrt(found[1]), rows.std(axis=0), atol=0.02)

    def test_logarithms_are_unknown(self):
        X, _ = people()
        columns = PublicColumns(WIDE | {"age": {"log": (1, 400)}})
        release = DPTableOne(epsilon=50.0, columns=columns).fit(X).release_
        found = moments(release, columns)
        assert np.isnan(found).any(axis=0).tolist() == [True, False, False, False]
        names = [one.name for one in columns._features()]
        assert [one.name for one in features_of(columns)] == names[1:]

    def test_curves_and_products_follow_from_their_columns(self):
        X, _ = people(20_000)
        X.loc[:999, "age"] = np.nan
        spline = {"spline": (20, 100), "df": 3, "missing": "midpoint"}
        products = {f"age:{name}": {"interaction": ["age", name]} for name in ("arm", "ill")}
        columns = PublicColumns(WIDE | {"age": spline} | products)
        release = DPTableOne(epsilon=100.0, columns=columns).fit(X).release_
        found, rows = moments(release, columns), np.asarray(columns.fit_transform(X))
        np.testing.assert_allclose(found[0], rows.mean(axis=0), atol=0.02)
        np.testing.assert_allclose(np.sqrt(found[1]), rows.std(axis=0), atol=0.02)
        assert (found[2] > 0.0).all()
        said = {one.name for one in features_of(columns)}
        assert said == {one.name for one in columns._features()}
        X, y = people()
        fitted = model(columns.columns, scales=release, inference_share=0.2).fit(X, y)
        scales = fitted.release_.values["row_scale"]
        np.testing.assert_allclose(scales, np.sqrt(found[1]), rtol=0.3)
        logs = PublicColumns(WIDE | {"age": {"log": (1, 400)}} | products)
        assert not any("age" in one.name for one in features_of(logs))

    def test_features_of_other_bounds_are_unknown(self):
        other = PublicColumns(WIDE | {"age": (0, 100)})._features()
        known = KnownColumns.of(other).released(other, moments_of(DPTableOne.from_release(table())))
        assert np.isnan(known.center).tolist() == [True, False, False, False]
        assert np.isnan(known.variance).tolist() == [True, False, False, False]

    def test_its_people_have_a_promise_of_their_own(self):
        X, y = people()
        fitted = model(scales=table(epsilon=3.0)).fit(X, y)
        ((entry),) = fitted.guarantee_.public_inputs["scales"]
        assert entry["epsilon"] == 3.0
        (said,) = [text for text in fitted.guarantee_.assumptions if "release of scales" in text]
        assert "sum of both epsilons" in said
        assert fitted.guarantee_.status == "proved"
        assert fitted.guarantee_.epsilon == 2.0

    def test_a_search_hands_the_promise_on(self):
        X, y = people()
        search = PrivateSearchCV(model(), {"scales": [None, table()]}, epsilon=4.0)
        entries = search.prepare(X, y).guarantee.public_inputs["scales"]
        assert [entry["epsilon"] for entry in entries] == [50.0]

    def test_a_stated_spread_comes_first(self):
        known = model(STATED, scales=table())
        known.n_features_in_, known.feature_names_in_ = 3, np.array(list(WIDE), dtype=object)
        assert known._known_columns().variance[0] == pytest.approx((10 / 200) ** 2)

    @pytest.mark.parametrize(
        ("given", "rule"),
        [
            ({"scales": 1}, "scales must be None or a Release"),
            ({"columns": None, "scales": table}, "scales must be None without columns"),
            ({"data_norm": 1.0, "scales": table}, "scales must be None without columns, or with"),
            ({"scales": lambda: table(epsilon=math.inf)}, "scales must be a release with a finite"),
        ],
    )
    def test_others_are_refused(self, given, rule):
        made = {key: value() if callable(value) else value for key, value in given.items()}
        X, y = people()
        with pytest.raises((TypeError, ValueError), match=rule):
            model(**made).fit(X, y)

    def test_an_earlier_fit_hands_its_scales_on(self):
        X, y = people()
        first = model(inference_share=0.2).fit(X, y)
        second = model(scales=first.release_)
        assert pilot(second)[0] == [LifeTable]
        values = second.fit(X, y).release_.values
        np.testing.assert_allclose(values["row_center"], first.release_.values["row_center"])
        assert values["row_scale"][0] == pytest.approx(first.release_.values["row_scale"][0])

    def test_a_release_of_something_else_is_refused(self):
        X, y = people()
        curve = DPKaplanMeierFitter(max_time=1.0).fit(y["t"], y["e"]).release_
        with pytest.raises(ValueError, match="scales must be a release of a table or a fit"):
            model(scales=curve).fit(X, y)
