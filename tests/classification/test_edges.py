"""Settings at the edge of what a fit can work with, and what arithmetic was told to raise."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import special

from skdpsurv import DPLogisticRegression, PrivateStackingClassifier, Release
from skdpsurv.data import PublicInputWarning
from skdpsurv.dp import PrivacyAccountant
from skdpsurv.mechanisms import newton
from skdpsurv.mechanisms.newton import LEAST_RIDGE
from skdpsurv.published import PublishedLogisticRegression
from tests.support.estimators import logistic as perturbed
from tests.support.estimators import stack_of


@pytest.fixture
def no_fallback(monkeypatch):
    def fail(*args):
        raise AssertionError("Newton's method stalled")

    monkeypatch.setattr(newton, "accelerated_gradient", fail)


def test_scipy_may_be_told_to_raise():
    """A record far on the right side underflows the residual: that must not show."""
    n = 20_000
    y = np.arange(n) % 2
    X = np.where(y == 1, 1e-3, -1e-3)[:, None]
    X[1] = 1.0
    accountant = PrivacyAccountant()
    model = perturbed(
        1e4, alpha=0, max_residual=1.0, fit_intercept=False, classes=[0, 1], accountant=accountant
    )
    with special.errstate(all="raise"), np.errstate(all="raise"):
        model.fit(X, y)
    assert accountant.spent() == 1e4


def test_a_warning_that_raises_costs_nothing():
    accountant = PrivacyAccountant()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PublicInputWarning)
        with pytest.raises(UserWarning, match="classes were read from y"):
            DPLogisticRegression(accountant=accountant).fit(np.eye(4), [0, 1, 0, 1])
    assert len(accountant.entries()) == 0


class TestLeastRidges:
    def test_output_perturbation(self, no_fallback):
        """These records kept a solver busy for hours at a ridge of 2e-11."""
        n = 2000
        X = np.zeros((n, 2))
        X[: n // 2, 0] = 1e-7
        X[n // 2 :] = [0.7, -0.7]
        y = np.r_[np.ones(n // 2), np.arange(n // 2) % 2]
        options = {"method": "out_pert", "fit_intercept": False, "max_residual": 1.0}
        model = perturbed(10.0, classes=[0, 1], alpha=1e-14, **options).fit(X, y)
        assert model.guarantee_.public_inputs["kappa"] == (LEAST_RIDGE / 4,)

    def test_published(self, no_fallback):
        """Where two logarithms at the least ridge leave next to nothing for the noise."""
        for epsilon in [9.2, 9.25, 9.3, 9.5, 12.0]:
            X = np.repeat(np.linspace(-1, 1, 10)[None, :], 2000, 0)
            model = PublishedLogisticRegression(epsilon, classes=[0, 1], alpha=0)
            inputs = model.fit(X, np.arange(2000) % 2).guarantee_.public_inputs
            assert inputs["noise_scale"][0] <= 2.0 / (0.05 * 0.998 * epsilon)
            # Noise over ridge is how far out a coefficient may be.
            assert inputs["noise_scale"][0] / inputs["kappa"][0] <= 25.0 * (1 + 1e-9)


def test_a_release_with_classes_from_y_promises_nothing_when_fitted_again():
    X, y = np.eye(10), np.arange(10) % 2
    for kind, epsilon in product([DPLogisticRegression, PrivateStackingClassifier], [1.0, np.inf]):
        rebuilt = kind.from_release(kind(epsilon).fit(X, y).release_)
        assert list(rebuilt.classes_) == [0, 1]
        assert rebuilt.set_params(epsilon=1.0).fit(X, y).guarantee_.status == "none"


def test_a_tampered_release_is_refused_at_once():
    stack = PrivateStackingClassifier(n_partitions=2, partition="samples", classes=[0, 1])
    text = stack.fit(np.eye(10), np.arange(10) % 2).release_.to_json()
    for old, new in (
        ('"n_partitions": 2', '"n_partitions": 100000000'),
        ('"n_features_in": 10', '"n_features_in": 300000000'),
        ('"n_features_in": 10', '"n_features_in": 10.0'),
        ('"feature_names_in": null', '"feature_names_in": "abcdefghij"'),
        ('"feature_names_in": null', '"feature_names_in": ["a"]'),
    ):
        assert old in text
        with pytest.raises(ValueError, match=r"release|Release|feature_names_in"):
            PrivateStackingClassifier.from_release(Release.from_json(text.replace(old, new)))


OF_BOTH = {
    "alpha": (np.float32(0.5), 0.5),
    "data_norm": (np.int64(2), 2),
    "fit_intercept": (np.True_, True),
    "intercept_scaling": (np.float64(0.25), 0.25),
    "classes": (np.array([0, 1]), [0, 1]),
    "max_residual": (np.float64(0.75), 0.75),
    "random_state": (np.int64(0), 0),
}
OF_STACKS = {
    "n_partitions": (np.int32(2), 2),
    "holdout": (np.float64(0.25), 0.25),
    "combiner": ("logistic", "logistic"),
    "group_norms": (np.array([1, 2]), [1, 2]),
    "importances": (np.array([1, 2, 3, 4]), [1, 2, 3, 4]),
}


@pytest.mark.parametrize(("make", "given"), [(perturbed, OF_BOTH), (stack_of, OF_BOTH | OF_STACKS)])
def test_numpy_numbers_are_numbers(make, given):
    X = 2.0 * np.random.default_rng(0).normal(size=(100, 4))
    one, other = (
        make(epsilon, **{name: pair[k] for name, pair in given.items()}).fit(X, X[:, 0] > 0.0)
        for k, epsilon in enumerate((np.float64(1.0), 1.0))
    )
    assert one.release_ == other.release_
    assert one.from_release(Release.from_json(one.release_.to_json())).release_ == one.release_
