"""Attacks on what hybrid fits release, at epsilon 1, by somebody who knows all but one record.

All is seeded; each bound is wrong with probability below 1e-7.
Planted defects show that the attacks would find something.
"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.hybrid import hybrid_measurements
from skdpsurv.hybrid.hybrid_measurements import Residuals
from skdpsurv.hybrid.hybrid_records import nearest
from skdpsurv.hybrid.subset import LossCurve, record_losses
from skdpsurv.mechanisms import moments as of_rows
from skdpsurv.mechanisms import sums
from tests.support.attacks import by_scores
from tests.support.hybrid_records import hybrid_records
from tests.support.planted_defects import less_lattice_noise

EPSILON, ALPHA = 1.0, 1e-7


def lower_bound(on_one, on_other):
    """Return what epsilon is at least, from a statistic of either neighbour."""
    return by_scores([on_one, on_other], np.linspace(0.05, 0.95, 37), ALPHA)


def records(last, label):
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

    runs = 24_000

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
            query = of_rows.MeanOfRows(len(one), residuals.size, residuals.bound)
            exact = query.mean(InMemory([one]))
            released = [query.release(exact, EPSILON, source) for _ in range(self.runs)]
            statistics.append(np.array(released) @ direction)
        return lower_bound(*statistics)

    def test_stays_below_epsilon(self):
        assert 0.1 * EPSILON < self.attack() <= EPSILON

    def test_moments_that_are_not_clipped_are_found(self, monkeypatch):
        for module in (hybrid_measurements, of_rows):
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
            known, query = {"_candidates": [(None, None)] * self.k}, measured.query_for({})
            noisy = [query.release(totals, EPSILON, source) for _ in range(self.runs)]
            curves = [measured.postprocess(known, one)["curve"] for one in noisy]
            released.append(np.array(curves))
        first, second = (
            (np.abs(one - exact[1]) - np.abs(one - exact[0])).sum(axis=1) for one in released
        )
        return lower_bound(first, second)

    def test_stays_below_epsilon(self):
        assert 0.05 * EPSILON < self.attack() <= EPSILON

    def test_a_curve_for_the_price_of_a_point_is_found(self):
        """The published scale, 1 / epsilon for each of the points."""
        with less_lattice_noise(1 / self.k):
            assert self.attack() > 1.2 * EPSILON


def test_the_published_criterion_moves_by_more_than_it_is_said_to():
    """By at most 1 with one record, it says, and by half the root of n for maximum likelihood.

    The loss that is used here moves by at most 1, for that and other candidates.
    """
    half, x_last = 50, -1.0
    x = np.r_[np.full(half, 0.01), np.full(half, -0.01), x_last][:, None]
    labels = [np.repeat([1, 0, last], [half, half, 1]) for last in (1, 0)]
    criterion = []
    for y in labels:
        fit = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(x, y)
        criterion.append(np.linalg.norm(fit.predict_proba(x)[:, 1] - 0.5))
        one, other = (record_losses(fit, x, each).sum() for each in labels)
        assert abs(one - other) <= 1.0
    assert abs(criterion[1] - criterion[0]) > 2.0
