"""Fits on two worker processes of Dask, and what a lost one costs."""

import logging
import os
import signal
import threading
import time

import dask
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPLogisticRegression,
    DPWeibullFitter,
    PrivacyAccountant,
    PrivateStackingClassifier,
    PublicColumns,
    split_target,
)
from skdpsurv.data.dask import DaskBlocks
from skdpsurv.evaluation import private_survival_metrics
from skdpsurv.survival.hazards import posterior as hazard_posterior
from tests.support import checks
from tests.support.estimators import hazard, search_of
from tests.support.tables import OF_TABLES, table

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow

ONE_THREAD = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
COLUMNS = PublicColumns(dict.fromkeys("abcde", (-1, 1)))


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(2, **ONE_THREAD) as here, distributed.Client(here) as client:
        yield client


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parquet")
    rng = np.random.default_rng(0)
    for k in range(8):
        X = rng.uniform(-1, 1, (20_000, 5))
        times, left = rng.exponential(2.0 * np.exp(-X[:, 0])), rng.uniform(0, 6, len(X))
        frame = pd.DataFrame(X, columns=list("abcde"))
        frame = frame.assign(died=times <= left, years=np.minimum(times, left))
        frame.to_parquet(folder / f"{k}.parquet")
    return folder


def fit(frame, accountant=None):
    model = DPDiscreteTimeSurvival(
        1.0, max_time=4.0, n_intervals=200, random_state=0, accountant=accountant
    )
    return model.fit(*split_target(frame, time="years", event="died"))


@pytest.fixture(scope="module")
def in_memory(files):
    return fit(pd.read_parquet(files)).release_


def same(whole, found):
    assert found.guarantee == whole.guarantee
    for name, value in whole.values.items():
        np.testing.assert_allclose(found.values[name], value, rtol=1e-9, atol=1e-9)


def test_the_release_is_that_of_memory(client, files, in_memory):
    same(in_memory, fit(dd.read_parquet(files)).release_)


@pytest.mark.parametrize(
    "model",
    [
        hazard(5.0, n_epochs=100, max_time=4.0, n_intervals=8),
        DPDiscreteTimeSurvival(5.0, method="out_pert", max_time=4.0, columns=COLUMNS),
        DPWeibullFitter(1.0, max_time=4.0),
        # Models are fitted by threads of the client, whatever n_jobs would do elsewhere.
        PrivateStackingClassifier(
            5.0, classes=[0, 1], partition="samples", n_partitions=3, n_jobs=2
        ),
    ],
    ids=["posterior", "output", "Weibull", "stack"],
)
def test_other_fits(client, files, model):
    model.set_params(random_state=0)
    path, found = files / "0.parquet", []
    for frame in (pd.read_parquet(path), dd.read_parquet(path)):
        X, y = split_target(frame, time="years", event="died")
        if hasattr(model, "classes"):
            y = y["died"].astype(int)
        found.append(clone(model).fit(X, y).release_)
    same(*found)


@pytest.mark.parametrize(
    "setting",
    # Workers know no modules but installed ones.
    [s for s in OF_TABLES if s.one_of_its_plan and s.kind.__module__.startswith("skdpsurv.")],
    ids=str,
)
def test_a_setting_of_each_plan(client, setting, monkeypatch):
    """Noise is drawn without a seed, as it cannot be sent: nothing that holds it is."""
    data, changes = setting.data(), {}
    if setting.diverges:  # by a thousand steps, each of which is a pass over the cluster
        monkeypatch.setitem(hazard_posterior.LEAST_STEPS, "psgld", 20)
        changes["method"] = clone(setting.parameters["method"]).set_params(n_epochs=1)
    frame, columns, target = table(data)
    with dask.config.set({"dataframe.convert-string": False}):
        lazy = dd.from_pandas(frame, npartitions=2, sort=False)
        options = {name: lazy[name] for name in data.options}
        outcome = checks.fit(setting.make(**changes), lazy[columns], lazy[target], options)
    assert (outcome.error is None) or setting.diverges, outcome.error
    assert outcome.charges == [setting.epsilon]


def test_an_evaluation(client, files, in_memory):
    """The model travels, and what it predicts stays."""
    model, options = DPDiscreteTimeSurvival.from_release(in_memory), {"epsilon": 2.0}
    options |= {"max_time": 4.0, "random_state": 0, "n_groups": 2, "n_bands": 1}
    frame = pd.read_parquet(files / "0.parquet")[:600]
    whole, found = (
        private_survival_metrics(model, *split_target(t, time="years", event="died"), **options)
        for t in (frame, dd.from_pandas(frame, npartitions=2))
    )
    assert found.guarantee == whole.guarantee
    pd.testing.assert_frame_equal(found.summary, whole.summary)


def test_a_lost_worker_costs_time_and_nothing_else(client, files, in_memory):
    """It is killed in the middle; another takes its place, and noise is not drawn again."""
    accountant = PrivacyAccountant(5.0, rehearsal=True)
    (first, *_) = client.run(os.getpid).values()
    killed = []

    def kill():
        # Once sums of the fit have come back.
        while accountant.entries().empty:
            time.sleep(0.005)
        time.sleep(0.3)
        os.kill(first, signal.SIGKILL)
        killed.append(first)

    killer = threading.Thread(target=kill)
    killer.start()
    found = fit(dd.read_parquet(files), accountant).release_
    assert killed, "the fit was over before the worker was killed"
    killer.join()
    same(in_memory, found)
    assert len(accountant.entries()) == 1


def test_a_client_that_goes_away(files, monkeypatch):
    """What was charged stays charged, and the error says so."""
    accountant = PrivacyAccountant(5.0, rehearsal=True)
    summed = DaskBlocks.map_reduce
    with (
        distributed.LocalCluster(1, **ONE_THREAD, silence_logs=logging.CRITICAL) as cluster,
        distributed.Client(cluster) as client,
    ):

        def leave(blocks, function, *each):
            if not accountant.entries().empty:
                client.close()
            return summed(blocks, function, *each)

        monkeypatch.setattr(DaskBlocks, "map_reduce", leave)
        with pytest.raises(RuntimeError, match=r"went away.*stays charged"):
            fit(dd.read_parquet(files), accountant)
    assert len(accountant.entries()) == 1


def test_workers_log_nothing_of_records(client, tmp_path):
    """An engine logs what failed, and what it failed on: so nothing fails there."""
    frame = pd.DataFrame({"a": [0.5, 7654.321, np.inf], "died": True, "years": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "0.parquet")
    with pytest.raises(ValueError, match="infinity"):
        fit(dd.read_parquet(tmp_path))
    logs = {**client.get_worker_logs(), "scheduler": client.get_scheduler_logs()}
    assert "7654" not in str(logs)


@pytest.mark.parametrize(("method", "delta"), [("auto", 0.0), ("noisy_gd", 1e-4)])
@pytest.mark.parametrize(("strategy", "away"), [("split", True), ("repeat", False)])
def test_searches_through_joblib(client, strategy, away, method, delta):
    """How many runs "repeat" makes is private, so no scheduler may count them."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 3))
    y = (X[:, 0] > 0).astype(int)
    model, options = DPLogisticRegression(classes=[0, 1], method=method), {"random_state": 0}
    options |= {"strategy": strategy, "epsilon": 4.0, "delta": delta, "eta": 0.0, "n_jobs": 2}
    search = search_of(model, {"alpha": [0.01, 0.1, 1.0]}, **options)
    here = clone(search).fit(X, y)
    with distributed.get_task_stream(client) as stream, joblib.parallel_config("dask"):
        there = clone(search).fit(X, y)
    assert (len(stream.data) > 0) == away
    assert there.best_params_ == here.best_params_
    assert there.release_.values["coef"].tolist() == here.release_.values["coef"].tolist()
