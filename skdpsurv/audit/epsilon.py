"""audit_epsilon: attack a guarantee with its own estimator, and bound epsilon from below."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpsurv.audit.bounds import epsilon_bound, fewest_trials, largest_bound
from skdpsurv.audit.distinguishers import Event, Scores, best_events, learned_scores
from skdpsurv.audit.repeated_fits import Statistic, released_table, run_trials
from skdpsurv.audit.result import AuditResult
from skdpsurv.audit.subject import Subject, check_neighbours
from skdpsurv.checks import fraction, positive_int, seed, verbosity

__all__ = ["audit_epsilon"]


#: Events that are counted on the held-out half; the error is split among them.
N_EVENTS = 3


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

    Both data sets are fitted many times. On one half of the fits it is learned what in the
    released numbers tells the data sets apart; on the other half it is counted how often that
    succeeds, which bounds epsilon from below. A bound above the claimed epsilon refutes the claim.

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
        Function of a fitted estimator that returns a number, by whose size the data sets are told
        apart. None learns that from all that is released (the values of ``release_``).
    confidence : float in (0, 1), default=0.99
        Of the bound: it exceeds the true epsilon with probability at most ``1 - confidence``. In
        an automatic test of many pairs take something like ``1 - 1e-6``.
    n_jobs : int or None, default=None
        Workers, as for :class:`joblib.Parallel`.
    random_state : None or int, default=None
        An int gives each fit a seed that follows from it, so that the audit can be repeated; an
        estimator that passes may still draw worse noise without a seed, which is what it is for.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    AuditResult
        Its ``lower_bound``, ``claimed``, ``passed``, and ``plot``.

    Raises
    ------
    TypeError, ValueError
        If the estimator makes no claim or is fitted, the data sets do not differ in exactly one
        record, or ``n_trials`` are so few that no outcome could refute the claim.

    See Also
    --------
    worst_neighbours : Pairs of data sets to audit with.
    density_ratio_audit : Exact, where the law of the output is known.

    Notes
    -----
    For an event E, neighbours D, D' and an (epsilon, delta)-private mechanism M,
    :math:`\epsilon \ge \log[(P(M(D) \in E) - \delta) / P(M(D') \in E)]`. Events are scores by
    logistic regressions and a forest on one side of a threshold; the 3 best on the first half are
    counted on the second, and the bounds of Clopper and Pearson on either probability share the
    error: each has ``(1 - confidence) / 6``. Which events these are, and how they were found, does
    not matter to the confidence, since the second half had no part in it.

    A fit that fails has released something, too: that it failed. Run times are not looked at.

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
    subject = Subject.of(estimator)
    error = 1.0 - fraction("confidence", confidence)
    if statistic is not None and not callable(statistic):
        raise TypeError("statistic must be None or a function of a fitted estimator.")
    seed("random_state", random_state)
    verbosity("verbose", verbose)
    positive_int("n_trials", n_trials)
    arguments = [subject.fit_arguments(data, "data"), subject.fit_arguments(neighbour, "neighbour")]
    check_neighbours(*arguments)
    n_events = N_EVENTS if statistic is None else 1
    resolution = _resolution(n_trials, error / n_events, subject, confidence)

    seeds: NDArray[np.uint64] | None = None
    if random_state is not None:
        words = np.random.SeedSequence(random_state).generate_state(2 * n_trials, np.uint64)
        seeds = words.astype(np.uint64).reshape(2, n_trials)
    found = run_trials(
        subject, arguments, n_trials, seeds, statistic, n_jobs=n_jobs, verbose=verbose
    )
    tables, _ = released_table(found)
    half = n_trials // 2
    learn, held_out = ((tables[0][part], tables[1][part]) for part in _halves(half, n_trials))
    if statistic is None:
        scores = learned_scores(learn, held_out)
    elif tables[0].shape[1]:
        own, others = ((one[:, -1], other[:, -1]) for one, other in (learn, held_out))
        scores = [Scores("given", own, others)]
    else:
        scores = []
    events = best_events(scores, n_events, error / n_events, subject.delta)
    result = _counted(scores, events, error / n_events, subject, n_trials, confidence, resolution)
    first, second = (sum("failed" in numbers for numbers in some) for some in found)
    return replace(result, n_failed=(first, second))


def _halves(half: int, n_trials: int) -> tuple[slice, slice]:
    return slice(0, half), slice(half, n_trials)


def _counted(
    scores: list[Scores],
    events: list[Event],
    error: float,
    subject: Subject,
    n_trials: int,
    confidence: float,
    resolution: float,
) -> AuditResult:
    """Count the events on the held-out half, and keep the one that says most."""
    n = n_trials - n_trials // 2
    best, bound = None, -math.inf
    for event in events:
        hits = event.hits(scores[event.scores].held_out)
        found = float(epsilon_bound(*hits, n, error, subject.delta))
        if best is None or found > bound:
            best, bound = event, found
    stated: dict[str, Any] = {
        "lower_bound": max(bound, 0.0),
        "claimed": subject.epsilon,
        "delta": subject.delta,
        "confidence": float(confidence),
        "n_trials": int(n_trials),
        "resolution": resolution,
    }
    if best is None:  # all releases were equal
        return AuditResult(**stated, statistic="none")
    one = scores[best.scores]
    hits = best.hits(one.held_out)
    rates = (hits[best.likelier] / n, hits[1 - best.likelier] / n)
    return AuditResult(
        **stated, statistic=one.name, threshold=best.threshold, rates=rates, scores=one.held_out
    )


def _resolution(n_trials: int, error: float, subject: Subject, confidence: float) -> float:
    """Return the largest bound that can be found, which must be above the claim."""
    resolution = largest_bound(n_trials - n_trials // 2, error, subject.delta)
    if resolution <= subject.epsilon:
        # Of n trials, (n + 1) // 2 are held out.
        needed = 2 * fewest_trials(subject.epsilon, error, subject.delta) - 1
        raise ValueError(
            f"n_trials must be at least {needed} to refute epsilon={subject.epsilon:g} at "
            f"confidence {confidence:g}, got {n_trials}: with fewer, every estimator would pass."
        )
    return resolution
