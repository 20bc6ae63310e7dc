"""A study that is ended and goes on: what was noted of its runs, and which promises they kept."""

import json
import os
from collections import Counter

from skdpsurv import Release
from skdpsurv.study import Analysis, Study, fits
from skdpsurv.study.charges import ledger_of
from skdpsurv.study.check import check
from skdpsurv.study.folder import Folder
from skdpsurv.study.journal import Journal
from skdpsurv.study.report import PAGE, TABLE

from .studies import ANALYSES, protocol, records
from .witness import replaced, witnessed

FRAME = records(20)
#: As little as a crash can go wrong with: a fit of everybody, and one of a part of the people with
#: its evaluation on the others; or two fits of everybody. The reserve pays for the first again.
FITS = (Analysis("curves", "first"), Analysis("curves", "second", 2.0))
WHOLE = {"analyses": (FITS[0], *ANALYSES[2:])}
LIGHT = {"analyses": FITS, "evaluation_share": 0.0}

#: Where a run can end, in the order of a run.
PLACES = ["before the charge", "before the first release", "between release and mark"]
PLACES += ["between analyses", "in the report", "after it"]


class Ended:
    """A study in a new folder, whose runs may end anywhere.

    Parameters
    ----------
    folder : Path
        Where all of them are.
    ledger : str
        Has room for many studies.
    title : str
        Of this one.
    changes : dict
        Of its protocol.
    """

    def __init__(self, folder, ledger, title, changes=WHOLE):
        self.protocol = protocol(ledger, title=title, reserve=2.5, epsilon=8.5, **changes)
        self.names = [analysis.name for analysis in self.protocol.analyses]
        self.out, self.notes = folder / title, folder / f"{title}.notes"
        self.notes.touch()
        self.ledger = ledger_of(self.protocol)
        self.before = len(self.ledger.entries())
        self.kept, self.all_kept = {}, True

    @property
    def entries(self):
        return self.ledger.entries()[self.before :]

    def run(self):
        """Run the study, or go on; note whose records are read, draws, and what is shown."""
        descriptor = os.open(self.notes, os.O_WRONLY | os.O_APPEND)

        def note(text):
            os.write(descriptor, f"{text}\n".encode())  # outlives the process

        def show(name, found):
            place = Folder(self.out)
            mark = Journal(place.journal).released(name)
            durable = mark is not None and mark["sha256"] == place.sha256_of(name)
            released = isinstance(found, Release)
            values = json.loads(found.to_json())["values"] if released else found.to_dict()
            note(f"show {name} {durable} {json.dumps(values, sort_keys=True)}")

        def people(real):
            def prepared(plan, name, frame, *more):
                fit = real(plan, name, frame, *more)
                whose[fit] = f"people {name} {','.join(frame['id'])}"
                return fit

            return prepared

        def started(real):
            def run(fit, receipt):
                note(whose[fit])
                return real(fit, receipt)

            return run

        whose = {}

        try:
            own = replaced(fits, "prepared", people), replaced(fits, "run", started)
            with witnessed(note), own[0], own[1]:
                Study(self.protocol).run(FRAME, self.out, show=show)
        finally:
            os.close(descriptor)

    def noted(self, what):
        lines = (line.split(" ", 3) for line in self.notes.read_text().splitlines())
        return [tuple(line[1:]) for line in lines if line[0] == what]

    def look(self):
        """Remember what an end left, which has to be kept; return where it was."""
        self.all_kept &= self._is_kept()
        for path in self.out.rglob("[!.]*"):
            # Before the charge nothing depends on the deal.
            if path.is_file() and (path.name != "deal.json" or len(self.entries)):
                self.kept[path] = path.read_bytes()
        place, journal = Folder(self.out), self._journal()
        if self.entries.empty:
            return PLACES[0]
        marked = [journal.released(name) is not None for name in self.names]
        there = [place.file_of(name).exists() for name in self.names]
        if there != marked:
            return PLACES[2]
        if not all(marked):
            return PLACES[3 if any(marked) else 1]
        whole = {self.out / PAGE, self.out / TABLE} <= set(self.out.iterdir())
        return PLACES[5 if whole and not any(self.out.glob(".*")) else 4]

    def _journal(self):
        return Journal(Folder(self.out).journal)

    def faults(self):
        """Return which promises were broken, once the study has come to its end."""
        journal, entries = self._journal(), self.entries
        receipts = [line["receipt"]["entries"] for line in journal.of("charged")]
        last = {name: journal.last_of(name) for name in self.names}
        lost = {name for name, line in last.items() if line and line["what"] == "lost"}
        released = {name for name in self.names if journal.released(name)}
        needs = {"evaluation"} if "regression" in lost else set()
        draws = Counter(self.noted("draw"))
        people = {name: set(ids) for name, ids in self._people().items()}
        shown = set(self.noted("show"))
        again = [line for line in journal.of("lost") if line["analysis"] == self.names[0]]
        promises = {
            "the ledger has what the journal notes": receipts
            == [self.before + 1 + number for number in range(len(entries))],
            "charged once, and from the reserve": entries["epsilon"].tolist()
            == [6.0, 2.0][: 1 + bool(again)],
            "one draw for each charge": set(draws.values()) <= {1},
            "nobody is in both parts": people.get("regression", set()).isdisjoint(
                people.get("evaluation", ())
            ),
            "shown once it is marked": all(durable == "True" for _, durable, _ in shown),
            "shown with one result": len({name for name, *_ in shown}) == len(shown),
            "all that is marked is shown": {name for name, *_ in shown} == released,
            "all are released, lost, or need what was": released | lost | needs == set(self.names),
            "what was there is kept": self.all_kept and self._is_kept(),
            "nothing is left over": not list(self.out.rglob(".*")),
            "all belongs together": check(self.out, self.ledger) == [],
            "there is a report": {self.out / PAGE, self.out / TABLE} <= {*self.out.iterdir()},
        }
        return [promise for promise, is_kept in promises.items() if not is_kept]

    def _people(self):
        found = {}
        for name, ids in self.noted("people"):
            found.setdefault(name, set()).update(ids.split(","))
        return found

    def _is_kept(self):
        """Say whether what ends left is there, byte by byte; a journal goes on."""
        for path, before in self.kept.items():
            now = path.read_bytes() if path.exists() else b""
            whole = before[: before.rfind(b"\n") + 1]
            if now != before and not (path.name == "journal" and now.startswith(whole)):
                return False
        return True
