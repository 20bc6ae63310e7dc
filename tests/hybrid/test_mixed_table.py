"""Columns of numbers and categories of arrays and frames, and the map of records to points."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from skdpsurv.hybrid.hybrid_records import (
    CategoricalAxis,
    Design,
    MixedTable,
    NumericAxes,
    PointMap,
    categorical_columns,
    read_table,
)


def labels(*values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def read(X, chosen=None, public=None):
    """Read records of which all are public unless stated."""
    theirs = X if public is None else X[np.asarray(public)]
    return read_table(X, categorical_columns(theirs, chosen))


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [40, 50, 60, 70],
            "sex": pd.Categorical(["f", "m", "f", None]),
            "dose": [0.5, 1.0, 1.5, 2.0],
            "site": ["x", "y", "x", "z"],
            "arm": [1, 2, 1, 2],
        }
    )


class TestFrames:
    def test_columns_that_are_no_numbers_are_categories(self, frame):
        table = read(frame)
        np.testing.assert_array_equal(table.numbers, frame[["age", "dose", "arm"]])
        found = [column.tolist() for column in table.labels]
        assert found == [["f", "m", "f", None], ["x", "y", "x", "z"]]
        for chosen in [["arm", "sex", "site"], [4, 1, 3], ["arm", 1, "site"]]:
            table = read(frame, chosen)
            assert table.numbers.shape == (4, 2)
            assert [column[0] for column in table.labels] == ["f", "x", 1]

    def test_missing_category_is_one(self, frame):
        frame.loc[0, "site"] = np.nan
        frame["other"] = [pd.NA, "u", None, "v"]
        table = read(frame)
        assert table.labels[1][0] is None
        assert table.labels[2].tolist() == [None, "u", None, "v"]

    def test_nullable_numbers(self, frame):
        frame["age"] = frame["age"].astype("Int64")
        assert read(frame).numbers[0, 0] == 40.0
        frame.loc[1, "age"] = pd.NA
        with pytest.raises((ValueError, TypeError), match="X"):
            read(frame)


class TestArrays:
    def test_numbers_as_categories(self):
        table = read(np.array([[1.0, 0.0], [2.0, 1.0]]), [0])
        assert table.labels[0].tolist() == [1.0, 2.0]
        np.testing.assert_array_equal(table.numbers, [[0.0], [1.0]])

    def test_truth_values_written_as_text_are_numbers(self):
        """One private word is enough for a reader of files to write them so."""
        X = np.array([["True", 5], ["False", 6], ["True", 7]], dtype=object)
        table = read(X)
        assert table.labels == []
        np.testing.assert_array_equal(table.numbers[:, 0], [1.0, 0.0, 1.0])

    def test_private_values_do_not_make_categories(self):
        """One private value that is no number is refused, rather than change the model's shape."""
        X = np.array([[1, 5], [2, 6], [3, "none"]], dtype=object)
        assert categorical_columns(X[:2], None) == ()
        assert categorical_columns(X[[0, 2]], None) == (1,)
        with pytest.raises(ValueError, match="X"):
            read(X, public=[True, True, False])


class TestRefusals:
    def test_columns_that_are_not_there(self):
        for error, columns in ((ValueError, ["nobody", 2, -1]), (TypeError, [True, 0.0])):
            for chosen in columns:
                with pytest.raises(error, match="categorical_features"):
                    read(pd.DataFrame({"a": [1.0], "b": [2.0]}), [chosen])

    def test_what_is_no_table_of_numbers(self):
        """What is said is looked at by the tests of leaks."""
        masked = np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]])
        for X in ([["a", 1j]], [["a", np.inf]], [[1.0, 2.0], [1.0]], masked, sparse.eye_array(3)):
            with pytest.raises((ValueError, TypeError)):
                read(X, [0])

    def test_labels_that_are_doubles_stand_for_one_whole_number_each(self):
        """One record's gap makes doubles of a column, in which 2^53 + 1 is 2^53."""
        whole = [2**53, 2**53 + 1, 3, None]
        for column in (whole, [7.0, 2.5, np.inf, None], ["a", 1.0, True, 10**30]):
            frame = pd.DataFrame({"a": pd.Series(column, dtype=object)})
            assert read_table(frame, [0]).labels[0].tolist() == column
        for column in (pd.Series(whole), np.array([1.0, 2.0**60]), [1, np.float64(-(2.0**53))]):
            frame = pd.DataFrame({"a": pd.Series(list(column)[:2], dtype=object)})
            with pytest.raises(ValueError, match="X must hold exact labels"):
                read_table(frame, [0])


def test_the_first_category_is_left_out_of_a_design():
    X = np.array([[7, "b"], [8, "a"], [9, "c"], [10, "b"]], dtype=object)
    public = read(X, [1])
    design = Design((CategoricalAxis.of(public.labels[0]),))
    expected = [[7, 0, 0], [8, 1, 0], [9, 0, 1], [10, 0, 0]]
    np.testing.assert_array_equal(design.matrix(public), expected)


RARE = np.eye(100)[:, :1]


@pytest.mark.parametrize(
    ("public", "margin", "values", "expected"),
    [
        ([[0.0], [2.0]], 0.0, [[-5.0], [1e308], [-1e308], [1.0]], [[0.0], [1.0], [0.0], [0.5]]),
        # A margin is between quantiles, unless that leaves no range to an indicator.
        (np.arange(101.0)[:, None], 0.1, [[5.0], [10.0], [50.0]], [[0.0], [0.0], [0.5]]),
        (RARE, 0.02, [[0.0], [1.0]], [[0.0], [1.0]]),
        # A range beyond the largest double.
        ([[-1.7e308, 0.0], [1.7e308, 1.0]], 0.0, [[1e308, 0.25], [0.0, 0.75]],
         [[0.0, 0.25], [0.0, 0.75]]),
    ],
)  # fmt: skip
def test_coordinates_of_numbers(public, margin, values, expected):
    axes, values = NumericAxes.of(np.array(public), margin), np.array(values)
    np.testing.assert_allclose(axes.coordinates(values), expected)
    inside = axes.clipped(values)
    assert ((np.min(public, axis=0) <= inside) & (inside <= np.max(public, axis=0))).all()


def test_categories_are_one_over_root_two_apart():
    """Unseen ones share a place."""
    axis = CategoricalAxis.of(labels("a", "b", "a", "c"))
    assert axis.categories == ("a", "b", "c")
    np.testing.assert_array_equal(axis.codes(labels("x", "b", 3, None, "a")), [3, 1, 3, 3, 0])
    *places, other = axis.coordinates(labels("a", "b", "c", "x", "y"))
    np.testing.assert_array_equal(places[3], other)
    np.testing.assert_allclose(pdist(places), np.sqrt(0.5))


def test_points_have_numbers_first():
    public = MixedTable(np.array([[0.0], [4.0]]), [labels("a", "b")])
    space = PointMap.of(public, labels(0, 0), True)
    found = space.points(MixedTable(np.array([[1.0]]), [labels("b")]), labels(9))
    np.testing.assert_allclose(found, [[0.25, 0.0, 0.5, 0.0, 0.0, 0.5]])


def test_each_record_is_mapped_by_itself():
    """Together or alone, in any company."""
    rng = np.random.default_rng(0)
    public = MixedTable(rng.normal(size=(20, 2)), [])
    space = PointMap.of(public, labels(*"abcab" * 4), True, 0.05)
    numbers, category = 3.0 * rng.normal(size=(45, 2)), labels(*"abcdefgha" * 5)
    together = space.points(MixedTable(numbers, []), category)
    alone = [space.points(MixedTable(numbers[[i]], []), category[[i]])[0] for i in range(45)]
    np.testing.assert_array_equal(together, alone)
