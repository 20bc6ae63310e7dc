"""A test that draws without a seed draws alike in every run of it."""

import numpy as np
import pytest

from skdpsurv.dp import random_source
from skdpsurv.dp.noise import lattice_laplace


def drawn():
    source = random_source(None)
    assert not source.seeded
    return [source.bits(32), *lattice_laplace(np.zeros(3, dtype=np.int64), 1e4, source).tolist()]


@pytest.fixture(scope="module")
def shared():
    return drawn()


def test_of_a_test_follow_from_its_name():
    first, second = drawn(), drawn()
    assert first == [4191181621, 29015, 22251, -27841]
    assert not set(first) & set(second)


def test_of_a_shared_fixture_follow_from_its_own(shared):
    assert shared == [3592754104, -3717, -11436, -3900]
    assert not set(shared) & set(drawn())
