"""What a search must not do: couple records, tell how many runs there were, or leave traces."""

import random
import threading
import warnings

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, Normalizer

from skdpsurv import (
    DPLogisticRegression,
    HybridMEstimator,
    PrivacyLeakWarning,
    PrivateStackingClassifier,
)
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.mechanisms.sums import LOSS
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.model_selection.candidates import Candidate
from skdpsurv.model_selection.losses import brier_loss, error_loss, summed_losses
from skdpsurv.model_selection.search_plan import SearchRecords
from tests.support.estimators import search_of

GRID = {"alpha": [1e-3, 1e4]}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) / 3.0
    return X, (X[:, 0] > 0).astype(int)


def logistic(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "data_norm": 1.0, **parameters})


class TestOneRecordMovesOneLoss:
    @pytest.mark.parametrize("loss", [error_loss, brier_loss])
    @pytest.mark.parametrize("label", ["x", b"1", "1", 1.5, None, True])
    def test_whatever_its_label_is(self, data, loss, label):
        """Lists of labels are what NumPy would turn into text, or floats, as a whole."""
        X, y = data
        public = np.arange(300) < 100
        model = HybridMEstimator(method="cells").fit(X, y, public=public)
        labels = y[~public].tolist()
        sums = []
        for first in (0, 1, label):
            labels[0] = first
            sums.append(summed_losses(loss, model, X[~public], labels))
        assert max(sums) - min(sums) <= LOSS.sensitivity

    def test_a_list_of_labels_stays_one(self, data):
        X, y = data
        labels = [*y.tolist()[:-1], "x"]
        records = SearchRecords.split(X, labels, {}, logistic())
        _, held_out = records.held_out(np.arange(290, 300))
        assert type(held_out) is list
        assert held_out[0] in (0, 1)
        assert held_out[-1] == "x"

    def test_parameters_are_cut_by_their_names(self):
        """In parts, of people or of records: another may be as long by chance."""

        class Shown(DPLogisticRegression, released=False):
            _one_of_each = ("notes",)

        pipeline = make_pipeline(Normalizer(), Shown(classes=[0, 1]))
        given = {"shown__notes": list("abcd"), "shown__timeline": [1.0, 2.0, 3.0, 4.0]}
        records = SearchRecords.split(np.zeros((4, 1)), [0, 1, 0, 1], given, pipeline)
        _, _, cut = records.training(np.array([0, 2]))
        assert cut == {**given, "shown__notes": ["a", "c"]}
        assert PrivateSearchCV(pipeline, {})._one_of_each == ("shown__notes",)
        with pytest.raises(ValueError, match="shown__notes must have one entry for each record"):
            SearchRecords.split(np.zeros((3, 1)), [0, 1, 0], given, pipeline)

    def test_a_model_that_remembers_forgets_row_by_row(self, data):
        class Startled:
            """Predicts something else once it has seen an extreme row."""

            seen = False

            def predict(self, X):
                self.seen = self.seen or bool((np.abs(X) > 100).any())
                return np.full(len(X), int(self.seen))

        X, _ = data
        frightening = X.copy()
        frightening[0] = 1e3
        sums = [
            summed_losses(error_loss, Startled(), rows, np.zeros(300)) for rows in (X, frightening)
        ]
        assert sums == [0, LOSS.sensitivity]


class TestSilence:
    """The number of runs is private: whoever speaks in a run would tell it."""

    @pytest.mark.parametrize(
        "estimator",
        [
            PrivateStackingClassifier(classes=[0, 1], n_partitions=2, data_norm=1.0),
            make_pipeline(Normalizer(), logistic(), verbose=True),
        ],
        ids=["estimator", "pipeline"],
    )
    def test_verbose_estimators_and_joblib(self, data, estimator, capfd):
        step = "" if isinstance(estimator, PrivateStackingClassifier) else "dplogisticregression__"
        search = search_of(estimator, {f"{step}alpha": [0.1, 1.0]}, expected_runs=5)
        with joblib.parallel_config("sequential", verbose=50):
            search.fit(*data)
        with joblib.parallel_config("threading", verbose=60):
            search.set_params(n_jobs=2).fit(*data)
        assert capfd.readouterr() == ("", "")

    def test_a_memory_of_pipelines(self, data, capfd, tmp_path):
        """It prints a line for each run, and writes what it remembers to disk."""
        model = make_pipeline(Normalizer(), logistic(), memory=joblib.Memory(tmp_path, verbose=50))
        grid = {"dplogisticregression__alpha": [0.1, 1.0]}
        search = search_of(model, grid, expected_runs=5).fit(*data)
        assert capfd.readouterr() == ("", "")
        assert not list(tmp_path.rglob("*.pkl"))
        assert search.best_estimator_.memory is None
        assert model.memory is not None

    @pytest.mark.parametrize("backend", ["sequential", "threading"])
    def test_estimators_that_warn_in_a_thread(self, data, backend, monkeypatch):
        """As a service does, which fits outside of the main thread."""
        shown = []
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            monkeypatch.setattr(warnings, "showwarning", lambda *args, **_: shown.append(args))
            inner = HybridMEstimator(LogisticRegression(max_iter=2), method="cells")
            grid = {"n_cells": [None, 4]}
            search = search_of(inner, grid, expected_runs=5)

            def work():
                with joblib.parallel_config(backend, n_jobs=2):
                    search.fit(*data, public=np.arange(300) < 100)

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert hasattr(search, "best_estimator_")
        assert shown == []

    def test_filters_of_warnings_survive_threads(self, data):
        with warnings.catch_warnings():
            warnings.resetwarnings()
            before = list(warnings.filters)
            with joblib.parallel_config("threading"):
                for _ in range(3):
                    search_of(logistic(), GRID, expected_runs=20, n_jobs=4).fit(*data)
            assert warnings.filters == before
            with pytest.warns(PrivacyLeakWarning):
                logistic(random_state=0).fit(*data)


class TestRunsAreAlike:
    def test_steps_that_write_into_their_input_do_not(self, data):
        X, y = data[0][:60], data[1][:60]
        sums = []

        def loss(model, X, y):
            sums.append(X.sum())
            return (model.predict(X) != y).astype(float)

        kept = X.copy()
        model = make_pipeline(Binarizer(threshold=-0.1, copy=False), logistic())
        grid = {"dplogisticregression__alpha": [0.1, 1.0]}
        search_of(model, grid, scoring=loss, expected_runs=20).fit(X, y)
        np.testing.assert_array_equal(X, kept)
        assert len(set(sums)) == 12  # as many as there are records to score on


def test_a_step_before_does_not_quote_what_it_refuses(data):
    X = data[0].astype(object)
    X[5, 0] = "SECRET"
    search = PrivateSearchCV(make_pipeline(Normalizer(), logistic()), {})
    with pytest.raises(ValueError, match="X must be numeric") as refusal:
        search.fit(X, data[1])
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__context__ is None or "SECRET" not in str(refusal.value.__context__)


def test_the_process_s_own_random_streams_do_not_tell_the_number_of_runs(data):
    """Estimators inside draw from them, once for each fit."""
    X, y = data
    public = np.arange(60) < 30
    found = set()
    for _ in range(6):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        estimator = HybridMEstimator(SGDClassifier(max_iter=5), method="cells")
        search = search_of(estimator, {"n_cells": [3, 4]}, expected_runs=3)
        search.fit(X[:60], y[:60], public=public)
        found.add((np.random.rand(), random.random()))  # noqa: NPY002
    assert len(found) == 1


def test_estimators_that_are_more_silent_than_silent_stay_so():
    for given, ready in ((-1, -1), (0, 0), (3, 0)):
        candidate = Candidate({}, HybridMEstimator(LogisticRegression(verbose=given)))
        assert candidate.ready(Spend(1.0)).estimator.verbose == ready
