"""Settings at the edge of what a fit can work with, and what arithmetic was told to raise."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import special

from skdpsurv import DPLogisticRegression, PrivacyLeakWarning, PrivateStackingClassifier, Release
from skdpsurv.data import PublicInputWarning
from skdpsurv.dp import PrivacyAccountant
from skdpsurv.mechanisms import newton
from skdpsurv.mechanisms.newton import LEAST_RIDGE
from skdpsurv.published import PublishedLogisticRegression
from tests.support.combinations import thinned
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


OF_BOTH = {"data_norm": np.int64(2), "fit_intercept": np.True_, "random_state": np.int64(0)}
OF_BOTH |= {name: np.float64(0.75) for name in ("max_residual", "intercept_scaling")}
OF_BOTH |= {"alpha": np.float32(0.5), "classes": np.array([0, 1]), "epsilon": np.float64(1.0)}
OF_STACKS = {"n_partitions": np.int32(2), "holdout": np.float64(0.25), "combiner": "logistic"}
OF_STACKS |= {"group_norms": np.array([1, 2]), "importances": np.array([1, 2, 3, 4])}


@pytest.mark.parametrize(("make", "given"), [(perturbed, OF_BOTH), (stack_of, OF_BOTH | OF_STACKS)])
def test_numpy_numbers_are_numbers(make, given):
    X = 2.0 * np.random.default_rng(0).normal(size=(100, 4))
    plain = {n: value if isinstance(value, str) else value.tolist() for n, value in given.items()}
    one, other = (make(**parameters).fit(X, X[:, 0] > 0.0) for parameters in (given, plain))
    assert one.release_ == other.release_
    assert one.from_release(Release.from_json(one.release_.to_json())).release_ == one.release_


N = 301
STACKED = [
    {"partition": partition, "combiner": combiner, "calibration": calibration, "n_partitions": 3}
    for partition in ("features", "samples")
    for combiner in ("weighted_vote", "vote", "logistic")
    for calibration in ("tight", "published")
]
VARIANTS = [{}, {"method": "out_pert"}, {"published": True}, {"max_residual": 1.0}, *STACKED]


def made(epsilon, published=False, **parameters):
    make = PublishedLogisticRegression if published else perturbed
    make = stack_of if "partition" in parameters else make
    return make(epsilon, **{"classes": [0, 1], "random_state": 0, **parameters})


def coefficients(one):
    return np.hstack([np.ravel(c) for c in getattr(one, "low_level_coef_", None) or [one.coef_]])


@pytest.fixture(scope="module")
def data():
    """Rows in the unit ball and labels that follow them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    X /= 1.1 * np.linalg.norm(X, axis=1)[:, None]
    return X, (4.0 * X[:, 0] + rng.logistic(size=N) > 0.0).astype(int)


@pytest.mark.parametrize(("epsilon", "parameters"), thinned([0.01, 1.0, 1e4, np.inf], VARIANTS))
def test_every_data_set_gets_a_fit(data, epsilon, parameters):
    """What depends on records must not raise or warn: it would tell about them."""
    X, labels = data
    x, fewest = X[:, :1], {"logistic": 6}.get(parameters.get("combiner"), 3)
    columns = np.hstack([np.ones((N, 1)), np.zeros((N, 1)), x, x, 1e-300 * x])
    numbers = [fewest] if "partition" in parameters else [1, 2]
    cases = [(np.full((n, 3), 0.5), np.arange(n) % 2, 2) for n in numbers]
    cases += [(X, np.full(N, label), size) for label in (0, 1) for size in (2, 3)]
    cases.append((columns, (x[:, 0] > 0).astype(int), 2))
    if np.isfinite(epsilon):  # the fit without privacy takes columns as they are
        cases.append((1e300 * X, labels, 2))
    for rows, y, n_classes in cases:
        one = made(epsilon, **parameters).set_params(classes=list(range(n_classes)))
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PublicInputWarning)
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            one.fit(rows, y)
        assert np.isfinite(coefficients(one)).all()
        p = one.predict_proba(rows[:5])
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert (p >= 0).all()
        assert p.shape[1] == n_classes


def test_long_rows_are_scaled_to_the_public_norm(data):
    """Not so short ones."""
    X, y = data
    for parameters in VARIANTS:
        short, long, longer = (
            coefficients(made(1.0, **parameters).fit(np.where(y[:, None] < place, times * X, X), y))
            for place, times in ((0, 1.0), (1, 8.0), (1, 80.0))
        )
        np.testing.assert_allclose(long, longer, atol=1e-5)
        assert np.abs(long - short).max() > 1e-4
