"""Hazard regression of people who enter late: from tables to fits and scores."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPWeibullFitter,
    FrameChunks,
    PosteriorSampling,
    PrivacyAccountant,
    split_target,
)
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.survival.concordance import concordance_index
from skdpsurv.survival.hazards import life_table
from skdpsurv.survival.hazards.model import HazardRecords, orthogonal_basis, published_basis

END, Q = 10.0, 20


def people(n=400, seed=0, trend=0.0):
    """Rows, events, times and entries, of which some are after the exit and some beyond the end."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    entry = np.where(rng.random(n) < 0.7, rng.uniform(0.0, 8.0, n), 0.0)
    entry = np.clip(entry + trend * X[:, 0], 0.0, None)
    entry[:3] = 1e3
    lifetime = rng.exponential(6.0 * np.exp(-0.8 * X[:, 0]))
    ends = rng.uniform(2.0, 12.0, n)
    return X, (lifetime <= ends, np.minimum(lifetime, ends)), entry


def fit(X, y, entry=None, **parameters):
    stated = {"max_time": END, "n_intervals": Q, **parameters}
    return DPDiscreteTimeSurvival(**stated).fit(X, y, entry=entry)


def person_periods(X, y, entry, n_knots):
    """The rows of a logistic regression by the same rule, and whether each ended in an event."""
    event, time = y
    last = np.clip(np.ceil(Q * np.minimum(time, END) / END), 1, Q).astype(int)
    before = np.clip(np.ceil(Q * entry / END), 0, Q).astype(int)
    basis = published_basis(Q, n_knots)
    seen = [(i, s) for i in range(len(X)) for s in range(before[i] + 1, last[i] + 1)]
    rows = np.array([np.r_[basis[s - 1], X[i]] for i, s in seen])
    events = [bool(event[i]) and time[i] <= END and s == last[i] for i, s in seen]
    return rows, np.array(events, dtype=float)


@pytest.mark.parametrize("n_knots", [1, 4])
def test_without_privacy_it_is_a_person_period_fit(n_knots):
    api = pytest.importorskip("statsmodels.api")
    X, y, entry = people()
    model = fit(X, y, entry, epsilon=np.inf, n_knots=n_knots)
    rows, events = person_periods(X, y, entry, n_knots)
    found = api.Logit(events, rows).fit(disp=0, method="newton", tol=1e-14, maxiter=100).params
    np.testing.assert_allclose(model.coef_, found[n_knots:], atol=1e-8)
    np.testing.assert_allclose(model.baseline_coef_, found[:n_knots], atol=1e-6)


def test_real_people_who_entered_late_are_near_coxs():
    lifelines = pytest.importorskip("lifelines")
    from lifelines.datasets import load_multicenter_aids_cohort_study

    frame = load_multicenter_aids_cohort_study()
    year = (frame["AIDSY"] - frame["AIDSY"].mean()) / frame["AIDSY"].std()
    data = pd.DataFrame({"x": year, "w": frame["W"], "t": frame["T"], "d": frame["D"]})
    data = data[data["w"] < data["t"]]
    cox = lifelines.CoxPHFitter().fit(data, "t", "d", entry_col="w")
    own = {"max_time": float(np.ceil(data["t"].max())), "n_intervals": 400, "n_knots": 5}
    X, y, entry = split_target(data, time="t", event="d", entry="w")
    model = fit(X, y, entry, epsilon=np.inf, link="cloglog", **own)
    error = cox.standard_errors_["x"]
    assert abs(model.coef_[0] - cox.params_["x"]) < 0.2 * error


@pytest.mark.parametrize("link", sorted(LINKS))
def test_private_fits_come_near_the_fit_without_noise(link):
    X, y, entry = people(4000, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = fit(X, y, entry, epsilon=np.inf, link=link, max_cumulative_hazard=3.0)
        private = fit(
            X, y, entry, epsilon=1e4, link=link, random_state=0, max_cumulative_hazard=3.0
        )
    np.testing.assert_allclose(private.coef_, exact.coef_, atol=0.06)


def test_ignoring_the_entry_is_another_answer():
    """Who enters late has survived until then: hazards seem lower if that is forgotten."""
    X, (event, time), entry = people(8000, seed=2, trend=4.0)
    seen = entry < time
    X, y, entry = X[seen], (event[seen], time[seen]), entry[seen]
    right, wrong = (fit(X, y, e, epsilon=np.inf, link="cloglog") for e in (entry, None))
    assert right.coef_[0] == pytest.approx(0.8, abs=0.1)
    assert abs(wrong.coef_[0] - 0.8) > 0.2


class TestGrid:
    def test_entries_are_intervals_from_0(self):
        entries = np.array([0.0, 5e-324, 1.0, 1.0001, 9.99, 10.0, 1e308])
        seen = Histories(np.full(7, 5.0), np.ones(7, bool), entries).on_grid(10.0, 10)
        assert seen.entry.tolist() == [0, 1, 1, 2, 10, 10, 10]
        assert seen.exit.tolist() == [5] * 7

    def test_an_entry_is_checked_and_never_refused_for_being_late(self):
        X, y, entry = people(60)
        for wrong, says in ((-1.0, "finite and not negative"), (np.inf, "finite"), (np.nan, "NaN")):
            bad = entry.copy()
            bad[7] = wrong
            with pytest.raises(ValueError, match=f"entry must.*{says}"):
                fit(X, y, bad)
        with pytest.raises(ValueError, match="entry must have one entry for each record"):
            fit(X, y, entry[:-1])
        fit(X, y, np.full(60, 1e300), epsilon=10.0)


class TestPilot:
    def test_each_record_is_in_one_cell(self):
        for seed in range(5):
            X, (event, time), entry = people(100, seed)
            seen = Histories(time, event, entry).on_grid(END, Q)
            for n_bands in (1, 3, 4, Q):
                blocks = InMemory([HazardRecords(X, seen)])
                counts = life_table.entry_counts(blocks, Q, n_bands)
                assert counts.sum() == 100
                assert counts[-1] == np.count_nonzero(seen.entry >= seen.exit)
                assert life_table.seen_cells(counts).sum() == 100 - counts[-1]
                cells = life_table.seen_cells(np.ones_like(counts))
                assert cells.sum() == life_table.n_seen_cells(n_bands)

    @pytest.mark.parametrize("late", [0.0, 0.9])
    def test_the_level_is_near_that_of_the_truth(self, late):
        rng, n, rate = np.random.default_rng(3), 20_000, 0.1
        time = rng.exponential(1.0 / rate, n)
        entry = np.where(rng.random(n) < late, rng.uniform(0.0, 8.0, n), 0.0)
        kept = entry < time  # only who lives until the entry can be seen
        seen = Histories(time[kept], np.ones(kept.sum(), bool), entry[kept]).on_grid(END, 200)
        counts = life_table.entry_counts(
            InMemory([HazardRecords(np.zeros((kept.sum(), 1)), seen)]), 200, 4
        )
        basis, link = orthogonal_basis(200, 3), LINKS["logit"]
        prior = np.array([link.predictor(0.003), 0.0, 0.0])
        coef = life_table.baseline_from_entries(counts, 10.0, basis, link, prior)
        level = link.survival(basis @ coef).value.sum()
        assert level == pytest.approx(1.0, rel=0.06)


class TestArguments:
    @pytest.mark.parametrize("person", [False, True])
    def test_memory_chunks_and_dask_agree(self, person):
        dd = pytest.importorskip("dask.dataframe")
        X, (event, time), entry = people(300)
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(died=event, days=time, w=entry)
        frame["id"] = np.r_[np.arange(250), np.arange(50)]
        pieces = [frame[:120], frame[120:]]
        found = []
        for records in (frame, FrameChunks(pieces), dd.from_pandas(frame, npartitions=3)):
            names = {"person": "id"} if person else {}
            X, y, *others = split_target(records, time="days", event="died", entry="w", **names)
            assert len(others) == 1 + person
            X = X[["a", "b"]]
            model = DPDiscreteTimeSurvival(np.inf, max_time=END, n_intervals=Q)
            options = dict(zip((*names, "entry"), others, strict=True))
            found.append(model.fit(X, y, **options).coef_)
        np.testing.assert_allclose(found[1:], found[:-1], atol=1e-9)
        first = frame[:250] if person else frame
        own = fit(first[["a", "b"]], first[["died", "days"]], first["w"], epsilon=np.inf)
        np.testing.assert_allclose(found[0], own.coef_, atol=1e-9)

    def test_entries_in_memory_are_not_sent_to_workers(self):
        dd = pytest.importorskip("dask.dataframe")
        X, (event, time), entry = people(60)
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(died=event, days=time)
        X, y = split_target(dd.from_pandas(frame, npartitions=2), time="days", event="died")
        with pytest.raises(TypeError, match="entry must be a collection of Dask"):
            fit(X, y, entry, epsilon=2.0)

    def test_starts_are_entries_where_that_is_said(self):
        frame = pd.DataFrame({"start": [0.0, 1.0], "stop": [2.0, 3.0], "died": [1, 0], "x": [1, 2]})
        with pytest.raises(ValueError, match="look like rows from a start to a stop"):
            split_target(frame, time="stop", event="died")
        X, y, entry = split_target(frame, time="stop", event="died", entry="start")
        assert X.columns.tolist() == ["x"]
        assert y.columns.tolist() == ["died", "stop"]
        assert entry.tolist() == [0.0, 1.0]
        with pytest.raises(ValueError, match="time and event and entry must be different"):
            split_target(frame, time="x", event="died", entry="x")

    def test_what_is_wrong_with_an_entry_costs_nothing(self):
        """Also a word for entries that are in blocks, and where refusals are charged."""
        X, y, entry = people()
        for wrong, says in ((True, "entry must"), (entry[1:], "one entry for each record")):
            ledger = PrivacyAccountant(10.0, charge_refusals=wrong is not True)
            with pytest.raises(ValueError, match=says):
                fit(X, y, wrong, accountant=ledger)
            assert ledger.spent() == 0.0

    def test_a_fine_grid_needs_no_table_of_pairs(self):
        X, y, entry = people(50)
        fine, usual = (fit(X, y, entry, epsilon=np.inf, n_intervals=q) for q in (50_000, 500))
        assert fine.coef_ == pytest.approx(usual.coef_, abs=0.05)

    def test_the_entry_is_routed(self):
        assert DPDiscreteTimeSurvival(max_time=1.0)._card.histories == ("exit", "cause", "entry")
        sklearn = pytest.importorskip("sklearn")
        with sklearn.config_context(enable_metadata_routing=True):
            model = DPDiscreteTimeSurvival(max_time=1.0).set_fit_request(entry=True)
            model.set_score_request(entry=True)
            requests = model.get_metadata_routing()
        assert requests.fit.requests["entry"] is True

    @pytest.mark.parametrize(
        ("parameters", "says"),
        [
            ({"method": "psgld"}, "entry must be None with method='psgld'"),
            ({"method": PosteriorSampling("psgld"), "delta": 1e-6}, "entry must be None with"),
        ],
    )
    def test_what_is_not_provided_for_is_refused_before_anything_is_spent(self, parameters, says):
        X, y, entry = people(60)
        ledger = PrivacyAccountant(5.0, charge_refusals=True)
        with pytest.raises(ValueError, match=says):
            fit(X, y, entry, accountant=ledger, **parameters)
        assert ledger.spent() == 0.0

    def test_others_refuse_entries(self):
        X, y, entry = people(60)
        with pytest.raises(TypeError, match="Of histories it takes no columns but exit, cause"):
            DPWeibullFitter(max_time=END).prepare(X, y, entry=entry)

    def test_a_release_states_that_there_are_entries(self):
        X, y, entry = people(60)
        release = fit(X, y, entry, epsilon=10.0).release_
        assert release.guarantee.public_inputs["late_entry"] is True
        usual = fit(X, y, epsilon=10.0).release_
        assert "late_entry" not in usual.guarantee.public_inputs

    def test_the_estimand_needs_the_entries_of_the_fit(self):
        X, y, entry = people(2000, seed=5)
        model = fit(X, y, entry, epsilon=1e3, max_cumulative_hazard=5.0)
        found = model.estimand(X, y, entry=entry).to_numpy()
        np.testing.assert_allclose(found, model.coef_, atol=0.1)
        with pytest.raises(ValueError, match="entry must be given as it was to fit"):
            model.estimand(X, y)


def test_who_is_seen_from_0_is_in_pairs_at_0():
    y = pd.DataFrame({"event": [True, False, True], "time": [0.0, 1.0, 2.0]})
    assert concordance_index(y, [0.0, 1.0, 2.0], entry=np.zeros(3)) == 0.0
    assert concordance_index(y, [0.0, 1.0, 2.0]) == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_counts_if_both_are_at_risk(seed):
    rng, n = np.random.default_rng(seed), 40
    time, entry = (rng.integers(0, top, n).astype(float) for top in (12, 9))
    event, risk, weight = rng.random(n) < 0.6, rng.integers(0, 6, n), rng.random(n)
    concordant = comparable = 0.0
    given, entry = entry, np.where(entry == 0.0, -1.0, entry)  # seen from 0, and at risk there
    for i in np.flatnonzero(event & (entry < time)):
        later = (time > time[i]) | ((time == time[i]) & ~event)
        others = weight * (later & (entry < time[i]) & (entry < time))
        comparable += weight[i] * others.sum()
        concordant += weight[i] * (others @ ((risk[i] > risk) + 0.5 * (risk[i] == risk)))
    y = pd.DataFrame({"event": event, "time": time})
    found = concordance_index(y, risk, sample_weight=weight, entry=given)
    assert found == pytest.approx(concordant / comparable, abs=1e-12)
