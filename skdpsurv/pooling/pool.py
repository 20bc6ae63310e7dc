"""pool_releases: one release of what several sites have released."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from skdpsurv.checks import choice, instance
from skdpsurv.inference import Inference
from skdpsurv.pooling.between_studies import Spread
from skdpsurv.pooling.inverse_variance import together, with_spread
from skdpsurv.pooling.joint_guarantee import doubts_of, joint_guarantee
from skdpsurv.pooling.members import columns, common, in_order, named
from skdpsurv.pooling.regressions import Hazards, LogOdds, Regression
from skdpsurv.pooling.tables import check_tables, sum_of_tables
from skdpsurv.pooling.weibull import Distributions
from skdpsurv.preprocessing import PublicInputWarning
from skdpsurv.privacy import PrivacyLeakWarning
from skdpsurv.release import Release
from skdpsurv.survival.weibull.setting import LEFT_CENSORED

#: Estimators whose parameters are weighed by their precisions.
ESTIMATED: dict[str, Regression | Distributions] = {
    "DPDiscreteTimeSurvival": Hazards(),
    "DPLogisticRegression": LogOdds(),
    "DPWeibullFitter": Distributions(),
    "LaplaceWeibullFitter": Distributions(),
    "PublishedWeibullFitter": Distributions(),
    "SampleAggregateWeibullFitter": Distributions(),
}
#: Estimators whose tables add up.
COUNTED = ("DPKaplanMeierFitter", "DPAalenJohansenFitter")


def pool_releases(
    releases: Sequence[Release], *, effects: str = "fixed", disjoint: bool = True
) -> Release:
    r"""Return one release of what several sites have released; no record is needed.

    Regressions and Weibull distributions are weighed by their precisions,

    .. math::
       \hat\theta = \Sigma \sum_i P_i \theta_i, \qquad \Sigma = \Bigl(\sum_i P_i\Bigr)^{-1},

    with :math:`\theta_i` the unshrunk estimates of site i and :math:`P_i` their inverse covariance,
    of sampling and of privacy noise. Tables of curves are added up. This is post-processing: it
    spends no budget.

    Parameters
    ----------
    releases : sequence of Release
        Two or more, of one estimator: a :class:`~skdpsurv.DPDiscreteTimeSurvival` or
        :class:`~skdpsurv.DPLogisticRegression` (two classes) with ``inference_share``, a
        :class:`~skdpsurv.DPWeibullFitter`, or a :class:`~skdpsurv.DPKaplanMeierFitter` or
        :class:`~skdpsurv.DPAalenJohansenFitter` with stated bands. They may be pooled themselves.
    effects : {"fixed", "random"}, default="fixed"
        "fixed": all sites have one truth. "random": their truths scatter around a mean, which is
        what is estimated; the variance of each parameter is that of DerSimonian and Laird, and is
        added to the diagonal of each covariance. Tables have no random effects.
    disjoint : bool, default=True
        Whether nobody is in two of the data sets. Then epsilon is the largest of the members', and
        the guarantee says what it rests on. False: it is their sum.

    Returns
    -------
    Release
        Of the same estimator; the order of ``releases`` does not matter. Its coefficients are not
        shrunk, and there is no recalibration.

    Raises
    ------
    TypeError
        If something is not a Release.
    ValueError
        If they cannot be pooled: there are fewer than two, one is there twice, or they differ in
        estimator, columns, units, bands, link, classes or neighbours; or none has standard
        errors, or one has an epsilon that no fit has.

    Warns
    -----
    PrivacyLeakWarning
        If a member has no proved guarantee, or two were charged to one ledger although ``disjoint``
        says that they are of different people.
    PublicInputWarning
        Naming each member that has no standard error of a parameter (noise hides it): it counts
        with weight 0 there.

    See Also
    --------
    heterogeneity : How far sites differ.
    skdpsurv.pooling.plot_forest : Sites and pooled estimate in a figure.

    Notes
    -----
    Proof of the guarantee: docs/proofs/pooling. Where a site does not know a coefficient, what it
    says of the others is used. Predictions with a coefficient that no site knows use the mean of
    what was released; it has no standard error.

    Estimates far from 0 have larger estimated errors, and so less weight: pooled coefficients are
    a little too near to 0. That part of the error does not shrink with the number of sites, and
    with dozens of noisy ones intervals cover less than they say.

    References
    ----------
    .. [1] R. DerSimonian and N. Laird, "Meta-analysis in clinical trials", Controlled Clinical
       Trials 7, 177-188, 1986.

    Examples
    --------
    >>> from skdpsurv import DPKaplanMeierFitter, pool_releases
    >>> site = DPKaplanMeierFitter(epsilon=1.0, max_time=10.0, n_intervals=4)
    >>> north = site.fit([2.0, 5.0, 9.5] * 200, [1, 0, 1] * 200).release_
    >>> south = site.fit([1.0, 4.0] * 100, [1, 1] * 100).release_
    >>> both = pool_releases([north, south])
    >>> both.guarantee.epsilon, both.guarantee.public_inputs["n_records"]
    (1.0, 800)
    >>> curve = both.to_estimator()
    >>> bool(0.0 < curve.predict(5.0) < 1.0)
    True
    """
    choice("fixed", "random")("effects", effects)
    instance(bool)("disjoint", disjoint)
    given = list(releases) if isinstance(releases, Iterator) else releases
    members = in_order(given, (*ESTIMATED, *COUNTED))
    hidden: list[str] = []
    kind = ESTIMATED.get(members[0].estimator)
    if kind is None:
        if effects != "fixed":
            raise ValueError("effects must be 'fixed' for curves: tables of counts add up.")
        check_tables(members)
        mechanism, values = "sum of tables of counts from {} releases", sum_of_tables(members)
    else:
        kind.check(members)
        estimates = kind.estimates(members)
        hidden = _hidden(given, members, estimates, kind.names(members[0]))
        mechanism = f"pooled by inverse variance from {{}} releases ({effects} effects)"
        values = kind.values(members, estimates, pooled_estimate(estimates, effects))
    guarantee = joint_guarantee(members, mechanism, effects, disjoint, _alike(members))
    pooled = _usable(
        Release(
            estimator=members[0].estimator,
            guarantee=guarantee,
            parameters=common(members),
            values=values,
            columns=columns(members),
            **named(members),
        )
    )
    for doubt in doubts_of(members, disjoint):
        warnings.warn(doubt, PrivacyLeakWarning, stacklevel=2)
    for doubt in hidden:
        warnings.warn(doubt, PublicInputWarning, stacklevel=2)
    return pooled


def pooled_estimate(estimates: Sequence[Inference], effects: str) -> Inference:
    """Return the mean of one truth, or of truths that scatter around it."""
    if effects == "random":
        tau2 = Spread.of(estimates).tau2
        estimates = [with_spread(one, tau2) for one in estimates]
    return together(estimates)


def _hidden(
    given: Sequence[Release],
    members: Sequence[Release],
    estimates: Sequence[Inference],
    names: Sequence[str],
) -> list[str]:
    """Name the releases that do not know a parameter, in the order of the caller."""
    found = []
    for number, release in enumerate(given):
        known = next(e.known for m, e in zip(members, estimates, strict=True) if m is release)
        if not known.all():
            which = dict.fromkeys(
                n for n, is_known in zip(names, known, strict=True) if not is_known
            )
            what = ", ".join(which) if known.any() else "all coefficients"
            found.append(
                f"releases[{number}] has no standard error of {what}: noise hides them, or it was "
                "fitted without inference_share. It counts with weight 0 there."
            )
    return found


def _alike(members: Sequence[Release]) -> dict[str, Any]:
    """Return a public input that readers of a release need, where it holds for all members."""
    said = all(member.made_by.public_inputs.get(LEFT_CENSORED) is True for member in members)
    return {LEFT_CENSORED: True} if said else {}


def _usable(release: Release) -> Release:
    """Return a release after its estimator was built from it.

    Raises
    ------
    ValueError
        If that refuses it, as members held what no fit releases.
    """
    release.to_estimator()
    return release
