"""A published model without this package: as a formula, and per unit of the raw columns."""

from __future__ import annotations

from skdpsurv.scoring.script import formula_of
from skdpsurv.scoring.units import units_of

__all__ = ["formula_of", "units_of"]
