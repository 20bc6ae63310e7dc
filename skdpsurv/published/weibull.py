"""Weibull distributions as Nguyen and Hui (2017) fit them: by their ladder, and by baselines."""

from __future__ import annotations

from typing import Any, ClassVar

from skdpsurv.checks import Check, choice, integer, optional
from skdpsurv.privacy import PrivacyAccountant
from skdpsurv.published.weibull_plans import EXACT, LAPLACE, PUBLISHED, SAMPLE_AGGREGATE
from skdpsurv.shape import Shape
from skdpsurv.survival.weibull_curve import WeibullCurve
from skdpsurv.survival.weibull_setting import Way

__all__ = ["LaplaceWeibullFitter", "PublishedWeibullFitter", "SampleAggregateWeibullFitter"]

LADDERS = {"published": PUBLISHED, "exact": EXACT}


class PublishedWeibullFitter(WeibullCurve):
    """Weibull distribution by the paper's ladder: first the shape, then the scale.

    Parameters
    ----------
    epsilon, max_time, omega, max_shape, alpha, random_state, accountant
        As for :class:`~skdpsurv.DPWeibullFitter`.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape; "auto" is 0.5.
    rungs : {"published", "exact"}, default="published"
        The paper's bounds on how far records can move the shape, or their exact extremes.
    n_rungs : int or None, default=None
        Where the ladder ends: all shapes beyond are equally likely. None: where they hardly matter
        any more.

    Attributes
    ----------
    rho_, lambda_, median_survival_time_, guarantee_, release_
        As for :class:`~skdpsurv.DPWeibullFitter`.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorems and sensitivities:
    docs/proofs/ladder. The paper knows of no times before ``max_time * exp(-omega)``: they are
    raised to it and count as exact, and shapes below 0.7 or so come out too large. With exact rungs
    they are taken for what they are.

    References
    ----------
    .. [1] T. T. Nguyen and S. C. Hui, "Privacy-preserving mechanisms for parametric survival
       analysis with Weibull distribution", TrustCom 2017, arXiv 1708.04517.

    Examples
    --------
    >>> from skdpsurv.datasets import load_flchain
    >>> from skdpsurv.published import PublishedWeibullFitter
    >>> y = load_flchain().y
    >>> fitter = PublishedWeibullFitter(max_time=5200.0, rungs="exact")
    >>> bool(0.8 < fitter.fit(y["futime"], y["death"]).rho_ < 1.1)
    True
    """

    _rules: ClassVar[dict[str, Check]] = {
        "rungs": choice(*LADDERS),
        "n_rungs": optional(integer()),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_time: float | None = None,
        omega: float = 5.0,
        max_shape: float = 10.0,
        shape_fraction: float | str = "auto",
        rungs: str = "published",
        n_rungs: int | None = None,
        alpha: float = 0.05,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            max_time=max_time,
            omega=omega,
            max_shape=max_shape,
            shape_fraction=shape_fraction,
            alpha=alpha,
            random_state=random_state,
            accountant=accountant,
        )
        self.rungs = rungs
        self.n_rungs = n_rungs

    @property
    def _way(self) -> Way:
        n_rungs = None if self.n_rungs is None else int(self.n_rungs)
        return LADDERS[self.rungs]._replace(n_rungs=n_rungs)

    def _stated(self, shape: Shape) -> dict[str, Any]:
        n_rungs = self._way.n_rungs
        return {**super()._stated(shape), "rungs": self.rungs, "n_rungs": n_rungs}


class LaplaceWeibullFitter(WeibullCurve):
    """Weibull distribution by Laplace noise on the maximum likelihood estimates: a baseline.

    The noise has the whole range of the parameters for a sensitivity.

    Parameters
    ----------
    epsilon, max_time, omega, max_shape, alpha, random_state, accountant
        As for :class:`~skdpsurv.DPWeibullFitter`; times before ``max_time * exp(-omega)`` are
        raised to it.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape; "auto" is 0.5.

    Attributes
    ----------
    rho_, lambda_, median_survival_time_, guarantee_, release_
        As for :class:`~skdpsurv.DPWeibullFitter`.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem: Laplace mechanism,
    docs/proofs/ladder.
    """

    _way = LAPLACE


class SampleAggregateWeibullFitter(WeibullCurve):
    """Weibull distribution by noisy means of the estimates of blocks of records: a baseline.

    Each block holds about 500 records; the noise on a mean has the whole range of the parameters,
    divided by the number of blocks, for a sensitivity.

    Parameters
    ----------
    epsilon, max_time, omega, max_shape, alpha, random_state, accountant
        As for :class:`~skdpsurv.DPWeibullFitter`; times before ``max_time * exp(-omega)`` are
        raised to it.
    shape_fraction : float or "auto", default="auto"
        Share of epsilon that is spent on the shape; "auto" is 0.5.

    Attributes
    ----------
    rho_, lambda_, median_survival_time_, guarantee_, release_
        As for :class:`~skdpsurv.DPWeibullFitter`.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem: Laplace mechanism on means of
    disjoint blocks, docs/proofs/ladder.

    References
    ----------
    .. [1] K. Nissim, S. Raskhodnikova and A. Smith, "Smooth sensitivity and sampling in private
       data analysis", STOC 2007.
    """

    _way = SAMPLE_AGGREGATE
