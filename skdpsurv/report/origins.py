"""Which releases a model started from, or was made of, and what they promise to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skdpsurv.report.blocks import Block, Note, Table
from skdpsurv.report.text import exact, shown

__all__ = ["origins"]

_CAPTIONS = {
    "prior": "Releases that this one started from, the nearest first",
    "pooled": "Releases that this one was made of",
}
_NOTES = {
    "prior": "What was learned of other people before. Nothing here protects them: each release "
    "has its own promise, to its own people.",
    "pooled": "No record was read to make this release of those. Each of them has its own promise, "
    "to its own people; the promise on this page is what all of them are together.",
}
#: What a guarantee says of each, and how the table has it.
_KEYS = ("sha256", "epsilon", "delta", "status", "n_records")
_HEAD = ("SHA-256 of its JSON", "epsilon", "delta", "status", "records")
#: Those who pool are promised something about the same neighbours; a prior may be about others.
_MORE = {"prior": ("neighbours", "neighbours")}


def origins(release: Any) -> list[Block]:
    """Return a table of the releases behind one, if there are any."""
    blocks: list[Block] = []
    public = release.made_by.public_inputs
    for name, caption in _CAPTIONS.items():
        entries = public.get(name)
        if not isinstance(entries, Sequence) or not all(isinstance(e, Mapping) for e in entries):
            continue
        more = _MORE.get(name, ())
        keys, head = (*_KEYS, *more[:1]), (*_HEAD, *more[1:])
        rows = [tuple(_cell(entry, key) for key in keys) for entry in entries]
        blocks += [Note(_NOTES[name]), Table(caption, head, rows, numbers=False)]
    return blocks


def _cell(entry: Mapping[str, Any], key: str) -> str:
    # A promise that does not say about whom it is, is about single records.
    given = entry.get(key, "replace-one" if key == "neighbours" else "")
    if isinstance(given, float):
        return exact(given)
    if isinstance(given, int) and not isinstance(given, bool):
        return f"{given:,}"
    return shown(given) or "not stated"
