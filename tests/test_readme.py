"""The README's Python runs as it is pasted."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) == text.count("```python") > 0
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        # Empty lines in front, so that a traceback shows the line of the README.
        above = text.count("\n", 0, block.start(1))
        exec(compile("\n" * above + block[1], README, "exec"), namespace)
    printed = capsys.readouterr().out
    assert "epsilon = 1: status proved" in printed
    assert "Alive after 5 years" in printed
    assert "The search spent epsilon = 7\n" in printed
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        assert target.startswith("https://") or (README.parent / target).exists(), target
