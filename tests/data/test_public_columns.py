"""PublicColumns: what it makes of tables, what it says of that, what it refuses, and how."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
import traceback
import warnings
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skdpsurv.data import PublicBoundsScaler, PublicColumns
from skdpsurv.data.feature import same_features
from tests.support import faults
from tests.support.registry import NAME, NUMBER

#: One column of each kind for each way to treat what is missing, and a table with all of these.
SPECIFICATIONS = {
    "age": {"bounds": [0, 90], "unit": "years", "missing": "midpoint"},
    "dose": {"bounds": (0.1, 0.7), "missing": "category"},
    "smoking": {"categories": ["never", "past", "now"], "missing": "category"},
    "stage": [1, 2, 3],
    "treated": {"boolean": True, "missing": "category"},
    "seen": {"boolean": True, "missing": "midpoint"},
    "entry": {"dates": ["2001-01-01", date(2010, 12, 31)], "missing": "category"},
    "bmi": (10, 60),
    "alive": bool,
}
NAMES = ["age", "dose", "dose_missing", "smoking_past", "smoking_now", "smoking_missing"]
NAMES += ["stage_2", "stage_3", "treated", "treated_missing", "seen", "entry", "entry_missing"]
NAMES += ["bmi", "alive"]
DATES = {"dates": ["2001-01-01", "2001-01-11"]}


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [45.0, None, 140.0],
            "dose": pd.Series([None, 0.1, 0.55], dtype=object),
            "smoking": ["now", None, "past"],
            "stage": [1, 3, 2],
            "treated": pd.array([True, None, False], dtype="boolean"),
            "seen": [1.0, 0.0, np.nan],
            "entry": pd.to_datetime(["2001-01-01", "2020-06-30T12:00", None], format="ISO8601"),
            "bmi": [10, 35, 22],
            "alive": [True, False, True],
        }
    )


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
    assert list(Z) == NAMES
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
    for X in (frame[frame.columns[::-1]], rows, rows.tolist(), list(rows), frame.astype(object)):
        np.testing.assert_array_equal(columns.transform(X), Z)
    each = [columns.transform(frame.iloc[[i]]) for i in range(3)]
    np.testing.assert_array_equal(np.vstack(each), Z)


def test_polars(frame):
    pl = pytest.importorskip("polars")
    cells = {name: frame[name].astype(object) for name in frame}
    lists = {name: [None if pd.isna(v) else v for v in column] for name, column in cells.items()}
    X = pl.DataFrame(lists)
    assert X["treated"].dtype == pl.Boolean
    columns = PublicColumns(SPECIFICATIONS)
    np.testing.assert_array_equal(columns.fit_transform(X), columns.transform(frame))
    assert list(columns.feature_names_in_) == list(frame)
    typed = X.with_columns(pl.col("smoking").cast(pl.Categorical), pl.col("bmi").cast(pl.Int8))
    np.testing.assert_array_equal(columns.transform(typed), columns.transform(frame))
    # Integers of which some are missing stay integers.
    big = PublicColumns.of(a={"categories": [2**60, 2**60 + 1], "missing": "category"}, b=["f"])
    X = pl.DataFrame({"b": ["f"] * 3, "a": [2**60 + 1, 2**60, None]})
    np.testing.assert_array_equal(big.transform(X), [[1, 0], [0, 0], [0, 1]])
    zoned = pl.DataFrame({"a": [datetime(2001, 1, 2, tzinfo=UTC)]})
    assert "column 'a'" in refusal(PublicColumns.of(a=DATES).transform, zoned)
    assert "X lacks 'a'" in refusal(PublicColumns.of(a=DATES).transform, X[["b"]])


class Stage(IntEnum):
    FIRST = 1


class Sex(StrEnum):
    F = "f"


@pytest.mark.parametrize("cell", [Stage.FIRST, Sex.F, pd.Timestamp("2001-01-02").to_period("D")])
@pytest.mark.parametrize("specification", [[1, 2, 3], ["f", "m"], (0, 1), DATES])
def test_a_cell_of_a_class_of_its_own_is_refused(specification, cell):
    assert "column 'a'" in refusal(values_of, specification, [cell])


@pytest.mark.parametrize(
    ("specification", "cells"),
    [
        ((0, 1), pd.array([1, None], dtype="Int64")),
        ((0, 1), pd.Categorical([1, None])),
        ((0, 1), np.array([Decimal(1), Decimal("NaN")])),
        ((0, 1), np.array([np.float16(1), pd.NA], dtype=object)),
        ((0, 1), np.array([True, pd.NaT], dtype=object)),
        ((0, 1), np.array([1, np.nan], dtype=np.longdouble)),
        ((0, 1), pd.arrays.SparseArray([1.0, np.nan])),
        (bool, pd.Categorical([True, None])),
        ([0, 1, 2], [1.0, np.nan]),
        ([0, 1, 2], np.array([np.uint8(1), pd.NA], dtype=object)),
        (["m", "f"], pd.Categorical(["f", None])),
        (["m", "f"], np.array([np.str_("f"), np.nan], dtype=object)),
        (DATES, pd.Categorical(["2001-01-11", None])),
        (DATES, np.array([date(2001, 1, 11), None])),
        (DATES, np.array([pd.Timestamp("2001-01-11"), pd.NaT])),
        (DATES, np.array([np.datetime64("2001-01-11"), np.datetime64("NaT")], dtype=object)),
    ],
)
def test_a_column_is_read_by_its_kind_and_never_by_its_type(specification, cells):
    columns = PublicColumns({"a": specification}, missing="category")
    kept = [-2, -1] if specification == [0, 1, 2] else [-1]
    Z = columns.transform(pd.DataFrame({"a": cells}))
    assert Z[0, 0] == 1
    assert Z[:, -1].tolist() == [0, 1]
    assert not Z[0, kept].any()
    assert Z[1, 0] == {"a": 0, "a_f": 0, "a_1": 0}[columns.get_feature_names_out()[0]] + (
        0.5 if specification is bool else 0
    )


def test_a_column_of_nothing_but_missing_values_has_no_type_to_go_by():
    for cells in ([None], [np.nan], [pd.NaT], [pd.NA], [np.datetime64("NaT")]):
        for specification in ((0, 1), ["f", "m"], [1, 2, 3], bool, DATES):
            columns = PublicColumns({"a": specification}, missing="category")
            assert columns.transform(pd.DataFrame({"a": cells}))[0, -1] == 1


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "s", "us", "ns", "7s", "ps"])
def test_dates_of_any_resolution_are_days_since_the_first(unit):
    first, last = date(1969, 12, 20), date(1970, 2, 9)
    moments = np.array(["1970-01-01", "1969-12-25", "1970-01-02", "NaT"], dtype=f"M8[{unit}]")
    there = moments[:3].astype("M8[us]").astype("M8[D]").astype(object)
    Z = values_of({"dates": [first, last]}, moments, missing="midpoint").ravel()
    X = moments[:, None]
    np.testing.assert_array_equal(
        PublicColumns({"a": {"dates": [first, last]}}, missing="midpoint").transform(X).ravel(), Z
    )
    scaler = PublicBoundsScaler(0, (last - first).days)
    days = np.array([[(day - first).days] for day in there])
    if unit != "7s":  # not all midnights are a multiple
        np.testing.assert_array_equal(Z[:3], scaler.fit_transform(days).ravel())
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


def test_of_the_global_treatment_of_missing_values_categories_take_what_they_can():
    both = {"a": (0, 1), "b": ["f", "m"]}
    assert "column 'b'" in refusal(PublicColumns(both, missing="midpoint").fit, [[None, None]])
    np.testing.assert_array_equal(
        PublicColumns(both, missing="category").transform([[None, None]]), [[0, 1, 0, 1]]
    )
    own = {"a": {"bounds": (0, 1), "missing": "error"}, "b": ["f", "m"]}
    assert "column 'a'" in refusal(PublicColumns(own, missing="category").fit, [[None, None]])


# ---- What is said of features.


def evaluated(expression, row):
    """Return the value of a formula, as the table of formulas in ``Expression`` has it."""
    of = [evaluated(part, row) for part in expression.of]
    numbers = expression.numbers
    absent = bool(of) and (of[0] is None or of[0] != of[0])
    match expression.kind:
        case "column":
            return row[numbers[0]]
        case "missing":
            return float(absent)
        case "is":
            return float(not absent and of[0] == numbers[0])
        case "fill":
            return numbers[0] if absent else float(of[0])
        case _ if absent:
            return math.nan
        case "days":
            return (pd.Timestamp(of[0]) - pd.Timestamp(numbers[0])) / pd.Timedelta(days=1)
        case "clip":
            return min(max(of[0], numbers[0]), numbers[1])
        case "scale":
            return min(max((of[0] - numbers[0]) / numbers[1], -1.0), 1.0)
    raise AssertionError(expression.kind)


@pytest.mark.parametrize("drop", ["first", None])
def test_the_formulas_of_the_features_are_the_transform(frame, drop):
    columns = PublicColumns(SPECIFICATIONS, drop=drop)
    features = columns._features([])
    assert [f.name for f in features] == columns.get_feature_names_out().tolist()
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    table = [[evaluated(f.expression, row) for f in features] for row in rows]
    Z = columns.transform(frame)
    np.testing.assert_array_equal(Z, table)
    low, high = (np.array([getattr(f, end) for f in features]) for end in ("low", "high"))
    assert np.all((low <= Z) & (high >= Z))


def test_features_say_of_which_column_they_are_and_how_far_they_move():
    said = {f.name: f for f in PublicColumns(SPECIFICATIONS)._features()}
    about = {n: (f.column, f.level, f.per_unit, f.unit, f.low) for n, f in said.items()}
    assert about["age"] == ("age", None, 1 / 45, "years", -1.0)
    assert about["dose_missing"] == ("dose", "missing", 1.0, "", 0.0)
    assert about["stage_2"] == ("stage", 2, 1.0, "", 0.0)
    assert about["alive"] == ("alive", True, 1.0, "", 0.0)
    days = (date(2010, 12, 31) - date(2001, 1, 1)).days
    assert about["entry"] == ("entry", None, 2 / days, "days", -1.0)


def test_the_description_is_plain_json_and_makes_the_same(frame):
    for options in ({}, {"missing": "category", "drop": None}):
        columns = PublicColumns(SPECIFICATIONS, **options)
        described = columns._described()
        # A release sorts the keys of all mappings.
        again = PublicColumns(**json.loads(json.dumps(described, sort_keys=True)))
        assert again._described() == described
        assert list(again.get_feature_names_out()) == list(columns.get_feature_names_out())
        rows = frame[list(SPECIFICATIONS)].astype(object).to_numpy()
        np.testing.assert_array_equal(again.transform(rows), columns.transform(rows))


# ---- Files and keywords.


def test_a_file_describes_columns(tmp_path, frame):
    path = tmp_path / "columns.toml"
    path.write_text(
        'drop = "none"\nmissing = "category"\n'
        '[columns.smoking]\ncategories = ["never", "past", "now"]\n'
        "[columns.entry]\ndates = [2001-01-01, '2010-12-31']\n"
        '[columns.age]\nbounds = [0, 90]\nunit = "years"\nmissing = "midpoint"\n'
        "[columns]\nstage = [1, 2, 3]\nalive.boolean = true\n"
    )
    columns = PublicColumns.from_toml(str(path))
    assert columns.drop is None
    assert columns._beyond(frame[list(columns.get_params()["columns"])]) == ["entry", "age"]
    same = {"smoking": SPECIFICATIONS["smoking"], "entry": SPECIFICATIONS["entry"]}
    same |= {"age": SPECIFICATIONS["age"], "stage": [1, 2, 3], "alive": bool}
    same = PublicColumns(same, missing="category", drop=None)
    assert columns._described() == same._described()
    np.testing.assert_array_equal(
        PublicColumns.from_toml(path).fit_transform(frame[list(same.columns)]),
        same.transform(frame[list(same.columns)]),
    )


def test_a_broken_file_is_refused_by_name(tmp_path):
    path = tmp_path / "columns.toml"
    for content, said in (
        (b"[columns", "Expected"),
        (b"\xff", "decode"),
        (b"", "must hold a table of columns"),
        (b"[columns]\na = [1, 0]", r"columns\['a'\] must have two finite bounds"),
        (b"[column]\na.boolean = true", "must hold a table of columns, and nothing else"),
        (b"[columns.a]\ndates = [2001-01-01T12:00:00, 2001-01-02]", r"columns\['a'\]"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(f"{path}: ") + ".*" + said):
            PublicColumns.from_toml(path)


# ---- A transformer as scikit-learn has it.


def test_parameters_are_kept_as_given_and_nothing_is_learnt(frame):
    columns = PublicColumns(SPECIFICATIONS)
    assert columns.columns is SPECIFICATIONS
    assert clone(columns).columns == SPECIFICATIONS
    one, other = clone(columns).fit(frame), clone(columns).fit(frame[::-1].assign(bmi=59, stage=2))
    assert pickle.dumps(one) == pickle.dumps(other)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.transform(frame), columns.transform(frame))
    assert (one.n_features_in_, list(one.feature_names_in_)) == (9, list(frame))
    one.set_params(columns={"bmi": (10, 60)}, drop=None).fit(frame[["bmi"]].to_numpy())
    assert one.n_features_in_ == 1
    assert not hasattr(one, "feature_names_in_")
    columns = PublicColumns.of(bmi=(10, 60))
    pipeline = make_pipeline(columns, FunctionTransformer(feature_names_out="one-to-one"))
    np.testing.assert_array_equal(pipeline.fit_transform(frame[["bmi"]]), [[-1], [0], [-0.52]])
    assert list(pipeline.get_feature_names_out(["bmi"])) == ["bmi"]
    with pytest.raises(ValueError, match="input_features must be the names in columns"):
        columns.get_feature_names_out(["age"])


def test_no_text_is_markup_in_a_notebook():
    columns = PublicColumns({"<b>": {"bounds": [0, 0.1], "unit": "<i>"}, "c": ["<u>", "&"]})
    for each in (columns, PublicColumns("<b>")):
        assert not re.search("<[biu]>", each._repr_mimebundle_()["text/html"])


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
    ("said", "tables"),
    [
        ("X lacks 'b'", [pd.DataFrame({"a": [1]})]),
        ("'c', 'd'", [pd.DataFrame({"a": [1], "b": ["f"], "d": 1, "c": 1})]),
        ("one name, got 'b'", [pd.DataFrame([[1, "f", "f"]], columns=["a", "b", "b"])]),
        ("text column names", [pd.DataFrame([[1, "f"]])]),
        (r"0 sample\(s\)", [pd.DataFrame({"a": [], "b": []}), np.empty((0, 2))]),
        ("has [30] features", [[[1, "f", 2]], []]),
        ("Expected 2D", [[[1, "f"], [2]], [1, "f"], NUMBER, None, {"a": [NUMBER], "b": ["f"]}]),
        ("Expected 2D", [pd.Series({"columns": [NAME]}), np.zeros((1, 2, 1))]),
        ("Expected 2D", [[np.ma.MaskedArray([1, 2], mask=[True, False])]]),
        ("masked array", [np.ma.MaskedArray([[1, 2]], mask=[[True, False]])]),
        ("dense", [sparse.csr_matrix([[1, 2]])]),
    ],
)
def test_other_tables_are_refused(said, tables):
    columns = PublicColumns({"a": (0, 1), "b": ["f", "m"]})
    for X in tables:
        for method in (columns.fit, columns.transform, columns._beyond):
            assert re.search(said, refusal(method, X))


class Alike(str):
    """Text that says that it is equal to a label, and to other records' text."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("f")

    def __str__(self):
        return "f"


class Anything(type):
    def __eq__(cls, other):
        return True

    def __hash__(cls):
        return hash(str)


class Disguised(Alike, metaclass=Anything):
    """Text of a class that says that it is equal to text's."""

    __hash__ = Alike.__hash__


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


@pytest.mark.parametrize(
    "cells",
    [
        np.array(["1", "0"]),
        np.array([b"1", b"0"]),
        np.array([1 + 0j, 0]),
        np.array([1, 1], dtype="M8[ns]"),
        np.array([1, 1], dtype="m8[ns]"),
        np.zeros(2, dtype="V8"),
    ],
    ids=lambda cells: cells.dtype.str,
)
def test_arrays_of_another_type_are_refused(cells):
    for kind in ("number", "integers", "flag") + (("date",) if cells.dtype.kind != "M" else ()):
        assert "column 'a'" in refusal(PublicColumns.of(a=KINDS[kind]).transform, cells[:, None])


def test_dates_with_a_time_zone_are_refused_in_whatever_container():
    zoned = pd.Series(pd.to_datetime(["2001-01-02"]).tz_localize("UTC"))
    for cells in (zoned, zoned.astype("category"), zoned.astype(object)):
        said = refusal(PublicColumns.of(a=DATES).fit, pd.DataFrame({"a": cells}))
        assert "time zone" in said


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
        if rng.random() < 0.7:
            specification = {some(keys): some(parts) for _ in range(rng.integers(1, 4))}
        elif rng.random() < 0.3:
            specification = [some(parts) for _ in range(rng.integers(3))]
        columns = PublicColumns({"a": specification}, drop=None)
        try:
            columns._check()
        except (ValueError, TypeError):
            refusal(columns._check)
            continue
        understood += 1
        assert copy.deepcopy(columns)._described() == columns._described()
        X = [[some(parts)]]
        try:
            Z = columns.transform(X)
        except (ValueError, TypeError):
            assert "column 'a'" in refusal(columns.transform, X)
        else:
            assert np.all(np.abs(Z) <= 1)
    assert understood > 50


class TestDatesOfAStatedFormat:
    ENDS = ("2001-01-01", "2001-12-31")

    def columns(self, form):
        return PublicColumns({"d": {"dates": list(self.ENDS), "format": form}})

    @pytest.mark.parametrize(
        ("form", "texts"),
        [
            ("%d.%m.%Y", ["02.01.2001", "2.1.2001", "2001-01-02"]),
            ("%m/%d/%Y", ["01/02/2001"]),
            ("%Y %m %d", ["2001 01 02"]),
        ],
    )
    def test_they_are_what_they_say(self, form, texts):
        columns, plain = self.columns(form), PublicColumns({"d": {"dates": list(self.ENDS)}})
        rows = pd.DataFrame({"d": [*texts, date(2001, 1, 2)]})
        expected = plain.fit_transform(pd.DataFrame({"d": ["2001-01-02"]}))
        assert (columns.fit_transform(rows) == expected).all()
        (said,) = columns._described()["columns"]
        assert said["format"] == form
        assert (PublicColumns([said]).fit_transform(rows) == expected).all()

    def test_others_are_refused(self):
        for text in ("31.02.2001", "01/02/2001", "1.2.01", "1.2.2001 ", "soon"):
            with pytest.raises(ValueError, match="of the stated format") as error:
                self.columns("%d.%m.%Y").fit(pd.DataFrame({"d": [text]}))
            assert text not in str(error.value)
        for form in ("%d.%m", "%d.%d.%Y", "%Y-%d-%m", "%d%m%Y", "%b.%d.%Y", 7):
            with pytest.raises(ValueError, match=r"must have a format of %d, %m and %Y"):
                self.columns(form).fit(pd.DataFrame({"d": ["2001-01-02"]}))


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


TYPICAL = {
    "temperature": {"bounds": [30, 43], "typical": 37},
    "stage": {"categories": ["I", "II"], "typical": "II"},
    "grade": {"categories": [1, 2, 3], "typical": np.int64(3), "missing": "category"},
    "treated": {"boolean": True, "typical": True},
    "opened": {"dates": ["2001-01-01", "2010-12-31"], "typical": date(2009, 7, 4)},
    "bmi": (10, 60),
    "smoking": ["never", "now"],
    "seen": bool,
    "closed": DATES,
}


class TestTypical:
    def test_an_example_is_what_columns_state_and_else_the_middle(self):
        columns = PublicColumns(TYPICAL)
        (row,) = columns.example().to_dict("records")
        typical = {"temperature": 37.0, "stage": "II", "grade": 3, "treated": True}
        middle = {"bmi": 35.0, "smoking": "never", "seen": False, "closed": "2001-01-06"}
        assert row == typical | {"opened": "2009-07-04"} | middle
        assert columns.fit_transform(columns.example()).shape == (1, 11)

    def test_it_changes_no_feature_and_comes_back_from_a_description(self):
        columns, plain = (
            PublicColumns(TYPICAL),
            PublicColumns({name: _without_typical(said) for name, said in TYPICAL.items()}),
        )
        assert same_features(columns._features(), plain._features())
        assert "typical" not in json.dumps(plain._described())
        described = json.loads(json.dumps(columns._described()))
        assert described["columns"][0]["typical"] == 37.0
        again = PublicColumns(**described)
        pd.testing.assert_frame_equal(again.example(), columns.example())
        assert again._described() == described

    @pytest.mark.parametrize(
        ("column", "wrong"),
        [
            ("temperature", (29.9, 98.6, "37", None, True, math.nan, [37])),
            ("stage", ("III", 1, None, ["II"])),
            ("grade", (4, "1", True)),
            ("treated", (1, "yes", None)),
            ("opened", ("2011-01-01", "04.07.2009", None, 2005)),
        ],
    )
    def test_what_the_column_cannot_hold_is_refused_by_name(self, column, wrong):
        for typical in wrong:
            said = {**TYPICAL[column], "typical": typical}
            with pytest.raises((ValueError, TypeError), match=rf"columns\['{column}'\]") as error:
                PublicColumns({column: said}).example()
            assert "37" not in str(error.value)


def _without_typical(said):
    if not isinstance(said, dict):
        return said
    return {key: value for key, value in said.items() if key != "typical"}


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
