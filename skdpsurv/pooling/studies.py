"""Releases that may be pooled: checks, and the public parameters that they share."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from skdpsurv.dp.guarantee import immutable
from skdpsurv.priors.prior import sha256
from skdpsurv.release import Release


def checked(releases: Any, kinds: Collection[str]) -> list[Release]:
    """Return different releases of one kind."""
    if isinstance(releases, str | Mapping) or not isinstance(releases, Iterable):
        raise TypeError("releases must be a list of two or more of them.")
    studies = list(releases)
    for k, study in enumerate(studies):
        if not isinstance(study, Release):
            raise TypeError(f"releases[{k}] must be a Release, got {type(study).__name__}.")
    if len(studies) < 2:
        raise ValueError(f"releases must be two or more, got {len(studies)}.")
    for k, study in enumerate(studies):
        if study.estimator not in kinds:
            raise ValueError(
                f"releases[{k}] must come from one of {', '.join(kinds)}, which can be pooled; "
                f"got one from {study.estimator}."
            )
        if study.estimator != studies[0].estimator:
            raise ValueError(
                f"releases must come from one estimator, got {studies[0].estimator} and "
                f"{study.estimator}."
            )
    if _repeats(map(_digest, studies)):
        raise ValueError(
            "releases must be different: one is there twice, and would count as twice the people."
        )
    entries = [entry for study in studies for entry in leaves(study)]
    if _repeats(_texts(entries, "sha256")) or _repeats(_texts(entries, "released")):
        raise ValueError(
            "releases must be different: one is pooled already, together with another of them or "
            "with a part of it."
        )
    return studies


def _repeats(texts: Iterable[str]) -> bool:
    found = list(texts)
    return len(set(found)) < len(found)


def _digest(release: Release) -> str:
    """Return the digest of the released numbers alone."""
    numbers = {name: np.asarray(value).tolist() for name, value in sorted(release.values.items())}
    return hashlib.sha256(json.dumps([release.estimator, numbers]).encode()).hexdigest()


def _texts(entries: Iterable[Mapping[str, Any]], key: str) -> list[str]:
    return [entry[key] for entry in entries if isinstance(entry.get(key), str)]


def in_one_ledger(studies: Sequence[Release]) -> int:
    """Return how many releases share a ledger with another; such often have the same people.

    Nothing is known without a receipt. A pool is one release.
    """
    ledgers = [set(_texts(leaves(study), "ledger")) for study in studies]
    charged = Counter(ledger for found in ledgers for ledger in found)
    return sum(any(charged[ledger] > 1 for ledger in found) for found in ledgers)


def leaves(release: Release) -> list[dict[str, Any]]:
    """Return an entry for each release in a pool, or for the release itself."""
    pooled: Any = release.made_by.public_inputs.get("pooled")
    if pooled is None:
        guarantee, receipt = release.guarantee, release.receipt
        return [
            {
                "sha256": sha256(release),
                "released": _digest(release),
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                "status": guarantee.status,
                "n_records": n_records(release),
                **({} if receipt is None else {"ledger": receipt.ledger}),
            }
        ]
    with suppress(KeyError, TypeError, ValueError):
        entries = [dict(entry) for entry in pooled]
        if entries and all(isinstance(entry["sha256"], str) for entry in entries):
            return entries
    raise ValueError("releases must say what they were pooled from, if they were.")


def n_records(release: Release) -> int:
    """Return the number of records of a release."""
    number: Any = release.made_by.public_inputs.get("n_records")
    if type(number) is not int or number < 1:
        raise ValueError("releases must say n_records, a positive integer, in their public_inputs.")
    return int(number)


def require_same(studies: Sequence[Release], names: Collection[str], hint: str = "") -> None:
    """Refuse releases that differ in some public parameters."""
    shared = _common(studies)
    for name in names:
        if name not in shared:
            raise ValueError(
                f"releases must have the same {name}: state it, the same in every fit.{hint}"
            )


def _common(studies: Sequence[Release]) -> dict[str, Any]:
    """Return the public parameters that all studies share; frozen, as files hold no tuples."""
    first, *others = ({n: immutable(n, v) for n, v in s.parameters.items()} for s in studies)
    same = [name for name in first if all(o.get(name, ...) == first[name] for o in others)]
    return {name: studies[0].parameters[name] for name in same}


def described(studies: Sequence[Release]) -> dict[str, Any]:
    """Return the parameters, columns and target that studies share.

    Columns are those of the study with most units.
    """
    first = studies[0]
    shared = {
        name: getattr(first, name)
        for name in ("n_features_in", "feature_names_in", "target_names")
        if all(getattr(study, name) == getattr(first, name) for study in studies)
    }
    if "n_features_in" not in shared:
        shared |= {"n_features_in": 0, "feature_names_in": None}
    stated = max(studies, key=lambda study: sum(bool(feature.unit) for feature in study.features))
    return {"parameters": _common(studies), "columns": stated.columns, **shared}
