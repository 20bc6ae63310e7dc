"""A small study: a protocol, and records of people some of whom have several."""

import numpy as np
import pandas as pd

from skdpsurv.data import PublicColumns
from skdpsurv.study import Analysis, Protocol

COLUMNS = {"age": {"bounds": [30, 95], "missing": "midpoint"}, "stage": ["I", "II", "III"]}
ANALYSES = (
    Analysis("curves", "curves", 1.0, {"by": "stage"}),
    Analysis("weibull", "weibull"),
    Analysis("regression", "regression", 2.0),
    Analysis("evaluation", "evaluation", options={"of": "regression"}),
)
NAMES = [analysis.name for analysis in ANALYSES]


def protocol(ledger=None, **changes):
    stated = {
        "title": "Stage and survival",
        "dataset": "registry",
        "owner": "A. Curie",
        "purpose": "protocol 7",
        "columns": PublicColumns(COLUMNS),
        "time": "days",
        "event": "died",
        "person": "id",
        "max_time": 1000.0,
        "unit": "days",
        "epsilon": 6.0,
        "ledger": None if ledger is None else str(ledger),
        "evaluation_share": 0.3,
        "analyses": ANALYSES,
    }
    return Protocol(**{**stated, **changes})


def records(n_people=120, seed=0):
    """Return rows of people, every fourth of whom has two."""
    rng = np.random.default_rng(seed)
    age = rng.normal(62.0, 9.0, n_people).round(1)
    stage = rng.choice(["I", "II", "III"], n_people)
    event = rng.exponential(900.0 * np.exp(-0.04 * (age - 62.0)))
    censored = rng.uniform(100.0, 1500.0, n_people)
    frame = pd.DataFrame(
        {
            "id": [f"P{number:05d}" for number in range(n_people)],
            "age": age,
            "stage": stage,
            "days": np.minimum(event, censored).round(1),
            "died": (event <= censored).astype(int),
        }
    )
    frame.loc[::7, "age"] = np.nan
    again = frame.iloc[::4].assign(days=5.0)
    return pd.concat([frame, again], ignore_index=True)
