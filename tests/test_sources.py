"""The same release wherever records are: in memory, in chunks, in partitions, under names."""

from __future__ import annotations

import math
from dataclasses import replace
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    FeaturePartition,
    FrameChunks,
    HybridMEstimator,
    PrivacyAccountant,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    split_target,
)
from skdpsurv.data.chunks import ChunkBlocks
from skdpsurv.data.person import one_record_each
from skdpsurv.evaluation import private_survival_metrics
from skdpsurv.model_selection import PrivateSearchCV
from tests.support import checks, tables
from tests.support.registry import N_RECORDS

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

#: Whose each record is: the tables here have a few more records, of people who are there already.
AGAIN = np.array([3, 3, 17, 40])
WHOSE = np.concatenate([np.arange(N_RECORDS), AGAIN])

of_tables = checks.each(
    replace(setting, slow=setting.slow or not setting.representative)
    for setting in tables.OF_TABLES
    if not setting.data().options
    # Which records it draws depends on where they are; their law does not.
    and "psgld" not in setting.name
)


@pytest.fixture(autouse=True)
def threads():
    """No cluster, whatever other tests have begun."""
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


def fitted(setting, X, y, **options):
    return checks.fit(setting.make(3), X, y, options)


def same(one, other, *, exact=False):
    """Compare two outcomes, of which one may be a documented failure."""
    assert type(one.error) is type(other.error)
    if one.error is not None:
        return
    one, other = one.fitted.release_, other.fitted.release_
    assert one.values.keys() == other.values.keys()
    for name, value in one.values.items():
        np.testing.assert_allclose(
            other.values[name], value, rtol=0 if exact else 1e-9, atol=0 if exact else 1e-9
        )
    assert one.guarantee.public_inputs == other.guarantee.public_inputs
    assert one.n_features_in == other.n_features_in


def in_chunks(frame, *ends):
    return FrameChunks([frame.iloc[a:b] for a, b in zip((0, *ends), (*ends, None), strict=True)])


@of_tables
def test_chunks_and_partitions_do_not_matter(setting):
    frame, columns, target = tables.table(setting.data())
    whole = fitted(setting, frame[columns], frame[target])
    chunks = in_chunks(frame, 10, 10, 35)
    same(whole, fitted(setting, chunks[columns], chunks[target]))
    partitions = dd.from_pandas(frame, npartitions=3, sort=False)
    same(whole, fitted(setting, partitions[columns], partitions[target]))


@of_tables
def test_one_record_of_each_person(setting):
    frame, columns, target = tables.table(setting.data())
    # What comes later of a person is something else.
    more = pd.concat([frame, frame.iloc[(AGAIN + 5) % N_RECORDS]], ignore_index=True)
    whole = fitted(setting, frame[columns], frame[target])
    found = fitted(setting, more[columns], more[target], person=WHOSE)
    same(whole, found, exact=True)
    if found.error is None:
        guarantee = found.fitted.guarantee_
        assert guarantee.neighbours == "replace-one-person"
        assert guarantee.public_inputs["n_records"] == N_RECORDS
        assert "each single person" in guarantee.describe()
    named = more.assign(who=[f"p{number}" for number in WHOSE])
    chunks = in_chunks(named, 10, 48)
    same(whole, fitted(setting, chunks[columns], chunks[target], person=chunks["who"]))
    parts = dd.from_pandas(named, npartitions=4, sort=False)
    same(whole, fitted(setting, parts[columns], parts[target], person=parts["who"]))


class TestPeople:
    X = np.linspace(-0.5, 0.5, 12)[:, None]
    y = np.arange(12) % 2

    def model(self, **parameters):
        return DPLogisticRegression(1.0, classes=[0, 1], **parameters)

    def test_the_first_record_counts_and_no_other(self):
        whose = np.array([5, 5, 5, 2, 2, 9, 1, 0, 7, 7, 8, 3])
        one = self.model(random_state=0).fit(self.X, self.y, person=whose)
        other = self.X.copy()
        other[[1, 2, 4, 9]] = 0.4  # not the first of anybody
        again = self.model(random_state=0).fit(other, self.y, person=whose)
        assert (one.coef_ == again.coef_).all()
        assert one.guarantee_.public_inputs["n_records"] == 8

    def test_names_of_every_type(self):
        whose = np.array([5, 5, 5, 2, 2, 9, 1, 0, 7, 7, 8, 3])
        found = [
            self.model(random_state=0).fit(self.X, self.y, person=names).coef_[0, 0]
            for names in (
                whose,
                whose.astype(np.uint8),
                whose.tolist(),
                whose.astype(object),
                whose.astype(str),
                pd.Series(whose.astype(str), dtype="string"),
                pd.Series(whose.astype(str)).astype("category"),
                pd.Series(whose, dtype="Int64"),
            )
        ]
        assert len(set(found)) == 1

    @pytest.mark.parametrize(
        "names",
        [
            np.arange(12.0),
            [None, *range(11)],
            ["a", None] * 6,
            pd.Series([1, None] * 6, dtype="Int64"),
            ["a", 1] * 6,
            np.arange(12) > 3,
            np.full(12, np.nan),
            np.arange(24).reshape(12, 2),
            np.full(12, 2**64 - 1, dtype=np.uint64),
            np.ma.array(np.arange(12)),
            "abcdefghijkl",
            {"a": 1},
        ],
        ids=str,
    )
    def test_names_that_are_none(self, names):
        accountant = PrivacyAccountant(1.0)
        with pytest.raises(ValueError, match="person must"):
            self.model(accountant=accountant).fit(self.X, self.y, person=names)
        assert accountant.spent() == 0.0

    def test_lengths(self):
        with pytest.raises(ValueError, match="person must have one entry for each record"):
            self.model().fit(self.X, self.y, person=range(11))

    def test_a_refusal_is_charged_where_refusals_are(self):
        accountant = PrivacyAccountant(3.0, charge_refusals=True)
        with pytest.raises(ValueError, match="none missing"):
            self.model(accountant=accountant).fit(self.X, self.y, person=["a", None] * 6)
        assert accountant.spent() == 1.0

    def test_an_exhausted_budget_stops_before_names_are_read(self):
        class Unread:
            def __array__(self, *args, **options):
                raise AssertionError("read")

        accountant = PrivacyAccountant(0.5)
        with pytest.raises(RuntimeError, match="budget"):
            self.model(accountant=accountant).fit(self.X, self.y, person=Unread())

    def test_numbers_in_one_place_and_text_in_another(self):
        frame = pd.DataFrame({"x": self.X[:, 0], "y": self.y})
        parts = [frame[:6].assign(who=np.arange(6)), frame[6:].assign(who=list("abcdef"))]
        chunks = FrameChunks(parts)
        with pytest.raises(ValueError, match="whole numbers everywhere"):
            self.model().fit(chunks[["x"]], chunks["y"], person=chunks["who"])
        partitions = dd.from_delayed([dask.delayed(part) for part in parts], verify_meta=False)
        with pytest.raises(ValueError, match="whole numbers everywhere"):
            self.model().fit(partitions[["x"]], partitions["y"], person=partitions["who"])

    def test_names_are_those_of_text_alone(self):
        """A subclass of text may say that it is something else."""

        class Name(str):
            def __str__(self):
                return "another"

        names = [Name("a"), "a", *map(str, range(10))]
        with pytest.raises(ValueError, match="person must hold whole numbers or text"):
            self.model().fit(self.X, self.y, person=names)

    def test_names_that_no_encoding_knows(self):
        names = [f"p{k}" for k in range(11)] + ["p\ud800"]
        frame = pd.DataFrame({"x": self.X[:, 0], "y": self.y, "who": names})
        whole = self.model(random_state=0).fit(frame[["x"]], frame["y"], person=names).coef_
        parts = dd.from_delayed([dask.delayed(frame[:5]), dask.delayed(frame[5:])])
        for table in (parts, in_chunks(frame, 5)):
            found = self.model(random_state=0).fit(table[["x"]], table["y"], person=table["who"])
            np.testing.assert_allclose(found.coef_, whole, rtol=1e-9)

    def test_records_in_another_order_each_time(self):
        """Else some people would be used twice, and others not at all."""
        frame = pd.DataFrame({"x": self.X[:, 0], "y": self.y, "who": np.arange(12) // 2})
        passes = iter(range(100))

        def shuffled(part):
            return part.sample(frac=1.0, random_state=next(passes))

        parts = dd.from_pandas(frame, npartitions=2)
        parts = parts.map_partitions(shuffled, meta=parts._meta)
        for table in (parts, FrameChunks(lambda: [shuffled(frame)])):
            with pytest.raises(ValueError, match="same order"):
                self.model().fit(table[["x"]], table["y"], person=table["who"])

    @pytest.mark.parametrize("n_records", [4, 5])
    def test_what_else_is_cut_is_said_by_its_name(self, n_records):
        """How many records there are is private, and a list may be as long by chance."""
        X, whose = np.zeros((n_records, 1)), [1, 2, 3, 3, 3][:n_records]
        options = {"group": list("abcde")[:n_records], "timeline": [1.0, 2.0, 3.0, 4.0]}
        _, _, found = one_record_each(whose, X, None, options, ["group"])
        assert found == {"group": ["a", "b", "c"], "timeline": [1.0, 2.0, 3.0, 4.0]}

    def test_public_records_are_nobodys_second(self):
        """Whether a private one comes before would show in how many are public."""
        search = PrivateSearchCV(HybridMEstimator(), {"n_cells": [2, 3]}, epsilon=1.0)
        public = np.arange(12) < 6
        with pytest.raises(ValueError, match="person must be None"):
            search.fit(self.X, self.y, person=np.arange(12), public=public)

    @pytest.mark.parametrize("chunks", [True, False])
    def test_a_refusal_in_one_chunk_is_charged_too(self, chunks):
        frame = pd.DataFrame({"x": self.X[:, 0], "y": self.y})
        parts = [frame[:6].assign(who=np.arange(6)), frame[6:].assign(who=list("abcdef"))]
        table = FrameChunks(parts)
        if not chunks:
            table = dd.from_delayed([dask.delayed(part) for part in parts], verify_meta=False)
        accountant = PrivacyAccountant(3.0, charge_refusals=True)
        with pytest.raises(ValueError, match="whole numbers everywhere"):
            self.model(accountant=accountant).fit(table[["x"]], table["y"], person=table["who"])
        assert accountant.spent() == 1.0

    def test_nobody_at_all(self):
        frame = pd.DataFrame({"x": self.X[:, 0], "y": self.y, "who": np.arange(12)})[:0]
        for table in (FrameChunks([frame]), dd.from_pandas(frame, npartitions=1)):
            with pytest.raises(ValueError, match="0 sample"):
                self.model().fit(table[["x"]], table["y"], person=table["who"])

    def test_searches_and_evaluations(self):
        whose = np.repeat(np.arange(30), 2)
        X, y = np.linspace(-0.5, 0.5, 60)[:, None], np.arange(60) % 2
        search = PrivateSearchCV(
            self.model(), {"alpha": [0.01, 0.1]}, epsilon=1.0, strategy="split", random_state=0
        )
        found = search.fit(X, y, person=whose).guarantee_
        assert found.neighbours == "replace-one-person"
        assert search.fit(X[::2], y[::2]).guarantee_.public_inputs == found.public_inputs

    def test_evaluations(self):
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, random_state=0)
        frame = pd.DataFrame({"x": np.linspace(-0.5, 0.5, 60), "e": [True, False] * 30})
        frame = frame.assign(t=np.linspace(0.1, 4, 60), who=np.repeat(np.arange(30), 2))
        model.fit(frame[["x"]][::2], frame[["e", "t"]][::2])
        options = {"max_time": 4.0, "random_state": 0, "n_groups": 2, "n_bands": 1}
        whole = private_survival_metrics(model, *split(frame[::2]), **options)
        for table in (
            frame,
            in_chunks(frame, 7, 40),
            dd.from_pandas(frame, npartitions=3, sort=False),
        ):
            found = private_survival_metrics(model, *split(table), person=table["who"], **options)
            assert found.guarantee.neighbours == "replace-one-person"
            assert found.summary.equals(whole.summary)

    def test_durations(self):
        times, whose = np.linspace(0.1, 3, 40), np.repeat(np.arange(20), 2)
        model = DPWeibullFitter(1.0, max_time=4.0, random_state=0)
        one = model.fit(times, person=whose).lambda_
        assert model.fit(durations=times[::2]).lambda_ == one


class TestChunks:
    frame = pd.DataFrame(
        {"x": np.linspace(-0.5, 0.5, 20), "t": np.linspace(0.1, 4, 20), "e": [True, False] * 10}
    )

    def test_what_begins_anew(self, tmp_path):
        path = tmp_path / "records.csv"
        self.frame.to_csv(path, index=False)
        chunks = FrameChunks(lambda: pd.read_csv(path, chunksize=7))
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, n_intervals=4, random_state=0)
        found = model.fit(*split_target(chunks, time="t", event="e")).coef_.copy()
        whole = model.fit(*split_target(pd.read_csv(path), time="t", event="e")).coef_
        np.testing.assert_allclose(found, whole, rtol=1e-9)

    def test_an_iterator_ends(self):
        with pytest.raises(TypeError, match="begins anew"):
            FrameChunks(iter([self.frame]))
        with pytest.raises(TypeError, match="begins anew"):
            FrameChunks(3)

    def test_two_tables(self):
        one, other = FrameChunks([self.frame]), FrameChunks([self.frame])
        accountant = PrivacyAccountant(1.0)
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, accountant=accountant)
        with pytest.raises(TypeError, match="taken from one FrameChunks"):
            model.fit(one[["x"]], other[["e", "t"]])
        with pytest.raises(TypeError, match="from one FrameChunks"):
            model.fit(one[["x"]], self.frame[["e", "t"]])
        assert accountant.spent() == 0.0

    def test_columns(self):
        chunks = FrameChunks([self.frame])
        assert chunks.columns.tolist() == ["x", "t", "e"]
        assert chunks["t"].name == "t"
        assert chunks.drop(columns=["t"]).columns.tolist() == ["x", "e"]
        with pytest.raises(KeyError, match="'z'"):
            chunks["z"]
        with pytest.raises(TypeError, match="at least one pandas DataFrame"):
            FrameChunks([]).columns  # noqa: B018
        with pytest.raises(TypeError, match="at least one pandas DataFrame"):
            FrameChunks([[1, 2]]).columns  # noqa: B018

    def test_chunks_that_change(self):
        lengths = iter([1, 2, 3, 4])
        chunks = ChunkBlocks(lambda: iter(range(next(lengths))), 2, math.inf)
        for _ in range(2):
            if (found := next_sum(chunks)) is not None:
                assert found == 1
        with pytest.raises(ValueError, match="same chunks"):
            list(ChunkBlocks(lambda: iter(range(3)), 2, math.inf).results(int))

    @pytest.mark.parametrize("charged", [False, True])
    def test_a_file_that_cannot_be_read(self, charged):
        """It is refused as a record is, in words that quote none."""
        text = "x,t,e\n.1,1,1\nZebedee,2,0\n"
        chunks = FrameChunks(lambda: pd.read_csv(StringIO(text), chunksize=1, dtype={"x": float}))
        accountant = PrivacyAccountant(5.0, charge_refusals=charged)
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, accountant=accountant)
        with pytest.raises(ValueError, match="frames must be readable") as caught:
            model.fit(*split_target(chunks, time="t", event="e"))
        assert caught.value.__context__ is None
        assert accountant.spent() == (1.0 if charged else 0.0)

    def test_large_ones_are_read_anew(self):
        begun = []

        def begin():
            begun.append(None)
            return iter([1.0, 2.0])

        large = ChunkBlocks(begin, 2, math.inf).map(lambda x: x + 1).persist()
        assert [large.map_reduce(float) for _ in range(3)] == [5.0] * 3
        assert len(begun) == 3
        small = ChunkBlocks(begin, 2, 16.0).map(lambda x: x + 1).persist()
        assert [small.map_reduce(float) for _ in range(3)] == [5.0] * 3
        assert len(begun) == 4

    def test_a_missing_value_in_one_chunk_costs_nothing(self):
        broken = self.frame.copy()
        broken.loc[17, "x"] = np.nan
        accountant = PrivacyAccountant(1.0)
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, accountant=accountant)
        with pytest.raises(ValueError, match="contains NaN"):
            model.fit(*split_target(in_chunks(broken, 5, 9), time="t", event="e"))
        assert accountant.spent() == 0.0

    def test_predictions_come_in_chunks(self):
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, random_state=0)
        X, y = split_target(self.frame, time="t", event="e")
        model.fit(X, y)
        rows, _ = split_target(in_chunks(self.frame, 8), time="t", event="e")
        found = list(model.predict(rows))
        assert [part.size for part in found] == [8, 12]
        np.testing.assert_allclose(np.concatenate(found), model.predict(X), rtol=1e-12)

    @pytest.mark.parametrize(
        "step", [PublicBoundsScaler(-1.0, 1.0), PublicColumns({"x": (-1, 1)})], ids=str
    )
    def test_pipelines(self, step):
        from sklearn.pipeline import make_pipeline

        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, random_state=0)
        X, y = split_target(self.frame, time="t", event="e")
        whole = make_pipeline(step, model).fit(X, y)[-1].coef_.copy()
        for table in (in_chunks(self.frame, 8), dd.from_pandas(self.frame, npartitions=2)):
            found = make_pipeline(step, model).fit(*split_target(table, time="t", event="e"))
            np.testing.assert_allclose(found[-1].coef_, whole, rtol=1e-9)

    def test_frames_that_are_none(self):
        frame = self.frame
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0)
        for parts, match in (
            ([frame, frame.to_numpy()], "frames must hold"),
            ([frame, frame.drop(columns="x")], "one column 'x'"),
            ([frame, pd.concat([frame, frame[["x"]]], axis=1)], "one column 'x'"),
        ):
            with pytest.raises((TypeError, ValueError), match=match):
                model.fit(*split_target(FrameChunks(parts), time="t", event="e"))

    def test_an_exhausted_budget_stops_before_chunks_are_read(self):
        read = []

        def frames():
            read.append(None)
            return [self.frame]

        X, y = split_target(FrameChunks(frames), time="t", event="e")
        read.clear()
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, accountant=PrivacyAccountant(0.5))
        with pytest.raises(RuntimeError, match="budget"):
            model.fit(X, y)
        assert not read

    def test_parameters_are_no_rows(self):
        chunks = FrameChunks([self.frame])
        with pytest.raises(TypeError, match="classes must be public"):
            DPLogisticRegression(classes=chunks["e"]).fit(chunks[["x"]], chunks["e"])
        worth = FeaturePartition(importances=chunks["x"])
        with pytest.raises(TypeError, match="importances must be public"):
            PrivateStackingClassifier(partition=worth).fit(chunks[["x"]], chunks["e"])
        lazy = dd.from_pandas(self.frame, npartitions=2)
        with pytest.raises(TypeError, match="lower must be public"):
            PublicBoundsScaler(lazy[["x"]].min(), lazy[["x"]].max()).fit(lazy[["x"]])

    def test_scores_are_of_memory(self):
        X, y = split_target(self.frame, time="t", event="e")
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0).fit(X, y)
        fitter = DPWeibullFitter(1.0, max_time=4.0).fit(self.frame["t"])
        lazy = dd.from_pandas(self.frame, npartitions=2)
        for ask in (
            lambda: model.score(*split_target(lazy, time="t", event="e")),
            lambda: model.score(X, lazy[["e", "t"]]),
            lambda: fitter.score(lazy["t"]),
        ):
            with pytest.raises(TypeError, match="must be in memory"):
                ask()

    def test_durations_beside_events(self):
        """By their places, whatever index they have."""
        events = pd.Series(self.frame["e"].to_numpy(), index=np.arange(20)[::-1])
        model = DPWeibullFitter(1.0, max_time=4.0, random_state=0)
        whole = model.fit(self.frame["t"], events).rho_
        lazy = [
            dd.from_pandas(part, npartitions=2, sort=False) for part in (self.frame["t"], events)
        ]
        assert model.fit(*lazy).rho_ == whole
        with pytest.raises(ValueError, match="same partitions"):
            model.fit(lazy[0], dd.from_pandas(events, npartitions=3, sort=False))
        with pytest.raises(TypeError, match="must be a collection of Dask"):
            model.fit(self.frame[["x"]].to_numpy().tolist(), lazy[0])

    def test_classes_are_given(self):
        chunks = FrameChunks([self.frame])
        with pytest.raises(ValueError, match="classes must be given"):
            DPLogisticRegression().fit(chunks[["x"]], chunks["e"])

    def test_estimators_that_want_memory(self):
        chunks = FrameChunks([self.frame])
        for model in (
            PrivateSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [1.0, 2.0]}),
        ):
            with pytest.raises(TypeError, match="must be in memory"):
                model.fit(chunks[["x"]], chunks["e"])


def split(table):
    return table[["x"]], table[["e", "t"]]


def next_sum(chunks):
    """Return the sum of a pass, or None if the chunks have changed."""
    try:
        return chunks.map_reduce(int)
    except ValueError:
        return None
