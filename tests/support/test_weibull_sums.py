"""Less noise on the sums of Weibull fits is found, sum by sum."""

from __future__ import annotations

import numpy as np
import pytest

from skdpsurv import DPWeibullFitter
from skdpsurv.mechanisms import sums
from skdpsurv.published import PublishedWeibullFitter
from tests.support.combinations import thinned
from tests.support.planted_defects import no_lattice_noise, sixth_of_the_lattice_noise
from tests.support.transcript import transcript_audit
from tests.support.worst_pairs import pair


def weibull(ladder):
    if ladder == "tight":
        return DPWeibullFitter(max_time=1.0)
    return PublishedWeibullFitter(max_time=1.0, rungs=ladder)


EVENT_OR_NOT = "event at zero or censored at the horizon, others with events at zero"


def many_events():
    """Enough for a correction of the shape, and one record that differs."""
    time = 0.2 * np.random.default_rng(0).weibull(1.5, 2000)
    event = np.ones(2000, dtype=int)
    other = event.copy()
    other[0] = 0
    return (time, event), (np.r_[1.0, time[1:]], other)


class TestWeibullSums:
    """All that a Weibull fit adds noise to, whatever is left of the noise."""

    @pytest.fixture(scope="class")
    @classmethod
    def many(cls):
        """Many events, which pass with all of the noise."""
        data = many_events()
        assert cls.result("tight", data).passed
        return data

    @staticmethod
    def result(ladder, data):
        model = weibull(ladder)
        if data is None:
            data = pair(model, EVENT_OR_NOT, n=4)
        return transcript_audit(model, *data, n_cells=64)

    @pytest.mark.parametrize(
        ("ladder", "defect"),
        [
            *thinned(["tight", "exact"], [no_lattice_noise, sixth_of_the_lattice_noise]),
            pytest.param("published", no_lattice_noise, marks=pytest.mark.slow),
            pytest.param("published", sixth_of_the_lattice_noise, marks=pytest.mark.slow),
        ],
    )
    def test_less_noise_is_refuted(self, ladder, defect):
        assert self.result(ladder, None).passed
        with defect():
            assert not self.result(ladder, None).passed

    @pytest.mark.parametrize("place", [0, 1, 3])
    def test_each_sum_counts(self, place):
        """Events, follow-up, on which the next scales depend, and powers.

        The sum of log times is seen through the ladder alone, unless there is a correction.
        """
        time, event = np.array([0.3, 0.2, 0.4, 0.5, 0.7]), np.ones(5, dtype=int)
        other = np.r_[1.0, time[1:]], np.r_[0, event[1:]]
        assert self.result("tight", ((time, event), other)).passed
        with no_lattice_noise(place, 4):
            result = self.result("tight", ((time, event), other))
        assert result.total == np.inf

    @pytest.mark.parametrize("place", [0, 2, 3, 4, 5])
    def test_each_sum_with_a_correction_counts(self, many, place):
        """Events, follow-up, which is not used then, log times, powers, score, powers."""
        with no_lattice_noise(place, 6):
            result = self.result("tight", many)
        assert result.total == np.inf
        assert "REFUTED" in repr(result)

    def test_a_scale_that_depends_on_the_records_is_refuted(self, monkeypatch):
        honest = sums.lattice_laplace

        def laplace(value, scale, source):
            return honest(value, scale * (1.0 + abs(value) / 1000.0), source)

        monkeypatch.setattr(sums, "lattice_laplace", laplace)
        assert self.result("tight", None).total == np.inf
