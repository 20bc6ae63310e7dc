"""Stacks with a delta: descents on groups of columns or rows, for one price together."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import optimize

from skdpsurv import PrivacyAccountant, PrivateStackingClassifier
from skdpsurv.dp.privacy_cost import epsilon_at
from skdpsurv.mechanisms.descent import joint_distance
from skdpsurv.mechanisms.vector_noise import SphericalGaussian
from tests.support.estimators import stack_of
from tests.support.spies import laws_drawn

N, D, DELTA = 2000, 60, 1e-8


def records(d=D, n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(N, d)) / math.sqrt(d)
    score = X[:, : d // 2].sum(axis=1)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def fit(d=D, n_classes=2, **parameters):
    usual = {"delta": DELTA, "n_partitions": 3, "classes": list(range(n_classes))}
    return stack_of(**{**usual, **parameters}).fit(*records(d, n_classes))


class TestJointDistance:
    def test_it_is_the_largest(self):
        """Against a linear program in the squares."""
        for weights, whole in product(
            [(0.2, 0.3, 0.5), (1.0, 1.0, 1.0), (0.9, 0.05, 0.05)], [0.7, 1.5, 10.0]
        ):
            bounds, squares = np.array([1.0, 0.5, 0.8]), np.square(weights)
            best = optimize.linprog(
                -squares, A_ub=np.ones((1, 3)), b_ub=[whole**2], bounds=[(0, b**2) for b in bounds]
            )
            found = joint_distance(bounds.tolist(), weights, whole)
            assert found == pytest.approx(math.sqrt(-best.fun), rel=1e-9)
            assert found >= math.sqrt(-best.fun)


class TestPrice:
    @pytest.mark.parametrize(
        ("importances", "n_classes"), [(None, 2), (None, 3), ([1.0] * 20 + [4.0] * 40, 2)]
    )
    def test_all_draws_together_cost_mu(self, monkeypatch, importances, n_classes):
        """For the worst pair of rows, counted from the draws; weights do not matter."""
        laws, accountant = laws_drawn(monkeypatch, SphericalGaussian), PrivacyAccountant(1.0, DELTA)
        model = fit(n_classes=n_classes, importances=importances, accountant=accountant)
        assert (accountant.spent(), accountant.spent_delta()) == (1.0, DELTA)
        guarantee, stated = model.guarantee_, model.guarantee_.public_inputs
        steps = stated["n_steps"]
        outputs = n_classes if n_classes > 2 else 1
        assert len(laws) == sum(steps) * outputs
        # Two rows of norm 1 in one group each, constants beside them, of residuals c.
        cap, constant = stated["max_residual"], 0.1
        prices = []
        for k in range(3):
            own = [cap * (math.hypot(float(j == k), constant) * 2.0) for j in range(3)]
            each = zip(own, stated["noise_scale"], steps, strict=True)
            prices.append(outputs * sum(t * (s / scale) ** 2 for s, scale, t in each))
        assert max(prices) / 2.0 <= guarantee.rho
        assert epsilon_at(guarantee.rho, DELTA) <= guarantee.epsilon == 1.0
        if importances is None:  # then a row in one group is the worst there is
            assert max(prices) / 2.0 == pytest.approx(guarantee.rho, rel=0.05)
        built, X = PrivateStackingClassifier.from_release(model.release_), records()[0]
        np.testing.assert_array_equal(built.predict_proba(X), model.predict_proba(X))
        assert built.delta == DELTA

    def test_parts_of_the_rows_have_the_whole_price_each(self):
        model, one = fit(partition="samples"), fit(n_partitions=1)
        assert model.guarantee_.rho == pytest.approx(one.guarantee_.rho, rel=1e-9)

    def test_levels_may_have_laws_of_their_own(self):
        model = fit(combiner="logistic")
        assert "noisy gradient descent" in model.guarantee_.mechanism
        assert "objective perturbation on their votes" in model.guarantee_.mechanism
        # Of one kind of noise epsilon alone speaks, so that no rho covers both.
        assert (model.guarantee_.delta, model.guarantee_.rho) == (DELTA, None)


def test_few_columns_and_fits_without_privacy_have_no_use_for_it():
    for partition in ["features", "samples"]:
        model = fit(d=4, partition=partition, n_partitions=2)
        assert (model.guarantee_.delta, model.guarantee_.rho) == (0.0, None)
        assert "objective perturbation" in model.guarantee_.mechanism
    assert fit(epsilon=math.inf).guarantee_.delta == 0.0
