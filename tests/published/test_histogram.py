"""PerturbedHistogramMEstimator: a grid by hand, and what it refuses."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from skdpsurv import Release
from skdpsurv.mechanisms import sums
from skdpsurv.published import PerturbedHistogramMEstimator
from tests.support.refusing import refused

SQUARE = [(-1.0, 1.0), (0.0, 4.0)]
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.uniform(-1, 1, 500), RNG.uniform(0, 4, 500)])
Y = (X[:, 0] + 0.4 * RNG.normal(size=500) > 0).astype(int)
#: Rows moved to the middle of their cells, of which there are 4 by 4.
CENTERS = (np.floor((X - [-1.0, 0.0]) / [0.5, 1.0]) + 0.5) * [0.5, 1.0] + [-1.0, 0.0]


def model(epsilon=np.inf, estimator=None, **parameters):
    options = {"bounds": SQUARE, "outcome": [0, 1], "n_bins": 4, "random_state": 0, **parameters}
    return PerturbedHistogramMEstimator(estimator, epsilon, **options)


class TestGrid:
    def test_by_hand(self):
        """Cells run over the last column first, and over classes within a cell."""
        rows = [[-1.0, 0.0], [-0.6, 0.9], [0.9, 3.9], [0.1, 1.0]]
        expected = np.zeros((4, 4, 2))
        expected[0, 0, 0] = expected[0, 0, 1] = expected[3, 3, 1] = expected[2, 1, 0] = 1
        found = model().fit(rows, [0, 1, 1, 0]).weights_
        np.testing.assert_array_equal(found, expected.ravel())
        # Values on and beyond bounds are in the last cells.
        rows = [[1.0, 4.0], [9e9, 1e308], [-1e308, -1.0]]
        found = model().fit(rows, [1, 1, 0]).weights_.reshape(4, 4, 2)
        assert (found[3, 3, 1], found[0, 0, 0]) == (2, 1)

    def test_without_noise_it_is_a_fit_on_centers(self):
        exact = LogisticRegression(tol=1e-10)
        found, expected = model(estimator=exact).fit(X, Y).estimator_, exact.fit(CENTERS, Y)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5)
        np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-5)
        y = X[:, 0] + 0.3 * X[:, 1]  # for a regression there are bins of the outcome
        binned = -1.0 + 0.5 * (np.floor((y + 1.0) / 0.5) + 0.5)
        for estimator in [LinearRegression(), Ridge()]:
            one = model(estimator=estimator, outcome=(-1.0, 3.0), n_bins=[4, 4, 8]).fit(X, y)
            expected = estimator.fit(CENTERS, binned)
            np.testing.assert_allclose(one.predict(X), expected.predict(X), atol=1e-9)
            assert one.weights_.size == 4 * 4 * 8


class TestPrivacy:
    def test_noise_is_for_a_sensitivity_of_two(self, monkeypatch):
        seen = []
        monkeypatch.setattr(sums, "lattice_laplace", lambda v, scale, _: seen.append(scale) or v)
        model(0.25).fit(X, Y)
        assert seen == pytest.approx([8.0])

    def test_release_round_trip(self):
        for estimator in [None, LogisticRegression(C=0.1)]:
            one = model(1.0, estimator).fit(X, Y)
            release = Release.from_json(one.release_.to_json())
            other = PerturbedHistogramMEstimator.from_release(release, estimator=estimator)
            np.testing.assert_array_equal(other.predict_proba(X), one.predict_proba(X))
        stated = one.guarantee_.public_inputs
        assert (stated["n_records"], stated["n_cells"]) == (500, 32)
        text = release.to_json().replace('"n_bins": [4, 4]', '"n_bins": [4, 5]')
        assert text != release.to_json()
        with pytest.raises(ValueError, match="a weight for each cell"):
            PerturbedHistogramMEstimator.from_release(Release.from_json(text))


def test_refusals():
    for parameters, message in (
        ({"bounds": None}, "bounds must be given"),
        ({"outcome": None}, "outcome must be given"),
        ({"bounds": [(0, 1)]}, "bounds must have 2 pairs"),
        ({"bounds": [(0, 1), (1, 1)]}, "bounds"),
        ({"bounds": [(0, 1), (1, np.inf)]}, "bounds"),
        ({"bounds": [(0, 1), (1, 2, 3)]}, "bounds must be a list"),
        ({"n_bins": 0}, "n_bins must be"),
        ({"n_bins": [4]}, "n_bins must be one number"),
        ({"outcome": [1]}, "outcome"),
        ({"n_bins": 5000}, "n_bins|cells"),
        ({"estimator": LinearRegression(), "outcome": (2.0, 1.0)}, "outcome must be a pair"),
        ({"outcome": [0, 2]}, "y holds a label"),
    ):
        refused(model(**{"epsilon": 1.0, **parameters}), message, X, Y)
    # Twenty columns of ten bins would be 10^20 cells: that is said before they are made.
    large = model(bounds=[(0, 1)] * 20, n_bins=10)
    refused(large, "got 200,000,000,000,000,000,000", np.zeros((3, 20)), [0, 1, 1])
