"""Tests of searches with a delta: what they cost, and when noise is Gaussian."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skdpsurv import DPLogisticRegression, PrivacyAccountant
from skdpsurv.dp import PrivacyLeakWarning
from skdpsurv.dp.privacy_cost import Concentrated, rho_for, run_rho
from skdpsurv.dp.selection import RunCount
from skdpsurv.mechanisms import sums
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.release import Release
from tests.support.estimators import search_of

DELTA = 1e-7
ALPHAS = {"alpha": [0.001, 0.1, 10.0]}
DESCENT = DPLogisticRegression(classes=[0, 1], method="noisy_gd")


@pytest.fixture(scope="module")
def wide():
    """Records of 60 columns, where Gaussian noise is less."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (2000, 60)) / np.sqrt(60.0)
    return X, (X[:, 0] + X[:, 1] > 0.0).astype(int)


def search(estimator=DESCENT, **parameters):
    parameters = {"epsilon": 2.0, "delta": DELTA, "eta": 0.0, "expected_runs": 5.0, **parameters}
    return search_of(estimator, ALPHAS, **parameters)


def planned(model, X, y):
    fit = model.prepare(X, y)
    return fit._shape, fit.plan, fit.guarantee


class TestPrice:
    def test_repeat(self, wide):
        accountant = PrivacyAccountant(2.5, DELTA, composition="renyi")
        model = search(accountant=accountant).fit(*wide)
        stated = model.guarantee_
        rho = run_rho(2.0, DELTA, RunCount.with_mean(0.0, 5.0))
        assert (stated.epsilon, stated.delta, stated.status) == (2.0, DELTA, "proved")
        assert stated.public_inputs["rho_run"] == rho
        assert stated.rho is None
        assert rho * 0.99 < model.release_.fit_guarantee.rho <= rho
        # Of one charge its own epsilon is the better statement. The order of the ledger is the best
        # for a fit, not for a search: its divergence fills a little more.
        assert accountant.spent() == 2.0
        assert 0.0 < accountant.remaining() < 0.5
        assert Release.from_json(model.release_.to_json()).guarantee == stated

    def test_split_and_refit(self, wide):
        model = search(strategy="split", refit=0.6).fit(*wide)
        stated, rho = model.guarantee_, rho_for(2.0, DELTA)
        assert rho * 0.999 < stated.rho <= rho
        assert stated.public_inputs["rho_refit"] == pytest.approx(0.36 * rho)
        assert stated.public_inputs["rho_run"] == pytest.approx(0.64 * rho)
        assert model.release_.fit_guarantee.rho <= 0.36 * rho

    @pytest.mark.parametrize("strategy", ["repeat", "split"])
    def test_everything_drawn_is_paid(self, wide, monkeypatch, strategy):
        """No sum of losses has less noise than the price of a run, and no training costs more."""
        prices = []
        original = sums._released
        monkeypatch.setattr(
            sums,
            "_released",
            lambda query, exact, price, source: (
                prices.append((query, price)) or original(query, exact, price, source)
            ),
        )
        shape, _, _ = planned(search(strategy=strategy), *wide)
        search(strategy=strategy).fit(*wide)
        rho = shape.strategy.rho
        assert all(fit.guarantee.rho <= rho for fit in shape.fits)
        losses = [price for query, price in prices if query is sums.LOSS]
        if strategy == "repeat":
            assert losses
            assert all(isinstance(p, Concentrated) and p.rho <= rho for p in losses)
        else:
            assert not losses  # permute-and-flip
            assert 0.5 * shape.strategy.run_epsilon**2 <= rho

    def test_a_price_that_is_not_met_is_refused(self, wide, monkeypatch):
        """Should an estimator ever promise less than it was given to spend."""
        from skdpsurv.dp import privacy_cost
        from skdpsurv.model_selection import strategies

        honest = privacy_cost.spend_of

        def generous(rho, delta):
            return privacy_cost.Spend(2.0 * honest(rho, delta).epsilon, delta)

        monkeypatch.setattr(strategies, "spend_of", generous)
        with pytest.raises(ValueError, match="at the price that it is given"):
            search().fit(*wide)

    def test_a_candidate_with_laplace_noise_has_no_such_price(self, wide):
        """Whatever its epsilon is: it is not private at a rho that anybody has stated."""
        _, plan, _ = planned(search(), *wide)
        trained = plan.leaves[0]
        pure = replace(trained.fits[0].guarantee, delta=0.0, rho=None)
        fits = [SimpleNamespace(guarantee=pure), *trained.fits[1:]]
        with pytest.raises(ValueError, match="at the price that it is given"):
            replace(trained, fits=fits)


class TestChoice:
    def test_gaussian_where_each_candidate_would_be(self, wide):
        auto = DPLogisticRegression(classes=[0, 1])
        _, _, stated = planned(search(auto), *wide)
        assert stated.delta == DELTA
        narrow = wide[0][:, :3], wide[1]
        shape, _, stated = planned(search(auto), *narrow)
        assert (stated.delta, stated.rho, stated.renyi) == (0.0, None, ())
        assert shape.strategy.run_spend == (1.0, 0.0)

    def test_one_pure_candidate_makes_it_pure(self, wide):
        grid = {"method": ["noisy_gd", "obj_pert"]}
        mixed = PrivateSearchCV(DPLogisticRegression(classes=[0, 1]), grid, delta=DELTA)
        with pytest.raises(ValueError, match="delta must be positive with method='noisy_gd'"):
            planned(mixed, *wide)
        pure = PrivateSearchCV(
            DPLogisticRegression(classes=[0, 1]), {"method": ["auto", "obj_pert"]}, delta=DELTA
        )
        assert planned(pure, *wide)[2].delta == 0.0

    def test_the_estimators_own_delta_is_replaced(self, wide):
        own = DPLogisticRegression(classes=[0, 1], delta=1e-3)
        shape, _, stated = planned(search(own), *wide)
        assert stated.delta == DELTA
        assert {fit.guarantee.delta for fit in shape.fits} == {DELTA}

    def test_a_delta_belongs_to_the_search(self, wide):
        own = DPLogisticRegression(classes=[0, 1], delta=1e-3, method="noisy_gd")
        with pytest.raises(ValueError, match="pass delta to the search"):
            search(own, delta=0.0).fit(*wide)
        with pytest.raises(ValueError, match="delta must not vary among candidates"):
            PrivateSearchCV(own, {"delta": [1e-6, 1e-7]}, delta=DELTA).fit(*wide)
        with pytest.raises(ValueError, match=r"delta must be"):
            search(delta=1.0).fit(*wide)


@pytest.mark.slow
def test_more_accurate_than_without(wide):
    """In 60 columns; the chance that it is not, were both equally good, is below 1e-6.

    Twenty pairs of seeded searches, all of them won: 2**-20.
    """
    X, y = wide
    wins = 0
    for seed in range(20):
        scores = []
        for model in (
            search(epsilon=1.0, expected_runs=2.0, random_state=seed),
            search(
                DPLogisticRegression(classes=[0, 1]),
                epsilon=1.0,
                delta=0.0,
                expected_runs=2.0,
                random_state=seed,
            ),
        ):
            with pytest.warns(PrivacyLeakWarning):
                scores.append(model.fit(X, y).score(X, y))
        wins += scores[0] > scores[1]
    assert wins == 20
