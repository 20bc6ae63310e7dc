"""PerturbedHistogramMEstimator: a grid by hand, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from skdpsurv import PrivacyAccountant, Release
from skdpsurv.mechanisms import sums
from skdpsurv.published import PerturbedHistogramMEstimator

SQUARE = [(-1.0, 1.0), (0.0, 4.0)]


def model(epsilon=np.inf, estimator=None, **parameters):
    options = {"bounds": SQUARE, "outcome": [0, 1], "n_bins": 4, "random_state": 0, **parameters}
    return PerturbedHistogramMEstimator(estimator, epsilon, **options)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 500), rng.uniform(0, 4, 500)])
    return X, (X[:, 0] + 0.4 * rng.normal(size=500) > 0).astype(int)


def centers(X):
    """Return rows moved to the middle of their cells, of which there are 4 by 4."""
    first = -1.0 + 0.5 * (np.floor((X[:, 0] + 1.0) / 0.5) + 0.5)
    return np.column_stack([first, np.floor(X[:, 1]) + 0.5])


class TestGrid:
    def test_by_hand(self):
        """Cells run over the last column first, and over classes within a cell."""
        X = [[-1.0, 0.0], [-0.6, 0.9], [0.9, 3.9], [0.1, 1.0]]
        found = model().fit(X, [0, 1, 1, 0]).weights_
        expected = np.zeros((4, 4, 2))
        expected[0, 0, 0] = expected[0, 0, 1] = expected[3, 3, 1] = expected[2, 1, 0] = 1
        np.testing.assert_array_equal(found, expected.ravel())

    def test_values_on_and_beyond_bounds_are_in_the_last_cells(self):
        X = [[1.0, 4.0], [9e9, 1e308], [-1e308, -1.0]]
        found = model().fit(X, [1, 1, 0]).weights_.reshape(4, 4, 2)
        assert found[3, 3, 1] == 2
        assert found[0, 0, 0] == 1

    def test_without_noise_it_is_a_fit_on_centers(self, data):
        X, y = data
        found = model(estimator=LogisticRegression(tol=1e-10)).fit(X, y).estimator_
        expected = LogisticRegression(tol=1e-10).fit(centers(X), y)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5)
        np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-5)

    def test_regression_has_bins_of_the_outcome(self, data):
        for estimator in [LinearRegression(), Ridge()]:
            X, _ = data
            y = X[:, 0] + 0.3 * X[:, 1]
            one = model(estimator=estimator, outcome=(-1.0, 3.0), n_bins=[4, 4, 8]).fit(X, y)
            binned = -1.0 + 0.5 * (np.floor((y + 1.0) / 0.5) + 0.5)
            expected = estimator.fit(centers(X), binned)
            np.testing.assert_allclose(one.predict(X), expected.predict(X), atol=1e-9)
            assert one.weights_.size == 4 * 4 * 8


class TestPrivacy:
    def test_noise_is_for_a_sensitivity_of_two(self, monkeypatch, data):
        seen = []
        monkeypatch.setattr(
            sums, "lattice_laplace", lambda v, scale, source: seen.append(scale) or v
        )
        model(0.25).fit(*data)
        assert seen == pytest.approx([8.0])

    def test_release_round_trip(self, data):
        for estimator in [None, LogisticRegression(C=0.1)]:
            one = model(1.0, estimator).fit(*data)
            release = Release.from_json(one.release_.to_json())
            other = PerturbedHistogramMEstimator.from_release(release, estimator=estimator)
            np.testing.assert_array_equal(other.predict_proba(data[0]), one.predict_proba(data[0]))
            assert other.release_ == one.release_

    def test_numbers_of_records_and_cells_are_stated(self, data):
        stated = model(1.0).fit(*data).guarantee_.public_inputs
        assert stated["n_records"] == 500
        assert stated["n_cells"] == 32


class TestRefusals:
    def test_nothing_is_spent(self, data):
        accountant = PrivacyAccountant()
        for parameters, message in (
            ({"bounds": None}, "bounds must be given"),
            ({"outcome": None}, "outcome must be given"),
            ({"bounds": [(0, 1)]}, "bounds must have 2 pairs"),
            ({"bounds": [(0, 1), (1, 1)]}, "rising"),
            ({"bounds": [(0, 1), (1, np.inf)]}, "finite"),
            ({"bounds": [(0, 1), (1, 2, 3)]}, "bounds must be a list"),
            ({"n_bins": 0}, "n_bins must be"),
            ({"n_bins": [4]}, "n_bins must be one number"),
            ({"outcome": [1]}, "two or more numbers"),
            ({"n_bins": 5000}, "n_bins|cells"),
            ({"estimator": LinearRegression(), "outcome": (2.0, 1.0)}, "outcome must be a pair"),
            ({"outcome": [0, 2]}, "y holds a label"),
        ):
            one = model(**{"epsilon": 1.0, "accountant": accountant, **parameters})
            with pytest.raises(ValueError, match=message):
                one.fit(*data)
        assert len(accountant.entries()) == 0

    def test_too_large_is_said_before_it_is_made(self):
        """Twenty columns of ten bins would be 10^20 cells."""
        one = model(bounds=[(0, 1)] * 20, n_bins=10)
        with pytest.raises(ValueError, match="got 200,000,000,000,000,000,000"):
            one.fit(np.zeros((3, 20)), [0, 1, 1])

    def test_release_of_another_grid(self, data):
        release = model(1.0).fit(*data).release_
        text = release.to_json().replace('"n_bins": [4, 4]', '"n_bins": [4, 5]')
        assert text != release.to_json()
        with pytest.raises(ValueError, match="a weight for each cell"):
            PerturbedHistogramMEstimator.from_release(Release.from_json(text))
