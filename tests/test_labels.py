"""Labels: stated classes are public, labels are not, and messages show none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdpsurv.data.cells import (
    class_indices,
    label_indices,
    one_vs_rest,
    stated_classes,
    stated_labels,
)

SECRET = "Huntington"


class TestStatedClasses:
    def test_none_stays_none(self):
        assert stated_classes(None) is None

    @pytest.mark.parametrize(
        ("classes", "expected"),
        [
            ([1, 0], [0, 1]),
            ((3, -1, 2), [-1, 2, 3]),
            (["b", "a"], ["a", "b"]),
            (np.array(["b", "a"], dtype=object), ["a", "b"]),
            ([True, False], [False, True]),
            ([1.0, 0.0], [0.0, 1.0]),
            (pd.Series(["x", "y"], index=[7, 9]), ["x", "y"]),
            ([5], [5]),
        ],
    )
    def test_sorted(self, classes, expected):
        assert stated_classes(classes).tolist() == expected

    @pytest.mark.parametrize(
        "classes",
        [
            [],
            [0, 0],
            [0, 0.0, 1],
            ["a", "a"],
            [0, "a"],
            ["a", None],
            [0, np.nan],
            [0, np.inf],
            [[0, 1]],
            [[0], [1, 2]],
            "ab",
            3,
            [1j, 2],
            [b"a", b"b"],
        ],
    )
    def test_refused(self, classes):
        with pytest.raises(ValueError, match=r"^classes must"):
            stated_classes(classes)


class TestClassIndices:
    @pytest.mark.parametrize(
        ("y", "classes"),
        [
            ([2, 0, 2], [0, 1, 2]),
            ([2.0, 0.0, 2.0], [0, 1, 2]),
            (np.array([2, 0, 2], dtype=np.uint8), [0.0, 1.0, 2.0]),
            (["c", "a", "c"], ["a", "b", "c"]),
            (np.array(["c", "a", "c"], dtype=object), ["a", "b", "c"]),
            (pd.Series(["c", "a", "c"], index=[4, 4, 4]), ["a", "b", "c"]),
            (pd.Categorical(["c", "a", "c"]), ["a", "b", "c"]),
        ],
    )
    def test_places_among_stated_classes(self, y, classes):
        """A class that no record has keeps its place."""
        stated = stated_classes(classes)
        found, index = class_indices(y, stated, 3)
        assert found is stated
        assert index.tolist() == [2, 0, 2]

    def test_booleans_are_zero_and_one(self):
        for classes in ([0, 1], [False, True]):
            for y in ([0, 1, 1], [False, True, True], [0.0, 1.0, 1.0]):
                _, index = class_indices(y, stated_classes(classes), 3)
                assert index.tolist() == [0, 1, 1]

    def test_read_from_y_if_not_stated(self):
        classes, index = class_indices(["b", "a", "b"], None, 3)
        assert classes.tolist() == ["a", "b"]
        assert index.tolist() == [1, 0, 1]

    @pytest.mark.parametrize(
        ("y", "n", "message"),
        [
            (None, 2, "y must be given"),
            ([0, 1, 0], 2, "X and y must have the same number of records"),
            ([0, 2], 2, "y holds a label that is not among classes"),
            (["0", "1"], 2, "y holds a label that is not among classes"),
            ([0.0, np.nan], 2, "y holds a label that is not among classes, or NaN"),
            ([0.0, np.inf], 2, "y holds a label that is not among classes, or NaN"),
            ([0.0, 0.5], 2, "y holds a label that is not among classes"),
            ([[0, 1], [1, 0]], 2, "y"),
            ([0, None], 2, "y"),
            (["a", 1.0], 2, "y"),
            (np.array(["a", np.nan], dtype=object), 2, "y"),
            (np.ma.array([0, 1], mask=[False, True]), 2, "y must not be a masked array"),
        ],
    )
    def test_refused(self, y, n, message):
        with pytest.raises(ValueError, match=message):
            class_indices(y, stated_classes([0, 1]), n)

    def test_continuous_values_are_no_labels_unless_stated(self):
        """With stated classes a message must not depend on which of them the records have."""
        with pytest.raises(ValueError, match="y must hold class labels"):
            class_indices([0.0, 0.5, 0.7], None, 3)
        _, index = class_indices([0.5, 1.5, 0.5], stated_classes([0.5, 1.5]), 3)
        assert index.tolist() == [0, 1, 0]

    @pytest.mark.parametrize(
        "y",
        [
            [SECRET, "b"],
            [SECRET, 1.0],
            [[SECRET], [SECRET, "b"]],
            [[SECRET, "a"], ["b", "b"]],
            np.array([SECRET, None], dtype=object),
            np.array([[SECRET], 3], dtype=object),
            [SECRET] * 3,
            {SECRET: 1},
            SECRET,
        ],
    )
    def test_messages_show_no_label(self, y):
        with pytest.raises((ValueError, TypeError)) as caught:
            class_indices(y, stated_classes(["a", "b"]), 2)
        error = caught.value
        while error is not None:  # what a traceback would print
            assert SECRET not in str(error)
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class _Text(str):
    """Answers to every name."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return True


class TestOneByOne:
    """A record's place is a function of its own label."""

    BIG = 2**53

    @pytest.mark.parametrize(
        "other",
        [1, 1.0, True, np.int8(1), np.float32(1.0), np.uint64(1)],
        ids=lambda other: type(other).__name__,
    )
    @pytest.mark.parametrize("made", [list, tuple, lambda y: np.array(y, dtype=object)])
    def test_of_large_numbers_beside_other_types(self, other, made):
        stated = stated_labels("groups", [1, self.BIG, self.BIG + 1])
        y = made([self.BIG + 1, self.BIG, other])
        assert label_indices(y, "group", stated, "groups").tolist() == [2, 1, 0]
        _, index = class_indices(y, np.unique(stated), 3)
        assert index.tolist() == [2, 1, 0]

    def test_beyond_64_bits_of_a_sign(self):
        stated = stated_labels("groups", [2**63, 2**63 + 1])
        assert label_indices([2**63 + 1, 2**63], "group", stated, "groups").tolist() == [1, 0]

    @pytest.mark.parametrize(
        "label",
        [float(2**53), np.float64(2**60), _Text("a"), np.datetime64("2020-01-01"), b"a", [1], None],
    )
    @pytest.mark.parametrize("made", [list, lambda y: pd.Series(y, dtype=object)])
    def test_what_may_stand_for_several_is_refused(self, label, made):
        for stated in ([1, self.BIG, self.BIG + 1], ["a", "b"]):
            labels = stated_labels("groups", stated)
            first = labels.tolist()[0]
            with pytest.raises(ValueError, match="one of the labels in groups"):
                label_indices(made([first, label]), "group", labels, "groups")
            with pytest.raises(ValueError, match="not among classes"):
                class_indices(made([first, label]), labels, 2)

    def test_floats_in_an_array_that_stand_for_several_are_refused(self):
        stated = stated_labels("groups", [1, self.BIG, self.BIG + 1])
        with pytest.raises(ValueError, match="one of the labels"):
            label_indices(np.array([1.0, self.BIG]), "group", stated, "groups")


@pytest.mark.filterwarnings("error")
def test_no_warning_about_the_number_of_classes_present():
    """How many of the stated classes the records have is private."""
    classes = stated_classes(range(40))
    for present in (2, 29, 31, 40):
        class_indices(np.arange(60) % present, classes, 60)


class TestOneVsRest:
    def test_two_classes_are_one_model_of_the_second(self):
        signs = one_vs_rest(np.array([0, 1, 1]), 2)
        np.testing.assert_array_equal(signs, [[-1.0, 1.0, 1.0]])

    def test_more_are_one_model_each(self):
        signs = one_vs_rest(np.array([0, 2, 1, 2]), 3)
        expected = [[1, -1, -1, -1], [-1, -1, 1, -1], [-1, 1, -1, 1]]
        np.testing.assert_array_equal(signs, expected)

    def test_one_class_is_always_it(self):
        np.testing.assert_array_equal(one_vs_rest(np.array([0, 0]), 1), [[1.0, 1.0]])
