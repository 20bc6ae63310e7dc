"""The spline basis against the paper's formulas, and the orthogonal one against it."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from skdpsurv.survival.hazards.model import orthogonal_basis, published_basis, to_published

SHAPES = [(1, 1), (2, 2), (5, 5), (50, 1), (50, 2), (50, 3), (200, 7), (200, 12)]


def by_the_paper(t, e):
    knots = [i / (e - 1) for i in range(e)]

    def cube(u):
        return max(u, 0.0) ** 3

    def d(j):
        return (cube(t - knots[j]) - cube(t - knots[-1])) / (knots[-1] - knots[j])

    return [1.0, t, *(d(j) - d(e - 2) for j in range(e - 2))]


def test_published_basis_is_the_papers():
    for q, e in [(50, 3), (200, 7), (10, 4)]:
        expected = [by_the_paper(s / q, e) for s in range(1, q + 1)]
        np.testing.assert_allclose(published_basis(q, e), expected, atol=1e-14)


def test_one_knot_is_a_constant_and_two_a_line():
    np.testing.assert_array_equal(published_basis(4, 1), np.ones((4, 1)))
    np.testing.assert_allclose(
        published_basis(4, 2), [[1, 0.25], [1, 0.5], [1, 0.75], [1, 1.0]], atol=0
    )


def test_holds_every_natural_cubic_spline_on_its_knots():
    """scipy's natural spline through any values at the knots is in the span."""
    for e in [3, 4, 7]:
        q = 60
        knots = np.linspace(0, 1, e)
        spline = CubicSpline(knots, np.random.default_rng(0).normal(size=e), bc_type="natural")
        values = spline(np.arange(1, q + 1) / q)
        coef = np.linalg.lstsq(published_basis(q, e), values, rcond=None)[0]
        np.testing.assert_allclose(published_basis(q, e) @ coef, values, atol=1e-9)


def test_orthogonal_basis_has_unit_columns_and_a_constant():
    """And spans the space of the other, with a map to it."""
    for q, e in SHAPES:
        basis = orthogonal_basis(q, e)
        np.testing.assert_allclose(basis.T @ basis, q * np.eye(e), atol=1e-9 * q)
        np.testing.assert_allclose(basis[:, 0], 1.0, atol=1e-12)
        values = basis @ np.random.default_rng(1).normal(size=e)
        coef = to_published(values, e)
        assert coef.shape == (e,)
        np.testing.assert_allclose(published_basis(q, e) @ coef, values, atol=1e-7)
