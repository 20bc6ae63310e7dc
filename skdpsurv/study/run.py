"""Run a study, in the order that privacy needs; after a crash, go on where it stopped.

1. The protocol has the hash that was signed.
2. The ledger is asked; all records are read, for all analyses. A refusal costs nothing, unless the
   ledger charges refusals.
3. The deal of people is durable; then the intent, with a nonce.
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

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import pandas as pd

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.budget import BudgetExceededError
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.dp.ledger import Receipt, now
from skdpsurv.dp.privacy_cost import remaining_budget, rho_for
from skdpsurv.dp.references import __version__
from skdpsurv.study import fits
from skdpsurv.study.deal import People
from skdpsurv.study.folder import Folder, seconds
from skdpsurv.study.journal import Journal, Line
from skdpsurv.study.plan import StudyPlan
from skdpsurv.study.protocol import Protocol

_REFUSED = "none: refused"
#: Called with the name of an analysis and what it released, once that is marked.
Show = Callable[[str, Any], None]


def ledger_of(protocol: Protocol) -> PrivacyAccountant | None:
    """Return the ledger that a protocol names, or None."""
    if protocol.ledger is None:
        return None
    place = "url" if "://" in protocol.ledger else "path"
    named: dict[str, Any] = {place: protocol.ledger}
    return PrivacyAccountant(**named, purpose=protocol.purpose).for_dataset(protocol.dataset)


def entry_name(sha256: str) -> str:
    """Return how the entries of a study begin in a ledger."""
    return f"Study {sha256[:16]}"


def stated_guarantee(
    guarantee: PrivacyGuarantee, protocol: Protocol, nonce: str
) -> PrivacyGuarantee:
    """Return a guarantee that is charged, which names its protocol and its nonce."""
    own = {"protocol_sha256": protocol.sha256, "nonce": nonce}
    return replace(guarantee, public_inputs={**guarantee.public_inputs, **own})


def run(
    protocol: Protocol,
    frame: pd.DataFrame | Callable[[], pd.DataFrame],
    folder: str | PathLike[str],
    accountant: PrivacyAccountant | None,
    show: Show = lambda name, found: None,
) -> list[str]:
    """Run a study, or go on with it; return the names of analyses that are lost.

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
        study = _Run(protocol, place, journal, accountant, show)
        study.recognise()
        study.read(frame)
        study.charge_all()
        # An evaluation needs its model.
        order = sorted(study.plan.parts.values(), key=lambda part: part.analysis.of is not None)
        lost = [part.analysis.name for part in order if not study.release(part.analysis.name)]
        place.set_times(study.when)
        return lost


@dataclass
class _Run:
    protocol: Protocol
    folder: Folder
    journal: Journal
    accountant: PrivacyAccountant | None
    show: Show
    plan: StudyPlan = field(init=False)
    people: People = field(init=False)

    def recognise(self) -> None:
        """Note the protocol, or refuse a journal that may not be gone on with."""
        stated = {"protocol": self.protocol.sha256, "made_with": f"skdpsurv {__version__}"}
        if not self.journal.lines:
            self.journal.add("study", file=self.journal.file, **stated)
        first = self.journal.lines[0]
        for name, value in stated.items():
            if first[name] != value:
                raise ValueError(f"this study was begun with {name} {first[name]}, not {value}.")
        if first["file"] != self.journal.file:
            raise ValueError(
                f"{self.folder.path} is a copy of the folder of a study, or came back from a "
                "backup: the other one may have gone on. Go on there, or begin in a new folder."
            )
        if self.journal.of("refused"):
            raise ValueError("this study was refused for its records, and charged for that.")
        for line in self.journal.of("charged"):
            self._require_history(line["receipt"])
        for line in self.journal.of("intent"):
            if self.journal.charge(line["nonce"]) is None:
                self._look_up(line)

    def _look_up(self, intent: Line) -> None:
        """Note the charge of an intent, if there was one."""
        self._require_history(intent["ledger"])
        if self.accountant is None:
            return
        receipt = self.accountant._receipt_of(PrivacyGuarantee.from_dict(intent["guarantee"]))
        if receipt is not None:
            self._note(intent["nonce"], receipt)

    def _require_history(self, stated: Any) -> None:
        """Refuse another ledger, or one that has lost what it held."""
        if (stated is None) != (self.accountant is None):
            raise ValueError("this study was begun with a ledger, or without one, unlike now.")
        if self.accountant is not None:
            self.accountant.verify(Receipt.checked(**stated))

    def read(self, frame: pd.DataFrame | Callable[[], pd.DataFrame]) -> None:
        """Ask the ledger, count people, plan, and read all records for all analyses."""
        first, price = self._first, self._price_of_refusal()
        with self._refusals_charged(price):
            self.people = People.of(self.protocol, frame() if callable(frame) else frame)
            n_people = self.people.held_out.size
            self.plan = StudyPlan.of(self.protocol, n_people)
            if first is None and self.accountant is not None:
                self.accountant.check(self.plan.guarantee())
            if first is not None and first["n_people"] != n_people:
                raise InputValueError("the records must be of as many people as before.")
            if self.plan.n_evaluation:
                if first is None:
                    self.people = self.people.dealt(self.plan.n_evaluation)
                else:
                    self.people = self.people.kept(self.folder.deal)
            for name, part in self.plan.parts.items():
                fits.check_records(self.plan, name, self.people.part(part.people))

    def _price_of_refusal(self) -> PrivacyGuarantee:
        """Return what a refusal costs, where refusals are charged; a new study needs room for it.

        How many people there are, which is not known yet, decides whether noise is Gaussian.
        """
        epsilon, delta = self.protocol.first_epsilon, self.protocol.delta
        possible = [PrivacyGuarantee(epsilon, mechanism=_REFUSED)]
        if delta:
            rho = rho_for(epsilon, delta)
            possible.append(PrivacyGuarantee(epsilon, delta, rho=rho, mechanism=_REFUSED))
        if self.accountant is not None and self._first is None:
            for one in possible[:-1]:
                with suppress(BudgetExceededError):
                    self.accountant.check(one)
                    return one
            self.accountant.check(possible[-1])
        return possible[-1]

    @contextmanager
    def _refusals_charged(self, price: PrivacyGuarantee) -> Iterator[None]:
        try:
            yield
        except BudgetExceededError:
            raise
        except Exception:
            if self.accountant is not None and self.accountant.charge_refusals:
                self._charge([], price, 0)
                self.journal.add("refused")
            raise

    @property
    def _first(self) -> Line | None:
        """The intent of the first charge, or None if nothing was charged."""
        charged = self.journal.of("charged")
        return self.journal.intent(charged[0]["nonce"]) if charged else None

    @property
    def when(self) -> float:
        """Time of the first charge: all files state it."""
        return seconds(self.journal.of("intent")[0]["when"])

    def charge_all(self) -> None:
        """Charge the whole study, once."""
        guarantee, first = self.plan.guarantee(), self._first
        if first is not None:
            nonce = first["nonce"]
            if first["guarantee"] != stated_guarantee(guarantee, self.protocol, nonce).to_dict():
                raise ValueError("this study was charged for another plan than today's.")
            return
        if self.plan.n_evaluation:
            self.folder.private.mkdir(0o700, exist_ok=True)
            self.folder.deal.unlink(missing_ok=True)  # nothing depends on it without a charge
            self.people.keep(self.folder.deal, seconds(now()))
        self._charge(list(self.plan.parts), guarantee, self.plan.n_people)

    def _charge(self, names: list[str], guarantee: PrivacyGuarantee, n_people: int) -> str:
        """Note the intent, charge, and note the charge; return the nonce."""
        nonce, ledger = secrets.token_hex(16), self.accountant
        stated = stated_guarantee(guarantee, self.protocol, nonce)
        before = None if ledger is None else ledger._ledger.receipts()[-1]._asdict()
        self.journal.add(
            "intent",
            nonce=nonce,
            analyses=names,
            guarantee=stated.to_dict(),
            n_people=n_people,
            ledger=before,
            when=now(),
        )
        receipt = None
        if ledger is not None:
            name = f"{entry_name(self.protocol.sha256)} {nonce[:16]}"
            receipt = ledger.charge(stated, estimator=name)
        self._note(nonce, receipt)
        return nonce

    def _note(self, nonce: str, receipt: Receipt | None) -> None:
        stated = None if receipt is None else receipt._asdict()
        self.journal.add("charged", nonce=nonce, receipt=stated)

    def release(self, name: str) -> bool:
        """Run an analysis unless it has run, and show what it released; say whether it has."""
        part = self.plan.parts[name]
        if (last := self.journal.last_of(name)) is not None and last["what"] == "started":
            self._settle(name, last["nonce"])
        if not self._released(name):
            model, of = None, part.analysis.of
            if of is not None:
                if not self._released(of):
                    return False
                release, _ = self.folder.load(self.protocol.analysis(of))
                model = release._model
            nonce = self._unused_charge(name) or self._charge_again(name)
            if nonce is None:
                return False
            self._run(name, nonce, model)
        found, _ = self.folder.load(part.analysis)
        self.show(name, found)
        return True

    def _released(self, name: str) -> bool:
        last = self.journal.last_of(name)
        return last is not None and last["what"] == "released"

    def _settle(self, name: str, nonce: str) -> None:
        """Mark an analysis that was killed: released if its release is there, or else lost."""
        found = receipt = None
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            found, receipt = self.folder.load(self.plan.parts[name].analysis)
        if found is None or receipt != self._receipt(nonce):
            self.folder.file_of(name).unlink(missing_ok=True)
            self.journal.add("lost", analysis=name, nonce=nonce)
        else:
            self._mark(name, nonce)

    def _receipt(self, nonce: str) -> Receipt | None:
        charge = self.journal.charge(nonce)
        stated = None if charge is None else charge["receipt"]
        return None if stated is None else Receipt.checked(**stated)

    def _unused_charge(self, name: str) -> str | None:
        """Return the nonce of a charge for an analysis under which it has not started."""
        used = [one["nonce"] for one in self.journal.of("started") if one["analysis"] == name]
        for line in self.journal.of("charged"):
            if line["nonce"] not in used and name in self.journal.intent(line["nonce"])["analyses"]:
                return str(line["nonce"])
        return None

    def _charge_again(self, name: str) -> str | None:
        """Charge a lost analysis again, if the reserve has room for it; not one with a delta."""
        guarantee = self.plan.parts[name].guarantee
        intents = [self.journal.intent(line["nonce"]) for line in self.journal.of("charged")]
        again = [intent["guarantee"]["epsilon"] for intent in intents[1:]]
        left = remaining_budget(self.protocol.reserve, *again)
        if guarantee.delta or guarantee.epsilon > left:
            return None
        return self._charge([name], guarantee, self.plan.n_people)

    def _run(self, name: str, nonce: str, model: Any) -> None:
        receipt = self._receipt(nonce)

        def begin() -> Receipt | None:
            self.journal.add("started", analysis=name, nonce=nonce)
            return receipt

        records = self.people.part(self.plan.parts[name].people)
        found = fits.run(self.plan, name, records, begin, model)
        self.folder.save(name, found, receipt, self.when)
        self._mark(name, nonce)

    def _mark(self, name: str, nonce: str) -> None:
        sha256 = self.folder.sha256_of(name)
        self.journal.add("released", analysis=name, nonce=nonce, sha256=sha256)
        self.folder.set_times(self.when)
