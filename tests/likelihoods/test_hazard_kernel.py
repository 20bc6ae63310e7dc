"""Small hazards by a series: the same sums as term by term, to rounding."""

import numpy as np
import pytest

from skdpsurv.likelihoods import hazard_kernel
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock
from skdpsurv.likelihoods.hazard_kernel import (
    LEAST_RECORDS,
    KernelSums,
    add_small,
    add_survived,
    is_small,
)
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.likelihoods.loss import SUM_ROWS
from tests.support.combinations import thinned
from tests.support.hazard_blocks import hazard_block

Q, N = 30, 700
WITH_SERIES = ["cloglog", "logit"]
#: Relative errors. A slope is exact up to the rounding of exp(350), the reach of cloglog; so is
#: cloglog's curvature. Logit's comes from a shorter polynomial, as it only steers the solver.
SLOPE_ERROR = 1e-13
CURVATURE_ERROR = {"cloglog": 1e-13, "logit": 1e-6}


@pytest.fixture(params=WITH_SERIES)
def link(request):
    return LINKS[request.param]


def problem(level, spread=1.0, seed=0):
    """Return baseline, records' part, intervals survived (ascending, every count) and weights."""
    rng = np.random.default_rng(seed)
    a = level + rng.normal(scale=spread, size=Q)
    b = rng.normal(scale=spread, size=N)
    survived = np.sort(np.concatenate([np.arange(Q + 1), rng.integers(0, Q + 1, N - Q - 1)]))
    basis = np.column_stack([np.full(Q, 0.4), rng.normal(size=(Q, 2))])
    return basis, a, b, survived, rng.uniform(0, 2, size=N)


def both_ways(link, level, order, rows=None, spread=1.0):
    basis, a, b, survived, weights = problem(level, spread)
    rows = np.flatnonzero(is_small(link, a, b)) if rows is None else rows
    ways = []
    for add in (add_small, add_survived):
        sums = KernelSums(link, basis, a, b, weights, survived, order)
        add(sums, rows)
        ways.append(sums)
    return ways, rows


def check(ways, curvature_error):
    small, direct = ways
    for name in ("slope", "interval_slope", "curvature", "cross", "interval_curvature"):
        one, other = getattr(small, name), getattr(direct, name)
        error = SLOPE_ERROR if name.endswith("slope") else curvature_error
        # Terms of a cross derivative have either sign: what counts is their size.
        size = np.abs(other).max() if name == "cross" else 0.0
        np.testing.assert_allclose(one, other, rtol=error, atol=error * size, err_msg=name)


class TestSeries:
    def test_only_links_with_a_series_use_it(self):
        assert [name for name, link in sorted(LINKS.items()) if link.series] == WITH_SERIES
        assert not is_small(LINKS["probit"], np.array([-99.0]), np.array([-99.0, 0.0])).any()

    def test_polynomial_is_the_slope_to_rounding(self, link):
        """And the other one the curvature, up to the largest hazard that they are used for."""
        series = link.series
        top = min(np.log(series.limit), 5.0)
        eta = np.concatenate([np.linspace(top - 40, top, 4001), [top]])
        powers = np.arange(1, series.slope.size + 1)
        raised = np.exp(np.outer(eta - np.log(series.limit), powers))
        curve = link.survival(eta)
        np.testing.assert_allclose(raised @ series.slope, curve.slope, rtol=SLOPE_ERROR)
        bend = raised[:, : series.curvature.size] @ series.curvature
        np.testing.assert_allclose(bend, curve.curvature, rtol=CURVATURE_ERROR[link.name])

    def test_reach_is_decided_by_the_largest_hazard(self, link):
        edge = np.log(link.series.limit)
        a = np.array([-3.0, -1.0, -7.0])
        b = edge + 1.0 + np.tile([-1e-9, 1e-9, -50.0, 3.0], LEAST_RECORDS)
        expected = np.tile([True, False, True, False], LEAST_RECORDS)
        np.testing.assert_array_equal(is_small(link, a, b), expected)
        # Few records go the long way.
        assert is_small(link, a, np.full(LEAST_RECORDS, -30.0)).all()
        assert not is_small(link, a, np.full(LEAST_RECORDS - 1, -30.0)).any()


class TestSums:
    @pytest.mark.parametrize("order", [1, 2])
    @pytest.mark.parametrize("level", [-30.0, -12.0, -6.0, -3.5])
    def test_series_is_the_direct_sum(self, link, level, order):
        ways, rows = both_ways(link, level, order)
        assert rows.size > (N // 3 if link.name == "logit" else N - 1)
        check(ways, CURVATURE_ERROR[link.name])
        assert np.abs(ways[0].interval_slope).max() > 0
        assert (ways[0].interval_curvature != 0).any() == (order == 2)

    @pytest.mark.parametrize("order", [1, 2])
    def test_records_at_the_edge_of_the_reach(self, link, order):
        """Every hazard is as large as the series allows: no term of it is negligible."""
        edge = np.log(LINKS["logit"].series.limit)
        ways, _ = both_ways(link, edge, order, np.arange(N), spread=0.0)
        check(ways, CURVATURE_ERROR[link.name])

    def test_sums_are_added_to_what_is_there(self, link):
        basis, a, b, survived, weights = problem(-8.0)
        whole, parts = (KernelSums(link, basis, a, b, weights, survived, 2) for _ in range(2))
        add_small(whole, np.arange(N))
        add_small(parts, np.arange(0, N, 2))
        for name in ("slope", "curvature", "cross"):  # other records are left alone
            assert not getattr(parts, name)[1::2].any()
        add_small(parts, np.arange(1, N, 2))
        check((parts, whole), 1e-13)

    def test_few_intervals_take_the_long_way(self, monkeypatch, link):
        """It is as fast there: records of more intervals than twice the terms take the series."""
        taken = []
        monkeypatch.setattr(hazard_kernel, "add_small", lambda sums, rows: taken.append(rows))
        basis, _, b, survived, _ = problem(-12.0)
        block = HazardBlock(b[:, None], survived, np.zeros(N, dtype=bool))
        likelihood = DiscreteHazard(basis[:, :1], 1, link=link)
        likelihood.derivatives(np.array([-30.0, 1.0]), block, order=1)
        rows = np.flatnonzero(survived > 2 * link.series.slope.size)
        assert 0 < rows.size < N
        np.testing.assert_array_equal(taken, [rows])

    @pytest.mark.parametrize("elements", [1, 50, 14 * 300])
    def test_the_size_of_a_cacheful_changes_nothing(self, monkeypatch, link, elements):
        """Down to a record at a time, and with breaks inside of an interval."""
        expected = both_ways(link, -6.0, 2)[0][0]
        monkeypatch.setattr(hazard_kernel, "CHUNK_ELEMENTS", elements)
        check((both_ways(link, -6.0, 2)[0][0], expected), 1e-13)

    def test_many_equal_records(self, link):
        """Sums by interval are made of short pieces: rounding does not pile up."""
        n = 50_001
        survived = np.full(n, 3)
        a, basis = np.array([-2.0, -3.0, -4.0]), np.full((3, 1), 0.4)
        slope = link.survival(a).slope
        ulps = SUM_ROWS + 100
        for add in (add_small, add_survived):
            sums = KernelSums(link, basis, a, np.zeros(n), np.ones(n), survived, 2)
            add(sums, np.arange(n))
            assert (np.abs(sums.interval_slope / (n * slope) - 1) <= ulps * 2.0**-53).all()


@pytest.mark.parametrize(
    ("level", "order", "weighted", "cap"),
    thinned([-15.0, -5.0, -2.0], [2, 1], [True, False, True], [1.0, None, 1.0]),
)
def test_likelihood_is_the_same_without_the_series(monkeypatch, link, level, order, weighted, cap):
    """Records with small hazards, large ones and such beyond the cap, in one block."""
    if cap is None and not link.bounded_slope:
        cap = 1e6  # a cap that nobody reaches
    rng = np.random.default_rng(1)
    basis = np.column_stack([np.full(Q, 0.4), np.linspace(-0.2, 0.2, Q)])
    likelihood = DiscreteHazard(basis, 2, 1.0, link, cap)
    X = rng.uniform(-0.7, 0.7, size=(N, 2))
    block = hazard_block(X, rng.integers(1, Q + 1, size=N), rng.random(N) < 0.3)
    weights = rng.uniform(0, 2, size=N) if weighted else None
    coef = np.array([level / 0.4, 1.0, 4.0, -3.0])
    monkeypatch.setattr(hazard_kernel, "TERM_COST", 0)
    small = is_small(link, basis @ coef[:2], block.X @ coef[2:])
    if link.name == "logit" and level == -5.0:
        assert 0.2 < small.mean() < 0.98
    with_series = likelihood.derivatives(coef, block, weights, order)
    monkeypatch.setattr(hazard_kernel, "is_small", lambda link, a, b: np.zeros(b.size, dtype=bool))
    direct = likelihood.derivatives(coef, block, weights, order)
    size = np.abs(direct.gradient).max()
    np.testing.assert_allclose(with_series.gradient, direct.gradient, rtol=0, atol=1e-13 * size)
    if order == 1:
        assert with_series.hessian is None
    else:
        atol = max(1e-12, CURVATURE_ERROR[link.name]) * np.abs(direct.hessian).max()
        np.testing.assert_allclose(with_series.hessian, direct.hessian, rtol=0, atol=atol)
