"""What a fit says by itself, when it agrees with a prior, and what both say."""

from types import SimpleNamespace

import numpy as np
import pytest

from skdpsurv import PrivacyGuarantee, Release
from skdpsurv.priors import Evidence


def evidence(coef, error=1.0):
    coef = np.asarray(coef, dtype=float)
    return Evidence(coef, np.full(coef.shape, error))


@pytest.mark.parametrize(("linear", "output"), [(3.0, None), (None, 0.2), (3.0, 0.2)])
def test_estimate_and_error_are_those_of_a_quadratic_loss(linear, output):
    """A loss h/2 |f - z|^2 with z = theta + N(0, 1/h), and the mechanism's noise: 200,000 draws."""
    rng = np.random.default_rng(0)
    h, kappa, theta, n = 8.0, 5.0, 1.5, 200_000
    z = theta + rng.normal(size=n) / np.sqrt(h)
    b = rng.normal(size=n) * (linear or 0.0)
    e = rng.normal(size=n) * (output or 0.0)
    minimiser = (h * z + b) / (h + kappa) + e
    laws = [None if one is None else SimpleNamespace(deviation=one) for one in (linear, output)]
    calibration = SimpleNamespace(kappa=kappa, linear=laws[0], output=laws[1])
    found = Evidence.of_minimiser(minimiser, h, calibration)
    # The mean of 200,000 is off by more than 6 standard errors with probability 2e-9.
    assert abs(found.coef.mean() - theta) < 6.0 * found.error[0] / np.sqrt(n)
    assert found.coef.std() == pytest.approx(found.error[0], rel=6.0 / np.sqrt(2.0 * n))


def test_agreement_is_of_directions():
    """Along (3, 4), of length 5 and error 1: the part must be 1/2 and a quarter of the length."""
    for coef, agrees in [
        ([3.0, 4.0], True),
        ([-3.0, -4.0], False),  # reversed
        ([4.0, -3.0], False),  # something else
        ([0.25, 0.35], False),  # less than half of its standard error
        ([0.35, 0.4], True),
    ]:
        unit = evidence(coef, 1.0)
        assert unit.agrees(evidence([0.6, 0.8])) is agrees
        # An error that is small beside the prior: a quarter of its length.
        assert evidence([0.7, 1.0], 0.01).agrees(evidence([3.0, 4.0])) is False
        assert evidence([0.8, 1.1], 0.01).agrees(evidence([3.0, 4.0])) is True


def test_both_are_weighed_by_their_precisions():
    """The rest has a mean square of 4, where the errors' is 1; lengths alone make no rest."""
    own, prior = evidence([2.0, 2.0], 0.5), evidence([3.0, 3.0], 1.0)
    np.testing.assert_allclose(own.with_prior(prior), [(4 * 2 + 3) / 5] * 2)
    own, prior = evidence([5.0, 1.0], 0.6), evidence([3.0, 3.0], 0.8)
    variance = 0.8**2 + 3.0  # y - c = (2, -2), as rho = 1
    means = [(y / 0.36 + 3.0 / variance) / (1.0 / 0.36 + 1.0 / variance) for y in (5.0, 1.0)]
    np.testing.assert_allclose(own.with_prior(prior), means)
    longer = evidence([9.0, 9.0], 0.6)
    np.testing.assert_allclose(longer.with_prior(prior), [9.0 * 0.64 + 3.0 * 0.36] * 2)


def test_what_a_prior_does_not_know_decides_nothing():
    own = evidence([1.0, -9.0], 1.0)
    prior = Evidence(np.array([1.0, 0.0]), np.array([0.1, np.inf]))
    assert own.agrees(prior)
    found = own.posterior_mean(np.array([0.2, 0.3]), prior)
    assert found[1] == -9.0
    nothing = evidence([0.0, 0.0], np.inf)
    assert not own.agrees(nothing)
    np.testing.assert_array_equal(own.with_prior(nothing), own.coef)
    fitted = np.array([0.2, 0.3])
    assert own.posterior_mean(fitted, nothing) is fitted
    assert own.posterior_mean(fitted, None) is fitted


def test_a_release_holds_both_parts_or_none():
    def release(**values):
        return Release("Example", PrivacyGuarantee(1.0), {}, values, 2)

    both = evidence([1.0, 2.0], 0.5)
    again = Evidence.of(release(**both.values()), (2,))
    np.testing.assert_array_equal(again.coef, both.coef)
    np.testing.assert_array_equal(again.error, both.error)
    assert Evidence.of(release(coef=[1.0, 2.0]), (2,)) is None
    with pytest.raises(ValueError, match="evidence_error"):
        Evidence.of(release(evidence_coef=[1.0, 2.0]), (2,))
    for error in ([0.0, 1.0], [-1.0, 1.0]):
        with pytest.raises(ValueError, match="that are positive"):
            Evidence.of(release(evidence_coef=[1.0, 2.0], evidence_error=error), (2,))
