r"""Figures as SVG within a page, the same bytes for the same release; and the attacker's advantage.

An (epsilon, delta)-private result limits every test for one of two neighbours: its true-positive
rate is at most :math:`e^\epsilon` times its false-positive rate, plus delta, and so are the
complements. The difference of the rates, the advantage, is then at most

.. math:: \frac{e^\epsilon - 1 + 2\delta}{e^\epsilon + 1} ,

which is :math:`\tanh(\epsilon / 2)` for delta = 0. With both neighbours equally likely, a guess is
right with a probability of at most (1 + advantage) / 2. Numbers are never rounded down.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from typing import Any, NamedTuple, Self
from xml.etree import ElementTree

from markupsafe import Markup

from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.plotting.style import COLOURS, LINE_WIDTH, frame
from skdpsurv.report.text import WORDS, exact, percent_up, sha256

#: Width of a figure in inches; a phone shows it at three quarters of this.
WIDTH = 5.2
STYLE: dict[Any, Any] = {
    # Text stays text; Verdana is as wide as matplotlib's own font, which a reader may lack.
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 10.5,
    # A dollar sign in a name begins no formula.
    "text.parse_math": False,
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
}


class Figure(NamedTuple):
    """A figure: its HTML, a description of what is to be seen, its name, file and drawing."""

    svg: Markup
    caption: str
    name: str
    file: str
    #: Returns the bytes of its file in a format of matplotlib.
    drawn: Callable[[str], bytes]


def can_draw() -> bool:
    """Say whether matplotlib, an extra, is installed: without it there are no figures."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def figures(draw: Callable[..., Any], name: str, height: float, caption: str) -> list[Figure]:
    """Return a drawing; none without matplotlib, or where numbers are beyond what can be drawn."""
    if not can_draw():
        return []
    drawn = partial(_drawn, draw, name, height)
    try:
        text = drawn("svg").decode()
    except (ArithmeticError, ValueError):
        return []
    return [Figure(_inlined(text, caption), caption, name, text, drawn)]


def _drawn(draw: Callable[..., Any], name: str, height: float, form: str) -> bytes:
    """Return a file without a date; in other formats than SVG on white."""
    import matplotlib.style
    from matplotlib.figure import Figure as Canvas

    file = io.BytesIO()
    style = matplotlib.style.context(["default", {**STYLE, "svg.hashsalt": name}])
    # matplotlib warns if a font lacks a letter, or a layout is too small.
    with style, warnings.catch_warnings(action="ignore"):
        figure = Canvas(figsize=(WIDTH, height), layout="constrained")
        ax = figure.subplots()
        draw(ax=ax)
        _legend_below(ax)
        vector = form == "svg"
        metadata = ("Creator", "Date", "Format", "Type") if vector else ("Software",)
        look: dict[str, Any] = {} if vector else {"facecolor": "white", "dpi": 200}
        figure.savefig(file, format=form, metadata=dict.fromkeys(metadata), **look)
    return file.getvalue()


def _legend_below(ax: Any) -> None:
    """Move a legend from beside the axes, where a narrow page has no room."""
    if (legend := ax.get_legend()) is None:
        return
    entries = [text.get_text() for text in legend.get_texts()]
    legend.remove()
    look = {"frameon": False, "handlelength": 2.4, "fontsize": "medium"}
    look["ncols"] = 1 if max(map(len, entries), default=0) > 24 else 2
    ax.figure.legend(legend.legend_handles, entries, loc="outside lower left", **look)


def _inlined(text: str, description: str) -> Markup:
    """Return a drawing as a part of HTML, without styles for the page and ids that nothing uses.

    Those that are used begin with a hash of the drawing: no two of a page have the same.
    """
    refers = r'((?:url\(|href=")#)([^)"]+)'
    used = {name for _, name in re.findall(refers, text)}
    own = sha256(text)[:8]
    root = ElementTree.fromstring(re.sub(refers, rf"\g<1>{own}-\g<2>", text))
    for node in root.iter():
        for child in [one for one in node if _local(one.tag) in ("metadata", "style")]:
            node.remove(child)
        attributes = {_local(key): given for key, given in node.attrib.items()}
        if (name := attributes.pop("id", None)) in used:
            attributes["id"] = f"{own}-{name}"
        node.tag, node.attrib = _local(node.tag), attributes
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": description}
    # The XML writer has escaped all text.
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def _local(name: str) -> str:
    return name.rpartition("}")[2]


#: Beyond this epsilon the gap to 1 is smaller than a rounding.
LARGEST = Decimal(200)
#: More than the rounding of an exponential, and far below the digits that are printed.
SLACK = Decimal("1e-40")
#: Largest epsilon in the figure; the curve is flat beyond.
WIDEST = 10.0


class Advantage(NamedTuple):
    """Bounds on what an attacker learns, for a proved epsilon and delta.

    Parameters
    ----------
    factor : Decimal or None
        Bound on the ratio of probabilities; None where it is astronomical.
    most : Decimal
        Bound on true-positive rate less false-positive rate.
    right : Decimal
        Bound on the probability of a right guess, with both neighbours equally likely.

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
        """Return the bounds at an epsilon and a delta."""
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
    """Return a figure of the advantage over epsilon, for a proved guarantee."""
    draw = partial(_draw_advantage, guarantee)
    return figures(draw, "advantage", 2.7, WORDS["captions"]["advantage"])


def _draw_advantage(guarantee: PrivacyGuarantee, ax: Any) -> None:
    epsilon, most = guarantee.epsilon, Advantage.at(guarantee.epsilon, guarantee.delta).most
    end = min(max(4.0, 1.25 * epsilon), WIDEST)
    grid = [end * k / 100 for k in range(101)]
    at = [100 * float(Advantage.at(one, guarantee.delta).most) for one in grid]
    ax.plot(grid, at, color=COLOURS[0], linewidth=LINE_WIDTH)
    ax.fill_between(grid, at, color=COLOURS[0], alpha=0.08, linewidth=0.0)
    x, height, marker = min(epsilon, end), 100 * float(most), ">" if epsilon > end else "o"
    ax.plot([x, x], [0.0, height], color=COLOURS[1], linewidth=1.5)
    ax.plot([x], [height], marker, color=COLOURS[1], markersize=9, clip_on=False, zorder=5)
    name = f"ε = {exact(epsilon)}" if len(exact(epsilon)) < 9 else f"ε ≈ {epsilon:.4g}"
    title = f"{name}: advantage at most {percent_up(most)}"
    ax.set_title(title, loc="left", fontsize="medium", fontweight="bold", color="#A34700")
    ax.set(xlim=(0.0, end), ylim=(0.0, 100.0), xlabel="epsilon (ε)", ylabel="Largest advantage, %")
    frame(ax)
