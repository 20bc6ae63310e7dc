"""Every statement about epsilon in the documentation is a claim of docs/proofs/claims.md, or none.

A row of its tables has sentences as pages have them, the theorem that they rest on, the code that
the theorem is about, and tests that would fail if it were false. What is looked for in the pages is
a rule (``STATEMENT`` and ``THEOREM`` below): a sentence with a word in which guarantees are stated,
and in the proofs each theorem, which stands in italics. Steps of proofs are the theorem's. What the
rule finds, and is no claim, is in ``sentences_without_claims.toml``, with a reason.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from skdpsurv.model_selection.candidates import charges_of
from tests.support.registry import PRIVATE

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "docs" / "proofs"
CLAIMS = PROOFS / "claims.md"
NO_CLAIMS = Path(__file__).with_name("sentences_without_claims.toml")
FOLDERS = ("user_guide", "tutorials", "proofs")

#: Words in which a guarantee, or its price, is stated.
STATEMENT = re.compile(
    r"differentially private|(?<!non)-private\b|\bDP\b|zCDP|\bproved\b|post-processing"
    r"|\bcosts? (?:only )?(?:nothing|no privacy|no more|the sum|the largest|at most|epsilon|ε)"
    r"|\bcosts? (?:at most )?\$\\(?:epsilon|varepsilon|frac12|sum)"
    r"|never privacy|nothing is spent|at no (?:further )?cost|\btogether cost|\bprotected with"
    r"|guarantee\b.*\bholds\b|(?:has the|same) guarantee|(?:theorem|psilon|ε) covers|e\^ε"
    r"|[Ss]ensitivity (?:of )?\$?[\d\\]"
)
#: A theorem of a page of proofs: a statement in italics, not a word of emphasis.
THEOREM = re.compile(r"(?<![*\w])\*(?=[A-Z$])([^*]{25,}?)(?<!\s)\*(?![*\w])")
MATHS = re.compile(r"\$[^$]+\$")


@dataclass(frozen=True)
class Claim:
    """A row of a table."""

    name: str
    quotes: tuple[tuple[str, str], ...]  # a page, and what it says
    theorems: tuple[str, ...]
    code: tuple[str, ...]
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def plain(text: str) -> str:
    return " ".join(text.split())


def path_of(link: str, page: Path = CLAIMS) -> str:
    """Return where a link of a page leads to, seen from the root."""
    return (page.parent / link).resolve().relative_to(ROOT).as_posix()


@cache
def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def claims() -> list[Claim]:
    found = []
    for line in CLAIMS.read_text(encoding="utf-8").splitlines():
        if not line.startswith("| **"):
            continue
        said, theorems, code, tests = (cell.strip() for cell in line.strip("|").split(" | "))
        quotes = [
            ("README.md" if where == "README" else path_of(where.rpartition("](")[2][:-1]), words)
            for words, where in re.findall(r"“([^”]+)” \((README|\[[^\]]+\]\([^)]+\))\)", said)
        ]
        found.append(
            Claim(
                said.split("**")[1].rstrip("."),
                tuple(quotes),
                tuple(re.findall(r"\]\(([^)]+)\)", theorems)),
                tuple(re.findall(r"`([^`]+)`", code)),
                tuple(re.findall(r"`([^`]+)`", tests)),
            )
        )
    return found


def no_claims() -> list[dict[str, str]]:
    return tomllib.loads(NO_CLAIMS.read_text(encoding="utf-8"))["sentence"]


def pages() -> list[str]:
    paths = [ROOT / "README.md"]
    for folder in FOLDERS:
        paths += sorted((ROOT / "docs" / folder).glob("*.md"))
    return [path.relative_to(ROOT).as_posix() for path in paths if path != CLAIMS]


def without_code_and_proofs(page: str) -> str:
    """Return a page's text: no blocks of code, no proofs (to their squares)."""
    text = re.sub(r"^(```+|~~~+).*?^\1[ \t]*$", "", read(page), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^%.*$", "", text, flags=re.MULTILINE)
    kept, at = [], 0
    for proof in re.finditer(r"^\*{0,2}Proof\b", text, flags=re.MULTILINE):
        if proof.start() < at:
            continue
        kept.append(text[at : proof.start()])
        # A proof without a square ends with its paragraph.
        end = re.compile(r"\\square\$|\n#|\Z").search(text, proof.end())
        if not end.group().startswith("\\square"):
            end = re.compile(r"\n\n|\Z").search(text, proof.end())
        at = end.end()
    return "\n\n".join([*kept, text[at:]])


def statements(page: str) -> list[str]:
    """Return what a page states, by the rule."""
    found = []
    lines = r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*]|\d+\.) )|\n(?=[ \t]*[|:] )|\n(?=#)"
    for block in map(plain, re.split(lines, without_code_and_proofs(page))):
        if block.startswith("#"):
            continue
        if page.startswith("docs/proofs/"):
            masked = MATHS.sub(lambda m: m.group().replace("*", "\0"), block)
            found += [m.group(1).replace("\0", "*") for m in THEOREM.finditer(masked)]
            block = THEOREM.sub(" ", masked).replace("\0", "*")
        sentences = re.split(r"(?<=[.!?:])[*)\"”]*\s+(?=[*(\"“A-Z`$\[])", block)
        found += [sentence for sentence in sentences if STATEMENT.search(sentence)]
    return found


def slug(heading: str) -> str:
    """Return the anchor of a heading, as the pages on the web and on the forge have it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def anchors(page: str) -> set[str]:
    return {slug(h) for h in re.findall(r"^#{1,3} (.+)$", read(page), flags=re.MULTILINE)}


@cache
def imported(name: str) -> object:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


@cache
def nodes(file: str) -> frozenset[str]:
    """Return the tests of a file, without importing it."""
    found = set()
    for node in ast.parse(read(file)).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {f"{file}::{prefix}{n.name}" for n in inside if isinstance(n, ast.FunctionDef)}
    return frozenset(found)


def documented_theorems() -> dict[str, object]:
    """Return all modules, classes and functions whose docstring states a theorem."""
    found = {}

    def look(node: ast.AST, name: str) -> None:
        text = ast.get_docstring(node) or ""
        if "Theorem" in text and "Neighbours" in text:
            found[name] = imported(name)
        for child in getattr(node, "body", []):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                look(child, f"{name}.{child.name}")

    for path in sorted((ROOT / "skdpsurv").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        look(ast.parse(path.read_text(encoding="utf-8")), ".".join(parts).removesuffix(".__init__"))
    return found


ROWS = claims()


def test_there_is_a_table():
    assert len(ROWS) > 30
    lines = CLAIMS.read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("| ") and not line.startswith("| Claim")]
    assert len(tables) == len(ROWS), "a row must begin with its claim in bold letters"
    assert len({(row.name, row.quotes) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("claim", ROWS, ids=str)
def test_a_claim_has_a_theorem_code_and_a_test_which_exist(claim):
    assert all((claim.quotes, claim.theorems, claim.code, claim.tests))
    for page, words in claim.quotes:
        assert words in plain(read(page)), f"{page} does not say: {words}"
    for link in claim.theorems:
        page, _, anchor = link.partition("#")
        assert anchor in anchors(path_of(page)), link
    for name in claim.code:
        assert imported(name) is not None
    for node in claim.tests:
        file, _, _ = node.partition("::")
        assert node in nodes(file), node


@pytest.mark.parametrize("page", pages())
def test_what_a_page_states_is_claimed_or_said_to_be_no_claim(page):
    known = [words for row in ROWS for where, words in row.quotes if where == page]
    known += [entry["words"] for entry in no_claims() if entry["page"] == page]
    stated = statements(page)
    missing = [s for s in stated if not any(words in s for words in known)]
    assert not missing, "claim it in docs/proofs/claims.md, or say why it is none"
    # So that a short quotation does not speak for the next sentence with its words.
    assert all(sum(words in s for s in stated) <= 1 for words in known)


def test_what_is_no_claim_is_stated_and_has_a_reason():
    for entry in no_claims():
        assert set(entry) == {"page", "words", "why"}
        assert len(entry["why"]) > 10
        assert any(entry["words"] in s for s in statements(entry["page"])), entry


def test_a_new_statement_is_found():
    for sentence in (
        "So the sum is $\\epsilon$-differentially private.",
        "Plots cost nothing, as they are post-processing.",
        "It has sensitivity 1.",
        "The chain is $\\rho$-zCDP.",
    ):
        assert STATEMENT.search(sentence)
    assert THEOREM.search("*If rows are clipped to $R$, noise hides one of them.* (Smith 2001.)")


@pytest.mark.parametrize("page", sorted(p.name for p in PROOFS.glob("*.md")))
def test_every_page_of_proofs_has_a_claim_and_names_tests_that_exist(page):
    if page not in ("index.md", "claims.md"):
        assert any(link.startswith(page) for row in ROWS for link in row.theorems)
    for node in re.findall(r"`(tests/[\w/]+\.py::[\w:]+)`", read(f"docs/proofs/{page}")):
        assert node in nodes(node.partition("::")[0]), node


def test_what_is_proved_names_a_page_with_a_claim():
    covered = {path_of(link.partition("#")[0]) for row in ROWS for link in row.theorems}
    proved = 0
    for setting in PRIVATE:
        data = setting.data()
        for guarantee in charges_of(setting.make(), data.X, data.y, data.options):
            if guarantee.status == "proved":
                named = re.findall(r"docs/[\w/]+\.md", guarantee.source)
                assert named, setting.name
                assert set(named) <= covered, setting.name
                proved += 1
    assert proved > 50


def test_a_docstring_that_states_a_theorem_is_about_code_of_the_table():
    claimed = [imported(name) for row in ROWS for name in row.code]
    modules = {getattr(found, "__module__", None) for found in claimed}
    modules |= {found.__name__ for found in claimed if isinstance(found, ModuleType)}
    for name, found in documented_theorems().items():
        if isinstance(found, ModuleType):
            assert name in modules, name
        else:
            of_class = imported(name.rpartition(".")[0])
            assert found in claimed or of_class in claimed, name
