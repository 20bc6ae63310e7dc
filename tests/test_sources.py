"""The same release wherever records are: in memory, in chunks, in partitions, under names."""

import math
import pickle
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPTableOne,
    DPWeibullFitter,
    FeaturePartition,
    FrameChunks,
    HybridMEstimator,
    PosteriorSampling,
    PrivacyAccountant,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    split_target,
)
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.chunks import ChunkBlocks
from skdpsurv.data.dask import DaskBlocks, partitions
from skdpsurv.data.person import one_record_each
from skdpsurv.data.sources import dask_source
from skdpsurv.evaluation import private_survival_metrics
from skdpsurv.model_selection import PrivateSearchCV
from tests.support import checks, tables
from tests.support.registry import N_RECORDS

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

#: Whose each record is: the tables here have a few more records, of people who are there already.
AGAIN = np.array([3, 3, 17, 40])
WHOSE = np.concatenate([np.arange(N_RECORDS), AGAIN])

of_tables = checks.each(
    setting
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
    off = {"rtol": 0 if exact else 1e-9, "atol": 0 if exact else 1e-9}
    for name, value in one.values.items():
        np.testing.assert_allclose(other.values[name], value, **off)
    assert one.guarantee.public_inputs == other.guarantee.public_inputs
    assert one.n_features_in == other.n_features_in


def in_chunks(frame, *ends):
    return FrameChunks([frame.iloc[a:b] for a, b in zip((0, *ends), (*ends, None), strict=True)])


def lazily(parts):
    """Return partitions that may be of different types."""
    return dd.from_delayed([dask.delayed(part) for part in parts], verify_meta=False)


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
        assert guarantee.neighbours.startswith("replace-one-person")
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
    frame = pd.DataFrame({"x": X[:, 0], "y": y})
    whose = np.array([5, 5, 5, 2, 2, 9, 1, 0, 7, 7, 8, 3])

    def model(self, **parameters):
        return DPLogisticRegression(1.0, classes=[0, 1], **parameters)

    def test_the_first_record_counts_and_no_other(self):
        one = self.model(random_state=0).fit(self.X, self.y, person=self.whose)
        other = self.X.copy()
        other[[1, 2, 4, 9]] = 0.4  # not the first of anybody
        again = self.model(random_state=0).fit(other, self.y, person=self.whose)
        assert (one.coef_ == again.coef_).all()
        assert one.guarantee_.public_inputs["n_records"] == 8

    def test_names_of_every_type(self):
        whose = self.whose
        found = [
            self.model(random_state=0).fit(self.X, self.y, person=names).coef_[0, 0]
            for names in (
                *(whose, whose.astype(np.uint8), whose.tolist()),
                *(whose.astype(object), whose.astype(str)),
                *(pd.Series(whose.astype(str)).astype(kind) for kind in ("string", "category")),
                pd.Series(whose, dtype="Int64"),
            )
        ]
        assert len(set(found)) == 1

    @pytest.mark.parametrize("charged", [False, True])
    def test_names_that_are_none(self, charged):
        class Name(str):
            """A subclass of text may say that it is something else."""

            def __str__(self):
                return "another"

        accountant = PrivacyAccountant(99.0, charge_refusals=charged)
        refused = [
            *(np.arange(12.0), [None, *range(11)], ["a", None] * 6, ["a", 1] * 6),
            *(pd.Series([1, None] * 6, dtype="Int64"), np.arange(12) > 3, np.full(12, np.nan)),
            *(np.arange(24).reshape(12, 2), np.full(12, 2**64 - 1, dtype=np.uint64)),
            *("abcdefghijkl", {"a": 1}, [Name("a"), "a", *map(str, range(10))]),
            *(np.ma.array(np.arange(12)), range(11)),
        ]
        for names in refused:
            with pytest.raises(ValueError, match="person must"):
                self.model(accountant=accountant).fit(self.X, self.y, person=names)
        assert accountant.spent() == charged * len(refused)

    def test_names_that_no_encoding_knows(self):
        names = [f"p{k}" for k in range(11)] + ["p\ud800"]
        frame = self.frame.assign(who=names)
        whole = self.model(random_state=0).fit(frame[["x"]], frame["y"], person=names).coef_
        for table in (lazily([frame[:5], frame[5:]]), in_chunks(frame, 5)):
            found = self.model(random_state=0).fit(table[["x"]], table["y"], person=table["who"])
            np.testing.assert_allclose(found.coef_, whole, rtol=1e-9)

    def test_records_in_another_order_each_time(self):
        """Else some people would be used twice, and others not at all."""
        frame = self.frame.assign(who=np.arange(12) // 2)
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

    @pytest.mark.parametrize("charged", [False, True])
    @pytest.mark.parametrize("made", [FrameChunks, lazily])
    def test_numbers_in_one_place_and_text_in_another(self, made, charged):
        frame = self.frame
        table = made([frame[:6].assign(who=np.arange(6)), frame[6:].assign(who=list("abcdef"))])
        accountant = PrivacyAccountant(3.0, charge_refusals=charged)
        with pytest.raises(ValueError, match="whole numbers everywhere"):
            self.model(accountant=accountant).fit(table[["x"]], table["y"], person=table["who"])
        assert accountant.spent() == float(charged)

    def test_nobody_at_all(self):
        frame = self.frame.assign(who=np.arange(12))[:0]
        for table in (FrameChunks([frame]), dd.from_pandas(frame, npartitions=1)):
            with pytest.raises(ValueError, match="0 sample"):
                self.model().fit(table[["x"]], table["y"], person=table["who"])

    def test_searches(self):
        X, y, whose = self.X.repeat(4, axis=0), self.y.repeat(4), np.repeat(np.arange(24), 2)
        options = {"epsilon": 1.0, "strategy": "split", "random_state": 0}
        search = PrivateSearchCV(self.model(), {"alpha": [0.01, 0.1]}, **options)
        found = search.fit(X, y, person=whose).guarantee_
        assert found.neighbours == "replace-one-person"
        assert search.fit(X[::2], y[::2]).guarantee_.public_inputs == found.public_inputs

    def test_evaluations(self):
        model = DPDiscreteTimeSurvival(1.0, max_time=4.0, random_state=0)
        frame = pd.DataFrame({"x": np.linspace(-0.5, 0.5, 60), "e": [True, False] * 30})
        frame = frame.assign(t=np.linspace(0.1, 4, 60), who=np.repeat(np.arange(30), 2))
        model.fit(*split(frame[::2]))
        options = {"max_time": 4.0, "random_state": 0, "n_groups": 2, "n_bands": 1}
        whole = private_survival_metrics(model, *split(frame[::2]), **options)
        parts = dd.from_pandas(frame, npartitions=3, sort=False)
        for table in (frame, in_chunks(frame, 7, 40), parts):
            found = private_survival_metrics(model, *split(table), person=table["who"], **options)
            assert found.guarantee.neighbours == "replace-one-person"
            assert found.summary.equals(whole.summary)


class TestChunks:
    frame = pd.DataFrame(
        {"x": np.linspace(-0.5, 0.5, 20), "t": np.linspace(0.1, 4, 20), "e": [True, False] * 10}
    )

    def model(self, **parameters):
        return DPDiscreteTimeSurvival(1.0, max_time=4.0, **parameters)

    def test_what_begins_anew(self, tmp_path):
        self.frame.to_csv(tmp_path / "records.csv", index=False)
        chunks = FrameChunks(lambda: pd.read_csv(tmp_path / "records.csv", chunksize=7))
        found, whole = (
            self.model(random_state=0).fit(*split(table)).coef_ for table in (chunks, self.frame)
        )
        np.testing.assert_allclose(found, whole, rtol=1e-9)
        for ended in (iter([self.frame]), 3):
            with pytest.raises(TypeError, match="begins anew"):
                FrameChunks(ended)

    def test_what_is_refused_at_no_cost(self):
        one, frame = FrameChunks([self.frame]), self.frame
        broken = frame.assign(x=frame["x"].where(frame.index != 17))
        twice = pd.concat([frame, frame[["x"]]], axis=1)
        accountant = PrivacyAccountant(1.0)
        for arguments, why in (
            ((one[["x"]], FrameChunks([frame])[["e", "t"]]), "taken from one FrameChunks"),
            ((one[["x"]], frame[["e", "t"]]), "from one FrameChunks"),
            (split(in_chunks(broken, 5, 9)), "contains NaN"),
            (split(FrameChunks([frame, frame.to_numpy()])), "frames must hold"),
            (split(FrameChunks([frame, frame.drop(columns="x")])), "the columns of the first"),
            (split(FrameChunks([frame, twice])), "the columns of the first"),
        ):
            with pytest.raises((TypeError, ValueError), match=why):
                self.model(accountant=accountant).fit(*arguments)
        assert accountant.spent() == 0.0

    def test_columns(self):
        chunks = FrameChunks([self.frame])
        assert chunks.columns.tolist() == ["x", "t", "e"]
        assert chunks["t"].name == "t"
        assert chunks.drop(columns=["t"]).columns.tolist() == ["x", "e"]
        with pytest.raises(KeyError, match="'z'"):
            chunks["z"]
        for parts in ([], [[1, 2]]):
            with pytest.raises(TypeError, match="at least one pandas DataFrame"):
                FrameChunks(parts).columns  # noqa: B018

    def test_chunks_that_change(self):
        for now in (1, 3):
            with pytest.raises(ValueError, match="same chunks"):
                ChunkBlocks(lambda now=now: iter(range(now)), 2, math.inf).map_reduce(int)
        with pytest.raises(ValueError, match="same chunks"):
            list(ChunkBlocks(lambda: iter(range(3)), 2, math.inf).results(int))

    @pytest.mark.parametrize(("size", "n_passes"), [(math.inf, 3), (16.0, 1)])
    def test_large_ones_are_read_anew(self, size, n_passes):
        begun = []
        blocks = ChunkBlocks(lambda: begun.append(None) or iter([1.0, 2.0]), 2, size)
        kept = blocks.map(lambda x: x + 1).persist()
        assert [kept.map_reduce(float) for _ in range(3)] == [5.0] * 3
        assert len(begun) == n_passes

    @pytest.mark.parametrize(
        "step", [PublicBoundsScaler(-1.0, 1.0), PublicColumns({"x": (-1, 1)})], ids=str
    )
    def test_pipelines_and_their_predictions(self, step):
        parts, chunks = dd.from_pandas(self.frame, npartitions=2), in_chunks(self.frame, 8)
        whole, *cut = (
            make_pipeline(clone(step), self.model(random_state=0)).fit(*split(table))
            for table in (self.frame, chunks, parts)
        )
        for found in cut:
            np.testing.assert_allclose(found[-1].coef_, whole[-1].coef_, rtol=1e-9)
        rows = split(self.frame)[0]
        found = list(whole[-1].predict(chunks[["x"]]))
        assert [part.size for part in found] == [8, 12]
        np.testing.assert_allclose(np.concatenate(found), whole[-1].predict(rows), rtol=1e-12)

    def test_an_exhausted_budget_stops_before_chunks_and_names_are_read(self):
        class Unread:
            def __array__(self, *args, **options):
                pytest.fail("read")

        read = []
        X, y = split(FrameChunks(lambda: read.append(None) or [self.frame]))
        read.clear()
        model = self.model(accountant=PrivacyAccountant(0.5))
        for arguments, person in (((X, y), None), (split(self.frame), Unread())):
            with pytest.raises(RuntimeError, match="budget"):
                model.fit(*arguments, person=person)
        assert not read

    def test_parameters_are_no_rows_and_classes_are_given(self):
        chunks, lazy = FrameChunks([self.frame]), dd.from_pandas(self.frame, npartitions=2)
        X, y = chunks[["x"]], chunks["e"]
        worth = FeaturePartition(importances=chunks["x"])
        scaler = PublicBoundsScaler(lazy[["x"]].min(), lazy[["x"]].max())
        search = PrivateSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [1.0, 2.0]})
        for fit, why in (
            (lambda: DPLogisticRegression(classes=y).fit(X, y), "classes must be public"),
            (lambda: DPLogisticRegression().fit(X, y), "classes must be given"),
            (lambda: PrivateStackingClassifier(partition=worth).fit(X, y), "importances must be"),
            (lambda: scaler.fit(lazy[["x"]]), "lower must be public"),
            (lambda: search.fit(X, y), "must be in memory"),
        ):
            with pytest.raises((TypeError, ValueError), match=why):
                fit()

    def test_scores_are_of_memory(self):
        X, y = split(self.frame)
        model, lazy = self.model().fit(X, y), dd.from_pandas(self.frame, npartitions=2)
        fitter, times = DPWeibullFitter(1.0, max_time=4.0).fit(self.frame["t"]), lazy[["e", "t"]]
        for one, rows in ((model, split(lazy)), (model, (X, times)), (fitter, [lazy["t"]])):
            with pytest.raises(TypeError, match="must be in memory"):
                one.score(*rows)


def split(table):
    return split_target(table[["x", "t", "e"]], time="t", event="e")


# ---- Records that Dask holds.

N = 700
NAMES = ["age", "dose", "score"]
MAX_TIME = 4.0


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 3))
    time = rng.exponential(2.0 * np.exp(-X[:, 0]))
    left = rng.uniform(0, 6, N)
    return pd.DataFrame(X, columns=NAMES).assign(
        died=time <= left, years=np.minimum(time, left), ill=(X[:, 1] > 0).astype(int)
    )


def hazard(**parameters):
    fixed = {"max_time": MAX_TIME, "n_intervals": 20, "random_state": 0}
    return DPDiscreteTimeSurvival(2.0, **(fixed | parameters))


def survival(table):
    return split_target(table.drop(columns="ill"), time="years", event="died")


def test_the_release_is_that_of_memory_whatever_records_are_cut_into(frame, tmp_path):
    pytest.importorskip("pyarrow")
    X, y = survival(frame)
    for k in range(7):
        part = frame[100 * k : 100 * k + 100]
        part[["years", "died", *NAMES, "ill"]].to_parquet(tmp_path / f"{k}.parquet")
    files = survival(dd.read_parquet(tmp_path))
    # Asked for y alone, Dask reads fewer and larger pieces than of X.
    assert len(files[0].to_delayed()) > len(files[1].to_delayed())
    ends = ((0, 0), (0, 300), (300, 300), (300, N))
    empty = dd.concat([dd.from_pandas(frame.iloc[a:b], npartitions=1) for a, b in ends])
    empty = empty[empty["age"] < 2]  # of which Dask does not know what is left
    # Places count, and not what an index says.
    moved = (
        dd.from_pandas(X, npartitions=2),
        dd.from_pandas(y.set_index(X.index + 9), npartitions=2),
    )
    target = np.asarray(y.to_records(index=False))
    arrays = da.from_array(X.to_numpy(), chunks=(100, 2)), da.from_array(target, chunks=250)
    whole = hazard().fit(X, y).release_
    for cut in (files, survival(empty), moved, arrays):
        found = hazard().fit(*cut).release_
        assert found.target_names == ("died", "years")
        assert found.guarantee == whole.guarantee
        for name, value in whole.values.items():
            np.testing.assert_allclose(found.values[name], value, rtol=1e-9, atol=1e-9)


def test_durations_and_events_by_name_and_by_their_places(frame):
    model = DPWeibullFitter(1.0, max_time=MAX_TIME, random_state=0)
    moved = pd.Series(frame["died"].to_numpy(), frame.index[::-1])  # whatever index they have
    whole = clone(model).fit(durations=frame["years"], event_observed=moved).release_
    n_parts = {"npartitions": 4, "sort": False}
    cut = dd.from_pandas(frame, **n_parts)
    years, died = (cut[name].to_dask_array(lengths=True) for name in ("years", "died"))
    for arguments in (
        {"durations": cut["years"], "event_observed": cut["died"]},
        {"durations": cut["years"], "event_observed": dd.from_pandas(moved, **n_parts)},
        {"X": cut["years"], "y": cut["died"]},
        {"y": cut[["died", "years"]]},
        {"durations": years, "event_observed": died},
    ):
        assert clone(model).fit(**arguments).release_.values == whole.values
    with pytest.raises(TypeError, match="must be a collection of Dask"):
        model.fit(frame[["years"]].to_numpy().tolist(), cut["died"])


@pytest.mark.parametrize(
    "model",
    [
        hazard(),
        hazard(method=PosteriorSampling(n_epochs=100)),
        hazard(method="noisy_gd", delta=1e-4, n_intervals=4, data_norm=1.0),
        DPLogisticRegression(3.0),
    ],
)
def test_neither_blocks_nor_noise_nor_the_ledger_are_sent(frame, monkeypatch, model):
    """A function that holds its objective takes all tasks and the drawn linear term along."""
    cloudpickle = pytest.importorskip("cloudpickle")
    sent, tasks = [], DaskBlocks._tasks

    def spy(self, function, each):
        sent.append(cloudpickle.dumps(function))
        return tasks(self, function, each)

    monkeypatch.setattr(DaskBlocks, "_tasks", spy)
    cut = dd.from_pandas(frame[:60], npartitions=2)
    accountant = PrivacyAccountant(5.0, rehearsal=True, delta=1e-3)
    model = clone(model).set_params(accountant=accountant, random_state=None)
    if isinstance(model, DPLogisticRegression):
        model.set_params(classes=[0, 1]).fit(cut[NAMES], cut["ill"])
    else:
        model.fit(*survival(cut))
    assert model.guarantee_.delta == getattr(model, "delta", 0.0)
    assert len(sent) > 5
    for kept in (b"DaskBlocks", b"Ledger", b"ExactVector", b"RandomSource"):
        assert not [function for function in sent if kept in function]


def test_predictions_are_lazy_and_the_same(frame):
    X, y = survival(frame)
    model, cut = hazard().fit(X, y), dd.from_pandas(X, npartitions=3)
    classes = DPLogisticRegression(3.0, classes=[0, 1]).fit(X, frame["ill"])
    for ask in (
        model.predict,
        lambda rows: model.predict_survival_function(rows, return_array=True),
        lambda rows: model.predict_cumulative_hazard_function(rows, return_array=True),
        classes.predict,
        classes.predict_proba,
    ):
        asked = ask(cut)
        assert isinstance(asked, da.Array)
        np.testing.assert_allclose(asked.compute(), ask(X), rtol=1e-12)
    functions = model.predict_survival_function(cut).compute()
    assert functions[5](1.0) == model.predict_survival_function(X)[5](1.0)
    with pytest.warns(UserWarning, match="feature names"):
        found = classes.predict_proba(da.from_array(X.to_numpy(), chunks=(200, 3))).compute()
    np.testing.assert_allclose(found, classes.predict_proba(X), rtol=1e-12)


def test_what_is_not_cut_alike_or_in_memory_or_broken_is_refused_at_no_cost(frame):
    X, y = survival(frame)
    broken = frame.copy()
    broken.loc[650, "dose"] = np.nan
    one, other = dd.from_pandas(X, npartitions=2), dd.from_pandas(y, npartitions=3)
    arrays = da.from_array(X.to_numpy(), chunks=100), da.from_array(y["years"][:50].to_numpy())
    for arguments, why in (
        (survival(dd.from_pandas(broken, npartitions=4)), "contains NaN"),
        ((one.clear_divisions(), other.clear_divisions()), "same partitions"),
        (arrays, "same number of records"),
        ((one, y), "y must be a collection of Dask"),
    ):
        accountant = PrivacyAccountant(5.0)
        with pytest.raises((ValueError, TypeError), match=why):
            hazard(accountant=accountant, random_state=None).fit(*arguments)
        assert accountant.spent() == 0
    search = PrivateSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [1.0, 2.0]})
    with pytest.raises(TypeError, match="takes no Dask collections"):
        search.fit(one, y["died"])


SECRET = "a-secret-of-record-222"


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize("which", ["X", "y", "chunks"])
def test_names_of_columns_in_one_part_alone_are_refused_and_not_quoted(frame, which, charged):
    parts = dict(zip(("X", "y"), survival(frame), strict=True)) | {"chunks": frame[NAMES]}
    cut = {name: [part.iloc[:200], part.iloc[200:]] for name, part in parts.items()}
    cut[which][1] = cut[which][1].rename(columns={list(parts[which])[-1]: SECRET})
    columns = PublicColumns(dict.fromkeys(NAMES, (-2.0, 2.0)))
    if which == "chunks":
        runs = [(DPTableOne(2.0, columns=columns), [FrameChunks(cut["chunks"])])]
    else:
        lazy = [lazily(cut["X"]), lazily(cut["y"])]
        runs = [(hazard(random_state=None, **own), lazy) for own in ({}, {"columns": columns})]
    for model, arguments in runs:
        accountant = PrivacyAccountant(5.0, charge_refusals=charged)
        with pytest.raises(ValueError, match="have the same columns") as caught:
            model.set_params(accountant=accountant).fit(*arguments)
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is None
        assert accountant.spent() == (2.0 if charged else 0.0)


class TestBlocks:
    def test_sums_are_those_of_memory_to_the_bit(self):
        values = np.random.default_rng(0).normal(size=(37, 4))
        found, wanted = (
            blocks.map_reduce(lambda row: (row / 3.0, None, float(row[0])))
            for blocks in (DaskBlocks([dask.delayed(row) for row in values]), InMemory(values))
        )
        np.testing.assert_array_equal(found[0], wanted[0])
        assert found[1:] == wanted[1:]

    def test_errors_travel_as_values_and_blocks_stay(self):
        """What an engine logs of a failure would show a block."""

        def fail(block):
            if block[0] == 4.0:
                raise KeyError(f"secret {block}")
            return block.sum()

        tasks = DaskBlocks([dask.delayed(np.arange(k, k + 3.0)) for k in range(11)])
        for ask in (lambda: tasks.map_reduce(fail), lambda: list(tasks.map(fail).results(np.sum))):
            with pytest.raises(RuntimeError, match=r"^A block of records could not be used.$"):
                ask()
        with pytest.raises(TypeError, match="stay where they are"):
            pickle.dumps(tasks)

    @pytest.mark.parametrize(
        ("n_bytes", "arguments", "n_made"), [(100.0, (), 3), (1e30, (1e-28,), 3), (math.inf, (), 9)]
    )
    def test_small_blocks_are_held(self, n_bytes, arguments, n_made):
        made = []

        def make(k):
            made.append(k)
            return np.ones(2)

        tasks = [dask.delayed(make)(k) for k in range(3)]
        held = DaskBlocks(tasks, n_bytes=n_bytes).persist(*arguments)
        assert [held.map_reduce(np.sum) for _ in range(3)] == [6.0] * 3
        assert len(made) == n_made

    def test_partitions_of_files_stay_apart(self, frame, tmp_path):
        """Dask reads several files as one partition where few of their columns are used."""
        pytest.importorskip("pyarrow")
        for k in range(9):
            frame.iloc[50 * k : 50 * k + 50].to_parquet(tmp_path / f"{k}.parquet")
        files = dd.read_parquet(tmp_path)
        few, n_few = files["age"] > 0.0, (frame["age"][:450] > 0).sum()
        assert len(few.to_delayed()) < len(partitions(few)) == 9
        source = dask_source(files[NAMES], files["ill"], older=few)
        assert (source.shape, source.n_blocks) == ((450, 3), 9)
        assert source.meta.columns.tolist() == NAMES
        assert list(source.results(len)) == [3] * 9
        assert source.map_reduce(lambda block: int(block[2].sum())) == n_few


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize("when", ["counted", "read", "read with people", "readable"])
def test_a_step_that_fails_is_refused_as_a_record_is_in_words_that_quote_none(frame, charged, when):
    """Counting leaves out columns that it does not need, and steps that make these."""

    def step(part):
        if (part["age"] > 0.0).any():
            raise KeyError("Zebedee Quux")
        return part

    lazy, person = dd.from_pandas(frame, npartitions=3), None
    if when == "readable":
        text = "age,years,died\n.1,1,1\nZebedee,2,0\n"
        kinds = {"chunksize": 1, "dtype": {"age": float}}
        lazy = FrameChunks(lambda: pd.read_csv(StringIO(text), **kinds))
    elif when == "counted":
        lazy = lazy.map_partitions(step, meta=frame.iloc[:0])
    else:
        lazy["age"] = lazy["age"].map({}.__getitem__, meta=("age", float))
    if "people" in when:
        person = lazy["ill"].map({}.__getitem__, meta=("ill", int))
    accountant = PrivacyAccountant(5.0, charge_refusals=charged)
    X, y = split_target(lazy, time="years", event="died")
    with pytest.raises(ValueError, match=f"be {when.split()[0]}") as caught:
        hazard(random_state=None, accountant=accountant).fit(X, y, person=person)
    assert caught.value.__context__ is None
    assert accountant.spent() == (2.0 if charged else 0.0)


@pytest.mark.parametrize("lengths", [(200, 150), (150, 200)], ids=["person", "y"])
def test_partitions_of_other_lengths_are_refused_as_records_are(frame, lengths):
    """How records are cut may depend on them, by a filter or a join."""
    X, y = survival(frame)
    whose = pd.DataFrame({"id": np.arange(N)})
    cut = [
        lazily([table.iloc[:end], table.iloc[end:]])
        for table, end in zip((X, y, whose), (200, lengths[0], lengths[1]), strict=True)
    ]
    for charged in (False, True):
        accountant = PrivacyAccountant(5.0, charge_refusals=charged)
        model = hazard(random_state=None, accountant=accountant)
        with pytest.raises(ValueError, match=r"same (length|number)"):
            model.fit(cut[0], cut[1], person=cut[2]["id"])
        assert accountant.spent() == (2.0 if charged else 0.0)


@of_tables
def test_records_that_are_not_as_many_as_were_counted_are_refused(setting):
    frame, columns, target = tables.table(setting.data())
    passes = []

    def frames():
        passes.append(None)  # the first counts
        return [frame.iloc[:20], frame.iloc[20 : len(frame) - (len(passes) > 2)]]

    table = FrameChunks(frames)
    assert table.columns.tolist() == list(frame.columns)
    found = fitted(setting, table[columns], table[target])
    if fitted(setting, frame[columns], frame[target]).error is None:
        assert f"the {N_RECORDS} records that it had when the fit began" in str(found.error)
    assert not found.charges


class Step:
    """Goes through, and nowhere else."""

    def __call__(self, part):
        return part

    def __dask_tokenize__(self):
        return "step"

    def __reduce__(self):
        raise KeyError(NAMES)


class TestWhatCannotBeSent:
    """It is refused before a worker is asked, and costs nothing unless refusals do."""

    def tables(self, frame):
        labels, cut = frame["ill"], dd.from_pandas(frame, npartitions=3)
        yield cut.map_partitions(Step(), meta=frame.iloc[:0])[NAMES], cut["ill"]
        yield cut[NAMES], cut["ill"].map_partitions(Step(), meta=labels.iloc[:0])
        array = da.from_array(frame[NAMES].to_numpy(), chunks=(300, 3))
        yield array.map_blocks(Step(), dtype=float), da.from_array(labels.to_numpy(), chunks=300)

    @pytest.mark.parametrize("place", range(3))
    def test_a_step_of_a_collection(self, frame, place, caplog):
        X, y = list(self.tables(frame))[place]
        model = DPLogisticRegression(1.0, classes=[0, 1], data_norm=2.0)
        assert clone(model).fit(X, y).coef_.shape == (1, 3)  # threads take anything
        for charged in (False, True):
            accountant = PrivacyAccountant(5.0, charge_refusals=charged)
            model.set_params(accountant=accountant)
            with (
                dask.config.set(scheduler="processes"),
                pytest.raises(ValueError, match=r"^[Xy] must be a collection that can") as caught,
            ):
                model.fit(X, y)
            assert caught.value.__context__ is None
            assert accountant.spent() == (1.0 if charged else 0.0)
        assert not caplog.records

    @pytest.mark.parametrize("charged", [False, True])
    def test_a_parameter_or_a_plan_of_somebody_else_s(self, frame, charged):
        class Model(Step):
            def __deepcopy__(self, memo):
                return self

            def predict_survival_function(self, X):
                return [np.vectorize(lambda time: 0.5)]

        class Locked(DPLogisticRegression, released=False):
            def _plan(self, shape):
                plan = super()._plan(shape)
                object.__setattr__(plan, "lock", Step())
                return plan

        accountant = PrivacyAccountant(5.0, charge_refusals=charged)
        target = np.asarray(frame[["died", "years"]].to_records(index=False))
        X, y, ill = (
            da.from_array(a, chunks=300) for a in (frame[NAMES].to_numpy(), target, frame["ill"])
        )
        locked = Locked(1.0, classes=[0, 1], data_norm=2.0, accountant=accountant)
        options = {"max_time": MAX_TIME, "accountant": accountant}
        for ask, name in (
            (lambda: private_survival_metrics(Model(), X, y, **options), "model"),
            (lambda: locked.fit(X, ill), "Locked"),
        ):
            with (
                dask.config.set(scheduler="processes"),
                pytest.raises(TypeError, match=f"^{name} must be such that it can be sent"),
            ):
                ask()
        # By then records are counted, and persons read.
        assert accountant.spent() == 2.0 * charged
