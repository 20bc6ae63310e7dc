"""Curves of people who enter late: lifelines' without noise, a person-band table, and coverage."""

import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lifelines import AalenJohansenFitter, KaplanMeierFitter
from lifelines.datasets import load_multicenter_aids_cohort_study
from statsmodels.duration.survfunc import survdiff

from skdpsurv import DPAalenJohansenFitter, DPKaplanMeierFitter, DPWeibullFitter, pool_releases
from skdpsurv.audit import audit_epsilon, measurement_audit
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.chunks import FrameChunks
from skdpsurv.data.histories import Histories
from skdpsurv.mechanisms.sums import Histogram
from skdpsurv.survival.comparisons import compare_restricted_means, logrank_test
from skdpsurv.survival.curves.entry_life_table import EntryEstimate, EntryTable
from skdpsurv.survival.curves.event_counts import EntryCounts, EventCounts, n_bands_for
from skdpsurv.survival.curves.life_table import leaving

N = 3000


def drawn(n=N, seed=0, late=0.6, rate=0.8):
    """People whose hazard is ``rate`` from 0 on, who are seen from their entry to 1 at most."""
    rng = np.random.default_rng(seed)
    entry = np.where(rng.random(n) < late, rng.uniform(0.0, 0.6, n), 0.0)
    time = entry + rng.exponential(1.0 / rate, n)
    end = entry + rng.exponential(2.5, n)
    return np.minimum(time, end), time <= end, entry


def fitter(epsilon=1.0, **options):
    return DPKaplanMeierFitter(epsilon, **{"max_time": 1.0, "random_state": 0, **options})


def person_bands(time, cause, entry, ends, n_causes=1):
    """Return masses of hazard by a sum over people and bands, and bisection for the shares."""
    masses = np.zeros((n_causes, ends.size))
    for k, (start, end) in enumerate(zip(np.append(0.0, ends), ends, strict=False)):
        exposed, events, lost = 0.0, np.zeros(n_causes), 0.0
        for t, c, e in zip(time, cause, entry, strict=True):
            t, c = (ends[-1], 0) if t > ends[-1] else (t, c)
            if 0.0 < e >= t:
                continue
            left = start < t <= end or (t == 0.0 == start)
            stays = c == 0 and t >= ends[-1]
            if e <= start and (t > start or left):
                exposed += 1.0
            elif start < e <= end:
                exposed += 0.5
            if left and c:
                events[c - 1] += 1.0
            elif left and not stays:
                lost += 1.0
        d, c = events.sum() / exposed, lost / exposed
        low, high = 0.0, 1.0  # share A of those who would have an event, alone
        for _ in range(200):
            share = (low + high) / 2.0
            other = c / (1.0 - share / 2.0)
            low, high = (share, high) if share * (1.0 - other / 2.0) < d else (low, share)
        masses[:, k] = -math.log1p(-low) * events / max(events.sum(), 1.0)
    return masses


def oldmort():
    """Old people of Sundsvall, by age: those who are seen from 60 or later on."""
    survset = pytest.importorskip("SurvSet")
    path = os.path.join(os.path.dirname(survset.__file__), "resources", "pickles")
    frame = pd.read_pickle(os.path.join(path, "oldmort.pickle"))
    return frame["time2"].to_numpy(), frame["event"].to_numpy(), frame["time"].to_numpy()


class TestWithoutPrivacy:
    def test_equals_lifelines_where_nobody_is_censored_or_enters_inside_a_band(self):
        """Entries and events at whole numbers; bands that hold one or the other.

        Who enters at the end of a band counts from then on: an event at the same time is not seen.
        """
        rng = np.random.default_rng(0)
        entry = np.where(rng.random(N) < 0.7, rng.integers(0, 8, N), 0) * 1.0
        time = np.ceil(rng.weibull(1.3, N) * 6.0)
        time, entry = time[seen := time > entry], entry[seen]
        middles = np.arange(1, 16) - 0.5
        # Events move from k to k - 1/4, so that those before k and entries at k have their bands.
        edges = np.sort(np.concatenate([middles, np.arange(1, 16) - 0.125]))
        ours = fitter(np.inf, max_time=16.0, breakpoints=edges)
        ours.fit(time - 0.25, np.ones(time.size), entry=np.maximum(entry, 0.0))
        theirs = KaplanMeierFitter().fit(time, entry=entry)
        whole = np.arange(1.0, 15.0)
        found = ours.predict(whole - 0.125)
        np.testing.assert_allclose(found, theirs.predict(whole), rtol=0.0, atol=1e-12)

    def test_groups_and_causes_do_too(self):
        rng = np.random.default_rng(1)
        entry = np.where(rng.random(N) < 0.7, rng.integers(0, 4, N), 0) * 1.0
        time = entry + np.ceil(rng.weibull(1.3, N) * 4.0)
        cause, group = rng.integers(1, 3, N), rng.integers(0, 2, N)
        edges = np.sort(np.concatenate([np.arange(1, 9) - 0.5, np.arange(1, 9) - 0.125]))
        common = {"max_time": 9.0, "breakpoints": edges, "groups": [0, 1]}
        ours = DPAalenJohansenFitter(np.inf, causes=[1, 2], **common)
        ours.fit(time - 0.25, cause, entry=entry, group=group)
        whole = np.arange(1.0, 8.0)
        for label in (0, 1):
            here = group == label
            theirs = KaplanMeierFitter().fit(time[here], entry=entry[here])
            own = ours.of_group(label)
            found = own.survival_function_at_times(whole - 0.125)
            np.testing.assert_allclose(found, theirs.predict(whole), rtol=0.0, atol=1e-12)
            both = sum(own.cumulative_density_at_times(8.9, cause=one).item() for one in (1, 2))
            gone = 1.0 - own.survival_function_at_times(8.9).item()
            assert both == pytest.approx(gone, abs=1e-12)

    @pytest.mark.parametrize("n_intervals", [4, 9])
    def test_is_the_table_of_persons_and_bands_elsewhere(self, n_intervals):
        time, event, entry = drawn(400)
        cause = np.where(event, np.random.default_rng(1).integers(1, 3, event.size), 0)
        options = {"max_time": 1.0, "n_intervals": n_intervals, "breakpoints": "equal"}
        ours = DPAalenJohansenFitter(np.inf, causes=[1, 2], **options).fit(time, cause, entry=entry)
        expected = person_bands(time, cause, entry, ours._curve.ends, 2)
        np.testing.assert_allclose(ours._curve.hazards, expected, rtol=1e-9, atol=1e-12)
        both = DPKaplanMeierFitter(np.inf, **options).fit(time, event, entry=entry)
        at_ends = np.exp(-np.cumsum(expected.sum(axis=0)))
        np.testing.assert_allclose(both.predict(both.timeline)[1:], at_ends, rtol=1e-12)

    def test_is_near_lifelines_on_the_cohort_of_aids(self):
        data = load_multicenter_aids_cohort_study()
        time, event, entry = (data[name].to_numpy() for name in ("T", "D", "W"))
        ends = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        ours = fitter(np.inf, max_time=6.0, breakpoints=ends[:-1]).fit(time, event, entry=entry)
        expected = person_bands(time, event, entry, ends)
        np.testing.assert_allclose(ours._curve.hazards, expected, rtol=1e-9, atol=1e-12)
        theirs = KaplanMeierFitter().fit(time, event, entry=entry)
        assert np.abs(ours.predict(ends) - theirs.predict(ends)).max() < 0.05

    def test_is_near_lifelines_on_a_scale_of_age(self):
        """Given that people are alive at 65; nobody is seen before 60."""
        time, event, entry = oldmort()
        ages = np.arange(60.0, 100.0, 1.0)
        ours = fitter(np.inf, max_time=100.0, breakpoints=ages).fit(time, event, entry=entry)
        ours = ours.given_alive_at(65.0)
        theirs = KaplanMeierFitter().fit(time, event, entry=entry)
        truth = theirs.predict(ages[5:]).to_numpy() / theirs.predict(65.0)
        assert np.abs(ours.predict(ages[5:]) - truth).max() < 0.003
        mean = ours.restricted_mean_survival_time(85.0)
        assert mean.estimate == pytest.approx(65.0 + np.trapezoid(truth[:21]), abs=0.02)
        assert ours.percentile(0.5) == pytest.approx(ages[5 + np.argmax(truth < 0.5)], abs=1.0)

    def test_who_enters_at_zero_is_seen_from_the_start(self):
        time, event, _ = drawn(late=0.0)
        with_entry = fitter(np.inf, n_intervals=20).fit(time, event, entry=np.zeros(N))
        without = fitter(np.inf, n_intervals=20).fit(time, event)
        at = without.timeline
        np.testing.assert_allclose(with_entry.predict(at), without.predict(at), rtol=1e-12)
        bands = [one.survival_band(at).to_numpy() for one in (with_entry, without)]
        np.testing.assert_allclose(*bands, atol=2e-4)
        tables = [one.event_table for one in (with_entry, without)]
        pd.testing.assert_frame_equal(*tables, atol=1e-6)


RECORDS = [(5.0, 1, 0.0), (9.0, 0, 3.0), (1.0, 0, 0.0), (2.0, 1, 2.0), (0.0, 1, 0.0), (8.0, 1, 8.0)]


class TestTables:
    def tables(self, records, group=None):
        time, cause, entry = (np.array(part) for part in zip(*records, strict=True))
        block = Histories(time, cause, entry=entry, stratum=group)
        ends, n_groups = np.array([1.0, 4.0, 8.0]), 1 if group is None else 2
        exits = EventCounts(price=0.7, ends=ends, n_causes=1, n_groups=n_groups)
        entries = EntryCounts(price=0.3, ends=ends, n_groups=n_groups)
        return [one.exact_answer({}, InMemory([block])) for one in (exits, entries)]

    def test_everybody_enters_once_and_leaves_once(self):
        exits, entries = self.tables(RECORDS)
        # Two are never at risk: they enter, and stay to, the horizon.
        assert entries.tolist() == [[3, 0, 1, 0, 2]]
        assert exits.tolist() == [[1, 0, 1, 1, 0, 0, 3]]
        group = np.array([0, 1, 0, 1, 0, 1])
        by_group = self.tables(RECORDS, group)
        assert [table.sum(axis=0).tolist() for table in by_group] == [
            exits[0].tolist(),
            entries[0].tolist(),
        ]

    @pytest.mark.slow
    def test_replacing_a_record_moves_two_cells_of_each_by_one(self):
        """The sensitivity of the proof, and exact ratios of densities, by 20,000 pairs."""
        rng = np.random.default_rng(0)
        times = np.array([0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 4.0, 8.0, 9.0, 1e308])
        largest = 0.0
        for _ in range(20_000):
            exits, entries = rng.choice(times, 2), rng.choice(times, 2)
            entries = np.minimum(entries, exits)
            one, two = (
                self.tables([*RECORDS[:2], (exits[i], int(rng.integers(2)), entries[i])])
                for i in (0, 1)
            )
            moves = [np.abs(a - b).sum() for a, b in zip(one, two, strict=True)]
            assert max(moves) <= 2
            largest = max(largest, 0.7 * moves[0] / 2 + 0.3 * moves[1] / 2)
        # The largest log ratio of two releases: the sum of moves, each over its scale.
        assert largest == 1.0

    def test_the_plan_states_both(self):
        time, event, entry = drawn(300)
        fit = fitter(0.5).prepare(time, event, entry=entry)
        assert [(leaf.name[:40], leaf.price) for leaf in fit.plan.leaves] == [
            ("discrete Laplace noise on one event-coun", pytest.approx(0.35)),
            ("discrete Laplace noise on one table of e", pytest.approx(0.15)),
        ]
        assert fit.plan.cost.epsilon <= 0.5 == fit.guarantee.epsilon
        assert len(fitter(0.5).prepare(time, event).plan.leaves) == 1
        bands = [n_bands_for(1000, 1.0, 1, 1, has_entry) for has_entry in (False, True)]
        assert bands == [25, 13]
        released = fit.run().release_
        assert {*released.values} == {*released.noise} == {"counts", "entries"}
        scales = [released.noise[name]["variance"] for name in ("counts", "entries")]
        assert scales == pytest.approx([8.0 / 0.35**2, 8.0 / 0.15**2])


#: One record that enters early and has an event, or enters late and stays.
MOVED = [
    (np.array([0.1, exits, 0.9]), np.array([1, event, 0]), {"entry": np.array([0.0, entry, 0.5])})
    for exits, event, entry in ((0.3, 1, 0.0), (2.0, 0, 0.8))
]


class TestAttacks:
    def test_a_walk_finds_what_the_proof_says(self):
        found = measurement_audit(fitter(random_state=None, n_intervals=4), *MOVED)
        assert found.passed
        in_l1 = [each for each in found.distances if each.what == "in L1"]
        assert [each.share for each in in_l1] == [1.0, 1.0]

    @pytest.mark.parametrize("kind", [EventCounts, EntryCounts])
    def test_half_of_the_noise_is_found(self, kind, monkeypatch):
        monkeypatch.setattr(kind, "query", Histogram(1))
        model = fitter(random_state=None, n_intervals=4)
        assert not measurement_audit(model, *MOVED).passed

    @pytest.mark.slow
    def test_an_attack_finds_no_more_than_epsilon(self):
        """At a confidence of 1 - 1e-9; without noise on entries it finds more."""
        model, told = fitter(random_state=None, n_intervals=4), {"confidence": 1.0 - 1e-9}
        assert audit_epsilon(model, *MOVED, n_trials=500, random_state=0, **told).passed
        with pytest.MonkeyPatch.context() as planted:
            planted.setattr(EntryCounts, "query", Histogram(1000))
            planted.setattr(Histogram, "release", lambda query, exact, *_: exact)
            assert not audit_epsilon(model, *MOVED, n_trials=200, random_state=0, **told).passed


class TestCoverage:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("n", "epsilon", "n_intervals"), [(1000, 1.0, "auto"), (1000, 1.0, 25), (2000, np.inf, 12)]
    )
    def test_intervals_hold_the_curve(self, n, epsilon, n_intervals):
        """By 200 fits each. At 93 %, 163 or fewer hold it with a probability below 1e-7."""
        times = np.array([0.2, 0.5, 0.9])
        truth, held = np.exp(-0.8 * times), np.zeros(3)
        for seed in range(200):
            time, event, entry = drawn(n, seed)
            options = {"n_intervals": n_intervals, "random_state": seed}
            band = fitter(epsilon, **options).fit(time, event, entry=entry).survival_band(times)
            held += (band["lower"] <= truth) & (truth <= band["upper"])
        assert held.min() > 163

    @pytest.mark.parametrize("q", [4, 8, 13, 25])
    def test_entry_about_doubles_the_noise(self, q):
        """Of the cumulative hazard, 1,000 people and epsilon 1, as the guide says: expected counts.

        Of 60 % entering late, evenly over the first 0.6 of the horizon, beside nobody doing so.
        """
        masses, width = np.array([[0.5], [0.3]]) / q * np.ones(q), np.full(q, 1.0 / q)
        outcome, _ = leaving(masses)
        so_far = np.minimum(np.arange(q + 1) / q, 0.6) / 0.6
        noise = []
        for late, shares in ((0.0, (1.0, np.inf)), (600.0, (0.7, 0.3))):
            entries = np.concatenate([[1000.0 - late], late * np.diff(so_far), [0.0]])
            at_risk, counts = entries[0], np.zeros((2, q))
            for k in range(q):
                counts[:, k] = outcome[:, k] * (at_risk + entries[k + 1] / 2.0)
                at_risk += entries[k + 1] - counts[:, k].sum()
            errors = []
            for size in (8.0, 0.0):
                stated = size / np.square(shares)
                table = EntryTable(
                    *(np.append(counts, at_risk), 2, stated[0], 1000),
                    entries=entries,
                    entry_variance=stated[1],
                )
                errors.append(EntryEstimate(table, width).unsmoothed[1][:q, :q].sum())
            noise.append(math.sqrt(errors[0] - errors[1]))
        assert 1.8 < noise[1] / noise[0] < 2.0


class TestHiddenBands:
    def test_nothing_is_known_where_few_were_seen(self):
        """On a scale of age, in which people enter from 60 on."""
        time, event, entry = drawn(5000, late=1.0)
        ages = [20.0, 40.0, 60.0, 65.0, 70.0, 75.0, 80.0]
        model = fitter(1.0, max_time=90.0, breakpoints=ages)
        model.fit(60.0 + 30.0 * time, event, entry=60.0 + 30.0 * entry)
        band = model.survival_band([0.0, 10.0, 70.0, 90.0])
        assert band.to_numpy().tolist() == [[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
        given = model.given_alive_at(65.0)
        band = given.survival_band([10.0, 65.0, 70.0, 90.0]).to_numpy()
        assert band[:2].tolist() == [[1.0, 1.0], [1.0, 1.0]]
        truth = np.exp(-0.8 * np.array([5.0, 25.0]) / 30.0)
        assert (band[2:, 0] < truth).all()
        assert (truth < band[2:, 1]).all()
        assert (band[2:, 1] - band[2:, 0]).max() < 0.2
        mean = given.restricted_mean_survival_time(90.0)
        expected = 65.0 + 30.0 / 0.8 * (1.0 - np.exp(-0.8 * 25.0 / 30.0))
        assert mean.lower < expected < mean.upper < mean.lower + 2.0
        unknown = model.restricted_mean_survival_time(90.0)
        assert (unknown.lower < 1.0, unknown.upper) == (True, 90.0)
        with pytest.raises(ValueError, match="must be the start of a band, one of 0, 20"):
            model.given_alive_at(66.0)

    def test_views_go_together(self):
        time, event, entry = drawn()
        cause = np.where(event, np.random.default_rng(1).integers(1, 3, N), 0)
        group = np.arange(N) % 2
        options = {"max_time": 1.0, "causes": [1, 2], "groups": [0, 1], "random_state": 0}
        model = DPAalenJohansenFitter(5.0, breakpoints=[0.2, 0.5], **options)
        model.fit(time, cause, entry=entry, group=group)
        one = model.of_group(1).given_alive_at(0.2).of_cause(2)
        other = model.of_cause(2).given_alive_at(0.2).of_group(1)
        times = [0.1, 0.3, 0.8]
        pd.testing.assert_series_equal(one._main(times)[1], other._main(times)[1])
        assert one.predict(0.2) == 0.0 < one.predict(0.3)
        assert one.median_survival_time_ == other.median_survival_time_
        without = DPAalenJohansenFitter(5.0, breakpoints=[0.2, 0.5], **options)
        without.fit(time, cause, group=group)
        assert without.given_alive_at(0.5).predict(0.5) == 0.0

    @pytest.mark.parametrize("variance", [0.0, 8.0, 8e2, 8e18])
    @pytest.mark.parametrize("n", [1, 30, 10**9])
    def test_no_tables_are_too_strange(self, variance, n):
        rng, size = np.random.default_rng(0), np.sqrt(variance)
        exits = [np.zeros(17), np.full(17, -size), rng.normal(0, 1 + size, 17), np.eye(17)[16] * n]
        entries = [np.zeros(10), np.full(10, size), np.eye(10)[9] * n, np.eye(10)[0] * n]
        with np.errstate(all="raise", under="ignore"):
            for cells, entered in zip(exits, entries, strict=True):
                for elsewhere in (None, (n / 2, 17 * variance)):
                    table = EntryTable(
                        *(cells, 2, variance, n, elsewhere),
                        entries=entered,
                        entry_variance=5.0 * variance,
                        entries_elsewhere=elsewhere,
                    )
                    fit = EntryEstimate(table, np.full(8, 1.0 / 8))
                    for found in (fit.counts, fit.masses, *fit.unsmoothed, fit.hazards):
                        assert np.isfinite(found).all()
                    assert np.isfinite(np.concatenate([*fit.counted()[:2]])).all()


class TestComparisons:
    def fitted(self, epsilon, seed=0, ratio=1.0, **options):
        """Two groups, of which one enters later, as a rule."""
        first, second = drawn(1500, seed, 0.3), drawn(1500, seed + 10_000, 0.9, 0.8 * ratio)
        time, event, entry = (np.concatenate(pair) for pair in zip(first, second, strict=True))
        group = np.repeat([0, 1], 1500)
        model = fitter(epsilon, groups=[0, 1], **options, random_state=seed)
        model = model.fit(time, event, entry=entry, group=group)
        return model.of_group(0), model.of_group(1)

    @pytest.mark.slow
    def test_rejects_as_often_as_it_should(self):
        """Of 200 tests at 5 %, 28 or more with a probability below 1e-6."""
        found = [logrank_test(*self.fitted(1.0, seed)).p_value for seed in range(200)]
        assert sum(p < 0.05 for p in found) < 28

    def test_finds_a_difference_in_either_order(self):
        a, b = self.fitted(1.0, ratio=1.6)
        found = logrank_test(a, b).p_value
        assert found < 1e-4
        assert logrank_test(b, a).p_value == pytest.approx(found, rel=1e-9)
        assert compare_restricted_means(b, a).loc["difference", "upper"] < 0.0

    def test_is_that_of_statsmodels_without_privacy(self):
        """Up to what bands hide."""
        people = [drawn(500, seed, rate=rate) for seed, rate in ((2, 1.0), (3, 1.2))]
        a, b = (fitter(np.inf, n_intervals=60).fit(t, d, entry=e) for t, d, e in people)
        time, event, entry = map(np.concatenate, zip(*people, strict=True))
        event, group = event & (time <= 1.0), np.repeat([0, 1], 500)
        theirs, _ = survdiff(np.minimum(time, 1.0), event, group, entry=entry)
        assert theirs > 3.0
        assert logrank_test(a, b).test_statistic == pytest.approx(theirs, rel=0.05)


class TestInterface:
    def test_releases_rebuild_it_and_pool(self):
        time, event, entry = drawn()
        model = fitter(n_intervals=8).fit(time, event, entry=entry)
        again = DPKaplanMeierFitter.from_release(model.release_)
        times = np.linspace(0.0, 1.0, 7)
        np.testing.assert_array_equal(again.predict(times), model.predict(times))
        other = fitter(n_intervals=8, random_state=1).fit(time, event, entry=entry)
        pooled = pool_releases([model.release_, other.release_])
        assert pooled.noise["entries"]["variance"] == pytest.approx(16.0 / 0.3**2)
        assert np.abs(pooled.to_estimator().predict(times) - model.predict(times)).max() < 0.02
        without = fitter(n_intervals=8, random_state=1).fit(time, event)
        with pytest.raises(ValueError, match="tables of entries, or none"):
            pool_releases([model.release_, without.release_])
        values = {**model.release_.values, "entries": np.zeros((1, 3))}
        with pytest.raises(ValueError, match="entries"):
            DPKaplanMeierFitter.from_release(replace(model.release_, values=values))

    def test_prepared_fits_to_dask_take_entries_without_groups(self):
        time, event, entry = drawn(300)
        frame = pd.DataFrame({"event": event, "time": time, "entry": entry})
        lazy = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
        fits = [
            fitter().prepare(y=one[["event", "time"]], entry=one["entry"]).run()
            for one in (frame, lazy)
        ]
        np.testing.assert_array_equal(*(fit.release_.values["entries"] for fit in fits))

    def test_what_is_no_entry_is_refused(self):
        time, event, entry = drawn(50)
        for wrong, says in (
            (entry[1:], "entry must"),
            (-entry - 1.0, "entry must be finite and not negative"),
            (np.full(50, np.nan), "entry must not contain missing"),
        ):
            with pytest.raises(ValueError, match=says):
                fitter().fit(time, event, entry=wrong)
        with pytest.raises(TypeError, match="'entry'"):
            DPWeibullFitter(max_time=1.0).prepare(time, event, entry=entry)
        with pytest.raises(TypeError, match="entry"):
            DPWeibullFitter(max_time=1.0, random_state=0).fit(time, event).score(time, entry=entry)

    def test_everything_that_a_fitter_shows(self, capsys):
        time, event, entry = drawn()
        model = fitter().fit(time, event, entry=entry)
        model.print_summary()
        assert "median" in capsys.readouterr().out
        table = model.event_table
        assert table["entrance"].sum() == pytest.approx(N, abs=60)
        after = [((entry <= t) & (time > t)).sum() for t in (0.3, 0.7)]
        assert model.number_at_risk([0.3, 0.7]).tolist() == pytest.approx(after, abs=150)
        assert model.score(time, event, entry=entry) > model.score(2.0 * time, event, entry=entry)

    def test_chunks_and_people(self):
        time, event, entry = drawn(200)
        frame = pd.DataFrame({"died": event, "days": time, "late": entry, "who": np.arange(200)})
        parts = FrameChunks([frame.iloc[:90], frame.iloc[90:]])
        whole = fitter().fit(time, event, entry=entry)
        y = parts[["died", "days"]]
        chunked = fitter().fit(None, y, entry=parts["late"], person=parts["who"])
        in_memory = fitter().fit(time, event, entry=entry, person=frame["who"])
        for one in (chunked, in_memory):
            for name in ("counts", "entries"):
                np.testing.assert_array_equal(
                    one.release_.values[name], whole.release_.values[name]
                )


def test_causes_of_lifelines_are_near():
    """lifelines' Aalen-Johansen takes no entry: without any, both agree within a band's error."""
    time, event, entry = drawn(late=0.0)
    cause = np.where(event, np.random.default_rng(1).integers(1, 3, N), 0)
    ours = DPAalenJohansenFitter(np.inf, max_time=1.0, causes=[1, 2])
    ours.fit(time, cause, entry=entry)
    theirs = AalenJohansenFitter(calculate_variance=False).fit(time, cause, event_of_interest=1)
    at = ours.timeline[1:-1]
    assert np.abs(ours.predict(at) - theirs.predict(at).to_numpy()).max() < 0.002
