"""A study in Python: ``Study.from_toml(path)``, then plan, run and report."""

from __future__ import annotations

from os import PathLike
from typing import Self

from skdpsurv.study.plan import StudyPlan
from skdpsurv.study.protocol import Protocol


class Study:
    """A study by a protocol.

    Parameters
    ----------
    protocol : Protocol
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Make a study of a protocol in a TOML file."""
        return cls(Protocol.from_toml(path))

    def plan(self, n_people: int) -> StudyPlan:
        """Plan the study of so many people, at no cost."""
        return StudyPlan.of(self.protocol, n_people)
