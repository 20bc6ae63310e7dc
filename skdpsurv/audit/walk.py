"""A walk over the tree of measurements, for two data sets and one course of releases."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from skdpsurv.audit.subject import private_step
from skdpsurv.base import PrivateEstimator
from skdpsurv.dp.input_errors import suppressed_warnings
from skdpsurv.dp.noise import RandomSource, random_source
from skdpsurv.dp.plan import Disjoint, Known, Measurement, Node, Plan, RandomlyMany, Total

#: A private estimator, and a call that fits it.
Ready = tuple[PrivateEstimator, Callable[[], Any]]

#: Seed of the split into disjoint sets: the same for both data sets.
SPLIT_SEED = 0


class Visit(NamedTuple):
    """One node of a tree, earlier releases, and both sets of records (lists if Disjoint)."""

    node: Measurement | Disjoint
    known: Known
    one: Any
    other: Any


def visits(
    node: Node, known: Known, one: Any, other: Any, source: RandomSource, *, last: bool = True
) -> Generator[Visit, None, Mapping[str, Any]]:
    """Yield the nodes in order, after releases of the first data set."""
    if isinstance(node, Measurement):
        yield Visit(node, known, one, other)
        return {} if last else node.run(known, one, source)
    if isinstance(node, Total):
        return (yield from visits(node.chosen(known), known, one, other, source, last=last))
    if isinstance(node, RandomlyMany):
        drawn = list(range(node.n_candidates))  # each that may be
        before = {**known, "_drawn": drawn}
        every = yield from visits(node.run_each, before, one, other, source, last=last)
        return {} if last else node.best(every, drawn)
    pairs = [(one, other)] * len(node.nodes)
    if isinstance(node, Disjoint):
        dealt = [list(node.deal(records, random_source(SPLIT_SEED))) for records in (one, other)]
        yield Visit(node, known, *dealt)
        pairs = list(zip(*dealt, strict=True))
    found: dict[str, Any] = {}
    for each, (mine, theirs) in zip(node.nodes, pairs, strict=True):
        ends = last and each is node.nodes[-1]
        own = yield from visits(each, {**known, **found}, mine, theirs, source, last=ends)
        found |= own
    return found


class _Taken(BaseException):
    """Raised where a fit would run its plan."""


class _Stopped(Plan):
    """A plan that is not run."""

    def run(self, records: Any, source: RandomSource) -> dict[str, Any]:
        """Hand plan and records over to the caller of ``fit``."""
        raise _Taken(self, records)


def plan_and_records(step: PrivateEstimator, fit: Any) -> tuple[Plan, Any]:
    """Return the plan of a fit, and the records as it reads them; nothing is run."""
    kind: Any = type(step)
    planned = kind._plan

    def stopped(self: Any, shape: Any) -> Plan:
        plan = planned(self, shape)
        return _Stopped(**{each.name: getattr(plan, each.name) for each in fields(plan)})

    # A fit is of a copy of the estimator, which has a class of its own here.
    step.__class__ = type(kind.__name__, (kind,), {"_plan": stopped}, released=False)
    try:
        fit()
    except _Taken as taken:
        plan, records = taken.args
        return plan, records
    raise AssertionError("A fit must run its plan.")


def ready(model: Any, *data: Any, **named: Any) -> Ready:
    """Return the private step of an estimator, and a call that fits it."""
    step = private_step(model)
    if not isinstance(step, PrivateEstimator):
        raise TypeError(
            "estimator must be a private estimator of this package, or derived from its bases, got "
            f"{type(step).__name__}: the plan of others is not known."
        )
    return step, functools.partial(model.fit, *data, **named)


def planned(model: Any, arguments: Mapping[str, Any]) -> tuple[Plan, Any]:
    """Return the plan of a fit and the records as it reads them; the model cannot be used again."""
    with suppressed_warnings():
        return plan_and_records(*ready(model, **arguments))
