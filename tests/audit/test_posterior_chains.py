"""Chains that are kept, for whoever may see the data."""

import numpy as np
import pytest

from benchmarks.posterior_chains import nonprivate_posterior_chains
from skdpsurv import PrivacyAccountant
from skdpsurv.datasets import make_discrete_time_survival
from tests.support.estimators import hazard

DATA = make_discrete_time_survival(400, 2, coef=[1.0, -0.5], random_state=0)


def posterior(**options):
    return hazard(**{"epsilon": 8.0, "n_intervals": 10, "max_time": DATA.max_time, **options})


@pytest.mark.slow
def test_draws_have_converged_to_the_law_of_fit():
    """Mean of 25 fits against the chains: within 6 standard errors, 1e-8 a coefficient."""
    model = posterior(n_epochs=1000)
    chains = nonprivate_posterior_chains(model, DATA.X, DATA.y, random_state=1)
    assert chains.names == ("baseline_1", "baseline_2", "baseline_3", "x0", "x1")
    assert len(np.unique(chains.draws[:, -1, 0])) == 4
    assert chains.r_hat().max() < 1.02
    n_effective = chains.effective_sample_size().min()
    assert n_effective > 300
    fits = [posterior(n_epochs="auto", random_state=seed).fit(DATA.X, DATA.y) for seed in range(25)]
    coefs = np.array([[*fit.baseline_coef_, *fit.coef_] for fit in fits])
    flat = chains.draws.reshape(-1, 5)
    error = flat.std(axis=0) * np.sqrt(1 / 25 + 1 / n_effective)
    assert np.all(np.abs(coefs.mean(axis=0) - flat.mean(axis=0)) < 6.0 * error)


def test_nothing_is_charged_and_nothing_is_fitted():
    accountant = PrivacyAccountant(epsilon=1.0, rehearsal=True)
    model = posterior(accountant=accountant, epsilon=0.5, n_epochs=200)
    nonprivate_posterior_chains(model, DATA.X, DATA.y, n_chains=1, n_draws=4)
    assert len(accountant.entries()) == 0
    assert not hasattr(model, "coef_")
    assert model.accountant is accountant
