"""Losses of single records: bounded, proper, and silent about what fails."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sksurv.util import Surv

from skdpsurv import DPDiscreteTimeSurvival, DPWeibullFitter
from skdpsurv.model_selection.losses import (
    UNIT,
    SurvivalLoss,
    brier_loss,
    error_loss,
    summed_losses,
)


class Coin:
    """Says 0.75 for class 1 where x > 0, else 0.25; cannot do 13."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        if (X == 13).any():
            raise ValueError("13 in a record")
        p = np.where(X[:, 0] > 0, 0.75, 0.25)
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.predict_proba(X)[:, 1] > 0.5


X = np.array([[1.0], [1.0], [-1.0], [-1.0]])
Y = np.array([1, 0, 0, 7])


def test_error_and_brier():
    np.testing.assert_array_equal(error_loss(Coin(), X, Y), [0, 1, 0, 1])
    np.testing.assert_allclose(brier_loss(Coin(), X, Y), [1 / 16, 9 / 16, 1 / 16, 1.0])


def test_sums_are_exact_in_units_of_the_lattice():
    assert summed_losses(error_loss, Coin(), X, Y) == 2 * UNIT
    assert summed_losses(brier_loss, Coin(), X, Y) == (1 + 9 + 1 + 16) * UNIT // 16


@pytest.mark.parametrize(("value", "counted"), [(-3.0, 0.0), (5.0, 1.0), (np.nan, 1.0)])
def test_losses_are_clipped(value, counted):
    total = summed_losses(lambda m, X, y: np.where(y == 7, value, 0.5), Coin(), X, Y)
    assert total == round((3 * 0.5 + counted) * UNIT)


def test_a_failure_counts_for_its_record_alone_and_is_silent():
    rows = np.array([[1.0], [13.0], [-1.0], [-1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert summed_losses(error_loss, Coin(), rows, np.array([1, 1, 0, 0])) == UNIT


def test_one_record_moves_the_sum_by_one_at_most():
    base = summed_losses(brier_loss, Coin(), X, Y)
    for x, y in [(13.0, 0), (np.nan, 1), (1e300, 5), (-1.0, 0)]:
        rows, labels = X.copy(), Y.copy()
        rows[3], labels[3] = x, y
        assert abs(summed_losses(brier_loss, Coin(), rows, labels) - base) <= UNIT


@pytest.mark.parametrize("loss", [lambda m, X, y: 0.0, lambda m, X, y: np.zeros(7)])
def test_a_loss_of_another_shape_counts_1(loss):
    assert summed_losses(loss, Coin(), X, Y) == 4 * UNIT


def test_rows_that_might_influence_one_another_are_asked_for_one_by_one():
    sizes = []

    def loss(model, X, y):
        sizes.append(len(X))
        return (X[:, 0] > X[:, 0].mean()).astype(float)

    assert summed_losses(loss, Coin(), X, Y) == 2 * UNIT
    assert summed_losses(loss, Coin(), X, Y, row_by_row=True) == 0
    assert sizes == [4, 1, 1, 1, 1]


def test_a_failed_model_loses_everything():
    assert summed_losses(error_loss, None, X, Y) == 4 * UNIT


def test_the_model_that_sees_records_is_a_copy():
    class Nosy(Coin):
        def predict(self, X):
            self.seen = X
            return super().predict(X)

    model = Nosy()
    assert summed_losses(error_loss, model, X, Y) == 2 * UNIT
    assert not hasattr(model, "seen")


@pytest.mark.parametrize("kind", ["likelihood", "brier"])
class TestSurvival:
    def data(self, n=20_000):
        rng = np.random.default_rng(0)
        X = rng.choice([-1.0, 1.0], size=(n, 1))
        time = rng.exponential(np.exp(-0.7 * X[:, 0]))
        censored = rng.exponential(1.0, size=n)
        return X, Surv.from_arrays(time <= censored, np.minimum(time, censored))

    def test_the_true_curve_is_best_whatever_the_censoring(self, kind):
        """A mean over 20,000 records; the others are more than 10 standard errors behind."""
        X, y = self.data()
        loss = SurvivalLoss(kind, 1.0)

        class Model:
            unique_times_ = np.arange(1, 101) / 100

            def __init__(self, level, slope):
                self.level, self.slope = level, slope

            def predict_cumulative_hazard_function(self, X, return_array):
                rate = self.level * np.exp(self.slope * X[:, 0])
                return rate[:, None] * self.unique_times_

        true = loss(Model(1.0, 0.7), X, y)
        for level, slope in [(1.0, 0.0), (1.0, 1.3), (0.6, 0.7), (1.6, 0.7), (1.0, -0.7)]:
            worse = loss(Model(level, slope), X, y) - true
            assert worse.mean() > 4 * worse.std() / np.sqrt(worse.size), (level, slope)

    def test_values(self, kind):
        X, y = self.data(500)
        model = DPDiscreteTimeSurvival(np.inf, max_time=1.0, n_intervals=37).fit(X, y)
        losses = SurvivalLoss(kind, 1.0)(model, X, y)
        assert losses.shape == (500,)
        assert ((losses >= 0) & (losses <= 1)).all()

    def test_without_covariates(self, kind):
        X, y = self.data(500)
        model = DPWeibullFitter(np.inf, max_time=1.0).fit(X, y)
        assert np.isfinite(SurvivalLoss(kind, 1.0)(model, X, y)).all()

    def test_times_beyond_the_horizon_count_as_censored_there(self, kind):
        X, y = self.data(50)
        model = DPDiscreteTimeSurvival(np.inf, max_time=1.0).fit(X, y)
        late = Surv.from_arrays([True] * 50, np.full(50, 3.0))
        last = Surv.from_arrays([False] * 50, np.full(50, 1.0))
        loss = SurvivalLoss(kind, 1.0)
        np.testing.assert_array_equal(loss(model, X, late), loss(model, X, last))


def test_likelihood_of_a_constant_hazard():
    class Constant:
        unique_times_ = np.array([0.5, 1.0, 1.5, 2.0])

        def predict_cumulative_hazard_function(self, X, return_array):
            return np.broadcast_to(1.5 * self.unique_times_, (len(X), 4))

    y = Surv.from_arrays([True, False], [0.3, 0.3])
    loss = SurvivalLoss("likelihood", 2.0, log_range=(-2.0, 6.0))
    # H(0.3) = 0.45; the hazard is 3 in units of 1 / horizon.
    expected = (np.array([0.45 - np.log(3.0), 0.45]) + 2.0) / 8.0
    np.testing.assert_allclose(loss(Constant(), np.zeros((2, 1)), y), expected)
