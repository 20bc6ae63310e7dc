"""A fit as a value: planned from public numbers; then it reads, is charged and runs, once each."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

from sklearn import config_context

from skdpsurv.data import PublicInputWarning
from skdpsurv.data.blocks import Blocks
from skdpsurv.data.shape import target_names
from skdpsurv.dp.checks import instance, optional
from skdpsurv.dp.guarantee import PrivacyGuarantee, PrivacyLeakWarning
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.ledger import Receipt
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.proofs import is_asserted, name_of
from skdpsurv.dp.references import phrase

#: Arguments of ``fit``: X, y, and the others by name.
Arguments = tuple[Any, Any, dict[str, Any]]


class PreparedFit:
    """A fit that has not run: what :meth:`PrivateEstimator.prepare` returns.

    It holds the records until it runs, so it is private, and nothing pickles or copies it. What it
    will promise and cost is public, and known before a value of a record is looked at. (Unless
    people or out-of-core records must be counted, classes be read, or steps learn. A ledger is
    asked before that; if it charges refusals, it is charged by then.)

    Each step makes those before it. One that failed is not made again, since what it raised may
    depend on records, which may have changed meanwhile. Threads may share a prepared fit.

    Attributes
    ----------
    plan : Plan
        All measurements, with their prices. Public.
    guarantee : PrivacyGuarantee
        What the ledger will be charged, and the release will state. Public.
    warnings : tuple of str
        What looks wrong in public numbers. They are given at the charge.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant
    >>> ledger = PrivacyAccountant(epsilon=1.0)
    >>> model = DPKaplanMeierFitter(epsilon=0.5, max_time=10.0, accountant=ledger)
    >>> fit = model.prepare([1.0, 4.0, 6.0], [1, 1, 0])
    >>> fit.guarantee.epsilon, fit.guarantee.status, ledger.spent()
    (0.5, 'proved', 0.0)
    >>> fitted = fit.run()
    >>> ledger.spent()
    0.5
    """

    plan: Plan
    guarantee: PrivacyGuarantee
    warnings: tuple[str, ...]

    def __init__(
        self,
        estimator: Any,
        arguments: Arguments | None,
        shape: Any,
        plan: Plan,
        guarantee: PrivacyGuarantee,
        messages: Sequence[str],
    ) -> None:
        vars(self).update(plan=plan, guarantee=guarantee, warnings=tuple(messages))
        self._estimator, self._shape, self._arguments = estimator, shape, arguments
        self._records: Any = None
        self._receipt: Receipt | None = None
        self._begun: set[str] = set()
        self._done: set[str] = set()
        self._lock, self._process = threading.RLock(), os.getpid()

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"{name} of a prepared fit cannot be changed.")
        super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a prepared fit holds records: it can be neither pickled nor copied.")

    def __repr__(self) -> str:
        done = ", ".join(step for step in ("read", "charge", "run") if step in self._done)
        name, epsilon = type(self._estimator).__name__, self.guarantee.epsilon
        return f"<fit of {name} at epsilon {epsilon:g}: {done or 'planned'}>"

    @contextmanager
    def _once(self, step: str) -> Iterator[bool]:
        """Say whether a step is to be made now; RuntimeError if it failed before."""
        if os.getpid() != self._process:
            raise RuntimeError("a prepared fit runs in the process that prepared it, and no other.")
        with self._lock:
            if step in self._done:
                yield False
                return
            if step in self._begun:
                raise RuntimeError(f"this fit failed in {step}(), and cannot go on: prepare again.")
            self._begun.add(step)
            yield True
            self._done.add(step)

    def read(self) -> None:
        """Ask the ledger, then read the records, refusing what is outside of the public domain.

        A ledger that charges refusals is charged before.

        Raises
        ------
        BudgetExceededError
            If the ledger has no room. No record was read for that.
        ValueError, TypeError
            If a record is refused.
        """
        with self._once("read") as now:
            if not now:
                return
            if self._arguments is None:
                raise RuntimeError("this fit has run, or was planned without records.")
            self._check_target()
            ledger = self._estimator.accountant
            if ledger is not None and ledger.charge_refusals:
                self.charge()
            elif ledger is not None and "charge" not in self._done:
                ledger.check(self.guarantee)
            X, y, options = self._arguments
            # What is refused must not depend on settings of NumPy and scikit-learn.
            with suppressed_float_errors(), config_context(assume_finite=False):
                self._records = self._estimator._read(self._shape, X, y, **options)

    def charge(self) -> Receipt | None:
        """Give the warnings, and charge the ledger in one atomic step.

        Returns
        -------
        Receipt or None
            That of the charge; None without a ledger.

        Raises
        ------
        BudgetExceededError
            If the ledger has no room. Nothing is charged.
        """
        with self._once("charge") as now:
            if now:
                self._check_target()
                self.warn()
                ledger, name = self._estimator.accountant, type(self._estimator).__name__
                if ledger is not None:
                    self._receipt = ledger.charge(self.guarantee, estimator=name)
            return self._receipt

    def run(self, receipt: Receipt | None = None) -> Any:
        """Draw, and return what is released; nothing fails by the records that were read.

        Parameters
        ----------
        receipt : Receipt or None
            That of a charge for more than this fit, if its estimator has no ledger.

        Returns
        -------
        estimator
            A fitted copy of the one that prepared. Or what a private function returns.
        """
        optional(instance(Receipt))("receipt", receipt)
        self.read()
        receipt = self.charge() or receipt
        with self._once("run") as now:
            if not now:
                raise RuntimeError("a prepared fit runs once: prepare another one.")
            (X, y, _), records = self._arguments or (None, None, None), self._records
            self._arguments = self._records = None
        names = target_names(target_of(X, y))
        source = random_source(self._estimator.random_state)
        with suppressed_float_errors():
            drawn: list[dict[str, Any]] = []
            values = self.plan.run(records, source, drawn)
            return self._estimator._publish_values(
                self._shape, self.guarantee, values, names, receipt, drawn[0]
            )

    def warn(self) -> None:
        """Give the warnings: of public numbers, and of what weakens the guarantee."""
        for message in self.warnings:
            warnings.warn(message, PublicInputWarning, stacklevel=_outside())
        unknown = [name_of(kind) for kind in self.plan.unproved if not is_asserted(kind)]
        reasons = [phrase("no_proof", names=", ".join(unknown))] if unknown else []
        for reason in [*reasons, *self._estimator._leaks(self._shape)]:
            warnings.warn(reason, PrivacyLeakWarning, stacklevel=_outside())

    @property
    def records(self) -> Any:
        """The records, as measurements see them. Private: for audits."""
        self.read()
        return self._records

    def _check_target(self) -> None:
        """Refuse what is wrong with public facts of y and of entries."""
        X, y, options = self._arguments or (None, None, {})
        if not isinstance(X, Blocks) and "read" not in self._done:
            self._estimator._check_target(self._shape, y, options.get("entry"))

    def _about_people(self) -> PrivacyGuarantee:
        """Return the guarantee if each record that is used is of another person."""
        return self._estimator._plan_and_guarantee(self._shape, people=True)[1]

    def _of_others(self, arguments: Arguments | None) -> PreparedFit:
        """Return this fit for records of the same shape; for none, it is public."""
        public = self.plan, self.guarantee, self.warnings
        return PreparedFit(self._estimator, arguments, self._shape, *public)


def target_of(X: Any, y: Any) -> Any:
    """Return y, or one without records where a source of records holds it."""
    return X.target if isinstance(X, Blocks) else y


def looking_for(estimator: Any) -> AbstractContextManager[None]:
    """Return a context in which to read the records of a fit, after asking its ledger."""
    context: AbstractContextManager[None] = estimator._looking()
    return context


def _outside() -> int:
    """Return the level of the frame that called this package, for a warning."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("skdpsurv."):
        frame, level = frame.f_back, level + 1
    return level
