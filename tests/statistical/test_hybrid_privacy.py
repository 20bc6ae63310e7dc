"""Attacks on what hybrid fits release, at epsilon 1, by somebody who knows all but one record.

An attack is an event that one of two neighbours makes more likely. From runs on both, the exact
(Clopper-Pearson) bounds of its two probabilities bound epsilon from below. Events are chosen on
other runs than those that count. All is seeded; each bound is wrong with probability below 1e-7.
Planted defects show that the attacks would find something.
"""

import numpy as np
import pytest
from scipy import special, stats
from sklearn.linear_model import LogisticRegression

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.hybrid import hybrid_measurements
from skdpsurv.hybrid.hybrid_measurements import Residuals
from skdpsurv.hybrid.hybrid_records import nearest
from skdpsurv.hybrid.selection import LossCurve, record_losses
from skdpsurv.mechanisms import sums
from skdpsurv.mechanisms import sums as private_mean
from tests.support.hybrid_records import hybrid_records

EPSILON, ALPHA = 1.0, 1e-7


def lower_bound(on_one, on_other):
    """Return what epsilon is at least, from a statistic that is larger on the first neighbour."""
    half = len(on_one) // 2
    grid = np.quantile(np.r_[on_one[:half], on_other[:half]], np.linspace(0.05, 0.95, 37))
    scores = [
        np.log((np.mean(on_one[:half] >= t) + 1e-2) / (np.mean(on_other[:half] >= t) + 1e-2))
        for t in grid
    ]
    threshold = grid[int(np.argmax(scores))]
    hits = np.sum(on_one[half:] >= threshold)
    false = np.sum(on_other[half:] >= threshold)
    n = len(on_one) - half
    least = stats.beta.ppf(ALPHA / 2, hits, n - hits + 1) if hits else 0.0
    most = stats.beta.ppf(1 - ALPHA / 2, false + 1, n - false) if false < n else 1.0
    return float(np.log(least / most)) if least > 0 else -np.inf


def records(last, label):
    """Return records of which one private one, the last, is as stated."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), rng.integers(0, 2, 60)
    X[-1] = last
    outcome = y.astype(object)
    outcome[-1] = label
    return hybrid_records(X, outcome, np.arange(60) < 30, True)


NEIGHBOURS = (records(-2.0, 0), records(2.0, 1))


class TestCells:
    """The changed record leaves one cell and enters another."""

    runs = 30_000

    def attack(self):
        released, exact = [], []
        for seed, (public, records) in enumerate(NEIGHBOURS):
            (private,) = records.blocks
            theirs = public.mapped()[1]
            ours = public.mapped()[0].points(private.table, private.y)
            held = np.bincount(nearest(ours, theirs[:5]), minlength=5)
            exact.append(held)
            many = sums.HISTOGRAM.release(np.tile(held, self.runs), EPSILON, random_source(seed))
            released.append(many.reshape(self.runs, 5))
        assert np.abs(exact[0] - exact[1]).sum() == 2
        # The likelihood ratio, up to a factor.
        first, second = (
            (np.abs(one - exact[1]) - np.abs(one - exact[0])).sum(axis=1) for one in released
        )
        return lower_bound(first, second)

    def test_stays_below_epsilon(self):
        assert 0.6 * EPSILON < self.attack() <= EPSILON

    def test_sensitivity_of_one_is_found(self, monkeypatch):
        monkeypatch.setattr(sums, "HISTOGRAM", sums.Histogram(sensitivity=1))
        assert self.attack() > 1.2 * EPSILON


@pytest.mark.slow
class TestResiduals:
    """A record as far out as can be, on one side or the other."""

    runs = 12_000

    def attack(self):
        public, _ = NEIGHBOURS[0]
        X, y = public.design_public, public.y_public
        fitted = LogisticRegression(C=0.01).fit(X, y.astype(int))
        residuals = Residuals.at(fitted, X, y)
        moments = []
        for label in (0, 1):
            rows, labels = np.zeros((20, 1)), np.zeros(20, dtype=int)
            rows[0], labels[0] = 8.0, label
            moments.append(residuals.moments(rows, labels))
        direction = moments[1][0] - moments[0][0]
        statistics = []
        for seed, one in enumerate(moments[::-1]):
            source = random_source(seed)
            query = private_mean.MeanOfRows(len(one), residuals.size, residuals.bound)
            exact = query.mean(InMemory([one]))
            released = [query.release(exact, EPSILON, source) for _ in range(self.runs)]
            statistics.append(np.array(released) @ direction)
        return lower_bound(*statistics)

    def test_stays_below_epsilon(self):
        assert 0.1 * EPSILON < self.attack() <= EPSILON

    def test_moments_that_are_not_clipped_are_found(self, monkeypatch):
        for module in (hybrid_measurements, private_mean):
            monkeypatch.setattr(module, "clip_rows", lambda rows, norm: rows)
        assert self.attack() > 1.2 * EPSILON


@pytest.mark.slow
class TestCurve:
    """One record that every candidate predicts wrongly, or rightly."""

    k, runs = 6, 4000

    def attack(self):
        exact = [np.full(self.k, 10.0), np.full(self.k, 11.0)]
        released = []
        for seed, last in enumerate((0.0, 1.0)):
            source = random_source(seed)
            totals = [sums.LOSS.total(np.r_[np.full(20, 0.5), last])] * self.k
            measured = LossCurve(price=EPSILON, public=None, n_fits=self.k)
            known, query = {"_candidates": [(None, None)] * self.k}, measured.query({})
            noisy = [query.release(totals, EPSILON, source) for _ in range(self.runs)]
            curves = [measured.after(known, one)["curve"] for one in noisy]
            released.append(np.array(curves))
        first, second = (
            (np.abs(one - exact[1]) - np.abs(one - exact[0])).sum(axis=1) for one in released
        )
        return lower_bound(first, second)

    def test_stays_below_epsilon(self):
        assert 0.05 * EPSILON < self.attack() <= EPSILON

    def test_a_curve_for_the_price_of_a_point_is_found(self, monkeypatch):
        """The published scale, 1 / epsilon for each of the points."""
        honest = sums.lattice_laplace
        monkeypatch.setattr(
            sums,
            "lattice_laplace",
            lambda value, scale, source: honest(value, scale / self.k, source),
        )
        assert self.attack() > 1.2 * EPSILON


class TestPublishedCriterion:
    """It is said to move by at most 1 with one record, and moves by half the root of n."""

    n = 101

    def neighbours(self):
        """Yield two data sets that differ in the last label."""
        eta = 1.0 / (self.n - 1)
        half = (self.n - 1) // 2
        x = np.r_[np.full(half, eta), np.full(half, -eta), -1.0]
        for last in (1, 0):
            yield x, np.r_[np.ones(half, dtype=int), np.zeros(half, dtype=int), last]

    @staticmethod
    def derivative(theta, x, y):
        """Of the log-likelihood."""
        return np.sum(x * (y - special.expit(theta * x)))

    def test_maximum_likelihood(self):
        """It is at 0 for one of them and at infinity for the other; the candidate is 0."""
        one, other = self.neighbours()
        assert self.derivative(0.0, *one) == pytest.approx(0.0, abs=1e-12)
        for theta in np.r_[-1e4, np.linspace(-50, 50, 101), 1e3, 1e4]:
            assert self.derivative(theta, *other) > 0.0
        x = other[0]
        far = [np.linalg.norm(special.expit(t * x) - 0.5) for t in (1e2, 1e3, 1e4, 1e6)]
        assert far == sorted(far)
        assert far[-1] == pytest.approx(np.sqrt(self.n) / 2)

    def test_a_fit_that_is_nearly_unpenalised(self):
        """And the loss that is used here moves by at most 1, for that and other candidates."""
        criterion = []
        for x, y in self.neighbours():
            fit = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-12, max_iter=10_000)
            fit.fit(x[:, None], y)
            criterion.append(np.linalg.norm(fit.predict_proba(x[:, None])[:, 1] - 0.5))
            totals = [
                record_losses(fit, z[:, None], labels).sum() for z, labels in self.neighbours()
            ]
            assert abs(totals[0] - totals[1]) <= 1.0
        assert abs(criterion[1] - criterion[0]) > 2.0
