"""
Two hospitals that share a model and no rows
============================================

Hospital A has 400 breast biopsies with a diagnosis, hospital B has 85. B wants a classifier for its
own patients. A may not send a row; it may publish a private model. B starts from that model, and
fits its own, which is private too. (The Wisconsin study, dealt out to two hospitals by lot; 84
other biopsies test the models.)
"""

# %%
# What both hospitals agree on in public
# --------------------------------------
# Columns, their bounds, groups of columns and what pathologists hold important. All of it is
# written down before anybody looks at a record: from A's records, it would give them away.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdpsurv import (
    FeaturePartition,
    PrivacyAccountant,
    PrivateStackingClassifier,
    PublicBoundsScaler,
    PublicColumns,
    Release,
)

REPETITIONS = 12  # times to draw all noise anew

# Of one nucleus: lowest and highest value, and how much it matters.
MEASURES = {
    "radius": (5, 40, 3),
    "texture": (5, 50, 1),
    "perimeter": (40, 260, 3),
    "area": (100, 4500, 3),
    "smoothness": (0, 0.25, 1),
    "compactness": (0, 1, 1),
    "concavity": (0, 1.3, 3),
    "concave points": (0, 0.3, 3),
    "symmetry": (0.1, 0.7, 1),
    "fractal dimension": (0.05, 0.2, 1),
}
# Of all nuclei of a biopsy: the part of the range that it can take, and how much it matters.
SUMMARIES = {"worst": (1.0, 3), "mean": (0.7, 2), "error": (0.2, 1)}

bounds, importances, groups = {}, [], []
for summary, (part, weight) in SUMMARIES.items():
    groups.append([])
    for measure, (low, high, matters) in MEASURES.items():
        name = f"{measure} error" if summary == "error" else f"{summary} {measure}"
        start = 0 if summary == "error" else low
        bounds[name] = (start, start + part * (high - low))
        importances.append(weight * matters)
        groups[-1].append(name)

DATA_NORM = 3.0  # of a row of 30 columns in [-1, 1]: a little more than half of the largest
CLASSES = [0, 1]  # malignant, benign

# %%
# Records, each in its own hospital
# ---------------------------------

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[list(bounds)]
lot = np.random.default_rng(0).permutation(len(y))
rows_a, rows_b, rows_test = np.split(lot, [400, 485])


def private_model(epsilon: float, ledger: PrivacyAccountant, prior: Release | None = None):
    """Return an unfitted model, which reads columns as those of the prior were read."""
    return PrivateStackingClassifier(
        epsilon,
        columns=PublicColumns(bounds) if prior is None else prior.transformer(),
        partition=FeaturePartition(groups, importances=importances),
        data_norm=DATA_NORM,
        classes=CLASSES,
        prior=prior,
        accountant=ledger,
    )


def auc(model) -> float:
    """Return the area under the ROC curve on the 84 test biopsies."""
    return roc_auc_score(y.iloc[rows_test], model.decision_function(X.iloc[rows_test]))


# %%
# Hospital A publishes
# --------------------
# The text is all that leaves A: coefficients with noise, what the columns hold, what is promised.
# A ``PublicInputWarning`` says that 400 records are few for 30 columns: noise hides what a single
# coefficient says. Predictions add up all of them, and need less.

ledger_a = PrivacyAccountant(epsilon=1.0)
source = private_model(1.0, ledger_a).fit(X.iloc[rows_a], y.iloc[rows_a])
text = source.release_.to_json()
print(f"A publishes {len(text):,} characters. Spent: epsilon = {ledger_a.spent():g}")

# %%
# Hospital B starts from there
# ----------------------------
# B has nothing but the text: groups, bounds of columns and classes must be those of its own model.

ledger_b = PrivacyAccountant(epsilon=1.0)
prior = Release.from_json(text)
target = private_model(1.0, ledger_b, prior).fit(X.iloc[rows_b], y.iloc[rows_b])
print(f"B's fit. Spent: epsilon = {ledger_b.spent():g}\n")

for hospital, model in (("A", source), ("B", target)):
    guarantee = model.guarantee_
    print(
        f"Hospital {hospital} promises its {guarantee.public_inputs['n_records']} patients "
        f"epsilon = {guarantee.epsilon:g}: status {guarantee.status}"
    )
print("A patient of both hospitals: 1 + 1 = 2, as both releases speak of the same person.\n")

# %%
# Was it worth it?
# ----------------
# All noise drawn anew, many times. This is for you to see how much depends on luck; in earnest each
# of these fits would cost its epsilon again, and the test biopsies are nobody's to publish.

scores: dict[str, list[float]] = {}
free = PrivacyAccountant()  # without a limit
for _ in range(REPETITIONS):
    source = private_model(1.0, free).fit(X.iloc[rows_a], y.iloc[rows_a])
    prior = source.release_
    alone = private_model(1.0, free).fit(X.iloc[rows_b], y.iloc[rows_b])
    both = private_model(1.0, free, prior).fit(X.iloc[rows_b], y.iloc[rows_b])
    scores.setdefault("B alone, ε = 1", []).append(auc(alone))
    scores.setdefault("A's model, ε = 1, as it is", []).append(auc(source))
    scores.setdefault("B from A's model, ε = 1 each", []).append(auc(both))
plain = make_pipeline(PublicBoundsScaler.from_bounds(bounds), LogisticRegression())
reference = auc(plain.fit(X.iloc[rows_b], y.iloc[rows_b]))

summary = pd.DataFrame(scores).quantile([0.05, 0.5, 0.95]).T
summary.columns = ["5 %", "median", "95 %"]
print("AUC on B's side\n" + summary.round(3).to_string())
print(f"B alone, without privacy: {reference:.3f}")

figure, ax = plt.subplots(figsize=(7.4, 2.9), layout="constrained")
jitter = np.random.default_rng(0).uniform(-0.18, 0.18, REPETITIONS)
for place, values in enumerate(scores.values()):
    color = ("#D55E00", "0.45", "#0072B2")[place]
    ax.scatter(values, place + jitter, s=16, color=color, alpha=0.6, linewidths=0)
    ax.plot([np.median(values)] * 2, [place - 0.3, place + 0.3], color=color, linewidth=2)
ax.axvline(reference, color="black", linestyle="--", linewidth=1)
ax.text(reference, -0.62, "B without privacy ", ha="right", va="center", fontsize=9)
ax.set_yticks(range(len(scores)), list(scores))
ax.set_ylim(2.5, -0.9)
ax.set_xlabel("AUC on 84 other biopsies; one dot for each draw of the noise")
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(axis="y", length=0)
figure.suptitle(
    "AUC of B's patients by B alone, by A's model, and by B's that starts from A's", fontsize=11
)

# %%
# What each hospital promises
# ---------------------------
# A's release costs A's patients epsilon = 1, whoever reads it and whatever is done with it, B's fit
# included. B's release costs B's patients epsilon = 1. A patient of both is in both releases:
# epsilon = 2.
#
# Alone, B's 85 records are drowned by the noise that protects them. From A's model on, most of the
# noise is shrunk away. Here the two hospitals see the same kind of patients, so that A's model as
# it is does as well; :doc:`/benchmarks/stacking` has regions that differ, and
# :doc:`/user_guide/classification` the method.
#
# **A private model of another hospital can be worth more than your own few records, and no row has
# to travel.**
