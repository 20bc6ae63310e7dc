"""Exact ratios: below the claim for what is shipped, near it somewhere, above it with a defect."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skdpsurv import (
    DPCompetingRisks,
    DPDiscreteTimeSurvival,
    DPWeibullFitter,
    HybridMEstimator,
    PrivateStackingClassifier,
    published,
)
from skdpsurv.audit.density_ratio import Density, density_ratio_audit, ladder_logs, minimisations
from skdpsurv.audit.walk import planned
from skdpsurv.likelihoods.competing_hazard import CompetingHazard
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.linear import Logistic
from skdpsurv.mechanisms.ladder import UNIT
from skdpsurv.published import weibull_fitters as weibull_plans
from tests.support.estimators import logistic as perturbed
from tests.support.planted_defects import (
    doubled_ladder,
    half_of_gradients,
    intercept_outside_the_norm,
)
from tests.support.worst_pairs import one_of_each_change, pair

FLIPPED = ([[1.0]], [0]), ([[1.0]], [1])


def logistic(**parameters):
    return perturbed(**{"classes": [0, 1], **parameters})


def weibull(ladder, **parameters):
    if ladder == "tight":
        return DPWeibullFitter(max_time=1.0, **parameters)
    return published.PublishedWeibullFitter(max_time=1.0, ladder=ladder, **parameters)


def hazard(**parameters):
    fixed = {"max_time": 1.0, "n_intervals": 4, "n_knots": 1, "data_norm": 1.0}
    return DPDiscreteTimeSurvival(**{**fixed, "pilot_share": 0.0, **parameters})


def causes(epsilon=1.0):
    fixed = {"causes": [1, 2], "max_time": 1.0, "n_intervals": 4, "n_knots": 1, "data_norm": 1.0}
    shares = {"pilot_share": 0.0, "max_cumulative_hazard": 0.8}
    return DPCompetingRisks(epsilon, alpha=20.0, **fixed, **shares)


ENDS = np.array([(1, 0.2), (0, 1.0), (2, 0.2)], dtype=[("cause", int), ("time", float)])
ONE_CAUSE, NO_EVENT, OTHER_CAUSE = (
    ([[x]], ENDS[i : i + 1]) for i, x in enumerate((1.0, 1.0, -1.0))
)
AT_ONCE = "event at once or censored at the end, alone"


class TestMinimisers:
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
    def test_all_of_epsilon_but_the_sliver_is_attained(self, epsilon):
        model = logistic(epsilon=epsilon, alpha=60.0, max_residual=0.5, fit_intercept=False)
        result = density_ratio_audit(model, *FLIPPED)
        assert result.passed
        assert 0.99 * epsilon < result.largest <= 0.999 * epsilon
        assert "not refuted" in repr(result)

    @pytest.mark.parametrize("method", ["obj_pert", "out_pert"])
    def test_hazards(self, method):
        model = hazard(method=method, alpha=20.0)
        result = density_ratio_audit(model, *pair(model, AT_ONCE, n=1))
        assert result.passed
        assert result.largest > 0.5

    @pytest.mark.slow
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
    def test_hazards_of_competing_causes_as_one_vector(self, epsilon):
        """An event or none; and the event of one cause for that of the other."""
        model = causes(epsilon)
        for other, least in ((NO_EVENT, 0.6), (OTHER_CAUSE, 0.5)):
            result = density_ratio_audit(model, ONE_CAUSE, other)
            assert result.passed
            assert least * epsilon < result.largest

    def test_output_perturbation(self):
        result = density_ratio_audit(logistic(method="out_pert", alpha=60.0), *FLIPPED)
        assert 0.9 < result.largest <= 1.0

    def test_classes_share_epsilon(self):
        """Two of the three models see a label that is flipped."""
        model = logistic(classes=[0, 1, 2], alpha=60.0, max_residual=0.5)
        result = density_ratio_audit(model, *FLIPPED)
        assert 0.6 < result.largest < 0.7
        assert len(result.where) == 6

    def test_groups_share_epsilon(self):
        model = PrivateStackingClassifier(classes=[0, 1], n_partitions=2, alpha=60.0)
        flipped = pair(model, "label flipped at a row of all columns, alone", n=1, n_features=2)
        result = density_ratio_audit(model, *flipped)
        assert result.passed
        assert result.largest > 0.5

    def test_the_ratio_is_that_of_the_densities_at_the_point(self):
        model = logistic(fit_intercept=False)
        result = density_ratio_audit(model, *FLIPPED)
        fits = [planned(clone(model), {"X": np.array(X), "y": y}) for X, y in FLIPPED]
        laws = [Density.of(minimisations(*fit)[0]) for fit in fits]
        points = np.linspace(-3000.0, 3000.0, 4001)[:, None]
        densities = [np.exp([law.log_density(p) for p in points]) for law in laws]
        # Both have one constant: the densities as they are integrate to the same.
        assert np.sum(densities[0]) == pytest.approx(np.sum(densities[1]), rel=0.05)
        first, second = (law.log_density(np.array(result.where)) for law in laws)
        assert abs(first - second) == pytest.approx(result.largest)


EVENT_OR_NOT = "event at zero or censored at the horizon, others with events at zero"
SLOW_PUBLISHED = pytest.param("published", marks=pytest.mark.slow)


class TestLadders:
    @pytest.mark.parametrize("ladder", ["tight", "exact", SLOW_PUBLISHED])
    def test_below_their_share_and_not_far(self, ladder):
        model = weibull(ladder)
        result = density_ratio_audit(model, *pair(model, EVENT_OR_NOT, n=4), n_cells=64)
        assert 0.3 * result.claimed < result.largest <= result.claimed <= 1.0
        assert 0.0 < result.where[0] <= 10.0
        assert "noisy counts and sums" in result.not_audited
        assert "samplers" in repr(result)

    def test_law_of_levels_that_are_known(self):
        class Steps:
            n_cells = 4

            def down_to(self, node):
                return {1: 2, 2: 1, 3: 0}[node] * UNIT

            def up_to(self, node):
                return {1: 0, 2: 0, 3: 1}[node] * UNIT

        weights = np.exp(-0.5 * 1.5 * np.array([2.0, 1.0, 0.0, 1.0]))
        found = np.exp(ladder_logs(Steps(), 1.5, None, 4))
        np.testing.assert_allclose(found, weights / weights.sum())

    def test_levels_that_move_by_two_are_caught(self):
        model = weibull("exact")
        ones = np.ones(4)
        data = (np.r_[0.0, ones[1:]], ones == 1), (ones, np.arange(4) > 0)
        assert density_ratio_audit(model, *data, n_cells=64).passed
        with doubled_ladder(weibull_plans, "ExactLevels"):
            assert not density_ratio_audit(model, *data, n_cells=64).passed


class TestPlantedDefects:
    def test_intercept_outside_the_norm(self):
        model = logistic(intercept_scaling=1.0, alpha=60.0)
        assert density_ratio_audit(model, *FLIPPED).passed
        with intercept_outside_the_norm():
            result = density_ratio_audit(model, *FLIPPED)
        assert not result.passed
        assert "REFUTED" in repr(result)

    @pytest.mark.parametrize(
        "kind", [Logistic, DiscreteHazard, pytest.param(CompetingHazard, marks=pytest.mark.slow)]
    )
    def test_half_of_the_sensitivity(self, kind):
        model, data = {
            Logistic: (logistic(alpha=60.0), FLIPPED),
            DiscreteHazard: (hazard(alpha=60.0), pair(hazard(), AT_ONCE, n=1)),
            CompetingHazard: (causes(), (ONE_CAUSE, NO_EVENT)),
        }[kind]
        assert density_ratio_audit(model, *data).passed
        with half_of_gradients(kind):
            assert not density_ratio_audit(model, *data).passed


class TestRefusals:
    @pytest.mark.parametrize(
        ("model", "match"),
        [
            (HybridMEstimator(), "minimisers and nothing else"),
            (hazard(method="psgld"), "minimisers and nothing else"),
            (hazard(pilot_share=0.1, epsilon=500.0), "minimisers and nothing else"),
            (published.LaplaceWeibullFitter(max_time=1.0), "ladder"),
            (PrivateStackingClassifier(classes=[0, 1], partition="samples"), "partition"),
            (LogisticRegression(), "private"),
            (logistic(epsilon=np.inf), "no claim"),
        ],
    )
    def test_laws_that_are_not_known(self, model, match):
        y = np.array([(True, 0.1)], dtype=[("e", "?"), ("t", "f8")])
        other = np.array([(False, 0.1)], dtype=y.dtype)
        survival = isinstance(model, DPDiscreteTimeSurvival | published.LaplaceWeibullFitter)
        data = (([[1.0]], y), ([[1.0]], other)) if survival else FLIPPED
        if isinstance(model, HybridMEstimator):
            X, public = [[1.0], [0.0], [1.0]], [False, True, True]
            data = tuple((X, [label, 0, 1], public) for label in (0, 1))
        with pytest.raises((TypeError, ValueError), match=match):
            density_ratio_audit(model, *data)


SHIPPED = [
    *(
        hazard(method=method, link=link, alpha=alpha, n_knots=knots)
        for method in ("obj_pert", "out_pert")
        for link, knots in (("logit", 1), ("cloglog", 2), ("probit", 1))
        for alpha in (0.0, 20.0)
    ),
    published.PublishedDiscreteTimeSurvival(
        max_time=1.0, n_intervals=4, n_knots=1, data_norm=1.0, alpha=20.0
    ),
    *(logistic(max_residual=c, alpha=a) for c in (0.5, 1.0) for a in ("auto", 20.0)),
    logistic(intercept_scaling=10.0),
    logistic(data_norm=100.0, fit_intercept=False),
    published.PublishedLogisticRegression(classes=[0, 1]),
    logistic(classes=[0, 1, 2]),
    PrivateStackingClassifier(classes=[0, 1], n_partitions=2),
    published.PublishedStackingClassifier(classes=[0, 1], n_partitions=2),
    *(weibull(ladder) for ladder in ("tight", "exact", "published")),
]
STACKS = (PrivateStackingClassifier, published.PublishedStackingClassifier)


@pytest.mark.slow
@pytest.mark.parametrize("model", SHIPPED)
def test_worst_pairs(model):
    """All sorts of changes at epsilon 1, and the strongest where epsilon is small or large."""
    n_features = 2 if isinstance(model, STACKS) else 1
    for epsilon, most in ((0.1, 1), (1.0, None), (8.0, 1)):
        model = clone(model).set_params(epsilon=epsilon)
        for name, *data in one_of_each_change(model, most, n=3, n_features=n_features):
            assert density_ratio_audit(model, *data, n_cells=64).passed, (epsilon, name)
