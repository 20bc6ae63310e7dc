"""Forgeries of a study, drawn by a seed, by somebody who may write to its folder and its ledger.

Hashes are written anew, as no key is needed for that, and so is what follows from what was changed.
No verdict may be of less than the releases in the folder have cost, of a journal in which something
ran before its charge, or of a ledger with a charge below 0.
"""

import copy
import json
import random
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from skdpsurv.dp.ledger import digest, linked, start
from skdpsurv.study.journal import _linked
from skdpsurv.verify_study import _sha256, checked
from tests.study.test_run import LIGHT, Place, end_in
from tests.test_verify import leaves

N_FORGERIES = 300


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two analyses of everybody, one of which was charged again, as a run had lost it."""
    place = Place(tmp_path_factory.mktemp("study"), **LIGHT, reserve=3.0, epsilon=9.0)
    end_in(place, "weibull")
    place.run()
    return place.out


def read(place):
    lines = map(json.loads, (place / "journal").read_text().splitlines())
    found = {"protocol": json.loads((place / "protocol.json").read_text())}
    found["lines"] = [{key: line[key] for key in line if key != "link"} for line in lines]
    found["releases"] = {p.stem: json.loads(p.read_text()) for p in (place / "releases").iterdir()}
    with closing(sqlite3.connect(place.parent / "ledger.sqlite")) as file:
        found["rows"] = [*map(list, file.execute("SELECT * FROM entries ORDER BY id"))]
        (found["made"],) = file.execute("SELECT * FROM ledger")
    return found


# ---- What is changed.


def a_field(found, rng):
    parts = {name: found[name] for name in ("protocol", "lines", "rows")}
    parts |= {name: one["guarantee"] for name, one in found["releases"].items()}
    *way, last = rng.choice([*leaves(parts)])
    node = parts
    for key in way:
        node = node[key]
    old = node[last]
    others = [None, True, "", [], 0, -1, 10**30, 0.5, [old], str(old), {"a": old}]
    others += [old / 2, -old, old + 1] if isinstance(old, int | float) else []
    others += [old[:-1], old[::-1], old * 2] if isinstance(old, str | list) else []
    node[last] = rng.choice(others)


def a_line(found, rng):
    lines = found["lines"]
    line = rng.choice(lines)
    if rng.random() < 0.6:
        lines.remove(line)
    if rng.random() < 0.8:
        lines.insert(rng.randrange(len(lines) + 1), copy.deepcopy(line))


def the_nonces(found, rng):
    one, other = rng.choices([line for line in found["lines"] if "nonce" in line], k=2)
    one["nonce"], other["nonce"] = other["nonce"], one["nonce"]


def a_split(found, rng):
    """State that analyses of everybody are each of a part of more people."""
    one, other = rng.choices(found["protocol"]["analyses"], k=2)
    one["of"] = other["name"]
    found["protocol"]["evaluation_share"] = rng.choice([0.5, 0.5, 1.0, 1.5])
    found["lines"][1]["n_people"] = rng.choice([120, 240, 240, 80])


def a_budget(found, rng):
    budget = found["protocol"]["budget"]
    budget[rng.choice(["epsilon", "reserve", "delta"])] = rng.choice([0.0, 0.5, 2.0, 6.0, 99.0])


def a_price(found, rng):
    name, factor = rng.choice(["curves", "weibull"]), rng.choice([0.0, 0.5, 0.999])
    found["lines"][1]["planned"][name]["epsilon"] *= factor


def an_analysis(found, rng):
    del rng.choice([found["protocol"]["analyses"], found["lines"][1]["analyses"]])[rng.randrange(2)]


def a_name(found, rng):
    old, new = rng.choice(["curves", "weibull"]), rng.choice(["../a", "Curves", ".json", "weibull"])
    for part in ("protocol", "lines"):
        found[part] = json.loads(json.dumps(found[part]).replace(f'"{old}"', f'"{new}"'))


def an_entry(found, rng):
    rows = found["rows"]
    row = rng.choice(rows)
    if rng.random() < 0.5:
        rows.remove(row)
    else:
        rows.append([len(rows) + 1, *row[1:5], rng.choice([row[5], -row[5], 0.0]), *row[6:]])
        rng.choice(rows)[3] = rng.choice(["Another", row[3]])


CHANGES = (a_field, a_line, the_nonces, a_split, a_budget, a_price, an_analysis, a_name, an_entry)


# ---- What follows from it.


def settle(found):
    """Let the charge state what its analyses cost by the protocol, and releases what it states."""
    protocol, first = found["protocol"], found["lines"][1]
    n, planned, analyses = first["n_people"], first["planned"], protocol["analyses"]
    held_out, apart = round(protocol["evaluation_share"] * n), {one.get("of") for one in analyses}
    costs, inputs = {"all": 0.0, "rest": 0.0, "out": 0.0}, first["guarantee"]["public_inputs"]
    for one in analyses:
        name, own = one["name"], planned[one["name"]]
        whose = "out" if one.get("of") else "rest" if name in apart else "all"
        own["public_inputs"]["n_records"] = {"all": n, "rest": n - held_out, "out": held_out}[whose]
        costs[whose] += own["epsilon"]
        inputs[f"epsilon_{name}"] = own["epsilon"]
    inputs |= {"n_records": n, "n_held_out": held_out}
    first["analyses"] = [one["name"] for one in analyses]
    first["guarantee"]["epsilon"] = costs["all"] + max(costs["rest"], costs["out"])
    found["rows"][0][5] = first["guarantee"]["epsilon"]
    for name, release in found["releases"].items():
        release["guarantee"] = planned[name]


def write(found, folder, ledger):
    """Write a study, with hashes that fit."""
    (folder / "releases").mkdir(parents=True)
    (folder / "protocol.json").write_text(text := json.dumps(found["protocol"]))
    sha256, stated = found["lines"][0]["protocol"], json.dumps(found)
    for old, new in (
        (sha256, _sha256(text)),
        (f"Study {sha256[:16]}", f"Study {_sha256(text)[:16]}"),
    ):
        stated = stated.replace(old, new)
    found = json.loads(stated)
    charged = [line for line in found["lines"] if line["what"] == "intent"]
    made = found["made"]
    before = start(made[1], [*made[2:4], *map(bool, made[4:6]), *made[6:8]]).hash
    for row, line in zip(found["rows"], charged, strict=False):
        row[-2] = digest(line["guarantee"])
    for row in found["rows"]:
        old, row[-1] = row[-1], linked(before, row[1], row[2:-1])
        before = row[-1]
        again = json.dumps([found["lines"], found["releases"]]).replace(old, before)
        found["lines"], found["releases"] = json.loads(again)
    shutil.copy(ledger, folder.parent / "ledger.sqlite")
    with closing(sqlite3.connect(folder.parent / "ledger.sqlite")) as file, file:
        file.execute("DELETE FROM entries")
        places = ", ".join("?" * len(found["rows"][0])) if found["rows"] else ""
        file.executemany(f"INSERT INTO entries VALUES ({places})", found["rows"])
    for name, release in found["releases"].items():
        (folder / "releases" / f"{name}.json").write_text(json.dumps(release))
    lines = []
    for line in found["lines"]:
        if line["what"] == "released" and line["analysis"] in found["releases"]:
            line["sha256"] = _sha256(json.dumps(found["releases"][line["analysis"]]))
        lines.append(_linked(lines, line))
    (folder / "journal").write_text("".join(json.dumps(line) + "\n" for line in lines))


def in_order(found):
    """Say whether each analysis started after the charge that pays for it was noted."""
    noted = set()
    for line in found["lines"]:
        noted |= {line["nonce"]} if line["what"] == "charged" else set()
        if line["what"] == "started" and line["nonce"] not in noted:
            return False
    return True


def test_no_forgery_is_verified_for_less_than_it_cost(place, tmp_path):
    honest, rng, verified = read(place), random.Random(8), 0
    price = {
        repr(one["values"]): one["guarantee"]["epsilon"] for one in honest["releases"].values()
    }
    for number in range(N_FORGERIES):
        found, folder = copy.deepcopy(honest), tmp_path / str(number) / "out"
        changes = rng.sample(CHANGES, rng.randrange(1, 4)) if number else []
        try:
            for change in changes:
                change(found, rng)
            if rng.random() < 0.7:
                settle(found)
            write(found, folder, place.parent / "ledger.sqlite")
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, sqlite3.Error):
            continue  # what a file cannot hold, or what nothing follows from
        *_, (_, verdict) = checked([folder, folder.parent / "ledger.sqlite"])
        if verdict.word != "verified":
            continue
        verified += 1
        cost = sum(price[repr(one["values"])] for one in found["releases"].values())
        stated = float(re.search("epsilon ([^ ,]+)", verdict.reason)[1])
        assert cost <= stated * (1.0 + 1e-8), (changes, verdict)
        assert in_order(found), (changes, verdict)
        assert all(row[5] >= 0.0 for row in found["rows"]), (changes, verdict)
    assert verified > 10
