"""Histories as one value, the columns that hold them, and what refuses those that are not taken."""

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPWeibullFitter,
    FrameChunks,
    PrivacyAccountant,
    PrivateSearchCV,
)
from skdpsurv.cli.options import SurvivalColumns
from skdpsurv.data.histories import (
    LARGEST_LABEL,
    UNSTATED,
    Columns,
    Histories,
    read_columns,
    read_target,
    refuse_starts,
)
from skdpsurv.evaluation.evaluation import Evaluation

EXIT, CAUSE = np.array([0.5, 2.0, 3.0, 2.0]), np.array([1, 2, 1, 0])


def full():
    """Histories with a value in each column."""
    each = np.arange(4)
    return Histories(EXIT, CAUSE, entry=0.1 * each, stratum=each % 2, person=each[::-1])


class TestHistories:
    def test_every_column_goes_with_its_records(self):
        some, rest = full().take(slice(1)), full().take(np.array([1, 2, 3]))
        assert rest.person.tolist() == [2, 1, 0]
        again = Histories.joined([some, rest])
        assert {*again.columns} == {"exit", "cause", "entry", "stratum", "person"}
        for name, column in again.columns.items():
            np.testing.assert_array_equal(column, full().columns[name])
        assert {*Histories(EXIT, CAUSE).take(slice(2)).columns} == {"exit", "cause"}

    def test_the_horizon_censors_and_changes_nothing_else(self):
        seen = full().clipped(2.0)
        assert seen.exit.tolist() == [0.5, 2.0, 2.0, 2.0]
        assert seen.cause.tolist() == [1, 2, 0, 0]
        assert seen.event.tolist() == [True, True, False, False]
        for name in ("entry", "stratum", "person"):
            np.testing.assert_array_equal(seen.columns[name], full().columns[name])
        events = Histories(EXIT, CAUSE > 0).clipped(2.0).cause
        assert (events.dtype, events.tolist()) == (bool, [True, True, False, False])

    def test_indicators_of_events_are_not_copied(self):
        flags = CAUSE > 0
        assert np.shares_memory(Histories(EXIT, flags).event, flags)

    @pytest.mark.parametrize("cause", [CAUSE, CAUSE > 0], ids=["causes", "events"])
    def test_cells_are_those_of_causes_then_of_censoring_then_of_who_stays(self, cause):
        n_causes, band = int(cause.max()), np.array([0, 1, 1, 1])
        seen = Histories(EXIT, cause).clipped(2.0)
        cells = seen.cells(band, 2, 2.0, n_causes)
        last = (n_causes + 1) * 2
        assert cells.tolist() == [0, 2 * int(cause[1]) - 1, last, last]
        gone = Histories(np.array([1.0]), np.array([False])).cells(np.array([1]), 2, 2.0, n_causes)
        assert gone.tolist() == [2 * n_causes + 1]


FITTERS = [DPDiscreteTimeSurvival, DPKaplanMeierFitter, DPWeibullFitter]


class TestRefusals:
    def test_estimators_state_the_columns_that_they_take(self):
        taken = {DPDiscreteTimeSurvival: ("entry",), DPWeibullFitter: (), Evaluation: ("entry",)}
        curves = [DPKaplanMeierFitter, DPAalenJohansenFitter]
        taken |= dict.fromkeys(curves, ("entry", "stratum"))
        for kind, more in taken.items():
            assert kind._card.histories == ("exit", "cause", *more)
        assert DPLogisticRegression._card.histories == ()

    @pytest.mark.parametrize(
        ("kind", "name"), [(DPWeibullFitter, "entry"), *((kind, "stratum") for kind in FITTERS)]
    )
    def test_a_column_that_is_not_taken_is_refused_by_its_name(self, kind, name):
        taken = ", ".join(kind._card.histories)
        says = f"{kind.__name__} has no parameter '{name}'.* takes no columns but {taken}"
        with pytest.raises(TypeError, match=says):
            kind(max_time=3.0).prepare(np.zeros((4, 1)), EXIT, **{name: np.zeros(4)})

    @pytest.mark.parametrize("estimator", FITTERS)
    @pytest.mark.parametrize("names", [("start", "stop"), ("died", "entry", "exit")])
    @pytest.mark.parametrize("kind", ["frame", "fields", "chunks"])
    def test_late_entries_are_refused_by_names_before_anything_is_spent(
        self, estimator, names, kind
    ):
        table = pd.DataFrame(np.zeros((4, len(names))), columns=names)
        ledger = PrivacyAccountant(3.0, charge_refusals=True)
        estimator = estimator(max_time=3.0, accountant=ledger)
        X, y = pd.DataFrame({"x": np.zeros(4)}), table
        if kind == "fields":
            y = np.array(table.to_records(index=False))
        if kind == "chunks":
            chunks = FrameChunks([X.join(table)])
            X, y = chunks[["x"]], chunks[list(names)]
        with pytest.raises(ValueError, match=f"'{names[-1]}' and '{names[-2]}' look like rows"):
            estimator.fit(X, y)
        assert ledger.spent() == 0.0

    def test_a_search_refuses_what_its_estimator_does(self):
        y = pd.DataFrame({"entry": np.ones(300, int), "exit": np.ones(300)})
        search = PrivateSearchCV(DPDiscreteTimeSurvival(max_time=3.0), {"alpha": [0.0, 0.01]})
        with pytest.raises(ValueError, match="look like rows"):
            search.prepare(np.zeros((300, 1)), y)

    @pytest.mark.parametrize(
        "names", [("died", "days_from_entry_to_exit"), ("event_at_end", "days_from_start")]
    )
    def test_names_of_durations_are_not_taken_for_starts_and_stops(self, names):
        DPKaplanMeierFitter(max_time=3.0).prepare(
            None, pd.DataFrame(np.ones((4, 2)), columns=names)
        )
        refuse_starts(names, names)


LABELLED = pd.DataFrame({"days": [1.0, 2.0, 3.0], "state": ["dead", "alive", "moved"]})


class TestColumns:
    @pytest.mark.parametrize(
        ("columns", "says"),
        [
            (Columns("days", "days"), "time and event must be different columns"),
            (Columns("days", "died", "days"), "time and event and person must be different"),
            (Columns("died", "days"), "must not be named as each other"),
            (Columns("exit", "died", "entry"), "look like rows from a start to a stop"),
            (Columns("days", "died", event_is=["a"]), "must be given together"),
            (Columns("days", censored_is=["a"]), "must be given together"),
            (Columns("days", event_is=["a"], censored_is=["b"]), "for a column of events"),
            (Columns("days", "died", event_is=["a"], censored_is=["a"]), "be different labels"),
            (Columns("days", "died", event_is=[LARGEST_LABEL], censored_is=[1]), "below 2"),
        ],
    )
    def test_contradictions_are_refused(self, columns, says):
        with pytest.raises(ValueError, match=says):
            columns.check()
        Columns("days", "died", "id", ["a"], ["b"]).check()

    def test_a_table_must_have_each_column_once(self):
        for names in ([], ["days"], ["days", "died", "died"]):
            with pytest.raises(ValueError, match=r"(event|time) must be the name"):
                Columns("days", "died").check(names)

    def test_labels_become_events_and_others_what_a_fit_refuses(self):
        columns = Columns("days", "state", None, ["dead", "moved"], ["alive"])
        assert columns.events(LABELLED).tolist() == [1.0, 0.0, 1.0]
        assert columns.events(LABELLED, ["moved"]).tolist() == [0.0, 0.0, 1.0]
        fewer = Columns("days", "state", None, ["dead"], ["alive"])
        assert fewer.events(LABELLED).tolist() == [1.0, 0.0, UNSTATED]
        with pytest.raises(ValueError, match="the event column of y must be boolean, or 0 and 1"):
            read_target(fewer.target(LABELLED))
        missing = LABELLED.assign(state=["dead", None, "alive"])
        with pytest.raises(ValueError, match="must not contain missing"):
            read_target(fewer.target(missing))

    def test_cells_that_are_no_labels_are_all_refused(self):
        for cell in ([1], {}, np.ones(2)):
            cells = pd.Series([cell, "dead", "alive"], dtype=object)
            columns = Columns("days", "state", None, ["dead"], ["alive"])
            assert (columns.events(LABELLED.assign(state=cells)) == UNSTATED).any()

    def test_any_name_may_be_that_of_events(self):
        table = LABELLED.rename(columns={"state": "self"})
        table["self"] = [1, 0, 1]
        assert Columns("days", "self").target(table)["self"].tolist() == [1, 0, 1]

    def test_all_are_observed_without_a_column_of_events(self):
        assert Columns("days").target(LABELLED).tolist() == [1.0, 2.0, 3.0]

    def test_dask_stays_lazy_and_is_read_alike(self):
        dd = pytest.importorskip("dask.dataframe")
        columns = Columns("days", "state", None, ["dead", "moved"], ["alive"])
        lazy = columns.target(dd.from_pandas(LABELLED, npartitions=2))
        assert hasattr(lazy, "dask")
        pd.testing.assert_frame_equal(lazy.compute(), columns.target(LABELLED))

    def test_a_command_and_a_protocol_read_the_same(self):
        options = SurvivalColumns(time="days", event="state", event_is=["dead,moved", "1", "TRUE"])
        named = SurvivalColumns(**{**vars(options), "censored_is": ["alive", "0"]}).named()
        named.check()
        assert named.event_is == ["dead", "moved", "1", "TRUE", 1, True]
        plain = Columns("days", "state", None, ("dead", "moved"), ("alive",))
        pd.testing.assert_frame_equal(named.target(LABELLED), plain.target(LABELLED))
        numbers = LABELLED.assign(state=[True, 1, 0])
        assert named.events(numbers).tolist() == [1.0, 1.0, 0.0]

    def test_columns_of_other_lengths_are_refused(self):
        with pytest.raises(ValueError, match="must have the same length"):
            read_columns(EXIT, [True], ("durations", "event_observed"))


class Asked:
    """A cell that tells its secret to whom asks for its class, or for its truth."""

    @property
    def __class__(self):
        raise RuntimeError("secret")

    def __bool__(self):
        raise RuntimeError("secret")


class TestOneRecord:
    """No cell is asked, and none is quoted, before or after the charge."""

    def test_spans_beyond_all_spans_of_pandas_are_read_as_others(self):
        event, time = np.array([True, False] * 10), np.arange(1, 21).astype("m8[D]")
        time[3] = np.timedelta64(2**62, "D")
        ledger = PrivacyAccountant(3.0, charge_refusals=True)
        fitter = DPKaplanMeierFitter(max_time=10.0, accountant=ledger)
        assert fitter.fit(None, (event, time)).median_survival_time_ > 0.0
        assert ledger.spent() == 1.0

    def test_cells_are_not_asked_for_their_class(self):
        flags = np.array([True, False, Asked()], dtype=object)
        frame = pd.DataFrame({"event": flags, "time": np.ones(3)})
        for X, y, options in [
            (None, None, {"durations": np.ones(3), "event_observed": flags}),
            (None, frame, {}),
            ([1.0, Asked(), 2.0], [True, False, True], {}),
        ]:
            with pytest.raises((ValueError, TypeError)) as caught:
                DPKaplanMeierFitter(max_time=10.0).fit(X, y, **options)
            assert "secret" not in str(caught.value)
        with pytest.raises((ValueError, TypeError)) as caught:
            DPDiscreteTimeSurvival(max_time=10.0).fit([[1.0], [Asked()], Asked()], frame)
        assert "secret" not in str(caught.value)


def test_parameters_may_change_after_they_were_planned_with():
    ends = np.array([1.0, 5.0])
    fitter = DPKaplanMeierFitter(max_time=9.0, breakpoints=ends)
    ready = fitter.prepare(None, LABELLED.assign(state=1)[["state", "days"]])
    ends[0] = 0.5
    assert ready.run().release_.parameters["breakpoints"][0] == 1.0
