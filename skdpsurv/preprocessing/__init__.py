"""Preprocessing that learns nothing from private data."""

from __future__ import annotations

from skdpsurv.preprocessing.public_bounds import PublicBoundsScaler

__all__ = ["PublicBoundsScaler"]
