"""The examples of the documentation run, and draw."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import skdpsurv.survival.weibull_fitter as weibull

#: Fewer repetitions than the page has; what they draw is the same.
SHORTER = {"two_hospitals": ("--repetitions", "2"), "choosing_epsilon": ("--repeats", "2")}
EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_runs_and_draws(script, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    simulate = weibull.plausible_estimates
    monkeypatch.setattr(
        weibull, "plausible_estimates", lambda plan, released, _: simulate(plan, released, 20)
    )
    output = tmp_path / "figure.png"
    monkeypatch.setattr(
        sys, "argv", [str(script), "--output", str(output), *SHORTER.get(script.stem, ())]
    )
    runpy.run_path(str(script), run_name="__main__")
    assert output.read_bytes().startswith(b"\x89PNG")
    assert "Spent: epsilon = " in capsys.readouterr().out
    page = script.with_suffix(".md").read_text(encoding="utf-8")
    assert script.name in page
    assert f"images/{script.stem}.png" in page
    assert (EXAMPLES / "images" / f"{script.stem}.png").stat().st_size < 100_000
