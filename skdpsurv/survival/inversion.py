r"""Truths that an estimate is compatible with, where its errors depend on the truth.

An estimate less simulated errors is plausible as a truth if errors have the same law everywhere. If
they grow with the truth, an estimate that came out low has errors about it that are too short, and
what is plausible ends too soon on the side where the truth is. So estimates are simulated at
many truths :math:`\theta`, and their law is taken to be

.. math:: t = \theta + m + b\,(\theta - t_0) + z\,(1 + s\,(\theta - t_0)) ,

:math:`t_0` being the estimate at hand and z a deviation of unknown law, the same everywhere. Each
simulated z then gives the truth at which it would have led to :math:`t_0`,

.. math:: \theta = t_0 - \frac{m + z}{1 + b + s z} .

Quantiles of these are the ends of a test inverted: truths for which :math:`t_0` is not extreme.
"""

from __future__ import annotations

import math

import numpy as np

from skdpsurv.types import FloatArray

#: Errors further from their median than so many median deviations do not move slopes any more.
FAR = 6.0
#: Standard errors by which the slope of the spread is taken to the side that makes more plausible.
CAUTION = 1.0
#: How far the law of errors is extrapolated: bounds of the spread there, in parts of that at hand,
SPREADS = (0.4, 2.5)
#: and of the denominator above.
DENOMINATORS = (0.35, 1.2)


def plausible_truths(observed: float, truths: FloatArray, estimates: FloatArray) -> FloatArray:
    """Return, for each simulated error, the truth at which it would have led to ``observed``.

    Parameters
    ----------
    observed : float
        The estimate at hand.
    truths, estimates : ndarray of shape (n,)
        Where estimates were simulated, and they. If all truths are one, errors count as the same
        everywhere.

    Returns
    -------
    ndarray of shape (n,)
    """
    slope, growth, error = _slopes(truths, estimates - truths)
    distance = truths - observed
    errors = estimates - truths - slope * distance
    median = np.median(errors)
    deviation = (errors - median) / np.clip(1.0 + growth * distance, *SPREADS)
    steepness = slope + growth * deviation - CAUTION * error * np.abs(deviation)
    return np.asarray(observed - (median + deviation) / np.clip(1.0 + steepness, *DENOMINATORS))


def _slopes(truths: FloatArray, errors: FloatArray) -> tuple[float, float, float]:
    """Return what errors, and their spread in parts of it, rise by, and the latter's error."""
    step = truths - truths.mean()
    squares = float(step @ step)
    median = np.median(errors)
    reach = FAR * np.median(np.abs(errors - median))
    if squares <= 1e-12 or reach <= 0.0:
        return 0.0, 0.0, 0.0
    near = np.clip(errors, median - reach, median + reach)
    slope = float(step @ near) / squares
    rest = near - slope * step
    spread = np.abs(rest - np.median(rest))
    size = float(spread.mean())
    growth = float(step @ spread) / squares / size
    error = float(np.std(spread - growth * size * step)) / size / math.sqrt(squares)
    return slope, growth, error
