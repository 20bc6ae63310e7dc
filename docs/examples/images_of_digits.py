"""
Images of 0 and 8: accuracy over epsilon
========================================

Classification where every image counts: 250 images of 64 pixels, read as 0 or 8. Private logistic
regression at five epsilons, and what its coefficients look like.
"""

# %%
# Rows of length 1
# ----------------
# A private linear model needs a bound on the length of a row. Each image is scaled to length 1 by
# itself: nothing is learned from the others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from skdpsurv import DPLogisticRegression, PrivacyAccountant

REPETITIONS = 10  # fits at each epsilon
EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]

X, y = load_digits(return_X_y=True)
here = np.isin(y, [0, 8])
X, y = normalize(X[here]), y[here]
lot = np.random.default_rng(0).permutation(len(y))
train, test = lot[:250], lot[250:]

# %%
# One fit is what you would publish
# ---------------------------------
# A ``PublicInputWarning`` says that 250 images are few for 64 coefficients, so that noise hides
# what each of them says. It does, as shown below.

ledger = PrivacyAccountant(epsilon=1.0)
model = DPLogisticRegression(1.0, data_norm=1.0, classes=[0, 8], accountant=ledger)
model.fit(X[train], y[train])
print(f"Spent: epsilon = {ledger.spent():g}")

# %%
# Many fits show what depends on luck
# -----------------------------------

fits = {
    epsilon: [
        DPLogisticRegression(epsilon, data_norm=1.0, classes=[0, 8]).fit(X[train], y[train])
        for _ in range(REPETITIONS)
    ]
    for epsilon in EPSILONS
}
scores = {epsilon: [fit.score(X[test], y[test]) for fit in some] for epsilon, some in fits.items()}
plain = LogisticRegression(C=10.0).fit(X[train], y[train])

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for place, values in enumerate(scores.values()):
    ax.plot([place] * REPETITIONS, values, "o", color="#0072B2", alpha=0.5)
    ax.plot([place - 0.25, place + 0.25], [np.median(values)] * 2, color="#0072B2", linewidth=2.5)
best = plain.score(X[test], y[test])
ax.axhline(best, color="black", linestyle="--", linewidth=1)
ax.text(-0.45, best + 0.005, "without privacy", va="bottom", fontsize=9)
ax.axhline(0.5, color="0.6", linewidth=1)
ax.text(4.45, 0.505, "a coin", ha="right", va="bottom", fontsize=9)
ax.set_xticks(range(len(EPSILONS)), [f"{epsilon:g}" for epsilon in EPSILONS])
ax.set_xlim(-0.5, 4.5)
ax.set_ylim(top=1.07)
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set_xlabel("ε (smaller: more privacy)")
ax.set_ylabel("Accuracy on other images")
ax.set_title("Accuracy of private classifiers of 0 and 8 at five epsilons", fontsize="medium")
ax.spines[["top", "right"]].set_visible(False)

# %%
# What a coefficient looks like
# -----------------------------
# Purple pixels speak for 8, orange ones for 0. The noise is spread over all 64 pixels alike, those
# that are always empty included.

shown = {f"ε = {epsilon:g}": fits[epsilon][0].coef_ for epsilon in (0.3, 1.0, 10.0)}
shown["without privacy"] = plain.coef_
fig, axes = plt.subplots(1, 4, figsize=(9.0, 2.7), layout="constrained")
for ax, (name, coef) in zip(axes, shown.items(), strict=True):
    most = np.abs(coef).max()
    ax.imshow(coef.reshape(8, 8), cmap="PuOr", vmin=-most, vmax=most)
    ax.set_title(name, fontsize="medium")
    ax.set_xticks([])
    ax.set_yticks([])
fig.suptitle(
    "Coefficients of 64 pixels: at three epsilons noise hides the shape of the digits", fontsize=11
)

# %%
# A picture of noise can still classify: an error in each of 64 coefficients averages out over the
# pixels of an image. :doc:`/user_guide/classification` says what the fit does.
#
# **Coefficients that look like noise may predict well: predictions add up many of them, a reader
# looks at one.**
