"""Standard errors of a private hazard model: what they cost, and what they are worth."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, Release
from skdpsurv.datasets import make_discrete_time_survival
from skdpsurv.survival.hazards.discrete_time import fit_of, perturbed_plan
from skdpsurv.survival.hazards.fit import OUTCOME_PART
from skdpsurv.survival.hazards.inference import HazardMoments
from skdpsurv.survival.hazards.model import HazardModel

MAX_TIME = 10.0
COEF = np.array([0.8, -0.5, 0.0])


def people(n, seed, d=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    time = MAX_TIME * rng.exponential(size=n) / (0.8 * np.exp(X[:, :3] @ COEF))
    last = np.minimum(rng.exponential(15.0, n), MAX_TIME)
    y = np.empty(n, dtype=[("event", "?"), ("time", "f8")])
    y["event"], y["time"] = time <= last, np.minimum(time, last)
    return X, y


def estimator(epsilon=3.0, **changes):
    options = {"max_time": MAX_TIME, "link": "cloglog", "inference_share": 0.2, **changes}
    return DPDiscreteTimeSurvival(epsilon, **options)


@pytest.fixture(scope="module")
def fitted():
    return estimator(random_state=0).fit(*people(5000, 0))


pytestmark = pytest.mark.filterwarnings("ignore::skdpsurv.PrivacyLeakWarning")


class TestEstimand:
    """Where effects change over time, a capped fit has a limit of its own."""

    @staticmethod
    def crossing(n):
        rng = np.random.default_rng(5)
        X = rng.uniform(-1.0, 1.0, (n, 1))
        time = rng.exponential(size=n) * 2.0 / np.exp(2.0 * X[:, 0])
        late = time > 1.0  # then the effect is turned round
        time[late] = 1.0 + rng.exponential(size=late.sum()) * 4.0 / np.exp(-2.0 * X[late, 0])
        y = np.empty(n, dtype=[("event", "?"), ("time", "f8")])
        y["event"], y["time"] = time <= MAX_TIME, np.minimum(time, MAX_TIME)
        return X, y

    def test_a_release_says_which_cap_was_used(self, fitted):
        cap = fitted.max_cumulative_hazard_
        ends = fitted.guarantee_.public_inputs["max_cumulative_hazard"]
        assert ends["from"] <= cap <= ends["to"]
        again = DPDiscreteTimeSurvival.from_release(Release.from_json(fitted.release_.to_json()))
        assert again.max_cumulative_hazard_ == cap
        stated = estimator(max_cumulative_hazard=2.5, random_state=0).fit(*people(5000, 0))
        assert stated.max_cumulative_hazard_ == 2.5

    def test_intervals_are_about_the_capped_fit(self):
        """With hardly any noise: the truth that the model has for this release is elsewhere."""
        for cap in [1.0, 2.0]:
            X, y = self.crossing(4000)
            exact = estimator(np.inf, max_cumulative_hazard=cap).fit(X, y).coef_[0]
            model = estimator(1e5, max_cumulative_hazard=cap, random_state=0).fit(X, y)
            found = model.summary.iloc[0]
            assert found["coef"] == pytest.approx(exact, abs=0.02)
            assert found["coef lower 95%"] < exact < found["coef upper 95%"]


class TestCost:
    def test_parts_never_add_up_to_more_than_epsilon(self):
        for epsilon, share in itertools.product([0.1, 1.0 / 3.0, 1.0, 7.7], [0.05, 0.2, 1.0 / 3.0]):
            model = HazardModel("cloglog", 200, 3, 50_000, 4, 1.0, "auto", 0.5)
            fit, prices = fit_of(model, epsilon, "obj_pert", 0.0, (0.1, 0.1, share))
            assert sum(map(Fraction, (fit.price, *prices))) <= Fraction(epsilon)
            assert prices[2] == share * epsilon
            *_, exits, moments = perturbed_plan(fit, prices).leaves
            assert Fraction(exits.price) + Fraction(moments.price) <= Fraction(prices[2])
            assert exits.price == pytest.approx(OUTCOME_PART * share * epsilon)

    def test_rows_have_a_norm_that_the_query_knows(self):
        model = HazardModel("cloglog", 200, 3, 100, 3, 1.0, "auto", 0.5)
        fit, _ = fit_of(model, 3.0, "obj_pert", 0.0, (0.1, 0.1, 0.2))
        asked = HazardMoments(price=1.0, n_records=100, n_features=3, fit=fit)
        assert asked.query({}).width == 4
        assert asked.query({}).norm == 1.0
        assert asked.longest**2 == pytest.approx(1.25)

    def test_the_guarantee_says_what_was_spent(self, fitted):
        stated = fitted.guarantee_.public_inputs
        assert stated["epsilon_inference"] == pytest.approx(0.6)
        assert "second moments" in fitted.guarantee_.mechanism

    def test_without_a_share_or_with_few_records_there_are_none(self):
        for n, changes in (
            (1000, {"inference_share": 0.0}),
            (1000, {"epsilon": np.inf}),
            (300, {"epsilon": 0.5}),
        ):
            model = estimator(**changes).fit(*people(n, 1))
            assert "epsilon_inference" not in model.guarantee_.public_inputs
            assert model.inference_ is model.max_cumulative_hazard_ is None
            assert not any(name.startswith("inference") for name in model.release_.values)
            assert model.summary["coef"].tolist() == pytest.approx(model.coef_.tolist())
            assert model.summary["se(coef)"].isna().all()
            for ask in (
                model.confidence_interval,
                lambda m=model: m.survival_band(np.zeros((1, 3))),
            ):
                with pytest.raises(ValueError, match="inference_share"):
                    ask()


class TestWorth:
    @pytest.mark.parametrize("method", ["obj_pert", "out_pert"])
    def test_intervals_hold_the_truth(self, method):
        """180 intervals, of which 95 % should: fewer than 155 have a probability below 1e-7."""
        inside = 0
        for seed in range(60):
            model = estimator(method=method, random_state=seed, n_intervals=100)
            found = model.fit(*people(3000, 100 + seed)).confidence_interval()
            inside += ((found["lower"] <= COEF) & (found["upper"] >= COEF)).sum()
        assert inside >= 155

    def test_with_hardly_any_noise_they_are_those_of_cox(self):
        X, y = people(20_000, 3)
        ours = estimator(epsilon=1e5, n_intervals=1000, random_state=0).fit(X, y).summary
        frame = pd.DataFrame(X).assign(event=y["event"], time=y["time"])
        theirs = CoxPHFitter().fit(frame, "time", "event").summary
        errors = theirs["se(coef)"].to_numpy()
        assert (np.abs(ours["coef"] - theirs["coef"].to_numpy()) < 0.5 * errors).all()
        assert ours["se(coef)"].to_numpy() == pytest.approx(errors, rel=0.1)

    def test_what_noise_hides_is_infinite(self):
        """A column that is nearly constant."""
        X, y = people(3000, 4)
        X[:, 2] = 0.01 * X[:, 2]
        model = estimator(epsilon=1.0, random_state=0).fit(X, y)
        summary = model.summary
        assert np.isfinite(summary["se(coef)"]).tolist() == [True, True, False]
        assert summary["coef"].isna().tolist() == [False, False, True]
        lower, upper = model.survival_band(X[:2])
        assert (lower == 0.0).all()
        assert (upper == 1.0).all()

    def test_bands_hold_the_baseline(self, fitted):
        """The survival of people of the mean, from its own formula."""
        lower, upper = fitted.survival_band(np.zeros((1, 3)), level=0.999)
        truth = np.exp(-0.8 * fitted.unique_times_ / MAX_TIME)
        assert ((lower[0] <= truth) & (truth <= upper[0])).all()
        assert (upper - lower).max() < 0.3


class TestUse:
    def test_bands_are_wider_at_a_higher_level_and_fall(self, fitted):
        X = people(4, 9)[0]
        narrow, wide = (fitted.survival_band(X, level) for level in (0.5, 0.99))
        assert (wide[0] < narrow[0]).all()
        assert (narrow[0] < narrow[1]).all()
        assert (narrow[1] < wide[1]).all()
        assert (np.diff(wide[0]) <= 0).all()

    def test_refusals_before_any_budget_is_spent(self):
        accountant = PrivacyAccountant(10.0)
        few, wide = people(300, 0), (np.zeros((300, 501)), people(300, 0)[1])
        for changes, records, words in (
            ({"inference_share": 1.0}, few, "inference_share"),
            ({"inference_share": -0.1}, few, "inference_share"),
            ({"inference_share": 0.85}, few, "must sum to less than 1"),
            ({"method": "psgld"}, few, "inference_share must be 0"),
            ({}, wide, "inference_share must be 0 with more than 500"),
        ):
            with pytest.raises(ValueError, match=words):
                estimator(accountant=accountant, **changes).fit(*records)
        assert accountant.spent() == 0.0

    def test_coarse_grids(self):
        for q in [1, 2, 9]:
            data = make_discrete_time_survival(500, 1, random_state=0)
            for link in ("logit", "cloglog", "probit"):
                options = {"n_intervals": q, "n_knots": 1, "link": link, "random_state": 1}
                model = estimator(max_time=data.max_time, **options).fit(data.X, data.y)
                assert not model.summary["se(coef)"].isna().any()


def test_with_standard_errors_the_cap_may_rise_to_where_changing_effects_bend_little():
    model = HazardModel("cloglog", 200, 3, 12_000, 7, 1.0, "auto", 0.5)  # information 12
    plan, _ = fit_of(model, 1.0, "obj_pert", 0.0, (0.1, 0.1, 0.2))
    assert 3.0 < plan.highest_cap < 4.0
