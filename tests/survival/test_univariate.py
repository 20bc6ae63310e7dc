"""The base of private curves, by one that is written here: how to add a curve of your own."""

import math

import numpy as np
import pandas as pd
import pytest
from lifelines import ExponentialFitter
from sklearn.exceptions import NotFittedError

from skdpsurv import PrivacyAccountant, Release
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.data.shape import Shape
from skdpsurv.dp import random_source
from tests.support.extensions import extension

DPExponentialFitter = extension("exponential").DPExponentialFitter


class Exponential(DPExponentialFitter._curve_type):
    """The same, and what a curve may say besides."""

    extrapolates = True

    def hazard(self, times, parameters):
        return np.ones_like(times) / parameters

    def __init__(self, release):
        super().__init__(release)
        self.n_records = release.made_by.public_inputs["n_records"]
        fitter = DPExponentialFitter(release.made_by.epsilon, **release.parameters)
        self.plan = fitter._plan(Shape(self.n_records, 0))

    def plausible(self, n_resamples):
        (scale,) = self.estimates
        n_records, plan, source = self.n_records, self.plan, random_source(0, purpose="interval")
        times = source.generator.exponential(scale, (n_resamples, n_records))
        everybody = np.ones(n_records, dtype=bool)
        simulated = [plan.run(InMemory([Histories(t, everybody)]), source)["lambda"] for t in times]
        return scale**2 / np.array(simulated)[:, None]


class WithIntervals(DPExponentialFitter):
    _curve_type = Exponential


@pytest.fixture(scope="module")
def records():
    times = np.random.default_rng(0).exponential(3.0, 500)
    return np.minimum(times, 5.0), times <= 5.0


def fitter(kind=DPExponentialFitter, epsilon=1.0, **options):
    return kind(epsilon, max_time=5.0, random_state=0, **options)


@pytest.fixture(scope="module")
def bare(records):
    return fitter().fit(*records)


def test_curves_are_those_of_lifelines(records, bare):
    theirs = ExponentialFitter().fit(*records)
    # So much epsilon that the noise moves neither sum by 1e-6 of it; the seed is fixed.
    ours = fitter(WithIntervals, epsilon=1e8).fit(*records)
    for name in ("survival_function", "cumulative_density", "cumulative_hazard"):
        times = [0.5, 2.0, 9.0]
        one, other = (getattr(model, f"{name}_at_times")(times) for model in (ours, theirs))
        pd.testing.assert_series_equal(one, other, rtol=1e-5, check_names=False)
    assert (ours.hazard_at_times([0.0, 9.0]) == 1.0 / ours.lambda_).all()
    found = ours.lambda_, ours.percentile(0.2), ours.median_survival_time_, ours.score(*records)
    expected = theirs.lambda_, theirs.percentile(0.2), theirs.median_survival_time_
    assert found == pytest.approx((*expected, theirs.log_likelihood_ / 500), rel=1e-6)
    assert bare.survival_function_at_times(1.0).name == "Exponential_estimate"
    # Later times are censored at the horizon.
    later = np.where(records[1], records[0], 77.0)
    assert ours.score(later, records[1]) == ours.score(*records)


def test_fit_and_release_are_those_of_every_estimator(records):
    accountant = PrivacyAccountant(1.0, rehearsal=True)
    one = fitter(accountant=accountant).fit(np.zeros((500, 2)), records[0])
    found = accountant.rehearsed(), one.n_features_in_, one.guarantee_.status
    assert found == (1.0, 2, "seeded")
    two = DPExponentialFitter.from_release(Release.from_json(one.release_.to_json()))
    assert two.predict(2.0) == one.predict(2.0) == math.exp(-2.0 / one.lambda_)
    with pytest.raises(ValueError, match="max_time must be given"):
        DPExponentialFitter().fit(*records)


def test_a_percentile_is_the_first_time(records, bare):
    whole = fitter(WithIntervals).fit(*records)
    for p in [1e-300, 0.1, 0.5, 1 - 1e-12]:
        first = whole.percentile(p)
        before = whole.cumulative_hazard_at_times(np.nextafter(first, 0.0))
        assert before.item() < -math.log(p) <= whole.cumulative_hazard_at_times(first).item()
        assert first == pytest.approx(-math.log(p) * whole.lambda_)
        # Who does not say that a formula goes on, knows nothing beyond the horizon.
        assert bare.percentile(p) == (first if first <= 5.0 else math.inf)


class Falling(Exponential):
    """Falls at 1 and 2 lambda only, and no further."""

    def plausible(self, n_resamples):
        return self.estimates * np.linspace(0.9, 1.1, n_resamples)[:, None]

    @property
    def fitted(self):
        (scale,) = self.estimates
        return {"lambda_": scale, "unique_times_": scale * np.array([1.0, 2.0])}

    def cumulative_hazard(self, times, parameters):
        return np.minimum(np.floor(times / parameters), 2.0)


class Steps(WithIntervals):
    _curve_type = Falling


def test_steps(records):
    one = Steps(max_time=9.0, random_state=0).fit(*records)
    assert one.median_survival_time_ == one.percentile(0.9) == one.lambda_
    assert one.percentile(math.exp(-1.5)) == 2.0 * one.lambda_
    assert one.percentile(0.1) == math.inf
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    one.plot(ax, n_resamples=20)
    (line,), (shade,) = ax.lines, ax.collections
    assert line.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(line.get_xdata(), [0.0, one.lambda_, 2.0 * one.lambda_, 9.0])
    np.testing.assert_allclose(line.get_ydata(), np.exp([0.0, -1.0, -2.0, -2.0]))
    corners = shade.get_paths()[0].vertices
    assert (np.diff(corners, axis=0) == 0.0).any(axis=1).all()  # no slopes


def test_what_is_not_said_is_not_there(bare, capsys):
    for name in ("hazard_at_times", "score", "confidence_interval", "survival_band"):
        assert hasattr(WithIntervals(), name)
        assert not hasattr(bare, name)
    assert list(bare.summary.columns) == ["coef"]
    bare.print_summary()
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("500", "epsilon = 1", f"{bare.lambda_:.2f}"))


def test_intervals(records):
    whole = fitter(WithIntervals).fit(*records)
    lower, upper = whole.confidence_interval(0.8, 50).loc["lambda_"]
    assert 0.0 < lower < whole.lambda_ < upper
    band = whole.survival_band([0.0, 1.0, 4.0], 0.8, 50)
    # exp(-t / lambda) rises with lambda; quantiles lie between two draws.
    np.testing.assert_allclose(band["lower"], np.exp(-band.index / lower), rtol=1e-3)
    np.testing.assert_allclose(band["upper"], np.exp(-band.index / upper), rtol=1e-3)
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    whole.plot(ax, n_resamples=20)
    assert len(ax.collections) == 1
    with pytest.raises(ValueError, match="n_resamples"):
        whole.survival_band(1.0, n_resamples=0)
    with pytest.raises(NotFittedError):
        WithIntervals().survival_band(1.0)
