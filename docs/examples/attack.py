"""
An attack on a guarantee
========================

Do not take our word for it. Two data sets that differ in one record are fitted many times, and it
is learned what tells their releases apart. That bounds epsilon from below: a bound above the claim
refutes it. One honest estimator is attacked here, and one that lies.
"""

# %%
# Honest, and not
# ---------------
# The second estimator fits with five times the epsilon that it claims, so that its noise is a
# fifth of what it should be. From outside nobody can tell: its predictions are only better.

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator

from skdpsurv import DPLogisticRegression, PrivacyAccountant
from skdpsurv.audit import audit_epsilon, density_ratio_audit
from skdpsurv.classification import Perturbation

TRIALS = 500  # fits of each data set
CLAIM = 1.0


class Boaster(BaseEstimator):
    """A private classifier with a fifth of the noise that it needs."""

    def __init__(self, epsilon: float = CLAIM) -> None:
        self.epsilon = epsilon

    def fit(self, X: np.ndarray, y: np.ndarray):
        """Fit, with less noise than is claimed."""
        self.model_ = DPLogisticRegression(5 * self.epsilon, **SETTINGS).fit(X, y)
        self.release_ = self.model_.release_
        return self


# %%
# One record
# ----------
# A single person, ill or not, and a strong penalty: what is released of one person is where a
# guarantee is tested hardest. Nothing in an audit is private, so the records are made up. (The fit
# at the end warns, by a ``PublicInputWarning``, that one record is few.)

SETTINGS = {
    "data_norm": 1.0,
    "classes": [0, 1],
    "alpha": 60.0,
    "method": Perturbation(max_residual=0.5),
}
data, neighbour = ([[1.0]], [0]), ([[1.0]], [1])
honest = DPLogisticRegression(CLAIM, **SETTINGS)
found = {
    "honest": audit_epsilon(honest, data, neighbour, n_trials=TRIALS),
    "a fifth of the noise": audit_epsilon(Boaster(), data, neighbour, n_trials=TRIALS),
}
for name, result in found.items():
    print(f"{name:22} {result}\n")

# %%
# Where the law of a release is known, no sampling is needed: the largest ratio of two densities can
# be computed.

exact = density_ratio_audit(honest, data, neighbour)
print(exact)
ledger = PrivacyAccountant(epsilon=CLAIM)
DPLogisticRegression(CLAIM, **SETTINGS, accountant=ledger).fit(*data)
print(f"Spent: epsilon = {ledger.spent():g}, by a fit; an audit of made-up records spends none")

# %%
# What the attack sees
# --------------------
# How often a released number lies beyond a threshold, with one record and with the other. An honest
# estimator stays within the grey area, whatever the threshold, but for the chance of a sample.

fig, axes = plt.subplots(1, 2, figsize=(8.8, 4.4), sharey=True, layout="constrained")
for ax, (name, result) in zip(axes, found.items(), strict=True):
    one, other = (np.sort(scores) for scores in result.scores)
    thresholds = np.unique(np.concatenate([one, other]))
    rates = [1 - np.searchsorted(part, thresholds) / len(part) for part in (one, other)]
    allowed = np.linspace(0, 1, 200)
    upper = np.minimum(math.exp(CLAIM) * allowed, 1 - math.exp(-CLAIM) * (1 - allowed))
    lower = np.maximum(math.exp(-CLAIM) * allowed, 1 - math.exp(CLAIM) * (1 - allowed))
    ax.fill_between(allowed, lower, upper, color="0.85", label=f"allowed by ε = {CLAIM:g}")
    ax.plot(*rates, color="#0072B2" if result.passed else "#D55E00", linewidth=2.2)
    ax.set_title(f"{name}: ε is at least {result.lower_bound:.2f}", fontsize="medium")
    ax.set_xlabel("Share beyond a threshold, healthy person")
    ax.set_aspect("equal")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("Share beyond it, ill person")
axes[0].legend(frameon=False, loc="lower right")
fig.suptitle(
    "Attacks on an honest fit, within what its claim allows, and on one with too little noise"
)

# %%
# The attack refutes the estimator that lies, and bounds the honest one below its claim; the exact
# ratio comes closer to it. That a claim was not refuted proves nothing: another pair of data sets,
# or a cleverer attack, may find more. :doc:`/user_guide/audit` has both audits, and
# :doc:`/proofs/index` the proofs.
#
# **An attack can refute a guarantee and never prove it; so read the proof, and let the attack catch
# what the proof overlooked.**
