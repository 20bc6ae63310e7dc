"""Tests of the laws of the noise.

Tests with an integer seed always give the same answer. Those on operating-system entropy reject
below a p-value of 1e-9 where every expected count is at least 50 (or the law is continuous), so
that each raises a false alarm with probability below 1e-6, all inaccuracy of the approximations
included.
"""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from skdpsurv.dp import random_source
from skdpsurv.dp.exact_vectors import spherical_laplace
from skdpsurv.dp.noise import (
    lattice_laplace,
    lattice_step,
    lattice_sum,
    round_to_lattice,
    to_lattice,
)
from skdpsurv.dp.selection import exponential_mechanism, permute_and_flip
from tests.support.combinations import thinned

LIMITS = Path(__file__).parents[2] / "docs" / "user_guide" / "limits.md"
REJECT = 1e-9
SEEDS = pytest.mark.parametrize("seed", [None, 20240607], ids=["entropy", "seeded"])


def lattice_p_value(noise, scale):
    """p-value of a chi-square test of the discrete Laplace law; tails are pooled."""
    n = len(noise)
    decay = math.exp(-1 / scale)
    mass_at_zero = (1 - decay) / (1 + decay)
    edge = 0
    while n * mass_at_zero * decay ** (edge + 1) / (1 - decay) > 50:
        edge += 1
    support = np.arange(-edge, edge + 1)
    probabilities = mass_at_zero * decay ** np.abs(support)
    probabilities[[0, -1]] /= 1 - decay  # of the edge and beyond
    observed = [np.sum(np.clip(noise, -edge, edge) == k) for k in support]
    return stats.chisquare(observed, n * probabilities).pvalue


class TestLatticeLaplace:
    @SEEDS
    @pytest.mark.parametrize("scale", [0.4, 2.5, 3, 7])
    def test_law(self, seed, scale):
        """Chi-square against the exact pmf, which tells a scale that is off by a quarter."""
        noise = lattice_laplace(np.full(20_000, 41), scale, random_source(seed)) - 41
        assert lattice_p_value(noise, scale) > REJECT
        assert lattice_p_value(noise, 1.25 * scale) < REJECT

    @SEEDS
    def test_scalar_law(self, seed):
        source = random_source(seed)
        noise = np.array([lattice_laplace(0, 1.5, source) for _ in range(3_000)])
        assert lattice_p_value(noise, 1.5) > REJECT

    @SEEDS
    def test_large_scale_is_nearly_continuous(self, seed):
        """Kolmogorov-Smirnov against the Laplace law."""
        scale = 2.0**45
        noise = lattice_laplace(np.zeros(20_000, dtype=np.int64), scale, random_source(seed))
        assert stats.kstest(noise / scale, stats.laplace.cdf).pvalue > REJECT
        assert stats.kstest(noise / scale, stats.laplace(scale=1.5).cdf).pvalue < REJECT

    @SEEDS
    def test_neighbouring_elements_are_uncorrelated(self, seed):
        """The correlation of 20,000 pairs is normal with deviation 1/141; 6.5 deviations."""
        noise = lattice_laplace(np.zeros((20_000, 2), dtype=np.int64), 3.0, random_source(seed))
        assert abs(np.corrcoef(noise.T)[0, 1]) < 6.5 / math.sqrt(20_000)

    @SEEDS
    def test_types_and_shapes(self, seed):
        source = random_source(seed)
        assert type(lattice_laplace(5, 1.0, source)) is int
        assert type(lattice_laplace(np.int64(5), 1.0, source)) is int
        for shape in [(), (0,), (3,), (2, 3)]:
            value = np.zeros(shape, dtype=np.int64)
            noisy = lattice_laplace(value, 1.0, source)
            assert noisy.shape == shape
            assert noisy.dtype == np.int64
            assert not value.any()

    @SEEDS
    def test_saturates(self, seed):
        source = random_source(seed)
        info = np.iinfo(np.int64)
        ends = np.array([info.max, info.min] * 50)
        noisy = lattice_laplace(ends, 1000.0, source)
        # Wrapping around would change the sign.
        assert np.array_equal(np.sign(noisy), np.sign(ends))
        far = lattice_laplace(np.zeros(100, dtype=np.int64), 1e300, source)
        assert set(far) <= {info.max, info.min}
        assert lattice_laplace(2**70, 1e-3, source) == info.max
        assert lattice_laplace(-(2**70), 1e-3, source) == info.min
        assert lattice_laplace(np.array([2**63], dtype=np.uint64), 1e-3, source) == info.max

    def test_parameters(self):
        for value in (1.5, True, "secret", np.array([1.0]), np.array([None, 1])):
            with pytest.raises(TypeError, match="value must be an integer") as error:
                lattice_laplace(value, 1.0, random_source(None))
            assert "secret" not in str(error.value)
        for scale in (0, -1.0, math.inf, math.nan):
            for draw in (lattice_laplace, spherical_laplace):
                with pytest.raises(ValueError, match="scale"):
                    draw(1, scale, random_source(None))
        with pytest.raises(ValueError, match="dimension"):
            spherical_laplace(0, 1.0, random_source(None))


class TestSphericalLaplace:
    @SEEDS
    @pytest.mark.parametrize("dimension", [1, 2, 12])
    def test_law(self, seed, dimension):
        """Radius: Kolmogorov-Smirnov against Gamma. Direction: d * n * |mean|^2 is chi-square
        with d degrees of freedom in the limit."""
        n, scale = 4000, 0.3
        source = random_source(seed)
        draws = np.array([spherical_laplace(dimension, scale, source) for _ in range(n)])
        radius = np.linalg.norm(draws, axis=1)
        assert stats.kstest(radius, stats.gamma(dimension, scale=scale).cdf).pvalue > REJECT
        assert stats.kstest(radius, stats.gamma(dimension, scale=0.4).cdf).pvalue < REJECT

        directions = draws / radius[:, None]
        for one in directions.T:
            assert abs(stats.spearmanr(one, radius).statistic) < 6.5 / math.sqrt(n)
        resultant = n * dimension * np.sum(directions.mean(axis=0) ** 2)
        assert stats.chi2(dimension).sf(resultant) > REJECT
        # Second moments: E[u u'] = I/d; each entry deviates by less than 1/sqrt(n).
        moments = directions.T @ directions / n
        assert np.max(np.abs(moments - np.eye(dimension) / dimension)) < 6.5 / math.sqrt(n)
        if dimension == 2:
            angle = np.arctan2(*draws.T)
            assert stats.kstest(angle, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > REJECT


class TestLattice:
    def test_step_is_the_power_of_two_below(self):
        steps = {1.0: 1.0, 1.999: 1.0, 2.0: 2.0, 0.3: 0.25, 5e-324: 5e-324}
        for scale, step in {**steps, np.finfo(float).max: 2.0**1023}.items():
            assert lattice_step(scale) == step
        for step in (0.3, 3.0, 0.0, -1.0, math.inf, math.nan):
            with pytest.raises(ValueError, match=r"step must be a (power of two|positive finite)"):
                round_to_lattice([1.0], step)

    def test_large_values_are_kept_and_zero_has_no_sign(self):
        values = np.array([1e308, -1e308, 2.0**60 + 2.0**9])
        assert np.array_equal(round_to_lattice(values, 2.0**-1000), values)
        assert not np.signbit(round_to_lattice([-0.1, 0.1, -0.0], 1.0)).any()

    def test_to_lattice_is_monotone_and_near(self):
        values = np.sort(np.random.default_rng(1).normal(size=1000))
        integers = to_lattice(values)
        assert integers.dtype == np.int64
        assert np.all(np.diff(integers) >= 0)
        assert np.max(np.abs(integers * 2.0**-30 - values)) <= 2.0**-31
        rounded = round_to_lattice(100.0 * values, 2.0**-7)
        assert np.array_equal(rounded * 2**7, np.rint(rounded * 2**7))
        assert np.max(np.abs(rounded - 100.0 * values)) <= 2.0**-8
        assert to_lattice([1e300, -1e300], -30).tolist() == [2**62, -(2**62)]
        assert to_lattice([9.0, 12.0], step_exponent=3).tolist() == [1, 2]

    def test_sum_does_not_depend_on_order_or_chunks(self):
        rng = np.random.default_rng(2)
        values = rng.normal(size=5000) * 10.0 ** rng.integers(-8, 8, size=5000)
        whole = lattice_sum(values)
        assert type(whole) is int
        assert lattice_sum(rng.permutation(values)) == whole
        assert sum(lattice_sum(chunk) for chunk in np.array_split(values, 17)) == whole
        assert whole == sum(to_lattice(values).tolist())
        for bad in (math.nan, math.inf):
            with pytest.raises(ValueError, match="values contains NaN or infinity"):
                lattice_sum([1.0, bad])
        assert lattice_sum(np.full(1000, 1e300)) == 1000 * 2**62
        assert lattice_sum(np.full(1000, -1e300)) == -1000 * 2**62
        assert lattice_sum([]) == 0


def permute_and_flip_by_enumeration(scores, epsilon, sensitivity):
    """Law of the algorithm: sum over all orders, stop at the first coin that shows heads."""
    heads = np.exp(epsilon * (np.asarray(scores) - max(scores)) / (2 * sensitivity))
    law = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        still_going = 1 / len(orders)
        for candidate in order:
            law[candidate] += still_going * heads[candidate]
            still_going *= 1 - heads[candidate]
    return law


SCORES = [[0.0, 1.0, 3.0], [2.0, 2.0, -1.0, 0.5], [7.0, 7.0, 7.0], [-3.5, 0.0, -1.0, -0.25]]


class TestSelection:
    @pytest.mark.parametrize(
        ("seed", "scores", "select"),
        thinned([None, 20240607], SCORES, [permute_and_flip, exponential_mechanism]),
    )
    def test_laws(self, seed, scores, select):
        """Chi-square against all orders, or the softmax, which are told apart."""
        weights = np.exp(1.5 * np.array(scores) / (2 * 0.75))
        law, other = weights / weights.sum(), permute_and_flip_by_enumeration(scores, 1.5, 0.75)
        if select is permute_and_flip:
            law, other = other, law
        source = random_source(seed)
        chosen = [select(scores, 1.5, 0.75, source) for _ in range(8000)]
        seen = np.bincount(chosen, minlength=len(scores))
        assert np.min(8000 * law) > 50
        assert stats.chisquare(seen, 8000 * law).pvalue > REJECT
        if scores == SCORES[0]:
            assert stats.chisquare(seen, 8000 * other).pvalue < REJECT

    def test_enumerated_law_is_private(self):
        """On neighbouring scores no probability moves by more than exp(epsilon)."""
        epsilon = 0.8
        scores = np.array([1.0, 0.0, 2.0])
        for shift in itertools.product([-1, 0, 1], repeat=3):
            one = permute_and_flip_by_enumeration(scores, epsilon, 1.0)
            other = permute_and_flip_by_enumeration(scores + shift, epsilon, 1.0)
            assert np.max(np.abs(np.log(one / other))) <= epsilon + 1e-12

    @pytest.mark.parametrize("select", [permute_and_flip, exponential_mechanism])
    def test_edges(self, select):
        """Beyond 2^53 neighbouring integers are one float; here they are two candidates."""
        source = random_source(None)
        assert {select([1, 5, 5, 2], math.inf, 1.0, source) for _ in range(20)} == {1}
        for epsilon in (200.0, math.inf):
            assert select(np.array([2**60, 2**60 + 1]), epsilon, 1.0, source) == 1
        assert {select([-3.0], epsilon, 1.0, source) for epsilon in (1e-9, 1.0, math.inf)} == {0}
        for scores in ([], [[1.0, 2.0]], [1.0, math.nan], [math.inf, 0.0], ["a"]):
            with pytest.raises(ValueError, match="scores"):
                select(scores, 1.0, 1.0, source)
        for name, epsilon, sensitivity in (("epsilon", 0, 1.0), ("sensitivity", 1.0, math.inf)):
            with pytest.raises(ValueError, match=name):
                select([1.0], epsilon, sensitivity, source)

    @pytest.mark.parametrize("select", [permute_and_flip, exponential_mechanism])
    def test_extreme_gaps(self, select):
        """A gap of 60 is chosen with probability below 1e-26, and gaps may be astronomical."""
        source = random_source(None)
        for scores in ([0.0, 120.0], [-1e308, 1e308], [-1e-320, 1e300]):
            assert {select(scores, 1.0, 1.0, source) for _ in range(20)} == {1}
        assert {select([0.0, 5e-324], 1e-300, 1.0, source) for _ in range(200)} == {0, 1}
