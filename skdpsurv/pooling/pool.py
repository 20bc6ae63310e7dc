"""pool_releases: one release from those of several sites; and the accuracy of several rounds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skdpsurv.data import PublicInputWarning
from skdpsurv.dp.checks import choice, instance, integer, is_list, number_in
from skdpsurv.dp.guarantee import PrivacyLeakWarning
from skdpsurv.dp.references import phrase
from skdpsurv.dp.types import BoolArray
from skdpsurv.pooling.estimates import pooled_estimate
from skdpsurv.pooling.joint_guarantee import joint_guarantee, privacy_warnings
from skdpsurv.pooling.poolable import counted, estimated, sum_of_noise
from skdpsurv.pooling.studies import checked, described
from skdpsurv.priors.prior import sha256
from skdpsurv.release import Release

#: Sensitivity of a sum of gradients to one record, in units of the bound on rows.
SENSITIVITY = 2.0
#: A record's information on one of d coefficients is about 1 / (8 d).
RECORDS_PER_INFORMATION = 8.0


def pool_releases(
    releases: Sequence[Release], *, effects: str = "fixed", disjoint: bool = True
) -> Release:
    r"""Return one release from those of several sites, without any records.

    Regressions and Weibull distributions are weighted by their precisions,

    .. math::
       \hat\theta = \Sigma \sum_i P_i \theta_i, \qquad \Sigma = \Bigl(\sum_i P_i\Bigr)^{-1},

    with :math:`\theta_i` the unshrunk estimates of site i and :math:`P_i` their inverse covariance,
    of sampling and of privacy noise. Tables of counts are added up. This post-processing spends no
    budget.

    Parameters
    ----------
    releases : sequence of Release
        Two or more, of one estimator: a :class:`~skdpsurv.DPDiscreteTimeSurvival`,
        :class:`~skdpsurv.DPCompetingRisks` or :class:`~skdpsurv.DPLogisticRegression` (two classes)
        with ``inference_share``, a :class:`~skdpsurv.DPWeibullFitter`, a
        :class:`~skdpsurv.DPKaplanMeierFitter` or :class:`~skdpsurv.DPAalenJohansenFitter` with
        stated bands, or a :class:`~skdpsurv.DPTableOne` with a stated grid. They may be pooled
        themselves.
    effects : {"fixed", "random"}, default="fixed"
        "fixed": all sites have one truth. "random": the sites' truths vary around the estimated
        mean, with DerSimonian and Laird's variance of each parameter, which is added to the
        diagonal of each covariance. Tables have no random effects.
    disjoint : bool, default=True
        True states that nobody is in two of the data sets: epsilon is the largest one, under that
        assumption. False: epsilon is the sum.

    Returns
    -------
    Release
        Release of the same estimator, with unshrunk coefficients and no recalibration. The order
        of ``releases`` does not matter.

    Raises
    ------
    TypeError
        If something is not a Release.
    ValueError
        If they cannot be pooled: there are fewer than two, one is there twice, or they differ in
        estimator, columns, units, bands, link, classes, causes or neighbours; or none has standard
        errors, or one has an epsilon that no fit has.

    Warns
    -----
    PrivacyLeakWarning
        If a release has no proved guarantee, or two were charged to one ledger although
        ``disjoint`` states that they are of different people.
    PublicInputWarning
        If a release has no standard error of a parameter (noise hides it): it has weight 0 there.

    See Also
    --------
    heterogeneity : How far sites differ.
    skdpsurv.pooling.plot_forest : Sites and pooled estimate in a figure.

    Notes
    -----
    Proof of the guarantee: docs/proofs/pooling. If a site does not know a coefficient, its other
    estimates are used. Predictions with a coefficient that no site knows use the mean of the
    released ones, without standard error.

    Of competing risks, each cause is weighted by its own precisions: no release has covariances
    between causes.

    Estimates far from 0 have larger estimated errors, and so less weight: pooled coefficients are
    a little too near to 0. This bias does not shrink with the number of sites, so that with dozens
    of noisy ones intervals cover less than their level.

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
    given = checked(releases, Release.kinds.stating("adds_up"))
    studies = sorted(given, key=sha256)  # the order of the caller does not matter
    input_warnings: list[str] = []
    noise: dict[str, Any] = {}
    kind = estimated().get(studies[0].estimator)
    if kind is None:
        if effects != "fixed":
            raise ValueError("effects must be 'fixed' for curves and Table 1: counts add up.")
        mechanism = "sum of tables of counts from {} releases"
        values, noise = counted()[studies[0].estimator](studies), sum_of_noise(studies)
    else:
        kind.check(studies)
        estimates = kind.estimates(studies)
        known = {id(s): e.known for s, e in zip(studies, estimates, strict=True)}
        names = kind.names(studies[0])
        input_warnings = _input_warnings([known[id(release)] for release in given], names)
        mechanism = f"pooled by inverse variance from {{}} releases ({effects} effects)"
        values = kind.values(studies, pooled_estimate(estimates, effects))
    guarantee = joint_guarantee(studies, mechanism, effects, disjoint)
    plans = [study.plan for study in studies]
    stated = {"node": "disjoint" if disjoint else "sequence", "nodes": plans}
    own: Any = {"noise": noise, "plan": stated if all(plans) else None, **described(studies)}
    pooled = Release(studies[0].estimator, guarantee, values=values, **own)
    pooled.to_estimator()  # or ValueError for values that no fit releases
    for text in privacy_warnings(studies, disjoint):
        warnings.warn(text, PrivacyLeakWarning, stacklevel=2)
    for text in input_warnings:
        warnings.warn(text, PublicInputWarning, stacklevel=2)
    return pooled


def _input_warnings(known: Sequence[BoolArray], names: Sequence[str]) -> list[str]:
    """Name the releases that do not know a parameter."""
    found = []
    for number, mask in enumerate(known):
        if not mask.all():
            missing = ", ".join(dict.fromkeys(np.array(names)[~mask].tolist()))
            missing = missing if mask.any() else "all coefficients"
            found.append(phrase("unknown_in_pool", number=number, missing=missing))
    return found


def plan_rounds(
    n_records: Sequence[int], epsilon: float, n_features: int, *, most_rounds: int = 5
) -> pd.DataFrame:
    r"""Return the accuracy of a pooled coefficient if sites spend epsilon in several rounds.

    A site may spend its epsilon in one fit, or in R rounds, each of which starts from the pooled
    model of the last (``prior=``). A site of n records has about the information
    :math:`h = n / (8 d)` on one of d coefficients, and the noise of a fit is like that of a sum
    with sensitivity S = 2. In R rounds with :math:`\epsilon / R` each, noise is drawn R times and
    averaged, while the sampling error of the same people stays:

    .. math:: v_R = \frac{(d + 1)\,S^2\,R / \epsilon^2 + h}{h^2}.

    Precisions :math:`1 / v_R` of sites add up. As :math:`v_R` grows with R, one round is always
    best for the same people; further rounds are for new records, or for new budgets.

    Parameters
    ----------
    n_records : sequence of int
        Size of each site; public.
    epsilon : float
        Total of each site in all rounds.
    n_features : int
        Number of coefficients d.
    most_rounds : int, default=5
        Largest number of rounds.

    Returns
    -------
    pandas.DataFrame
        One row for each number of rounds: ``rounds``, ``epsilon_per_round``, and
        ``relative_error``, the expected standard error of an unshrunk pooled coefficient relative
        to one round.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed.

    Notes
    -----
    This guide for planning uses public numbers. The standard error of a real fit depends on the
    variance of the rows and on the number of events.

    Examples
    --------
    >>> from skdpsurv.pooling import plan_rounds
    >>> plan_rounds([2000, 5000], epsilon=1.0, n_features=5, most_rounds=3).round(3)
       rounds  epsilon_per_round  relative_error
    0       1              1.000           1.000
    1       2              0.500           1.094
    2       3              0.333           1.179
    """
    if not is_list(n_records) or len(n_records) == 0:
        raise ValueError("n_records must be a list of the sizes of sites.")
    for size in n_records:
        integer()("n_records", size)
    number_in(1e-9, 1e9)("epsilon", epsilon)
    integer()("n_features", n_features)
    integer(at_most=1000)("most_rounds", most_rounds)
    rounds = np.arange(1, int(most_rounds) + 1)
    h = np.array([float(size) for size in n_records]) / (RECORDS_PER_INFORMATION * n_features)
    noise = (n_features + 1.0) * (SENSITIVITY / float(epsilon)) ** 2 * rounds[:, None]
    precision = (h**2 / (noise + h)).sum(axis=1)
    return pd.DataFrame(
        {
            "rounds": rounds,
            "epsilon_per_round": float(epsilon) / rounds,
            "relative_error": np.sqrt(precision[0] / precision),
        }
    )
