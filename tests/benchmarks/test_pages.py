"""Tables are what reports make of the rows, and pages quote no number that is not in them."""

import re
import tomllib
from pathlib import Path

import pytest

from benchmarks.first_page import write_first_page
from benchmarks.harness import RESULTS, Results, manifest, report
from benchmarks.pages import DOCS, Pages
from benchmarks.studies import planner_grid
from skdpsurv.report import planner

ROOT = Path(__file__).parents[2]
ENTRIES = manifest()
PAGES = sorted(DOCS.glob("*.md"))
INCLUDE = re.compile(r"```\{include\} (\S+)")
#: What is not prose: code and directives, formulas, links' targets, comments.
NOT_PROSE = re.compile(r"```.*?```|`[^`]*`|\$[^$]*\$|\]\([^)]*\)|\{\w+\}`[^`]*`", re.DOTALL)
#: A result: a decimal number, a percentage, or a factor.
RESULT = re.compile(r"(?<![\w.])\d*\.\d+(?![\w.]*\d)|\d+(?:\.\d+)?(?= ?%| times)")
#: Numbers that are no results: levels of intervals, settings, shares of records.
SETTINGS = {
    "README": {"3.11"},
    "absolute_risk": {"30"},
    "classification": {"0.5", "1.25"},
    "curves": {"95"},
    "delta": {"0.5", "2"},
    "discrete_time": {"0.15", "0.8"},
    "hybrid": {"0.5"},
    "intervals": {"95"},
    "joint_tests": {"0.8", "0.5", "0.3", "0.2", "0.6"},
    "index": {"95"},
}
QUOTES = tomllib.loads((Path(__file__).parent / "quotes.toml").read_text())


class Undrawn(Pages):
    """Pages that save no figure, which takes longer than all tables."""

    def figure(self, name, drawn):
        pass


def made(pages):
    """Return the folder with all pages' parts, made anew from the rows."""
    for entry in ENTRIES.values():
        report(entry, pages, RESULTS)
    write_first_page(pages)
    return pages.folder


def tables(page: Path) -> str:
    """Return the text of all tables that a page includes."""
    found = INCLUDE.findall(page.read_text())
    return "\n".join((page.parent / name).read_text() for name in found)


def results(text: str) -> set[str]:
    """Return the results that a text states, as it writes them."""
    text = re.sub(r"\b\d{4}\.\d{5}\b", "", text)  # arXiv
    settings = re.sub(r"(?:ε|epsilon|δ|delta|alpha|K|p|n) ?(?:=|of|up to) ?[\d.,]+", "", text)
    return set(RESULT.findall(settings))


def test_tables_are_what_reports_make_of_the_rows(tmp_path):
    here = {path.name: path.read_text() for path in (DOCS / "tables").iterdir()}
    anew = {path.name: path.read_text() for path in (made(Undrawn(tmp_path)) / "tables").iterdir()}
    assert here.keys() == anew.keys()
    assert [name for name in anew if here[name] != anew[name]] == []


@pytest.mark.slow
def test_every_figure_is_drawn(tmp_path):
    figures = (folder / "figures" for folder in (DOCS, made(Pages(tmp_path))))
    here, anew = ({path.name for path in folder.iterdir()} for folder in figures)
    assert here == anew


@pytest.mark.slow
def test_the_planner_has_the_grid_that_was_measured():
    """But for rounding in the search for lengths of the smoothing."""
    found, own = planner_grid.grid(Results(RESULTS / "planner_grid.csv").frame), planner.grid()
    assert found["about"] == own["about"]
    for name in own.keys() - {"about"}:
        assert found[name]["axes"] == own[name]["axes"]
        for figure, values in own[name]["values"].items():
            assert found[name]["values"][figure] == pytest.approx(values, rel=0.02, abs=2e-3)


def test_every_table_is_included_and_every_result_has_an_experiment():
    included = {name for page in PAGES for name in INCLUDE.findall(page.read_text())}
    written = {f"tables/{path.name}" for path in (DOCS / "tables").glob("*.md")}
    assert included == written
    assert {path.stem for path in RESULTS.glob("*.csv")} <= set(ENTRIES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_states_no_result_that_its_tables_do_not_hold(page):
    prose = NOT_PROSE.sub(" ", page.read_text())
    held = tables(page)
    allowed = SETTINGS.get(page.stem, set())
    assert {number for number in results(prose) - allowed if number not in held} == set()


def test_what_a_page_states_is_found():
    assert results("0.37 times as far, 58 % and ×1.5; at ε = 0.3") == {"0.37", "58", "1.5"}


def normal(text: str) -> str:
    """Return a text without line breaks and links' targets."""
    return " ".join(re.sub(r"\]\([^)]*\)", "]", text).replace("[", "").replace("]", "").split())


def quotes(page: str) -> list[str]:
    """Return what a page is to say, with the numbers that experiments found."""
    facts = tomllib.loads((DOCS / "tables" / "facts.toml").read_text())
    measured = [q for q in QUOTES[page]["quotes"] if set(re.findall(r"\{(\w+)\}", q)) <= set(facts)]
    return [quote.format(**facts) for quote in measured]


@pytest.mark.parametrize("page", list(QUOTES))
def test_a_page_quotes_what_experiments_found(page):
    text = normal((ROOT / page).read_text())
    assert [quote for quote in quotes(page) if quote not in text] == []


def test_the_first_page_has_no_result_that_is_no_quote():
    text = normal(re.sub(r"```.*?```", " ", (ROOT / "README.md").read_text(), flags=re.DOTALL))
    for quote in QUOTES["README.md"]["quotes"]:
        pattern = re.sub(r"\\{\w+\\}", r"[\\d.,]+", re.escape(quote))
        assert re.search(pattern, text), quote
        text = re.sub(pattern, "", text)
    assert results(NOT_PROSE.sub(" ", text)) - SETTINGS["README"] == set()
