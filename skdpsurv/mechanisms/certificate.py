r"""What a computed gradient says of the true one: a theorem about the program.

A solver of :math:`F(f) = \sum_i \ell(f; z_i) + \tfrac\kappa2\|f - c\|^2 + \langle b, f\rangle` sees
gradients in double precision. At a point no further than M from the centre c they are within

.. math::
    E = 2^{-53}\Big(n\big[k S + m\,\tau(\|c\| + M)\big] + 6\big[\kappa(2M + \|c\|) + \|b\| + nS\big]
        + 2(n\tau + \kappa)(M + \|c\|)\Big)

of the true one (docs/proofs/rounding), with k and m of the likelihood's
:class:`~skdpsurv.likelihoods.base.PrivacyConstants`. All that surely has a smaller value of F than
the centre has, is within

.. math::
    M = \min\Big(\frac{2\|b\|}\kappa + \sqrt{\frac{2n\ell_c}\kappa},\
        \frac{2(nS + \|b\|)}\kappa\Big)

with :math:`\ell_c` the largest loss of a record at c. So a computed gradient of norm at most 3E, at
a point within M, has a true one below :math:`g = 4E`; and there is always such a point, which
gradient descent from the centre finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from skdpsurv.data.blocks import MOST_LEVELS
from skdpsurv.likelihoods.base import PrivacyConstants

UNIT = 2.0**-53
#: What products of roundings, and those of the bound itself, add to it: all are below 1e-6.
SECOND_ORDER = 1.001
#: Of g: no certificate asks for less.
LEAST_TOLERANCE = 1e-9
#: Part of g that a computed gradient may have; the rest is for rounding.
COMPUTED_PART = 0.75


@dataclass(frozen=True)
class Center:
    """What is known of the centre c beforehand; public.

    Parameters
    ----------
    norm : float, default=0.0
        Bound on its norm.
    loss : float or None, default=None
        Bound on the loss of any record there, less the least anywhere. None: what follows from the
        norm.
    """

    norm: float = 0.0
    loss: float | None = None


ZERO = Center()


@dataclass(frozen=True)
class Certificate:
    """What a point must satisfy to be released; public.

    Parameters
    ----------
    tolerance : float
        g: the norm that the true gradient surely does not exceed.
    reach : float
        M: how far from the centre the point may be.
    """

    tolerance: float
    reach: float

    @property
    def computed(self) -> float:
        """The norm that the computed gradient must not exceed."""
        return COMPUTED_PART * self.tolerance


def gradient_error(
    constants: PrivacyConstants,
    n_records: int,
    center_norm: float,
    reach: float,
    kappa: float = 0.0,
    noise_norm: float = 0.0,
) -> float:
    """Return E: how far the computed gradient may be from the true one.

    Parameters
    ----------
    constants : PrivacyConstants
    n_records : int
        n, public.
    center_norm, reach : float
        Norm of c, and M, the largest distance from it.
    kappa, noise_norm : float
        Ridge, and a bound on the norm of the linear term.

    Returns
    -------
    float
        For the sum of records alone where ``kappa`` and ``noise_norm`` are 0.
    """
    total = n_records * constants.gradient_sensitivity
    curvature = n_records * constants.hessian_trace
    records = (constants.rounding + MOST_LEVELS) * total
    predictors = constants.predictor_rounding * curvature * (center_norm + reach)
    ridge = 6.0 * (kappa * (2.0 * reach + center_norm) + noise_norm + total)
    # Half for the point that a step rounds to, half for the sum with the centre.
    step = 2.0 * (curvature + kappa) * (reach + center_norm)
    return SECOND_ORDER * UNIT * (records + predictors + ridge + step)


def largest_distance(
    constants: PrivacyConstants, n_records: int, kappa: float, noise_norm: float, center: Center
) -> float:
    """Return M: the distance from the centre of all points where F is no larger than there."""
    slope = constants.gradient_sensitivity
    # By slopes alone, or by losses, which are finite at the centre and nowhere negative.
    distance = 2.0 * (n_records * slope + noise_norm) / kappa
    loss = constants.loss_at_zero + slope * center.norm if center.loss is None else center.loss
    if math.isfinite(loss):
        by_loss = 2.0 * noise_norm / kappa + math.sqrt(2.0 * n_records * loss / kappa)
        distance = min(distance, by_loss)
    return SECOND_ORDER * distance


def certificate(
    constants: PrivacyConstants,
    n_records: int,
    kappa: float,
    noise_norm: float,
    center: Center = ZERO,
) -> Certificate:
    """Return what the released point of a minimisation must satisfy, from public numbers.

    Parameters
    ----------
    constants : PrivacyConstants
    n_records : int
    kappa : float
        Ridge strength, in the sum over records; positive.
    noise_norm : float
        Bound on the norm of the linear term b.
    center : Center, default=ZERO

    Returns
    -------
    Certificate
    """
    reach = largest_distance(constants, n_records, kappa, noise_norm, center)
    error = gradient_error(constants, n_records, center.norm, reach, kappa, noise_norm)
    return Certificate(max(LEAST_TOLERANCE, error / (1.0 - COMPUTED_PART)), reach)


def certifiable_ridge(tolerance: Callable[[float], float], least: float, ratio: float) -> float:
    """Return a ridge at which g is at most ``ratio`` times it: nearly the least one; or inf.

    There is none where the centre is so far, for so small a ratio, that its own rounding is more:
    plans refuse such a ridge before anything is charged.

    Parameters
    ----------
    tolerance : callable
        g as a function of the ridge, whose ratio to the ridge falls.
    least : float
        Positive: the ridge is no smaller.
    ratio : float
    """
    if tolerance(least) <= ratio * least:
        return least
    low, high = least, 2.0 * least
    while tolerance(high) > ratio * high:
        low, high = high, 2.0 * high
        if math.isinf(high):
            return high
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if tolerance(middle) > ratio * middle else (low, middle)
    return high
