"""
Competing causes of death
=========================

Of what do people die, and when? Somebody who dies of cancer cannot die of a stroke any more, so
that one minus Kaplan-Meier of each cause would add up to too much. The Aalen-Johansen estimator
gives cumulative incidences instead; here a private one, of the causes of death in the flchain
study, by age.
"""

# %%
# Records
# -------
# The chapter of the cause of death is known for those who died. Chapters are put into three
# classes that are stated beforehand, and cover every chapter that there could be.

import matplotlib.pyplot as plt
import numpy as np
from lifelines import AalenJohansenFitter
from sksurv.datasets import load_flchain

from skdpsurv import DPAalenJohansenFitter, PrivacyAccountant

YEAR = 365.25
MAX_TIME = 5200.0  # days
CAUSES = ["circulation", "neoplasm", "other"]
AGES = ["under 70", "70 and over"]
COLORS = {"circulation": "#D55E00", "neoplasm": "#0072B2", "other": "#009E73"}

X, y = load_flchain()
chapter = X["chapter"].astype(object)
cause = chapter.map({"Circulatory": "circulation", "Neoplasms": "neoplasm"}).fillna("other")
cause = np.where(y["death"], cause, "alive")
age = np.where(X["age"].astype(float) >= 70, AGES[1], AGES[0])

# %%
# One table, one epsilon
# ----------------------

ledger = PrivacyAccountant(epsilon=1.0)
fitter = DPAalenJohansenFitter(
    epsilon=1.0, max_time=MAX_TIME, causes=CAUSES, censored="alive", groups=AGES, accountant=ledger
)
fitter.fit(y["futime"], cause, group=age)
print(f"Spent: epsilon = {ledger.spent():g}\n")
for label in AGES:
    for name in CAUSES:
        share = fitter.of_group(label).cumulative_density_at_times([10 * YEAR], cause=name)
        print(f"{label:12} dead of {name:12} within ten years: {float(share.iloc[0]):.1%}")

# %%
# The course of each cause
# ------------------------
# Solid curves are private. Dashed ones are lifelines', without privacy, in comparison.

times = np.linspace(1.0, MAX_TIME, 200)
fig, panels = plt.subplots(1, 2, figsize=(9.2, 4.2), layout="constrained")
for ax, label in zip(panels, AGES, strict=True):
    here = age == label
    for code, name in enumerate(CAUSES, start=1):
        private = fitter.of_group(label).cumulative_density_at_times(times, cause=name)
        ax.plot(times / YEAR, private, color=COLORS[name], linewidth=2.2, label=name)
        events = np.select([cause[here] == c for c in CAUSES], [1, 2, 3], 0)
        # lifelines wants no ties: those of whole days are broken by lot.
        untied = y["futime"][here] + np.random.default_rng(0).uniform(0, 1, here.sum())
        plain = AalenJohansenFitter(calculate_variance=False)
        plain.fit(untied, events, event_of_interest=code)
        step = plain.cumulative_density_.iloc[:, 0]
        ax.plot(step.index / YEAR, step, color="black", linewidth=0.9, linestyle=(0, (4, 1.5)))
    ax.set_title(label, loc="left", fontsize="medium")
    ax.set_xlim(0, MAX_TIME / YEAR)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set_xlabel("Time since the blood sample (years)")
    ax.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("Dead of this cause")
panels[0].legend(title="cause of death", frameon=False)
fig.suptitle("Cumulative incidence of three causes of death by age, private at ε = 1")

# %%
# Among the older, deaths of the circulation are ahead of neoplasms; among the younger, neoplasms
# lead. A private table of two groups and three causes has more cells than one for survival, each
# with the same noise, and the curves are still close to those without privacy. Scales of the two
# panels differ. See :doc:`/user_guide/curves`.
#
# **A cause of death is as private as the death: count both in one table, and pay once.**
