"""What steers a Weibull fit, against simulations and brute force: none of it costs privacy."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.survival.weibull import weibull_plan as weibull_plan
from skdpsurv.survival.weibull.log_time_counts import (
    N_BINS,
    ExactLevels,
    all_log_times,
    bin_probabilities,
    event_bins,
    log_time_grid,
)
from tests.support.weibull_plans import MAX_TIME, OMEGA, make_fit, table_of
from tests.support.weibull_tables import make_table, random_records


def censored_by_a_power(shape, log_scale, theta, n, seed=0):
    """Return times with censoring of distribution (t / max_time) ** theta; None is at the end."""
    rng = np.random.default_rng(seed)
    life = MAX_TIME * math.exp(log_scale) * rng.weibull(shape, n)
    end = MAX_TIME * rng.random(n) ** (1.0 / theta) if theta else np.full(n, MAX_TIME)
    return np.minimum(life, end), life <= end


@pytest.mark.parametrize(("shape", "log_scale"), [(1.4, -0.9), (0.5, -2.0)])
@pytest.mark.parametrize("theta", [None, 1.0])
def test_bin_probabilities_are_those_of_simulated_records(shape, log_scale, theta):
    """Distribution functions of 100,000 are off by more than 0.0095 with probability 2e-8."""
    time, event = censored_by_a_power(shape, log_scale, theta, 100_000)
    table = table_of(time, event, MAX_TIME, OMEGA)
    # Powers are on a grid, with the true one; a bit less than its own share finds it.
    rate = None if theta is None else event.mean() - 0.004
    events, censored = bin_probabilities(shape, log_scale, rate, OMEGA)
    assert min(events.min(), censored.min()) >= 0.0
    assert events.sum() + censored.sum() == pytest.approx(1.0)
    for found, counted in ((events, table.events), (censored, table.records - table.events)):
        assert np.abs(np.cumsum(found) - np.cumsum(counted) / 1e5).max() < 0.0095


@pytest.mark.parametrize(
    ("shape", "log_scale", "theta", "left_censored"),
    [
        (0.4, -2.0, None, True),
        (0.25, -1.0, 0.3, True),
        (1.4, -0.9, 1.0, True),
        (1.4, -0.9, 1.0, False),
    ],
)
def test_a_correction_is_a_newton_step(shape, log_scale, theta, left_censored):
    """From a shape 10 % off, with its own scale, nearly all of the error is gone."""
    n = 300_000
    time, event = censored_by_a_power(shape, log_scale, theta, n)
    table = table_of(time, event, MAX_TIME, OMEGA)
    public = replace(make_fit("tight", n, 2.0), left_censored=left_censored)
    n_events, bins = int(table.events.sum()), event_bins(left_censored)
    mean = (float(table.events @ bins) / n_events / N_BINS - 1.0) * OMEGA
    found = []
    for start in (0.9 * shape, 1.1 * shape):
        # The scale that maximises the likelihood at this shape.
        exposure = float(table.records @ np.exp(start * log_time_grid(OMEGA)))
        known = {
            "n_events": n_events,
            "mean_log_event": mean,
            "shape": start,
            "log_scale": math.log(exposure / n_events) / start,
        }
        leaf = weibull_plan.Correction(price=1.0, public=public)
        found.append(leaf.postprocess(known, leaf.exact_answer(known, table))["shape"])
    assert abs(found[1] - found[0]) < 0.05 * shape
    if left_censored:
        assert np.mean(found) == pytest.approx(shape, rel=0.02)


@pytest.mark.parametrize("left_censored", [True, False])
def test_largest_mean_is_over_all_numbers_of_leavers(left_censored):
    """The j smallest of k leave, and all who changed get an event at the horizon."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8, 13, 40) * 6:
        records = random_records(n, rng)
        levels = ExactLevels(make_table(records, OMEGA), 10.0, 10**6, left_censored)
        away = (N_BINS - event_bins(left_censored)).tolist()
        distances = sorted((away[place] for place, seen in records if seen), reverse=True)
        m = len(distances)
        for k in range(m):
            means = [sum(distances[j:]) / (m - j + min(k, n - m + j)) for j in range(k + 1)]
            expected = -min(means) * OMEGA / N_BINS
            assert levels.largest_mean(k) == pytest.approx(expected, rel=1e-12)
        assert levels.largest_mean(m) == 0.0


@pytest.mark.parametrize("left_censored", [True, False])
def test_log_times_weigh_as_their_counts(left_censored):
    time, event = censored_by_a_power(0.4, -3.0, 0.5, 2000)
    each = all_log_times(InMemory([Histories(time, event)]), MAX_TIME, OMEGA).weighted(
        left_censored
    )
    counts = table_of(time, event, MAX_TIME, OMEGA).weighted(left_censored)
    assert each[3] == counts[3]
    assert (each[3] > 0) == left_censored
    assert each[1].sum() == counts[1].sum()
    assert each[2].sum() == pytest.approx(counts[2].sum())
