"""Rows that are made of their own cells."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from skdpsurv.data.single_rows import SingleRows, single_target

FRAME = pd.DataFrame({"age": [61, 48, 70], "ill": [True, False, True], "dose": [0.5, 1.0, 2.0]})
TEXT = FRAME.assign(stage=pd.Categorical(["I", "II", "I"]), seen=pd.Timestamp("2020-02-03"))


def changed(frame, column, value):
    """Return a neighbour: the last record has another cell."""
    other = frame.astype({column: object})
    other.loc[2, column] = value
    return other.assign(**{column: other[column].infer_objects()})


NEIGHBOURS = {
    "a gap": changed(FRAME, "age", np.nan),
    "a fraction": changed(FRAME, "age", 1.5),
    "a number among truth values": changed(FRAME, "ill", 0.0),
    "nullable": FRAME.convert_dtypes(),
    "polars": pl.from_pandas(FRAME),
}


@pytest.mark.parametrize("other", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_numbers_of_a_record_are_the_same_whatever_others_have(other):
    rows, again = SingleRows.of(FRAME, raw=False), SingleRows.of(other, raw=False)
    assert len(rows) == len(again) == 3
    for i in (0, 1):
        pd.testing.assert_frame_equal(rows[i], again[i])
        assert rows[i].index.tolist() == [0]
        assert set(rows[i].dtypes) == {np.dtype(float)}


def test_arrays_and_lists_have_rows_of_their_own():
    X = FRAME.to_numpy(dtype=float)
    for container in (X, X.tolist(), sparse.csr_array(X)):
        rows = SingleRows.of(container, raw=False)
        np.testing.assert_array_equal(rows[1], [[48.0, 0.0, 1.0]])
        assert rows[1].base is None


@pytest.mark.parametrize(
    "wrong",
    [TEXT[["age", "stage"]], changed(FRAME, "age", "unknown"), TEXT[["seen"]], [[1.0, "secret"]]],
)
def test_models_of_numbers_are_shown_nothing_else(wrong):
    with pytest.raises(ValueError, match=r"X must hold numbers alone.*columns=PublicColumns") as no:
        SingleRows.of(wrong, raw=False)
    assert "secret" not in str(no.value)
    assert "unknown" not in str(no.value)


@pytest.mark.parametrize(
    ("column", "value"), [("stage", "0"), ("stage", None), ("ill", "x"), ("seen", "then")]
)
def test_raw_cells_of_a_record_are_the_same_whatever_others_have(column, value):
    rows, again = (
        SingleRows.of(TEXT, raw=True),
        SingleRows.of(changed(TEXT, column, value), raw=True),
    )
    for i in (0, 1):
        pd.testing.assert_frame_equal(rows[i], again[i])
        assert rows[i]["stage"].tolist() == [TEXT["stage"].iloc[i]]
        assert rows[i].index.tolist() == [0]


@pytest.mark.parametrize(
    ("y", "other"),
    [
        (np.array([1, 0, 1]), np.array([1, 0, np.nan])),
        (["a", "b", "a"], ["a", "b", "a longer one"]),
        (pd.Series([1, 0, 1], index=[5, 6, 7]), pd.Series([1, 0, "x"])),
        (FRAME[["ill", "dose"]], changed(FRAME[["ill", "dose"]], "ill", 2)),
        (pl.from_pandas(FRAME[["ill", "dose"]]), FRAME[["ill", "dose"]]),
    ],
)
def test_targets_are_alone_too(y, other):
    one, again = single_target(y, 1), single_target(other, 1)
    assert type(one) is type(again)
    assert len(one) == 1
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, again)
    else:
        assert one.base is None
        if one.dtype.kind == "U":
            assert one.tolist() == again.tolist()
            assert one.dtype == again.dtype


def test_a_structured_target_keeps_its_fields():
    y = np.array([(True, 1.0), (False, 2.0)], dtype=[("event", "?"), ("time", "f8")])
    assert single_target(y, 1).dtype == y.dtype
    assert single_target(y, 1).tolist() == [(False, 2.0)]
    assert single_target(y, 1).base is None
    assert single_target(None, 1) is None


def test_a_gap_or_fraction_of_another_record_does_not_change_the_type_of_a_cell():
    whole = pd.DataFrame({"age": [50, 61, 70], "size": [1.0, 2.0, 3.5]})
    others = [
        pd.DataFrame({"age": [50, 61, last], "size": [1.0, 2.0, 3.5]}) for last in (None, 70.5, "x")
    ]
    for other in others:
        shown = [SingleRows.of(frame, raw=True)[1] for frame in (whole, other)]
        pd.testing.assert_frame_equal(*shown)
        assert list(map(type, shown[0].iloc[0].tolist())) == [int, int]
    for y in ([1, 0, 1], [1, 0, 0.5], [1, 0, np.nan]):
        for made in (list, np.array, pd.Series):
            assert str(single_target(made(y), 1)[0]) == "0"


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_what_is_missing_is_missing_in_one_way(missing):
    frame = pd.DataFrame({"age": pd.Series([1, missing], dtype=object)})
    assert SingleRows.of(frame, raw=True)[1].iloc[0, 0] is None
