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
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        same = {*tree.seen["n_records"]} <= {entry.count("n_records")}
        need(same, "n_records of a part is another")
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
    words = base.cost_in_words(promised.number("epsilon"), promised.number("delta"))
    return base.verified(release["estimator"], promised, whole, words)


def _check_noise(release: base.Node, tree: base.Tree) -> None:
    """Compare the noise on sums of tables, which alone has a law, with that of the plans."""
    noise, mechanism = release.part("noise"), release.part("guarantee")["mechanism"]
    need(mechanism.startswith("sum of tables") == bool(noise), "noise on sums of tables is missing")
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
#: Kinds of lines of a journal: each needs the one before it, of the same charge and analysis.
_STEPS = ("study", "intent", "charged", "started", "released")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(content: Any) -> str:
    return _sha256(json.dumps(content, separators=(",", ":"), sort_keys=True))


def _own_text(path: Path) -> str:
    """Return the text of a file of a folder, which is there itself."""
    need(path.is_file() and not path.is_symlink(), f"{path.name} is no file of its own")
    return path.read_bytes().decode()


def _journal(text: str) -> defaultdict[str, list[base.Node]]:
    """Return the lines of a journal by kind; each has a hash of itself and of that before it."""
    need(text.endswith("\n"), "a run ended within a line of the journal: run it again", base.NEW)
    found: defaultdict[str, list[base.Node]] = defaultdict(list)
    link, seen = "skdpsurv study 1", set[Any]()
    for number, line in enumerate(map(base.read, text.splitlines()), 1):
        stated, what = line.pop("link", None), line.have("what")
        link = _digest([link, line])
        need(link == stated, f"line {number} of the journal does not follow from that before it")
        found[what].append(line)
        if what != "published":  # an analysis that has started is released or lost, once
            step = _STEPS.index("released" if what == "lost" else what)
            of = [line.get(name) for name in ("nonce", "analysis")]
            own, before = (step, *of[: (step + 1) // 2]), (step - 1, *of[: step // 2])
            fits = own not in seen and (step == 0 or before in seen)
            need(fits, f"line {number} of the journal, {what}, is there twice, or too early")
            seen.add(own)
    return found


def _check_ledger(path: Path, charges: list[base.Node], dataset: str, name: str, word: str) -> str:
    """Compare the charges of a study with a ledger, and return what that says of these people."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
        file.row_factory = sqlite3.Row
        kinds = dict(file.execute("SELECT name, type FROM sqlite_master").fetchall())
        stored = kinds.get("ledger") == kinds.get("entries") == "table"
        need(stored, "a ledger's entries are not stored in it")  # a view may never end
        (made,) = file.execute("SELECT * FROM ledger").fetchall()
        rows = [*map(dict, file.execute("SELECT * FROM entries ORDER BY id"))]
    moved = made["moved_to"] or {row["status"] for row in rows[-1:]} & {"closed", "moved"}
    counts = made["schema_version"] == 4 and not made["rehearsal"] and not moved
    need(counts, "a ledger of another version, of rehearsals, or one that was moved", base.NEW)
    begun = [made[name] for name in ("identity", "epsilon", "delta")]
    begun += [False, bool(made["charge_refusals"]), made["composition"], made["renyi_order"]]
    links = [_digest(["skdpsurv ledger", 4, *begun])]
    for number, row in enumerate(rows, 1):
        key, nonce, *entry, link = row.values()
        links.append(_digest([links[-1], nonce, *entry]))
        whole = key == number and link == links[-1] and row["epsilon"] >= 0 <= row["delta"]
        need(whole, f"entry {number} of the ledger was altered")
    known = set()
    for charge in charges:
        receipt, promised = charge.part("receipt"), charge.part("guarantee")
        number = receipt.count("entries", 1, len(rows))
        own = {"ledger": made["identity"], "entries": number, "hash": links[number]}
        need(receipt == own, "a charge is not in this ledger")
        stated = {name: promised[name] for name in ("epsilon", "delta", "status", "neighbours")}
        stated |= {"guarantee": _digest(promised), "dataset": dataset}
        same = stated.items() <= rows[number - 1].items()
        need(same, f"entry {number} of the ledger is another charge")
        known.add(number)
    # A study that was refused for its records, and paid for that, may begin anew elsewhere.
    own_rows = [row for row in rows if row["estimator"].startswith(name)]
    others = {row["id"] for row in own_rows if row["mechanism"] != "none: refused"} != known
    need(not others, "the ledger has other charges for this protocol", word)
    of_people = [(row["epsilon"], row["delta"]) for row in rows if row["dataset"] == dataset]
    epsilon, delta = map(sum, zip(*of_people, strict=True))
    spent = f"epsilon {epsilon:.9g}" + f" and delta {delta:.3g}" * (delta > 0)
    return f"the ledger is that of all charges: {dataset}, {spent} in all"


def _check_charge(charge: base.Node, protocol: base.Node, pairs: Mapping[str, str]) -> None:
    """Compare the first charge with all it pays for (study.md); pairs say what is evaluated."""
    promised, budget = charge.part("guarantee"), protocol.part("budget")
    base.check_words(promised)
    inputs = promised.part("public_inputs")
    n, share = charge.count("n_people"), float(protocol.number("evaluation_share"))
    held_out = round(share * n)
    sizes = {"everybody": n, "training": n - held_out, "evaluation": held_out}
    spent = dict.fromkeys(sizes, base.Spent())
    relation = "replace-one" + "-person" * (protocol.part("outcome").get("person") is not None)
    relations, expected = {relation}, {"n_records": n, "n_held_out": held_out}
    for name in charge["analyses"]:
        people = "training" if name in pairs.values() else "everybody"
        people = "evaluation" if name in pairs else people
        own = charge.part("planned").part(name)
        price, delta = ("epsilon", own.positive("epsilon")), own.number("delta")
        need(not delta or "rho" in own, f"{name} has a delta and no rho", base.NEW)
        price = ("mu", base.root(2 * own.number("rho"))) if delta else price
        spent[people] = base.sequence([spent[people], base.Spent.of(*price)])
        relations.add(own["neighbours"])
        stated = own.part("public_inputs")
        need(stated.get("n_records") == sizes[people] > 0, f"{name} is not of these people")
        same = own["neighbours"] == relation or stated["by"] == inputs["by"]
        need(same, f"{name} has other groups that are public")
        need(own["status"] == "proved", f"the status of {name} is {own['status']!r}", base.NEW)
        expected[f"epsilon_{name}"] = own["epsilon"]
        expected |= {f"delta_{name}": own["delta"]} if delta else {}
    public = relation + "-same-group"
    known = relations <= {relation, public} and promised["neighbours"] == max(relations, key=len)
    need(known and promised["status"] == "proved", "neighbours or status are not those of all")
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
        rho = max(one.rho for one in cost) * (1 - base.ULPS)
        need(all(gaussian) and promised.number("rho") >= rho, "rho is less than that of all")
    need("renyi" not in promised, "divergences are not those of a study")


def _check_study(
    folder: Path, releases: Mapping[str, str], ledgers: Sequence[Path]
) -> base.Verdict:
    """Compare releases with the journal, and this with the protocol and the ledger."""
    text, lock = _own_text(folder / "protocol.json"), folder / "journal.lock"
    need(not (folder / "releases").is_symlink(), "the releases are in another folder")
    need(not lock.exists() or not _own_text(lock), "journal.lock holds something")
    lines, sha256 = _journal(_own_text(folder / "journal")), _sha256(text)
    protocol, charges = base.read(text), dict[str, base.Node]()
    intents = {one["nonce"]: one for one in lines["intent"]}
    for line in lines["charged"]:
        intent = intents[line["nonce"]]
        own = {"protocol_sha256": sha256, "nonce": line["nonce"]}
        inputs = intent.part("guarantee").part("public_inputs")
        need(own.items() <= inputs.items(), "a charge is of another protocol, or of another nonce")
        charges[line["nonce"]] = base.Node({**intent, "receipt": line["receipt"]}.items())
    need(charges, "nothing was charged", base.NEW)
    need(lines["study"][0]["protocol"] == sha256, "the journal is of another protocol")
    whole, *again = charges.values()
    ran = all(one["analyses"] for one in charges.values())
    need(ran, "its records were refused, and it was charged for that", base.NEW)
    every = [one["name"] for one in protocol.parts("analyses")]
    need(whole["analyses"] == every == [*dict.fromkeys(every)], "not all analyses were charged")
    pairs = {one["name"]: one["of"] for one in protocol.parts("analyses") if one.get("of")}
    _check_charge(whole, protocol, pairs)
    stated = whole.part("guarantee")
    total, delta = stated.number("epsilon"), stated.number("delta")
    for charge in again:  # of an analysis whose release was lost
        (name,), promised = charge["analyses"], charge["guarantee"]
        planned, own = whole["planned"][name], {"protocol_sha256": sha256, "nonce": charge["nonce"]}
        own = {**planned, "public_inputs": {**planned["public_inputs"], **own}}
        same = promised == own and not planned["delta"]
        need(same, f"{name} was charged again at another price")
        total += promised.number("epsilon")
    need(total <= protocol["budget"].number("epsilon"), "more was charged than the budget")
    started, ended = lines["started"], lines["released"] + lines["lost"]
    paid = all(one["analysis"] in charges[one["nonce"]]["analyses"] for one in started)
    need(paid, "an analysis ran without a charge of its own")
    marks = {f"{one['analysis']}.json": one for one in lines["released"]}
    known = {*marks} == {*releases} and len(marks) == len(lines["released"])
    word = base.NEW if len(started) > len(ended) else "refuted"  # a run ended before its mark
    need(known, "the releases in the folder are not those that the journal marks, once each", word)
    for file, mark in marks.items():
        name, release, charge = mark["analysis"], base.read(releases[file]), charges[mark["nonce"]]
        need(mark["sha256"] == _sha256(releases[file]), f"{name} is not the file that was marked")
        same = release["guarantee"] == whole["planned"][name]
        need("pooled" not in release["guarantee"]["public_inputs"], f"{name} is a pool")
        need(same and release.get("receipt") == charge["receipt"], f"{name} is of another charge")
        about = {"protocol_sha256": sha256, "analysis": name}
        need(about.items() <= release["study"].items(), f"{name} is of another study")
        kind = name in pairs, name in pairs.values() and "baseline_coef" not in release["values"]
        fits = kind == ("estimator" not in release, False)
        need(fits, f"{name} is no evaluation, or no regression, and the protocol says so")
    dealt = "study.md: people were dealt by coins into two parts, once, and nobody knows how: "
    granted = [f"{dealt}{', '.join(pairs)} of those held out"] * bool(pairs)
    read = ("journal", "journal.lock", "protocol.json", "releases")
    others = ", ".join(sorted(path.name for path in folder.iterdir() if path.name not in read))
    granted += [f"not read, and not verified: {others} (never publish private)"] if others else []
    if protocol["budget"]["ledger"] is None:
        granted.append("no ledger counts what else these people cost")
        charged = ledgers or any(one["receipt"] for one in charges.values())
        need(not charged, "the protocol names no ledger, and there is one")
    else:
        need(ledgers, "the charges are in a ledger: give its file, too", base.NEW)
        word = base.NEW if len(intents) > len(charges) else "refuted"  # a run ended before its note
        for path in ledgers:
            name, dataset = f"Study {sha256[:16]}", protocol["dataset"]
            granted.append(_check_ledger(path, [whole, *again], dataset, name, word))
    words = f"a study of {len(every)} analyses, of which {len(marks)} are here"
    words += f", {base.cost_in_words(total, delta)}, {stated['neighbours']}, proved"
    return base.Verdict("verified", words, granted)


def _check_folder(folder: Path, ledgers: Sequence[Path]) -> Iterator[tuple[str, base.Verdict]]:
    """Check each release of a study, which is read once, and then all of them together."""
    texts = dict[str, str]()

    def check(file: Path) -> base.Verdict:
        texts[file.name] = _own_text(file)
        return check_release(texts[file.name])

    files = sorted((folder / "releases").glob("*"))
    found = [base.judged(check, one) for one in files]
    yield from ((base.shown(str(one)), own) for one, own in zip(files, found, strict=True))
    whole = base.judged(_check_study, folder, texts, ledgers)
    word = max((own.word for own in [whole, *found]), key=("verified", base.NEW, "refuted").index)
    see = base.Verdict(word, "a release is: see above")
    yield base.shown(str(folder)), whole if whole.word == word else see


def checked(paths: Iterable[str | Path]) -> Iterator[tuple[str, base.Verdict]]:
    """Check releases, and folders of studies; yield names and verdicts.

    A study that was charged to a ledger needs the ledger's file among the paths.
    """
    given = [(path, base.judged(check_release, path)) for path in map(Path, paths)]
    folders = {path for path, _ in given if path.is_dir()}
    ledgers = [path for path, own in given if own.reason == base.BESIDE and path not in folders]
    for path, own in given:
        if path in folders:
            yield from _check_folder(path, ledgers)
        elif path not in ledgers:
            yield base.shown(str(path)), own
        elif len(given) > len(ledgers) and not folders:
            alone = base.Verdict(base.NEW, "a ledger is of the folder of a study")
            yield base.shown(str(path)), alone


if __name__ == "__main__":
    sys.exit(base.report([*checked(sys.argv[1:])]))
