"""The report of a study: what was found comes first, and it promises no more than was proved."""

import io
import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPTableOne, PublicColumns, Release
from skdpsurv.report import curves, figures
from skdpsurv.report.table_one_page import table_one
from skdpsurv.report.text import escape_hidden, exact
from skdpsurv.study import Analysis
from skdpsurv.study.folder import Folder
from skdpsurv.study.report import PAGE, TABLE, StudyReport
from skdpsurv.study.run import run
from skdpsurv.study.study_plan import StudyPlan
from tests.report.releases import Page
from tests.report.test_report import HOSTILE, PROMISE, VOID

from .studies import COLUMNS, protocol, records

HEADINGS = [
    *("Survival, by stage", "Weibull distribution of survival times"),
    *("Regression of survival times", "How good the model is"),
    *("An example person, by the regression of survival times", "What is promised, spent and left"),
    *("For the output checker", "The study", "Not covered, whatever epsilon is"),
    *("What it rests on", "Constants of the mechanisms"),
]


def made(stated, frame, folder):
    """Run a study, and return its report."""
    run(stated, frame, folder, None)
    place, names = Folder(folder), [one.name for one in stated.analyses]
    found = {name: place.load(stated.analysis(name))[0] for name in names}
    plan = StudyPlan.of(stated, frame["id"].nunique())
    hashes = {name: place.sha256_of(name) for name in names}
    return StudyReport(plan, found, [plan.guarantee()], "2026-03-01", 14.0, hashes)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return the report of a small study, which ran."""
    return made(protocol(), records(300), tmp_path_factory.mktemp("study") / "out")


def test_an_analysis_of_one_cause_says_what_becomes_of_the_others(tmp_path):
    one = (Analysis("regression", "r", options={"cause": "relapse"}), Analysis("curves", "c"))
    labels = {"event_is": ("relapse", "death"), "censored_is": ("none",)}
    frame = records(300)
    frame["died"] = np.where(
        frame["died"] == 0, "none", np.resize(["relapse", "death"], len(frame))
    )
    found = made(protocol(analyses=one, evaluation_share=0.0, **labels), frame, tmp_path / "out")
    text = Page(found.html).text
    assert text.count("The event is died = relapse; times are days. Whoever had another") == 2
    assert text.count("The event is the first of any of these: relapse or death") == 1
    assert "Probabilities are those if death could not happen" in text
    release = found.found["r"]
    assert release.target_names == ("died", "days")
    assert (release.study["event_is"], release.study["unit"]) == (("relapse",), "days")


def test_a_regression_of_competing_events_has_each_cause_side_by_side(tmp_path):
    one = (Analysis("competing_regression", "causes", options={"columns": ["age"]}),)
    labels = {"event_is": ("relapse", "death"), "censored_is": ("none",)}
    frame = records(300)
    frame["died"] = np.where(
        frame["died"] == 0, "none", np.resize(["relapse", "death"], len(frame))
    )
    found = made(protocol(analyses=one, evaluation_share=0.0, **labels), frame, tmp_path / "out")
    text = Page(found.html).text
    assert "Regression of competing events" in text
    said = "Each of these events counts by itself, if no other came first: relapse or death"
    assert said in text
    names = ["causes-coefficients.svg", "causes-people.svg", "causes-incidences.svg"]
    assert [*found.figures] == names
    for name in (names[0], names[2]):
        assert "relapse" in found.figures[name].file
    quantities = set(found.numbers["quantity"])
    assert {"coefficient of the cause relapse", "odds ratio of the cause death"} <= quantities
    own = "cause must be one of event_is, 'relapse', 'death', of a competing_regression alone"
    for options in ({"of": "causes"}, {"of": "causes", "cause": "none"}):
        with pytest.raises(ValueError, match=own):
            protocol(analyses=(*one, Analysis("evaluation", "e", options=options)), **labels)


@pytest.mark.slow
def test_one_cause_of_a_regression_of_competing_events_is_evaluated(tmp_path):
    of = {"of": "causes", "cause": "death"}
    analyses = (
        Analysis("competing_regression", "causes", options={"columns": ["age"]}),
        Analysis("evaluation", "quality", options=of),
    )
    labels = {"event_is": ("relapse", "death"), "censored_is": ("none",)}
    frame = records(300)
    which = np.resize(["relapse", "death"], len(frame))
    frame["died"] = np.where(frame["died"] == 0, "none", which)
    found = made(protocol(analyses=analyses, **labels), frame, tmp_path / "out")
    quality = found.found["quality"]
    assert quality.cause == "death"
    assert "incidence of death" in Page(found.html).text.lower()
    rule = "entry must not be stated with a cause"
    with pytest.raises(ValueError, match=rule):
        protocol(analyses=analyses, entry="seen", **labels)


@pytest.mark.slow
def test_a_regression_of_competing_events_may_have_intervals(tmp_path):
    options = {"columns": ["age"], "intervals": 0.3}
    one = (Analysis("competing_regression", "causes", options=options),)
    labels = {"event_is": ("relapse", "death"), "censored_is": ("none",)}
    frame = records(1500)
    which = np.resize(["relapse", "death"], len(frame))
    frame["died"] = np.where(frame["died"] == 0, "none", which)
    found = made(protocol(analyses=one, evaluation_share=0.0, **labels), frame, tmp_path / "out")
    text = Page(found.html).text
    for cause in labels["event_is"]:
        assert f"Coefficients of the cause {cause}, interval of the odds ratio" in text
        assert f"Wald tests of the cause {cause} that all coefficients" in text
    assert "(max_cumulative_hazard, of each cause)" in text


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Simulate few records."""
    monkeypatch.setattr(curves, "N_RESAMPLES", 10)


@pytest.fixture
def fast(monkeypatch):
    """Draw nothing."""
    monkeypatch.setattr(figures, "can_draw", lambda: False)


def changed(report, **changes):
    """Return a report with other arguments, as if it was new."""
    names = ("plan", "found", "charges", "date", "left", "sha256")
    return StudyReport(**{**{name: getattr(report, name) for name in names}, **changes})


def with_protocol(report, **changes):
    plan = report.plan
    return changed(report, plan=replace(plan, protocol=replace(plan.protocol, **changes)))


def text_of(report):
    page = Page(report.html)
    assert page.faults == []
    return page.text


@pytest.mark.slow
def test_what_was_found_comes_first_and_constants_last(report):
    page = Page(report.html)
    assert page.faults == []
    assert re.findall("<h2>(.*?)</h2>", report.html) == HEADINGS
    assert page.tags.count("svg") == 5
    assert page.tags.count("h1") == 1
    stated = report.plan.protocol
    for said in (stated.title, stated.owner, stated.purpose, stated.dataset, stated.sha256):
        assert said in page.text
    assert "A. Curie · 2026-03-01 · 300 people of registry" in page.text
    assert "Epsilon = 6 for each person, by this report as a whole" in page.text
    assert "The ledger of registry has epsilon = 14 left" in page.text
    assert "The 90 people of the evaluation were held out" in page.text
    for name, found in report.found.items():
        assert report.sha256[name] in page.text
        assert found.guarantee.mechanism in page.text
        assert all(limit in page.text for limit in found.guarantee.limits)
        assert all(one in page.text for one in found.guarantee.assumptions)
        for given in found.guarantee.public_inputs:
            assert given in page.text


def test_it_says_what_each_analysis_cost(report, fast):
    text = text_of(changed(report))
    for name, part in report.plan.parts.items():
        spent = exact(part.guarantee.epsilon)
        assert re.search(rf"{name} {part.n_people:,} \({part.people}\) {re.escape(spent)}", text)


def test_numbers_are_those_of_the_models(report, fast):
    frame = changed(report).numbers
    assert list(frame.columns) == ["analysis", "quantity", "group", "estimate", "low", "high"]
    assert not frame.duplicated(["analysis", "quantity", "group"]).any()
    found = frame.set_index(["analysis", "quantity", "group"]).estimate
    fitter = report.found["curves"].to_estimator()
    for label in ("I", "II", "III"):
        median = fitter.of_group(label).median_survival_time_
        assert found["curves", "median", label] == median
    coef = found.loc["regression"].loc["coefficient"]
    model = report.found["regression"].to_estimator()
    assert len(coef) == model.coef_.size
    c_index = report.found["evaluation"].c_index.value
    assert found["evaluation", "C-index", "all"] == c_index
    assert "p-value of the log-rank test" in found.loc["curves"]


def test_files(report):
    files = report.files()
    assert files[PAGE] == report.html
    read = pd.read_csv(io.StringIO(files[TABLE]), float_precision="round_trip")
    pd.testing.assert_frame_equal(read, report.numbers, check_exact=True)
    drawn = {name: text for name, text in files.items() if name not in (PAGE, TABLE)}
    assert "figures/curves-survival.svg" in drawn
    assert "figures/evaluation-calibration.svg" in drawn
    for text in drawn.values():
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert changed(report).files() == files


def test_the_table_holds_no_formula(report):
    release = report.found["curves"]
    groups = {"groups": ["=1+1", "II", "III"]}
    named = replace(release, parameters={**release.parameters, **groups})
    text = changed(report, found={"curves": named}).files()[TABLE]
    assert ",'=1+1," in text
    assert ",=1+1," not in text


def test_an_analysis_that_was_lost(report, fast):
    rest = {name: found for name, found in report.found.items() if name != "weibull"}
    lost = changed(report, found=rest)
    assert "There is no result: the analysis weibull was charged" in text_of(lost)
    assert "weibull" not in set(lost.numbers.analysis)
    everything = changed(report, found={})
    assert text_of(everything).count("There is no result") == 4
    assert everything.numbers.empty
    assert list(everything.numbers.columns) == list(report.numbers.columns)


def test_one_that_was_charged_again(report, fast):
    first = report.plan.guarantee()
    again = replace(first, epsilon=0.1)
    twice = changed(report, charges=[replace(first, epsilon=0.2), again, again])
    # As decimals; doubles make 0.4000000000000001 of it.
    assert "Epsilon = 0.4 for each person" in text_of(twice)
    assert text_of(twice).count("charged again") == 2


def test_what_a_delta_and_a_reserve_change(report, fast):
    first = report.plan.guarantee()
    text = text_of(with_protocol(changed(report, charges=[replace(first, delta=1e-6)])))
    assert "Costs of Gaussian noise add up as those of zCDP do" in text
    assert "kept back" not in text
    assert "of which 1 is kept back" in text_of(with_protocol(report, reserve=1.0))


@pytest.mark.parametrize("status", VOID)
def test_nothing_is_promised_where_one_part_is_not_proved(report, fast, status):
    release = report.found["weibull"]
    void = replace(release, guarantee=replace(release.guarantee, status=status))
    text = text_of(changed(report, found={**report.found, "weibull": void}))
    assert not PROMISE.search(text)
    assert text.index("No promise") < text.index("Survival, by stage")


def test_two_analyses_of_a_kind_have_their_names(report, fast):
    plan = report.plan
    (one,) = (one for one in plan.protocol.analyses if one.name == "curves")
    other = replace(one, name="again")
    stated = replace(plan.protocol, analyses=(one, other), evaluation_share=0.0)
    twice = changed(
        report, plan=StudyPlan.of(stated, 300), found={"curves": report.found["curves"]}
    )
    assert "Survival, by stage (curves)" in text_of(twice)
    assert "Survival, by stage (again) There is no result" in text_of(twice)


def test_no_ledger_and_no_evaluation(report, fast):
    plan = report.plan
    analyses = tuple(one for one in plan.protocol.analyses if one.of is None)
    stated = replace(plan.protocol, analyses=analyses, evaluation_share=0.0)
    found = {name: one for name, one in report.found.items() if isinstance(one, Release)}
    whole = changed(report, plan=StudyPlan.of(stated, 300), found=found, left=None)
    text = text_of(whole)
    assert "No ledger was charged" in text
    assert "held out" not in text
    assert "All analyses are of the same people" in text


def test_without_matplotlib(report, fast, monkeypatch):
    monkeypatch.setattr("skdpsurv.study.report.can_draw", lambda: False)
    page = Page(changed(report).html)
    assert "svg" not in page.tags
    assert "matplotlib is not installed" in page.text
    assert "Number at risk (noisy)" in page.text
    assert list(changed(report).files()) == [PAGE, TABLE]


@pytest.mark.parametrize("text", HOSTILE[:5])
def test_hostile_text(report, fast, text):
    page = Page(with_protocol(report, title=text, owner=text, purpose=text, unit=text).html)
    assert page.faults == []
    assert page.text.count(escape_hidden(text)) >= 4


def test_table_one(report):
    """Its file of numbers has all statistics: for the population, and for these people."""
    frame = records(300)[["age", "stage"]].assign(ill=np.arange(375) % 3 == 0)
    columns = PublicColumns({**COLUMNS, "ill": bool})
    model = DPTableOne(6.0, columns=columns, by="stage", random_state=0).fit(frame)
    part = table_one(model)
    names = [row[0] for row in part["table"].rows]
    assert names.index("age, median [Q1,Q3]") == names.index("age, mean (SD)") + 1
    stated = model.table_.loc[("ill", "True", "share", "Overall")]
    share = [
        one for one in part["numbers"] if one[1] == "Overall" and "share of ill True" in one[0]
    ]
    ends = (["population_low", "population_high"], ["people_low", "people_high"])
    assert [(one.estimate, one.low, one.high) for one in share] == [
        (stated["estimate"], *stated[two]) for two in ends
    ]
    assert [one.quantity for one in share] == [
        "share of ill True",
        "share of ill True, of these people",
    ]
    n = [one for one in part["numbers"] if one.quantity.startswith("n,")]
    assert len(n) == 4
    assert table_one(object()) is None


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def pages_of(report, folder):
    """Return how many pages of paper a report has."""
    page, paper = folder / "report.html", folder / "report.pdf"
    page.write_text(report.html, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server")
    where = (f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={paper}", page.as_uri())
    subprocess.run([CHROMIUM, *options, *where], capture_output=True, check=True, timeout=120)
    return len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes()))


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_the_usual_study_has_at_most_six_pages(tmp_path):
    """Of twelve columns, two groups, a regression of all columns, and an evaluation."""
    numbers = {f"number {i}": {"bounds": [0, 10], "unit": "mg/dL", "typical": 4} for i in range(8)}
    labels = {name: ["no", "yes"] for name in ("arm", "sex", "smoker")}
    columns = PublicColumns({**numbers, **labels, "stage": ["I", "II"]})
    rng = np.random.default_rng(0)
    frame = records(400).drop(columns=["age", "stage"])
    for name in numbers:
        frame[name] = rng.uniform(0.0, 10.0, len(frame))
    for name in labels:
        frame[name] = rng.choice(["no", "yes"], len(frame))
    frame["stage"] = rng.choice(["I", "II"], len(frame))
    analyses = (
        Analysis("table", "table", 1.0, {"by": "arm"}),
        Analysis("curves", "curves", 1.0, {"by": "arm"}),
        Analysis("regression", "regression", 3.0, {"intervals": 0.3}),
        Analysis("evaluation", "evaluation", options={"of": "regression"}),
    )
    whole = made(protocol(columns=columns, analyses=analyses), frame, tmp_path / "out")
    assert whole.html.count("number 7") >= 3
    assert 3 < pages_of(whole, tmp_path) <= 6
