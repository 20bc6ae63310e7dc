"""replay_audit: fit to one data set, and again to a neighbour with all noisy answers frozen."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import joblib

from skdpsurv.audit.measurements import (
    MeasuredDistance,
    MeasurementResult,
    both_fits,
    price_of,
    seed_streams,
    unpromised,
)
from skdpsurv.audit.tape import Stage, Tape
from skdpsurv.base.prepared import PreparedFit
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.noise import restored_streams

#: What no replay can test.
NOT_AUDITED = (
    "that noise is drawn from its law",
    "whether a theorem is true",
    "other answers than the frozen ones",
)


@dataclass(frozen=True, repr=False)
class ReplayResult(MeasurementResult):
    """Distances of what the draws of two fits hide, and how the fits diverge; not private.

    Parameters
    ----------
    distances, epsilon, delta, not_audited
        As those of a measurement audit.
    diverged : tuple of str
        Differences that no record may make, in words.
    """

    not_audited: tuple[str, ...] = NOT_AUDITED
    diverged: tuple[str, ...] = ()

    @property
    def refuted(self) -> tuple[str, ...]:
        """Differences that no record may make, and distances beyond their bounds, in words."""
        return self.diverged + super().refuted


def replay_audit(
    estimator: Any, data: tuple[Any, ...], neighbour: tuple[Any, ...], *, random_state: int = 0
) -> ReplayResult:
    r"""Fit to a neighbour with the noisy answers of a fit to ``data``, and compare all else.

    Parameters
    ----------
    estimator : estimator or functools.partial
        As for :func:`measurement_audit`.
    data, neighbour : tuple
        Arguments of ``fit``: the same but for one record. As for :func:`audit_epsilon`.
    random_state : int, default=0
        Seed of the frozen answers.

    Returns
    -------
    ReplayResult
        Its ``table`` has a row for each sort of draw whose sensitivity is known, and one for all
        draws of a measurement together.

    Raises
    ------
    TypeError
        If the estimator has no plan.
    ValueError
        If the data sets do not differ in exactly one record.

    See Also
    --------
    measurement_audit : Exact answers by themselves, and noise by the plan.
    audit_epsilon : For any estimator, by experiment; sees samplers, too.

    Notes
    -----
    The first fit draws noise, and each noisy answer is recorded. The second one gets these answers,
    so that whatever follows from them is the same. The audit is refuted if the second fit

    * runs other measurements, or draws from other laws, scales or shapes, or another number of
      times; warns, fails or stops otherwise;
    * has another release or other attributes;
    * hides inputs farther from the first ones than the noise hides at the measurement's price.

    Inputs are what noise was really added to: integers by their distance in L1 or L2, vectors and
    noisy gradients in L2, symmetric matrices by traces, choices by scores, ladders by levels. Noise
    in an objective is frozen by its minimum f, where gradients may differ by S, and log densities
    by the price (:func:`density_ratio_audit`). A Markov chain is frozen as a whole, and its
    energies are compared as by :func:`measurement_audit`.

    If a measurement draws once, ``allowed`` is the sensitivity that noise of this scale hides.
    Several draws share its price, and are compared with that: ``found`` is an epsilon, or a mu.

    References
    ----------
    .. [1] T. Cebere, D. Erb, D. Desfontaines, A. Bellet and J. Fitzsimons, "Privacy in theory, bugs
       in practice: grey-box auditing of differential privacy libraries", arXiv 2602.17454, 2026.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter
    >>> from skdpsurv.audit import replay_audit
    >>> model = DPKaplanMeierFitter(max_time=10.0)
    >>> result = replay_audit(model, ([1.0, 4.0], [1, 1]), ([9.0, 4.0], [1, 1]))
    >>> result.passed, result.diverged
    (True, ())
    >>> result.table[["what", "found", "allowed"]]
                         what  found  allowed
    0  discrete laplace, in L1    2.0      2.0
    1          all that it drew    1.0      1.0
    """
    first, second = both_fits(estimator, data, neighbour, random_state, n_jobs=1)
    tape = Tape()
    again = Tape(tape)
    fit, kept = _run(first, tape)
    nothing, diverged = unpromised(fit), []
    try:
        _, found = _run(second, again)
        names = {name for name in {*kept, *found} if kept.get(name) != found.get(name)}
        diverged = [f"the fit: {name} is another" for name in sorted(names)]
    except Exception as error:
        diverged = [f"the fit: raised {type(error).__name__}: {error}"]
    diverged = [*_other_parts(tape, again), *diverged]
    pairs = list(zip(tape.parts, again.parts, strict=False))
    with suppressed_float_errors():
        distances = [each for pair in pairs for each in _distances(*pair)]
    frozen = (f"draws of {part.name}, frozen as a whole" for part in tape.parts if part.whole)
    unseen = (*NOT_AUDITED, *dict.fromkeys((*frozen, *nothing)))
    plan = fit.plan
    return ReplayResult(tuple(distances), plan.epsilon, plan.delta, unseen, tuple(diverged))


def _run(ready: functools.partial[PreparedFit], tape: Tape) -> tuple[PreparedFit, dict[str, str]]:
    """Run a fit on a tape; return it, and hashes of what it leaves by name."""
    with restored_streams(), suppressed_float_errors(), tape.running():
        seed_streams()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = ready()
            found = fit.run()
    release = getattr(found, "release_", None)
    left = {f"release_.{name}": value for name, value in vars(release or found).items()}
    left |= {name: value for name, value in vars(found).items() if name != "release_"}
    left["what it warns of"] = [str(one.message) for one in caught]
    return fit, {name: joblib.hash(value) for name, value in left.items()}


def _other_parts(tape: Tape, again: Tape) -> list[str]:
    """Return how measurements and their draws are other ones, or none."""
    names = [[part.name for part in each.parts] for each in (tape, again)]
    found = [] if names[0] == names[1] else ["the fit: runs other measurements"]
    for one, other in zip(tape.parts, again.parts, strict=False):
        found += [
            f"{one.name}: draw {place} is {new or 'none'}, and was {old or 'none'}"
            for place, (old, new) in enumerate(zip_longest(one.draws, other.draws), 1)
            if old is None or new is None or str(old) != str(new)
        ]
        if any(draw.uses != 1 for part in (one, other) for draw in part.draws):
            found.append(f"{one.name}: noise is drawn, and not added once")
        if one.node is None and one.draws:
            found.append("the fit: draws outside of its measurements")
        has_price = one.node is not None and price_of(one.node) > 0.0  # and is no public fact
        if has_price and not one.draws and one.whole is None and not one.holds_fits:
            found.append(f"{one.name}: draws nothing")
    return found


def _distances(one: Stage, other: Stage) -> list[MeasuredDistance]:
    """Return the distances of what the draws of a measurement hide, and what hides them all."""
    if one.node is None or one.name != other.name:
        return []
    price, name = price_of(one.node), one.name
    if one.whole is not None:
        far = one.node.distances(one.context, one.records, other.records)
        return [MeasuredDistance(name, price, *each) for each in far]
    rows: dict[str, MeasuredDistance] = {}
    costs = list[float]()
    for mine, theirs in zip(one.draws, other.draws, strict=False):
        if str(mine) != str(theirs) or not (mine.uses and theirs.uses):
            continue
        for gap in mine.gaps(mine, theirs):
            costs.append(gap.found / gap.unit)
            if gap.declared is None and len(one.draws) > 1:
                continue  # its share of the price is not stated
            allowed = gap.unit * price if gap.declared is None else gap.declared
            row = MeasuredDistance(name, price, f"{mine.law}, {gap.what}", gap.found, allowed)
            rows[row.what] = max(rows.get(row.what, row), row, key=lambda each: each.share)
    if not costs:
        return []
    squares = any("gaussian" in draw.law.lower() for draw in one.draws)
    total = math.hypot(*costs) if squares else math.fsum(costs)
    return [*rows.values(), MeasuredDistance(name, price, "all that it drew", total, price)]
