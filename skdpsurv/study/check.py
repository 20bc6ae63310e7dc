"""Check that the releases of a study, its ledger and its protocol belong together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from typing import Any

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.guarantee import PERSON, RECORD, SAME_GROUP, PrivacyGuarantee
from skdpsurv.dp.ledger import Receipt, digest
from skdpsurv.dp.privacy_cost import (
    Cost,
    Spend,
    cost_of,
    disjoint_cost,
    gaussian_price,
    remaining_budget,
    sequential_cost,
)
from skdpsurv.dp.references import __version__
from skdpsurv.study.analyses import Analysis
from skdpsurv.study.charges import entry_name, stated_guarantee
from skdpsurv.study.folder import Folder, sha256_of_file
from skdpsurv.study.journal import Journal, Line
from skdpsurv.study.parts import EVALUATION, EVERYBODY, TRAINING, whose
from skdpsurv.study.protocol import Protocol
from skdpsurv.study.study_plan import StudyPlan


def check(folder: str | PathLike[str], accountant: PrivacyAccountant | None) -> list[str]:
    """Return contradictions in the folder of a study, in words; none if all belongs together.

    The journal has to fit the protocol, and the ledger the journal: each charge is there, states
    what the plan of the protocol costs (of a study by another version: what its analyses cost by
    the journal), and no other entry of the ledger is of this study. Each
    release has to be the file that was marked, and to state its analysis, guarantee and charge. The
    report has to be the one that was noted last. Whoever can write to the folder can write releases
    and journal anew so that they fit: this finds mistakes, and is no signature.

    Parameters
    ----------
    folder : str or os.PathLike
    accountant : PrivacyAccountant or None
        The ledger that the protocol names.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError, OSError
        If there is no study in the folder, or its journal was altered.
    """
    place = Folder(folder)
    protocol, journal = place.read_protocol(), Journal(place.journal)
    if not journal.lines:
        return ["the journal is empty"]
    faults = [*_faults(place, protocol, journal, accountant)]
    if faults and not journal.is_of_today:
        made, own = journal.lines[0].get("made_with"), f"skdpsurv {__version__}"
        faults.append(f"the study was made with {made}, of which {own} may plan otherwise")
    return faults


def _faults(
    place: Folder, protocol: Protocol, journal: Journal, accountant: PrivacyAccountant | None
) -> Iterator[str]:
    if journal.lines[0].get("protocol") != protocol.sha256:
        yield "the journal is of another protocol"
    yield from _order(journal)
    yield from _ledger(protocol, journal, accountant)
    # A refusal is charged for no analysis.
    charged, plan = [one for one in journal.charged if one["analyses"]], None
    if not journal.charged:
        yield "nothing was charged or released"
    if charged:
        if journal.is_of_today or not all(intent.get("planned") for intent in charged):
            plan = StudyPlan.of(protocol, charged[0]["n_people"])
        for intent in charged:
            yield from _charge(protocol, plan, intent, intent is charged[0])
        again = [intent["guarantee"]["epsilon"] for intent in charged[1:]]
        if remaining_budget(protocol.reserve, *again) < 0.0:
            yield "more was charged again than the reserve of the protocol"
    known = set()
    for analysis in protocol.analyses:
        mark = journal.released(analysis.name)
        if charged and mark is not None:
            known.add(place.file_of(analysis.name))
            planned = dict((journal.intent(mark["nonce"]) or {}).get("planned", {}))
            if plan is not None:
                planned = _planned(plan)
            yield from _release(place, analysis, planned.get(analysis.name), journal, mark)
    for path in sorted(set(place.releases.iterdir()) - known):
        yield f"{path.name} is no release that the journal marks"
    for name, sha256 in journal.published.items():
        path = place.path / name
        if not path.exists() or sha256_of_file(path) != sha256:
            yield f"{name} is not the file of the report that was noted"


def _order(journal: Journal) -> Iterator[str]:
    """Find lines of the journal that come twice, or without those that must precede them."""
    intended, charged, started, released = set(), set(), set(), set()
    for line in journal.lines:
        nonce, name = line.get("nonce"), line.get("analysis")
        match line["what"]:
            case "intent":
                intended.add(nonce)
            case "charged":
                if nonce not in intended or nonce in charged:
                    yield "a charge is noted twice, or without an intent"
                charged.add(nonce)
            case "started":
                if nonce not in charged or (name, nonce) in started:
                    yield f"{name} was started twice under one charge, or without one"
                started.add((name, nonce))
            case "released" | "lost":
                if (name, nonce) not in started:
                    yield f"{name} was {line['what']} and never started"
                if name in released:
                    yield f"{name} was {line['what']} after it was released"
                released |= {name} if line["what"] == "released" else set()


def _ledger(
    protocol: Protocol, journal: Journal, accountant: PrivacyAccountant | None
) -> Iterator[str]:
    """Find charges that are in the journal and not in the ledger, or the other way round."""
    charged = journal.of("charged")
    if accountant is None:
        if any(line["receipt"] for line in charged):
            yield "the study was charged to a ledger, and the protocol names none"
        return
    noted = [(line, Receipt.checked(**line["receipt"])) for line in charged if line["receipt"]]
    if len(noted) < len(charged):
        yield "the protocol names a ledger, and the study was not charged to it"
    try:
        accountant.verify(*(receipt for _, receipt in noted))
    except ValueError as error:
        yield f"the ledger does not hold the charges of the study: {error}"
        return
    entries = accountant._ledger.entries()
    for line, receipt in noted:
        intent = journal.intent(line["nonce"])
        stated = None if intent is None else digest(intent["guarantee"])
        # Before the first entry a receipt is of no charge.
        found = [(one.guarantee, one.dataset) for one in entries[: receipt.entries][-1:]]
        if found != [(stated, protocol.dataset)]:
            yield f"entry {receipt.entries} of the ledger is not the charge that was noted"
    own = {receipt.entries for _, receipt in noted}
    for number, entry in enumerate(entries, start=1):
        if entry.estimator.startswith(entry_name(protocol)) and number not in own:
            yield f"entry {number} of the ledger is of this protocol, and not in this journal"


def _planned(plan: StudyPlan) -> dict[str, Any]:
    """Return the guarantees of the analyses, as a journal states them."""
    return {name: part.guarantee.to_dict() for name, part in plan.parts.items()}


def _charge(protocol: Protocol, plan: StudyPlan | None, intent: Line, first: bool) -> Iterator[str]:
    """Find a charge that differs from the plan or, without one, from the journal."""
    names, stated = intent["analyses"], intent["guarantee"]
    planned = intent.get("planned", {}) if plan is None else _planned(plan)
    every = [one.name for one in protocol.analyses]
    fits = names == (every if first else [name for name in names[:1] if name in every])
    fits = fits and {*names} <= {*planned}
    if fits and (plan is not None or not first):
        whole = PrivacyGuarantee.from_dict(planned[names[0]])
        whole = plan.guarantee() if plan is not None and first else whole
        fits = stated == stated_guarantee(whole, protocol, intent["nonce"]).to_dict()
        fits = fits and intent.get("planned", planned).items() <= planned.items()
    elif fits:
        own = {"protocol_sha256": protocol.sha256, "nonce": intent["nonce"]}
        own |= {"n_records": intent["n_people"]}
        own |= {f"epsilon_{name}": planned[name]["epsilon"] for name in names}
        fits = own.items() <= stated["public_inputs"].items()
        fits = fits and _covers(protocol, stated, planned)
    if not fits:
        yield f"the charge for {', '.join(names)} is not what the plan of the protocol costs"


def _covers(protocol: Protocol, stated: Line, planned: Line) -> bool:
    """Return whether a charge is of all that its analyses cost together, by their guarantees."""
    whole = PrivacyGuarantee.from_dict(stated)
    each = {one.name: PrivacyGuarantee.from_dict(planned[one.name]) for one in protocol.analyses}
    costs: dict[str, list[Cost]] = {people: [] for people in (EVERYBODY, TRAINING, EVALUATION)}
    for analysis in protocol.analyses:
        own = each[analysis.name]
        price = gaussian_price(own.rho) if own.delta and own.rho is not None else own.epsilon
        costs[whose(protocol, analysis)].append(cost_of(price))
    shared, *apart = (sequential_cost(costs[people]) for people in costs)
    cost = sequential_cost([shared, disjoint_cost(apart)])
    relation = RECORD if protocol.person is None else PERSON
    relation += SAME_GROUP * any(one.neighbours.endswith(SAME_GROUP) for one in each.values())
    found = {(one.status, one.neighbours.removesuffix(SAME_GROUP)) for one in each.values()}
    return (
        # The price of noise is rounded where a guarantee states its rho.
        cost.within(whole.epsilon * (1.0 + 1e-9), whole.delta)
        and (whole.status, whole.neighbours) == ("proved", relation)
        and found == {("proved", relation.removesuffix(SAME_GROUP))}
    )


def _release(
    place: Folder, analysis: Analysis, planned: Any, journal: Journal, mark: Line
) -> Iterator[str]:
    name, protocol = analysis.name, place.read_protocol()
    path = place.file_of(name)
    if not path.exists():
        yield f"{path.name} is missing"
        return
    if place.sha256_of(name) != mark["sha256"]:
        yield f"{path.name} is not the file that was marked"
    try:
        found, receipt = place.load(analysis)
    except (ValueError, TypeError, KeyError):
        yield f"{path.name} cannot be read"
        return
    charge = journal.charge(mark["nonce"])
    stated = None if receipt is None else receipt._asdict()
    if charge is None or charge["receipt"] != stated:
        yield f"{path.name} does not have the receipt of the charge"
    estimator = type(analysis.estimator(protocol, Spend(1.0))).__name__
    if getattr(found, "estimator", "Evaluation") != estimator:
        yield f"{path.name} was made by another estimator than the plan's"
    if found.guarantee.to_dict() != planned:
        yield f"{path.name} states another guarantee than the plan's"
    study = json.loads(path.read_text(encoding="utf-8")).get("study")
    if study != protocol.stated(analysis):
        yield f"{path.name} states another study or outcome than the protocol"
