"""Releases of every estimator, and what is on a page, for the tests of reports."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np

from skdpsurv import Release
from tests.support import checks
from tests.support.registry import Setting

#: Elements without an end.
EMPTY = {"meta", "br", "wbr", "hr", "img", "link", "input"}
LOADING = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"}


def seeded(setting: Setting) -> Release:
    """Return a release that is the same in every run."""
    return checks.seeded(setting).release_


def with_status(release: Release, status: str) -> Release:
    """Return a release as it would be with another status; nothing is proved of no epsilon."""
    if np.isinf(release.guarantee.epsilon):
        status = "none"
    inner = release.fit_guarantee
    return replace(
        release,
        guarantee=replace(release.guarantee, status=status),
        fit_guarantee=None if inner is None else replace(inner, status=status),
    )


def proved(setting: Setting) -> Release:
    return with_status(seeded(setting), "proved")


class Page(HTMLParser):
    """Goes through a page, and notes what does not belong there."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[Any] = []
        self.ids: list[str] = []
        self.used: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        if self.open:
            self.faults.append(self.open)
        if len(set(self.ids)) < len(self.ids):
            self.faults.append("an id twice")
        if missing := set(self.used) - set(self.ids):
            self.faults.append(missing)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in LOADING:
            self.faults.append(tag)
        for name, value in attrs:
            value = value or ""
            loads = name in ("src", "srcset", "action") or (
                name.endswith("href") and not value.startswith("#")
            )
            outside = re.search(r"url\((?!#)", value)
            if name.startswith("on") or loads or outside:
                self.faults.append((tag, name, value))
            if name == "id":
                self.ids.append(value)
            if name.endswith("href"):
                self.used.append(value[1:])
            self.used += re.findall(r"url\(#([^)]+)\)", value)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            if "@import" in data or "url(" in data or "http" in data:
                self.faults.append("style")
            return
        self.words.append(data)

    @property
    def text(self) -> str:
        """What is to be read, on one line."""
        return " ".join(" ".join(self.words).split())
