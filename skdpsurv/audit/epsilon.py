"""audit_epsilon: attack a guarantee with its own estimator, and bound epsilon from below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpsurv.audit.events import (
    Scores,
    best_events,
    epsilon_bound,
    fewest_trials,
    largest_bound,
    learned_scores,
)
from skdpsurv.audit.repeated_fits import Statistic, released_table, run_trials
from skdpsurv.audit.subject import audited, told
from skdpsurv.dp.checks import fraction, positive_int, seed, verbosity
from skdpsurv.dp.types import FloatArray

#: Events that are counted on the held-out half; the error is split among them.
N_EVENTS = 3


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult:
    """A lower bound on the epsilon of a mechanism, found by experiment.

    Parameters
    ----------
    lower_bound : float
        Epsilon is at least this, with probability ``confidence``; 0 if nothing was found.
    claimed : float
        Epsilon as the estimator states it.
    delta : float
        As the estimator states it.
    confidence : float
        Probability, at least, with which ``lower_bound`` does not exceed the true epsilon.
    n_trials : int
        Fits of each of the two data sets.
    resolution : float
        The largest bound that so many fits can give: an epsilon beyond it goes unnoticed.
    statistic : str
        What told the data sets apart best: "linear", "quadratic", "forest", or "given".
    threshold : float
        Of the scores by that statistic.
    n_failed : tuple of (int, int)
        Fits of ``data`` and of ``neighbour`` that raised an error. That they did is looked at, too;
        if nearly all did, the audit has seen nothing else.
    rates : tuple of (float, float)
        Shares of the held-out releases of ``data`` and of ``neighbour`` on the event's side of the
        threshold.
    scores : tuple of ndarray
        Scores of the held-out releases of ``data`` and of ``neighbour``; none if all were equal.

    Notes
    -----
    A bound below the claim proves nothing: another pair of neighbours, or a cleverer attack, may
    find more. A bound above it refutes the claim.
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
        found = (
            f"epsilon >= {self.lower_bound:.3g} at confidence "
            f"{f'{sure:g}' if sure <= 0.999 else f'1 - {1.0 - sure:.2g}'}; "
            f"{self.n_trials:,} fits of each data set can show up to {self.resolution:.3g}; "
            f"statistic={self.statistic!r}{failed}"
        )
        return told(self, f"epsilon={self.claimed:g}{delta}", found)


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
        Its ``lower_bound``, ``claimed`` and ``passed``.

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
    error = 1.0 - fraction("confidence", confidence)
    if statistic is not None and not callable(statistic):
        raise TypeError("statistic must be None or a function of a fitted estimator.")
    seed("random_state", random_state)
    verbosity("verbose", verbose)
    positive_int("n_trials", n_trials)
    subject, arguments = audited(estimator, data, neighbour)
    n_events = N_EVENTS if statistic is None else 1
    half, n_held_out = n_trials // 2, n_trials - n_trials // 2
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
    # Counted on the held-out half; the one that says most is kept.
    bounds = [
        (float(epsilon_bound(*event.hits, n_held_out, *limits)), event)
        for event in best_events(scores, n_events, *limits)
    ]
    bound, best = max(bounds, key=lambda pair: pair[0])
    shares = [hits / n_held_out for hits in best.hits]
    return AuditResult(
        lower_bound=max(bound, 0.0),
        statistic=best.scores.name,
        threshold=best.threshold,
        rates=(shares[best.likelier], shares[1 - best.likelier]),
        scores=best.scores.held_out,
        **stated,
    )
