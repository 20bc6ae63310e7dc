"""Exact check of objective perturbation in two dimensions: the density ratio of its output."""

from dataclasses import replace

import pytest

from skdpsurv.mechanisms.objective import calibrate
from tests.support.hazard_density import CASES, largest_log_ratio, make_likelihood

slow = pytest.mark.slow
epsilons = pytest.mark.parametrize(
    "epsilon", [1.0, *(pytest.param(epsilon, marks=slow) for epsilon in (0.1, 8.0))]
)
links = pytest.mark.parametrize(
    "name", ["logit", *(pytest.param(name, marks=slow) for name in ("cloglog", "probit"))]
)


@epsilons
@pytest.mark.parametrize(
    ("name", "cap"),
    [pytest.param(*case, marks=() if case[1] in (None, 1.0) else slow) for case in CASES],
)
def test_log_ratio_is_below_epsilon_and_not_far(name, cap, epsilon):
    largest, bound = largest_log_ratio(name, cap, epsilon)
    assert bound < epsilon
    assert 0.3 * epsilon < largest <= bound


@epsilons
@links
def test_log_ratio_is_below_epsilon_and_not_far_with_late_entries(name, epsilon):
    largest, bound = largest_log_ratio(name, 1.0, epsilon, late=True)
    assert bound < epsilon
    assert 0.3 * epsilon < largest <= bound


@epsilons
@links
def test_too_small_a_sensitivity_is_caught(name, epsilon):
    constants = make_likelihood(name, 1.0).constants
    small = replace(constants, gradient_sensitivity=constants.gradient_sensitivity / 3)
    largest, bound = largest_log_ratio(name, 1.0, epsilon, constants=small)
    assert largest > bound


def test_leaving_out_the_determinant_is_caught():
    """With all of epsilon on the curvature, J is what the determinants really need, nearly."""
    likelihood = make_likelihood("logit", 1.0)
    honest = calibrate(likelihood.constants, 4.0, 1, 2, curvature_share=0.9)
    largest, bound = largest_log_ratio("logit", 1.0, 4.0, calibration=honest)
    assert largest <= bound
    trace = likelihood.constants.hessian_trace
    small = replace(likelihood.constants, hessian_trace=trace / 30)
    largest, bound = largest_log_ratio(
        "logit", 1.0, 4.0, calibration=calibrate(small, 4.0, 1, 2, curvature_share=0.97)
    )
    assert largest > bound
