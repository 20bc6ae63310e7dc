"""An end at any step, of the process or of the machine, breaks no promise; defects do."""

import hashlib
import os
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from skdpsurv import PrivacyAccountant
from skdpsurv.evaluation import released_values
from skdpsurv.release import layout
from skdpsurv.study import charges
from skdpsurv.study import folder as folders
from skdpsurv.study.charges import Charges
from skdpsurv.study.folder import Folder
from skdpsurv.study.journal import Journal
from skdpsurv.study.people import People
from skdpsurv.study.report import PAGE, TABLE, StudyReport
from skdpsurv.study.run import _Run

from .disk import Disk
from .ends import LIGHT, PLACES, WHOLE, Ended
from .witness import KilledError, ending, stop


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Simulate few records, and write a report that is short."""

    def files(report):
        return {PAGE: report.plan.protocol.text, TABLE: f"{report.sha256}"}

    monkeypatch.setattr(StudyReport, "files", files)
    monkeypatch.setattr(released_values, "N_RESAMPLES", 5)


@pytest.fixture
def folder():
    """A folder in memory, if there is one: many small files are synced."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


GOES_ON, ITS_CHARGE = "what was marked is found", "a study knows its charge"


def ends(folder, cut, changes=LIGHT):
    """End a study before each step; yield where that was, and the promises that were broken."""
    ledger, step, ended = str(folder / "ledger.sqlite"), 0, True
    PrivacyAccountant(1e6, path=ledger)
    (folder / "store").mkdir()
    while ended:
        study = Ended(folder, ledger, f"{step}", changes)
        disk = Disk(study.out, folder / "store")
        with disk.watching():
            try:
                with ending(step, stop):
                    study.run()
                ended = False
            except KilledError:
                if cut:
                    disk.cut()
            place = study.look()
            try:
                study.run()
            except FileNotFoundError:
                yield place, [GOES_ON]
                return
            except ValueError as error:
                if "of the ledger is of this protocol" not in str(error):
                    raise
                yield place, [ITS_CHARGE]
                return
        yield place, study.faults()
        step += 1


@pytest.mark.parametrize(
    ("cut", "changes"),
    [
        (True, LIGHT),
        pytest.param(True, WHOLE, marks=pytest.mark.slow),
        pytest.param(False, LIGHT, marks=pytest.mark.slow),
    ],
)
def test_an_end_at_any_step(folder, cut, changes):
    """Of the process, or by a power cut."""
    found = list(ends(folder, cut, changes))
    assert [faults for _, faults in found if faults] == []
    assert list(dict.fromkeys(place for place, _ in found)) == PLACES


# ---- Defects.


def charged_twice(patch):
    """An intent is not looked up in the ledger."""
    patch.setattr(Charges, "_found", lambda found, intent: None)


def drawn_again(patch):
    patch.setattr(Charges, "unused", lambda found, plan, name: found.first["nonce"])


def drawn_again_after_its_mark(patch):
    honest = _Run.release

    def release(study, analysis):
        if (mark := study.journal.released(analysis.name)) and analysis.of is None:
            study.folder.file_of(analysis.name).unlink()
            study._run(analysis.name, mark["nonce"], None)
        honest(study, analysis)

    patch.setattr(_Run, "release", release)


def marked_before_it_is_there(patch):
    texts, save, mark, hashed = {}, Folder.save, _Run._mark, Folder.sha256_of

    def later(place, name, *stated):
        with mock.patch.object(layout, "save", lambda text, path, **_: texts.update({name: text})):
            save(place, name, *stated)

    def sha256_of(place, name):
        if place.file_of(name).exists() or name not in texts:
            return hashed(place, name)
        return hashlib.sha256(texts[name].encode()).hexdigest()

    def first(study, name, nonce):
        mark(study, name, nonce)
        layout.save(texts.pop(name), study.folder.file_of(name))

    for owner, name, planted in (
        (Folder, "save", later),
        (Folder, "sha256_of", sha256_of),
        (_Run, "_mark", first),
    ):
        patch.setattr(owner, name, planted)


def shown_before_its_mark(patch):
    honest = _Run._mark

    def mark(study, name, nonce):
        study.show(name, study.folder.load(study.protocol.analysis(name))[0])
        honest(study, name, nonce)

    patch.setattr(_Run, "_mark", mark)


def written_in_place(patch):
    """The report has its name before all of it is there."""
    honest = layout.save

    def save(text, path, **options):
        if path.name == PAGE:
            with open(path, "w") as file:
                for part in (text[:99], text[99:]):
                    file.write(part)
                    file.flush()
                    os.fsync(file.fileno())
        else:
            honest(text, path, **options)

    patch.setattr(layout, "save", save)


def unsynced(owner, name):
    """What is written by a function is not synced."""

    def plant(patch):
        honest = getattr(owner, name)

        def call(*args, **kwargs):
            with mock.patch.object(os, "fsync"):
                return honest(*args, **kwargs)

        patch.setattr(owner, name, call)

    return plant


def name_unsynced(module):
    return lambda patch: patch.setattr(module, "sync_folder", lambda path: None)


def dealt_again(patch):
    """Going on, people are dealt anew."""
    patch.setattr(People, "kept", lambda people, *_: people.split(6))


def reserve_forgotten(patch):
    patch.setattr(charges, "remaining_budget", lambda *spent: 9.0)


CHARGED, KEPT = "charged once, and from the reserve", "what was there is kept"
#: Defects; whether a power cut shows them, or the end of a process does; what is broken.
DEFECTS = {
    "charged twice": (charged_twice, False, ITS_CHARGE),
    "drawn again under one charge": (drawn_again, False, "one draw for each charge"),
    "drawn again after its mark": (drawn_again_after_its_mark, False, KEPT),
    "dealt again": (dealt_again, False, "nobody is in both parts"),
    "reserve forgotten": (reserve_forgotten, False, CHARGED),
    "shown before its mark": (shown_before_its_mark, False, "shown once it is marked"),
    "marked before it is there": (marked_before_it_is_there, False, GOES_ON),
    "written in place": (written_in_place, False, KEPT),
    "journal not synced": (unsynced(Journal, "add"), True, ITS_CHARGE),
    "releases not synced": (unsynced(Folder, "save"), True, GOES_ON),
    "names of files not synced": (name_unsynced(layout), True, GOES_ON),
    "name of the folder not synced": (name_unsynced(folders), True, ITS_CHARGE),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found(folder, defect, monkeypatch):
    plant, cut, broken = DEFECTS[defect]
    plant(monkeypatch)
    every = ends(folder, cut, WHOLE if plant is dealt_again else LIGHT)
    assert any(broken in faults for _, faults in every)
