"""method="psgld" with a delta: status, price, public inputs, refusals, and a round trip."""

import numpy as np
import pytest

from skdpsurv import PrivacyAccountant
from skdpsurv.dp.privacy_cost import epsilon_at
from skdpsurv.mechanisms.vector_noise import SphericalGaussian
from tests.support.estimators import hazard
from tests.support.refusing import refused
from tests.support.spies import laws_drawn
from tests.support.weibull import target

N, D, DELTA = 2000, 4, 1e-7
WORDS = {"max_time": 1.0, "n_intervals": 10, "delta": DELTA}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(N, D))
    time = rng.exponential(np.exp(-2.0 * X[:, 0]))
    return X, target(time < 1.0, np.minimum(time, 1.0))


def model(**parameters):
    return hazard(**{**WORDS, "sampler": "psgld", **parameters})


class TestGuarantee:
    def test_of_the_chain_that_was_run(self, data):
        ledger = PrivacyAccountant(epsilon=5.0, delta=1e-6)
        found = model(epsilon=2.0, accountant=ledger).fit(*data).guarantee_
        assert (found.status, found.epsilon, found.delta) == ("proved", 2.0, DELTA)
        assert epsilon_at(found.rho, DELTA) <= 2.0
        assert "Langevin" in found.mechanism
        assert (ledger.spent(), ledger.spent_delta()) == (2.0, DELTA)
        stated = found.public_inputs
        assert (stated["sampler"], stated["temperature"]) == ("psgld", 1.0)
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


@pytest.mark.slow
def test_it_learns(data):
    """A seeded fit; the truth ranks by the first column."""
    score = model(epsilon=4.0, random_state=0).fit(*data).score(*data)
    descent = hazard(4.0, random_state=0, **WORDS).set_params(method="noisy_gd").fit(*data)
    assert score > max(0.7, descent.score(*data) - 0.02)


def test_refusals(data):
    for parameters, words in [
        ({"sampler": "mala"}, "delta must be 0 .* sampler='mala'"),
        ({"n_epochs": 29}, "n_epochs must be at least 30"),
        ({"inference_share": 0.2}, "inference_share must be 0"),
        ({"pilot_share": 0.5, "recalibration_share": 0.5}, "must sum to less than 1"),
        ({"max_cumulative_hazard": None, "link": "cloglog"}, "max_cumulative_hazard must be"),
    ]:
        refused(model(**parameters), words, *data)
