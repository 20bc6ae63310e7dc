"""What a private fit estimates, computed from the records."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from skdpsurv import (
    DPDiscreteTimeSurvival,
    PosteriorSampling,
    PrivacyAccountant,
    PublicColumns,
    Release,
)
from skdpsurv.survival.hazards.model import published_basis
from tests.support import checks
from tests.support.weibull import target

MAX_TIME = 10.0
RAW = {"nodes": (0, 35), "age": (0, 100)}
PRIVATE = "private: not to be published"


def people(n=600, seed=0, effect=0.6):
    """A skewed column that acts through its logarithm, and one that does nothing."""
    rng = np.random.default_rng(seed)
    nodes, age = np.minimum(rng.exponential(3.0, n), 35.0), rng.uniform(20.0, 90.0, n)
    time = MAX_TIME * rng.exponential(size=n) / (0.4 * (1.0 + nodes) ** effect)
    last = np.minimum(rng.exponential(20.0, n), MAX_TIME)
    return np.column_stack([nodes, age]), target(time <= last, np.minimum(time, last))


def estimator(epsilon=3.0, **changes):
    options = {"max_time": MAX_TIME, "link": "cloglog", "columns": PublicColumns(RAW)}
    return DPDiscreteTimeSurvival(epsilon, **{**options, **changes})


def fit(epsilon=3.0, n=600, X=None, **changes):
    rows, y = people(n)
    model = estimator(epsilon, random_state=0, **changes)
    return checks.quietly(model.fit, rows if X is None else X, y)


def values(model):
    return {name: np.asarray(value) for name, value in model.release_.values.items()}


def rows_and_weights(model, X):
    """Return rows by the released numbers, and weights, from their formulas."""
    found = values(model)
    z = (model.columns_.transform(X) - found["row_center"]) / found["row_scale"]
    z = z / found["row_radius"]
    norm, longest = np.linalg.norm(z, axis=1), 1.0 if model.inference_ is None else 4.0
    z = z * np.minimum(1.0, longest / norm)[:, None]
    return z, np.minimum(1.0, np.linalg.norm(z, axis=1) ** -2.0)


def by_formula(model, X, y):
    """Minimise the weighted sum of capped losses, whose thresholds cloglog has in closed form."""
    z, weight = rows_and_weights(model, X)
    q, cap = model.n_intervals, model.max_cumulative_hazard_
    basis = published_basis(q, 3)
    exit_ = np.clip(np.ceil(y["time"] / MAX_TIME * q), 1, q).astype(int)
    survived = exit_ - y["event"]

    def loss(point):
        a, b = basis @ point[:3], z @ point[3:]
        baseline = np.append(0.0, np.cumsum(np.exp(a)))[survived]
        with np.errstate(divide="ignore"):
            threshold = np.log(cap / baseline)
        hazard = baseline * np.exp(np.minimum(b, threshold))
        hazard += cap * np.maximum(0.0, b - threshold)
        last = np.exp(a[exit_ - 1] + b)
        return weight @ (hazard - y["event"] * np.log(-np.expm1(-last))) / len(z)

    start = np.array([-3.0, 0.0, 0.0, *np.zeros(z.shape[1])])
    coef = minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).x[3:]
    found = values(model)
    return coef / (found["row_radius"] * found["row_scale"])


class TestEstimand:
    @pytest.mark.parametrize("link", ["logit", "cloglog"])
    @pytest.mark.parametrize("share", [0.0, 0.2])
    def test_it_is_maximum_likelihood_where_nothing_is_clipped_or_capped(self, link, share):
        free = {"data_norm": 50.0, "max_cumulative_hazard": 100.0, "pilot_share": 0.0}
        model = fit(link=link, inference_share=share, **free)
        exact = fit(np.inf, link=link).summary["coef"]
        found = model.estimand(*people())
        assert found.index.equals(exact.index)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * np.abs(exact).max())

    @pytest.mark.parametrize("share", [0.0, 0.2])
    def test_it_minimises_the_weighted_and_capped_loss(self, share):
        X, y = people()
        options = {"max_cumulative_hazard": 0.8, "n_intervals": 20}
        model = fit(epsilon=10.0, inference_share=share, **options)
        scales, (_, weight) = values(model)["row_scale"], rows_and_weights(model, X)
        assert (scales < 0.8).all() == bool(share)  # columns are in [-1, 1]
        assert (weight < 0.99).any() == bool(share)
        expected = by_formula(model, X, y)
        steps = [feature.per_unit for feature in model.release_.features]
        np.testing.assert_allclose(model.estimand(X, y) / steps, expected, atol=2e-4)
        exact = fit(np.inf, n_intervals=20, max_cumulative_hazard=0.8).coef_
        assert np.abs(expected - exact).max() > 0.05

    @pytest.mark.parametrize("cap", ["auto", None])
    def test_intervals_hold_it_and_it_is_not_that_of_all_alike(self, cap):
        """With little noise, on a skewed column: seeded, so that nothing is left to chance."""
        options = {"link": "logit", "max_cumulative_hazard": cap, "n_intervals": 50}
        model, records = fit(100.0, 4000, inference_share=0.2, **options), people(4000)
        alike = fit(np.inf, 4000, **options).summary["coef"]
        found, summary = model.estimand(*records), model.summary
        assert (summary["coef lower 95%"] < found).all()
        assert (found < summary["coef upper 95%"]).all()
        assert (np.abs(summary["coef"] - found) < 0.3 * summary["se(coef)"]).all()
        assert found["nodes"] > 1.05 * alike["nodes"]

    def test_the_first_record_of_each_person_counts(self):
        X, y = people()
        ids = np.repeat(np.arange(600), 2)
        model = fit(inference_share=0.2)
        twice, again = np.repeat(X, 2, axis=0), np.repeat(y, 2)
        twice[1::2] = 0.0
        assert model.estimand(twice, again, person=ids).equals(model.estimand(X, y))

    def test_it_is_named_private_spends_nothing_and_changes_nothing(self):
        X, y = people()
        ledger = PrivacyAccountant(epsilon=5.0)
        options = {"inference_share": 0.2, "data_norm": 1.0, "accountant": ledger}
        model = checks.quietly(estimator(**options).fit, X, y)
        before, spent = dict(vars(model)), ledger.spent()
        found = model.estimand(X, y)
        assert found.name == PRIVATE
        assert "private" in type(model).estimand.__doc__.lower()
        assert vars(model) == before
        assert ledger.spent() == spent == 3.0
        alone = Release.from_json(model.release_.to_json()).to_estimator()
        assert alone.estimand(X, y).equals(found)
        # Fewer people than the release is of, too.
        assert not alone.estimand(X[:300], y[:300]).equals(found)

    def test_what_has_no_rows_of_its_own_is_refused(self):
        X, y = people(200)
        chain = PosteriorSampling(n_epochs=100)
        for changes in ({"epsilon": np.inf}, {"method": chain}):
            model = checks.quietly(estimator(**changes).fit, X, y)
            assert not values(model).keys() & {"row_center", "row_scale", "row_radius"}
            with pytest.raises(ValueError, match="row_center, row_scale and row_radius"):
                model.estimand(X, y)

    def test_crafted_rows_and_wrong_records_are_refused(self):
        X, y = people(200)
        content = json.loads(fit(n=200).release_.to_json())
        for name, value, words in (
            ("row_center", [0.0], "row_center"),
            ("row_scale", [0.5, -1.0], "positive row_scale"),
            ("row_radius", 0.0, "positive row_scale and row_radius"),
        ):
            crafted = json.dumps(content | {"values": content["values"] | {name: value}})
            with pytest.raises(ValueError, match=words):
                Release.from_json(crafted).to_estimator().estimand(X, y)
        plain = fit(n=200, columns=None)
        for records in ((X[:, :1], y), (X, y[:-1]), (X[:0], y[:0]), (X, None), (X * np.nan, y)):
            with pytest.raises(ValueError, match=r"X|y must"):
                plain.estimand(*records)
        frame = pd.DataFrame(X, columns=list(RAW))
        named = fit(n=200, columns=None, X=frame)
        with pytest.raises(ValueError, match="same order"):
            named.estimand(frame[["age", "nodes"]], y)


class TestMeanWeight:
    @pytest.mark.parametrize("epsilon", [1.0, 100.0])
    def test_a_release_has_it_with_the_error_by_noise(self, epsilon):
        """No more than six errors away: normal noise is that once in 1e9."""
        model = fit(epsilon, 2000, inference_share=0.2)
        _, weight = rows_and_weights(model, people(2000)[0])
        found, error = values(model)["mean_weight"]
        assert 0.0 < error < 0.15 / epsilon * 3.0
        assert abs(found - weight.mean()) < 6.0 * error + 1e-4

    def test_a_low_one_is_said(self, capsys):
        content = json.loads(fit(inference_share=0.2).release_.to_json())
        for found, mean, low in (
            ([0.92, 0.01], "0.92", False),
            ([0.85, 0.026], "0.85", False),
            ([0.85, 0.024], "0.85", True),
            ([1.3, 0.4], "1.00", False),
        ):
            content["values"]["mean_weight"] = found
            Release.from_json(json.dumps(content)).to_estimator().print_summary()
            words = capsys.readouterr().out
            assert f"far from the average, count less: mean weight {mean}." in words
            assert ("The mean weight is below 0.9" in words) == low
