"""
Eight hospitals and one odds ratio
==================================

Eight hospitals have 620 to 1,200 patients each and want to know who of them is likely to die during
a study, and what an elevated light chain has to do with it. None may send a row. Each fits a
private logistic regression with epsilon = 1: alone, from a neighbour's release, and to be pooled.
(The free light chain study, dealt out to eight hospitals by lot and by age; 1,200 other people test
the models.)
"""

# %%
# What all agree on in public
# ---------------------------
# Two columns with their bounds (free lambda chains are normal up to 2.6 mg/dL), and the labels. A
# classifier has standard errors, which a pool needs, from 600 records at epsilon = 1.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdpsurv import DPLogisticRegression, PrivacyAccountant, PublicColumns, pool_releases
from skdpsurv.datasets import load_flchain
from skdpsurv.pooling import heterogeneity, plot_forest

REPETITIONS = 12  # times to draw all noise anew

columns = PublicColumns(
    {"age": {"bounds": [50, 100], "unit": "years"}, "lambda": {"bounds": [0, 4], "unit": "mg/dL"}}
)
COVARIATES = ["age", "lambda"]

# %%
# Eight hospitals of other sizes and ages
# ---------------------------------------
# The later in the list, the older are a hospital's patients, on average.

data = load_flchain()
X, died = data.X[COVARIATES], data.y["death"]
draw = np.random.default_rng(0)
test, rest = np.split(draw.permutation(len(died)), [1200])
by_age = rest[np.argsort(X["age"].to_numpy()[rest] + draw.normal(0, 24, len(rest)))]
SIZES = (1200, 620, 900, 640, 1000, 700, 850, 760)
hospitals = np.split(by_age[: sum(SIZES)], np.cumsum(SIZES)[:-1])


def fitted(rows, ledger, share=0.0, prior=None):
    """Return a private model of one hospital, or of all; a share is for standard errors."""
    model = DPLogisticRegression(
        1.0,
        columns=columns,
        classes=[False, True],
        inference_share=share,
        prior=prior,
        accountant=ledger,
    )
    return model.fit(X.iloc[rows], died[rows])


def ranking(model) -> float:
    """Return the area under the ROC curve on the people who test."""
    return roc_auc_score(died[test], model.decision_function(X.iloc[test]))


# %%
# Each its release, and one of all
# --------------------------------
# A ledger of its own for each hospital: two releases of one ledger may be of the same people, which
# a pool would ask about. Releases whose noise hides a coefficient have no weight there, and a
# ``PublicInputWarning`` names them.

ledgers = [PrivacyAccountant(epsilon=1.0) for _ in hospitals]
releases = {}
for rows, ledger in zip(hospitals, ledgers, strict=True):
    releases[f"{len(rows):,} patients"] = fitted(rows, ledger, share=0.3).release_
print(f"Each hospital. Spent: epsilon = {max(one.spent() for one in ledgers):g}")

pooled = pool_releases(list(releases.values()))
print(f"Pooled: {pooled.guarantee.public_inputs['n_records']:,} people, no further cost")
print(pooled.to_estimator().summary[["coef", "se(coef)"]].round(3).to_string())
print("How far hospitals differ")
print(heterogeneity(list(releases.values()))[["Q", "p", "I2"]].round(2).to_string())

figure, ax = plt.subplots(figsize=(7.0, 3.9), layout="constrained")
plot_forest(releases, "lambda", ratios=False, limits=(-1.5, 2.5), ax=ax)
ax.set_xlabel("Log odds ratio of 1 mg/dL of lambda chains")
figure.suptitle("One log odds ratio at each of eight hospitals, and pooled")

# %%
# Alone, from a neighbour's release, pooled, and all rows in one place
# --------------------------------------------------------------------
# All noise drawn anew, many times. In earnest each of these fits would cost its epsilon again.

free = [PrivacyAccountant() for _ in hospitals]  # without a limit
small, large = int(np.argmin(SIZES)), int(np.argmax(SIZES))
whole = np.concatenate(hospitals)
scores: dict[str, list[float]] = {}
for _ in range(REPETITIONS):
    members = [fitted(*pair, share=0.3).release_ for pair in zip(hospitals, free, strict=True)]
    prior = fitted(hospitals[large], free[large]).release_
    models = {
        "smallest hospital alone": fitted(hospitals[small], free[small]),
        "from the largest's release": fitted(hospitals[small], free[small], prior=prior),
        "all eight, pooled": pool_releases(members).to_estimator(),
        "all rows in one place": fitted(whole, PrivacyAccountant()),
    }
    for name, model in models.items():
        scores.setdefault(name, []).append(ranking(model))

features = columns.fit_transform(X)
reference = LogisticRegression().fit(features[whole], died[whole])
bound = roc_auc_score(died[test], reference.decision_function(features[test]))

summary = pd.DataFrame(scores).quantile([0.05, 0.5, 0.95]).T
summary.columns = ["5 %", "median", "95 %"]
print("Area under the ROC curve on other people\n" + summary.round(3).to_string())
print(f"All rows in one place, without privacy: {bound:.3f}")

figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
jitter = np.random.default_rng(0).uniform(-0.18, 0.18, REPETITIONS)
for place, values in enumerate(scores.values()):
    color = ("#D55E00", "0.45", "#0072B2", "#009E73")[place]
    ax.scatter(values, place + jitter, s=16, color=color, alpha=0.6, linewidths=0)
    ax.plot([np.median(values)] * 2, [place - 0.3, place + 0.3], color=color, linewidth=2)
ax.axvline(bound, color="black", linestyle="--", linewidth=1)
ax.set_yticks(range(len(scores)), list(scores))
ax.locator_params(axis="x", nbins=4)
ax.set_ylim(3.5, -0.7)
ax.set_xlabel("Area under the ROC curve, a dot a draw")
ax.set_title("Dashed: all rows, no privacy", loc="left", fontsize="small")
ax.spines[["top", "right", "left"]].set_visible(False)
figure.suptitle("How models of one hospital and of eight rank other people")

# %%
# What was gained, and what not
# -----------------------------
# A hospital says next to nothing of light chains: most intervals hold harm and benefit alike, or it
# has no estimate at all. Eight together do, at no further cost, and without a row that moves. How
# models *rank* people hardly changes: age does most of that, and a few hundred patients are enough
# to learn about age. All rows in one place remain the best that privacy allows, where that is
# allowed; :doc:`/benchmarks/sites` has trials and hospitals on which they are far ahead.
#
# Each hospital promises its own patients epsilon = 1. The pooled release promises everybody
# epsilon = 1, as long as nobody was a patient of two hospitals.
#
# **Pooling buys certainty about a coefficient before it buys a better ranking.**
