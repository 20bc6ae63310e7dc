"""Labels: stated classes are public, labels are not, and messages show none."""

import numpy as np
import pandas as pd
import pytest

from skdpsurv.data.labels import (
    class_indices,
    label_indices,
    one_vs_rest,
    stated_classes,
    stated_labels,
)

SECRET = "Huntington"


def test_stated_classes_are_sorted():
    assert stated_classes(None) is None
    for classes, expected in (
        ([1, 0], [0, 1]),
        ((3, -1, 2), [-1, 2, 3]),
        (np.array(["b", "a"], dtype=object), ["a", "b"]),
        ([True, False], [False, True]),
        ([1.0, 0.0], [0.0, 1.0]),
        (pd.Series(["x", "y"], index=[7, 9]), ["x", "y"]),
        ([5], [5]),
    ):
        assert stated_classes(classes).tolist() == expected


def test_stated_classes_are_refused():
    for classes in (
        *([], [0, 0], [0, 0.0, 1], ["a", "a"], [0, "a"], ["a", None], [0, np.nan], [0, np.inf]),
        *([[0, 1]], [[0], [1, 2]], "ab", 3, [1j, 2], [b"a", b"b"]),
    ):
        with pytest.raises(ValueError, match=r"^classes must"):
            stated_classes(classes)


class TestClassIndices:
    @pytest.mark.parametrize(
        ("y", "classes"),
        [
            ([2, 0, 2], [0, 1, 2]),
            ([2.0, 0.0, 2.0], [0, 1, 2]),
            (np.array([2, 0, 2], dtype=np.uint8), [0.0, 1.0, 2.0]),
            ([True, False, 1.0], [0, 0.5, 1]),
            (["c", "a", "c"], ["a", "b", "c"]),
            (np.array(["c", "a", "c"], dtype=object), ["a", "b", "c"]),
            (pd.Series(["c", "a", "c"], index=[4, 4, 4]), ["a", "b", "c"]),
            (pd.Categorical(["c", "a", "c"]), ["a", "b", "c"]),
            # Floats are labels where they are stated.
            ([2.5, 0.5, 2.5], [0.5, 1.5, 2.5]),
        ],
    )
    def test_places_among_stated_classes(self, y, classes):
        """A class that no record has keeps its place."""
        stated = stated_classes(classes)
        found, index = class_indices(y, stated, 3)
        assert found is stated
        assert index.tolist() == [2, 0, 2]

    def test_read_from_y_if_not_stated(self):
        classes, index = class_indices(["b", "a", "b"], None, 3)
        assert (classes.tolist(), index.tolist()) == (["a", "b"], [1, 0, 1])
        with pytest.raises(ValueError, match="y must hold class labels"):
            class_indices([0.0, 0.5, 0.7], None, 3)

    def test_refused(self):
        among = "y holds a label that is not among classes"
        for y, message in (
            (None, "y must be given"),
            ([0, 1, 0], "X and y must have the same number of records"),
            *((y, among) for y in ([0, 2], ["0", "1"], [0.0, 0.5])),
            *((y, f"{among}, or NaN") for y in ([0.0, np.nan], [0.0, np.inf])),
            *((y, "y") for y in ([[0, 1], [1, 0]], [0, None], ["a", 1.0])),
            (np.array(["a", np.nan], dtype=object), "y"),
            (np.ma.array([0, 1], mask=[False, True]), "y must not be a masked array"),
        ):
            with pytest.raises(ValueError, match=message):
                class_indices(y, stated_classes([0, 1]), 2)

    def test_ensembles_are_told_of_by_the_classes_alone(self):
        for stated, hint in ((["no", "yes"], "classes=[0, 1];"), ([1, 2, 3], "classes=[0, 1, 2];")):
            for y in ([0, 1], ["other", "yes"], [np.nan, 1.0]):
                with pytest.raises(ValueError, match="number the classes") as caught:
                    class_indices(y, stated_classes(stated), 2)
                assert hint in str(caught.value)
        with pytest.raises(ValueError, match=r"or NaN\.$"):
            class_indices(["no", "yes"], stated_classes([0, 1]), 2)

    def test_messages_show_no_label(self):
        for y in (
            *([SECRET, "b"], [SECRET, 1.0], [[SECRET], [SECRET, "b"]], [[SECRET, "a"], ["b", "b"]]),
            *(np.array(y, dtype=object) for y in ([SECRET, None], [[SECRET], 3])),
            *([SECRET] * 3, {SECRET: 1}, SECRET),
        ):
            with pytest.raises((ValueError, TypeError)) as caught:
                class_indices(y, stated_classes(["a", "b"]), 2)
            error = caught.value
            while error is not None:  # what a traceback would print
                assert SECRET not in str(error)
                hidden = error.__suppress_context__
                error = error.__cause__ or (None if hidden else error.__context__)


class _Text(str):
    """Answers to every name."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return True


class TestOneByOne:
    """A record's place is a function of its own label."""

    BIG = 2**53

    @pytest.mark.parametrize("made", [list, tuple, lambda y: np.array(y, dtype=object)])
    def test_of_large_numbers_beside_other_types(self, made):
        stated = stated_labels("groups", [1, self.BIG, self.BIG + 1])
        for other in (1, 1.0, True, np.int8(1), np.float32(1.0), np.uint64(1)):
            y = made([self.BIG + 1, self.BIG, other])
            assert label_indices(y, "group", stated, "groups").tolist() == [2, 1, 0]
            assert class_indices(y, np.unique(stated), 3)[1].tolist() == [2, 1, 0]
        stated = stated_labels("groups", [2**63, 2**63 + 1])  # beyond 64 bits of a sign
        assert label_indices(made([2**63 + 1, 2**63]), "g", stated, "groups").tolist() == [1, 0]

    @pytest.mark.parametrize(
        "label",
        [float(2**53), np.float64(2**60), _Text("a"), np.datetime64("2020-01-01"), b"a", [1], None],
    )
    @pytest.mark.parametrize("made", [list, lambda y: pd.Series(y, dtype=object)])
    def test_what_may_stand_for_several_is_refused(self, label, made):
        for stated in ([1, self.BIG, self.BIG + 1], ["a", "b"]):
            labels = stated_labels("groups", stated)
            y = made([stated[0], label])
            with pytest.raises(ValueError, match="one of the labels in groups"):
                label_indices(y, "group", labels, "groups")
            with pytest.raises(ValueError, match="not among classes"):
                class_indices(y, labels, 2)
        labels = stated_labels("groups", [1, self.BIG, self.BIG + 1])
        with pytest.raises(ValueError, match="one of the labels"):
            label_indices(np.array([1.0, self.BIG]), "group", labels, "groups")


@pytest.mark.filterwarnings("error")
def test_no_warning_about_the_number_of_classes_present():
    """How many of the stated classes the records have is private."""
    classes = stated_classes(range(40))
    for present in (2, 29, 31, 40):
        class_indices(np.arange(60) % present, classes, 60)


@pytest.mark.parametrize(
    ("indices", "n_classes", "signs"),
    [
        ([0, 1, 1], 2, [[-1, 1, 1]]),  # one model of the second class
        ([0, 2, 1, 2], 3, [[1, -1, -1, -1], [-1, -1, 1, -1], [-1, 1, -1, 1]]),
        ([0, 0], 1, [[1, 1]]),
    ],
)
def test_one_vs_rest(indices, n_classes, signs):
    np.testing.assert_array_equal(one_vs_rest(np.array(indices), n_classes), signs)
