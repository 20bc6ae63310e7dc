"""What every likelihood promises: derivatives of its losses, which add up over records."""

import numpy as np
import pytest

from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.likelihoods.linear import LinearBlock, LinearLikelihood, Logistic
from skdpsurv.likelihoods.links import LINKS
from tests.support.extensions import extension
from tests.support.hazard_blocks import hazard_block

from .hazards import D, N, hazard, records, some_coefs

CASES = {
    "logit": hazard("logit", None),
    **{f"{name} {cap}": hazard(name, cap) for name in LINKS for cap in (0.4, 1.0, 2.5)},
    **{f"logistic {cap}": Logistic(D, 1.0, cap) for cap in (0.5, 0.6, 0.9, 1.0)},
    "Poisson": LinearLikelihood(extension("poisson").CappedPoisson(3.0, 1), D),
}


@pytest.fixture(params=CASES)
def likelihood(request):
    return CASES[request.param]


def block_of(likelihood, n=N):
    X, interval, event = records(n)
    if isinstance(likelihood, DiscreteHazard):
        return hazard_block(X, interval, event)
    low = -1.0 if isinstance(likelihood, Logistic) else 0.0
    return LinearBlock(X, np.where(event, 1.0, low))


def agree(one, other, rtol, atol):
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=rtol, atol=atol)
    np.testing.assert_allclose(one.hessian, other.hessian, rtol=rtol, atol=atol)


@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_numerical_derivatives(likelihood, weighted):
    block, step = block_of(likelihood), 1e-5
    weights = np.random.default_rng(3).uniform(0, 2, size=N) if weighted else None
    w = np.ones(N) if weights is None else weights
    for coef in some_coefs(likelihood):
        gradient, hessian = likelihood.derivatives(coef, block, weights)
        for j, unit in enumerate(step * np.eye(coef.size)):
            up, down = coef + unit, coef - unit
            change = w @ (likelihood.losses(up, block) - likelihood.losses(down, block))
            assert gradient[j] == pytest.approx(change / (2 * step), rel=1e-6, abs=1e-6)
            ahead, behind = (
                likelihood.derivatives(at, block, weights, order=1).gradient for at in (up, down)
            )
            # Curvatures jump where a loss turns linear; none of these points is that near.
            bend = (ahead - behind) / (2 * step)
            np.testing.assert_allclose(hessian[j], bend, rtol=1e-4, atol=2e-5)
        np.testing.assert_allclose(hessian, hessian.T, atol=1e-12)


def test_order_one_gives_the_same_gradient_and_no_hessian(likelihood):
    block, coef = block_of(likelihood), some_coefs(likelihood)[1]
    first, second = (likelihood.derivatives(coef, block, order=order) for order in (1, 2))
    np.testing.assert_allclose(first.gradient, second.gradient, rtol=1e-13)
    assert first.hessian is None


def test_weights_count_records(likelihood):
    """A record of weight 2 is that record twice; weight 0 leaves it out."""
    block, coef = block_of(likelihood), some_coefs(likelihood)[1]
    weights = np.random.default_rng(4).integers(0, 3, size=N)
    repeated = likelihood.take(block, np.repeat(np.arange(N), weights))
    weighted = likelihood.derivatives(coef, block, weights.astype(float))
    agree(weighted, likelihood.derivatives(coef, repeated), 1e-11, 1e-11)


def test_losses_and_derivatives_add_up_over_blocks(likelihood):
    """Of more records than one piece of a sum has."""
    n, coef = 1000, some_coefs(likelihood)[-1]
    block = block_of(likelihood, n)
    places = np.random.default_rng(5).permutation(n)
    places = [np.sort(each) for each in np.split(places, [1, 7, 300])]
    parts = [likelihood.take(block, each) for each in places]
    found = [likelihood.derivatives(coef, part) for part in parts]
    whole = likelihood.derivatives(coef, block)
    total = type(whole)(*(sum(each) for each in zip(*found, strict=True)))
    agree(total, whole, 1e-7, 1e-7)
    losses = likelihood.losses(coef, block)
    for each, part in zip(places, parts, strict=True):
        np.testing.assert_allclose(likelihood.losses(coef, part), losses[each], rtol=1e-12)


def test_taking_and_thinning_choose_records(likelihood):
    block, places = block_of(likelihood), np.array([1, 4, 4, 9])
    if isinstance(block, HazardBlock):
        block = block._replace(weight=np.linspace(0.0, 1.0, N))
    for made, rows in (
        (likelihood.thin(block, 3), slice(None, None, 3)),
        (likelihood.take(block, places), places),
        (likelihood.take(block, slice(3, 9)), slice(3, 9)),
    ):
        assert likelihood.n_records(made) == np.arange(N)[rows].size
        for found, field in zip(made, block, strict=True):
            assert (found is None) == (field is None)
            if field is not None:
                np.testing.assert_array_equal(found, field[rows])


def test_linearized_are_losses_and_weighted_gradients(likelihood):
    block, weights = block_of(likelihood), np.random.default_rng(6).uniform(-1, 2, size=N)
    for coef in some_coefs(likelihood, (0.0, 1.0, 50.0, 1e6)):
        losses, gradient = likelihood.linearized(coef, block, 1e-15)
        expected = likelihood.losses(coef, block)
        np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-12 * expected.max())
        slope = likelihood.derivatives(coef, block, weights, order=1).gradient
        np.testing.assert_allclose(gradient(weights), slope, atol=1e-12 * np.abs(slope).max())
