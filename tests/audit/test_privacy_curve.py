"""Deltas of pairs: below the claim for what is shipped, far above it with half of the noise."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone

from skdpsurv import DPDiscreteTimeSurvival, DPWeibullFitter
from skdpsurv.audit import density_ratio_audit, privacy_curve_audit
from skdpsurv.audit.density_ratio import minimisations
from skdpsurv.audit.privacy_curve import Gap, delta_of_normal, simulated
from skdpsurv.audit.walk import planned
from tests.support.estimators import logistic as perturbed
from tests.support.planted_defects import less_gaussian_noise
from tests.support.worst_pairs import pair

FLIPPED = ([[1.0]], [0]), ([[1.0]], [1])
AT_ONCE = "event at once or censored at the end, alone"


def logistic(**parameters):
    fixed = {"classes": [0, 1], "method": "noisy_gd", "delta": 1e-6, "max_residual": 1.0}
    return perturbed(**{**fixed, **parameters})


def hazard(**parameters):
    fixed = {"max_time": 1.0, "n_intervals": 4, "n_knots": 1, "data_norm": 1.0, "alpha": 20.0}
    return DPDiscreteTimeSurvival(**{**fixed, "pilot_share": 0.0, "delta": 0.05, **parameters})


@pytest.mark.parametrize(("epsilon", "mu"), [(0.1, 0.05), (1.0, 0.2), (1.0, 3.0), (8.0, 1.4)])
def test_delta_of_normal_is_the_expected_excess_of_the_log_ratio(epsilon, mu):
    law = stats.norm(0.5 * mu**2, mu)
    found, _ = integrate.quad(
        lambda x: -np.expm1(epsilon - x) * law.pdf(x), epsilon, epsilon + 12 * mu, epsabs=0.0
    )
    assert delta_of_normal(epsilon, mu) == pytest.approx(found, rel=1e-7)


class TestExact:
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
    @pytest.mark.parametrize("delta", [1e-9, 1e-3])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_descents(self, epsilon, delta, fit_intercept):
        """A label that is flipped moves gradients by half of what a record may."""
        model = logistic(epsilon=epsilon, delta=delta, fit_intercept=fit_intercept)
        result = privacy_curve_audit(model, *FLIPPED)
        assert result.passed
        assert result.confidence == 1.0
        with less_gaussian_noise(0.5):
            double = privacy_curve_audit(model, *FLIPPED)
        assert double.mu == pytest.approx(2.0 * result.mu)
        with less_gaussian_noise(0.25):
            refuted = privacy_curve_audit(model, *FLIPPED)
        assert not refuted.passed
        assert "REFUTED" in repr(refuted)
        assert refuted.delta > 5.0 * delta

    def test_output_perturbation_of_labels(self):
        model = logistic(method="out_pert", delta=0.05, alpha=60.0, max_residual=0.5)
        assert privacy_curve_audit(model, *FLIPPED).passed
        with less_gaussian_noise(0.5):
            assert not privacy_curve_audit(model, *FLIPPED).passed

    def test_output_perturbation_of_hazards(self):
        model = hazard(method="out_pert")
        data = pair(model, AT_ONCE, n=1)
        assert privacy_curve_audit(model, *data).passed
        with less_gaussian_noise(0.5):
            result = privacy_curve_audit(model, *data)
        assert result.delta > 2.0 * result.claimed

    def test_squares_of_several_models_add_up(self):
        one = privacy_curve_audit(logistic(), *FLIPPED)
        three = privacy_curve_audit(logistic(classes=[0, 1, 2]), *FLIPPED)
        # Two of the three see the label, at a third of the price in rho each.
        assert three.mu == pytest.approx(one.mu * math.sqrt(2.0 / 3.0), rel=1e-3)


class TestSimulated:
    def test_agrees_with_what_is_exact(self):
        """Five deviations of the mean, of a seed that is fixed."""
        model = logistic(delta=1e-3)
        named = [{"X": np.array(X), "y": np.array(y)} for X, y in FLIPPED]
        gap = Gap(*(minimisations(*planned(clone(model), each))[0] for each in named))
        found = simulated([gap], 1.0, 500, 1e-6, np.random.default_rng(1))
        exact = delta_of_normal(1.0, gap.mu)
        assert found.mu == pytest.approx(gap.mu)
        assert found.estimate == pytest.approx(exact, rel=0.3)
        assert found.lower <= exact

    @pytest.mark.slow
    def test_capped_residuals(self):
        """Half of the noise needs a thousand times the delta."""
        model = logistic(max_residual=0.5, alpha=60.0)
        options = {"n_paths": 400, "confidence": 1.0 - 1e-6}
        result = privacy_curve_audit(model, *FLIPPED, **options)
        assert result.passed
        assert 0.01 * result.claimed < result.estimate < result.claimed
        with less_gaussian_noise(0.5):
            result = privacy_curve_audit(model, *FLIPPED, **options)
        assert result.delta > 500.0 * result.claimed
        assert ">=" in repr(result)

    @pytest.mark.slow
    def test_hazards(self):
        model = hazard(method="noisy_gd", delta=1e-6)
        data = pair(model, AT_ONCE, n=1)
        options = {"n_paths": 300, "confidence": 1.0 - 1e-6}
        assert privacy_curve_audit(model, *data, **options).passed
        with less_gaussian_noise(0.5):
            assert not privacy_curve_audit(model, *data, **options).passed


class TestRefusals:
    @pytest.mark.parametrize(
        ("model", "match"),
        [
            (logistic(method="obj_pert", delta=0.0), "delta"),
            (logistic(method="out_pert"), "Laplace"),
            (DPWeibullFitter(max_time=1.0), "minimisers and nothing else"),
        ],
    )
    def test_estimators(self, model, match):
        with pytest.raises((TypeError, ValueError), match=match):
            privacy_curve_audit(model, *FLIPPED)

    @pytest.mark.parametrize("model", [logistic(), logistic(method="out_pert", delta=0.05)])
    def test_no_ratio_of_normal_densities(self, model):
        with pytest.raises(ValueError, match="privacy_curve_audit"):
            density_ratio_audit(model, *FLIPPED)
