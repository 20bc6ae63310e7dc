"""Example data: flchain, benchmark files, simulations."""

from __future__ import annotations

from skdpsurv.datasets.flchain import load_flchain, load_survival_csv
from skdpsurv.datasets.simulated import make_discrete_time_survival

__all__ = ["load_flchain", "load_survival_csv", "make_discrete_time_survival"]
