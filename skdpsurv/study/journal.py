"""The journal of a study: what was intended, charged, begun and released, each durable in time.

A line is appended and synced before what follows from it. It holds public values alone: no record,
no seed, no noise, and no time but those of charges. The lines are chained by hashes, as those of a
ledger. A crash may tear the last line; whatever would have followed from it did not happen, so it
is left out. Any other line that does not fit is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from skdpsurv.dp.durable import locked, sync_folder
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.ledger import Receipt, digest
from skdpsurv.dp.references import __version__

#: Kinds of lines, with the names of their fields. ``planned`` holds the guarantees of the analyses,
#: by name; older journals do not state it.
FIELDS = {
    "study": ("protocol", "file", "made_with"),
    "intent": ("nonce", "analyses", "guarantee", "n_people", "deal", "ledger", "when", "planned"),
    "charged": ("nonce", "receipt"),
    "started": ("analysis", "nonce"),
    "released": ("analysis", "nonce", "sha256"),
    "lost": ("analysis", "nonce"),
    "published": ("files",),
}
Line = Mapping[str, Any]


class Journal:
    """The lines of a study, and a file to append to.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self.lines, self._length = _read(path)

    @classmethod
    @contextmanager
    def writing(cls, path: Path) -> Iterator[Self]:
        """Open a journal to write, alone; make it where there is none.

        Raises
        ------
        BlockingIOError
            If another process has it.
        ValueError
            If it was altered.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(f"{path}.lock", 0.0))
            except RuntimeError as error:
                if not isinstance(error.__cause__, TimeoutError):  # no file can be made here
                    raise
                raise BlockingIOError(
                    f"{path.parent} is in use by another process, and nothing was done."
                ) from None
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            stack.callback(os.close, descriptor)
            journal = cls(path)
            journal._descriptor = descriptor
            os.ftruncate(descriptor, journal._length)  # what a crash tore
            os.fsync(descriptor)
            sync_folder(path.parent)
            yield journal

    def add(self, what: str, **fields: Any) -> None:
        """Append a line, and return once it is durable.

        The file states the time of the first charge. If adding fails nothing more can be added, as
        nobody knows what the file holds.
        """
        if self._descriptor is None:
            raise RuntimeError("this journal is not open to be written to.")
        line = _linked(self.lines, {"what": what, **fields})
        data = (json.dumps(line, sort_keys=True) + "\n").encode()
        descriptor, self._descriptor = self._descriptor, None
        if os.write(descriptor, data) < len(data):
            raise OSError(f"{self.path} could not be written: is the disk full?")
        if self.charged:
            os.utime(self.path, (self.when, self.when))
        os.fsync(descriptor)
        self.lines.append(line)
        self._descriptor = descriptor

    def clear(self) -> None:
        """Take out all lines: those of a study that neither charged nor drew anything."""
        assert self._descriptor is not None
        assert not self.of("intent")
        os.ftruncate(self._descriptor, 0)
        os.fsync(self._descriptor)
        self.lines.clear()

    @property
    def is_of_today(self) -> bool:
        """Whether the study was begun with this version of the package."""
        return bool(self.lines) and self.lines[0].get("made_with") == f"skdpsurv {__version__}"

    def of(self, what: str) -> list[Line]:
        """Return the lines of one kind, such as "started"."""
        return [line for line in self.lines if line["what"] == what]

    def last_of(self, analysis: str) -> Line | None:
        """Return the last line about an analysis, or None."""
        return next((one for one in self.lines[::-1] if one.get("analysis") == analysis), None)

    def released(self, analysis: str) -> Line | None:
        """Return the mark of what an analysis released, or None."""
        last = self.last_of(analysis)
        return last if last is not None and last["what"] == "released" else None

    @property
    def published(self) -> Mapping[str, str]:
        """Hashes of the files of the report, by their names; none before there is one."""
        found: list[Line] = [{"files": {}}, *self.of("published")]
        return dict(found[-1]["files"])

    @property
    def charged(self) -> list[Line]:
        """The intents that were charged, with receipts: the study, then each lost analysis."""
        intents = {line["nonce"]: line for line in self.of("intent")}
        noted = {line["nonce"]: receipt_in(line["receipt"]) for line in self.of("charged")}
        return [{**intents[n], "receipt": noted[n]} for n in noted if n in intents]

    @property
    def when(self) -> float:
        """Time of the charge for the whole study, in seconds since 1970: all files state it."""
        return seconds(self.charged[0]["when"])

    def charge(self, nonce: str) -> Line:
        """Return the intent with a nonce, and its receipt; nothing if it was not charged."""
        return next((one for one in self.charged if one["nonce"] == nonce), {})


def seconds(when: str) -> float:
    """Return a time of the journal in seconds since 1970."""
    return datetime.fromisoformat(when).timestamp()


def receipt_in(stated: Mapping[str, Any] | None) -> Receipt | None:
    """Return the receipt that a file states, if it states one."""
    return None if stated is None else Receipt.checked(**stated)


def _linked(before: list[Line], content: Line) -> Line:
    link = before[-1]["link"] if before else "skdpsurv study 1"
    return {**content, "link": digest([link, content])}


def _read(path: Path) -> tuple[list[Line], int]:
    """Return the lines of a journal, and the length of the file up to their end."""
    data = path.read_bytes() if path.exists() else b""
    *whole, torn = data.split(b"\n")
    lines: list[Line] = []
    for number, text in enumerate(whole, start=1):
        line = _line(text, lines)
        if line is None:
            if number == len(whole) and not torn:
                return lines, len(data) - len(text) - 1
            raise ValueError(f"line {number} of {path} does not fit those before it.")
        lines.append(line)
    return lines, len(data) - len(torn)


def _line(text: bytes, before: list[Line]) -> Line | None:
    """Return a line if it is one that follows on those before."""
    try:
        line = json.loads(text)
        content = {name: value for name, value in line.items() if name != "link"}
        link_fits = line == _linked(before, content)
        if line["what"] == "intent":
            content = {"planned": {}, **content}
            for stated in (content["guarantee"], *dict(content["planned"]).values()):
                PrivacyGuarantee.from_dict(stated)
        fits = link_fits and {*content} == {"what", *FIELDS[line["what"]]}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
    return line if fits else None
