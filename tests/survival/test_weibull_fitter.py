"""DPWeibullFitter: its functions, its calling conventions, what it refuses, what it keeps."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from lifelines import WeibullFitter
from scipy import sparse, stats
from sklearn.exceptions import NotFittedError

from skdpsurv import (
    BudgetExceededError,
    DPWeibullFitter,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PublicInputWarning,
    Release,
)
from skdpsurv.data import blocks
from skdpsurv.datasets import load_flchain
from skdpsurv.dp.plan import NoisySum, Plan
from skdpsurv.mechanisms import sums
from skdpsurv.published import (
    LaplaceWeibullFitter,
    PublishedWeibullFitter,
    SampleAggregateWeibullFitter,
)
from skdpsurv.published import weibull as published_plans
from skdpsurv.survival.weibull import counts as weibull_counts
from skdpsurv.survival.weibull import plan as weibull_plan
from tests.support.combinations import thinned

Y = np.dtype([("event", "?"), ("time", "f8")])
#: Every way to fit.
KINDS = {
    "tight": (DPWeibullFitter, {}),
    "exact": (PublishedWeibullFitter, {"rungs": "exact"}),
    "published": (PublishedWeibullFitter, {}),
    "laplace": (LaplaceWeibullFitter, {}),
    "blocks": (SampleAggregateWeibullFitter, {}),
    "no privacy": (DPWeibullFitter, {"epsilon": np.inf}),
}
PRIVATE = [kind for kind in KINDS if kind != "no privacy"]
LADDERS = ["tight", "exact", "published"]
#: lifelines' optimizer, until it cannot do better.
CONVERGED = {"ftol": 1e-15, "gtol": 1e-15}

every_kind = pytest.mark.parametrize("kind", list(KINDS))
every_private_kind = pytest.mark.parametrize("kind", PRIVATE)


def model(kind="tight", **parameters):
    make, own = KINDS[kind]
    return make(**{"max_time": 1.0, "random_state": 0, **own, **parameters})


def records(n=300, shape=1.3, scale=0.8, seed=0, horizon=1.0):
    """Weibull times with exponential censoring; some of both are beyond the horizon."""
    rng = np.random.default_rng(seed)
    time, last = scale * rng.weibull(shape, n), rng.exponential(1.0, n)
    return horizon * np.minimum(time, last), time <= last


def target(event, time):
    y = np.empty(len(time), dtype=Y)
    y["event"], y["time"] = event, time
    return y


def strictly(function, *args, **options):
    """Call with warnings as errors: one that depends on records would tell about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PublicInputWarning)
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return function(*args, **options)


def released(rho, lambda_, max_time=1.0, n_records=100, **parameters):
    """Build a fitter that released these values, without data."""
    public = {"n_records": n_records, "left_censored": True}
    guarantee = PrivacyGuarantee(1.0, public_inputs=public)
    values = {"rho": rho, "lambda": lambda_, "n_events": 50}
    parameters = {"max_time": max_time, "omega": 6.0, **parameters}
    release = Release("DPWeibullFitter", guarantee, parameters, values, n_features_in=0)
    return DPWeibullFitter.from_release(release)


@pytest.fixture(autouse=True)
def coarse_published_grid(monkeypatch):
    """A tenth of the published ladder's cells, and of the time it takes."""
    monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 200)


@pytest.fixture(scope="module")
def data():
    return records()


@pytest.fixture(scope="module")
def fitted(data):
    return model().fit(*data)


# ------------------------------------------------------------------------------------------------
# Numbers
# ------------------------------------------------------------------------------------------------


class TestWithoutPrivacy:
    @pytest.mark.parametrize(
        ("shape", "scale"), [(0.5, 0.3), (1.0, 1.0), (1.3, 0.8), (4.0, 1.5), (0.96, 2.6)]
    )
    @pytest.mark.parametrize(("horizon", "omega"), [(1.0, 40.0), (5200.0, 5.0), (1.0, 0.5)])
    def test_is_lifelines_whatever_omega_is(self, shape, scale, horizon, omega):
        time, event = records(1500, shape, scale, seed=1, horizon=horizon)
        ours = DPWeibullFitter(np.inf, max_time=horizon, omega=omega).fit(time, event)
        cut = np.minimum(time / horizon, 1.0)
        # From elsewhere its search stops 1e-4 short on some processors.
        start = np.array([ours.lambda_ / horizon, ours.rho_])
        theirs = WeibullFitter().fit(
            cut, event & (time <= horizon), fit_options=CONVERGED, initial_point=start
        )
        assert ours.rho_ == pytest.approx(theirs.rho_, rel=1e-6)
        assert ours.lambda_ / horizon == pytest.approx(theirs.lambda_, rel=1e-6)

    @pytest.mark.parametrize("omega", [1.0, 3.0, 5.0])
    @pytest.mark.parametrize(("shape", "scale"), [(0.4, 1.3), (1.3, 0.8)])
    def test_times_of_zero_are_lifelines_intervals(self, shape, scale, omega):
        """Their events are anywhere before the least; who is censored there has half the hazard."""
        time, event = records(1500, shape, scale, seed=1)
        least, seen = math.exp(-omega), event & (time <= 1.0)
        before = time < least
        assert 0 < (before & seen).sum() < seen.sum()
        zeroed = np.where(before, 0.0, time)
        ours = DPWeibullFitter(np.inf, max_time=1.0, omega=omega).fit(zeroed, event)
        lower = np.where(before & seen, 0.0, np.clip(time, least, 1.0))
        upper = np.where(before & seen, least, np.where(seen, lower, np.inf))
        theirs = WeibullFitter().fit_interval_censoring(
            lower, upper, weights=np.where(before & ~seen, 0.5, 1.0), fit_options=CONVERGED
        )
        assert ours.rho_ == pytest.approx(theirs.rho_, rel=1e-5)
        assert ours.lambda_ == pytest.approx(theirs.lambda_, rel=1e-5)

    def test_no_other_parameters_are_more_likely(self, data):
        one = model("no privacy").fit(*data)
        best = one.score(*data)
        for rho, lambda_ in [(1.001, 1), (0.999, 1), (1, 1.001), (1, 0.999), (1.001, 1.001)]:
            other = released(one.rho_ * rho, one.lambda_ * lambda_, omega=5.0)
            assert other.score(*data) < best

    def test_the_papers_scale_of_flchain(self):
        """Times were mapped to [e^-6, 1] there; lambda = 2.6098 is in the paper."""
        y = load_flchain().y
        least = math.exp(-6)
        u = least + (1 - least) * y["futime"] / y["futime"].max()
        fit = DPWeibullFitter(np.inf, max_time=1.0, omega=6.0).fit(u, y["death"])
        assert fit.lambda_ == pytest.approx(2.6098, abs=5e-5)
        assert fit.rho_ == pytest.approx(0.9812, abs=5e-5)

    def test_shape_stays_below_max_shape(self):
        time, event = records(400, shape=6.0, scale=0.5)
        fit = model("no privacy", max_shape=2.0).fit(time, event)
        assert fit.rho_ == pytest.approx(2.0)


class TestMuchEpsilon:
    @pytest.mark.parametrize("kind", LADDERS)
    @pytest.mark.parametrize(("shape", "scale"), [(0.5, 0.3), (1.3, 0.8), (4.0, 1.5)])
    def test_the_ladder_ends_at_maximum_likelihood(self, monkeypatch, kind, shape, scale):
        """But for bins of time 0.3 % wide, and cells of the published grid 0.005 wide."""
        monkeypatch.setattr(published_plans, "N_CELLS_PUBLISHED", 2000)
        time, event = records(3000, shape, scale, seed=2)
        # The paper's knows of no times before the least: it gets none.
        omega = 20.0 if kind == "published" else 5.0
        best = model("no privacy", omega=omega).fit(time, event)
        fit = model(kind, epsilon=1e6, omega=omega).fit(time, event)
        assert fit.rho_ == pytest.approx(best.rho_, rel=2e-3, abs=6e-3)
        assert fit.lambda_ == pytest.approx(best.lambda_, rel=1e-2)

    @pytest.mark.parametrize("kind", ["laplace", "blocks"])
    def test_so_do_the_baselines(self, kind):
        """Where nothing is clipped: the paper knows of no times before the least."""
        time, event = records(400, seed=2)
        best = model("no privacy", omega=20.0).fit(time, event)
        fit = model(kind, epsilon=1e8, omega=20.0).fit(time, event)
        assert fit.rho_ == pytest.approx(best.rho_, rel=1e-5)
        assert fit.lambda_ == pytest.approx(best.lambda_, rel=1e-5)

    @every_private_kind
    def test_noise_falls_with_epsilon(self, kind):
        time, event = records(1000)

        def spread(epsilon):
            fits = [model(kind, epsilon=epsilon, random_state=i) for i in range(12)]
            return np.std([np.log(fit.fit(time, event).rho_) for fit in fits])

        assert 3 * spread(3e3) < spread(0.3)


@pytest.mark.parametrize(("rho", "lambda_"), [(0.5, 3.0), (1.0, 0.7), (1.3, 0.8), (9.0, 40.0)])
class TestFunctions:
    TIMES = (0.0, 1e-9, 0.3, 1.0, 2.5, 39.0, 400.0)

    @pytest.mark.parametrize(
        "name", ["survival_function", "cumulative_density", "cumulative_hazard", "hazard"]
    )
    def test_series_are_those_of_lifelines(self, rho, lambda_, name):
        theirs = WeibullFitter()
        theirs.fit([1.0, 2.0], [True, True])
        theirs.rho_, theirs.lambda_ = rho, lambda_
        theirs._fitted_parameters_ = np.array([lambda_, rho])
        times = [t for t in self.TIMES if t > 0]
        ours, theirs = (
            getattr(one, f"{name}_at_times") for one in (released(rho, lambda_), theirs)
        )
        pd.testing.assert_series_equal(ours(times), theirs(times), rtol=1e-10)
        pd.testing.assert_series_equal(ours(0.3), theirs(0.3), rtol=1e-10)
        assert ours(times, label="mine").name == "mine"

    def test_the_law_is_scipys(self, rho, lambda_):
        law, one = stats.weibull_min(rho, scale=lambda_), released(rho, lambda_)
        times = np.array(self.TIMES)
        survival = one.survival_function_at_times(times)
        np.testing.assert_array_equal(survival.index, times)
        np.testing.assert_allclose(survival, law.sf(times), rtol=1e-10)
        np.testing.assert_allclose(one.cumulative_hazard_at_times(times), -law.logsf(times))
        later = times[1:-1]  # where scipy's survival is not 0
        np.testing.assert_allclose(
            one.hazard_at_times(later), np.exp(law.logpdf(later) - law.logsf(later)), rtol=1e-10
        )
        for p in (1e-12, 0.1, 0.5, 0.9, 1 - 1e-12):
            assert one.percentile(p) == pytest.approx(law.isf(p), rel=1e-10)
        assert one.median_survival_time_ == pytest.approx(law.median())

    def test_hazard_at_zero(self, rho, lambda_):
        expected = math.inf if rho < 1 else (1 / lambda_ if rho == 1 else 0.0)
        assert strictly(released(rho, lambda_).hazard_at_times, 0)[0] == pytest.approx(expected)

    def test_predict_is_survival(self, rho, lambda_):
        one = released(rho, lambda_)
        survival = one.survival_function_at_times(self.TIMES).to_numpy()
        for times in (self.TIMES, list(self.TIMES), np.array(self.TIMES), pd.Series(self.TIMES)):
            np.testing.assert_array_equal(one.predict(times), survival)
        assert isinstance(one.predict(0.3), float)
        assert one.predict(0.3) == survival[2]
        assert one.predict(0) == 1.0
        assert one.predict([]).shape == (0,)

    def test_score_is_the_mean_log_likelihood_of_clipped_times(self, rho, lambda_):
        law = stats.weibull_min(rho, scale=lambda_)
        time, event = records(200, horizon=5.0)
        time[:4], event[:2] = [0.0, 1e-12, 1e-9, 77.0], [True, False]
        least = 5.0 * math.exp(-6)
        clipped, before = np.clip(time, least, 5.0), time < least
        assert 0 < event[before].sum() < before.sum()
        seen = event & (time <= 5.0)
        density = np.where(before, law.logcdf(least), law.logpdf(clipped))
        expected = np.where(seen, density, law.logsf(clipped) / (1 + before)).mean()
        one = released(rho, lambda_, max_time=5.0)
        assert one.score(time, event) == pytest.approx(expected, rel=1e-10)
        assert one.score(None, target(event, time)) == one.score(time, event)
        assert one.score(durations=time, event_observed=event) == one.score(time, event)


class TestFunctionsRefuse:
    @pytest.mark.parametrize(
        "name",
        [
            "predict",
            "survival_function_at_times",
            "cumulative_hazard_at_times",
            "hazard_at_times",
            "survival_band",
        ],
    )
    @pytest.mark.parametrize(
        "times",
        [-1.0, [0.5, -1e-9], [np.nan], [np.inf], ["a"], [None], np.zeros((2, 2, 2)), [1 + 1j]],
    )
    def test_times(self, fitted, name, times):
        with pytest.raises(ValueError, match="times"):
            getattr(fitted, name)(times)

    def test_masked_times(self, fitted):
        """What is under the mask would be used."""
        with pytest.raises(ValueError, match="times must not be a masked array"):
            fitted.predict(np.ma.array([0.5, 0.6], mask=[True, False]))

    @pytest.mark.parametrize("p", [0.0, 1.0, -0.1, 1.1, np.nan])
    def test_values_of_p(self, fitted, p):
        with pytest.raises(ValueError, match="p must be a number in"):
            fitted.percentile(p)

    @pytest.mark.parametrize("p", ["0.5", None, True, [0.5]])
    def test_types_of_p(self, fitted, p):
        with pytest.raises(TypeError, match="p must be a number in"):
            fitted.percentile(p)

    def test_two_dimensional_times_without_columns_in_fit(self, fitted):
        with pytest.raises(ValueError, match="times must be one-dimensional"):
            fitted.predict(np.zeros((3, 2)))

    def test_nothing_works_before_fit(self):
        calls = [
            lambda one: one.predict([0.5]),
            lambda one: one.predict(np.zeros((2, 2))),
            lambda one: one.score([0.5], [True]),
            lambda one: one.percentile(0.5),
            lambda one: one.survival_function_at_times(0.5),
            lambda one: one.cumulative_hazard_at_times(0.5),
            lambda one: one.hazard_at_times(0.5),
            lambda one: one.confidence_interval(),
            lambda one: one.survival_band(0.5),
            lambda one: one.summary,
            lambda one: one.print_summary(),
        ]
        for call in calls:
            with pytest.raises(NotFittedError):
                call(model())

    def test_a_score_of_no_records(self, fitted):
        with pytest.raises(ValueError, match="at least one record"):
            strictly(fitted.score, [], [])


@pytest.mark.parametrize("rho", [1e-5, 1e-3, 1e3])
@pytest.mark.parametrize("lambda_", [1e-190, 1.0, 1e280])
def test_extreme_releases_have_functions(rho, lambda_):
    """Times that no double can hold are infinite, as in lifelines, and no crash."""
    one = released(rho, lambda_)
    times = [0.0, 5e-324, 1e-200, 1.0, 1e200, 1.7e308]
    survival = strictly(one.predict, times)
    assert ((survival >= 0) & (survival <= 1)).all()
    assert (np.diff(survival) <= 0).all()
    assert (strictly(one.cumulative_hazard_at_times, times) >= 0).all()
    assert (strictly(one.hazard_at_times, times) >= 0).all()
    percentiles = [strictly(one.percentile, p) for p in (1e-300, 0.1, 0.5, 0.9)]
    assert all(later >= sooner for later, sooner in itertools.pairwise(percentiles))


class TestSummary:
    """Of fits without privacy, whose intervals are found quickly."""

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, data):
        return model("no privacy").fit(*data)

    def test_columns_are_those_of_lifelines(self, data, fitted):
        theirs = WeibullFitter().fit(*data).summary
        ours = fitted.summary
        assert list(ours.index) == list(theirs.index) == ["lambda_", "rho_"]
        assert list(ours.columns) == ["coef", "coef lower 95%", "coef upper 95%"]
        assert set(ours.columns) <= set(theirs.columns)
        assert ours.loc["lambda_", "coef"] == fitted.lambda_
        assert ours.loc["rho_", "coef"] == fitted.rho_
        interval = fitted.confidence_interval()
        np.testing.assert_array_equal(ours.iloc[:, 1:], interval)

    @pytest.mark.parametrize("decimals", [0, 2, 4])
    def test_print_summary(self, fitted, capsys, decimals):
        fitted.print_summary(decimals)
        text = capsys.readouterr().out
        assert "300 records" in text
        assert "epsilon = inf, status none" in text
        assert f" {fitted.lambda_:.{decimals}f} " in text
        assert f" {fitted.rho_:.{decimals}f} " in text

    def test_print_summary_says_what_was_promised(self, data, capsys):
        model("laplace", epsilon=0.25).fit(*data).print_summary()
        assert "300 records, epsilon = 0.25, status seeded" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------
# Calling conventions
# ------------------------------------------------------------------------------------------------


def structured(events, times, *fields):
    y = np.empty(len(times), dtype=list(fields))
    for name, kind in fields:
        y[name] = events if kind in ("?", "i1") else times
    return y


class TestConventions:
    """Seeded, so that equal records have equal releases."""

    def same(self, data, *args, **options):
        expected = model().fit(*data)
        one = model().fit(*args, **options)
        assert one.release_.values == expected.release_.values
        return one

    def test_lifelines_style(self, data):
        time, event = data
        self.same(data, time, event)
        self.same(data, durations=time, event_observed=event)
        self.same(data, time, event_observed=event)
        self.same(data, X=time, y=event)

    def test_all_observed_if_there_are_no_events(self, data):
        time, seen = data[0], np.ones(300, dtype=bool)
        for args, options in (
            ((time,), {}),
            ((), {"durations": time}),
            ((None, time), {}),
            ((np.zeros((300, 2)), time), {}),
            ((pd.DataFrame({"a": ["x"] * 300}), pd.Series(time, name="days")), {}),
            ((sparse.csr_matrix((300, 4)), list(time)), {}),
        ):
            self.same((time, seen), *args, **options)

    def test_containers(self, data):
        time, event = data
        frame = pd.DataFrame({"t": time, "e": event}, index=[f"id{i}" for i in range(300)])
        for durations in (
            list(time),
            tuple(time),
            frame["t"],
            frame.t.astype("Float64"),
            time[:, None][:, 0],
            np.repeat(time, 2)[::2],
        ):
            for events in (list(event), frame["e"], frame.e.astype("boolean"), event.astype(int)):
                self.same(data, durations, events)
                self.same(data, durations=durations, event_observed=events)

    @pytest.mark.parametrize("kind", ["i1", "u1", "i8", "f4", "f8", "?"])
    def test_event_types(self, data, kind):
        self.same(data, data[0], data[1].astype(kind))

    @pytest.mark.parametrize("kind", ["i2", "u8", "i8", "f4", "f8", ">f8"])
    def test_time_types(self, data, kind):
        days = np.floor(365 * data[0])
        one = model(max_time=365.0).fit(days.astype(kind), data[1])
        assert one.release_ == model(max_time=365.0).fit(days, data[1]).release_

    @pytest.mark.parametrize(
        "fields",
        [
            [("event", "?"), ("time", "f8")],
            [("Überlebt? (j/n)", "?"), ("t in Monaten", "f8")],
            [("weeks", "f8"), ("relapse", "?")],
            [("status", "i1"), ("futime", "f8")],
            [("0", "?"), ("1", "f8")],
        ],
    )
    def test_structured_y_under_any_names(self, data, fields):
        time, event = data
        y = structured(event, time, *fields)
        self.same(data, None, y)
        self.same(data, np.zeros((300, 1)), y)
        self.same(data, y=y)

    def test_structured_y_as_a_record_array(self, data):
        self.same(data, None, target(data[1], data[0]).view(np.recarray))

    @pytest.mark.parametrize(
        "X",
        [
            np.full((300, 3), np.nan),
            np.full((300, 3), np.inf),
            np.full((300, 2), "text"),
            np.full((300, 2), None),
            [["a", 1.0]] * 300,
            pd.DataFrame(
                {
                    "text": ["x"] * 300,
                    "day": pd.date_range("2020-01-01", periods=300),
                    "group": pd.Categorical(["u"] * 300),
                    "number": pd.Series([None] * 300, dtype="Int64"),
                }
            ),
            sparse.csr_matrix((300, 5)),
            sparse.csc_array((300, 5)),
            sparse.coo_array(np.eye(300)),
            np.ma.masked_all((300, 2)),
            np.linspace(0, 1, 300),
            pd.Series(["s"] * 300),
            ["s"] * 300,
            None,
        ],
        ids=lambda X: type(X).__name__,
    )
    def test_x_is_not_used_beside_a_structured_y(self, data, X):
        """Whatever is in it, and whatever its dimension."""
        one = self.same(data, X, target(data[1], data[0]))
        wide = X is not None and np.ndim(X) == 2
        assert one.n_features_in_ == (np.shape(X)[1] if wide else 0)

    def test_names_of_columns_are_noted(self, data):
        frame = pd.DataFrame({"age": ["x"] * 300, "dose": 1})
        one = self.same(data, frame, target(data[1], data[0]))
        assert list(one.feature_names_in_) == ["age", "dose"]
        assert one.release_.feature_names_in == ("age", "dose")
        np.testing.assert_array_equal(one.predict(frame[:7]), np.zeros(7))

    def test_input_is_not_changed(self, data):
        time, event = data[0].copy(), data[1].copy()
        time[:2] = 0.0, 9.0
        y = target(event, time)
        before = time.copy(), event.copy(), y.copy()
        for kind in KINDS:
            model(kind).fit(time, event).score(time, event)
            model(kind).fit(None, y)
        for now, then in zip((time, event, y), before, strict=True):
            np.testing.assert_array_equal(now, then)

    def test_read_only_input(self, data):
        time, event = data[0].copy(), data[1].copy()
        time.setflags(write=False)
        event.setflags(write=False)
        self.same(data, time, event)


class TestRefitting:
    """A second fit is as if there had been no first."""

    def test_of_other_columns(self, data):
        y = target(data[1], data[0])
        one = model().fit(pd.DataFrame(np.zeros((300, 2)), columns=["a", "b"]), y)
        one.fit(np.zeros((300, 5)), y)
        assert one.n_features_in_ == 5
        assert one.release_ == model().fit(np.zeros((300, 5)), y).release_

    def test_without_columns(self, data):
        one = model().fit(
            pd.DataFrame(np.zeros((300, 2)), columns=["a", "b"]), target(data[1], data[0])
        )
        one.fit(*data)
        assert not hasattr(one, "feature_names_in_")
        assert one.n_features_in_ == 0
        assert one.release_ == model().fit(*data).release_


# ------------------------------------------------------------------------------------------------
# The public domain
# ------------------------------------------------------------------------------------------------


class TestDomain:
    @every_private_kind
    def test_small_times_are_raised_to_the_smallest(self, data, kind):
        """Zero among them; their events stay what they were."""
        time, event = data[0].copy(), data[1]
        fits = []
        for value in (0.0, 5e-324, 1e-300, math.exp(-6.5), 0.9999 * math.exp(-6.0)):
            time[:20] = value
            fits.append(model(kind, omega=6.0).fit(time, event))
        for fit in fits[1:]:
            assert fit.rho_ == pytest.approx(fits[0].rho_, rel=1e-12)
            assert fit.lambda_ == pytest.approx(fits[0].lambda_, rel=1e-12)
        time[:20] = 2 * math.exp(-6.0)
        assert model(kind, omega=6.0).fit(time, event).release_ != fits[0].release_

    @every_kind
    def test_later_times_are_censored_at_the_horizon(self, data, kind):
        time, event = 2 * data[0], data[1]
        assert (time > 1).sum() > 50
        cut = np.minimum(time, 1.0), event & (time <= 1.0)
        assert model(kind).fit(time, event).release_ == model(kind).fit(*cut).release_

    def test_an_event_at_the_horizon_is_one(self):
        time = np.full(50, 0.5)
        time[:25] = 1.0
        seen = model("no privacy").fit(time, np.ones(50, dtype=bool))
        assert seen.release_.values["n_events"] == 50
        time[:25] = np.nextafter(1.0, 2.0)
        assert model("no privacy").fit(time).release_.values["n_events"] == 25

    @every_kind
    def test_the_unit_of_time_is_free(self, data, kind):
        time, event = data
        one = model(kind).fit(time, event)
        other = model(kind, max_time=1024.0).fit(1024.0 * time, event)
        assert other.rho_ == one.rho_
        assert other.lambda_ == pytest.approx(1024.0 * one.lambda_, rel=1e-12)

    @pytest.mark.parametrize("kind", LADDERS)
    def test_order_of_records_does_not_matter(self, data, kind):
        order = np.random.default_rng(0).permutation(300)
        shuffled = data[0][order], data[1][order]
        assert model(kind).fit(*shuffled).release_ == model(kind).fit(*data).release_

    @every_kind
    @pytest.mark.parametrize("rows", [1, 37, 299])
    def test_blocks_do_not_change_the_release(self, data, monkeypatch, kind, rows):
        whole = model(kind).fit(*data).release_
        monkeypatch.setattr(blocks, "BLOCK_ROWS", rows)
        assert model(kind).fit(*data).release_ == whole


AWKWARD = {
    "one event": ([0.5], [True]),
    "one censored": ([0.5], [False]),
    "one at zero": ([0.0], [True]),
    "two": ([0.2, 0.9], [True, False]),
    "no events": (np.linspace(0, 1, 60), np.zeros(60, dtype=bool)),
    "only events": (np.linspace(0, 1, 60), np.ones(60, dtype=bool)),
    "one of many": (np.linspace(0, 1, 60), np.arange(60) == 30),
    "events at zero": (np.zeros(60), np.ones(60, dtype=bool)),
    "censored at zero": (np.zeros(60), np.zeros(60, dtype=bool)),
    "events at the horizon": (np.ones(60), np.ones(60, dtype=bool)),
    "all beyond": (np.full(60, 7.0), np.ones(60, dtype=bool)),
    "all at once": (np.full(60, 0.37), np.ones(60, dtype=bool)),
    "the largest doubles": (np.full(60, 1.7e308), np.ones(60, dtype=bool)),
    "the smallest doubles": (np.full(60, 5e-324), np.ones(60, dtype=bool)),
    "negative zeros": (np.full(60, -0.0), np.ones(60, dtype=bool)),
    "only ends": (np.repeat([0.0, 1.0], 30), np.ones(60, dtype=bool)),
}


@pytest.mark.parametrize(("kind", "case"), thinned(KINDS, AWKWARD))
def test_every_data_set_gets_a_release(kind, case):
    """What depends on records must neither raise nor warn: that would tell about them."""
    for epsilon in [np.inf] if kind == "no privacy" else [1e-9, 1.0, 1e9]:
        accountant = PrivacyAccountant(rehearsal=True)
        one = model(kind, epsilon=epsilon, accountant=accountant)
        strictly(one.fit, *AWKWARD[case])
        assert accountant.rehearsed() == epsilon
        assert 0 < one.rho_ <= 10.0
        assert 0 < one.lambda_ < math.inf
        assert Release.from_json(one.release_.to_json()) == one.release_
        survival = strictly(one.predict, [0.0, 0.5, 1.0, 100.0])
        assert ((survival >= 0) & (survival <= 1)).all()
        assert strictly(one.score, *AWKWARD[case]) < math.inf


# ------------------------------------------------------------------------------------------------
# Refusals
# ------------------------------------------------------------------------------------------------


class Untouchable:
    """Raises on any access: stands for records that must not be read."""

    def __getattribute__(self, name):
        raise AssertionError(f"a record was read: {name}")


#: Times or events of which nothing but their number can be looked at without a refusal.
UNREADABLE = np.full(6, np.nan)

BAD_PARAMETERS = [
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": np.nan}, "epsilon"),
    ({"epsilon": 1e-10}, "epsilon"),
    ({"epsilon": 1e10}, "epsilon"),
    ({"max_time": None}, "max_time"),
    ({"max_time": 0.0}, "max_time"),
    ({"max_time": -5.0}, "max_time"),
    ({"max_time": np.inf}, "max_time"),
    ({"max_time": np.nan}, "max_time"),
    ({"max_time": 1e-151}, "max_time"),
    ({"max_time": 1e151}, "max_time"),
    ({"omega": 0.0}, "omega"),
    ({"omega": -6.0}, "omega"),
    ({"omega": np.inf}, "omega"),
    ({"omega": np.nan}, "omega"),
    ({"omega": 1e-4}, "omega"),
    ({"omega": 101.0}, "omega"),
    ({"max_shape": 0.0}, "max_shape"),
    ({"max_shape": -1.0}, "max_shape"),
    ({"max_shape": np.inf}, "max_shape"),
    ({"max_shape": 1e-4}, "max_shape"),
    ({"max_shape": 1e4}, "max_shape"),
    ({"shape_fraction": 0.0}, "shape_fraction"),
    ({"shape_fraction": 1.0}, "shape_fraction"),
    ({"shape_fraction": -0.5}, "shape_fraction"),
    ({"shape_fraction": 1e-4}, "shape_fraction"),
    ({"shape_fraction": 0.9999}, "shape_fraction"),
    ({"shape_fraction": np.nan}, "shape_fraction"),
    ({"shape_fraction": "half"}, "shape_fraction"),
    ({"random_state": -1}, "random_state"),
]
BAD_TYPES = [
    ({"epsilon": "1"}, "epsilon"),
    ({"epsilon": True}, "epsilon"),
    ({"epsilon": None}, "epsilon"),
    ({"max_time": "5"}, "max_time"),
    ({"max_time": [5.0]}, "max_time"),
    ({"omega": None}, "omega"),
    ({"max_shape": "10"}, "max_shape"),
    ({"shape_fraction": None}, "shape_fraction"),
    ({"shape_fraction": True}, "shape_fraction"),
    ({"random_state": np.random.RandomState(0)}, "random_state"),
    ({"random_state": 0.5}, "random_state"),
    ({"accountant": 10.0}, "accountant"),
]

TIME, EVENT = np.linspace(0.1, 0.9, 6), np.array([True, False] * 3)
GOOD_X, GOOD_Y = np.zeros((6, 2)), target(EVENT, TIME)


def with_value(array, value):
    array = np.array(array, dtype=np.result_type(np.asarray(array), type(value)))
    array[2] = value
    return array


def y_with_time(value):
    y = GOOD_Y.copy()
    y["time"][2] = value
    return y


#: Arguments of fit -> what the message must say.
BAD_DATA = [
    # Times.
    ((with_value(TIME, -0.1), EVENT), "durations must be finite and not negative"),
    ((with_value(TIME, -5e-324), EVENT), "durations must be finite and not negative"),
    ((with_value(TIME, np.nan), EVENT), "durations must be finite and not negative"),
    ((with_value(TIME, np.inf), EVENT), "durations must be finite and not negative"),
    ((with_value(TIME, -np.inf), EVENT), "durations must be finite and not negative"),
    ((np.array(["0.5"] * 6), EVENT), "durations must be numbers"),
    ((TIME.astype(object), EVENT), "durations must be numbers"),
    ((TIME.astype(complex), EVENT), "durations must be numbers"),
    ((np.array([-1] * 6, "timedelta64[s]"), EVENT), "durations must be finite and not negative"),
    ((np.array([1, "NaT"] * 3, "timedelta64[s]"), EVENT), "durations must be finite"),
    ((TIME > 0.5, EVENT), "durations must be numbers"),
    (([0.5, None], [True, True]), "durations must be numbers"),
    (([0.5, [0.25]], [True, True]), "durations must be a list of numbers"),
    ((0.5, True), "durations must be 1-D"),
    ((np.zeros((6, 2, 2)), EVENT), "durations must be 1-D"),
    (([], []), "durations must hold at least one record"),
    ((None, GOOD_Y[:0]), "at least one record"),
    ((np.ma.array(TIME), EVENT), "durations must not be a masked array"),
    ((np.ma.array(TIME, mask=TIME > 0.5), EVENT), "durations must not be a masked array"),
    ((None, y_with_time(-1.0)), "times of y must be finite and not negative"),
    ((GOOD_X, y_with_time(np.nan)), "times of y must be finite and not negative"),
    ((GOOD_X, y_with_time(np.inf)), "times of y must be finite and not negative"),
    ((GOOD_X, with_value(TIME, -1.0)), "times of y must be finite and not negative"),
    # Events.
    ((TIME, with_value(EVENT * 1, 2)), "event_observed must be boolean, or 0 and 1"),
    ((TIME, with_value(EVENT * 1, -1)), "event_observed must be boolean, or 0 and 1"),
    ((TIME, with_value(EVENT * 1.0, 0.5)), "event_observed must be boolean, or 0 and 1"),
    ((TIME, with_value(EVENT * 1.0, np.nan)), "event_observed must be boolean, or 0 and 1"),
    ((TIME, EVENT.astype(str)), "event_observed must be boolean, or 0 and 1"),
    ((TIME, with_value(EVENT.astype(object), None)), "event_observed must be boolean"),
    ((TIME, with_value(EVENT.astype(object), 1)), "event_observed must be boolean"),
    ((TIME, pd.Series([None, *EVENT[1:]], dtype="boolean")), "event_observed must be boolean"),
    ((TIME, EVENT[:, None]), "event_observed must be 1-D"),
    ((TIME, True), "event_observed must be 1-D"),
    ((TIME[:2], [True, [False]]), "event_observed"),
    ((TIME, np.ma.array(EVENT)), "event_observed must not be a masked array"),
    ((TIME, EVENT[:5]), "durations and event_observed must have the same length"),
    ((TIME[:5], EVENT), "durations and event_observed must have the same length"),
    ((None, structured([2.0] * 6, TIME, ("e", "f8"), ("t", "f8"))), "event field of y"),
    # The target.
    ((), "y or durations must be given"),
    ((GOOD_X, None), "y or durations must be given"),
    ((GOOD_X, GOOD_Y[:, None]), "y must be 1-D"),
    ((GOOD_X, TIME[:, None]), "y must be 1-D"),
    ((GOOD_X, pd.DataFrame({"e": EVENT, "t": TIME, "x": TIME})), "y must be 1-D"),
    ((GOOD_X, EVENT), "times of y must be numbers"),
    ((GOOD_X, np.zeros(6, dtype=[("t", "f8")])), "two fields"),
    ((GOOD_X, np.zeros(6, dtype=[("a", "?"), ("b", "f8"), ("c", "f8")])), "two fields"),
    ((GOOD_X, np.zeros(6, dtype=[("a", "?"), ("b", "f8", 2)])), "y must be 1-D"),
    ((GOOD_X, np.zeros(6, dtype=[("a", "?"), ("b", "U3")])), "times of y must be numbers"),
    ((GOOD_X, np.ma.array(GOOD_Y)), "y must not be a masked array"),
    ((GOOD_X, np.ma.array(TIME)), "y must not be a masked array"),
    # X, which is only counted.
    ((GOOD_X[:5], GOOD_Y), "X and y must have the same number of records"),
    ((sparse.csr_matrix((5, 2)), GOOD_Y), "X and y must have the same number of records"),
    ((["a"] * 5, GOOD_Y), "X and y must have the same number of records"),
    ((GOOD_X[:, :0], GOOD_Y), "0 feature"),
    (([[0.5], [0.25, 0.125]], [True, True]), "times of y must be numbers"),
    ((GOOD_X[:2], [0.5, [0.25]]), "y"),
]
#: Keyword arguments of fit -> what the message must say.
BAD_COMBINATIONS = [
    ({"X": GOOD_X, "durations": TIME}, "durations must be given instead of X and y"),
    ({"y": GOOD_Y, "durations": TIME}, "durations must be given instead of X and y"),
    ({"X": TIME, "durations": TIME}, "durations must be given instead of X and y"),
    ({"event_observed": EVENT}, "event_observed must be given with durations"),
    ({"y": GOOD_Y, "event_observed": EVENT}, "event_observed must be given with durations"),
    ({"X": GOOD_X, "y": TIME, "event_observed": EVENT}, "event_observed must be given with"),
    ({"X": TIME, "y": EVENT, "event_observed": EVENT}, "event_observed must not be given twice"),
]


class TestRefusals:
    """A refused input costs nothing and leaves nothing, and the message shows no record."""

    def check(self, args, options, parameters, error, message):
        accountant = PrivacyAccountant(10.0, rehearsal=True)
        one = model(**{"accountant": accountant, **parameters})
        with pytest.raises(error, match=message) as caught:
            strictly(one.fit, *args, **options)
        assert len(accountant.entries()) == 0
        assert len(accountant.entries()) == 0
        for name in ("release_", "guarantee_", "rho_", "lambda_"):
            assert not hasattr(one, name)
        return str(caught.value)

    def test_the_good_input_is_good(self):
        for args in ((TIME, EVENT), (GOOD_X, GOOD_Y)):
            accountant = PrivacyAccountant(10.0, rehearsal=True)
            model(accountant=accountant).fit(*args)
            assert accountant.rehearsed() == 1.0

    @pytest.mark.parametrize(("parameters", "name"), BAD_PARAMETERS)
    def test_values_of_parameters(self, parameters, name):
        text = self.check((TIME, EVENT), {}, parameters, ValueError, name)
        assert text.startswith(f"{name} must be ")

    @pytest.mark.parametrize(("parameters", "name"), BAD_TYPES)
    def test_types_of_parameters(self, parameters, name):
        text = self.check((TIME, EVENT), {}, parameters, TypeError, name)
        assert text.startswith(f"{name} must be ")

    @pytest.mark.parametrize("parameters", [p for p, _ in BAD_PARAMETERS + BAD_TYPES])
    def test_parameters_are_refused_before_any_record_is_read(self, parameters):
        with pytest.raises((ValueError, TypeError)):
            model(**parameters).fit(Untouchable(), Untouchable())

    @pytest.mark.parametrize(("args", "message"), BAD_DATA)
    def test_data(self, args, message):
        self.check(args, {}, {}, ValueError, message)

    @pytest.mark.parametrize(("args", "message"), BAD_DATA)
    def test_data_in_score(self, fitted, args, message):
        if "feature" in message:
            return  # columns are only seen if there were some in fit
        with pytest.raises(ValueError, match=message):
            strictly(fitted.score, *args)

    @pytest.mark.parametrize(("options", "message"), BAD_COMBINATIONS)
    def test_combinations(self, fitted, options, message):
        self.check((), options, {}, ValueError, message)
        with pytest.raises(ValueError, match=message):
            fitted.score(**options)

    def test_messages_show_no_value_of_a_record(self):
        secret = 0.73123456
        text = f"{secret}x"
        time = np.full(6, secret)
        for args in (
            (with_value(time, -secret), EVENT),
            (with_value(time, np.nan), EVENT),
            (time.astype(complex), EVENT),
            (np.full(6, text), EVENT),
            (np.full(6, text, dtype=object), EVENT),
            ([secret, [secret]], EVENT[:2]),
            ([secret, text], EVENT[:2]),
            (time, time),
            (time, np.full(6, text)),
            (time, EVENT[:5]),
            (None, np.full(6, text)),
            (None, target(EVENT, -time)),
            (None, structured(time, time, ("e", "f8"), ("t", "f8"))),
            (None, np.column_stack([EVENT, time])),
            ([[secret], [secret, secret]], EVENT[:2]),
            (np.full((6, 2), secret + 1j), GOOD_Y),
            (np.full((5, 2), text), GOOD_Y),
        ):
            message = self.check(args, {}, {}, ValueError, r"X|y|durations|event_observed")
            assert "7312" not in message

    def test_the_cause_shows_none_either(self):
        """What is chained to an error is printed with it."""
        for args in (
            ([0.73123456, [0.73123456]], [True, True]),
            (np.full((6, 2), 0.73123456 + 1j), GOOD_Y),
        ):
            with pytest.raises(ValueError, match=r"X|durations") as caught:
                model().fit(*args)
            error = caught.value
            while error is not None:
                assert "7312" not in str(error)
                error = error.__cause__ or error.__context__

    def test_a_refused_refit_leaves_the_release(self, data):
        one = model().fit(*data)
        before = one.release_
        with pytest.raises(ValueError, match="durations"):
            one.fit([-1.0], [True])
        assert one.release_ is before
        assert one.predict(0.5) == model().fit(*data).predict(0.5)


# ------------------------------------------------------------------------------------------------
# Extreme public numbers
# ------------------------------------------------------------------------------------------------

EXTREMES = [
    {"max_time": 1e-100},
    {"max_time": 1e100},
    {"max_time": 1e-150, "omega": 100.0},
    {"max_time": 1e150, "max_shape": 1e-3},
    {"omega": 0.01},
    {"omega": 1e-3},
    {"omega": 100.0},
    {"max_shape": 0.01},
    {"max_shape": 1e-3},
    {"max_shape": 1000.0},
    {"max_shape": 1000.0, "omega": 100.0},
    {"max_shape": 1e-3, "omega": 1e-3},
    {"shape_fraction": 0.001},
    {"shape_fraction": 0.999},
]


@pytest.mark.parametrize(("kind", "parameters"), thinned(KINDS, EXTREMES), ids=str)
def test_extreme_numbers_give_a_release(kind, parameters):
    """Finite, or refused before the charge: not as an overflow somewhere after it."""
    horizon = parameters.get("max_time", 1.0)
    inside = np.linspace(0.0, 1.0, 40) * horizon
    epsilons = [np.inf] if kind == "no privacy" else [1.0, 1e9]
    cases = [
        (np.zeros(40), np.zeros(40, dtype=bool)),
        (inside, np.arange(40) % 2 == 0),
        (np.full(40, 1.7e308), np.ones(40, dtype=bool)),
        (np.zeros(40), np.ones(40, dtype=bool)),
        (np.repeat(inside, 10), np.zeros(400, dtype=bool)),
        (np.repeat(inside, 10), np.ones(400, dtype=bool)),
        (np.full(1, horizon / 2), np.ones(1, dtype=bool)),
    ]
    for epsilon in epsilons:
        for time, event in cases:
            accountant = PrivacyAccountant(rehearsal=True)
            one = model(kind, epsilon=epsilon, accountant=accountant, **parameters)
            strictly(one.fit, time, event)
            assert accountant.rehearsed() == epsilon
            assert 0 < one.rho_ <= parameters.get("max_shape", 10.0)
            assert 0 < one.lambda_ < math.inf
            assert not np.isnan(strictly(one.predict, [0.0, horizon / 2, 1e308])).any()
            assert not math.isnan(strictly(one.score, time, event))


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": np.float32(1.0)},
        {"max_time": np.float32(1.0)},
        {"max_time": np.int64(1)},
        {"max_time": 1},
        {"omega": np.float32(6.0)},
        {"omega": np.int64(6)},
        {"max_shape": np.int32(10)},
        {"max_shape": np.float64(10.0)},
        {"shape_fraction": np.float32(0.5)},
        {"random_state": np.int64(0)},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["tight", "laplace", "no privacy"])
def test_numpy_numbers_are_numbers(data, kind, parameters):
    """To the fit, to the release's JSON, and without a warning."""
    one = strictly(model(kind, **parameters).fit, *data)
    plain = {name: value.item() for name, value in parameters.items() if hasattr(value, "item")}
    assert one.release_ == model(kind, **{**parameters, **plain}).fit(*data).release_
    again = type(one).from_release(Release.from_json(one.release_.to_json()))
    assert again.rho_ == one.rho_
    for name, value in parameters.items():
        assert getattr(one, name) is value


# ------------------------------------------------------------------------------------------------
# Budget and status
# ------------------------------------------------------------------------------------------------


class TestBudget:
    """Parameters, budget, data, charge, mechanism: in this order."""

    def test_parameters_come_before_the_budget(self):
        spent = PrivacyAccountant(0.5, rehearsal=True)
        with pytest.raises(ValueError, match="omega"):
            model(omega=-1.0, accountant=spent).fit(Untouchable(), Untouchable())

    def test_the_budget_comes_before_the_data(self):
        accountant = PrivacyAccountant(1.0, rehearsal=True)
        one = model(epsilon=0.8, accountant=accountant)
        one.fit(TIME, EVENT)
        for args, options in (
            ((UNREADABLE, UNREADABLE), {}),
            ((), {"durations": UNREADABLE, "event_observed": UNREADABLE}),
            (([-1.0], [7]), {}),
        ):
            with pytest.raises(BudgetExceededError):
                one.fit(*args, **options)
        assert accountant.rehearsed() == pytest.approx(0.8)

    def test_the_stand_in_cannot_be_read(self):
        """Else the test above would test nothing."""
        for args in ((UNREADABLE, None), (None, UNREADABLE), (np.ones(6), UNREADABLE)):
            with pytest.raises(ValueError, match=r"finite|0 and 1"):
                model().fit(*args)

    def test_the_data_come_before_the_charge(self):
        accountant = PrivacyAccountant(1.0, rehearsal=True)
        with pytest.raises(ValueError, match="durations"):
            model(accountant=accountant).fit([-1.0], [True])
        assert len(accountant.entries()) == 0

    @every_kind
    def test_the_charge_comes_before_the_mechanism(self, monkeypatch, kind):
        accountant = PrivacyAccountant(rehearsal=True)
        one = model(kind, accountant=accountant)

        def fail(*args, **kwargs):
            assert accountant.rehearsed() == one.epsilon
            raise MemoryError

        monkeypatch.setattr(Plan, "run", fail)
        with pytest.raises(MemoryError):
            one.fit(TIME, EVENT)
        assert accountant.rehearsed() == one.epsilon
        assert not hasattr(one, "release_")

    def test_what_is_free(self, data):
        """All that is computed from the release."""
        accountant = PrivacyAccountant(1.0, rehearsal=True)
        one = model(accountant=accountant).fit(*data)
        one.predict([0.5])
        one.percentile(0.5)
        one.confidence_interval(n_resamples=3)
        one.survival_band([0.5], n_resamples=3)
        one.score(*data)
        assert accountant.rehearsed() == 1.0
        assert len(accountant.entries()) == 1

    @every_private_kind
    @pytest.mark.parametrize("shape_fraction", ["auto", 0.001, 0.999])
    @pytest.mark.parametrize("event_rate", [0.0, 0.4, 1.0])
    def test_the_parts_of_epsilon_add_up(self, monkeypatch, kind, shape_fraction, event_rate):
        """What noise and ladder are given, whatever was released before."""
        parts, sensitivities = [], []
        laplace, ladder = sums.lattice_laplace, weibull_plan.draw_cell

        def noise(value, scale, source):
            parts.append(sensitivities.pop(0) / scale)
            return laplace(value, scale, source)

        def draw(rungs, epsilon, *args):
            parts.append(epsilon)
            return ladder(rungs, epsilon, *args)

        one = 2.0**30
        sensitivities += {
            "tight": [1.0, one, weibull_counts.N_BINS + weibull_counts.BEFORE_BINS, one],
            "exact": [1.0, one],
            "published": [1.0, one],
            "laplace": [10 * one, 10 * one],
            "blocks": [10 * one, 10 * one],
        }[kind]
        monkeypatch.setattr(sums, "lattice_laplace", noise)
        monkeypatch.setattr(weibull_plan, "draw_cell", draw)
        time = np.linspace(0.01, 1, 200)
        model(kind, epsilon=2.0, shape_fraction=shape_fraction).fit(
            time, np.arange(200) < 200 * event_rate
        )
        assert sensitivities == []
        assert len(parts) == {"tight": 5, "exact": 3, "published": 3}.get(kind, 2)
        assert min(parts) > 0
        assert math.fsum(parts) <= 2.0
        assert sum(parts) == pytest.approx(2.0, rel=1e-11)

    @pytest.mark.parametrize("shape_fraction", ["auto", 0.001, 0.3, 0.9])
    def test_so_they_do_with_a_correction(self, monkeypatch, shape_fraction):
        """Which many events get: two more sums."""
        parts = []

        def spy(owner, name, price_of):
            original = getattr(owner, name)

            def told(*args):
                parts.append(price_of(*args))
                return original(*args)

            monkeypatch.setattr(owner, name, told)

        spy(NoisySum, "run", lambda measurement, *_: measurement.price)
        spy(weibull_plan, "draw_cell", lambda rungs, epsilon, *_: epsilon)
        time = np.linspace(0.01, 1, 3000)
        model(epsilon=2.0, shape_fraction=shape_fraction).fit(time, np.ones(3000, dtype=bool))
        assert len(parts) == 7
        assert min(parts) > 0
        assert math.fsum(parts) <= 2.0
        assert sum(parts) == pytest.approx(2.0, rel=1e-11)


class TestStatus:
    def test_seeded_is_reproducible_and_warns_once(self, data):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one = model(random_state=5).fit(*data)
        assert [w.category for w in caught] == [PrivacyLeakWarning]
        assert caught[0].filename == __file__
        assert one.guarantee_.status == "seeded"
        assert one.release_ == model(random_state=5).fit(*data).release_
        assert one.release_ != model(random_state=6).fit(*data).release_

    def test_numpys_global_state_has_no_part(self, data):
        fits = []
        for seed in (1, 2):
            np.random.seed(seed)  # noqa: NPY002
            fits.append(model(kind="published").fit(*data).release_)
        assert fits[0] == fits[1]

    @every_private_kind
    def test_guarantee_lists_what_it_takes_as_public(self, data, kind):
        rungs = {"n_rungs": 7} if kind in ("exact", "published") else {}
        guarantee = model(kind, **rungs).fit(*data).guarantee_
        assert (guarantee.epsilon, guarantee.delta) == (1.0, 0.0)
        assert guarantee.neighbours == "replace-one"
        assert dict(guarantee.public_inputs) == {
            "n_records": 300,
            "max_time": 1.0,
            "omega": 5.0,
            "max_shape": 10.0,
            "shape_fraction": "auto",
            **rungs,
            **({"left_censored": True} if kind in ("tight", "exact") else {}),
        }
        assert any("max_time" in assumption for assumption in guarantee.assumptions)

    def test_every_kind_names_its_own_mechanism(self, data):
        names = {model(kind).fit(*data).guarantee_.mechanism for kind in KINDS}
        assert len(names) == len(KINDS)


# ------------------------------------------------------------------------------------------------
# What leaves
# ------------------------------------------------------------------------------------------------


@pytest.fixture
def intervals_asked(monkeypatch):
    """Arguments of the simulation behind intervals, which is not run."""
    calls = []

    def plausible(*args):
        calls.append(args)
        return np.zeros((3, 2))

    monkeypatch.setattr("skdpsurv.survival.weibull.fitter.plausible_estimates", plausible)
    return calls


def neighbours():
    """Two data sets that differ in one record as much as records can."""
    time, event = records(120)
    pair = []
    for one in ((0.0, True), (99.0, False)):
        t, e = time.copy(), event.copy()
        t[3], e[3] = one
        pair.append((t, e))
    return pair


class TestWhatLeaves:
    @every_kind
    def test_nothing_but_the_estimate_leaves(self, monkeypatch, intervals_asked, kind):
        """If the mechanism releases the same for both, nothing tells them apart."""
        honest = Plan.run

        def release_a_constant(*args):
            return dict.fromkeys(honest(*args), 60) | {"shape": 1.25, "log_scale": -0.5}

        monkeypatch.setattr(Plan, "run", release_a_constant)
        one, other = (model(kind).fit(*pair) for pair in neighbours())
        assert pickle.dumps(one) == pickle.dumps(other)
        assert repr(sorted(vars(one).items())) == repr(sorted(vars(other).items()))
        assert repr(one) == repr(other)
        assert one.release_ == other.release_
        assert [repr(one.release_), repr(one.guarantee_)] == [
            repr(other.release_),
            repr(other.guarantee_),
        ]
        assert html_of(one) == html_of(other)
        del intervals_asked[:]
        for fit in (one, other):
            fit.confidence_interval(n_resamples=3)
        assert intervals_asked[0] == intervals_asked[1]

    @every_kind
    def test_a_release_rebuilds_the_model(self, data, kind):
        rungs = {"n_rungs": 50} if kind == "published" else {}
        one = model(kind, max_time=3.0, omega=5.0, max_shape=8.0, shape_fraction=0.4, **rungs)
        one.fit(np.zeros((300, 2)), target(data[1], 3 * data[0]))
        text = one.release_.to_json()
        two = type(one).from_release(Release.from_json(text))
        times = np.linspace(0, 9, 20)
        np.testing.assert_array_equal(one.predict(times), two.predict(times))
        for name in ("survival_function", "cumulative_hazard", "hazard"):
            pd.testing.assert_series_equal(
                getattr(one, f"{name}_at_times")(times), getattr(two, f"{name}_at_times")(times)
            )
        assert one.percentile(0.2) == two.percentile(0.2)
        assert one.median_survival_time_ == two.median_survival_time_
        assert one.score(3 * data[0], data[1]) == two.score(3 * data[0], data[1])
        np.testing.assert_array_equal(one.predict(np.ones((4, 2))), two.predict(np.ones((4, 2))))
        assert two.guarantee_ == one.guarantee_
        assert two.release_ == one.release_
        assert two.release_.to_json() == text
        n = 2 if kind == "published" else 10
        pd.testing.assert_frame_equal(
            one.confidence_interval(n_resamples=n), two.confidence_interval(n_resamples=n)
        )
        if kind in ("laplace", "no privacy"):  # the others take longer for the same code
            pd.testing.assert_frame_equal(one.summary, two.summary)

    def test_a_release_of_another_estimator_is_refused(self):
        release = Release("Other", PrivacyGuarantee(1.0), {}, {"coef": [1.0]}, 1)
        with pytest.raises(ValueError, match="must come from a DPWeibullFitter"):
            DPWeibullFitter.from_release(release)

    def test_a_release_with_an_unknown_parameter_is_refused(self):
        for parameter in ("surprise", "random_state", "accountant"):
            with pytest.raises(ValueError, match="parameters of the release must be among"):
                released(1.0, 1.0, **{parameter: None})

    @pytest.mark.parametrize("bad", [{"omega": -1.0}, {"max_shape": 1e9}, {"max_time": None}])
    def test_a_release_whose_parameters_break_a_rule_is_refused(self, bad):
        with pytest.raises(ValueError, match=next(iter(bad))):
            released(1.0, 1.0, **bad)

    @pytest.mark.parametrize(("scale", "shape"), [(-1.0, 1.0), (1.0, 0.0), ([1.0], 1.0)])
    def test_a_release_without_a_distribution_is_refused(self, scale, shape):
        with pytest.raises(ValueError, match="rho and lambda, positive"):
            released(scale, shape)

    def test_html_simulates_nothing(self, fitted, intervals_asked):
        """A notebook shows it after each fit, and looks at every property for it."""
        html_of(fitted)
        assert intervals_asked == []


def html_of(estimator):
    """The HTML of an estimator without the ids that count how many were shown."""
    text = estimator._repr_html_()
    for part in text.split('id="')[1:]:
        text = text.replace(part.split('"')[0], "")
    return text
