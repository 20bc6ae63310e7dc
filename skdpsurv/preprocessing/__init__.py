"""Preprocessing that learns nothing from private data."""

from __future__ import annotations

from skdpsurv.preprocessing.public_bounds import PublicBoundsScaler
from skdpsurv.preprocessing.public_columns import PublicColumns
from skdpsurv.preprocessing.public_doubts import PublicInputWarning

__all__ = ["PublicBoundsScaler", "PublicColumns", "PublicInputWarning"]
