"""Drawings as SVG within a page: the same bytes for the same release, and nothing from elsewhere.

matplotlib is an extra: without it there are no figures, and whoever asks is told so by None.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from skdpsurv.report.blocks import Markup

__all__ = ["can_draw", "svg"]

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
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
REFERENCE = re.compile(r"url\(#([^)]+)\)")


def can_draw() -> bool:
    """Say whether matplotlib is there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def svg(draw: Callable[[Any], Any], name: str, height: float, says: str) -> Markup | None:
    """Return a drawing.

    Parameters
    ----------
    draw : callable
        Draws on matplotlib axes.
    name : str
        Of letters, and another one for each figure of a page: its ids begin with it.
    height : float
        In inches.
    says : str
        What is to be seen, for whoever cannot see it.

    Returns
    -------
    Markup or None
        None without matplotlib, or where numbers are beyond what can be drawn.
    """
    if not can_draw():
        return None
    import matplotlib.style
    from matplotlib.figure import Figure

    text = io.StringIO()
    try:
        with matplotlib.style.context("default"), warnings.catch_warnings():
            # Of letters that a font lacks, and of room that a layout lacks.
            warnings.simplefilter("ignore")
            with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
                figure = Figure(figsize=(WIDTH, height), layout="constrained")
                ax = figure.subplots()
                draw(ax)
                _legend_below(ax)
                metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
                figure.savefig(text, format="svg", metadata=metadata)
    except (ArithmeticError, ValueError):
        return None
    return _inlined(text.getvalue(), name, says)


def _legend_below(ax: Any) -> None:
    """Move a legend from beside the axes, where a narrow page has no room."""
    legend = ax.get_legend()
    if legend is None:
        return
    handles, entries = legend.legend_handles, [text.get_text() for text in legend.get_texts()]
    legend.remove()
    columns = 1 if max(map(len, entries), default=0) > 24 else 2
    ax.figure.legend(
        handles,
        entries,
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        handlelength=2.4,
        fontsize="medium",
    )


def _inlined(text: str, name: str, says: str) -> Markup:
    """Return a drawing as a part of HTML, with ids of its own and without styles for the page."""
    root = ElementTree.fromstring(text)
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    used: set[str] = set()
    for node in root.iter():
        node.tag = _local(node.tag)
        for key, given in list(node.attrib.items()):
            del node.attrib[key]
            node.attrib[_local(key)] = _renamed(_local(key), given, name, used)
    for node in root.iter():
        if node.attrib.get("id") not in used:
            node.attrib.pop("id", None)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib.clear()
    root.attrib.update({"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": says})
    # Written by an XML writer, which escapes whatever text is in it.
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def _renamed(key: str, given: str, name: str, used: set[str]) -> str:
    """Return an attribute with ids that begin with a name; note those that are referred to."""
    if key == "id":
        return f"{name}-{given}"
    if key == "href":
        used.add(f"{name}-{given[1:]}")
        return f"#{name}-{given[1:]}"
    used.update(f"{name}-{one}" for one in REFERENCE.findall(given))
    return REFERENCE.sub(rf"url(#{name}-\1)", given)


def _local(name: str) -> str:
    return name.rpartition("}")[2]
