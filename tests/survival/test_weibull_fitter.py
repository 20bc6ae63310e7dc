"""Weibull fits: against lifelines, calling conventions, the public domain, refusals."""

import math

import numpy as np
import pandas as pd
import pytest
from lifelines import WeibullFitter
from scipy import sparse

from skdpsurv import DPWeibullFitter, PrivacyAccountant, Release
from skdpsurv.data import blocks
from skdpsurv.datasets import load_flchain
from skdpsurv.published import weibull_fitters as published_plans
from tests.support.combinations import thinned
from tests.support.refusing import refused
from tests.support.weibull import KINDS, model, records, strictly, target

CONVERGED = {"ftol": 1e-15, "gtol": 1e-15}
#: Shape and scale.
LAWS = [(0.5, 0.3), (1.3, 0.8), (4.0, 1.5)]


@pytest.fixture(autouse=True)
def coarse_published_grid(monkeypatch):
    """A tenth of the published ladder's cells, and of the time it takes."""
    monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 200)


@pytest.fixture(scope="module")
def data():
    return records()


def near(fit, other, rel, **tolerance):
    """Compare shapes and scales."""
    assert fit.rho_ == pytest.approx(other.rho_, rel=rel, **tolerance)
    assert fit.lambda_ == pytest.approx(other.lambda_, rel=5 * rel)


class TestWithoutPrivacy:
    def test_is_lifelines_whatever_omega_is(self):
        horizons = (1.0, 40.0), (5200.0, 5.0), (1.0, 0.5), (5200.0, 5.0)
        for law, (horizon, omega) in zip([*LAWS, (0.96, 2.6)], horizons, strict=True):
            time, event = records(1500, *law, seed=1, horizon=horizon)
            ours = DPWeibullFitter(np.inf, max_time=horizon, omega=omega).fit(time, event)
            # From elsewhere its search stops 1e-4 short on some processors.
            how = {"fit_options": CONVERGED, "initial_point": np.array([ours.lambda_, ours.rho_])}
            theirs = WeibullFitter().fit(
                np.minimum(time, horizon), event & (time <= horizon), **how
            )
            near(ours, theirs, 1e-6)

    @pytest.mark.parametrize(("omega", "law"), [(1.0, (0.4, 1.3)), (3.0, (1.3, 0.8))])
    def test_times_of_zero_are_lifelines_intervals(self, omega, law):
        """Their events are anywhere before the least; who is censored there has half the hazard."""
        time, event = records(1500, *law, seed=1)
        least, seen = math.exp(-omega), event & (time <= 1.0)
        before = time < least
        assert 0 < (before & seen).sum() < seen.sum()
        ours = DPWeibullFitter(np.inf, max_time=1.0, omega=omega)
        ours.fit(np.where(before, 0.0, time), event)
        lower = np.where(before & seen, 0.0, np.clip(time, least, 1.0))
        upper = np.where(before & seen, least, np.where(seen, lower, np.inf))
        theirs = WeibullFitter().fit_interval_censoring(
            lower, upper, weights=np.where(before & ~seen, 0.5, 1.0), fit_options=CONVERGED
        )
        near(ours, theirs, 1e-5)

    def test_the_papers_scale_of_flchain(self):
        """Times were mapped to [e^-6, 1] there; lambda = 2.6098 is in the paper."""
        y = load_flchain().y
        least = math.exp(-6)
        u = least + (1 - least) * y["futime"] / y["futime"].max()
        fit = DPWeibullFitter(np.inf, max_time=1.0, omega=6.0).fit(u, y["death"])
        assert (fit.lambda_, fit.rho_) == pytest.approx((2.6098, 0.9812), abs=5e-5)


class TestMuchEpsilon:
    @pytest.mark.parametrize(("kind", "law"), thinned(["tight", "exact", "published"], LAWS))
    def test_the_ladder_ends_at_maximum_likelihood(self, monkeypatch, kind, law):
        """But for bins of time 0.3 % wide, and cells of the published grid 0.005 wide."""
        monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 2000)
        time, event = records(3000, *law, seed=2)
        # The paper's knows of no times before the least: it gets none.
        omega = 20.0 if kind == "published" else 5.0
        best = model("no privacy", omega=omega).fit(time, event)
        near(model(kind, epsilon=1e6, omega=omega).fit(time, event), best, 2e-3, abs=6e-3)

    def test_so_do_the_baselines(self):
        """Where nothing is clipped: the paper knows of no times before the least."""
        data = records(400, seed=2)
        best = model("no privacy", omega=20.0).fit(*data)
        for kind in ["laplace", "blocks"]:
            near(model(kind, epsilon=1e8, omega=20.0).fit(*data), best, 1e-5)


class TestConventions:
    """Seeded, so that equal records have equal releases."""

    def same(self, data, *args, **options):
        one = model().fit(*args, **options)
        assert one.release_.values == model().fit(*data).release_.values
        return one

    def test_lifelines_style(self, data):
        time, event = data
        self.same(data, durations=time, event_observed=event)
        self.same(data, time, event_observed=event)
        self.same(data, X=time, y=event)
        self.same(data, time.tolist(), tuple(event.tolist()))
        days = np.round(time, 3)
        self.same((days, event), pd.to_timedelta(days, unit="D"), event)
        self.same(data, np.repeat(time, 2)[::2], pd.Series(event, dtype="boolean"))
        self.same(data, None, target(event, time).view(np.recarray))
        seen = time, np.ones(300, dtype=bool)
        self.same(seen, time)
        self.same(seen, durations=time)
        self.same(seen, pd.DataFrame(time))
        self.same(seen, time[:, None])
        self.same(seen, np.zeros((300, 2)), time)

    def test_x_is_not_used_beside_a_structured_y(self, data):
        """Whatever is in it, and whatever its dimension; the next fit forgets its columns."""
        frame = pd.DataFrame({"age": ["x"] * 300, "dose": 1})
        words = [["a", 1.0]] * 300, ["s"] * 300
        odd = sparse.coo_array(np.eye(300)), np.ma.masked_all((300, 2)), None, frame
        for X in (np.full((300, 3), np.nan), np.linspace(0, 1, 300), *words, *odd):
            one = self.same(data, X, target(data[1], data[0]))
            wide = X is not None and np.ndim(X) == 2
            assert one.n_features_in_ == (np.shape(X)[1] if wide else 0)
        assert one.release_.feature_names_in == ("age", "dose")
        np.testing.assert_array_equal(one.predict(frame[:7]), np.zeros(7))
        assert not hasattr(one.fit(*data), "feature_names_in_")
        assert one.n_features_in_ == 0
        assert one.release_ == model().fit(*data).release_


@pytest.mark.parametrize("kind", KINDS)
class TestDomain:
    def test_small_times_are_raised_to_the_smallest(self, data, kind):
        """Zero among them; their events stay what they were."""
        if kind == "no privacy":
            return  # knows smaller ones
        time, event = data[0].copy(), data[1]
        fits = []
        for value in (0.0, 5e-324, 1e-300, math.exp(-6.5), 0.9999 * math.exp(-6.0)):
            time[:20] = value
            fits.append(model(kind, omega=6.0).fit(time, event))
        for fit in fits[1:]:
            near(fit, fits[0], 1e-12)
        time[:20] = 2 * math.exp(-6.0)
        assert model(kind, omega=6.0).fit(time, event).release_ != fits[0].release_

    def test_neither_later_times_nor_units_nor_blocks_matter(self, data, monkeypatch, kind):
        time, event = 2 * data[0], data[1]
        assert (time > 1).sum() > 50
        cut = np.minimum(time, 1.0), event & (time <= 1.0)
        one = model(kind).fit(*cut)
        assert model(kind).fit(time, event).release_ == one.release_
        days = model(kind, max_time=1024.0).fit(1024.0 * time, event)
        assert days.rho_ == one.rho_
        assert days.lambda_ == pytest.approx(1024.0 * one.lambda_, rel=1e-12)
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 37)
        assert model(kind).fit(*cut).release_ == one.release_


def test_refusals():
    time, event, X = np.linspace(0.1, 0.9, 6), np.array([True, False] * 3), np.zeros((6, 2))
    y, nothing = target(event, time), np.full(6, np.nan)
    for name, values in {
        "epsilon": (0.0, np.nan, 1e-10, 1e10, None),
        "max_time": (None, 0.0, np.inf, 1e-151, 1e151),
        "omega": (0.0, np.nan, 1e-4, 101.0),
        "max_shape": (0.0, np.inf, 1e-4, 1e4),
        "shape_fraction": (1e-4, 0.9999, "half", None),
    }.items():
        for value in values:
            refused(model(**{name: value}), f"^{name} must be ", nothing, nothing)
    fitted = model().fit(durations=time, event_observed=event)
    for options, message in [
        ({}, "y or durations"),
        ({"durations": [], "event_observed": []}, "at least one record"),
        ({"durations": time, "event_observed": event[:5]}, "durations and event_observed"),
        ({"X": X[:5], "y": y}, "X and y"),
        ({"X": X, "durations": time}, "instead of X and y"),
        ({"y": y, "durations": time}, "instead of X and y"),
        ({"event_observed": event}, "with durations"),
        ({"y": y, "event_observed": event}, "with durations"),
        ({"X": X, "y": time, "event_observed": event}, "event_observed must be given with"),
        ({"X": time, "y": event, "event_observed": event}, "event_observed must not be given"),
    ]:
        refused(model(), message, **options)
        with pytest.raises((ValueError, TypeError), match=message):
            fitted.score(**options)


EVERY, NONE = np.ones(40, dtype=bool), np.zeros(40, dtype=bool)
#: Times in units of the horizon, and events.
AWKWARD = [
    ([0.5], [True]),
    ([0.5], [False]),
    ([0.2, 0.9], [True, False]),
    (np.linspace(0, 1, 400), np.zeros(400, dtype=bool)),
    (np.linspace(0, 1, 400), np.ones(400, dtype=bool)),
    (np.linspace(0, 1, 40), np.arange(40) == 30),
    *((np.full(40, value), EVERY) for value in (0.0, 1.0, 0.37, np.inf, 5e-324)),
    (np.full(40, -0.0), NONE),
    (np.repeat([0.0, 1.0], 20), EVERY),
]
EXTREMES = [
    {},
    {"max_time": 1e-100},
    {"max_time": 1e100},
    {"max_time": 1e-150, "omega": 100.0},
    {"max_time": 1e150, "max_shape": 1e-3},
    {"omega": 1e-3},
    {"omega": 100.0},
    {"max_shape": 0.01},
    {"max_shape": 1000.0, "omega": 100.0},
    {"max_shape": 1e-3, "omega": 1e-3},
    {"shape_fraction": 0.001},
    {"shape_fraction": 0.999},
]


@pytest.mark.parametrize(("parameters", "kind"), thinned(EXTREMES, KINDS), ids=str)
def test_every_data_set_gets_a_release(parameters, kind):
    """And intervals: what depends on records must neither raise nor warn, whatever is public."""
    horizon = parameters.get("max_time", 1.0)
    for epsilon in [np.inf] if kind == "no privacy" else [1e-9, 1.0, 1e9]:
        for time, event in AWKWARD:
            time, event = np.minimum(horizon * np.array(time), 1.7e308), np.array(event)
            accountant = PrivacyAccountant(rehearsal=True)
            one = model(kind, epsilon=epsilon, accountant=accountant, **parameters)
            strictly(one.fit, time, event)
            assert accountant.rehearsed() == epsilon
            assert 0 < one.rho_ <= parameters.get("max_shape", 10.0)
            assert 0 < one.lambda_ < math.inf
            assert Release.from_json(one.release_.to_json()) == one.release_
            times = [0.0, horizon / 2, 1e308]
            assert ((one.predict(times) >= 0) & (strictly(one.predict, times) <= 1)).all()
            assert strictly(one.score, time, event) < math.inf
        if kind == "published":
            continue  # its resamples take long
        interval = strictly(one.confidence_interval, n_resamples=2)
        assert ((interval > 0) & np.isfinite(interval)).all(axis=None)
        assert (interval["lower"] <= interval["upper"]).all()
        band = strictly(one.survival_band, times, n_resamples=2)
        assert ((band >= 0) & (band <= 1)).all(axis=None)
