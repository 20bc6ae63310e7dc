"""Drawings as SVG within a page: the same bytes for the same release, and nothing from elsewhere.

matplotlib is an extra: without it there are no figures.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

#: Of a figure, in inches: a phone shows it at three quarters of this.
WIDTH = 5.2
STYLE: dict[Any, Any] = {
    # Text stays text. Verdana is as wide as matplotlib's own font, which the reader may not have.
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 10.5,
    # A dollar in somebody's name is a dollar.
    "text.parse_math": False,
    "axes.unicode_minus": True,
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
}


class Figure(NamedTuple):
    """A drawing, and what is to be seen in it."""

    svg: Markup
    caption: str


def can_draw() -> bool:
    """Say whether matplotlib is there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def cut(names: Iterable[str], most: int = 40) -> list[str]:
    """Return names that are short enough for a figure."""
    return [name if len(name) <= most else f"{name[: most - 1]}…" for name in names]


def figures(draw: Callable[[Any], Any], name: str, height: float, caption: str) -> list[Figure]:
    """Return a drawing; none without matplotlib, or where numbers are beyond what can be drawn.

    Parameters
    ----------
    draw : callable
        Draws on matplotlib axes.
    name : str
        Another one for each figure of a page: ids within follow from it.
    height : float
        In inches.
    caption : str
    """
    if not can_draw():
        return []
    import matplotlib.style
    from matplotlib.figure import Figure as Canvas

    text = io.StringIO()
    try:
        with matplotlib.style.context("default"), warnings.catch_warnings():
            # Of letters that a font lacks, and of room that a layout lacks.
            warnings.simplefilter("ignore")
            with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
                figure = Canvas(figsize=(WIDTH, height), layout="constrained")
                ax = figure.subplots()
                draw(ax)
                _legend_below(ax)
                metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
                figure.savefig(text, format="svg", metadata=metadata)
    except (ArithmeticError, ValueError):
        return []
    return [Figure(_inlined(text.getvalue(), caption), caption)]


def _legend_below(ax: Any) -> None:
    """Move a legend from beside the axes, where a narrow page has no room."""
    if (legend := ax.get_legend()) is None:
        return
    entries = [text.get_text() for text in legend.get_texts()]
    legend.remove()
    ax.figure.legend(
        *(legend.legend_handles, entries),
        loc="outside lower left",
        ncols=1 if max(map(len, entries), default=0) > 24 else 2,
        frameon=False,
        handlelength=2.4,
        fontsize="medium",
    )


def _inlined(text: str, says: str) -> Markup:
    """Return a drawing as a part of HTML, without styles for the page and ids that nothing uses.

    Those that are used are hashes, which differ between figures.
    """
    root = ElementTree.fromstring(text)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))
    for node in root.iter():
        for child in [one for one in node if _local(one.tag) in ("metadata", "style")]:
            node.remove(child)
        attributes = {_local(key): given for key, given in node.attrib.items()}
        if attributes.get("id") not in used:
            attributes.pop("id", None)
        node.tag, node.attrib = _local(node.tag), attributes
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": says}
    # Written by an XML writer, which escapes whatever text is in it.
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def _local(name: str) -> str:
    return name.rpartition("}")[2]
