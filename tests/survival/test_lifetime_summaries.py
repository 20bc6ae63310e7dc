"""Restricted means, medians, and lifelines' tables, of all curves."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from lifelines import KaplanMeierFitter, WeibullFitter
from lifelines.utils import restricted_mean_survival_time

from skdpsurv import (
    DPAalenJohansenFitter,
    DPKaplanMeierFitter,
    DPWeibullFitter,
    PrivacyAccountant,
    PublicInputWarning,
)
from skdpsurv.dp.input_errors import InputValueError
from tests.support.refusing import refused
from tests.support.weibull import records as weibull_records

KINDS = [DPKaplanMeierFitter, DPAalenJohansenFitter, DPWeibullFitter]


def records(n=1000):
    return weibull_records(n, 1.5, 0.5, horizon=8.0)


def fitter(kind=DPKaplanMeierFitter, epsilon=np.inf, **options):
    if kind is DPAalenJohansenFitter:
        options["causes"] = [1]
    return kind(epsilon, **{"max_time": 8.0, "random_state": 0, **options})


def fitted(kind=DPKaplanMeierFitter, **options):
    return fitter(kind, 3.0).fit(*records(), **options)


@pytest.mark.slow
def test_restricted_means_are_those_of_lifelines():
    law, steps = WeibullFitter().fit(*records()), KaplanMeierFitter().fit(*records())
    release = fitter(DPWeibullFitter, max_time=20.0).fit(*records()).release_
    values = {**release.values, "lambda": law.lambda_, "rho": law.rho_}
    found = replace(release, values=values).to_estimator()
    # A curve of straight hazards between many ends is near the steps.
    curve = fitter(n_intervals=500, breakpoints="equal").fit(*records())
    for t in [1.0, 3.3, 8.0]:
        mean = found.restricted_mean_survival_time(t, n_resamples=5)
        assert mean.estimate == pytest.approx(restricted_mean_survival_time(law, t), rel=1e-6)
        assert mean.lower <= mean.estimate <= mean.upper
        theirs = restricted_mean_survival_time(steps, t)
        assert curve.restricted_mean_survival_time(t).estimate == pytest.approx(theirs, abs=0.01)


def test_intervals_of_restricted_means_widen_with_noise():
    fits = [fitter(epsilon=epsilon).fit(*records()) for epsilon in (10.0, 1.0, 0.1)]
    means = [fit.restricted_mean_survival_time() for fit in fits]
    assert (np.diff([mean.upper - mean.lower for mean in means]) > 0).all()


class TestPercentiles:
    def test_of_curves(self):
        curve = fitted()
        middle = curve.percentile_interval()
        assert middle.estimate == curve.median_survival_time_ == curve.percentile(0.5)
        truth = 4.0 * math.log(2.0) ** (1 / 1.5)
        assert middle.lower < truth < middle.upper < middle.lower + 1.0
        assert curve.predict(middle.estimate) == pytest.approx(0.5)
        # What is not reached is infinite.
        curve.fit(np.full(500, 7.9), np.zeros(500))
        assert curve.median_survival_time_ == math.inf
        assert curve.percentile_interval() == (math.inf, math.inf, math.inf)

    def test_of_a_weibull_law(self):
        fit = fitted(DPWeibullFitter)
        found = fit.percentile_interval(0.25, n_resamples=20)
        assert found.lower < fit.percentile(0.25) == found.estimate < found.upper


#: Methods that take times.
OF_TIMES = [
    *("predict", "survival_function_at_times", "cumulative_density_at_times"),
    *("cumulative_hazard_at_times", "survival_band", "cumulative_density_band"),
    *("hazard_at_times", "smoothed_hazard_at_times", "number_at_risk"),
]


class TestHorizon:
    @pytest.mark.parametrize("kind", KINDS)
    def test_later_times_are_refused_or_said_to_be_extrapolated(self, kind, monkeypatch):
        draws = kind._draws
        monkeypatch.setattr(kind, "_draws", lambda fit, n: draws(fit, min(n, 20)))
        fit, late = fitted(kind), np.nextafter(8.0, 9.0)
        methods = [getattr(fit, name) for name in OF_TIMES if hasattr(fit, name)]
        assert len(methods) >= 5
        for method in methods:
            with warnings.catch_warnings(action="error"):
                method([0.0, 8.0])
                method([])
            for times in (late, [1.0, 9e9]):
                with late_times(kind):
                    method(times)

    def test_a_timeline_is_refused_before_anything_is_spent(self):
        ledger = PrivacyAccountant(9.0, rehearsal=True)
        for kind in KINDS[:2]:
            model = fitter(kind, 3.0, accountant=ledger)
            refused(model, "timeline must be at most max_time=8", *records(), timeline=[1, 9])
            refused(fitter(kind, max_time=None), "max_time must be", *records(), timeline=[9])
        assert ledger.rehearsed() == 0.0
        with pytest.warns(PublicInputWarning, match="timeline.* max_time=8"):
            fitted(DPWeibullFitter, timeline=[1, 9])

    def test_percentiles_and_means(self):
        quarter = [7.0] * 100 + [8.0] * 300, [1] * 100 + [0] * 300
        curve, law = (fitter(kind).fit(*quarter) for kind in KINDS[::2])
        assert curve.percentile(0.5) == curve.median_survival_time_ == math.inf
        for ask in (law.percentile, lambda p: law.percentile_interval(p, n_resamples=5).estimate):
            with pytest.warns(PublicInputWarning, match="max_time=8"):
                assert ask(0.1) > 8.0
        with warnings.catch_warnings(action="error"):
            law.percentile(0.95)
        with pytest.warns(PublicInputWarning, match="conditional_time_to_event_"):
            assert np.isfinite(law.conditional_time_to_event_).to_numpy().all()
        for fit in (curve, law):
            with pytest.raises(ValueError, match="later than max_time"):
                fit.restricted_mean_survival_time(8.1)


def late_times(kind):
    if kind is DPWeibullFitter:
        return pytest.warns(PublicInputWarning, match="max_time=8")
    return pytest.raises(InputValueError, match="times must be at most max_time=8")


@pytest.mark.parametrize("kind", KINDS)
class TestLifelinesHabits:
    def test_tables_have_the_timeline_label_and_alpha_of_the_fit(self, kind, monkeypatch):
        draws = kind._draws
        monkeypatch.setattr(kind, "_draws", lambda fit, n: draws(fit, min(n, 40)))
        fit = fitted(kind, timeline=[5.0, 1.0, 3], label="all", alpha=0.2)
        assert fit.confidence_interval_.columns.tolist() == ["all_lower_0.8", "all_upper_0.8"]
        for name in ("survival_function", "cumulative_density", "cumulative_hazard"):
            table, curve = getattr(fit, f"{name}_"), getattr(fit, f"{name}_at_times")
            assert (table.index.name, table.columns.tolist()) == ("timeline", ["all"])
            assert table.index.tolist() == fit.timeline.tolist() == [1.0, 3.0, 5.0]
            np.testing.assert_array_equal(table["all"], curve([1.0, 3.0, 5.0]))
            ends = getattr(fit, f"confidence_interval_{name}_").to_numpy().T
            assert (np.diff([ends[0], table["all"], ends[1]], axis=0) > -1e-12).all()
        narrow = np.diff(fit.confidence_interval_)[1, 0]
        again = fit.fit(*records(), timeline=[3.0])  # forgets
        assert again.label.endswith("_estimate")
        assert again.confidence_interval_.columns[0].endswith("0.95")
        assert np.diff(again.confidence_interval_).item() > narrow

    def test_what_is_left_of_a_life(self, kind):
        fit = fitted(kind, timeline=[0.0, 1.0, 2.0])
        left = fit.conditional_time_to_event_
        assert left.index.tolist() == [0.0, 1.0, 2.0]
        assert left.iloc[0, 0] == pytest.approx(fit.median_survival_time_)
        later = fit.survival_function_at_times([2.0, 2.0 + left.iloc[2, 0]]).to_numpy()
        assert later[1] == pytest.approx(later[0] / 2.0)
