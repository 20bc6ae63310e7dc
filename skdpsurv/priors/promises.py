"""What was promised to the people behind a prior, and behind its own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skdpsurv.privacy import PrivacyAccountant, PrivacyGuarantee
from skdpsurv.privacy.guarantee import PERSON
from skdpsurv.release import Release

#: Status of what everybody can read already, such as a table in a journal.
PUBLISHED = "published"
#: About whom promises are that do not say it, as guarantees have it.
RECORD = "replace-one"
_ABOUT = {RECORD: "about single records", PERSON: "about whole persons"}


@dataclass(frozen=True)
class Promise:
    """Of one release.

    Parameters
    ----------
    epsilon, delta : float
    status : str
        That of a guarantee, or "published".
    sha256 : str
        Of the release's JSON; "" where nobody has written it down.
    neighbours : str, default="replace-one"
        The relation that it holds for, as a guarantee has it.
    """

    epsilon: float
    delta: float
    status: str
    sha256: str
    neighbours: str = RECORD

    @classmethod
    def of(cls, release: Release) -> Promise:
        """Return that of a release."""
        made = release.guarantee
        public = release.estimator == "PublishedCoefficients"
        status, neighbours = (PUBLISHED, RECORD) if public else (made.status, made.neighbours)
        return cls(made.epsilon, made.delta, status, sha256(release), neighbours)

    @classmethod
    def said(cls, entry: Mapping[str, Any]) -> Promise:
        """Return what a guarantee said of a prior.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is none.
        """
        status, digest = entry["status"], entry.get("sha256", "")
        checked = "none" if status == PUBLISHED else status
        neighbours = entry.get("neighbours", RECORD)
        made = PrivacyGuarantee(entry["epsilon"], entry["delta"], neighbours, status=checked)
        return cls(made.epsilon, made.delta, str(status), str(digest), made.neighbours)

    def words(self) -> str:
        """Return it in words."""
        if self.status == PUBLISHED:
            return "none, as it was public before"
        delta = f", delta = {self.delta:g}" if self.delta else ""
        about = _ABOUT.get(self.neighbours, f"about neighbours by {self.neighbours!r}")
        return f"epsilon = {self.epsilon:g}{delta}, status {self.status}, {about}"

    def entry(self) -> dict[str, Any]:
        """Return it for a guarantee, with the neighbours where they are not single records."""
        said = dict(vars(self))
        if self.neighbours == RECORD:
            del said["neighbours"]
        return said

    def of_whoever_is_in_both(self) -> str:
        """Return what holds for somebody whose records are here, too; nothing if all was public."""
        if self.status == PUBLISHED:
            return ""
        return (
            ", and whoever is among both has the sum of both epsilons, of which one about single "
            "records counts once for each record of that person"
        )


@dataclass(frozen=True)
class Promises:
    """What was promised to the people behind a prior.

    They are others than those whose records are fitted now. What is fitted lies near the prior and
    passes on whatever that reveals about them: no noise that is added here protects them.

    Parameters
    ----------
    entries : tuple of Promise
        Of the prior, of the one that it started from in turn, and so on.
    """

    entries: tuple[Promise, ...]

    @classmethod
    def of(cls, prior: Release | None) -> Promises:
        """Read what a prior says about itself.

        Raises
        ------
        ValueError
            If it does not say what its own prior promised.
        """
        if prior is None:
            return cls(())
        try:
            return cls((Promise.of(prior), *map(Promise.said, earlier(prior))))
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        raise ValueError("prior must say what its own prior promised: epsilon, delta and status.")

    @classmethod
    def used(cls, prior: Release | None, epsilon: float) -> Promises:
        """Return those of a fit, which uses no prior where epsilon is infinite."""
        return cls(()) if math.isinf(epsilon) else cls.of(prior)

    def public_inputs(self) -> dict[str, Any]:
        """Return the promises, the nearest first; nothing without a prior."""
        if not self.entries:
            return {}
        return {"prior": [entry.entry() for entry in self.entries]}

    def assumptions(self) -> tuple[str, ...]:
        """Return who is protected by what."""
        return tuple(
            f"this guarantee is about the records fitted here, not about those that {which} was "
            f"learned from: these have its own promise, {promise.words()}"
            f"{promise.of_whoever_is_in_both()}"
            for which, promise in self._named()
        )

    def leaks(self) -> list[str]:
        """Return which of the promises protect nobody."""
        return [
            f"{which} promises nothing that is proved to the people whose records it was learned "
            f"from ({promise.words()}): what it reveals about them passes into this fit, whose "
            "guarantee is about its own records only. Use one that was released with a proved "
            "guarantee."
            for which, promise in self._named()
            if promise.status not in ("proved", PUBLISHED)
        ]

    def _named(self) -> list[tuple[str, Promise]]:
        names = ["the prior" + " of the prior" * k for k in range(len(self.entries))]
        return list(zip(names, self.entries, strict=True))


def earlier(release: Release) -> list[Any]:
    """Return what a release says of what it started from, as JSON has it.

    Of a search that is what any of its candidates started from, as the choice was between them.
    """
    found: list[Any] = []
    for guarantee in (release.guarantee, release.made_by):
        public = guarantee.public_inputs
        entries: Any = public.get("prior", public.get("hypothesis", ()))
        found += [entry for entry in entries if entry not in found]
    return found


def sha256(release: Release) -> str:
    """Return the digest of a release's JSON, as it is written without indentation."""
    return hashlib.sha256(release.to_json().encode()).hexdigest()


def of_the_same_ledger(prior: Release | None, accountant: PrivacyAccountant | None) -> list[str]:
    """Return a warning if a prior may be of the people whose records are fitted now, or nothing.

    A pool says to which ledgers its releases were charged, and not for which data sets.
    """
    if prior is None or accountant is None:
        return []
    pooled: Any = prior.made_by.public_inputs.get("pooled", ())
    ledgers = {entry.get("ledger") for entry in pooled if isinstance(entry, Mapping)}
    if not (accountant._holds(prior.receipt) or accountant._ledger.identity in ledgers):
        return []
    which, where = ("a release in the prior", "") if pooled else ("the prior", " and data set")
    return [
        f"{which} was charged to the ledger{where} that this fit is charged to, so it may be of "
        "the same people: to them the sum of both epsilons was promised, not that of this fit, and "
        "their records count twice. Use a prior that was learned from other people."
    ]
