"""Fits inside of a study, which is charged for them: they are prepared without a ledger."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pandas as pd

from skdpsurv.base.prepared import PreparedFit
from skdpsurv.dp.ledger import Receipt
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.study.study_plan import StudyPlan


def prepared(plan: StudyPlan, name: str, frame: pd.DataFrame, needed: Any = None) -> PreparedFit:
    """Return the fit of an analysis, which has read its records.

    Parameters
    ----------
    plan : StudyPlan
    name : str
    frame : pandas.DataFrame
        Rows of its people. Private.
    needed : Release or None
        Release that an evaluation, or a fit whose columns are scaled, needs. Before that, None: the
        records are read, those of an evaluation as those of its model, and the fit is not to be
        run.

    Raises
    ------
    ValueError, TypeError
        If it refuses a record, or what it needs is not what was planned.
    RuntimeError
        If it would promise something else than was planned.
    """
    part = plan.parts[name]
    of = part.analysis.of if needed is None else None
    read = part if of is None else plan.parts[of]
    estimator = read.analysis.estimator(plan.protocol, read.spend, **read.earlier(needed))
    fit = estimator.prepare(**read.analysis.arguments(plan.protocol, frame))
    if of is None and fit.guarantee.to_dict() != part.guarantee.to_dict():
        raise RuntimeError(f"{name} promises something else than was planned.")
    with nullcontext() if of is None and needed is None else suppressed_warnings():
        fit.read()
        fit.warn()
    return fit


def run(fit: PreparedFit, receipt: Receipt | None) -> Any:
    """Run a prepared fit under a charge; return its release, or its evaluation."""
    with suppressed_warnings():  # they were given before
        found = fit.run(receipt)
    return getattr(found, "release_", found)
