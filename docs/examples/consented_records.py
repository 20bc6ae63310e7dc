"""
Records that people agreed to publish
=====================================

Some patients agree to have their records published, most do not, and those who agree are seldom
like the others. A model of their records alone is wrong. ``HybridMEstimator`` weighs them so that
they resemble the private ones.
"""

# %%
# Who agreed
# ----------
# 8,000 made-up visits to a clinic: how many, by age and by how ill somebody is. The young and the
# healthy agree more often, and visits rise faster among those who do not. So neither the people nor
# the rule are the same.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor

from skdpsurv import HybridMEstimator, PrivacyAccountant

REPETITIONS = 10  # fits at each epsilon
EPSILONS = [0.3, 1.0, 3.0]

rng = np.random.default_rng(0)  # makes records up; draws no noise
age, illness = rng.uniform(-1, 1, 8000), rng.uniform(-1, 1, 8000)
X = np.column_stack([age, illness])
agreed = rng.random(8000) < 1 / (1 + np.exp(2 + 1.5 * age + 1.5 * illness))
slope = np.where(agreed, 0.3, 1.0)
visits = rng.poisson(np.exp(0.3 + 0.4 * age + slope * illness))
print(f"{agreed.sum():,} of {len(X):,} agreed")

# %%
# Any estimator of scikit-learn
# -----------------------------
# Here one for counts. Of the private records nothing but weights of the public ones is released.


def poisson() -> PoissonRegressor:
    """Return an unfitted regression."""
    return PoissonRegressor(alpha=1e-6)


ledger = PrivacyAccountant(epsilon=1.0)
model = HybridMEstimator(poisson(), epsilon=1.0, accountant=ledger)
model.fit(X, visits, public=agreed)
print(f"Spent: epsilon = {ledger.spent():g}")
print("Coefficients of age and illness:", model.estimator_.coef_.round(2))

# %%
# Nearer to the truth
# -------------------
# The truth is a fit to the private records without privacy, which nobody may publish.

truth = poisson().fit(X[~agreed], visits[~agreed])
consented = poisson().fit(X[agreed], visits[agreed])
fits = {
    epsilon: np.array(
        [
            HybridMEstimator(poisson(), epsilon).fit(X, visits, public=agreed).estimator_.coef_
            for _ in range(REPETITIONS)
        ]
    )
    for epsilon in EPSILONS
}

fig, ax = plt.subplots(figsize=(7.0, 4.8), layout="constrained")
for (epsilon, coef), color in zip(fits.items(), ("#E69F00", "#0072B2", "#009E73"), strict=True):
    ax.plot(*coef.T, "o", color=color, alpha=0.7, label=f"hybrid, ε = {epsilon:g}")
ax.plot(*consented.coef_, "s", color="#D55E00", markersize=10, label="those who agreed, alone")
ax.plot(*truth.coef_, "*", color="black", markersize=15, label="the private records, not private")
ax.set_xlabel("Coefficient of age (log ratio of visits)")
ax.set_ylabel("Coefficient of illness (log ratio of visits)")
ax.set_title(
    "Two Poisson coefficients: consented records alone, and hybrid fits", fontsize="medium"
)
ax.set_xlim(0.15, 0.5)
ax.set_ylim(0.1, 1.15)
ax.legend(frameon=False, loc="center left")
ax.grid(color="0.92")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Consented records alone miss most of the effect of illness. Weighed by what the private ones look
# like, they come much nearer to it. A larger epsilon makes fits differ less from each other; what
# is left of the way to the star comes from the method, and no epsilon closes it. For a logistic
# regression :class:`~skdpsurv.DPLogisticRegression` on the private records alone is often better;
# the hybrid is for estimators that have no private version. See :doc:`/user_guide/hybrid`.
#
# **People who agree are seldom like those who do not: more of their records would not help, and a
# few noisy numbers about the others do.**
