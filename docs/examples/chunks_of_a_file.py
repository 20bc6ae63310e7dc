"""
A file that is too large for the memory
=======================================

A table may be read in chunks, or lie in pieces on many machines. The release must not depend on
how it was cut: here the same records at once, in chunks of a file, and as a collection of Dask.
"""

# %%
# A file
# ------
# Made-up records of 30,000 people, written to a file that nobody needs to hold in memory.

import tempfile
from pathlib import Path

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdpsurv import DPKaplanMeierFitter, FrameChunks, PrivacyAccountant, split_target

rng = np.random.default_rng(0)  # makes records up; draws no noise
days = rng.weibull(0.8, 30_000) * 3000
left = rng.uniform(0, 6000, 30_000)
table = pd.DataFrame({"days": np.minimum(days, left), "died": days <= left, "age": 60.0})
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "records.csv")
table.to_csv(path, index=False)

# %%
# Three ways to the same records
# ------------------------------
# Each fit is charged: whoever fits three times pays three times.

ledger = PrivacyAccountant(epsilon=3.0)
sources = {
    "all at once": table,
    "chunks of 4,000 rows": FrameChunks(lambda: pd.read_csv(path, chunksize=4000)),
    "Dask, six partitions": dd.from_pandas(table, npartitions=6),
}
fits = {}
for name, source in sources.items():
    X, y = split_target(source, time="days", event="died")
    fits[name] = DPKaplanMeierFitter(1.0, max_time=3650, accountant=ledger).fit(X, y)
    print(f"{name:22} {fits[name].release_.guarantee.status}, {fits[name].predict(3650):.3f} alive")
print(f"Spent: epsilon = {ledger.spent():g}")
folder.cleanup()

# %%
# They differ by the noise alone
# ------------------------------
# The curves lie on each other, so the lower panel shows how far each is from the truth, which is
# known of made-up records.

times = np.linspace(0, 3650, 300)
truth = np.exp(-((times / 3000) ** 0.8))
fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(7.0, 5.2), sharex=True, layout="constrained", height_ratios=[2, 1.3]
)
for (name, fit), color in zip(fits.items(), ("#0072B2", "#D55E00", "#009E73"), strict=True):
    curve = np.asarray(fit.survival_function_at_times(times))
    top.plot(times, curve, color=color, label=name)
    bottom.plot(times, 100 * (curve - truth), color=color)
top.plot(times, truth, color="black", linestyle=(0, (4, 2)), linewidth=1, label="truth")
bottom.axhline(0, color="black", linewidth=1)
top.legend(frameon=False)
top.set_ylim(0, 1)
top.set_ylabel("Probability of survival")
bottom.set_ylabel("Less the truth\n(percentage points)")
bottom.set_xlabel("Time (days)")
bottom.set_xlim(0, 3650)
top.set_title(
    "One curve from a table, from chunks of a file and from Dask, each ε = 1", fontsize=11
)
for ax in (top, bottom):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# What is left is sampling, which all three share, and noise, which each drew for itself. Records
# stay where they are, and sums travel; the guarantee and the law of the release are the same.
# :doc:`/user_guide/distributed` says who has to be trusted with what.
#
# **How a table is cut changes the time that a fit takes, and neither the release nor its price.**
