"""
Publish, and predict elsewhere
==============================

A hospital publishes one file. Somebody who has it, and no record, predicts from raw rows, draws
curves with intervals, reads what is promised, and takes the formula to another language.
"""

# %%
# In the hospital
# ---------------
# ``inference_share`` pays for standard errors, so that curves have intervals.

import tempfile
from pathlib import Path

import pandas as pd

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PublicColumns, Release
from skdpsurv.datasets import load_flchain
from skdpsurv.plotting import plot_survival_curves
from skdpsurv.report import formula, save_report, units

YEAR = 365.25
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "model.json")

data = load_flchain()
bounds = {name: data.bounds[name] for name in ("age", "sex_male", "creatinine")}
ledger = PrivacyAccountant(epsilon=2.0)
model = DPDiscreteTimeSurvival(
    2.0,
    max_time=data.max_time,
    columns=PublicColumns(bounds, missing="midpoint"),
    inference_share=0.2,
    accountant=ledger,
)
model.fit(data.X[list(bounds)], data.y)
model.release_.save(path)
print(f"Spent: epsilon = {ledger.spent():g}; the file has {path.stat().st_size:,} bytes")

# %%
# Elsewhere
# ---------
# From here on there is the file, and nothing else.

del data, model, ledger
release = Release.load(path)
print(release.guarantee.epsilon, release.guarantee.status)
print(units(release).to_string())

# %%
# Patients are rows with the same names. A creatinine that was not measured counts as the study
# said.

patients = pd.DataFrame(
    {"age": [58, 72, 88], "sex_male": [0, 1, 1], "creatinine": [0.9, None, 1.5]},
    index=["woman of 58", "man of 72", "man of 88"],
)
for name, curve in zip(patients.index, release.predict_survival_function(patients), strict=True):
    print(f"{name}: alive after 5 years {curve(5 * YEAR):.0%}, after 10 {curve(10 * YEAR):.0%}")

# %%
# Curves with intervals
# ---------------------

ax = plot_survival_curves(
    release.to_estimator(),
    patients,
    labels=list(patients.index),
    time_scale=YEAR,
    time_unit="years",
    band=True,
)
ax.set_title("Survival of three patients from a released file alone, 95 % intervals", fontsize=11)

# %%
# Elsewhere, without Python
# -------------------------
# A formula for any language, and a page that a privacy officer can read and sign.

print(formula(release))
save_report(release, Path(folder.name, "report.html"))
print(f"\nThe page has {Path(folder.name, 'report.html').stat().st_size:,} bytes.")
folder.cleanup()

# %%
# Everything here was computed from the release, so that none of it costs anything more, however
# often it is done and by whomever. :doc:`/user_guide/releases` says what the file holds, and
# :doc:`/user_guide/reports` what the page says.
#
# **What is made of a release is as private as the release: after it has left, there is nothing more
# to pay.**
