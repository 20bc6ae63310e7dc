"""
Is predicted risk right?
========================

A model ranks people well. Are its probabilities right, too? A model of a very small epsilon and one
of a comfortable one, both evaluated on records that are private themselves.
"""

# %%
# Two models
# ----------
# They are made of most of the flchain study. The others are patients of another hospital, so to
# speak.

import matplotlib.pyplot as plt
import numpy as np

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PublicColumns
from skdpsurv.datasets import load_flchain
from skdpsurv.evaluation import private_survival_metrics
from skdpsurv.plotting import plot_calibration

data = load_flchain()
lot = np.random.default_rng(0).permutation(len(data.X))
here, there = lot[:6600], lot[6600:]
columns = PublicColumns(data.bounds, missing="midpoint")

ours = PrivacyAccountant(epsilon=2.1)
models = {
    f"model of ε = {epsilon:g}": DPDiscreteTimeSurvival(
        epsilon, max_time=data.max_time, columns=columns, accountant=ours
    ).fit(data.X.iloc[here], data.y[here])
    for epsilon in (0.1, 2.0)
}

# %%
# Scores leak, so they are paid for
# ---------------------------------
# A C-index or a calibration plot of private records is a statistic of them. The other hospital has
# a ledger of its own, and releases noisy measures with intervals for sampling and for noise.

theirs = PrivacyAccountant(epsilon=2.0)
found = {
    name: private_survival_metrics(
        model,
        data.X.iloc[there],
        data.y[there],
        epsilon=1.0,
        max_time=3652.0,  # ten years: most people are followed so far
        accountant=theirs,
    )
    for name, model in models.items()
}
print(f"Spent: epsilon = {ours.spent():g} here, {theirs.spent():g} there\n")
for name, evaluation in found.items():
    print(name, "\n", evaluation.summary.round(3).to_string(), "\n")

# %%
# Predicted and observed
# ----------------------
# Each point is a fifth of the people, by predicted risk. On the diagonal, prediction is right.

fig, axes = plt.subplots(1, 2, figsize=(8.8, 4.4), layout="constrained")
for ax, (name, evaluation) in zip(axes, found.items(), strict=True):
    plot_calibration(evaluation, ax=ax, legend=False)
    ax.set_title(f"{name}, C-index {evaluation.c_index.value:.2f}", fontsize="medium")
fig.suptitle("Observed and predicted ten-year survival in five risk groups, two private models")

# %%
# The two C-indices are mostly within a few hundredths of each other. The risks that ε = 0.1
# predicts are often off by a fifth and more, in one direction or the other, as the level itself is
# noisy; those of ε = 2 are near the diagonal. Part of each epsilon was spent on a recalibration,
# which cannot do better than its own noise. :doc:`/user_guide/evaluation` lists the measures, and
# :doc:`/benchmarks/absolute_risk` has more data.
#
# **A good C-index says nothing of the probabilities: look at calibration, and pay for the look.**
