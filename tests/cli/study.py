"""A file of made-up records, as a hospital has one, and commands on it."""

import json

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from skdpsurv import PrivacyAccountant, Release
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

    def run(self, *arguments, code=None, says=""):
        """Run a command; names of files in the folder begin with an @.

        With ``code`` it must end so, and a failure say what ``says`` is.
        """
        given = [self.path(a[1:]) if str(a).startswith("@") else str(a) for a in arguments]
        result = CliRunner().invoke(app, given)
        if code is not None:
            assert result.exit_code == code, (given, result.output)
            assert says in " ".join((result.stderr if code else result.stdout).split()), given
        return result

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json", code=0).stdout)

    def release(self, name="model"):
        return Release.load(self.path(f"{name}.json"))

    def spent(self, ledger="study"):
        path = self.folder / f"{ledger}.sqlite"
        return PrivacyAccountant(path=path).spent() if path.exists() else 0.0

    def survival(
        self, *more, out="@model.json", data="@study.csv", schema="@columns.toml", **expected
    ):
        return self.run(
            *("fit", "survival", data, *TARGET, *HORIZON, "--schema", schema, "--drop", "id"),
            *("--epsilon", "1", "--out", out, *more),
            **expected,
        )

    def km(self, *more, out="@km.json", data="@study.csv", target=TARGET, **expected):
        given = ("fit", "km", data, *target, *HORIZON, "--epsilon", "1", "--out", out)
        return self.run(*given, *more, **expected)

    def classes(self, *more, data="@small.csv", target=("stage", "I,II,III"), **expected):
        """Fit a classifier."""
        given = ("fit", "logistic", data, "--target", target[0], "--classes", target[1])
        given += ("--schema", "@small.toml", "--epsilon", "1", "--out", "@classes.json")
        return self.run(*given, *more, **expected)

    def evaluate(self, *more, data="@study.csv", model="@model.json", **expected):
        given = ("evaluate", model, data, *TARGET, "--drop", "id", "--epsilon", "1")
        return self.run(*given, "--out", "@e.json", *more, **expected)
