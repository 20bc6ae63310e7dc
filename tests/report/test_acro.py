"""What output checkers read: the layout is ACRO's, and nothing passes that nobody verified."""

import json
import os
import shutil
import subprocess
from dataclasses import replace

import pandas as pd
import pytest

from skdpsurv.dp import PrivacyGuarantee, RiskAppetite
from skdpsurv.report import curves
from skdpsurv.report.acro import Output, acro_files, save_acro
from skdpsurv.report.output_check import output_check
from skdpsurv.report.results import results
from skdpsurv.verify import Verdict
from tests.report import acro_layout
from tests.report.releases import seeded
from tests.report.test_report import evaluation, of, setting, with_names

WHEN = "2026-03-01T12:00:00+00:00"
APPETITE = RiskAppetite(max_epsilon=3.0, name="appetite.toml")
#: By setting: type of the record, statbarn, residual degrees of freedom, and figures.
KINDS = {
    "DPKaplanMeierFitter: everybody": ("table", "HazardSurvivalTables", 47 - 5, 1),
    "DPAalenJohansenFitter: one cause": ("table", "HazardSurvivalTables", 47 - 5, 2),
    "DPWeibullFitter: ladder": ("table", "HazardSurvivalTables", 47 - 2, 1),
    "DPDiscreteTimeSurvival: raw columns": ("regression", "CorrelationCoefficients", 47 - 10, 2),
    "DPCompetingRisks: objective": ("regression", "CorrelationCoefficients", 47 - 12, 1),
    "DPLogisticRegression: objective": ("regression", "CorrelationCoefficients", 47 - 4, 1),
    "DPKaplanMeierFitter: groups": ("table", "HazardSurvivalTables", 47 - 3 * 3, 1),
    "DPTableOne: raw columns by ward": ("table", "Frequencies", None, 0),
    "HybridMEstimator: auto": ("table", "not stated", None, 0),
}
QUICK = ("DPKaplanMeierFitter: everybody", "DPCompetingRisks", "DPTableOne", "HybridMEstimator")


def output(release, name="", parts=None):
    text = release.to_json(indent=2) + "\n"
    return Output(name, release, text, results(release) if parts is None else parts, "a release")


def written(outputs, folder, appetite=APPETITE):
    """Write outputs to a folder, and read them by the layout."""
    save_acro(acro_files(outputs, WHEN, appetite), folder)
    return acro_layout.read(folder)


@pytest.fixture(scope="module", params=["quick", pytest.param("all", marks=pytest.mark.slow)])
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("acro") / "outputs"
    names = [name for name in KINDS if request.param == "all" or name.startswith(QUICK)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curves, "N_RESAMPLES", 10)
        outputs = [output(of(name), f"{number}-") for number, name in enumerate(names)]
        save_acro(acro_files(outputs, WHEN, APPETITE), place)
    return place


def test_records_of_every_kind(folder):
    records, config = acro_layout.read(folder)
    assert config["risk_appetite"]["max_epsilon"] == 3.0
    first = [one for one in records.values() if one["type"] != "survival plot"]
    kinds = [one for one in KINDS.items() if len(first) > len(QUICK) or one[0].startswith(QUICK)]
    place = 0
    for (name, (kind, statbarn, dof, n_figures)), record in zip(kinds, first, strict=True):
        release, stated = of(name), record["properties"]
        assert (record["type"], record["fair"]["statbarn"]) == (kind, statbarn)
        assert stated.get("dof") == dof
        promise = {key: stated[key] for key in ("epsilon", "delta", "neighbours", "status")}
        assert promise.items() <= release.guarantee.to_dict().items()
        assert stated["verifier"].startswith(f"verified: {release.estimator}, epsilon")
        assert stated["verifier"] in record["summary"]
        assert stated["mitigation"] == "noise"
        assert record["fair"]["common_mitigations"] == ["Noise"]
        *tables, file = (one["name"] for one in record["files"])
        assert (folder / file).read_text() == release.to_json(indent=2) + "\n"
        values = pd.read_csv(folder / tables[-1], float_precision="round_trip")
        for key, array in release.values.items():
            assert values["value"][values["name"] == key].tolist() == array.ravel().tolist()
        plots = list(records.values())[place + 1 : place + 1 + n_figures]
        assert all(one["type"] == "survival plot" for one in plots)
        assert all(one["summary"] == record["summary"] for one in plots)
        place += 1 + n_figures
    assert place == len(records)


def test_smallest_noisy_count(folder):
    records, _ = acro_layout.read(folder)
    for record in records.values():
        smallest = record["properties"].get("smallest_noisy_count")
        if record["type"] != "survival plot" and record["fair"]["statbarn"] == "Frequencies":
            numbers = pd.read_csv(folder / record["files"][0]["name"], float_precision="round_trip")
            counts = numbers["quantity"].str.match(r"(count of|missing of|n$|n,)")
            assert smallest == numbers["estimate"][counts].min()
            assert not numbers["quantity"][~counts].str.contains("count").any()
        regression = record["type"] == "regression"
        assert (smallest is None) >= regression
        check = record["fair"]["check_status"].get("MinimumThresholdCheck")
        assert check == (None if smallest is None else "pass" if smallest >= 10 else "review")


def test_what_passes_and_what_does_not():
    release = of("DPLogisticRegression: objective")
    parts = results(release)

    def status(found=release, appetite=APPETITE):
        return output_check(found, parts, appetite).status

    assert status() == "pass"
    assert status(appetite=None) == "review"
    assert status(appetite=replace(APPETITE, max_epsilon=0.5)) == "fail"
    assert status(appetite=replace(APPETITE, min_records=48)) == "fail"
    assert status(appetite=replace(APPETITE, safe_dof_threshold=44)) == "review"
    seed = seeded(setting("DPLogisticRegression: objective"))
    assert status(seed) == "fail"
    assert output_check(seed, parts, APPETITE).mitigation == "none"
    assert status(seed, replace(APPETITE, status="seeded")) == "review"
    public = {"data_norm": release.guarantee.public_inputs["data_norm"]}
    nobody = replace(release, guarantee=replace(release.guarantee, public_inputs=public))
    assert (
        "min_records = 2: it"
        in output_check(nobody, parts, replace(APPETITE, min_records=2)).summary
    )
    less = replace(release, guarantee=replace(release.guarantee, epsilon=0.5))
    assert output_check(less, parts, APPETITE).verdict.word == "refuted"
    assert status(less) == "fail"
    assert output_check(of("HybridMEstimator: auto"), {}, APPETITE).status == "review"


@pytest.mark.parametrize("stated", [{"n_intervals": "auto"}, {"n_intervals": 5, "groups": "all"}])
def test_degrees_of_freedom_that_nobody_states(stated):
    release = of("DPKaplanMeierFitter: everybody")
    public = {**release.guarantee.public_inputs, **stated}
    guarantee = replace(release.guarantee, public_inputs=public)
    assert output_check(replace(release, guarantee=guarantee), {}, APPETITE).dof is None


def test_the_file_is_verified_and_not_what_was_read_from_it(tmp_path):
    release = of("DPKaplanMeierFitter: everybody")
    text = release.to_json().replace('"epsilon"', '"epsilon": 0.1, "epsilon"', 1)
    records, _ = written([output(release)._replace(text=text)], tmp_path / "acro")
    assert {one["status"] for one in records.values()} == {"fail"}
    assert "refuted: a key is there twice" in records["output_0"]["summary"]


def test_nothing_of_a_study_passes_that_does_not_as_a_whole():
    release = of("DPLogisticRegression: objective")

    def status(epsilon, word):
        study = PrivacyGuarantee(epsilon), Verdict(word)
        return output_check(release, results(release), APPETITE, study=study).status

    assert status(3.0, "verified") == "pass"
    assert status(3.5, "verified") == status(3.0, "refuted") == "fail"
    assert status(3.0, "not covered") == "review"


def test_an_evaluation_is_for_a_person_to_check(tmp_path):
    found = evaluation(PrivacyGuarantee(0.2))
    parts = {"quality": {"numbers": [], "figures": []}}
    text = json.dumps(found.to_dict())
    records, _ = written([Output("", found, text, parts, "an evaluation")], tmp_path / "acro")
    (record,) = records.values()
    assert record["status"] == "review"
    assert record["fair"]["statbarn"] == "LinearAggregations"
    assert "not covered: no plan is stated" in record["summary"]


def test_folder_is_new_and_the_same_twice(tmp_path, monkeypatch):
    release = of("DPLogisticRegression: objective")
    first, again = (acro_files([output(release)], WHEN) for _ in range(2))
    assert first == again
    (tmp_path / "acro").mkdir()
    with pytest.raises(FileExistsError):
        save_acro(first, tmp_path / "acro")
    assert os.listdir(tmp_path / "acro") == []


def test_names_of_columns_run_in_no_spreadsheet(tmp_path):
    release = with_names(["=1+1", "b"])
    written([output(release)], tmp_path / "acro")
    names = pd.read_csv(tmp_path / "acro" / "output_0_0.csv")["group"]
    assert "'=1+1, +1" in names.tolist()
    assert not names.str.startswith("=").any()


def their_python():
    """Return a Python that has ACRO, which needs an older pandas; None without one."""
    for python in filter(None, (os.environ.get("ACRO_PYTHON"), shutil.which("python3"))):
        command = [python, "-c", "import acro"]
        if not subprocess.run(command, capture_output=True, check=False).returncode:
            return python
    return None


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["all"], indirect=True)
def test_acro_reads_it(folder):
    """Set ACRO_PYTHON to the Python of an environment with ``pip install acro "pandas<2.4"``."""
    if (python := their_python()) is None:
        pytest.skip("no Python has acro: set ACRO_PYTHON")
    script = (
        "import json, sys\nfrom acro.record import load_records\n"
        "found = load_records(sys.argv[1])\n"
        "print(json.dumps({key: [found.get(key).status, found.get(key).output_type, "
        "len(found.get(key).output)] for key in found.get_keys()}))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run(
        [python, "-c", script, folder], capture_output=True, check=True, text=True, env=environment
    )
    records, _ = acro_layout.read(folder)
    for key, (status, kind, n_outputs) in json.loads(run.stdout.splitlines()[-1]).items():
        record = records.pop(key)
        assert (status, kind) == (record["status"], record["type"])
        names = [one["name"] for one in record["files"]]
        assert n_outputs == (sum(name.endswith(".csv") for name in names) or len(names))
    assert not records
