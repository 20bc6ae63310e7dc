"""Intervals of Table 1: by the formulas for given cells, and where noise makes them hard."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skdpsurv import DPTableOne, PublicColumns
from skdpsurv.descriptive import differences
from skdpsurv.descriptive.share_intervals import (
    Ends,
    Level,
    Moments,
    count,
    quantile,
    ratio,
    single_part,
)
from skdpsurv.descriptive.solution import Sizes, Solved
from skdpsurv.descriptive.summary import Summary


class TestOfGivenCells:
    @pytest.mark.parametrize("variance", [0.0, 2.0, 2000.0])
    def test_of_quantiles_are_all_places_that_sums_up_to_points_allow(self, variance):
        """Sums stand in the middle of gaps, with a line between two; tried at 20,001 places."""
        counts = np.random.default_rng(0).integers(20, 60, (2, 41)).astype(np.float64)
        sizes = Sizes.solved([counts], variance, 3300)
        solved, own = Solved.of(counts, variance, sizes), np.array([1.0, 0.0])
        points, k = np.cumsum(np.random.default_rng(1).uniform(0.5, 2.0, 40)), np.arange(40)
        present = solved.cells[0, :-1].sum()
        middles = [points[0], *(0.5 * (points[1:] + points[:-1])), points[-1]]
        tried = np.linspace(points[0], points[-1], 20_001)
        jumps = [0.0]
        for here, wide, beside, other in zip(
            solved.cells[0], np.diff(middles), solved.cells[0, 1:-1], np.diff(middles)[1:],
            strict=False,
        ):  # fmt: skip
            more = abs(here / wide - beside / other) * min(wide, other)
            jumps.append(max(more - 1.5 * math.sqrt(2.0 * variance), 0.0))
        jumps.append(0.0)
        allowance = [max(jumps[j : j + 3]) for j in range(39)]
        for p in np.linspace(0.1, 0.9, 9):
            found = quantile(solved, points, own, p, Level(0.95, False))
            weights = [np.append(np.where(k <= up_to, 1.0 - p, -p), 0.0) for up_to in k]
            away, noise = solved.sums(np.array([np.outer(own, one) for one in weights]))
            for more, ends in ((0.0, found.people), (present * p * (1.0 - p), found.population)):
                bare = 1.959964 * np.sqrt(np.diag(noise) + more)
                reach = bare[:-1] + allowance
                reach = np.interp(tried, middles, [reach[0], *reach, reach[-1]])
                assert (np.diff(np.append(0.0, away + p * present)) > 0.0).all()
                own_away = np.interp(tried, middles, [-p * present, *away])
                held = tried[np.abs(own_away) <= reach]
                first, last = np.argmin(away < -bare), np.argmin((away >= bare)[::-1])
                least, most = points[max(first - 1, 0)], points[min(40 - last + 1, 39)]
                expected = max(held[0], least), min(held[-1], most)
                assert ends == pytest.approx(expected, abs=0.004)

    @pytest.mark.parametrize(("pile", "held"), [(-1, (3.0, 4.0)), (0, (0.0, 1.0))])
    def test_a_quantile_of_a_pile_at_an_end_is_between_it_and_the_next_point(self, pile, held):
        counts = np.zeros((1, 6))
        counts[0, :-1][pile] = 1000.0
        solved, points = Solved(counts, 0.0, Sizes.known(np.array([1000]))), np.arange(5.0)
        for p in (0.25, 0.5, 0.75):
            found = quantile(solved, points, np.ones(1), p, Level(0.95, False))
            assert found.people == found.population == held
            assert held[0] < found.estimate < held[1]

    def test_of_the_mean_of_six_people_without_noise(self):
        """A sixth of the square of a gap is taken off: values are evenly spread."""
        solved = Solved(np.array([[0.0, 3.0, 0.0, 3.0, 0.0, 0.0]]), 0.0, Sizes.known(np.array([6])))
        mean = Moments(solved, np.arange(6) / 5, np.ones(1), Level(0.95, False)).mean()
        reach = 1.959964 * math.sqrt((0.04 - 0.04 / 6) / 6)
        assert mean.estimate == pytest.approx(0.4)
        assert mean.people == pytest.approx((0.4, 0.4))
        assert mean.population == pytest.approx((0.4 - reach, 0.4 + reach))

    def test_a_denominator_below_one_is_one_that_noise_left(self):
        assert ratio(0.4, 0.8, Ends(0.0, 1.0)) == 0.5
        assert np.isnan(ratio(0.4, 0.0, Ends(0.0, 1.0)))

    def test_the_part_of_one_cell_is_the_excess_of_the_kurtosis(self):
        """Of the noise of a cell of four, less its mean over them; that of Laplace is 3."""
        form = np.array([[1.0, 0.0, 0.0, 0.0]])
        solved = Solved(np.zeros((1, 4)), 2.0, Sizes.known(np.zeros(1)))
        [[variance]] = solved.sums(form[None])[1]
        draws = np.random.default_rng(2).laplace(size=(4, 200_000))
        excess = stats.kurtosis(draws[0] - draws.mean(axis=0))
        assert single_part(solved, form, variance) == pytest.approx(excess / 3.0, rel=0.1)

    def test_a_correlation_of_mean_and_deviation_is_that_of_the_delta_method(self):
        cells = np.array([[90.0, 5.0, 2.0, 1.0, 2.0, 30.0, 25.0, 15.0]])
        solved, points = Solved(cells, 4.0, Sizes.known(cells.sum(axis=1))), np.linspace(0, 1, 7)
        mean, square = (np.average(points**k, weights=cells[0, :-1]) for k in (1, 2))
        away = points - mean
        slopes = np.array([away, away**2 - (square - mean**2)])
        (a, ab), (_, b) = solved.sums(np.pad(slopes, ((0, 0), (0, 1)))[:, None])[1]
        moments = Moments(solved, points, np.ones(1), Level(0.95, False))
        assert moments.correlations()[0] == pytest.approx(ab / math.sqrt(a * b), rel=0.01)

    def test_a_difference_of_two_labels_leaves_missing_values_out(self):
        cells, pair = np.array([[30.0, 10.0, 20.0], [20.0, 20.0, 5.0]]), np.eye(2)
        solved = Solved(cells, 0.0, Sizes.known(cells.sum(axis=1)))
        found = differences.of_labels(solved, 2, pair, Level(0.95, False))
        assert found.estimate == pytest.approx(0.25 / math.sqrt(0.5 * (0.1875 + 0.25)))


def redrawn(X, columns, by, epsilon, grid, n_draws):
    """Yield solved tables from exact counts with new noise, for these people."""
    exact = DPTableOne(np.inf, columns=columns, by=by, grid=grid).fit(X)
    deviation = DPTableOne(epsilon, columns=columns, by=by)._deviation()
    summary, counts, rng = exact._summary, exact.release_.values["counts"], np.random.default_rng(5)
    for _ in range(n_draws):
        noisy = counts + rng.laplace(0.0, deviation / math.sqrt(2.0), counts.shape)
        yield Summary.of(summary.columns, noisy, deviation**2, len(X), summary.groups, None, True)


def held(frames, key, truth):
    """Return the share of draws whose interval holds the truth."""
    rows = [frame.loc[key] for frame in frames]
    return np.mean([row.people_low <= truth <= row.people_high for row in rows])


class TestHardCases:
    """150 draws each: below 0.82 with probability 1e-8 at 95 %."""

    score = pd.DataFrame(
        {
            "arm": np.repeat(["control", "treated"], 1000),
            "score": np.r_[np.tile([0, 0, 1, 1, 2], 200), np.tile([0, 1, 2, 3, 4], 200)],
            "rare": np.r_[np.arange(1000) % 50 == 0, np.arange(1000) % 5 < 3],
        }
    )
    columns = PublicColumns.of(arm=["control", "treated"], score=(0, 4), rare=bool)

    @pytest.mark.slow
    def test_values_at_the_points_of_a_grid(self):
        found = redrawn(self.score, self.columns, "arm", 1.0, 5, 150)
        frames = [one.frame(0.95) for one in found]
        for part, own in self.score.groupby("arm"):
            key = "score", "", "sd", part
            assert held(frames, key, own.score.std(ddof=0)) > 0.82

    @staticmethod
    def quartiles(X, columns, epsilon, n_draws, **points):
        """Yield the intervals of each quartile for these people, as arrays, with its share."""
        grid = DPTableOne(epsilon, columns=columns, **points)._points(len(X))
        draws = list(redrawn(X, columns, None, epsilon, grid, n_draws))
        for p in (0.25, 0.5, 0.75):
            level, own = Level(0.95, True), np.ones(1)
            at = np.array(grid["x"])
            yield p, np.array([quantile(one.solved[0], at, own, p, level).people for one in draws])

    def test_quartiles_hold_in_about_their_level_where_values_are_spread(self):
        """400 draws: below 0.88 with probability 1e-8 at 95 %, all of them with 1e-7 at 96 %.

        At a third of the width that equally spaced points have, or less.
        """
        rng, widths = np.random.default_rng(8), []
        X = pd.DataFrame({"x": np.exp(rng.normal(3.7, 1.2, 3000)).clip(0.0, 5000.0)})
        for typical, n_draws in (({"typical": 40}, 400), ({}, 20)):
            columns = PublicColumns.of(x={"bounds": (0, 5000), **typical})
            for p, ends in self.quartiles(X, columns, 0.5, n_draws):
                share = np.mean((ends[:, 0] <= X.x.quantile(p)) & (X.x.quantile(p) <= ends[:, 1]))
                assert 0.88 < share < 1.0 or not typical
                widths.append(np.ptp(ends, axis=1).mean())
        assert 3.0 * widths[1] < widths[4]

    @pytest.mark.parametrize("values", [[0] * 6 + [7, 20, 60, 90], [0, 5, 10, 15, 20, 25, 90]])
    def test_quartiles_of_piles_are_held_by_what_neighbouring_counts_show(self, values):
        """200 draws: below 0.84 with probability 1e-8 at 95 %."""
        X = pd.DataFrame({"x": np.resize(values, 3000).astype(float)})
        for p, ends in self.quartiles(X, PublicColumns.of(x=(0, 100)), 1.0, 200, grid=60):
            truth = X.x.quantile(p, interpolation="lower")
            assert np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) > 0.84

    @pytest.mark.slow
    def test_large_differences(self):
        p, q = 0.02, 0.6
        truth = (q - p) / math.sqrt(0.5 * (p * (1 - p) + q * (1 - q)))
        found = redrawn(self.score, self.columns, "arm", 1.0, 9, 150)
        frames = [one.frame(0.95) for one in found]
        assert held(frames, ("rare", "", "smd", "treated"), truth) > 0.82
        both = [own.score for _, own in self.score.groupby("arm")]
        scale = math.sqrt(0.5 * sum(one.var(ddof=0) for one in both))
        truth = (both[1].mean() - both[0].mean()) / scale
        assert held(frames, ("score", "", "smd", "treated"), truth) > 0.82

    def test_the_interval_of_a_label_that_noise_makes_negative_is_no_point(self):
        X = pd.DataFrame({"ill": np.arange(1000) < 3})
        exact = DPTableOne(np.inf, columns=PublicColumns.of(ill=bool)).fit(X)
        noisy = exact.release_.values["counts"] + [40.0, -40.0]
        cells = exact._summary.columns
        found = Summary.of(cells, noisy, 144.0, 1000, [], None).frame(0.95)
        row = found.loc["ill", "True", "share", "Overall"]
        # The noise of both is halved, as they add up to n.
        assert (row.estimate, row.people_low) == (0.0, 0.0)
        assert row.people_high == pytest.approx(1.96 * 12.0 / math.sqrt(2.0) / 1000, rel=0.2)

    def test_noise_on_the_mean_does_not_bend_the_deviation(self):
        """By 2,000 draws; a bias of the noise on the mean would be 30 standard errors."""
        X = pd.DataFrame({"x": np.r_[np.full(100, 20.0), np.full(100, 60.0)]})
        columns = PublicColumns({"x": {"bounds": [0, 100], "missing": "midpoint"}})
        found, means, own, correlations = [], [], [], []
        exact = DPTableOne(np.inf, columns=columns, grid=6).fit(X)
        counts, rng = exact.release_.values["counts"], np.random.default_rng(6)
        cells = exact._summary.columns
        for _ in range(2000):
            noisy = counts + rng.normal(0.0, 16.0, counts.shape)
            solved = Summary.of(cells, noisy, 256.0, 200, [], None).solved[0]
            moments = Moments(solved, cells[0].shares, np.ones(1), Level(0.95, False))
            found.append(moments._square(moments._excesses()[0])[0])
            means.append(moments.value)
            own.append(moments.own)
            correlations.append(moments.correlations()[0])
        error = np.std(found) / math.sqrt(2000)
        assert abs(np.mean(found) - 0.04) < 6.0 * error
        assert np.mean(own) > 6.0 * error
        assert np.var(means) == pytest.approx(np.mean(own), rel=0.2)  # 6 of its errors
        assert np.corrcoef(means, found)[0, 1] == pytest.approx(np.mean(correlations), abs=0.12)

    @pytest.mark.parametrize("level", [0.8, 0.99])
    def test_a_single_cell_at_any_level(self, level):
        ends = [
            count(one.solved[1], np.array([[0.0, 1.0], [0.0, 0.0]]), Level(level, True)).people
            for one in redrawn(self.score, self.columns, "arm", 1.0, 9, 2000)
        ]
        share = np.mean([low <= 20.0 <= high for low, high in ends])
        assert abs(share - level) < 6.0 * math.sqrt(level * (1.0 - level) / 2000) + 0.01

    def test_wide_and_far_bounds(self):
        for low, high in ((0.0, 1e80), (-1e150, 1e150), (1e9, 1e9 + 1.0)):
            X = pd.DataFrame({"x": np.linspace(low, high, 500)})
            table = DPTableOne(5.0, columns=PublicColumns.of(x=(low, high)), grid=9).fit(X).table_
            mean = table.loc["x", "", "mean", "Overall"]
            assert low <= mean.people_low < mean.people_high <= high
            assert table.loc["x", "", "sd", "Overall"].people_high <= 0.5 * (high - low)
