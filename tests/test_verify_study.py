"""The verifier on pools and folders of studies: what it accepts, and forgeries it refuses."""

import copy
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from skdpsurv import DPDiscreteTimeSurvival, DPKaplanMeierFitter, PrivacyAccountant, pool_releases
from skdpsurv import verify as single
from skdpsurv import verify_study as verifier
from skdpsurv.dp.ledger import linked, start
from skdpsurv.report import curves, figures
from skdpsurv.study import Analysis
from skdpsurv.study.journal import _linked
from skdpsurv.verify_study import checked, verify
from tests.study.studies import ANALYSES
from tests.study.test_run import FRAME, LIGHT, Place, end_at, end_in
from tests.test_verify import at, forged, forgeries, leaves

#: Fields on which nothing depends that a study promises.
HARMLESS = {"when", "deal", "made_with", "file", "ledger"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a study, and its ledger beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "can_draw", lambda: False)
        patch.setattr(curves, "N_RESAMPLES", 10)
        place = Place(tmp_path_factory.mktemp("made"))
        place.run()
    return place.out.parent


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def verdict(folder):
    """Return what is said of the study as a whole."""
    *_, (_, found) = checked([folder / "out", folder / "ledger.sqlite"])
    return found


def lines_of(folder):
    text = (folder / "out" / "journal").read_text()
    return [{k: v for k, v in json.loads(t).items() if k != "link"} for t in text.splitlines()]


def write(folder, lines):
    """Write a journal anew, with hashes that fit."""
    linked = []
    for line in lines:
        linked.append(_linked(linked, line))
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in linked)
    (folder / "out" / "journal").write_text(text)


def rewrite(folder, name, change):
    """Change a release, and its mark in the journal."""
    path, lines = folder / "out" / "releases" / f"{name}.json", lines_of(folder)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    for line in lines:
        if line["what"] == "released" and line["analysis"] == name:
            line["sha256"] = verifier._sha256(path.read_text())
    write(folder, lines)


def test_a_study_is_verified_with_its_ledger(folder):
    found = [*checked([folder / "out", folder / "ledger.sqlite"])]
    assert [one.word for _, one in found] == ["verified"] * (len(ANALYSES) + 1)
    assert "epsilon 6, replace-one-person, proved" in found[-1][1].reason
    granted = " ".join(found[-1][1].granted)
    assert "dealt by coins" in granted
    assert "not verified: private " in granted
    for file in (single.__file__, verifier.__file__):  # the first hands over to the second
        alone = run_alone(file, folder / "out", folder / "ledger.sqlite")
        assert (alone.returncode, alone.stdout.count("\nverified: ")) == (0, len(ANALYSES) + 1)


def run_alone(*arguments):
    command = [sys.executable, "-I", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_one_file_without_the_other_does_not_cover_a_folder(folder):
    file = shutil.copy(single.__file__, folder / "verify.py")
    for given in (folder / "out", folder / "ledger.sqlite"):
        alone = run_alone(file, given)
        assert alone.returncode == 10
        assert "needs verify_study.py beside this file" in alone.stdout


def test_without_its_ledger_a_study_is_not_covered(folder):
    *_, (_, found) = checked([folder / "out"])
    assert (found.word, "give its file" in found.reason) == ("not covered", True)


def test_a_ledger_is_not_compared_with_a_release_alone(folder):
    given = [folder / "out" / "releases" / "curves.json", folder / "ledger.sqlite"]
    assert [one.word for _, one in checked(given)] == ["verified", "not covered"]


def test_nothing_is_never_verified(folder, capsys):
    assert single.main([]) == single.main([folder / "ledger.sqlite"]) == 10
    assert capsys.readouterr().out.startswith("usage: ")
    (folder / "bytes").write_bytes(b"\xff\xfe")
    (folder / "empty").mkdir()
    given = [folder / "bytes", folder / "empty", folder / "missing.json"]
    assert [one.word for _, one in checked(given)] == ["refuted"] * 3


def test_a_study_of_everybody_without_a_ledger(tmp_path):
    place = Place(tmp_path, None, **LIGHT)
    place.run()
    *_, (_, found) = checked([place.out])
    assert (found.word, found.reason.count("2 analyses")) == ("verified", 1)
    assert "no ledger counts what else these people cost" in found.granted


def drop_a_charge(folder):
    write(folder, [line for line in lines_of(folder) if line["what"] != "charged"])


def run_twice(folder):
    lines = lines_of(folder)
    write(folder, [*lines, next(line for line in lines if line["what"] == "started")])


def release_twice(folder):
    lines = lines_of(folder)
    write(folder, [*lines, next(line for line in lines if line["what"] == "released")])


def add_a_release(folder):
    releases = folder / "out" / "releases"
    shutil.copy(releases / "curves.json", releases / "more.json")


def add_a_file_of_the_same_name(folder):
    releases = folder / "out" / "releases"
    shutil.copy(releases / "weibull.json", releases / "curves")


def put_a_release_elsewhere(folder):
    path = folder / "out" / "releases" / "curves.json"
    path.symlink_to(path.rename(folder / "curves.json"))


def put_a_pipe(folder):
    os.mkfifo(folder / "out" / "releases" / "more.json")


def count_one_part(folder):
    """State that the training's people are not among everybody's."""
    path = folder / "out" / "protocol.json"
    protocol = json.loads(path.read_text())
    protocol["analyses"][1]["of"] = "regression"
    path.write_text(json.dumps(protocol))
    lines = lines_of(folder)
    lines[0]["protocol"] = verifier._sha256(path.read_text())
    write(folder, lines)


def halve(folder):
    rewrite(folder, "curves", lambda one: one["guarantee"].update(epsilon=0.75))


def other_receipt(folder):
    rewrite(folder, "curves", lambda one: one["receipt"].update(entries=2))


def other_protocol(folder):
    path = folder / "out" / "protocol.json"
    path.write_text(path.read_text().replace('"epsilon": 6.0', '"epsilon": 60.0'))


def other_file(folder):
    path = folder / "out" / "releases" / "curves.json"
    path.write_text(path.read_text() + "\n")


def run_before_the_charge(folder):
    lines = lines_of(folder)
    (charged,) = (line for line in lines if line["what"] == "charged")
    write(folder, [*(line for line in lines if line is not charged), charged])


def turn_around(folder):
    write(folder, lines_of(folder)[::-1])


def hide_one_in_the_lock(folder):
    release = folder / "out" / "releases" / "curves.json"
    shutil.copy(release, folder / "out" / "journal.lock")


def state_no_study(folder):
    rewrite(folder, "curves", lambda one: one.update(study=None))


def cover_less(folder):
    lines = lines_of(folder)
    lines[1]["guarantee"]["not_covered"] = ["whoever moved away"]
    write(folder, lines)
    text = json.dumps(lines[1]["guarantee"], separators=(",", ":"), sort_keys=True)
    relink(folder, f"UPDATE entries SET guarantee = '{verifier._sha256(text)}'")


def cut(folder):
    path = folder / "out" / "journal"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


FORGERIES = (drop_a_charge, run_twice, release_twice, add_a_release, count_one_part, halve)
FORGERIES += (add_a_file_of_the_same_name, put_a_release_elsewhere, put_a_pipe)
FORGERIES += (other_receipt, other_protocol, other_file, cut, run_before_the_charge, turn_around)
FORGERIES += (hide_one_in_the_lock, state_no_study, cover_less)


@pytest.mark.parametrize("forge", FORGERIES)
def test_forged_folders_are_refused(folder, forge):
    forge(folder)
    assert verdict(folder).word != "verified"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET epsilon = 3.0",
        "UPDATE entries SET dataset = 'another'",
        "UPDATE entries SET guarantee = 'x'",
        "UPDATE ledger SET epsilon = 100.0",
        "UPDATE ledger SET rehearsal = 1",
        "DELETE FROM entries",
        "ALTER TABLE entries RENAME TO some; CREATE VIEW entries AS SELECT * FROM some",
        'INSERT INTO entries SELECT 2, nonce, "when", estimator, mechanism, epsilon, delta, '
        "status, dataset, renyi, neighbours, who, purpose, guarantee, link FROM entries",
    ],
)
def test_forged_ledgers_are_refused(folder, change):
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.executescript(change)
    assert verdict(folder).word != "verified"


def relink(folder, change):
    """Change a ledger, and write its hashes anew where they stand, as whoever may write can."""
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.executescript(change)
        row = ledger.execute("SELECT * FROM ledger").fetchone()
        links = [start(row[1], [*row[2:4], *map(bool, row[4:6]), *row[6:8]]).hash]
        for number, nonce, *entry, old in ledger.execute("SELECT * FROM entries").fetchall():
            links.append(linked(links[-1], nonce, entry))
            ledger.execute("UPDATE entries SET link = ? WHERE id = ?", (links[-1], number))
            for path in [folder / "out" / "journal", *(folder / "out" / "releases").iterdir()]:
                path.write_text(path.read_text().replace(old, links[-1]))
    lines = lines_of(folder)
    for line in lines:
        if line["what"] == "released":
            path = folder / "out" / "releases" / f"{line['analysis']}.json"
            line["sha256"] = verifier._sha256(path.read_text())
    write(folder, lines)


ANOTHER = """INSERT INTO entries SELECT 2, nonce, "when", 'Another', mechanism, {}, {}, '{}',
    dataset, renyi, neighbours, who, purpose, guarantee, 'none yet' FROM entries"""


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("", "verified"),
        (ANOTHER.format(1.0, 0.0, "proved"), "verified"),
        (ANOTHER.format(-1.0, 0.0, "proved"), "refuted"),  # would be taken off what all cost
        (ANOTHER.format(1.0, -1e-6, "proved"), "refuted"),
        (ANOTHER.format(0.0, 0.0, "closed"), "not covered"),  # it went on elsewhere
        ("UPDATE ledger SET schema_version = 5", "not covered"),
        (  # the study's name on another charge than its own
            ANOTHER.format(1.0, 0.0, "proved").replace("'Another'", "estimator")
            + "; UPDATE entries SET estimator = 'Another' WHERE id = 1",
            "refuted",
        ),
    ],
)
def test_a_ledger_whose_hashes_were_written_anew(folder, change, word):
    relink(folder, change)
    assert verdict(folder).word == word


def test_what_all_charges_cost_has_a_delta_if_one_has(folder):
    relink(folder, ANOTHER.format(1.5, 1e-6, "proved"))
    assert "registry, epsilon 7.5 and delta 1e-06 in all" in " ".join(verdict(folder).granted)


def test_another_charge_for_the_same_protocol_is_found(folder):
    ledger = PrivacyAccountant(path=folder / "ledger.sqlite")._ledger
    ledger.charge(*ledger.entries())
    assert "other charges" in verdict(folder).reason


def test_forged_journals_are_refused(folder):
    """Fields are drawn by a seed, and all hashes written anew."""
    rng, lines = random.Random(5), lines_of(folder)
    places = [path for path in leaves(lines) if not HARMLESS & {*map(str, path)}]
    for path in rng.sample(places, 60):
        other = forged(lines, path, rng)
        if other == lines:
            continue
        write(folder, copy.deepcopy(other))
        assert verdict(folder).word != "verified", (path, at(lines, path))


def test_a_release_of_a_study_is_no_pool(folder):
    """Parts of one release, declared to be of different people, would count the largest cost."""
    rewrite(folder, "curves", lambda one: one["guarantee"]["public_inputs"].update(pooled=[]))
    lines = lines_of(folder)
    for line in lines:
        if line["what"] == "intent":
            line["planned"]["curves"]["public_inputs"]["pooled"] = []
    write(folder, lines)
    assert "curves is a pool" in verdict(folder).reason


def test_a_lost_analysis_that_was_charged_again(tmp_path):
    place = Place(tmp_path, **LIGHT, reserve=3.0, epsilon=9.0)
    end_in(place, "weibull")
    assert verdict(tmp_path).word == "verified"  # of one release, under a charge for two
    place.run()
    found = verdict(tmp_path)
    assert (found.word, "epsilon 9," in found.reason) == ("verified", True), found.reason
    lines = lines_of(tmp_path)
    again = [line for line in lines if line["what"] == "intent"][1]
    again["guarantee"]["epsilon"] = 1.0
    write(tmp_path, lines)
    assert "another price" in verdict(tmp_path).reason


def end(folder, what):
    """Return a study whose run was ended, with a reserve."""
    place = Place(folder, **LIGHT, reserve=3.0, epsilon=9.0)
    end_at(place, what)
    return place


def test_a_run_that_was_ended_is_not_refuted(tmp_path):
    """It is verified as far as it came, or not covered until it was run again."""
    expected = {"file protocol.json": 10, "study": 10, "intent": 10, "charge": 10, "charged": 0}
    expected |= {"started curves": 0, "file curves.json": 10, "released curves": 0}
    for number, (what, code) in enumerate(expected.items()):
        (folder := tmp_path / str(number)).mkdir()
        place = end(folder, what)
        assert single.CODES[verdict(folder).word] == code, what
        place.run()
        assert verdict(folder).word == "verified"


def test_a_line_that_was_torn_is_not_refuted(tmp_path):
    end(tmp_path, "released curves")
    path = tmp_path / "out" / "journal"
    path.write_text(path.read_text()[:-20])
    assert "within a line" in (found := verdict(tmp_path)).reason
    assert found.word == "not covered"


def test_a_charge_that_was_not_noted_is_not_refuted(tmp_path):
    place = end(tmp_path, "started curves")
    end_at(place, "charge")
    assert verdict(tmp_path).word == "not covered"
    place.run()
    assert verdict(tmp_path).word == "verified"


def test_a_refusal_that_was_charged_is_not_refuted(tmp_path):
    """It ends the study in its folder, and not in another one."""
    for number, (what, budget) in enumerate([("study", 12.0), ("released curves", 12.0)]):
        (folder := tmp_path / str(number)).mkdir()
        place = Place(folder, budget, charge_refusals=True, **LIGHT)
        end_at(place, what)
        with pytest.raises(ValueError, match="not negative"):
            place.run(FRAME.assign(days=-1.0))
        assert "records were refused" in (found := verdict(folder)).reason
        assert found.word == "not covered"
    place = Place(tmp_path, charge_refusals=True, **LIGHT)
    with pytest.raises(ValueError, match="not negative"):
        place.run(FRAME.assign(days=-1.0), tmp_path / "refused")
    place.run()
    assert verdict(tmp_path).word == "verified"
    assert "epsilon 12 in all" in " ".join(verdict(tmp_path).granted)


def settle(place, change):
    """Change protocol, journal and releases of a study without a ledger; write all hashes anew."""
    folder, path = place.out.parent, place.out / "protocol.json"
    protocol, lines = json.loads(path.read_text()), lines_of(folder)
    files = {one.stem: one for one in (place.out / "releases").iterdir()}
    releases = {name: json.loads(file.read_text()) for name, file in files.items()}
    change(protocol, lines[1], releases)
    path.write_text(json.dumps(protocol))
    sha256 = lines[0]["protocol"] = verifier._sha256(path.read_text())
    lines[1]["guarantee"]["public_inputs"]["protocol_sha256"] = sha256
    write(folder, lines)
    for name, release in releases.items():
        release["study"]["protocol_sha256"] = sha256
        release["guarantee"] = lines[1]["planned"][name]
        files[name].write_text(json.dumps(release))
        rewrite(folder, name, lambda _: None)
    *_, (_, found) = checked([place.out])
    return found


def test_only_an_evaluation_is_of_those_held_out(tmp_path):
    """Two analyses of everybody would cost as much as one, if each were of half of the people."""
    place = Place(tmp_path, None, **LIGHT)
    place.run()

    def split(protocol, intent, releases):
        protocol["analyses"][1]["of"] = "curves"
        protocol["evaluation_share"] = 0.5
        intent["n_people"] = 240
        intent["guarantee"]["public_inputs"] |= {"n_records": 240, "n_held_out": 120}
        intent["guarantee"]["epsilon"] = 3.0

    assert settle(place, lambda *_: None).word == "verified"
    assert settle(place, split).reason.startswith("curves is no evaluation, or no regression")


def test_groups_are_public_of_one_column_alone(tmp_path):
    by = {"by": "stage", "by_is_public": True}
    analyses = [Analysis("table", name, options=by) for name in ("first", "second")]
    place = Place(tmp_path, None, analyses=tuple(analyses), evaluation_share=0.0)
    place.run()
    assert "-same-group" in settle(place, lambda *_: None).reason

    def other(protocol, intent, releases):
        intent["planned"]["second"]["public_inputs"]["by"] = "age"

    assert settle(place, other).reason == "second has other groups that are public"


def test_every_file_is_read_once(folder, monkeypatch):
    """What is verified is what has the hash, whatever is written meanwhile."""
    read, real = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda own: (read.append(own), real(own))[1])
    assert [*checked([folder / "out", folder / "ledger.sqlite"])][-1][1].word == "verified"
    assert len(read) == len({*read}) == len(ANALYSES) + 4


def site(seed, epsilon, **options):
    rng = np.random.default_rng(seed)
    model = DPKaplanMeierFitter(epsilon, max_time=10.0, n_intervals=4, **options)
    return model.fit(rng.exponential(4.0, 100 + seed), rng.random(100 + seed) < 0.7).release_


@pytest.mark.parametrize("disjoint", [True, False])
def test_pools_are_verified_from_the_plans_in_them(disjoint):
    """Digests of the parts have no file here, and effects of tables are fixed."""
    sites = [site(1, 1.0), site(2, 2.0), site(3, 0.5)]
    text = pool_releases(sites, disjoint=disjoint).to_json()
    found = verify(text)
    assert found.word == "verified", found.reason
    assert f"epsilon {2 if disjoint else 3.5:g}, replace-one, proved" in found.reason
    assert sum("states this plan" in one for one in found.granted) == 3
    for path, other in forgeries(text, 200, seed=7):
        if "effects" not in path:
            assert verify(json.dumps(other)).word != "verified", path
    claimed = json.loads(text)
    claimed["plan"]["node"] = "sequence" if disjoint else "disjoint"
    assert verify(json.dumps(claimed)).word == "refuted"
    claimed = json.loads(text)
    claimed["noise"] = {}
    assert verify(json.dumps(claimed)).word == "refuted"
    claimed = json.loads(text)
    del claimed["guarantee"]["public_inputs"]["pooled"]
    assert verify(json.dumps(claimed)).word == "refuted"


@pytest.mark.parametrize("disjoint", [True, False])
def test_the_verdict_on_a_pool_has_its_delta(disjoint):
    rng, sites = np.random.default_rng(0), []
    for delta in (1e-5, 1e-6):
        rows = rng.uniform(-0.2, 0.2, (300, 20))
        y = np.rec.fromarrays([rng.random(300) < 0.7, rng.exponential(4.0, 300)], names="e,t")
        model = DPDiscreteTimeSurvival(3.0, delta=delta, max_time=10.0, n_intervals=4)
        model.set_params(data_norm=1.0, inference_share=0.3)
        sites.append(model.fit(rows, y).release_)
    text = pool_releases(sites, disjoint=disjoint).to_json()
    words = "epsilon 3 at delta 1e-05" if disjoint else "epsilon 6 at delta 1.1e-05"
    assert words in verify(text).reason
    claimed = json.loads(text)
    for entry in claimed["guarantee"]["public_inputs"]["pooled"]:
        entry["delta"] = 0.999
    assert verify(json.dumps(claimed)).word == "refuted"


def test_a_pool_is_verified_by_both_files(tmp_path):
    file, path = shutil.copy(single.__file__, tmp_path / "verify.py"), tmp_path / "pool.json"
    pool_releases([site(1, 1.0), site(2, 2.0)]).save(path)
    assert [run_alone(one, path).returncode for one in (single.__file__, file)] == [0, 10]
    assert single.verify(path.read_text()).reason == single.BESIDE


def test_a_part_of_a_pool_hides_no_search():
    """The price of fits to come is taken on trust only where the last fit is there."""
    claimed = json.loads(pool_releases([site(1, 1.0), site(2, 2.0)]).to_json())
    price = {"node": "measurement", "law": "that of each fit", "price": {"epsilon": 0.0}}
    nodes = claimed["plan"]["nodes"]
    nodes[0] = {"node": "sequence", "nodes": [nodes[0], price]}
    assert "last fit" in verify(json.dumps(claimed)).reason


def test_a_part_of_a_pool_has_all_that_is_pooled():
    """A table of entries that no plan has was verified, at the price of the counts."""
    rng = np.random.default_rng(4)
    model, entry = DPKaplanMeierFitter(1.0, max_time=10.0, n_intervals=4), np.zeros(100)
    times, events = rng.exponential(4.0, (2, 100)), rng.random(100) < 0.7
    sites = [clone(model).fit(own, events, entry=entry).release_ for own in times]
    claimed = json.loads(pool_releases(sites).to_json())
    assert verify(json.dumps(claimed)).word == "verified"
    pooled = claimed["guarantee"]["public_inputs"]["pooled"]
    for node, stated in zip(claimed["plan"]["nodes"], pooled, strict=True):
        del node["nodes"][1], node["total"]
        stated["epsilon"] = node["nodes"][0]["price"]["epsilon"]
    claimed["guarantee"]["epsilon"] = max(stated["epsilon"] for stated in pooled)
    del claimed["noise"]["entries"]
    assert "no Histogram" in verify(json.dumps(claimed)).reason


def test_a_pool_of_pools_is_not_covered():
    first = pool_releases([site(1, 1.0), site(2, 2.0)])
    assert "check each" in verify(pool_releases([first, site(3, 0.5)]).to_json()).reason


def test_a_release_is_in_a_pool_once():
    claimed = json.loads(pool_releases([site(1, 1.0), site(2, 1.0)]).to_json())
    pooled = claimed["guarantee"]["public_inputs"]["pooled"]
    pooled[1] |= {key: pooled[0][key].upper() for key in ("sha256", "released")}
    assert "there twice" in verify(json.dumps(claimed)).reason
