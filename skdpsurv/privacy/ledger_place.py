"""Where a ledger is kept: what one asks of a file or of a server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection

__all__ = ["BUSY_SECONDS", "Place", "UnansweredCommitError"]

#: A charge takes milliseconds; a queue of workers must never turn into an error.
BUSY_SECONDS = 120.0


class UnansweredCommitError(RuntimeError):
    """A transaction was to be committed, and nobody said whether it was."""


class Place(Protocol):
    """A file or a server that keeps one ledger.

    Places hold no connection: each transaction opens its own, so that they can be pickled and
    forked, and a server may be restarted between two charges.
    """

    @property
    def name(self) -> str:
        """What messages call it; it holds no password."""

    def make_if_missing(self, write: Callable[[Connection], None]) -> None:
        """Make the ledger where there is none: whole, or not at all.

        Raises UnansweredCommitError if nobody knows which; after anything else it was not made.
        """

    def require(self) -> None:
        """Raise FileNotFoundError if there is no ledger."""

    def transaction(self, *, write: bool = False) -> AbstractContextManager[Connection]:
        """Return a connection in a transaction that nobody else can get between.

        Raises RuntimeError where the place does not work. What is not committed is rolled back.
        """

    def commit(self, connection: Connection) -> None:
        """Commit, or raise UnansweredCommitError."""

    def mark(self, connection: Connection, number: int) -> Any:
        """Return what is another once any of the first so many entries was written to.

        It may be another without that, too: then all entries are looked at.
        """

    def mark_of_commit(self, before: Any) -> Any:
        """Return the mark after a commit of what it was before."""

    def has_only_added(self, connection: Connection, mark: Any, number: int, added: int) -> bool:
        """Say whether a transaction added so many entries to so many of a mark, and no more."""

    def columns(self, connection: Connection) -> set[tuple[str, str]]:
        """Return the tables that are there and their columns, after a look at what keeps them."""
