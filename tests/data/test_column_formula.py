"""Descriptions of columns from a formula: an allow-list, of which nothing is evaluated."""

import sys

import pytest

from skdpsurv import PublicColumns

pytest.importorskip("formulaic")

BOUNDS = {
    "nodes": {"bounds": (0, 35), "unit": "nodes", "typical": 1},
    "age": (20, 80),
    "treat": bool,
    "bmi": (15, 60),
    "site": ["a", "b", "c"],
    "my column": (0, 1),
    "unused": (0, 1),
}


def described(formula):
    return {
        one.pop("name"): one
        for one in PublicColumns.from_formula(formula, BOUNDS)._described()["columns"]
    }


def test_terms_are_specifications():
    found = described("log(nodes + 1) + age * treat + spline(bmi, 3) + site")
    assert list(found) == ["nodes", "age", "treat", "bmi", "site", "age:treat"]
    assert found["nodes"]["log"] == [0.0, 35.0]
    assert (found["nodes"]["offset"], found["nodes"]["unit"]) == (1.0, "nodes")
    assert found["nodes"]["typical"] == 1
    assert found["bmi"]["df"] == 3
    assert found["age:treat"] == {"interaction": ["age", "treat"]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("log(nodes + 1)", "log(nodes, 1)"),
        ("log(nodes + 1)", "log(nodes, offset=1)"),
        ("log(age - 5)", "log(age, -5)"),
        ("power(age, 2)", "power(age, exponent=2)"),
        ("spline(bmi)", "spline(bmi, df=3)"),
        ("spline(bmi, 3, [30, 40])", "spline(bmi, knots=[30, 40])"),
        ("age + treat + age:treat", "age*treat"),
        ("(age + treat + site)**2", "age*treat + age*site + treat*site"),
        ("spline(bmi, 2) * treat", "spline( bmi,2 ) + treat + spline(bmi, 2):treat"),
        ("1 + age", "age + unused - unused"),
        ("`my column` + age", "age + `my column`"),
    ],
)
def test_ways_of_writing_the_same(one, other):
    first, second = described(one), described(other)
    assert {**first} == {**second}


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("bs(age, 3)", r"nothing may be learnt from records .* got 'bs\(age, 3\)'"),
        ("center(age)", r"got 'center\(age\)'"),
        ("scale(age)", r"got 'scale\(age\)'"),
        ("poly(age, 2):treat", r"got 'poly\(age, 2\)'"),
        ("C(site)", r"got 'C\(site\)'"),
        ("np.log(age)", r"got 'np.log\(age\)'"),
        ("I(age**2)", r"got 'I\(age \*\* 2\)'"),
        ("{age + bmi}", r"got 'age \+ bmi'"),
        ("log(age * 2)", "got 'log"),
        ("log(age + bmi)", "got 'log"),
        ("log(age + 1, 1)", "got 'log"),
        ("log(log(age))", "got 'log"),
        ("spline()", r"got 'spline\(\)'"),
        ("spline(bmi, n)", "got 'spline"),
        ("spline(bmi, 3, [1], 4)", "got 'spline"),
        ("spline(bmi, depth=3)", "got 'spline"),
        ("power(age, power=3)", "got 'power"),
        ("spline(bmi, 9)", r"columns\['bmi'\] must have as df"),
        ("log(nodes)", r"columns\['nodes'\] must have an offset"),
        ("spline(site)", "have spline of a column with bounds, which site is not"),
        ("height", "have columns that bounds describe, got 'height'"),
        ("log(height)", "have columns that bounds describe, got 'height'"),
        ("y ~ age", "have no left side"),
        ("0 + age", "keep the intercept"),
        ("age - 1", "keep the intercept"),
        ("age + log(age)", "have each column in one form, got age in two"),
        ("age:treat", "have age by itself, too, beside age:treat"),
        ("age + treat + spline(age, 2):treat", r"have spline\(age, 2\) by itself"),
        ("age * treat * site", "have products of two columns at most"),
        ("1", "have a column"),
        ("age +", "be sums and products of terms"),
        ("age | treat", "have no parts, as by"),
        ("'age'", "be sums and products of terms"),
        ("__import__('os').system('touch here')", "formula must"),
    ],
)
def test_others_are_refused_by_name(formula, why):
    with pytest.raises(ValueError, match=why):
        PublicColumns.from_formula(formula, BOUNDS)


@pytest.mark.parametrize("name", ["1", "0", "age:treat"])
def test_a_name_that_reads_as_a_term_is_refused(name):
    """It would be dropped, or taken for the product."""
    with pytest.raises(ValueError, match=f"formula must have no column named {name}"):
        PublicColumns.from_formula(f"age * treat + `{name}`", {**BOUNDS, name: (0, 1)})
    PublicColumns.from_formula("age * treat", {**BOUNDS, name: (0, 1)})


@pytest.mark.parametrize("formula", ["`log(age)` + treat", "log(age) + treat"])
def test_a_name_that_reads_as_a_function_is_refused(formula):
    with pytest.raises(ValueError, match=r"formula must have no column named log\(age\)"):
        PublicColumns.from_formula(formula, {**BOUNDS, "log(age)": (0, 1)})
    columns = PublicColumns.from_formula("`age (years)`", {"age (years)": (0, 90)})
    assert columns.get_feature_names_out().tolist() == ["age (years)"]


def test_types_are_refused_and_the_package_is_named(monkeypatch):
    with pytest.raises(TypeError, match="formula must be text"):
        PublicColumns.from_formula(3, BOUNDS)
    with pytest.raises(TypeError, match="bounds must be a mapping"):
        PublicColumns.from_formula("age", [(0, 1)])
    for name in [name for name in sys.modules if name.partition(".")[0] == "formulaic"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"from_formula needs formulaic: .*skdpsurv\[formula\]"):
        PublicColumns.from_formula("age", BOUNDS)


def test_other_parameters_pass_through():
    columns = PublicColumns.from_formula("site", BOUNDS, drop=None)
    assert columns.get_feature_names_out().tolist() == ["site_a", "site_b", "site_c"]
