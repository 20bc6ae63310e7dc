"""Tuning constants from public numbers: the ridge and the cap on residuals."""

from __future__ import annotations

import math

__all__ = ["auto_max_residual", "auto_ridge"]

#: Ridge for rows in a unit ball; see docs/benchmarks/classification for how it was found.
RIDGE = 0.04
#: A centre that others have released is worth shrinking to.
TRANSFER_RIDGE = 3.0


def auto_ridge(n_records: int, n_params: int, epsilon: float) -> float:
    """Return kappa, for rows of norm 1."""
    return RIDGE * math.sqrt(n_records * n_params)


def auto_max_residual(n_records: int, n_params: int, epsilon: float) -> float:
    """Return c."""
    return 0.5
