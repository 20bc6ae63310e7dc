"""A release that a fit starts from, and the guarantees of the people behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdpsurv.data.feature import Feature
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import instance, optional, rule_of
from skdpsurv.dp.guarantee import PERSON, RECORD, SAME_GROUP, PrivacyGuarantee
from skdpsurv.dp.references import WORDS, phrase
from skdpsurv.priors.evidence import Evidence
from skdpsurv.priors.terms import Terms
from skdpsurv.release import Release

#: Status of a prior that is public already, such as a table in a journal.
PUBLISHED = "published"
#: Neighbour relation of guarantees that do not state one.
_ABOUT = {RECORD: "about single records", PERSON: "about whole persons"}
_ABOUT |= {
    relation + SAME_GROUP: f"{words} whose group everybody may know"
    for relation, words in _ABOUT.items()
}


def _entry(guarantee: PrivacyGuarantee, status: str, **source: str) -> dict[str, Any]:
    """Return a guarantee as JSON has it; the relation, unless it is that of single records."""
    entry = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "status": status, **source}
    about = guarantee.neighbours
    return entry if about == RECORD or status == PUBLISHED else entry | {"neighbours": about}


def _own_entry(release: Release) -> dict[str, Any]:
    public = release.estimator == "PublishedCoefficients"
    status = PUBLISHED if public else release.guarantee.status
    return _entry(release.guarantee, status, sha256=sha256(release))


def _checked(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of an earlier prior; KeyError, TypeError or ValueError if it is none."""
    status, neighbours = entry["status"], entry.get("neighbours", RECORD)
    checked = "none" if status == PUBLISHED else status
    guarantee = PrivacyGuarantee(entry["epsilon"], entry["delta"], neighbours, status=checked)
    return _entry(guarantee, str(status), sha256=str(entry.get("sha256", "")))


def _words(entry: Mapping[str, Any]) -> str:
    if entry["status"] == PUBLISHED:
        return "none, as it was public before"
    delta = f", delta = {entry['delta']:g}" if entry["delta"] else ""
    neighbours = entry.get("neighbours", RECORD)
    about = _ABOUT.get(neighbours, f"about neighbours by {neighbours!r}")
    return f"epsilon = {entry['epsilon']:g}{delta}, status {entry['status']}, {about}"


@dataclass(frozen=True, eq=False)
class PlannedScales:
    """Scales by a table of the same study: promised in its plan, and known at its run.

    ``analysis`` is its name there; ``release`` is None until the table is released.
    """

    analysis: str
    guarantee: PrivacyGuarantee
    release: Release | None = None

    def after(self, release: Release | None) -> PlannedScales:
        """Return the scales by a release; ValueError if another one was planned."""
        if release is not None and release.guarantee.to_dict() != self.guarantee.to_dict():
            raise ValueError(f"{self.analysis} is not the table that was planned.")
        return replace(self, release=release)


@dataclass(frozen=True)
class Promises:
    """What was promised to the people whose records made a prior; this fit adds no noise for them.

    The entries are those of the prior, of the prior that it started from, and so on: epsilon,
    delta, status (or "published"), sha256 of the JSON and, unless single records, neighbours.
    Of a table of the same study the entry has the name of the ``analysis`` in place of the sha256.
    ``name`` is that of the parameter.
    """

    entries: tuple[dict[str, Any], ...]
    name: str = "prior"

    @classmethod
    def of(cls, prior: Release | PlannedScales | None, name: str = "prior") -> Promises:
        if prior is None:
            return cls(())
        if isinstance(prior, PlannedScales):  # whose digest is not known yet
            guarantee = prior.guarantee
            return cls((_entry(guarantee, guarantee.status, analysis=prior.analysis),), name)
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            return cls((_own_entry(prior), *map(_checked, earlier(prior))), name)
        raise ValueError(f"{name} must state epsilon, delta and status of its own prior.")

    def public_inputs(self) -> dict[str, Any]:
        return {self.name: list(self.entries)} if self.entries else {}

    def assumptions(self) -> tuple[str, ...]:
        words = WORDS["prior"]
        return tuple(
            words["same_study"].format(analysis=entry["analysis"], promise=_words(entry))
            if "analysis" in entry
            else words["own_promise"].format(which=which, promise=_words(entry))
            + ("" if entry["status"] == PUBLISHED else words["both"])
            for which, entry in self._named()
        )

    def leaks(self) -> list[str]:
        """Return warnings of guarantees that protect nobody."""
        return [
            phrase("unproved_prior", which=which, promise=_words(entry))
            for which, entry in self._named()
            if entry["status"] not in ("proved", PUBLISHED)
        ]

    def _named(self) -> list[tuple[str, dict[str, Any]]]:
        first = {"prior": "the prior", "scales": "the release of scales"}[self.name]
        names = [first + " of the prior" * k for k in range(len(self.entries))]
        return list(zip(names, self.entries, strict=True))


def earlier(release: Release) -> list[Any]:
    """Return the entries of the priors of a release, or of any candidate of a search."""
    found: list[Any] = []
    for guarantee in (release.guarantee, release.made_by):
        public = guarantee.public_inputs
        entries: Any = public.get("prior", public.get("hypothesis", ()))
        scales: Any = public.get("scales", ())
        found += [entry for entry in (*entries, *scales) if entry not in found]
    return found


def sha256(release: Release) -> str:
    """Return the digest of a release's JSON, as it is written without indentation."""
    return hashlib.sha256(release.to_json().encode()).hexdigest()


def of_the_same_ledger(prior: Release, accountant: PrivacyAccountant) -> list[str]:
    """Return a warning if a prior was charged to this ledger: it may be about the same people."""
    pooled: Any = prior.made_by.public_inputs.get("pooled", ())
    ledgers = {entry.get("ledger") for entry in pooled if isinstance(entry, Mapping)}
    if not (accountant._holds(prior.receipt) or accountant._ledger.identity in ledgers):
        return []
    which, where = ("a release in the prior", "") if pooled else ("the prior", " and data set")
    return [phrase("same_ledger", which=which, where=where)]


#: Smallest standard error, and largest one or coefficient, that a prior may have.
SMALLEST, LARGEST = 1e-12, 1e12
RELEASE = "a Release, as Release.load returns"
#: Models that may be a prior, by what coefficients are about.
WANTED = {
    "hazard": "hazards (DPDiscreteTimeSurvival), or published coefficients of one",
    "odds": "log odds, or published coefficients of one",
    "causes": "the same causes (DPCompetingRisks)",
}
#: The rule for the parameter ``prior``.
is_prior = optional(instance(Release, RELEASE))
#: The rule for the parameter ``scales``: those of a study are planned before their release.
is_scales = optional(rule_of(RELEASE, kind=lambda v: isinstance(v, Release | PlannedScales)))


@dataclass(frozen=True, eq=False)
class Prior:
    """Evidence on a model's natural scale, log hazard ratios or log odds; and its guarantees.

    ``missing`` are the columns of the prior that the fit does not have.
    """

    evidence: Evidence
    promises: Promises
    missing: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        release: Release,
        model: str,
        n_features: int,
        names: Sequence[str] | None,
        columns: Any = None,
        features: Sequence[Feature] | None = None,
        outputs: Any = None,
    ) -> Self:
        """Return the prior of a fit, after checking that model, features and units agree."""
        release = replace(release)  # what is cached there must not change a parameter
        promises, published = Promises.of(release), release.estimator == "PublishedCoefficients"
        kind: Any = Release.kinds[release.estimator]
        if model not in getattr(kind, "_is_evidence_of", ()):
            raise ValueError(
                f"prior must be a model of {WANTED[model]}, got a release of a "
                f"{release.estimator:.60}."
            )
        if any(one.over_time is not None for one in release.features):
            raise ValueError("prior must be of effects that do not change over time.")
        evidence, theirs = kind._evidence(release, model, outputs)
        if evidence is None:
            raise ValueError(
                "prior must say how sure it is of its coefficients, as fits with a finite epsilon "
                "do since version 0.2, of hazards and odds with method='obj_pert' or 'out_pert'."
            )
        missing: list[str] = []
        if features is None:
            if release.columns is not None or published:
                raise ValueError(
                    "columns must be given with this prior, which speaks of raw columns: "
                    "PublicColumns({...}), or prior.transformer()."
                )
            check_same_features(release, n_features, names)
        else:
            if release.columns is None and not published:
                raise ValueError(
                    "prior must say what its columns hold: fit it with columns=, or both without."
                )
            ours = Terms.of(features, columns)
            evidence, missing = ours.mapped(theirs, evidence), ours.missing(theirs)
        # Other numbers could make a fit fail after the charge.
        error = evidence.error[np.isfinite(evidence.error)]
        sane = (error >= SMALLEST).all() and (error <= LARGEST).all()
        if not (sane and (np.abs(evidence.coef) <= LARGEST).all()):
            raise ValueError(
                f"prior must have coefficients of at most {LARGEST:g}, and errors between "
                f"{SMALLEST:g} and {LARGEST:g}, on the scale of the features here."
            )
        return cls(evidence, promises, tuple(missing))


def check_same_features(release: Release, n_features: int, names: Sequence[str] | None) -> None:
    """Raise ValueError if a prior's features differ by number, names or order."""
    if release.n_features != n_features:
        raise ValueError(
            f"prior must have as many columns as X, {n_features}, got {release.n_features}."
        )
    theirs = release.feature_names
    if names is not None and theirs is not None and list(map(str, names)) != theirs:
        raise ValueError("prior must have columns of the same names and order as X.")
