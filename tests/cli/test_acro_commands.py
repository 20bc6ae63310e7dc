"""What output checkers read, and the risk appetite that fits, ledgers and studies keep."""

import json

import pytest

from skdpsurv import PrivacyAccountant
from skdpsurv.report import curves, figures
from skdpsurv.study import Protocol
from tests.cli.test_study_run import TOML
from tests.report import acro_layout

KM = ("fit", "km", "@study.csv", "--time", "days", "--event", "died", "--max-time", "3650")


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Simulate little, and draw nothing: tests/report/test_acro.py looks at figures."""
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    monkeypatch.setattr(curves, "N_RESAMPLES", 10)


@pytest.mark.slow
def test_a_release_for_output_checkers(study):
    study.run(*KM, "--epsilon", "1", "--out", "@model.json", code=0)
    (study.folder / "appetite.toml").write_text("max_epsilon = 0.5\n")
    explain = ("explain", "@model.json")
    study.run(*explain, "--appetite", "@appetite.toml", code=2, says="--appetite is for --acro")
    study.run(*explain, "--acro", "@acro", code=0, says="For output checkers:")
    records, config = acro_layout.read(study.folder / "acro")
    assert [one["status"] for one in records.values()] == ["review"]
    assert config["risk_appetite"] is None
    copy = study.folder / "acro" / "output_0.json"
    assert copy.read_bytes() == (study.folder / "model.json").read_bytes()
    study.run(*explain, "--acro", "@acro", code=7, says="exists, and nothing is written over it")
    wanted = (*explain, "--acro", "@strict", "--appetite", "@appetite.toml")
    found = study.json(*wanted)
    records, config = acro_layout.read(study.folder / "strict")
    assert found["acro"] == str((study.folder / "strict").resolve())
    assert config["risk_appetite"]["name"] == "appetite.toml"
    assert {one["fair"]["check_status"]["RiskAppetite"] for one in records.values()} == {"fail"}
    assert "max_epsilon = 0.5 of appetite.toml: epsilon = 1.0" in records["output_0"]["summary"]
    (study.folder / "appetite.toml").write_text("max_epsilom = 0.5\n")
    wanted = (*explain, "--acro", "@other", "--appetite", "@appetite.toml")
    study.run(*wanted, code=4, says="no key 'max_epsilom'")
    assert not (study.folder / "other").exists()


def test_a_fit_keeps_the_appetite_with_all_before_it(study):
    (study.folder / "appetite.toml").write_text("max_epsilon = 1\nmin_records = 200\n")
    appetite = ("--appetite", "@appetite.toml")
    fit = (*KM, "--epsilon", "0.7")
    says = "--appetite needs --ledger"
    study.run(*fit, *appetite, "--out", "@a.json", code=2, says=says)
    ledger = ("--ledger", "@l.sqlite", "--budget", "6")
    study.run(*fit, *ledger, *appetite, "--out", "@a.json", code=0)
    says = "max_epsilon = 1 of appetite.toml does not allow this: it asks for epsilon = 0.7, with"
    for more in ((), ("--dry-run",)):
        study.run(*fit, *ledger, *appetite, *more, "--out", "@b.json", code=5, says=says)
    (study.folder / "appetite.toml").write_text("max_epsilon = 9\nmin_records = 301\n")
    says = "min_records = 301 of appetite.toml does not allow this: it asks for a result about 300"
    study.run(*fit, *ledger, *appetite, "--out", "@b.json", code=5, says=says)
    assert not (study.folder / "b.json").exists()
    assert PrivacyAccountant(path=study.path("l.sqlite")).spent() == 0.7


@pytest.fixture
def protocol(study):
    """Write a protocol with an appetite, and return the command that runs it."""
    text = TOML.format(ledger=study.path("l.sqlite"))
    text = text.replace("[budget]", '[budget]\nappetite = "appetite.toml"')
    (study.folder / "protocol.toml").write_text(text)
    (study.folder / "appetite.toml").write_text("max_epsilon = 4\nsafe_threshold = 0\n")

    def run(**expected):
        sha256 = Protocol.from_toml(study.folder / "protocol.toml").sha256
        given = ("study", "run", "@protocol.toml", "@study.csv", "--hash", sha256, "--out", "@out")
        return study.run(*given, **expected)

    return run


def test_a_study_for_output_checkers(study, protocol):
    ledger = PrivacyAccountant(9.0, path=study.path("l.sqlite"))
    protocol(code=0)
    study.run("study", "acro", "@nothing", code=3, says="there is no study in")
    study.run("study", "acro", "@out", code=0, says="For output checkers:")
    study.run("study", "acro", "@out", code=7, says="nothing is written over it")
    study.run("study", "check", "@out", code=0, says="belong together")
    records, config = acro_layout.read(study.folder / "out" / "acro")
    assert config["risk_appetite"]["max_epsilon"] == 4
    (table,) = records.values()
    assert table["properties"]["verifier"].startswith("verified: DPKaplanMeierFitter, epsilon 3")
    assert table["fair"]["dependent"] == "died"
    assert table["comments"][0] == "Stage and survival: Survival, by stage"
    released = (study.folder / "out" / "releases" / "curves.json").read_bytes()
    assert (study.folder / "out" / "acro" / "output_0.json").read_bytes() == released
    page = (study.folder / "out" / "report.html").read_text()
    assert "For the output checker" in page
    assert "<td><bdi>verified</bdi></td>" in page
    (study.folder / "strict.toml").write_text("max_epsilon = 2\n")
    strict = ("--appetite", "@strict.toml", "--out", "@strict")
    study.run("study", "acro", "@out", *strict, code=0)
    records, _ = acro_layout.read(study.folder / "strict")
    assert {one["status"] for one in records.values()} == {"fail"}
    assert ledger.for_dataset("registry").spent() == 3.0
    mark = study.folder / "out" / "releases" / "curves.json"
    mark.write_text(json.dumps(json.loads(mark.read_text())))
    study.run("study", "acro", "@out", "--out", "@x", code=3, says="not the file that was marked")


def test_a_study_beyond_the_appetite_is_refused_before_any_charge(study, protocol):
    ledger = PrivacyAccountant(9.0, path=study.path("l.sqlite"))
    plan = ("study", "plan", "@protocol.toml", "--repeats", "0", "--n-people")
    assert study.json(*plan, "300")["guarantee"]["epsilon"] == 3.0
    signed = Protocol.from_toml(study.folder / "protocol.toml")
    assert Protocol.from_text(signed.text).text == signed.text
    (study.folder / "appetite.toml").write_text("max_epsilon = 4\nmin_records = 301\n")
    assert Protocol.from_toml(study.folder / "protocol.toml").sha256 != signed.sha256
    says = "min_records = 301 of appetite.toml does not allow this"
    study.run(*plan, "300", code=5, says=says)
    protocol(code=5, says=says)
    assert not list((study.folder / "out" / "releases").glob("*"))
    (study.folder / "appetite.toml").write_text("max_epsilon = 2.5\n")
    study.run(*plan, "300", code=5, says="max_epsilon = 2.5 of appetite.toml")
    (study.folder / "appetite.toml").write_text("max_epsilon = 4\n")
    study.run(*KM, "--epsilon", "1.5", "--ledger", "@l.sqlite", "--dataset", "registry",
              "--out", "@a.json", code=0)  # fmt: skip
    says = "max_epsilon = 4 of appetite.toml does not allow this: it asks for epsilon = 3.0, with"
    protocol(code=5, says=says)
    study.run(*plan, "300", code=0, says=f"the study would be refused. {says}")
    assert ledger.for_dataset("registry").spent() == 1.5


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("appetite = 3", "appetite must be the name of a file"),
        ("appetite = { max_epsilon = 9 }", "appetite must be the name of a file"),
        ('appetite = "nothing.toml"', "nothing.toml"),
    ],
)
def test_a_protocol_names_a_file(study, protocol, entry, says):
    path = study.folder / "protocol.toml"
    path.write_text(path.read_text().replace('appetite = "appetite.toml"', entry))
    study.run("study", "plan", "@protocol.toml", code=4, says=says)


def test_a_draft_by_annex_iv(study, protocol):
    PrivacyAccountant(9.0, path=study.path("l.sqlite"))
    protocol(code=0)
    explain = ("explain", "@out/releases/curves.json")
    study.run(*explain, "--protocol", "@protocol.toml", code=2, says="--protocol is for --annex-iv")
    given = (*explain, "--annex-iv", "@draft.md", "--protocol", "@protocol.toml")
    study.run(*given, code=0, says="To be completed:")
    draft = (study.folder / "draft.md").read_text()
    assert "Purpose, by the protocol: protocol 7" in draft
    study.run(*given, code=7, says="nothing is written over it")
    study.run(*KM, "--epsilon", "1", "--out", "@model.json", code=0)
    given = ("explain", "@model.json", "--annex-iv", "@x.md", "--protocol", "@protocol.toml")
    study.run(*given, code=4, says="protocol must be that of the study")
    assert not (study.folder / "x.md").exists()
