"""Estimates that a release has of coefficients, and what two of them say together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdpsurv.dp.types import FloatArray
from skdpsurv.release import Release, released_array

_EVIDENCE = ("evidence_coef", "evidence_error")
#: Records agree with a prior if their estimate's part along it is at least so many of its standard
#: errors, and at least such a part of it (docs/benchmarks/sites).
LEAST_ERRORS, LEAST_PART = 0.5, 0.25


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""Unshrunk estimates of coefficients with standard errors, positive and perhaps infinite.

    A perturbed minimiser f of rows that carry the information h in each direction is, nearly,

    .. math:: f = \frac{h\,\theta + b + \sqrt h\,\xi}{h + \kappa} + e,

    with :math:`\xi` the sampling error, b the noise in the objective and e that on the minimiser.
    An estimate of :math:`\theta` and its variance are

    .. math::
        y = \frac{h + \kappa}{h} f, \qquad
        v = \frac{\operatorname{Var} b + h + (h + \kappa)^2 \operatorname{Var} e}{h^2}.

    A guess of h from public and released numbers will do to compare estimates that were made alike.
    All this is post-processing (docs/proofs/priors).
    """

    coef: FloatArray
    error: FloatArray

    @classmethod
    def of_minimiser(
        cls,
        minimiser: FloatArray,
        information: FloatArray | float,
        kappa: float,
        linear: float,
        output: float,
    ) -> Self:
        """Return the evidence of a minimiser, by h, kappa and the variances of b and e."""
        h = np.full(minimiser.shape, information, dtype=np.float64)
        total = h + kappa
        return cls(minimiser * total / h, np.sqrt((linear + h + total**2 * output) / h**2))

    def values(self) -> dict[str, FloatArray]:
        """Return the numbers of a release."""
        return dict(zip(_EVIDENCE, (self.coef, self.error), strict=True))

    @classmethod
    def of(cls, release: Release, shape: tuple[int, ...]) -> Self | None:
        """Return the evidence in a release, or None if it has none."""
        if not any(name in release.values for name in _EVIDENCE):
            return None
        coef, error = (released_array(release, name, shape) for name in _EVIDENCE)
        if not (error > 0.0).all():
            raise ValueError(f"values of the release must hold {_EVIDENCE[1]!r} that are positive.")
        return cls(coef, error)

    def scaled(self, factor: FloatArray | float) -> Evidence:
        """Return the evidence of coefficients times a positive factor."""
        return Evidence(self.coef * factor, self.error * factor)

    def rows(self) -> list[Evidence]:
        """Return the evidence about each row of coefficients, such as those of a cause."""
        pairs = zip(np.atleast_2d(self.coef), np.atleast_2d(self.error), strict=True)
        return [Evidence(*pair) for pair in pairs]

    def agrees(self, prior: Evidence) -> bool:
        r"""Return True if the estimate lies along a prior c.

        The part of the prior that the estimate shows is :math:`\rho = \sum c y / v \big/ \sum c^2 /
        v`, with the standard error :math:`(\sum c^2 / v)^{-1/2}`.
        """
        length, along = self._along(prior)
        return along > LEAST_ERRORS * math.sqrt(length) and along > LEAST_PART * length

    def with_prior(self, prior: Evidence) -> FloatArray:
        r"""Return the mean of both, weighted by their precisions.

        With q the mean of :math:`(y - \rho c)^2 / (v + t^2)`, the prior's variance :math:`t^2`
        grows by :math:`(q - 1)(v + t^2)` where q is above 1, as populations differ then.
        """
        known = np.isfinite(prior.error)
        length, along = self._along(prior)
        share = along / length if length > 0.0 else 0.0
        both = self.error**2 + np.where(known, prior.error, 0.0) ** 2
        rest = (self.coef - share * prior.coef)[known] ** 2 / both[known]
        excess = max(float(np.mean(rest)) - 1.0, 0.0) if known.any() else 0.0
        own = self.error**-2.0
        theirs = np.where(known, 1.0 / (prior.error**2 + excess * both), 0.0)
        return np.asarray((own * self.coef + theirs * prior.coef) / (own + theirs))

    def _along(self, prior: Evidence) -> tuple[float, float]:
        """Return the squared length of a prior, and the estimate's part along it, by precision."""
        known = np.isfinite(prior.error)
        c, weight = prior.coef[known], self.error[known] ** -2.0
        return float(np.sum(c * weight * c)), float(np.sum(c * weight * self.coef[known]))

    def posterior_mean(self, fitted: FloatArray, prior: Evidence | None) -> FloatArray:
        """Return coefficients as fitted, or together with a prior that these records agree with."""
        if prior is None or not self.agrees(prior):
            return fitted
        return self.with_prior(prior)
