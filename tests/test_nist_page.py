"""The answers to NIST SP 800-226: what they rest on is there."""

import re
from pathlib import Path

from tests.docs.test_claims import imported

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "user_guide" / "nist_sp_800_226.md"
TEXT = PAGE.read_text(encoding="utf-8")

LINKS = sorted({link for link in re.findall(r"\]\(([^)\s]+)\)", TEXT) if "://" not in link})
IN_CODE = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
TESTS = [name for name in IN_CODE if name.startswith("tests/")]
NAMES = [name for name in IN_CODE if re.fullmatch(r"skdpsurv(\.\w+)+", name)]


def anchors(page):
    """Return what a link may name in a page: headings, as MyST has their anchors, and targets."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#{1,3} (.+)$", text, re.M)
    made = {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}
    return made | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))


def test_links_tests_and_objects_are_there():
    assert len(LINKS) > 40
    assert len(TESTS) > 20
    assert len(NAMES) > 5
    for link in LINKS:
        path, _, anchor = link.partition("#")
        page = (PAGE.parent / path).resolve() if path else PAGE
        assert page.is_file(), link
        assert page.is_relative_to(ROOT / "docs"), link
        assert not anchor or anchor in anchors(page), link
    for name in TESTS:
        assert (ROOT / name).is_file(), name
    for name in NAMES:
        assert imported(name) is not None


def test_every_point_has_an_answer_and_names_what_it_rests_on():
    body, _, _ = TEXT.partition("\n## What you must still check")
    points = re.findall(r"^### (.+)\n\n(.+)", re.sub(r"(?<=\S)\n(?=\S)", " ", body), re.M)
    assert len(points) == len(re.findall(r"^### ", TEXT, re.M)) == 23
    assert all("Rests on" in answer for _, answer in points)


def test_the_guide_has_the_page():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "user_guide/limits\nuser_guide/nist_sp_800_226\n" in index
