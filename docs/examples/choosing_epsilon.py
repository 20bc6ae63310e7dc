"""
Choosing epsilon before any is spent
====================================

A registry of 5,000 patients is planned. Its protocol says what will be recorded, within which
bounds, and about one patient in three will have died at the end. Which epsilon does a private
hazard model need? Studies are made up from these public numbers, and fitted at each epsilon: no
record is looked at, and nothing is spent.

Run it with ``python choosing_epsilon.py --output figure.png``.
"""

# %%
# What the protocol says
# ----------------------
# Earlier studies of the disease had a C-index of 0.75 or so.

from __future__ import annotations

import argparse
from pathlib import Path

from skdpsurv import DPDiscreteTimeSurvival, PublicColumns, forecast_accuracy
from skdpsurv.privacy import PrivacyAccountant

parser = argparse.ArgumentParser(description="What a study will get at each epsilon.")
parser.add_argument("--output", type=Path, help="PNG, PDF or SVG to write")
parser.add_argument("--repeats", type=int, default=40, help="simulated studies")
args = parser.parse_args()

columns = PublicColumns(
    {
        "age": {"bounds": [18, 100], "unit": "years"},
        "creatinine": {"bounds": [0, 5], "unit": "mg/dl", "missing": "midpoint"},
        "stage": ["I", "II", "III", "IV"],
        "diabetes": bool,
        "diagnosed": {"dates": ["2010-01-01", "2019-12-31"]},
    }
)
ledger = PrivacyAccountant(epsilon=1.0)
model = DPDiscreteTimeSurvival(
    max_time=3652.0, columns=columns, inference_share=0.2, accountant=ledger
)

# %%
# What will be lost
# -----------------

forecast = forecast_accuracy(
    model,
    5000,
    event_rate=0.33,
    concordance=0.75,
    censoring=0.8,
    epsilons=(0.1, 0.3, 1.0, 3.0),
    n_repeats=args.repeats,
    random_state=0,
)
table = forecast.table.round(3)
print(f"Spent: epsilon = {ledger.spent():g}\n")
print(table[["c_index", "loss", "loss_low", "loss_high", "calibration", "risk_error"]], "\n")
print(table[["finite_intervals", "interval_width"]], "\n")
print(forecast.advice)

# %%
# Figure
# ------

axes = forecast.plot()
if args.output is not None:
    axes[0].figure.savefig(args.output, dpi=90)
