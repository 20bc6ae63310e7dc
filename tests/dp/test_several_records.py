"""What a guarantee about one record is worth to somebody who has several (docs/proofs/composition).

Exact laws, no draws.
"""

import math

import numpy as np
import pytest
from scipy import special

from skdpsurv.dp.privacy_cost import rho_for
from skdpsurv.mechanisms.sums import COUNT, least_scale


def delta_of_gaussian(mu: float, epsilon: float) -> float:
    """Return the exact delta of two normal laws mu deviations apart (Balle and Wang 2018)."""
    first = special.ndtr(mu / 2.0 - epsilon / mu)
    return first - math.exp(epsilon) * special.ndtr(-mu / 2.0 - epsilon / mu)


def most(delta: float, epsilon: float, k: int) -> float:
    """Return the delta of the theorem."""
    return delta * math.expm1(k * epsilon) / math.expm1(epsilon)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_k_records_cost_k_times_epsilon(k):
    epsilon = 0.5
    scale = least_scale(COUNT.sensitivity, epsilon)
    outcomes = np.arange(-40, 41)
    # The log of the ratio of probabilities of a count and of one that k records have moved.
    ratios = (np.abs(outcomes - k) - np.abs(outcomes)) / scale
    assert ratios.max() <= k * epsilon
    assert ratios.max() > 0.999 * k * epsilon


@pytest.mark.parametrize("k", [2, 5])
def test_a_delta_grows_by_more_than_the_number_of_records(k):
    epsilon, delta = 1.0, 1e-6
    mu = math.sqrt(2.0 * rho_for(epsilon, delta))
    one = delta_of_gaussian(mu, epsilon)
    several = delta_of_gaussian(k * mu, k * epsilon)
    assert one <= delta
    assert k * one < several <= most(one, epsilon, k)
