"""
A small trial: when does noise hide a treatment?
================================================

The German Breast Cancer Study Group followed 686 women; 246 had hormone therapy, and relapsed
later. A log-rank test finds it. Does a private log-rank test, and at which epsilon?
"""

# %%
# Records
# -------
# The study's horizon is seven years and a half. Groups are stated; who is in which is private.

import matplotlib.pyplot as plt
import numpy as np
from lifelines.statistics import logrank_test as lifelines_test
from sksurv.datasets import load_gbsg2

from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant
from skdpsurv.plotting import plot_univariate
from skdpsurv.survival.comparisons import compare_restricted_means, logrank_test

YEAR = 365.25
MAX_TIME = 2740.0  # days
REPETITIONS = 15  # fits at each epsilon
GROUPS = {"no": "no hormone therapy", "yes": "hormone therapy"}

X, y = load_gbsg2()
therapy, relapsed, days = X["horTh"].astype(str).to_numpy(), y["cens"], y["time"]

# %%
# One private fit
# ---------------

ledger = PrivacyAccountant(epsilon=1.0)
fitter = DPKaplanMeierFitter(1.0, max_time=MAX_TIME, groups=list(GROUPS), accountant=ledger)
fitter.fit(days, relapsed, group=therapy)
print(f"Spent: epsilon = {ledger.spent():g}\n")
ax = plot_univariate(
    {name: fitter.of_group(label) for label, name in GROUPS.items()},
    time_scale=YEAR,
    time_unit="years",
    at_risk_counts=True,
)
ax.set_ylabel("Probability of no relapse")
ax.set_title("Freedom from relapse by hormone therapy, private at ε = 1", fontsize="medium")
print("Days without relapse, of five years, that therapy adds:")
print(
    compare_restricted_means(fitter.of_group("yes"), fitter.of_group("no"), 5 * YEAR)
    .loc[["difference"]]
    .round(0)
    .to_string()
)

# %%
# The test, many times
# --------------------
# p-values of private tests allow for the noise: where it is large they are large as a rule. Each
# dot is a fit of its own; in earnest one has a single one of them. (At ε = 10 a
# ``PublicInputWarning`` says that next to nothing is promised: it is here to be compared with.)

epsilons = [0.3, 1.0, 3.0, 10.0]
p_values = {}
for epsilon in epsilons:
    for _ in range(REPETITIONS):
        one = DPKaplanMeierFitter(epsilon, max_time=MAX_TIME, groups=list(GROUPS))
        one.fit(days, relapsed, group=therapy)
        found = logrank_test(one.of_group("yes"), one.of_group("no"))
        p_values.setdefault(epsilon, []).append(found.p_value)
given = therapy == "yes"
plain = lifelines_test(days[given], days[~given], relapsed[given], relapsed[~given]).p_value
for epsilon, values in p_values.items():
    print(
        f"epsilon = {epsilon:4g}: p < 0.05 in {np.mean(np.array(values) < 0.05):4.0%} of the fits"
    )

fig, ax = plt.subplots(figsize=(6.8, 3.8), layout="constrained")
jitter = np.random.default_rng(0).uniform(-0.2, 0.2, REPETITIONS)
for place, epsilon in enumerate(epsilons):
    ax.plot(place + jitter, np.maximum(p_values[epsilon], 1e-5), "o", color="#0072B2", alpha=0.5)
ax.axhline(0.05, color="#D55E00", linewidth=1.5)
ax.text(3.5, 0.052, "0.05", color="#D55E00", ha="right", va="bottom")
ax.axhline(plain, color="black", linestyle="--", linewidth=1)
ax.text(-0.45, plain * 0.95, "without privacy", ha="left", va="top", fontsize=9)
ax.set_yscale("log")
ax.set_xlim(-0.5, 3.5)
ax.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
ax.set_xlabel("ε (smaller: more privacy)")
ax.set_ylabel("p-value of the log-rank test")
ax.set_title("p-values of private log-rank tests of 686 women at four epsilons", fontsize="medium")
ax.spines[["top", "right"]].set_visible(False)

# %%
# A test without privacy is significant. At ε = 3 nearly all private tests are, too; at 1 most are,
# and at 0.3 few: the noise hides the difference. A private test that finds nothing may have seen
# too few people: do not read it as "no effect", and do not draw again until it finds something,
# since each draw is charged. See :doc:`/user_guide/curves`.
#
# **Noise makes a test miss effects, and hardly more often find what is not there: so plan epsilon
# as you plan the number of patients.**
