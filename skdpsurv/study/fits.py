"""Fits inside of a study: each is checked before the study is charged, and run under its charge.

A fit asks its ledger before it reads records, and charges it after that, before its first draw. In
a study an object takes the place of the ledger that lets a fit come as far as its charge, and then
stops it, or notes that it begins. So estimators keep their own order, and need nothing for studies.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import pandas as pd

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.input_errors import suppressed_warnings
from skdpsurv.dp.ledger import Receipt
from skdpsurv.study.analyses import Analysis
from skdpsurv.study.plan import Part, StudyPlan
from skdpsurv.study.protocol import Protocol


class _InsideStudy(PrivacyAccountant):
    """Stands for the ledger of a fit whose study is charged: ``begin`` takes its guarantee."""

    def __init__(self, begin: Callable[[PrivacyGuarantee], Receipt | None]) -> None:
        super().__init__()
        self._begin = begin

    def check(self, guarantee: PrivacyGuarantee, dataset: str | None = None) -> None:
        pass

    def charge(  # type: ignore[override]
        self, guarantee: PrivacyGuarantee, dataset: str | None = None, *, estimator: str = ""
    ) -> Receipt | None:
        return self._begin(guarantee)


class _ReadError(Exception):
    """Stops a fit that has read its records and refused none."""


def check_records(plan: StudyPlan, name: str, frame: pd.DataFrame) -> None:
    """Read the records of an analysis as its fit will, and run nothing.

    Records of an evaluation are read as those of its model, which is not fitted yet.

    Raises
    ------
    ValueError, TypeError
        If the fit would refuse a record.
    RuntimeError
        If it would promise something else than was planned.
    """
    part, protocol = plan.parts[name], plan.protocol
    promised: list[PrivacyGuarantee] = []

    def stop(guarantee: PrivacyGuarantee) -> None:
        promised.append(guarantee)
        raise _ReadError

    of = part.analysis.of
    read = part if of is None else plan.parts[of]
    estimator = read.analysis.estimator(protocol, read.spend)
    with suppress(_ReadError), nullcontext() if of is None else suppressed_warnings():
        _fit(protocol, read.analysis, estimator, frame, stop)
    if of is None:
        _require_promised(part, promised[0])


def _require_promised(part: Part, guarantee: PrivacyGuarantee) -> None:
    """Raise RuntimeError if a fit promises something else than its plan."""
    if guarantee.to_dict() != part.guarantee.to_dict():
        raise RuntimeError(f"{part.analysis.name} promises something else than was planned.")


def run(
    plan: StudyPlan,
    name: str,
    frame: pd.DataFrame,
    begin: Callable[[], Receipt | None],
    model: Any = None,
) -> Any:
    """Return what an analysis releases: a release, or an evaluation.

    Parameters
    ----------
    plan : StudyPlan
    name : str
    frame : pandas.DataFrame
        Rows of its people. Private.
    begin : callable
        Called once, before the first draw; returns the receipt of the study.
    model : estimator or None
        The model, as it was released, of an evaluation.
    """
    part, protocol = plan.parts[name], plan.protocol

    def noted(guarantee: PrivacyGuarantee) -> Receipt | None:
        _require_promised(part, guarantee)
        return begin()

    estimator = part.analysis.estimator(protocol, part.spend, model)
    with suppressed_warnings():  # the check of the records gave them
        found = _fit(protocol, part.analysis, estimator, frame, noted)
    return found if part.analysis.of is not None else found.release_


def _fit(
    protocol: Protocol,
    analysis: Analysis,
    estimator: Any,
    frame: pd.DataFrame,
    begin: Callable[[PrivacyGuarantee], Receipt | None],
) -> Any:
    estimator.accountant = _InsideStudy(begin)
    fit = getattr(estimator, "fit", estimator._fit)  # an evaluation has the latter alone
    return fit(**analysis.arguments(protocol, frame))
