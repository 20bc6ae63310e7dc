"""A file of made-up records, as a hospital has one, and commands on it."""

import json

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from skdpsurv.cli import app

SCHEMA = """
missing = "error"
[columns]
age = { bounds = [30, 95], unit = "years", missing = "midpoint" }
stage = ["I", "II", "III"]
smoking = ["never", "None", "now"]
diagnosed = { dates = ["2001-01-01", "2010-12-31"] }
treated = { boolean = true }
"""
TARGET = ("--time", "days", "--event", "died")
HORIZON = ("--max-time", "3650")


def records(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(62.0, 10.0, n).round(1)
    stage = rng.choice(["I", "II", "III"], n)
    hazard = np.exp(0.06 * (age - 62.0) + 0.8 * (stage == "III")) / 2000.0
    event, censored = rng.exponential(1.0 / hazard), rng.uniform(200.0, 5000.0, n)
    days = pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 3600, n), "D")
    frame = pd.DataFrame(
        {
            "id": [f"{place:05d}" for place in range(n)],
            "age": age,
            "stage": stage,
            "smoking": rng.choice(["never", "None", "now"], n),
            "diagnosed": days.strftime("%Y-%m-%d"),
            "treated": rng.random(n) < 0.4,
            "days": np.minimum(event, censored).round(1),
            "died": (event <= censored).astype(int),
        }
    )
    frame.loc[rng.random(n) < 0.05, "age"] = np.nan
    return frame


class Study:
    """A folder with study.csv and columns.toml in it."""

    def __init__(self, folder, frame=None):
        self.folder = folder
        self.frame = records() if frame is None else frame
        self.write(self.frame)
        (folder / "columns.toml").write_text(SCHEMA)

    def write(self, frame, name="study.csv"):
        frame.to_csv(self.folder / name, index=False)

    def path(self, name):
        return str(self.folder / name)

    def run(self, *arguments):
        """Run a command; names of files in the folder begin with an @."""
        given = [self.path(a[1:]) if str(a).startswith("@") else str(a) for a in arguments]
        return CliRunner().invoke(app, given)

    def json(self, *arguments):
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def survival(self, *more, out="@model.json", data="@study.csv", schema="@columns.toml"):
        return self.run(
            *("fit", "survival", data, *TARGET, *HORIZON, "--schema", schema, "--drop", "id"),
            *("--epsilon", "1", "--out", out, *more),
        )

    def km(self, *more, out="@km.json", data="@study.csv", target=TARGET):
        return self.run("fit", "km", data, *target, *HORIZON, "--epsilon", "1", "--out", out, *more)
