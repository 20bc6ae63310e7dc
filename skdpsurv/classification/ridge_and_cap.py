r"""Tuning constants from public numbers: the ridge, and the cap on residuals.

Found on simulated and real data sets by their accuracy on rows that were held out, with n, the
number of columns and epsilon as all that a rule may know; docs/benchmarks/classification says how
and on which. Rows have norm 1; sensitivities and ridges of other rows scale with the square.

Noise moves a coefficient by about its size over the curvature, so the ridge that balances noise
against shrinkage grows with the number of columns over epsilon and falls with n. Powers below those
that theory gives for isotropic rows, :math:`(2cd/(\epsilon\sqrt n))^2`, did better on real ones,
whose columns are related.
"""

from __future__ import annotations

import math

__all__ = [
    "CURVATURE_SHARE",
    "TRANSFER_RIDGE",
    "VOTE_RIDGE",
    "auto_max_residual",
    "auto_ridge",
    "output_ridge",
]

#: Share of epsilon that the curvature term of objective perturbation may use.
CURVATURE_SHARE = 0.2
#: Objective perturbation: kappa = RIDGE 2c d^1.25 / (n^0.5 epsilon^1.5).
RIDGE = 1.25
#: Output perturbation with many records: kappa over the root of n times the noise.
OUTPUT_SHARE = 0.04
#: Groups of columns whose models vote want so many times the ridge: their errors add up, and a
#: model that knows little should vote little.
VOTE_RIDGE = 2.0
#: A centre that others have released is worth shrinking to.
TRANSFER_RIDGE = 5.0
#: max_residual="auto" is 0.5 up to n epsilon / d = 256, and 1 from 1024.
RESIDUAL_SCALE = 1.0 / 32.0


def auto_max_residual(n_records: int, n_features: int, epsilon: float) -> float:
    """Return c: 1/2, or more where there is little noise to halve."""
    signal = n_records * epsilon / n_features
    return min(max(RESIDUAL_SCALE * math.sqrt(signal), 0.5), 1.0)


def auto_ridge(n_records: int, n_params: int, epsilon: float, max_residual: float) -> float:
    """Return kappa for objective perturbation."""
    return RIDGE * 2.0 * max_residual * n_params**1.25 / (math.sqrt(n_records) * epsilon**1.5)


def output_ridge(n_records: int, n_params: int, epsilon: float, max_residual: float) -> float:
    """Return kappa for output perturbation, from the noise that a margin feels.

    It is that over kappa, and shrinkage is kappa over n, so that with many records the best kappa
    is a share of the root of n times the noise; with few it must not leave too much noise.
    """
    noise = 2.0 * max_residual * math.sqrt(n_params) / epsilon
    few = 1.5 * noise * (1.0 + 10.0 * noise / math.sqrt(n_records))
    return max(few, OUTPUT_SHARE * math.sqrt(n_records * noise))
