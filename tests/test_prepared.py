"""A prepared fit: what it tells before it runs, each step once, and nothing for nothing."""

import copy
import gc
import os
import pickle
import threading
import warnings
import weakref
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdpsurv import (
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPLogisticRegression,
    DPTableOne,
    PrivacyAccountant,
    PublicColumns,
    PublicInputWarning,
)
from skdpsurv.base.prepared import PreparedFit
from skdpsurv.dp import BudgetExceededError, PrivacyLeakWarning
from skdpsurv.dp.thread_warnings import suppressed_warnings

RNG = np.random.default_rng(4)
N = 300
X = RNG.uniform(-0.5, 0.5, (N, 2))
LABELS = RNG.integers(0, 2, N)
Y = pd.DataFrame({"died": RNG.random(N) < 0.5, "time": RNG.uniform(0.0, 5.0, N)})
AGES = pd.DataFrame({"age": RNG.uniform(20.0, 80.0, N)})
WHOSE = [f"P{i % 200}" for i in range(N)]


def hazard(**settings):
    return DPDiscreteTimeSurvival(max_time=5.0, data_norm=1.0, **settings)


def logistic(**settings):
    return DPLogisticRegression(**{"classes": [0, 1], "data_norm": 1.0, **settings})


def table(**settings):
    return DPTableOne(columns=PublicColumns({"age": (20.0, 80.0)}), **settings)


def curve(**settings):
    return DPKaplanMeierFitter(max_time=5.0, **settings)


MODELS = {
    "hazard": (hazard, (X, Y)),
    "logistic": (logistic, (X, LABELS)),
    "table": (table, (AGES,)),
    "curve": (curve, (None, Y)),
}
each = pytest.mark.parametrize(("make", "data"), MODELS.values(), ids=MODELS)


def ledger(**settings):
    return PrivacyAccountant(5.0, **settings)


@each
def test_a_fit_is_a_prepared_fit_that_runs(make, data):
    model = make(random_state=3)
    prepared = model.prepare(*data)
    assert isinstance(prepared, PreparedFit)
    with pytest.warns(PrivacyLeakWarning):
        found = prepared.run()
    with pytest.warns(PrivacyLeakWarning):
        model.fit(*data)
    assert type(found) is type(model)
    assert found.release_.to_json() == model.release_.to_json()
    assert prepared.guarantee == found.guarantee_


@each
def test_it_tells_what_it_would_promise_and_cost_and_spends_nothing(make, data):
    own = ledger()
    model = make(epsilon=0.5, accountant=own)
    before = dict(vars(model))
    prepared = model.prepare(*data)
    assert vars(model) == before
    assert (prepared.guarantee.epsilon, prepared.guarantee.status) == (0.5, "proved")
    assert prepared.plan.epsilon == 0.5
    assert (own.spent(), prepared.warnings) == (0.0, ())
    for name in ("plan", "guarantee", "warnings"):
        with pytest.raises(AttributeError, match=f"{name} of a prepared fit"):
            setattr(prepared, name, None)
    assert "planned" in repr(prepared)


@pytest.mark.slow
@each
def test_it_holds_records_until_it_runs_and_leaves_no_process(make, data):
    rows = [None if one is None else one.copy() for one in data]
    held = weakref.ref(rows[-1])
    prepared = make().prepare(*rows)
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            leave(prepared)
    del rows
    gc.collect()
    assert held() is not None or isinstance(data[-1], pd.DataFrame)  # whose index was replaced
    model = prepared.run()
    gc.collect()
    assert held() is None
    assert "run" in repr(prepared)
    pickle.dumps(model)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_copy_in_another_process_draws_nothing():
    own = ledger()
    prepared = curve(accountant=own).prepare(None, Y)
    prepared.charge()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, which tests have
        child = os.fork()
    if child == 0:  # no test framework goes on here
        try:
            prepared.run()
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    prepared.run()


def test_a_receipt_is_one():
    prepared = curve().prepare(None, Y)
    with pytest.raises(TypeError, match="receipt"):
        prepared.run("entry 1")
    assert "planned" in repr(prepared)


@each
def test_each_step_is_made_once_whoever_asks(make, data):
    own = ledger()
    prepared, found = make(accountant=own).prepare(*data), []

    def run():
        try:
            found.append(prepared.run())
        except RuntimeError as error:
            found.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    failed = [one for one in found if isinstance(one, RuntimeError)]
    assert len(failed) == 3
    assert all("runs once" in str(one) for one in failed)
    assert len(own.entries()) == 1
    receipt = prepared.charge()
    assert (
        receipt == prepared.charge() == next(m for m in found if m not in failed).release_.receipt
    )


@pytest.mark.parametrize("charges", [False, True])
def test_a_refused_fit_is_not_read_again(charges):
    own, rows = ledger(charge_refusals=charges), X.copy()
    rows[5, 0] = np.nan
    prepared = hazard(accountant=own).prepare(rows, Y)
    for step, error in ((prepared.read, ValueError), (prepared.read, RuntimeError)):
        with pytest.raises(error):
            step()
        rows[5, 0] = 0.0  # which another look would tell
    with pytest.raises(RuntimeError, match="prepare again"):
        prepared.run()
    assert own.spent() == float(charges)


def test_the_ledger_is_asked_before_records_are_read_and_charged_after_that():
    class Ledger(PrivacyAccountant):
        def check(self, *args, **kwargs):
            seen.append("check")
            super().check(*args, **kwargs)

        def charge(self, *args, **kwargs):
            seen.append("charge")
            return super().charge(*args, **kwargs)

    class Model(DPLogisticRegression):
        def _read(self, *args):
            seen.append("read")
            return super()._read(*args)

    for charges, order in ((False, ["check", "read", "charge"]), (True, ["charge", "read"])):
        seen = []
        own = Ledger(5.0, charge_refusals=charges)
        prepared = Model(classes=[0, 1], data_norm=1.0, accountant=own).prepare(X, LABELS)
        assert seen == []
        prepared.read()
        prepared.read()
        prepared.charge()
        prepared.run()
        assert seen == order


def test_where_records_must_be_looked_at_a_ledger_that_charges_refusals_is_charged_by_then():
    listed = X.tolist()
    looks = {
        "people": (logistic(), (X, LABELS), {"person": WHOSE}),
        "classes": (logistic(classes=None), (X, LABELS), {}),
        "a list": (logistic(), (listed, LABELS), {}),
        "a tuple": (logistic(), (tuple(map(tuple, listed)), LABELS), {}),
        "complex": (logistic(), (X.astype(complex), LABELS), {}),
    }
    for name, (model, data, options) in looks.items():
        for charges in (False, True):
            own = PrivacyAccountant(rehearsal=True, epsilon=9.0, charge_refusals=charges)
            model = clone(model).set_params(accountant=own)
            refused = (
                pytest.raises(ValueError, match="Complex") if name == "complex" else nullcontext()
            )
            with suppressed_warnings(), refused:
                model.prepare(*data, **options)
            assert own.spent() + own.rehearsed() == float(charges), (name, charges)
        model.set_params(accountant=PrivacyAccountant(0.5, charge_refusals=True))
        with pytest.raises(BudgetExceededError):
            model.prepare(*data, **options)


def test_who_interrupts_a_look_pays_for_it(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    own = ledger(charge_refusals=True)
    model = logistic(accountant=own)
    monkeypatch.setattr(DPLogisticRegression, "_sources", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.prepare(X, LABELS, person=WHOSE)
    assert own.spent() == 1.0


def test_public_mistakes_cost_nothing_even_where_refusals_are_charged():
    own = ledger(charge_refusals=True)
    mistakes = [
        (logistic(), (X, None), {}, "y must be given"),
        (hazard(), (X, None), {}, "y must be given"),
        (logistic(), (X, LABELS[1:]), {}, "same number of records"),
        (hazard(), (X, Y.iloc[1:]), {}, "same number of records"),
        (curve(groups=["a", "b"]), (None, Y), {}, "group"),
        (curve(), (None, Y), {"group": ["a"] * N}, "group"),
        (logistic(), (X, LABELS), {"weights": LABELS}, "no parameter 'weights'"),
        (curve(), (None, Y), {"timeline": [1.0]}, "no parameter 'timeline'"),
    ]
    for model, data, options, message in mistakes:
        with pytest.raises((ValueError, TypeError), match=message):
            model.set_params(accountant=own).prepare(*data, **options).read()
    assert own.entries().empty


def test_warnings_come_at_the_charge_and_as_errors_they_stop_it():
    own = ledger()
    model = logistic(epsilon=0.01, accountant=own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = model.prepare(X, LABELS)
        prepared.read()
        assert "n * epsilon" in prepared.warnings[0]
        with pytest.raises(PublicInputWarning):
            prepared.charge()
    with pytest.raises(RuntimeError, match="failed in charge"):
        prepared.run()
    assert own.spent() == 0.0
    with pytest.warns(PublicInputWarning) as given:
        model.prepare(X, LABELS).run()
    assert {one.filename for one in given} == {__file__}


def test_a_fit_under_a_wider_charge_states_its_receipt():
    own = ledger()
    prepared = logistic().prepare(X, LABELS)
    receipt = own.charge(prepared.guarantee)
    assert prepared.run(receipt).release_.receipt == receipt


def test_the_estimator_may_change_meanwhile():
    model = logistic(epsilon=0.5)
    prepared = model.prepare(X, LABELS)
    model.set_params(epsilon=7.0, classes=[2, 3])
    assert prepared.run().guarantee_.epsilon == 0.5


def test_columns_that_are_not_in_memory_are_not_computed_in_a_tuple():
    dask = pytest.importorskip("dask.array")

    def told(block):
        raise ValueError("record 17 is 6.98")

    lazy = dask.from_array(np.ones(N), chunks=100).map_blocks(told, dtype=float, meta=np.empty(0))
    for charges in (False, True):
        own = ledger(charge_refusals=charges)
        model = hazard(accountant=own)
        with pytest.raises((ValueError, TypeError)) as raised:
            model.prepare(X, (np.ones(N, dtype=bool), lazy)).run()
        assert "6.98" not in str(raised.value)
        assert own.spent() == float(charges)
    with pytest.raises(ValueError, match="must not look"):
        own.plan([(hazard(), X, (np.ones(N, dtype=bool), lazy))])


def test_masks_of_a_pair_are_refused():
    masked = np.ma.array(np.ones(N), mask=np.arange(N) == 3)
    with pytest.raises(ValueError, match="mask"):
        hazard().fit(X, (np.ones(N, dtype=bool), masked))
