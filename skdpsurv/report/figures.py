r"""Drawings as SVG within a page: the same bytes for the same release, and nothing from elsewhere.

matplotlib is an extra: without it there are no figures.

How well anybody can tell two versions of one record apart, at best.

Of an (epsilon, delta)-private result, a test for one of two neighbours has a true-positive rate of
at most :math:`e^\epsilon` times its false-positive rate, plus delta, and so have the complements.
The difference of the two rates is largest where both bounds meet, at

.. math:: \frac{e^\epsilon - 1 + 2\delta}{e^\epsilon + 1} ,

which is :math:`\tanh(\epsilon / 2)` for delta = 0. With both versions equally likely, the answer is
right with probability one half and half of that. Numbers here are upper bounds, never rounded down.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from functools import partial
from typing import Any, NamedTuple, Self
from xml.etree import ElementTree

from markupsafe import Markup

from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.plotting.style import COLOURS, LINE_WIDTH, frame
from skdpsurv.report.text import exact, percent_up

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
    """Return a drawing; none without matplotlib, or where numbers are beyond what can be drawn."""
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
    """Return a drawing as a part of HTML, without styles for the page and ids that nothing uses."""
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


#: Beyond, what is missing to 1 is less than rounding adds.
LARGEST = Decimal(200)
#: More than the last digit of what is computed, and less than anybody reads.
SLACK = Decimal("1e-40")
#: The curve is flat beyond.
WIDEST = 10.0


class Advantage(NamedTuple):
    """Bounds for one epsilon and delta, if they are proved.

    Parameters
    ----------
    factor : Decimal or None
        On probabilities; None where it has more digits than anybody reads.
    most : Decimal
        On true-positive rate less false-positive rate.
    right : Decimal
        On the probability of a right guess, with both versions equally likely.

    Examples
    --------
    >>> bound = Advantage.at(1.0)
    >>> f"{bound.most:.6f} {bound.right:.6f} {bound.factor:.6f}"
    '0.462117 0.731059 2.718282'
    """

    factor: Decimal | None
    most: Decimal
    right: Decimal

    @classmethod
    def at(cls, epsilon: float, delta: float = 0.0) -> Self:
        """Return the bounds for two numbers."""
        if epsilon > LARGEST:
            return cls(None, Decimal(1), Decimal(1))
        with localcontext() as context:
            context.prec = 150
            factor = Decimal(epsilon).exp()
            # At 0 all is exact; elsewhere the exponential is rounded.
            rounding = SLACK if epsilon else Decimal(0)
            most = min((factor - 1 + 2 * Decimal(delta)) / (factor + 1) + rounding, Decimal(1))
            return cls(factor + rounding, most, (1 + most) / 2)


def advantage_figures(guarantee: PrivacyGuarantee) -> list[Figure]:
    """Return a figure of what a proved guarantee means beside others."""
    caption = (
        "The largest advantage that an attacker can have, over epsilon. The point is this release."
    )
    return figures(partial(_draw, guarantee), "advantage", 2.7, caption)


def _draw(guarantee: PrivacyGuarantee, ax: Any) -> None:
    epsilon, most = guarantee.epsilon, Advantage.at(guarantee.epsilon, guarantee.delta).most
    end = min(max(4.0, 1.25 * epsilon), WIDEST)
    grid = [end * k / 100 for k in range(101)]
    at = [100 * float(Advantage.at(one, guarantee.delta).most) for one in grid]
    ax.plot(grid, at, color=COLOURS[0], linewidth=LINE_WIDTH)
    ax.fill_between(grid, at, color=COLOURS[0], alpha=0.08, linewidth=0.0)
    place, height = min(epsilon, end), 100 * float(most)
    ax.plot([place, place], [0.0, height], color=COLOURS[1], linewidth=1.5)
    marker = "o" if place == epsilon else ">"
    ax.plot([place], [height], marker, color=COLOURS[1], markersize=9, clip_on=False, zorder=5)
    stated = exact(epsilon)
    called = f"ε = {stated}" if len(stated) < 9 else f"ε ≈ {epsilon:.4g}"
    title = f"{called}: advantage at most {percent_up(most)}"
    ax.set_title(title, loc="left", fontsize="medium", fontweight="bold", color="#A34700")
    ax.set(xlim=(0.0, end), ylim=(0.0, 100.0), xlabel="epsilon (ε)", ylabel="Largest advantage, %")
    frame(ax)
