"""Parameters of the ladder of the published Weibull fits."""

import itertools
import math

import numpy as np
import pytest

from skdpsurv import Release
from skdpsurv.published import PublishedWeibullFitter, weibull
from tests.support.refusing import refused

DATA = np.linspace(0.02, 0.9, 60), np.arange(60) % 3 > 0


@pytest.fixture(autouse=True)
def coarse_published_grid(monkeypatch):
    """A tenth of the published ladder's cells, and of the time it takes."""
    monkeypatch.setattr(weibull, "N_CELLS_PUBLISHED", 200)


def model(**parameters):
    return PublishedWeibullFitter(max_time=1.0, random_state=0, **parameters)


def test_parameters():
    for name, values in {"n_rungs": (0, -3, 5.0, "5", True), "rungs": ("tight", None)}.items():
        for value in values:
            refused(model(**{name: value}), name, *DATA)
    for rungs, n_rungs, epsilon in itertools.product(
        ["published", "exact"], [1, 10**30], [1.0, 1e9]
    ):
        one = model(epsilon=epsilon, rungs=rungs, n_rungs=n_rungs).fit(*DATA)
        assert one.guarantee_.epsilon == epsilon
        assert 0 < one.rho_ <= 10.0
        assert 0 < one.lambda_ < math.inf
    # NumPy's numbers are numbers.
    for n_rungs in [np.int64(500), np.int64(2**60)]:
        one = model(n_rungs=n_rungs).fit(*DATA)
        assert one.n_rungs is n_rungs
        assert one.release_ == model(n_rungs=int(n_rungs)).fit(*DATA).release_
        again = Release.from_json(one.release_.to_json()).to_estimator()
        assert (again.rho_, again.n_rungs) == (one.rho_, int(n_rungs))
