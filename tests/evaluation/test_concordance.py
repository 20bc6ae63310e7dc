"""Concordance of risk scores, against definitions and another library."""

from itertools import product

import numpy as np
import pytest
from sksurv.metrics import concordance_index_censored
from sksurv.util import Surv

from skdpsurv.evaluation import concordance_index


def test_concordance_equals_scikit_survival():
    """Ties within and between events and censorings, in times and in scores."""
    for seed, n_times, n_scores in product(range(5), [4, 1000], [3, None]):
        rng = np.random.default_rng(seed)
        n = 120
        event = rng.random(n) < 0.5
        time = rng.integers(1, n_times + 1, size=n).astype(float)
        risk = rng.normal(size=n) if n_scores is None else rng.integers(n_scores, size=n) / 1.0
        expected = concordance_index_censored(event, time, risk)[0]
        assert concordance_index(Surv.from_arrays(event, time), risk) == pytest.approx(
            expected, abs=1e-14
        )


def test_concordance_direction_and_integer_scores():
    y = np.array([1.0, 2.0, 3.0])
    assert concordance_index(y, [3, 2, 1]) == 1.0
    assert concordance_index(y, np.array([0, 1, 2], dtype=np.uint8)) == 0.0
    assert concordance_index(y, np.zeros(3)) == 0.5
    assert concordance_index(y, [np.inf, 0.0, -np.inf]) == 1.0


def test_concordance_without_a_comparable_pair_is_one_half():
    for event, time in [
        ([False, False], [1, 2]),
        ([True, True], [1, 1]),
        ([False, True], [1, 2]),
        ([True], [1]),
    ]:
        assert concordance_index(Surv.from_arrays(event, time), np.arange(len(time))) == 0.5
