"""Run a study, in the order that privacy needs; after a crash, go on where it stopped.

1. The protocol has the hash that was signed.
2. The ledger is asked; all records are read, for all analyses, if any of these may still run. A
   refusal costs nothing, unless the ledger charges refusals.
3. The split of people is durable; then the intent, with a nonce.
4. The whole study is charged at once. The nonce is in the guarantee that is charged, so that the
   charge is found again; then it is noted.
5. For each analysis: ``started`` is durable before its first draw, its release is durable, then
   marked ``released``, and only then shown.

After a crash: an intent without a note is looked up in the ledger, and void if it was not charged.
A start whose release is there is marked. A start without one is lost: its noise may have been
drawn, so it may not run again under that charge. It runs under another one, if the protocol has a
reserve for it. Neither seeds nor noise are kept (docs/proofs/study).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import pandas as pd

from skdpsurv.base.prepared import PreparedFit
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.durable import identity, sync_folder
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.dp.ledger import now
from skdpsurv.dp.references import __version__
from skdpsurv.study import fits
from skdpsurv.study.analyses import Analysis
from skdpsurv.study.charges import Charges
from skdpsurv.study.folder import Folder
from skdpsurv.study.journal import Journal, seconds
from skdpsurv.study.people import People, raw_columns
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.study_plan import StudyPlan

#: Called with the name of an analysis and what it released, once that is marked.
Show = Callable[[str, Any], None]
#: A function that reads the records; called once the ledger has room for the charge.
Read = Callable[[], pd.DataFrame]


def run(
    protocol: Protocol,
    frame: pd.DataFrame | Read,
    folder: str | PathLike[str],
    accountant: PrivacyAccountant | None,
    show: Show = lambda name, found: None,
) -> list[str]:
    """Run a study, or go on with it.

    Parameters
    ----------
    protocol : Protocol
    frame : pandas.DataFrame or callable
        Raw records, or what reads them. Private.
    folder : str or os.PathLike
        A new folder, or that of this study.
    accountant : PrivacyAccountant or None
        The ledger that the protocol names.
    show : callable
        Called with the name of each analysis and what it released, as soon as it may be seen.

    Returns
    -------
    list of str
        Analyses that were lost, or that need one that was.

    Raises
    ------
    ValueError, TypeError
        If records are refused, or they are not those that the study began with.
    BudgetExceededError
        If the ledger has no room for the whole study. Nothing is charged.
    RuntimeError
        If the ledger or the folder cannot be used; run it again.
    """
    place = Folder(folder)
    with place.writing(protocol) as journal:
        study = _Run(protocol, place, journal, Charges(protocol, journal, accountant), show)
        study.recognise()
        study.settle()
        if study.is_unfinished():
            study.read(frame)
            study.charge()
        for analysis in protocol.in_order:
            study.release(analysis)
        place.set_times(journal.when)
        return [one.name for one in protocol.analyses if journal.released(one.name) is None]


@dataclass
class _Run:
    protocol: Protocol
    folder: Folder
    journal: Journal
    charges: Charges
    show: Show
    plan: StudyPlan = field(init=False)
    people: People = field(init=False)
    #: Fits that have read their records, by the names of their analyses.
    fits: dict[str, PreparedFit] = field(init=False, default_factory=dict)

    def recognise(self) -> None:
        """Note the protocol, or refuse a journal that may not be gone on with."""
        stated = {"protocol": self.protocol.sha256, "made_with": f"skdpsurv {__version__}"}
        file = identity(self.journal.path)  # a copy of it has other numbers
        if not self.journal.lines:
            self.journal.add("study", file=file, **stated)
        first = self.journal.lines[0]
        for name, value in stated.items():
            if first[name] != value:
                raise ValueError(f"this study was begun with {name} {first[name]}, not {value}.")
        if first["file"] != file:
            raise ValueError(
                f"{self.folder.path} is a copy of the folder of a study, or came back from a "
                "backup: the other one may have gone on. Go on there, or begin in a new folder."
            )
        self.charges.look_up()

    def settle(self) -> None:
        """Mark what a run that was killed left; no record is read for that."""
        if (first := self.charges.first) is not None:
            self.plan = StudyPlan.of(self.protocol, first["n_people"])
            self.charges.charge_all(self.plan, None)
        for analysis in self.protocol.analyses:
            name, last = analysis.name, self.journal.last_of(analysis.name)
            if last is not None and last["what"] == "started":
                self._settle(analysis, last["nonce"])
            if self.journal.released(name) is None and self.folder.file_of(name).exists():
                raise ValueError(
                    f"{self.folder.file_of(name)} is no release that the journal marks: did the "
                    "journal come back from a backup?"
                )

    def is_unfinished(self) -> bool:
        """Return whether an analysis that was not released can still be."""
        analyses = self.protocol.analyses
        left = [one.name for one in analyses if self.journal.released(one.name) is None]
        able = [name for name in left if self.protocol.needs[name] not in left]
        return self.charges.first is None or any(self.charges.pays(self.plan, n) for n in able)

    def read(self, frame: pd.DataFrame | Read) -> None:
        """Ask the ledger, count people, plan, split them, and read all records for all analyses."""
        first = self.charges.first
        with self.charges.looking():
            raw = frame() if callable(frame) else frame
            self.people = People.of(self.protocol, raw_columns(self.protocol, raw))
            n_people = self.people.held_out.size
            if first is None:
                self.plan = StudyPlan.of(self.protocol, n_people)
                self.charges.check_room(self.plan)
                self.people = self.people.split(self.plan.n_evaluation)
            elif first["n_people"] != n_people:
                raise InputValueError("the records must be of as many people as before.")
            elif self.plan.n_evaluation:
                self.people = self.people.kept(self.folder.deal, first["deal"])
            self.fits = {name: self._prepared(name) for name in self.plan.parts}

    def charge(self) -> None:
        """Keep the split of people, and charge the whole study, once."""
        name = None
        if self.plan.n_evaluation and self.charges.first is None:
            self.folder.private.mkdir(0o700, exist_ok=True)
            self.folder.deal.unlink(missing_ok=True)  # without a charge nothing depends on it
            name = self.people.keep(self.folder.deal, seconds(now()))
            sync_folder(self.folder.path)
        self.charges.charge_all(self.plan, name)

    def release(self, analysis: Analysis) -> None:
        """Run an analysis unless it has run or cannot run, and show what it released."""
        name, needs = analysis.name, self.protocol.needs[analysis.name]
        if self.journal.released(name) is None:
            if needs is not None and self.journal.released(needs) is None:
                return
            nonce = self.charges.unused(self.plan, name)
            if nonce is None:
                return
            needed = None if needs is None else self._marked(self.protocol.analysis(needs))
            self._run(name, nonce, needed)
        self.show(name, self._marked(analysis))

    def _marked(self, analysis: Analysis) -> Any:
        return self.folder.load_marked(analysis, self.journal)

    def _settle(self, analysis: Analysis, nonce: str) -> None:
        """Mark an analysis that was killed: released if its release is there, or else lost."""
        found = receipt = None
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            found, receipt = self.folder.load(analysis)
        planned = self.plan.parts[analysis.name].guarantee.to_dict()
        is_own = found is not None and found.guarantee.to_dict() == planned
        if is_own and receipt == self.journal.charge(nonce).get("receipt"):
            sync_folder(self.folder.releases)  # which the kill may have forestalled
            self._mark(analysis.name, nonce)
            return
        self.folder.file_of(analysis.name).unlink(missing_ok=True)
        sync_folder(self.folder.releases)
        self.journal.add("lost", analysis=analysis.name, nonce=nonce)

    def _run(self, name: str, nonce: str, needed: Any) -> None:
        receipt = self.journal.charge(nonce)["receipt"]
        fit = self.fits.pop(name) if needed is None else self._prepared(name, needed)
        self.journal.add("started", analysis=name, nonce=nonce)
        found = fits.run(fit, receipt)
        self.folder.save(name, found, receipt, self.journal.when)
        self._mark(name, nonce)

    def _prepared(self, name: str, needed: Any = None) -> PreparedFit:
        people = self.people.part(self.plan.parts[name].people)
        return fits.prepared(self.plan, name, people, needed)

    def _mark(self, name: str, nonce: str) -> None:
        sha256 = self.folder.sha256_of(name)
        self.journal.add("released", analysis=name, nonce=nonce, sha256=sha256)
        self.folder.set_times(self.journal.when)
