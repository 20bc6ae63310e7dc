"""Distances of neighbours: within the bounds that a calibration starts from, and nearly at them."""

from dataclasses import replace

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory, same_records
from skdpsurv.dp.privacy_cost import Concentrated
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.likelihoods.loss import sensitivities
from skdpsurv.mechanisms import descent, objective, output_perturbation
from skdpsurv.mechanisms.joint_calibration import CalibratedPart, calibrate_jointly
from skdpsurv.mechanisms.moments import MeanOfRows, SecondMoments
from skdpsurv.mechanisms.perturbation import Problem, SharedPrice, Unperturbed, distances
from skdpsurv.mechanisms.sums import COUNT, HISTOGRAM, Histograms, Sums
from skdpsurv.mechanisms.vector_noise import SphericalGaussian

LIKELIHOOD = Logistic(2, 1.0, 0.5)
X = np.array([[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]])
SIGNS = np.array([1.0, -1.0, 1.0])


def blocks(signs=SIGNS, rows=X, weight=None):
    return InMemory([LinearBlock(rows, signs, weight)])


#: A label that is flipped, and a row at right angles.
FLIPPED = blocks(), blocks(np.array([-1.0, -1.0, 1.0]))
TURNED = blocks(), blocks(rows=np.array([[-0.8, 0.6], *X[1:]]))


def problems(calibrations, price, pair, likelihood=LIKELIHOOD):
    shared = SharedPrice(price)
    return [
        [Problem(likelihood, one, how, np.zeros(2), shared) for how in calibrations] for one in pair
    ]


def worst(calibrations, price, pair=FLIPPED, likelihood=LIKELIHOOD):
    found = distances(*problems(calibrations, price, pair, likelihood))
    return {what: (far, bound) for what, far, bound in found}


CALIBRATED = {
    "objective": (objective.calibrate(LIKELIHOOD.constants, 1.0, 3, 2), 1.0),
    "output": (output_perturbation.calibrate(LIKELIHOOD.constants, 1.0, 3, 2), 1.0),
    "Gaussian output": (
        output_perturbation.calibrate(
            LIKELIHOOD.constants, 0.5, 3, 2, distribution=SphericalGaussian
        ),
        Concentrated(0.5),
    ),
    "descent": (descent.calibrate(LIKELIHOOD.constants, 0.5, 3, 2), Concentrated(0.5)),
}


def test_a_flipped_label_moves_gradients_and_another_row_hessians_on_either_side():
    found = list(sensitivities(LIKELIHOOD, *FLIPPED, np.zeros(2)))
    assert found[0].gradient == pytest.approx(1.0)
    assert max(move.gradient for move in found) == found[0].gradient
    assert found[0].trace < 1e-9
    assert found[0].rank(0.25) == 0
    first = next(sensitivities(LIKELIHOOD, *TURNED, np.zeros(2)))
    np.testing.assert_allclose(sorted(first.eigenvalues), [-0.25, 0.25], rtol=1e-9)
    assert first.trace == pytest.approx(0.25)
    assert first.rank(0.25) == 1
    assert first.gradient == pytest.approx(0.5 * np.sqrt(2.0))


@pytest.mark.parametrize("name", CALIBRATED)
def test_what_is_hidden_is_near_its_price_and_above_with_less_noise(name):
    how, price = CALIBRATED[name]
    found = worst([how], price)
    assert set(found) == {
        "gradients", "traces of Hessians", "ranks of Hessians", "all that is hidden together",
    }  # fmt: skip
    assert all(far <= bound * (1.0 + 1e-9) for far, bound in found.values())
    far, bound = found["all that is hidden together"]
    assert 0.85 * bound < far
    law = "each" if name == "descent" else "linear" if name == "objective" else "output"
    noise = getattr(how, law)
    less = replace(how, **{law: replace(noise, scale=noise.scale / 2)})
    far, bound = worst([less], price)["all that is hidden together"]
    assert far > 1.5 * bound


def test_constants_that_are_too_small_are_seen():
    class Half(Logistic):
        @property
        def constants(self):
            whole = super().constants
            S, tau = whole.gradient_sensitivity, whole.hessian_trace
            return replace(whole, gradient_sensitivity=S / 2, hessian_trace=tau / 2)

    half = Half(2, 1.0, 0.5)
    how = objective.calibrate(half.constants, 1.0, 3, 2)
    far, bound = worst([how], 1.0, likelihood=half)["gradients"]
    assert far == pytest.approx(2.0 * bound)
    far, bound = worst([how], 1.0, TURNED, half)["traces of Hessians"]
    assert far == pytest.approx(2.0 * bound)


@pytest.mark.parametrize("pair", [FLIPPED, TURNED])
def test_models_of_one_price_are_hidden_together(pair):
    parts = [CalibratedPart(LIKELIHOOD.constants, 2, weight, 0.1) for weight in (1.0, 2.0)]
    found = calibrate_jointly(parts, None, 1.0, 3)
    far, bound = worst(found, 1.0, pair)["all that is hidden together"]
    assert bound == 1.0
    assert far <= 1.0
    if pair is FLIPPED:
        assert far > 0.85
        # As if each had all of epsilon.
        alone = CALIBRATED["objective"][0]
        assert worst([alone, alone], 1.0, pair)["all that is hidden together"][0] > 1.7


def test_squares_of_gaussian_prices_add_up():
    how, price = CALIBRATED["descent"]
    (one, _), (two, bound) = (
        worst([how] * n, price)["all that is hidden together"] for n in (1, 2)
    )
    assert two == pytest.approx(np.sqrt(2.0) * one)
    assert two > bound


def test_records_that_are_the_same_cost_nothing():
    how, price = CALIBRATED["objective"]
    found = worst([how], price, (FLIPPED[0], FLIPPED[0]))
    assert {far for far, _ in found.values()} == {0.0}
    assert worst([Unperturbed(1.0)], 1.0)["all that is hidden together"][0] == np.inf


def test_rows_that_are_weighed_count_by_their_weight():
    """A row of length 2 that counts for half, as with standard errors, is within a bound of 1."""
    rows, weight = np.array([[1.2, 1.6], *X[1:]]), np.array([0.5, 1.0, 1.0])
    pair = tuple(blocks(signs, rows, weight) for signs in (SIGNS, SIGNS * [-1.0, 1.0, 1.0]))
    far, bound = worst([CALIBRATED["objective"][0]], 1.0, pair)["gradients"]
    assert far == pytest.approx(bound)


def test_sums_say_how_far_they_are_apart():
    assert COUNT.distances(3, 5) == [("in a sum", 2.0, 1.0)]
    assert COUNT.distances(np.array([3, 4]), np.array([3, 5])) == [("in a sum", 1.0, 1.0)]
    moved = HISTOGRAM.distances(np.array([[1, 2], [0, 0]]), np.array([[0, 2], [1, 0]]))
    assert moved == [("in L1", 2.0, 2.0), ("in squared L2", 2.0, 2.0)]
    one, other = np.array([1, 0]), np.array([0, 1])
    two = Histograms((1, 4)).distances([one, 4 * one], [other, 4 * other])
    assert [found for _, found, _ in two] == [bound for *_, bound in two] == [2.0, 2.0, 8.0, 32.0]
    assert Sums(2, 3).distances([1, 2**70], [4, 2**70 - 3])[0] == ("in L1", 6.0, 6.0)


def test_vectors_say_how_far_they_are_apart():
    query = MeanOfRows(4, 2, 2.0)
    ((_, far, bound),) = query.distances(np.array([0.6, 0.8]), np.array([0.0, 0.0]))
    assert far == pytest.approx(1.0)
    assert bound == query.sensitivity
    moments = SecondMoments(4, 2, 1.0)
    apart = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
    for (_, far, bound), expected in zip(moments.distances(*apart), (2**0.5, 1.0), strict=True):
        assert far == pytest.approx(expected)
        assert far <= bound < 1.001 * far


def test_sets_of_records_are_compared_however_they_are_kept():
    for one in (X, [X, SIGNS], {"a": X}, LinearBlock(X, SIGNS), blocks()):
        assert same_records(one, one)
    assert not same_records(blocks(), blocks(rows=X + 1.0))
    assert not same_records({"a": X}, {"a": X + 1.0})
