"""PublicColumns: what it says of its features, and how it is described in files."""

import json
import math
import re
from datetime import date

import numpy as np
import pandas as pd
import pytest

from skdpsurv.data import PublicColumns
from skdpsurv.data.feature import raw_features, same_features
from skdpsurv.data.natural_spline import curve
from tests.data.described import DATES, SPECIFICATIONS, rows


@pytest.fixture
def frame():
    return rows()


#: What the kinds of an expression mean, but for those of columns and of what is missing.
MEANINGS = {
    "is": lambda value, label: float(value == label),
    "fill": lambda value, number: float(value),
    "days": lambda value, first: (pd.Timestamp(value) - pd.Timestamp(first)) / pd.Timedelta(days=1),
    "clip": lambda value, low, high: min(max(value, low), high),
    "log": lambda value, offset=0.0: math.log(value + offset),
    "power": math.pow,
    "spline": lambda value, *numbers: curve(numbers, np.array([value])).item(),
    "scale": lambda value, centre, half: min(max((value - centre) / half, -1.0), 1.0),
}


def evaluated(expression, row):
    """Return the value of a formula, as the table of formulas in ``Expression`` has it."""
    kind, numbers = expression.kind, expression.numbers
    if kind == "column":
        return row[numbers[0]]
    if kind == "product":
        return math.prod(evaluated(one, row) for one in expression.of)
    value = evaluated(expression.of[0], row)
    absent = value is None or value != value
    if kind == "missing":
        return float(absent)
    if absent:
        return {"is": 0.0, "fill": numbers and numbers[0]}.get(kind, math.nan)
    return MEANINGS[kind](value, *numbers)


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


TYPICAL = {
    "temperature": {"bounds": [30, 43], "typical": 37, "per": np.float32(0.5)},
    "stage": {"categories": ["I", "II"], "typical": "II"},
    "grade": {"categories": [1, 2, 3], "typical": np.int64(3), "missing": "category"},
    "treated": {"boolean": True, "typical": True},
    "opened": {"dates": ["2001-01-01", "2010-12-31"], "typical": date(2009, 7, 4), "per": 365},
    "bmi": (10, 60),
    "smoking": ["never", "now"],
    "seen": bool,
    "closed": DATES,
}


def test_the_description_is_plain_json_and_makes_the_same():
    for given, options in (
        (SPECIFICATIONS, {}),
        (SPECIFICATIONS, {"missing": "category", "drop": None}),
        (TYPICAL, {}),
    ):
        columns = PublicColumns(given, **options)
        described = columns._described()
        # A release sorts the keys of all mappings.
        again = PublicColumns(**json.loads(json.dumps(described, sort_keys=True)))
        assert again._described() == described
        assert same_features(again._features(), columns._features())
        pd.testing.assert_frame_equal(again.example(), columns.example())


def test_an_example_is_what_columns_state_and_else_the_middle():
    """What is typical changes no feature."""
    columns = PublicColumns(TYPICAL)
    (row,) = columns.example().to_dict("records")
    typical = {"temperature": 37.0, "stage": "II", "grade": 3, "treated": True}
    middle = {"bmi": 35.0, "smoking": "never", "seen": False, "closed": "2001-01-06"}
    assert row == typical | {"opened": "2009-07-04"} | middle
    assert columns.fit_transform(columns.example()).shape == (1, 11)
    untold = {
        name: {k: v for k, v in said.items() if k not in ("typical", "per")}
        if type(said) is dict
        else said
        for name, said in TYPICAL.items()
    }
    assert same_features(columns._features(), PublicColumns(untold)._features())


def test_effects_are_shown_for_a_step_that_is_stated_or_a_tenth_of_the_bounds():
    features = PublicColumns({**TYPICAL, "age": {"bounds": [0, 90], "unit": "years"}})._features()
    steps = {feature.name: (feature.per, feature.change) for feature in features}
    assert steps["temperature"] == (0.5, "+0.5")
    assert steps["opened"] == (365.0, "+365 days")
    assert steps["age"] == (pytest.approx(9.0), "+9 years")
    assert steps["stage_II"] == steps["treated"] == steps["grade_missing"] == (1.0, "")
    (raw,) = raw_features(["age"])
    assert (raw.per, raw.change) == (1.0, "")


@pytest.mark.parametrize("wrong", [0, -1, 13.5, math.inf, math.nan, "1", True, None, [1]])
def test_a_step_is_positive_and_within_the_bounds(wrong):
    for said in ({"bounds": [30, 43]}, {"dates": ["2001-01-01", "2001-01-10"]}):
        with pytest.raises(ValueError, match="must have as per a positive number, at most the wid"):
            PublicColumns({"fever": {**said, "per": wrong}}).get_feature_names_out()
    for said in ({"categories": ["I", "II"]}, {"boolean": True}):
        with pytest.raises(ValueError, match=r"must hold no other key than .*, got 'per'"):
            PublicColumns({"fever": {**said, "per": 1}}).get_feature_names_out()


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
def test_what_a_column_cannot_hold_is_not_typical(column, wrong):
    for typical in wrong:
        said = {**TYPICAL[column], "typical": typical}
        with pytest.raises((ValueError, TypeError), match=rf"columns\['{column}'\]"):
            PublicColumns({column: said}).example()


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
    assert columns._out_of_bounds(frame[list(columns.get_params()["columns"])]) == ["entry", "age"]
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


def test_names_are_those_in_columns_and_of_the_last_fit(frame):
    columns = PublicColumns(SPECIFICATIONS).fit(frame)
    assert list(columns.feature_names_in_) == list(frame)
    columns.set_params(columns={"bmi": (10, 60)}).fit(frame[["bmi"]].to_numpy())
    assert columns.n_features_in_ == 1
    assert not hasattr(columns, "feature_names_in_")
    with pytest.raises(ValueError, match="input_features must be the names in columns"):
        columns.get_feature_names_out(["age"])


# ---- What is stated of a column's distribution, and logarithms.

STATED = {
    "age": {"bounds": [0, 90], "typical": 60, "spread": 9},
    "bmi": {"bounds": [10, 60], "spread": np.float32(5.5)},
    "opened": {"dates": ["2001-01-01", "2001-01-11"], "spread": 2, "typical": "2001-01-02"},
    "nodes": {"log": [0, 35], "offset": 1, "typical": 1, "spread": 0.9, "missing": "category"},
    "stage": {"categories": ["I", "II", "III"], "prevalence": [0.2, 0.3, 0.49]},
    "smoking": {"categories": ["never", "now"], "prevalence": (0.7, 0.3), "missing": "category"},
    "treated": {"boolean": True, "prevalence": 0.1},
    "seen": {"boolean": True, "typical": True},
}


def test_features_hold_the_stated_centre_and_spread_on_their_own_scale():
    known = {f.name: (f.center, f.spread) for f in PublicColumns(STATED)._features()}
    half = math.log(36) / 2
    shares = {"stage_II": 0.3 / 0.99, "stage_III": 0.49 / 0.99, "smoking_now": 0.3, "treated": 0.1}
    expected = {
        "age": (15 / 45, 9 / 45),
        "bmi": (None, 5.5 / 25),
        "opened": (-0.8, 0.4),
        "nodes": (math.log(2) / half - 1, 0.9 / half),
        "nodes_missing": (None, None),
        "smoking_missing": (None, None),
        "seen": (None, None),
        **{name: (p, math.sqrt(p * (1 - p))) for name, p in shares.items()},
    }
    assert known.keys() == expected.keys()
    for name, (center, spread) in expected.items():
        assert known[name][0] == (center if center is None else pytest.approx(center)), name
        assert known[name][1] == (spread if spread is None else pytest.approx(spread)), name
    (kept,) = PublicColumns({"x": STATED["smoking"]}, drop=None)._features()[:1]
    assert kept.center == 0.7


def test_what_is_stated_changes_no_feature_and_survives_json_to_the_bit():
    columns = PublicColumns(STATED)
    described = json.loads(json.dumps(columns._described()))
    assert [one.get("prevalence") for one in described["columns"]][-2:] == [0.1, None]
    again = PublicColumns(**described)
    assert again._kinds() == columns._kinds()
    assert [*map(vars, again._kinds())] == [*map(vars, columns._kinds())]
    untold = {
        name: {k: v for k, v in said.items() if k not in ("spread", "prevalence", "typical")}
        for name, said in STATED.items()
    }
    assert same_features(PublicColumns(untold)._features(), columns._features())


@pytest.mark.parametrize("wrong", [0, -1, 90.5, math.inf, math.nan, "1", True, None, [1]])
def test_a_spread_is_positive_and_within_the_bounds(wrong):
    said = "must have as spread a positive number, at most the width of its bounds"
    with pytest.raises(ValueError, match=rf"columns\['age'\] {said}"):
        PublicColumns({"age": {"bounds": [0, 90], "spread": wrong}})._check()


@pytest.mark.parametrize(
    "wrong",
    [0.3, None, [0.3, 0.7], [0, 0.3, 0.7], [0.2, 0.3, 0.47], [0.2, 0.3, "0.5"], [1, 1, True]],
)
def test_prevalence_is_a_share_of_each_label(wrong):
    said = {"categories": ["I", "II", "III"], "prevalence": wrong}
    with pytest.raises((ValueError, TypeError), match=r"columns\['x'\] must have .*prevalence"):
        PublicColumns({"x": said})._check()


@pytest.mark.parametrize("wrong", [0, 1, -0.1, math.nan, "0.5", True, None, [0.5, 0.5]])
def test_prevalence_of_a_boolean_is_one_share(wrong):
    with pytest.raises(ValueError, match=r"columns\['x'\] must have as prevalence the share of Tr"):
        PublicColumns({"x": {"boolean": True, "prevalence": wrong}})._check()


def test_each_kind_has_its_own_keys():
    for said in ({"bounds": [0, 1], "prevalence": 0.5}, {"boolean": True, "spread": 0.5}):
        with pytest.raises(ValueError, match=r"columns\['x'\] must hold no other key than"):
            PublicColumns({"x": said})._check()
    with pytest.raises(ValueError, match=r"must hold no other key than .*, got 'offset'"):
        PublicColumns({"x": {"bounds": [0, 1], "offset": 1}})._check()


NODES = {"log": (0, 35), "offset": 1, "unit": "nodes", "missing": "midpoint"}


def test_a_logarithm_is_scaled_between_those_of_the_bounds():
    columns = PublicColumns({"nodes": NODES, "psa": {"log": [0.1, 1000]}})
    X = pd.DataFrame({"nodes": [0, 5, 35, 99, None], "psa": [-1.0, 10, 1e3, 1e9, 0.1]})
    expected = [[-1, -1], [0, 0], [1, 1], [1, 1], [0, -1]]
    np.testing.assert_allclose(columns.transform(X), expected, atol=2e-15)
    assert columns._out_of_bounds(X) == ["nodes", "psa"]
    (example,) = columns.example().to_dict("records")
    assert example == {"nodes": pytest.approx(5), "psa": pytest.approx(10)}


def test_an_effect_of_a_logarithm_is_per_doubling():
    nodes, psa = PublicColumns({"nodes": NODES, "psa": {"log": [1, 1000], "per": 3}})._features()
    assert nodes.per_unit == pytest.approx(2 * math.log(2) / math.log(36))
    assert (nodes.unit, nodes.change) == ("doubling of nodes + 1 (nodes)", "×2 of x + 1")
    assert (psa.unit, psa.change) == ("doubling of psa", "×8")
    assert nodes.raw_bounds is None
    (words,) = (kind.words() for kind in PublicColumns({"nodes": NODES})._kinds())
    assert words.endswith("counts as the bound; effects are per doubling of it + 1")


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("have an offset, such as 1, with which", {"log": [0, 35]}),
        ("have an offset, such as 1, with which", {"log": [-5, 35], "offset": 5}),
        ("have an offset, such as 1, with which", {"log": [0, 35], "offset": math.inf}),
        ("have an offset, such as 1, with which", {"log": [0, 35], "offset": math.nan}),
        ("have an offset, such as 1, with which", {"log": [0, 35], "offset": 1e20}),
        ("have a number as offset", {"log": [1, 35], "offset": "1"}),
        ("have a number as offset", {"log": [1, 35], "offset": True}),
        ("have two finite bounds", {"log": [35, 1]}),
        ("have log as a list", {"log": 35}),
        ("have text as unit", {"log": [1, 35], "unit": 1}),
        ("have as per a positive number, at most", {"log": [1, 8], "per": 3.1}),
        ("have as spread a positive number, at most", {"log": [1, 8], "spread": 2.1}),
        ("have a typical value that is within", {"log": [1, 8], "typical": 0}),
    ],
)
def test_a_logarithm_that_does_not_exist_is_refused(said, wrong):
    with pytest.raises((ValueError, TypeError), match=rf"columns\['x'\] must {said}"):
        PublicColumns({"x": wrong})._check()
    with pytest.raises((ValueError, TypeError), match=r"columns\['x'\]"):
        PublicColumns({"x": wrong}).transform(pd.DataFrame({"x": [1.0]}))


def test_a_file_may_state_all_of_it(tmp_path):
    path = tmp_path / "columns.toml"
    path.write_text(
        "[columns]\nnodes = { log = [0, 35], offset = 1, typical = 1, spread = 0.9 }\n"
        'stage = { categories = ["I", "II"], prevalence = [0.2, 0.8] }\n'
        "treated = { boolean = true, prevalence = 0.1 }\n"
    )
    stage = {"categories": ["I", "II"], "prevalence": [0.2, 0.8]}
    nodes = {"log": [0, 35], "offset": 1, "typical": 1, "spread": 0.9}
    same = {"nodes": nodes, "stage": stage, "treated": STATED["treated"]}
    assert PublicColumns.from_toml(path)._kinds() == PublicColumns(same)._kinds()
