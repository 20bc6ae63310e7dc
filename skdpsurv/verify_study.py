"""Check what several releases cost together: a pool of them, or the folder of a study.

This file needs the standard library and verify.py beside it: ``python -I verify_study.py FOLDER
LEDGER.sqlite`` ends as that does. It checks each release by verify.py, a pool by the plans in it,
and a study by its journal, its protocol and the ledger that was charged.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

if __package__:
    from skdpsurv import verify as base
else:  # alone
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import verify as base  # type: ignore[import-not-found, no-redef]
need = base.need


# ---- Pools.
def _check_pool(release: base.Node) -> base.Verdict:
    """Compare a pool with the plan of each release in it, and with their number (pooling.md)."""
    promised, plan = release.part("guarantee"), release.part("plan")
    need(release.have("schema_version") == 3, "the layout is not that of version 3", base.NEW)
    base.check_words(promised)
    inputs, nodes = promised.part("public_inputs"), plan.parts("nodes")
    entries = inputs.parts("pooled")
    need(len(nodes) == len(entries), "a pool of pools: check each of its releases", base.NEW)
    how: Any = {"disjoint": max, "sequence": sum}[plan["node"]]
    told = "no person is in two of the pooled data sets" in promised["assumptions"]
    need((how is max) == told, "nobody is in two data sets, or costs add up")
    whole = base.Tree(base.Node({"node": "sequence", "nodes": []}.items()))
    for node, entry in zip(nodes, entries, strict=True):
        tree = base.Tree(node)
        base.check_total(entry, tree.cost)
        base.check_values(release, tree)
        n = entry.count("n_records")
        need({*tree.seen["n_records"]} <= {n}, "n_records of a part is another")
        for kind, found in tree.seen.items():
            whole.seen[kind] += found
        whole.seen["granted"].append(f"the release {entry['sha256'][:16]} states this plan")
        for name, one in tree.gives.items():
            of_all = whole.gives.setdefault(name, {"law": "sum", "variance": base.ZERO})
            of_all["variance"] += base.number_of(one["variance"], "a variance")
    for name in ("sha256", "released"):
        known = {one for e in entries if len(one := bytes.fromhex(e[name])) == 32}
        need(len(known) == len(entries), "a release is there twice, or has no hash")
    for name in ("epsilon", "delta"):
        each = [entry.number(name) for entry in entries]
        base.follows(promised.number(name), Fraction(how(each)), f"{name} of a pool")
    weakest = max((entry["status"] for entry in entries), key=base.STATUSES.index)
    need(promised["status"] == weakest, "the status is not the weakest one")
    need(not {"rho", "renyi"} & {*promised}, "rho and divergences are not those of a pool")
    total = sum(entry["n_records"] for entry in entries)
    need(inputs.have("n_records") == total, "n_records is not that of the parts")
    fits = [*map(release.get, ("fit_guarantee", "fit_plan"))]
    fits += [whole.seen["trained"], whole.seen["candidates"]]
    need(not any(fits), "a pool has no last fit")
    _check_noise(release, whole)
    whole.seen["granted"] += ["pooling.md: nobody is in two of the data sets"] * (how is max)
    whole.seen["granted"].append("the values of the pool follow from those of its releases")
    words = f"epsilon {float(promised['epsilon']):.9g}"
    return base.verified(release["estimator"], promised, whole, words)


def _check_noise(release: base.Node, tree: base.Tree) -> None:
    """Compare the noise on sums of tables, which alone has a law, with that of the plans."""
    noise, mechanism = release.part("noise"), release.part("guarantee")["mechanism"]
    summed = mechanism.startswith("sum of tables")
    need(summed == bool(noise), "the noise on sums of tables is missing")
    for name in noise:
        own = noise.part(name)
        need(own == own | {"law": "sum"}, f"the noise on {name} is that of a sum")
        variance = tree.gives[name]["variance"]
        base.follows(own.number("variance"), variance, f"the variance of {name}")


def check_release(source: str | Path) -> base.Verdict:
    """Check a release, an evaluation, or a pool of releases."""
    release = base.read(source)
    pooled = "pooled" in release.part("guarantee").part("public_inputs")
    return _check_pool(release) if pooled else base.check_release(release)


def verify(text: str) -> base.Verdict:
    """Check the text of a release, an evaluation, or a pool of releases.

    Examples
    --------
    >>> from skdpsurv.verify_study import verify
    >>> verify("{}").word
    'not covered'
    """
    return base.judged(check_release, text)


# ---- The folder of a study: what its releases cost together, and the ledger.
def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(content: Any) -> str:
    return _sha256(json.dumps(content, separators=(",", ":"), sort_keys=True))


def _own_text(path: Path) -> str:
    """Return the text of a file of a folder, which is there itself."""
    need(path.is_file() and not path.is_symlink(), f"{path.name} is no file of its own")
    return path.read_text(encoding="utf-8")


def _journal(text: str) -> defaultdict[str, list[base.Node]]:
    """Return the lines of a journal by kind; each has a hash of itself and of that before it."""
    found: defaultdict[str, list[base.Node]] = defaultdict(list)
    link = "skdpsurv study 1"
    for number, line in enumerate(map(base.read, text.splitlines()), 1):
        stated = line.pop("link", None)
        link = _digest([link, line])
        need(link == stated, f"line {number} of the journal does not follow from that before it")
        found[line.have("what")].append(line)
    return found


def _entries(path: Path) -> tuple[Any, list[dict[str, Any]]]:
    """Return how a ledger began, and its entries."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
            file.row_factory = sqlite3.Row
            kinds = dict(file.execute("SELECT name, type FROM sqlite_master").fetchall())
            stored = kinds.get("ledger") == kinds.get("entries") == "table"
            need(stored, "a ledger's entries are not stored in it")  # a view may never end
            (made,) = file.execute("SELECT * FROM ledger").fetchall()
            return made, [*map(dict, file.execute("SELECT * FROM entries ORDER BY id"))]
    except sqlite3.Error:
        raise base.EndError("refuted", "no ledger as the program writes it") from None


def _check_ledger(path: Path, charges: list[base.Node], dataset: str, name: str) -> str:
    """Compare the charges of a study with a ledger, and return what that says of these people."""
    made, rows = _entries(path)
    counts = not made["rehearsal"] and not made["moved_to"]
    need(counts, "a ledger of rehearsals, or one that was moved", base.NEW)
    begun = [made[name] for name in ("identity", "epsilon", "delta")]
    begun += [False, bool(made["charge_refusals"]), made["composition"], made["renyi_order"]]
    links = [_digest(["skdpsurv ledger", 4, *begun])]
    for number, row in enumerate(rows, 1):
        key, nonce, *entry, link = row.values()
        links.append(_digest([links[-1], nonce, *entry]))
        need(key == number and link == links[-1], f"entry {number} of the ledger was altered")
    for charge in charges:
        receipt, promised = charge.part("receipt"), charge.part("guarantee")
        number = receipt.count("entries", 1, len(rows))
        own = {"ledger": made["identity"], "entries": number, "hash": links[number]}
        need(receipt == own, "a charge is not in this ledger")
        stated = {name: promised[name] for name in ("epsilon", "delta", "status", "neighbours")}
        stated |= {"guarantee": _digest(promised), "dataset": dataset}
        same = stated.items() <= rows[number - 1].items()
        need(same, f"entry {number} of the ledger is another charge")
    others = sum(row["estimator"].startswith(name) for row in rows)
    need(others == len(charges), "the ledger has other charges for this protocol")
    all_spent = sum(row["epsilon"] for row in rows if row["dataset"] == dataset)
    return f"the ledger is that of all charges: {dataset}, epsilon {all_spent:.9g} in all"


def _check_charge(charge: base.Node, protocol: base.Node) -> str:
    """Compare the first charge with what all analyses cost together (study.md)."""
    promised, budget = charge.part("guarantee"), protocol.part("budget")
    n, share = charge.count("n_people"), float(protocol.number("evaluation_share"))
    held_out = round(share * n)
    sizes = {"everybody": n, "training": n - held_out, "evaluation": held_out}
    spent = dict.fromkeys(sizes, base.Spent())
    analyses = protocol.parts("analyses")
    evaluated = [one["of"] for one in analyses if one.get("of")]
    relation = "replace-one" + "-person" * (protocol.part("outcome").get("person") is not None)
    relations, expected = {relation}, {"n_records": n, "n_held_out": held_out}
    for one in analyses:
        name, people = one["name"], "training" if one["name"] in evaluated else "everybody"
        people = "evaluation" if one.get("of") else people
        own = charge.part("planned").part(name)
        epsilon, delta = own.positive("epsilon"), own.number("delta")
        need(not delta or "rho" in own, f"{name} has a delta and no rho", base.NEW)
        price = base.Spent.of("epsilon", epsilon)
        if delta:
            price = base.Spent.of("mu", base.root(2 * own.number("rho")))
        spent[people] = base.sequence([spent[people], price])
        relations.add(own["neighbours"])
        stated = own.part("public_inputs").get("n_records") == sizes[people] > 0
        need(stated, f"{name} is not of these people")
        need(own["status"] == "proved", f"the status of {name} is {own['status']!r}", base.NEW)
        expected[f"epsilon_{name}"] = own["epsilon"]
        expected |= {f"delta_{name}": own["delta"]} if delta else {}
    public = relation + "-same-group"
    known = relations <= {relation, public} and promised["neighbours"] == max(relations, key=len)
    need(known and promised["status"] == "proved", "neighbours or status are not those of all")
    inputs = promised.part("public_inputs")
    same = all(inputs.get(name) == value for name, value in expected.items())
    need(same, "the charge states other numbers than its analyses")
    epsilon, delta = promised.positive("epsilon"), promised.number("delta")
    parts = ("training", "evaluation")
    cost = [base.sequence([spent["everybody"], spent[people]]) for people in parts]
    gaussian = [bool(one.rho_of_mu) for one in cost]
    need(any(gaussian) == (delta > 0), "delta is above 0 where noise is Gaussian, and else 0")
    most = max(base.epsilon_of(one, delta) for one in cost)
    words = f"all analyses cost {float(most):.12g}, and {float(epsilon):.12g} was charged"
    need(most <= epsilon * (1 + base.ROUNDING), words)
    left = budget.number("epsilon") - budget.number("reserve")
    within = epsilon <= left and delta <= budget.number("delta")
    need(within, "more was charged than the protocol's budget")
    if "rho" in promised:
        rho = max(one.rho for one in cost)
        holds = promised.number("rho") >= rho * (1 - base.ULPS) and all(gaussian)
        need(holds, "rho is less than that of all analyses")
    need("renyi" not in promised, "divergences are not those of a study")
    return f" at delta {float(delta):.3g}" * bool(delta) + f", {promised['neighbours']}, proved"


def _check_study(folder: Path, files: Sequence[Path], ledgers: Sequence[Path]) -> base.Verdict:
    """Compare releases with the journal, and this with the protocol and the ledger."""
    text = _own_text(folder / "protocol.json")
    need(not (folder / "releases").is_symlink(), "the releases are in another folder")
    need(all(one.suffix == ".json" for one in files), "a file of the releases is not of JSON")
    releases = {one.stem: _own_text(one) for one in files}
    lines, sha256 = _journal(_own_text(folder / "journal")), _sha256(text)
    protocol, intents, charges = base.read(text), lines["intent"], dict[str, base.Node]()
    ((first,),) = (lines["study"],)
    need(first["protocol"] == sha256, "the journal is of another protocol")
    for line in lines["charged"]:
        (intent,) = (one for one in intents if one["nonce"] == line["nonce"])
        own = {"protocol_sha256": sha256, "nonce": intent["nonce"]}
        inputs = intent.part("guarantee").part("public_inputs")
        need(own.items() <= inputs.items(), "a charge is of another protocol, or of another nonce")
        need(line["nonce"] not in charges, "a charge is noted twice")
        charges[line["nonce"]] = base.Node({**intent, "receipt": line["receipt"]}.items())
    need(charges, "nothing was charged", base.NEW)
    whole, *again = charges.values()
    every = [one["name"] for one in protocol.parts("analyses")]
    need(whole["analyses"] == every == [*dict.fromkeys(every)], "not all analyses were charged")
    found, total = _check_charge(whole, protocol), whole["guarantee"].number("epsilon")
    for charge in again:  # of an analysis whose release was lost
        (name,), promised = charge["analyses"], charge["guarantee"]
        planned, own = whole["planned"][name], {"protocol_sha256": sha256, "nonce": charge["nonce"]}
        own = {**planned, "public_inputs": {**planned["public_inputs"], **own}}
        same = promised == own and not planned["delta"]
        need(same, f"{name} was charged again at another price")
        total += promised.number("epsilon")
    need(total <= protocol["budget"].number("epsilon"), "more was charged than the budget")
    started = [(one["nonce"], one["analysis"]) for one in lines["started"]]
    paid = all(name in charges[nonce]["analyses"] for nonce, name in started)
    need(paid and len({*started}) == len(started), "an analysis ran without a charge of its own")
    marks = {one["analysis"]: one for one in lines["released"]}
    known = {*marks} == {*releases} and len(marks) == len(lines["released"])
    need(known, "the releases in the folder are not those that the journal marks, once each")
    for name, mark in marks.items():
        release, charge = base.read(releases[name]), charges[mark["nonce"]]
        need((mark["nonce"], name) in started, f"{name} was released and never started")
        need(mark["sha256"] == _sha256(releases[name]), f"{name} is not the file that was marked")
        same = release["guarantee"] == whole["planned"][name]
        alone = "pooled" not in release["guarantee"]["public_inputs"]
        need(alone, f"{name} is a pool, which says that its people are of several data sets")
        need(same and release.get("receipt") == charge["receipt"], f"{name} is of another charge")
        about = {"protocol_sha256": sha256, "analysis": name}
        need(about.items() <= release["study"].items(), f"{name} is of another study")
    granted = ["study.md: people were dealt by coins into two parts, once, and nobody knows how"]
    granted *= whole["guarantee"]["public_inputs"]["n_held_out"] > 0
    read = ("journal", "journal.lock", "protocol.json", "releases")
    others = ", ".join(sorted(path.name for path in folder.iterdir() if path.name not in read))
    granted += [f"not read, and not verified: {others} (never publish private)"] if others else []
    if protocol["budget"]["ledger"] is None:
        granted.append("no ledger counts what else these people cost")
        charged = ledgers or any(one["receipt"] for one in charges.values())
        need(not charged, "the protocol names no ledger, and there is one")
    else:
        need(ledgers, "the charges are in a ledger: give its file, too", base.NEW)
        for path in ledgers:
            name, dataset = f"Study {sha256[:16]}", protocol["dataset"]
            granted.append(_check_ledger(path, [whole, *again], dataset, name))
    words = f"a study of {len(every)} analyses, of which {len(marks)} are here"
    return base.Verdict("verified", f"{words}, epsilon {float(total):.9g}{found}", granted)


def checked(paths: Iterable[str | Path]) -> Iterator[tuple[str, base.Verdict]]:
    """Check releases, and folders of studies; yield names and verdicts.

    A study that was charged to a ledger needs the ledger's file among the paths.
    """
    given = [*map(Path, paths)]
    ledgers = [p for p in given if p.is_file() and p.read_bytes()[:16] == b"SQLite format 3\0"]
    for path in given:
        if path.is_dir():
            files = sorted((path / "releases").glob("*"))
            found = [base.judged(lambda own: check_release(_own_text(own)), one) for one in files]
            yield from ((base.shown(str(one)), own) for one, own in zip(files, found, strict=True))
            whole = base.judged(_check_study, path, files, ledgers)
            if code := base.worst([whole, *found]):
                word = next(word for word, own in base.CODES.items() if own == code)
                see = base.Verdict(word, "a release is: see above")
                whole = whole if whole.word == word else see
            yield base.shown(str(path)), whole
        elif path not in ledgers:
            yield base.shown(str(path)), base.judged(check_release, path)
        elif len(given) > len(ledgers) and not any(one.is_dir() for one in given):
            alone = base.Verdict(base.NEW, "a ledger is of the folder of a study")
            yield base.shown(str(path)), alone


if __name__ == "__main__":
    sys.exit(base.report([*checked(sys.argv[1:])]))
