"""The command line: what it prints, saves and refuses."""

from __future__ import annotations

import runpy
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import skdpsurv
from skdpsurv.cli import app
from skdpsurv.cli.demo import compare_on_flchain

runner = CliRunner()


def run(*args):
    return runner.invoke(app, list(args))


def test_version_from_the_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["skdpsurv", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("skdpsurv", run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out == f"skdpsurv {skdpsurv.__version__}\n"


@pytest.mark.slow
def test_version_from_a_process():
    result = subprocess.run(
        [sys.executable, "-m", "skdpsurv", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"skdpsurv {skdpsurv.__version__}\n"


def test_help_names_the_command():
    result = run("--help")
    assert result.exit_code == 0
    assert "demo" in result.output


def test_demo_prints_a_table_and_saves_a_figure(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.png"
    result = run("demo", "--epsilon", "1", "--epsilon", "0.5", "--out", str(path))
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    private = [line for line in lines if "Private hazard model" in line]
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in private]
    assert cells == [["Private hazard model", e, "proved"] for e in ("1", "0.5")]
    assert "together they spent 1.5" in " ".join(result.output.split())
    assert "not private themselves" in " ".join(result.output.split())
    assert path.name in result.output
    assert path.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_says_so_and_still_prints_the_table(tmp_path, monkeypatch):
    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "curves.png"
    result = run("demo", "--epsilon", "1", "--out", str(path))
    assert result.exit_code == 0, result.output
    assert "Cox regression" in result.output
    assert 'pip install "skdpsurv[plot]"' in result.output
    assert not path.exists()


def test_a_seed_repeats_the_demo_and_is_called_what_it_is():
    first, second = (run("demo", "--epsilon", "1", "--seed", "3", "--no-figure") for _ in range(2))
    assert first.exit_code == 0, first.output
    assert first.output == second.output
    assert "seeded" in first.output
    assert "proved" not in first.output
    assert "Figure" not in first.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--epsilon", "0"), "epsilon must be a positive finite number"),
        (("--epsilon", "inf"), "epsilon must be a positive finite number"),
        (("--epsilon", "nan"), "epsilon must be a positive finite number"),
        (("--out", "no-such-folder/demo.png"), "in a folder that exists"),
        (("--out", "demo.doc"), "must end in .png"),
    ],
)
def test_demo_refuses(args, message):
    result = run("demo", *args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_comparison_orders_the_fits_and_agrees_with_cox():
    """Noise is seeded, and far below the margins here: no false alarm."""
    comparison = compare_on_flchain([1.0, 10.0, 1.0], seed=0)
    scores = comparison.scores
    names = scores["model"].tolist()
    assert names[:2] == ["Cox regression", "Hazard model"]
    assert names[-1] == "Kaplan-Meier"
    assert scores["epsilon"].tolist() == [np.inf, np.inf, 10, 1, np.inf]
    assert comparison.spent == 11
    assert list(comparison.models) == ["No privacy", "ε = 10", "ε = 1"]
    cox, plain, *private, kaplan_meier = (row for _, row in scores.iterrows())
    assert cox["coef. error"] == 0
    assert plain["coef. error"] < 0.05
    assert plain["C-index"] == pytest.approx(cox["C-index"], abs=0.005)
    assert plain["Brier"] == pytest.approx(cox["Brier"], abs=0.002)
    for score in private:
        assert score["C-index"] > 0.75
        assert score["Brier"] < kaplan_meier["Brier"]
    assert comparison.n_train + comparison.n_test == 7874
