"""method="psgld" with a delta: status, price, public inputs, refusals, and a round trip."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PrivacyLeakWarning
from skdpsurv.dp.privacy_cost import epsilon_at
from skdpsurv.mechanisms.vector_noise import SphericalGaussian
from tests.support.estimators import hazard
from tests.support.spies import laws_drawn

N, D, DELTA = 2000, 4, 1e-7


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(N, D))
    time = rng.exponential(np.exp(-2.0 * X[:, 0]))
    return X, np.array(list(zip(time < 1.0, np.minimum(time, 1.0), strict=True)), dtype="?,f8")


def model(**parameters):
    defaults = {"max_time": 1.0, "n_intervals": 10, "delta": DELTA, "sampler": "psgld"}
    return hazard(**{**defaults, **parameters})


class TestGuarantee:
    def test_of_the_chain_that_was_run(self, data):
        ledger = PrivacyAccountant(epsilon=5.0, delta=1e-6)
        found = model(epsilon=2.0, accountant=ledger).fit(*data).guarantee_
        assert (found.status, found.epsilon, found.delta) == ("proved", 2.0, DELTA)
        assert epsilon_at(found.rho, DELTA) <= 2.0
        assert "Langevin" in found.mechanism
        assert (ledger.spent(), ledger.spent_delta()) == (2.0, DELTA)
        stated = found.public_inputs
        assert stated["sampler"] == "psgld"
        assert stated["temperature"] == 1.0
        assert {"n_steps", "step_size", "prior_precision", "noise_scale"} <= set(stated)

    def test_every_step_draws_the_noise_that_is_paid_for(self, data, monkeypatch):
        laws = laws_drawn(monkeypatch, SphericalGaussian)
        # Without tables the price of the fit is the whole price.
        found = model(pilot_share=0.0, recalibration_share=0.0).fit(*data).guarantee_
        stated = found.public_inputs
        assert laws == [SphericalGaussian(D + 3, stated["noise_scale"])] * stated["n_steps"]
        spent = 0.5 * stated["n_steps"] * (stated["gradient_sensitivity"] / laws[0].scale) ** 2
        assert spent <= found.rho
        assert spent == pytest.approx(found.rho, rel=1e-6)

    def test_without_a_delta_it_is_asymptotic(self, data):
        few = data[0][:60], data[1][:60]
        found = model(delta=0.0, n_epochs=17, batch_size=10).fit(*few).guarantee_
        assert found.status == "asymptotic"
        assert found.rho is None


class TestFit:
    def test_it_learns(self, data):
        """A seeded fit; the truth ranks by the first column."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            drawn = model(epsilon=4.0, random_state=0).fit(*data)
            descent = DPDiscreteTimeSurvival(
                4.0, delta=DELTA, max_time=1.0, n_intervals=10, random_state=0, method="noisy_gd"
            ).fit(*data)
        assert drawn.score(*data) > descent.score(*data) - 0.02
        assert drawn.score(*data) > 0.7

    def test_links(self, data):
        for link in ["cloglog", "probit"]:
            found = model(link=link, n_epochs=37).fit(*data).guarantee_
            assert (found.status, found.public_inputs["n_steps"]) == ("proved", 37)


class TestRefusals:
    def test_before_anything_is_spent(self, data):
        for parameters, words in [
            ({"sampler": "mala"}, "delta must be 0 .* sampler='mala'"),
            ({"n_epochs": 29}, "n_epochs must be at least 30"),
            ({"inference_share": 0.2}, "inference_share must be 0"),
            ({"pilot_share": 0.5, "recalibration_share": 0.5}, "must sum to less than 1"),
            ({"max_cumulative_hazard": None, "link": "cloglog"}, "max_cumulative_hazard must be"),
        ]:
            ledger = PrivacyAccountant(epsilon=5.0, delta=1e-6)
            with pytest.raises(ValueError, match=words):
                model(accountant=ledger, **parameters).fit(*data)
            assert (ledger.spent(), ledger.spent_delta()) == (0.0, 0.0)
