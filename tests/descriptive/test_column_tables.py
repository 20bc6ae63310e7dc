"""Counts of Table 1: what one record moves, and what the points of a grid keep of its value."""

import itertools

import numpy as np
import pytest
from scipy import stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.data.column_specifications import column_terms
from skdpsurv.descriptive.column_tables import (
    UNIT,
    Cells,
    GroupSizes,
    TableCounts,
    n_points_for,
    points_of,
    price_of,
)
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.privacy_cost import Concentrated, rho_for

STATED = {
    "age": {"bounds": [18, 100], "missing": "midpoint"},
    "huge": {"bounds": [-1.7e308, 1.7e308]},
    "narrow": {"bounds": [1e16, 1e16 + 4]},
    "seen": {"dates": ["2001-01-01", "2010-12-31"], "missing": "category"},
    "ward": {"categories": ["east", "west", "north"], "missing": "category"},
    "ill": bool,
    "skewed": {"bounds": [0, 5000], "typical": 40, "missing": "midpoint"},
    "thin": {"bounds": [1e9, 1e9 + 1], "typical": 1e9 + 2e-7},
    "vast": {"bounds": [-1.7e308, 1.7e308], "typical": -1.6e308},
    "born": {"dates": ["1900-01-01", "1999-12-31"], "typical": "1990-01-01"},
}
KINDS, _ = column_terms(STATED, "error", "first")
POINTS = (7, 2, 30, [0.0, 10.0, 3651.0], None, None, 65, 200, 9, 40)
#: Places of numbers and dates.
NUMBERS = (0, 1, 2, 3, 6, 7, 8, 9)
CELLS = tuple(
    Cells(kind, None if points is None else points_of(kind, points))
    for kind, points in zip(KINDS, POINTS, strict=True)
)
#: Values at, between and beyond the points, and missing ones where there may be any.
VALUES = (
    [18.0, 37.3, 99.999, 100.0, 1e300, -5.0, np.nan],
    [-1.7e308, -1e-300, 0.0, 3.0, 1.7e308],
    [1e16, 1e16 + 2, 1e16 + 4, 0.0, 1e17],
    [0.0, 9.5, 10.0, 3650.7, 3651.0, np.nan],
    [0.0, 1.0, 2.0, np.nan],
    [0.0, 1.0],
    [0.0, 39.9, 40.0, 1700.0, 5000.0, 1e9, np.nan],
    [1e9, 1e9 + 1.2e-7, 1e9 + 2.4e-7, 1e9 + 0.5, 1e9 + 1, 0.0],
    [-1.7e308, -1.6e308, 0.0, 5e-324, 1.7e308],
    [0.0, 32872.0, 36523.0, -1.0, 1e6],
)


def counted(cells, value, group=0, n_groups=2):
    return cells.count(np.array([value]), np.array([group]), n_groups)


@pytest.mark.parametrize("place", range(len(CELLS)))
def test_a_record_has_one_unit_in_the_rows_of_its_group(place):
    cells = CELLS[place]
    for value, group in itertools.product(VALUES[place], (0, 1)):
        found = counted(cells, value, group)
        assert found.dtype == np.int64
        assert (found >= 0).all()
        assert found[group].sum() == cells.unit
        assert not found[1 - group].any()


def test_replacing_a_record_moves_each_table_by_two_units():
    """By all pairs of values and groups; some move it by as much as they may."""
    table = TableCounts(price=1.0, columns=CELLS, n_groups=2)
    records = [
        InMemory([(np.array([group]), [np.array([v[k % len(v)]]) for v in VALUES])])
        for k in range(7)
        for group in (0, 1)
    ]
    furthest = np.zeros(2 * len(CELLS))
    for one, other in itertools.combinations(records, 2):
        distances = table.distances({}, one, other)
        assert all(found <= bound for _, found, bound in distances)
        furthest = np.maximum(furthest, [found / bound for _, found, bound in distances])
    np.testing.assert_array_equal(furthest, 1.0)


def test_public_sizes_may_not_move():
    here, there = (InMemory([(np.array([group]), [])]) for group in (0, 1))
    assert GroupSizes(2).distances({}, here, here) == [("group sizes", 0.0, 0.0)]
    assert GroupSizes(2).distances({}, here, there) == [("group sizes", 2.0, 0.0)]


def test_values_have_their_mean_between_points():
    """Up to half a unit of rounding, at any points."""
    rng = np.random.default_rng(0)
    for cells, bounds in ((CELLS[0], (18.0, 100.0)), (CELLS[6], (0.0, 5000.0))):
        values = rng.uniform(bounds[0] - 8.0, bounds[1] + 8.0, 500)
        for value in values:
            found = counted(cells, value)[0, :-1]
            assert (found > 0).sum() <= 2
            gap = np.diff(cells.points).max()
            assert abs(found @ cells.points / UNIT - np.clip(value, *bounds)) <= gap / UNIT
        whole = cells.count(values, np.zeros(500, dtype=int), 1)[0, :-1]
        total = np.clip(values, *bounds).sum()
        assert whole @ cells.points / UNIT == pytest.approx(total, rel=1e-7)


def test_blocks_add_up():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 2, 90)
    values = [rng.choice(v, 90) for v in VALUES]
    table = TableCounts(price=1.0, columns=CELLS, n_groups=2)
    whole = table.exact_answer({}, InMemory([(group, values)]))
    thirds = np.array_split(np.arange(90), 3)
    parts = table.exact_answer({}, InMemory([(group[t], [v[t] for v in values]) for t in thirds]))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("price", [0.7, Concentrated(0.3)])
def test_noise_is_for_all_columns_together(price):
    """Deviations of 4,000 cells, in records; false alarm 1e-8 by chi squared."""
    columns = (Cells(KINDS[4], None), Cells(KINDS[0], points_of(KINDS[0], 999)))
    table = TableCounts(price=price, columns=columns, n_groups=4)
    nobody = [np.zeros((4, cells.number), dtype=np.int64) for cells in columns]
    source = random_source(3)
    released = table.postprocess({}, table.query_for({}).release(nobody, price, source))
    k = 2
    epsilon, gaussian = price, isinstance(price, Concentrated)
    expected = 2 * k / price.mu**2 if gaussian else 2.0 * (2 * k / epsilon) ** 2
    stated = table.drawn({})
    assert stated["variance"] == pytest.approx(expected, rel=1e-9)
    assert (stated["gives"], stated["law"]) == ("counts", "gaussian" if gaussian else "laplace")
    noise = released["counts"]
    assert noise.shape == (4, 4 + 1000)
    per_cell = 2.0 if gaussian else 5.0  # variance of a square, in squares of the variance
    error = 6.0 * np.sqrt(per_cell / noise.size)
    assert np.mean(noise**2) / expected == pytest.approx(1.0, abs=error)
    assert np.array_equal(noise[:, :4], np.rint(noise[:, :4]))
    assert (
        stats.kstest(
            noise.ravel() / np.sqrt(expected),
            "norm" if gaussian else stats.laplace(scale=np.sqrt(0.5)).cdf,
        ).pvalue
        > 1e-8
    )


def test_the_smaller_noise_is_chosen_by_public_numbers():
    assert price_of(1.0, 0.0, 50) == 1.0
    assert price_of(1.0, 1e-8, 4) == 1.0
    many = price_of(1.0, 1e-8, 20)
    assert isinstance(many, Concentrated)
    assert many.rho <= rho_for(1.0, 1e-8)
    assert price_of(np.inf, 1e-8, 20) == np.inf


def test_points_grow_with_what_noise_leaves():
    assert n_points_for(100, 2, 50.0) == 8
    assert n_points_for(10**7, 1, 5.0) == 200
    assert n_points_for(8000, 2, 20.0) == round(200.0 ** (2.0 / 3.0))
    assert n_points_for(8000, 2, 0.0) == 200


def test_values_that_are_evenly_spread():
    np.testing.assert_allclose(CELLS[0].evenly_spread() * 12, [1, 2, 2, 2, 2, 2, 1, 0])
    np.testing.assert_allclose(CELLS[4].evenly_spread() * 3, [1, 1, 1, 0])


@pytest.mark.parametrize("place", NUMBERS)
def test_points_never_fall(place):
    for number in (2, 3, 30, 1000):
        points = points_of(KINDS[place], number)
        assert (points[0], points[-1]) == KINDS[place].ends
        assert (np.diff(0.5 * points) >= 0.0).all()


def described(bounds, typical):
    (kind,), _ = column_terms({"x": {"bounds": bounds, "typical": typical}}, "error", "first")
    return kind


def test_half_of_the_points_are_on_either_side_of_a_typical_value():
    for kind, typical in ((KINDS[6], 40.0), (KINDS[9], 32872.0), (described([-9, 1], 0.5), 0.5)):
        points = points_of(kind, 65)
        assert points[32] == pytest.approx(typical)
        gaps = np.diff(points)
        nearer = gaps if typical - points[0] < points[-1] - typical else gaps[::-1]
        assert (np.diff(nearer) > 0.0).all()


@pytest.mark.parametrize("typical", [-10.0, 10.0, 0.0])
def test_points_are_equally_spaced_where_no_value_between_bounds_is_typical_of_a_side(typical):
    points = points_of(described([-10, 10], typical), 33)
    (plain,), _ = column_terms({"x": (-10, 10)}, "error", "first")
    np.testing.assert_array_equal(points, points_of(plain, 33))
    np.testing.assert_allclose(points, np.linspace(-10.0, 10.0, 33), atol=1e-14)


def test_a_typical_value_beside_a_bound_leaves_points_apart():
    """The nearest are as far apart as with a thousandth of the bounds on its side."""
    for typical in (1e-300, 1e-9, 4.9, 5000.0 - 1e-9):
        gaps = np.diff(points_of(described([0, 5000], typical), 1000))
        assert gaps.min() == pytest.approx(5.0 / 999.0, rel=0.01)
