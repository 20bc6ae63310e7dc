"""Pooling: one model of what several sites have released, which costs no budget."""

from __future__ import annotations

from skdpsurv.pooling.heterogeneity import heterogeneity, plot_forest
from skdpsurv.pooling.pool import plan_rounds, pool_releases

__all__ = ["heterogeneity", "plan_rounds", "plot_forest", "pool_releases"]
