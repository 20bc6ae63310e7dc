"""Comparisons of releases: lifelines' without noise, and valid with it."""

import math

import numpy as np
import pytest
from lifelines.statistics import logrank_test as lifelines_test
from lifelines.statistics import multivariate_logrank_test as lifelines_overall
from scipy.stats import chi2
from sklearn.base import clone

from skdpsurv import DPAalenJohansenFitter, DPKaplanMeierFitter, DPWeibullFitter
from skdpsurv.data.histories import Histories
from skdpsurv.dp import random_source
from skdpsurv.dp.noise import lattice_laplace
from skdpsurv.survival.comparisons import (
    _group_of,
    _logrank,
    _p_value,
    compare_percentiles,
    compare_restricted_means,
    logrank_test,
    multivariate_logrank_test,
    pairwise_logrank_test,
)
from skdpsurv.survival.curves.event_counts import band_ends, bands_of
from skdpsurv.survival.curves.life_table import ActuarialEstimate, NoisyTable


def simulated(n=2000, ratio=1.5, seed=0, censoring=1.0):
    rng = np.random.default_rng(seed)
    treated = rng.random(n) < 0.5
    time = rng.exponential(np.where(treated, ratio, 1.0), n)
    end = rng.uniform(0.2, np.where(treated, censoring, 1.0) * 2.0, n)
    return np.minimum(time, end), time <= end, treated


def groups(records, epsilon=1.0, seed=0, **options):
    time, event, treated = records
    options = {"max_time": 1.5, "groups": [False, True], "random_state": seed, **options}
    fitter = DPKaplanMeierFitter(epsilon, **options).fit(time, event, group=treated)
    return fitter.of_group(False), fitter.of_group(True)


class TestLogRank:
    @pytest.mark.parametrize("ratio", [1.0, 1.2, 2.0])
    @pytest.mark.parametrize("seed", range(2))
    def test_is_near_that_of_lifelines_without_privacy(self, ratio, seed):
        time, event, treated = records = simulated(ratio=ratio, seed=seed)
        time, event = np.minimum(time, 1.5), event & (time <= 1.5)
        theirs = lifelines_test(time[treated], time[~treated], event[treated], event[~treated])
        ours = logrank_test(*groups(records, np.inf, n_intervals=60))
        found, expected = math.sqrt(ours.test_statistic), math.sqrt(theirs.test_statistic)
        assert found == pytest.approx(expected, rel=0.06, abs=0.2)
        assert ours.summary.columns.tolist() == ["test_statistic", "p", "-log2(p)"]

    def test_finds_a_difference_in_either_order(self, capsys):
        a, b = groups(simulated(ratio=2.0))
        result = logrank_test(a, b)
        assert result.p_value < 1e-6
        assert logrank_test(b, a).p_value == pytest.approx(result.p_value, rel=1e-9)
        result.print_summary()
        assert "logrank_test" in capsys.readouterr().out

    @pytest.mark.slow
    @pytest.mark.parametrize(("epsilon", "censoring"), [(0.5, 1.0), (0.5, 0.4), (3.0, 0.4)])
    def test_finds_none_where_there_is_none(self, epsilon, censoring):
        """Of 1,000 tests at 5 %, by binomial tails, more than 90 with a probability below 1e-7."""
        n, repetitions = 600, 1000
        ends = band_ends(1.5, 12, "early")
        width = np.diff(ends, prepend=0.0) / 1.5
        variance = 8.0 / epsilon**2
        rejected = 0
        for seed in range(repetitions):
            time, event, treated = simulated(n, 1.0, seed, censoring)
            seen, band = bands_of(Histories(time, event), ends)
            cell = seen.cells(band, 12, 1.5)
            exact = np.bincount(25 * treated + cell, minlength=50)
            noisy = lattice_laplace(exact, 2.0 / epsilon, random_source(seed)).astype(float)
            made = []
            for g in (0, 1):
                own, other = noisy[25 * g : 25 * g + 25], noisy[25 - 25 * g : 50 - 25 * g]
                table = NoisyTable(own, 2, variance, n, (float(other.sum()), 25 * variance))
                fit = ActuarialEstimate(table, width)
                made.append(_group_of(table, fit, 0))
            rejected += _p_value(*_logrank(*made)) < 0.05
        assert 15 < rejected < 90

    def test_of_two_fits_to_different_people(self):
        time, event, treated = simulated(ratio=2.0)
        model = DPKaplanMeierFitter(1.0, max_time=1.5, n_intervals=20, random_state=0)
        fits = [clone(model).fit(time[here], event[here]) for here in (treated, ~treated)]
        assert logrank_test(*fits).p_value < 1e-4

    def test_of_competing_events_the_one_of_interest(self):
        time, event, treated = simulated(ratio=2.0)
        cause = np.where(event, np.random.default_rng(0).choice([1, 2], time.size), 0)
        options = {"max_time": 1.5, "causes": [1, 2], "groups": [False, True], "random_state": 0}
        fitter = DPAalenJohansenFitter(3.0, **options).fit(time, cause, group=treated)
        causes = [fitter.of_cause(which) for which in (1, 2)]
        found = [logrank_test(one.of_group(False), one.of_group(True)).p_value for one in causes]
        assert max(found) < 0.01
        assert found[0] != found[1]

    def test_pairs(self):
        time, event, treated = simulated(ratio=2.0)
        thirds = np.where(treated, "b", np.where(np.arange(time.size) % 2, "a", "c"))
        options = {"max_time": 1.5, "groups": ["a", "b", "c"], "random_state": 0}
        fitter = DPKaplanMeierFitter(3.0, **options).fit(time, event, group=thirds)
        table = pairwise_logrank_test(fitter)
        assert table.index.tolist() == [("a", "b"), ("a", "c"), ("b", "c")]
        assert table.loc[[("a", "b"), ("b", "c")], "p"].max() < 1e-3 < table.loc[("a", "c"), "p"]

    @pytest.mark.parametrize("ratio", [1.0, 1.3])
    def test_of_all_groups_is_near_that_of_lifelines_without_privacy(self, ratio):
        time, event, treated = simulated(3000, ratio)
        time, event = np.minimum(time, 1.5), event & (time <= 1.5)
        part = treated.astype(int) + 2 * (np.arange(time.size) % 5 == 0)
        theirs = lifelines_overall(time, part, event)
        options = {"max_time": 1.5, "groups": [0, 1, 2, 3], "n_intervals": 60, "random_state": 0}
        ours = multivariate_logrank_test(
            DPKaplanMeierFitter(np.inf, **options).fit(time, event, group=part)
        )
        assert ours.test_statistic == pytest.approx(theirs.test_statistic, rel=0.05, abs=0.3)
        assert ours.degrees_of_freedom == 3
        assert ours.p_value == pytest.approx(chi2.sf(ours.test_statistic, 3))

    def test_of_all_of_two_groups_is_that_of_a_pair(self):
        time, event, treated = simulated(ratio=1.3)
        options = {"max_time": 1.5, "groups": [False, True], "random_state": 0}
        fitter = DPKaplanMeierFitter(1.0, **options).fit(time, event, group=treated)
        pair, found = logrank_test(*map(fitter.of_group, [0, 1])), multivariate_logrank_test(fitter)
        assert (found.p_value, found.test_statistic) == (pair.p_value, pair.test_statistic)

    @pytest.mark.slow
    @pytest.mark.parametrize("epsilon", [0.5, 3.0])
    def test_of_all_groups_finds_nothing_where_there_is_nothing(self, epsilon):
        """Of 1,000 tests at 5 %, by binomial tails, more than 90 with a probability below 1e-7."""
        rejected = 0
        options = {"max_time": 1.5, "n_intervals": 12, "groups": [0, 1, 2]}
        for seed in range(1000):
            time, event, treated = simulated(900, 1.0, seed)
            part = treated + (np.arange(time.size) % 3 == 0)
            fitter = DPKaplanMeierFitter(epsilon, random_state=seed, **options)
            fitter.fit(time, event, group=part)
            rejected += multivariate_logrank_test(fitter).p_value < 0.05
        assert 15 < rejected < 90

    @pytest.mark.slow
    def test_of_any_cause(self):
        """Groups differ in one of two causes: each test is of the cause that it names."""
        rng, n = np.random.default_rng(0), 6000
        group = rng.choice(["f", "m"], n)
        times = rng.exponential(0.8, n), rng.exponential(np.where(group == "m", 0.4, 1.6))
        cause = np.where(np.min(times, axis=0) > 1.0, 0, 1 + np.argmin(times, axis=0))
        options = {"max_time": 1.0, "causes": [1, 2], "groups": ["f", "m"], "random_state": 0}
        fitter = DPAalenJohansenFitter(9.0, **options)
        fitter.fit(np.min(times, axis=0), cause, group=group)
        overall = [multivariate_logrank_test(fitter, cause=which).p_value for which in (1, 2)]
        pairs = [pairwise_logrank_test(fitter, cause=which)["p"].item() for which in (1, 2)]
        assert overall == pairs
        assert overall[1] < 1e-6 < 1e-3 < overall[0]
        with pytest.raises(ValueError, match="cause must be one of causes"):
            multivariate_logrank_test(fitter, cause=3)
        with pytest.raises(ValueError, match="cause must be one of causes"):
            logrank_test(*groups(simulated()), cause=1)

    def test_what_is_no_pair_of_groups_is_refused(self):
        a, _ = groups(simulated())
        other = DPKaplanMeierFitter(max_time=1.5, n_intervals=3, random_state=0).fit([1.0, 2.0])
        for function, arguments, why in (
            (logrank_test, (a, other), "same max_time"),
            (logrank_test, (a, a), "two groups"),
            (logrank_test, (a, DPWeibullFitter(max_time=1.0)), "fitted curves"),
            (logrank_test, ({"a": a}, a), "fitted curves"),
            (pairwise_logrank_test, (other,), "two groups or more"),
            (multivariate_logrank_test, (other,), "two groups or more"),
        ):
            with pytest.raises((ValueError, TypeError), match=why):
                function(*arguments)


class TestComparisons:
    def test_restricted_means(self):
        a, b = groups(simulated(4000, ratio=2.0), 3.0)
        found = compare_restricted_means(b, a, 1.0)
        # The integrals of exp(-t / 2) and exp(-t).
        truth = 2 * -math.expm1(-0.5) - -math.expm1(-1.0)
        row = found.loc["difference"]
        assert row["lower"] < truth < row["upper"] < row["lower"] + 0.1
        slow, fast = (one.restricted_mean_survival_time(1.0).estimate for one in (b, a))
        assert row["estimate"] == pytest.approx(slow - fast)
        assert found.loc["ratio", "lower"] > 1.0

    def test_groups_have_errors_of_their_own(self):
        """The difference is as uncertain as both are, whatever seeds draws have."""
        a, b = groups(simulated(4000), 1.0)
        means = [one.restricted_mean_survival_time(1.0, n_resamples=4000) for one in (a, b)]
        both = math.hypot(*(mean.upper - mean.lower for mean in means))
        row = compare_restricted_means(a, b, 1.0, n_resamples=4000).loc["difference"]
        assert row["upper"] - row["lower"] == pytest.approx(both, rel=0.12)

    @pytest.mark.slow
    def test_weibull_laws(self):
        time, event, treated = simulated(4000, ratio=2.0)
        model = DPWeibullFitter(3.0, max_time=1.5, random_state=0)
        a, b = (clone(model).fit(time[here], event[here]) for here in (treated, ~treated))
        ratio = compare_percentiles(a, b, n_resamples=100).loc["ratio"]
        assert 1.0 < ratio["lower"] < ratio["estimate"] < 2.5
        assert ratio["estimate"] > 1.5
        means = compare_restricted_means(a, b, n_resamples=100)
        assert means.loc["difference", "lower"] > 0.0

    def test_medians_that_are_not_reached(self):
        model = DPKaplanMeierFitter(3.0, max_time=1.0, n_intervals=8, random_state=0)
        late, early, other = (
            clone(model).fit(np.full(n, time)) for n, time in ((500, 2.0), (500, 0.3), (400, 2.0))
        )
        found = compare_percentiles(late, early)
        assert found.loc["difference", "estimate"] == found.loc["ratio", "estimate"] == math.inf
        nothing = compare_percentiles(late, other)
        assert nothing["estimate"].isna().all()
        assert nothing.loc["ratio"].tolist()[1:] == [0.0, math.inf]
        with pytest.raises(TypeError, match="fitted distributions"):
            compare_percentiles(late, 3.0)
