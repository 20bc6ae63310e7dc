"""Groups of columns, their weights, and what a model sees of a record: bounded in norm."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

from skdpsurv.classification.logistic_measurements import ColumnGroup
from skdpsurv.classification.stack_plan import (
    checked_weights,
    feature_groups,
    group_norms,
    group_weights,
    relative_importances,
)
from skdpsurv.dp.clipping import clip_rows

NAMES = np.array(["age", "bmi", "dose", "sex"], dtype=object)


def test_importances_are_relative_to_the_largest():
    assert relative_importances(None) is None
    assert relative_importances([2, 0, 4]).tolist() == [0.5, 0.0, 1.0]
    assert relative_importances(pd.Series([1.0, 2.0])).tolist() == [0.5, 1.0]
    assert relative_importances([1e308, 1e308]).tolist() == [1.0, 1.0]
    negative, several = [[1, -1], [0, 0], [1, np.nan], [1, np.inf]], [[[1, 2]], [[1], [1, 2]]]
    words = [[], 3.0, "auto", ["a", "b"], [1, None, "x"], {"age": 1.0}]
    for importances in (*negative, *several, *words):
        with pytest.raises((ValueError, TypeError), match=r"^importances must"):
            relative_importances(importances)


class TestGroupsThatAreMade:
    def test_by_hand(self):
        """Column j in group j mod k, or by importance."""
        importances = np.array([0.1, 0.9, 0.4, 0.4, 0.0])
        assert feature_groups(None, 3, None, 7, None) == ((0, 3, 6), (1, 4), (2, 5))
        assert feature_groups(None, 2, importances, 5, None) == ((1, 2, 3), (0, 4))
        assert feature_groups(None, 5, importances, 5, None) == ((1,), (2,), (3,), (0,), (4,))

    def test_disjoint_cover_of_nearly_equal_sizes(self):
        for k, weighted in product(range(1, 8), [False, True]):
            importances = np.random.default_rng(k).random(7) if weighted else None
            groups = feature_groups(None, k, importances, 7, None)
            assert sorted(c for group in groups for c in group) == list(range(7))
            assert {len(group) for group in groups} <= {7 // k, -(-7 // k)}
            assert all(type(c) is int for group in groups for c in group)


class TestGroupsThatAreStated:
    def test_by_index_or_name_in_the_order_given(self):
        for groups in [
            [[2, 0], [1, 3]],
            (("dose", "age"), ("bmi", "sex")),
            [["dose", 0], np.array([1, 3])],
            np.array([[2, 0], [1, 3]]),
            [pd.Index(["dose", "age"]), [np.int32(1), np.str_("sex")]],
        ]:
            assert feature_groups(groups, 5, None, 4, NAMES) == ((2, 0), (1, 3))

    def test_refused(self):
        cover = [
            [[0, 1], [1, 2, 3]], [[0, 1], ["bmi", 2, 3]], [[0, 1, 1], [2, 3]], [[0, 1], [2]], [],
            [[0, 1, 2, 3], []],
        ]  # fmt: skip
        names = [[[0, 1], [2, 4]], [[0, 1], [2, -1]], [["age", "bmi"], ["dose", "weight"]]]
        for groups in cover + names:
            with pytest.raises(ValueError, match=r"^groups must"):
                feature_groups(groups, 2, None, 4, NAMES)
        for groups in ([[0.0, 1], [2, 3]], [[True, False], [2, 3]], [[None, 1]], [0, 1, 2, 3], 3):
            with pytest.raises(TypeError, match=r"^groups must"):
                feature_groups(groups, 2, None, 4, NAMES)
        with pytest.raises(ValueError, match=r"^groups must"):
            feature_groups([["age"], [1, 2, 3]], 2, None, 4, None)
        with pytest.raises(ValueError, match=r"^n_partitions must be at most 4"):
            feature_groups(None, 5, None, 4, None)
        for groups in [None, [[0, 1, 2, 3]]]:
            with pytest.raises(ValueError, match=r"^importances must have 4 numbers, got 3"):
                feature_groups(groups, 1, np.ones(3), 4, None)


class TestWeights:
    def test_shares_of_all_importance(self):
        groups = ((0, 3), (1,), (2,))
        assert group_weights(groups, None) == (1 / 3, 1 / 3, 1 / 3)
        assert group_weights(groups, np.array([1.0, 4.0, 2.0, 1.0])) == (0.25, 0.5, 0.25)
        each = tuple((k,) for k in range(50))
        for seed in range(20):
            weights = group_weights(each, np.random.default_rng(seed).random(50))
            assert float(sum(map(Fraction, weights))) == pytest.approx(1.0, rel=1e-14)
        # Of a group without importance the noise would be infinite.
        with pytest.raises(ValueError, match=r"^importances must give each group"):
            group_weights(((0,), (1,)), np.array([1.0, 0.0]))

    def test_of_a_release(self):
        assert checked_weights([0.25, 0.75], 2) == (0.25, 0.75)
        bad = [None, [], [1.0], [0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], ["a", "b"], "ab"]
        for weights in bad:
            with pytest.raises((ValueError, TypeError), match=r"^weights_ of the release must"):
                checked_weights(weights, 2)


def test_norms():
    assert group_norms(None, 2.5, 3) == (2.5, 2.5, 2.5)
    assert group_norms([1, 2.5], 2.5, 2) == (1.0, 2.5)
    assert group_norms(np.array([0.5, 0.25], dtype=np.float32), 1.0, 2) == (0.5, 0.25)
    last = [0.0, -1.0, np.nan, np.inf, 2.6]
    for norms in ([1.0], [1.0] * 3, *([1.0, bad] for bad in last)):
        with pytest.raises(ValueError, match=r"^norms must"):
            group_norms(norms, 2.5, 2)
    for norms in ("auto", ["a", "b"], [True, True], [[1.0, 1.0]], [[1.0], [1.0, 2.0]], 1.0):
        with pytest.raises(TypeError, match=r"^norms must"):
            group_norms(norms, 2.5, 2)


X = np.random.default_rng(0).normal(size=(200, 5)) * np.array([1, 1e-3, 10, 1, 1])
CASES = [
    ColumnGroup((0, 2, 4), 1.0, 1.0, 0.0),
    ColumnGroup((0, 2, 4), 0.5, 2.0, 0.1),
    ColumnGroup((3,), 2.0, 0.5, 1.0),
    ColumnGroup((4, 3, 2, 1, 0), 3.0, 1 / 3, 0.3),
]


def test_rows_are_clipped_scaled_and_within_the_bound():
    """Exactly: squares are summed as fractions."""
    rows = clip_rows(X, 3.0)
    for group in CASES:
        seen, part = group.rows(rows, 3.0), rows[:, group.indices]
        n_columns = len(group.indices)
        shrink = np.minimum(1.0, group.norm / np.linalg.norm(part, axis=1))
        expected = group.factor * part * shrink[:, None]
        np.testing.assert_allclose(seen[:, :n_columns], expected, rtol=1e-12)
        assert (seen[:, n_columns:] == group.constant).all()
        assert seen.shape == (200, group.n_params)
        assert group.n_params == n_columns + (group.constant > 0)
        assert group.bound == math.hypot(group.norm * group.factor, group.constant)
        limit = Fraction(group.bound) ** 2 * (1 + Fraction(1, 2**45))
        for row in seen[:50]:
            assert sum(Fraction(v) ** 2 for v in row) <= limit
        # Some rows are at the bound.
        assert np.linalg.norm(seen, axis=1).max() == pytest.approx(group.bound, rel=1e-9)


def test_coefficients_go_there_and_back():
    for group in CASES:
        coef = np.random.default_rng(1).normal(size=len(group.indices))
        intercept = 0.7 if group.constant else 0.0
        parameters = group.to_model(coef, intercept)
        back, constant = group.from_model(parameters)
        np.testing.assert_allclose(back, coef)
        assert constant == pytest.approx(intercept)
        assert isinstance(constant, float)
        # A row that is not clipped has the same predictor on either scale.
        small = 1e-4 * X
        expected = small[:, group.indices] @ coef + intercept
        np.testing.assert_allclose(group.rows(small, 3.0) @ parameters, expected)
