"""The code of the README and of every page of the documentation runs, as it stands.

A page's blocks run in order, in one namespace and in an empty folder: those in Python, and of those
of a shell the commands of this package. What a page needs and does not show is in comments, which
Sybil reads and Sphinx drops ("% invisible-code-block: python"). One test is one page, so that its
order does not depend on how tests are shared out to processes.
"""

import itertools
import re
import shlex
import warnings
from functools import partial
from pathlib import Path

import pytest
import sklearn
from sybil.document import Document
from sybil.evaluators.python import PythonEvaluator
from sybil.example import Example
from sybil.parsers.myst import CodeBlockParser
from typer.testing import CliRunner

import skdpsurv.audit
from skdpsurv import PublicInputWarning, Release
from skdpsurv.cli import app
from tests.cli.study import SCHEMA, Study, records

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
COMMAND_LINE = ROOT / "docs" / "user_guide" / "command_line.md"
#: Pages that take more than two seconds.
SLOW = {
    f"docs/{page}.md"
    for page in (
        *("coming_from/scikit_learn", "tutorials/cross_validation", "user_guide/audit"),
        *("user_guide/choosing_epsilon", "user_guide/competing_risks", "user_guide/curved_terms"),
        *("user_guide/evaluation", "user_guide/reports", "user_guide/several_sites"),
        *("user_guide/study", "user_guide/weibull"),
    )
}
#: What a shell is told that is not run: to install, and to make.
OTHER_COMMANDS = {"make", "pip", "python"}
#: What may be in a fence. Others, such as "py" and "bash", would not be found here.
LANGUAGES = {"python", "sh", "text", "toml"}
#: A file whose name stands in its first line.
NAMED = re.compile(r"^```toml\n# (\S+\.toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*(\S+)", re.MULTILINE)


def pages() -> list[Path]:
    built = {"_build", "gallery", "generated"}
    found = [p for p in (ROOT / "docs").rglob("*.md") if not built & set(p.parts)]
    return [README, *sorted(found)]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def document_of(page: Path) -> Document:
    return Document.parse(
        str(page), CodeBlockParser("python", PythonEvaluator()), CodeBlockParser("sh", run_commands)
    )


def commands(text: str) -> list[list[str]]:
    """Return the words of each command; comments, and variables set in front, are none."""
    lines = text.replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    found = [list(itertools.dropwhile(re.compile(r"[A-Z_]+=").match, words)) for words in split]
    return [words for words in found if words]


def run_commands(example: Example) -> None:
    for program, *arguments in commands(example.parsed):
        if program in OTHER_COMMANDS:
            continue
        assert program == "skdpsurv", program
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, (arguments, result.output)
        if arguments[0] == "schema":
            # A reader fills the template in: as the page says, or as somebody else has.
            filled = re.search(
                r"^```toml\n(.*?)^```$", example.document.text, re.MULTILINE | re.DOTALL
            )
            out = arguments[arguments.index("--out") + 1]
            Path(out).write_text(filled[1] if filled else SCHEMA, encoding="utf-8")


def runs(page: Path) -> bool:
    """Say whether anything of a page is run."""
    return any(
        example.region.evaluator is not run_commands
        or any(words[0] not in OTHER_COMMANDS for words in commands(example.parsed))
        for example in document_of(page)
    )


def run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page in an empty folder; its forecasts simulate two studies, in place of twenty.

    Audits fit a hundred times, in place of thousands.
    """
    monkeypatch.chdir(folder)
    audit = skdpsurv.audit.audit_epsilon
    monkeypatch.setattr(
        skdpsurv.audit, "audit_epsilon", lambda *a, **k: audit(*a, **{**k, "n_trials": 100})
    )
    monkeypatch.setattr(
        skdpsurv, "forecast_accuracy", partial(skdpsurv.forecast_accuracy, n_repeats=2)
    )
    document = document_of(page)
    document.namespace["__name__"] = "__main__"
    for name, text in NAMED.findall(document.text):  # files that a reader writes
        (folder / name).write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as shown, sklearn.config_context():
        warnings.simplefilter("always", PublicInputWarning)
        for example in document:
            example.evaluate()
    # A reader copies what a page does, and has raw columns.
    assert not [w for w in shown if str(w.message).startswith("neither columns nor data_norm")]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (name_of(page) in SLOW), id=name_of(page))
        for page in pages()
        if runs(page) and page not in (README, COMMAND_LINE)
    ],
)
def test_its_blocks_run_in_order(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("dask")
    run(page, tmp_path, monkeypatch)


def test_the_readme_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    run(README, tmp_path, monkeypatch)
    assert "epsilon = 1: status proved" in capsys.readouterr().out
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.slow
def test_commands_of_the_page_about_them_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    study = Study(tmp_path, records(600))
    study.write(records(50, seed=1).drop(columns=["days", "died"]), "new.csv")
    study.write(records(400, seed=2), "others.csv")
    (tmp_path / "columns.toml").unlink()
    run(COMMAND_LINE, tmp_path, monkeypatch)
    assert Release.load("model.json").guarantee.status == "proved"
    assert "600 records" in Path("report.html").read_text(encoding="utf-8")


def test_links_of_the_readme_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        assert target.startswith("https://") or (README.parent / target).exists(), target


def test_no_block_is_forgotten():
    assert {name_of(page) for page in pages()} >= SLOW
    for page in pages():
        text, name = page.read_text(encoding="utf-8"), name_of(page)
        opened = [word for word in FENCE.findall(text) if not word.startswith("{")]
        assert set(opened) <= LANGUAGES, name
        assert "{code" not in text, name
        shown = [e for e in document_of(page) if text.startswith("```", e.region.start)]
        assert len(shown) == sum(word in ("python", "sh") for word in opened), name
        # One whose language is not said would not be run.
        closed = re.findall(r"^[ \t]*```+[ \t]*$", text, re.MULTILINE)
        assert len(closed) == len(FENCE.findall(text)), name
