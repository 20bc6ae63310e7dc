"""audit_epsilon: attack a guarantee with its own estimator, and bound epsilon from below."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from skdpsurv.audit.events import (
    Scores,
    best_events,
    epsilon_bound,
    fewest_trials,
    largest_bound,
    learned_scores,
)
from skdpsurv.audit.subject import Subject, audited, verdict
from skdpsurv.base.pipelines import last_step
from skdpsurv.data.blocks import first
from skdpsurv.dp.checks import fraction, positive_int, seed, verbosity
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import FloatArray

Statistic = Callable[[Any], float]
#: Released numbers of one fit, by name.
Numbers = Mapping[str, FloatArray]

#: Numbers in place of a failed fit's releases: an observer sees the failure alone.
FAILED: Numbers = {"failed": np.ones(1)}
#: Events that are counted on the held-out half; the error is split among them.
N_EVENTS = 3


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """A lower bound on the epsilon of a mechanism, found by experiment.

    Parameters
    ----------
    lower_bound : float
        Epsilon is at least this, with probability ``confidence``; 0 if nothing was found.
    claimed, delta : float
        Epsilon and delta as the estimator states them.
    confidence : float
        Probability, at least, with which ``lower_bound`` does not exceed the true epsilon.
    n_trials : int
        Fits of each of the two data sets.
    resolution : float
        The largest bound that so many fits can give: an epsilon beyond it goes unnoticed.
    statistic : str
        Best distinguisher: "linear", "quadratic", "forest", or "given".
    threshold : float
        Threshold of its scores.
    n_failed : tuple of (int, int)
        Fits of ``data`` and of ``neighbour`` that raised an error. Failures count as outcomes; if
        nearly all fits failed, the audit has seen nothing else.
    rates : tuple of (float, float)
        Shares of the held-out releases of ``data`` and of ``neighbour`` on the event's side of the
        threshold.
    scores : tuple of ndarray
        Scores of the held-out releases of ``data`` and of ``neighbour``; none if all were equal.

    Notes
    -----
    A bound above the claim refutes it. A bound below proves nothing: another pair of neighbours, or
    a cleverer attack, may find more.
    """

    lower_bound: float
    claimed: float
    delta: float
    confidence: float
    n_trials: int
    resolution: float
    statistic: str
    threshold: float = math.nan
    n_failed: tuple[int, int] = (0, 0)
    rates: tuple[float, float] = (math.nan, math.nan)
    scores: tuple[FloatArray, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        return self.lower_bound <= self.claimed

    def __repr__(self) -> str:
        delta = f", delta={self.delta:g}" if self.delta else ""
        failed = f"; {sum(self.n_failed):,} fits failed" if any(self.n_failed) else ""
        sure = self.confidence
        level = f"{sure:g}" if sure <= 0.999 else f"1 - {1.0 - sure:.2g}"
        found = (
            f"epsilon >= {self.lower_bound:.3g} at confidence {level}; "
            f"{self.n_trials:,} fits of each data set can show up to {self.resolution:.3g}; "
            f"statistic={self.statistic!r}{failed}"
        )
        return verdict(self, f"epsilon={self.claimed:g}{delta}", found)


def audit_epsilon(
    estimator: Any,
    data: tuple[Any, ...],
    neighbour: tuple[Any, ...],
    *,
    n_trials: int = 3000,
    statistic: Statistic | None = None,
    confidence: float = 0.99,
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int = 0,
) -> AuditResult:
    r"""Bound the epsilon of an estimator from below, by trying to tell two neighbours apart.

    Both data sets are fitted many times. One half of the fits trains distinguishers on the released
    numbers; the other half counts how often they succeed, which bounds epsilon from below. A bound
    above the claimed epsilon refutes the claim.

    **Nothing in here is private**: use made-up data. :func:`worst_neighbours` makes pairs that
    are hard on each estimator of this package.

    Parameters
    ----------
    estimator : estimator
        Not fitted. A private estimator, or a Pipeline that ends in one: anything with a number for
        its parameter ``epsilon``, which is the claim (and ``delta``, if there is one). Clones of it
        are fitted, without its accountant and with other seeds.
    data, neighbour : tuple
        Arguments of ``fit``, such as ``(X, y)``, ``(durations, events)``, ``(X, y, public)``, or
        ``(X, y, {"public": mask})``: the same but for one record.
    n_trials : int, default=3000
        Fits of each data set.
    statistic : callable or None, default=None
        Function of a fitted estimator that returns a number to tell the data sets apart by. None
        learns from all that is released (the values of ``release_``).
    confidence : float in (0, 1), default=0.99
        Of the bound: it exceeds the true epsilon with probability at most ``1 - confidence``. In
        an automatic test of many pairs take something like ``1 - 1e-6``.
    n_jobs : int or None, default=None
        Workers, as for :class:`joblib.Parallel`.
    random_state : None or int, default=None
        An int seeds each fit, so that the audit can be repeated. An estimator that passes may
        still draw worse noise without a seed.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    AuditResult
        Its ``lower_bound``, ``claimed`` and ``passed``.

    Raises
    ------
    TypeError, ValueError
        If the estimator makes no claim or is fitted, the data sets do not differ in exactly one
        record, or ``n_trials`` are so few that no outcome could refute the claim.

    See Also
    --------
    worst_neighbours : Pairs of data sets to audit with.
    density_ratio_audit : Exact, where the density of the release is known.

    Notes
    -----
    For an event E, neighbours D, D' and an (epsilon, delta)-private mechanism M,
    :math:`\epsilon \ge \log[(P(M(D) \in E) - \delta) / P(M(D') \in E)]`. Events are scores by
    logistic regressions and a forest on one side of a threshold; the 3 best on the first half are
    counted on the second, and the bounds of Clopper and Pearson on either probability share the
    error: each has ``(1 - confidence) / 6``. The confidence does not depend on how events were
    found, since the second half had no part in it.

    A failure counts as an outcome. Run times are not looked at.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated
       in the case of the binomial", Biometrika 26, 1934.
    .. [2] A. C. Gilbert and A. McMillan, "Property testing for differential privacy", Allerton
       2018, arXiv 1806.06427.
    .. [3] Z. Ding, Y. Wang, G. Wang, D. Zhang and D. Kifer, "Detecting violations of differential
       privacy", CCS 2018, arXiv 1805.10277.
    .. [4] M. Jagielski, J. Ullman and A. Oprea, "Auditing differentially private machine learning:
       how private is private SGD?", NeurIPS 2020, arXiv 2006.07709.
    .. [5] B. Bichsel, S. Steffen, I. Bogunovic and M. Vechev, "DP-Sniper: black-box discovery of
       differential privacy violations using classifiers", IEEE S&P 2021.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression
    >>> from skdpsurv.audit import audit_epsilon
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1])
    >>> X = [[1.0], [0.0]]
    >>> result = audit_epsilon(model, (X, [0, 0]), (X, [1, 0]), n_trials=200, random_state=0)
    >>> result.passed, bool(result.resolution > 2.0)
    (True, True)
    """
    error = 1.0 - fraction("confidence", confidence)
    if statistic is not None and not callable(statistic):
        raise TypeError("statistic must be None or a function of a fitted estimator.")
    seed("random_state", random_state)
    verbosity("verbose", verbose)
    positive_int("n_trials", n_trials)
    subject, arguments = audited(estimator, data, neighbour)
    n_events = N_EVENTS if statistic is None else 1
    half = n_trials // 2
    n_held_out = n_trials - half
    limits = (error / n_events, subject.delta)
    resolution = largest_bound(n_held_out, *limits)
    if resolution <= subject.epsilon:
        # Of n trials, (n + 1) // 2 are held out.
        needed = 2 * fewest_trials(subject.epsilon, *limits) - 1
        raise ValueError(
            f"n_trials must be at least {needed} to refute epsilon={subject.epsilon:g} at "
            f"confidence {confidence:g}, got {n_trials}: with fewer, every estimator would pass."
        )
    seeds: list[Any] = [None] * (2 * n_trials)
    if random_state is not None:
        seeds = np.random.SeedSequence(random_state).generate_state(len(seeds), np.uint64).tolist()
    found = run_trials(subject, arguments, seeds, statistic, n_jobs, verbose)
    one, other = released_table(found)[0]
    stated: dict[str, Any] = {
        "claimed": subject.epsilon,
        "delta": subject.delta,
        "confidence": float(confidence),
        "n_trials": int(n_trials),
        "resolution": resolution,
        "n_failed": tuple(sum("failed" in numbers for numbers in some) for some in found),
    }
    if not one.shape[1]:  # all releases were equal
        return AuditResult(lower_bound=0.0, statistic="none", **stated)
    learn, held_out = (one[:half], other[:half]), (one[half:], other[half:])
    if statistic is None:
        scores = learned_scores(learn, held_out)
    else:
        scores = [Scores("given", *((a[:, -1], b[:, -1]) for a, b in (learn, held_out)))]
    # Counted on the held-out half; the largest bound is kept.
    events = best_events(scores, n_events, *limits)
    bounds = [float(epsilon_bound(*event.hits, n_held_out, *limits)) for event in events]
    bound = max(bounds)
    best = events[bounds.index(bound)]
    shares = [hits / n_held_out for hits in best.hits]
    return AuditResult(
        lower_bound=max(bound, 0.0),
        statistic=best.scores.name,
        threshold=best.threshold,
        rates=(shares[best.likelier], shares[1 - best.likelier]),
        scores=best.scores.held_out,
        **stated,
    )


def released_numbers(fitted: Any) -> Numbers:
    """Return all that a fitted estimator has released, as numbers."""
    _, step = last_step(fitted)
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
        # The number of weights says more than the last index.
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
    """Fit each data set, given as arguments of ``fit``, with as many of the seeds."""
    # Faulty arguments raise here, in the caller's process.
    for arguments in data_sets:
        _fit(subject, arguments, seeds[0], statistic)
    n_trials = len(seeds) // len(data_sets)
    done = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_attempt)(subject, data_sets[number // n_trials], seed, statistic)
        for number, seed in enumerate(seeds)
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
    """Return released numbers in columns that mean the same in every row, and names of columns.

    Sizes of arrays are columns, too, and missing entries count as 0.
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
