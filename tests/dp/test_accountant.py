"""Tests of the ledger: nobody overspends, whatever the threads, processes and copies do."""

import copy
import gc
import math
import multiprocessing
import os
import pickle
import sys
import threading
import warnings
from datetime import UTC, datetime, timedelta

import joblib
import pytest
from sklearn.base import clone

from skdpsurv.dp import BudgetExceededError, PrivacyAccountant, PrivacyGuarantee

from .costs import cost, exceeds, refused

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class TestBudget:
    def test_charges_add_up(self, make):
        accountant = make(1.0)
        assert (accountant.epsilon, accountant.delta, accountant.remaining()) == (1.0, 0.0, 1.0)
        accountant.charge(cost(0.25))
        accountant.charge(cost(0.5))
        assert (accountant.spent(), accountant.remaining()) == (0.75, 0.25)
        assert accountant.remaining(delta=1e-300) == 0.0  # none was stated
        exceeds(accountant, cost(0.1, 1e-300))
        with pytest.raises(TypeError):
            accountant.charge(0.5)
        accountant.entries()["epsilon"] = 0.0
        assert accountant.spent() == 0.75

    def test_excess_is_refused_and_records_nothing(self, make):
        accountant = make(1.0)
        accountant.charge(cost(0.75))
        accountant.check(cost(0.25))
        exceeds(accountant, cost(0.5), match=r"epsilon=0.5, but only 0.25 is left")
        with pytest.raises(BudgetExceededError):
            accountant.check(cost(0.5))
        assert len(accountant.entries()) == 1
        accountant.charge(cost(0.25))
        assert accountant.remaining() == 0.0

    def test_delta_has_its_own_budget(self, make):
        accountant = make(10.0, 1e-5)
        accountant.charge(cost(1.0, 8e-6))
        exceeds(accountant, cost(1.0, 5e-6), match="delta=5e-06, but only 2e-06")
        assert (accountant.spent(), accountant.spent_delta()) == (1.0, 8e-6)

    def test_error_survives_pickling(self):
        said = BudgetExceededError(math.inf, 0.5, "trial", "epsilon", "seeded")
        error = pickle.loads(pickle.dumps(said))
        assert isinstance(error, RuntimeError)
        assert (vars(error), str(error)) == (vars(said), str(said))

    def test_parameters(self, make):
        for name, wrong in (
            *(("epsilon", value) for value in (0, -1.0, math.nan, True, None)),
            *(("delta", value) for value in (-0.1, 1.0)),
            *(("rehearsal", 1), ("charge_refusals", "yes")),
        ):
            with pytest.raises((ValueError, TypeError), match=name):
                make(**{"epsilon": 1.0, name: wrong})


class TestDatasets:
    def test_each_has_the_full_budget(self, make):
        accountant = make(1.0)
        trial = accountant.for_dataset("trial")
        trial.charge(cost(1.0))
        assert (trial.spent(), accountant.spent()) == (1.0, 0.0)
        with pytest.raises(BudgetExceededError, match="'trial'"):
            accountant.charge(cost(0.5), "trial")
        accountant.charge(cost(0.5))
        trial.charge(cost(0.5), dataset="default")
        trial.for_dataset("b").charge(cost(0.5))
        assert (trial.spent(), accountant.spent(), trial.dataset) == (1.0, 1.0, "trial")
        assert accountant.for_dataset("b").remaining() == 0.5
        for view in (accountant, trial):
            assert view.entries()["dataset"].tolist() == ["trial", "default", "default", "b"]

    def test_names_can_be_written(self, make):
        accountant = make(1.0)
        unseen = "\udc80\0\u200b\x07\ufe0f\u034f\u2800\U000e0100\u17b4\U0001d159"
        for name in (None, 3, b"trial", "", " \n", *(f"re{character}g" for character in unseen)):
            with pytest.raises((ValueError, TypeError), match="dataset"):
                accountant.for_dataset(name)
        refused(
            r"dataset|must be text",
            lambda: accountant.charge(cost(0.5), "x\u200b"),
            lambda: accountant.charge(cost(0.5), estimator="\udc80"),
            lambda: accountant.charge(cost(0.5, mechanism="a\0")),
        )
        assert len(accountant.entries()) == 0

    def test_names_that_look_alike_are_one_budget(self, make):
        accountant = make(1.0).for_dataset("\u00e9tude 7")
        accountant.charge(cost(0.75))
        spaces = "\u00a0", "\u3000 ", "\u2007 \u202f"
        for other in ("e\u0301tude 7", " \u00e9tude 7\n", *map("\u00e9tude{}7".format, spaces)):
            assert accountant.for_dataset(other).dataset == "\u00e9tude 7"
            exceeds(accountant.for_dataset(other), cost(0.75))
            with pytest.raises(BudgetExceededError):
                accountant.charge(cost(0.75), other)


class TestParallelComposition:
    def test_costs_the_largest(self, make):
        accountant = make(2.0, 0.1)
        parts = [cost(0.5, 0.01, mechanism="a"), cost(2.0, mechanism="b"), cost(1.0, 0.02)]
        accountant.charge_parallel(iter(parts), disjoint=True, estimator="Stack")
        assert (accountant.spent(), accountant.spent_delta()) == (2.0, 0.02)
        [entry] = accountant.entries().to_dict("records")
        assert entry["mechanism"] == "3 disjoint parts: a, b"
        assert (entry["status"], entry["estimator"]) == ("proved", "Stack")
        accountant.charge_parallel(parts[:1], disjoint=True, dataset="other")
        assert accountant.for_dataset("other").spent() == 0.5

    def test_a_part_that_is_not_proved_makes_it_infinite(self, make):
        accountant = make(math.inf)
        accountant.charge_parallel([cost(1.0), cost(0.5, status="asymptotic")], disjoint=True)
        assert accountant.spent() == math.inf
        assert accountant.entries()["status"].tolist() == ["asymptotic"]

    def test_proved_parts_beside_rehearsals_are_spent(self, make):
        accountant = make(2.0, rehearsal=True)
        parts = [cost(0.5), cost(0.25, status="seeded"), cost(1.0), cost(2.0, status="none")]
        accountant.charge_parallel(parts, disjoint=True)
        assert (accountant.spent(), accountant.rehearsed()) == (1.0, 2.0)
        assert accountant.entries()["status"].tolist() == ["proved", "none"]
        with pytest.raises(BudgetExceededError):  # all or nothing
            accountant.charge_parallel(parts, disjoint=True)
        assert (accountant.spent(), accountant.rehearsed()) == (1.0, 2.0)

    def test_disjointness_must_be_stated(self, make):
        accountant = make(2.0)
        for disjoint in (False, None, 1, "yes"):
            with pytest.raises(ValueError, match="disjoint must be True"):
                accountant.charge_parallel([cost(1.0)], disjoint=disjoint)
        for parts in ([], [cost(1.0), cost(1.0, neighbours="add-remove")]):
            with pytest.raises(ValueError, match=r"at least one|neighbours"):
                accountant.charge_parallel(parts, disjoint=True)
        assert accountant.spent() == 0.0


class TestTable:
    def test_columns(self, make):
        accountant = make(5.0)
        empty = accountant.entries()
        accountant.charge(cost(1.0, mechanism="<script>"), "<b>", estimator="Fitter")
        table = accountant.entries()
        assert table.columns.equals(empty.columns)
        assert table.iloc[0, 1:7].tolist() == ["Fitter", "<script>", 1.0, 0.0, "proved", "<b>"]
        when = datetime.fromisoformat(table.loc[0, "when"])
        assert when.utcoffset() == timedelta(0)
        assert abs(datetime.now(UTC) - when) < timedelta(minutes=10)
        assert not [tag for tag in ("<script>", "<b>") if tag in accountant._repr_html_()]

    def test_zeros_have_no_sign(self, make):
        """A database keeps -0.0 as 0.0, which has another hash."""
        accountant = make(5.0, -0.0)
        for guarantee in (cost(0.5, -0.0), cost(-0.0)):
            accountant.charge(guarantee)
        for one in (accountant, make() if accountant.path else accountant):
            assert "-0" not in repr(one.entries()[["epsilon", "delta"]].values.tolist())
        accountant.verify()
        assert accountant.spent() == 0.5

    def test_a_charge_is_found_by_its_guarantee(self, make):
        """Its receipt is the one that it had, among others and of this data set alone."""
        accountant = make(5.0)
        costs = [cost(0.5, source=f"run {k}") for k in range(3)]
        receipts = [accountant.charge(one) for one in costs]
        assert [accountant._receipt_of(one) for one in costs] == receipts
        assert accountant._receipt_of(cost(0.5)) is None
        other = accountant.for_dataset("other")
        assert other._receipt_of(costs[0]) is None
        again = other.charge(costs[0])
        assert other._receipt_of(costs[0]) == again
        assert accountant._receipt_of(costs[0]) == receipts[0]


class TestThreads:
    def test_never_overspend(self, make):
        """100 charges fit; 8 threads try 25 each, all at once, with eager thread switches."""
        accountant, barrier, refusals = make(10.0), threading.Barrier(8), []

        def spend():
            barrier.wait()
            for _ in range(25):
                try:
                    accountant.charge(cost(0.1))
                except BudgetExceededError:
                    refusals.append(1)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=spend) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        assert len(accountant.entries()) == len(refusals) == 100
        assert accountant.spent() == 10.0


class TestProcesses:
    @pytest.mark.slow
    def test_loky_workers_share_a_file(self, path):
        """Two try 60 charges, together; 40 fit."""
        accountant = PrivacyAccountant(5.0, path=path)

        def fit(view):
            try:
                clone(view).charge(PrivacyGuarantee(0.125))
            except BudgetExceededError:
                return 0
            return 1

        workers = joblib.Parallel(n_jobs=2, backend="loky")
        assert sum(workers(joblib.delayed(fit)(accountant) for _ in range(60))) == 40
        with pytest.raises(BudgetExceededError) as error:
            workers([joblib.delayed(accountant.charge)(cost(0.5))])
        assert (error.value.requested, error.value.remaining) == (0.5, 0.0)
        assert (accountant.spent(), len(accountant.entries())) == (5.0, 40)

    def test_loky_workers_cannot_charge_memory(self):
        accountant = PrivacyAccountant(1.0)
        accountant.charge(cost(0.25))

        def attempt(copied):
            try:
                copied.charge(PrivacyGuarantee(0.125))
            except RuntimeError as error:
                return str(error), repr(copied), copied
            return None

        workers = joblib.Parallel(n_jobs=2, backend="loky")
        [(message, text, home)] = workers([joblib.delayed(attempt)(accountant)])
        assert "Make it with a path" in message
        assert text == "PrivacyAccountant(epsilon=1, delta=0, detached)"
        # Back where the original lives, it is the original.
        home.charge(cost(0.5))
        assert accountant.spent() == 0.75

    @FORK
    @pytest.mark.parametrize("kind", ["memory", "file"])
    def test_forked_child(self, kind, path):
        accountant = PrivacyAccountant(1.0, path=path if kind == "file" else None)
        accountant.charge(cost(0.25))
        copied = pickle.dumps(accountant)

        def child(answers):
            for view in (accountant, pickle.loads(copied), copy.deepcopy(accountant)):
                for call in (view.check, view.charge):
                    try:
                        call(cost(0.125))
                        answers.put("done")
                    except RuntimeError as error:
                        answers.put(str(error))

        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
            process = context.Process(target=child, args=(answers,))
            process.start()
        results = [answers.get() for _ in range(6)]
        process.join()
        in_memory = kind == "memory"
        assert all(("Make it with a path" if in_memory else "done") in said for said in results)
        assert accountant.spent() == (0.25 if in_memory else 0.625)
        accountant.charge(cost(0.125))  # the parent goes on


class TestCopies:
    def test_copies_in_one_process_share_the_ledger(self, make):
        accountant = make(1.0).for_dataset("trial")
        duplicates = clone, copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))
        for number, duplicate in enumerate(duplicates, 1):
            other = duplicate(accountant)
            assert other.dataset == "trial"
            other.charge(cost(0.125))
            assert accountant.spent() == 0.125 * number

    @pytest.mark.slow
    def test_pickle_outliving_its_ledger_is_detached(self):
        """Nobody knows then what was spent."""
        accountant = PrivacyAccountant(1.0, rehearsal=True)
        accountant.charge(cost(0.25))
        pickled = pickle.dumps(accountant)
        accountant.charge(cost(0.75))
        del accountant
        gc.collect()
        old = pickle.loads(pickled)
        assert "detached" in repr(old)
        assert "detached" in old._repr_html_()
        reads = old.spent, old.spent_delta, old.remaining, old.rehearsed, old.entries
        refused("does not know what was charged", *reads, error=RuntimeError)
        for call in (old.charge, old.check, pickle.loads(pickle.dumps(old)).charge):
            with pytest.raises(RuntimeError, match="Make it with a path"):
                call(cost(0.25))
