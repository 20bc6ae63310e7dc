"""What a section of the page is made of: paragraphs, tables and figures.

Whoever writes a section says what is in it; how it looks is the template's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["Block", "Figure", "Heading", "Markup", "Note", "Table"]


@dataclass(frozen=True)
class Heading:
    """A heading below that of the section."""

    text: str
    kind: str = "heading"


@dataclass(frozen=True)
class Note:
    """A paragraph; of what must not be overlooked, an alarm."""

    text: str
    alarm: bool = False
    kind: str = "note"


@dataclass(frozen=True)
class Table:
    """A table.

    Parameters
    ----------
    caption : str
    head : tuple of str
        The first column names the rows.
    rows : sequence of tuple of str
    numbers : bool
        Whether all columns but the first are numbers, which are read from the right.
    """

    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: bool = True
    kind: str = "table"


@dataclass(frozen=True)
class Figure:
    """A drawing, and what is to be seen in it.

    Parameters
    ----------
    svg : Markup
        From :mod:`skdpsurv.report.figures`, and from nowhere else.
    caption : str
    """

    svg: Markup
    caption: str
    kind: str = "figure"


Block = Heading | Note | Table | Figure
