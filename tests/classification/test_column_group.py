"""What a model sees of a record: bounded in norm, the constant included."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from skdpsurv.classification.logistic_measurements import ColumnGroup
from skdpsurv.dp.checks import clip_rows

X = np.random.default_rng(0).normal(size=(200, 5)) * np.array([1, 1e-3, 10, 1, 1])
CASES = [
    ColumnGroup((0, 2, 4), 1.0, 1.0, 0.0),
    ColumnGroup((0, 2, 4), 0.5, 2.0, 0.1),
    ColumnGroup((3,), 2.0, 0.5, 1.0),
    ColumnGroup((4, 3, 2, 1, 0), 3.0, 1 / 3, 0.3),
]


def test_rows_are_clipped_scaled_and_within_the_bound():
    """Exactly: squares are summed as fractions."""
    rows = clip_rows(X, 3.0)
    for group in CASES:
        seen, part = group.rows(rows, 3.0), rows[:, group.indices]
        n_columns = len(group.indices)
        shrink = np.minimum(1.0, group.norm / np.linalg.norm(part, axis=1))
        expected = group.factor * part * shrink[:, None]
        np.testing.assert_allclose(seen[:, :n_columns], expected, rtol=1e-12)
        assert (seen[:, n_columns:] == group.constant).all()
        assert seen.shape == (200, group.n_params)
        assert group.n_params == n_columns + (group.constant > 0)
        assert group.bound == math.hypot(group.norm * group.factor, group.constant)
        limit = Fraction(group.bound) ** 2 * (1 + Fraction(1, 2**45))
        for row in seen[:50]:
            assert sum(Fraction(v) ** 2 for v in row) <= limit
        # Some rows are at the bound.
        assert np.linalg.norm(seen, axis=1).max() == pytest.approx(group.bound, rel=1e-9)


def test_coefficients_go_there_and_back():
    for group in CASES:
        coef = np.random.default_rng(1).normal(size=len(group.indices))
        intercept = 0.7 if group.constant else 0.0
        parameters = group.to_model(coef, intercept)
        back, constant = group.from_model(parameters)
        np.testing.assert_allclose(back, coef)
        assert constant == pytest.approx(intercept)
        assert isinstance(constant, float)
        # A row that is not clipped has the same predictor on either scale.
        small = 1e-4 * X
        expected = small[:, group.indices] @ coef + intercept
        np.testing.assert_allclose(group.rows(small, 3.0) @ parameters, expected)
