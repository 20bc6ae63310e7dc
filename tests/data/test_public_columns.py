"""PublicColumns: what it makes of tables, what it says of that, what it refuses, and how."""

import math
import re
import traceback
import tracemalloc
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder

from skdpsurv.data import PublicBoundsScaler, PublicColumns
from tests.data.described import DATES, SPECIFICATIONS, rows
from tests.support import faults
from tests.support.registry import NAME, NUMBER


@pytest.fixture
def frame():
    return rows()


def values_of(specification, cells, **options):
    """Return the features of one column, given as a list of cells."""
    return PublicColumns({"a": specification}, **options).transform([[cell] for cell in cells])


def refusal(function, *args):
    """Return what is said where something is refused, and all that hangs on it."""
    with pytest.raises((ValueError, TypeError)) as info:
        function(*args)
    said = "".join(traceback.format_exception_only(info.value))
    for chained in (info.value.__context__, info.value.__cause__):
        said += "" if chained is None else repr(chained)
    for secret in (NAME, str(NUMBER), "7654", "765"):
        assert secret not in said
    return said


# ---- What is made of a table.


def test_numbers_are_what_public_bounds_make_of_them_to_the_bit():
    rng = np.random.default_rng(0)
    low = rng.normal(size=60) * 10.0 ** rng.integers(-12, 12, size=60)
    high = low + np.abs(low) * rng.uniform(1e-9, 3, size=60)
    # Of the second, centre and half width sum up to infinity.
    low[:2], high[:2] = [-1.7e308, 2.0**973], [1.7e308, np.finfo(float).max]
    X = np.vstack([low, high, low - 1, high + 1, rng.uniform(size=(50, 60)), rng.normal(size=60)])
    X[rng.random(X.shape) < 0.05] = np.nan
    columns = PublicColumns(
        {f"c{j}": {"bounds": [low[j], high[j]]} for j in range(60)}, missing="midpoint"
    )
    with np.errstate(over="ignore"):
        Z = PublicBoundsScaler(low, high, missing="midpoint").fit_transform(X)
    np.testing.assert_array_equal(columns.fit_transform(X), Z)
    clips = [f.expression.of[0].of[0].numbers for f in columns._features()]
    assert np.isfinite(clips).all()


@pytest.mark.parametrize("drop", ["first", "if_binary", None])
def test_categories_are_what_one_hot_encoding_makes_of_them(drop):
    rng = np.random.default_rng(1)
    labels = [["b", "a", "c"], [1, 3], ["x"]]
    X = np.array([[rng.choice(column).item() for column in labels] for _ in range(50)], object)
    X[:3, 1] = [1.0, np.int8(3), np.float32(1)]
    oracle = OneHotEncoder(categories=labels, drop=drop, sparse_output=False)
    columns = {f"x{j}": {"categories": column} for j, column in enumerate(labels)}
    columns = PublicColumns(columns, drop=drop)
    np.testing.assert_array_equal(columns.fit_transform(X), oracle.fit_transform(X))
    assert columns.get_feature_names_out().tolist() == oracle.get_feature_names_out().tolist()


def test_every_kind_and_every_treatment_of_what_is_missing(frame):
    Z = PublicColumns(SPECIFICATIONS).set_output(transform="pandas").fit_transform(frame)
    expected = {
        "age": [0, 0, 1],
        "dose": [0, -1, 0.5],
        "dose_missing": [1, 0, 0],
        "smoking_past": [0, 0, 1],
        "smoking_now": [1, 0, 0],
        "smoking_missing": [0, 1, 0],
        "stage_2": [0, 0, 1],
        "stage_3": [0, 1, 0],
        "treated": [1, 0.5, 0],
        "treated_missing": [0, 1, 0],
        "seen": [1, 0, 0.5],
        "entry": [-1, 1, 0],
        "entry_missing": [0, 0, 1],
        "bmi": [-1, 0, -0.52],
        "alive": [1, 0, 1],
    }
    pd.testing.assert_frame_equal(Z, pd.DataFrame(expected, dtype=float), atol=1e-15)


def test_a_table_may_come_in_any_container_and_order(frame):
    columns = PublicColumns(SPECIFICATIONS)
    Z = columns.transform(frame)
    assert (type(Z), Z.dtype, Z.shape) == (np.ndarray, np.float64, (3, 15))
    rows = frame[list(SPECIFICATIONS)].astype(object).to_numpy()
    cells = {name: frame[name].astype(object) for name in frame}
    table = pl.DataFrame({n: [None if pd.isna(v) else v for v in c] for n, c in cells.items()})
    typed = table.with_columns(pl.col("smoking").cast(pl.Categorical), pl.col("bmi").cast(pl.Int8))
    for X in (frame[frame.columns[::-1]], rows, rows.tolist(), list(rows), table, typed):
        np.testing.assert_array_equal(columns.transform(X), Z)
    each = [columns.transform(frame.iloc[[i]]) for i in range(3)]
    np.testing.assert_array_equal(np.vstack(each), Z)
    # Integers of polars, of which some are missing, stay integers.
    big = PublicColumns.of(a={"categories": [2**60, 2**60 + 1], "missing": "category"}, b=["f"])
    X = pl.DataFrame({"b": ["f"] * 3, "a": [2**60 + 1, 2**60, None]})
    np.testing.assert_array_equal(big.transform(X), [[1, 0], [0, 0], [0, 1]])


def objects(*cells):
    return np.array(cells, dtype=object)


@pytest.mark.parametrize(
    ("specification", "plain", "containers"),
    [
        ((0, 1), 1, [pd.array([1, None], dtype="Int64"), pd.Categorical([1, None])]),
        ((0, 1), 1, [objects(Decimal(1), Decimal("NaN")), objects(np.float16(1), pd.NA)]),
        ((0, 1), 1, [objects(True, pd.NaT), np.array([1, np.nan], dtype=np.longdouble)]),
        ((0, 1), 1, [pd.arrays.SparseArray([1.0, np.nan])]),
        (bool, True, [pd.Categorical([True, None])]),
        ([0, 1, 2], 1, [[1.0, np.nan], objects(np.uint8(1), pd.NA)]),
        (["m", "f"], "f", [pd.Categorical(["f", None]), objects(np.str_("f"), np.nan)]),
        (DATES, "2001-01-11", [pd.Categorical(["2001-01-11", None])]),
        (DATES, "2001-01-11", [objects(date(2001, 1, 11), None)]),
        (DATES, "2001-01-11", [objects(pd.Timestamp("2001-01-11"), pd.NaT)]),
        (DATES, "2001-01-11", [objects(np.datetime64("2001-01-11"), np.datetime64("NaT"))]),
    ],
)
def test_a_column_is_read_by_its_kind_and_never_by_its_type(specification, plain, containers):
    steps = PublicColumns({"a": specification}, missing="category")
    expected = steps.transform([[plain], [None]])
    assert (expected[0, 0], *expected[:, -1]) == (1, 0, 1)
    for cells in containers:
        np.testing.assert_array_equal(steps.transform(pd.DataFrame({"a": cells})), expected)
    for gap in (None, np.nan, pd.NaT, pd.NA, np.datetime64("NaT")):
        assert steps.transform(pd.DataFrame({"a": [gap]}))[0, -1] == 1


def test_dates_of_any_resolution_are_days_since_the_first():
    first, last = date(1969, 12, 20), date(1970, 2, 9)
    columns = PublicColumns({"a": {"dates": [first, last]}}, missing="midpoint")
    scaler = PublicBoundsScaler(0, (last - first).days)
    for unit in ("Y", "M", "W", "D", "h", "s", "us", "ns", "7s", "ps"):
        moments = np.array(["1970-01-01", "1969-12-25", "1970-01-02", "NaT"], dtype=f"M8[{unit}]")
        Z = columns.transform([[one] for one in moments])
        np.testing.assert_array_equal(columns.transform(moments[:, None]), Z)
        there = moments[:3].astype("M8[us]").astype("M8[D]").astype(object)
        days = np.array([[(day - first).days] for day in there])
        if unit != "7s":  # not all midnights are a multiple
            np.testing.assert_array_equal(Z[:3], scaler.fit_transform(days))
        assert Z[3] == 0


def test_a_time_of_day_is_a_fraction_of_a_day_in_whatever_form():
    moment = datetime(2001, 1, 3, 18, 30, 15, 250_000)
    forms = [moment, pd.Timestamp(moment), np.datetime64(moment), np.datetime64(moment, "ns")]
    forms += ["2001-01-03 18:30:15.250", "2001-01-03T18:30:15.250000"]
    Z = values_of(DATES, forms)
    whole = (moment - datetime(2001, 1, 1)) / timedelta(days=1)
    np.testing.assert_array_equal(Z, np.full((6, 1), (whole - 5) / 5))
    arrays = [np.array([moment], dtype=f"M8[{unit}]") for unit in ("ms", "us", "ns")]
    assert {PublicColumns.of(a=DATES).transform(a[:, None]).item() for a in arrays} == {Z[0, 0]}


def test_dates_beyond_all_calendars_are_clipped():
    for far in (300_000, 10**9, 10**17):
        for sign in (-1, 1):
            moments = np.array([[sign * far]]).astype("M8[Y]")
            assert PublicColumns.of(a=DATES).transform(moments) == [[sign]]
    distant = [np.datetime64("300000-01-01", "s"), datetime.max, date.min]
    assert values_of(DATES, distant).ravel().tolist() == [1, 1, -1]


# ---- Descriptions that are refused.


WRONG = [
    *([0, 1], [0.5, 1], (1, 0), (1, 1), (0, math.nan), (0, math.inf), (0, 10**400), (0, 1, 2)),
    *((0, 5e-324), ("f", "m"), (False, True), {"bounds": 3}, {"bounds": {0, 1}}),
    *({"bounds": [0, 1], **more} for more in ({"unit": 3}, {"units": "kg"}, {3: 3})),
    *({"bounds": [0, 1], **more} for more in ({"boolean": True}, {"missing": "mean"})),
    *({}, {"bounds": [0, 1], "missing": None}, [], ["f", 1], [True, False], [0.5, 1.5, 2.5]),
    *(["f", None], [1, 2, 1], {"categories": "fm"}, {"categories": ["f"], "unit": "kg"}),
    *({"categories": ["f"], "missing": "midpoint"}, {"boolean": False}, {"boolean": 1}),
    {"categories": ["x", "missing"], "missing": "category"},
    *({"dates": [*dates]} for dates in (["2001-01-01"], ["2001-01-02", "2001-01-01"])),
    *({"dates": ["2001-01-01", last]} for last in ("20020101", "2002-02-30")),
    *({"dates": [date(2001, 1, 1), datetime(2002, 1, 1)]}, None, int, "number", np.array([0, 1])),
]


@pytest.mark.parametrize("specification", WRONG, ids=repr)
def test_a_specification_that_breaks_a_rule_is_refused_before_any_data(specification):
    columns = PublicColumns({"a": specification}, missing="error")
    for call in (columns._check, columns._features, columns._described):
        said = refusal(call)
        assert "columns['a'] must" in said
    assert refusal(columns.fit, NUMBER) == refusal(columns.transform, NUMBER) == said


def test_parameters_that_break_a_rule_are_refused():
    for name, wrong in (
        *(("columns", {}), ("columns", ["a", "b"]), ("columns", pd.Series({"a": (0, 1)}))),
        *(("columns", {1: (0, 1)}), ("columns", [{"name": "a", "boolean": True}] * 2)),
        *(("columns", {"a_b": ["c", "d"], "a": ["x", "b_d"]}), ("columns", {"a": ["f"]})),
        *(("missing", "mean"), ("drop", "last"), ("drop", np.array(["a"]))),
    ):
        given = {"columns": {"a": bool}, name: wrong}
        assert name in refusal(PublicColumns(**given)._check)


# ---- Tables that are refused.


@pytest.mark.parametrize(
    ("said", "X"),
    [
        ("X lacks 'b'", pd.DataFrame({"a": [1]})),
        ("'c', 'd'", pd.DataFrame({"a": [1], "b": ["f"], "d": 1, "c": 1})),
        ("one name, got 'b'", pd.DataFrame([[1, "f", "f"]], columns=["a", "b", "b"])),
        ("text column names", pd.DataFrame([[1, "f"]])),
        ("has 3 features", [[1, "f", 2]]),
        *(("Expected 2D", X) for X in ([[1, "f"], [2]], [1, "f"], None, {"a": [NUMBER]})),
        ("Expected 2D", np.zeros((1, 2, 1))),
        ("Expected 2D", [np.ma.MaskedArray([1, 2], mask=[True, False])]),
        ("masked array", np.ma.MaskedArray([[1, 2]], mask=[[True, False]])),
        ("dense", sparse.csr_matrix([[1, 2]])),
    ],
)
def test_other_tables_are_refused(said, X):
    columns = PublicColumns({"a": (0, 1), "b": ["f", "m"]})
    for method in (columns.fit, columns.transform, columns._out_of_bounds):
        assert re.search(said, refusal(method, X))


def test_a_table_without_rows_is_refused_in_fit_alone():
    columns, empty = PublicColumns({"a": (0, 1), "b": ["f", "m"]}), pd.DataFrame({"a": [], "b": []})
    assert "0 sample(s)" in refusal(columns.fit, empty)
    assert columns.transform(empty).shape == (0, 2)
    assert columns._out_of_bounds(empty) == []
    assert "lacks 'b'" in refusal(columns.transform, empty[["a"]])


#: Text that says that it is equal to a label, and to other records' text; and of a class that does.
EQUAL = {"__eq__": lambda self, other: True}
TEXT = EQUAL | {"__hash__": lambda self: hash("f"), "__str__": lambda self: "f"}
Alike = type("Alike", (str,), TEXT)
Anything = type("Anything", (type,), EQUAL | {"__hash__": lambda self: hash(str)})
Disguised = Anything("Disguised", (Alike,), {"__hash__": Alike.__hash__})


def test_a_record_does_not_speak_for_others():
    for cell in (Alike("m"), Disguised("m")):
        assert "column 'a'" in refusal(values_of, ["f", "m"], ["f", cell, "f", "m"])


KINDS = {"number": (0, 10**5), "labels": ["f", "m"], "integers": [1, 2, 3], "flag": bool}
KINDS["date"] = DATES
#: Cells that columns of a kind hold, of those that are refused elsewhere.
HELD = {
    "number": ["less than nothing", "a decimal", "a boolean"],
    "flag": ["a boolean"],
    "date": ["a date", "a day"],
}
MISSING = ["NaN", "None", "NA", "NaT"]
CELLS = faults.CELLS | {
    "a number": NUMBER,
    "a zone": datetime(2001, 1, 2, tzinfo=timezone(timedelta(hours=7.654321))),
    "text of a zone": "2001-01-02T00:00:00+07:54",
    "a date without dashes": "20010102",
    "a span": np.timedelta64(7654321, "ns"),
    "a period": pd.Period("2001-01-02"),
    "an interval": pd.Interval(0, NUMBER),
    "masked": np.ma.masked,
    "a huge float": np.longdouble("7654e4000"),
    "a member of integers": IntEnum("Stage", ["FIRST"]).FIRST,
    "a member of texts": StrEnum("Sex", ["F"]).F,
}


@pytest.mark.parametrize("kind", KINDS)
def test_cells_that_are_something_else_are_refused_by_column_alone(kind):
    columns = PublicColumns({"sex of birth": KINDS[kind]}, missing="error")
    good = {"number": 1, "labels": "f", "integers": 1, "flag": 1, "date": "2001-01-02"}[kind]
    held = HELD.get(kind, []) + (["a number"] if kind == "number" else [])
    for name, cell in CELLS.items():
        if name in held:
            assert np.all(np.abs(columns.transform([[good], [cell]])) <= 1)
            continue
        tables = [[[good], [cell]], [[cell]]]
        column = np.fromiter([good, cell], dtype=object, count=2)
        tables += [pd.DataFrame({"sex of birth": pd.Series(column, dtype=object)})]
        for X in tables:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                said = refusal(columns.transform, X)
            assert "column 'sex of birth'" in said, name
            assert not re.search(r"\d", re.sub("2001-12-31|1 and 0", "", said))
            assert ("must not contain NaN" in said) == (name in MISSING), name


def test_arrays_of_another_type_are_refused():
    for dtype in ("U1", "S1", "c16", "M8[ns]", "m8[ns]", "V8"):
        cells = np.array([1, 1]).astype(dtype)[:, None]
        for kind in ("number", "integers", "flag", *(["date"] if dtype[0] != "M" else [])):
            assert "column 'a'" in refusal(PublicColumns.of(a=KINDS[kind]).transform, cells)
    zoned = pd.Series(pd.to_datetime(["2001-01-02"]).tz_localize("UTC"))
    table = pl.DataFrame({"a": [datetime(2001, 1, 2, tzinfo=UTC)]})
    for cells in (zoned, zoned.astype("category"), zoned.astype(object), table):
        X = cells if cells is table else pd.DataFrame({"a": cells})
        assert "time zone" in refusal(PublicColumns.of(a=DATES).fit, X)


def test_whatever_is_written_or_found_is_refused_in_our_words_or_understood():
    rng = np.random.default_rng(2)
    parts = [*CELLS.values(), [0, 1], (0, 1), (0, NUMBER), ["f", NAME], "error", "category", bool]
    parts += [["2001-01-01", "2001-02-01"], {"bounds": [0, 1]}, True, [[0, 1]], np.arange(2)]
    keys = ["bounds", "categories", "boolean", "dates", "missing", "unit", "unit ", 3]
    understood = 0

    def some(pool):
        return pool[rng.integers(len(pool))]

    for _ in range(1500):
        specification = some(parts)
        if rng.random() < 0.8:
            specification = {some(keys): some(parts) for _ in range(rng.integers(1, 4))}
        columns, X = PublicColumns({"a": specification}, drop=None), [[some(parts)]]
        try:
            columns._check()
        except (ValueError, TypeError):
            refusal(columns._check)
            continue
        understood += 1
        try:
            assert np.all(np.abs(columns.transform(X)) <= 1)
        except (ValueError, TypeError):
            assert "column 'a'" in refusal(columns.transform, X)
    assert understood > 50


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        ("%d.%m.%Y", ["02.01.2001", "2.1.2001", "2001-01-02"]),
        ("%m/%d/%Y", ["01/02/2001"]),
        ("%Y %m %d", ["2001 01 02"]),
    ],
)
def test_dates_may_have_a_format(form, texts):
    days = {"dates": ["2001-01-01", "2001-12-31"]}
    columns = PublicColumns({"d": {**days, "format": form}})
    rows = pd.DataFrame({"d": [*texts, date(2001, 1, 2)]})
    expected = PublicColumns({"d": days}).fit_transform(pd.DataFrame({"d": ["2001-01-02"]}))
    (said,) = columns._described()["columns"]
    for one in (columns, PublicColumns([said])):
        assert (one.fit_transform(rows) == expected).all()
    for text in ("31.02.2001", "2001/01/02", "1.2.01", "1.2.2001 ", "soon"):
        with pytest.raises(ValueError, match="of the stated format") as error:
            columns.fit(pd.DataFrame({"d": [text]}))
        assert text not in str(error.value)
    for wrong in ("%d.%m", "%d.%d.%Y", "%Y-%d-%m", "%d%m%Y", "%b.%d.%Y", 7):
        with pytest.raises(ValueError, match=r"must have a format of %d, %m and %Y"):
            PublicColumns({"d": {**days, "format": wrong}}).fit(rows)


def test_all_columns_that_are_refused_are_named_at_once():
    columns = PublicColumns({"a": (0, 1), "b": ["x", "y"], "c": bool, "d": (0, 1)})
    rows = pd.DataFrame({"a": [np.nan], "b": ["secret"], "c": [1], "d": ["0.5"]})
    with pytest.raises(ValueError, match="column 'a'") as error:
        columns.fit(rows)
    said = str(error.value)
    assert [f"column '{name}'" in said for name in "abcd"] == [True, True, False, True]
    assert said.count("X must") == 3
    assert "secret" not in said
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


def test_a_number_of_a_narrow_type_is_not_taken_for_its_neighbours():
    """np.float16(2076) == 2077, by which a table of hashes would find the one for the other."""
    steps = PublicColumns({"code": [2076, 2077, 10268]}, drop=None)
    cells = [2077] * 20
    plain = steps.fit_transform(pd.DataFrame({"code": pd.Series([2076, *cells], dtype=object)}))
    odd = pd.DataFrame({"code": pd.Series([np.float16(2076), *cells], dtype=object)})
    np.testing.assert_array_equal(clone(steps).fit_transform(odd), plain)


def test_whole_numbers_that_a_gap_has_made_floats_are_refused_where_these_stand_for_several():
    steps = PublicColumns({"code": [2**53, 2**53 + 1, 7]}, missing="category")
    whole = pd.DataFrame({"code": [2**53 + 1, 2**53]})
    assert steps.fit_transform(whole).shape[0] == 2
    with pytest.raises(ValueError, match="code"):
        clone(steps).fit_transform(pd.DataFrame({"code": [2**53 + 1, 2**53, None]}))


def test_rows_are_encoded_a_few_at_a_time(monkeypatch):
    cells = {"c": np.arange(4000) % 100, "number": np.arange(4000.0) % 7, "yes": True}
    X = pd.DataFrame(cells)
    described = {"c": list(range(100)), "number": (0, 6), "yes": bool}
    columns = PublicColumns(described).fit(X)
    whole = columns.transform(X)
    monkeypatch.setattr("skdpsurv.data.columns.BLOCK_ELEMENTS", 2**12)
    tracemalloc.start()
    pieces = columns.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(pieces, whole)
    assert pieces.shape == (4000, 101)
    assert peak < 1.2 * pieces.nbytes
