"""Metrics of released parameters and of risk scores, against definitions and other libraries."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics
from sksurv.metrics import concordance_index_censored
from sksurv.util import Surv

from skdpsurv.evaluation import (
    concordance_index,
    mean_relative_error,
    median_absolute_error,
    relative_error,
)


def test_relative_errors_by_hand():
    reference = [3.0, -4.0]
    estimates = [[3.0, -4.0], [0.0, 0.0], [9.0, 4.0]]
    assert relative_error(estimates[2], reference) == pytest.approx(2.0)
    assert mean_relative_error(estimates, reference) == pytest.approx((0 + 1 + 2) / 3)
    assert mean_relative_error(estimates[1], reference) == 1.0


def test_mean_relative_error_is_the_mean_of_relative_errors():
    rng = np.random.default_rng(0)
    estimates, reference = rng.normal(size=(7, 4)), rng.normal(size=4)
    each = [relative_error(row, reference) for row in estimates]
    assert mean_relative_error(estimates, reference) == pytest.approx(np.mean(each), rel=1e-14)


@pytest.mark.parametrize(
    ("estimates", "reference", "message"),
    [
        ([[1.0, 2.0]], [1.0, 2.0, 3.0], "estimates must hold one or more repetitions"),
        (np.empty((0, 2)), [1.0, 2.0], "estimates must hold one or more repetitions"),
        ([[1.0, np.nan]], [1.0, 2.0], "estimates must be finite"),
        ([[1.0, 1.0]], [1.0, np.inf], "reference must be finite"),
        ([[1.0, 1.0]], [0.0, 0.0], "reference must not be zero"),
        ([1.0, 2.0], 1.0, "reference must have shape"),
        (np.empty((1, 0)), [], "reference must have shape"),
    ],
)
def test_mean_relative_error_refuses(estimates, reference, message):
    with pytest.raises(ValueError, match=message):
        mean_relative_error(estimates, reference)


@pytest.mark.parametrize("estimate", [[[1.0, 2.0]], [1.0], 1.0])
def test_relative_error_takes_one_estimate(estimate):
    with pytest.raises(ValueError, match="must be 1-D and have the same shape"):
        relative_error(estimate, [1.0, 2.0])


def test_median_absolute_error():
    rng = np.random.default_rng(1)
    draws = np.array([1.0, -2.0]) + rng.standard_cauchy(size=(31, 2))
    both = median_absolute_error(draws, [1.0, -2.0])
    for j, truth in enumerate([1.0, -2.0]):
        one = median_absolute_error(draws[:, j], truth)
        assert isinstance(one, float)
        assert both[j] == one == np.sort(np.abs(draws[:, j] - truth))[15]
        assert one == sklearn.metrics.median_absolute_error(np.full(31, truth), draws[:, j])
    np.testing.assert_array_equal(median_absolute_error([2.0, 1.0], [1.0, 3.0]), [1.0, 2.0])
    assert median_absolute_error(2.5, 1.0) == 1.5


def test_median_absolute_error_refuses():
    with pytest.raises(ValueError, match="estimates must hold one or more repetitions"):
        median_absolute_error(np.ones((3, 2)), 1.0)
    with pytest.raises(ValueError, match="reference must be a number or have shape"):
        median_absolute_error(np.ones((3, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="estimates must be finite"):
        median_absolute_error([np.inf], 1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_times", [4, 1000])
@pytest.mark.parametrize("n_scores", [3, None])
def test_concordance_equals_scikit_survival(seed, n_times, n_scores):
    """Ties within and between events and censorings, in times and in scores."""
    rng = np.random.default_rng(seed)
    n = 120
    event = rng.random(n) < 0.5
    time = rng.integers(1, n_times + 1, size=n).astype(float)
    risk = rng.normal(size=n) if n_scores is None else rng.integers(n_scores, size=n) / 1.0
    expected = concordance_index_censored(event, time, risk)[0]
    assert concordance_index(Surv.from_arrays(event, time), risk) == pytest.approx(
        expected, abs=1e-14
    )


def test_concordance_of_nearly_equal_scores():
    """Scores 1e-9 apart are ranked; scikit-survival calls them tied."""
    y = Surv.from_arrays([True, True], [1.0, 2.0])
    risk = np.array([1e-9, 0.0])
    assert concordance_index(y, risk) == 1.0
    assert concordance_index_censored(y["event"], y["time"], risk)[0] == 0.5


def test_concordance_direction_and_integer_scores():
    y = np.array([1.0, 2.0, 3.0])
    assert concordance_index(y, [3, 2, 1]) == 1.0
    assert concordance_index(y, np.array([0, 1, 2], dtype=np.uint8)) == 0.0
    assert concordance_index(y, np.zeros(3)) == 0.5
    assert concordance_index(y, [np.inf, 0.0, -np.inf]) == 1.0


@pytest.mark.parametrize(
    ("event", "time"),
    [([False, False], [1, 2]), ([True, True], [1, 1]), ([False, True], [1, 2]), ([True], [1])],
)
def test_concordance_without_a_comparable_pair_is_one_half(event, time):
    assert concordance_index(Surv.from_arrays(event, time), np.arange(len(time))) == 0.5


def test_concordance_refuses():
    y = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match=r"risk must have shape \(n_samples,\)"):
        concordance_index(y, [1.0])
    with pytest.raises(ValueError, match="risk must not contain NaN"):
        concordance_index(y, [1.0, np.nan])
