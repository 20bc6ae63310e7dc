"""The folder of a study: protocol, journal, releases, and what is private.

Files say when they were last changed, and so how long an analysis ran, which may depend on the
records. They state the time of the charge instead.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from skdpsurv.dp.durable import sync_folder
from skdpsurv.dp.ledger import Receipt
from skdpsurv.evaluation import SurvivalEvaluation
from skdpsurv.release import Release, layout
from skdpsurv.report.text import sha256
from skdpsurv.study.analyses import Analysis
from skdpsurv.study.journal import Journal, receipt_in
from skdpsurv.study.protocol import Protocol

#: Pattern of names of files that are being written.
_DRAFT = re.compile(r"\..*\.[0-9a-f]{16}")


def sha256_of_file(path: Path) -> str:
    """Return the hash of the bytes of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Folder:
    """A study's folder.

    Parameters
    ----------
    path : str or os.PathLike
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.protocol = self.path / "protocol.json"
        self.journal = self.path / "journal"
        self.releases = self.path / "releases"
        self.private = self.path / "private"
        self.deal = self.private / "deal.json"

    @contextmanager
    def writing(self, protocol: Protocol) -> Iterator[Journal]:
        """Open the folder to write, alone, and make it if it is new.

        Raises
        ------
        FileExistsError
            If there is something else than this study.
        """
        found = set(os.listdir(self.path)) if self.path.exists() else set()
        if not (self.journal.exists() or found <= {"releases", "journal.lock"}):
            raise FileExistsError(f"{self.path} must be a new folder, or that of this study.")
        self.releases.mkdir(parents=True, exist_ok=True)
        if not self.journal.exists():  # its own name is durable only where that of its folder is
            for folder in self.path.absolute().parents:
                sync_folder(folder)
        with Journal.writing(self.journal) as journal:
            for draft in self.path.rglob(".*"):
                if _DRAFT.fullmatch(draft.name):  # of a run that was killed
                    draft.unlink()
            if self.protocol.exists() and self.read_protocol().sha256 != protocol.sha256:
                if journal.of("intent"):
                    raise FileExistsError(f"{self.path} is the folder of another protocol.")
                journal.clear()  # of a study that was refused, at no cost
                self.protocol.unlink()
            if not self.protocol.exists():
                layout.save(protocol.text, self.protocol)
            yield journal

    def read_protocol(self) -> Protocol:
        """Return the protocol; ValueError unless its file is as it was written."""
        text = self.protocol.read_text(encoding="utf-8")
        found = Protocol.from_text(text)
        if found.text != text:  # a reader might see something else, such as a key twice
            raise ValueError(f"{self.protocol} is not the canonical text of a protocol.")
        return found

    def file_of(self, analysis: str) -> Path:
        """Return the file of what an analysis releases."""
        return self.releases / f"{analysis}.json"

    def sha256_of(self, analysis: str) -> str:
        """Return the hash of what an analysis released."""
        return sha256_of_file(self.file_of(analysis))

    def save(self, analysis: str, found: Any, receipt: Receipt | None, when: float) -> None:
        """Write what an analysis releases: durable, or not there."""
        protocol = self.read_protocol()
        study = protocol.stated(protocol.analysis(analysis))
        if isinstance(found, Release):
            text = replace(found, study=study).to_json(indent=2)
        else:
            content = {**found.to_dict(), "receipt": receipt and receipt._asdict()}
            text = json.dumps({**content, "study": study}, indent=2)
        layout.save(text + "\n", self.file_of(analysis), when=when)

    def load(self, analysis: Analysis) -> tuple[Any, Receipt | None]:
        """Read the release of an analysis, with the receipt in it."""
        if analysis.of is None:
            release = Release.load(self.file_of(analysis.name))
            return release, release.receipt
        content = json.loads(self.file_of(analysis.name).read_text(encoding="utf-8"))
        content.pop("study", None)
        receipt = receipt_in(content.pop("receipt"))
        return SurvivalEvaluation.from_dict(content), receipt

    def load_marked(self, analysis: Analysis, journal: Journal) -> Any:
        """Read the release of an analysis; ValueError unless it is the file that was marked."""
        mark = journal.released(analysis.name)
        if mark is None or self.sha256_of(analysis.name) != mark["sha256"]:
            raise ValueError(f"{self.file_of(analysis.name)} is not the file that was marked.")
        return self.load(analysis)[0]

    def publish(self, files: Mapping[str, str], journal: Journal) -> None:
        """Write the report, and note it: each file of an earlier one is replaced by a whole one."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            layout.save(text, path, when=journal.when)
        hashes = {name: sha256(text) for name, text in files.items()}
        if journal.published != hashes:
            journal.add("published", files=hashes)
        self.set_times(journal.when)

    def set_times(self, when: float) -> None:
        """Let all files and folders state one time."""
        for path in [*self.path.rglob("*"), self.path]:
            with suppress(OSError):  # somebody else's
                os.utime(path, (when, when))
