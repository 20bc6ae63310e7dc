"""Check the built pages: `python docs/check_site.py docs/_build/html`; nothing is fetched.

Links and anchors lead somewhere, pictures are described, headings are in order, formulas are
formulas, and no page loads anything from elsewhere. What has to be drawn to be seen is checked by
``docs/check_drawn.py``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup
from bs4.element import PageElement

#: What Sphinx makes by itself: nobody writes its headings, nor describes its buttons.
MADE = {"genindex.html", "py-modindex.html", "search.html"}
TEX = re.compile(r"\$\$|\\\(|\\\[|\\(?:frac|sum|lambda|varepsilon|epsilon|mathrm|le|ge|cdot)\b")
#: Attributes by which a page loads what it needs.
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src"}
ROOT = Path(__file__).resolve().parents[1]


def read(path: Path) -> BeautifulSoup:
    """Return a page."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def is_elsewhere(address: str) -> bool:
    """Return whether an address is on another machine."""
    return bool(urlsplit(address).netloc)


def broken_links(path: Path, page: BeautifulSoup, anchors: dict[Path, set[str]]) -> Iterator[str]:
    """Yield internal links that lead nowhere; ``anchors`` has those of every page."""
    for link in page.find_all(["a", "link"], href=True):
        parts = urlsplit(str(link["href"]))
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            yield f"no such file: {link['href']}"
        elif (
            target in anchors and parts.fragment and unquote(parts.fragment) not in anchors[target]
        ):
            yield f"no such anchor: {link['href']}"


def loads(page: BeautifulSoup) -> Iterator[str]:
    """Yield what a page would load from elsewhere."""
    for tag, attribute in LOADED.items():
        for element in page.find_all(tag, attrs={attribute: True}):
            if is_elsewhere(str(element[attribute])):
                yield f"loads {element[attribute]}"
    for element in page.find_all("link", rel=["stylesheet", "preload", "icon", "preconnect"]):
        if is_elsewhere(str(element.get("href", ""))):
            yield f"loads {element['href']}"


def outline(page: BeautifulSoup) -> Iterator[str]:
    """Yield what is wrong with a page's headings."""
    levels = [int(h.name[1]) for h in page.find_all(re.compile("^h[1-6]$"))]
    if levels.count(1) != 1:
        yield f"{levels.count(1)} headings of the first level"
    for before, after in pairwise(levels):
        if after > before + 1:
            yield f"a heading of level {after} below one of level {before}"


def formulas(page: BeautifulSoup) -> Iterator[str]:
    """Yield TeX that will be shown as it is."""
    body = page.find("article") or page
    for text in body.find_all(string=TEX):
        if not in_literal(text):
            yield f"TeX outside of a formula: {str(text).strip()[:60]!r}"


def in_literal(text: PageElement) -> bool:
    """Return whether a text is part of code or of a formula."""
    return any(
        parent.name in {"script", "style", "code", "pre"} or "math" in parent.get("class", ())
        for parent in text.parents
    )


def problems(path: Path, page: BeautifulSoup, anchors: dict[Path, set[str]]) -> Iterator[str]:
    """Yield everything that is wrong with a page."""
    yield from broken_links(path, page, anchors)
    yield from loads(page)
    yield from formulas(page)
    if path.name not in MADE:
        yield from outline(page)
        for image in page.find_all("img"):
            if len(str(image.get("alt", "")).split()) < 3:
                yield f"a picture without a description: {image.get('src')}"
    if not (page.html and page.html.get("lang")):
        yield "no language"
    if not page.find("meta", attrs={"name": "viewport"}):
        yield "no viewport"
    if not (page.title and page.title.get_text(strip=True)):
        yield "no title"
    ids = Counter(str(element["id"]) for element in page.find_all(id=True))
    yield from (f"{count} elements with the id {name}" for name, count in ids.items() if count > 1)


def styles(folder: Path) -> Iterator[str]:
    """Yield style sheets that load from elsewhere."""
    for path in folder.rglob("*.css"):
        for address in re.findall(r"(?:url\(|@import )['\"]?([^'\")]+)", path.read_text("utf-8")):
            if is_elsewhere(address):
                yield f"{path.relative_to(folder)}: loads {address}"


def written_links() -> Iterator[str]:
    """Yield links in Markdown, of the README and the documentation, to files that do not exist."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for path in pages:
        if "_build" in path.parts:
            continue
        text = re.sub(r"^(`{3,}).*?^\1`*$", "", path.read_text("utf-8"), flags=re.M | re.S)
        for address in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            if urlsplit(address).scheme:
                continue
            file = path.parent / unquote(address)
            if not file.exists() and not file.with_name(f"{file.name}.md").exists():
                yield f"{path.relative_to(ROOT)}: no such file: {address}"


def main() -> int:
    """Check a site; return whether anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    folder = parser.parse_args().site.resolve()
    pages = {p: read(p) for p in sorted(folder.rglob("*.html")) if "_static" not in p.parts}
    anchors = {
        path: {str(element["id"]) for element in page.find_all(id=True)}
        | {str(element["name"]) for element in page.find_all("a", attrs={"name": True})}
        for path, page in pages.items()
    }
    found = [
        f"{path.relative_to(folder)}: {problem}"
        for path, page in pages.items()
        for problem in problems(path, page, anchors)
    ]
    found += [*styles(folder), *written_links()]
    print(*found, sep="\n")
    print(f"{len(pages)} pages, {len(found)} problems")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
