"""
What goes wrong in silence
==========================

A private fit cannot tell that your bounds are wrong: that would be a message about the records. It
clips, adds noise, and returns a model. Four ways to lose the flchain study, three of them without a
warning. (What public numbers tell by themselves is asked about: bounds that span a million, or rows
of which nothing is stated at all, the fourth way.)
"""

# %%
# The right way, and four others
# ------------------------------
# Each entry says what is public: columns, and the horizon.

import matplotlib.pyplot as plt
import numpy as np

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PublicColumns
from skdpsurv.datasets import load_flchain

REPETITIONS = 4  # fits of each

data = load_flchain()
lot = np.random.default_rng(0).permutation(len(data.X))
train, test = lot[:5500], lot[5500:]
filled = data.X.fillna(2.0)  # for rows that are passed without bounds

usual = {"columns": PublicColumns(data.bounds, missing="midpoint"), "max_time": data.max_time}
wide = {name: (0.0, 100.0 * high) for name, (_, high) in data.bounds.items()}
shifted = data.bounds | {"age": (0.0, 50.0)}
settings = {
    "bounds and horizon of the protocol": (usual, data.X),
    "horizon in years, times in days": (usual | {"max_time": 14.2}, data.X),
    "bounds of age end where people's begin": (
        usual | {"columns": PublicColumns(shifted, missing="midpoint")},
        data.X,
    ),
    "bounds a hundred times too wide": (
        usual | {"columns": PublicColumns(wide, missing="midpoint")},
        data.X,
    ),
    "raw columns, no bounds at all": (usual | {"columns": None}, filled),
}

# %%
# No message, and full price
# --------------------------
# Only of raw columns without bounds a ``PublicInputWarning`` says that they will be cut down, as
# that nothing was stated is public.

ledger = PrivacyAccountant(epsilon=100.0)
scores = {}
for name, (public, X) in settings.items():
    scores[name] = [
        DPDiscreteTimeSurvival(1.0, accountant=ledger, **public)
        .fit(X.iloc[train], data.y[train])
        .score(X.iloc[test], data.y[test])
        for _ in range(REPETITIONS)
    ]
    print(f"{name:40} C-index {np.median(scores[name]):.2f}")
print(f"\nSpent: epsilon = {ledger.spent():g}: each fit was charged, the useless ones, too")

# %%
# What was lost
# -------------

fig, ax = plt.subplots(figsize=(8.2, 3.4), layout="constrained")
for place, values in enumerate(scores.values()):
    color = "#0072B2" if place == 0 else "#D55E00"
    ax.plot(values, [place] * len(values), "o", color=color, alpha=0.6)
    ax.plot([np.median(values)] * 2, [place - 0.3, place + 0.3], color=color, linewidth=2.5)
ax.axvline(0.5, color="black", linewidth=1)
ax.text(0.5, -0.55, "a coin ", ha="right", va="center", fontsize=9)
ax.set_yticks(range(len(scores)), list(scores))
ax.set_ylim(len(scores) - 0.5, -0.8)
ax.set_xlim(0.1, 0.9)
ax.set_xlabel("C-index on other people; a dot for each fit at ε = 1, strokes: medians")
ax.set_title("C-index of a right and of four wrong descriptions of one study", fontsize="medium")
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(axis="y", length=0)

# %%
# None of these fits fails, and none says what became of the records: how many values were clipped
# is private, and a warning would tell it. Some do badly always, others by chance: without bounds a
# fit may come out nearly right, or worse than a coin, and from one fit nobody can tell which. So
# what is public is to be checked in public: units and bounds against the protocol, and with made-up
# rows before the real ones (:doc:`/user_guide/choosing_epsilon` makes some up). The guarantee holds
# in each of the five cases: wrong bounds cost accuracy, and never privacy.
#
# **The data may not warn you, so the protocol must: check bounds and units before the fit, with
# somebody else.**
