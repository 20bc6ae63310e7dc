r"""Probabilities of how and when people leave a study, by group of risk, with their derivatives.

Over short blocks of time, events come at a rate :math:`\lambda` and censoring at a rate
:math:`\kappa`. Of those who enter a block a part :math:`e^{-D}`, :math:`D = \lambda + \kappa`,
stays, and of those who leave :math:`\lambda / D` have an event:

.. math::
    P(\text{event in block } j) = e^{-\sum_{i<j} D_i}\,\lambda_j f(D_j),\qquad
    f(D) = \frac{1 - e^{-D}}{D}.
"""

from __future__ import annotations

import numpy as np

from skdpsurv.types import FloatArray

#: Below this, f' is taken from its series.
SMALL_RATE = 1e-3


def exit_probabilities(
    event_rate: FloatArray,
    censoring_rate: FloatArray,
    slopes: FloatArray,
    in_band: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each way out, and its derivatives.

    Parameters
    ----------
    event_rate, censoring_rate : ndarray of shape (..., n_blocks)
        Of one block, not negative.
    slopes : ndarray of shape (n_params, ..., n_blocks)
        Derivatives of the first, by parameters that the second does not depend on.
    in_band : ndarray of shape (n_blocks, n_bands)
        1 where a block belongs to a band.

    Returns
    -------
    probability : ndarray of shape (..., 2 * n_bands + 1)
        Of an event in each band, of being censored in each band, of staying to the end.
    slopes : ndarray of shape (n_params, ..., 2 * n_bands + 1)
    """
    rate = np.maximum(event_rate + censoring_rate, 1e-12)
    so_far = np.cumsum(rate, axis=-1)
    entering = np.exp(rate - so_far)
    part = -np.expm1(-rate) / rate
    small = rate < SMALL_RATE
    safe = np.where(small, 1.0, rate)
    part_slope = np.where(
        small, -0.5 + rate / 3.0 - rate**2 / 8.0, (np.exp(-safe) * (safe + 1.0) - 1.0) / safe**2
    )
    event, censored = entering * event_rate * part, entering * censoring_rate * part
    end = np.exp(-so_far[..., -1:])

    slopes_so_far = np.cumsum(slopes, axis=-1)
    lost = slopes_so_far - slopes

    def leaving(rate: FloatArray, by_rate: FloatArray | float) -> FloatArray:
        own = part * by_rate + rate * part_slope * slopes
        return np.asarray(entering * (own - rate * part * lost)) @ in_band

    by_end = -end * slopes_so_far[..., -1:]
    probability = np.concatenate([event @ in_band, censored @ in_band, end], axis=-1)
    by_way = [leaving(event_rate, slopes), leaving(censoring_rate, 0.0), by_end]
    return probability, np.concatenate(by_way, axis=-1)
