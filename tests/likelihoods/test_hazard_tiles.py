"""Slopes of probit by tiles of predictors: the same sums as interval by interval, to rounding."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest

from skdpsurv.likelihoods import hazard_kernel
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.hazard_kernel import (
    FARTHEST,
    LENGTH,
    KernelSums,
    add_survived,
    add_tile,
    tiles,
)
from skdpsurv.likelihoods.links import LINKS, Probit
from skdpsurv.likelihoods.loss import SUM_ROWS
from tests.support.hazard_blocks import hazard_block

PROBIT = LINKS["probit"].bounded_at(0.01)
Q, N, CAP = 40, 900, 1.5


@pytest.fixture(autouse=True)
def _tiles_of_few_records(monkeypatch):
    """Use tiles where the long way would be faster, too."""
    monkeypatch.setattr(hazard_kernel, "RECORD_COST", 0)
    monkeypatch.setattr(hazard_kernel, "TILE_COST", 100)


def problem(level, spread, n=N, seed=0):
    """Return baseline, records' part, intervals survived (ascending, every count) and weights."""
    rng = np.random.default_rng(seed)
    a = level + 0.3 * rng.normal(size=Q)
    b = spread * rng.uniform(-1.0, 1.0, n)
    survived = np.sort(np.concatenate([np.arange(Q + 1), rng.integers(0, Q + 1, n - Q - 1)]))
    return a, b, survived, rng.uniform(0.0, 1.0, size=n)


def found(a, b, survived, cap=CAP, link=PROBIT):
    return list(tiles(link, a, b, survived, cap, np.ones(b.size, dtype=bool)))


def empty_sums(a, b, weights, survived):
    basis = np.column_stack([np.full(Q, 0.4), np.linspace(-1.0, 1.0, Q)])
    return KernelSums(PROBIT, basis, a, b, weights, survived, 2)


class TestTiles:
    @pytest.mark.parametrize("level", [-2.5, -4.0, -9.0, -30.0])
    def test_sums_are_those_of_the_long_way(self, level):
        """To 1e-13 of the cap, however small the sum of a record."""
        a, b, survived, weights = problem(level, 1.2)
        made = found(a, b, survived)
        assert len(made) >= 3
        for upper, rows in made:
            one, other = (empty_sums(a, b, weights, survived) for _ in range(2))
            add_tile(one, rows, upper)
            add_survived(other, rows)
            np.testing.assert_allclose(one.slope, other.slope, rtol=0, atol=1e-13 * CAP)
            mass = 1e-13 * CAP * weights[rows].sum()
            np.testing.assert_allclose(one.interval_slope, other.interval_slope, rtol=0, atol=mass)
            for name in ("curvature", "cross", "interval_curvature"):
                long = getattr(other, name)
                error = max(1e-12 * np.abs(long).max(), 1e-30)
                np.testing.assert_allclose(getattr(one, name), long, rtol=0, atol=error)

    @pytest.mark.parametrize("level", [-1.0, -2.5, -4.0])
    def test_they_hold_what_the_proof_supposes(self, level):
        a, b, survived, _ = problem(level, 1.2)
        made = found(a, b, survived)
        together = np.concatenate([rows for _, rows in made])
        assert np.unique(together).size == together.size > (0.9 if level < -3.0 else 0.05) * N
        for upper, rows in made:
            assert a.max() + upper <= 0.0
            assert ((b[rows] <= upper) & (b[rows] >= upper - LENGTH)).all()
            total = PROBIT.survival(a[: survived[rows].max()] + upper).slope.sum()
            assert total <= CAP * (1.0 + 1e-12)

    def test_none_for_records_far_out_or_other_links(self):
        a, b, survived, _ = problem(-4.0, 0.2)
        assert found(a, b, survived)
        assert not found(a, b - 2.0 * FARTHEST, survived)
        assert not found(a - 2.0 * FARTHEST, b + 2.0 * FARTHEST, survived)
        assert [link.tiled for link in (LINKS["logit"], LINKS["cloglog"])] == [False, False]

    def test_none_where_the_long_way_is_faster(self, monkeypatch):
        """Records with few intervals go that way, and tiles with few intervals beyond those."""
        monkeypatch.undo()
        cost, tile = hazard_kernel.RECORD_COST, hazard_kernel.TILE_COST + 20 * Q
        few = 1 + tile // (Q - cost)
        for n, k, expected in ((few - 2, Q, 0), (few, Q, few), (10 * few, cost, 0)):
            made = found(np.full(Q, -4.0), np.zeros(n), np.full(n, k))
            assert sum(rows.size for _, rows in made) == expected
        survived = np.repeat([cost, Q], [100, few])
        ((_, rows),) = found(np.full(Q, -4.0), np.zeros(few + 100), survived)
        assert rows.min() == 100

    def test_not_many_of_them_are_looked_at(self, monkeypatch):
        looks, honest = [], Probit.survival_outer
        monkeypatch.setattr(
            Probit, "survival_outer", lambda *args: looks.append(1) or honest(*args)
        )
        a, _, survived, _ = problem(-4.0, 1.0)
        assert not found(a, -np.linspace(0.0, 1e4, N), survived)
        assert len(looks) == hazard_kernel.MOST_TILES

    def test_records_at_nodes_and_ends(self):
        """No division by what is 0 there."""
        a, _, survived, weights = problem(-4.0, 1.0)
        nodes = -0.25 * (1.0 - np.cos(np.pi * (np.arange(20) + 0.5) / 20))
        b = np.resize(np.concatenate([nodes, [0.0, -LENGTH]]), N)
        one, other = (empty_sums(a, b, weights, survived) for _ in range(2))
        add_tile(one, np.arange(N), 0.0)
        add_survived(other, np.arange(N))
        np.testing.assert_allclose(one.slope, other.slope, rtol=1e-12)

    def test_intervals_that_no_record_of_the_tile_survived(self):
        """Are left alone."""
        a, b, _, weights = problem(-4.0, 0.2)
        for most in (1, 7):
            survived = np.sort(np.arange(N) % (most + 1))
            ((upper, rows),) = found(a, b, survived)
            sums = empty_sums(a, b, weights, survived)
            add_tile(sums, rows, upper)
            for total in (sums.interval_slope, sums.interval_curvature):
                np.testing.assert_array_equal(total > 0.0, np.arange(Q) < most)
            np.testing.assert_array_equal(sums.slope > 0.0, survived > 0)


class TestWhatTheProofCounts:
    """Numbers of docs/proofs/rounding, for tiles of 20 nodes and an ellipse of rate 8."""

    TURNS = np.exp(1j * np.linspace(0.0, np.pi, 25))
    ELLIPSE = 0.125 * (8.0 * TURNS + 1.0 / (8.0 * TURNS)) - 0.25

    def test_slopes_on_the_ellipse(self):
        """Around tiles that end at 0 and below: at most 4.5 times the slope at its real part."""
        worst, ends = 0.0, []
        for upper in -np.linspace(0.0, 12.0, 13):
            for z in self.ELLIPSE + upper:
                z, x = mpmath.mpc(z), mpmath.mpf(z.real)
                worst = max(worst, abs(slope(z)) / slope(x))
            end = mpmath.mpf(float(self.ELLIPSE.real.max()) + upper)
            ends.append(min(slope(end) / slope(mpmath.mpf(float(upper))), slope(end) / 1e-18))
        assert self.ELLIPSE.real.max() <= 0.77
        assert self.ELLIPSE.imag.max() <= 0.99
        assert worst <= 4.5
        assert max(ends) <= 1000.0

    def test_parts_of_the_polynomial(self):
        nodes = -0.25 * (1.0 - np.cos(np.pi * (np.arange(20) + 0.5) / 20))
        b = np.linspace(-LENGTH, 0.0, 4001)
        gaps = nodes[:, None] - nodes + np.eye(20)
        parts = hazard_kernel._lagrange(b, nodes, 1.0 / gaps.prod(axis=1))
        assert np.abs(parts).sum(axis=1).max() <= 2.91
        np.testing.assert_allclose(parts.sum(axis=1), 1.0, atol=1e-14)


def slope(eta):
    return (
        mpmath.exp(-(eta**2) / 2) / mpmath.erfc(eta / mpmath.sqrt(2)) * mpmath.sqrt(2 / mpmath.pi)
    )


def likelihood():
    basis = np.column_stack([np.full(Q, 0.4), np.linspace(-0.1, 0.1, Q)])
    return DiscreteHazard(basis, 2, 1.0, PROBIT, CAP / PROBIT.event_slope)


def block(n, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return hazard_block(X, rng.integers(1, Q + 1, n), rng.random(n) < 0.3)


class TestInTheLikelihood:
    @pytest.mark.parametrize("level", [-1.0, -2.0, -3.0])
    @pytest.mark.parametrize("capped", [True, False])
    def test_derivatives_are_those_of_the_long_way(self, monkeypatch, level, capped):
        """Of levels at which most records, some and none are beyond their threshold."""
        model, rows = likelihood(), block(5 * SUM_ROWS)
        if not capped:
            model = replace(model, link=LINKS["probit"], max_cumulative_hazard=None)
        coef, made = np.array([level / 0.4, 1.0, 0.8, -0.5]), []
        add = hazard_kernel.add_tile
        monkeypatch.setattr(hazard_kernel, "add_tile", lambda *args: made.append(1) or add(*args))
        gradient, hessian = model.derivatives(coef, rows)
        assert len(made) > 1
        assert (model.derivatives(coef, rows, order=1).gradient == gradient).all()
        monkeypatch.setattr(hazard_kernel, "tiles", lambda *args: iter(()))
        long = model.derivatives(coef, rows)
        np.testing.assert_allclose(gradient, long.gradient, rtol=1e-12)
        size = np.abs(long.hessian).max()
        np.testing.assert_allclose(hessian, long.hessian, rtol=0, atol=1e-12 * size)
