"""The charges of a study: each has an intent before it and a note after it, both durable.

The guarantee that is charged states a nonce, and the entry in the ledger has a hash of it. So a
charge that a crash left without a note is found again. An intent that the ledger does not know was
not charged, and is void: whoever reads a ledger waits for the transactions of others, and whoever
was killed commits no more.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.budget import BudgetExceededError
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.ledger import REFUSED, STUDY, Receipt, now
from skdpsurv.dp.ledger_storage import database_url
from skdpsurv.dp.looking import looking
from skdpsurv.dp.privacy_cost import remaining_budget, rho_for
from skdpsurv.study.journal import Journal, Line, receipt_in
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.study_plan import StudyPlan


def ledger_of(
    protocol: Protocol, opened: PrivacyAccountant | None = None, *, moved: bool = False
) -> PrivacyAccountant | None:
    """Return the ledger that a protocol names, to charge its data set; None if it names none.

    Parameters
    ----------
    protocol : Protocol
    opened : PrivacyAccountant or None, default=None
        That ledger, if it is open already.
    moved : bool, default=False
        Whether it may be elsewhere now, as receipts will tell whether it is the same.

    Raises
    ------
    ValueError
        If ``opened`` is another one.
    """
    named = protocol.ledger
    place: dict[str, Any] = {}
    if named is not None and "://" in named:
        address = database_url(named).set(drivername="postgresql")
        place = {"url": address.render_as_string()}
    elif named is not None:
        place = {"path": os.path.realpath(named)}
    found = [place] if opened is None else [{"url": opened.url}, {"path": opened.path}]
    if place not in found and not (moved and place):
        raise ValueError("accountant must be on the ledger that the protocol names.")
    if not place:
        return None
    ledger = PrivacyAccountant(**place) if opened is None else opened
    ledger = ledger.for_dataset(protocol.dataset).for_purpose(protocol.purpose)
    return ledger if protocol.appetite is None else ledger.within(protocol.appetite)


def entry_name(protocol: Protocol) -> str:
    """Return how the entries of a study begin in a ledger."""
    return f"{STUDY}{protocol.sha256[:16]}"


def stated_guarantee(
    guarantee: PrivacyGuarantee, protocol: Protocol, nonce: str
) -> PrivacyGuarantee:
    """Return a guarantee that is charged, which names its protocol and its nonce."""
    own = {"protocol_sha256": protocol.sha256, "nonce": nonce}
    return replace(guarantee, public_inputs={**guarantee.public_inputs, **own})


def reserve_left(protocol: Protocol, charged: Sequence[Line]) -> float:
    """Return the rest of a reserve, which pays charges after the first; negative if overspent."""
    return remaining_budget(protocol.reserve, *(one["guarantee"]["epsilon"] for one in charged[1:]))


@dataclass
class Charges:
    """The charges of a study to its ledger, if it has one.

    Parameters
    ----------
    protocol : Protocol
    journal : Journal
        Open to write.
    accountant : PrivacyAccountant or None
    """

    protocol: Protocol
    journal: Journal
    accountant: PrivacyAccountant | None

    @property
    def first(self) -> Line | None:
        """The intent of the charge for the whole study, or None if nothing was charged."""
        return next(iter(self.journal.charged), None)

    def look_up(self) -> None:
        """Note charges that were made and not noted.

        Raises
        ------
        ValueError
            If the ledger is another one, has lost entries, or was charged for a refusal.
        RuntimeError
            If the ledger cannot be asked.
        """
        for charge in self.journal.charged:
            self._require_history(charge["receipt"])
        for intent in self.journal.of("intent"):
            if not self.journal.charge(intent["nonce"]):
                self._require_history(receipt_in(intent["ledger"]))
                if receipt := self._found(intent):
                    self._note(intent["nonce"], receipt)
        if self.first is None and self.accountant is not None:
            own = entry_name(self.protocol)
            for number, entry in enumerate(self.accountant._ledger.entries(), start=1):
                if entry.estimator.startswith(own) and entry.mechanism != REFUSED:
                    raise ValueError(
                        f"entry {number} of the ledger is of this protocol: go on in the folder of "
                        "that study, or change the protocol to make another one."
                    )
        if not all(intent["analyses"] for intent in self.journal.charged):
            raise ValueError("this study was refused for its records, and charged for that.")

    def _require_history(self, receipt: Receipt | None) -> None:
        if (receipt is None) != (self.accountant is None):
            raise ValueError("this study was begun with a ledger, or without one, unlike now.")
        if self.accountant is not None:
            self.accountant.verify(receipt)

    def _found(self, intent: Line) -> Receipt | None:
        if self.accountant is None:
            return None
        return self.accountant._receipt_of(PrivacyGuarantee.from_dict(intent["guarantee"]))

    def looking(self) -> AbstractContextManager[None]:
        """Ask the ledger before records are read; it may charge what fails.

        A study that was charged asks only where refusals are. How many people there are, which is
        not known yet, decides whether noise is Gaussian.
        """
        epsilon, delta, ledger = self.protocol.first_epsilon, self.protocol.delta, self.accountant
        prices = [PrivacyGuarantee(epsilon, mechanism=REFUSED)]
        if delta:
            prices.append(replace(prices[0], delta=delta, rho=rho_for(epsilon, delta)))
        if self.first is not None and ledger is not None and not ledger.charge_refusals:
            ledger = None
        return looking(ledger, prices, lambda price: self._charge({}, price, 0))

    def check_room(self, plan: StudyPlan) -> None:
        """Raise BudgetExceededError unless the whole study has room."""
        if self.accountant is not None:
            self.accountant.check(plan.guarantee())

    def charge_all(self, plan: StudyPlan, deal: str | None) -> None:
        """Charge the whole study, once; ``deal`` names the split of people, if there is one."""
        guarantee, first = plan.guarantee(), self.first
        if first is None:
            planned = {name: part.guarantee for name, part in plan.parts.items()}
            self._charge(planned, guarantee, plan.n_people, deal)
            return
        stated = stated_guarantee(guarantee, self.protocol, first["nonce"])
        if first["guarantee"] != stated.to_dict():
            raise ValueError("this study was charged for another plan than today's.")

    def unused(self, plan: StudyPlan, name: str) -> str | None:
        """Return the nonce of a charge under which an analysis has not started.

        An analysis that was lost is charged again if the reserve has room for it. One with a delta
        is not: the whole study may use that once.
        """
        if unstarted := self._unstarted(name):
            return unstarted[0]
        if not self.pays(plan, name):
            return None
        try:
            guarantee = plan.parts[name].guarantee
            return self._charge({name: guarantee}, guarantee, plan.n_people)
        except BudgetExceededError:  # others have spent what the ledger had
            return None

    def pays(self, plan: StudyPlan, name: str) -> bool:
        """Return whether an analysis has a charge that it has not used, or the reserve has one."""
        guarantee = plan.parts[name].guarantee
        left = reserve_left(self.protocol, self.journal.charged)
        return bool(self._unstarted(name)) or (not guarantee.delta and guarantee.epsilon <= left)

    def _unstarted(self, name: str) -> list[str]:
        """Return the nonces of charges under which an analysis has not started."""
        used = [one["nonce"] for one in self.journal.of("started") if one["analysis"] == name]
        charged = [one["nonce"] for one in self.journal.charged if name in one["analyses"]]
        return [nonce for nonce in charged if nonce not in used]

    def _charge(
        self,
        planned: Mapping[str, PrivacyGuarantee],
        guarantee: PrivacyGuarantee,
        n_people: int,
        deal: str | None = None,
    ) -> str:
        """Note the intent, charge, and note the charge; return the nonce."""
        nonce, ledger, before, receipt = secrets.token_hex(16), self.accountant, None, None
        stated = stated_guarantee(guarantee, self.protocol, nonce)
        if ledger is not None:
            ledger.check(stated)
            before = ledger._ledger.receipts()[-1]._asdict()
        each = {name: one.to_dict() for name, one in planned.items()}
        intent: dict[str, Any] = {"nonce": nonce, "n_people": n_people, "deal": deal}
        intent |= {"analyses": [*each], "guarantee": stated.to_dict(), "planned": each}
        self.journal.add("intent", **intent, ledger=before, when=now())
        if ledger is not None:
            name = f"{entry_name(self.protocol)} {nonce[:16]}"
            receipt = ledger.charge(stated, estimator=name)
        self._note(nonce, receipt)
        return nonce

    def _note(self, nonce: str, receipt: Receipt | None) -> None:
        self.journal.add("charged", nonce=nonce, receipt=receipt and receipt._asdict())
