"""The advantage over epsilon: a curve with this release on it, or a table."""

from __future__ import annotations

from functools import partial
from typing import Any

from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.report.advantage import Advantage
from skdpsurv.report.blocks import Block, Figure, Table
from skdpsurv.report.figures import svg
from skdpsurv.report.text import exact, percent_up

__all__ = ["advantage_over_epsilon"]

#: Of the table that stands in the place of the figure.
COMPARED = (0.1, 0.5, 1.0, 2.0, 4.0)
#: The curve is flat beyond.
WIDEST = 10.0


def advantage_over_epsilon(guarantee: PrivacyGuarantee, bound: Advantage) -> list[Block]:
    """Return a figure of what a proved guarantee means beside others; a table without one."""
    caption = (
        "The largest advantage that an attacker can have, over epsilon. The point is this release."
    )
    picture = svg(partial(_draw, guarantee, bound), "advantage", 2.7, caption)
    if picture is not None:
        return [Figure(picture, caption)]
    compared = sorted(
        {(epsilon, 0.0) for epsilon in COMPARED} | {(guarantee.epsilon, guarantee.delta)}
    )
    rows = []
    for epsilon, delta in compared:
        at = Advantage.at(epsilon, delta)
        own = " (this release)" * ((epsilon, delta) == (guarantee.epsilon, guarantee.delta))
        rows.append((f"{exact(epsilon)}{own}", percent_up(at.right), percent_up(at.most)))
    return [Table("Bounds for some epsilons", ("Epsilon", "A guess is right", "Advantage"), rows)]


def _draw(guarantee: PrivacyGuarantee, bound: Advantage, ax: Any) -> None:
    epsilon = guarantee.epsilon
    end = min(max(4.0, 1.25 * epsilon), WIDEST)
    grid = [end * k / 100 for k in range(101)]
    at = [100 * float(Advantage.at(one, guarantee.delta).most) for one in grid]
    ax.plot(grid, at, color="#0072B2", linewidth=2.4)
    ax.fill_between(grid, at, color="#0072B2", alpha=0.08, linewidth=0.0)
    place, height = min(epsilon, end), 100 * float(bound.most)
    ax.plot([place, place], [0.0, height], color="#D55E00", linewidth=1.5)
    marker = "o" if place == epsilon else ">"
    ax.plot([place], [height], marker, color="#D55E00", markersize=9, clip_on=False, zorder=5)
    stated = exact(epsilon)
    called = f"ε = {stated}" if len(stated) < 9 else f"ε ≈ {epsilon:.4g}"
    ax.set_title(
        f"{called}: advantage at most {percent_up(bound.most)}",
        loc="left",
        fontsize="medium",
        fontweight="bold",
        color="#A34700",
    )
    ax.set_xlim(0.0, end)
    ax.set_ylim(0.0, 100.0)
    ax.set_xlabel("epsilon (ε)")
    ax.set_ylabel("Largest advantage, %")
    ax.grid(color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
