r"""What a pooled release promises: it is computed from releases alone.

A person whose records are in one of k data sets is protected by the guarantee of that one, as the
others do not depend on them: parallel composition,
:math:`\epsilon = \max_i \epsilon_i`. Who may be in several has the sum, by basic composition. Both
hold for :math:`\delta` likewise (docs/proofs/pooling).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skdpsurv.pooling.members import leaves, n_records
from skdpsurv.priors.promises import earlier
from skdpsurv.privacy import PrivacyGuarantee, weakest_status
from skdpsurv.privacy.budget import exact_sum, float_above
from skdpsurv.references import reference
from skdpsurv.release import Release

__all__ = ["DISJOINT", "joint_guarantee"]

DISJOINT = "no person is in two of the pooled data sets"


def joint_guarantee(
    members: Sequence[Release],
    mechanism: str,
    effects: str,
    disjoint: bool,
    stated: Mapping[str, Any],
) -> PrivacyGuarantee:
    """Return the guarantee of what follows from several releases.

    Parameters
    ----------
    members : sequence of Release
    mechanism : str
        How they were pooled, with a place for their number.
    effects : str
    disjoint : bool
        Whether nobody is in two of the data sets.
    stated : mapping
        Public inputs that hold for all members.

    Raises
    ------
    ValueError
        If they are about different neighbours, or leave no delta below 1.
    """
    made = [member.guarantee for member in members]
    if len({one.neighbours for one in made}) > 1:
        raise ValueError(
            "releases must have guarantees about the same neighbours: all with person=, or none."
        )
    if disjoint:
        epsilon, delta = max(one.epsilon for one in made), max(one.delta for one in made)
    else:
        epsilon, delta = (
            float_above(exact_sum(numbers))
            for numbers in ([one.epsilon for one in made], [one.delta for one in made])
        )
    if not delta < 1.0:
        raise ValueError("releases must have deltas whose sum is below 1.")
    entries = sorted((e for member in members for e in leaves(member)), key=lambda e: e["sha256"])
    assumptions = [assumption for one in made for assumption in one.assumptions]
    if disjoint:
        assumptions.append(DISJOINT)
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=delta,
        neighbours=made[0].neighbours,
        mechanism=mechanism.format(len(entries)),
        status=weakest_status(one.status for one in made),
        public_inputs={
            "n_records": sum(map(n_records, members)),
            "pooled": entries,
            "effects": effects,
            **stated,
            **_priors(members),
        },
        assumptions=tuple(dict.fromkeys(assumptions)),
        source=reference("docs/proofs/pooling"),
        not_covered=tuple(dict.fromkeys(part for one in made for part in one.not_covered)),
    )


def _priors(members: Sequence[Release]) -> dict[str, Any]:
    """Return the promises to people whom members started from: they hold on."""
    said: list[Any] = []
    for member in members:
        said += [entry for entry in earlier(member) if entry not in said]
    return {"prior": said} if said else {}
