"""Check that the releases of a study, its ledger and its protocol belong together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.guarantee import PERSON, RECORD, SAME_GROUP, PrivacyGuarantee
from skdpsurv.dp.plan import AdaptiveChoice, Node
from skdpsurv.dp.privacy_cost import Spend, gaussian_price
from skdpsurv.dp.references import __version__
from skdpsurv.study.analyses import Analysis
from skdpsurv.study.charges import entry_name, reserve_left, stated_guarantee
from skdpsurv.study.folder import Folder, sha256_of_file
from skdpsurv.study.journal import Journal, Line
from skdpsurv.study.parts import together, whose
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
    if charged and (journal.is_of_today or not all(one.get("planned") for one in charged)):
        plan = StudyPlan.of(protocol, charged[0]["n_people"])
    for charge in charged:
        yield from _charge(protocol, plan, charge, charge is charged[0])
    if reserve_left(protocol, charged) < 0.0:
        yield "more was charged again than the reserve of the protocol"
    known = set()
    for analysis in protocol.analyses:
        mark = journal.released(analysis.name)
        if charged and mark is not None:
            known.add(place.file_of(analysis.name))
            charge = journal.charge(mark["nonce"])
            yield from _release(place, analysis, _planned(plan, charge), charge, mark)
    for path in sorted(set(place.releases.iterdir()) - known):
        yield f"{path.name} is no release that the journal marks"
    for name, sha256 in journal.published.items():
        path = place.path / name
        if not path.exists() or sha256_of_file(path) != sha256:
            yield f"{name} is not the file of the report that was noted"


def _order(journal: Journal) -> Iterator[str]:
    """Find lines of the journal that come twice, or without those that must precede them."""
    seen: set[tuple[str, ...]] = set()
    for line in journal.lines:
        what, nonce, name = line["what"], line.get("nonce", ""), line.get("analysis", "")
        own, is_end = (what, nonce, name), what in ("released", "lost")
        if what == "charged" and (own in seen or ("intent", nonce, "") not in seen):
            yield "a charge is noted twice, or without an intent"
        if what == "started" and (own in seen or ("charged", nonce, "") not in seen):
            yield f"{name} was started twice under one charge, or without one"
        if is_end and ("started", nonce, name) not in seen:
            yield f"{name} was {what} and never started"
        if is_end and ("released", name) in seen:
            yield f"{name} was {what} after it was released"
        seen |= {own, (what, name)}


def _ledger(
    protocol: Protocol, journal: Journal, accountant: PrivacyAccountant | None
) -> Iterator[str]:
    """Find charges that are in the journal and not in the ledger, or the other way round."""
    charged = journal.charged
    noted = [charge for charge in charged if charge["receipt"]]
    if accountant is None:
        if noted:
            yield "the study was charged to a ledger, and the protocol names none"
        return
    if len(noted) < len(charged):
        yield "the protocol names a ledger, and the study was not charged to it"
    try:
        accountant.verify(*(charge["receipt"] for charge in noted))
    except ValueError as error:
        yield f"the ledger does not hold the charges of the study: {error}"
        return
    for charge in noted:
        found = accountant._receipt_of(PrivacyGuarantee.from_dict(charge["guarantee"]))
        if found != (own := charge["receipt"]):
            yield f"entry {own.entries} of the ledger is not the charge that was noted"
    numbers = {charge["receipt"].entries for charge in noted}
    for number, entry in enumerate(accountant._ledger.entries(), start=1):
        if entry.estimator.startswith(entry_name(protocol)) and number not in numbers:
            yield f"entry {number} of the ledger is of this protocol, and not in this journal"


def _planned(plan: StudyPlan | None, charge: Line) -> Line:
    """Return the guarantees of the analyses: by the plan or, without one, by the journal."""
    if plan is None:
        return dict(charge.get("planned", {}))
    return {name: part.guarantee.to_dict() for name, part in plan.parts.items()}


def _charge(protocol: Protocol, plan: StudyPlan | None, charge: Line, first: bool) -> Iterator[str]:
    """Find a charge that differs from the plan or, without one, from the journal."""
    names, stated, planned = charge["analyses"], charge["guarantee"], _planned(plan, charge)
    every = [one.name for one in protocol.analyses]
    fits = names == (every if first else [name for name in names[:1] if name in every])
    fits = fits and {*names} <= {*planned}
    if fits and (plan is not None or not first):
        whole = PrivacyGuarantee.from_dict(planned[names[0]])
        whole = plan.guarantee() if plan is not None and first else whole
        fits = stated == stated_guarantee(whole, protocol, charge["nonce"]).to_dict()
        fits = fits and charge.get("planned", planned).items() <= planned.items()
    elif fits:
        own = {"protocol_sha256": protocol.sha256, "nonce": charge["nonce"]}
        own |= {"n_records": charge["n_people"]}
        own |= {f"epsilon_{name}": planned[name]["epsilon"] for name in names}
        fits = own.items() <= stated["public_inputs"].items()
        fits = fits and _covers(protocol, stated, planned)
    if not fits:
        yield f"the charge for {', '.join(names)} is not what the plan of the protocol costs"


def _covers(protocol: Protocol, stated: Line, planned: Line) -> bool:
    """Return whether a charge is of all that its analyses cost together, by their guarantees."""
    whole = PrivacyGuarantee.from_dict(stated)
    each = {one.name: PrivacyGuarantee.from_dict(planned[one.name]) for one in protocol.analyses}
    nodes: list[tuple[str, Node]] = []
    for analysis in protocol.analyses:
        own = each[analysis.name]
        price = gaussian_price(own.rho) if own.delta and own.rho is not None else own.epsilon
        # Which measurements another version made for this price is not known.
        nodes.append((whose(protocol, analysis), AdaptiveChoice(price, _unknown, ())))
    cost = together(nodes).cost
    relation = RECORD if protocol.person is None else PERSON
    relation += SAME_GROUP * any(one.neighbours.endswith(SAME_GROUP) for one in each.values())
    found = {(one.status, one.neighbours.removesuffix(SAME_GROUP)) for one in each.values()}
    return (
        # The price of noise is rounded where a guarantee states its rho.
        cost.within(whole.epsilon * (1.0 + 1e-9), whole.delta)
        and (whole.status, whole.neighbours) == ("proved", relation)
        and found == {("proved", relation.removesuffix(SAME_GROUP))}
    )


def _unknown(context: object) -> Node:
    raise NotImplementedError("measurements of another version are not made again.")


def _release(
    place: Folder, analysis: Analysis, planned: Line, charge: Line, mark: Line
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
    if not charge or charge["receipt"] != receipt:
        yield f"{path.name} does not have the receipt of the charge"
    estimator = type(analysis.estimator(protocol, Spend(1.0))).__name__
    if getattr(found, "estimator", "Evaluation") != estimator:
        yield f"{path.name} was made by another estimator than the plan's"
    if found.guarantee.to_dict() != planned.get(name):
        yield f"{path.name} states another guarantee than the plan's"
    study = json.loads(path.read_text(encoding="utf-8")).get("study")
    if study != protocol.stated(analysis):
        yield f"{path.name} states another study or outcome than the protocol"
