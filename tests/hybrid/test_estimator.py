"""HybridMEstimator: what it refuses, what it charges, what leaves a fit, and how well it does."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdpsurv import HybridMEstimator, PrivacyAccountant, Release
from skdpsurv.hybrid import SubsetSelection
from skdpsurv.hybrid.hybrid_plan import METHODS
from skdpsurv.mechanisms import moments, sums
from tests.support.combinations import thinned

N, N_PUBLIC = 300, 120
REGRESSORS = [
    LinearRegression(),
    Ridge(alpha=0.1),
    HuberRegressor(),
    QuantileRegressor(alpha=0.0),
    PoissonRegressor(),
]
CLASSIFIERS = [None, LogisticRegression(C=0.1), DecisionTreeClassifier(max_depth=3, random_state=0)]


def model(epsilon=1.0, estimator=None, **parameters):
    if parameters.get("method") == "subset":
        parameters["method"] = SubsetSelection(
            parameters.pop("selection", "permute_and_flip"),
            candidate_sizes=parameters.pop("candidate_sizes", [40, 90]),
        )
    return HybridMEstimator(estimator, epsilon, **{"random_state": 0, **parameters})


@pytest.fixture(scope="module")
def data():
    """Public records have another slope than the private ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    mask = rng.permutation(N) < N_PUBLIC
    score = np.where(mask, 0.3, 2.0) * X[:, 0]
    return X, (rng.random(N) < special.expit(score)).astype(int), mask


@pytest.fixture(scope="module")
def mixed(data):
    X, y, mask = data
    frame = pd.DataFrame({"age": X[:, 0], "bmi": X[:, 1]})
    frame["site"] = pd.Categorical(np.where(X[:, 1] > 0.5, "north", "south"))
    frame["drug"] = np.where(X[:, 0] > 0.0, "a", "b")
    return frame, y, mask


#: Others are refused in test_hybrid_blocks.
BAD_MASKS = [np.full(N, "yes"), (np.arange(N) < 9)[:, None], "public", [True, None] * (N // 2)]
BAD = [
    ("estimator", {"estimator": KNeighborsClassifier()}),
    ("weights", {"estimator": LinearRegression(), "weights": "signed"}),
    ("method", {"method": "best"}),
    ("selection", {"method": "subset", "selection": "best"}),
    ("weights", {"weights": "positive"}),
    ("n_cells", {"n_cells": 2.5}),
    ("n_cells", {"n_cells": 7, "method": "residuals"}),
    ("n_cells", {"n_cells": N_PUBLIC + 1, "method": "cells"}),
    ("budget_split", {"method": "subset", "budget_split": (0.5, 0.5)}),
    ("candidate_sizes", {"method": "subset", "candidate_sizes": (3, N)}),
    ("categorical_features", {"categorical_features": [2]}),
    ("delta", {"delta": 1.0}),
]


def test_refusals_cost_nothing(data):
    X, y, mask = data
    cases = [(model(), y, public, TypeError, "public") for public in BAD_MASKS]
    cases += [(model(**changes), y, mask, (ValueError, TypeError), name) for name, changes in BAD]
    # An estimator that cannot be fitted to public records, which are of one class.
    cases.append((model(), np.where(mask, 1, y), mask, ValueError, "class"))
    for one, outcome, public, error, message in cases:
        accountant = PrivacyAccountant()
        with pytest.raises(error, match=message):
            one.set_params(accountant=accountant).fit(X, outcome, public=public)
        assert len(accountant.entries()) == 0


class TestEstimators:
    @pytest.mark.parametrize(("estimator", "method"), thinned(REGRESSORS, METHODS))
    def test_regression(self, data, estimator, method):
        X, _, mask = data
        y = np.exp(0.5 * X[:, 0] + 0.2 * np.random.default_rng(1).normal(size=N))
        one = model(50.0, estimator, method=method).fit(X, y, public=mask)
        assert type(one.estimator_) is type(estimator)
        assert np.corrcoef(one.predict(X), X[:, 0])[0, 1] > 0.8
        assert one.score(X, y) == one.estimator_.score(X, y)
        assert not hasattr(one, "predict_proba")

    @pytest.mark.parametrize(("estimator", "method"), thinned(CLASSIFIERS, METHODS))
    def test_classes_here_and_rebuilt(self, mixed, estimator, method):
        X, y, mask = mixed
        words = np.array(["well", "ill"])[y]
        one = model(20.0, estimator, method=method).fit(X, words, public=mask)
        assert list(one.classes_) == ["ill", "well"]
        assert one.score(X, words) > 0.6
        release = Release.from_json(one.release_.to_json())
        theirs = X[mask], words[mask]
        other = HybridMEstimator.from_release(
            release, X=theirs[0], y=theirs[1], estimator=estimator
        )
        np.testing.assert_array_equal(other.predict_proba(X), one.predict_proba(X))
        for X, y in ((theirs[0], None), (None, theirs[1]), (theirs[0][:9], theirs[1][:9])):
            with pytest.raises(ValueError, match="public records"):
                HybridMEstimator.from_release(release, X=X, y=y, estimator=estimator)

    def test_without_noise_private_records_are_heard(self, data):
        X, y, mask = data
        alone = LogisticRegression().fit(X[mask], y[mask])
        for method in ["cells", "all", "auto", "residuals"]:
            one = model(np.inf, method=method).fit(X, y, public=mask)
            assert one.guarantee_.status == "none"
            assert one.estimator_.coef_[0, 0] > alone.coef_[0, 0] + 0.3

    def test_all_without_noise_is_a_fit_on_nearest_points(self, data):
        """Algorithm 1 by hand; a public record that is there twice is one point, the first."""
        X, y, mask = data
        low, high = X[mask].min(axis=0), X[mask].max(axis=0)
        rows = np.column_stack([np.clip((X - low) / (high - low), 0.0, 1.0), y / np.sqrt(2)])
        squares = ((rows[~mask][:, None] - rows[mask][None]) ** 2).sum(axis=2)
        weights = np.bincount(squares.argmin(axis=1), minlength=N_PUBLIC)
        for records in (data, [np.concatenate([part, part[mask]]) for part in data]):
            one = model(np.inf, method="all").fit(*records)
            np.testing.assert_array_equal(one.public_index_, np.arange(N_PUBLIC))
            np.testing.assert_array_equal(one.weights_, weights)
        one = model(np.inf, method="all").fit(*data)
        expected = LogisticRegression().fit(X[mask], y[mask], sample_weight=weights)
        np.testing.assert_allclose(one.estimator_.coef_, expected.coef_)

    def test_cells_spread_counts_evenly(self, data):
        one = model(np.inf, method="cells", n_cells=7).fit(*data)
        assert one.n_cells_ == 7
        assert one.weights_.sum() == pytest.approx(N - N_PUBLIC)
        assert np.unique(one.weights_.round(9)).size <= 7

    def test_curve(self, data):
        options = {"method": "subset", "selection": "noisy_curve", "candidate_sizes": [40, 80, 90]}
        one = model(50.0, **options).fit(*data)
        assert one.curve_.shape == (3,)
        assert one.public_index_.size == (40, 80, 90)[one.curve_.argmin()]
        one.set_params(method__selection="permute_and_flip")
        assert not hasattr(one.fit(*data), "curve_")


def test_categories_by_name_in_an_array_or_a_frame(mixed):
    frame, y, mask = mixed
    array = frame.to_numpy(dtype=object)
    weights = [
        model(categorical_features=chosen).fit(X, y, public=mask).weights_
        for X, chosen in [
            (frame, None),
            (frame, ["site", "drug"]),
            (array, [3, 2]),
            (array.tolist(), None),
        ]
    ]
    for other in weights[1:]:
        np.testing.assert_array_equal(weights[0], other)


def neighbours(mixed):
    """Yield data sets that differ in one private record, far."""
    frame, y, mask = mixed
    i = np.flatnonzero(~mask)[11]
    for numbers, site, drug, label in [
        ((0.0, 0.0), "north", "a", 0),
        ((1e9, -1e300), "elsewhere-and-far-away", None, "a label as long as this"),
        ((-3.25, 7.5), 3, "b", 0.5),
    ]:
        other, labels = frame.astype({"site": object}), y.astype(object)
        other.loc[i, ["age", "bmi"]] = numbers
        other.loc[i, ["site", "drug"]] = [site, drug]
        labels[i] = label
        yield other, labels, mask


@pytest.mark.parametrize(("method", "estimator"), thinned(METHODS, CLASSIFIERS[::2]))
def test_nothing_but_the_release_depends_on_a_private_record(mixed, monkeypatch, method, estimator):
    """With mechanisms that answer the same whatever they are asked."""
    monkeypatch.setattr(sums, "lattice_laplace", lambda v, scale, source: 0 * v + 3)
    monkeypatch.setattr(sums, "permute_and_flip", lambda *args: 1)
    monkeypatch.setattr(moments, "add_noise", lambda v, scale, source: 0.0 * v + 0.01)
    seen = []
    for frame, y, mask in neighbours(mixed):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one = model(method=method, estimator=estimator).fit(frame, y, public=mask)
        assert one.classes_.tolist() == [0, 1]
        assert one.predict(frame.assign(age=0.0, bmi=0.0)).shape == (N,)  # unseen categories
        attributes = {k: repr(v) for k, v in vars(one).items() if k != "estimator_"}
        said = [str(w.message) for w in caught]
        released = one.release_.to_json(), repr(one.classes_.dtype)
        seen.append((pickle.dumps(one.estimator_), attributes, said, released))
    for other in seen[1:]:
        assert other == seen[0]


def test_a_mask_is_cut_as_rows_are(data, monkeypatch):
    """Inside pipelines and searches; the first column says whether a record is public."""
    X, y, mask = data
    X = np.column_stack([mask, X])
    seen, honest = [], HybridMEstimator.fit

    def spy(self, X, y, public=None):
        seen.append((np.asarray(X)[:, 0] > X[:, 0].mean(), np.asarray(public)))
        return honest(self, X, y, public=public)

    monkeypatch.setattr(HybridMEstimator, "fit", spy)
    with config_context(enable_metadata_routing=True):
        one = model(5.0).set_fit_request(public=True).set_score_request(public=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), one),
            {"hybridmestimator__epsilon": [1.0, 5.0]},
            cv=KFold(2, shuffle=True, random_state=0),
            error_score="raise",
        )
        search.fit(X, y, public=mask)
    assert [public.size for _, public in seen] == [N // 2] * 4 + [N]
    for truth, public in seen:
        np.testing.assert_array_equal(truth, public)


class TestPipelines:
    """Steps learn from public records alone, and the last one takes the weights."""

    @pytest.mark.parametrize("routing", [False, True])
    @pytest.mark.parametrize("method", METHODS)
    def test_a_pipeline_is_fitted(self, data, method, routing):
        X, y, mask = data
        inner = make_pipeline(StandardScaler(copy=False), make_pipeline(LogisticRegression()))
        kept = X.copy()
        with config_context(enable_metadata_routing=routing):
            one = model(5.0, inner, method=method).fit(X, y, public=mask)
            again = HybridMEstimator.from_release(
                one.release_, X=X[mask], y=y[mask], estimator=inner
            )
        np.testing.assert_array_equal(X, kept)
        np.testing.assert_allclose(one.estimator_[0].mean_, X[mask].mean(axis=0))
        np.testing.assert_array_equal(one.predict_proba(X), again.predict_proba(X))
        scaler = StandardScaler().fit(X[mask])
        found = one.estimator_[1][-1]
        np.testing.assert_array_equal(found.predict(scaler.transform(X)), one.predict(X))
        assert one.score(X, y) > 0.6

    def test_only_scalers_are_known_to_treat_rows_one_by_one(self, data):
        for step, known in ((StandardScaler(), True), (PolynomialFeatures(), False)):
            inner = make_pipeline(step, LogisticRegression())
            fitted = model(1.0, inner, method="residuals").fit(*data)
            said = " ".join(fitted.guarantee_.assumptions)
            assert ("what Pipeline predicts" in said) is not known

    def test_one_whose_last_step_takes_no_weights_is_refused_by_name(self, data):
        accountant = PrivacyAccountant()
        inner = make_pipeline(StandardScaler(), KNeighborsClassifier())
        with pytest.raises(TypeError, match="sample_weight, and the last step of a pipeline, kn"):
            model(1.0, inner, accountant=accountant).fit(*data)
        assert accountant.spent() == 0.0


def test_score_of_private_rows(data):
    X, y, mask = data
    one = model().fit(*data)
    words = one.predict(X) == y
    assert one.score(X, y) == pytest.approx(words.mean())
    assert one.score(X, y, public=mask) == pytest.approx(words[~mask].mean())
    weights = np.arange(N) % 3
    found = one.score(X, y, sample_weight=weights, public=mask)
    assert found == pytest.approx(np.average(words[~mask], weights=weights[~mask]))
    # A fold without public rows.
    assert one.score(X, y, public=np.zeros(N, dtype=bool)) == one.score(X, y)


def test_only_public_records_make_cells(data, monkeypatch):
    shapes, honest = [], KMeans.fit

    def spy(self, X, *args, **options):
        shapes.append(X.shape)
        return honest(self, X, *args, **options)

    monkeypatch.setattr(KMeans, "fit", spy)
    model(method="cells").fit(*data)
    assert shapes == [(N_PUBLIC, 5)]
