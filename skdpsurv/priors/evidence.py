r"""What the records of a fit say of its coefficients by themselves, and how sure they are of it.

A perturbed minimiser f of rows that carry the information h in each direction is, nearly,

.. math:: f = \frac{h\,\theta + b + \sqrt h\,\xi}{h + \kappa} + e,

with :math:`\xi` what sampling does, b the noise in the objective and e that on the minimiser. So

.. math::
    y = \frac{h + \kappa}{h} f, \qquad
    v = \frac{\operatorname{Var} b + h + (h + \kappa)^2 \operatorname{Var} e}{h^2}

are an estimate of :math:`\theta` and its variance. h is not known; a guess from public and released
numbers will do where y is compared with estimates that were made alike. Whoever needs errors to
act on asks for them (``inference_share``).

All of this is computed from what was released: it costs nothing (docs/proofs/priors).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdpsurv.mechanisms.perturbation import Calibrated
from skdpsurv.release import Release, released_array
from skdpsurv.types import FloatArray

_NAMES = ("evidence_coef", "evidence_error")
#: Records agree with a prior if their estimate's part along it is at least so many of its standard
#: errors, and at least such a part of it (docs/benchmarks/priors).
LEAST_ERRORS, LEAST_PART = 0.5, 0.25


@dataclass(frozen=True, eq=False)
class Evidence:
    """Unshrunk estimates of coefficients, each with a standard error of its own.

    Parameters
    ----------
    coef, error : ndarray of one shape
        Errors are positive; infinite where nothing is known, and ``coef`` is 0 there.
    """

    coef: FloatArray
    error: FloatArray

    @classmethod
    def of_minimiser(
        cls, minimiser: FloatArray, information: FloatArray | float, calibration: Calibrated
    ) -> Self:
        """Return what a perturbed minimiser says.

        Parameters
        ----------
        minimiser : ndarray of shape (n_params,)
            Less what it was shrunk to.
        information : ndarray of shape (n_params,), or float
            h, as guessed; positive.
        calibration : Calibrated
        """
        h = np.broadcast_to(np.asarray(information, dtype=np.float64), minimiser.shape)
        linear, output = (
            0.0 if law is None else law.deviation**2
            for law in (calibration.linear, calibration.output)
        )
        steep = h + calibration.kappa
        variance = (linear + h + steep**2 * output) / h**2
        return cls(minimiser * steep / h, np.sqrt(variance))

    def values(self) -> dict[str, FloatArray]:
        """Return the numbers of a release."""
        return dict(zip(_NAMES, (self.coef, self.error), strict=True))

    @classmethod
    def of(cls, release: Release, shape: tuple[int, ...]) -> Self | None:
        """Return that of a release, or None if it has none.

        Raises
        ------
        ValueError
            If the release holds a part of one only, or one that is none.
        """
        if not any(name in release.values for name in _NAMES):
            return None
        coef, error = (released_array(release, name, shape) for name in _NAMES)
        if not (error > 0.0).all():
            raise ValueError(f"values of the release must hold {_NAMES[1]!r} that are positive.")
        return cls(coef, error)

    def scaled(self, factor: FloatArray | float) -> Evidence:
        """Return the same of coefficients times a factor, which is positive."""
        return Evidence(self.coef * factor, self.error * factor)

    def agrees(self, prior: Evidence) -> bool:
        r"""Say whether the estimate lies along a prior c, by one number.

        Of all that a prior may be wrong in, its direction does the harm. The part of it that the
        estimate shows is :math:`\rho = \sum c y / v \big/ \sum c^2 / v`, with the standard error
        :math:`(\sum c^2 / v)^{-1/2}`.
        """
        length, along = self._along(prior)
        return along > LEAST_ERRORS * math.sqrt(length) and along > LEAST_PART * length

    def with_prior(self, prior: Evidence) -> FloatArray:
        r"""Return the mean of both, weighed by their precisions.

        Where they differ by more than their errors have it, populations differ: with q the mean of
        :math:`(y - \rho c)^2 / (v + t^2)`, the prior's variance :math:`t^2` grows by
        :math:`(q - 1)(v + t^2)`. How long both are does not count: h is a guess.
        """
        known = np.isfinite(prior.error)
        length, along = self._along(prior)
        share = along / length if length > 0.0 else 0.0
        variance = self.error**2 + np.where(known, prior.error, 0.0) ** 2
        rest = (self.coef - share * prior.coef)[known] ** 2 / variance[known]
        excess = max(float(np.mean(rest)) - 1.0, 0.0) if known.any() else 0.0
        own = self.error**-2.0
        theirs = np.where(known, 1.0 / (prior.error**2 + excess * variance), 0.0)
        return np.asarray((own * self.coef + theirs * prior.coef) / (own + theirs))

    def _along(self, prior: Evidence) -> tuple[float, float]:
        """Return the squared length of a prior, and the estimate's part along it, by precision."""
        known = np.isfinite(prior.error)
        c, weight = prior.coef[known], self.error[known] ** -2.0
        return float(np.sum(c * weight * c)), float(np.sum(c * weight * self.coef[known]))

    def improved(self, fitted: FloatArray, prior: Evidence | None) -> FloatArray:
        """Return coefficients as fitted, or together with a prior that these records agree with.

        Parameters
        ----------
        fitted : ndarray
            The shrunk coefficients that this is the evidence of.
        prior : Evidence or None
        """
        if prior is None or not self.agrees(prior):
            return fitted
        return self.with_prior(prior)


def unknown(shape: tuple[int, ...]) -> Evidence:
    """Return evidence of nothing."""
    return Evidence(np.zeros(shape), np.full(shape, np.inf))
