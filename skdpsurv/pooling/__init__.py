"""Pooling: one model of what several sites have released, which costs no budget."""

from __future__ import annotations

from skdpsurv.pooling.forest_plot import plot_forest
from skdpsurv.pooling.heterogeneity import heterogeneity
from skdpsurv.pooling.pool import pool_releases
from skdpsurv.pooling.rounds import plan_rounds

__all__ = ["heterogeneity", "plan_rounds", "plot_forest", "pool_releases"]
