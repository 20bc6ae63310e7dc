"""Descriptions of columns, and a table that has them."""

from datetime import date

import numpy as np
import pandas as pd

#: One column of each kind for each way to treat what is missing, and a table with all of these.
SPECIFICATIONS = {
    "age": {"bounds": [0, 90], "unit": "years", "missing": "midpoint"},
    "dose": {"bounds": (0.1, 0.7), "missing": "category"},
    "smoking": {"categories": ["never", "past", "now"], "missing": "category"},
    "stage": [1, 2, 3],
    "treated": {"boolean": True, "missing": "category"},
    "seen": {"boolean": True, "missing": "midpoint"},
    "entry": {"dates": ["2001-01-01", date(2010, 12, 31)], "missing": "category"},
    "bmi": (10, 60),
    "alive": bool,
}
DATES = {"dates": ["2001-01-01", "2001-01-11"]}


def rows():
    return pd.DataFrame(
        {
            "age": [45.0, None, 140.0],
            "dose": pd.Series([None, 0.1, 0.55], dtype=object),
            "smoking": ["now", None, "past"],
            "stage": [1, 3, 2],
            "treated": pd.array([True, None, False], dtype="boolean"),
            "seen": [1.0, 0.0, np.nan],
            "entry": pd.to_datetime(["2001-01-01", "2020-06-30T12:00", None], format="ISO8601"),
            "bmi": [10, 35, 22],
            "alive": [True, False, True],
        }
    )
