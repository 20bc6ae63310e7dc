"""A walk over the measurements of a plan, for neighbours: how far apart what is asked is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skdpsurv.mechanisms.sums import Integers
from skdpsurv.privacy import random_source
from skdpsurv.privacy.measurement import Known, Measurement, NoisySum
from skdpsurv.privacy.plan import Plan


def walked(plan: Plan, records: Any, seed: int = 0) -> Iterator[tuple[Measurement, Known]]:
    """Yield the measurements, which follow on each other, and what is known before each."""
    known, source = dict(plan.known), random_source(seed)
    for leaf in plan.leaves:
        yield leaf, dict(known)
        known |= leaf.run(known, records, source)


def apart(leaf: Measurement, known: Known, one: Any, other: Any) -> list[tuple[str, float, float]]:
    """Return what is asked of neighbours, how far it is apart, and how far it may be."""
    if not isinstance(leaf, NoisySum):
        return leaf.distances(known, one, other)
    query = leaf.query(known)
    if not isinstance(query, Integers):  # vectors of reals, by their distance in L2
        first, second = (np.asarray(leaf.ask(known, records)) for records in (one, other))
        off = getattr(query, "packed", np.ravel)(first - second)
        return [(f"{leaf.name}, in L2", float(np.linalg.norm(off)), float(query.sensitivity))]
    first, second = (numbers(leaf.ask(known, records)) for records in (one, other))
    off = (first - second).astype(float)
    return [
        (f"{leaf.name}, in L1", float(np.abs(off).sum()), float(query.sensitivity)),
        (f"{leaf.name}, in squared L2", float(off @ off), float(query.squared_distance)),
    ]


def numbers(exact: Any) -> Any:
    """Return exact integers, of any size, as one vector."""
    parts = exact if isinstance(exact, tuple) else (exact,)
    return np.concatenate([np.ravel(np.asarray(part, dtype=object)) for part in parts])
