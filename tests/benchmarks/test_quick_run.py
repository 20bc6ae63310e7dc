"""Every experiment of the manifest runs, on made-up files, and reports on what it measured."""

import pytest

from benchmarks import harness
from benchmarks.first_page import write_first_page
from benchmarks.harness import Setting, manifest, measure_all, report
from benchmarks.pages import Pages
from tests.support.benchmark_files import write_files

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


#: Experiments that run another project's program, of which there is no copy here.
ELSEWHERE = {"audit_recorder"}


@pytest.mark.parametrize("name", sorted(manifest().keys() - ELSEWHERE))
def test_an_experiment_runs_and_reports(name, files, tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "OUTPUT", tmp_path)
    entry = manifest()[name]
    measure_all(entry, Setting(quick=True, folder=files), jobs=1, until=float("inf"))
    pages = Pages(tmp_path / "pages", quick=True)
    assert report(entry, pages, tmp_path / "results")
    write_first_page(pages)
    tables = [path.read_text() for path in (tmp_path / "pages" / "tables").glob("*.md")]
    assert any(line.startswith("| ") for text in tables for line in text.splitlines())


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_what_runs_elsewhere_is_left_out_without_it(name, files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "OUTPUT", tmp_path)
    measure_all(manifest()[name], Setting(quick=True, folder=files), jobs=1, until=float("inf"))
    assert f"skipped: {name}: " in capsys.readouterr().out


def test_a_run_that_was_cut_goes_on_where_it_was(files, tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "OUTPUT", tmp_path)
    entry, setting = manifest()["weibull_error"], Setting(quick=True, folder=files)
    assert not measure_all(entry, setting, jobs=1, until=0.0)
    assert measure_all(entry, setting, jobs=1, until=float("inf"))
    rows = harness.Results(tmp_path / "results" / "weibull_error.csv").rows
    assert measure_all(entry, setting, jobs=1, until=float("inf"))
    again = harness.Results(tmp_path / "results" / "weibull_error.csv").rows
    assert again == rows
    keys = [(row["data"], row["epsilon"], row["method"], row["repetition"]) for row in rows]
    assert len(set(keys)) == len(keys) == len(entry.load().tasks(setting))
