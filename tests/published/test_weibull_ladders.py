"""Parameters of the ladder of the published Weibull fits."""

import itertools
import math

import numpy as np
import pytest

from skdpsurv import Release
from skdpsurv.published import PublishedWeibullFitter, weibull_fitters
from tests.support.refusing import refused

DATA = np.linspace(0.02, 0.9, 60), np.arange(60) % 3 > 0


@pytest.fixture(autouse=True)
def coarse_published_grid(monkeypatch):
    """A tenth of the published ladder's cells, and of the time it takes."""
    monkeypatch.setattr(weibull_fitters, "N_CELLS_PUBLISHED", 200)


def model(**parameters):
    return PublishedWeibullFitter(max_time=1.0, random_state=0, **parameters)


def test_parameters():
    for name, values in {"n_levels": (0, -3, 5.0, "5", True), "ladder": ("tight", None)}.items():
        for value in values:
            refused(model(**{name: value}), name, *DATA)
    for levels, n_levels, epsilon in itertools.product(
        ["published", "exact"], [1, 10**30], [1.0, 1e9]
    ):
        one = model(epsilon=epsilon, ladder=levels, n_levels=n_levels).fit(*DATA)
        assert one.guarantee_.epsilon == epsilon
        assert 0 < one.rho_ <= 10.0
        assert 0 < one.lambda_ < math.inf
    # NumPy's numbers are numbers.
    for n_levels in [np.int64(500), np.int64(2**60)]:
        one = model(n_levels=n_levels).fit(*DATA)
        assert one.n_levels is n_levels
        assert one.release_ == model(n_levels=int(n_levels)).fit(*DATA).release_
        again = Release.from_json(one.release_.to_json()).to_estimator()
        assert (again.rho_, again.n_levels) == (one.rho_, int(n_levels))
