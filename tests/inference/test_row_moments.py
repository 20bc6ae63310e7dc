"""Rows with given moments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from skdpsurv.inference.row_moments import KNOWN, SHAPES, CovariateDistribution, standard_rows

CONSTANT = 0.5


def moments_of(X):
    rows = np.column_stack([np.full(len(X), CONSTANT), X])
    return rows.T @ rows


def test_standard_rows_have_the_identity_for_covariance():
    for shape, d in itertools.product(SHAPES, [1, 2, 5, 40]):
        rows = standard_rows(shape, d)
        assert rows.mean(axis=0) == pytest.approx(np.zeros(d), abs=1e-12)
        assert rows.T @ rows / len(rows) == pytest.approx(np.eye(d), abs=1e-9)


def test_shapes_have_their_tails():
    fourth = [(standard_rows(shape, 1) ** 4).mean() for shape in SHAPES]
    assert fourth == pytest.approx([3.0, 1.8, 1.0], rel=0.05)


def test_a_distribution_has_the_moments_that_it_was_made_of():
    for shape in SHAPES:
        X = np.random.default_rng(0).normal(size=(200, 3)) @ np.diag([1.0, 0.3, 0.1]) + 0.2
        found = CovariateDistribution.of_moments(moments_of(X), CONSTANT, 200, 1e-9)
        assert found.mass == pytest.approx(200)
        assert found.known.all()
        rows = found.rows(shape)
        assert rows.mean(axis=0) == pytest.approx(X.mean(axis=0))
        assert np.cov(rows, rowvar=False, bias=True) == pytest.approx(
            np.cov(X, rowvar=False, bias=True)
        )


def test_directions_that_noise_hides_are_unknown():
    X = np.random.default_rng(1).normal(size=(500, 2)) * [1.0, 0.01]
    found = CovariateDistribution.of_moments(moments_of(X), CONSTANT, 500, 5.0)
    assert found.known.tolist() == [False, True]
    assert found.values[0] == pytest.approx(KNOWN * 5.0 / found.mass)
    assert abs(found.vectors[1, 0]) == pytest.approx(1.0, abs=1e-3)


def test_moments_that_no_rows_have_make_a_distribution_all_the_same():
    for size in [0.0, 1e-300, 1e3, 1e12]:
        noise = np.random.default_rng(2).normal(size=(4, 4)) * size
        found = CovariateDistribution.of_moments(noise + noise.T, CONSTANT, 100, size)
        assert 0 < found.mass <= 100
        assert (found.values > 0).all()
        for shape in SHAPES:
            assert np.isfinite(found.rows(shape)).all()


def test_without_columns_there_is_one_empty_row():
    found = CovariateDistribution.of_moments(np.array([[25.0]]), CONSTANT, 100, 1.0)
    assert found.rows("normal").shape == (1, 0)
