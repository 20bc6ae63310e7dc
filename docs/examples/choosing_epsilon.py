"""
Choosing epsilon before any is spent
====================================

A registry of 5,000 patients is planned. Its protocol says what will be recorded, within which
bounds, and about one patient in three will have died at the end. Which epsilon does a private
hazard model need? Studies are made up from these public numbers, and fitted at each epsilon: no
record is looked at, and nothing is spent.
"""

# %%
# What the protocol says
# ----------------------
# Earlier studies of the disease had a C-index of 0.75 or so. That is all that a forecast needs.

from skdpsurv import DPDiscreteTimeSurvival, PrivacyAccountant, PublicColumns, forecast_accuracy

REPETITIONS = 8  # simulated studies

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
# ``loss`` is what privacy costs in ranking; ``loss_low`` and ``loss_high`` hold eight of ten
# simulated studies between them. The last lines of the output are the advice in words.

forecast = forecast_accuracy(
    model,
    5000,
    event_rate=0.33,
    concordance=0.75,
    censoring=0.8,
    epsilons=(0.1, 0.3, 1.0, 3.0),
    n_repeats=REPETITIONS,
)
table = forecast.table.round(3)
print(f"Spent: epsilon = {ledger.spent():g}\n")
print(table[["c_index", "loss", "loss_low", "loss_high", "calibration", "risk_error"]], "\n")
print(table[["finite_intervals", "interval_width"]], "\n")
print(forecast.advice)

# %%
# Three questions, three answers
# ------------------------------

axes = forecast.plot()
axes[0].set_title("Ranking: loss in C-index", fontsize="medium")
axes[1].set_title("Risk: predicted over true", fontsize="medium")
axes[2].set_title("Hazard ratios: width of intervals", fontsize="medium")

# %%
# To rank patients, 0.3 would nearly do, and 1 does. Predicted risks are about twice as far off at
# 0.3 as at 1, and hazard ratios with intervals need 1 at the least: at 0.3 most intervals leave
# everything open. :doc:`/user_guide/choosing_epsilon` says how to ask, and what a forecast cannot
# tell.
#
# **Ask what the model is for before you ask which epsilon: ranking is cheap, risks cost more, and
# hazard ratios with intervals cost most.**
