"""A published model without this package: as a formula, in R, and per unit of the raw columns."""

from __future__ import annotations

from skdpsurv.scoring.formula import formula_of
from skdpsurv.scoring.units import units_of

__all__ = ["formula_of", "units_of"]
