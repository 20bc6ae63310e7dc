"""privacy_curve_audit: the delta that a pair of neighbours needs at the epsilon that is claimed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpsurv.audit.density_ratio import MINIMISERS, SAMPLERS
from skdpsurv.audit.gaussian_law import Gap, delta_of_normal, is_gaussian, simulated
from skdpsurv.audit.perturbation_law import problems_of
from skdpsurv.audit.subject import Subject, check_neighbours
from skdpsurv.checks import fraction, positive_int
from skdpsurv.privacy import silent_arithmetic

__all__ = ["PrivacyCurveResult", "privacy_curve_audit"]


@dataclass(frozen=True, repr=False)
class PrivacyCurveResult:
    """The delta of a pair of neighbours at the claimed epsilon.

    Parameters
    ----------
    delta : float
        What the pair needs: exactly, or a lower bound if ``confidence`` is below 1.
    claimed : float
        What the estimator claims.
    epsilon : float
        At which; as the estimator states it.
    mu : float
        How many deviations of the noise the neighbours are apart, all noise together; of a
        simulated descent, along the path without noise.
    confidence : float
        Probability, at least, with which ``delta`` does not exceed the pair's; 1 if it is exact.
    estimate : float
        Of the pair's delta, which ``delta`` bounds from below; the same if it is exact. Terms that
        are cut make it no larger, on average.
    law : str
        What was compared.
    audited, not_audited : tuple of str
        Which parts of what is released have been compared, and which have not.

    Notes
    -----
    The event that needs so much delta is that the log ratio of the densities exceeds epsilon.
    Another pair may need more.
    """

    delta: float
    claimed: float
    epsilon: float
    mu: float
    confidence: float
    estimate: float
    law: str
    audited: tuple[str, ...] = ()
    not_audited: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the claim was not refuted."""
        # Sums over thousands of records are rounded.
        return self.delta <= self.claimed * (1.0 + 1e-6)

    def __repr__(self) -> str:
        verdict = "not refuted" if self.passed else "REFUTED"
        needs = "=" if self.confidence == 1.0 else ">="
        return (
            f"PrivacyCurveResult(claim of delta={self.claimed:.4g} at epsilon={self.epsilon:g} "
            f"{verdict}: delta {needs} {self.delta:.4g}; {self.law}; "
            f"not audited: {', '.join(self.not_audited)})"
        )


def privacy_curve_audit(
    estimator: Any,
    data: tuple[Any, ...],
    neighbour: tuple[Any, ...],
    *,
    n_paths: int = 1000,
    confidence: float = 0.99,
) -> PrivacyCurveResult:
    r"""Find the delta that two neighbours need at the claimed epsilon, where noise is Gaussian.

    Parameters
    ----------
    estimator : estimator
        Not fitted, with a positive ``delta``, and ``method="noisy_gd"`` or ``"out_pert"``.
        DPDiscreteTimeSurvival without first look, recalibration and standard errors (shares of 0,
        or n * epsilon below 200); DPLogisticRegression; PrivateStackingClassifier on groups of
        columns that vote.
    data, neighbour : tuple
        Arguments of ``fit``: the same but for one record.
    n_paths : int, default=1000
        Descents in either direction, where they have to be simulated.
    confidence : float in (0, 1), default=0.99
        Of the bound, where descents are simulated.

    Returns
    -------
    PrivacyCurveResult

    Raises
    ------
    TypeError, ValueError
        If what the estimator releases is more than that, or has no Gaussian noise, or the data sets
        do not differ in exactly one record.

    See Also
    --------
    density_ratio_audit : Without a delta.
    audit_epsilon : For any estimator, by experiment.

    Notes
    -----
    **Exact.** Laws that are mu deviations apart need :math:`\delta(\epsilon) = \Phi(-\epsilon/\mu +
    \mu/2) - e^\epsilon\,\Phi(-\epsilon/\mu - \mu/2)` [1]_. Of output perturbation mu is
    :math:`\|f^* - f'^*\|/\sigma`, and of T noisy gradients :math:`\sqrt T\,\|\Delta\|/\sigma`, if
    the gradients of neighbours differ by the same :math:`\Delta` at every point: as where a label
    is flipped and ``max_residual`` is 1. They are compared at some 80 points. Of several models the
    squares of mu add up.

    **Simulated.** In other pairs :math:`\Delta` depends on where the noise has led. Descents are
    followed whose noise has a drift along it, and weighed for that; ``delta`` is a lower bound on
    what the pair needs, in the worse direction.

    The points of a descent, and what is made of them, follow from the noisy gradients. That as
    many gradients are drawn as the plan says, and by their law, is not looked at.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy:
       analytical calibration and optimal denoising", ICML 2018, arXiv 1805.06530.
    .. [2] A. Maurer and M. Pontil, "Empirical Bernstein bounds and sample variance penalization",
       COLT 2009, arXiv 0907.3740.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression
    >>> from skdpsurv.classification import Perturbation
    >>> from skdpsurv.audit import privacy_curve_audit
    >>> model = DPLogisticRegression(
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     method=Perturbation("noisy_gd", max_residual=1.0),
    ...     classes=[0, 1],
    ... )
    >>> result = privacy_curve_audit(model, ([[1.0]], [0]), ([[1.0]], [1]))
    >>> result.passed, result.confidence
    (True, 1.0)
    """
    subject = Subject.of(estimator)
    positive_int("n_paths", n_paths)
    if n_paths < 2:
        raise ValueError(f"n_paths must be at least 2, got {n_paths}.")
    error = 1.0 - fraction("confidence", confidence)
    if not isinstance(subject.step, MINIMISERS):
        known = ", ".join(kind.__name__ for kind in MINIMISERS)
        raise TypeError(f"estimator must be a {known}, got {type(subject.step).__name__}.")
    arguments = [subject.fit_arguments(data, "data"), subject.fit_arguments(neighbour, "neighbour")]
    check_neighbours(*arguments)
    models = [subject.seeded(None) for _ in arguments]
    with silent_arithmetic():
        problems = [problems_of(m, each) for m, each in zip(models, arguments, strict=True)]
        if subject.delta == 0.0 or not all(map(is_gaussian, problems[0])):
            raise ValueError(
                "delta of the estimator must be positive, and pay for Gaussian noise: here noise "
                "is Laplace. Use density_ratio_audit, or method='noisy_gd'."
            )
        gaps = [Gap(one, other) for one, other in zip(*problems, strict=True)]
        return _compared(gaps, subject, n_paths, error)


def _compared(gaps: list[Gap], subject: Subject, n_paths: int, error: float) -> PrivacyCurveResult:
    name = "minimiser" if len(gaps) == 1 else f"{len(gaps)} minimisers together"
    found = [gap.mu for gap in gaps]
    mus = [mu for mu in found if mu is not None]
    if len(mus) == len(found):
        mu = math.hypot(*mus)
        delta = estimate = delta_of_normal(subject.epsilon, mu)
        confidence, law = 1.0, f"law of the {name}, normal"
    else:
        rng = np.random.default_rng(0)  # of an experiment; nothing is released
        back = [Gap(gap.other, gap.one) for gap in gaps]
        ways = [simulated(way, subject.epsilon, n_paths, error / 2, rng) for way in (gaps, back)]
        delta, estimate, mu = max(ways)
        confidence, law = 1.0 - error, f"simulated law of the {name}"
    return PrivacyCurveResult(
        delta,
        subject.delta,
        subject.epsilon,
        mu,
        confidence,
        estimate,
        law,
        audited=(name,),
        not_audited=("number of the gradients drawn", SAMPLERS),
    )
