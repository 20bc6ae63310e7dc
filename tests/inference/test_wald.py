"""Joint Wald tests: their statistic, what they are of, and how often they are wrong."""

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from lifelines import CoxPHFitter
from scipy import special, stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    PrivacyAccountant,
    PublicColumns,
    Release,
)
from skdpsurv.cli.printing import result_lines
from skdpsurv.data.feature import Expression, Feature, product_of, raw_features
from skdpsurv.inference.wald import known_directions, places_of, terms_of, wald_test
from skdpsurv.report.coefficients import coefficients
from tests.support.coverage import miss_rarely
from tests.support.weibull import target

MAX_TIME, LABELS = 10.0, "abc"
NAMES = [f"x{j}" for j in range(5)]


def covariance(seed, size=5):
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T + 0.1 * np.eye(size)


def people(n, seed, effect=(0.0, 0.3, -0.2), product=0.3):
    """Columns that are correlated, labels and times of events."""
    rng = np.random.default_rng(seed)
    label = np.searchsorted([0.5, 0.8], rng.random(n))
    age = np.clip(50.0 + 10.0 * (label == 1) + rng.normal(0.0, 12.0, n), 20.0, 80.0)
    score = np.array(effect)[label] + (0.6 + product * (label == 1)) * (age - 50.0) / 30.0
    X = pd.DataFrame({"arm": np.array(list(LABELS))[label], "age": age})
    time = rng.exponential(8.0 * np.exp(-score))
    last = np.minimum(rng.exponential(15.0, n), MAX_TIME)
    labelled = (rng.random(n) < special.expit(score - 0.3)).astype(int)
    return X, labelled, target(time <= last, np.minimum(time, last))


def columns(order=LABELS):
    return PublicColumns({"arm": list(order), "age": (20.0, 80.0)})


def with_products(order=LABELS):
    return make_pipeline(columns(order), PolynomialFeatures(interaction_only=True))


def logistic(epsilon, described, seed=0, **changes):
    options = {"classes": [0, 1], "inference_share": 0.3, "columns": described, **changes}
    return DPLogisticRegression(epsilon, random_state=seed, **options)


def hazards(epsilon, described, seed=0, **changes):
    options = {"link": "cloglog", "inference_share": 0.3, "columns": described, **changes}
    return DPDiscreteTimeSurvival(epsilon, max_time=MAX_TIME, random_state=seed, **options)


@cache
def fitted():
    X, _, y = people(4000, 0)
    return hazards(3.0, columns()).fit(X, y)


class TestStatistic:
    def test_is_of_the_precision_without_the_others(self):
        """The Schur complement of the whole precision, and not a part of it."""
        whole, estimate = covariance(0), np.random.default_rng(1).normal(size=5)
        precision, own, others = np.linalg.inv(whole), np.s_[:2], np.s_[2:]
        schur = precision[own, own] - precision[own, others] @ np.linalg.solve(
            precision[others, others], precision[others, own]
        )
        test = wald_test(estimate[own], whole[own, own], np.ones(2, dtype=bool), NAMES[:2])
        expected = estimate[own] @ schur @ estimate[own]
        assert test.test_statistic == pytest.approx(expected, rel=1e-12)
        assert test.p_value == pytest.approx(stats.chi2.sf(expected, 2), rel=1e-12)
        assert (test.degrees_of_freedom, test.tested) == (2, ("x0", "x1"))
        wrong = estimate[own] @ precision[own, own] @ estimate[own]
        assert wrong > 1.1 * expected

    def test_of_one_coefficient_is_z_squared(self):
        model = fitted()
        for name, row in model.summary.iterrows():
            test = model.test(name)
            assert test.test_statistic == pytest.approx(row["z"] ** 2, rel=1e-9)
            assert test.p_value == pytest.approx(row["p"], rel=1e-9)

    def test_what_noise_hides_has_any_value(self):
        """As if its variance were without end."""
        whole, estimate = covariance(2), np.random.default_rng(3).normal(size=5)
        known = np.array([True, False, True, True, False])
        test = wald_test(estimate, whole, known, NAMES)
        wide = np.linalg.inv(whole + 1e12 * np.diag(~known))
        assert test.test_statistic == pytest.approx(estimate @ wide @ estimate, rel=1e-6)
        assert (test.tested, test.hidden) == (("x0", "x2", "x3"), ("x1", "x4"))
        assert test.degrees_of_freedom == 3

    def test_directions_do_not_depend_on_estimates(self):
        whole, known = covariance(4), np.array([True, True, False, True, False])
        tests = [
            wald_test(np.full(5, size), whole, known, NAMES) for size in (0.0, 1.0, -1e9, 1e-300)
        ]
        assert {(t.degrees_of_freedom, t.tested, t.hidden) for t in tests} == {
            (3, ("x0", "x1", "x3"), ("x2", "x4"))
        }
        assert tests[0].p_value == 1.0  # a test, whose estimates are 0

    def test_nothing_known_is_no_test(self, capsys):
        test = wald_test(np.ones(2), covariance(5, 2), np.zeros(2, dtype=bool), ["a", "b"])
        assert math.isnan(test.test_statistic)
        assert math.isnan(test.p_value)
        assert (test.degrees_of_freedom, test.tested, test.hidden) == (0, (), ("a", "b"))
        test.print_summary()
        said = capsys.readouterr().out
        assert "no test" in said
        assert "a, b" in said

    def test_degrees_of_freedom_are_the_rank(self):
        root = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
        estimate = root @ [0.5, -1.0]
        test = wald_test(estimate, root @ root.T, np.ones(3, dtype=bool), NAMES[:3])
        assert test.degrees_of_freedom == 2
        assert test.test_statistic == pytest.approx(1.25, rel=1e-6)
        flat = wald_test(np.ones(2), np.diag([1.0, 0.0]), np.ones(2, dtype=bool), ["a", "b"])
        assert (flat.test_statistic, flat.tested) == (1.0, ("a",))

    @pytest.mark.parametrize("size", [1e-300, 1e300, 1.7e308])
    @pytest.mark.parametrize("variance", [1e-300, 1.0, 1.7e308])
    def test_the_largest_numbers_of_a_file_have_finite_tests(self, size, variance):
        hidden = np.full((3, 3), 1.0 / 3.0)
        for known, directions in (([True] * 3, None), ([False] * 3, hidden)):
            estimates = np.array([size, -size, 0.0]), variance * np.eye(3), np.array(known)
            found = wald_test(*estimates, NAMES[:3], directions)
            assert math.isfinite(found.test_statistic)
            assert found.degrees_of_freedom > 0
            assert (found.p_value < 0.05) == (size / math.sqrt(variance) > 3.0)

    def test_units_and_reference_do_not_matter(self):
        whole, estimate = covariance(6, 3), np.random.default_rng(7).normal(size=3)
        known = np.ones(3, dtype=bool)
        first = wald_test(estimate, whole, known, NAMES[:3])
        reference = np.array([[-1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
        for change in (np.diag([1e-8, 1e9, 3.0]), reference):
            other = wald_test(change @ estimate, change @ whole @ change.T, known, NAMES[:3])
            assert other.test_statistic == pytest.approx(first.test_statistic, rel=1e-7)


class TestHiddenDirections:
    """A rare reference hides each label's effect, and not their differences."""

    HIDDEN = np.full((3, 3), 1.0 / 3.0)

    def test_what_is_left_is_tested(self):
        whole, estimate = covariance(8, 3), np.random.default_rng(9).normal(size=3)
        scale = np.array([1.0, 2.0, 8.0])
        none = np.zeros(3, dtype=bool)
        found = wald_test(estimate, whole, none, NAMES[:3], self.HIDDEN, scale)
        direction = 1e6 / scale
        wide = np.linalg.inv(whole + np.outer(direction, direction))
        assert found.test_statistic == pytest.approx(estimate @ wide @ estimate, rel=1e-5)
        assert found.degrees_of_freedom == 2
        assert len(set(found.tested)) == 2
        assert found.hidden == ("x0", "x1", "x2")

    def test_are_named(self):
        rows = known_directions(np.zeros(3, dtype=bool), self.HIDDEN, np.array([1.0, 2.0, 8.0]))
        assert rows @ (1.0 / np.array([1.0, 2.0, 8.0])) == pytest.approx(np.zeros(2), abs=1e-12)
        test = wald_test(
            np.ones(3), np.eye(3), np.zeros(3, dtype=bool), ["b", "c", "d"], self.HIDDEN
        )
        one, other = (set(text.split(" - ")) for text in test.tested)
        assert len(one) == len(other) == 2
        assert len(one & other) == 1

    def test_known_ones_are_tested_whatever_their_small_parts(self):
        """As in a summary: their covariance allows for these."""
        known, hidden = np.array([True, False, False]), np.diag([0.03, 0.97, 0.0])
        test = wald_test(np.ones(3), np.eye(3), known, ["b", "c", "d"], hidden)
        assert (test.tested, test.hidden) == (("b",), ("c", "d"))
        every = wald_test(
            np.ones(3), np.eye(3), np.zeros(3, dtype=bool), ["b", "c", "d"], np.eye(3)
        )
        assert every.degrees_of_freedom == 0

    @pytest.mark.parametrize("make", [logistic, hazards])
    def test_of_a_rare_reference(self, make):
        """The reference has 0.2 % of people: a and b differ, and nobody differs from "rare"."""
        X, y, times = people(6000, 4, effect=(0.5, -0.5, 0.0), product=0.0)
        X["arm"] = np.where(np.arange(6000) < 12, "rare", X["arm"])
        described = PublicColumns({"arm": ["rare", *LABELS], "age": (20.0, 80.0)})
        model = make(3.0, described).fit(X, y if make is logistic else times)
        test = model.test("arm")
        assert (test.degrees_of_freedom, test.p_value < 1e-6) == (2, True)
        assert test.hidden == ("arm_a", "arm_b", "arm_c")
        assert all(" - " in name for name in test.tested)
        again = Release.from_json(model.release_.to_json()).to_estimator()
        assert again.test("arm") == test
        assert model.test("arm_a").degrees_of_freedom == 0


class TestTerms:
    def test_are_columns_and_products(self):
        arm, age = Expression("column", numbers=("arm",)), *raw_features(["age"])
        b, c = (
            Feature(f"arm_{x}", Expression("is", (arm,), (x,)), column="arm", level=x) for x in "bc"
        )
        squared, norm = product_of("age^2", [age, age]), Expression("norm", (arm,), ("l2",))
        mixed = Feature("mixed", Expression("share", (age.expression, norm)))
        bias = product_of("1", [])
        pairs = [product_of(f"{one.name} age", [one, age]) for one in (b, c)]
        features = [bias, b, c, age, *pairs, squared, mixed]
        terms = terms_of(features)
        expected = {"1": [0], "arm": [1, 2], "age": [3], "arm:age": [4, 5], "age^2": [6]}
        assert terms == expected | {"mixed": [7]}
        for names, places in (
            ("arm", [1, 2]),
            (["age:arm", "arm_b"], [1, 4, 5]),
            ({"arm_c age"}, [5]),
            (iter(["age", "age", "arm:age"]), [3, 4, 5]),
            (None, list(range(8))),
        ):
            assert places_of(names, features) == places
        with pytest.raises(ValueError, match=r"'arm', 'age', 'arm:age'.*got 'sex'"):
            places_of(["age", "sex"], features)
        with pytest.raises(ValueError, match="at least"):
            places_of([], features)

    def test_a_table_of_them(self, capsys):
        model = fitted()
        terms = model.test_terms()
        assert terms.index.name == "term"
        assert terms["df"].to_dict() == {"arm": 2, "age": 1}
        for name, row in terms.iterrows():
            test = model.test(name)
            assert (test.test_statistic, test.p_value) == (row["chi2"], row["p"])
        model.print_summary()
        assert "Wald tests that all coefficients of a term are 0" in capsys.readouterr().out

    def test_report_and_terminal_have_it(self):
        model = fitted()
        shown = coefficients(model.release_, model)
        table = shown["tables"][-1]
        assert [row[:2] for row in table.rows] == [["arm", "2"], ["age", "1"]]
        numbers = {(one.quantity, one.group): one.estimate for one in shown["numbers"]}
        assert numbers["p of Wald test", "arm"] == model.test("arm").p_value
        titles = [getattr(line, "title", None) for line in result_lines(model.release_)]
        assert "Wald tests that a term has no effect" in titles

    def test_what_noise_hides_is_named_and_is_no_number(self):
        X, _, y = people(400, 0)
        model = hazards(1.0, columns()).fit(X, y)
        assert not model.inference_.known[-3:].any()
        terms = model.test_terms()
        assert terms["df"].tolist() == [0, 0]
        assert terms[["chi2", "p"]].isna().all(axis=None)
        assert terms.loc["arm", "hidden"] == "arm_b, arm_c"
        shown = coefficients(model.release_, model)
        assert shown["tables"][-1].rows[0] == ["arm", "0", "", "no test", "arm_b, arm_c"]
        assert not any("Wald" in one.quantity for one in shown["numbers"])


class TestFromTheReleaseAlone:
    def test_it_costs_nothing(self):
        accountant = PrivacyAccountant(epsilon=10.0, rehearsal=True)
        X, _, y = people(4000, 1)
        model = hazards(3.0, columns(), accountant=accountant).fit(X, y)
        before = len(accountant.entries())
        model.test("arm")
        model.test_terms()
        assert len(accountant.entries()) == before

    def test_the_same_after_a_round_trip(self):
        model = fitted()
        again = Release.from_json(model.release_.to_json()).to_estimator()
        assert again.test(["arm", "age"]) == model.test(["arm", "age"])
        pd.testing.assert_frame_equal(again.test_terms(), model.test_terms())

    def test_without_standard_errors_there_is_none(self):
        X, _, y = people(400, 2)
        model = hazards(3.0, columns(), inference_share=0.0).fit(X, y)
        for ask in (model.test, model.test_terms):
            with pytest.raises(ValueError, match="inference_share must be positive"):
                ask()


class TestWithoutNoise:
    """An epsilon of 1e5, and bounds that no row passes: then all is that of maximum likelihood."""

    @pytest.mark.parametrize("order", ["abc", "cab", "bca"])
    def test_log_odds_are_those_of_statsmodels(self, order):
        X, y, _ = people(20_000, 0)
        described = with_products(order)
        model = logistic(1e5, described, data_norm=3.0).fit(X, y)
        rows = described.fit(X).transform(X)
        kept = [j for j in range(rows.shape[1]) if rows[:, j].std() > 0.0]
        exact = sm.Logit(y, sm.add_constant(rows[:, kept])).fit(disp=0)
        features = model.release_.features
        for names in ("arm", "age", "arm:age", ["arm", "arm:age"], ["age", "arm:age"]):
            places = [1 + kept.index(j) for j in places_of(names, features)]
            theirs = exact.wald_test(np.eye(len(kept) + 1)[places], scalar=True)
            test = model.test(names)
            assert test.degrees_of_freedom == theirs.df_denom == len(places)
            assert test.test_statistic == pytest.approx(theirs.statistic, rel=0.12)

    @pytest.mark.slow
    def test_hazards_are_those_of_lifelines(self):
        X, _, y = people(20_000, 0)
        described = with_products()
        model = hazards(1e5, described, data_norm=3.0).fit(X, y)
        rows = described.fit(X).transform(X)
        kept = [j for j in range(rows.shape[1]) if rows[:, j].std() > 0.0]
        frame = pd.DataFrame(rows[:, kept]).assign(time=y["time"], event=y["event"])
        cox = CoxPHFitter().fit(frame, "time", "event")
        for names in ("arm", "age", "arm:age", ["arm", "arm:age"]):
            at = [kept.index(j) for j in places_of(names, model.release_.features)]
            part = cox.variance_matrix_.to_numpy()[np.ix_(at, at)]
            coef = cox.params_.to_numpy()[at]
            theirs = coef @ np.linalg.solve(part, coef)
            assert model.test(names).test_statistic == pytest.approx(theirs, rel=0.12)

    def test_the_reference_category_does_not_matter(self):
        X, y, times = people(20_000, 3, product=0.0)
        for make, outcome in ((logistic, y), (hazards, times)):
            found = [
                make(1e5, columns(order), data_norm=3.0).fit(X, outcome).test("arm").test_statistic
                for order in ("abc", "bca", "cab")
            ]
            assert min(found) > 20.0
            assert max(found) < 1.05 * min(found)


@pytest.mark.slow
@pytest.mark.parametrize("make", [logistic, hazards])
def test_level(make):
    """Of a category without effect beside a correlated column; a false alarm is one in 2e6."""

    def rejected(seed):
        X, y, times = people(4000, seed, effect=(0.0, 0.0, 0.0), product=0.0)
        model = make(3.0, columns(), seed=seed).fit(X, y if make is logistic else times)
        test = model.test("arm")
        assert test.degrees_of_freedom == 2
        return test.p_value < 0.05

    assert miss_rarely(rejected, 0.06, 0.12)


def test_a_column_named_as_a_product_is_none():
    a, b, both = raw_features(["a", "b", "a:b"])
    features = [a, b, both, product_of("a b", [a, b])]
    assert terms_of(features) == {"a": [0], "b": [1], "`a:b`": [2], "a:b": [3]}
    assert places_of("b:a", features) == [3]
    for name in ("a:a", "b:b:b"):
        with pytest.raises(ValueError, match="columns must be names of terms"):
            places_of(name, features)
