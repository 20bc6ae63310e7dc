"""Restricted means, medians, and lifelines' tables, of all curves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lifelines import KaplanMeierFitter, WeibullFitter
from lifelines.utils import restricted_mean_survival_time

from skdpsurv import DPAalenJohansenFitter, DPKaplanMeierFitter, DPWeibullFitter

KINDS = [DPKaplanMeierFitter, DPAalenJohansenFitter, DPWeibullFitter]


def records(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    time, end = 4.0 * rng.weibull(1.5, n), rng.uniform(1.0, 10.0, n)
    return np.minimum(time, end), time <= end


def fitter(kind=DPKaplanMeierFitter, epsilon=np.inf, **options):
    if kind is DPAalenJohansenFitter:
        options["causes"] = [1]
    return kind(epsilon, **{"max_time": 8.0, **options})


def weibull(scale, shape, **options):
    """A curve of a release with these parameters."""
    release = fitter(DPWeibullFitter, **options).fit(*records()).release_
    values = {**release.values, "lambda": scale, "rho": shape}
    return replace(release, values=values).to_estimator()


class TestRestrictedMean:
    def test_is_that_of_lifelines(self):
        for t in [1.0, 3.3, 8.0]:
            data = records()
            law = WeibullFitter().fit(*data)
            theirs = restricted_mean_survival_time(law, t)
            found = weibull(law.lambda_, law.rho_, max_time=20.0)
            mean = found.restricted_mean_survival_time(t, n_resamples=20)
            assert mean.estimate == pytest.approx(theirs, rel=1e-6)
            assert mean.lower <= mean.estimate <= mean.upper
            # A curve of straight hazards between many ends is near the steps.
            theirs = restricted_mean_survival_time(KaplanMeierFitter().fit(*data), t)
            curve = fitter(n_intervals=500, breakpoints="equal").fit(*data)
            assert curve.restricted_mean_survival_time(t).estimate == pytest.approx(
                theirs, abs=0.01
            )

    def test_interval_widens_with_noise(self):
        def width(epsilon):
            fit = fitter(epsilon=epsilon, random_state=0).fit(*records())
            mean = fit.restricted_mean_survival_time()
            return mean.upper - mean.lower

        assert width(10.0) < width(1.0) < width(0.1)


class TestPercentiles:
    def test_median_has_an_interval(self):
        data = records()
        curve = fitter(epsilon=3.0, random_state=0).fit(*data)
        middle = curve.percentile_interval()
        assert middle.estimate == curve.median_survival_time_ == curve.percentile(0.5)
        truth = 4.0 * math.log(2.0) ** (1 / 1.5)
        assert middle.lower < truth < middle.upper < middle.lower + 1.0
        assert curve.predict(middle.estimate) == pytest.approx(0.5)

    def test_what_is_not_reached_is_infinite(self):
        curve = fitter(epsilon=3.0, random_state=0).fit(np.full(500, 7.9), np.zeros(500))
        assert curve.median_survival_time_ == math.inf
        assert curve.percentile_interval() == (math.inf, math.inf, math.inf)

    def test_of_a_weibull_law(self):
        fit = fitter(DPWeibullFitter, epsilon=3.0, random_state=0).fit(*records())
        found = fit.percentile_interval(0.25, n_resamples=50)
        assert found.lower < fit.percentile(0.25) == found.estimate < found.upper


@pytest.mark.parametrize("kind", KINDS)
class TestLifelinesHabits:
    def fitted(self, kind, **options):
        return fitter(kind, 3.0, random_state=0).fit(*records(), **options)

    def test_tables(self, kind):
        fit = self.fitted(kind)
        times = fit.timeline
        for name in ("survival_function", "cumulative_density", "cumulative_hazard"):
            table = getattr(fit, f"{name}_")
            assert table.index.name == "timeline"
            assert table.columns.tolist() == [fit.label]
            curve = getattr(fit, f"{name}_at_times")(times)
            np.testing.assert_array_equal(table[fit.label], curve)
            ends = getattr(fit, f"confidence_interval_{name}_").to_numpy()
            estimate = table[fit.label].to_numpy()
            assert ((ends[:, 0] <= estimate + 1e-12) & (estimate <= ends[:, 1] + 1e-12)).all()
        assert fit.label.endswith("_estimate")

    def test_timeline_label_and_alpha(self, kind):
        fit = self.fitted(kind, timeline=[5.0, 1.0, 3], label="all", alpha=0.2)
        assert fit.survival_function_.index.tolist() == [1.0, 3.0, 5.0]
        assert fit.label == "all"
        assert fit.confidence_interval_.columns.tolist() == ["all_lower_0.8", "all_upper_0.8"]
        widths = [
            np.diff(self.fitted(kind, timeline=[3.0], alpha=a).confidence_interval_)[0, 0]
            for a in (0.5, 0.05)
        ]
        assert widths[0] < widths[1]
        # The next fit forgets.
        again = fit.fit(*records())
        assert again.label != "all"
        assert again.confidence_interval_.columns[0].endswith("0.95")

    def test_what_a_duration_may_be(self, kind):
        time, event = records(40)
        one = fitter(kind, random_state=0).fit(time, event)
        column = {"list": time.tolist(), "tuple": tuple(time), "series": pd.Series(time)}
        for value in column.values():
            two = fitter(kind, random_state=0).fit(value, event.tolist())
            pd.testing.assert_frame_equal(one.survival_function_, two.survival_function_)
        alone = fitter(kind, random_state=0).fit(time)
        for value in (time[:, None], pd.DataFrame(time)):
            two = fitter(kind, random_state=0).fit(value)
            pd.testing.assert_frame_equal(alone.survival_function_, two.survival_function_)
        days = pd.to_timedelta(np.round(time, 3), unit="D")
        two, same = (fitter(kind).fit(t, event.astype(object)) for t in (days, np.round(time, 3)))
        np.testing.assert_allclose(two.predict([1.0, 4.0]), same.predict([1.0, 4.0]))

    def test_what_is_left_of_a_life(self, kind):
        fit = self.fitted(kind, timeline=[0.0, 1.0, 2.0])
        left = fit.conditional_time_to_event_
        assert left.index.tolist() == [0.0, 1.0, 2.0]
        assert left.iloc[0, 0] == pytest.approx(fit.median_survival_time_)
        later = fit.survival_function_at_times([2.0, 2.0 + left.iloc[2, 0]]).to_numpy()
        assert later[1] == pytest.approx(later[0] / 2.0)
