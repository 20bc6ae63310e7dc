"""
Eight hospitals that pool their releases
========================================

Eight hospitals have 250 to 1,500 patients each, of other ages at each. None may send a row, and
each is too small for a private model of its own. What they publish adds up: each fits with
epsilon = 1, and everybody can make one model of the eight releases. (The free light chain study,
dealt out to eight hospitals by lot and by age; 1,200 other people test the models.)
"""

# %%
# What all agree on in public
# ---------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PublicColumns, pool_releases
from skdpsurv.datasets import load_flchain
from skdpsurv.evaluation import concordance_index
from skdpsurv.pooling import plot_forest
from skdpsurv.reference import fit_cox

REPETITIONS = 8  # times to draw all noise anew

columns = PublicColumns(
    {
        "age": {"bounds": [50, 100], "unit": "years"},
        "sex_male": {"boolean": True},
        "lambda": {"bounds": [0, 6], "unit": "mg/dL"},
    }
)
COVARIATES = ["age", "sex_male", "lambda"]

# %%
# Eight hospitals of other sizes and ages
# ---------------------------------------
# The later in the list, the older are a hospital's patients, on average.

data = load_flchain()
X, y = data.X[COVARIATES], data.y
draw = np.random.default_rng(0)
test, rest = np.split(draw.permutation(len(y)), [1200])
by_age = rest[np.argsort(X["age"].to_numpy()[rest] + draw.normal(0, 12, len(rest)))]
SIZES = (1500, 300, 900, 250, 1200, 500, 750, 350)
hospitals = np.split(by_age[: sum(SIZES)], np.cumsum(SIZES)[:-1])
ages = [f"{X['age'].iloc[rows].mean():.0f}" for rows in hospitals]
print(f"Mean ages, for you to see: {', '.join(ages)}")


def fitted(rows, ledger, prior=None):
    """Return a private model of one hospital, with standard errors."""
    model = DPDiscreteTimeSurvival(
        1.0,
        columns=columns,
        max_time=data.max_time,
        link="cloglog",
        inference_share=0.3,
        prior=prior,
        accountant=ledger,
    )
    return model.fit(X.iloc[rows], y[rows])


def ranking(model) -> float:
    """Return C on the people who test."""
    return concordance_index(y[test], model.predict(X.iloc[test]))


# %%
# Each its release, and one of all
# --------------------------------
# A ``PublicInputWarning`` tells small hospitals that few of their intervals will be finite, and the
# pool which releases hide a coefficient behind noise: these have no weight there.

ledgers = [PrivacyAccountant(epsilon=1.0) for _ in hospitals]
releases = {}
for rows, ledger in zip(hospitals, ledgers, strict=True):
    releases[f"{len(rows):,} patients"] = fitted(rows, ledger).release_
print(f"Each hospital. Spent: epsilon = {max(one.spent() for one in ledgers):g}")

pooled = pool_releases(list(releases.values()))
print(f"Pooled: {pooled.guarantee.public_inputs['n_records']:,} people, no further cost")
print(pooled.to_estimator().summary[["exp(coef)", "se(coef)"]].round(2).to_string())

figure, ax = plt.subplots(figsize=(7.0, 3.9), layout="constrained")
plot_forest(releases, "age", ratios=False, limits=(-0.1, 0.3), ax=ax)
ax.set_xlabel("Log hazard ratio of a year of age")
figure.suptitle("One coefficient at each of eight hospitals, and pooled")

# %%
# Alone, from a neighbour's release, and pooled
# ---------------------------------------------
# All noise drawn anew, many times. In earnest each of these fits would cost its epsilon again.

free = [PrivacyAccountant() for _ in hospitals]  # without a limit
scores: dict[str, list[float]] = {}
small = int(np.argmin(SIZES))
for _ in range(REPETITIONS):
    models = [fitted(*pair) for pair in zip(hospitals, free, strict=True)]
    largest = models[int(np.argmax(SIZES))].release_
    helped = fitted(hospitals[small], free[small], prior=largest)
    together = pool_releases([model.release_ for model in models]).to_estimator()
    scores.setdefault("smallest hospital alone", []).append(ranking(models[small]))
    scores.setdefault("from the largest's release", []).append(ranking(helped))
    scores.setdefault("all eight, pooled", []).append(ranking(together))
whole = np.concatenate(hospitals)
cox = fit_cox(X.iloc[whole].astype(float), y[whole])
reference = concordance_index(y[test], cox.predict(X.iloc[test].astype(float)))

summary = pd.DataFrame(scores).quantile([0.05, 0.5, 0.95]).T
summary.columns = ["5 %", "median", "95 %"]
print("C-index on other people\n" + summary.round(3).to_string())
print(f"All rows in one place, Cox without privacy: {reference:.3f}")

figure, ax = plt.subplots(figsize=(7.0, 2.8), layout="constrained")
jitter = np.random.default_rng(0).uniform(-0.18, 0.18, REPETITIONS)
for place, values in enumerate(scores.values()):
    color = ("#D55E00", "0.45", "#0072B2")[place]
    ax.scatter(values, place + jitter, s=16, color=color, alpha=0.6, linewidths=0)
    ax.plot([np.median(values)] * 2, [place - 0.3, place + 0.3], color=color, linewidth=2)
ax.axvline(reference, color="black", linestyle="--", linewidth=1)
ax.set_yticks(range(len(scores)), list(scores))
ax.set_ylim(2.5, -0.7)
ax.set_xlabel("C-index, a dot for each draw")
ax.set_title("Dashed: Cox on all rows, no privacy", loc="left", fontsize="small")
ax.spines[["top", "right", "left"]].set_visible(False)
figure.suptitle("How models of one hospital and of eight rank other people")

# %%
# What each promises
# ------------------
# Each hospital promises its own patients epsilon = 1. The pooled release promises everybody
# epsilon = 1, as long as nobody was a patient of two hospitals; somebody who was has the sum.
# :doc:`/user_guide/several_sites` says what must be agreed on, and :doc:`/benchmarks/sites` how
# much is gained on other data, and when nothing is.
#
# **Small hospitals that may share no rows can still share a model.**
