"""The map of records to points, which public records define."""

from __future__ import annotations

import numpy as np
import pytest

from skdpsurv.hybrid.hybrid_records import CategoricalAxis, NumericAxes, PointMap, Table


def labels(*values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


class TestNumbers:
    def test_values_beyond_the_range_are_clipped(self):
        axes = NumericAxes.of(np.array([[0.0], [2.0]]))
        found = axes.coordinates(np.array([[-5.0], [1e308], [-1e308], [1.0]]))
        np.testing.assert_array_equal(found.ravel(), [0.0, 1.0, 0.0, 0.5])

    def test_margin_is_between_quantiles(self):
        public = np.arange(101.0)[:, None]
        found = NumericAxes.of(public, 0.1).coordinates(np.array([[5.0], [10.0], [50.0], [95.0]]))
        np.testing.assert_allclose(found.ravel(), [0.0, 0.0, 0.5, 1.0])

    def test_margin_that_leaves_no_range_is_not_used(self):
        """An indicator of something rare keeps its range."""
        public = np.zeros((100, 1))
        public[0] = 1.0
        found = NumericAxes.of(public, 0.02).coordinates(np.array([[0.0], [1.0]]))
        np.testing.assert_array_equal(found.ravel(), [0.0, 1.0])

    def test_range_beyond_the_largest_double(self):
        axes = NumericAxes.of(np.array([[-1.7e308, 0.0], [1.7e308, 1.0]]))
        found = axes.coordinates(np.array([[1e308, 0.25], [0.0, 0.75]]))
        np.testing.assert_allclose(found, [[0.0, 0.25], [0.0, 0.75]])


class TestCategories:
    def test_two_categories_are_one_over_root_two_apart(self):
        axis = CategoricalAxis.of(labels("a", "b", "a", "c"))
        assert axis.categories == ("a", "b", "c")
        a, b, c = axis.coordinates(labels("a", "b", "c"))
        for one, other in ((a, b), (a, c), (b, c)):
            assert np.linalg.norm(one - other) == pytest.approx(np.sqrt(0.5))

    def test_unseen_ones_share_a_place(self):
        axis = CategoricalAxis.of(labels("a", "b"))
        np.testing.assert_array_equal(axis.codes(labels("x", "b", 3, None, "a")), [2, 1, 2, 2, 0])
        one, other, known = axis.coordinates(labels("x", "y", "a"))
        np.testing.assert_array_equal(one, other)
        assert np.linalg.norm(one - known) == pytest.approx(np.sqrt(0.5))


def test_points_have_numbers_first():
    public = Table(np.array([[0.0], [4.0]]), [labels("a", "b")])
    space = PointMap.of(public, labels(0, 0), True)
    found = space.points(Table(np.array([[1.0]]), [labels("b")]), labels(9))
    np.testing.assert_allclose(found, [[0.25, 0.0, 0.5, 0.0, 0.0, 0.5]])


def test_each_record_is_mapped_by_itself():
    """Together or alone, in any company."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        public = Table(rng.normal(size=(20, 2)), [])
        space = PointMap.of(public, labels(*"abcab" * 4), True, 0.05)
        numbers, category = 3.0 * rng.normal(size=(9, 2)), labels(*"abcdefgha")
        together = space.points(Table(numbers, []), category)
        alone = [
            space.points(Table(numbers[i : i + 1], []), category[i : i + 1])[0] for i in range(9)
        ]
        np.testing.assert_array_equal(together, alone)
