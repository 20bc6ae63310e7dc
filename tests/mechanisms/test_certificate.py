"""What a computed gradient says of the true one: bounds from public numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.likelihoods.base import PrivacyConstants
from skdpsurv.likelihoods.hazard import DiscreteHazard, hazard_block
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.newton import (
    COMPUTED_PART,
    LEAST_TOLERANCE,
    UNIT,
    Center,
    Certificate,
    Objective,
    certifiable_ridge,
    certificate,
    gradient_error,
    largest_distance,
    minimize,
)

CONSTANTS = PrivacyConstants(2.0, 0.25, 1, 300.0, 10.0, math.log(2.0))


class TestError:
    def test_is_the_formula_of_the_proof(self):
        n, center, reach, kappa, noise = 1000, 3.0, 50.0, 7.0, 20.0
        S, tau, k, m = 2.0, 0.25, 300.0 + 40.0, 10.0
        records = n * (k * S + m * tau * (center + reach))
        ridge = 6.0 * (kappa * (2.0 * reach + center) + noise + n * S)
        step = 2.0 * (n * tau + kappa) * (reach + center)
        assert UNIT == 2.0**-53
        assert gradient_error(CONSTANTS, n, center, reach, kappa, noise) == pytest.approx(
            UNIT * (records + ridge + step), rel=2e-3
        )

    @pytest.mark.parametrize("change", ["gradient_sensitivity", "rounding", "predictor_rounding"])
    def test_grows_with_every_constant(self, change):
        more = replace(CONSTANTS, **{change: 2.0 * getattr(CONSTANTS, change)})
        assert gradient_error(more, 10, 1.0, 1.0) > gradient_error(CONSTANTS, 10, 1.0, 1.0)


class TestCertificate:
    def test_a_quarter_of_the_tolerance_is_for_rounding(self):
        """3E computed and E of rounding are 4E."""
        found = certificate(CONSTANTS, 10**6, 5.0, 30.0)
        error = gradient_error(CONSTANTS, 10**6, 0.0, found.max_distance, 5.0, 30.0)
        assert found.tolerance > LEAST_TOLERANCE
        assert found.computed + error <= found.tolerance * (1 + 1e-12)
        assert found.computed >= 3.0 * error * (1 - 1e-12)

    def test_is_never_below_the_least(self):
        assert certificate(CONSTANTS, 1, 1.0, 0.0).tolerance == LEAST_TOLERANCE

    def test_certificates_are_of_their_centre(self):
        plain = certificate(CONSTANTS, 10**6, 5.0, 30.0)
        far = certificate(CONSTANTS, 10**6, 5.0, 30.0, Center(100.0))
        known = certificate(CONSTANTS, 10**6, 5.0, 30.0, Center(100.0, 1.0))
        assert plain.tolerance < known.tolerance < far.tolerance
        assert known.max_distance < far.max_distance

    def test_an_unknown_loss_is_bounded_by_slopes(self):
        unknown = replace(CONSTANTS, loss_at_zero=math.inf)
        assert largest_distance(unknown, 100, 2.0, 3.0, Center()) == pytest.approx(
            2 * (100 * 2.0 + 3.0) / 2.0, rel=2e-3
        )
        known = largest_distance(CONSTANTS, 100, 2.0, 3.0, Center())
        assert known == pytest.approx(3.0 + math.sqrt(100 * math.log(2.0)), rel=2e-3)


class TestDistance:
    """No minimum is further out, and no point where the objective is as at the centre."""

    @pytest.mark.parametrize("kappa", [0.01, 1.0, 30.0])
    @pytest.mark.parametrize("noise", [0.0, 20.0])
    def test_of_log_odds(self, kappa, noise):
        rng = np.random.default_rng(0)
        worst = 0.0
        for X in (np.ones((400, 1)), np.eye(4)[np.arange(400) % 4], 0.05 * np.ones((400, 1))):
            d = X.shape[1]
            likelihood, center = Logistic(d), 0.3 * rng.normal(size=d)
            block = LinearBlock(X, np.ones(400))
            linear = -noise * np.ones(d) / math.sqrt(d)
            objective = Objective(likelihood, InMemory([block]), kappa, center, linear)
            found = certificate(
                likelihood.constants, 400, kappa, noise, Center(float(np.linalg.norm(center)))
            )
            away = np.linalg.norm(minimize(objective, found) - center)
            worst = max(worst, away / found.max_distance)
        assert 0.02 < worst <= 1.0

    @pytest.mark.parametrize("name", sorted(LINKS))
    @pytest.mark.parametrize("event", [False, True])
    def test_of_hazards(self, name, event):
        """Where nobody has an event, or everybody has one at once."""
        link = LINKS[name].bounded_at(0.1)
        likelihood = DiscreteHazard(np.full((5, 1), 0.4), 1, 1.0, link, 1.0)
        block = hazard_block(
            np.ones((200, 1)), np.full(200, 1 if event else 5), np.full(200, event)
        )
        for kappa in (0.01, 1.0):
            objective = Objective(likelihood, InMemory([block]), kappa, np.zeros(2), np.zeros(2))
            found = certificate(likelihood.constants, 200, kappa, 0.0)
            away = np.linalg.norm(minimize(objective, found))
            assert 0.005 * found.max_distance < away < found.max_distance


class TestRidge:
    def test_is_the_least_that_will_do(self):
        def tolerance(kappa):
            return 1e-6 + 1e-5 / math.sqrt(kappa)

        kappa = certifiable_ridge(tolerance, 0.1, 1e-7)
        assert tolerance(kappa) <= 1e-7 * kappa
        assert tolerance(0.99 * kappa) > 1e-7 * 0.99 * kappa

    def test_is_no_smaller_than_asked(self):
        assert certifiable_ridge(lambda kappa: 1e-9, 0.1, 1e-7) == 0.1

    def test_is_infinite_where_the_centre_alone_is_too_much(self):
        def tolerance(kappa):
            return certificate(CONSTANTS, 100, kappa, 1.0, Center(1e4)).tolerance

        assert certifiable_ridge(tolerance, 1.0, 1e-13) == math.inf
        assert certifiable_ridge(tolerance, 1.0, 1e-9) < 1e6

    @pytest.mark.parametrize("n", [1, 10**4, 10**6, 5 * 10**7])
    def test_a_certificate_can_always_be_afforded(self, n):
        """However many records there are: the ratio of tolerance to ridge falls."""
        kappas = np.geomspace(1e-3, 1e9, 60)
        ratios = [certificate(CONSTANTS, n, kappa, 100.0).tolerance / kappa for kappa in kappas]
        assert (np.diff(ratios) < 0.0).all()


def test_the_part_that_is_computed_leaves_room_for_descent():
    """From a gradient above 3E on, a step lowers the objective; 4E is what is left to certify."""
    assert COMPUTED_PART == 0.75
    assert Certificate(4.0, 1.0).computed == 3.0
