"""A run that was cut goes on where it was, and says so as long as it is not complete."""

import pytest

from benchmarks import harness
from benchmarks.harness import Entry, Experiment, Missing, Results, Setting, manifest, measure_all
from benchmarks.pages import Pages

ENTRY = Entry("made_up", "", "", "", (), 1.0)
#: As CSVs write and read them differently: one kind of value alone, and several together.
VALUES = [(0.0001, 10_000_000), (1_234_567,), ("none", "2.0", "0.50"), ("2.0",), (True, False)]


def experiment(values, fails=(), missing=(), repetitions=2):
    def measure(setting, case, repetition):
        if case["value"] in missing:
            raise Missing("is not there")
        if (case["value"], repetition) in fails:
            raise ZeroDivisionError
        return [{"method": method, "error": 1.0 / 3.0} for method in ("ours", "theirs")]

    def report(rows, pages):
        pages.verdict("item", "data", "1", "1", "reproduced")
        assert len(rows) > 4
        pages.table("made_up", ("rows",), [(len(rows),)], "Said.", "Note.")

    return Experiment(
        lambda setting: [{"value": value} for value in values], measure, report, repetitions
    )


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Measure in an empty folder; return what is there."""
    monkeypatch.setattr(harness, "RESULTS", tmp_path)

    def measured(*args, **options):
        monkeypatch.setattr(Entry, "load", lambda entry: experiment(*args, **options))
        complete = measure_all(ENTRY, Setting(), jobs=1, until=float("inf"))
        return complete, Results(tmp_path / "made_up.csv")

    return measured


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_nothing_is_measured_twice(run, values):
    for part in (values[:1], values, values):
        complete, found = run(part)
        assert complete
        assert len(found.rows) == 4 * len(part)
    _, more = run(values, repetitions=3)
    assert [row["repetition"] for row in more.rows] == [0, 0, 1, 1, 2, 2] * len(values)


def test_pages_say_that_a_run_was_cut(run, tmp_path):
    for fails, said, verdicts in (((1, 0), False, 0), ((2, 1), True, 1)):
        with pytest.raises(ZeroDivisionError):
            run((0, 1, 2), fails=[fails])
        pages = Pages(tmp_path)
        assert harness.report(ENTRY, pages, tmp_path) is said
        assert pages.incomplete == ["made_up"]
        assert len(pages.verdicts) == verdicts
    assert (
        "Not complete, with 1 of the measurements left."
        in (tmp_path / "tables/made_up.md").read_text()
    )
    run((0, 1, 2))
    harness.report(ENTRY, Pages(tmp_path), tmp_path)
    assert "Not complete" not in (tmp_path / "tables/made_up.md").read_text()


def test_what_was_missing_is_measured_later(run):
    complete, found = run((0, 1), missing=[1])
    assert (complete, len(found.rows), found.head["left"]) == (False, 4, 0)
    complete, again = run((0, 1), missing=[1])
    assert (complete, again.head) == (False, found.head)
    complete, found = run((0, 1))
    assert (complete, len(found.rows)) == (True, 8)


def test_pages_say_of_another_day_and_machine(run, monkeypatch):
    _, found = run((0,))
    first = found.head["date"]
    found.head |= {"date": "2026-01-02", "machine": "an older one"}
    found.write()
    _, found = run((0, 1))
    assert found.head["date"] == f"2026-01-02 to {first}"
    assert found.head["machine"] == f"an older one; then {harness.machine()}"


def test_two_runs_do_not_overwrite_each_other(run):
    _, one = run((0,))
    _, other = run((0, 1))
    with pytest.raises(RuntimeError, match="another run"):
        one.write()
    assert len(Results(other.path).rows) == 8


@pytest.mark.parametrize("name", list(manifest()))
def test_cases_are_told_apart(name):
    tasks = manifest()[name].load().tasks(Setting())
    assert len({frozenset(case) for case, _ in tasks}) == 1
    assert len({Results.key(*task, sorted(task[0])) for task in tasks}) == len(tasks)
