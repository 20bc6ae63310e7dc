"""What `make dist` runs in an empty environment, outside of the repository: does a package work?"""

import contextlib
import subprocess
import sys
import tempfile
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

import skdpsurv
from skdpsurv.datasets import load_flchain

SCHEMA = '[columns]\nage = [30, 95]\nstage = ["I", "II"]\n'


def main():
    assert "site-packages" in skdpsurv.__file__, "not installed"
    files = resources.files("skdpsurv")
    assert files.joinpath("py.typed").is_file()
    assert files.joinpath("report", "report.html.jinja").is_file()
    assert find_spec("sksurv") is None, "the package alone must not bring what is under the GPL"
    with contextlib.suppress(ImportError):
        load_flchain()
        raise AssertionError("flchain comes with an extra")
    rng = np.random.default_rng(0)
    n = 400
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ages, days = rng.normal(62.0, 10.0, n).round(1), rng.exponential(900.0, n).round(1)
        frame = pd.DataFrame({"age": ages, "stage": rng.choice(["I", "II"], n), "days": days})
        frame.assign(died=rng.integers(0, 2, n)).to_csv(folder / "study.csv", index=False)
        (folder / "columns.toml").write_text(SCHEMA)
        for command in (
            "--version",
            "fit survival study.csv --time days --event died --schema columns.toml "
            "--max-time 1000 --epsilon 1 --out model.json --ledger l.sqlite --budget 2",
            "fit km study.csv --time days --event died --max-time 1000 --epsilon 1 "
            "--out curve.json --ledger l.sqlite",
            "explain model.json --html report.html",
            "predict model.json study.csv --out predictions.csv",
            "ledger show l.sqlite",
            "planner planner.html",
        ):
            words = [str(Path(sys.executable).parent / "skdpsurv"), *command.split()]
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        assert len(pd.read_csv(folder / "predictions.csv")) == n
        assert "Proved. There is a proof" in (folder / "report.html").read_text(encoding="utf-8")
    print(f"skdpsurv {skdpsurv.__version__}: the installed package works")


if __name__ == "__main__":
    main()
