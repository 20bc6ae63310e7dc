"""What was taken as public: numbers and settings, columns, assumptions."""

from __future__ import annotations

from typing import Any

from skdpsurv.preprocessing.public_steps import known_names
from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.release.explanation import column_words
from skdpsurv.report.blocks import Block, Note, Table
from skdpsurv.report.plain_words import PUBLIC
from skdpsurv.report.text import listed, value

__all__ = ["in_order", "public_columns", "public_inputs"]

#: Rows of a table that somebody may still read.
MOST_ROWS = 500
#: What a reader looks for.
FIRST = {"n_records", "n_private", "n_public"}


def public_inputs(guarantee: PrivacyGuarantee) -> list[Block]:
    """Return what a guarantee takes to be public, each with what it is."""
    if not guarantee.public_inputs:
        return [Note("The release lists no public inputs.")]
    rows = [(name, value(given), PUBLIC.get(name, "")) for name, given in in_order(guarantee)]
    caption = "Numbers and settings; the file has all of their digits"
    return [Table(caption, ("Name", "Value", "What it is"), rows, numbers=False)]


def in_order(guarantee: PrivacyGuarantee) -> list[tuple[str, object]]:
    """Return public inputs in an order that does not change on the way through a file."""
    return sorted(guarantee.public_inputs.items(), key=lambda one: (one[0] not in FIRST, one[0]))


def public_columns(release: Any) -> list[Block]:
    """Return what the columns of a release hold, as far as it says."""
    number = release.n_features_in
    if release.columns is None:
        if not number:
            return [Note("No columns of covariates were used.")]
        names = release.feature_names_in
        named = f": {listed(names, 40)}" if names else ", without names"
        return [
            Note(
                f"Columns: {number:,}{named}. Their number and any names count as public. What "
                "they hold, their units and their bounds, is not part of this release."
            )
        ]
    names = known_names(release.feature_names_in, number)
    rows = list(column_words(release.columns, names))
    caption = "What the columns hold: bounds, categories and units count as public"
    blocks: list[Block] = [Table(caption, ("Column", "Holds"), rows[:MOST_ROWS], numbers=False)]
    if len(rows) > MOST_ROWS:
        blocks.append(Note(f"{len(rows) - MOST_ROWS:,} more are in the release."))
    return blocks
