"""Style and helpers of all figures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp.references import extra
from skdpsurv.dp.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's colours for any colour vision, without the yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Where colours come again, curves and points look different.
MARKERS = "osD^vPX*"
#: Width of the most important curve.
LINE_WIDTH = 2.4
#: Longest line of a legend, most lines of a name, and most lines of a column.
LINE_LENGTH, MOST_LINES, COLUMN = 28, 3, 18


def by_name(things: Any, what: str, method: str = "") -> Mapping[str, Any]:
    """Return a mapping unchanged, and a single thing under the name ""."""
    named = things if isinstance(things, Mapping) else {"": things}
    if not named:
        raise ValueError(f"{what}s must hold at least one {what}.")
    for name, thing in named.items():
        if method and not hasattr(thing, method):
            which = f"{what}s[{name!r}]" if name else f"{what}s"
            kind = type(thing).__name__
            raise TypeError(f"{which} must have a method {method}, {kind} has none.")
    return named


def checked_labels(labels: Sequence[str] | None, names: Sequence[str], what: str) -> list[str]:
    """Return one label for each name, or the names."""
    found = list(names if labels is None else labels)
    if len(found) != len(names):
        raise ValueError(
            f"labels must hold one label for each of the {len(names)} {what}, got {len(found)}."
        )
    return found


def step_curves(model: Any, X: ArrayLike) -> list[tuple[FloatArray, FloatArray]]:
    """Return times and survival of each row of X, from (0, 1) on."""
    curves = []
    for function in model.predict_survival_function(X):
        time = np.asarray(function.x, dtype=np.float64)
        survival = np.asarray(function(time), dtype=np.float64)
        if time[0] > 0:
            time, survival = np.insert(time, 0, 0.0), np.insert(survival, 0, 1.0)
        curves.append((time, survival))
    return curves


def colour(i: int) -> str:
    """Return the i-th colour of the cycle."""
    return COLOURS[i % len(COLOURS)]


def line_style(turn: int, dash: tuple[float, ...] = ()) -> Any:
    """Return the line style of a turn of the colours: a line if there is no dash, then dots."""
    return (0, (dash or (6.0, 1.8)) + (1.0, 1.8) * turn) if turn or dash else "-"


def marker(i: int) -> str:
    """Return the shape of the i-th points."""
    return MARKERS[i // len(COLOURS) % len(MARKERS)]


def cut(names: Iterable[str], most: int = 40) -> list[str]:
    """Return names that are short enough for a figure: without first words in common if need be."""
    names = list(names)
    found = [name if len(name) <= most else f"{name[: most - 1]}…" for name in names]
    words = [name.split(" ") for name in names]
    same = sum(1 for _ in takewhile(lambda at: len(set(at)) == 1, zip(*words, strict=False)))
    if same == 0 or len(set(found)) == len(set(names)):
        return found
    rest = [" ".join(["…", *one[same:]]) for one in words]
    return [name if len(name) <= most else f"{name[: most - 1]}…" for name in rest]


def pyplot(function: str) -> Any:
    """Return matplotlib.pyplot, which is optional."""
    with extra("plot", "matplotlib", function):
        import matplotlib.pyplot as plt
    return plt


def new_axes(function: str, height: float = 5.0) -> Axes:
    """Return the axes of a new pyplot figure, with room for a legend beside them."""
    axes: Axes = pyplot(function).subplots(figsize=(8.0, height), layout="constrained")[1]
    return axes


def dress(ax: Axes, end: float, time_unit: str | None) -> None:
    """Label axes of survival over time, from 0 to ``end``."""
    ax.set_xlim(0.0, end)
    ax.set_xlabel("Time" if time_unit is None else f"Time ({time_unit})")
    dress_probability(ax, "Probability of survival")


def dress_probability(ax: Axes, label: str) -> None:
    """Scale and label the vertical axis for a probability."""
    ax.set_ylim(0.0, 1.0)
    ax.set_ylabel(label)
    frame(ax)


def frame(ax: Axes, grid: Any = "both", sides: tuple[str, ...] = ("top", "right")) -> None:
    """Draw a pale grid below everything, and hide some sides."""
    ax.grid(axis=grid, color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[list(sides)].set_visible(False)


def make_room(ax: Axes) -> bool:
    """Lay out subplots without a layout for what is beside them; say whether these are subplots."""
    figure, is_subplot = ax.figure.figure, ax.get_subplotspec() is not None
    if is_subplot and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    return is_subplot


def legend_beside(
    ax: Axes, handles: list[Any], entries: list[str], title: str | None = None
) -> None:
    """Draw a legend to the right of the axes; within axes at a fixed place."""
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    if not make_room(ax):
        where = {"loc": "best"}
    n_lines = min(max(COLUMN // len(entries), 1), MOST_LINES)
    wrapped = [textwrap.wrap(entry, LINE_LENGTH) for entry in cut(entries, n_lines * LINE_LENGTH)]
    entries = ["\n".join(lines) for lines in wrapped]
    where["ncols"] = -(-len(entries) // COLUMN)
    style: dict[str, Any] = {"borderaxespad": 0.0, "handlelength": 3.6, "frameon": False}
    heading: dict[str, Any] = {"title": title, "title_fontsize": "small", "alignment": "left"}
    ax.legend(handles, entries, **where, **style, **heading)
