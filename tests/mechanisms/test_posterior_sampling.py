"""The target of posterior sampling: energy, gradients, mode, and what one record can change."""

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.data.blocks import InMemory
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.posterior_sampling import PRIOR_PRECISION, Sanitizer, Target, calibrate
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.support.hazard_blocks import hazard_block

Q, N = 12, 40
BASIS = orthogonal_basis(Q, 2)
NAMES = [*sorted(LINKS), "logistic"]


def records(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.7, 0.7, size=(n, 2))
    return X, rng.integers(1, Q + 1, size=n), rng.random(n) < 0.5


def likelihood_of(name):
    if name == "logistic":
        return Logistic(2)
    return DiscreteHazard(BASIS, 2, 1.0, LINKS[name])


def block_of(name, X, interval, event):
    if name == "logistic":
        return LinearBlock(X, np.where(event, 1.0, -1.0))
    return hazard_block(X, interval, event)


def target(name, data=None, n_blocks=1, sanitizer=None, epsilon=2.0):
    data = records() if data is None else data
    n = data[1].size
    parts = np.array_split(np.arange(n), n_blocks)
    blocks = [block_of(name, *(column[part] for column in data)) for part in parts]
    return Target(likelihood_of(name), InMemory(blocks), sanitizer or calibrate(epsilon, n))


def point(name, level=-1.5):
    return np.array([1.2, -0.8]) if name == "logistic" else np.array([level, 0.5, 1.2, -0.8])


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_the_papers_numbers():
    """v = 2 log n, rate v = epsilon / 2, and rate * sigma with sigma = 10^-2 (2 v / epsilon)."""
    for n, epsilon in itertools.product((1, 2, 17, 10_000), (1e-6, 1.0, 1e3)):
        made = calibrate(epsilon, n)
        v = 2.0 * math.log(max(n, 2))
        assert made.ceiling == pytest.approx(v)
        assert made.rate * v == pytest.approx(epsilon / 2.0)
        assert made.prior_precision == pytest.approx(made.rate * 1e-2 * 2.0 * v / epsilon)
        assert made.prior_precision == PRIOR_PRECISION == 1e-2


class TestEnergy:
    def test_is_its_formula(self, name):
        one, coef = target(name), 3.0 * point(name)
        v = one.sanitizer.ceiling
        losses = one.likelihood.losses(coef, one.blocks.blocks[0])
        expected = 0.005 * coef @ coef + 2.0 / (2 * v) * np.sum(v * np.tanh(losses / v))
        assert one.energy(coef)[0] == pytest.approx(expected, rel=1e-11)
        assert (losses > 0.2 * v).any()  # the squashing shows

    def test_gradient_by_differences(self, name):
        one, h = target(name), 1e-5
        for coef in (0.0 * point(name), point(name), 3.0 * point(name)):
            gradient = one.energy(coef)[1]
            for j, e in enumerate(h * np.eye(coef.size)):
                slope = (one.energy(coef + e)[0] - one.energy(coef - e)[0]) / (2 * h)
                assert slope == pytest.approx(gradient[j], abs=1e-6 * np.abs(gradient).max())

    def test_several_blocks_are_one(self, name):
        coef = point(name)
        whole, parts = target(name), target(name, n_blocks=3)
        assert parts.n_records == whole.n_records == N
        assert parts.energy(coef)[0] == pytest.approx(whole.energy(coef)[0], rel=1e-12)
        for one, other in (
            (parts.energy(coef)[1], whole.energy(coef)[1]),
            (parts.curvature(coef), whole.curvature(coef)),
            (parts.mode(0.0 * coef)[0], whole.mode(0.0 * coef)[0]),
        ):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * np.abs(other).max())


def test_blocks_are_sent_a_likelihood_numbers_and_a_point(name):
    """By pickle alone, which takes functions of modules and no closures."""
    sent = []

    class Away(InMemory):
        def map_reduce(self, function, *each):
            sent.append(pickle.loads(pickle.dumps(function)))
            return super().map_reduce(sent[-1], *each)

    here, coef = target(name, n_blocks=2), point(name)
    there = Target(here.likelihood, Away(here.blocks.blocks), here.sanitizer)
    rows, starts = np.array([0, 3, N - 1]), np.array([0, N // 2, N])
    for ask in (
        lambda one: one.energy(coef)[1],
        lambda one: one.curvature(coef),
        lambda one: one.sampled_gradient(coef, rows, starts),
    ):
        np.testing.assert_array_equal(ask(there), ask(here))
    assert [len(function.args) for function in sent] == [3, 3, 3]


class TestSampledGradient:
    def test_is_unbiased(self, name):
        """Its mean over a uniform record is exactly the gradient."""
        one, coef = target(name, n_blocks=3), point(name)
        sizes = [one.likelihood.n_records(block) for block in one.blocks.blocks]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        singles = [one.sampled_gradient(coef, np.array([i]), starts) for i in range(N)]
        gradient = one.energy(coef)[1]
        atol = 1e-7 * np.abs(gradient).max()
        np.testing.assert_allclose(np.mean(singles, axis=0), gradient, atol=atol)
        assert np.std(singles, axis=0).min() > 1e-3  # they do differ
        # All records at once, and a batch with repeats, are means of these.
        for rows in (np.arange(N), np.array([0, 0, 3, 20, 20, N - 1])):
            expected = np.mean([singles[i] for i in rows], axis=0)
            batch = one.sampled_gradient(coef, rows, starts)
            np.testing.assert_allclose(batch, expected, rtol=1e-7, atol=10 * atol)


class TestMode:
    def test_descends_to_a_stationary_point(self, name):
        start = 2.0 * point(name)
        for epsilon in (1e-3, 2.0, 500.0):
            one = target(name, epsilon=epsilon)
            mode, curvature = one.mode(start)
            value, gradient = one.energy(mode)
            assert value < one.energy(start)[0]
            # Newton's decrement: how far, in standard deviations, the mode of the quadratic is.
            assert gradient @ np.linalg.solve(curvature, gradient) < 1e-6
            np.testing.assert_allclose(curvature, one.curvature(mode))
            best = optimize.minimize(one.energy, mode, jac=True, options={"gtol": 1e-9})
            assert value - best.fun < 1e-6

    def test_from_afar(self, name):
        """Where losses are saturated the start is a bad one; it still goes down, and ends."""
        one = target(name)
        for scale in (-30.0, 30.0):
            start = scale * point(name)
            mode, curvature = one.mode(start)
            assert np.isfinite(mode).all()
            assert one.energy(mode)[0] <= one.energy(start)[0]
            assert np.linalg.eigvalsh(curvature).min() > 0

    def test_curvature_is_the_hessian_without_the_part_of_squashing(self, name):
        """With a ceiling far above the losses it is the Hessian itself."""
        one = target(name, sanitizer=Sanitizer(1e6, 0.3))
        coef, h = point(name), 1e-5
        columns = [
            (one.energy(coef + e)[1] - one.energy(coef - e)[1]) / (2 * h)
            for e in h * np.eye(coef.size)
        ]
        curvature = one.curvature(coef)
        np.testing.assert_allclose(curvature, columns, atol=3e-6 * np.abs(curvature).max())

    def test_curvature_can_be_factored_whatever_the_records(self, name):
        X, interval, event = records()
        data = ((0 * X, interval, event), (X * [1, 0], 1 + 0 * interval, event))
        for each, epsilon, scale in itertools.product(data, (1e-6, 1e9), (0.0, 1.0, 40.0)):
            one = target(name, each, epsilon=epsilon)
            np.linalg.cholesky(one.curvature(scale * point(name)))


#: (x, interval, event) at the edges of the public domain.
CORNERS = [
    (np.array([math.cos(angle), math.sin(angle)]), interval, event)
    for angle in (0.0, math.pi, math.pi + 0.9)
    for interval, event in ((1, True), (Q, True), (Q, False))
]


def differences(name, points, epsilon=2.0, n=N, ceiling=None):
    """Return U(f; D') - U(f; D) for pairs of neighbours, one row for each pair."""
    sanitizer = calibrate(epsilon, n)
    if ceiling is not None:
        sanitizer = Sanitizer(ceiling, sanitizer.rate)
    X, interval, event = records(n=n)
    energies = []
    anybody = zip(*records(5, 2), strict=True)
    for X[3], interval[3], event[3] in [*CORNERS, *anybody]:
        one = target(name, (X, interval, event), sanitizer=sanitizer)
        energies.append([one.energy(f)[0] for f in points])
    energies = np.array(energies)
    return np.array([b - a for a, b in itertools.permutations(energies, 2)]), sanitizer


def points_of(name):
    """Near the data, as far as the prior reaches, and where the losses of opposites are extreme."""
    rng = np.random.default_rng(6)
    size = likelihood_of(name).n_params
    near = rng.normal(size=(4, size))
    far = 10.0 * rng.normal(size=(8, size))
    axes = np.concatenate([s * np.eye(size) for s in (-40.0, -15.0, 15.0, 40.0)])
    return np.concatenate([near, far, axes])


class TestPrivacy:
    """The theorem, at every point: no sampling."""

    @pytest.mark.parametrize("n", [4, N])
    def test_one_record_changes_the_energy_by_less_than_half_of_epsilon(self, name, n):
        gaps, sanitizer = differences(name, points_of(name), n=n)
        bound = sanitizer.rate * sanitizer.ceiling
        assert np.abs(gaps).max() <= bound * (1 + 1e-9)
        # The log-density ratio with its normalising constant: sup g - inf g.
        spread = gaps.max(axis=1) - gaps.min(axis=1)
        assert spread.max() <= 2.0 * (1 + 1e-9)
        assert spread.max() > 1.8  # the bound is reached: no slack hides a defect

    def test_losses_without_a_ceiling_break_it(self, name):
        gaps, _ = differences(name, points_of(name), ceiling=1e9)
        spread = gaps.max(axis=1) - gaps.min(axis=1)
        assert spread.max() > 2.0

    def test_normalised_ratio(self):
        """Exact log-density ratios on a grid of one coefficient, normalising constants included."""
        grid = np.linspace(-120, 120, 2401)[:, None]
        logs = []
        for label in (-1.0, 1.0):
            y = np.array([1.0, label])
            one = Target(
                Logistic(1), InMemory([LinearBlock(np.array([[0.3], [1.0]]), y)]), calibrate(1.0, 2)
            )
            density = -np.array([one.energy(f)[0] for f in grid])
            logs.append(density - np.logaddexp.reduce(density))
        ratio = logs[0] - logs[1]
        assert np.abs(ratio).max() <= 1.0
        assert np.abs(ratio).max() > 0.3


def test_losses_are_never_negative_so_that_the_range_holds():
    """Predictors near 350, where cloglog is cut off: neighbours stay within rate v each way."""
    basis = np.column_stack([np.ones(10), np.linspace(-1.0, 1.0, 10)])
    likelihood = DiscreteHazard(basis, 2, link=LINKS["cloglog"])
    interval, event = np.full(4, 10), np.zeros(4, dtype=bool)
    sanitizer = calibrate(1.0, 4)
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5], [0.0, -0.5]])
    other = np.vstack([[0.0, 1.0], rows[1:]])
    rng = np.random.default_rng(0)
    blocks = [InMemory([hazard_block(X, interval, event)]) for X in (rows, other)]
    for _ in range(300):
        coef = np.array([rng.uniform(320, 350), *rng.normal(scale=15.0, size=3)])
        one, two = (Target(likelihood, each, sanitizer).energy(coef)[0] for each in blocks)
        assert abs(one - two) <= sanitizer.rate * sanitizer.ceiling * (1.0 + 1e-9)
