"""Private curves of everybody and of groups: lifelines' without noise, and what noise leaves."""

import itertools
import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lifelines import KaplanMeierFitter
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant
from skdpsurv.cli.printing import result_lines
from skdpsurv.report.curves import curves
from skdpsurv.survival.curves import life_table
from tests.support import faults
from tests.support.checks import check_texts
from tests.support.combinations import thinned
from tests.support.refusing import refused

N = 3000


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    old = rng.random(N) < 0.4
    time = rng.weibull(1.3, N) * np.where(old, 3.0, 6.0)
    end = rng.uniform(0.5, 12.0, N)
    return np.minimum(time, end), time <= end, np.where(old, "old", "young")


def fitter(epsilon=1.0, **options):
    return DPKaplanMeierFitter(epsilon, **{"max_time": 8.0, "random_state": 0, **options})


def counts(fit):
    return fit.release_.values["counts"]


@pytest.fixture(scope="module")
def fitted(records):
    time, event, group = records
    return fitter(groups=["young", "old", "unborn"]).fit(time, event, group=group)


class TestWithoutPrivacy:
    @pytest.mark.parametrize(
        ("breakpoints", "ties"), thinned(["early", "equal", [1.0, 2.0, 3.0]], [False, True])
    )
    def test_equals_lifelines_where_nobody_is_censored(self, records, breakpoints, ties):
        time, event, _ = records
        time, event = (np.ceil(time) if ties else time)[event], event[event]
        ours = fitter(np.inf, breakpoints=breakpoints).fit(time, event)
        assert ours.guarantee_.status == "none"
        expected = KaplanMeierFitter().fit(time, event).predict(ours.timeline)
        np.testing.assert_allclose(ours.predict(ours.timeline), expected, rtol=0, atol=1e-9)

    def test_groups_have_curves_of_their_own(self, records):
        time, event, group = records
        ours = fitter(np.inf, groups=["old", "young"]).fit(time, event, group=group)
        for label in ("old", "young"):
            theirs = KaplanMeierFitter().fit(time[group == label], event[group == label])
            found = ours.of_group(label).predict(ours.timeline)
            np.testing.assert_allclose(found, theirs.predict(ours.timeline), rtol=0, atol=0.01)

    def test_everything_is_counted(self, records):
        time, event, _ = records
        table = fitter(np.inf, breakpoints=[1.0, 2.0]).fit(time, event).event_table
        ends = [0.0, 1.0, 2.0, 8.0]
        seen = np.diff([(event & (time <= end)).sum() for end in ends])
        np.testing.assert_allclose(table["observed"].iloc[1:], seen)
        at_risk = [N, *((time > end).sum() for end in ends[:-1])]
        np.testing.assert_allclose(table["at_risk"], at_risk)
        assert table["removed"].sum() == pytest.approx(N)


class TestWithNoise:
    def test_bands_hold_the_curve_and_widen_as_epsilon_falls(self, records):
        time, event, _ = records
        times = np.linspace(0.5, 7.0, 10)
        theirs = KaplanMeierFitter().fit(time, event)
        truth, widths = theirs.predict(times).to_numpy(), []
        for epsilon in (0.1, 1.0, 10.0, np.inf):
            band = fitter(epsilon).fit(time, event).survival_band(times)
            assert ((band["lower"] <= truth) & (truth <= band["upper"])).all()
            widths.append((band["upper"] - band["lower"]).mean())
        assert (np.diff(widths) < 0).all()
        # Without privacy that is lifelines' own.
        places = np.searchsorted(theirs.confidence_interval_.index, times) - 1
        np.testing.assert_allclose(band, theirs.confidence_interval_.iloc[places], atol=0.004)

    def test_groups_cost_one_epsilon(self, records):
        time, event, group = records
        ledger = PrivacyAccountant(1.0, rehearsal=True)
        one = fitter(groups=["young", "old"], accountant=ledger).fit(time, event, group=group)
        assert ledger.rehearsed() == one.guarantee_.epsilon == 1.0
        assert counts(one).shape[0] == 2

    def test_an_empty_group_is_known_of_by_nothing(self, fitted):
        sizes = [fitted.of_group(g).event_table["entrance"].iloc[0] for g in fitted.groups_]
        assert sizes[2] < 100
        assert sizes[:2] == pytest.approx([0.6 * N, 0.4 * N], abs=150)
        band = fitted.of_group("unborn").survival_band(4.0)
        assert band["upper"].item() - band["lower"].item() > 0.5

    def test_curves_fall_from_one(self, fitted):
        for curve in (fitted, *(fitted.of_group(label) for label in fitted.groups_)):
            found = curve.predict(np.linspace(0, 8, 500))
            assert found[0] == 1.0
            assert (np.diff(found) <= 0).all()
            assert found[-1] == curve.predict(8.0) > 0

    @pytest.mark.slow
    def test_a_study_may_end_before_its_horizon(self):
        """Most are censored at once, late in the last band; the seeds are fixed."""
        time = np.random.default_rng(0).exponential(2.0, 20_000)
        for end, n_intervals in itertools.product([0.99, 0.999, 1.0], [16, "auto"]):
            one = fitter(3.0, max_time=1.0, n_intervals=n_intervals)
            one.fit(np.minimum(time, end), time <= end)
            truth, band = np.exp(-end / 2.0), one.survival_band(end)
            assert abs(one.predict(end) - truth) < (0.05 if n_intervals == 16 else 0.015)
            assert band["lower"].item() < truth < band["upper"].item()


class TestRelease:
    def test_what_is_no_table_is_refused(self, fitted):
        release = fitted.release_
        huge = np.full(counts(fitted).shape, 1e300)
        for values in ({"counts": [1.0, 2.0]}, {"counts": huge}, {}):
            with pytest.raises(ValueError, match="counts"):
                DPKaplanMeierFitter.from_release(replace(release, values=values))
        for change in ({"n_intervals": 3}, {"groups": ["a"]}, {"breakpoints": [1.0]}):
            crafted = replace(release, parameters={**release.parameters, **change})
            with pytest.raises((TypeError, ValueError), match="must"):
                DPKaplanMeierFitter.from_release(crafted)

    def test_a_summary_is_of_the_curve_and_its_band(self, fitted):
        shown = fitted.summary
        times = shown.index.to_numpy()
        np.testing.assert_array_equal(shown["survival"], fitted.predict(times))
        np.testing.assert_array_equal(shown["at risk"], fitted.number_at_risk(times))
        ends = shown[["survival lower 95%", "survival upper 95%"]]
        np.testing.assert_array_equal(ends, fitted.survival_band(times))

    def test_a_pickle_has_nothing_that_can_be_computed_again(self, records):
        """Else it has a matrix of bands by bands for each group, of 1.3 MB at 200 bands."""
        fit = fitter(n_intervals=200).fit(*records[:2])
        before = len(pickle.dumps(fit))
        band = fit.confidence_interval_
        assert len(pickle.dumps(fit)) == before < 50_000
        pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(fit)).confidence_interval_, band)

    def test_views_are_fitted_estimators(self, fitted):
        old = fitted.of_group("old")
        again = pickle.loads(pickle.dumps(old))
        assert again.predict(3.0) == old.predict(3.0) != fitted.predict(3.0)
        assert old.release_ is fitted.release_
        assert old.median_survival_time_ < fitted.median_survival_time_
        assert not hasattr(clone(old), "release_")
        for one, label in ((fitted, "dead"), (fitter().fit([1.0]), "old")):
            with pytest.raises(ValueError, match="label must be one of the groups"):
                one.of_group(label)


class TestScores:
    def test_is_the_mean_log_likelihood_by_smoothed_hazards(self, records, fitted):
        time, event, group = records
        old = group == "old"
        for curve, here in ((fitted, old | True), (fitted.of_group("old"), old)):
            seen, known = np.minimum(time[here], 8.0), event[here] & (time[here] <= 8.0)
            hazard = curve.smoothed_hazard_at_times(seen).to_numpy()
            grid = np.append(0.0, np.linspace(0.0, 8.0, 200_001)[1:] - 2e-5)
            rates = curve.smoothed_hazard_at_times(grid[1:]) * 4e-5
            cumulated = np.interp(seen, grid + 2e-5, np.append(0.0, np.cumsum(rates)))
            expected = np.mean(np.where(known, np.log(hazard), 0.0) - cumulated)
            assert curve.score(time[here], event[here]) == pytest.approx(expected, abs=1e-4)

    def test_is_finite_where_the_table_has_no_event(self, records):
        none = fitter(np.inf).fit([1.0, 8.0], [True, False])
        assert np.isfinite(none.score([7.0], [True]))

    def test_a_search_prefers_more_to_one_band(self, records):
        y = pd.DataFrame({"event": records[1], "time": records[0]})
        search = GridSearchCV(fitter(np.inf), {"n_intervals": [1, 10]}, cv=2)
        assert search.fit(np.zeros((N, 2)), y).best_params_ == {"n_intervals": 10}


class TestThreads:
    def test_small_matrices_wake_none_and_settings_stay(self, records, monkeypatch):
        seen, solved = [], life_table.solved

        def spy(*arguments):
            seen.append(threads())
            return solved(*arguments)

        def threads():
            return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

        monkeypatch.setattr(life_table, "solved", spy)
        with threadpool_limits(2, user_api="blas"):
            before = threads()
            fit = fitter(n_intervals=10).fit(*records[:2])
            fit.survival_band([1.0])
            assert threads() == before
        assert set().union(*seen) == {1}


class TestRefusals:
    def test_parameters_and_what_is_shown(self, records, fitted):
        time, event, _ = records
        for options, message in (
            ({"max_time": None}, "max_time must be given"),
            ({"n_intervals": 0}, "n_intervals must be"),
            ({"n_intervals": 501}, "n_intervals must be"),
            ({"breakpoints": [1.0, 9.0]}, "breakpoints must be before max_time"),
            ({"breakpoints": [1.0], "n_intervals": 2}, "n_intervals must be 'auto'"),
            ({"groups": ["a", "a"]}, "groups must not hold"),
            ({"groups": "old"}, "groups must be a list"),
            ({"groups": []}, "groups must be a list"),
            ({"alpha": 95}, "alpha must be"),
        ):
            refused(fitter(**options), message, time, event)
        large = fitter(n_intervals=400, groups=list(range(900)))  # a table that takes hours
        refused(large, "n_intervals must be", time, event, group=np.zeros(N, int))
        for shown in ({"timeline": [-1.0]}, {"timeline": [np.nan]}, {"alpha": 0.0}):
            refused(fitter(), "must", time, event, **shown)
        with pytest.raises(ValueError, match="t must be"):
            fitted.restricted_mean_survival_time(8.5)

    def test_times_that_no_band_can_end_at(self, records):
        for breakpoints in (
            np.array([5, 3], dtype=np.uint8),
            [1.0, np.nextafter(np.longdouble(1.0), 2.0)],
            [True, 2.0],
            np.ma.array([1.0, 2.0], mask=[True, False]),
            [1e-200],
            [1.0, 1.0 + 1e-12],
            [8.0 * (1 - 1e-12)],
        ):
            refused(fitter(breakpoints=breakpoints), "breakpoints must", *records[:2])

    def test_groups(self, records):
        time, event, group = records
        model, most = fitter(groups=["young", "old"]), ["old"] * (N - 1)
        for wrong in (None, most, [1.0] * N, np.full((N, 1), "old"), np.ma.array(group), "old"):
            refused(model, r"group|X and y must have", time, event, group=wrong)
        refused(fitter(), "group", time, event, group=group)  # where none are stated

    def test_cells_of_a_group_say_nothing_of_themselves(self, records):
        time, event, group = records
        for cell in faults.CELLS.values():
            wrong = group.astype(object)
            wrong[7] = cell
            model = fitter(groups=["young", "old"])
            check_texts([refused(model, "group must", time, event, group=wrong)])


def test_labels_are_equal_as_python_has_it(records):
    time, event, group = records
    numbers, model = (group == "old").astype(int), fitter(groups=[0, 1])
    expected = counts(model.fit(time, event, group=numbers))
    for kind in (float, bool, object):
        found = counts(model.fit(time, event, group=numbers.astype(kind)))
        np.testing.assert_array_equal(found, expected)
    refused(fitter(groups=[0, 1]), "group must hold", time, event, group=numbers.astype(str))
    frame = pd.DataFrame({"t": time, "e": event, "g": pd.Categorical(group)})
    two = fitter(groups=["young", "old"]).fit(frame["t"], frame["e"], group=frame["g"])
    np.testing.assert_array_equal(counts(two), expected)


class TestPeople:
    """Whose each record is says for every argument which of its entries count."""

    person = np.r_[np.zeros(30, int), np.arange(1, 31)]

    def test_the_first_record_of_each_counts(self):
        group = np.full(60, "a")
        group[1:30] = "b"  # later records of the first person
        for one in (group, np.full(60, "a")):
            fit = fitter(np.inf, groups=["a", "b"], breakpoints=[1.0])
            fit.fit(durations=np.ones(60), group=one, person=self.person)
            assert counts(fit).sum(axis=1).tolist() == [31.0, 0.0]

    @pytest.mark.parametrize("name", ["durations", "event_observed", "group", "person"])
    def test_arguments_of_other_lengths_are_refused(self, name):
        """Else they would not be cut, or cut in other places."""
        ones = {"durations": np.ones(60), "event_observed": np.ones(60)}
        whole = {**ones, "group": np.full(60, "a"), "person": self.person}
        for size in (31, 59, 61):
            given = {**whole, name: np.resize(whole[name], size)}
            first, named = list(given.values())[:2], {n: given[n] for n in ("group", "person")}
            for args, options in (((), given), (first, named)):
                model = fitter(groups=["a", "b"])
                refused(model, "person must have one entry", *args, **options)


@pytest.mark.parametrize(
    ("horizon", "events", "unit"), [(8.0, "[67]. %", False), (0.05, r"0\.. %|1\.. %", True)]
)
@pytest.mark.parametrize("groups", [None, ["young", "old"]])
def test_the_share_of_events_by_the_horizon_is_said(records, horizon, events, unit, groups, capsys):
    time, event, group = records
    fit = fitter(max_time=horizon, groups=groups)
    fit.fit(time, event, **({} if groups is None else {"group": group})).print_summary()
    words = capsys.readouterr().out
    assert re.search(
        rf"about ({events}) of the records have an event by max_time={horizon:g}, ", words
    )
    assert ("Is max_time in the unit of the times?" in words) == unit
    late = fitter(max_time=100.0).fit(time, event)
    assert "Is max_time in the unit" in late._horizon_words()[0]
    (lines,) = [list(result_lines(late.release_))]
    assert lines[-1] == late._horizon_words()[0]
    assert curves(late)["notes"] == late._horizon_words()
