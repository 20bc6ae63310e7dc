"""
Which hazard ratios survive the noise
=====================================

Cox regression says with which precision each hazard ratio is known. So does a private fit with
``inference_share``: from its release alone, with intervals that allow for sampling and for noise.
Three of them, at epsilon = 3, 1 and 0.3, on the flchain study (7,874 residents of Olmsted County,
Minnesota, aged 50 or more), beside lifelines' Cox regression.

Run it with ``python hazard_ratios_flchain.py --output figure.png``.
"""

# %%
# Records and fits
# ----------------
# Bounds and horizon were stated without looking at the records. ``link="cloglog"`` is proportional
# hazards. Of each epsilon a fifth pays for what standard errors need.

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from matplotlib.figure import Figure

from skdpsurv import DPDiscreteTimeSurvival, PublicColumns
from skdpsurv.datasets import load_flchain
from skdpsurv.plotting import plot_coefficients
from skdpsurv.privacy import PrivacyAccountant

EPSILONS = (3.0, 1.0, 0.3)

parser = argparse.ArgumentParser(description="Hazard ratios, private and not.")
parser.add_argument("--output", type=Path, help="PNG, PDF or SVG to write")
output = parser.parse_args().output

data = load_flchain()
ledger = PrivacyAccountant(epsilon=sum(EPSILONS))
private = {
    f"private, ε = {epsilon:g}": DPDiscreteTimeSurvival(
        epsilon,
        link="cloglog",
        max_time=data.max_time,
        columns=PublicColumns(data.bounds, missing="midpoint"),
        inference_share=0.2,
        accountant=ledger,
    ).fit(data.X, data.y)
    for epsilon in EPSILONS
}
print(f"Spent: epsilon = {ledger.spent():g}\n")

# %%
# The same without privacy
# ------------------------
# On the same columns: clipped to the bounds, what is missing put in their middle.

frame = pd.DataFrame(
    {
        name: data.X[name].clip(low, high).fillna((low + high) / 2.0)
        for name, (low, high) in data.bounds.items()
    }
)
frame["time"] = np.clip(data.y["futime"], 0.5, data.max_time)
frame["death"] = data.y["death"] & (data.y["futime"] <= data.max_time)
cox = CoxPHFitter().fit(frame, "time", "death")

# %%
# Side by side
# ------------
# Hazard ratios per unit of each column. "all" is an interval that leaves everything open: noise
# hides how the column varies, or it is longer than a ratio of a thousand.


def shown(summary: pd.DataFrame) -> pd.Series:
    """Return hazard ratios with 95 % intervals, as text."""
    low, high = summary["exp(coef) lower 95%"], summary["exp(coef) upper 95%"]
    text = [
        f"{ratio:.2f} ({a:.2f} to {b:.2f})" if b < 1000 * a else "all"
        for ratio, a, b in zip(summary["exp(coef)"], low, high, strict=True)
    ]
    return pd.Series(text, index=summary.index)


models = {"Cox": cox, **private}
print(pd.DataFrame({name: shown(model.summary) for name, model in models.items()}).to_string())

# %%
# Figure
# ------
# Per ten years of age, and per unit of the others. Arrows mean that an interval goes on.

figure = Figure(figsize=(9.2, 6.0), layout="constrained")
plot_coefficients(
    models, scale=pd.Series({"age": 10.0}), limits=(0.2, 8.0), ax=figure.subplots()
).set_xlabel("Hazard ratio with 95 % interval, per ten years of age or unit of the column")
if output is not None:
    figure.savefig(output, dpi=100)
