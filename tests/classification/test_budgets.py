"""How groups share epsilon: published formulas by hand, and what the tight plan promises."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from skdpsurv.classification import budgets
from skdpsurv.classification.budgets import GroupSetting, of_each, output_ridge
from skdpsurv.likelihoods.linear import Logistic
from skdpsurv.mechanisms import objective
from skdpsurv.mechanisms.joint_calibration import joint_curvature_cost

WEIGHTS = (0.5, 0.3, 0.2)
SETTING = GroupSetting(
    n_records=400,
    n_outputs=1,
    price=1.0,
    groups=((0, 1), (2,), (3, 4)),
    weights=WEIGHTS,
    data_norm=2.0,
    group_norms=(2.0, 1.5, 1.0),
    constant=0.1,
    alpha=None,
    max_residual=None,
)
SINGLE = replace(
    SETTING, groups=((0, 1, 2, 3, 4),), weights=(1.0,), group_norms=(1.0,), data_norm=1.0
)


def test_settings():
    for n_outputs in [1, 3, 7, 10]:
        share = of_each(1.0, n_outputs)
        assert n_outputs * Fraction(share) <= 1
        assert share == pytest.approx(1.0 / n_outputs)
    # Columns are in units of the norm.
    columns = SETTING.unit_columns()
    assert [g.bound for g in columns] == pytest.approx([math.hypot(b, 0.1) for b in (1, 0.75, 0.5)])
    assert [g.n_params for g in columns] == [3, 2, 3]
    assert replace(SETTING, max_residual=0.7).capped() == 0.7
    for n in (1, 100, 10**4, 10**8):
        assert 0.5 <= replace(SETTING, n_records=n).capped() <= 1.0


class TestTight:
    def test_spends_no_more_than_epsilon(self):
        """In exact arithmetic; bounds on groups and rows are stated anew, without the package's."""
        for cap, constant, epsilon, n_outputs in product(
            [0.5, 0.8, 1.0], [0.0, 0.1, 1.0], [0.05, 1.0, 20.0], [1, 3]
        ):
            changes = {"max_residual": cap, "constant": constant, "n_outputs": n_outputs}
            plan = budgets.tight(replace(SETTING, price=of_each(epsilon, n_outputs), **changes))
            # The most that one record does: t_k at most S_k and, together, at most the whole's.
            parts = [2 * cap * math.hypot(norm / 2.0, constant) for norm in SETTING.group_norms]
            whole = 2 * cap * math.sqrt(1.0 + 3 * constant**2)
            levels = np.geomspace(1e-3, 1e3, 20001)[:, None] * whole
            t = np.minimum(levels * np.array(WEIGHTS), parts)
            h = float((t @ np.array(WEIGHTS))[np.linalg.norm(t, axis=1) <= whole].max())
            noise = [
                Fraction(h) / (Fraction(c.noise_scale) * Fraction(a))
                for c, a in zip(plan.calibrations, WEIGHTS, strict=True)
            ]
            constants = [Logistic(g.n_params, g.bound, cap).constants for g in plan.groups]
            kappas = [c.kappa for c in plan.calibrations]
            J = joint_curvature_cost(constants, kappas, (1 + 3 * constant**2) / 4)
            spent = n_outputs * (max(noise) + Fraction(J) + solver_cost(plan))
            assert spent <= Fraction(epsilon)
            assert float(spent) > 0.995 * epsilon

    def test_one_group_is_objective_perturbation(self):
        setting = replace(SINGLE, alpha=0.3, max_residual=1.0)
        (found,) = budgets.tight(setting).calibrations
        constants = Logistic(6, math.hypot(1.0, 0.1)).constants
        alone = objective.calibrate(constants, 1.0, 400, 6, 0.3)
        assert found.kappa == alone.kappa == pytest.approx(120.0)
        assert found.noise_scale == pytest.approx(alone.noise_scale, rel=1e-6)

    def test_ridge_is_on_the_scale_of_the_columns(self):
        for norm in (1.0, 2.0, 5.0):
            setting = replace(SINGLE, alpha=0.3, data_norm=norm, group_norms=(norm,))
            assert budgets.tight(setting).calibrations[0].kappa == pytest.approx(120.0 / norm**2)

    def test_weights_divide_the_noise(self):
        scales = [c.noise_scale for c in budgets.tight(SETTING).calibrations]
        products = np.multiply(scales, WEIGHTS)
        np.testing.assert_allclose(products, products[0])

    def test_multiple_of_the_public_ridge(self):
        """Which a stated ridge is not multiplied with."""
        plain = budgets.tight(SETTING).calibrations
        multiple = budgets.tight(replace(SETTING, ridge_multiple=100.0)).calibrations
        assert all(m.kappa > p.kappa for m, p in zip(multiple, plain, strict=True))
        stated = replace(SETTING, alpha=1.0)
        again = budgets.tight(replace(stated, ridge_multiple=100.0))
        assert again.calibrations == budgets.tight(stated).calibrations


def by_hand(q, n, alpha, norms, epsilon):
    """Return epsilon' and the n Lambda_k of Guo et al."""
    epsilon = epsilon * (1 - 1e-3)
    ridges = [n * alpha / norm**2 for norm in norms]
    left = epsilon - sum(2 * math.log(1 + w**2 / (4 * k)) for w, k in zip(q, ridges, strict=True))
    if left > 0:
        return left, ridges
    raised = [w**2 / (4 * (math.exp(epsilon * w / 4) - 1)) for w in q]
    return epsilon / 2, [max(pair) for pair in zip(ridges, raised, strict=True)]


def solver_cost(plan):
    return sum(
        2 * Fraction(c.certificate.tolerance) / (Fraction(c.kappa) * Fraction(c.solver_scale))
        for c in plan.calibrations
    )


class TestPublished:
    def test_formulas(self):
        """In both branches of the rule."""
        alone = set()
        for norms, alpha, (n, epsilon) in product(
            [(1.0, 1.0, 1.0), (2.0, 1.5, 0.5)],
            [1e-2, 1e-4],
            [(400, 1.0), (50, 0.05), (3, 0.5), (10, 8.0)],
        ):
            setting = replace(SETTING, n_records=n, price=epsilon, alpha=alpha, group_norms=norms)
            left, ridges = by_hand(WEIGHTS, n, alpha, norms, epsilon)
            alone.add(left == epsilon * (1 - 1e-3) / 2)
            plan = budgets.published(setting)
            assert plan.max_residual == 1.0
            for c, kappa, q in zip(plan.calibrations, ridges, WEIGHTS, strict=True):
                assert c.noise_scale == pytest.approx(2.0 / left, rel=1e-9)
                assert c.kappa == pytest.approx(max(kappa, 0.01 * q**2 / 4), rel=1e-9)
        assert alone == {True, False}

    def test_groups_are_scaled_to_their_weight(self):
        for constant, setting in product([0.0, 0.1, 1.0], [SETTING, SINGLE]):
            plan = budgets.published(replace(setting, constant=constant))
            for group, q in zip(plan.groups, setting.weights, strict=True):
                assert group.bound == pytest.approx(q, rel=1e-14)
                assert (group.constant > 0) == (constant > 0)

    def test_spends_no_more_than_epsilon_by_the_papers_count(self):
        for epsilon, n, n_outputs in product([0.01, 0.3, 1.0, 20.0], [1, 30, 10**5], [1, 3]):
            price, changes = of_each(epsilon, n_outputs), {"n_records": n, "n_outputs": n_outputs}
            plan = budgets.published(replace(SETTING, price=price, **changes))
            pairs = list(zip(plan.groups, plan.calibrations, strict=True))
            noise = sum(2 * Fraction(g.bound) / Fraction(c.noise_scale) for g, c in pairs)
            logs = math.fsum(2 * math.log1p(g.bound**2 / (4 * c.kappa)) for g, c in pairs)
            assert n_outputs * (noise + Fraction(logs) + solver_cost(plan)) <= Fraction(epsilon)


class TestOutput:
    def test_scale_is_sensitivity_over_ridge_and_epsilon(self):
        for cap in [0.5, 1.0]:
            changes = {"max_residual": cap, "alpha": 0.1, "price": of_each(3.0, 3), "n_outputs": 3}
            (c,) = budgets.output(replace(SINGLE, **changes)).calibrations
            S = 2 * cap * math.hypot(1.0, 0.1)
            assert c.kappa == pytest.approx(40.0)
            assert c.output.scale == pytest.approx((S + 2 * c.certificate.tolerance) / (40.0 * 1.0))
            assert c.linear is None

    def test_its_ridge_grows_with_the_root_of_many_records(self):
        """So that noise on the minimiser, which is that over kappa, and shrinkage vanish alike."""
        for n_params in [3, 100]:
            sizes = [10**3, 10**8, 4 * 10**8]
            few, many, more = (output_ridge(n, n_params, 1.0, 1.0) for n in sizes)
            assert more == pytest.approx(2.0 * many)
            assert few > 0.04 * math.sqrt(10**3 * 2.0 * math.sqrt(n_params))


def test_without_noise_there_is_by_default_little_ridge_whatever_the_unit():
    """And nothing is capped; that nothing is clipped is seen in test_logistic_regression."""
    for norm, constant in product((1.0, 100.0), (0.0, 0.1)):
        setting = replace(SETTING, alpha=None, data_norm=norm, constant=constant, max_residual=0.5)
        plan = budgets.unperturbed(setting)
        kappas = [1e-3 * norm**2 * len(group) for group in SETTING.groups]
        assert [calibration.kappa for calibration in plan.calibrations] == pytest.approx(kappas)
        assert [g.constant for g in plan.groups] == [10.0 * norm if constant else 0.0] * 3
        assert plan.max_residual == 1.0
