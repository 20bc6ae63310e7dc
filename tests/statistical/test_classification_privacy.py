"""Exact check of capped logistic models, alone and in groups: the density ratio of what leaves.

The minimiser f determines the noise, b = -(grad L(f) + kappa f), whose density times |det H(f)| is
that of f. No sampling: the ratio for neighbours is computed point by point and must stay below
e^(epsilon_b + J). Several models of one record release a product of densities; points and other
records are chosen apart for each, which can only raise the ratio. What solvers add is not in it.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdpsurv.classification import budgets
from skdpsurv.classification.budgets import GroupSetting
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.mechanisms.joint_calibration import (
    CalibratedPart,
    joint_curvature_cost,
    joint_sensitivity,
)
from skdpsurv.mechanisms.objective import SOLVER_SHARE, calibrate

N = 100
CAPS = [0.5, 0.75, 1.0]
#: Ridges: the least that the curvature's share affords, and one near which minima stay at 0.
RIDGES = {"weak": 0.0, "strong": 60.0}
LABELS = np.array([-1.0, 1.0])


def setting(cap, ridge, epsilon, constant, groups=((0, 1),), weights=(1.0,)):
    given = {"n_records": N, "n_outputs": 1, "price": epsilon, "data_norm": 1.0}
    given |= {"groups": groups, "weights": weights, "group_norms": (1.0,) * len(groups)}
    alpha = RIDGES[ridge] / N
    return GroupSetting(**given, constant=constant, alpha=alpha, max_residual=cap)


def extremes(n_columns):
    """Return rows on the sphere, inside it and at 0."""
    if n_columns == 1:
        return np.array([[1.0], [0.5], [0.0], [-0.5], [-1.0]])
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    tilted = np.array([s * a for s in (-1, 1) for a in (0.35, np.pi - 0.35)])
    circle = np.concatenate([angles, tilted])
    rows = np.column_stack([np.cos(circle), np.sin(circle)])
    return np.vstack([rows, 0.5 * rows[:24:3], np.zeros((1, 2))])


def signed(group, rows):
    """Return y x, all that the loss sees of a record, for both labels of each row."""
    seen = group.rows(rows, 1.0)
    return np.concatenate([label * seen for label in LABELS])


def log_densities(likelihood, calibration, crowd, vectors, points):
    """Return the log density at every point, for each of the records that may differ.

    ``crowd`` are the other records, as pairs of y x and how many there are.
    """

    def one(f, vector):
        part = likelihood.derivatives(f, LinearBlock(vector[None], np.ones(1)))
        return part.gradient, part.hessian

    kappa, d = calibration.kappa, likelihood.n_params
    # Records that a model of some columns cannot tell apart are looked at once.
    vectors, places = np.unique(vectors, axis=0, return_inverse=True)
    logs = np.empty((len(vectors), len(points)))
    for j, f in enumerate(points):
        gradient, hessian = kappa * f, kappa * np.eye(d)
        for vector, count in crowd:
            slope, bend = one(f, vector)
            gradient, hessian = gradient + count * slope, hessian + count * bend
        slopes, bends = (np.array(each) for each in zip(*(one(f, v) for v in vectors), strict=True))
        b = np.linalg.norm(gradient + slopes, axis=1)
        logs[:, j] = -b / calibration.noise_scale + np.linalg.slogdet(hessian + bends)[1]
    return logs[places.ravel()]


def around(center, kappa, d):
    """Return points whose distance from the centre moves b by a little or a lot."""
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    unit = circle if d == 2 else np.array([[1.0], [-1.0]])
    steps = [np.zeros((1, d)), *(r / kappa * unit for r in (0.01, 0.5, 3.0, 12.0, 100.0, 1e3))]
    return center + np.vstack(steps)


def scenes(likelihood, calibration, constant):
    """Yield other records, and points to look at.

    Nobody, around 0. And, in two dimensions, a crowd that holds the minimum far out, where records
    on either side are classified wrongly: there residuals are near 1.
    """
    kappa, d = calibration.kappa, likelihood.n_params
    yield [], around(np.zeros(d), kappa, d)
    if d == 1:
        return
    if constant:
        far = 12.0 * np.array([-1.0, 0.75])  # for a constant of 1
        record_scores = np.array([[-1.0, constant], [-1.0, -constant]])
    else:
        far = np.array([0.0, -12.0])
        record_scores = np.array([[0.0, -1.0], [1.0, 0.0]])
    strength = np.linalg.solve(record_scores.T, kappa * far)
    assert (strength >= 0).all()
    counts = strength * (1 + np.exp(record_scores @ far))
    yield list(zip(record_scores, counts, strict=True)), around(far, kappa, d)


def joint_log_ratio(likelihoods, calibrations, vectors, constant):
    """Return the largest log ratio of the product of densities over pairs of neighbours."""
    total = np.zeros((len(vectors[0]),) * 2)
    for likelihood, calibration, seen in zip(likelihoods, calibrations, vectors, strict=True):
        gaps = np.full_like(total, -np.inf)
        for crowd, points in scenes(likelihood, calibration, constant):
            logs = log_densities(likelihood, calibration, crowd, seen, points)
            gaps = np.maximum(gaps, (logs[:, None] - logs[None]).max(axis=2))
        total += gaps
    return total.max()


def audit(made, calibrations=None):
    """Return the largest log ratio of a plan, with its own calibrations or others."""
    plan = budgets.tight(made)
    likelihoods = [Logistic(g.n_params, g.bound, plan.max_residual) for g in plan.groups]
    vectors = [signed(g, extremes(made.n_features)) for g in plan.groups]
    return joint_log_ratio(likelihoods, calibrations or plan.calibrations, vectors, made.constant)


def promised(made):
    plan = budgets.tight(made)
    constants = [Logistic(g.n_params, g.bound, plan.max_residual).constants for g in plan.groups]
    norm = math.sqrt(1 + len(plan.groups) * made.constant**2)
    whole = Logistic(1, norm, plan.max_residual).constants
    parts = [
        CalibratedPart(c, 1, weight, 0.0) for c, weight in zip(constants, made.weights, strict=True)
    ]
    h = joint_sensitivity(parts, whole.gradient_sensitivity)
    noise = h / (plan.calibrations[0].noise_scale * made.weights[0])
    kappas = [c.kappa for c in plan.calibrations]
    return noise + joint_curvature_cost(constants, kappas, whole.hessian_trace), noise


def within(made):
    """Return how much was found, in units of the noise's share, and see that it is no more."""
    bound, noise = promised(made)
    largest = audit(made)
    assert largest <= bound <= (1 - SOLVER_SHARE) * made.price * (1 + 1e-9)
    return largest / noise


slow = pytest.mark.slow
CASES = [
    ("strong", 1.0),
    *(pytest.param(*one, marks=slow) for one in (("strong", 0.1), ("strong", 8.0), ("weak", 1.0))),
]
cases = pytest.mark.parametrize(("ridge", "epsilon"), CASES)
constants = pytest.mark.parametrize("constant", [0.0, 1.0])
EVEN, UNEVEN = (0.5, 0.5), (0.8, 0.2)


@cases
@constants
@pytest.mark.parametrize("cap", CAPS)
def test_one_model(cap, constant, ridge, epsilon):
    """Two columns, or one and an intercept."""
    made = setting(cap, ridge, epsilon, constant, ((0,),) if constant else ((0, 1),))
    assert within(made) > (0.75 if ridge == "strong" else 0.5)


@cases
@constants
@pytest.mark.parametrize(
    ("cap", "weights"), [(0.5, UNEVEN), pytest.param(0.5, EVEN, marks=slow), (1.0, UNEVEN)]
)
def test_two_models_together(cap, weights, constant, ridge, epsilon):
    found = within(setting(cap, ridge, epsilon, constant, ((0,), (1,)), weights))
    # Of one column alone only half of S = 2 is there to be attained.
    assert found > 0.85 or cap == 1.0 or ridge == "weak"


class TestPlantedDefects:
    """Each is caught by the audit above, at the epsilon that was promised."""

    def caught(self, made, small):
        assert audit(made) <= made.price
        assert audit(made, small) > made.price

    @pytest.mark.parametrize("cap", [0.5, 1.0])
    def test_intercept_left_out_of_the_norm(self, cap):
        made = setting(cap, "strong", 1.0, 1.0, ((0,),))
        forgotten = calibrate(Logistic(2, 1.0, cap).constants, 1.0, N, 2, 60.0 / N)
        self.caught(made, [forgotten])

    @constants
    def test_sensitivity_of_another_cap(self, constant):
        made = setting(1.0, "strong", 1.0, constant, ((0,),) if constant else ((0, 1),))
        half = budgets.tight(replace(made, max_residual=0.5)).calibrations
        self.caught(made, half)

    def test_models_that_each_have_all_of_epsilon(self):
        made = setting(0.5, "strong", 1.0, 0.0, ((0,), (1,)), EVEN)
        alone = replace(made, groups=((0,),), weights=(1.0,), group_norms=(1.0,))
        self.caught(made, budgets.tight(alone).calibrations * 2)

    def test_weights_that_are_left_out_of_the_noise(self):
        """Noise of the better half for both."""
        made = setting(0.5, "strong", 1.0, 0.0, ((0,), (1,)), UNEVEN)
        better = budgets.tight(made).calibrations[0]
        self.caught(made, [better] * 2)

    def test_curvature_that_is_not_paid(self):
        """A ridge far below the one that the share of epsilon affords."""
        made = setting(1.0, "weak", 1.0, 0.0)
        (honest,) = budgets.tight(made).calibrations
        self.caught(made, [replace(honest, kappa=honest.kappa / 30)])
