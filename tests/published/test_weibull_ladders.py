"""The published Weibull fits: parameters of the ladder, and old releases, which knew them all."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

from skdpsurv import PrivacyAccountant, PrivacyLeakWarning, Release
from skdpsurv.published import PublishedWeibullFitter, weibull

TIME, EVENT = np.linspace(0.02, 0.9, 60), np.arange(60) % 3 > 0


@pytest.fixture(autouse=True)
def coarse_published_grid(monkeypatch):
    """A tenth of the published ladder's cells, and of the time it takes."""
    monkeypatch.setattr(weibull, "N_CELLS_PUBLISHED", 200)


def fitted(kind=PublishedWeibullFitter, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return kind(max_time=1.0, random_state=0, **parameters).fit(TIME, EVENT)


def test_bad_parameters_are_refused_before_any_charge():
    for parameters, error in [
        ({"n_rungs": 0}, ValueError),
        ({"n_rungs": -3}, ValueError),
        ({"rungs": "tight"}, ValueError),
        ({"rungs": None}, ValueError),
        ({"n_rungs": 5.0}, TypeError),
        ({"n_rungs": "5"}, TypeError),
        ({"n_rungs": True}, TypeError),
    ]:
        accountant = PrivacyAccountant(rehearsal=True)
        model = PublishedWeibullFitter(max_time=1.0, accountant=accountant, **parameters)
        with pytest.raises(error, match=next(iter(parameters))):
            model.fit(TIME, EVENT)
        assert accountant.rehearsed() == 0.0


def test_extreme_ladders_give_a_release():
    for rungs, n_rungs in itertools.product(["published", "exact"], [1, 10**30]):
        for epsilon in (1.0, 1e9):
            one = fitted(epsilon=epsilon, rungs=rungs, n_rungs=n_rungs)
            assert one.guarantee_.epsilon == epsilon
            assert 0 < one.rho_ <= 10.0
            assert 0 < one.lambda_ < math.inf


def test_numpy_numbers_are_numbers():
    for n_rungs in [np.int64(500), np.int64(2**60)]:
        one = fitted(n_rungs=n_rungs)
        assert one.n_rungs is n_rungs
        assert one.release_ == fitted(n_rungs=int(n_rungs)).release_
        again = Release.from_json(one.release_.to_json()).to_estimator()
        assert (again.rho_, again.n_rungs) == (one.rho_, int(n_rungs))
