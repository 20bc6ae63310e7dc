"""Bounds on one record's loss and gradient in the hazard likelihood.

Proofs: docs/proofs/discrete_hazard, and of the loss docs/proofs/rounding.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from skdpsurv.likelihoods.links import Link
from skdpsurv.types import FloatArray


def loss_at_zero(link: Link, n_intervals: int, cap: float | None) -> float:
    r"""Return a bound on the loss of a record at the coefficients 0; no loss is below 0.

    That of the intervals survived is the least over c of :math:`q\varphi(-c) + Cc`, so that any c
    gives a bound.
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
    weighed: bool = False,
) -> float:
    """Return S = max over u, u' in {0, VH}, v, v' in {0, V} of the bound on a gradient difference.

    The baseline part is a difference of masses P = u + v' and N = u' + v on rows of the basis: of
    norm at most min(P, N) * diameter + |P - N| * radius. The covariate part has norm at most
    R (|u - v| + |u' - v'|). Weights at most 1 multiply the masses of the two records; the baseline
    part is convex in them, so that weights of 0 and 1 are the worst.
    """
    worst = 0.0
    survived, event = (0.0, cap), (0.0, event_slope)
    weights = (0.0, 1.0) if weighed else (1.0,)
    for u, u2, v, v2 in product(survived, survived, event, event):
        covariates = data_norm * (abs(u - v) + abs(u2 - v2))
        for w, w2 in product(weights, weights):
            plus, minus = w * u + w2 * v2, w2 * u2 + w * v
            baseline = min(plus, minus) * diameter + abs(plus - minus) * radius
            worst = max(worst, float(np.hypot(baseline, covariates)))
    return worst
