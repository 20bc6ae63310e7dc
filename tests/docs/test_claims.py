"""Every claim of docs/proofs/claims.md has a theorem, code and tests that exist; none is missing.

A row of its tables has a claim, the theorem that it rests on, the code that the theorem is about,
and tests that would fail if it were false. Wording is nobody's business here.
"""

import ast
import importlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from skdpsurv.base.pipelines import charges_of
from tests.support.registry import PRIVATE

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "docs" / "proofs"
CLAIMS = PROOFS / "claims.md"


@dataclass(frozen=True)
class Claim:
    """A row of a table."""

    name: str
    theorems: tuple[str, ...]
    code: tuple[str, ...]
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


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
        found.append(
            Claim(
                said.split("**")[1].rstrip("."),
                tuple(re.findall(r"\]\(([^)]+)\)", theorems)),
                tuple(re.findall(r"`([^`]+)`", code)),
                tuple(re.findall(r"`([^`]+)`", tests)),
            )
        )
    return found


def slug(heading: str) -> str:
    """Return the anchor of a heading, as the pages on the web and on the forge have it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@cache
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


def number(maths: str) -> float:
    """Return what is written as a sum of products of powers, such as 1 + 2^{-40}."""
    total = 0.0
    for term in maths.split(" + "):
        product = 1.0
        for factor in term.split(" \\cdot "):
            base, _, power = factor.partition("^")
            product *= float(base) ** float(power.strip("{}") or 1)
        total += product
    return total


def test_constants_are_what_the_page_about_noise_says():
    page = read("docs/proofs/noise.md")
    rows = re.findall(r"^\| `([\w.]+)` \| \$([^$]+)\$ \|", page, flags=re.MULTILINE)
    assert len(rows) == 14
    for name, maths in rows:
        assert imported(name) == number(maths), name


def test_there_is_a_table():
    assert len(ROWS) > 30
    lines = read("docs/proofs/claims.md").splitlines()
    tables = [line for line in lines if line.startswith("| ") and not line.startswith("| Claim")]
    assert len(tables) == len(ROWS), "a row must begin with its claim in bold letters"
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_a_claim_has_a_theorem_code_and_a_test_which_exist():
    for claim in ROWS:
        assert all((claim.theorems, claim.code, claim.tests)), claim
        for link in claim.theorems:
            page, _, anchor = link.partition("#")
            assert anchor in anchors(path_of(page)), link
        for name in claim.code:
            assert imported(name) is not None
        for node in claim.tests:
            assert node in nodes(node.partition("::")[0]), node


def test_every_page_of_proofs_has_a_claim_and_names_tests_that_exist():
    for page in sorted(p.name for p in PROOFS.glob("*.md")):
        if page not in ("index.md", "claims.md"):
            assert any(link.startswith(page) for row in ROWS for link in row.theorems), page
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
