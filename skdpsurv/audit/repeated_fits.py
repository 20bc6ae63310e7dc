"""Fit two neighbours many times, and lay out all that is released as one table of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from skdpsurv.audit.subject import Subject, private_step
from skdpsurv.data.blocks import first
from skdpsurv.dp import suppressed_warnings
from skdpsurv.dp.types import FloatArray

Statistic = Callable[[Any], float]
#: What one fit released, by name.
Numbers = Mapping[str, FloatArray]

#: In place of numbers, where a fit failed: that it did is seen, too.
FAILED: Numbers = {"failed": np.ones(1)}


def released_numbers(fitted: Any) -> Numbers:
    """Return all that a fitted estimator has released, as numbers."""
    step = private_step(fitted)
    values = getattr(getattr(step, "release_", None), "values", None)
    if not isinstance(values, Mapping):
        raise TypeError(
            "estimator must have a release_ once it is fitted, "
            f"{type(step).__name__} has none: pass a statistic of the fitted estimator."
        )
    numbers = {name: np.ravel(np.asarray(value, dtype=float)) for name, value in values.items()}
    if hasattr(step, "best_index_"):
        numbers["best_index_"] = np.array([float(step.best_index_)])
    if {"public_index", "weights"} <= set(numbers):
        index = numbers.pop("public_index").astype(np.intp)
        weights = np.zeros(index.max(initial=-1) + 1)
        weights[index] = numbers["weights"]
        # How many records have a weight is told apart from the last of their places.
        numbers |= {"weights": weights, "n_weights": np.array([float(index.size)])}
    return numbers


def run_trials(
    subject: Subject,
    data_sets: Sequence[Mapping[str, Any]],
    seeds: Sequence[int | None],
    statistic: Statistic | None,
    n_jobs: int | None,
    verbose: int,
) -> list[list[Numbers]]:
    """Fit each data set, given as arguments of ``fit``, with as many of the seeds.

    None draws from the operating system's entropy; a statistic stands in for all that is released.
    """
    # What is wrong with the arguments shows here, in the caller's process.
    for arguments in data_sets:
        _fit(subject, arguments, seeds[0], statistic)
    n_trials = len(seeds) // len(data_sets)
    done = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_attempt)(subject, data_sets[place // n_trials], seed, statistic)
        for place, seed in enumerate(seeds)
    )
    found = list(first(done, len(seeds), f"{len(data_sets)} x {n_trials} fits", verbose))
    return [found[start : start + n_trials] for start in range(0, len(seeds), n_trials)]


def _attempt(*what: Any) -> Numbers:
    try:
        return _fit(*what)
    except Exception:  # of whatever kind: an observer sees a failure
        return FAILED


def _fit(
    subject: Subject, arguments: Mapping[str, Any], seed: int | None, statistic: Statistic | None
) -> Numbers:
    # PrivacyLeakWarning for the seed, and whatever an inner estimator says of its data.
    with suppressed_warnings():
        fitted = subject.seeded(seed).fit(**arguments)
        if statistic is None:
            return released_numbers(fitted)
        value = float(statistic(fitted))
    if not np.isfinite(value):
        raise ValueError("statistic must return a finite number.")
    return {"statistic": np.array([value])}


def released_table(found: Sequence[Sequence[Numbers]]) -> tuple[list[FloatArray], tuple[str, ...]]:
    """Lay out what was released in columns that mean the same in every row.

    Notes
    -----
    Where arrays vary in size, the size is a column, and what is missing counts as 0.
    """
    rows = [numbers for some in found for numbers in some]
    columns, names = [], []
    for name in sorted(set().union(*rows)):
        given = [row.get(name) for row in rows]
        size = max(one.size for one in given if one is not None)
        block = np.zeros((len(rows), size + 1))
        for row, one in zip(block, given, strict=True):
            row[0] = -1.0 if one is None else one.size
            row[1 : int(row[0]) + 1] = [] if one is None else one
        columns.append(block)
        names += [f"size of {name}", *(f"{name}[{i}]" for i in range(size))]
    table = np.hstack([np.zeros((len(rows), 0)), *columns])
    varies = (table != table[:1]).any(axis=0)
    kept = tuple(name for name, one in zip(names, varies, strict=True) if one)
    return np.split(table[:, varies], np.cumsum([len(some) for some in found])[:-1]), kept
