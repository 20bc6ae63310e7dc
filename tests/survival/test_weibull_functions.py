"""What a released Weibull distribution says, against lifelines and scipy."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from lifelines import WeibullFitter
from scipy import stats
from sklearn.exceptions import NotFittedError

from skdpsurv import DPWeibullFitter, PrivacyGuarantee, Release
from tests.support.weibull import model, records, strictly, target


def released(rho, lambda_, max_time=1.0):
    """Build a fitter that released these values, without data."""
    guarantee = PrivacyGuarantee(1.0, public_inputs={"n_records": 100, "left_censored": True})
    values = {"rho": rho, "lambda": lambda_, "n_events": 50}
    parameters = {"max_time": max_time, "omega": 6.0}
    release = Release("DPWeibullFitter", guarantee, parameters, values, n_features_in=0)
    return DPWeibullFitter.from_release(release)


LAWS = [(0.5, 3.0), (1.0, 0.7), (1.3, 0.8), (9.0, 40.0)]
TIMES = np.array([0.0, 1e-9, 0.3, 1.0, 2.5, 39.0, 400.0])


def test_series_and_summary_are_those_of_lifelines():
    theirs, fitted = WeibullFitter().fit(*records()), model("no privacy").fit(*records())
    one, times = released(theirs.rho_, theirs.lambda_), TIMES[1:]
    for name in ("survival_function", "cumulative_density", "cumulative_hazard", "hazard"):
        ours, other = (getattr(each, f"{name}_at_times") for each in (one, theirs))
        for at in (times, 0.3):
            pd.testing.assert_series_equal(ours(at), other(at), rtol=1e-9)
        assert ours(times, label="mine").name == "mine"
    assert list(fitted.summary.index) == list(theirs.summary.index) == ["lambda_", "rho_"]
    assert list(fitted.summary.columns) == ["coef", "coef lower 95%", "coef upper 95%"]
    assert fitted.summary["coef"].tolist() == [fitted.lambda_, fitted.rho_]
    np.testing.assert_array_equal(fitted.summary.iloc[:, 1:], fitted.confidence_interval())


@pytest.mark.parametrize(("rho", "lambda_"), LAWS)
def test_the_law_is_scipys(rho, lambda_):
    law, one = stats.weibull_min(rho, scale=lambda_), released(rho, lambda_)
    survival = one.survival_function_at_times(TIMES)
    np.testing.assert_array_equal(survival.index, TIMES)
    np.testing.assert_allclose(survival, law.sf(TIMES), rtol=1e-10)
    np.testing.assert_allclose(one.cumulative_hazard_at_times(TIMES), -law.logsf(TIMES))
    later = TIMES[1:-1]  # where scipy's survival is not 0
    hazard = np.exp(law.logpdf(later) - law.logsf(later))
    np.testing.assert_allclose(one.hazard_at_times(later), hazard, rtol=1e-10)
    for p in (1e-12, 0.1, 0.5, 0.9, 1 - 1e-12):
        assert one.percentile(p) == pytest.approx(law.isf(p), rel=1e-10)
    assert one.median_survival_time_ == pytest.approx(law.median())
    at_zero = math.inf if rho < 1 else (1 / lambda_ if rho == 1 else 0.0)
    assert strictly(one.hazard_at_times, 0)[0] == pytest.approx(at_zero)
    np.testing.assert_array_equal(one.predict(pd.Series(TIMES)), survival.to_numpy())
    assert one.predict(0.3) == survival.iloc[2]
    assert one.predict([]).shape == (0,)


@pytest.mark.parametrize(("rho", "lambda_"), LAWS)
def test_score_is_the_mean_log_likelihood_of_clipped_times(rho, lambda_):
    law = stats.weibull_min(rho, scale=lambda_)
    time, event = records(200, horizon=5.0)
    time[:4], event[:2] = [0.0, 1e-12, 1e-9, 77.0], [True, False]
    least = 5.0 * math.exp(-6)
    clipped, before = np.clip(time, least, 5.0), time < least
    assert 0 < event[before].sum() < before.sum()
    density = np.where(before, law.logcdf(least), law.logpdf(clipped))
    gone = law.logsf(clipped) / (1 + before)
    expected = np.where(event & (time <= 5.0), density, gone).mean()
    one = released(rho, lambda_, max_time=5.0)
    assert one.score(time, event) == pytest.approx(expected, rel=1e-10)
    assert one.score(None, target(event, time)) == one.score(time, event)
    assert one.score(durations=time, event_observed=event) == one.score(time, event)


def test_functions_refuse():
    fitted, masked = model().fit(*records()), np.ma.array([0.5, 0.6], mask=[True, False])
    # There were no columns in fit.
    for times in ([0.5, -1e-9], [np.nan], [np.inf], ["a"], np.zeros((3, 2)), [1 + 1j], masked):
        for name in ("predict", "survival_function_at_times", "hazard_at_times"):
            with pytest.raises(ValueError, match="times"):
                getattr(fitted, name)(times)
    for p in (0.0, 1.0, 1.1, np.nan, "0.5", None, True, [0.5]):
        with pytest.raises((ValueError, TypeError), match="p must be"):
            fitted.percentile(p)
    for name, args in {
        "predict": ([0.5],), "score": ([0.5], [True]), "percentile": (0.5,),
        "confidence_interval": (), "summary": (),
    }.items():  # fmt: skip
        with pytest.raises(NotFittedError):
            getattr(model(), name)(*args)


def test_extreme_releases_have_functions():
    """Times that no double can hold are infinite, as in lifelines, and no crash."""
    for rho, lambda_ in itertools.product([1e-5, 1e-3, 1e3], [1e-190, 1.0, 1e280]):
        one = released(rho, lambda_)
        times = [0.0, 5e-324, 1e-200, 1.0, 1e200, 1.7e308]
        survival = strictly(one.predict, times)
        assert ((survival >= 0) & (survival <= 1)).all()
        assert (np.diff(survival) <= 0).all()
        for curve in (one.cumulative_hazard_at_times, one.hazard_at_times):
            assert (strictly(curve, times) >= 0).all()
        percentiles = [strictly(one.percentile, p) for p in (1e-300, 0.1, 0.5, 0.9)]
        assert percentiles == sorted(percentiles, reverse=True)
