"""R-hat and effective sample size, on chains whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._posterior_chains import PosteriorChains


def split_r_hat(draws):
    return PosteriorChains(draws, ()).r_hat()


def effective_sample_size(draws):
    return PosteriorChains(draws, ()).effective_sample_size()


def autoregressive(rho, n_chains=4, n_draws=20000, seed=0):
    """Return chains of variance 1 whose autocorrelation at lag t is rho^t."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_chains, n_draws)) * np.sqrt(1.0 - rho**2)
    chains = np.empty((n_chains, n_draws))
    chains[:, 0] = rng.normal(size=n_chains)
    for t in range(1, n_draws):
        chains[:, t] = rho * chains[:, t - 1] + noise[:, t]
    return chains[:, :, None]


class TestEffectiveSampleSize:
    @pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9])
    def test_autoregression(self, rho):
        """N (1 - rho)/(1 + rho); the estimate's relative error is some 3 %, seeds are fixed."""
        draws = autoregressive(rho)
        expected = draws.size * (1.0 - rho) / (1.0 + rho)
        assert effective_sample_size(draws)[0] == pytest.approx(expected, rel=0.15)

    def test_predicts_the_error_of_the_mean(self):
        """Variance of the mean over 400 data sets against 1/ESS; relative error some 7 %."""
        runs = [autoregressive(0.8, 2, 400, seed) for seed in range(400)]
        sizes = [effective_sample_size(run)[0] for run in runs]
        assert np.var([run.mean() for run in runs]) * np.mean(sizes) == pytest.approx(1.0, abs=0.35)

    def test_chains_apart_are_worth_little(self):
        draws = autoregressive(0.0, n_draws=1000) + 5.0 * np.arange(4)[:, None, None]
        assert effective_sample_size(draws)[0] < 20

    def test_each_parameter_on_its_own(self):
        one, other = autoregressive(0.0), autoregressive(0.9, seed=1)
        both = np.concatenate([one, other], axis=2)
        expected = [effective_sample_size(one)[0], effective_sample_size(other)[0]]
        np.testing.assert_allclose(effective_sample_size(both), expected)

    def test_does_not_depend_on_scale(self):
        draws = autoregressive(0.5, n_draws=500)
        np.testing.assert_allclose(
            effective_sample_size(draws), effective_sample_size(1e3 * draws - 7.0)
        )


class TestSplitRHat:
    def test_converged(self):
        assert split_r_hat(autoregressive(0.5))[0] == pytest.approx(1.0, abs=0.003)

    def test_chains_apart(self):
        """Means at 0 and 2 with unit variance: var+ = 1 + var(means), R-hat = sqrt(1 + 4/3)."""
        draws = autoregressive(0.0, n_chains=2, n_draws=20000)
        draws[1] += 2.0
        assert split_r_hat(draws)[0] == pytest.approx(np.sqrt(1.0 + 4.0 / 3.0), abs=0.03)

    def test_a_drift_within_chains_is_seen(self):
        draws = autoregressive(0.0, n_draws=1000) + np.linspace(0.0, 3.0, 1000)[:, None]
        assert split_r_hat(draws)[0] > 1.2

    def test_formula_by_hand(self):
        draws = np.array([[1.0, 3.0, 2.0, 6.0], [0.0, 1.0, 5.0, 2.0]])[:, :, None]
        halves = np.array([[1.0, 3.0], [0.0, 1.0], [2.0, 6.0], [5.0, 2.0]])
        within = halves.var(axis=1, ddof=1).mean()
        total = within / 2.0 + halves.mean(axis=1).var(ddof=1)
        assert split_r_hat(draws)[0] == pytest.approx(np.sqrt(total / within))


@pytest.mark.parametrize("measure", [split_r_hat, effective_sample_size])
class TestEdges:
    def test_a_parameter_that_never_moves_has_none(self, measure):
        assert np.isnan(measure(np.ones((2, 10, 1)))).all()

    @pytest.mark.parametrize("shape", [(2, 3, 1), (10, 1), (2, 0, 1)])
    def test_shapes(self, measure, shape):
        with pytest.raises(ValueError, match="draws must be of shape"):
            measure(np.zeros(shape))
