"""What Adult's table promises, and which columns it takes: by public numbers."""

import math

import numpy as np
import pytest

from benchmarks.data.adult import LONG, SHORT, columns_for
from benchmarks.rivals.adult import CONVERTED, DELTA, FOLDS, STRICT, fold, promised


def test_a_record_that_is_replaced_is_one_removed_and_one_added():
    assert promised(CONVERTED, 0.5) == (1.0, pytest.approx((1.0 + math.exp(0.5)) * DELTA))
    assert promised(STRICT, 0.5) == (0.5, DELTA)


@pytest.mark.parametrize(("n", "epsilon", "said"), [(3899, 0.5, SHORT), (3900, 0.5, LONG)])
def test_columns_are_few_where_n_times_epsilon_is_small(n, epsilon, said):
    assert columns_for(n, epsilon).columns == said


def test_five_repetitions_test_each_record_once():
    y = np.arange(50) % 2
    tested = [fold(y, repetition)[1] for repetition in range(FOLDS, 2 * FOLDS)]
    assert sorted(np.concatenate(tested)) == [*range(50)]
