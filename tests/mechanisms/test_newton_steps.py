"""Newton's method: how often it asks for Hessians, updated ones, and optima at infinity."""

import math

import numpy as np
import pytest

from skdpsurv import DPDiscreteTimeSurvival, DPLogisticRegression
from skdpsurv.data import PublicBoundsScaler
from skdpsurv.data.blocks import InMemory
from skdpsurv.datasets import load_flchain, make_discrete_time_survival
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.likelihoods.loss import Derivatives
from skdpsurv.mechanisms import newton as solver
from skdpsurv.mechanisms import newton_steps
from skdpsurv.mechanisms.newton import Objective, maximum_likelihood
from skdpsurv.mechanisms.newton_steps import Goal, newton


@pytest.fixture
def passes(monkeypatch):
    """Number of records and order of each pass over records."""
    found = []
    original = Objective.derivatives

    def spy(self, shift, order=2):
        found.append((self.n_records, order))
        return original(self, shift, order)

    monkeypatch.setattr(Objective, "derivatives", spy)
    return found


@pytest.mark.parametrize("link", sorted(LINKS))
def test_flchain_takes_two_hessians_of_all_records(passes, link):
    data = load_flchain()
    X = PublicBoundsScaler.from_bounds(data.bounds, missing="midpoint").fit_transform(data.X)
    DPDiscreteTimeSurvival(math.inf, max_time=data.max_time, n_intervals=200, link=link).fit(
        X, data.y
    )
    n = len(data.y)
    assert passes.count((n, 2)) <= 2
    assert passes.count((n, 1)) <= 4
    assert len(passes) <= 10


def test_the_life_table_is_as_good_a_start_however_wrong_the_prior_event_rate(passes):
    data = make_discrete_time_survival(3000, 3, baseline="front-loaded", random_state=0)
    numbers = []
    for rate in (1e-6, 0.3, 0.999):
        passes.clear()
        DPDiscreteTimeSurvival(math.inf, max_time=1.0, n_intervals=50, prior_event_rate=rate).fit(
            data.X, data.y
        )
        numbers.append(len(passes))
    assert max(numbers) <= 8
    assert max(numbers) - min(numbers) <= 1


def test_without_privacy_the_point_after_a_last_step_is_not_looked_at(monkeypatch, passes):
    rng, numbers = np.random.default_rng(0), []
    block = LinearBlock(rng.normal(size=(300, 3)), np.sign(rng.normal(size=300)))
    for error in (solver.NEGLIGIBLE, 0.0):
        monkeypatch.setattr(solver, "NEGLIGIBLE", error)
        passes.clear()
        maximum_likelihood(Logistic(3), InMemory([block]), np.zeros(3))
        numbers.append(len(passes))
    assert numbers[0] < numbers[1]


@pytest.mark.parametrize(("n", "p"), [(3000, 100), (20_000, 200)])
def test_wide_problems_take_a_hessian_of_all_records_where_it_is_the_last(passes, n, p):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ rng.normal(size=p) + 0.3 * rng.normal(size=n) > 0.0).astype(int)
    DPLogisticRegression(1.0, classes=[0, 1], random_state=0).fit(X, y)
    assert passes.count((n, 2)) == 1
    assert len(passes) <= 12


@pytest.mark.parametrize(("n_levels", "order"), [(250, 1), (350, 2)])
def test_a_sample_of_few_records_for_each_coefficient_hands_no_hessian_on(passes, n_levels, order):
    rng, n = np.random.default_rng(0), 15_000
    X = (rng.integers(n_levels, size=(n, 1)) == np.arange(n_levels)).astype(float)
    y = (X @ rng.normal(size=n_levels) > 0.0).astype(int)
    DPLogisticRegression(1.0, classes=[0, 1], random_state=0).fit(X, y)
    assert next(found for size, found in passes if size == 5000) == order


class TestOptimaAtInfinity:
    """A column whose records all have the same label, beside one that is regular."""

    @pytest.fixture
    def separated(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.random(400) < 0.1, np.ones(400), rng.normal(size=400)])
        label = np.where((rng.random(400) < 0.6) | (X[:, 0] == 1.0), 1.0, -1.0)
        return LinearBlock(X.astype(float), label)

    def test_take_few_passes(self, passes, separated):
        coef = maximum_likelihood(Logistic(3), InMemory([separated]), np.zeros(3))
        assert 15.0 < coef[0] <= 50.0
        assert len(passes) <= 20
        # The others are those of the other records.
        rest = separated.X[:, 0] == 0.0
        block = LinearBlock(separated.X[rest, 1:], separated.y[rest])
        alone = maximum_likelihood(Logistic(2), InMemory([block]), np.zeros(2))
        np.testing.assert_allclose(coef[1:], alone, rtol=1e-8)

    def test_would_take_more_without_long_steps(self, monkeypatch, passes, separated):
        monkeypatch.setattr(newton_steps, "LONGEST", 1.0)
        maximum_likelihood(Logistic(3), InMemory([separated]), np.zeros(3))
        assert len(passes) > 20

    def test_a_longer_step_ends_with_its_hessian(self):
        """However often it was made longer: on the way there gradients are enough."""

        class Falling:
            """e^-x + c x, which ends to fall later for a smaller c."""

            def __init__(self, c):
                self.c, self.orders = c, []

            def derivatives(self, shift, order=2):
                self.orders.append(order)
                hessian = np.diag(np.exp(-shift))
                return Derivatives(self.c - np.exp(-shift), hessian if order == 2 else None)

        start = np.array([0.1])
        for c, length in ((0.5, 1.0), (0.05, 4.0), (0.001, 16.0), (0.0, 16.0)):
            function, slope = Falling(c), c - math.exp(-0.1)
            step = newton_steps._line_search(function, start, np.ones(1), slope, 2)
            assert (step.shift, step.length) == (0.1 + length, length)
            np.testing.assert_allclose(step.derivatives.hessian, np.exp(-0.1 - length))
            assert function.orders[-1] == 2
            assert function.orders.count(2) == 1 + (length > 1.0)


class Sum:
    """A convex function of two coordinates: the sum of a square and of an exponential."""

    n_records = 10**4

    def __init__(self):
        self.orders = []

    def derivatives(self, shift, order=2):
        self.orders.append(order)
        x, y = shift
        gradient = np.array([x + 0.1 * y, 0.1 * x + np.exp(y) - 2.0])
        hessian = np.array([[1.0, 0.1], [0.1, np.exp(y)]])
        return Derivatives(gradient, hessian if order == 2 else None)


class TestNewton:
    def test_ends_with_gradients_alone(self):
        function = Sum()
        found = newton(function, np.array([1.0, 1.0]), Goal(1e-12))
        assert found.reached
        assert np.linalg.norm(function.derivatives(found.shift).gradient) <= 1e-12
        assert function.orders[0] == 2
        assert function.orders.count(2) <= 3

    def test_starts_with_the_gradient_if_a_hessian_is_known(self):
        function = Sum()
        known = 1.5 * function.derivatives(np.zeros(2)).hessian
        function.orders.clear()
        assert newton(function, np.array([1.0, 1.0]), Goal(1e-12), known).reached
        assert function.orders[0] == 1

    def test_a_decrement_or_an_error_ends_with_a_step_unseen(self):
        seen, unseen = Sum(), Sum()
        exact = newton(seen, np.array([1.0, 1.0]), Goal(1e-14)).shift
        for goal, off in ((Goal(1e-14, error=1e-5), 1e-5), (Goal(1e-14, decrement=1e-4), 1e-2)):
            unseen.orders.clear()
            found = newton(unseen, np.array([1.0, 1.0]), goal)
            assert found.reached
            assert np.linalg.norm(found.shift - exact) <= off
            assert len(unseen.orders) < len(seen.orders)

    def test_an_update_maps_the_move_to_the_change(self):
        rng = np.random.default_rng(0)
        root = rng.normal(size=(4, 4))
        old, move = root @ root.T + np.eye(4), rng.normal(size=4)
        change = (old + np.diag([1.0, 0.0, 2.0, 0.5])) @ move
        new = newton_steps._secant(old, move, change)
        np.testing.assert_allclose(new @ move, change)
        assert np.linalg.eigvalsh(new).min() > 0.0
        np.testing.assert_array_equal(newton_steps._secant(old, move, -change), old)


def test_a_step_out_of_the_box_is_cut_as_a_whole():
    """So that coefficients which go to infinity together still cancel each other."""
    inside, beyond = np.array([46.0, -48.0, 1.0]), np.array([62.0, -64.0, 5.0])
    found = newton_steps._inside_box(50.0, inside, beyond)
    np.testing.assert_allclose(found, [48.0, -50.0, 1.5])
    np.testing.assert_array_equal(newton_steps._inside_box(50.0, beyond, 2.0 * beyond)[2], 5.0)
