"""Adult: income above 50,000 USD, with what is publicly known of its columns.

Bounds and labels are those of the census's questionnaire; shares, means and spreads are of working
people in the United States in 1994, roughly, as labour statistics have them. Nothing is computed
from the records, and nothing was chosen by scores on them. The survey's weight is no column, nor is
the name of the degree, whose number is one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import Setting
from skdpsurv import PublicColumns

FILE = "adult.csv.gz"
#: A separated or divorced person, and one whose spouse is elsewhere, lives apart.
MARITAL = {
    "Married-civ-spouse": "married",
    "Married-AF-spouse": "married",
    "Married-spouse-absent": "apart",
    "Separated": "apart",
    "Divorced": "apart",
    "Widowed": "widowed",
    "Never-married": "never",
}
OCCUPATIONS = {
    "Adm-clerical": 0.14,
    "Exec-managerial": 0.14,
    "Prof-specialty": 0.14,
    "Sales": 0.12,
    "Craft-repair": 0.11,
    "Other-service": 0.11,
    "Machine-op-inspct": 0.07,
    "Transport-moving": 0.05,
    "Handlers-cleaners": 0.04,
    "Farming-fishing": 0.03,
    "Tech-support": 0.03,
    "Protective-serv": 0.01,
    "Priv-house-serv": 0.005,
    "Armed-Forces": 0.005,
}
WORK = {
    "Private": 0.72,
    "Self-emp-not-inc": 0.08,
    "Self-emp-inc": 0.03,
    "Federal-gov": 0.03,
    "Local-gov": 0.08,
    "State-gov": 0.05,
    "Without-pay": 0.01,
}
RELATIONS = {
    "Husband": 0.3,
    "Wife": 0.2,
    "Own-child": 0.15,
    "Not-in-family": 0.2,
    "Unmarried": 0.1,
    "Other-relative": 0.05,
}


def _labels(shares: dict[str, float]) -> dict[str, Any]:
    return {"categories": [*shares], "prevalence": [*shares.values()]}


def _flag(share: float) -> dict[str, Any]:
    return {"boolean": True, "prevalence": share}


#: One in twelve has capital gains, of thousands of USD, and one in twenty losses.
_GAIN = {"log": [0, 100_000], "offset": 1000, "typical": 200, "spread": 0.6}
_LOSS = {"log": [0, 5000], "offset": 500, "typical": 40, "spread": 0.35}
_HOURS = {"typical": 40, "spread": 12}
_EDUCATION = {"typical": 10, "spread": 2.5}
#: Eight features, of the columns that economists name first.
SHORT: dict[str, dict[str, Any]] = {
    "age": {"spline": [16, 90], "df": 2, "typical": 40, "spread": 13},
    "education_num": {"bounds": [1, 16], **_EDUCATION},
    "hours_per_week": {"bounds": [1, 99], **_HOURS},
    "capital_gain": _GAIN,
    "married": _flag(0.55),
    "male": _flag(0.55),
    "white_collar": _flag(0.3),
}
#: Thirty-nine features, of all columns.
LONG: dict[str, dict[str, Any]] = {
    "age": {"spline": [16, 90], "df": 3, "typical": 40, "spread": 13},
    "education_num": {"spline": [1, 16], "df": 2, **_EDUCATION},
    "hours_per_week": {"spline": [10, 70], "df": 2, **_HOURS},
    "capital_gain": _GAIN,
    "capital_loss": _LOSS,
    "male": _flag(0.55),
    "white": _flag(0.85),
    "born_here": _flag(0.9),
    "marital": _labels({"married": 0.55, "never": 0.25, "apart": 0.15, "widowed": 0.05}),
    "relationship": _labels(RELATIONS),
    "occupation": _labels(OCCUPATIONS),
    "workclass": _labels(WORK),
}
#: Records times epsilon for each feature, below which a fit asks for fewer columns.
ENOUGH = 50.0


def columns_for(n_records: int, epsilon: float) -> PublicColumns:
    """Return all columns, or the few, by public numbers alone."""
    every = PublicColumns(LONG)
    enough = ENOUGH * len(every.get_feature_names_out())
    return every if n_records * epsilon >= enough else PublicColumns(SHORT)


@cache
def adult(setting: Setting) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns, those above among them, and labels."""
    frame = pd.read_csv(setting.file(FILE))
    y = frame.pop("income_over_50k").to_numpy(dtype=int)
    frame["marital"] = frame["marital_status"].map(MARITAL)
    frame["married"] = frame["marital"] == "married"
    frame["male"] = frame["sex"] == "Male"
    frame["white"] = frame["race"] == "White"
    frame["born_here"] = frame["native_country"] == "United-States"
    frame["white_collar"] = frame["occupation"].isin(["Exec-managerial", "Prof-specialty"])
    return frame, y
