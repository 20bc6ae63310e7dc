"""A published model without this package: formulas compute what the package predicts."""

import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.exceptions import NotFittedError

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    HybridMEstimator,
    PrivacyGuarantee,
    PublicColumns,
    Release,
)
from skdpsurv.data.feature import Expression, Feature, raw_features
from skdpsurv.data.natural_spline import natural_basis
from skdpsurv.release.script import formula_of
from skdpsurv.report.explain import units_of
from tests.support.extensions import extension

ODD = 'a "quoted\\" größe\n# x'
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


def column(name):
    return Expression("column", numbers=(name,))


AGE, SEX, LAB, DAY, TIME, CLIP = map(column, ("age", "sex", ODD, "first day", "time", "clip"))
FILLED = Expression("fill", (Expression("clip", (LAB,), (0.1, 1e16)),), (0.1,))
MALE = Expression("is", (SEX,), ("male",))
SCALED = Expression("scale", (Expression("clip", (CLIP,), (-2.0, 2.0)),), (0.0, 2.0))
NORMED = [Expression("fill", (of,), (0,)) for of in (AGE, TIME, CLIP)]


def shares(norm):
    size = Expression("norm", tuple(NORMED), (norm,))
    return [Expression("share", (part, size)) for part in NORMED]


EXPRESSIONS = [
    Expression("fill", (Expression("scale", (AGE,), (50.0, 25.0)),), (0.0,)),
    Expression("missing", (AGE,)),
    Expression("is", (SEX,), ("female",)),
    Expression("is", (SEX,), ('not "said\\', )),
    Expression("missing", (SEX,)),
    FILLED,
    Expression("fill", (Expression("scale", (Expression("days", (DAY,), ("2001-12-31",)),),
                                   (-10.5, 1 / 3)),), (-0.25,)),
    Expression("above", (AGE,), (64.5,)),
    Expression("is", (TIME,), (3,)),
    Expression("product", (NORMED[0], NORMED[1])),
    Expression("product", (FILLED, Expression("product", (NORMED[0], MALE)))),
    Expression("product"),
    Expression("scale", (Expression("product", (NORMED[1], NORMED[2])),), (0, 1)),
    Expression("clip", (CLIP,), (-math.inf, 2.5)),
    Expression("scale", (Expression("log", (Expression("clip", (TIME,), (0.0, 3.5)),), (1.0,)),),
               (0.75, 0.75)),
    Expression("log", (Expression("clip", (CLIP,), (0.25, 2.5)),), (-1 / 8,)),
    Expression("log", (Expression("clip", (CLIP,), (0.25, 2.5)),)),
    Expression("power", (Expression("clip", (CLIP,), (0.25, 2.5)),), (-1.5,)),
    *(Expression("spline", (SCALED,), numbers) for numbers in natural_basis((-0.25, 0.5))),
    *shares("l1"), *shares("l2"), *shares("max"),
]  # fmt: skip
FEATURES = [Feature(f"feature\n{k}", e) for k, e in enumerate(EXPRESSIONS)]
N_FEATURES = len(FEATURES)


@pytest.fixture(scope="module")
def table():
    rng, n = np.random.default_rng(0), 60
    labels = np.array(["female", "male", 'not "said\\', None, "other"], dtype=object)
    days = pd.Timestamp("2001-12-01") + pd.to_timedelta(rng.integers(0, 60, n), "D")
    x = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(50, 40, n)),
            "sex": labels[rng.integers(0, 5, n)],
            ODD: np.where(rng.random(n) < 0.2, np.nan, rng.normal(0, 1, n)),
            "first day": days.where(rng.random(n) < 0.8),
            "time": rng.integers(0, 5, n).astype(float),
            "clip": rng.normal(0, 3, n),
        }
    )
    x.loc[0, ["age", "time", "clip"]] = 0.0  # of norm 0
    return x


def values_of(e, x):
    """Compute an expression, in another way than formulas do."""
    of = [values_of(part, x) for part in e.of]
    match e.kind, e.numbers:
        case "column", (name,):
            return x[name].to_numpy()
        case "days", (date,):
            return (pd.Series(of[0]) - pd.Timestamp(date)).dt.days.to_numpy(dtype=float)
        case "clip", (low, high):
            return np.clip(of[0], low, high)
        case "log", offset:
            return np.log(of[0] + sum(offset))
        case "power", (exponent,):
            return of[0] ** exponent
        case "spline", (level, slope, *pairs):
            knots, sizes = np.reshape(pairs, (-1, 2)).T
            return (
                level + slope * of[0] + np.maximum(np.subtract.outer(of[0], knots), 0) ** 3 @ sizes
            )
        case "scale", (centre, half):
            return np.clip((of[0] - centre) / half, -1, 1)
        case "fill", (number,):
            return np.where(np.isnan(of[0]), number, of[0])
        case "missing", ():
            return pd.isna(of[0]).astype(float)
        case "is", (label,):
            return np.array([v == label for v in of[0]], dtype=float)
        case "above", (threshold,):
            return (of[0] > threshold).astype(float)
        case "product", ():
            return np.prod([np.ones(len(x)), *of], axis=0)
        case "norm", (norm,):
            return np.linalg.norm(np.array(of), {"l1": 1, "l2": 2, "max": np.inf}[norm], axis=0)
        case "share", ():
            return of[0] / np.where(of[1] < 2.2e-15, 1.0, of[1])
    raise AssertionError(e.kind)


@pytest.fixture(scope="module")
def matrix(table):
    return np.column_stack([values_of(e, table) for e in EXPRESSIONS])


MEANINGS = {
    "inf": np.inf,
    "clip": np.clip,
    "cube": lambda v: np.maximum(v, 0.0) ** 3,
    "fill": lambda v, number: np.where(np.isnan(v), number, v),
    "missing": lambda v: pd.isna(v).astype(float),
    "indicator": lambda v: np.asarray(v, dtype=float),
    "date": np.datetime64,
    "days": lambda v: v / np.timedelta64(1, "D"),
    "l1": lambda *v: np.sum(np.abs(v), axis=0),
    "l2": lambda *v: np.sqrt(np.sum(np.square(v), axis=0)),
    "largest": lambda *v: np.max(np.abs(v), axis=0),
    "nonzero": lambda v: np.where(v < 2.2e-15, 1, v),
    "expit": special.expit,
    "log_expit": special.log_expit,
    "log": np.log,
    "normal_cdf": special.ndtr,
    "exp": np.exp,
    "min": np.minimum,
    "max": np.maximum,
    "where": np.where,
    "integers": lambda a, b: range(a, b + 1),
    "product": lambda factors: np.prod(list(factors), axis=0),
}


def run_text(model, table, features=FEATURES):
    """Run text as Python, in which a definition needs some more words."""
    text = formula_of(model, features)
    code = re.sub(r"^(\w+\([\w, ]+\)) = (.+(?:\n .+)*)", r"def \1: return (\2)", text, flags=re.M)
    names = {name: table[name].to_numpy() for name in table}
    scope = {name: value for name, value in names.items() if name.isidentifier()}
    scope |= {"__builtins__": {}, "x": names, **MEANINGS}
    exec(code, scope)
    return scope


RNG = np.random.default_rng(1)


def released(estimator, parameters, values, n_features=N_FEATURES):
    release = Release(estimator, PrivacyGuarantee(1.0), parameters, values, n_features)
    return release.to_estimator()


def survival_model(
    link="logit", n_knots=4, n_intervals=12, n_features=N_FEATURES, recalibrated=False
):
    parameters = {"max_time": 5.3, "n_intervals": n_intervals, "n_knots": n_knots, "link": link}
    baseline = [-2.0, -1 / 3, 1.5, 0.7, -0.4][:n_knots]
    values = {"coef": RNG.normal(0, 0.2, n_features), "baseline_coef": baseline}
    if recalibrated:
        values["recalibration_slope"] = 0.37
        values["recalibration_knots"] = [0.0, 0.004, 0.3, 0.31, 1.0]
        values["recalibration_shift"] = [0.5, -0.2, 0.1, 0.4, -0.3]
    return released("DPDiscreteTimeSurvival", parameters, values, n_features)


def logistic_model(classes, cap=1.0, n_features=N_FEATURES, slope=None):
    n_outputs = len(classes) if len(classes) > 2 else 1
    values = {
        "coef": RNG.normal(0, 0.3, (n_outputs, n_features)),
        "intercept": RNG.normal(size=n_outputs),
        "max_residual": cap,
        **({} if slope is None else {"recalibration_slope": slope}),
    }
    return released("DPLogisticRegression", {"classes": classes}, values, n_features)


def stack(combiner, classes, partition="features"):
    n_outputs, everything = len(classes) if len(classes) > 2 else 1, tuple(range(N_FEATURES))
    parameters = {"partition": partition, "n_partitions": 2}
    parameters |= {"combiner": combiner, "classes": classes}
    parts = [everything] * 2
    if partition == "features":
        parts = [everything[1::2], everything[::2]]
        parameters |= {"feature_groups_": parts, "weights_": [0.75, 0.25]}
    values = {
        "low_level_intercept": RNG.normal(size=(2, n_outputs)),
        "low_level_coef_0": RNG.normal(0, 0.3, (n_outputs, len(parts[0]))),
        "low_level_coef_1": RNG.normal(0, 0.3, (n_outputs, len(parts[1]))),
        "max_residual": [0.7],
    }
    if combiner == "logistic":
        values["max_residual"] = [0.7, 1.0]
        values["high_level_coef"] = RNG.normal(size=(n_outputs, 2))
        values["high_level_intercept"] = RNG.normal(size=n_outputs)
    return released("PrivateStackingClassifier", parameters, values)


def test_features_of_raw_rows(table, matrix):
    scope = run_text(survival_model(), table)
    for place, wanted in enumerate(matrix.T):
        values = np.broadcast_to(scope[f"z{place + 1}"], len(table))
        np.testing.assert_allclose(values, wanted, rtol=1e-14, atol=1e-14 * np.abs(wanted).max())


@pytest.mark.parametrize("link", ["logit", "cloglog", "probit"])
@pytest.mark.parametrize("recalibrated", [False, True])
@pytest.mark.parametrize(("n_knots", "n_intervals"), [(1, 1), (1, 12), (2, 12), (5, 12)])
def test_survival(table, matrix, link, n_knots, n_intervals, recalibrated):
    model = survival_model(link, n_knots, n_intervals, recalibrated=recalibrated)
    times = np.array([0.0, 5.3, 0.1, *model.unique_times_, *np.nextafter(model.unique_times_, 0)])
    wanted = np.array([[f(t) for t in times] for f in model.predict_survival_function(matrix)])
    scope = run_text(model, table)
    np.testing.assert_allclose(scope["score"], model.predict(matrix), **CLOSE)
    for place, time in enumerate(times):
        survival = np.broadcast_to(scope["survival"](time), len(table))
        np.testing.assert_allclose(survival, wanted[:, place], **CLOSE)


CLASSIFIERS = {
    "two": lambda: logistic_model(["no", 'y"es']),
    "two, steep": lambda: logistic_model([0, 1], 1.0, slope=2.5),
    "two, capped and steep": lambda: logistic_model([0, 1], 0.5, slope=2.5),
    "three, capped and steep": lambda: logistic_model([0, 1, 2], 0.7, slope=4.0),
    "two, capped and flat": lambda: logistic_model([0, 1], 0.5, slope=0.1),
    "two, flat": lambda: logistic_model([0, 1], 1.0, slope=0.3),
    "one": lambda: logistic_model([True]),
    "three": lambda: logistic_model([0.5, 1, 2]),
    "three, capped": lambda: logistic_model(["a\nb", "b", "\u2028\U000e0001"], 0.8),
    "weighted vote of two": lambda: stack("weighted_vote", [False, True]),
    "vote of three": lambda: stack("vote", ["a", "b", "c"]),
    "stack of two": lambda: stack("logistic", [False, True]),
    "stack of three": lambda: stack("logistic", ["a", "b", "c"]),
    "samples": lambda: stack("logistic", [0, 1], "samples"),
}


@pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classes(table, matrix, make):
    model = make()
    likely, score = model.predict_proba(matrix), model.decision_function(matrix)
    n_classes = model.classes_.size
    endings = [f"_{k + 1}" for k in range(n_classes)] if n_classes > 2 else [""]
    likely = likely if n_classes > 2 else likely[:, -1]
    scope = run_text(model, table)
    for ending, s, p in zip(endings, np.atleast_2d(score.T), np.atleast_2d(likely.T), strict=True):
        np.testing.assert_allclose(scope[f"score{ending}"], s, **CLOSE)
        found = np.broadcast_to(scope[f"probability{ending}"], s.shape)
        np.testing.assert_allclose(found, p, **CLOSE)


GUIDE = Path(__file__).parents[1] / "docs/user_guide/read_release.R"


@pytest.mark.slow
def test_r_reads_a_release_as_the_guide_says(tmp_path):
    has_r = shutil.which("Rscript")
    if not has_r or subprocess.run(["Rscript", "-e", "library(jsonlite)"]).returncode:
        pytest.skip("needs R with jsonlite")
    columns = PublicColumns({"age": (18, 100), "stage": ["I", "II", "III"], "smoker": bool})
    rows = pd.DataFrame({"age": np.linspace(10, 110, 60), "stage": ["I", "II", "III"] * 20})
    rows = rows.assign(smoker=np.arange(60) % 4 == 0)
    model = DPDiscreteTimeSurvival(epsilon=5.0, max_time=7.0, columns=columns, n_intervals=5)
    model.fit(rows, (np.arange(60) % 2 == 0, np.linspace(0.1, 7.0, 60)))
    model.release_.save(tmp_path / "model.json")
    texts = rows.assign(smoker=rows["smoker"].map({True: "TRUE", False: "FALSE"}))
    texts.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "run.R").write_text(
        f'source("{GUIDE.as_posix()}")\nx <- read.csv("rows.csv")\n'
        "write(format(t(cbind(score(x), survival(x))), digits = 15), stdout(), ncolumns = 6)\n"
    )
    run = subprocess.check_output(["Rscript", "run.R"], cwd=tmp_path, text=True)
    survival = model.predict_survival_function(rows, return_array=True)
    found = np.loadtxt(run.splitlines())
    np.testing.assert_allclose(found, np.column_stack([model.predict(rows), survival]), **CLOSE)


def test_classes_of_which_none_is_likely():
    model, table = logistic_model([0, 1, 2], n_features=1), pd.DataFrame({"x1": [1.0, 0.0]})
    model.coef_[:], model.intercept_[:] = -800.0, 0.0
    wanted = model.predict_proba(table.to_numpy())
    assert wanted[0].tolist() == [1 / 3] * 3
    with np.errstate(invalid="ignore"):
        scope = run_text(model, table, raw_features(["x1"]))
    np.testing.assert_allclose(scope["probability_2"], wanted[:, 1], **CLOSE)


class DPPoissonRegressor(extension("poisson").DPPoissonRegressor):
    def _mean_formula(self):
        return f"exp(min(score, {math.log(self.largest_count)!r}))"


def test_linear_model(table, matrix):
    model = DPPoissonRegressor(epsilon=5.0, largest_count=5).fit(matrix, np.arange(60) % 4)
    scope = run_text(model, table)
    np.testing.assert_allclose(scope["score"], matrix @ model.coef_ + model.intercept_, **CLOSE)
    np.testing.assert_allclose(scope["mean_outcome"], model.predict(matrix), **CLOSE)
    in_twos = units_of(model, [Feature(f.name, f.expression, per_unit=2) for f in FEATURES])
    np.testing.assert_array_equal(in_twos["coef"], 2 * model.coef_)


def test_weibull_has_no_columns():
    model = DPWeibullFitter(max_time=10.0).fit(np.arange(1.0, 9.0))
    times = np.array([0.0, 1e-3, 2.0, 9.0, 1e6])
    scope = run_text(model, pd.DataFrame(), [])
    np.testing.assert_allclose(scope["survival"](times), model.predict(times), **CLOSE)


ODD_NAMES = ["größe", "z1", "n2", "score", "hazard", "lambda", "x", "a b", "\t", "ﬁ", "名", "'"]


@pytest.mark.parametrize("name", [ODD, *ODD_NAMES])
def test_odd_names(name):
    model, table = survival_model(n_features=2), pd.DataFrame({name: [1.0, 2], "other": [3.0, 4]})
    scope = run_text(model, table, raw_features([name, "other"]))
    np.testing.assert_allclose(scope["score"], model.predict(table.to_numpy()))


def test_refusals():
    model, age = survival_model(n_features=2), Feature("age", AGE, per_unit=1.0)
    poisson = extension("poisson").DPPoissonRegressor().fit(np.zeros((5, 1)), np.arange(5))
    hybrid = HybridMEstimator()
    hybrid.release_ = Release("HybridMEstimator", PrivacyGuarantee(1.0), {}, {}, 1)
    hybrid.guarantee_ = hybrid.release_.guarantee
    weibull = DPWeibullFitter(max_time=10.0).fit(np.arange(1.0, 9.0))
    two = raw_features(["a", "b"])
    length, none = "as many as the estimator has coefficients", "has no coefficients of columns"
    for function, one, features, why in (
        (formula_of, model, two[:1], length),
        (formula_of, model, [Feature("a", Expression("bent", (AGE,))), age], "got 'bent'"),
        (formula_of, poisson, two[:1], "_mean_formula"),
        (formula_of, hybrid, two, "HybridMEstimator has no formula"),
        (units_of, hybrid, two, "HybridMEstimator has no coefficients"),
        (units_of, model, [age, Feature("age sex", Expression("product"))], "none: 'age sex'"),
        (units_of, model, [age], length),
        (units_of, stack("vote", [0, 1]), [age], none),
        (units_of, weibull, [age], none),
    ):
        with pytest.raises(ValueError, match=why):
            function(one, features)
    with pytest.raises(NotFittedError):
        formula_of(DPLogisticRegression(), [])


def test_units():
    features = [
        Feature("age", AGE, column="age", per_unit=1 / 25, unit="a"),
        Feature("missing_age", Expression("missing", (AGE,)), column="age", per_unit=1.0),
        Feature("sex_f", Expression("is", (SEX,), ("f",)), column="sex", level="f", per_unit=1.0),
        Feature("sex_0", Expression("is", (SEX,), (0,)), column="sex", level=0, per_unit=2.0),
    ]
    per_unit = [1 / 25, 1, 1, 2]
    model = survival_model(n_features=4)
    table = units_of(model, features)
    assert table.index.tolist() == [("age", ""), ("age", "missing"), ("sex", "f"), ("sex", 0)]
    assert table.index.names == ["column", "level"]
    np.testing.assert_allclose(table["coef"], model.coef_ * per_unit)
    np.testing.assert_allclose(table["exp(coef)"], np.exp(table["coef"]))
    assert table["unit"].tolist() == ["a", "", "against reference", "against reference"]
    several = logistic_model(["a", "b", "c"], n_features=4)
    table = units_of(several, features)
    assert table.index.names == ["class", "column", "level"]
    np.testing.assert_allclose(table.loc["b", "coef"], several.coef_[1] * per_unit)
    two = units_of(logistic_model([0, 1], n_features=4), features)
    assert two.index.names == ["column", "level"]
    model.coef_[:] = 1e4
    assert units_of(model, features)["exp(coef)"].iloc[1] == math.inf
