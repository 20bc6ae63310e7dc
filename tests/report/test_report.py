"""The page about a release: it is made of any, says all that matters, and promises no more."""

import hashlib
import json
import math
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    PrivacyGuarantee,
    PublicColumns,
    Release,
)
from skdpsurv.dp.guarantee import PERSON
from skdpsurv.evaluation import Estimate, RiskGroup, SurvivalEvaluation
from skdpsurv.published import weibull_fitters
from skdpsurv.report import (
    curves,
    explain,
    figures,
    html_report,
    save_report,
    table_one_page,
    units,
)
from skdpsurv.report.figures import Advantage
from skdpsurv.report.numbers import ShownNumber
from skdpsurv.report.profiles import example_predictions
from skdpsurv.report.results import all_of, results
from skdpsurv.report.text import WORDS, escape_hidden, exact, percent_up, value
from skdpsurv.survival.comparisons import logrank_test, multivariate_logrank_test
from tests.leaks.test_crafted_releases import FAULTS, places, with_fault
from tests.report.releases import Page, proved, seeded, with_status
from tests.support import checks
from tests.support.estimators import logistic as perturbed
from tests.support.registry import PRIVATE, REPRESENTATIVE, Setting, outcomes

DRAWN = [one for one in REPRESENTATIVE if one.is_private]
VOID = ("asymptotic", "seeded", "none")
#: How a promise is worded.
PROMISE = re.compile(r"probability of at most|times as probable|advantage.{0,60}at most")


def setting(name: str) -> Setting:
    return next(one for one in PRIVATE if str(one) == name)


@pytest.fixture
def no_figures(monkeypatch):
    """Draw nothing, and simulate few records for intervals: how wide they are is not asked."""
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    monkeypatch.setattr(curves, "N_RESAMPLES", 10)
    monkeypatch.setattr(weibull_fitters, "N_CELLS_PUBLISHED", 200)  # a tenth, and of the time


def text_of(*arguments, **options) -> str:
    """Return what is to be read on a page."""
    return Page(html_report(*arguments, **options)).text


def of(name: str) -> Release:
    return proved(setting(name))


def one_release(**changes) -> Release:
    fields = {
        "estimator": "Example",
        "guarantee": PrivacyGuarantee(1.0, public_inputs={"n_records": 10}),
        "parameters": {},
        "values": {"mean": 0.5},
        "n_features_in": 0,
    }
    return Release(**{**fields, **changes})


def with_names(names, **changes) -> Release:
    """Return a regression of columns with these names."""
    columns = PublicColumns(dict.fromkeys(names, (0.0, 2.0)))
    rng = np.random.default_rng(0)
    model = perturbed(classes=[0, 1], columns=columns, random_state=0, **changes)
    table = pd.DataFrame(rng.uniform(0.0, 2.0, (50, len(names))), columns=names)
    return with_status(model.fit(table, rng.integers(0, 2, 50)).release_, "proved")


def evaluation(guarantee=None) -> SurvivalEvaluation:
    groups = tuple(
        RiskGroup(
            *(low, low + 0.3, 0.5),
            Estimate(p, p - 0.05, p + 0.1),
            (Estimate(o + 0.1, o, 1.0), Estimate(o, o - 0.1, 1.0)),
        )
        for low, p, o in [(0.3, 0.4, 0.5), (0.6, 0.8, 0.7)]
    )
    guarantee = guarantee or PrivacyGuarantee(0.2)
    return SurvivalEvaluation(
        *[Estimate(0.7123, 0.6, 0.8)] * 3, groups, (2.0, 5.0), 0.9, 5.0, 0.9, guarantee, {}
    )


@checks.each(PRIVATE, checks.PLANS)
def test_page_says_what_matters(setting, no_figures):
    release = proved(setting)
    guarantee = release.guarantee
    page = Page(html_report(release))
    assert page.faults == []
    text = page.text
    assert f"psilon = {exact(guarantee.epsilon)}" in text
    assert f"status: {guarantee.status}" in text
    number = guarantee.public_inputs.get("n_records", guarantee.public_inputs.get("n_private"))
    many = "people" if guarantee.neighbours == PERSON else "records"
    assert f"{number:,} {many}" in text
    assert guarantee.neighbours in text
    for name, given in guarantee.public_inputs.items():
        assert f"{name} {value(given)}" in text
    for said in (*guarantee.limits, *guarantee.assumptions, guarantee.mechanism, guarantee.source):
        assert said in text
    for name in (*release.values, *release.target_names, *(release.feature_names_in or ())):
        assert name in text
    assert hashlib.sha256(release.to_json().encode()).hexdigest() in text
    assert bool(PROMISE.search(text)) == (guarantee.status == "proved")
    asked = {n for g in (guarantee, release.fit_guarantee) if g for n in g.public_inputs}
    assert not asked - WORDS["public"].keys()
    ours = Release.kinds[release.estimator].__module__.startswith("skdpsurv.")
    assert release.estimator in WORDS["estimators"] or not ours


@checks.each(DRAWN)
def test_figures_and_files(setting):
    release = proved(setting)
    text = html_report(release)
    page = Page(text)
    assert page.faults == []
    assert page.tags.count("svg") >= 1
    assert text == html_report(Release.from_json(release.to_json()))


@checks.each(DRAWN)
def test_nothing_is_promised_where_nothing_is_proved(setting, no_figures):
    for status in VOID:
        text = Page(html_report(with_status(seeded(setting), status))).text
        assert not PROMISE.search(text)
        assert text.count("No promise") >= 2
        assert text.index("No promise") < text.index("What was fitted")
        assert f"status: {status}" in text


def test_the_theorem_is_of_what_the_status_says_it_is():
    guarantee = one_release().guarantee
    real = replace(guarantee, assumptions=("real arithmetic: a law of noise of your own",))
    for one, said in ((guarantee, "about the program,"), (real, "about a mechanism in real")):
        assert f"is a theorem {said}" in Page(html_report(one_release(guarantee=one))).text


def test_void_page_has_no_figure_of_the_advantage():
    assert "svg" in Page(html_report(one_release())).tags
    void = one_release(guarantee=PrivacyGuarantee(1.0, status="seeded"))
    assert "svg" not in Page(html_report(void)).tags


class TestAdvantage:
    def test_formula(self):
        for epsilon in (1e-300, 1e-9, 0.01, 0.3, 1.0, 2.0, 4.7, 20.0, 199.0):
            bound = Advantage.at(epsilon)
            assert float(bound.most) == pytest.approx(math.tanh(epsilon / 2), rel=1e-14)
            assert float(bound.right) == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=1e-14)
            assert bound.factor is not None
            assert float(bound.factor) == pytest.approx(math.exp(epsilon), rel=1e-13)
        for epsilon, delta in ((1.0, 1e-6), (0.0, 0.25), (3.0, 0.5)):
            most = (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
            assert float(Advantage.at(epsilon, delta).most) == pytest.approx(min(most, 1.0))
        assert all(Advantage.at(epsilon).most == 1 for epsilon in (201.0, 1e300, math.inf))
        assert Advantage.at(0.0, 0.999).most <= 1
        assert (Advantage.at(0.0).most, Advantage.at(0.0).right) == (0, 0.5)

    def test_bounds_are_rounded_up(self):
        for epsilon in [*np.geomspace(1e-12, 50.0, 40).tolist(), 1.0]:
            for bound in (Advantage.at(epsilon).most, Advantage.at(epsilon).right):
                printed = percent_up(bound).removesuffix("\xa0%")
                assert 0 <= type(bound)(printed) / 100 - bound < 0.001
                assert float(printed) > 0

    @pytest.mark.parametrize(
        ("guarantee", "said"),
        [
            # To the nearest tenth it would be 73.1 and 46.2.
            (PrivacyGuarantee(1.0), ["right with a probability of at most 73.2 %"]),
            (PrivacyGuarantee(1.0), ["at most 46.3 %", "more than 2.72 times as probable"]),
            (PrivacyGuarantee(0.1234567891), ["Epsilon = 0.1234567891 for each record"]),
            (PrivacyGuarantee(1.0, delta=1e-6), ["epsilon = 1 and delta = 1e-06"]),
            (PrivacyGuarantee(1.0, delta=1e-6), ["up to a probability of 1e-06"]),
            (PrivacyGuarantee(1.0, neighbours=PERSON), ["everything about every other person"]),
            (PrivacyGuarantee(1.0, neighbours="add <b>one</b>"), ["add <b>one</b>"]),
            (PrivacyGuarantee(500.0), ["hardly a limit"]),
        ],
    )
    def test_on_the_page(self, guarantee, said):
        text = text_of(one_release(guarantee=guarantee))
        assert all(one in text for one in said)
        assert ("hardly a limit" in text) == (guarantee.epsilon > 100)
        assert ("two versions of one record" in text) == (guarantee.neighbours == "replace-one")


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    r"$\frac{1}{0}$",
    "{{ 7 * 7 }}",
    "]]>&amp;",
    "a\u202eb\u0000c\nd",
    "url(http://example.org)",
]


class TestHostileText:
    def test_names_of_columns(self):
        text = html_report(with_names(HOSTILE))
        page = Page(text)
        assert page.faults == []
        for name in HOSTILE:
            assert escape_hidden(name) in page.text
        assert "<script>alert" not in text
        assert not re.search("[\u202e\u0000]", text)
        assert "a\\u202eb\\u0000c\\u000ad" in page.text
        # In the figures, too.
        assert len(re.findall(r"<text[^>]*>\$\\frac", text)) >= 1

    @pytest.mark.parametrize("name", ["".join(HOSTILE), "\ud800"])
    def test_everywhere_else(self, name):
        guarantee = PrivacyGuarantee(
            *(1.0, 0.0, name, name, "proved", {name: (name, {name: name})}), *((name,), name, ())
        )
        release = one_release(
            estimator=name,
            guarantee=guarantee,
            fit_guarantee=guarantee,
            values={name: 1.0},
            n_features_in=1,
            feature_names_in=(name,),
            target_names=(name,),
            made_with=name,
        )
        page = Page(html_report(release, title=name))
        assert page.faults == []
        assert escape_hidden(name) in page.text
        page.text.encode()

    def test_groups_in_a_figure(self):
        fitter = DPKaplanMeierFitter(1.0, max_time=5.0, groups=HOSTILE[:3], random_state=0)
        fitter.fit([1.0, 2.0, 3.0], [1, 1, 0], group=HOSTILE[:3])
        page = Page(html_report(fitter.release_))
        assert page.faults == []
        assert page.tags.count("svg") == 1


@pytest.mark.slow
@checks.each([setting("DPDiscreteTimeSurvival: raw columns"), setting("HybridMEstimator: auto")])
def test_crafted_releases_are_refused_or_shown(setting, no_figures):
    content = json.loads(seeded(setting).to_json())
    shown_pages = 0
    for i, path in enumerate(places(content)):
        for fault in FAULTS[i % 7 :: 13]:
            try:
                release = Release.from_json(with_fault(content, path, fault))
                page = Page(html_report(release))
            except ValueError:
                continue
            shown_pages += 1
            assert page.faults == []
    assert shown_pages > 10


def test_without_matplotlib(monkeypatch):
    release = of("DPKaplanMeierFitter: everybody")
    assert "svg" in Page(html_report(release)).tags
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    page = Page(html_report(release))
    assert page.faults == []
    assert "svg" not in page.tags
    assert "matplotlib is not installed" in page.text
    assert "1 (this release) 73.2 % 46.3 %" in page.text


class TestResults:
    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("DPDiscreteTimeSurvival: standard errors", "95 % intervals"),
            ("DPDiscreteTimeSurvival: probit", "no logarithms of ratios"),
            ("DPDiscreteTimeSurvival: objective", "no example profile"),
            ("HybridMEstimator: auto", "27 records that need protection, and 20 public ones"),
            ("DPKaplanMeierFitter: groups", "Median survival time"),
        ],
    )
    def test_what_is_said_of_each_kind(self, name, said, no_figures):
        assert said in text_of(of(name))

    def test_coefficients_are_those_of_units(self, no_figures):
        release = of("DPDiscreteTimeSurvival: raw columns")
        coef = float(units(release).loc[("age", ""), "coef"])
        assert f"age +1 years {coef:.4g}".replace("-", "−") in text_of(release)

    def test_capped_odds_are_no_odds(self, no_figures):
        for cap in (0.5, 1.0):
            text = text_of(with_names(["a", "b"], max_residual=cap))
            assert ("Odds ratio" in text) == (cap == 1.0)

    def test_a_step_that_learned_makes_no_profiles(self, no_figures):
        release = with_status(seeded(setting("DPDiscreteTimeSurvival: raw columns")), "none")
        part = "What a scaler learned from the records."
        guarantee = replace(release.guarantee, not_covered=(part,))
        text = text_of(replace(release, guarantee=guarantee))
        assert part in text
        assert "The example profiles below" not in text

    def test_estimators_that_nobody_knows_and_releases_that_theirs_refuse(self):
        assert "does not know this estimator" in html_report(one_release())
        with pytest.raises(ValueError, match="max_time must be given"):
            html_report(one_release(estimator="DPWeibullFitter"))

    @pytest.mark.parametrize("kind", ["repeat", "refit"])
    def test_search(self, kind, no_figures):
        release = of(f"PrivateSearchCV: {kind}")
        text, inner = text_of(release), release.fit_guarantee
        assert f"It had epsilon = {exact(inner.epsilon)} of its own" in text
        assert f"epsilon on this page, {exact(release.guarantee.epsilon)}, is that of all" in text

    def test_search_without_a_guarantee(self, no_figures):
        """The fit within it has one, and that is not what is published."""
        release = of("PrivateSearchCV: repeat")
        void = replace(release, guarantee=replace(release.guarantee, status="none"))
        assert "status proved" in text_of(release)
        assert "status proved" not in text_of(void)

    def test_example_profiles_are_of_the_public_bounds_alone(self, no_figures):
        """Other records, other predictions, the same profiles."""
        data = outcomes()
        columns = PublicColumns(dict.fromkeys(("a", "b", "c"), (-0.5, 0.5)))
        seen = []
        for scale in (1.0, 0.1):
            y = np.empty(len(data.X), dtype=[("event", "?"), ("time", "f8")])
            y["event"], y["time"] = True, 1.0 + (data.X[:, 0] > 0)
            table = pd.DataFrame(scale * data.X, columns=["a", "b", "c"])
            model = DPDiscreteTimeSurvival(5.0, max_time=5.0, columns=columns, random_state=0)
            text = text_of(model.fit(table, y).release_)
            seen.append(re.search(r"Values of the person in the middle .*? What was", text))
        assert seen[0].group() == seen[1].group()

    def test_a_typical_person_is_the_one_that_columns_state(self, no_figures):
        typical = {"temperature": {"bounds": [30, 43], "typical": 37}}
        typical["stage"] = {"categories": ["I", "II", "III"], "typical": "II"}
        columns = PublicColumns({**typical, "opened": {"dates": ["2001-01-01", "2003-01-01"]}})
        table = pd.concat([columns.example()] * 200, ignore_index=True)
        y = np.arange(200) % 3 > 0, np.linspace(0.1, 5.0, 200)
        model = DPDiscreteTimeSurvival(50.0, max_time=5.0, columns=columns, random_state=0)
        page = text_of(model.fit(table, y).release_)
        assert "each value is the typical one by the description of its column" in page
        shown = re.search(r"Values of the typical person (.*?) What was", page).group(1)
        assert "temperature 37 stage II opened 2002-01-01" in shown
        said = " ".join(explain(model.release_).split())
        assert all(f"; typical is {cell}; a missing one" in said for cell in ("37", "II"))
        assert said.count("typical") == 2
        own = r"(37|II) \(typical\)|2002-01-01 \(middle of the bounds\)"
        assert re.search(rf"\w+: ({own})( \w+: \S+)? at 1 0\.\d", page)


def test_intervals_of_predictions(no_figures, monkeypatch):
    columns = PublicColumns({"a": (0.0, 2.0), "b": (0.0, 2.0)})
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(0.0, 2.0, (2000, 2)), columns=["a", "b"])
    y = rng.random(2000) < 0.7, rng.exponential(3.0 - table["a"]).clip(0.01)
    options = {"columns": columns, "inference_share": 0.3, "random_state": 0}
    release = DPDiscreteTimeSurvival(100.0, max_time=5.0, **options).fit(table, y).release_
    model = release.to_estimator()
    part = example_predictions(release, model)
    assert part["intervals"] == "shown"
    at_end = [one for one in part["numbers"] if one.quantity == "predicted survival at 5"]
    lower, upper = model.survival_band(pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": 1.0}))
    # By their risks.
    ends = sorted(zip(lower[:, -1], upper[:, -1], strict=True), reverse=True)
    assert [(one.low, one.high) for one in at_end] == ends
    nothing = np.zeros_like(lower), np.ones_like(upper)
    monkeypatch.setattr(type(model), "survival_band", lambda *_: nothing)
    assert "noise hides coefficients that they need" in text_of(release)
    assert "(0.000 to 1.000)" not in text_of(release)


class TestTableOne:
    def test_estimates_stand_above_both_intervals(self, no_figures):
        release = of("DPTableOne: raw columns by ward")
        model, text = release.to_estimator(), text_of(release)
        assert "Table 1, by ward" in text
        row = ("age years, mean (SD)", "")
        bare, *others = (
            model.to_frame(intervals=one).loc[row, "Overall"]
            for one in (None, "people", "population")
        )
        ends = [other.removeprefix(f"{bare} {{").removesuffix("}") for other in others]
        assert " ".join([bare, *ends]) in text
        # Medians follow, and labels of categories.
        assert text.index(row[0]) < text.index("age years, median [Q1,Q3]")
        assert all(f"ill, n (%): {label}" in text for label in ("True",))
        assert WORDS["table_one"]["smd"] in text
        assert WORDS["table_one"]["smd"] not in text_of(of("DPTableOne: raw columns, no privacy"))

    def test_noise_that_hides_most_is_said(self, no_figures):
        said = "Noise hides most of this table"
        release = of("DPTableOne: raw columns by ward")
        assert said not in text_of(of("DPTableOne: raw columns, no privacy"))
        model = release.to_estimator()
        assert (model._uncertainty(model.n_records_) > 0.15) == (said in text_of(release))
        assert model._uncertainty(300) > model._uncertainty(3000)

    def test_long_tables_are_cut(self, no_figures, monkeypatch):
        monkeypatch.setattr(table_one_page, "MOST_ROWS", 3)
        assert "more rows are in the release" in text_of(of("DPTableOne: raw columns by ward"))

    def test_in_words(self):
        assert "That makes" not in explain(of("DPTableOne: raw columns by ward"))
        grid = {"age": np.linspace(0.0, 5.0, 11).tolist(), "dose": [1.0, 2.0]}
        said = PrivacyGuarantee(1.0, public_inputs={"grid": grid}).describe()
        assert "grid = {age: [0, 0.5, 1, ..., 5] (11 values), dose: [1, 2]}" in said


class TestEvaluation:
    def test_measures_and_price(self):
        release = one_release(guarantee=PrivacyGuarantee(0.1))
        page = Page(html_report(release, evaluation=evaluation()))
        assert page.faults == []
        assert "C-index 0.7123 0.60 to 0.80" in page.text
        assert "guarantee of its own: epsilon = 0.2" in page.text
        # As decimals; doubles make 0.30000000000000004 of it.
        assert "both together promise epsilon = 0.3." in page.text

    @pytest.mark.parametrize("status", VOID)
    def test_one_without_a_promise(self, status):
        own = PrivacyGuarantee(0.2, status=status)
        text = text_of(one_release(), evaluation=evaluation(own))
        assert "both together promise epsilon" not in text
        assert "no more than the weaker" in text

    def test_other_units(self):
        own = PrivacyGuarantee(0.2, neighbours=PERSON)
        text = text_of(one_release(), evaluation=evaluation(own))
        assert "do not add them up" in text
        assert "both together promise epsilon" not in text
        with pytest.raises(TypeError, match="evaluation must be of private_survival_metrics"):
            html_report(one_release(), evaluation={"c_index": 0.9})


def test_files_are_whole_and_not_overwritten(tmp_path):
    path, release = tmp_path / "report.html", one_release(made_with="x" * 100_000)
    save_report(release, path, title="Ward 7")
    text = path.read_text(encoding="utf-8")
    assert text == html_report(release, title="Ward 7")
    assert "(100,000 characters)" in text  # which are cut
    with pytest.raises(FileExistsError):
        save_report(release, path)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_what_a_model_started_from(no_figures):
    release = seeded(setting("DPDiscreteTimeSurvival: prior"))
    said = "Releases that this one started from, the nearest first"
    (entry,) = release.guarantee.public_inputs["prior"]
    page = html_report(release)
    assert said in page
    assert entry["sha256"] in page
    for crafted in ([{"sha256": "<b>"}], "text"):
        inputs = dict(release.guarantee.public_inputs) | {"prior": crafted}
        guarantee = replace(release.guarantee, public_inputs=inputs)
        page = html_report(replace(release, guarantee=guarantee))
        assert "<b>" not in page
        assert said not in page or crafted != "text"


@pytest.mark.parametrize(
    ("epsilon", "level", "says"),
    [(0.5, "strong", "62.3"), (2.0, "moderate", "88.1"), (6.0, "weak", "99.8")],
)
def test_the_top_says_what_epsilon_limits_in_the_colour_of_that(epsilon, level, says):
    page = html_report(Release("Example", PrivacyGuarantee(epsilon), {}, {"mean": 0.5}, 0))
    assert f'<div class="status {level}">' in page
    top = page[page.index("<header>") : page.index("</header>")]
    assert re.search(rf"<strong>{level.capitalize()} limit: .*up to {says}\xa0% sure", top)
    assert "<strong>Proved" not in top
    assert "Proved. There is a proof" in top


def test_a_release_of_a_study_says_what_its_outcome_is():
    study = {"title": "<b>", "analysis": "r", "time": "weeks_alive", "unit": "weeks", "event": "v"}
    study |= {"event_is": ["<i>dead"], "other_events": ["moved"], "evaluated_by": ["e"]}
    release = replace(one_release(), study=study)
    again = Release.from_json(release.to_json())
    assert again == release
    assert again.study["event_is"] == ("<i>dead",)
    for text in (text_of(again), re.sub(r"\s+", " ", explain(again))):
        assert "The event is v = <i>dead; times are weeks_alive, in weeks." in text
        assert "(moved) counts as followed until then, as if censored" in text
    assert not {"<b>", "<i>"} & {*re.findall("<.>", html_report(again))}
    for crafted in ({}, {"time": 3, "event": 1, "event_is": 2}, {"time": "t", "unit": None}):
        html_report(replace(release, study=crafted))
    for wrong in ("text", {"time": {}}, {"event_is": [["a"]]}, {"time": 0.5}):
        with pytest.raises(TypeError, match="study of a release must be"):
            replace(release, study=wrong)
        text = json.dumps(json.loads(one_release().to_json()) | {"study": wrong})
        with pytest.raises(ValueError, match="a field of the wrong type"):
            Release.from_json(text)


class TestCurves:
    def test_tests_between_groups_and_numbers_at_risk(self):
        release = of("DPKaplanMeierFitter: groups")
        fitter = release.to_estimator()
        part = curves.curves(fitter)
        found = {(one.quantity, one.group): one for one in part["numbers"]}
        a, b = map(str, fitter.groups_[:2])
        test = logrank_test(*(fitter.of_group(label) for label in fitter.groups_[:2]))
        pair = f"{a} against {b}"
        assert found["p-value of the log-rank test", pair].estimate == test.p_value
        end = fitter.max_time
        mean = fitter.of_group(fitter.groups_[0]).restricted_mean_survival_time(n_resamples=500)
        assert found[f"mean up to {end:g}", a][2:] == tuple(mean)
        at_risk = fitter.of_group(fitter.groups_[0]).number_at_risk(end / 5)
        assert found[f"number at risk at {end / 5:g}", a].estimate == float(at_risk.iloc[0])
        events = float(fitter.of_group(fitter.groups_[0]).event_table["observed"].sum())
        assert found["number of events", a].estimate == events
        page = Page(html_report(release))
        assert page.faults == []
        assert "At risk (noisy)" in page.text
        assert "Number at risk (noisy)" not in page.text
        assert f"{pair} {'< 0.001' if test.p_value < 0.001 else f'{test.p_value:.3f}'}" in page.text

    @pytest.mark.parametrize(("by", "number"), [(None, 1), (["a", "b", "c"], 2)])
    def test_incidences_of_all_causes_or_of_each_by_group(self, by, number, monkeypatch):
        drawn = []
        monkeypatch.setattr(curves, "_draw_incidences", lambda *found, ax: drawn.append(found))
        monkeypatch.setattr(curves, "N_RESAMPLES", 10)
        rng = np.random.default_rng(0)
        y = pd.DataFrame({"event": rng.integers(0, 3, 600), "time": rng.uniform(0.1, 4.0, 600)})
        group = {} if by is None else {"group": rng.choice(by, 600)}
        model = DPAalenJohansenFitter(9.0, max_time=5.0, causes=[1, 2], censored=0, groups=by)
        part = curves.curves(model.fit(y=y, **group), "days")
        assert len(part["figures"]) == 1 + number
        assert [list(lines) for lines, *_ in drawn] == ([["1", "2"]] if by is None else [by, by])
        captions = [table.caption for table in part["tables"]]
        assert WORDS["captions"]["free"] in captions
        assert WORDS["captions"]["survival"] not in captions
        assert WORDS["captions"]["times"] not in captions
        found = {(one.quantity, one.group): one.estimate for one in part["numbers"]}
        whole = model if by is None else model.of_group("a")
        assert found["event-free median", "a" if by else "everybody"] == whole.percentile(0.5)
        for cause in (1, 2) if by else ():
            what, pair = f"p-value of the log-rank test of {cause}", map(model.of_group, "ac")
            assert found[what, "a against c"] == logrank_test(*pair, cause=cause).p_value
            overall = multivariate_logrank_test(model, cause=cause)
            assert found[what, "all groups"] == overall.p_value

    def test_numbers_at_risk_are_a_table_where_nothing_is_drawn(self, no_figures):
        assert "Number at risk (noisy)" in text_of(of("DPKaplanMeierFitter: groups"))


@checks.each(DRAWN)
def test_numbers_for_files_are_those_of_the_page(setting, no_figures):
    parts = results(proved(setting))
    frame = pd.DataFrame(all_of(parts, "numbers"), columns=ShownNumber._fields)
    assert not frame.duplicated(["quantity", "group"]).any()
    known = frame.dropna()
    assert (known.low <= known.high).all()
    if parts["coefficients"] is not None:
        release = proved(setting)
        model = release.to_estimator()
        assert len(frame.query("quantity.str.startswith('coefficient')")) == model.coef_.size
