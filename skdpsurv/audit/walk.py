"""A walk over the tree of measurements, for two data sets and one course of releases."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from skdpsurv.base import PrivateEstimator
from skdpsurv.base.pipelines import fit_options, flat_steps, transformed
from skdpsurv.base.prepared import PreparedFit
from skdpsurv.dp.noise import RandomSource, random_source
from skdpsurv.dp.plan import (
    AdaptiveChoice,
    Context,
    Disjoint,
    Measurement,
    Node,
    Plan,
    PrivateSelection,
)
from skdpsurv.dp.thread_warnings import suppressed_warnings

#: Seed of the split into disjoint sets, which is the same for both data sets.
SPLIT_SEED = 0


class Visit(NamedTuple):
    """One node of a tree, earlier releases, and both sets of records (lists if Disjoint)."""

    node: Measurement | Disjoint
    context: Context
    one: Any
    other: Any


def visits(
    node: Node, context: Context, one: Any, other: Any, source: RandomSource, *, last: bool = True
) -> Generator[Visit, None, Mapping[str, Any]]:
    """Yield the nodes in order, after releases of the first data set."""
    if isinstance(node, Measurement):
        yield Visit(node, context, one, other)
        return {} if last else node.run(context, one, source)
    if isinstance(node, AdaptiveChoice):
        return (yield from visits(node.resolve(context), context, one, other, source, last=last))
    if isinstance(node, PrivateSelection):
        drawn = list(range(node.n_candidates))  # each that may be
        before = {**context, "_drawn": drawn}
        every = yield from visits(node.run_each, before, one, other, source, last=last)
        return {} if last else node.best(every, drawn)
    pairs = [(one, other)] * len(node.nodes)
    if isinstance(node, Disjoint):
        parts = [list(node.split(records, random_source(SPLIT_SEED))) for records in (one, other)]
        yield Visit(node, context, *parts)
        pairs = list(zip(*parts, strict=True))
    found: dict[str, Any] = {}
    for each, (mine, theirs) in zip(node.nodes, pairs, strict=True):
        ends = last and each is node.nodes[-1]
        own = yield from visits(each, {**context, **found}, mine, theirs, source, last=ends)
        found |= own
    return found


def prepared(model: Any, X: Any = None, y: Any = None, **named: Any) -> PreparedFit:
    """Return the fit of an estimator, or of the private step that ends a pipeline."""
    *steps, step = flat_steps(model)
    if not isinstance(step, PrivateEstimator):
        raise TypeError(
            "estimator must be a private estimator of this package, or derived from its bases, got "
            f"{type(step).__name__}: the plan of others is not known."
        )
    own = fit_options(model, named) if steps else named
    return step.prepare(transformed(steps, X, y), y, **own)


def planned(model: Any, arguments: Mapping[str, Any]) -> tuple[Plan, Any]:
    """Return the plan of a fit, and the records as it reads them."""
    with suppressed_warnings():
        fit = prepared(model, **arguments)
        return fit.plan, fit.records
