"""Fit two neighbours many times, and lay out all that is released as one table of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from skdpsurv.audit.subject import Subject, private_step
from skdpsurv.privacy import silence
from skdpsurv.progress import first
from skdpsurv.types import FloatArray

__all__ = ["Statistic", "released_numbers", "released_table", "run_trials"]

Statistic = Callable[[Any], float]
#: What one fit released, by name.
Numbers = Mapping[str, FloatArray]

#: Fits that a worker makes at once: enough to make up for what it costs to send them there.
FITS_AT_ONCE = 25
#: In place of numbers, where a fit failed: that it did is seen, too.
FAILED: Numbers = {"failed": np.ones(1)}


def released_numbers(fitted: Any) -> Numbers:
    """Return all that a fitted estimator has released, as numbers.

    Parameters
    ----------
    fitted : estimator
        With a ``release_``; of a pipeline, the last step.

    Returns
    -------
    mapping of str to ndarray
        One-dimensional. The choice of a search, ``best_index_``, is among them.

    Raises
    ------
    TypeError
        If there is no release.
    """
    step = private_step(fitted)
    values = getattr(getattr(step, "release_", None), "values", None)
    if not isinstance(values, Mapping):
        raise TypeError(
            "estimator must have a release_ once it is fitted, "
            f"{type(step).__name__} has none: pass a statistic of the fitted estimator."
        )
    numbers = {
        name: np.ravel(np.asarray(value, dtype=np.float64)) for name, value in values.items()
    }
    if hasattr(step, "best_index_"):
        numbers["best_index_"] = np.array([float(step.best_index_)])
    return numbers


def run_trials(
    subject: Subject,
    data_sets: Sequence[Mapping[str, Any]],
    n_trials: int,
    seeds: NDArray[np.uint64] | None,
    statistic: Statistic | None,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[list[Numbers]]:
    """Fit each data set ``n_trials`` times.

    Parameters
    ----------
    subject : Subject
    data_sets : sequence of mapping
        Arguments of ``fit`` by name.
    n_trials : int
    seeds : ndarray of shape (n_data_sets, n_trials) or None
        None draws from the operating system's entropy.
    statistic : callable or None
        In place of all that is released.
    n_jobs, verbose : int

    Returns
    -------
    list of list of mapping
        What was released, for each data set.
    """
    # What is wrong with the arguments shows here, in the caller's process.
    for arguments in data_sets:
        _fit(subject, arguments, None if seeds is None else int(seeds[0, 0]), statistic)
    tasks = [
        (which, slice(start, min(start + FITS_AT_ONCE, n_trials)))
        for start in range(0, n_trials, FITS_AT_ONCE)
        for which in range(len(data_sets))
    ]
    done: Iterator[list[Numbers]] = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fits)(
            subject,
            data_sets[which],
            [None] * (part.stop - part.start) if seeds is None else seeds[which, part].tolist(),
            statistic,
        )
        for which, part in tasks
    )
    found: list[list[Numbers]] = [[] for _ in data_sets]
    watched = first(done, len(tasks), f"{len(data_sets)} x {n_trials} fits", verbose)
    for (which, _), some in zip(tasks, watched, strict=True):
        found[which] += some
    return found


def _fits(
    subject: Subject,
    arguments: Mapping[str, Any],
    seeds: Sequence[int | None],
    statistic: Statistic | None,
) -> list[Numbers]:
    found = []
    for seed in seeds:
        try:
            found.append(_fit(subject, arguments, seed, statistic))
        except Exception:  # of whatever kind: an observer sees a failure
            found.append(FAILED)
    return found


def _fit(
    subject: Subject,
    arguments: Mapping[str, Any],
    seed: int | None,
    statistic: Statistic | None,
) -> Numbers:
    # PrivacyLeakWarning for the seed, and whatever an inner estimator says of its data.
    with silence():
        fitted = subject.seeded(seed).fit(**arguments)
        if statistic is None:
            return released_numbers(fitted)
        value = float(statistic(fitted))
    if not np.isfinite(value):
        raise ValueError("statistic must return a finite number.")
    return {"statistic": np.array([value])}


def released_table(found: Sequence[Sequence[Numbers]]) -> tuple[list[FloatArray], tuple[str, ...]]:
    """Lay out what was released in columns that mean the same in every row.

    Parameters
    ----------
    found : sequence of sequence of mapping
        As returned by :func:`run_trials`.

    Returns
    -------
    tables : list of ndarray of shape (n_trials, n_columns)
        One for each data set. Columns that never vary are left out.
    names : tuple of str
        Of the columns.

    Notes
    -----
    Weights of some of the public records become weights of all, 0 for the rest. Where other
    arrays vary in size, the size is a column, and what is missing counts as 0.
    """
    rows = [_with_all_weights(numbers) for some in found for numbers in some]
    sizes: dict[str, int] = {}
    for numbers in rows:
        for name, values in numbers.items():
            sizes[name] = max(sizes.get(name, 0), values.size)
    columns, names = [], []
    for name, size in sorted(sizes.items()):
        block = np.zeros((len(rows), size + 1))
        for row, numbers in zip(block, rows, strict=True):
            row[0] = -1.0
            if name in numbers:
                row[0] = numbers[name].size
                row[1 : numbers[name].size + 1] = numbers[name]
        columns.append(block)
        names += [f"size of {name}", *(f"{name}[{i}]" for i in range(size))]
    table = np.hstack(columns) if columns else np.zeros((len(rows), 0))
    varies = np.ptp(table, axis=0) > 0 if table.size else np.zeros(0, dtype=bool)
    ends = np.cumsum([len(some) for some in found])[:-1]
    kept = tuple(name for name, one in zip(names, varies, strict=True) if one)
    return np.split(table[:, varies], ends), kept


def _with_all_weights(numbers: Numbers) -> Numbers:
    if "public_index" not in numbers or "weights" not in numbers:
        return numbers
    index = numbers["public_index"].astype(np.intp)
    weights = np.zeros(index.max(initial=-1) + 1)
    weights[index] = numbers["weights"]
    others = {name: one for name, one in numbers.items() if name != "public_index"}
    # How many records have a weight is told apart from the last of their places.
    return {**others, "weights": weights, "n_weights": np.array([float(index.size)])}
