"""Mean and second moments of rows: sensitivity, exact sums, law of the noise, shrinkage."""

import math

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.dp.clipping import clip_rows
from skdpsurv.dp.exact_matrices import n_entries
from skdpsurv.dp.privacy_cost import Concentrated
from skdpsurv.mechanisms import moments as module
from skdpsurv.mechanisms import semidefinite_noise, vector_noise
from skdpsurv.mechanisms.moments import MeanOfRows, SecondMoments
from skdpsurv.mechanisms.semidefinite_noise import trace_distance
from skdpsurv.mechanisms.vector_noise import SphericalLaplace


def rows(n=50, d=3, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, size=(n, d))


def private_mean(blocks, n, norm, price, source):
    query = MeanOfRows(n, blocks.blocks[0].shape[1], norm)
    return query.shrunk(query.release(query.mean(blocks), price, source), price)


@pytest.fixture
def scales(monkeypatch):
    """Record the scale of the noise, and add none."""
    seen = []

    def no_noise(dimension, scale, source):
        seen.append(scale)
        return np.zeros(dimension)

    def none_on_a_matrix(width, scale, source):
        return no_noise(n_entries(width), scale, source)

    monkeypatch.setattr(vector_noise, "spherical_laplace", no_noise)
    monkeypatch.setattr(semidefinite_noise, "semidefinite_laplace", none_on_a_matrix)
    monkeypatch.setattr(module, "SHRINKAGE", 0.0)
    return seen


def test_without_noise_it_is_the_mean_of_the_clipped_rows(scales):
    X = rows()
    for norm in (0.1, 1.0, 3.0):
        scales.clear()
        mean, spread = private_mean(InMemory([X]), 50, norm, 1.0, random_source(0))
        exact = clip_rows(X, norm).mean(axis=0)
        np.testing.assert_allclose(mean, exact, atol=scales[0] / 100)
        assert spread == pytest.approx(np.sqrt(norm**2 - mean @ mean))
        distances = np.linalg.norm(clip_rows(X, norm) - exact, axis=1)
        assert np.sqrt(np.mean(distances**2)) <= spread * (1 + scales[0] / norm)


def test_neighbours_differ_by_at_most_scale_times_epsilon(scales):
    """The scale is the sensitivity over epsilon, and opposite rows attain it."""
    n, norm, epsilon = 8, 0.7, 2.0
    worst = 0.0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, row = rng.normal(size=(n, 2)), 10.0 * rng.normal(size=2)
        ends = []
        for first in (row, -row):
            X[0] = first
            ends.append(private_mean(InMemory([X]), n, norm, epsilon, random_source(0))[0])
        worst = max(worst, np.linalg.norm(ends[0] - ends[1]))
    step = scales[0] / 256
    assert 0.98 * 2 * norm / n < worst <= scales[0] * epsilon + 2 * step
    assert scales[0] == pytest.approx(2 * norm / (n * epsilon), rel=1e-6)


def test_law_of_the_noise(monkeypatch):
    """||mean - exact|| is Gamma(d, 2R / (n epsilon)). Seeds are fixed."""
    monkeypatch.setattr(module, "SHRINKAGE", 0.0)
    X, norm, epsilon = rows(200), 4.0, 1.0
    exact = clip_rows(X, norm).mean(axis=0)
    blocks, sources = InMemory([X]), map(random_source, range(700))
    means = [private_mean(blocks, 200, norm, epsilon, source)[0] for source in sources]
    distance = np.linalg.norm(means - exact, axis=1)
    law = stats.gamma(3, scale=2 * norm / (200 * epsilon))
    assert stats.kstest(distance, law.cdf).pvalue > 1e-7
    assert stats.kstest(0.7 * distance, law.cdf).pvalue < 1e-7


def test_the_sum_is_exact(scales):
    """Rows that a sum of doubles would get wrong: neither order nor blocks matter.

    One row is within 2^-31 of the lattice in each coordinate, and so is their mean.
    """
    rng = np.random.default_rng(1)
    X = 10.0 ** rng.uniform(-12, 0, size=(5000, 3)) * rng.choice([-1.0, 1.0], size=(5000, 3))
    orders = np.arange(5000), np.argsort(X[:, 0]), rng.permutation(5000)
    means = [
        private_mean(InMemory(np.split(X[order], cuts)), 5000, 1.0, 1e16, random_source(0))[0]
        for order, cuts in zip(orders, ([], [1, 2000], [4000]), strict=True)
    ]
    np.testing.assert_array_equal(np.ptp(means, axis=0), 0.0)
    exact = [math.fsum(column) / 5000 for column in clip_rows(X, 1.0).T]
    np.testing.assert_allclose(means[0], exact, rtol=0, atol=2.0**-31 + 1e-11)


def test_rounding_to_the_lattice_is_in_the_sensitivity(scales):
    """The scale is above that of real rows by what rounding may add, and by no more than that."""
    private_mean(InMemory([rows(50, 100)]), 50, 1.0, 1.0, random_source(0))
    assert scales[0] == pytest.approx(2 / 50 * (1 + 10 * 2.0**-31), rel=1e-14)
    assert scales[0] > 2 / 50


def test_mean_stays_in_the_ball():
    """Also where the noise is a thousand times the ball."""
    for seed in range(20):
        mean, spread = private_mean(InMemory([rows(1)]), 1, 0.5, 1e-3, random_source(seed))
        assert np.linalg.norm(mean) <= 0.5 * (1 + 1e-12)
        assert 0.0 <= spread <= 0.5


def test_pure_noise_is_shrunk():
    """Rows of zeros: the release is closer to 0 than its noise, and often 0."""
    blocks, noise_length = InMemory([np.zeros((100, 5))]), 5 * 2 / 100
    means = [private_mean(blocks, 100, 1.0, 1.0, random_source(i))[0] for i in range(300)]
    lengths = np.linalg.norm(means, axis=1)
    assert np.mean(lengths) < 0.8 * noise_length
    assert (lengths == 0.0).any()


# ---- Second moments.


def unit_rows(n=60, width=4, seed=0):
    made = np.random.default_rng(seed).normal(size=(n, width))
    return made / np.maximum(1.0, np.linalg.norm(made, axis=1))[:, None]


def released(query, *blocks, price=1.0):
    exact = query.total(InMemory(blocks), lambda block: [block])
    return query.release(exact, price, random_source(0))


def test_without_noise_they_are_the_sums_of_outer_products(scales):
    query = SecondMoments(60, 4, 1.0)
    step = query.distribution(1.0).scale / 128  # what add_noise rounds to
    assert released(query, unit_rows()) == pytest.approx(
        unit_rows().T @ unit_rows(), abs=step + 60 * 2.0**-14
    )


def test_triangles_have_the_norm_of_the_matrix():
    """For Gaussian noise; other noise is added to the entries themselves."""
    query = SecondMoments(9, 5, 1.0)
    matrix = np.random.default_rng(1).normal(size=(5, 5))
    matrix += matrix.T
    triangle = matrix[np.triu_indices(5)]
    stretched = triangle * query.stretch(Concentrated(1.0))
    assert np.linalg.norm(stretched) == pytest.approx(np.linalg.norm(matrix))
    assert query.matrix(stretched, Concentrated(1.0)) == pytest.approx(matrix)
    assert (query.stretch(1.0) == 1.0).all()
    assert (query.matrix(triangle, 1.0) == matrix).all()


@pytest.mark.parametrize(("width", "norm"), [(1, 1.0), (2, math.hypot(1.0, 0.5)), (7, 1.0)])
def test_no_pair_of_rows_passes_the_sensitivity(width, norm):
    query, worst = SecondMoments(1000, width, norm), 0.0
    rng = np.random.default_rng(width)
    for _ in range(400):
        pair = rng.normal(size=(2, width))
        pair *= norm * rng.choice([0.0, 0.5, 1.0], (2, 1)) / np.linalg.norm(pair, axis=1)[:, None]
        units = np.rint(pair * 2.0**15)
        first, second = (np.outer(row, row) * 2.0**-30 for row in units)
        worst = max(worst, float(np.linalg.norm(first - second)))
        assert trace_distance(first - second) <= query.largest_trace
    assert worst <= query.sensitivity
    assert trace_distance(norm**2 * np.eye(width, 1) @ np.eye(1, width)) <= query.largest_trace
    # A row moves by half a unit in each coordinate; sums of 1,000 become doubles.
    longest = norm + math.sqrt(width) * 2.0**-16
    exact = math.sqrt(2.0) * longest**2
    assert exact < query.sensitivity == pytest.approx(exact, rel=1e-10)
    if width > 1:  # orthogonal rows of full length are the worst
        pair = norm * np.eye(2, width)
        gap = np.linalg.norm(np.outer(pair[0], pair[0]) - np.outer(pair[1], pair[1]))
        assert gap == pytest.approx(math.sqrt(2.0) * norm**2)
        assert worst <= gap * (1 + 1e-3) <= query.sensitivity * (1 + 1e-3)


def test_sums_are_the_same_however_records_are_cut(scales):
    query, whole = SecondMoments(60, 4, 1.0), unit_rows()
    expected = released(query, whole, price=1e6)
    for cuts in ([1], [59], [7, 30, 31]):
        assert (released(query, *np.split(whole[::-1], cuts), price=1e6) == expected).all()


@pytest.mark.parametrize("price", [0.5, Concentrated(0.5)])
def test_noise_has_the_stated_deviation(price):
    """On the diagonal, and in any direction. Estimates are off by 1.6 %; allowed are seven."""
    query = SecondMoments(100, 3, 1.0)
    source = random_source(5)
    draws = np.array([query.noise(price, source) for _ in range(2000)])
    direction = np.array([0.6, 0.0, 0.8])
    along = np.einsum("i,nij,j->n", direction, draws, direction)
    for values in (draws[:, 0, 0], along):
        assert np.std(values) == pytest.approx(query.deviation(price), rel=0.11)
    assert (draws == np.swapaxes(draws, 1, 2)).all()


def test_law_hides_the_sensitivity():
    query = SecondMoments(100, 3, 1.0)
    assert query.distribution(0.5).cost(query.largest_trace) <= 0.5 * (1 + 1e-15)
    gaussian = query.distribution(Concentrated(0.5))
    assert gaussian.cost(query.sensitivity) <= 0.5 * (1 + 1e-15)
    assert query.distribution(0.5).dimension == gaussian.dimension == 6
    SecondMoments(100, 774, 1.0)  # 599,850 normal numbers; the theorem of noise has 600,000
    with pytest.raises(ValueError, match="columns"):
        SecondMoments(100, 775, 1.0)
    assert SphericalLaplace(6, 2.0).deviation == pytest.approx(2.0 * math.sqrt(7.0))
