"""The hazard loss: value, derivatives, sums over blocks, and the cap."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.dp.clipping import row_weights
from skdpsurv.likelihoods import hazard_kernel
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.hazard_kernel import LEAST_RECORDS, cap_thresholds
from skdpsurv.likelihoods.links import LINKS
from tests.support.hazard_blocks import hazard_block

from .hazards import D, Q, hazard, records, some_coefs

N_BASIS = 3
CASES = [("logit", None)] + [(n, h) for n in LINKS for h in (0.4, 1.0, 2.5)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def likelihood(request):
    return hazard(*request.param)


def block_of(**kwargs):
    return hazard_block(*records(**kwargs))


def direct_loss(likelihood, coef, x, survived, event):
    """Loss by its definition, with the cap as an infimal convolution solved by scipy."""
    n_basis = likelihood.basis.shape[1]
    eta = likelihood.basis @ coef[:n_basis] + x @ coef[n_basis:]
    link = likelihood.link

    def survived_part(c):
        return link.survival(eta[:survived] - c).value.sum()

    value = survived_part(0.0)
    if likelihood.cap is not None and survived:
        shifted = lambda c: survived_part(c) + likelihood.cap * c  # noqa: E731
        found = optimize.minimize_scalar(shifted, bounds=(0.0, 60.0), options={"xatol": 1e-10})
        value = min(value, found.fun)
    if event:
        value += link.event(eta[survived : survived + 1]).value[0]
    return value


def test_block_is_sorted_by_intervals_survived():
    X, interval, event = records()
    block = hazard_block(X, interval, event)
    assert (np.diff(block.survived) >= 0).all()
    together = sorted(zip(interval - event, event, X[:, 0], strict=True))
    assert sorted(zip(block.survived, block.event, block.X[:, 0], strict=True)) == together


def test_losses_are_the_definition(likelihood):
    block = block_of()
    for coef in some_coefs(likelihood):
        expected = [
            direct_loss(likelihood, coef, x, k, d)
            for x, k, d in zip(block.X, block.survived, block.event, strict=True)
        ]
        np.testing.assert_allclose(likelihood.losses(coef, block), expected, rtol=1e-7, atol=1e-9)
    if likelihood.cap is not None:
        capped, _ = likelihood._capped(*likelihood._predictor(coef, block), block.survived)
        assert 0 < np.count_nonzero(capped) < capped.size


@pytest.mark.parametrize("name", sorted(LINKS))
@pytest.mark.parametrize("level", [-9.0, -3.0, 0.0])
@pytest.mark.parametrize("n", [40, 2 * LEAST_RECORDS])
def test_derivatives_are_sums_over_person_periods(name, level, n):
    """To the last digits but two, for rare events and common ones.

    Rare ones among enough records are summed by series; logit's is less exact in the Hessian.
    """
    likelihood = hazard(name, 50.0 * Q)  # a cap that nobody reaches
    block, A = block_of(n=n), likelihood.basis
    coef = np.array([level / 0.7, 0.1, -0.2, 0.8, -0.5])
    gradient, hessian = np.zeros(coef.size), np.zeros((coef.size, coef.size))
    for x, k, d in zip(block.X, block.survived, block.event, strict=True):
        rows = np.hstack([A, np.tile(x, (Q, 1))])
        eta = rows @ coef
        _, slope, curvature = likelihood.link.survival(eta[:k])
        _, event_slope, event_curvature = likelihood.link.event(eta[k : k + d])
        rows = rows[: k + d]
        gradient += rows.T @ np.concatenate([slope, event_slope])
        hessian += (rows.T * np.concatenate([curvature, event_curvature])) @ rows
    found = likelihood.derivatives(coef, block)
    size = np.abs(gradient).max()
    np.testing.assert_allclose(found.gradient, gradient, rtol=0, atol=1e-13 * max(1.0, size))
    error = 1e-6 if name == "logit" and n >= LEAST_RECORDS else 1e-12
    np.testing.assert_allclose(found.hessian, hessian, rtol=0, atol=error * np.abs(hessian).max())


def test_the_size_of_a_cacheful_changes_nothing(monkeypatch, likelihood):
    block, coef = block_of(n=200), some_coefs(likelihood)[1]
    whole, losses = likelihood.derivatives(coef, block), likelihood.losses(coef, block)
    monkeypatch.setattr("skdpsurv.likelihoods.hazard_kernel.CHUNK_ELEMENTS", 7)
    small = likelihood.derivatives(coef, block)
    np.testing.assert_allclose(small.gradient, whole.gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(small.hessian, whole.hessian, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(likelihood.losses(coef, block), losses, rtol=1e-9)


class TestCap:
    @pytest.mark.parametrize("name", sorted(LINKS))
    @pytest.mark.parametrize("cap", [0.3, 1.0, 4.0])
    def test_thresholds_solve_their_equation(self, name, cap):
        link = LINKS[name]
        a = np.random.default_rng(6).normal(scale=2.0, size=Q)
        counts = np.arange(Q + 1)
        thresholds = cap_thresholds(link, a, counts, cap)
        for k, threshold in zip(counts, thresholds, strict=True):
            if k <= (cap if link.bounded_slope else 0):  # the slope never gets there
                assert threshold == np.inf
            else:
                slope = link.survival(a[:k] + threshold).slope.sum()
                assert slope == pytest.approx(cap, rel=1e-7)

    @pytest.mark.parametrize("spread", [0.0, 0.3, 3.0, 300.0])
    @pytest.mark.parametrize("level", [-30.0, -3.0, 2.0])
    def test_thresholds_below_a_point_are_the_same(self, level, spread):
        """Those that are looked up first; the others are left at infinity, if they are above it."""
        link = LINKS["probit"].bounded_at(0.01)
        a = level + spread * np.random.default_rng(9).uniform(-1.0, 1.0, 60)
        counts = np.arange(61)
        thresholds = cap_thresholds(link, a, counts, 1.5)
        for highest in (*np.quantile(thresholds[1:], [0.0, 0.4, 1.0]), 1e4 + abs(level)):
            some = cap_thresholds(link, a, counts, 1.5, highest)
            below = np.isfinite(some)
            np.testing.assert_allclose(some[below], thresholds[below], rtol=1e-11, atol=1e-13)
            assert (thresholds[~below] > highest).all()

    def test_thresholds_that_are_looked_up_take_two_steps(self, monkeypatch):
        """The second shows that the first was enough; without a look there are five."""
        link, a = LINKS["probit"].bounded_at(0.01), np.linspace(-3.0, -1.5, 60)
        steps, honest = [], hazard_kernel._sums
        monkeypatch.setattr(hazard_kernel, "_sums", lambda *args: steps.append(1) or honest(*args))
        cap_thresholds(link, a, np.arange(61), 1.5, highest=4.0)
        assert len(steps) == 2

    def test_slopes_of_a_record_add_up_to_the_cap_at_most(self):
        """The survived part's slope in the constant direction, over records beyond any hazard."""
        rng = np.random.default_rng(7)
        for name, cap in CASES[1:]:
            likelihood = hazard(name, cap)
            bound = likelihood.link.event_slope * cap
            reached = 0.0
            for _ in range(60):
                coef = rng.choice([1.0, 10.0, 100.0]) * rng.normal(size=likelihood.n_params)
                k = int(rng.integers(1, Q + 1))
                block = hazard_block(records(1, seed=8)[0], np.array([k]), np.array([False]))
                gradient = likelihood.derivatives(coef, block, order=1).gradient
                # The first column is constant, so its gradient is the sum of slopes times 0.7.
                total = gradient[0] / 0.7
                assert -1e-12 <= total <= bound * (1 + 1e-7)
                # So is the slope in b, by another path through the code.
                along = gradient[N_BASIS:] @ block.X[0] / (block.X[0] @ block.X[0])
                assert -1e-12 <= along <= bound * (1 + 1e-7)
                reached = max(reached, total)
            assert reached == pytest.approx(bound, rel=1e-6)

    def test_convex_along_random_segments(self, likelihood):
        rng = np.random.default_rng(9)
        block = block_of()
        for _ in range(40):
            start, end = rng.choice([1.0, 8.0]) * rng.normal(size=(2, likelihood.n_params))
            share = rng.random()
            between = likelihood.losses(share * start + (1 - share) * end, block)
            chord = share * likelihood.losses(start, block) + (1 - share) * likelihood.losses(
                end, block
            )
            assert (between <= chord + 1e-8 * (1 + np.abs(chord))).all()

    def test_the_hessian_is_finite_where_all_hazards_are_0_or_1(self):
        likelihood = DiscreteHazard(np.eye(7), 1, 1.0, max_cumulative_hazard=2.0)
        block = hazard_block(np.ones((97, 1)), np.full(97, 7), np.zeros(97, bool))
        baseline = 1332.1773462522654 + 1952.9567231021590 * np.arange(-5, 2)
        found = likelihood.derivatives(np.append(baseline, 0.0), block)
        np.testing.assert_allclose(found.gradient[-3:], [97.0, 97.0, 194.0])
        assert np.isfinite(found.hessian).all()

    @pytest.mark.parametrize(("name", "cap"), CASES[1:])
    def test_the_gradient_is_lipschitz_wherever_the_cap_sets_in(self, name, cap):
        """With the constant of the proof, also between points on either side of a threshold."""
        likelihood = hazard(name, cap)
        bound = likelihood.link.event_slope * cap
        curvature = {"logit": 0.25, "cloglog": np.e * bound, "probit": 1.0}[name]
        rng = np.random.default_rng(11)
        apart = 0
        for _ in range(300):
            k, x = int(rng.integers(1, Q + 1)), records(1, seed=int(rng.integers(99)))[0]
            block = hazard_block(x, np.array([k]), np.array([False]))
            rows = np.column_stack([likelihood.basis[:k], np.repeat(x, k, axis=0)])
            ends = rng.normal(size=(2, likelihood.n_params))
            ends[1] = ends[0] + 10.0 ** rng.uniform(-4, 0.5) * ends[1]
            gradients = [likelihood.derivatives(end, block, order=1).gradient for end in ends]
            moved = np.linalg.norm(gradients[1] - gradients[0])
            largest = curvature * np.linalg.norm(rows, 2) ** 2
            assert moved <= largest * np.linalg.norm(ends[1] - ends[0]) * (1 + 1e-6) + 1e-9
            sums = [likelihood.link.survival(rows @ end).slope.sum() for end in ends]
            apart += (sums[0] > bound) != (sums[1] > bound)
        assert apart > 3 or cap > 2.0


@pytest.mark.parametrize(("name", "q"), [("logit", 1), ("cloglog", 5), ("probit", 5)])
def test_many_equal_events_do_not_drift(name, q):
    """A running sum of 65536 equal slopes is off by thousands of ulps; pieces are not."""
    n = 2**16
    likelihood = DiscreteHazard(np.full((q, 1), 0.4), 1, 1.0, LINKS[name].bounded_at(0.1), 0.8)
    many = hazard_block(np.zeros((n, 1)), np.ones(n, int), np.ones(n, bool))
    one = hazard_block(np.zeros((1, 1)), np.ones(1, int), np.ones(1, bool))
    constants = likelihood.constants
    bound = constants.rounding * n * constants.gradient_sensitivity * 2.0**-53
    worst = 0.0
    for eta in np.linspace(-9.7, -0.3, 16):
        coef = np.array([eta / 0.4, 0.0])
        total = likelihood.derivatives(coef, many, order=1).gradient[0]
        exact = float(n * np.longdouble(likelihood.derivatives(coef, one, order=1).gradient[0]))
        worst = max(worst, abs(total - exact))
    assert worst <= 0.1 * bound


def weighed(block):
    return block._replace(weight=row_weights(block.X, 1.0))


class TestWeights:
    """Rows longer than R count less, and pull no harder than a row of length R."""

    def long_block(self, seed=4):
        X, interval, event = records(seed=seed)
        X = 3.0 * np.random.default_rng(seed).normal(size=X.shape)
        return weighed(hazard_block(X, interval, event))

    def test_a_weight_times_the_square_is_at_most_one_in_floats(self):
        for d in (1, 3, 50):
            rows = np.random.default_rng(d).normal(size=(2000, d))
            rows *= 10.0 ** np.linspace(-2, 2, 2000)[:, None]
            rows[:500] /= np.linalg.norm(rows[:500], axis=1)[:, None]
            weight = row_weights(rows, 1.0)
            assert weight == pytest.approx(1.0 / np.maximum(1.0, np.sum(rows**2, axis=1)))
            assert (weight <= 1.0).all()
            assert (weight * np.sum(rows[:, ::-1] ** 2, axis=1) <= 1.0).all()
        assert row_weights(np.zeros((2, 3)), 1.0).tolist() == [1.0, 1.0]

    def test_sums_are_those_of_weighted_records(self, likelihood):
        block = self.long_block()
        plain, weight = block._replace(weight=None), block.weight
        for coef in some_coefs(likelihood, scales=(0.3, 1.0)):
            np.testing.assert_allclose(
                likelihood.losses(coef, block), weight * likelihood.losses(coef, plain)
            )
            for one, other in (
                (likelihood.derivatives(coef, block), likelihood.derivatives(coef, plain, weight)),
                (
                    likelihood.derivatives(coef, block, weight),
                    likelihood.derivatives(coef, plain, weight**2),
                ),
            ):
                np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(one.hessian, other.hessian, rtol=1e-12, atol=1e-12)
            linear = likelihood.linearized(coef, block)
            np.testing.assert_allclose(linear.losses, likelihood.losses(coef, block))
            np.testing.assert_allclose(
                linear.gradient(weight), likelihood.derivatives(coef, block, weight).gradient
            )

    @pytest.mark.parametrize("name", sorted(LINKS))
    @pytest.mark.parametrize("cap", [0.4, 1.0, 2.5])
    def test_no_pair_of_weighed_records_passes_the_constants(self, name, cap):
        plain = hazard(name, cap)
        likelihood = replace(plain, weighted=True)
        constants = likelihood.constants
        assert constants.gradient_sensitivity >= plain.constants.gradient_sensitivity
        assert constants.hessian_trace == plain.constants.hessian_trace
        rng = np.random.default_rng(6)
        for coef in some_coefs(likelihood, scales=(0.1, 1.0, 10.0, 100.0)):
            gradients = []
            for _ in range(60):
                x = rng.normal(size=(1, D)) * 10.0 ** rng.uniform(-1, 0.6)
                interval, event = rng.integers(1, Q + 1, 1), rng.random(1) < 0.5
                one = weighed(hazard_block(x, interval, event))
                found = likelihood.derivatives(coef, one)
                gradients.append(found.gradient)
                assert np.trace(found.hessian) <= constants.hessian_trace * (1 + 1e-9)
            gradients = np.array(gradients)
            gaps = np.linalg.norm(gradients[:, None] - gradients[None], axis=2)
            assert gaps.max() <= constants.gradient_sensitivity * (1 + 1e-9)
