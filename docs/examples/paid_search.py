"""
A search that pays for its choice
=================================

Which settings are best? A grid search over private fits pays for each fit, and its choice is made
by scores without noise, which nobody pays for. A private search states one price beforehand, for
the model and for the choice.
"""

# %%
# Six candidates
# --------------
# Images of the digits 0 and 8, and a penalty from far too small to far too large.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import normalize

from skdpsurv import DPLogisticRegression, PrivacyAccountant, PrivateSearchCV

REPETITIONS = 5  # times to draw all noise anew
EPSILON = 2.0  # of a whole search

X, y = load_digits(return_X_y=True)
here = np.isin(y, [0, 8])
X, y = normalize(X[here]), y[here]  # each row to length 1, by itself
lot = np.random.default_rng(0).permutation(len(y))
train, test = lot[:250], lot[250:]
grid = {"alpha": [0.01, 1.0, 10.0, 100.0, 1e3, 1e4]}

# %%
# Two searches with one budget
# ----------------------------
# Five folds and six candidates make thirty fits, and one more at the end: each has a thirty-first
# of the budget. A ``PublicInputWarning`` says that 250 images are few for 64 coefficients: noise
# hides what each of them says, and predictions add them up.

n_fits = 5 * len(grid["alpha"]) + 1
ledger = PrivacyAccountant(epsilon=2 * EPSILON)
plain = GridSearchCV(
    DPLogisticRegression(EPSILON / n_fits, data_norm=1.0, classes=[0, 8], accountant=ledger),
    grid,
    cv=KFold(5),
    error_score="raise",
).fit(X[train], y[train])
print(f"{n_fits} fits of the grid search: epsilon = {ledger.spent():.3f}, the choice not counted")
paid = PrivateSearchCV(
    DPLogisticRegression(data_norm=1.0, classes=[0, 8]), grid, epsilon=EPSILON, accountant=ledger
).fit(X[train], y[train])
print(f"Spent: epsilon = {ledger.spent():.3f} after the private search, its choice included")
print("Chosen:", plain.best_params_, "and", paid.best_params_)

# %%
# Is it worth it?
# ---------------
# The same many times, beside the default, which follows from public numbers and needs no search.

scores = {
    "grid search,\nevery fit charged": [],
    "private search": [],
    "the default,\nno search": [],
}
public = {"data_norm": 1.0, "classes": [0, 8]}
for _ in range(REPETITIONS):
    searches = [
        GridSearchCV(DPLogisticRegression(EPSILON / n_fits, **public), grid, cv=KFold(5)),
        PrivateSearchCV(DPLogisticRegression(**public), grid, epsilon=EPSILON),
        DPLogisticRegression(EPSILON, **public),
    ]
    for values, search in zip(scores.values(), searches, strict=True):
        values.append(search.fit(X[train], y[train]).score(X[test], y[test]))

fig, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
for place, (values, color) in enumerate(
    zip(scores.values(), ("#D55E00", "#0072B2", "#009E73"), strict=True)
):
    ax.plot(values, [place] * len(values), "o", color=color, alpha=0.55)
    ax.plot([np.median(values)] * 2, [place - 0.3, place + 0.3], color=color, linewidth=2.5)
ax.set_yticks(range(3), list(scores))
ax.set_ylim(2.5, -0.5)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_xlabel("Accuracy on other images; a dot for each run, strokes: medians")
ax.set_title("Accuracy of two searches and of the default, all at ε = 2 in all", fontsize="medium")
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(axis="y", length=0)

# %%
# The private search is ahead of the grid search, whose fits have hardly any epsilon each, and the
# default is ahead of both. :doc:`/user_guide/privacy` says what a search costs, and
# :doc:`/benchmarks/evaluation` has more data.
#
# **A good setting that is known beforehand beats a search; where there must be one, let it pay once
# for all.**
