"""A release that a fit starts from, as evidence of the fit's own coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdpsurv.checks import instance, optional
from skdpsurv.preprocessing.feature import Feature
from skdpsurv.priors.evidence import Evidence
from skdpsurv.priors.promises import Promises
from skdpsurv.priors.terms import Terms
from skdpsurv.release import Release

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
        release: Release | None,
        model: str,
        n_features: int,
        names: Sequence[str] | None,
        columns: Any = None,
        features: Sequence[Feature] | None = None,
        outputs: Any = None,
    ) -> Self | None:
        """Return a prior for a fit, after checking that it speaks of the same things.

        Parameters
        ----------
        release : Release or None
        model : {"hazard", "odds"}
            What is fitted.
        n_features : int
        names : sequence of str or None
            Of the features.
        columns : transformer or None, default=None
            Of the fit.
        features : sequence of Feature or None, default=None
            That ``columns`` make; None: columns that nobody describes.
        outputs : list or None, default=None
            Classes, of a classifier.

        Raises
        ------
        ValueError
            Naming what differs.
        """
        if release is None:
            return None
        release = replace(release)  # what is cached there must not change a parameter
        promises = Promises.of(release)
        evidence, theirs = says(release, model, outputs)
        if features is None:
            _check_as_they_are(release, n_features, names)
            return cls(_usable(evidence), promises)
        if release.estimator != "PublishedCoefficients" and release.columns is None:
            raise ValueError(
                "prior must say what its columns hold: fit it with columns=, or both without."
            )
        ours = Terms.of(features, columns)
        mapped = _usable(ours.mapped(theirs, evidence))
        return cls(mapped, promises, tuple(ours.lacking(theirs)))


def _usable(evidence: Evidence) -> Evidence:
    """Refuse numbers that arithmetic would come to grief with, before anything is charged."""
    known = np.isfinite(evidence.error)
    error = evidence.error[known]
    sane = (error >= SMALLEST).all() and (error <= LARGEST).all()
    if not (sane and (np.abs(evidence.coef) <= LARGEST).all()):
        raise ValueError(
            f"prior must have coefficients of at most {LARGEST:g}, and errors between "
            f"{SMALLEST:g} and {LARGEST:g}, on the scale of the features here."
        )
    return evidence


def says(release: Release, model: str, outputs: Any = None) -> tuple[Evidence, Terms]:
    """Return what a release says of coefficients, and what these belong to.

    Raises
    ------
    ValueError
        If it is of another model, or does not say how sure it is.
    """
    kind: Any = Release.kinds[release.estimator]
    if model not in getattr(kind, "_is_evidence_of", ()):
        wanted = {"hazard": "hazards (DPDiscreteTimeSurvival)", "odds": "log odds"}[model]
        raise ValueError(
            f"prior must be a model of {wanted}, or published coefficients of one, got a release "
            f"of a {release.estimator:.60}."
        )
    # Read as its own estimator does, which refuses what is none of its releases.
    evidence, terms = kind._evidence(release, model, outputs)
    if evidence is None:
        raise ValueError(
            "prior must say how sure it is of its coefficients, as fits with "
            "method='obj_pert' or 'out_pert' do since version 0.2."
        )
    return evidence, terms


def _check_as_they_are(release: Release, n_features: int, names: Sequence[str] | None) -> None:
    """Refuse a prior of other columns where nobody describes them."""
    if release.columns is not None or release.estimator == "PublishedCoefficients":
        raise ValueError(
            "columns must be given with this prior, which speaks of raw columns: "
            "PublicColumns({...}), or prior.transformer()."
        )
    check_same_features(release, n_features, names)


def check_same_features(release: Release, n_features: int, names: Sequence[str] | None) -> None:
    """Refuse a prior of other features than a fit has, by their number, names and order.

    Parameters
    ----------
    release : Release
    n_features : int
    names : sequence of str or None
        Of the features of the fit, if they have any.

    Raises
    ------
    ValueError
        Naming what differs.
    """
    if release.n_features != n_features:
        raise ValueError(
            f"prior must have as many columns as X, {n_features}, got {release.n_features}."
        )
    theirs = release.feature_names
    if names is not None and theirs is not None and list(map(str, names)) != theirs:
        raise ValueError("prior must have columns of the same names and order as X.")
