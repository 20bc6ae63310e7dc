"""
Survival curves of two groups, from one noisy table
===================================================

How long do people under 65 and of 65 and over live after a blood sample? Private Kaplan-Meier
curves of the flchain study (7,874 residents of Olmsted County, Minnesota, aged 50 or more), both
for one epsilon of 0.5 together, beside lifelines' curves without privacy.
"""

# %%
# Records
# -------
# Times are in days. The horizon is a round number: in a study of your own it comes from the
# protocol. Who is in which group is private, and so are the sizes of both groups.

import numpy as np
from lifelines import KaplanMeierFitter
from lifelines.statistics import logrank_test as lifelines_test

from skdpsurv import DPKaplanMeierFitter, PrivacyAccountant
from skdpsurv.datasets import load_flchain
from skdpsurv.plotting import plot_univariate
from skdpsurv.survival.comparisons import compare_restricted_means, logrank_test

YEAR = 365.25
MAX_TIME = 5200.0  # a little more than 14 years
EPSILON = 0.5
GROUPS = ["under 65", "65 and over"]

data = load_flchain()
days, died = data.y["futime"], data.y["death"]
group = np.where(data.X["age"] >= 65, GROUPS[1], GROUPS[0])

# %%
# One table
# ---------
# It counts how many of each group died, or were censored, in each band of time, and costs epsilon
# once. All that follows is made of it.

ledger = PrivacyAccountant(epsilon=EPSILON)
fitter = DPKaplanMeierFitter(EPSILON, max_time=MAX_TIME, groups=GROUPS, accountant=ledger)
fitter.fit(days, died, group=group)
private = {label: fitter.of_group(label) for label in GROUPS}
print(f"Spent: epsilon = {ledger.spent():g}")

# %%
# The curves
# ----------
# Solid curves and bands are private, and so are the numbers at risk. lifelines' curves are shown,
# dashed, because these records are published anyway; with your own they would give away what the
# noise protects.

reference = {
    label: KaplanMeierFitter().fit(days[group == label], died[group == label]) for label in GROUPS
}
ax = plot_univariate(private, time_scale=YEAR, time_unit="years", at_risk_counts=True)
for curve in reference.values():
    step = curve.survival_function_.iloc[:, 0]
    ax.plot(step.index / YEAR, step, color="black", linewidth=0.9, linestyle=(0, (4.0, 1.5)))
ax.set_title(
    f"Survival by age, flchain: private at ε = {EPSILON:g}, and Kaplan-Meier (dashed)",
    loc="left",
    fontsize="medium",
)

# %%
# What a clinician asks
# ---------------------
# Survival at ten years, the mean time lived of ten years, and whether the groups differ; beside
# the same without privacy.

for label, curve in private.items():
    alive, ends = curve.predict(10 * YEAR), curve.survival_band(10 * YEAR).iloc[0]
    mean = curve.restricted_mean_survival_time(10 * YEAR)
    print(
        f"{label:12} alive after 10 years {alive:.3f} ({ends['lower']:.3f} to {ends['upper']:.3f}),"
        f" lifelines {float(reference[label].predict(10 * YEAR)):.3f}"
    )
    low, middle, high = (days / YEAR for days in (mean.lower, mean.estimate, mean.upper))
    print(f"{'':12} years lived of 10    {middle:.2f} ({low:.2f} to {high:.2f})")
under, over = (private[label] for label in GROUPS)
print("\nYears that those under 65 live longer, of 10, and their ratio:")
means = compare_restricted_means(under, over, 10 * YEAR)
print(means.div([YEAR, 1.0], axis=0).round(3).to_string())
theirs = lifelines_test(*(part[group == label] for part in (days, died) for label in GROUPS))
ours = logrank_test(under, over)
print(f"\nlog-rank {ours.test_statistic:,.0f}, lifelines' {theirs.test_statistic:,.0f}")

# %%
# Noise hardly shows between groups that differ so much. The log-rank statistic is smaller than
# lifelines', as its variance includes the noise; the conclusion is the same. Sizes of the groups
# are as noisy as everything else: nothing of them was taken to be public.
# :doc:`/user_guide/curves` says how it works.
#
# **One epsilon pays for the curves of all groups, their intervals, numbers at risk, restricted
# means and the test.**
