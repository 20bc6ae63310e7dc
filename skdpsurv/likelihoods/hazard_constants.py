"""Constants of the capped hazard loss (docs/proofs/discrete_hazard and docs/proofs/rounding)."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from skdpsurv.dp.clipping import CHUNK_ELEMENTS
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.links import Link
from skdpsurv.likelihoods.loss import LARGEST_BLOCK, SUM_DEPTH, SUM_ROWS


def loss_at_zero(link: Link, n_intervals: int, cap: float | None) -> float:
    r"""Return a bound on a record's loss at the coefficients 0; no loss is below 0.

    The loss of the intervals survived is at most :math:`q\varphi(-c) + Cc`, for any c.
    """
    shifts = np.linspace(0.0, 2.0 * np.log(n_intervals + 1.0), 65)
    if cap is None:
        shifts = shifts[:1]
    survived = n_intervals * link.survival(-shifts).value + (cap or 0.0) * shifts
    event = link.event(np.zeros(1)).value
    return float(survived.min() + event[0]) * (1.0 + 2.0**-40)


def extent(basis: FloatArray) -> tuple[float, float]:
    """Return the largest norm of a row, and the largest distance between two."""
    norms = np.sum(basis**2, axis=1)
    widest = 0.0
    for start in range(0, norms.size, 1024):
        part = slice(start, start + 1024)
        gaps = norms[part, None] + norms - 2.0 * (basis[part] @ basis.T)
        widest = max(widest, float(gaps.max()))
    return float(np.sqrt(norms.max())), float(np.sqrt(widest))


def gradient_sensitivity(
    radius: float,
    diameter: float,
    data_norm: float,
    cap: float,
    event_slope: float,
    weighted: bool = False,
    over_time: tuple[float, float] = (0.0, 0.0),
) -> float:
    """Return S = max over u, u' in {0, VH}, v, v' in {0, V} of the bound on a gradient difference.

    The baseline part is a difference of masses P = u + v' and N = u' + v on rows of the basis: of
    norm at most min(P, N) * diameter + |P - N| * radius. The covariate part has norm at most
    R (|u - v| + |u' - v'|). Weights at most 1 multiply the masses of the two records; the baseline
    part is convex in them, so that weights of 0 and 1 are the worst.

    ``over_time`` holds the largest norm g and distance d of functions that multiply covariates.
    Their products add (min(u, v) d + |u - v| g) R to each record, at right angles to R |u - v|.
    """
    reach, width = over_time

    def length(u: float, v: float) -> float:
        return math.hypot(u - v, min(u, v) * width + abs(u - v) * reach)

    worst = 0.0
    survived, event = (0.0, cap), (0.0, event_slope)
    weights = (0.0, 1.0) if weighted else (1.0,)
    for u, u2, v, v2 in product(survived, survived, event, event):
        covariates = data_norm * (length(u, v) + length(u2, v2))
        for w, w2 in product(weights, weights):
            plus, minus = w * u + w2 * v2, w2 * u2 + w * v
            baseline = min(plus, minus) * diameter + abs(plus - minus) * radius
            worst = max(worst, float(np.hypot(baseline, covariates)))
    return worst


#: Units that a slope is off by, relative to it, whatever the number of intervals, and for each of
#: them. The links' constants, of which the largest is that of the powers of cloglog.
SLOPE_ROUNDING, INTERVAL_ROUNDING = 1500.0, 4.0


def predictor_rounding(link: Link) -> float:
    """Return the units of 2^-53 that a predictor is off by, beside its two products.

    Its own rounding, that of a series' exponents, or that of a threshold, at which sums are off by
    twice 2 j + 1 and slopes by twice j; j is the link's ``roundings``.
    """
    j = link.roundings
    return max(12.0, 4.0 * (2.0 * j + 1.0) + 2.0 * j)


def gradient_rounding(n_intervals: int) -> float:
    """Return the units of 2^-53 S that a record's gradient and its place in sums are off by.

    Slopes; two roundings for weights; then either a record's sum over its intervals and the sum
    over records, or the baseline's sums over records (pieces, chunks) and over intervals.
    """
    q = float(n_intervals)
    slope = SLOPE_ROUNDING + INTERVAL_ROUNDING * q
    rows = min(SUM_ROWS, max(1, CHUNK_ELEMENTS // n_intervals))
    n_chunks = LARGEST_BLOCK / rows + 2.0
    baseline = 2.0 * SUM_ROWS + n_chunks + 2.0 * q
    return slope + 2.0 + max(baseline, SUM_DEPTH)
