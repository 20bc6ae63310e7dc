"""The solver: its certificates, that what it returns has one, and is the minimum scipy finds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.data.blocks import InMemory, in_blocks
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.likelihoods.loss import PrivacyConstants
from skdpsurv.mechanisms import newton, newton_steps
from skdpsurv.mechanisms.newton import (
    Center,
    Certificate,
    Objective,
    accelerated_steps,
    certifiable_ridge,
    certificate,
    gradient_error,
    largest_distance,
    maximum_likelihood,
    minimize,
)
from skdpsurv.mechanisms.newton_steps import Goal
from skdpsurv.survival.hazards.fit_plan import fit_of
from skdpsurv.survival.hazards.model import HazardModel, orthogonal_basis
from tests.support.combinations import thinned
from tests.support.hazard_blocks import hazard_block, hazard_records

CONSTANTS = PrivacyConstants(2.0, 0.25, 1, 300.0, 10.0, math.log(2.0))


class TestError:
    def test_is_the_formula_of_the_proof(self):
        n, center, reach, kappa, noise = 1000, 3.0, 50.0, 7.0, 20.0
        S, tau, k, m = 2.0, 0.25, 300.0 + 40.0, 10.0
        records = n * (k * S + m * tau * (center + reach))
        ridge = 6.0 * (kappa * (2.0 * reach + center) + noise + n * S)
        step = 2.0 * (n * tau + kappa) * (reach + center)
        assert newton.UNIT == 2.0**-53
        assert gradient_error(CONSTANTS, n, center, reach, kappa, noise) == pytest.approx(
            2.0**-53 * (records + ridge + step), rel=2e-3
        )
        alone = gradient_error(CONSTANTS, n, center, reach)  # the sum of records
        assert alone == gradient_error(CONSTANTS, n, center, reach, 0.0, 0.0)


class TestCertificate:
    def test_a_quarter_of_the_tolerance_is_for_rounding(self):
        """3E computed and E of rounding are 4E."""
        found = certificate(CONSTANTS, 10**6, 5.0, 30.0)
        error = gradient_error(CONSTANTS, 10**6, 0.0, found.max_distance, 5.0, 30.0)
        assert found.tolerance > newton.LEAST_TOLERANCE
        assert found.computed + error <= found.tolerance * (1 + 1e-12)
        assert found.computed >= 3.0 * error * (1 - 1e-12)
        assert Certificate(4.0, 1.0).computed == 3.0
        assert certificate(CONSTANTS, 1, 1.0, 0.0).tolerance == newton.LEAST_TOLERANCE == 1e-9
        far = certificate(CONSTANTS, 10**6, 5.0, 30.0, Center(100.0))
        error = gradient_error(CONSTANTS, 10**6, 100.0, far.max_distance, 5.0, 30.0)
        assert far.tolerance == pytest.approx(4.0 * error)

    def test_the_distance_is_by_slopes_or_by_losses_at_the_centre(self):
        unknown, by_slopes = replace(CONSTANTS, loss_at_zero=math.inf), 2 * (100 * 2.0 + 3.0) / 2.0
        for constants, center, expected in (
            (unknown, Center(), by_slopes),
            (CONSTANTS, Center(), 3.0 + math.sqrt(100 * math.log(2.0))),
            (CONSTANTS, Center(30.0), 3.0 + math.sqrt(100 * (math.log(2.0) + 2.0 * 30.0))),
            (unknown, Center(30.0, 1.5), 3.0 + math.sqrt(100 * 1.5)),
            (CONSTANTS, Center(1e3), by_slopes),
        ):
            found = largest_distance(constants, 100, 2.0, 3.0, center)
            assert expected <= found <= 1.002 * expected


class TestDistance:
    """No minimum is further out, and no point where the objective is as at the centre."""

    @pytest.mark.parametrize(("kappa", "noise"), [(0.01, 0.0), (1.0, 20.0), (30.0, 0.0)])
    def test_of_log_odds(self, kappa, noise):
        rng = np.random.default_rng(0)
        worst = 0.0
        for X in (np.ones((400, 1)), np.eye(4)[np.arange(400) % 4], 0.05 * np.ones((400, 1))):
            d = X.shape[1]
            likelihood, center = Logistic(d), 0.3 * rng.normal(size=d)
            block = LinearBlock(X, np.ones(400))
            linear = -noise * np.ones(d) / math.sqrt(d)
            objective = Objective(likelihood, InMemory([block]), kappa, center, linear)
            at = Center(float(np.linalg.norm(center)))
            found = certificate(likelihood.constants, 400, kappa, noise, at)
            away = np.linalg.norm(minimize(objective, found) - center)
            worst = max(worst, away / found.max_distance)
        assert 0.02 < worst <= 1.0

    @pytest.mark.parametrize("name", sorted(LINKS))
    def test_of_hazards(self, name):
        """Where nobody has an event, or everybody has one at once."""
        link = LINKS[name].bounded_at(0.1)
        likelihood = DiscreteHazard(np.full((5, 1), 0.4), 1, 1.0, link, 1.0)
        for event, kappa in ((False, 0.01), (False, 1.0), (True, 0.01), (True, 1.0)):
            block = hazard_block(
                np.ones((200, 1)), np.full(200, 1 if event else 5), np.full(200, event)
            )
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
        assert certifiable_ridge(lambda kappa: 1e-9, 0.1, 1e-7) == 0.1

    def test_is_infinite_where_the_centre_alone_is_too_much(self):
        def tolerance(kappa):
            return certificate(CONSTANTS, 100, kappa, 1.0, Center(1e4)).tolerance

        assert certifiable_ridge(tolerance, 1.0, 1e-13) == math.inf
        assert certifiable_ridge(tolerance, 1.0, 1e-9) < 1e6


# ---- The solver.

Q = 6


def make_objective(name="logit", n=60, kappa=2.0, noise=3.0, parts=2, cap=1.0, seed=0):
    rng = np.random.default_rng(seed)
    link = LINKS[name].bounded_at(0.1)
    likelihood = DiscreteHazard(0.5 * orthogonal_basis(Q, 2), 2, 1.0, link, cap)
    X = rng.uniform(-0.7, 0.7, size=(n, 2))
    interval, event = rng.integers(1, Q + 1, size=n), rng.random(n) < 0.5
    blocks = [
        hazard_block(X[rows], interval[rows], event[rows])
        for rows in np.array_split(np.arange(n), parts)
    ]
    center, linear = rng.normal(size=4), noise * rng.normal(size=4)
    return Objective(likelihood, InMemory(blocks), kappa, center, linear)


def certified(tolerance):
    return Certificate(tolerance, np.inf)


def value(objective, coef):
    losses = sum(
        objective.likelihood.losses(coef, block).sum() for block in objective.blocks.blocks
    )
    gap = coef - objective.center
    return losses + 0.5 * objective.kappa * gap @ gap + objective.linear @ coef


def gradient_norm(objective, coef):
    return np.linalg.norm(gradient_at(objective, coef))


def gradient_at(objective, coef):
    """Gradient of F at coefficients; the objective itself takes their shift from the centre."""
    return objective.derivatives(coef - objective.center, order=1).gradient


@pytest.fixture(params=sorted(LINKS))
def objective(request):
    return make_objective(request.param)


def test_derivatives_are_those_of_the_value(objective):
    shift = np.array([0.3, -0.2, 0.5, 1.0])
    gradient, hessian = objective.derivatives(shift)
    numerical = optimize.approx_fprime(
        shift, lambda v: value(objective, objective.center + v), 1e-7
    )
    np.testing.assert_allclose(gradient, numerical, rtol=1e-5, atol=1e-5)
    for j, unit in enumerate(1e-6 * np.eye(4)):
        up, down = (objective.derivatives(shift + s * unit, 1).gradient for s in (1, -1))
        np.testing.assert_allclose(hessian[j], (up - down) / 2e-6, rtol=1e-4, atol=1e-5)


def test_the_ridge_keeps_its_digits_however_far_away_the_centre_is():
    objective = replace(make_objective(kappa=1e6, noise=0.0), center=np.full(4, 1e3))
    shift = np.array([1e-15, 0.0, 0.0, 0.0])
    change = objective.derivatives(shift).gradient - objective.derivatives(0.0 * shift).gradient
    np.testing.assert_allclose(change, 1e6 * shift, rtol=1e-5, atol=1e-14)


def test_the_mean_curvature_is_that_of_records_at_their_largest():
    """As logistic losses are at 0; ridges that are small and large beside them."""
    X = np.random.default_rng(0).normal(size=(50, 4))
    block = LinearBlock(X / np.linalg.norm(X, axis=1, keepdims=True), np.ones(50))
    for kappa in (0.01, 1e3):
        problem = Objective(Logistic(4), InMemory([block]), kappa, np.zeros(4), np.zeros(4))
        hessian = problem.derivatives(np.zeros(4)).hessian
        assert problem.mean_curvature == pytest.approx(np.trace(hessian) / 4, rel=1e-12)


def test_minimum_is_certified_and_is_that_of_scipy(objective):
    coef = minimize(objective, certified(1e-9))
    assert gradient_norm(objective, coef) <= 1e-9
    found = optimize.minimize(
        lambda c: value(objective, c),
        objective.center,
        jac=lambda c: gradient_at(objective, c),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    np.testing.assert_allclose(coef, found.x, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "kappa", "noise"), thinned(sorted(LINKS), [1e-3, 1.0, 1e3], [0.0, 1.0, 1e3, 1e5])
)
def test_certified_under_any_noise(name, kappa, noise):
    """Also where the minimum is thousands of units away, as at a tiny epsilon."""
    objective = make_objective(name, kappa=kappa, noise=noise)
    sizes = np.linalg.norm(objective.linear), Center(np.linalg.norm(objective.center))
    found = certificate(objective.likelihood.constants, 60, kappa, *sizes)
    coef = minimize(objective, found)
    assert gradient_norm(objective, coef) <= found.tolerance
    assert np.linalg.norm(coef - objective.center) <= found.max_distance


def test_certified_with_a_pilot_on_a_thinned_sample(monkeypatch):
    """The pilot starts elsewhere and ends at the same point; ridge and noise are scaled alike."""
    objective = make_objective(n=4000, kappa=5.0)
    thin = objective.thinned(4)
    assert (thin.n_records, thin.kappa) == (1000, objective.kappa / 4)
    np.testing.assert_array_equal(thin.linear, objective.linear / 4)
    with_pilot = minimize(objective, certified(1e-9))
    away = with_pilot - objective.center
    pilot, _ = newton._pilot(objective, np.zeros(4), Goal(1e-9))
    assert np.linalg.norm(pilot - away) < 0.2 * np.linalg.norm(away)
    monkeypatch.setattr(newton, "PILOT_RECORDS", 10**9)
    without = minimize(objective, certified(1e-9))
    assert gradient_norm(objective, with_pilot) <= 1e-9
    assert np.linalg.norm(with_pilot - without) <= 2e-9 / objective.kappa


def test_a_part_of_the_tolerance_is_left_to_rounding():
    objective = make_objective()
    found = minimize(objective, certified(1e-5))
    assert gradient_norm(objective, found) <= 0.75e-5


def test_a_point_too_far_out_is_not_released(monkeypatch):
    """Its gradient may be small by rounding alone; descent from the centre finds another."""
    objective = make_objective(kappa=20.0, noise=500.0)
    distance = np.linalg.norm(minimize(objective, certified(1e-6)) - objective.center)
    called = []
    original = newton.gradient_descent
    monkeypatch.setattr(newton, "gradient_descent", lambda *a: called.append(a) or original(*a))
    minimize(objective, Certificate(1e-6, 1.01 * distance))
    assert not called
    minimize(objective, Certificate(1e-6, 0.99 * distance))
    assert called


class TestManyEqualRecords:
    """Two blocks of one row over and over: rounding errors that all point the same way."""

    N = 2 * 65536

    @pytest.fixture(scope="class", params=["logit", "cloglog"])
    @classmethod
    def problem(cls, request):
        """Return the plan, the blocks, the row as the blocks hold it, and the number of events."""
        model = HazardModel(request.param, 1, 1, cls.N, 2, 1.0, 1.0, 0.5)
        plan, _ = fit_of(model, 1.0, "obj_pert", 0.0, (0.1, 0.0, 0.0))
        event = np.arange(cls.N) % 3 == 0
        X = np.tile([0.3, -0.7], (cls.N, 1))
        arrays = in_blocks(X, np.ones(cls.N, dtype=np.int64), event)
        blocks = arrays.map(lambda each: hazard_records(*each).clipped(0.0, 1.0))
        row, both = blocks.blocks[0].X[0], np.array([block.X for block in blocks.blocks])
        np.testing.assert_array_equal(both, np.broadcast_to(row, (2, cls.N // 2, 2)))
        return plan, blocks, row, int(event.sum())

    @staticmethod
    def exact_gradient_norm(objective, coef, row, n, n_events):
        """Slope of one survivor and of one event times their numbers, in a longer double."""
        longer = np.longdouble
        z = np.concatenate([objective.likelihood.basis[0], row]).astype(longer)
        coef = coef.astype(longer)
        u = np.exp(z @ coef)
        if objective.likelihood.link.name == "logit":  # whose hazard cannot pass the cap of 1
            survivor, event = u / (1 + u), -1 / (1 + u)
        else:
            survivor, event = min(u, longer(1)), -u / np.expm1(u)
        ridge = longer(objective.kappa) * (coef - objective.center.astype(longer))
        slope = (n - n_events) * survivor + n_events * event
        gradient = z * slope + ridge + objective.linear.astype(longer)
        return float(np.sqrt(gradient @ gradient))

    @pytest.mark.parametrize("size", [0.0, 30.0, 1e4])
    def test_certified_in_exact_arithmetic_and_soon(self, monkeypatch, problem, size):
        """What the solver certifies with sums of doubles holds for the true gradient."""
        plan, blocks, row, n_events = problem
        likelihood, calibration = plan.likelihood, plan.calibration
        # The tolerance does not let anything pass.
        total = self.N * likelihood.constants.gradient_sensitivity
        assert calibration.certificate.tolerance < 3e-11 * total
        center = np.array([-1.0, 0.5, 0.25])
        calls = []
        original = Objective.derivatives
        monkeypatch.setattr(
            Objective, "derivatives", lambda *a, **k: calls.append(1) or original(*a, **k)
        )
        monkeypatch.setattr(newton, "accelerated_gradient", None)  # Newton's method is enough
        length, kappa = size * calibration.noise_scale, calibration.kappa
        found = certificate(likelihood.constants, self.N, kappa, length, plan.center_of(likelihood))
        for direction in np.random.default_rng(0).normal(size=(2, 3)):
            linear = length * direction / np.linalg.norm(direction)
            objective = Objective(likelihood, blocks, kappa, center, linear)
            calls.clear()
            coef = minimize(objective, found)
            assert len(calls) <= 40
            exact = self.exact_gradient_norm(objective, coef, row, self.N, n_events)
            assert exact <= found.tolerance


class TestAcceleratedGradient:
    """The method with a proved bound, which takes over where Newton stalls."""

    def test_takes_over_from_newton(self, monkeypatch, objective):
        expected = minimize(objective, certified(1e-8))
        monkeypatch.setattr(newton_steps, "NEWTON_STEPS", 0)
        monkeypatch.setattr(newton, "gradient_descent", None)  # it is enough
        coef = minimize(objective, certified(1e-8))
        assert gradient_norm(objective, coef) <= 1e-8
        np.testing.assert_allclose(coef, expected, atol=1e-8)

    def test_its_last_point_is_certified_by_the_bound_alone(self, monkeypatch):
        """Without the early exit, the steps that the theorem asks for are enough."""
        objective = make_objective(n=10, kappa=20.0)
        tolerance, start = 1e-6, np.full(4, 3.0)
        smooth = 10 * objective.likelihood.constants.hessian_trace + objective.kappa
        norm = np.linalg.norm(objective.derivatives(start, order=1).gradient)
        steps = accelerated_steps(objective, norm, tolerance)
        # The bound (L + kappa) L |x_0 - x*|^2 on the squared norm of the gradient holds at once.
        enough = 0.1 * objective.kappa / np.sqrt(smooth * (smooth + objective.kappa))
        assert accelerated_steps(objective, 4e-4 * enough, 1e-3) == 0
        assert accelerated_steps(objective, 0.99 * enough, 0.1) == 0
        assert accelerated_steps(objective, 1.01 * enough, 0.1) == 1
        ratio = np.sqrt(objective.kappa / smooth)
        momentum = (1 - ratio) / (1 + ratio)
        point = ahead = start
        for _ in range(steps):
            gradient = objective.derivatives(ahead, order=1).gradient
            new = ahead - gradient / smooth
            ahead, point = new + momentum * (new - point), new
        assert np.linalg.norm(objective.derivatives(point, order=1).gradient) <= tolerance


class TestMaximumLikelihood:
    def test_minimises_the_sum_of_losses(self):
        objective = make_objective(n=200, cap=None)
        coef = maximum_likelihood(objective.likelihood, objective.blocks, np.zeros(4))
        gradient = sum(
            objective.likelihood.derivatives(coef, block, order=1).gradient
            for block in objective.blocks.blocks
        )
        assert np.linalg.norm(gradient) <= 1e-8

    @pytest.mark.parametrize("event", [False, True])
    def test_an_optimum_at_infinity_stops_inside_the_box(self, event):
        likelihood = DiscreteHazard(orthogonal_basis(1, 1), 1, 1.0, LINKS["logit"], None)
        block = hazard_block(np.ones((5, 1)), np.ones(5, dtype=int), np.full(5, event))
        coef = maximum_likelihood(likelihood, InMemory([block]), np.zeros(2))
        assert np.abs(coef).max() <= 50.0
        assert (coef[0] > 5) == event
        # Three to one are odds of log(3), a hundredth of the coefficient.
        likely = LinearBlock(np.full((4, 1), 0.01), np.array([1.0, 1.0, 1.0, -1.0]))
        assert maximum_likelihood(Logistic(1), InMemory([likely]), np.zeros(1)) == [50.0]

    def test_columns_may_be_equal(self):
        block = LinearBlock(np.full((4, 2), 0.5), np.array([1.0, 1.0, 1.0, -1.0]))
        coef = maximum_likelihood(Logistic(2), InMemory([block]), np.zeros(2))
        assert coef.sum() == pytest.approx(2.0 * math.log(3.0))


class TestGradientDescent:
    """The method whose end is proved for doubles: what is left where all else fails."""

    @pytest.fixture(params=sorted(LINKS))
    def objective(self, request):
        return make_objective(request.param, kappa=25.0)

    def test_reaches_the_certificate_in_time(self, objective):
        calls = []
        gradient = np.linalg.norm(objective.derivatives(np.zeros(4), order=1).gradient)
        steps = newton.descent_steps(objective, gradient, 1e-8)
        # Each lowers F - F* by a part 3 kappa / 4 L; with errors of a third of the tolerance.
        smooth = 60 * objective.likelihood.constants.hessian_trace + objective.kappa
        begin, end = (4 / 3 * gradient) ** 2 / (2 * objective.kappa), 2 * (1e-8 / 3) ** 2 / smooth
        asked = 4 * smooth / (3 * objective.kappa) * math.log(begin / end)
        assert asked + 2.0 <= steps <= asked + 3.001
        counted = replace(objective, blocks=CountedBlocks(objective.blocks.blocks, calls))
        shift = newton.gradient_descent(counted, 1e-8)
        assert np.linalg.norm(objective.derivatives(shift, order=1).gradient) <= 1e-8
        assert 2 <= len(calls) - 1 <= steps
        np.testing.assert_allclose(
            objective.center + shift, minimize(objective, certified(1e-8)), atol=1e-7
        )

    def test_takes_over_from_both(self, monkeypatch, objective):
        monkeypatch.setattr(newton_steps, "NEWTON_STEPS", 0)
        monkeypatch.setattr(newton, "accelerated_steps", lambda *_: 0)
        coef = minimize(objective, certified(1e-8))
        assert gradient_norm(objective, coef) <= 0.75e-8

    def test_ends_where_the_tolerance_is_below_rounding(self, monkeypatch):
        """Of a likelihood that states too little rounding, say: a fit returns all the same."""
        objective = make_objective(n=10, kappa=500.0)
        smooth = 10 * objective.likelihood.constants.hessian_trace + 500.0
        assert newton.descent_steps(objective, 1e3, 1e-40) < 1000 * smooth
        newton.gradient_descent(objective, 1e-40)


class CountedBlocks(InMemory):
    def __init__(self, blocks, calls):
        super().__init__(blocks)
        self.calls = calls

    def map_reduce(self, function, *each):
        self.calls.append(function)
        return super().map_reduce(function, *each)
