"""Moments of residuals: bounded whatever the record; and the weights that balance them."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RidgeClassifier,
)

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.hybrid import hybrid_measurements as module
from skdpsurv.hybrid.hybrid_measurements import ResidualMoments, Residuals, balance, lifted
from skdpsurv.hybrid.hybrid_records import PrivateRecords

N = 200


def records(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, 2)), rng.normal(size=N)


def outcome(estimator, X, z):
    if isinstance(estimator, LinearRegression):
        return X[:, 0] + z
    if isinstance(estimator, PoissonRegressor):
        return np.abs(np.round(X[:, 0] + z))
    return (X[:, 0] + z > 0).astype(int)


class ThreeClasses(LogisticRegression):
    """A logistic regression that is given three classes."""


ESTIMATORS = [
    LinearRegression(),
    PoissonRegressor(),
    LogisticRegression(),
    RidgeClassifier(),
    ThreeClasses(),
]


def public_map(estimator):
    X, z = records()
    y = outcome(estimator, X, z)
    if isinstance(estimator, ThreeClasses):
        y = np.digitize(X[:, 0] + z, [-1.0, 1.0])
    return Residuals.at(estimator.fit(X, y), X, y), X, y


class TestMoments:
    @pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
    def test_no_record_is_beyond_the_bound(self, estimator):
        """R is a little above the quantile 0.95 of the public norms; each record has its own."""
        residuals, X, y = public_map(estimator)
        public = residuals.moments(X, y)
        assert public.shape == (N, residuals.size)
        assert np.mean(np.linalg.norm(public, axis=1) > 0.9999 * residuals.bound) <= 0.05
        alone = [residuals.moments(X[i : i + 1], y[i : i + 1])[0] for i in range(9)]
        np.testing.assert_allclose(public[:9], alone, rtol=1e-9, atol=1e-12)
        rng = np.random.default_rng(1)
        far = np.vstack([X, 1e3 * X, 1e300 * rng.choice([-1.0, 1.0], size=(N, 2))])
        if isinstance(estimator, LinearRegression | PoissonRegressor):
            theirs = np.concatenate([y, 1e300 * y, rng.choice([-1e308, 1e308], N)])
        else:
            unknown = np.array(["unknown", None, 17, 0.5, (1, 2)], dtype=object)
            theirs = np.concatenate(
                [y, rng.choice(y, N), unknown[rng.integers(0, len(unknown), N)]]
            )
        with np.errstate(all="ignore"):
            norms = np.linalg.norm(residuals.moments(far, theirs), axis=1)
        assert np.isfinite(norms).all()
        assert norms.max() <= residuals.bound * (1 + 1e-12)
        assert np.sum(norms > 0.999 * residuals.bound) > N  # and the bound is at work

    def test_of_a_logistic_fit(self, monkeypatch):
        """Residual times (1, standardised columns), as the score equations have it."""
        residuals, X, y = public_map(LogisticRegression())
        p = residuals.fitted.predict_proba(X)[:, 1]
        standard = np.column_stack([np.ones(N), (X - X.mean(axis=0)) / X.std(axis=0)])
        expected = ((y - p) / 0.5)[:, None] * standard
        inside = np.linalg.norm(expected, axis=1) < residuals.bound
        assert inside.mean() > 0.9
        np.testing.assert_allclose(residuals.moments(X, y)[inside], expected[inside])
        failed = np.full((N, 2), np.nan)
        monkeypatch.setattr(module, "predicted_probabilities", lambda fitted, X: failed)
        assert not residuals.moments(X, y).any()

    def test_of_numbers(self):
        residuals, X, y = public_map(LinearRegression())
        error = np.abs(y - residuals.fitted.predict(X))
        assert residuals.scale == pytest.approx(1.48 * np.median(error))
        # A constant column has no moment, and a perfect fit has a scale.
        X[:, 1] = 4.0
        found = Residuals.at(LinearRegression().fit(X, y), X, y).moments(X + 1.0, y)
        assert found.shape == (N, 3)
        assert found[:, 1].any()
        np.testing.assert_array_equal(found[:, 2], 0.0)
        residuals = Residuals.at(LinearRegression().fit(X, np.ones(N)), X, np.ones(N))
        assert residuals.scale > 0
        assert np.isfinite(residuals.moments(X, np.full(N, 1e9))).all()


def mean_of(rows, bound, epsilon, seed=0, n_blocks=1):
    """Return what is released of moments that are the rows, and the variance of its noise."""
    same = SimpleNamespace(matrix=lambda table: table, moments=lambda X, y: X)
    same.bound, same.size = bound, rows.shape[1]
    public = SimpleNamespace(n_private=len(rows), design=same)
    measured = ResidualMoments(price=epsilon, public=public)
    records = InMemory([PrivateRecords(part, None) for part in np.array_split(rows, n_blocks)])
    known = {"_residuals": same}
    query, exact = measured.query_for(known), measured.exact_answer(known, records)
    return query.release(exact, epsilon, random_source(seed)), query.deviation(epsilon) ** 2


class TestPrivateMean:
    @pytest.mark.parametrize("bound", [0.3, 5.0])
    def test_neighbours_differ_by_twice_the_bound_over_n(self, monkeypatch, bound):
        """The noise is made for it: it is checked without noise, and with its scale."""
        scales = []

        def no_noise(mean, law, source):
            scales.append(law.scale)
            return mean

        monkeypatch.setattr("skdpsurv.mechanisms.moments.add_noise", no_noise)
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(N, 3))
        most = 0.0
        for _ in range(50):
            row, ends = 1e6 * rng.normal(size=3), []
            for sign in (1.0, -1.0):
                rows[3] = sign * row
                ends.append(mean_of(rows, bound, 0.5)[0])
            most = max(most, np.linalg.norm(ends[0] - ends[1]))
        assert 1.99 * bound / N < most <= 2.0 * bound / N * (1 + 1e-6)
        assert most <= min(scales) * 0.5

    def test_stated_variance_is_that_of_the_noise(self):
        """Seeded; 3000 draws know a standard deviation to 1.3 %, so 8 % is six of them."""
        rows = np.zeros((50, 4))
        means, variances = zip(*[mean_of(rows, 2.0, 0.7, s) for s in range(750)], strict=True)
        assert len(set(variances)) == 1
        assert np.std(means) == pytest.approx(np.sqrt(variances[0]), rel=0.08)

    def test_blocks_change_nothing(self):
        """Blocks without records neither; without noise it is the plain mean."""
        rows = np.random.default_rng(0).normal(size=(N, 3))
        for n_blocks in (1, 3, N + 5):
            found = mean_of(rows, 2.0, 0.7, n_blocks=n_blocks)
            np.testing.assert_array_equal(found[0], mean_of(rows, 2.0, 0.7)[0])
            mean, variance = mean_of(rows, 10.0, np.inf, n_blocks=n_blocks)
            np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-12)
            assert variance == 0.0


def test_lifted_weights_are_positive_and_about_as_many_as_private_records():
    lift = lifted(np.array([-4.0, 0.0, 1.0, 3.0]), 100)
    np.testing.assert_allclose(lift, [0.25, 0.25, 25.25, 75.25])
    np.testing.assert_allclose(lifted(np.array([-4.0, 0.0]), 100), 0.5)


def problem(seed=0, far=0.2):
    rng = np.random.default_rng(seed)
    moments = rng.normal(size=(60, 3))
    return moments, far * rng.normal(size=3), rng.uniform(0.5, 2.0, 60)


class TestBalance:
    @pytest.mark.parametrize(("seed", "variance"), [(0, 0.0), (1, 0.05), (2, 0.05)])
    def test_solves_the_stated_problem(self, seed, variance):
        """Against a general solver of the primal: relative entropy and squared distance over 2k."""
        moments, target, start = problem(seed)
        start = start / start.sum()
        slack = module.SLACK * variance + module.LEAST_SLACK

        def weights_of(tilt):
            raised = np.exp(tilt - tilt.max())
            return raised / raised.sum()

        def objective(tilt):
            w = weights_of(tilt)
            gap = w @ moments - target
            return np.sum(w * np.log(w / start)) + 0.5 / slack * gap @ gap

        best = optimize.minimize(objective, np.log(start), method="L-BFGS-B", tol=1e-14)
        weights = balance(moments, target, variance, start)
        assert objective(np.log(weights)) <= best.fun + 1e-9
        np.testing.assert_allclose(weights, weights_of(best.x), atol=1e-4)

    def test_gradient_of_the_dual_is_zero(self):
        """Weights are exponential in some lambda, and the mean is off by k lambda."""
        for far, variance in product([0.0, 0.2, 3.0, 100.0], [0.0, 0.01, 10.0]):
            moments, target, start = problem(far=far)
            weights = balance(moments, target, variance, start)
            assert weights.sum() == pytest.approx(1.0)
            assert weights.min() >= 0.0
            slack = module.SLACK * variance + module.LEAST_SLACK
            dual = (target - weights @ moments) / slack
            tilted = np.exp(moments @ dual - np.max(moments @ dual)) * start
            np.testing.assert_allclose(weights, tilted / tilted.sum(), atol=1e-4)


def test_constants_of_clips_and_of_the_slack():
    assert (module.CLIPPED_SHARE, module.FARTHEST, module.FARTHEST_RESIDUAL) == (0.02, 4.0, 2.5)
    assert (module.QUANTILE, module.ABOVE, module.LEAST_RESIDUAL) == (0.95, 1.1, 0.5)
    assert (module.LEAST_SLACK, module.SLACK) == (0.3, 10.0)


def test_noise_is_followed_by_its_variance(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "balance", lambda *args: seen.append(args[2]) or args[3])
    same = SimpleNamespace(moments=lambda X, y: np.zeros((3, 2)), size=2, bound=1.0)
    public = SimpleNamespace(n_private=50, design_public=None, y_public=None)
    measured = ResidualMoments(price=0.7, public=public)
    known = {"_residuals": same, "weights": np.ones(3)}
    measured.postprocess(known, np.zeros(2))
    assert seen == [measured.query_for(known).deviation(0.7) ** 2]
