"""The command line: what it prints, saves and refuses."""

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import skdpsurv
from skdpsurv.cli import app
from skdpsurv.cli.demo import compare_on_flchain


def run(*args, code=0):
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code == code, result.output
    return result


def test_version_and_help():
    version = f"skdpsurv {skdpsurv.__version__}\n"
    assert run("--version").output == version
    assert "demo" in run("--help").output


@pytest.mark.slow
def test_demo_prints_a_table_and_saves_a_figure(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.png"
    output = run("demo", "--epsilon", "1", "--epsilon", "0.5", "--out", str(path)).output
    private = [line for line in output.splitlines() if "Private hazard model" in line]
    cells = [[cell.strip() for cell in line.split("│")[1:4]] for line in private]
    assert cells == [["Private hazard model", e, "proved"] for e in ("1", "0.5")]
    assert "together they spent 1.5" in " ".join(output.split())
    assert "not private themselves" in " ".join(output.split())
    assert path.name in output
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_seed_repeats_the_demo_and_is_called_what_it_is(monkeypatch):
    """Without matplotlib there is no figure, and all the rest."""
    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    first, second = (run("demo", "--epsilon", "1", "--seed", "3").output for _ in range(2))
    assert first == second
    assert all(word in first for word in ("seeded", "Cox regression", "skdpsurv[plot]"))
    assert "proved" not in first


def test_demo_refuses():
    run("demo", "--json", code=2)  # its figures are for people
    for epsilon in ("0", "inf", "nan"):
        run("demo", "--epsilon", epsilon, code=2)
    for path, said in (("no-such-folder/demo.png", "folder that exists"), ("demo.doc", ".png")):
        assert said in run("demo", "--out", path, code=2).stderr


@pytest.mark.slow
def test_the_fits_are_compared_in_order_and_agree_with_cox():
    """Noise is seeded, and far below the margins here: no false alarm."""
    comparison = compare_on_flchain([1.0, 10.0, 1.0], seed=0)
    scores = comparison.scores
    assert scores["epsilon"].tolist() == [np.inf, np.inf, 10, 1, np.inf]
    assert (comparison.spent, comparison.n_train + comparison.n_test) == (11, 7874)
    cox, plain, *private, kaplan_meier = (row for _, row in scores.iterrows())
    assert plain["coef. error"] < 0.05
    for measure, margin in (("C-index", 0.005), ("Brier", 0.002)):
        assert plain[measure] == pytest.approx(cox[measure], abs=margin)
    for score in private:
        assert score["C-index"] > 0.75
        assert score["Brier"] < kaplan_meier["Brier"]
