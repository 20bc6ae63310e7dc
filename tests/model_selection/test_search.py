"""PrivateSearchCV: what it costs, what it chooses, what it keeps."""

import inspect
import math
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sksurv.util import Surv

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    HybridMEstimator,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivateStackingClassifier,
    PublicBoundsScaler,
)
from skdpsurv.data import PublicInputWarning
from skdpsurv.dp.privacy_cost import divide_budget, remaining_budget
from skdpsurv.model_selection import PrivateSearchCV, RepeatedRuns
from tests.support.estimators import search_of

GRID = {"alpha": [1e-3, 1e4]}


def against_ridge(model, X, y):
    """As far apart as losses can be."""
    return np.full(len(X), float(model.alpha > 1.0))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)) / 3.0
    return X, np.where(X[:, 0] + 0.1 * rng.normal(size=600) > 0, "ill", "well")


@pytest.fixture(scope="module")
def survival():
    rng = np.random.default_rng(1)
    X = rng.choice([-1.0, 1.0], size=(800, 2))
    time = rng.exponential(np.exp(-X[:, 0]))
    return X, Surv.from_arrays(time <= 1.0, np.minimum(time, 1.0))


def logistic(**parameters):
    return DPLogisticRegression(**{"classes": ["ill", "well"], "data_norm": 1.0, **parameters})


def search(estimator=None, grid=GRID, **parameters):
    estimator = logistic() if estimator is None else estimator
    return search_of(estimator, grid, **{"expected_runs": 6.0, **parameters})


LEARNING = make_pipeline(StandardScaler(), logistic())
strategies = pytest.mark.parametrize("strategy", ["split", "repeat"])


class TestBudget:
    @strategies
    def test_parts_add_up_exactly(self, strategy):
        for epsilon, refit, eta in product(
            [0.1, 0.3, 1.0, 1.7, math.pi], [None, 0.1, 1 / 3, 0.7], [-0.4, 0.0, 1 / 3, 1.0]
        ):
            one = search(epsilon=epsilon, strategy=strategy, refit=refit, eta=eta)
            plan = one._setting()[2]
            price = 1 if strategy == "split" else 2 + Fraction(eta)
            spent = price * Fraction(plan.run_epsilon) + Fraction(one._budget.refit_epsilon)
            assert spent <= Fraction(epsilon)
            assert float(spent) == pytest.approx(epsilon, rel=1e-15)

    def test_every_child_has_its_share(self, data, monkeypatch):
        spent = []
        original = DPLogisticRegression.fit

        def fit(self, X, y):
            fitted = original(self, X, y)
            spent.append((self.epsilon, len(X), self.accountant))
            return fitted

        monkeypatch.setattr(DPLogisticRegression, "fit", fit)
        search(epsilon=1.5, refit=0.5, eta=1.0, holdout=0.25).fit(*data)
        assert set(spent[:-1]) == {(0.25, 450, None)}
        assert spent[-1] == (0.75, 600, None)
        spent.clear()
        search(epsilon=1.5, strategy="split", holdout=0.25).fit(*data)
        assert spent == [(1.5, 225, None)] * 2

    def test_refused_parameters_cost_nothing(self, data):
        ledger = PrivacyAccountant(rehearsal=True)
        for parameters, match in [
            ({"grid": {"alpha": [0.1, -1.0]}}, "alpha must be"),
            *(({"grid": {n: [1]}}, f"{n} must not vary") for n in ("epsilon", "random_state")),
            ({"grid": {"accountant": [None]}}, "accountant must not vary"),
            ({"grid": {"columns__missing": ["error"]}}, "before the '__' in one of columns"),
            ({"grid": {"surprise": [1]}}, "Invalid parameter"),
            ({"grid": None}, "param_grid must be a dict"),
            ({"grid": []}, "at least one candidate"),
            *(({n: 0}, f"{n} must be") for n in ("epsilon", "holdout", "n_jobs", "n_candidates")),
            *(({"eta": wrong}, "eta must be") for wrong in (-1.0, 1.5)),
            *(({"expected_runs": wrong}, "expected_runs must be") for wrong in (0.5, 1e12)),
            *(({"eta": e, "expected_runs": 5.0}, "expected_runs must") for e in (-0.9, -0.99)),
            ({"strategy": "grid"}, "strategy must be"),
            ({"refit": 1.0}, "refit must be"),
            ({"scoring": "roc_auc"}, "scoring must be"),
            *(({n: -1}, f"{n} must be") for n in ("verbose", "random_state")),
            ({"estimator": logistic(accountant=ledger)}, "passed to PrivateSearchCV"),
            ({"estimator": HybridMEstimator(), "grid": {"n_cells": [0]}}, "n_cells must be"),
            ({"estimator": StandardScaler()}, "estimator"),
            ({"estimator": make_pipeline(logistic(), StandardScaler())}, "estimator"),
            ({"estimator": DPLogisticRegression}, "estimator"),
            ({"estimator": PrivateSearchCV(logistic(), GRID)}, "must not be a search itself"),
            *(({n: 5.0}, n) for n in ("accountant", "scoring")),
            ({"eta": True}, "eta"),
        ]:
            accountant = PrivacyAccountant(5.0, rehearsal=True)
            with pytest.raises((ValueError, TypeError), match=match):
                search(**{"accountant": accountant, **parameters}).fit(*data)
            assert len(accountant.entries()) == 0

    def test_a_candidate_that_refuses_its_part_is_found_before_the_charge(self, data):
        """Sixty parts of rows need sixty rows, and a part of the search has fewer."""
        accountant = PrivacyAccountant(5.0, rehearsal=True)
        stack = PrivateStackingClassifier(partition="samples", classes=["ill", "well"])
        one = search(stack, {"n_partitions": [2, 60]}, strategy="split", accountant=accountant)
        with pytest.raises(ValueError, match="n_partitions"):
            one.fit(data[0][:100], data[1][:100])
        assert len(accountant.entries()) == 0

    def test_exact_shares(self):
        for budget in (0.1, 1.0, 7.3):
            for parts in (Fraction(2), Fraction(7, 3), Fraction(3)):
                part = divide_budget(budget, parts)
                assert parts * Fraction(part) <= Fraction(budget)
                assert parts * Fraction(math.nextafter(part, 9.0)) > Fraction(budget)
            rest = remaining_budget(budget, budget / 3)
            assert Fraction(rest) + Fraction(budget / 3) <= Fraction(budget)
        assert divide_budget(math.inf, Fraction(3)) == math.inf


class TestChoice:
    @strategies
    def test_a_clearly_better_candidate_is_chosen(self, data, strategy):
        """Sums of losses are 120 apart, which noise bridges with a probability below 1e-9.

        "repeat" may never draw a candidate: in 1 of 20 searches: seeds are fixed.
        """
        model = search(
            epsilon=8.0,
            strategy=strategy,
            scoring=against_ridge,
            expected_runs=40.0,
            random_state=0,
        ).fit(*data)
        assert model.best_params_ == {"alpha": 1e-3}
        assert model.best_index_ == 0
        assert model.candidates_ == [{"alpha": 1e-3}, {"alpha": 1e4}]
        assert model.best_estimator_.alpha == 1e-3
        assert model.score(*data) > 0.85

    @pytest.mark.slow
    def test_ties_are_broken_fairly(self, data):
        """All losses equal: 300 choices among 2, binomial; false alarm below 1e-8, seeds fixed."""
        one = search(epsilon=np.inf, scoring=lambda m, X, y: np.zeros(len(X)))
        small = data[0][:5], data[1][:5]
        first = sum(one.set_params(random_state=i).fit(*small).best_index_ == 0 for i in range(300))
        assert 100 < first < 200

    def test_all_runs_may_fail_to_score(self, data):
        def broken(model, X, y):
            raise RuntimeError("a record: 4711")

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PublicInputWarning)
            search(scoring=broken).fit(data[0][:40], data[1][:40])

    def test_a_candidate_that_fails_after_the_charge_is_not_chosen(self, data, monkeypatch):
        original = DPLogisticRegression._publish

        def publish(self, *args):
            if self.alpha > 1:
                raise FloatingPointError("of record 4711")
            return original(self, *args)

        monkeypatch.setattr(DPLogisticRegression, "_publish", publish)
        model = search(epsilon=20.0, expected_runs=100.0, random_state=1).fit(*data)
        assert model.best_params_ == {"alpha": 1e-3}

    def test_if_all_fail_the_reason_stays_hidden(self, data, monkeypatch):
        def publish(self, *args):
            raise FloatingPointError("of record 4711")

        monkeypatch.setattr(DPLogisticRegression, "_publish", publish)
        accountant = PrivacyAccountant(5.0)
        with pytest.raises(RuntimeError, match="could not be fitted") as caught:
            search(accountant=accountant).fit(*data)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert accountant.spent() == 1.0

    def test_the_split_depends_on_the_number_of_records_alone(self, data):
        parts = []

        def spy(model, X, y):
            parts.append(X.copy())
            return np.zeros(len(X))

        for y in (data[1], data[1][::-1]):
            search(scoring=spy, random_state=3, strategy="split").fit(data[0], y)
        # Record by record; two candidates in each search.
        shown = np.vstack(parts).reshape(2, 2, 120, -1)
        np.testing.assert_array_equal(shown[0], shown[1])


class TestStatus:
    @pytest.mark.parametrize(
        ("parameters", "status", "match"),
        [
            ({"strategy": "split"}, "proved", None),
            ({"random_state": 0}, "seeded", "random_state is an integer"),
            ({"estimator": logistic(random_state=0)}, "seeded", "random_state is an integer"),
            ({"estimator": logistic(classes=None)}, "none", "classes were read from y"),
            ({"epsilon": np.inf}, "none", None),
            ({"estimator": LEARNING, "grid": {}}, "none", "StandardScaler may learn"),
        ],
    )
    def test_one_warning_at_the_call(self, data, parameters, status, match):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = search(**parameters).fit(data[0][:100], data[1][:100])
        caught = [warning for warning in caught if warning.category is not PublicInputWarning]
        assert model.guarantee_.status == status
        assert len(caught) == (match is not None)
        for warning in caught:
            assert warning.category is PrivacyLeakWarning
            assert match in str(warning.message)
            assert warning.filename == __file__

    def test_classes_that_were_read_are_not_stated(self, data):
        model = search(logistic(classes=None)).fit(*data)
        assert (model.best_estimator_.classes, list(model.classes_)) == (None, ["ill", "well"])

    def test_the_model_says_what_the_search_has_cost(self, data):
        accountant = PrivacyAccountant()
        model = search(epsilon=3.0, eta=1.0, accountant=accountant).fit(*data)
        best = model.best_estimator_
        assert best.epsilon == 1.0
        assert best.guarantee_ == model.guarantee_ == model.release_.guarantee
        assert best.release_ == model.release_
        assert best.accountant is accountant
        rebuilt = DPLogisticRegression.from_release(model.release_)
        np.testing.assert_array_equal(rebuilt.predict(data[0]), model.predict(data[0]))
        assert model.guarantee_.public_inputs["epsilon_run"] == 1.0


class TestNothingPrivateIsKept:
    @strategies
    def test_neighbours_with_the_same_choice_leave_the_same_traces(self, data, strategy):
        """Seeded noise, and a record whose loss changes: all but the noisy release is equal."""
        X, y = data
        other = y.copy()
        other[5] = "ill" if y[5] == "well" else "well"
        one, two = (search(strategy=strategy, random_state=2).fit(X, z) for z in (y, other))
        assert one.guarantee_ == two.guarantee_
        assert (one.best_params_, one.candidates_) == (two.best_params_, two.candidates_)
        for model in (one, two):
            fitted = model.best_estimator_
            left = set(vars(fitted)) - set(inspect.signature(type(fitted)).parameters)
            fresh = DPLogisticRegression.from_release(model.release_)
            assert left <= set(vars(fresh))

    def test_verbose_does_not_show_the_number_of_runs(self, data, capsys):
        search(verbose=10).fit(*data)
        seen = capsys.readouterr()
        assert seen.out == seen.err == ""
        search(verbose=10, strategy="split").fit(*data)
        assert "candidates" in capsys.readouterr().err


class TestEstimators:
    def test_pipeline_with_public_bounds(self, data):
        frame = pd.DataFrame(data[0], columns=["a", "b", "c"])
        pipeline = make_pipeline(PublicBoundsScaler(-2.0, 2.0), Normalizer(), logistic())
        model = search(pipeline, {"dplogisticregression__alpha": [1e-3, 1e-2]})
        model.fit(frame, pd.Series(data[1], index=np.arange(600)[::-1]))
        assert model.guarantee_.status == "proved"
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        assert model.n_features_in_ == 3
        assert model.predict_proba(frame).shape == (600, 2)
        assert model.predict_log_proba(frame).shape == (600, 2)
        assert model.decision_function(frame).shape == (600,)
        assert model.best_estimator_[-1].guarantee_ == model.guarantee_
        assert not hasattr(model, "predict_survival_function")

    @pytest.mark.parametrize(("strategy", "scoring"), [("split", None), ("repeat", "brier")])
    def test_survival(self, survival, strategy, scoring):
        model = search(
            make_pipeline(PublicBoundsScaler(), DPDiscreteTimeSurvival(max_time=1.0)),
            {"dpdiscretetimesurvival__n_intervals": [10, 25]},
            strategy=strategy,
            scoring=scoring,
            epsilon=5.0,
        ).fit(*survival)
        assert model.score(*survival) > 0.6
        shape = (800, model.best_estimator_[-1].n_intervals)
        assert model.predict_survival_function(survival[0], return_array=True).shape == shape
        assert len(model.predict_cumulative_hazard_function(survival[0][:3])) == 3
        assert model.unique_times_.size == shape[1]
        assert not hasattr(model, "predict_proba")

    def test_a_hopeless_model_of_survival_is_not_chosen(self, survival):
        """About 50 nats apart on 160 records at epsilon = 20: false alarm below 1e-6."""
        estimator = DPDiscreteTimeSurvival(max_time=1.0, n_intervals=20)
        model = search(estimator, {"data_norm": [1e-3, 2.0]}, epsilon=20.0, strategy="split")
        assert model.set_params(random_state=0).fit(*survival).best_params_ == {"data_norm": 2.0}

    def test_candidates_that_are_drawn(self, data):
        for law, n in (([1e-3, 1e-2, 1e-1], 2), (stats.loguniform(1e-3, 1.0), 3)):
            model = PrivateSearchCV(logistic(), {"alpha": law}, n_candidates=n).fit(*data)
            assert len({each["alpha"] for each in model.candidates_}) == n

    def test_a_strategy_s_parameters_are_its_own(self, data):
        model = PrivateSearchCV(logistic(), GRID, strategy=RepeatedRuns(expected_runs=2))
        model = clone(model).set_params(strategy__holdout=0.5, random_state=0).fit(*data)
        assert model.guarantee_.public_inputs["n_scored"] == len(data[0]) // 2
        assert model.guarantee_.public_inputs["expected_runs"] == 2.0

    @pytest.mark.slow
    def test_in_parallel(self, data):
        for strategy in ("split", "repeat"):
            model = search(strategy=strategy, n_jobs=2, random_state=0).fit(*data)
            alone = clone(model).set_params(n_jobs=None).fit(*data)
            assert model.release_ == alone.release_


class TestHybrid:
    def test_public_records_are_in_every_part_and_not_scored_on(self, data, monkeypatch):
        X, y = data
        public = np.arange(600) < 200
        fits, scored = [], []
        original = HybridMEstimator.fit

        def fit(self, X, y, public=None):
            fitted = original(self, X, y, public=public)
            fits.append((public.sum(), (~public).sum(), X[public].sum()))
            return fitted

        def loss(model, X, y):
            scored.append(X)
            return (model.predict(X) != y).astype(float)

        monkeypatch.setattr(HybridMEstimator, "fit", fit)
        model = search(HybridMEstimator(), {"n_cells": [5, 9]}, strategy="split", scoring=loss).fit(
            X, y, public=public
        )
        assert [f[:2] for f in fits] == [(200, 160), (200, 160)]
        assert fits[0][2] == pytest.approx(X[public].sum())
        rows = np.vstack(scored)
        assert len(rows) == 2 * 80
        assert not (rows[:, None] == X[public]).all(axis=2).any()
        assert model.guarantee_.public_inputs["n_public"] == 200

    @pytest.mark.parametrize("piped", [False, True])
    def test_an_estimator_that_was_scored_is_not_released(self, data, piped):
        """Its copy was asked, but may be itself."""

        class Remembers(LogisticRegression):
            def __deepcopy__(self, memo):
                return self

            def predict(self, X):
                self.seen_ = [*getattr(self, "seen_", []), X]
                return super().predict(X)

        X, y = data
        public = np.arange(120) < 60
        estimator = HybridMEstimator(Remembers(), method="cells")
        grid, arguments = {"n_cells": [5, 9]}, {"public": public}
        if piped:
            estimator = make_pipeline(Normalizer(), estimator)
            grid = {f"hybridmestimator__{name}": value for name, value in grid.items()}
            arguments = {"hybridmestimator__public": public}
        model = search(estimator, grid, expected_runs=4).fit(X[:120], y[:120], **arguments)
        best = model.best_estimator_[-1] if piped else model.best_estimator_
        assert not hasattr(best.estimator_, "seen_")
        assert best.release_ == model.release_
        assert any("Remembers" in text for text in model.guarantee_.assumptions)
        assert model.predict(X[:5]).shape == (5,)
        assert len(best.estimator_.seen_) == 1  # it does remember

    def test_estimators_that_may_mix_rows_predict_one_by_one(self, data, monkeypatch):
        class Unknown(DecisionTreeClassifier):
            pass

        sizes, predict = set(), DecisionTreeClassifier.predict

        def asked(self, X, **options):
            sizes.add(len(X))
            return predict(self, X, **options)

        monkeypatch.setattr(DecisionTreeClassifier, "predict", asked)
        public = np.arange(100) < 50
        for inner, expected in ((Unknown(), {1}), (DecisionTreeClassifier(), {10})):
            sizes.clear()
            estimator = HybridMEstimator(inner, method="cells")
            one = search(estimator, {"n_cells": [5]}, strategy="split")
            one.fit(data[0][:100], data[1][:100], public=public)
            assert sizes == expected
