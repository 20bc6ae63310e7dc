"""Private curves of everybody and of groups: lifelines' without noise, and what noise leaves."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from lifelines import KaplanMeierFitter
from sklearn.base import clone

from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant, Release
from tests.support.combinations import thinned

N = 3000


def simulated(n=N, seed=0):
    rng = np.random.default_rng(seed)
    old = rng.random(n) < 0.4
    time = rng.weibull(1.3, n) * np.where(old, 3.0, 6.0)
    end = rng.uniform(0.5, 12.0, n)
    return np.minimum(time, end), time <= end, np.where(old, "old", "young")


@pytest.fixture(scope="module")
def records():
    return simulated()


def fitter(epsilon=1.0, kind=DPKaplanMeierFitter, **options):
    options = {"max_time": 8.0, "random_state": 0, **options}
    return kind(epsilon, **options)


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
        theirs = KaplanMeierFitter().fit(time, event)
        ours = fitter(np.inf, breakpoints=breakpoints).fit(time, event)
        assert ours.guarantee_.status == "none"
        expected = theirs.predict(ours.timeline).to_numpy()
        np.testing.assert_allclose(ours.predict(ours.timeline), expected, rtol=0, atol=1e-9)

    def test_groups_have_curves_of_their_own(self, records):
        time, event, group = records
        ours = fitter(np.inf, groups=["old", "young"]).fit(time, event, group=group)
        for label in ("old", "young"):
            here = group == label
            theirs = KaplanMeierFitter().fit(time[here], event[here])
            expected = theirs.predict(ours.timeline).to_numpy()
            found = ours.of_group(label).predict(ours.timeline)
            np.testing.assert_allclose(found, expected, rtol=0, atol=0.01)

    def test_everything_is_counted(self, records):
        time, event, _ = records
        table = fitter(np.inf, breakpoints=[1.0, 2.0]).fit(time, event).event_table
        assert table["observed"].tolist()[1:] == pytest.approx(
            [
                (event & (time <= 1)).sum(),
                (event & (time > 1) & (time <= 2)).sum(),
                (event & (time > 2) & (time <= 8)).sum(),
            ]
        )
        assert table["at_risk"].tolist() == pytest.approx(
            [N, N, (time > 1).sum(), (time > 2).sum()]
        )
        assert table["removed"].sum() == pytest.approx(N)


class TestWithNoise:
    def test_bands_hold_the_curve_and_widen_as_epsilon_falls(self, records):
        time, event, _ = records
        times = np.linspace(0.5, 7.0, 10)
        truth = KaplanMeierFitter().fit(time, event).predict(times).to_numpy()
        widths = []
        for epsilon in (0.1, 1.0, 10.0, np.inf):
            band = fitter(epsilon).fit(time, event).survival_band(times)
            assert ((band["lower"] <= truth) & (truth <= band["upper"])).all()
            widths.append((band["upper"] - band["lower"]).mean())
        assert (np.diff(widths) < 0).all()
        # Without privacy that is lifelines' own.
        theirs = KaplanMeierFitter().fit(time, event).confidence_interval_
        theirs = theirs.iloc[np.searchsorted(theirs.index, times) - 1].to_numpy()
        ours = band.to_numpy()
        np.testing.assert_allclose(ours, theirs, atol=0.004)

    def test_groups_cost_one_epsilon(self, records):
        time, event, group = records
        ledger = PrivacyAccountant(1.0, rehearsal=True)
        one = fitter(groups=["young", "old"], accountant=ledger).fit(time, event, group=group)
        assert ledger.rehearsed() == 1.0
        assert one.guarantee_.epsilon == 1.0
        assert one.release_.values["counts"].shape[0] == 2

    def test_an_empty_group_is_known_of_by_nothing(self, fitted):
        nobody = fitted.of_group("unborn")
        assert nobody.event_table["entrance"].iloc[0] < 100
        band = nobody.survival_band(4.0)
        assert band["upper"].item() - band["lower"].item() > 0.5
        sizes = [fitted.of_group(g).event_table["entrance"].iloc[0] for g in fitted.groups_]
        assert sizes[0] == pytest.approx(0.6 * N, abs=150)
        assert sizes[1] == pytest.approx(0.4 * N, abs=150)

    def test_curves_fall_from_one(self, fitted):
        for curve in (fitted, *(fitted.of_group(label) for label in fitted.groups_)):
            found = curve.predict(np.linspace(0, 20, 500))
            assert found[0] == 1.0
            assert (np.diff(found) <= 0).all()
            assert found[-1] == curve.predict(8.0) > 0

    def test_a_study_may_end_before_its_horizon(self):
        """Most are censored at once, late in the last band; the seeds are fixed."""
        for end, n_intervals in itertools.product([0.99, 0.999, 1.0], [16, "auto"]):
            time = np.random.default_rng(0).exponential(2.0, 20_000)
            one = fitter(3.0, max_time=1.0, n_intervals=n_intervals)
            one.fit(np.minimum(time, end), time <= end)
            found, truth = one.predict(end), np.exp(-end / 2.0)
            assert abs(found - truth) < (0.05 if n_intervals == 16 else 0.015)
            band = one.survival_band(end)
            assert band["lower"].item() < truth < band["upper"].item()


class TestRelease:
    def test_everything_follows_from_it(self, fitted):
        built = DPKaplanMeierFitter.from_release(Release.from_json(fitted.release_.to_json()))
        for label in (None, "old", "unborn"):
            one, two = (
                model if label is None else model.of_group(label) for model in (fitted, built)
            )
            pd.testing.assert_frame_equal(one.summary, two.summary)
            pd.testing.assert_frame_equal(one.event_table, two.event_table)

    def test_what_is_no_table_is_refused(self, fitted):
        huge = np.full(fitted.release_.values["counts"].shape, 1e300)
        for values in ({"counts": [1.0, 2.0]}, {"counts": huge}, {}):
            with pytest.raises(ValueError, match="counts"):
                DPKaplanMeierFitter.from_release(replace(fitted.release_, values=values))
        for change in ({"n_intervals": 3}, {"groups": ["a"]}, {"breakpoints": [1.0]}):
            parameters = {**fitted.release_.parameters, **change}
            with pytest.raises((TypeError, ValueError), match="must"):
                DPKaplanMeierFitter.from_release(replace(fitted.release_, parameters=parameters))

    def test_views_are_fitted_estimators(self, fitted):
        old = fitted.of_group("old")
        again = pickle.loads(pickle.dumps(old))
        assert again.predict(3.0) == old.predict(3.0) != fitted.predict(3.0)
        assert old.release_ is fitted.release_
        assert old.median_survival_time_ < fitted.median_survival_time_
        assert not hasattr(clone(old), "release_")
        with pytest.raises(ValueError, match="label must be one of the groups"):
            fitted.of_group("dead")
        with pytest.raises(ValueError, match="label must be one of the groups"):
            fitter().fit([1.0]).of_group("old")


class TestRefusals:
    """Before the charge."""

    @staticmethod
    def refuse(records, message, options=None, fit=None, group=None):
        time, event, _ = records
        ledger = PrivacyAccountant(9.0, rehearsal=True)
        with pytest.raises((TypeError, ValueError), match=message) as refusal:
            fitter(accountant=ledger, **(options or {})).fit(
                time, event, group=group, **(fit or {})
            )
        assert "Zebedee" not in str(refusal.value)
        assert ledger.rehearsed() == 0.0

    def test_parameters(self, records):
        for options, message in (
            ({"max_time": None}, "max_time must be given"),
            ({"n_intervals": 0}, "n_intervals must be"),
            ({"n_intervals": 501}, "n_intervals must be"),
            ({"breakpoints": [1.0, 9.0]}, "breakpoints must be before max_time"),
            ({"breakpoints": [1.0], "n_intervals": 2}, "n_intervals must be 'auto'"),
            ({"groups": ["a", "a"]}, "groups must not hold a label twice"),
            ({"groups": "old"}, "groups must be a list"),
            ({"groups": []}, "groups must be a list"),
            ({"alpha": 95}, "alpha must be"),
        ):
            self.refuse(records, message, options)
        options = {"n_intervals": 400, "groups": list(range(900))}  # a table that takes hours
        self.refuse(records, "n_intervals must be", options, group=np.zeros(N, int))

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
            self.refuse(records, "breakpoints must", {"breakpoints": breakpoints})

    def test_groups(self, records):
        for group in (
            None,
            ["old"] * (N - 1) + ["Zebedee Quux"],
            ["old"] * (N - 1),
            ["old"] * (N - 1) + [None],
            [1.0] * N,
            np.full((N, 1), "old"),
            np.ma.array(["old"] * N),
            "old",
        ):
            message = r"group|X and y must have"
            self.refuse(records, message, {"groups": ["young", "old"]}, group=group)
        self.refuse(records, "group", group=records[2])  # where none are stated

    def test_what_is_shown(self, records, fitted):
        for shown in ({"timeline": [-1.0]}, {"timeline": [np.nan]}, {"alpha": 0.0}):
            self.refuse(records, "must", fit=shown)
        with pytest.raises(ValueError, match="t must be"):
            fitted.restricted_mean_survival_time(8.5)


class Hostile:
    """Says what it holds, whoever compares it."""

    def __init__(self, label):
        self.label = label

    def __hash__(self):
        return hash(self.label)

    def __eq__(self, other):
        raise RuntimeError(f"Zebedee Quux is {self.label}")


class HostileArray:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("Zebedee Quux")


def test_what_objects_say_of_themselves_is_not_heard(records):
    for label, what in itertools.product(
        [Hostile("old"), HostileArray(), np.datetime64("2001-01-01")],
        ["group", "event_observed", "durations"],
    ):
        time, event, group = (part.astype(object) for part in records)
        given = {"durations": time, "event_observed": event, "group": group}
        given[what][7] = label
        with pytest.raises((TypeError, ValueError)) as refusal:
            fitter(groups=["young", "old"]).fit(**given)
        assert "Quux" not in str(refusal.value)


def test_labels_are_equal_as_python_has_it(records):
    time, event, group = records
    numbers = (group == "old").astype(int)
    one = fitter(groups=[0, 1]).fit(time, event, group=numbers)
    for same in (numbers.astype(float), numbers.astype(bool), numbers.astype(object)):
        two = fitter(groups=[0, 1]).fit(time, event, group=same)
        np.testing.assert_array_equal(one.release_.values["counts"], two.release_.values["counts"])
    with pytest.raises(ValueError, match="group must hold"):
        fitter(groups=[0, 1]).fit(time, event, group=numbers.astype(str))
    frame = pd.DataFrame({"t": time, "e": event, "g": pd.Categorical(group)})
    two = fitter(groups=["young", "old"]).fit(frame["t"], frame["e"], group=frame["g"])
    one = fitter(groups=["young", "old"]).fit(time, event, group=group)
    np.testing.assert_array_equal(one.release_.values["counts"], two.release_.values["counts"])


class TestPeople:
    """Whose each record is says for every argument which of its entries count."""

    given: ClassVar = {
        "durations": np.ones(60),
        "event_observed": np.ones(60),
        "group": np.full(60, "a"),
        "person": np.r_[np.zeros(30, int), np.arange(1, 31)],
    }

    def test_the_first_record_of_each_counts(self):
        group = self.given["group"].copy()
        group[1:30] = "b"  # later records of the first person
        for one in (group, self.given["group"]):
            fit = DPKaplanMeierFitter(np.inf, max_time=10.0, groups=["a", "b"])
            fit.fit(durations=np.ones(60), group=one, person=self.given["person"])
            assert fit.release_.values["counts"].sum(axis=1).tolist() == [31.0, 0.0]

    @pytest.mark.parametrize("name", ["durations", "event_observed", "group", "person"])
    def test_arguments_of_other_lengths_are_refused(self, name):
        """Else they would not be cut, or cut in other places."""
        ledger = PrivacyAccountant(9.0, rehearsal=True)
        for size in (31, 59, 61):
            given = {**self.given, name: np.resize(self.given[name], size)}
            positional = {n: given[n] for n in ("group", "person")}
            for args, options in (
                ((), given),
                ((given["durations"], given["event_observed"]), positional),
            ):
                with pytest.raises(ValueError, match="person must have one entry"):
                    fitter(groups=["a", "b"], accountant=ledger).fit(*args, **options)
        assert ledger.rehearsed() == 0.0
