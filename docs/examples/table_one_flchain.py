"""
Table 1, and one count more
===========================

The first table of nearly every paper describes its people by group. Here it is for women and men
of the flchain study (7,874 residents of Olmsted County, Minnesota, aged 50 or more), followed by a
number that no estimator makes; both are charged to one ledger.
"""

# %%
# Columns
# -------
# Bounds, categories and units are public: they come from the protocol and from clinical chemistry.
# Creatinine was often not measured, so it has a cell for missing values.

import matplotlib.pyplot as plt
import numpy as np
import opendp.prelude as dp

from skdpsurv import DPTableOne, PrivacyAccountant, PrivacyGuarantee, PublicColumns
from skdpsurv.datasets import load_flchain

X = load_flchain().X
X["sex"] = np.where(X["sex_male"] == 1, "male", "female")
columns = PublicColumns(
    {
        "sex": ["female", "male"],
        "age": {"bounds": (50, 100), "unit": "years"},
        "kappa": {"bounds": (0, 6), "unit": "mg/dL"},
        "lambda": {"bounds": (0, 6), "unit": "mg/dL"},
        "creatinine": {"bounds": (0, 4), "unit": "mg/dL", "missing": "midpoint"},
        "mgus": bool,
    },
    missing="error",
)

# %%
# The table
# ---------
# It costs epsilon once. Sizes of groups are noisy, too. Braces hold 95 % intervals for these
# people, which allow for the noise.

ledger = PrivacyAccountant(epsilon=1.0)
table = DPTableOne(0.75, columns=columns, by="sex", accountant=ledger)
table.fit(X[["sex", "age", "kappa", "lambda", "creatinine", "mgus"]])
skewed = ["kappa", "lambda"]
print(table.to_frame(nonnormal=skewed).to_string())

# %%
# For the population that these people were drawn from, intervals allow for sampling, too.

print(table.to_frame(nonnormal=skewed, intervals="population").to_string())

# %%
# All estimates, with both intervals, are in ``table_``.

print(table.table_.loc["creatinine"].round(3).to_string())

# %%
# Means by sex
# ------------
# Thick strokes are intervals for these people, thin ones for the population. Crosses are the means
# without privacy; they are shown because these records are published anyway.

fig, axes = plt.subplots(1, 4, figsize=(9.0, 2.6), layout="constrained")
for ax, name in zip(axes, ["age", "kappa", "lambda", "creatinine"], strict=True):
    values = X[name].clip(*columns.columns[name]["bounds"])
    for place, sex in enumerate(table.groups_):
        row = table.table_.loc[name, "", "mean", sex]
        ax.plot([place] * 2, row[["population_low", "population_high"]], color="#0072B2")
        ax.plot([place] * 2, row[["people_low", "people_high"]], color="#0072B2", linewidth=5.0)
        ax.plot(place, values[X["sex"] == sex].mean(), "x", color="black")
    ax.set_title(f"{name}, {columns.columns[name]['unit']}", fontsize="medium")
    ax.set_xticks([0, 1], table.groups_)
    ax.set_xlim(-0.6, 1.6)
    ax.spines[["top", "right"]].set_visible(False)
fig.suptitle("Means by sex, with 95 % intervals")

# %%
# One count by hand
# -----------------
# How many were 95 or older, and had a creatinine measured? OpenDP draws the noise. Replacing one
# record moves a count by at most 1. The ledger is charged before the noise is drawn.

epsilon = 0.25
dp.enable_features("contrib")
counter = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1 / epsilon)
assert counter.map(1) <= epsilon
promise = PrivacyGuarantee(
    epsilon,
    mechanism="discrete Laplace noise on one count",
    public_inputs={"n_records": len(X)},
    source="Ghosh, Roughgarden and Sundararajan (2009)",
)
ledger.charge(promise, estimator="count of people of 95 or more")
old = (X["age"] >= 95) & X["creatinine"].notna()
print(f"95 or older: {counter(int(old.sum()))}")
print(f"Spent: epsilon = {ledger.spent():g}, left: {ledger.remaining():g}")

# %%
# A single question gets a smaller noise than a table of five columns, at the same epsilon.
# :doc:`/user_guide/table_one` explains the table, and :doc:`/coming_from/opendp` how neighbours
# compare.
#
# **Table 1 is paid for once; what it does not answer is another charge to the same ledger.**
