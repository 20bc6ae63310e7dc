"""A release that a fit starts from, and what was promised to the people behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdpsurv.data.feature import Feature
from skdpsurv.dp import PrivacyAccountant, PrivacyGuarantee
from skdpsurv.dp.checks import instance, optional
from skdpsurv.dp.guarantee import PERSON
from skdpsurv.priors.evidence import Evidence, Terms
from skdpsurv.release import Release

#: Status of what everybody can read already, such as a table in a journal.
PUBLISHED = "published"
#: About whom promises are that do not say it, as guarantees have it.
RECORD = "replace-one"
_ABOUT = {RECORD: "about single records", PERSON: "about whole persons"}


def _said(promised: PrivacyGuarantee, status: str, digest: str) -> dict[str, Any]:
    """Return what a guarantee says of a prior; the relation, where it is not of single records."""
    said = {"epsilon": promised.epsilon, "delta": promised.delta, "status": status}
    said["sha256"] = digest
    about = promised.neighbours
    return said if about == RECORD or status == PUBLISHED else said | {"neighbours": about}


def _promise(release: Release) -> dict[str, Any]:
    public = release.estimator == "PublishedCoefficients"
    made = release.guarantee
    return _said(made, PUBLISHED if public else made.status, sha256(release))


def _checked(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a guarantee said of a prior; KeyError, TypeError or ValueError if it is none."""
    status, neighbours = entry["status"], entry.get("neighbours", RECORD)
    checked = "none" if status == PUBLISHED else status
    made = PrivacyGuarantee(entry["epsilon"], entry["delta"], neighbours, status=checked)
    return _said(made, str(status), str(entry.get("sha256", "")))


def _words(promise: Mapping[str, Any]) -> str:
    if promise["status"] == PUBLISHED:
        return "none, as it was public before"
    delta = f", delta = {promise['delta']:g}" if promise["delta"] else ""
    neighbours = promise.get("neighbours", RECORD)
    about = _ABOUT.get(neighbours, f"about neighbours by {neighbours!r}")
    return f"epsilon = {promise['epsilon']:g}{delta}, status {promise['status']}, {about}"


@dataclass(frozen=True)
class Promises:
    """What was promised to the people behind a prior.

    They are others than those whose records are fitted now. What is fitted lies near the prior and
    passes on whatever that reveals about them: no noise that is added here protects them.

    Parameters
    ----------
    entries : tuple of dict
        Their epsilon, delta, status (that of a guarantee, or "published"), sha256 of the JSON and,
        unless they are about single records, neighbours.
        Of the prior, of the one that it started from in turn, and so on.
    """

    entries: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, prior: Release | None) -> Promises:
        """Read what a prior says about itself."""
        if prior is None:
            return cls(())
        try:
            return cls((_promise(prior), *map(_checked, earlier(prior))))
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        raise ValueError("prior must say what its own prior promised: epsilon, delta and status.")

    def public_inputs(self) -> dict[str, Any]:
        """Return the promises, the nearest first; nothing without a prior."""
        return {"prior": list(self.entries)} if self.entries else {}

    def assumptions(self) -> tuple[str, ...]:
        """Return who is protected by what."""
        both = (
            ", and whoever is among both has the sum of both epsilons, of which one about single "
            "records counts once for each record of that person"
        )
        return tuple(
            f"this guarantee is about the records fitted here, not about those that {which} was "
            f"learned from: these have its own promise, {_words(promise)}"
            f"{'' if promise['status'] == PUBLISHED else both}"
            for which, promise in self._named()
        )

    def leaks(self) -> list[str]:
        """Return which of the promises protect nobody."""
        return [
            f"{which} promises nothing that is proved to the people whose records it was learned "
            f"from ({_words(promise)}): what it reveals about them passes into this fit, whose "
            "guarantee is about its own records only. Use one that was released with a proved "
            "guarantee."
            for which, promise in self._named()
            if promise["status"] not in ("proved", PUBLISHED)
        ]

    def _named(self) -> list[tuple[str, dict[str, Any]]]:
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


def of_the_same_ledger(prior: Release, accountant: PrivacyAccountant) -> list[str]:
    """Return a warning if a prior may be of the people whose records are fitted now, or nothing.

    A pool says to which ledgers its releases were charged, and not for which data sets.
    """
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


#: Errors and coefficients beyond these are none.
SMALLEST, LARGEST = 1e-12, 1e12
#: The rule for the parameter ``prior``.
is_prior = optional(instance(Release, "a Release, as Release.load returns"))


@dataclass(frozen=True, eq=False)
class Prior:
    """What a release says of a model's coefficients.

    Parameters
    ----------
    evidence : Evidence
        Of the features of the fit, on the model's natural scale: log hazard ratios, log odds.
    promises : Promises
    lacking : tuple of str, default=()
        Columns that it speaks of, and the fit does not have.
    """

    evidence: Evidence
    promises: Promises
    lacking: tuple[str, ...] = ()

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
        """Return a prior for a fit, after checking that it speaks of the same things."""
        release = replace(release)  # what is cached there must not change a parameter
        promises, published = Promises.of(release), release.estimator == "PublishedCoefficients"
        kind: Any = Release.kinds[release.estimator]
        if model not in getattr(kind, "_is_evidence_of", ()):
            wanted = {"hazard": "hazards (DPDiscreteTimeSurvival)", "odds": "log odds"}[model]
            raise ValueError(
                f"prior must be a model of {wanted}, or published coefficients of one, got a "
                f"release of a {release.estimator:.60}."
            )
        # Read as its own estimator does, which refuses what is none of its releases.
        evidence, theirs = kind._evidence(release, model, outputs)
        if evidence is None:
            raise ValueError(
                "prior must say how sure it is of its coefficients, as fits with "
                "method='obj_pert' or 'out_pert' do since version 0.2."
            )
        lacking: list[str] = []
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
            evidence, lacking = ours.mapped(theirs, evidence), ours.lacking(theirs)
        # Arithmetic would come to grief with others, after the charge.
        error = evidence.error[np.isfinite(evidence.error)]
        sane = (error >= SMALLEST).all() and (error <= LARGEST).all()
        if not (sane and (np.abs(evidence.coef) <= LARGEST).all()):
            raise ValueError(
                f"prior must have coefficients of at most {LARGEST:g}, and errors between "
                f"{SMALLEST:g} and {LARGEST:g}, on the scale of the features here."
            )
        return cls(evidence, promises, tuple(lacking))


def check_same_features(release: Release, n_features: int, names: Sequence[str] | None) -> None:
    """Refuse a prior of other features than a fit has, by their number, names and order."""
    if release.n_features != n_features:
        raise ValueError(
            f"prior must have as many columns as X, {n_features}, got {release.n_features}."
        )
    theirs = release.feature_names
    if names is not None and theirs is not None and list(map(str, names)) != theirs:
        raise ValueError("prior must have columns of the same names and order as X.")
