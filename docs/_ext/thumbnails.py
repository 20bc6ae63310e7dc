"""Thumbnails of the gallery, described: sphinx-gallery leaves their alternative texts empty."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes


def describe(app: Any, doctree: Any) -> None:
    """Give a thumbnail the words that describe its figure on the example's own page."""
    for image in doctree.findall(nodes.image):
        name = re.search(r"sphx_glr_(\w+)_thumb\.", image["uri"])
        if name is None:
            continue
        page = Path(app.srcdir, "gallery", f"{name[1]}.rst").read_text(encoding="utf-8")
        figure = re.search(r":alt: *(\S.*)", page)
        image["alt"] = figure[1] if figure else name[1].replace("_", " ")


def setup(app: Any) -> dict[str, bool]:
    """Read every page with it."""
    app.connect("doctree-read", describe)
    return {"parallel_read_safe": True}
