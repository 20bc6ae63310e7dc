"""Tests of the run of a study: its order, refusals, and how it goes on after an end at any step."""

import json
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdpsurv import PrivacyAccountant, PublicColumns, PublicInputWarning, Release
from skdpsurv.dp import BudgetExceededError
from skdpsurv.dp.durable import identity
from skdpsurv.study import Analysis, Study, charges, fits
from skdpsurv.study import run as running
from skdpsurv.study.charges import ledger_of
from skdpsurv.study.check import check
from skdpsurv.study.folder import Folder
from skdpsurv.study.journal import Journal
from skdpsurv.study.parts import EVALUATION, EVERYBODY, TRAINING
from skdpsurv.study.people import People, raw_columns
from skdpsurv.study.run import run
from skdpsurv.study.study_plan import StudyPlan
from tests.support.combinations import thinned

from .studies import ANALYSES, COLUMNS, NAMES, protocol, records
from .witness import KilledError, everything, replaced

FRAME = records()


#: Two analyses of everybody, which take less time.
LIGHT = {"analyses": ANALYSES[:2], "evaluation_share": 0.0}


class Place:
    """A folder, a ledger beside it, and what was shown."""

    def __init__(self, folder, budget=20.0, **changes):
        ledger = None if budget is None else folder / "ledger.sqlite"
        settings = {n: changes.pop(n) for n in ("charge_refusals",) if n in changes}
        if ledger is not None:
            PrivacyAccountant(budget, path=ledger, **settings)
        self.protocol = protocol(ledger, **changes)
        self.out = folder / "out"
        self.shown = []

    @property
    def ledger(self):
        return ledger_of(self.protocol)

    def run(self, frame=FRAME, out=None):
        def show(name, found):
            self.shown.append((name, json.dumps(content(found), sort_keys=True)))

        return run(self.protocol, frame, out or self.out, self.ledger, show)

    def check(self):
        return check(self.out, self.ledger)

    @property
    def journal(self):
        return Journal(Folder(self.out).journal)

    def lines(self):
        return [" ".join(filter(None, [x["what"], x.get("analysis")])) for x in self.journal.lines]


def content(found):
    if isinstance(found, Release):
        return json.loads(found.to_json())["values"]
    return found.to_dict()["released"]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def light(tmp_path):
    return Place(tmp_path, **LIGHT)


ORDER = [f"{what} {name}" for name in NAMES for what in ("started", "released")]


def test_one_charge_then_each_analysis_in_its_order(place):
    seen = []
    with everything(seen.append):
        assert place.run() == []
    expected = ["file protocol.json", "study", "file deal.json", "intent", "charge", "charged"]
    for name in NAMES:
        expected += [f"started {name}", f"draw {name} 1", f"file {name}.json", f"released {name}"]
    assert [one for one in seen if not one.startswith("file report")] == expected
    assert [name for name, _ in place.shown] == NAMES
    assert place.lines() == ["study", "intent", "charged", *ORDER]
    assert place.ledger.spent() == 6.0
    assert place.check() == []


def test_releases_state_their_own_guarantee_and_the_receipt_of_the_charge(place):
    place.run()
    plan, receipts = StudyPlan.of(place.protocol, 120), []
    for analysis in ANALYSES:
        found, receipt = Folder(place.out).load(analysis)
        receipts.append(receipt)
        assert found.guarantee == plan.parts[analysis.name].guarantee
        assert found.guarantee.epsilon < 6.0
    assert set(receipts) == {place.ledger._ledger.receipts()[1]}
    [entry] = place.ledger.entries().to_dict("records")
    assert entry["estimator"].startswith(f"Study {place.protocol.sha256[:16]} ")
    assert (entry["purpose"], entry["dataset"], entry["epsilon"]) == ("protocol 7", "registry", 6.0)


def test_a_refusal_costs_nothing_and_tells_nothing(place):
    faults = {"days": -7654.321, "died": 7654, "stage": "Zwicky", "id": None}
    for column, value in faults.items():
        for row in (0, 77):
            frame = FRAME.astype(object)
            frame.loc[row, column] = value
            with pytest.raises((ValueError, TypeError)) as refused:
                place.run(frame)
            said = str(refused.value)
            assert "7654" not in said
            assert "Zwicky" not in said
            assert "77" not in said
    with pytest.raises(ValueError, match="must have the column"):
        place.run(FRAME.drop(columns="age"))
    assert place.lines() == ["study"]
    assert place.ledger.spent() == 0.0
    assert not Folder(place.out).private.exists()
    assert place.run() == []


def unread():
    raise AssertionError


def test_the_ledger_is_asked_before_records_are_read(tmp_path):
    place = Place(tmp_path, budget=5.0, **LIGHT)
    with pytest.raises(BudgetExceededError):
        place.run(unread)
    assert place.lines() == ["study"]


def test_a_ledger_may_charge_refusals_and_then_the_study_is_over(tmp_path):
    place = Place(tmp_path, charge_refusals=True, **LIGHT)
    frame = FRAME.assign(days=-1.0)
    with pytest.raises(ValueError, match="not negative"):
        place.run(frame)
    assert place.lines() == ["study", "intent", "charged"]
    assert place.ledger.spent() == 6.0
    with pytest.raises(ValueError, match="refused for its records"):
        place.run()
    assert place.check() == []


def test_without_a_ledger(tmp_path):
    place = Place(tmp_path, budget=None, **LIGHT)
    assert place.run() == []
    assert place.check() == []
    assert place.lines() == ["study", "intent", "charged", *ORDER[:4]]
    found, receipt = Folder(place.out).load(ANALYSES[0])
    assert receipt is None
    assert found.receipt is None


# ---- People.


def test_people_are_dealt_and_not_rows(place):
    people = People.of(place.protocol, FRAME)
    assert people.held_out.size == 120
    counts = np.zeros(120)
    for _ in range(300):
        dealt = people.split(36)
        counts += dealt.held_out
        assert dealt.held_out.sum() == 36
    training, evaluation = (set(dealt.part(part)["id"]) for part in (TRAINING, EVALUATION))
    assert (len(training), len(evaluation)) == (84, 36)
    assert not training & evaluation
    first = FRAME.groupby("id", sort=False).head(1)
    pd.testing.assert_frame_equal(dealt.part(EVERYBODY), first)
    # Nothing else of a person is read, or refused.
    later = FRAME.assign(days=FRAME["days"].where(~FRAME["id"].duplicated(), -1.0))
    pd.testing.assert_frame_equal(People.of(place.protocol, later).frame, first)
    # Each is held out 90 times of 300, with a deviation of 7.9.
    assert np.abs(counts - 90.0).max() < 6.0 * 7.9
    assert People.of(place.protocol, FRAME[:1]).held_out.size == 1
    with pytest.raises(ValueError, match="must be at least one"):
        People.of(place.protocol, FRAME[:0])


def test_the_deal_is_kept_for_its_owner_alone(place):
    place.run()
    deal = Folder(place.out).deal
    assert stat.S_IMODE(deal.stat().st_mode) == 0o600
    assert stat.S_IMODE(deal.parent.stat().st_mode) == 0o700
    held_out = json.loads(deal.read_text())["held_out"]
    assert len(set(held_out)) == 36
    again = People.of(place.protocol, raw_columns(place.protocol, FRAME)).kept(
        deal, json.loads(deal.read_text())["name"]
    )
    assert np.flatnonzero(again.held_out).tolist() == held_out


def test_a_study_goes_on_with_its_own_records_alone(place):
    end_in(place, "weibull")
    moved = FRAME.iloc[::-1].reset_index(drop=True)
    changed = FRAME.assign(age=FRAME["age"].where(FRAME.index != 3, 50.0))
    for frame in (moved, changed):
        with pytest.raises(ValueError, match="records must be those"):
            place.run(frame)
    with pytest.raises(ValueError, match="as many people as before"):
        place.run(records(121))
    renumbered = FRAME.set_axis(FRAME.index + 9)  # of rows, which are no records
    assert place.run(renumbered) == ["weibull"]


def test_the_deal_of_an_intent_that_was_void_does_not_come_back(place):
    deal = Folder(place.out).deal
    for after in ("intent", "charged"):
        earlier = deal.read_bytes() if deal.exists() else b""

        def note(what, last=after):
            if what == last:
                raise KilledError

        with pytest.raises(KilledError), everything(note):
            place.run()
    assert deal.read_bytes() != earlier
    deal.write_bytes(earlier)
    with pytest.raises(ValueError, match="not the deal that this study was charged for"):
        place.run()
    assert place.lines()[-1] == "charged"


# ---- What is promised.


@pytest.mark.parametrize(("person", "delta"), thinned(["id", None], [0.0, 1e-6]))
def test_each_kind_promises_what_was_planned(person, delta):
    kinds = ("curves", "competing", "weibull", "competing_regression")
    more = [Analysis(kind, f"more_{kind}") for kind in kinds]
    link = {"link": "cloglog", "intervals": 0.2, "cause": "dead"}
    more += [Analysis("regression", "link", options=link)]
    more += [Analysis("classifier", "classes", options={"target": "stage"})]
    columns = {**COLUMNS, **{f"x{place}": (0, 1) for place in range(30)}}
    regression = Analysis("regression", "regression", 2.0, {"cause": ["dead", "other"]})
    stated = protocol(
        columns=PublicColumns(columns),
        analyses=(*ANALYSES[:2], regression, ANALYSES[3], *more),
        event_is=("dead", "other"),
        censored_is=("alive",),
        person=person,
        delta=delta,
    )
    frame = FRAME if person else FRAME.drop_duplicates("id")
    frame = frame.assign(died=np.resize(["dead", "alive", "other", "alive"], len(frame)))
    frame = frame.assign(**{name: 0.5 for name in columns if name.startswith("x")})
    people = People.of(stated, raw_columns(stated, frame))
    plan = StudyPlan.of(stated, people.held_out.size)
    people = people.split(plan.n_evaluation)
    assert bool(delta) == any(part.guarantee.delta > 0.0 for part in plan.parts.values())
    for name, part in plan.parts.items():
        fits.prepared(plan, name, people.part(part.people))


def test_an_evaluation_promises_what_was_planned_where_nobody_has_two_records(tmp_path):
    place = Place(tmp_path, person=None, analyses=ANALYSES[2:], evaluation_share=0.1)
    assert place.run(FRAME.iloc[:120]) == []
    assert place.check() == []


def test_a_warning_is_given_once_for_the_analysis_that_it_is_of(tmp_path):
    with pytest.warns(PublicInputWarning) as given:
        Place(tmp_path, analyses=ANALYSES[2:], epsilon=0.05).run()
    [warning] = given
    assert "n * epsilon is 1.4 for each" in str(warning.message)  # of those who are not held out


# ---- What leaves.


def test_nothing_private_is_in_the_folder_but_the_deal(place):
    frame = FRAME.assign(days=FRAME["days"].where(FRAME.index != 5, 765.4321))
    frame["id"] = frame["id"].replace("P00005", "Zwicky")
    place.run(frame)
    charged = place.journal.of("intent")[0]["when"]
    times = set()
    for path in [place.out, *place.out.rglob("*")]:
        times.add(path.stat().st_mtime)
        if path.is_file() and path.parent.name != "private":
            text = path.read_text()
            assert "Zwicky" not in text
            assert "765.43" not in text
    [one] = times
    assert one == np.datetime64(charged[:19], "s").astype(int)
    assert not [line for line in place.journal.lines[2:] if "when" in line]


def test_a_journal_does_not_say_when_a_run_was_killed(light, monkeypatch):
    monkeypatch.setattr(charges, "now", lambda: "2026-01-02T03:04:05+00:00")
    end_in(light, "weibull")
    place = Folder(light.out)
    charged = np.datetime64("2026-01-02T03:04:05", "s").astype(int)
    for path in (place.journal, place.file_of("curves")):
        assert path.stat().st_mtime == charged


def test_a_study_without_evaluation_keeps_nothing_private(tmp_path):
    place = Place(tmp_path, **LIGHT)
    assert place.run() == []
    found = sorted(path.name for path in place.out.iterdir())
    assert found == ["journal", "journal.lock", "protocol.json", "releases"]


# ---- Going on.


def end_in(place, name, after="started"):
    """End a run as an analysis has started, before its release."""
    end_at(place, f"{after} {name}")


def end_at(place, what):
    def note(seen):
        if seen == what:
            raise KilledError

    with pytest.raises(KilledError), everything(note):
        place.run()


def test_a_study_that_can_release_nothing_more_reads_nothing(tmp_path):
    """Else records could be asked about for ever, under a charge of long ago."""
    (tmp_path / "lost").mkdir()
    place, lost = Place(tmp_path, **LIGHT), Place(tmp_path / "lost", **LIGHT)
    end_in(place, "weibull.json", after="file")  # is there, and not marked yet
    for _ in range(2):
        assert place.run(unread) == []
    assert place.lines() == ["study", "intent", "charged", *ORDER[:4]]
    assert [name for name, _ in place.shown] == NAMES[:1] + 2 * NAMES[:2]
    end_in(lost, "weibull")
    assert lost.run(unread) == ["weibull"]


@pytest.mark.parametrize(("budget", "charged"), [(6.0, False), (11.0, True), (12.0, True)])
def test_a_study_goes_on_if_there_is_room_for_a_refusal_where_these_are_charged(
    tmp_path, budget, charged
):
    place = Place(tmp_path, budget=budget, charge_refusals=charged, **LIGHT)
    end_in(place, "curves")
    if budget == 11.0:
        with pytest.raises(BudgetExceededError):
            place.run(unread)
        assert place.ledger.spent() == 6.0
        return
    with pytest.raises(ValueError, match="not negative"):
        place.run(FRAME.assign(days=-1.0))
    assert place.ledger.spent() == budget
    if charged:
        with pytest.raises(ValueError, match="refused for its records"):
            place.run(unread)
    else:
        assert place.run() == ["curves"]


def test_what_was_lost_stays_lost_and_so_does_what_needs_it(place):
    end_in(place, "regression")
    assert place.run() == ["regression", "evaluation"]
    assert place.run() == ["regression", "evaluation"]
    assert place.lines()[-2:] == ["started regression", "lost regression"]
    assert place.ledger.spent() == 6.0
    assert place.check() == []


def test_a_reserve_pays_for_what_was_lost_as_far_as_it_goes(tmp_path):
    place = Place(tmp_path, reserve=2.0, epsilon=8.0)
    price = StudyPlan.of(place.protocol, 120).parts["weibull"].guarantee.epsilon
    assert 1.0 < price <= 2.0
    end_in(place, "weibull")
    end_in(place, "weibull")
    assert [len(place.journal.of(what)) for what in ("charged", "lost")] == [2, 1]
    assert place.run() == ["weibull"]
    assert place.ledger.spent() == 6.0 + price
    nonces = {line["nonce"] for line in place.journal.of("charged")}
    assert len(nonces) == 2
    assert place.check() == []


def test_the_name_of_a_release_that_is_kept_is_durable_before_its_mark(light):
    end_in(light, "weibull.json", after="file")
    seen = []

    def synced(real):
        return lambda folder: [real(folder), seen.append(f"sync {Path(folder).name}")]

    with everything(seen.append), replaced(running, "sync_folder", synced):
        light.run()
    assert seen == ["sync releases", "released weibull"]


def test_a_reserve_that_others_have_spent_pays_for_nothing(tmp_path):
    place = Place(tmp_path, budget=6.5, **LIGHT, reserve=3.0, epsilon=9.0)
    end_in(place, "weibull")
    assert place.run() == ["weibull"]
    assert place.ledger.spent() == 6.0


@pytest.mark.parametrize("what", ["cut off", "of another charge"])
def test_a_file_that_is_no_release_of_this_charge_is_lost(light, what):
    end_in(light, "weibull.json", after="file")
    path = Folder(light.out).file_of("weibull")
    if what == "cut off":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        (light.out.parent / "2").mkdir()
        other = Place(light.out.parent / "2", **LIGHT)
        other.run()
        path.write_bytes(Folder(other.out).file_of("weibull").read_bytes())
    assert light.run() == ["weibull"]
    assert not path.exists()


def test_a_release_that_was_not_marked_stops_a_run_before_its_draw(light):
    end_in(light, "weibull")
    before = Folder(light.out).journal.read_bytes()
    light.run()
    Folder(light.out).journal.write_bytes(before)  # the same file, with lines of before
    release = Folder(light.out).file_of("weibull")
    release.write_bytes(Folder(light.out).file_of("curves").read_bytes())
    assert light.run() == ["weibull"]  # another analysis's, and not adopted
    release.write_text("{}")
    seen = []
    with everything(seen.append), pytest.raises(ValueError, match="come back from a backup"):
        light.run()
    assert not seen
    assert release.exists()


def test_what_was_marked_is_shown_as_it_was_or_not_at_all(light):
    light.run()
    shown, release = light.shown[:], Folder(light.out).file_of("curves")
    text = release.read_text()
    release.write_text(text.replace('"epsilon": 3.0', '"epsilon": 0.1'))
    assert release.read_text() != text
    for again in (light.run, lambda: Study(light.protocol).report(light.out)):
        with pytest.raises(ValueError, match="is not the file that was marked"):
            again()
    assert light.shown == shown


def test_a_copy_of_a_folder_does_not_go_on(light):
    end_in(light, "weibull")
    copy = light.out.with_name("copy")
    shutil.copytree(light.out, copy)
    assert light.run() == ["weibull"]
    with pytest.raises(ValueError, match="is a copy"):
        light.run(out=copy)
    moved = light.out.with_name("moved")
    os.rename(light.out, moved)
    assert light.run(out=moved) == ["weibull"]


def test_a_copy_that_has_the_number_of_the_file_does_not_go_on_either(light):
    end_in(light, "weibull")
    journal = Folder(light.out).journal
    text, number = journal.read_bytes(), identity(journal)
    if number.endswith(" 0"):
        pytest.skip("this file system knows no generations")
    for _ in range(20):
        journal.unlink()
        journal.write_bytes(text)
        if identity(journal).split()[0] == number.split()[0]:
            break
    with pytest.raises(ValueError, match="came back from a backup"):
        light.run()


def test_another_protocol_or_folder_is_refused(light, tmp_path):
    end_in(light, "weibull")
    other = Place(tmp_path / "out", title="Another")
    with pytest.raises(FileExistsError, match="another protocol"):
        other.run(out=light.out)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    with pytest.raises(FileExistsError, match="must be a new folder"):
        light.run(out=tmp_path / "taken")


@pytest.mark.parametrize("end", ["intent", "charge", "started weibull"])
def test_another_ledger_is_refused(light, tmp_path, end):
    end_at(light, end)
    ledger = tmp_path / "ledger.sqlite"
    os.rename(ledger, tmp_path / "away.sqlite")
    with pytest.raises(FileNotFoundError):
        light.run()
    PrivacyAccountant(20.0, path=ledger)
    with pytest.raises(ValueError, match="another ledger"):
        light.run()
    assert light.ledger.spent() == 0.0


def test_a_folder_in_which_nothing_was_charged_takes_another_protocol(light):
    with pytest.raises(ValueError, match="days, the column of times, must be finite"):
        light.run(FRAME.assign(days=-1.0))
    light.protocol = replace(light.protocol, title="Mended")
    assert light.run() == []
    assert Folder(light.out).read_protocol().title == "Mended"
    assert light.check() == []


def test_another_number_of_people_than_that_of_the_protocol_is_refused(tmp_path):
    place = Place(tmp_path, n_people=119, **LIGHT)
    with pytest.raises(ValueError, match="n_people must be that of the protocol, 119"):
        place.run()
    assert place.ledger.spent() == 0.0


def test_another_plan_or_version_is_refused(light, monkeypatch):
    end_in(light, "weibull")
    honest = StudyPlan.guarantee
    with monkeypatch.context() as patched:
        patched.setattr(StudyPlan, "guarantee", lambda plan: replace(honest(plan), source="b"))
        with pytest.raises(ValueError, match="charged for another plan"):
            light.run()
    monkeypatch.setattr(running, "__version__", "9")
    with pytest.raises(ValueError, match="begun with made_with"):
        light.run()


def test_a_ledger_of_before_the_charge_is_refused(light, tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    shutil.copy(ledger, tmp_path / "old.sqlite")
    end_in(light, "weibull")
    shutil.copy(tmp_path / "old.sqlite", ledger)
    with pytest.raises(ValueError, match="cut off, or restored"):
        light.run()
