"""The choice among candidates: losses of single records, and what is released of their sums."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier

from skdpsurv.dp import random_source
from skdpsurv.hybrid import subset as module
from skdpsurv.hybrid.subset import SELECTIONS, record_losses
from skdpsurv.mechanisms import sums


class Says(RegressorMixin, BaseEstimator):
    """Predicts what it was told to, for the row whose number is in the first column."""

    def __init__(self, values=()):
        self.values = values

    def predict(self, X):
        return np.asarray(self.values, dtype=float)[X[:, 0].astype(int)]


class SaysProbabilities(ClassifierMixin, Says):
    classes_ = np.array([0, 1])
    predict_proba = Says.predict


def labels(*values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


class TestLosses:
    @pytest.mark.parametrize(
        ("says", "outcomes", "losses"),
        [
            # Half the Brier score; unknown labels; an absolute error; and what is no number.
            ([[0.3, 0.7], [0.3, 0.7], [1, 0], [1, 0]], labels(1, 0, 0, 1), [0.09, 0.49, 0.0, 1.0]),
            ([[1, 0], [0.5, 0.5], [0, 1]], labels("x", 7, (1, 2)), [1.0, 0.75, 1.0]),
            ([[np.nan, np.nan], [np.inf, 0.0]], labels(0, 1), [1.0, 1.0]),
            ([1, 2, 99, -99, 3], np.array([2, 2, 2, 2, 1e300]), [0.25, 0.0, 1.0, 1.0, 0.25]),
            ([np.nan, np.inf, -np.inf], np.zeros(3), [1.0, 1.0, 1.0]),
        ],
    )
    def test_by_hand(self, says, outcomes, losses):
        """Numbers are measured by the public range of outcomes, from 0 to 4."""
        fitted = (SaysProbabilities if np.ndim(says) == 2 else Says)(says)
        rows = np.arange(len(says))[:, None]
        with np.errstate(all="ignore"):
            found = record_losses(fitted, rows, outcomes, low=0.0, span=4.0)
        np.testing.assert_allclose(found, losses)

    def test_classifier_without_probabilities(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(50, 2))
        y = (X[:, 0] > 0).astype(int)
        fitted = RidgeClassifier().fit(X, y)
        theirs = labels(*y.tolist())
        theirs[0], theirs[1] = "unknown", 1 - fitted.predict(X)[1]
        expected = fitted.predict(X) != y
        expected[:2] = True
        np.testing.assert_array_equal(record_losses(fitted, X, theirs), expected)


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearRegression()], ids=repr)
def test_one_record_moves_each_sum_by_at_most_one(estimator):
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(80, 2)), rng.normal(size=80)
    y = X[:, 0] + noise
    if isinstance(estimator, LogisticRegression):
        y = (X[:, 0] > noise).astype(int)
    fitted = estimator.fit(X[:40], y[:40])
    options = {"low": -1.0, "span": 2.0}
    before = record_losses(fitted, X[40:], y[40:], **options)
    assert ((before >= 0) & (before <= 1)).all()
    most = 0.0
    for row in (1e6, -1e6, 0.0):
        for value in y[:3]:
            theirs, their_y = X[40:].copy(), y[40:].copy()
            theirs[5], their_y[5] = row, value
            after = record_losses(fitted, theirs, their_y, **options)
            most = max(most, abs(after.sum() - before.sum()))
            np.testing.assert_array_equal(np.delete(after, 5), np.delete(before, 5))
    assert 0.1 < most <= 1.0


@pytest.fixture
def exact(monkeypatch):
    """Take sums of losses for records."""
    monkeypatch.setattr(module, "exact_losses", lambda known, totals, public: totals)


def select(totals, epsilon, selection, source):
    """Return the place of what is chosen, and the curve."""
    places = [(np.array([i]), np.ones(1)) for i in range(len(totals))]
    choice = SELECTIONS[selection](price=epsilon, public=None, n_fits=len(totals))
    found = choice.run({"_candidates": places}, list(totals), source)
    return int(found["public_index"][0]), found.get("curve")


@pytest.mark.usefixtures("exact")
class TestChoice:
    totals = tuple(sums.LOSS.total(np.full(100, loss)) for loss in (0.6, 0.25, 0.5))

    def test_permute_and_flip_is_used_once(self, monkeypatch):
        """With all of epsilon, sensitivity 1, and sums that are exact."""
        calls = []

        def spy(scores, epsilon, sensitivity, source):
            calls.append((list(scores), epsilon, sensitivity))
            return 2

        monkeypatch.setattr(sums, "permute_and_flip", spy)
        place, curve = select(self.totals, 0.3, "permute_and_flip", random_source(0))
        assert (place, curve) == (2, None)
        ((scores, epsilon, sensitivity),) = calls
        assert epsilon == 0.3
        np.testing.assert_allclose(np.array(scores) / sensitivity, [-60.0, -25.0, -50.0], atol=1e-6)

    def test_a_published_curve_pays_for_each_point(self, monkeypatch):
        """Scale k / epsilon for sums that one record moves by 1."""
        scales = []

        def no_noise(value, scale, source):
            scales.append(scale / 2**30)
            return value

        monkeypatch.setattr(sums, "lattice_laplace", no_noise)
        for k in [1, 3, 10]:
            scales.clear()
            place, curve = select((self.totals * 4)[:k], 0.5, "noisy_curve", random_source(0))
            assert scales == pytest.approx([k / 0.5] * k)
            assert place == (0 if k == 1 else 1)
            np.testing.assert_allclose(curve[0], 60.0, atol=1e-6)

    def test_without_noise_the_best_is_taken(self):
        for selection in SELECTIONS:
            place, curve = select(self.totals, np.inf, selection, random_source(0))
            assert place == 1
        np.testing.assert_allclose(curve, [60.0, 25.0, 50.0], atol=1e-6)
