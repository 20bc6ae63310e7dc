"""One release of what several sites have released, and what it costs to fit in rounds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from skdpsurv.data import PublicInputWarning
from skdpsurv.dp import PrivacyLeakWarning
from skdpsurv.dp.checks import choice, instance, integer, is_list, number_in
from skdpsurv.inference import Inference
from skdpsurv.pooling.estimates import pooled_estimate
from skdpsurv.pooling.joint_guarantee import doubts_of, joint_guarantee
from skdpsurv.pooling.kinds import ESTIMATED, check_tables, sum_of_tables
from skdpsurv.pooling.members import described, in_order
from skdpsurv.release import Release

#: Estimators whose tables add up.
COUNTED = ("DPKaplanMeierFitter", "DPAalenJohansenFitter")
#: How far one record moves a sum of gradients, in units of the bound on rows.
SENSITIVITY = 2.0
#: A record's information on one of d coefficients is about 1 / (8 d).
RECORDS_PER_INFORMATION = 8.0


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
    guarantee = joint_guarantee(members, mechanism, effects, disjoint)
    pooled = Release(members[0].estimator, guarantee, values=values, **described(members))
    pooled.to_estimator()  # or ValueError, where members held what no fit releases
    for doubt in doubts_of(members, disjoint):
        warnings.warn(doubt, PrivacyLeakWarning, stacklevel=2)
    for doubt in hidden:
        warnings.warn(doubt, PublicInputWarning, stacklevel=2)
    return pooled


def _hidden(
    given: Sequence[Release],
    members: Sequence[Release],
    estimates: Sequence[Inference],
    names: Sequence[str],
) -> list[str]:
    """Name the releases that do not know a parameter, in the order of the caller."""
    found = []
    known = {id(m): e.known for m, e in zip(members, estimates, strict=True)}
    for number, release in enumerate(given):
        lacking = dict.fromkeys(np.array(names)[~known[id(release)]].tolist())
        if lacking:
            what = ", ".join(lacking) if known[id(release)].any() else "all coefficients"
            found.append(
                f"releases[{number}] has no standard error of {what}: noise hides them, or it was "
                "fitted without inference_share. It counts with weight 0 there."
            )
    return found


def plan_rounds(
    n_records: Sequence[int], epsilon: float, n_features: int, *, most_rounds: int = 5
) -> pd.DataFrame:
    r"""Return how accurate a pooled coefficient is if sites spend epsilon in several rounds.

    A site may spend its epsilon in one fit, or in R rounds, each of which starts from the pooled
    model of the last (``prior=``). A site of n records has about the information
    :math:`h = n / (8 d)` on one of d coefficients, and the noise of a fit is as that on a sum with
    sensitivity S = 2. In R rounds with :math:`\epsilon / R` each, noise is drawn R times and
    averaged, while the people, and so what sampling did to them, stay the same:

    .. math:: v_R = \frac{(d + 1)\,S^2\,R / \epsilon^2 + h}{h^2}.

    Precisions :math:`1 / v_R` of sites add up. As :math:`v_R` grows with R, one round is always
    best where the same people answer in each; further rounds are for new records, or for new
    budgets.

    Parameters
    ----------
    n_records : sequence of int
        Size of each site; public.
    epsilon : float
        That each site spends in all rounds together.
    n_features : int
        d.
    most_rounds : int, default=5

    Returns
    -------
    pandas.DataFrame
        A row for each number of rounds: ``rounds``, ``epsilon_per_round``, and
        ``relative_error``, the expected standard error of an unshrunk pooled coefficient relative
        to that with one round.

    Raises
    ------
    TypeError, ValueError
        If an argument is none.

    Notes
    -----
    A guide for planning, from public numbers: what a fit's own standard error will be depends on
    how rows vary, and on how many have their event.

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
