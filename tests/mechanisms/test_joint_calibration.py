"""Joint calibration: what a whole record can do, and how its epsilon is spent."""

import math
from dataclasses import astuple, fields, is_dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.likelihoods.loss import PrivacyConstants
from skdpsurv.mechanisms import joint_calibration, objective
from skdpsurv.mechanisms.joint_calibration import (
    CalibratedPart,
    affordable_ridges,
    calibrate_jointly,
    joint_curvature_cost,
    joint_sensitivity,
)
from skdpsurv.mechanisms.newton import certificate
from skdpsurv.mechanisms.objective import SOLVER_SHARE, curvature_cost
from skdpsurv.mechanisms.vector_noise import LEAST_NOISE, SphericalLaplace

SEEDS = range(40)


def part(sensitivity=2.0, trace=0.25, rank=1, weight=1.0, ridge=0.0, n_params=3):
    return CalibratedPart(PrivacyConstants(sensitivity, trace, rank), n_params, weight, ridge)


def random_parts(seed, spread=1.0):
    """Parts of one record, and bounds on the whole between the largest part and all of them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    weights = rng.dirichlet(np.full(n, 0.8)) + 1e-3
    parts = [
        part(*np.exp(spread * rng.normal(size=2)), int(rng.integers(1, 4)), weight, kappa)
        for weight, kappa in zip(weights, np.exp(2 * spread * rng.normal(size=n)), strict=True)
    ]
    S, traces = arrays(parts)[1], np.array([p.constants.hessian_trace for p in parts])
    ends = ((S.max(), np.linalg.norm(S)), (traces.max(), traces.sum()))
    whole = [float(low + (high - low) * rng.uniform(0, 1.1)) for low, high in ends]
    return parts, PrivacyConstants(*whole, 1)


def arrays(parts):
    weights = np.array([p.weight for p in parts])
    bounds = np.array([p.constants.gradient_sensitivity for p in parts])
    return weights, bounds


class TestJointSensitivity:
    def test_by_hand(self):
        three_four = [part(10.0, weight=0.3), part(10.0, weight=0.4)]
        assert joint_sensitivity(three_four, 2.0) == pytest.approx(1.0)  # 2 (.3, .4) / .5
        # The second part is at its bound, 1.2, and leaves 1.6 of 2 to the first.
        capped = [part(10.0, weight=0.3), part(1.2, weight=0.4)]
        assert joint_sensitivity(capped, 2.0) == pytest.approx(0.3 * 1.6 + 0.4 * 1.2)

    def test_is_the_maximum_over_ball_and_box(self):
        """Found by scipy from the level at which unbounded parts are cut; inside and at sides."""
        kinds = set()
        for seed in SEEDS:
            parts, whole = random_parts(seed)
            weights, bounds = arrays(parts)
            S = whole.gradient_sensitivity

            def cut(level, weights=weights, bounds=bounds):
                return np.minimum(level * weights, bounds)

            if np.linalg.norm(bounds) <= S:
                best, kind = bounds, "box"
            else:
                excess = lambda u, cut=cut, S=S: np.linalg.norm(cut(u)) - S  # noqa: E731
                level = optimize.brentq(excess, 0, (bounds / weights).max(), xtol=1e-15)
                best, kind = cut(level), "mixed" if (level * weights > bounds).any() else "free"
            kinds.add(kind)
            h = joint_sensitivity(parts, S)
            assert h == pytest.approx(weights @ best, rel=1e-9)
            assert h == pytest.approx(joint_sensitivity(parts[::-1], S))
            # Without a bound on the whole parts add up.
            assert joint_sensitivity(parts, math.inf) == pytest.approx(weights @ bounds, rel=1e-12)
        assert kinds == {"free", "box", "mixed"}

    def test_no_point_of_the_domain_is_beyond(self):
        """Random points, pushed to the border; in exact arithmetic."""
        for seed in SEEDS:
            parts, whole = random_parts(seed)
            weights, bounds = arrays(parts)
            h = Fraction(joint_sensitivity(parts, whole.gradient_sensitivity))
            rng = np.random.default_rng(seed)
            for scale in np.exp(3 * rng.normal(size=30)):
                uneven = rng.choice([1.0, rng.uniform()], len(parts))
                t = np.minimum(bounds, scale * weights * uneven)
                t /= max(1.0, np.linalg.norm(t) / whole.gradient_sensitivity)
                exact = [Fraction(a) * Fraction(u) for a, u in zip(weights, t, strict=True)]
                assert sum(exact) <= h

    def test_extreme_weights(self):
        for weight in (1e-12, 1e-3, 1.0, 1e6):
            parts = [part(1.0, weight=weight), part(1.0, weight=1.0)]
            h = joint_sensitivity(parts, 1.0)
            assert h == pytest.approx(math.hypot(weight, 1.0))
            assert Fraction(h) ** 2 >= Fraction(weight) ** 2 + 1


def largest_curvature(parts, ridges, whole):
    """Return J by its definition: water is filled up to a level that scipy finds."""
    r = np.array([p.constants.hessian_rank for p in parts], dtype=float)
    bound = np.array([p.constants.hessian_trace for p in parts])
    kappa = np.array(ridges)

    def filled(level):
        return np.clip(r * (level - kappa), 0.0, bound)

    if bound.sum() <= whole:
        v = bound
    else:
        high = (kappa + bound / r).max()
        v = filled(optimize.brentq(lambda u: filled(u).sum() - whole, kappa.min(), high))
    return float(np.sum(r * np.log1p(v / (r * kappa))))


class TestJointCurvatureCost:
    def test_is_the_maximum_nearly_and_never_less(self):
        for seed in SEEDS:
            parts, whole = random_parts(seed)
            constants, ridges = [p.constants for p in parts], [p.ridge for p in parts]
            J = joint_curvature_cost(constants, ridges, whole.hessian_trace)
            expected = largest_curvature(parts, ridges, whole.hessian_trace)
            assert expected <= J * (1 + 1e-13)
            assert pytest.approx(expected, rel=1e-6) == J
            # Without a bound on the whole logarithms add up.
            alone = [curvature_cost(c, kappa) for c, kappa in zip(constants, ridges, strict=True)]
            apart = joint_curvature_cost(constants, ridges, math.inf)
            assert math.fsum(alone) <= apart == pytest.approx(sum(alone), rel=1e-11)

    def test_no_point_of_the_domain_is_beyond(self):
        for seed in SEEDS:
            parts, whole = random_parts(seed, spread=2.0)
            constants, ridges = [p.constants for p in parts], [p.ridge for p in parts]
            J = joint_curvature_cost(constants, ridges, whole.hessian_trace)
            bound = np.array([c.hessian_trace for c in constants])
            rng = np.random.default_rng(seed)
            for _ in range(50):
                v = bound * rng.choice([1.0, 0.0, rng.uniform()], size=len(parts))
                v *= min(1.0, whole.hessian_trace / max(v.sum(), 1e-300))
                cost = sum(
                    c.hessian_rank * math.log1p(t / (c.hessian_rank * kappa))
                    for c, kappa, t in zip(constants, ridges, v, strict=True)
                )
                assert cost <= J * (1 + 1e-14)

    def test_extreme_ridges_are_paid(self):
        """At 1e17 no level is found where anything is filled: the gap of the dual is all of J."""
        constants = [PrivacyConstants(2.0, 0.25, 1)] * 2
        for ridges in ((1e-12, 1e12), (1e-9, 1e-9), (1e12, 1e12), (1e17, 1e17), (1e17, 1e20)):
            J = joint_curvature_cost(constants, ridges, 0.3)
            for first in np.linspace(0.05, 0.25, 9):
                cost = math.log1p(first / ridges[0]) + math.log1p((0.3 - first) / ridges[1])
                assert cost <= J * (1 + 1e-14)
            assert math.isfinite(J)


class TestAffordableRidges:
    CONSTANTS = (PrivacyConstants(2.0, 0.25, 1),) * 3

    def test_keeps_ridges_that_are_paid(self):
        wanted = [5.0, 1.0, 20.0]
        assert affordable_ridges(self.CONSTANTS, wanted, 0.25, 1.0) == wanted

    def test_raises_the_small_ones_to_the_least_level(self):
        wanted = [1e-3, 1e-4, 7.0]
        for whole, budget in product([0.25, 0.4, math.inf], [1e-6, 0.01, 0.1, 2.0]):
            ridges = affordable_ridges(self.CONSTANTS, wanted, whole, budget)
            assert joint_curvature_cost(self.CONSTANTS, ridges, whole) <= budget
            assert all(kappa >= least for kappa, least in zip(ridges, wanted, strict=True))
            assert ridges[0] == ridges[1] <= ridges[2]
            # Least: a little less for those that were raised is not affordable.
            less = [max(0.999 * k, w) for k, w in zip(ridges, wanted, strict=True)]
            assert joint_curvature_cost(self.CONSTANTS, less, whole) > budget


@pytest.mark.parametrize(
    ("epsilon", "n", "share"), [(0.01, 50, 0.1), (1.0, 1000, 0.2), (30.0, 10**6, 0.05)]
)
class TestCalibrateJointly:
    def test_no_more_than_epsilon_is_spent(self, epsilon, n, share):
        """In exact arithmetic, epsilon_b and epsilon_o being read off the scales of noise."""
        for seed in range(10):
            parts, whole = random_parts(seed)
            plans = calibrate_jointly(parts, whole, epsilon, n, curvature_share=share)
            h = Fraction(joint_sensitivity(parts, whole.gradient_sensitivity))
            noise = [
                h / (Fraction(c.noise_scale) * Fraction(p.weight))
                for c, p in zip(plans, parts, strict=True)
            ]
            constants, ridges = [p.constants for p in parts], [c.kappa for c in plans]
            J = joint_curvature_cost(constants, ridges, whole.hessian_trace)
            solver = [
                2 * Fraction(c.certificate.tolerance) / Fraction(c.kappa) / Fraction(c.solver_scale)
                for c in plans
            ]
            spent = max(noise) + Fraction(J) + sum(solver)
            assert spent <= Fraction(epsilon)
            # Nor much less. Solvers may be hidden for less than their share.
            assert float(max(noise) + Fraction(J)) == pytest.approx((1 - SOLVER_SHARE) * epsilon)
            assert share * epsilon * (1 + 1e-9) >= J
            # Noise is inversely proportional to weights.
            assert float(max(noise) / min(noise)) == pytest.approx(1.0, rel=1e-12)

    def test_ridges_are_wanted_or_needed(self, epsilon, n, share):
        for seed in range(10):
            parts, whole = random_parts(seed)
            plans = calibrate_jointly(parts, whole, epsilon, n, curvature_share=share)
            for c, p in zip(plans, parts, strict=True):
                assert c.kappa >= max(p.ridge, objective.LEAST_RIDGE * p.constants.hessian_trace)
                assert LEAST_NOISE <= c.solver_scale <= objective.LARGEST_SOLVER_SCALE * (1 + 1e-9)
                norm = c.linear.largest_norm()
                assert c.certificate == certificate(p.constants, n, c.kappa, norm)


@pytest.mark.parametrize("bounded", [False, True])
def test_a_single_part_is_objective_perturbation(bounded):
    constants = PrivacyConstants(3.0, 0.7, 2)
    whole = constants if bounded else None
    for epsilon, n, alpha in ((0.01, 1, 0.0), (1.0, 1000, 1e-3), (20.0, 1, 0.0), (1e4, 10**7, 0.5)):
        (joint,) = calibrate_jointly(
            [CalibratedPart(constants, 4, 0.3, n * alpha)], whole, epsilon, n
        )
        alone = objective.calibrate(constants, epsilon, n, 4, alpha)
        for field in fields(alone):
            one, other = getattr(joint, field.name), getattr(alone, field.name)
            if field.name == "certificate":
                assert one.center == other.center
                one, other = (replace(c, center=0.0) for c in (one, other))
            one, other = (astuple(v) if is_dataclass(v) else v for v in (one, other))
            assert one == pytest.approx(other, rel=1e-6), field.name


def test_solvers_share_one_sliver():
    parts = [part(ridge=5.0)] * 7
    plans = joint_calibration.with_noise(parts, [5.0] * 7, [SphericalLaplace(3, 3.0)] * 7, 2.0, 10)
    assert sum(c.epsilon_solver for c in plans) == pytest.approx(SOLVER_SHARE * 2.0)
    assert sum(map(Fraction, (c.epsilon_solver for c in plans))) <= Fraction(SOLVER_SHARE * 2.0)
    for c in plans:
        assert (c.noise_scale, c.kappa) == (3.0, 5.0)
        assert c.epsilon_noise == pytest.approx(2.0 / 3.0)


def test_margin_is_above_rounding_and_costs_nothing():
    assert 1 + 2.0**-45 < joint_calibration.MARGIN < 1 + 1e-9
