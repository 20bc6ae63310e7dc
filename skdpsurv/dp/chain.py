"""Entries of a ledger chained by hashes, so that one that was edited, removed or cut off shows.

The hash of an entry covers the entry, a random nonce and the hash before it; that of the first
covers the ledger's identity and its terms. Whoever holds one hash, and its place, can check all
history up to it, and the budget that it was charged to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple


class Receipt(NamedTuple):
    """How far a ledger had come: public, and enough to check its history up to there.

    Parameters
    ----------
    ledger : str
        Identity of the ledger, made at random with it.
    entries : int
        How many entries it held.
    hash : str
        Of the last of them, 64 hexadecimal digits.
    """

    ledger: str
    entries: int
    hash: str

    @classmethod
    def checked(cls, ledger: object, entries: object, hash: object) -> Receipt:
        """Return a receipt, or raise ValueError if it cannot be one."""
        if not (
            isinstance(ledger, str)
            and 0 < len(ledger) <= 64
            and type(entries) is int
            and entries >= 0
            and isinstance(hash, str)
            and len(hash) == 64
            and set(hash) <= set("0123456789abcdef")
        ):
            raise ValueError("a receipt holds a ledger's identity, a number of entries and a hash.")
        return cls(ledger, entries, hash)


def digest(content: object) -> str:
    """Return the hash of what JSON can hold; whatever order keys were given in."""
    canonical = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def start(identity: str, terms: Sequence[object]) -> Receipt:
    """Return the receipt of a ledger without entries.

    Parameters
    ----------
    identity : str
    terms : sequence
        All that the ledger was made with: floats, booleans and texts. Every later hash depends on
        them, so that another budget is another ledger.
    """
    return Receipt(identity, 0, digest(["skdpsurv ledger", 4, identity, *terms]))


def linked(before: str, nonce: str, entry: Sequence[object]) -> str:
    """Return the hash of an entry that follows another.

    Parameters
    ----------
    before : str
        Hash of the entry before it.
    nonce : str
        Random: two histories of one ledger differ although the charges are alike, and nobody can
        guess from a hash what was charged.
    entry : sequence
        Texts and floats.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    return digest([before, nonce, *entry])
