"""Chains that are kept, for whoever may see the data."""

import numpy as np
import pytest

from benchmarks._posterior_chains import PosteriorChains, nonprivate_posterior_chains
from skdpsurv import PrivacyAccountant
from skdpsurv.datasets import make_discrete_time_survival
from tests.support.estimators import hazard


@pytest.fixture(scope="module")
def data():
    return make_discrete_time_survival(400, 2, coef=[1.0, -0.5], random_state=0)


def posterior(data, **options):
    chain = {"n_epochs": 200} if "method" not in options else {}
    settings = {"epsilon": 8.0, "n_intervals": 10, **chain} | options
    return hazard(max_time=data.max_time, **settings)


@pytest.fixture(scope="module")
def chains(data):
    model = posterior(data, n_epochs=1000)
    return nonprivate_posterior_chains(model, data.X, data.y, random_state=1)


def test_chains_have_converged(chains):
    assert chains.draws.shape == (4, 1000, 5)
    assert chains.names == ("baseline_1", "baseline_2", "baseline_3", "x0", "x1")
    assert len(np.unique(chains.draws[:, -1, 0])) == 4
    assert chains.r_hat().max() < 1.02
    assert chains.effective_sample_size().min() > 300
    assert list(chains.summary()) == ["mean", "sd", "r_hat", "effective_sample_size"]
    assert (chains.summary()["sd"] > 0.0).all()


@pytest.mark.slow
def test_draws_have_the_law_of_fit(data, chains):
    """Mean of 25 fits against the chains: within 6 standard errors, 1e-8 a coefficient."""
    fits = [
        posterior(data, n_epochs="auto", random_state=seed).fit(data.X, data.y)
        for seed in range(25)
    ]
    coefs = np.array([[*fit.baseline_coef_, *fit.coef_] for fit in fits])
    flat = chains.draws.reshape(-1, 5)
    error = flat.std(axis=0) * np.sqrt(1 / 25 + 1 / chains.effective_sample_size().min())
    assert np.all(np.abs(coefs.mean(axis=0) - flat.mean(axis=0)) < 6.0 * error)


def test_nothing_is_charged_and_nothing_is_fitted(data):
    accountant = PrivacyAccountant(epsilon=1.0, rehearsal=True)
    model = posterior(data, accountant=accountant, epsilon=0.5)
    nonprivate_posterior_chains(model, data.X, data.y, n_chains=1, n_draws=4)
    assert len(accountant.entries()) == 0
    assert not hasattr(model, "coef_")
    assert model.accountant is accountant


def autoregressive(rho, n_chains=4, n_draws=20000, seed=0):
    """Return chains of variance 1 whose autocorrelation at lag t is rho^t."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_chains, n_draws)) * np.sqrt(1.0 - rho**2)
    chains = np.empty((n_chains, n_draws))
    chains[:, 0] = rng.normal(size=n_chains)
    for t in range(1, n_draws):
        chains[:, t] = rho * chains[:, t - 1] + noise[:, t]
    return chains[:, :, None]


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.9])
def test_effective_sample_size_of_autoregression(rho):
    """N (1 - rho)/(1 + rho); the estimate's relative error is some 3 %, seeds are fixed."""
    draws = autoregressive(rho)
    expected = draws.size * (1.0 - rho) / (1.0 + rho)
    found = PosteriorChains(draws, ())
    assert found.effective_sample_size()[0] == pytest.approx(expected, rel=0.15)
    assert found.r_hat()[0] == pytest.approx(1.0, abs=0.003)


def test_chains_apart():
    """Means at 0 and 2 with unit variance: var+ = 1 + var(means), R-hat = sqrt(1 + 4/3)."""
    draws = autoregressive(0.0, n_chains=2)
    draws[1] += 2.0
    found = PosteriorChains(draws, ())
    assert found.r_hat()[0] == pytest.approx(np.sqrt(1.0 + 4.0 / 3.0), abs=0.03)
    assert found.effective_sample_size()[0] < 20
    drift = autoregressive(0.0, n_draws=1000) + np.linspace(0.0, 3.0, 1000)[:, None]
    assert PosteriorChains(drift, ()).r_hat()[0] > 1.2
