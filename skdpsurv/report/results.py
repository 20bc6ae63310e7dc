"""What a release says, for those who read it: coefficients, curves, or the numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdpsurv.report.blocks import Block, Heading, Note, Table
from skdpsurv.report.coefficients import coefficients
from skdpsurv.report.curves import curves
from skdpsurv.report.figures import can_draw
from skdpsurv.report.made_up import made_up_people
from skdpsurv.report.text import exact

__all__ = ["results"]

#: As many numbers of one name are shown.
MOST_NUMBERS = 8
MOST_NAMES = 300


def results(release: Any) -> list[Block]:
    """Return the results, as far as a release can be understood without anything else.

    Raises
    ------
    ValueError
        If it names an estimator that refuses it.
    """
    blocks: list[Block] = []
    if not can_draw():
        blocks.append(
            Note("No figures are drawn: matplotlib is not installed. Tables stand in their place.")
        )
    kind = release.kinds[release.estimator]
    if kind is None:
        blocks.append(
            Note(
                "The software that made this page does not know this estimator: what its numbers "
                "mean is said elsewhere."
            )
        )
    elif kind._beyond_release:
        blocks.append(
            Note(
                f"Predictions need {kind._beyond_release}, which a release does not hold. So none "
                "are shown."
            )
        )
    else:
        blocks += _understood(release)
    return [*blocks, *_numbers(release)]


def _understood(release: Any) -> list[Block]:
    try:
        model = release.to_estimator()
    except TypeError as error:
        raise ValueError(f"release cannot be used: {error}") from error
    if hasattr(model, "survival_function_at_times"):
        return [Heading("Curves"), *curves(model)]
    blocks: list[Block] = []
    if found := coefficients(release, model):
        blocks += [Heading("Coefficients"), *found]
    if people := made_up_people(release, model):
        blocks += [Heading("Predictions"), *people]
    return blocks


def _numbers(release: Any) -> list[Block]:
    """Return a table of what was released."""
    if not release.values:
        return [Note("The release holds no numbers.")]
    rows = []
    for name, array in sorted(release.values.items()):
        shape = " × ".join(f"{n:,}" for n in np.shape(array)) or "1"
        flat = np.ravel(array).tolist()
        few = ", ".join(exact(number) for number in flat[:MOST_NUMBERS])
        rows.append((name, shape, f"{few}, …" if len(flat) > MOST_NUMBERS else few))
    caption = "Every name under which numbers were released; all of their digits are in the file"
    blocks: list[Block] = [
        Heading("What was released"),
        Table(caption, ("Name", "How many", "Numbers"), rows[:MOST_NAMES], numbers=False),
    ]
    if len(rows) > MOST_NAMES:
        blocks.append(Note(f"{len(rows) - MOST_NAMES:,} more names are in the release."))
    return blocks
