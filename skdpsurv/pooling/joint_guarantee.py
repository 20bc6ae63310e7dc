r"""The guarantee of a pooled release, which is computed from releases alone.

A person whose records are in one of k data sets is protected by the guarantee of that one, as the
others do not depend on them: parallel composition,
:math:`\epsilon = \max_i \epsilon_i`. A person in several has the sum, by basic composition. Both
hold for :math:`\delta` likewise (docs/proofs/pooling).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from skdpsurv.dp.budget import exact_sum, float_above
from skdpsurv.dp.guarantee import PrivacyGuarantee, weakest_status
from skdpsurv.dp.references import phrase, reference
from skdpsurv.pooling.studies import in_one_ledger, leaves, n_records
from skdpsurv.priors.prior import earlier
from skdpsurv.release import Release
from skdpsurv.survival.weibull.weibull_plan import LEFT_CENSORED

DISJOINT = "no person is in two of the pooled data sets"
#: Assumption about parts of a pool; their digests follow it.
APART = "no person is in the data sets of two of these releases (by SHA-256)"


def joint_guarantee(
    studies: Sequence[Release], mechanism: str, effects: str, disjoint: bool
) -> PrivacyGuarantee:
    """Return the guarantee of a pooled release."""
    guarantees = [study.guarantee for study in studies]
    if len({guarantee.neighbours for guarantee in guarantees}) > 1:
        raise ValueError(
            "releases must have guarantees about the same neighbours: all with person=, or none."
        )
    losses = [g.epsilon for g in guarantees], [g.delta for g in guarantees]
    epsilon, delta = (max(each) if disjoint else float_above(exact_sum(each)) for each in losses)
    if not delta < 1.0:
        raise ValueError("releases must have deltas whose sum is below 1.")
    entries = sorted((e for study in studies for e in leaves(study)), key=lambda e: e["sha256"])
    unproved = _unproved(entries)
    mechanism = mechanism.format(len(entries))
    left_censored = [study.made_by.public_inputs.get(LEFT_CENSORED) is True for study in studies]
    # Guarantees of the studies' priors continue to hold.
    priors: list[Any] = []
    for study in studies:
        priors += [prior for prior in earlier(study) if prior not in priors]
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=delta,
        neighbours=guarantees[0].neighbours,
        mechanism=f"{mechanism}, {unproved}" if unproved else mechanism,
        status=weakest_status(guarantee.status for guarantee in guarantees),
        public_inputs={
            "n_records": sum(map(n_records, studies)),
            "pooled": entries,
            "effects": effects,
            **({LEFT_CENSORED: True} if all(left_censored) else {}),
            **({"prior": priors} if priors else {}),
        },
        assumptions=tuple(dict.fromkeys(_assumptions(studies, disjoint))),
        source=reference("docs/proofs/pooling"),
        not_covered=tuple(dict.fromkeys(text for g in guarantees for text in g.not_covered)),
    )


def privacy_warnings(studies: Sequence[Release], disjoint: bool) -> list[str]:
    """Return reasons why a pool may protect less than its epsilon says."""
    found = []
    entries = [entry for study in studies for entry in leaves(study)]
    if unproved := _unproved(entries):
        found.append(phrase("unproved_pool", number=len(entries), unproved=unproved))
    if disjoint and (shared := in_one_ledger(studies)):
        found.append(phrase("pool_in_one_ledger", shared=shared))
    return found


def _unproved(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the numbers of unproved releases by status, in words; "" if all are proved."""
    statuses = Counter(str(entry.get("status", "none")) for entry in entries)
    del statuses["proved"]
    if not statuses:
        return ""
    listed = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
    return f"{statuses.total()} of them without a proved guarantee ({listed})"


def _assumptions(studies: Sequence[Release], disjoint: bool) -> list[str]:
    """Return the studies' assumptions, and that people are apart if epsilons do not add up."""
    throughout = disjoint and all(
        DISJOINT in study.guarantee.assumptions
        for study in studies
        if "pooled" in study.made_by.public_inputs
    )
    found = []
    for study in studies:
        for assumption in study.guarantee.assumptions:
            if assumption == DISJOINT and not throughout:
                assumption = _apart([[entry] for entry in leaves(study)])
            found.append(assumption)
    if disjoint:
        found.append(DISJOINT if throughout else _apart(list(map(leaves, studies))))
    return found


def _apart(parts: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Return the assumption that nobody is in two parts of a pool, by their digests."""
    named = sorted(" with ".join(sorted(e["sha256"][:8] for e in part)) for part in parts)
    return f"{APART}: {'; '.join(named)}"
