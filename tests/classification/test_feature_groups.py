"""Groups of columns and their weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from skdpsurv.classification.stack_plan import (
    checked_weights,
    feature_groups,
    group_norms,
    group_weights,
    relative_importances,
)

NAMES = np.array(["age", "bmi", "dose", "sex"], dtype=object)


class TestImportances:
    def test_are_relative_to_the_largest(self):
        assert relative_importances(None) is None
        assert relative_importances([2, 0, 4]).tolist() == [0.5, 0.0, 1.0]
        assert relative_importances(pd.Series([1.0, 2.0])).tolist() == [0.5, 1.0]
        assert relative_importances([1e308, 1e308]).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(
        "importances",
        [
            [],
            [1, -1],
            [0, 0],
            [1, np.nan],
            [1, np.inf],
            [[1, 2]],
            [[1], [1, 2]],
            3.0,
            "auto",
            ["a", "b"],
            [1, None, "x"],
            {"age": 1.0},
        ],
    )
    def test_refused(self, importances):
        with pytest.raises((ValueError, TypeError), match=r"^importances must"):
            relative_importances(importances)


class TestGroupsThatAreMade:
    def test_column_j_in_group_j_mod_k(self):
        assert feature_groups(None, 3, None, 7, None) == ((0, 3, 6), (1, 4), (2, 5))
        assert feature_groups(None, 1, None, 2, None) == ((0, 1),)

    def test_sorted_by_importance(self):
        importances = np.array([0.1, 0.9, 0.4, 0.4, 0.0])
        assert feature_groups(None, 2, importances, 5, None) == ((1, 2, 3), (0, 4))
        assert feature_groups(None, 5, importances, 5, None) == ((1,), (2,), (3,), (0,), (4,))

    @pytest.mark.parametrize("k", range(1, 8))
    @pytest.mark.parametrize("weighted", [False, True])
    def test_disjoint_cover_of_nearly_equal_sizes(self, k, weighted):
        importances = np.random.default_rng(k).random(7) if weighted else None
        groups = feature_groups(None, k, importances, 7, None)
        assert sorted(c for group in groups for c in group) == list(range(7))
        assert {len(group) for group in groups} <= {7 // k, -(-7 // k)}
        assert all(type(c) is int for group in groups for c in group)

    def test_more_groups_than_columns(self):
        with pytest.raises(ValueError, match=r"^n_partitions must be at most 4 columns, got 5"):
            feature_groups(None, 5, None, 4, None)

    @pytest.mark.parametrize("groups", [None, [[0, 1, 2, 3]]])
    def test_importances_of_another_length(self, groups):
        with pytest.raises(ValueError, match=r"^importances must have 4 numbers, got 3"):
            feature_groups(groups, 1, np.ones(3), 4, None)


class TestGroupsThatAreStated:
    @pytest.mark.parametrize(
        "groups",
        [
            [[2, 0], [1, 3]],
            (("dose", "age"), ("bmi", "sex")),
            [["dose", 0], np.array([1, 3])],
            np.array([[2, 0], [1, 3]]),
            [pd.Index(["dose", "age"]), [np.int32(1), np.str_("sex")]],
        ],
    )
    def test_by_index_or_name_in_the_order_given(self, groups):
        assert feature_groups(groups, 5, None, 4, NAMES) == ((2, 0), (1, 3))

    @pytest.mark.parametrize(
        ("groups", "rule"),
        [
            ([[0, 1], [1, 2, 3]], "all 4 columns once"),
            ([[0, 1], ["bmi", 2, 3]], "all 4 columns once"),
            ([[0, 1, 1], [2, 3]], "all 4 columns once"),
            ([[0, 1], [2]], "all 4 columns once"),
            ([], "all 4 columns once"),
            ([[0, 1, 2, 3], []], "all 4 columns once"),
            ([[0, 1], [2, 4]], "from 0 to 3, got 4"),
            ([[0, 1], [2, -1]], "from 0 to 3, got -1"),
            ([["age", "bmi"], ["dose", "weight"]], "'weight' is none"),
        ],
    )
    def test_values_refused(self, groups, rule):
        with pytest.raises(ValueError, match=f"^groups must .*{rule}"):
            feature_groups(groups, 2, None, 4, NAMES)

    @pytest.mark.parametrize(
        "groups", [[[0.0, 1], [2, 3]], [[True, False], [2, 3]], [[None, 1]], [0, 1, 2, 3], 3]
    )
    def test_types_refused(self, groups):
        with pytest.raises(TypeError, match=r"^groups must"):
            feature_groups(groups, 2, None, 4, NAMES)

    def test_names_need_names(self):
        with pytest.raises(ValueError, match=r"^groups must"):
            feature_groups([["age"], [1, 2, 3]], 2, None, 4, None)


class TestWeights:
    def test_shares_of_all_importance(self):
        groups = ((0, 3), (1,), (2,))
        assert group_weights(groups, None) == (1 / 3, 1 / 3, 1 / 3)
        assert group_weights(groups, np.array([1.0, 4.0, 2.0, 1.0])) == (0.25, 0.5, 0.25)

    def test_add_up_to_one(self):
        groups = tuple((k,) for k in range(50))
        for seed in range(20):
            weights = group_weights(groups, np.random.default_rng(seed).random(50))
            assert float(sum(map(Fraction, weights))) == pytest.approx(1.0, rel=1e-14)

    def test_a_group_without_importance(self):
        """Its noise would be infinite."""
        with pytest.raises(ValueError, match=r"^importances must give each group"):
            group_weights(((0,), (1,)), np.array([1.0, 0.0]))

    def test_of_a_release(self):
        assert checked_weights([0.25, 0.75], 2) == (0.25, 0.75)
        assert checked_weights((1,), 1) == (1.0,)

    @pytest.mark.parametrize(
        "weights", [None, [], [1.0], [0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], ["a", "b"], "ab"]
    )
    def test_that_no_stack_has_released(self, weights):
        with pytest.raises((ValueError, TypeError), match=r"^weights_ of the release must"):
            checked_weights(weights, 2)


class TestNorms:
    def test_default_is_the_whole(self):
        assert group_norms(None, 2.5, 3) == (2.5, 2.5, 2.5)

    def test_stated(self):
        assert group_norms([1, 2.5], 2.5, 2) == (1.0, 2.5)
        assert group_norms(np.array([0.5, 0.25], dtype=np.float32), 1.0, 2) == (0.5, 0.25)

    @pytest.mark.parametrize(
        ("norms", "rule"),
        [
            ([1.0], "2 bounds, got 1"),
            ([1.0, 1.0, 1.0], "got 3"),
            ([1.0, 0.0], "positive"),
            ([1.0, -1.0], "positive"),
            ([1.0, np.nan], "positive"),
            ([1.0, np.inf], "positive"),
            ([1.0, 2.6], "none may exceed data_norm"),
        ],
    )
    def test_values_refused(self, norms, rule):
        with pytest.raises(ValueError, match=f"^norms must .*{rule}"):
            group_norms(norms, 2.5, 2)

    @pytest.mark.parametrize(
        "norms", ["auto", ["a", "b"], [True, True], [[1.0, 1.0]], [[1.0], [1.0, 2.0]], 1.0]
    )
    def test_types_refused(self, norms):
        with pytest.raises(TypeError, match=r"^norms must"):
            group_norms(norms, 2.5, 2)
