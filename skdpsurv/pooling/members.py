"""Which releases may be pooled, in which order, and what they say alike."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from skdpsurv.dp.guarantee import frozen
from skdpsurv.priors.prior import sha256
from skdpsurv.release import Release


def in_order(releases: Any, kinds: Collection[str]) -> list[Release]:
    """Return releases of one kind, all different, in an order that does not depend on theirs."""
    if isinstance(releases, str | Mapping) or not isinstance(releases, Iterable):
        raise TypeError("releases must be a list of two or more of them.")
    members = list(releases)
    for k, member in enumerate(members):
        if not isinstance(member, Release):
            raise TypeError(f"releases[{k}] must be a Release, got {type(member).__name__}.")
    if len(members) < 2:
        raise ValueError(f"releases must be two or more, got {len(members)}.")
    for k, member in enumerate(members):
        if member.estimator not in kinds:
            raise ValueError(
                f"releases[{k}] must come from one of {', '.join(kinds)}, which can be pooled; "
                f"got one from {member.estimator}."
            )
        if member.estimator != members[0].estimator:
            raise ValueError(
                f"releases must come from one estimator, got {members[0].estimator} and "
                f"{member.estimator}."
            )
    if len(set(map(_released, members))) < len(members):
        raise ValueError(
            "releases must be different: one is there twice, and would count as twice the people."
        )
    entries = [entry for member in members for entry in leaves(member)]
    for key in ("sha256", "released"):
        stated = list(_texts_of(entries, key))
        if len(set(stated)) < len(stated):
            raise ValueError(
                "releases must be different: one is pooled already, together with another of them "
                "or with a part of it."
            )
    return sorted(members, key=sha256)


def _released(release: Release) -> str:
    """Return the digest of the numbers alone, whatever else was written beside them."""
    numbers = {name: np.asarray(value).tolist() for name, value in sorted(release.values.items())}
    return hashlib.sha256(json.dumps([release.estimator, numbers]).encode()).hexdigest()


def _texts_of(entries: Iterable[Mapping[str, Any]], key: str) -> Iterator[str]:
    """Return the texts of a key, of entries that have one."""
    return (entry[key] for entry in entries if isinstance(entry.get(key), str))


def in_one_ledger(members: Sequence[Release]) -> int:
    """Return how many releases were charged to a ledger that another was charged to, too.

    Those are often of the same people, which no release can tell. Of releases without a receipt
    nothing is known. A pool among them is one release.
    """
    ledgers = [set(_texts_of(leaves(member), "ledger")) for member in members]
    charged = Counter(ledger for found in ledgers for ledger in found)
    return sum(any(charged[ledger] > 1 for ledger in found) for found in ledgers)


def leaves(release: Release) -> list[dict[str, Any]]:
    """Return what a guarantee says of each release in a pool: of itself, if it is none."""
    pooled: Any = release.made_by.public_inputs.get("pooled")
    if pooled is None:
        promised, receipt = release.guarantee, release.receipt
        return [
            {
                "sha256": sha256(release),
                "released": _released(release),
                "epsilon": promised.epsilon,
                "delta": promised.delta,
                "status": promised.status,
                "n_records": n_records(release),
                **({} if receipt is None else {"ledger": receipt.ledger}),
            }
        ]
    try:
        entries = [dict(entry) for entry in pooled]
        said = all(isinstance(entry["sha256"], str) for entry in entries)
    except (KeyError, TypeError, ValueError):
        said = False
    if not said or not entries:
        raise ValueError("releases must say what they were pooled from, if they were.")
    return entries


def n_records(release: Release) -> int:
    """Return how many records a release was made of."""
    number: Any = release.made_by.public_inputs.get("n_records")
    if type(number) is not int or number < 1:
        raise ValueError("releases must say n_records, a positive integer, in their public_inputs.")
    return int(number)


def require_same(members: Sequence[Release], names: Collection[str], hint: str = "") -> None:
    """Refuse releases with different public parameters, of those that matter."""
    shared = _common(members)
    for name in names:
        if name not in shared:
            raise ValueError(
                f"releases must have the same {name}: state it, the same in every fit.{hint}"
            )


def _common(members: Sequence[Release]) -> dict[str, Any]:
    """Return the public parameters that all members have alike."""
    first, *others = members
    return {
        name: value
        for name, value in first.parameters.items()
        if all(
            name in other.parameters
            # Lists become tuples, and so do those that were read from a file.
            and frozen(name, other.parameters[name]) == frozen(name, value)
            for other in others
        )
    }


def described(members: Sequence[Release]) -> dict[str, Any]:
    """Return what a release of all says of parameters, columns and target, where members agree.

    Columns are those of a member with most units, where some state none.
    """
    first = members[0]
    units = [sum(bool(feature.unit) for feature in member.features) for member in members]
    alike = {
        name: getattr(first, name)
        for name in ("n_features_in", "feature_names_in", "target_names")
        if all(getattr(member, name) == getattr(first, name) for member in members)
    }
    if "n_features_in" not in alike:
        alike = {"n_features_in": 0} | alike | {"feature_names_in": None}
    columns = members[units.index(max(units))].columns
    return {"parameters": _common(members), "columns": columns, **alike}
