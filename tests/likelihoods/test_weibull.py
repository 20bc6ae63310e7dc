"""Weibull maximum likelihood: against lifelines and scipy, at its bounds, and in groups."""

import math
import warnings

import numpy as np
import pytest
from lifelines import WeibullFitter
from scipy import stats

from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods.weibull import (
    SHAPE_RANGE,
    before_residual,
    efficient_score,
    maximum_likelihood,
    maximum_likelihood_with_before,
    mean_log_likelihood,
    score_with_before,
    shape_score,
)

MAX_SHAPE = 10.0


def simulate(n, shape, scale, censoring, seed):
    """Return times and events, censored at exponential times and at 1."""
    rng = np.random.default_rng(seed)
    life = scale * rng.weibull(shape, n)
    end = np.minimum(rng.exponential(censoring, n), 1.0)
    return np.minimum(life, end), life <= end


@pytest.mark.parametrize(
    ("n", "shape", "scale", "censoring"),
    [
        (30, 1.0, 0.5, 1.0),
        (500, 0.4, 0.2, 2.0),
        (500, 0.9, 2.6, 5.0),
        (500, 3.0, 0.6, 0.5),
        (500, 7.5, 0.9, 10.0),
        (5000, 1.5, 30.0, 100.0),
    ],
)
def test_estimates_are_those_of_lifelines(n, shape, scale, censoring):
    """Its optimiser stops five digits early unless told not to."""
    time, event = simulate(n, shape, scale, censoring, seed=3)
    assert 0 < event.sum() < n
    found = maximum_likelihood(np.log(time), event, MAX_SHAPE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"ftol": 1e-16, "gtol": 1e-12}
        theirs = WeibullFitter().fit(time, event, fit_options=options)
    assert found[0] == pytest.approx([theirs.rho_], rel=1e-6)
    assert np.exp(found[1]) == pytest.approx([theirs.lambda_], rel=1e-6)


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0])
def test_log_likelihood_against_scipy(shape):
    time, event = simulate(200, 1.2, 0.7, 1.0, seed=5)
    law = stats.weibull_min(shape, scale=0.4)
    exact = np.where(event, law.logpdf(time), law.logsf(time)).mean()
    found = mean_log_likelihood(Histories(np.log(time), event), math.log(0.4), shape)
    assert found == pytest.approx(exact, rel=1e-12)


def test_log_likelihood_of_an_impossible_time():
    one = np.array([True])
    with np.errstate(all="raise"):
        assert mean_log_likelihood(Histories(np.zeros(1), one), -300.0, 10.0) == -math.inf
    with np.errstate(divide="raise"):  # an event before, of a probability below all doubles
        assert mean_log_likelihood(Histories(np.array([-3.0]), one), 300.0, 10.0, one) == -3030.0


class TestGroups:
    def test_groups_are_separate_fits(self):
        time, event = simulate(400, 1.3, 0.6, 1.0, seed=7)
        x, starts = np.log(time), [0, 1, 37, 250, 398]
        event[0] = True
        event[398:] = False
        shapes, log_scales = maximum_likelihood(x, event, MAX_SHAPE, starts)
        assert shapes.size == len(starts)
        for i, (a, b) in enumerate(zip(starts, [*starts[1:], x.size], strict=True)):
            alone = maximum_likelihood(x[a:b], event[a:b], MAX_SHAPE)
            assert shapes[i] == pytest.approx(alone[0][0], rel=1e-10)
            assert log_scales[i] == pytest.approx(alone[1][0], rel=1e-9, abs=1e-10)

    def test_far_apart_groups(self):
        """Each group's powers are counted from its own largest, so none of them vanishes."""
        time, event = simulate(100, 1.3, 0.6, 1.0, seed=8)
        x = np.concatenate([np.log(time), np.log(time) - 300.0])
        shapes, log_scales = maximum_likelihood(x, np.tile(event, 2), 100.0, [0, 100])
        assert shapes[0] == pytest.approx(shapes[1], rel=1e-10)
        assert log_scales[0] - 300.0 == pytest.approx(log_scales[1], rel=1e-12)

    @pytest.mark.parametrize("seed", range(10))
    def test_a_group_does_not_feel_another_to_the_last_bit(self, seed):
        """Noise on a mean over groups is for one of them."""
        rng = np.random.default_rng(seed)
        x = rng.uniform(-6.0, 0.0, 60)
        event = rng.random(60) < 0.5
        before = np.array(maximum_likelihood(x, event, MAX_SHAPE, [0, 20, 40]))
        x[20:40] = rng.choice([-6.0, 0.0, rng.uniform(-6.0, 0.0)], 20)
        event[20:40] = rng.random(20) < 0.1
        after = np.array(maximum_likelihood(x, event, MAX_SHAPE, [0, 20, 40]))
        np.testing.assert_array_equal(before[:, [0, 2]], after[:, [0, 2]])
        assert np.all(before[:, 1] != after[:, 1])

    @pytest.mark.parametrize("starts", [[0], [0, 11, 60]])
    def test_weights_are_repeated_records(self, starts):
        rng = np.random.default_rng(9)
        x = np.sort(rng.uniform(-3, 0, 100))
        weights = rng.integers(1, 6, 100)
        events = rng.integers(0, weights + 1)
        weighted = maximum_likelihood(x, events, MAX_SHAPE, starts, weights)
        seen = np.concatenate([np.arange(w) < e for w, e in zip(weights, events, strict=True)])
        places = np.append(0, np.cumsum(weights))[starts]
        repeated = maximum_likelihood(np.repeat(x, weights), seen, MAX_SHAPE, places)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-10)

    def test_weight_zero_is_no_record(self):
        """A table over a grid has bins that nobody is in, the last one among them."""
        time, event = simulate(50, 1.3, 0.4, 1.0, seed=10)
        x = np.append(np.log(0.5 * time), [-6.0, 0.0])
        events = np.append(event, [False, False])
        weights = np.append(np.ones(50), [0, 0])
        weighted = maximum_likelihood(x, events, MAX_SHAPE, weights=weights)
        plain = maximum_likelihood(x[:50], event, MAX_SHAPE)
        np.testing.assert_allclose(weighted, plain, rtol=1e-9)


class TestBounds:
    @pytest.mark.parametrize(("true", "max_shape"), [(8.0, 2.0), (0.5, 2.0 * 2**10)])
    def test_shapes_are_clamped(self, true, max_shape):
        """From above and from below, to the largest shape and to 1 / 1024 of it."""
        time, event = simulate(500, true, 0.5, 10.0, seed=11)
        (free,), _ = maximum_likelihood(np.log(time), event, 20.0)
        (shape,), (log_scale,) = maximum_likelihood(np.log(time), event, max_shape)
        assert (free - 2.0) * (true - 2.0) > 0.0
        assert shape == pytest.approx(2.0, rel=1e-9)
        # The scale is the best one for the clamped shape.
        assert math.exp(2.0 * log_scale) == pytest.approx(np.sum(time**2.0) / event.sum())

    @pytest.mark.parametrize("x", [[-0.7], [-6.0, -1.0, -0.5], [0.0, 0.0]])
    def test_no_events_count_as_half_an_event_at_the_horizon(self, x):
        x = np.array(x)
        shape, log_scale = maximum_likelihood(x, np.zeros(x.size, dtype=bool), MAX_SHAPE)
        assert shape[0] == pytest.approx(MAX_SHAPE, rel=1e-9)
        total = np.sum(np.exp(MAX_SHAPE * x))
        assert log_scale[0] == pytest.approx(math.log(total / 0.5) / MAX_SHAPE, rel=1e-6)

    @pytest.mark.parametrize("x", [0.0, -1.3, -6.0])
    @pytest.mark.parametrize("max_shape", [1e-3, 10.0, 1e3])
    def test_one_event_has_the_largest_shape_and_its_time_for_a_scale(self, x, max_shape):
        shape, log_scale = maximum_likelihood(np.array([x]), [True], max_shape)
        assert shape[0] == pytest.approx(max_shape, rel=1e-9)
        assert log_scale[0] == pytest.approx(x, rel=1e-12)

    @pytest.mark.parametrize("seed", range(20))
    def test_awkward_data_end_within_the_bounds(self, seed):
        rng = np.random.default_rng(seed)
        x = rng.choice([-700.0, -6.0, -1e-9, 0.0, -1.0], size=8)
        weights = rng.integers(1, 1000, 8)
        events = np.where(rng.random(8) < 0.4, rng.integers(1, weights + 1), 0)
        mean, top = events @ x / max(events.sum(), 0.5), x.max()
        for max_shape in (1e-3, 1.0, 1e3, 1e4):
            (shape,), (log_scale,) = maximum_likelihood(x, events, max_shape, weights=weights)
            assert SHAPE_RANGE * max_shape <= shape <= max_shape
            assert np.isfinite(log_scale)
            # The score is below 0 until there and above 0 from there on, but for the bounds.
            for ratio, sign in ((0.999, -1.0), (1.001, 1.0)):
                score = sign * (weights @ shape_score(x - top, ratio * shape, mean - top))
                assert score > 0.0 or not SHAPE_RANGE * max_shape < ratio * shape < max_shape


class TestShapeScore:
    def test_it_is_least_at_the_mean(self):
        x = np.linspace(-6.0, 0.0, 6001)
        for shape in (0.01, 1.0, 10.0):
            for mean in (-5.0, -1.25, -0.1):
                least = x[np.argmin(shape_score(x, shape, mean))]
                assert least == pytest.approx(mean, abs=1.01e-3)

    @pytest.mark.parametrize("score", [shape_score, score_with_before])
    def test_monotone_in_the_mean_to_the_last_bit(self, score):
        """Means one float apart, and far apart: never a score that rises, and some that fall."""
        rng = np.random.default_rng(13)
        falls = 0
        for _ in range(250):
            x = np.sort(np.append(rng.uniform(-6.0, 0.0, 200), [0.0, -6.0]))
            shape = 10.0 ** rng.uniform(-3, 3)
            offset = () if score is shape_score else (rng.uniform(0.0, 3.0),)
            means = [-(10.0 ** rng.uniform(-8, 1))]
            for _ in range(4):
                means.append(np.nextafter(means[-1], np.inf))
            means += [0.999 * means[0], 0.0]
            scores = np.array([score(x, shape, m, *offset) for m in means])
            assert np.all(np.diff(scores, axis=0) <= 0.0)
            falls += np.count_nonzero(np.diff(scores[:5], axis=0))
        assert falls > 1000


class TestEventsBefore:
    """Of some events only that they were before the least time."""

    @pytest.mark.parametrize("omega", [0.5, 2.0, 5.0])
    @pytest.mark.parametrize("true_shape", [0.4, 1.0, 3.0])
    def test_no_other_parameters_are_more_likely(self, true_shape, omega):
        rng = np.random.default_rng(17)
        time = 0.7 * rng.weibull(true_shape, 400)
        event = time <= 1.0
        x = np.log(np.minimum(time, 1.0))
        before = x < -omega
        before[:3], event[:3] = True, True
        clipped = np.maximum(np.where(before, -omega, x), -omega)

        def likelihood(shape, log_scale):
            return mean_log_likelihood(Histories(clipped, event), log_scale, shape, before)

        shape, log_scale = maximum_likelihood_with_before(
            clipped[~before], event[~before], int(before.sum()), omega, MAX_SHAPE
        )
        best = likelihood(shape, log_scale)
        for a, b in [(1.003, 0.0), (0.997, 0.0), (1.0, 0.003), (1.0, -0.003), (1.003, 0.002)]:
            assert likelihood(a * shape, log_scale + b) < best

    def test_weights_are_records(self):
        rng = np.random.default_rng(18)
        x, weights = rng.uniform(-3.0, 0.0, 40), rng.integers(1, 5, 40)
        event = rng.random(40) < 0.6
        one = maximum_likelihood_with_before(
            np.repeat(x, weights), np.repeat(event, weights), 7, 3.0, MAX_SHAPE
        )
        other = maximum_likelihood_with_before(x, event * weights, 7, 3.0, MAX_SHAPE, weights)
        assert one == pytest.approx(other, rel=1e-10)

    @pytest.mark.parametrize("seed", range(4))
    def test_awkward_data_end_within_the_bounds(self, seed):
        rng = np.random.default_rng(seed)
        x = rng.choice([-6.0, -1e-9, 0.0, -1.0], size=int(rng.integers(1, 8)))
        event = rng.random(x.size) < 0.4
        for n_before in (1, 10**6):
            for most in (1e-3, 1.0, 1e3):
                shape, log_scale = maximum_likelihood_with_before(x, event, n_before, 6.0, most)
                assert SHAPE_RANGE * most * (1 - 1e-12) <= shape <= most
                assert np.isfinite(log_scale)

    def test_the_least_shape_is_taken_only_where_the_score_is_negative_there(self):
        x = np.linspace(-2.0, -0.1, 10)
        shape, _ = maximum_likelihood_with_before(x, np.ones(10), 1, 3.0, MAX_SHAPE)
        for least in (shape / 1.0005, shape * 1.0005):
            found, _ = maximum_likelihood_with_before(x, np.ones(10), 1, 3.0, least / SHAPE_RANGE)
            assert found == pytest.approx(max(shape, least), rel=1e-9)

    def test_the_efficient_score_of_an_event_before(self):
        x, mean = np.array([-3.0, -1.0, 0.0]), -0.8
        event, censored = efficient_score(x, 1.5, -0.5, -1.2, 2.0, weighted_mean=mean)
        hazard = np.minimum(np.exp(1.5 * (x + 0.5)), 2.0)
        assert event[0] == pytest.approx(before_residual(hazard[0]) * (x[0] - mean))
        expected = -hazard * (x - mean)
        assert event[1:] == pytest.approx((x - mean + 1 / 1.5 + expected)[1:])
        assert censored == pytest.approx(expected * [0.5, 1.0, 1.0])
