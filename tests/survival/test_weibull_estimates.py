"""What the plans of a Weibull fit recover, and the blocks of sample and aggregate."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.dp import random_source
from skdpsurv.likelihoods.weibull import maximum_likelihood
from skdpsurv.mechanisms import sums
from skdpsurv.published import weibull_fitters as published_plans
from skdpsurv.survival.weibull.log_time_counts import N_BINS, before_offset
from skdpsurv.survival.weibull.tuning import Tuning
from tests.support import weibull_plans
from tests.support.combinations import thinned
from tests.support.weibull_plans import MAX_SHAPE, MAX_TIME, OMEGA, Ledger, make_fit, simulate


def estimate(kind, time, event, epsilon=1e9, seed=0, **tuned):
    fit = replace(make_fit(kind, len(time), epsilon), tuning=Tuning(**tuned))
    return weibull_plans.estimate(fit, time, event, random_source(seed))


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(sums, "lattice_laplace", lambda value, scale, source: value)


def exact_fit(time, event):
    """Return the fit without noise of what private plans know: times below the least are zero."""
    known = np.where(time < MAX_TIME * math.exp(-OMEGA), 0.0, time)
    return estimate("no privacy", known, event, math.inf)


def likeliest(time, event):
    """Fit the bins, with times before the first taken as at it: what the paper's ladder finds."""
    table = weibull_plans.table_of(time, event, MAX_TIME, OMEGA)
    fit = maximum_likelihood(table.log_time, table.events, MAX_SHAPE, weights=table.records)
    return fit[0][0], fit[1][0]


def balanced(time, event):
    """Return the shape, and log scale, at which log times of events are as they should be.

    By integrals over bins of who is at risk, of the log time that an event there would count as.
    """
    table = weibull_plans.table_of(time, event, MAX_TIME, OMEGA)
    x, n_events = table.log_time, table.events.sum()
    counted = (table.events @ x - table.events[0] * before_offset(OMEGA)) / n_events
    # Half of the first bin leave before it has passed.
    weight = np.where(np.arange(N_BINS + 1) == 0, 0.5, 1.0) * table.records
    later = np.cumsum(table.records[::-1])[::-1][1:]

    def excess(shape):
        first = (weight[0] + later[0]) * math.exp(-shape * OMEGA)
        power = np.exp(shape * x)
        inner = np.diff(power) * later
        # The mean log time between two points, weighted by the density of the power.
        means = np.diff(power * (x - 1.0 / shape)) / np.diff(power)
        total = first + inner.sum()
        return (first * (-OMEGA - before_offset(OMEGA)) + inner @ means) / total - counted

    shape = optimize.brentq(excess, 0.02, 9.9, xtol=1e-12)
    return shape, math.log(weight @ np.exp(shape * x) / n_events) / shape


SAMPLES = {
    "many events": {"censoring": 1e3},
    "half": {},
    "few events": {"censoring": 0.1, "shape": 0.9},
    "steep": {"shape": 6.0},
}


class TestWithoutNoise:
    @pytest.mark.parametrize(
        ("sample", "kind"), [*thinned(SAMPLES, ["tight", "exact"]), ("before", "tight")]
    )
    def test_ladders_balance_log_times(self, no_noise, sample, kind):
        """To a cell of the grid; a correction, which goes to the likelihood, is not taken."""
        time, event = simulate(1500, **{**SAMPLES, "before": {"shape": 0.4}}[sample])
        shape, log_scale = balanced(time, event)
        found = estimate(kind, time, event, correction_rate=math.inf)
        assert found.shape == pytest.approx(shape, rel=1e-4)
        assert found.log_scale == pytest.approx(log_scale, abs=3e-4 / shape)
        # As many events before as the shape lets expect, and not as were seen: near the likeliest.
        best = exact_fit(time, event)
        assert found.shape == pytest.approx(best.shape, rel=0.012)
        if sample == "before":
            assert likeliest(time, event)[0] > 1.08 * best.shape

    @pytest.mark.parametrize("shape", [0.4, 0.7])
    def test_a_correction_ends_at_the_likeliest(self, no_noise, shape):
        """Times before the first bin among them, 6 and 1 per cent of all."""
        time, event = simulate(6000, shape=shape, scale=1.0)
        best = exact_fit(time, event)
        found = estimate("tight", time, event)
        assert found.shape == pytest.approx(best.shape, rel=2e-3)
        assert found.log_scale == pytest.approx(best.log_scale, abs=5e-3)

    @pytest.mark.parametrize(
        ("off", "sample"),
        thinned(
            [(0.8, 0.3), (0.9, 0.2), (0.98, 0.1), (1.02, 0.1), (1.1, 0.3), (1.3, 0.6)],
            ["many events", "half", "steep"],
        ),
        ids=str,
    )
    def test_correction_corrects(self, monkeypatch, off, sample):
        """From a first shape that is off, one step leaves a part of the way."""
        wrong, left = off
        time, event = simulate(4000, **SAMPLES[sample])
        shape = exact_fit(time, event).shape
        Ledger(monkeypatch, shape=wrong * shape)
        found = estimate("tight", time, event, 100.0)
        assert abs(math.log(found.shape / shape)) < left * abs(math.log(wrong))
        near = estimate("tight", time, event, 0.1)
        assert near.shape == pytest.approx(wrong * shape, rel=1e-4)


class TestSampleAggregate:
    @pytest.fixture
    def groups(self, monkeypatch):
        """What the likelihood is given: log times, events and where blocks begin."""
        seen = []

        def spy(x, events, max_shape, starts=(0,), weights=None):
            seen.append((x.copy(), np.array(events), np.array(starts)))
            return maximum_likelihood(x, events, max_shape, starts, weights)

        monkeypatch.setattr(published_plans, "maximum_likelihood", spy)
        return seen

    def test_blocks(self, groups):
        for n, blocks in [(1, 1), (999, 1), (1000, 2), (1499, 2), (10_000, 20)]:
            time, event = simulate(n)
            estimate("blocks", time, event)
            fit = make_fit("blocks", n, 1.0)
            x, events, starts = groups[-1]
            assert fit.way.plan(fit).tree.n_blocks == starts.size == blocks
            sizes = np.diff([*starts, n])
            assert np.ptp(sizes) <= 1
            assert n < published_plans.BLOCK_RECORDS or sizes.min() >= published_plans.BLOCK_RECORDS
            # Every record is in it once, with its own event.
            expected = np.sort(np.clip(np.log(time / MAX_TIME), -OMEGA, 0.0))
            np.testing.assert_allclose(np.sort(x), expected, rtol=1e-12)
            assert events.sum() == np.sum(event & (time <= MAX_TIME))

    def test_blocks_do_not_depend_on_values(self, groups):
        """A record that changes is the same place's record, and one block's estimate changes."""
        time, event = simulate(2500)
        estimate("blocks", time, event)
        time[77], event[77] = 0.0, True
        estimate("blocks", time, event)
        (x, events, starts), (other_x, other_events, _) = groups
        assert np.count_nonzero(x != other_x) == 1
        fit, _ = maximum_likelihood(x, events, MAX_SHAPE, starts)
        other, _ = maximum_likelihood(other_x, other_events, MAX_SHAPE, starts)
        assert np.count_nonzero(fit != other) == 1

    def test_release_is_the_mean_of_the_blocks(self, groups, no_noise):
        """Whose order is random."""
        time, event = simulate(5000)
        for seed in (0, 1):
            found = estimate("blocks", time, event, seed=seed)
            shape, log_scale = maximum_likelihood(*groups[-1][:2], MAX_SHAPE, groups[-1][2])
            assert found.shape == pytest.approx(shape.mean(), rel=1e-8)
            assert found.log_scale == pytest.approx(math.log(np.exp(log_scale).mean()), rel=1e-8)
        assert np.count_nonzero(groups[0][0] != groups[-1][0]) > 4500
