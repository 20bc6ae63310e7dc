"""A rival's sensitivities and budget are true, and without much noise it finds the minimum."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.rivals.newton import DoubleNoiseNewton, L, gaussian_rho


def ball(rng, n, d):
    rows = rng.normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * rng.random((n, 1)) ** (1 / d)


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("bound", [False, True])
def test_much_budget_finds_the_minimum(clip, bound):
    rng = np.random.default_rng(0)
    X = ball(rng, 4000, 3)
    y = (rng.random(4000) < 1 / (1 + np.exp(-X @ [2.0, -1.0, 0.0]))).astype(int)
    exact = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8).fit(X, y).coef_[0]
    w = DoubleNoiseNewton(1e8, clip=clip, bound=bound, steps=60).fit(X, y, rng)
    assert np.allclose(w, exact, atol=0.01)


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_record_moves_the_direction_by_less(clip, replaced):
    rng = np.random.default_rng(1)
    newton = DoubleNoiseNewton(1.0, clip=clip, replaced=replaced)
    for _ in range(300):
        n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        least = 1.01 * L / n + rng.random() ** 3 / n
        records = ball(rng, n + 1, d)
        records[-2:] /= np.linalg.norm(records[-2:], axis=1, keepdims=True)
        weights = L * rng.choice([0.0, 1.0, rng.random()], n + 1)
        gradient = rng.normal(size=d)
        directions = []
        for last in (n - 1, n):
            kept = [*range(n - 1), last] if replaced or last == n else list(range(n - 1))
            curvature = (records[kept].T * weights[kept]) @ records[kept] / n
            values, axes = np.linalg.eigh(curvature)
            values = np.maximum(values, least) if clip else values + least
            directions.append(axes @ ((axes.T @ gradient) / values))
        moved = np.linalg.norm(directions[0] - directions[1])
        assert moved <= newton.moved(n, least) * np.linalg.norm(gradient) * (1 + 1e-9)


def test_budget_is_that_of_the_gaussian_mechanism():
    # Balle and Wang (2018): sigma = 1 has delta = 0.126936 at epsilon = 1.
    assert math.isclose(gaussian_rho(1.0, 0.12693673750664), 0.5, rel_tol=1e-6)
    assert gaussian_rho(1.0, 1e-6) < gaussian_rho(1.0, 1e-5) < gaussian_rho(2.0, 1e-5)
