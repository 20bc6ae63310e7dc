"""A study in Python: ``Study.from_toml(path)``, then plan, run, report and check."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Self

import pandas as pd

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.report.acro import Output
from skdpsurv.study import run as running
from skdpsurv.study.charges import ledger_of
from skdpsurv.study.check import check
from skdpsurv.study.folder import Folder
from skdpsurv.study.journal import Journal
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.report import StudyReport
from skdpsurv.study.study_plan import StudyPlan
from skdpsurv.verify_study import checked


class Study:
    """A study by a protocol: one charge, and one report.

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

    def run(
        self,
        frame: pd.DataFrame | running.Read,
        folder: str | PathLike[str],
        *,
        sha256: str | None = None,
        show: running.Show | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> StudyReport:
        """Run the study, charged once; or go on with one that was ended, under the same charge.

        Parameters
        ----------
        frame : pandas.DataFrame or callable
            Raw records, or a function that reads them once the ledger was asked. Private.
        folder : str or os.PathLike
            New folder for protocol, journal, releases and report, or that of the study. Its folder
            ``private`` must never be published.
        sha256 : str or None, default=None
            Hash that was signed, which must be that of the protocol.
        show : callable or None, default=None
            Called with the name of each analysis and what it released.
        accountant : PrivacyAccountant or None, default=None
            The ledger that the protocol names, if it is open already.

        Returns
        -------
        StudyReport
            Its files are in the folder.

        Raises
        ------
        ValueError, TypeError
            If the hash is another, or a record is refused: nothing is charged then, unless the
            ledger charges refusals. Or if the folder or the ledger is not that of the study.
        BudgetExceededError
            If the ledger has no room for all analyses. No record is read then.
        RuntimeError
            If the ledger or the folder cannot be used now. Run it again.

        Notes
        -----
        Every step is durable before the next one. Whatever was released before a crash is kept. An
        analysis that had started is lost, unless the reserve of the protocol pays for it again.
        """
        if sha256 is not None and sha256 != self.protocol.sha256:
            raise ValueError(
                f"sha256 must be that of the protocol, {self.protocol.sha256}: it is not the "
                "protocol that was signed."
            )
        # What was hashed, whatever became of its columns, which are not frozen.
        protocol = Protocol.from_text(self.protocol.text)
        ledger = ledger_of(protocol, accountant)
        running.run(protocol, frame, folder, ledger, show or (lambda name, found: None))
        return self._publish(Folder(folder), ledger)

    def report(
        self, folder: str | PathLike[str], accountant: PrivacyAccountant | None = None
    ) -> StudyReport:
        """Return the report of the study in a folder, from its releases alone: at no cost.

        A release that is not the file that was marked is refused.
        """
        found, ledger = self._report(Folder(folder)), ledger_of(self.protocol, accountant)
        left = None if ledger is None else ledger.remaining(self.protocol.delta)
        return replace(found, left=left)

    def _report(self, place: Folder) -> StudyReport:
        journal, protocol = Journal(place.journal), place.read_protocol()
        charged = journal.charged
        was_run = charged and charged[0]["analyses"]
        if not was_run or protocol.sha256 != self.protocol.sha256:
            raise ValueError(f"{place.path} must be the folder of this study, after its charge.")
        marks = {
            one.name: mark for one in protocol.analyses if (mark := journal.released(one.name))
        }
        n_people = charged[0]["n_people"]
        today = journal.is_of_today  # another version may plan otherwise
        return StudyReport(
            StudyPlan.of(protocol, n_people) if today else StudyPlan(protocol, n_people, {}),
            {name: place.load_marked(protocol.analysis(name), journal) for name in marks},
            [PrivacyGuarantee.from_dict(intent["guarantee"]) for intent in charged],
            date=charged[0]["when"][:10],
            sha256={name: mark["sha256"] for name, mark in marks.items()},
        )

    def outputs(self, folder: str | PathLike[str]) -> tuple[list[Output], str]:
        """Return the results in a folder for :func:`~skdpsurv.report.acro.acro_files`.

        With the time of the charge. A release that is not the file that was marked is refused. What
        the verifier says of the folder needs the ledger's file, if the protocol names one.
        """
        place, ledger = Folder(folder), self.protocol.ledger
        ledgers = [Path(ledger)] if ledger is not None and Path(ledger).is_file() else []
        *_, (_, verdict) = checked([place.path, *ledgers])
        report, journal = self._report(place), Journal(place.journal)
        found = [
            Output(
                f"{one.analysis.name}-",
                report.found[one.analysis.name],
                place.file_of(one.analysis.name).read_text(encoding="utf-8"),
                one.parts,
                f"{self.protocol.title}: {one.heading}",
                (report.spent, verdict),
            )
            for one in report.sections
            if one.guarantee is not None
        ]
        return found, journal.charged[0]["when"]

    def check(
        self, folder: str | PathLike[str], accountant: PrivacyAccountant | None = None
    ) -> list[str]:
        """List what in a folder does not belong to this protocol and its ledger.

        Parameters
        ----------
        folder : str or os.PathLike
        accountant : PrivacyAccountant or None, default=None
            The ledger that the protocol names, if it is open already, or was moved.

        Returns
        -------
        list of str
        """
        other = Folder(folder).read_protocol().sha256 != self.protocol.sha256
        faults = ["the folder is of another protocol"] if other else []
        return faults + check(folder, ledger_of(self.protocol, accountant, moved=True))

    def _publish(self, place: Folder, ledger: PrivacyAccountant | None) -> StudyReport:
        report = self.report(place.path, ledger)
        with place.writing(self.protocol) as journal:
            place.publish(report.files(), journal)
        return report
