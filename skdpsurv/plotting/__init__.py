"""Figures. They need matplotlib: ``pip install "skdpsurv[plot]"``."""

from __future__ import annotations

from skdpsurv.plotting.coefficient_plot import plot_coefficients
from skdpsurv.plotting.effect_plot import plot_effect, plot_effect_over_time
from skdpsurv.plotting.incidence_plot import plot_stacked_incidences
from skdpsurv.plotting.survival_curves import (
    plot_calibration,
    plot_risk_groups,
    plot_survival_curves,
)
from skdpsurv.plotting.univariate_plot import add_at_risk_counts, plot_univariate

__all__ = [
    "add_at_risk_counts",
    "plot_calibration",
    "plot_coefficients",
    "plot_effect",
    "plot_effect_over_time",
    "plot_risk_groups",
    "plot_stacked_incidences",
    "plot_survival_curves",
    "plot_univariate",
]
