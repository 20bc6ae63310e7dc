"""The table of margins: what a record moves, and which slope comes of it."""

import itertools

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from skdpsurv import DPLogisticRegression
from skdpsurv.classification.logistic_measurements import (
    LARGEST_SLOPE,
    LEAST_SLOPE,
    N_GROUPS,
    MarginTable,
    SignedRows,
)
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.shape import Shape
from skdpsurv.dp import random_source
from skdpsurv.published import PublishedLogisticRegression
from tests.support.estimators import logistic as perturbed
from tests.support.spies import queries_without_noise


def people(n, slope=1.0, seed=0, scale=1.5):
    """Return log odds, and signs of labels for which they should be multiplied with a slope."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=(n, 1)) * scale
    return odds, np.where(rng.random((n, 1)) < 1 / (1 + np.exp(-slope * odds)), 1.0, -1.0)


class TestCounts:
    def test_one_record_moves_them_by_what_is_said(self):
        """Any two records may be exchanged."""
        for n_outputs in [1, 3]:
            table = MarginTable(5.0, n_outputs, 60)
            rng = np.random.default_rng(0)
            odds = np.clip(rng.normal(size=(60, n_outputs)) * 4, -5, 5)
            odds[:5] = [[-5.0], [0.0], [-0.0], [5.0], [1e-300]]
            signs = rng.choice([-1.0, 1.0], size=odds.shape)
            own = [table.counts(odds[i : i + 1], signs[i : i + 1]) for i in range(60)]
            np.testing.assert_array_equal(table.counts(odds, signs), np.sum(own, axis=0))
            moved = [np.abs(a - b).sum() for a, b in itertools.combinations(own, 2)]
            assert max(moved) == table.query.sensitivity == 2 * n_outputs

    def test_cells(self):
        """Ends at 0.001, 0.008, 0.027, 0.064, 0.125, 0.216 and 0.343."""
        table = MarginTable(0.512, 1, 7)
        odds = [[0.0005], [-0.0005], [0.002], [-0.512], [0.512], [0.6], [0.0]]
        signs = np.array([[1.0], [1.0], [1.0], [-1.0], [-1.0], [1.0], [1.0]])
        counts = table.counts(np.array(odds), signs)
        assert table.ends == pytest.approx(np.arange(9) ** 3 / 1000)
        assert counts.tolist() == [[1, 1, 0, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 0, 0, 1]]


class TestSlope:
    def test_is_found_without_noise(self):
        for slope in [0.2, 1.0, 4.0]:
            odds, signs = people(40_000, slope)
            table = MarginTable(float(np.abs(odds).max()), 1, len(odds))
            found = table.slope(table.counts(odds, signs).astype(float), 1e6, 1.0)
            assert found == pytest.approx(slope, rel=0.08)

    def test_is_the_prior_where_nothing_is_known(self):
        table = MarginTable(6.0, 1, 100)
        counts, none = table.counts(*people(100)).astype(float), np.zeros((2, N_GROUPS))
        for prior in [1.0, 2.5]:
            assert table.slope(counts, 1e-4, prior) == pytest.approx(prior, rel=0.01)
            assert table.slope(none, 1.0, prior) == pytest.approx(prior, rel=1e-4)

    def test_nothing_fails_by_what_the_table_holds(self):
        rng = np.random.default_rng(0)
        for largest, scale in itertools.product([0.0, 1e-12, 5.0, 1e3], [1.0, 1e4, 1e12]):
            for _ in range(10):
                counts = np.rint(rng.laplace(size=(2, N_GROUPS)) * scale)
                found = MarginTable(largest, 1, 1000).slope(counts, 2.0 / scale, 1.3)
                assert LEAST_SLOPE <= found <= LARGEST_SLOPE
        for counts, end in ((np.eye(2)[:1], LARGEST_SLOPE), (np.eye(2)[1:], LEAST_SLOPE)):
            wide = 1e9 * np.repeat(counts.T, N_GROUPS, axis=1)
            found = MarginTable(6.0, 1, 10**9).slope(wide, 1.0, 1.0)
            assert LEAST_SLOPE <= found <= LARGEST_SLOPE
            assert found == pytest.approx(end)

    def test_all_records_in_one_group(self):
        """Log odds of -1 and 1: what is known of them is known, whatever the others' noise is."""
        rng = np.random.default_rng(5)
        found = []
        for seed in range(20):
            odds = rng.choice([-1.0, 1.0], size=(20_000, 1))
            signs = np.where(rng.random(odds.shape) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
            table = MarginTable(1.1, 1, 20_000)
            noisy = table.query.release(table.counts(odds, signs), 0.03, random_source(seed))
            found.append(table.slope(noisy.astype(float), 0.03, 1.0))
        # Within four standard deviations, of 0.08 on the log scale, and what coarse groups cost.
        assert 0.65 < min(found) < max(found) < 1.5


class TestFit:
    def test_classes_that_a_plane_separates(self):
        """The slope is as far away as can be, and a release of it is no other than it may be."""
        rng = np.random.default_rng(0)
        X = normalize(rng.normal(size=(20_000, 5)))
        one = DPLogisticRegression(20.0, classes=[0, 1], alpha=1.0).fit(X, X[:, 0] > 0)
        assert 1.0 < one.recalibration_slope_ <= LARGEST_SLOPE
        assert DPLogisticRegression.from_release(one.release_).coef_.shape == (1, 5)

    def fit(self, n=3000, epsilon=2.0, ends=(0.0,), **parameters):
        rng = np.random.default_rng(1)
        X = normalize(rng.normal(size=(n, 8)))
        y = np.digitize(X[:, 0] - 0.5 * rng.normal(size=n), ends)
        make = PublishedLogisticRegression if parameters.pop("published", False) else perturbed
        classes = range(len(ends) + 1)
        return make(epsilon, classes=classes, random_state=0, **parameters).fit(X, y), X, y

    def test_epsilon_is_shared_and_never_more(self):
        for share in (0.1, 1 / 3, 0.77):
            one, *_ = self.fit(epsilon=0.7, recalibration_share=share)
            plan = one._plan(Labelled(3000, 8))
            spent = one.guarantee_.public_inputs["epsilon_recalibration"]
            assert spent == plan.leaves[1].price == pytest.approx(share * 0.7)
            assert one.guarantee_.epsilon == 0.7

    def test_what_is_released_of_records(self, monkeypatch):
        """One query beside the coefficients, of the counts of all outputs."""
        seen = queries_without_noise(monkeypatch)
        one, X, y = self.fit()
        ((sensitivity, counts, epsilon),) = seen
        assert (sensitivity, epsilon) == (2, pytest.approx(0.2))
        right = np.sum(one.predict(X) == y)
        assert counts.sum(axis=1).tolist() == [right, 3000 - right]
        seen.clear()
        self.fit(ends=(-0.5, 0.5))  # one of three classes is a count for each of three models
        ((sensitivity, counts, _),) = seen
        assert (sensitivity, counts.sum()) == (6, 9000)

    def test_blocks_do_not_matter(self):
        one, X, y = self.fit()
        minimisers, margins = one._plan(Labelled(3000, 8)).leaves
        signs = np.where(y == 1, 1.0, -1.0)[None, :]
        (model,) = minimisers.fit.coefficients([np.append(np.arange(8.0), 3.0)])
        known = {"_model": model, "recalibration_slope": minimisers.slope}
        whole, parts = (
            InMemory([SignedRows(X[i::k], signs[:, i::k]) for i in range(k)]) for k in (1, 7)
        )
        assert margins.run(known, whole, random_source(3)) == margins.run(
            known, parts, random_source(3)
        )

    def test_it_is_skipped_by_public_numbers(self):
        for parameters in ({"n": 290}, {"published": True}, {"epsilon": np.inf}):
            one, *_ = self.fit(**parameters)
            assert one.guarantee_.public_inputs["epsilon_recalibration"] == 0.0
        one, *_ = self.fit(n=300)
        assert one.guarantee_.public_inputs["epsilon_recalibration"] == pytest.approx(0.2)


class Labelled(Shape):
    """What a plan asks for."""

    n_outputs = 1
    classes = np.array([0, 1])
