"""Fits of records that Dask holds: the same release, whatever they are cut into."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    PosteriorSampling,
    PrivacyAccountant,
    PrivateSearchCV,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    split_target,
)
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.dask import DaskBlocks, partitions
from skdpsurv.data.sources import dask_source
from skdpsurv.evaluation import private_survival_metrics

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

N = 700
NAMES = ["age", "dose", "score"]
MAX_TIME = 4.0


@pytest.fixture(autouse=True)
def threads():
    """No cluster, whatever other tests have begun."""
    with dask.config.set(scheduler="synchronous"):
        yield


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


def same(one, other):
    assert one.values.keys() == other.values.keys()
    for name, value in one.values.items():
        np.testing.assert_allclose(other.values[name], value, rtol=1e-9, atol=1e-9)
    assert one.feature_names_in == other.feature_names_in
    assert one.guarantee == other.guarantee


class TestFrames:
    @pytest.mark.parametrize("n_parts", [1, 4])
    def test_hazards(self, frame, n_parts):
        whole = hazard().fit(*survival(frame)).release_
        cut = dd.from_pandas(frame, npartitions=n_parts, sort=False)
        same(whole, hazard().fit(*survival(cut)).release_)

    def test_files_of_which_y_takes_a_few_columns(self, frame, tmp_path):
        """Asked for y alone, Dask reads fewer and larger pieces than of X."""
        pytest.importorskip("pyarrow")
        frame = frame[["years", "died", *NAMES, "ill"]]
        for k, start in enumerate(range(0, N, 100)):
            frame[start : start + 100].to_parquet(tmp_path / f"{k}.parquet")
        X, y = survival(dd.read_parquet(tmp_path))
        assert len(X.to_delayed()) > len(y.to_delayed())
        same(hazard().fit(*survival(frame)).release_, hazard().fit(X, y).release_)

    def test_weibull(self, frame):
        model = DPWeibullFitter(1.0, max_time=MAX_TIME, random_state=0)
        cut = dd.from_pandas(frame, npartitions=3)
        whole = clone(model).fit(*survival(frame)).release_
        same(whole, clone(model).fit(*survival(cut)).release_)
        whole = clone(model).fit(durations=frame["years"], event_observed=frame["died"]).release_
        for arguments in (
            {"durations": cut["years"], "event_observed": cut["died"]},
            {"X": cut["years"], "y": cut["died"]},
            {"y": cut[["died", "years"]]},
            {
                "durations": cut["years"].to_dask_array(lengths=True),
                "event_observed": cut["died"].to_dask_array(lengths=True),
            },
        ):
            found = clone(model).fit(**arguments).release_
            for name, value in whole.values.items():
                assert found.values[name] == value

    @pytest.mark.parametrize(
        "model",
        [
            DPLogisticRegression(3.0),
            pytest.param(PrivateStackingClassifier(3.0, n_partitions=2), marks=pytest.mark.slow),
            pytest.param(
                PrivateStackingClassifier(3.0, n_partitions=2, combiner="logistic"),
                marks=pytest.mark.slow,
            ),
            PrivateStackingClassifier(3.0, n_partitions=3, partition="samples"),
        ],
    )
    def test_classifiers(self, frame, model):
        model.set_params(classes=[0, 1], random_state=0)
        cut = dd.from_pandas(frame, npartitions=5)
        whole = clone(model).fit(frame[NAMES], frame["ill"]).release_
        same(whole, clone(model).fit(cut[NAMES], cut["ill"]).release_)

    def test_columns_and_pipelines(self, frame):
        raw = frame.assign(sex=np.where(frame["ill"] == 1, "f", "m"))
        columns = PublicColumns(
            {"age": (-1, 1), "dose": (-1, 1), "score": (-1, 1), "sex": ["f", "m"]}
        )
        cut = dd.from_pandas(raw, npartitions=3)
        whole = hazard(columns=columns).fit(*survival(raw)).release_
        same(whole, hazard(columns=columns).fit(*survival(cut)).release_)
        scaler = PublicBoundsScaler(-2.0, 2.0)
        whole = make_pipeline(scaler, hazard()).fit(*survival(frame))[-1].release_
        cut = dd.from_pandas(frame, npartitions=3)
        found = make_pipeline(scaler, hazard()).fit(*survival(cut))[-1].release_
        for name, value in whole.values.items():
            np.testing.assert_allclose(found.values[name], value, rtol=1e-9, atol=1e-9)

    def test_empty_partitions(self, frame):
        cut = dd.concat([dd.from_pandas(frame.iloc[part], npartitions=1) for part in PARTS])
        cut = cut[cut["age"] < 2]  # of which Dask does not know what is left
        some = cut.map_partitions(lambda part: part[part["years"] >= 0])
        same(hazard().fit(*survival(frame)).release_, hazard().fit(*survival(some)).release_)


PARTS = [slice(0, 0), slice(0, 300), slice(300, 300), slice(300, N)]


class TestArrays:
    @pytest.mark.parametrize("chunks", [(N, 3), (100, 2)])
    def test_chunks_do_not_matter(self, frame, chunks):
        X = frame[NAMES].to_numpy()
        y = np.empty(N, dtype=[("died", "?"), ("years", "f8")])
        y["died"], y["years"] = frame["died"], frame["years"]
        whole = hazard().fit(X, y).release_
        found = hazard().fit(da.from_array(X, chunks=chunks), da.from_array(y, chunks=250))
        same(whole, found.release_)
        assert found.release_.target_names == ("died", "years")


class TestWhatIsSent:
    @pytest.mark.parametrize(
        "model",
        [hazard(), hazard(method=PosteriorSampling(n_epochs=100)), DPLogisticRegression(3.0)],
    )
    def test_neither_blocks_nor_noise_nor_the_ledger(self, frame, monkeypatch, model):
        """A function that holds its objective takes all tasks and the drawn linear term along."""
        cloudpickle = pytest.importorskip("cloudpickle")
        sent = []
        tasks = DaskBlocks._tasks

        def spy(self, function, each):
            sent.append(cloudpickle.dumps(function))
            return tasks(self, function, each)

        monkeypatch.setattr(DaskBlocks, "_tasks", spy)
        cut = dd.from_pandas(frame, npartitions=2)
        model = clone(model).set_params(accountant=PrivacyAccountant(5.0, rehearsal=True))
        if isinstance(model, DPLogisticRegression):
            model.set_params(classes=[0, 1]).fit(cut[NAMES], cut["ill"])
        else:
            model.fit(*survival(cut))
        assert len(sent) > 5
        for kept in (b"DaskBlocks", b"Ledger"):
            assert not [function for function in sent if kept in function]


class TestPredictions:
    def test_are_lazy_and_the_same(self, frame):
        X, y = survival(frame)
        model = hazard().fit(X, y)
        cut = dd.from_pandas(X, npartitions=3)
        for ask in (
            model.predict,
            lambda rows: model.predict_survival_function(rows, return_array=True),
            lambda rows: model.predict_cumulative_hazard_function(rows, return_array=True),
        ):
            asked = ask(cut)
            assert isinstance(asked, da.Array)
            np.testing.assert_allclose(asked.compute(), ask(X), rtol=1e-12)
        functions = model.predict_survival_function(cut).compute()
        assert functions[5](1.0) == model.predict_survival_function(X)[5](1.0)

    def test_of_classes(self, frame):
        model = DPLogisticRegression(3.0, classes=["no", "yes"]).fit(
            frame[NAMES], np.where(frame["ill"] == 1, "yes", "no")
        )
        cut = da.from_array(frame[NAMES].to_numpy(), chunks=(200, 3))
        rows = frame[NAMES]
        with pytest.warns(UserWarning, match="feature names"):
            assert (model.predict(cut).compute() == model.predict(rows)).all()
        assert model.predict_proba(cut).shape == (N, 2)

    def test_nothing_is_pulled_into_memory_without_a_word(self, frame):
        X, y = survival(frame)
        model = hazard().fit(X, y)
        with pytest.raises(TypeError, match="must be in memory"):
            model._rows(dd.from_pandas(X, npartitions=2), None)


class TestRefusals:
    def refuse(self, kind, match, fit):
        accountant = PrivacyAccountant(5.0)
        with pytest.raises(kind, match=match):
            fit(accountant)
        assert accountant.spent() == 0

    def test_of_a_value_in_one_partition(self, frame):
        broken = frame.copy()
        broken.loc[650, "dose"] = np.nan
        cut = dd.from_pandas(broken, npartitions=4)
        self.refuse(
            ValueError,
            "contains NaN",
            lambda a: hazard(accountant=a, random_state=None).fit(*survival(cut)),
        )

    def test_of_what_is_not_cut_alike(self, frame):
        X, y = survival(frame)
        one, other = dd.from_pandas(X, npartitions=2), dd.from_pandas(y, npartitions=3)
        self.refuse(
            ValueError,
            "same partitions",
            lambda a: hazard(accountant=a, random_state=None).fit(
                one.clear_divisions(), other.clear_divisions()
            ),
        )
        arrays = da.from_array(X.to_numpy(), chunks=100), da.from_array(y["years"][:50].to_numpy())
        self.refuse(
            ValueError,
            "same number of records",
            lambda a: hazard(accountant=a, random_state=None).fit(*arrays),
        )

    def test_of_other_indexes(self, frame):
        """They are cut alike, so places count, and not what an index says."""
        X, y = survival(frame)
        y.index = y.index + 1000
        whole = hazard().fit(X, y).release_
        found = hazard().fit(dd.from_pandas(X, npartitions=2), dd.from_pandas(y, npartitions=2))
        same(whole, found.release_)

    def test_of_one_in_memory(self, frame):
        X, y = survival(frame)
        self.refuse(
            TypeError,
            "y must be a collection of Dask",
            lambda a: hazard(accountant=a, random_state=None).fit(
                dd.from_pandas(X, npartitions=2), y
            ),
        )

    def test_of_estimators_that_need_all_records(self, frame):
        cut = dd.from_pandas(frame, npartitions=2)
        model = PrivateSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [1.0, 2.0]})
        with pytest.raises(TypeError, match="takes no Dask collections"):
            model.fit(cut[NAMES], cut["ill"])


class TestBlocks:
    def blocks(self, n=11):
        return [dask.delayed(np.arange(k, k + 3.0)) for k in range(n)]

    def test_sums_are_those_of_memory_to_the_bit(self):
        values = np.random.default_rng(0).normal(size=(37, 4))
        tasks = DaskBlocks([dask.delayed(row) for row in values])
        found = tasks.map_reduce(lambda row: (row / 3.0, None, float(row[0])))
        wanted = InMemory(values).map_reduce(lambda row: (row / 3.0, None, float(row[0])))
        np.testing.assert_array_equal(found[0], wanted[0])
        assert found[1:] == wanted[1:]

    def test_errors_travel_as_values(self):
        """What an engine logs of a failure would show a block."""

        def fail(block):
            if block[0] == 4.0:
                raise KeyError(f"secret {block}")
            return block.sum()

        with pytest.raises(RuntimeError, match=r"^A block of records could not be used.$"):
            DaskBlocks(self.blocks()).map_reduce(fail)
        with pytest.raises(RuntimeError, match=r"^A block of records could not be used.$"):
            list(DaskBlocks(self.blocks()).map(fail).results(np.sum))

    def test_small_blocks_are_held(self):
        made = []

        def make(k):
            made.append(k)
            return np.ones(2)

        tasks = [dask.delayed(make)(k) for k in range(3)]
        held = DaskBlocks(tasks, n_bytes=100.0).persist()
        for _ in range(3):
            assert held.map_reduce(np.sum) == 6.0
        assert len(made) == 3
        made.clear()
        part = DaskBlocks(tasks, n_bytes=1e30).persist(1e-28)
        for _ in range(2):
            part.map_reduce(np.sum)
        assert len(made) == 3
        large = DaskBlocks(tasks, n_bytes=math.inf).persist()
        for _ in range(2):
            large.map_reduce(np.sum)
        assert len(made) == 9

    def test_they_stay_where_they_are(self):
        """What is sent to a block must hold no others, and no noise."""
        with pytest.raises(TypeError, match="stay where they are"):
            pickle.dumps(DaskBlocks(self.blocks()))

    def test_partitions_of_files_stay_apart(self, frame, tmp_path):
        """Dask reads several files as one partition where few of their columns are used."""
        pytest.importorskip("pyarrow")
        for k in range(9):
            frame.iloc[50 * k : 50 * k + 50].to_parquet(tmp_path / f"{k}.parquet")
        files = dd.read_parquet(tmp_path)
        few = files["age"] > 0.0
        assert len(few.to_delayed()) < len(partitions(few)) == 9
        source = dask_source(files[NAMES], files["ill"], older=few)
        assert list(source.results(len)) == [3] * 9
        assert (
            source.map_reduce(lambda block: int(block[2].sum())) == (frame["age"][:450] > 0).sum()
        )

    def test_a_source_says_what_is_public(self, frame):
        X, y = survival(dd.from_pandas(frame, npartitions=2))
        source = dask_source(X, y)
        assert source.shape == (N, 3)
        assert source.n_blocks == 2
        assert source.meta.columns.tolist() == NAMES


@pytest.mark.parametrize("charged", [False, True])
def test_a_step_that_fails_while_records_are_counted(frame, charged):
    """It is refused as a record is, in words that quote none."""

    def step(part):
        if (part["age"] > 0.0).any():
            raise KeyError("Zebedee Quux")
        return part

    lazy = dd.from_pandas(frame, npartitions=3).map_partitions(step, meta=frame.iloc[:0])
    accountant = PrivacyAccountant(5.0, charge_refusals=charged)
    with pytest.raises(ValueError, match="can be counted") as caught:
        hazard(random_state=None, accountant=accountant).fit(
            *split_target(lazy, time="years", event="died")
        )
    assert caught.value.__context__ is None
    assert accountant.spent() == (2.0 if charged else 0.0)


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize("person", [False, True])
def test_a_step_that_fails_while_records_are_read(frame, charged, person):
    """Counting leaves out columns that it does not need, and steps that make these."""
    lazy = dd.from_pandas(frame, npartitions=3)
    lazy["age"] = lazy["age"].map({}.__getitem__, meta=("age", float))
    accountant = PrivacyAccountant(5.0, charge_refusals=charged)
    X, y = split_target(lazy, time="years", event="died")
    whose = {"person": lazy["ill"].map({}.__getitem__, meta=("ill", int))} if person else {}
    with pytest.raises(ValueError, match="can be read") as caught:
        hazard(random_state=None, accountant=accountant).fit(X, y, **whose)
    assert caught.value.__context__ is None
    assert accountant.spent() == (2.0 if charged else 0.0)


@pytest.mark.parametrize("sampler", [None, "psgld"])
def test_no_noise_and_no_estimator_goes_to_where_blocks_are(frame, monkeypatch, sampler):
    """What a task holds can be sent, and shows a likelihood and a point."""
    distributed = pytest.importorskip("distributed.protocol.pickle")
    sent, summed = [], DaskBlocks.map_reduce

    def spied(blocks, function, *each):
        sent.append(distributed.dumps(function))
        return summed(blocks, function, *each)

    monkeypatch.setattr(DaskBlocks, "map_reduce", spied)
    lazy = dd.from_pandas(frame.iloc[:60], npartitions=2)
    how = {"method": "noisy_gd"} if sampler is None else {"method": PosteriorSampling(sampler)}
    model = hazard(delta=1e-4, n_intervals=4, data_norm=1.0, random_state=None, **how)
    model.fit(*split_target(lazy, time="years", event="died"))
    assert model.guarantee_.delta
    assert sent
    assert not any(word in one for one in sent for word in (b"ExactVector", b"RandomSource"))


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
        array, labels = frame[NAMES].to_numpy(), frame["ill"].to_numpy()
        cut = dd.from_pandas(frame, npartitions=3)
        yield cut.map_partitions(Step(), meta=frame.iloc[:0])[NAMES], cut["ill"]
        yield cut[NAMES], cut["ill"].map_partitions(Step(), meta=frame["ill"].iloc[:0])
        array, labels = da.from_array(array, chunks=(300, 3)), da.from_array(labels, chunks=300)
        yield array.map_blocks(Step(), dtype=float), labels

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
    def test_a_parameter(self, frame, charged):
        class Locked:
            def __deepcopy__(self, memo):
                return self

            def __reduce__(self):
                raise KeyError(NAMES)

            def predict_survival_function(self, X):
                return [np.vectorize(lambda time: 0.5)]

        target = np.empty(N, "?,f8")
        target["f0"], target["f1"] = frame["died"], frame["years"]
        X, y = (da.from_array(a, chunks=300) for a in (frame[NAMES].to_numpy(), target))
        accountant = PrivacyAccountant(5.0, charge_refusals=charged)
        with (
            dask.config.set(scheduler="processes"),
            pytest.raises(TypeError, match=r"^model must be such that it can be sent"),
        ):
            private_survival_metrics(Locked(), X, y, max_time=MAX_TIME, accountant=accountant)
        assert accountant.spent() == 0.0

    def test_a_plan(self, frame):
        """Of a kind of fit that is somebody else's."""

        class Locked(DPLogisticRegression, released=False):
            def _plan(self, shape):
                plan = super()._plan(shape)
                object.__setattr__(plan, "lock", Step())
                return plan

        accountant = PrivacyAccountant(5.0, charge_refusals=True)
        X, y = (da.from_array(frame[name].to_numpy(), chunks=300) for name in (["age"], "ill"))
        with (
            dask.config.set(scheduler="processes"),
            pytest.raises(TypeError, match=r"^Locked must be such that it can be sent"),
        ):
            Locked(1.0, classes=[0, 1], accountant=accountant).fit(X, y)
        assert accountant.spent() == 0.0
