"""Worst pairs are neighbours, always the same, and are accepted by their estimators."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import skdpsurv
from skdpsurv import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    HybridMEstimator,
    PrivateStackingClassifier,
)
from skdpsurv.audit.neighbours import PAIRS, worst_neighbours
from skdpsurv.audit.subject import Subject, check_neighbours
from skdpsurv.base import PrivateEstimator
from skdpsurv.base.linear_estimator import PrivateLinearModel
from skdpsurv.model_selection import PrivateSearchCV
from skdpsurv.published import PerturbedHistogramMEstimator, PublishedStackingClassifier

MODELS = [
    DPDiscreteTimeSurvival(max_time=2.0, n_intervals=3, n_knots=1),
    DPWeibullFitter(max_time=2.0),
    DPKaplanMeierFitter(max_time=2.0, groups=["a", "b"]),
    DPAalenJohansenFitter(max_time=2.0, causes=["relapse", "death"], censored="alive"),
    DPLogisticRegression(classes=[0, 1, 2], data_norm=3.0),
    DPLogisticRegression(classes=["no", "yes"]),
    PrivateStackingClassifier(classes=[0, 1], n_partitions=1),
    PublishedStackingClassifier(classes=[0, 1], n_partitions=1),
    HybridMEstimator(),
    HybridMEstimator(LinearRegression()),
    PerturbedHistogramMEstimator(bounds=[(-1, 1), (0, 2)], n_bins=3, outcome=[0, 1]),
    PerturbedHistogramMEstimator(
        LinearRegression(), bounds=[(-1, 1), (0, 2)], n_bins=3, outcome=(0, 1)
    ),
    PrivateSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, strategy="split"),
]


SOLVE_MUCH = (DPKaplanMeierFitter, DPAalenJohansenFitter, PrivateSearchCV)


def arguments(subject, pair):
    return [subject.fit_arguments(data, "data") for data in pair[1:]]


@pytest.mark.parametrize("model", MODELS)
def test_pairs_are_neighbours_with_names_of_their_own(model):
    subject = Subject.of(model)
    for n, n_features in ((1, 1), (2, 1), (5, 2)):
        pairs, again = (list(worst_neighbours(model, n=n, n_features=n_features)) for _ in range(2))
        assert len({pair.name for pair in pairs}) == len(pairs) >= 4
        for pair, same in zip(pairs, again, strict=True):
            check_neighbours(*arguments(subject, pair))
            for a, b in zip(pair.data + pair.neighbour, same.data + same.neighbour, strict=True):
                np.testing.assert_equal(a, b)
            *_, last = (part for part in pair.data if not isinstance(part, dict))
            private = ~last if isinstance(model, HybridMEstimator) else np.ones(len(last), bool)
            assert private.sum() == n


@pytest.mark.parametrize(
    "model",
    [
        # Of curves, each fit solves for a mode; a search fits many models.
        pytest.param(m, marks=[pytest.mark.slow] * isinstance(m, SOLVE_MUCH))
        for m in MODELS
    ],
)
def test_estimators_accept_them(model):
    n = 8 if isinstance(model, PrivateSearchCV) else 3
    subject = Subject.of(model)
    for pair in worst_neighbours(model, n=n, n_features=2):
        for named in arguments(subject, pair):
            assert subject.seeded(0).fit(**named).guarantee_.epsilon == 1.0


def test_extremes_are_those_of_the_parameters():
    """Rows at the bound and beyond, times at the horizon and beyond, labels as stated."""
    model = DPDiscreteTimeSurvival(max_time=7.0, data_norm=3.0)
    data = [each for pair in worst_neighbours(model, n=1) for each in pair[1:]]
    norms = {float(np.linalg.norm(X[0])) for X, _ in data}
    times = {float(y["time"][0]) for _, y in data}
    assert {0.0, 3.0} < norms
    assert max(norms) > 1e6
    assert 7.0 in times
    assert min(times) < 7.0 / 200
    assert max(times) > 1e6
    pairs = worst_neighbours(DPLogisticRegression(classes=["b", "a"]), n=1)
    assert {label for pair in pairs for _, y in pair[1:] for label in y} == {"a", "b"}


def test_every_estimator_of_the_package_has_pairs_and_no_other():
    """A search has the pairs of what it chooses among."""
    kinds = [*vars(skdpsurv).values(), *vars(skdpsurv.published).values()]
    private = {k for k in kinds if isinstance(k, type) and issubclass(k, PrivateEstimator)}
    assert all(one._card.takes in PAIRS for one in private - {PrivateSearchCV})
    assert PrivateLinearModel._card.takes in PAIRS
    with pytest.raises(TypeError, match="private estimator of this package"):
        worst_neighbours(LogisticRegression())
    with pytest.raises(ValueError, match="n must be"):
        worst_neighbours(DPLogisticRegression(), n=0)
