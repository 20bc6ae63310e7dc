"""
How many records are needed?
============================

The price of privacy is paid in records. A private hazard model at ε = 1, of a growing part of the
flchain study, beside Cox regression of the same people; then with a quarter of the epsilon.
"""

# %%
# Parts of a study
# ----------------
# Where records times epsilon are below 50 for each column, a ``PublicInputWarning`` says that they
# are few: here, with a quarter of the epsilon and up to 1,000 people.

import matplotlib.pyplot as plt
import numpy as np
from sksurv.linear_model import CoxPHSurvivalAnalysis

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PublicColumns
from skdpsurv.datasets import load_flchain

REPETITIONS = 5  # draws of people, and of noise
SIZES = [500, 1000, 2000, 4000]
EPSILONS = [1.0, 0.25]

data = load_flchain()
columns = PublicColumns(data.bounds, missing="midpoint")
rng = np.random.default_rng(0)  # deals people out; draws no noise
free = PrivacyAccountant()  # without a limit: these records are published anyway

scores = {(kind, n): [] for kind in ("Cox", *EPSILONS) for n in SIZES}
for _ in range(REPETITIONS):
    lot = rng.permutation(len(data.X))
    test = lot[-2000:]
    X_test, y_test = data.X.iloc[test], data.y[test]
    for n in SIZES:
        X, y = data.X.iloc[lot[:n]], data.y[lot[:n]]
        rows = PublicColumns(data.bounds, missing="midpoint").fit(X)
        cox = CoxPHSurvivalAnalysis(alpha=0.1).fit(rows.transform(X), y)
        scores["Cox", n].append(cox.score(rows.transform(X_test), y_test))
        for epsilon in EPSILONS:
            model = DPDiscreteTimeSurvival(
                epsilon, max_time=data.max_time, columns=columns, accountant=free
            )
            scores[epsilon, n].append(model.fit(X, y).score(X_test, y_test))
print(f"Spent: epsilon = {free.spent():g}, in {REPETITIONS * len(SIZES) * len(EPSILONS)} fits\n")

# %%
# Median and range
# ----------------

fig, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), sharey=True, layout="constrained")
looks = {
    "Cox": ("Cox, not private", "0.25", "--"),
    1.0: ("private, ε = 1", "#0072B2", "-"),
    0.25: ("private, ε = 0.25", "#D55E00", "-"),
}
for kind, (name, color, style) in looks.items():
    values = np.array([scores[kind, n] for n in SIZES])
    left.fill_between(SIZES, values.min(axis=1), values.max(axis=1), color=color, alpha=0.13, lw=0)
    left.plot(SIZES, np.median(values, axis=1), style, marker="o", color=color, label=name)
    if kind != "Cox":
        product = np.array(SIZES) * kind
        right.plot(product, np.median(values, axis=1), marker="o", color=color, label=name)
for ax, label in ((left, "Number of records"), (right, "Number of records × ε")):
    ax.set_xscale("log")
    ticks = [125, 250, *SIZES] if ax is right else SIZES
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel(label)
    ax.grid(color="0.92")
    ax.spines[["top", "right"]].set_visible(False)
left.set_ylabel("C-index on 2,000 other people")
left.legend(frameon=False, loc="lower right")
left.set_title("C-index by number of records", fontsize="medium")
right.set_title("C-index by number of records times ε", fontsize="medium")

# %%
# Bands hold all draws. Without privacy a few hundred people are enough for this ranking, and
# more hardly help; with it, the loss is large with a few hundred and small with thousands. On
# the right the two private lines are about one: a quarter of epsilon needs four times the people.
# :doc:`/user_guide/choosing_epsilon` answers the question before there is a record.
#
# **Count records times epsilon: half the epsilon needs about twice the people.**
