r"""What a pooled release promises: it is computed from releases alone.

A person whose records are in one of k data sets is protected by the guarantee of that one, as the
others do not depend on them: parallel composition,
:math:`\epsilon = \max_i \epsilon_i`. Who may be in several has the sum, by basic composition. Both
hold for :math:`\delta` likewise (docs/proofs/pooling).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from skdpsurv.dp import PrivacyGuarantee, weakest_status
from skdpsurv.dp.budget import exact_sum, float_above
from skdpsurv.dp.references import reference
from skdpsurv.pooling.members import in_one_ledger, leaves, n_records
from skdpsurv.priors.prior import earlier
from skdpsurv.release import Release
from skdpsurv.survival.weibull.plan import LEFT_CENSORED

DISJOINT = "no person is in two of the pooled data sets"
#: The same of parts of a pool, which follow.
APART = "no person is in the data sets of two of these releases (by SHA-256)"


def joint_guarantee(
    members: Sequence[Release], mechanism: str, effects: str, disjoint: bool
) -> PrivacyGuarantee:
    """Return the guarantee of what follows from several releases."""
    made = [member.guarantee for member in members]
    if len({one.neighbours for one in made}) > 1:
        raise ValueError(
            "releases must have guarantees about the same neighbours: all with person=, or none."
        )
    numbers = [one.epsilon for one in made], [one.delta for one in made]
    epsilon, delta = (max(each) if disjoint else float_above(exact_sum(each)) for each in numbers)
    if not delta < 1.0:
        raise ValueError("releases must have deltas whose sum is below 1.")
    entries = sorted((e for member in members for e in leaves(member)), key=lambda e: e["sha256"])
    unproved = _unproved(entries)
    how = mechanism.format(len(entries))
    left_censored = [member.made_by.public_inputs.get(LEFT_CENSORED) is True for member in members]
    # Promises to people whom members started from hold on.
    priors: list[Any] = []
    for member in members:
        priors += [one for one in earlier(member) if one not in priors]
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=delta,
        neighbours=made[0].neighbours,
        mechanism=f"{how}, {unproved}" if unproved else how,
        status=weakest_status(one.status for one in made),
        public_inputs={
            "n_records": sum(map(n_records, members)),
            "pooled": entries,
            "effects": effects,
            **({LEFT_CENSORED: True} if all(left_censored) else {}),
            **({"prior": priors} if priors else {}),
        },
        assumptions=tuple(dict.fromkeys(_assumptions(members, disjoint))),
        source=reference("docs/proofs/pooling"),
        not_covered=tuple(dict.fromkeys(part for one in made for part in one.not_covered)),
    )


def doubts_of(members: Sequence[Release], disjoint: bool) -> list[str]:
    """Return why what a pool promises may be less than its epsilon says, or nothing."""
    found = []
    entries = [entry for member in members for entry in leaves(member)]
    if unproved := _unproved(entries):
        found.append(
            f"{len(entries)} releases are pooled, {unproved}: so the pooled release promises "
            "nothing that is proved to anybody. Leave those out, or fit them anew."
        )
    if disjoint and (together := in_one_ledger(members)):
        found.append(
            f"{together} of the releases were charged to a ledger that another was charged to, so "
            "they may be of the same people: what these were promised together is then not the "
            "largest epsilon, and their records count more than once. Pass disjoint=False unless "
            "nobody is in two of the data sets."
        )
    return found


def _unproved(entries: Sequence[Mapping[str, Any]]) -> str:
    """Say how many have which status, of those that have no proof; "" if all have one."""
    statuses = Counter(str(entry.get("status", "none")) for entry in entries)
    del statuses["proved"]
    said = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
    if not said:
        return ""
    return f"{statuses.total()} of them without a proved guarantee ({said})"


def _assumptions(members: Sequence[Release], disjoint: bool) -> list[str]:
    """Return what members rest on, and that people are apart where their epsilons do not add up."""
    throughout = disjoint and all(
        DISJOINT in member.guarantee.assumptions
        for member in members
        if "pooled" in member.made_by.public_inputs
    )
    found = []
    for member in members:
        for assumption in member.guarantee.assumptions:
            if assumption == DISJOINT and not throughout:
                assumption = _apart([[entry] for entry in leaves(member)])
            found.append(assumption)
    if disjoint:
        found.append(DISJOINT if throughout else _apart(list(map(leaves, members))))
    return found


def _apart(parts: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Say that nobody is in two parts of a pool, by the digests that it lists."""
    named = sorted(" with ".join(sorted(e["sha256"][:8] for e in part)) for part in parts)
    return f"{APART}: {'; '.join(named)}"
