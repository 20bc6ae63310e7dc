"""PrivateStackingClassifier: who trains on what, how votes are combined, and what leaves a fit."""

import math
import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone

from skdpsurv import DPLogisticRegression, FeaturePartition, LogisticCombiner, PrivacyAccountant
from skdpsurv.classification import stack_plan
from skdpsurv.classification.stack_plan import meta_rows
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.linear import probability
from skdpsurv.mechanisms import perturbation
from skdpsurv.mechanisms.perturbation import Perturbed
from tests.support.combinations import thinned
from tests.support.estimators import stack_of

N, D = 301, 6
COMBINERS = ("weighted_vote", "vote", "logistic")
VARIANTS = [
    {"partition": partition, "combiner": combiner, "calibration": calibration}
    for partition in ("features", "samples")
    for combiner in COMBINERS
    for calibration in ("tight", "published")
]
IMPORTANCES = [0.1, 0.5, 0.05, 0.2, 0.1, 0.05]


def model(epsilon=1.0, **parameters):
    return stack_of(
        epsilon, **{"classes": [0, 1], "n_partitions": 3, "random_state": 0, **parameters}
    )


def make(n_classes=2, n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= 1.1 * np.linalg.norm(X, axis=1)[:, None]
    scores = 4.0 * X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@pytest.fixture(scope="module")
def data():
    return make()


def plan_of(one):
    """Return the plan that a fit makes, from the fit of a clone to nothing but zeros."""
    plans, honest = [], stack_plan.plan_stack

    def spy(*args, **options):
        plans.append(honest(*args, **options))
        return plans[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stack_plan, "plan_stack", spy)
        clone(one).fit(np.zeros((N, D)), np.zeros(N, dtype=int))
    return plans[0]


class TestRows:
    def test_sets_are_disjoint_and_cover_all_rows(self):
        """In parts of the rows, which differ by a row, one cap: votes are of one loss."""
        for combiner, partition, seed in product(COMBINERS, ["features", "samples"], [0, None]):
            plan = plan_of(model(43.0, partition=partition, combiner=combiner, holdout=0.3))
            (cap,) = {low.max_residual for low in plan.low}
            assert partition == "features" or 0.5 < cap < 1.0
            parts, top = plan.split(random_source(seed))
            others, _ = plan.split(random_source(7))  # of another seed
            assert partition == "features" or sorted(parts[0]) != sorted(others[0])
            assert len(parts) == (3 if partition == "samples" else 1)
            assert top.size == (plan.high.n_records if plan.high else 0)
            assert top.size == (90 if combiner == "logistic" else 0)
            assert [part.size for part in parts] == [low.n_records for low in plan.low]
            sizes = [part.size for part in parts]
            assert max(sizes) - min(sizes) <= 1
            dealt = np.concatenate([*parts, top])
            np.testing.assert_array_equal(np.sort(dealt), np.arange(N))

    @pytest.mark.parametrize("partition", ["features", "samples"])
    def test_split_depends_on_n_and_seed_only(self, data, monkeypatch, partition):
        """Not on labels: no stratification."""
        dealt, honest = [], stack_plan.Stack.split

        def spy(self, source):
            parts, top = honest(self, source)
            dealt.append([rows.tolist() for rows in (*parts, top)])
            return parts, top

        monkeypatch.setattr(stack_plan.Stack, "split", spy)
        one = model(partition=partition, combiner="logistic")
        for X, y in (data, (-data[0], 1 - data[1]), (data[0], np.zeros(N))):
            one.fit(X, y)
        assert dealt[1:] == dealt[:1] * 2

    def test_a_record_reaches_its_own_set_only(self, data):
        """One row changed far: the models of the other parts stay as they are, bit for bit."""
        one = model(50.0, partition="samples", combiner="vote")
        parts, _ = plan_of(one).split(random_source(0, purpose="split"))
        before = one.fit(*data).low_level_coef_
        X, y = data[0].copy(), data[1].copy()
        i = parts[1][0]
        X[i], y[i] = -5 * X[i], 1 - y[i]
        after = one.fit(X, y).low_level_coef_
        same = [np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
        assert same == [True, False, True]

    def test_held_out_rows_do_not_reach_the_models_below(self, data):
        one = model(50.0, combiner="logistic")
        _, top = plan_of(one).split(random_source(0, purpose="split"))
        before = one.fit(*data).release_.values
        y = data[1].copy()
        y[top] = 1 - y[top]
        after = one.fit(data[0], y).release_.values
        differ = {name for name in before if np.any(before[name] != after[name])}
        assert differ == {"high_level_coef", "high_level_intercept"}

    def test_meta_rows_are_within_the_unit_ball(self):
        cast = np.random.default_rng(0).choice([-1.0, 1.0, 0.3], size=(7, 50, 2))
        rows = meta_rows(cast)
        assert rows.shape == (2, 50, 7)
        assert np.linalg.norm(rows, axis=2).max() <= 1.0 + 1e-15
        np.testing.assert_allclose(rows[1, 4] * math.sqrt(7), cast[:, 4, 1])


class TestCombiners:
    """By hand, from what was released."""

    def votes(self, one, X):
        cast = []
        for coef, intercept, group in zip(
            one.low_level_coef_, one.low_level_intercept_, one.feature_groups_, strict=True
        ):
            p = probability(X[:, list(group)] @ coef.T + intercept, one.max_residual_)
            cast.append(2 * p - 1)
        return cast

    def test_weighted_vote(self, data):
        X, y = data
        for epsilon in [2.0, np.inf]:
            one = model(epsilon, importances=IMPORTANCES).fit(X, y)
            assert one.feature_groups_ == ((1, 3), (0, 4), (2, 5))
            np.testing.assert_allclose(one.weights_, (0.7, 0.2, 0.1))
            first, second, third = self.votes(one, X)
            expected = (0.7 * first + 0.2 * second + 0.1 * third)[:, 0]
            np.testing.assert_allclose(one.decision_function(X), expected)
            np.testing.assert_allclose(one.predict_proba(X)[:, 1], (1 + expected) / 2)
            np.testing.assert_array_equal(one.predict(X), (expected > 0).astype(int))
        stated = {**one.release_.parameters, "weights_": [0.7, 0.2, 0.2]}
        with pytest.raises(ValueError, match="weights_ of the release must"):
            one.from_release(replace(one.release_, parameters=stated))

    @pytest.mark.parametrize("partition", ["features", "samples"])
    def test_votes(self, data, partition):
        """Some of equal weight, and a model of them."""
        X, y = data
        weights = {"importances": IMPORTANCES} if partition == "features" else {}
        one = model(2.0, partition=partition, combiner="vote", **weights).fit(X, y)
        expected = np.mean(self.votes(one, X), axis=0)[:, 0]
        np.testing.assert_allclose(one.decision_function(X), expected, atol=1e-15)
        one = model(2.0, partition=partition, combiner="logistic", max_residual=0.8).fit(X, y)
        meta = np.hstack(self.votes(one, X)) / math.sqrt(3)
        expected = meta @ one.high_level_coef_[0] + one.high_level_intercept_[0]
        np.testing.assert_allclose(one.decision_function(X), expected)
        np.testing.assert_allclose(one.predict_proba(X)[:, 1], probability(expected, 0.8))

    @pytest.mark.parametrize("combiner", COMBINERS)
    def test_three_classes(self, combiner):
        (X, y), labels = make(3), np.array(["x", "y", "z"])
        one = model(60.0, classes=labels, combiner=combiner).fit(X, labels[y])
        cast = np.array(self.votes(one, X))
        expected = cast.mean(axis=0)
        if combiner == "logistic":
            weighed = np.einsum("kno,ok->no", cast, one.high_level_coef_) / math.sqrt(3)
            expected = weighed + one.high_level_intercept_
        np.testing.assert_allclose(one.decision_function(X), expected, atol=1e-14)
        p = one.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(one.predict(X), labels[p.argmax(axis=1)])
        assert one.score(X, labels[y]) > 0.45


class TestWithoutPrivacy:
    @pytest.mark.parametrize("variant", [VARIANTS[4], VARIANTS[10]])
    def test_parts_are_logistic_regressions(self, data, variant):
        X, y = data
        one = model(np.inf, alpha=0.01, **variant).fit(X, y)
        parts, top = plan_of(one).split(random_source(0, purpose="split"))
        parts = parts * (3 // len(parts))
        for k, (rows, group) in enumerate(zip(parts, one.feature_groups_, strict=True)):
            alone = DPLogisticRegression(np.inf, alpha=0.01, classes=[0, 1])
            alone.fit(X[rows][:, group], y[rows])
            np.testing.assert_allclose(one.low_level_coef_[k], alone.coef_, atol=1e-6)
            np.testing.assert_allclose(one.low_level_intercept_[k], alone.intercept_, atol=1e-6)
        cast = np.array(TestCombiners().votes(one, X[top]))
        high = DPLogisticRegression(np.inf, alpha=0.01, classes=[0, 1])
        high.fit(meta_rows(cast)[0], y[top])
        np.testing.assert_allclose(one.high_level_coef_, high.coef_, atol=1e-6)
        np.testing.assert_allclose(one.high_level_intercept_, high.intercept_, atol=1e-6)


def test_parameters_of_objects_are_those_of_the_stack(data):
    one = model(partition=FeaturePartition(), combiner=LogisticCombiner())
    other = clone(one).set_params(partition__importances=IMPORTANCES, combiner__holdout=0.25)
    assert one.partition.importances is None
    assert other.get_params()["partition__importances"] == IMPORTANCES
    inputs = other.fit(*data).guarantee_.public_inputs
    assert inputs["n_high_level"] == round(0.25 * N)
    assert inputs["weights"] == pytest.approx((0.7, 0.2, 0.1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_model_that_votes_has_coefficients(n_classes):
    """Of log odds; votes of several, and a model on top, are not linear."""
    X, y = make(n_classes)
    stated = {"classes": list(range(n_classes)), "feature_groups": [[4, 2, 0, 1, 3, 5]]}
    one = model(**stated).fit(X, y)
    scores = X @ one.coef_.T + one.intercept_
    assert one.coef_.shape == ({2: 1, 3: 3}[n_classes], D)
    found = scores.argmax(axis=1) if n_classes > 2 else (scores[:, 0] > 0).astype(int)
    np.testing.assert_array_equal(found, one.predict(X))
    np.testing.assert_array_equal(one.coef_[:, [4, 2, 0, 1, 3, 5]], one.low_level_coef_[0])
    others = {**stated, "combiner": "logistic"}, {**stated, "feature_groups": None}
    for options in others:
        other = model(**options).fit(X, y)
        for name in ("coef_", "intercept_"):
            assert not hasattr(other, name)
            with pytest.raises(AttributeError, match=f"has {name} only where one model votes"):
                getattr(other, name)


class TestColumns:
    def test_groups_by_name(self, data):
        frame = pd.DataFrame(data[0], columns=list("abcdef"))
        names, places = [["f", "a"], ["b", "c", "d", "e"]], ((5, 0), (1, 2, 3, 4))
        one, other = (model(feature_groups=g).fit(frame, data[1]) for g in (names, places))
        assert one.release_ == other.release_
        assert one.feature_groups_ == places

    def test_group_norms_bound_the_columns(self, data):
        """Longer parts are scaled down, row by row; shorter ones are not."""
        (X, y), part, bounded = data, [0, 3], {"group_norms": [0.05, 1.0, 1.0]}
        shorter = X.copy()
        shorter[:, part] *= 0.05 / np.maximum(0.05, np.linalg.norm(X[:, part], axis=1))[:, None]
        one, other, plain = (
            model(**options).fit(rows, y).low_level_coef_[0]
            for options, rows in ((bounded, X), (bounded, shorter), ({}, X))
        )
        np.testing.assert_allclose(one, other, atol=1e-5)
        assert np.abs(one - plain).max() > 1e-3


class TestEpsilon:
    def test_levels_and_parts_of_rows_have_all_of_epsilon(self, data):
        """Groups of columns and classes share it. Seen from the noise at a strong ridge."""
        options = {"combiner": "logistic", "alpha": 1e3, "fit_intercept": False}
        for partition, n_classes in product(["features", "samples"], [2, 3]):
            one = model(
                3.0, partition=partition, classes=range(n_classes), max_residual=1.0, **options
            )
            inputs = one.fit(*data).guarantee_.public_inputs
            share = 3.0 if n_classes == 2 else 1.0
            assert one.guarantee_.epsilon == 3.0
            # S / epsilon, S = 2; groups of columns with weights 1/3 share one row: 2 sqrt(3).
            low = 2 / share * (math.sqrt(3) if partition == "features" else 1)
            np.testing.assert_allclose(inputs["noise_scale"], low, rtol=5e-3)
            np.testing.assert_allclose(inputs["high_level_noise_scale"], 2 / share, rtol=5e-3)

    def test_models_have_noise_of_their_own(self):
        """Equal columns, equal models but for the noise."""
        x = np.random.default_rng(0).uniform(-0.5, 0.5, size=(100, 1))
        one = model(random_state=None).fit(np.hstack([x, x, x]), (x[:, 0] > 0).astype(int))
        assert len({float(coef[0, 0]) for coef in one.low_level_coef_}) == 3


@pytest.mark.parametrize(
    ("variant", "backend"),
    [
        (VARIANTS[4], "threading"),
        (VARIANTS[10], "threading"),
        pytest.param(VARIANTS[4], "loky", marks=pytest.mark.slow),
    ],
)
def test_number_of_jobs_and_backend_do_not_change_the_release(data, backend, variant):
    expected = model(**variant).fit(*data).release_
    with parallel_config(backend=backend):
        assert model(n_jobs=2, **variant).fit(*data).release_ == expected


GOOD_X, GOOD_Y = make(n=8)
FRAME = pd.DataFrame(GOOD_X, columns=list("abcdef"))
BAD = {
    "partition": ["rows", 3],
    "combiner": ["mean", None],
    "n_partitions": [0, 3.0, True, 7],
    "importances": [[1, -1, 1, 1, 1, 1], "auto", [1.0] * 5, [1, 1, 0, 0, 0, 0]],
    "feature_groups": [
        [[0, 1, 2], [2, 3, 4, 5]],
        [["a", "b", "c"], ["d", "e", "z"]],
        [],
        [iter([0, 1, 2]), iter([3, 4, 5])],
    ],
    "group_norms": [[1.0, 1.0], [1.0, 1.0, 1.1], [1.0, 1.0, 0.0]],
    "n_jobs": [0, "all", 10**30],
}
ROWS, TOP = {"partition": "samples"}, {"combiner": "logistic"}
EXTREMES = [
    {"epsilon": 1e-300},
    {"alpha": 1e300},
    {"data_norm": 1e-300},
    {"importances": [1e-300, 1, 1e-300, 1e-300, 1, 1e-300]},
    {"epsilon": 1e-300, **ROWS},
]


class TestRefusals:
    """A refused input costs nothing; the message names the parameter."""

    def check(self, name, **parameters):
        accountant = PrivacyAccountant()
        with pytest.raises((ValueError, TypeError), match=name):
            model(**parameters, accountant=accountant).fit(FRAME, GOOD_Y)
        assert len(accountant.entries()) == 0

    def test_parameters(self):
        for name, values in BAD.items():
            for value in values:
                self.check(f"^{name.split('_')[-1]}|^{name}", **{name: value})
        for n_partitions, more in ((9, {}), (5, TOP)):
            self.check("^n_partitions", n_partitions=n_partitions, **ROWS, **more)
        for holdout in (0.01, 0.99, 0.0, 1.0, np.nan):
            self.check("^holdout|^n_partitions, holdout", holdout=holdout, **TOP)

    def test_extreme_numbers(self):
        for parameters, calibration in product(EXTREMES, ["tight", "published"]):
            self.check("too extreme", **parameters, calibration=calibration)


class TestWhatLeaves:
    @pytest.mark.parametrize(("variant", "classes"), thinned(VARIANTS, [[0, 1], None]))
    def test_nothing_leaves_but_the_minima(self, data, monkeypatch, variant, classes):
        """With minima and noise held fixed two data sets give one model, bit for bit."""
        monkeypatch.setattr(
            perturbation, "_computed", lambda o, g: Perturbed(np.ones(o.center.size), o.center)
        )
        texts = []
        for X, y in (data, (-50.0 * data[0], 1 - data[1])):
            one = model(classes=classes, **variant).fit(X, y)
            texts.append((pickle.dumps(one), repr(one), one.release_.to_json()))
        assert texts[0] == texts[1]

    def test_refitting_with_votes_forgets_the_model_on_top(self, data):
        one = model(combiner="logistic").fit(*data).set_params(combiner="vote").fit(*data)
        assert not hasattr(one, "high_level_coef_")
        assert not hasattr(one, "high_level_intercept_")
