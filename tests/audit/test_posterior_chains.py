"""Chains that are kept, for whoever may see the data."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._posterior_chains import nonprivate_posterior_chains
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


def test_shapes_and_names(chains):
    assert chains.draws.shape == (4, 1000, 5)
    assert chains.names == ("baseline_1", "baseline_2", "baseline_3", "x0", "x1")


def test_names_are_the_columns(data):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(data.X, columns=["age", "dose"])
    few = nonprivate_posterior_chains(posterior(data), X, data.y, n_chains=1, n_draws=4)
    assert few.names[3:] == ("age", "dose")


def test_chains_have_converged(chains):
    assert chains.r_hat().max() < 1.02
    assert chains.effective_sample_size().min() > 300
    assert list(chains.summary()) == ["mean", "sd", "r_hat", "effective_sample_size"]
    assert (chains.summary()["sd"] > 0.0).all()


def test_chains_differ_from_each_other(chains):
    assert len(np.unique(chains.draws[:, -1, 0])) == 4


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


def test_stochastic_gradients_keep_spaced_states(data):
    model = posterior(data, sampler="psgld", n_epochs=3, batch_size=50)
    chains = nonprivate_posterior_chains(model, data.X, data.y, n_chains=2, n_draws=100)
    assert chains.draws.shape == (2, 100, 5)


def test_nothing_is_charged_and_nothing_is_fitted(data):
    accountant = PrivacyAccountant(epsilon=1.0, rehearsal=True)
    model = posterior(data, accountant=accountant, epsilon=0.5)
    nonprivate_posterior_chains(model, data.X, data.y, n_chains=1, n_draws=4)
    assert len(accountant.entries()) == 0
    assert not hasattr(model, "coef_")
    assert model.accountant is accountant


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "obj_pert"}, "method='psgld'"), ({"epsilon": np.inf}, "finite epsilon")],
)
def test_other_estimators(data, options, message):
    with pytest.raises(ValueError, match=message):
        nonprivate_posterior_chains(posterior(data, **options), data.X, data.y)
    with pytest.raises(TypeError, match="estimator must be a DPDiscreteTimeSurvival"):
        nonprivate_posterior_chains("posterior", data.X, data.y)


@pytest.mark.parametrize("name", ["n_chains", "n_draws", "verbose"])
def test_counts(data, name):
    with pytest.raises((TypeError, ValueError), match=name):
        nonprivate_posterior_chains(posterior(data), data.X, data.y, **{name: -1})
