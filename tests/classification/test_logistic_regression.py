"""DPLogisticRegression: predictions, degenerate data, and what a fit may read, keep and say."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from statsmodels.formula.api import logit

from skdpsurv import DPLogisticRegression, PrivacyAccountant, PrivacyLeakWarning, PublicColumns
from skdpsurv.likelihoods.linear import probability
from skdpsurv.published import PublishedLogisticRegression
from tests.support.estimators import logistic as perturbed

N = 300
METHODS = ("obj_pert", "out_pert")


def model(epsilon=1.0, **parameters):
    make = PublishedLogisticRegression if parameters.pop("published", False) else perturbed
    return make(epsilon, **{"classes": [0, 1], "random_state": 0, **parameters})


def make(n_classes=2, n=N, d=3, seed=0):
    """Rows in the unit ball and labels that follow them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= 1.2 * np.linalg.norm(X, axis=1)[:, None]
    scores = 3.0 * X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@pytest.fixture(scope="module")
def data():
    return make()


@pytest.fixture(scope="module")
def three():
    return make(3)


class TestPredictions:
    def test_binary(self, data):
        X, y = data
        one = model(5.0).fit(X, y)
        scores, p = one.decision_function(X), one.predict_proba(X)
        np.testing.assert_allclose(scores, X @ one.coef_[0] + one.intercept_[0])
        likely = probability(scores, one.max_residual_, one.recalibration_slope_)
        np.testing.assert_allclose(p[:, 1], likely)
        np.testing.assert_array_equal(one.predict(X), p.argmax(axis=1))
        np.testing.assert_allclose(one.predict_log_proba(X), np.log(p))
        assert one.score(X, y) > 0.7

    def test_three_classes(self, three):
        X, y = three
        labels = np.array(["mild", "none", "severe"])
        parameters = {"max_residual": 0.5, "recalibration_share": 0.0}
        one = model(30.0, classes=labels[[2, 0, 1]], **parameters).fit(X, labels[y])
        assert one.classes_.tolist() == labels.tolist()
        scores, p = X @ one.coef_.T + one.intercept_, one.predict_proba(X)
        np.testing.assert_allclose(one.decision_function(X), scores)
        assert one.recalibration_slope_ > 1
        likely = probability(scores, 0.5, one.recalibration_slope_)
        np.testing.assert_allclose(p, likely / likely.sum(axis=1, keepdims=True))
        np.testing.assert_array_equal(one.predict(X), labels[p.argmax(axis=1)])
        assert one.score(X, labels[y]) > 0.5


class TestWithoutPrivacy:
    """epsilon=inf is the penalised fit of scikit-learn."""

    @pytest.mark.parametrize(
        ("alpha", "scaling", "data_norm"), [(1e-2, 0.1, 1.0), (1e-3, 1.0, 0.3)]
    )
    def test_binary(self, data, alpha, scaling, data_norm):
        """Nothing is clipped, too: rows are longer than the second bound."""
        X, y = data
        parameters = {"alpha": alpha, "data_norm": data_norm, "max_residual": 0.5}
        one = model(np.inf, intercept_scaling=scaling, **parameters).fit(X, y)
        theirs = {"solver": "liblinear", "C": 1 / (N * alpha), "tol": 1e-10, "max_iter": 10**4}
        reference = LogisticRegression(intercept_scaling=scaling * data_norm, **theirs).fit(X, y)
        np.testing.assert_allclose(one.coef_, reference.coef_, atol=1e-5)
        np.testing.assert_allclose(one.intercept_, reference.intercept_, atol=1e-5)
        np.testing.assert_allclose(one.predict_proba(X), reference.predict_proba(X), atol=1e-5)
        assert one.recalibration_slope_ == 1

    def test_by_default_it_is_nearly_the_plain_fit_where_positives_are_rare(self):
        """Columns that vary little beside their bounds; the intercept is far from 0, and right."""
        for unit in [1.0, 0.02]:
            rng = np.random.default_rng(7)
            X = unit * rng.uniform(-0.2, 0.2, size=(2000, 2))
            y = (rng.random(2000) < 1 / (1 + np.exp(3.5 - X @ [6.0, -12.0] / unit))).astype(int)
            one = model(np.inf, data_norm=unit).fit(X, y)
            plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10**4).fit(X / unit, y)
            np.testing.assert_allclose(one.coef_ * unit, plain.coef_, rtol=0.01)
            np.testing.assert_allclose(one.intercept_, plain.intercept_, rtol=0.01)

    def test_three_classes_without_intercept(self, three):
        X, y = three
        one_class = LogisticRegression(C=1e3 / X.shape[1], fit_intercept=False, tol=1e-10)
        reference = OneVsRestClassifier(one_class).fit(X, y)
        expected = np.vstack([e.coef_ for e in reference.estimators_])
        for method in METHODS:
            one = model(np.inf, classes=range(3), method=method, fit_intercept=False).fit(X, y)
            np.testing.assert_allclose(one.coef_, expected, atol=1e-5)
            np.testing.assert_allclose(one.predict_proba(X), reference.predict_proba(X), atol=1e-5)


class TestSlope:
    """What predicted odds are raised to, without a table: it follows from public numbers."""

    def test_by_hand(self):
        for (n_classes, epsilon), method in product([(2, 0.7), (3, 4.0)], METHODS):
            X, y = make(n_classes)
            parameters = {"classes": range(n_classes), "method": method, "recalibration_share": 0.0}
            one = model(epsilon, data_norm=2.0, **parameters).fit(2 * X, y)
            (kappa,) = one.guarantee_.public_inputs["kappa"]
            # Three columns and the constant one, which makes rows of norm 1 longer.
            excess = 2 * 4 * kappa / (N * 1.01)
            signal = 2 * N * epsilon / (1 if n_classes == 2 else n_classes) / (n_classes * 4)
            expected = min(1 + excess, math.exp(4)) ** (0.5 * signal / (2 + signal))
            assert one.recalibration_slope_ == pytest.approx(expected, rel=1e-6)
            assert one.guarantee_.public_inputs["public_slope"] == one.recalibration_slope_

    def test_nothing_else_changes_with_it(self, data):
        X, y = data
        one = model(0.5).fit(X, y)
        values = dict(one.release_.values)
        del values["recalibration_slope"]
        old = DPLogisticRegression.from_release(replace(one.release_, values=values))
        assert one.recalibration_slope_ > 1.01
        assert old.recalibration_slope_ == 1
        np.testing.assert_array_equal(old.decision_function(X), one.decision_function(X))
        np.testing.assert_array_equal(old.predict(X), one.predict(X))
        odds, plain = (np.diff(each.predict_log_proba(X))[:, 0] for each in (one, old))
        np.testing.assert_allclose(odds, one.recalibration_slope_ * plain, rtol=1e-9, atol=1e-12)
        for slope in [0.009, -1.0, 101.0, [2.0]]:
            crafted = replace(one.release_, values={**values, "recalibration_slope": slope})
            with pytest.raises(ValueError, match="recalibration_slope"):
                DPLogisticRegression.from_release(crafted)


GOOD_X, GOOD_Y = np.full((6, 2), 0.5), np.array([0, 1] * 3)


BAD_PARAMETERS = {
    "method": ["sgd", None],
    "alpha": [-0.1, np.inf, "best", None, False],
    "data_norm": [0.0, np.inf, "auto"],
    "intercept_scaling": [0.0, np.inf, None],
    "classes": [[], [0, 0, 1], [0, np.nan]],
    "max_residual": [0.49, 1.01, "best", None, True],
}
BAD_DATA = [
    (np.where(np.eye(6, 2) > 0, np.nan, GOOD_X), GOOD_Y, "X"),
    (np.where(np.eye(6, 2) > 0, np.inf, GOOD_X), GOOD_Y, "X"),
    (GOOD_X[:5], GOOD_Y, "X and y"),
    (np.full((6, 2), "a"), GOOD_Y, "X"),
    (np.ma.MaskedArray(GOOD_X, mask=GOOD_X > 0), GOOD_Y, "X"),
    (GOOD_X, None, "y"),
    (GOOD_X, np.array([0, 1, 2] * 2), "y"),
    (GOOD_X, np.array(["0", "1"] * 3), "y"),
    (GOOD_X, np.array([0.0, np.nan] * 3), "y"),
    (GOOD_X, np.ma.array(GOOD_Y), "y"),
]
EXTREMES = [
    *({name: number} for name in ("epsilon", "data_norm") for number in (1e-300, 1e300)),
    *({name: 1e300} for name in ("alpha", "intercept_scaling")),
    *({"epsilon": 1e-300, **method} for method in ({"published": True}, {"method": "out_pert"})),
]


class TestRefusals:
    """A refused input costs nothing."""

    def check(self, message, X=GOOD_X, y=GOOD_Y, **parameters):
        accountant = PrivacyAccountant()
        with pytest.raises((ValueError, TypeError), match=message) as caught:
            model(**parameters, accountant=accountant).fit(X, y)
        assert len(accountant.entries()) == 0
        return str(caught.value)

    def test_data_and_parameters(self):
        for X, y, message in BAD_DATA:
            self.check(message, X, y)
        for name, values in BAD_PARAMETERS.items():
            for value in values:
                self.check(f"^{name}", **{name: value})
        self.check("^alpha", alpha=0.0, method="out_pert")

    def test_extreme_numbers_are_refused_whatever_the_records(self):
        for parameters in EXTREMES:
            text = self.check("too extreme", **parameters)
            assert self.check("too extreme", 1e200 * GOOD_X, np.zeros(6), **parameters) == text


class TestBudget:
    def test_classes_share_epsilon(self, three):
        """Each model of three has the noise of a model with a third of epsilon."""
        (X, y), common = three, {"alpha": 5.0, "max_residual": 0.5, "recalibration_share": 0.0}
        for method in METHODS:
            parameters = {**common, "method": method}
            shared = model(3.0, classes=range(3), **parameters).fit(X, y).guarantee_
            alone = model(1.0, **parameters).fit(X, (y == 1).astype(int)).guarantee_
            assert shared.epsilon == 3.0
            for name in ("kappa", "noise_scale"):
                np.testing.assert_allclose(
                    shared.public_inputs[name], alone.public_inputs[name], rtol=1e-6
                )


def test_classes_read_from_y_void_the_guarantee(data):
    X, y = data
    one = model(classes=None, random_state=None)
    with pytest.warns(PrivacyLeakWarning, match="classes were read from y"):
        one.fit(X, y)
    assert (one.guarantee_.status, one.guarantee_.epsilon) == ("none", 1.0)
    assert one.classes_.tolist() == [0, 1]
    one.fit(X, np.full(N, "only"))
    np.testing.assert_array_equal(one.predict(X), "only")
    np.testing.assert_array_equal(one.predict_proba(X), 1.0)


def test_refitting_forgets_the_first_fit(data, three):
    X, y = data[0][:, :2], data[1]
    one = model(classes=range(3)).fit(*three).set_params(classes=[0, 1]).fit(X, y)
    assert one.n_features_in_ == 2
    assert one.release_ == model().fit(X, y).release_


def test_strata_are_a_category_of_the_columns():
    """Each site has an intercept of its own: but for the smallest ridge, C(site) of statsmodels."""
    rng, sites = np.random.default_rng(0), ["A", "B", "C"]
    site = rng.integers(0, 3, 2000)
    X = pd.DataFrame({"site": np.array(sites)[site], "x": rng.normal(0.5 * site).clip(-3, 5)})
    odds = np.exp(0.8 * X.x - np.array([1.0, 0.0, 2.0])[site])
    died = rng.random(2000) < odds / (1.0 + odds)
    columns = PublicColumns({"site": sites, "x": (-3, 5)})
    one = DPLogisticRegression(math.inf, columns=columns, classes=[False, True], alpha=0.0)
    one.fit(X, died)
    theirs = logit("died ~ C(site) + x", X.assign(died=died.astype(float))).fit(disp=0, tol=1e-14)
    expected = theirs.params[["C(site)[T.B]", "C(site)[T.C]", "x"]].to_numpy() * [1.0, 1.0, 4.0]
    np.testing.assert_allclose(np.ravel(one.coef_), expected, rtol=0.0, atol=1e-5)
    every = X.drop_duplicates("site")
    np.testing.assert_allclose(one.predict_proba(every)[:, 1], theirs.predict(every), atol=1e-5)
