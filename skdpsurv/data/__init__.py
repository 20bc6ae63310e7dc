"""Preprocessing that learns nothing from private data."""

from __future__ import annotations

from skdpsurv.data.bounds import PublicBoundsScaler
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.shape import PublicInputWarning

__all__ = ["PublicBoundsScaler", "PublicColumns", "PublicInputWarning"]
