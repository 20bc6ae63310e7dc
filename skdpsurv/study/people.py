"""The people of a study, and their random split: who is held out for the evaluation.

People are split, not rows, by a uniform permutation of their numbers: "the deal" of
docs/proofs/study and of the journal. It is drawn once, from the operating system's entropy, and
durable before anything depends on it: a second one could put somebody into both parts. It is kept
beside a fingerprint of the records, in a file that only its owner can read, and never published.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from skdpsurv.data.person import read_names
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.types import BoolArray
from skdpsurv.release import layout
from skdpsurv.study.parts import EVERYBODY, TRAINING
from skdpsurv.study.protocol import Protocol


def raw_columns(protocol: Protocol, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a frame that a protocol names; ValueError if there are not all.

    Dates are replaced by the times that follow of them.
    """
    times = [protocol.time, protocol.entry] if protocol.dates is None else protocol.dates.columns
    others = (*times, protocol.event, protocol.person)
    names = [*(kind.column for kind in protocol.kinds), *(name for name in others if name)]
    if missing := [name for name in names if name not in frame]:
        raise ValueError(f"the records must have the column(s) {', '.join(missing)}.")
    frame = frame[names]
    return frame if protocol.dates is None else protocol.dates.replaced(frame)


@dataclass(frozen=True, eq=False)
class People:
    """The first record of each person of a study.

    Parameters
    ----------
    frame : pandas.DataFrame
        A row for each person, as the protocol describes it, by first appearance. Private.
    held_out : ndarray of shape (n_people,)
        Whether a person is held out for the evaluation. Private.
    """

    frame: pd.DataFrame
    held_out: BoolArray

    @classmethod
    def of(cls, protocol: Protocol, frame: pd.DataFrame) -> People:
        """Return the people of a frame of raw records; none of them is held out."""
        if protocol.person is not None:
            try:
                names = read_names(frame[protocol.person])
            except ValueError as error:
                raise InputValueError(f"{protocol.person}: {error}") from None
            frame = frame[~pd.Index(names).duplicated()]
        if not len(frame):
            raise InputValueError("the records must be at least one.")
        return cls(frame, np.zeros(len(frame), dtype=bool))

    def split(self, n_evaluation: int) -> People:
        """Return these people, with so many of them held out at random."""
        held_out = np.zeros_like(self.held_out)
        order = random_source(None).generator.permutation(held_out.size)
        held_out[order[:n_evaluation]] = True
        return People(self.frame, held_out)

    def part(self, people: str) -> pd.DataFrame:
        """Return the rows of everybody, of the training part or of the evaluation part."""
        if people == EVERYBODY:
            return self.frame
        return self.frame[~self.held_out if people == TRAINING else self.held_out]

    def keep(self, path: Path, when: float) -> str:
        """Write who is held out to a new file that nobody else can read; durable once this returns.

        Returns a name for this split, drawn at random: public, and no function of who is held out.
        """
        held_out, name = np.flatnonzero(self.held_out).tolist(), secrets.token_hex(16)
        content = {"name": name, "held_out": held_out, "records": self._fingerprint()}
        layout.save(json.dumps(content), path, mode=0o600, when=when)
        return name

    def kept(self, path: Path, name: str) -> People:
        """Return these people, split as a file says.

        Raises
        ------
        ValueError
            If the file is about other records, or has another name.
        """
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["name"] != name:
            raise ValueError(f"{path} is not the deal that this study was charged for.")
        if content["records"] != self._fingerprint():
            raise InputValueError(
                "the records must be those that this study began with, in their order: people "
                "were dealt into two parts, and a row that moved might be in both."
            )
        held_out = np.zeros_like(self.held_out)
        held_out[content["held_out"]] = True
        return People(self.frame, held_out)

    def _fingerprint(self) -> str:
        """Return a hash of all cells: private, as the records are."""
        cells = pd.util.hash_pandas_object(self.frame.astype(str), index=False).to_numpy()
        return hashlib.sha256(cells.tobytes()).hexdigest()
