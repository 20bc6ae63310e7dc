"""Noisy second moments: sensitivity, exact sums, and the law of the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.mechanisms import vector_noise
from skdpsurv.mechanisms.sums import SecondMoments
from skdpsurv.mechanisms.vector_noise import SphericalLaplace


def rows(n=60, width=4, seed=0):
    made = np.random.default_rng(seed).normal(size=(n, width))
    return made / np.maximum(1.0, np.linalg.norm(made, axis=1))[:, None]


def released(query, *blocks, price=1.0):
    exact = query.total(InMemory(blocks), lambda block: [block])
    return query.release(exact, price, random_source(0))


@pytest.fixture
def no_noise(monkeypatch):
    def none(dimension, scale, source):
        return np.zeros(dimension)

    monkeypatch.setattr(vector_noise, "spherical_laplace", none)


def test_without_noise_they_are_the_sums_of_outer_products(no_noise):
    query = SecondMoments(60, 4, 1.0)
    step = query.distribution(1.0).scale / 128  # what add_noise rounds to
    assert released(query, rows()) == pytest.approx(rows().T @ rows(), abs=step + 60 * 2.0**-14)


def test_triangles_have_the_norm_of_the_matrix():
    query = SecondMoments(9, 5, 1.0)
    matrix = np.random.default_rng(1).normal(size=(5, 5))
    matrix += matrix.T
    assert np.linalg.norm(query.packed(matrix)) == pytest.approx(np.linalg.norm(matrix))
    assert query.unpacked(query.packed(matrix)) == pytest.approx(matrix)


@pytest.mark.parametrize("width", [1, 2, 7])
@pytest.mark.parametrize("norm", [1.0, math.hypot(1.0, 0.5)])
def test_no_pair_of_rows_passes_the_sensitivity(width, norm):
    query, worst = SecondMoments(1000, width, norm), 0.0
    rng = np.random.default_rng(width)
    for _ in range(400):
        pair = rng.normal(size=(2, width))
        pair *= norm * rng.choice([0.0, 0.5, 1.0], (2, 1)) / np.linalg.norm(pair, axis=1)[:, None]
        units = np.rint(pair * 2.0**15)
        first, second = (np.outer(row, row) * 2.0**-30 for row in units)
        worst = max(worst, float(np.linalg.norm(query.packed(first - second))))
    assert worst <= query.sensitivity
    if width > 1:  # orthogonal rows of full length are the worst
        pair = norm * np.eye(2, width)
        gap = np.linalg.norm(query.packed(np.outer(pair[0], pair[0]) - np.outer(pair[1], pair[1])))
        assert gap == pytest.approx(math.sqrt(2.0) * norm**2)
        assert worst <= gap * (1 + 1e-3) <= query.sensitivity * (1 + 1e-3)


def test_sums_are_the_same_however_records_are_cut(no_noise):
    query, whole = SecondMoments(60, 4, 1.0), rows()
    expected = released(query, whole, price=1e6)
    for cuts in ([1], [59], [7, 30, 31]):
        assert (released(query, *np.split(whole[::-1], cuts), price=1e6) == expected).all()


def test_sums_of_a_piece_are_exact_integers():
    """A piece of 2^20 rows of full length is the largest that is asked for."""
    unit = 2.0**15 * math.hypot(1.0, 0.5)
    assert 2.0**20 * unit**2 < 2.0**53
    assert 2.0**32 * unit**2 < 2.0**63


def test_noise_has_the_stated_deviation():
    """On the diagonal, and in any direction. Estimates are off by 1.1 %; allowed are seven."""
    query = SecondMoments(100, 3, 1.0)
    source = random_source(5)
    draws = np.array([query.noise(0.5, source) for _ in range(4000)])
    direction = np.array([0.6, 0.0, 0.8])
    along = np.einsum("i,nij,j->n", direction, draws, direction)
    for values in (draws[:, 0, 0], along, draws[:, 0, 2] * math.sqrt(2.0)):
        assert np.std(values) == pytest.approx(query.deviation(0.5), rel=0.08)
    assert (draws == np.swapaxes(draws, 1, 2)).all()


def test_law_hides_the_sensitivity():
    query = SecondMoments(100, 3, 1.0)
    assert query.distribution(0.5).cost(query.sensitivity) <= 0.5 * (1 + 1e-15)
    assert query.distribution(0.5).dimension == 6
    assert SphericalLaplace(6, 2.0).deviation == pytest.approx(2.0 * math.sqrt(7.0))
