"""Tests of the check of a folder: every fault that an editor can leave is found."""

import json
from dataclasses import replace

import pytest

from skdpsurv import PrivacyAccountant
from skdpsurv.dp import PrivacyGuarantee
from skdpsurv.report import curves, figures
from skdpsurv.study import Analysis, Study
from skdpsurv.study.charges import entry_name
from skdpsurv.study.check import _covers, check
from skdpsurv.study.folder import Folder
from skdpsurv.study.journal import FIELDS, _linked
from skdpsurv.study.study_plan import StudyPlan

from .studies import ANALYSES
from .test_plan import wide
from .test_run import FRAME, LIGHT, Place, end_in


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Draw nothing, and simulate few records."""
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    monkeypatch.setattr(curves, "N_RESAMPLES", 10)


@pytest.fixture
def place(tmp_path):
    light = Place(tmp_path, **LIGHT)
    light.run()
    assert light.check() == []
    return light


def rewrite(path, change):
    """Change the JSON in a file."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def unlinked(place):
    return [{k: v for k, v in line.items() if k != "link"} for line in place.journal.lines]


def forge(place, change):
    """Write the lines of a journal anew, with hashes that fit, after a change of them."""
    lines = unlinked(place)
    change(lines)
    linked = []
    for line in lines:
        linked.append(_linked(linked, line))
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in linked)
    Folder(place.out).journal.write_text(text)


def undercharge(place):
    """Charge a new ledger next to nothing for a study, and make its folder say so."""
    intent, path = unlinked(place)[1], place.out.parent / "ledger.sqlite"
    for one in path.parent.glob("ledger.sqlite*"):
        one.unlink()
    PrivacyAccountant(20.0, path=path)
    cheap = replace(PrivacyGuarantee.from_dict(intent["guarantee"]), epsilon=0.001)
    before = place.ledger._ledger.receipts()[-1]._asdict()
    name = f"{entry_name(place.protocol)} {intent['nonce'][:16]}"
    receipt = place.ledger.charge(cheap, estimator=name)._asdict()
    folder = Folder(place.out)
    for analysis in intent["analyses"]:
        rewrite(folder.file_of(analysis), lambda content: content.update(receipt=receipt))

    def change(lines):
        lines[1].update(guarantee=cheap.to_dict(), ledger=before)
        lines[2]["receipt"] = receipt
        for line in lines:
            if line["what"] == "released":
                line["sha256"] = folder.sha256_of(line["analysis"])

    forge(place, change)


def test_releases(place):
    files = {name: Folder(place.out).file_of(name) for name in ("curves", "weibull")}
    texts = {name: path.read_text() for name, path in files.items()}

    def faults(name, said):
        found = place.check()
        assert any(f"{name}.json" in one and said in one for one in found), found
        files[name].write_text(texts[name])
        assert place.check() == []

    files["curves"].write_text(texts["curves"] + "\n")
    faults("curves", "is not the file that was marked")
    files["curves"].write_text(texts["weibull"])
    faults("curves", "by another estimator")
    files["curves"].write_text("{}")
    faults("curves", "cannot be read")
    files["curves"].unlink()
    faults("curves", "is missing")
    rewrite(files["weibull"], lambda content: content["guarantee"].update(epsilon=0.5))
    faults("weibull", "another guarantee")
    rewrite(files["weibull"], lambda content: content["study"].update(unit="weeks"))
    faults("weibull", "another study or outcome than the protocol")
    rewrite(files["weibull"], lambda content: content["receipt"].update(entries=2))
    faults("weibull", "the receipt of the charge")
    files["curves"].with_name("more.json").write_text(texts["curves"])
    assert place.check() == ["more.json is no release that the journal marks"]


def test_the_ledger(place):
    [fault] = check(place.out, None)
    assert fault == "the study was charged to a ledger, and the protocol names none"
    other = PrivacyGuarantee(0.5)
    place.ledger.charge(other, estimator="DPKaplanMeierFitter")
    assert place.check() == []
    place.ledger.charge(other, estimator=f"{entry_name(place.protocol)} 1234")
    [fault] = place.check()
    assert fault == "entry 3 of the ledger is of this protocol, and not in this journal"
    receipt = place.ledger._ledger.receipts()[2]._asdict()
    forge(place, lambda lines: lines[2].update(receipt=receipt))
    assert "entry 2 of the ledger is not the charge that was noted" in place.check()


def test_the_same_protocol_in_another_folder_is_refused(place):
    with pytest.raises(ValueError, match="entry 1 of the ledger is of this protocol"):
        place.run(out=place.out.with_name("again"))
    assert place.ledger.spent() == 6.0


@pytest.mark.slow
def test_the_report(tmp_path):
    place = Place(tmp_path, **LIGHT)
    study = Study(place.protocol)
    study.run(FRAME, place.out)
    assert study.check(place.out) == []
    study.run(FRAME, place.out)
    assert place.lines().count("published") == 1
    for name in ("report.html", "table.csv"):
        text = (place.out / name).read_text()
        (place.out / name).write_text(text.replace("6", "7", 1))
        assert study.check(place.out) == [f"{name} is not the file of the report that was noted"]
        (place.out / name).unlink()
        assert study.check(place.out) == [f"{name} is not the file of the report that was noted"]
        (place.out / name).write_text(text)
    assert study.check(place.out) == []


def test_nothing_was_charged(tmp_path):
    place = Place(tmp_path, **LIGHT)
    with pytest.raises(ValueError, match="not negative"):
        place.run(FRAME.assign(days=-1.0))
    assert place.check() == ["nothing was charged or released"]


def test_a_ledger_that_lost_the_charge(place, tmp_path):
    (tmp_path / "ledger.sqlite").unlink()
    PrivacyAccountant(20.0, path=tmp_path / "ledger.sqlite")
    assert "does not hold the charges" in place.check()[0]


def test_a_journal_that_says_what_did_not_happen(place):
    lines = unlinked(place)

    def faults(change, *said):
        forge(place, change)
        found = place.check()
        assert all(any(text in one for one in found) for text in said), found
        forge(place, lambda new: new.__setitem__(slice(None), [dict(line) for line in lines]))

    nonce = lines[1]["nonce"]
    started = {"what": "started", "analysis": "weibull", "nonce": nonce}
    assert {*started} == {"what", *FIELDS["started"]}
    faults(lambda new: new.append(started), "started twice under one charge")
    faults(lambda new: new.insert(2, started), "started twice under one charge, or without one")
    faults(lambda new: new.pop(3), "released and never started")
    faults(lambda new: new.pop(2), "without one", "is of this protocol, and not in this journal")
    faults(lambda new: new.append(new[2]), "noted twice")
    faults(lambda new: new.append(new[-1]), "released after it was released")
    faults(lambda new: new.pop(0), "of another protocol")
    faults(lambda new: new[2].update(receipt=None), "was not charged to it")
    faults(lambda new: new[1].update(n_people=121), "is not what the plan of the protocol costs")
    faults(lambda new: new[0].update(protocol="0" * 64), "of another protocol")
    other = "was made with skdpsurv 0.0"
    faults(lambda new: (new[0].update(made_with="skdpsurv 0.0"), new.pop()), other)


def test_a_journal_that_was_cut_or_edited(place):
    path = Folder(place.out).journal
    text = path.read_text()
    path.write_text(text.replace("weibull", "curves", 1))
    with pytest.raises(ValueError, match="does not fit those before it"):
        place.check()
    path.write_text("")
    assert place.check() == ["the journal is empty"]


def test_a_protocol_that_a_reader_may_read_otherwise(place):
    path = Folder(place.out).protocol
    text = path.read_text()
    path.write_text(text.replace('"epsilon": 6.0', '"epsilon": 0.1, "epsilon": 6.0'))
    assert path.read_text() != text
    with pytest.raises(ValueError, match="is not the canonical text"):
        place.check()


def test_more_than_the_reserve(tmp_path):
    place = Place(tmp_path, **LIGHT, reserve=3.0, epsilon=9.0)
    end_in(place, "weibull")
    assert place.run() == []
    assert place.check() == []
    path = Folder(place.out).journal
    text = path.read_text()
    forge(place, lambda lines: lines[-4].update(analyses=["weibull", "curves"]))
    [fault] = place.check()
    assert fault == "the charge for weibull, curves is not what the plan of the protocol costs"
    path.write_text(text)
    double = [line for line in unlinked(place) if line["what"] in ("intent", "charged")][2:]
    forge(place, lambda lines: lines.extend({**d, "nonce": "0"} for d in map(dict, double)))
    assert any("than the reserve" in one for one in place.check())


def test_in_python(tmp_path):
    place = Place(tmp_path, analyses=ANALYSES[:1], evaluation_share=0.0)
    study = Study(place.protocol)
    with pytest.raises(ValueError, match="sha256 must be that of the protocol"):
        study.run(FRAME, place.out, sha256="0" * 64)
    assert not place.out.exists()
    report = study.run(FRAME, place.out, sha256=place.protocol.sha256)
    assert set(report.found) == {"curves"}
    assert (report.left, report.spent.epsilon) == (14.0, 6.0)
    assert study.check(place.out) == []
    assert (place.out / "report.html").read_text() == study.report(place.out).html
    again = study.run(FRAME, place.out)
    assert again.found["curves"] == report.found["curves"]
    assert Study(Place(tmp_path / "out", title="Another").protocol).check(place.out)


@pytest.mark.slow
def test_an_open_ledger_is_that_of_the_protocol_and_its_data_set_is_charged(tmp_path):
    place = Place(tmp_path, **LIGHT)
    study, opened = Study(place.protocol), PrivacyAccountant(path=tmp_path / "ledger.sqlite")
    others = [PrivacyAccountant(20.0), PrivacyAccountant(20.0, path=tmp_path / "other.sqlite")]
    for run in (study.run, Study(Place(tmp_path, budget=None, **LIGHT).protocol).run):
        with pytest.raises(ValueError, match="the ledger that the protocol names"):
            run(FRAME, place.out, accountant=others.pop())
    report = study.run(FRAME, place.out, accountant=opened)
    assert (opened.spent(), place.ledger.spent(), report.left) == (0.0, 6.0, 14.0)
    assert place.ledger.entries()["purpose"].tolist() == ["protocol 7"]
    assert study.check(place.out, opened) == []


def test_a_report_states_what_was_charged_for_records_refused_later(tmp_path):
    place = Place(tmp_path, charge_refusals=True, **LIGHT)
    study = Study(place.protocol)
    end_in(place, "curves", after="released")
    with pytest.raises(ValueError, match="not negative"):
        study.run(FRAME.assign(days=-1.0), place.out)
    report = study.report(place.out)
    assert report.spent.epsilon == place.ledger.spent() == 12.0
    assert "refused records" in report.html
    assert study.check(place.out) == []


def test_what_is_run_is_what_was_hashed(tmp_path):
    place = Place(tmp_path, analyses=(Analysis("table", "table"),), evaluation_share=0.0)
    study, signed = Study(place.protocol), place.protocol.sha256
    columns = place.protocol.columns
    columns.columns = [{"name": "age", "bounds": [60.0, 61.0], "missing": "midpoint"}]
    study.run(FRAME, place.out, sha256=signed)
    assert place.check() == []
    release, _ = Folder(place.out).load(place.protocol.analysis("table"))
    assert release.columns["parameters"]["columns"][0]["bounds"] == (30, 95)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_what_another_version_charged_covers_its_analyses_by_their_guarantees(delta):
    plan = StudyPlan.of(wide(delta=delta), 4000)
    planned = {name: part.guarantee.to_dict() for name, part in plan.parts.items()}
    stated = plan.guarantee().to_dict()
    assert (stated["delta"] > 0.0) == (delta > 0.0)
    assert _covers(plan.protocol, stated, planned)
    assert not _covers(plan.protocol, {**stated, "epsilon": 0.9 * stated["epsilon"]}, planned)
    dear = {**planned["curves"], "epsilon": 1.1 * planned["curves"]["epsilon"]}
    assert not _covers(plan.protocol, stated, {**planned, "curves": dear})


@pytest.mark.slow
def test_a_folder_of_a_version_that_planned_otherwise(place, monkeypatch):
    """Its journal states what each analysis costs: neither check nor report plan anew."""

    def older(lines):
        lines[0].update(made_with="skdpsurv 0.0")

    with monkeypatch.context() as otherwise:
        otherwise.setattr("skdpsurv.study.check.StudyPlan.of", pytest.fail)
        forge(place, older)
        assert place.check() == []
        report = Study(place.protocol).report(place.out, place.ledger)
        assert "120 (everybody)" in report.html
        honest = unlinked(place)[1]["planned"]["weibull"]
        forge(place, lambda lines: lines[1]["planned"]["weibull"].update(epsilon=1.0))
        assert any("is not what the plan" in one for one in place.check())
        assert any("weibull.json states another guarantee" in one for one in place.check())
        forge(place, lambda lines: lines[1]["planned"].update(weibull=honest))
        assert place.check() == []
        text = Folder(place.out).journal.read_text()
        forge(place, lambda lines: lines[1]["planned"].update(weibull=None))
        with pytest.raises(ValueError, match="does not fit those before it"):
            place.check()
        Folder(place.out).journal.write_text(text)
    # Journals that state nothing of it are compared with a plan of today.
    text = Folder(place.out).journal.read_text()
    forge(place, lambda lines: [line.pop("planned", None) for line in lines])
    assert place.check() == []
    Folder(place.out).journal.write_text(text)
    undercharge(place)
    assert any("is not what the plan" in one for one in place.check())
