"""The slope of log odds by experiment: neighbours whose table of margins differs in one record."""

import numpy as np
import pytest

from skdpsurv.classification.logistic_measurements import N_GROUPS, MarginTable
from skdpsurv.dp import random_source
from tests.support.attacks import by_scores

#: False alarms, or defects that are missed, have this probability; seeds are fixed.
CONFIDENCE = 1e-7
EPSILON, N = 1.0, 10


def slopes(wrong, trials, spent):
    """Slopes of ten records in one group, of which some are wrong, for what is spent on them."""
    table = MarginTable(6.0, 1, N)
    counts = np.zeros((2, N_GROUPS), dtype=np.int64)
    counts[:, 4] = N - wrong, wrong
    source = random_source(wrong)
    return np.array(
        [
            table.slope(table.query.release(counts, spent, source).astype(float), EPSILON, 1.0)
            for _ in range(trials)
        ]
    )


def bound(spent, trials=4000):
    samples = [slopes(wrong, trials, spent) for wrong in (0, 1)]
    return by_scores(samples, np.arange(1, 100) / 100, CONFIDENCE)


@pytest.mark.slow
def test_the_slope_tells_no_more_than_epsilon():
    assert bound(EPSILON) <= EPSILON


@pytest.mark.slow
def test_a_table_with_a_tenth_of_its_noise_is_caught():
    assert bound(10.0 * EPSILON) > EPSILON
