"""Forecasts of a study, the advice that follows, shares that make the worst part best, the page."""

import dataclasses
import math
import re

import numpy as np
import pytest

from skdpsurv.data import PublicColumns
from skdpsurv.evaluation import forecast_studies
from skdpsurv.study import Analysis, StudyPlan
from skdpsurv.study.advice import Balance
from skdpsurv.study.study_forecast import Expected, Scenario, _interval
from tests.study.studies import protocol

ONCE = Scenario(n_repeats=1)
EVERY_KIND = (
    Analysis("table", "table", options={"by": "treated"}),
    Analysis("curves", "curves", options={"by": "treated"}),
    Analysis("competing", "causes"),
    Analysis("weibull", "weibull"),
    Analysis("regression", "regression", 2.0, {"intervals": 0.2, "cause": "died"}),
    Analysis("classifier", "classifier", options={"target": "treated"}),
    Analysis("evaluation", "evaluation", options={"of": "regression"}),
)


def every_kind(**changes):
    columns = PublicColumns({"age": (30, 95), "treated": bool, "stage": ["I", "II", "III"]})
    labels = {"event_is": ("died", "moved"), "censored_is": ("alive",)}
    return protocol(columns=columns, analyses=EVERY_KIND, **labels, **changes)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Simulate few fits behind an interval of a Weibull curve."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecast_studies, "N_RESAMPLES", 40)
        yield


@pytest.fixture(scope="module")
def plan():
    return StudyPlan.of(every_kind(), 1000)


class TestForecast:
    @pytest.mark.slow
    def test_each_analysis_has_its_errors(self, plan):
        found = plan.forecast(ONCE)
        analyses = [one.name for one in EVERY_KIND]
        assert list(dict.fromkeys(found.index.get_level_values("analysis"))) == analyses
        errors = found[found["times"].notna()]
        assert (errors["in this study"] > 0.0).all()
        widths = [name for name in errors.index if "width" in name[1]]
        assert (errors.loc[widths, "times"] > 1.0).all()

    def test_it_is_the_same_again_and_made_once(self, plan):
        assert plan.outlook(ONCE) is plan.outlook(Scenario(n_repeats=1))
        only = protocol(analyses=(Analysis("weibull", "weibull"),), evaluation_share=0.0)
        first, again = (StudyPlan.of(only, 400).outlook(ONCE) for _ in range(2))
        assert first["weibull"] == again["weibull"]

    @pytest.mark.slow
    def test_it_says_how_sure_it_is(self):
        only = (Analysis("curves", "curves", options={"by": "stage"}),)
        plan = StudyPlan.of(protocol(analyses=only, evaluation_share=0.0), 900)
        few, many = (plan.forecast(Scenario(n_repeats=n)).iloc[0] for n in (3, 12))
        for found in (few, many):
            assert found["from"] < found["in this study"] < found["to"]
        assert many["to"] - many["from"] < few["to"] - few["from"]
        alone = plan.forecast(ONCE)
        assert alone[["from", "to"]].isna().all(axis=None)
        assert "ask for more repeats" in ONCE.words
        assert "interval of about 95 %" in Scenario().words
        low, high = f"{few['from']:.3f}", f"{few['to']:.3f}"
        assert f"{low}\xa0to\xa0{high}" in plan.page(Scenario(n_repeats=3))

    def test_an_interval_of_a_mean_and_of_a_median(self):
        values = np.array([0.2, 0.4, 0.3, np.nan])
        half = 4.302653 * 0.1 / math.sqrt(3.0)
        assert _interval(values, False) == pytest.approx((0.3 - half, 0.3 + half))
        # 1 - 2 (1 + 12 + 66) / 2**12 of the medians are within the third ends of twelve.
        assert _interval(np.arange(12.0), True) == (2.0, 9.0)
        assert _interval(np.array([3.0, np.inf]), True) == (3.0, np.inf)

    def test_groups_of_unequal_size(self):
        analyses = (
            Analysis("table", "table", options={"by": "treated"}),
            Analysis("curves", "curves", options={"by": "treated"}),
        )
        columns = PublicColumns({"age": (30, 95), "treated": bool})
        study = protocol(columns=columns, analyses=analyses, evaluation_share=0.0)
        plan, equal = StudyPlan.of(study, 900), Scenario(n_repeats=2)
        unequal = Scenario(n_repeats=2, shares={"treated": [3, 1]})
        for name in ("table", "curves"):
            same = plan.outlook(equal)[name][0]
            some = plan.outlook(unequal)[name]
            first, *_, last = [one for one in some if one.what.startswith(same.what)]
            assert first.what == f"{same.what}, in the smallest group"
            assert first.private > 1.2 * same.private > 1.2 * last.private
        assert " treated divides as 3 : 1." in unequal.words
        for wrong in ([3], [3, 1, 1], [3, -1], 3):
            with pytest.raises((TypeError, ValueError), match="shares of treated must be"):
                plan.outlook(Scenario(shares={"treated": wrong}))
        with pytest.raises(ValueError, match="shares of age must be one for each of its labels"):
            plan.outlook(Scenario(shares={"age": [1, 1]}))

    def test_only_events_of_a_cause_count(self, plan):
        cause, classes = plan.parts["regression"], plan.parts["classifier"]
        own = Scenario(0.3, 0.5, shares={"died": [1, 2]})._of_event(cause, plan.protocol)
        assert own.event_rate == pytest.approx(0.1)
        # Of 90 % without it, 20 % had the other event and half of 70 % were lost.
        assert own.censoring == pytest.approx((0.2 + 0.35) / 0.9)
        assert ONCE._of_event(plan.parts["evaluation"], plan.protocol).event_rate == 0.15
        assert ONCE._of_event(classes, plan.protocol) is ONCE

    def test_more_people_are_better(self):
        only = (Analysis("curves", "curves", options={"by": "stage"}),)
        study = protocol(analyses=only, evaluation_share=0.0, epsilon=0.3)
        few, many = (
            StudyPlan.of(study, n).outlook(ONCE)["curves"][0].private for n in (400, 40_000)
        )
        assert many < 0.3 * few

    def test_people_who_cannot_be_are_refused(self):
        for wrong in ({"concordance": 0.2}, {"event_rate": 0.0}, {"baseline": "steep"}):
            with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
                Scenario(**wrong)
        only = (Analysis("regression", "risk", options={"columns": ["stage"]}),)
        study = protocol(analyses=only, evaluation_share=0.0)
        with pytest.raises(ValueError, match=r"analysis 'risk': concordance must be at most 0\."):
            StudyPlan.of(study, 400).outlook(Scenario(n_repeats=1, concordance=0.99))


def outlook(plan, **found):
    """Return forecasts of fits with given ratios and powers."""
    known = {name: [Expected("error", 1.0, r, power=p)] for name, (r, p) in found.items()}
    return {name: known.get(name, []) for name in plan.parts}


class TestShares:
    def test_errors_get_equal_and_the_largest_smaller(self):
        plan = StudyPlan.of(protocol(), 4000)
        forecast = outlook(plan, curves=(3.0, 1.0), weibull=(1.5, 1.0), regression=(2.0, 1.0))
        balance = Balance.of(plan.parts, forecast)
        assert balance.before == 3.0
        changed = dataclasses.replace(
            plan.protocol,
            analyses=tuple(
                dataclasses.replace(a, share=balance.shares[a.name]) for a in plan.protocol.analyses
            ),
        )
        after = StudyPlan.of(changed, 4000)
        for name in ("curves", "weibull", "regression"):
            factor = plan.parts[name].spend.epsilon / after.parts[name].spend.epsilon
            then = 1.0 + (forecast[name][0].ratio - 1.0) * factor
            assert then == pytest.approx(balance.after, rel=0.02)
        assert balance.after < 2.2

    def test_what_epsilon_hardly_changes_keeps_its_share(self):
        plan = StudyPlan.of(protocol(), 4000)
        forecast = outlook(plan, curves=(9.0, 0.1), weibull=(1.5, 1.0), regression=(3.0, 1.0))
        balance = Balance.of(plan.parts, forecast)
        assert balance.shares["curves"] == 1.0
        assert balance.shares["weibull"] < 1.0 < 2.0 < balance.shares["regression"]
        assert balance.shares["weibull"] + balance.shares["regression"] == pytest.approx(3.0)
        assert balance.shares["evaluation"] == 1.0

    def test_no_share_changes_by_more_than_is_known(self):
        plan = StudyPlan.of(protocol(), 4000)
        forecast = outlook(plan, curves=(1.0, 2.0), weibull=(90.0, 2.0), regression=(1.0, 2.0))
        shares = Balance.of(plan.parts, forecast).shares
        assert (shares["curves"], shares["regression"]) == (0.25, 0.5)
        assert shares["weibull"] <= 4.0

    def test_one_fit_has_nothing_to_share(self):
        only = (Analysis("curves", "curves"),)
        plan = StudyPlan.of(protocol(analyses=only, evaluation_share=0.0), 400)
        assert plan.best_shares(ONCE) == {"curves": 1.0}


class TestAdvice:
    @pytest.mark.slow
    def test_intervals_that_cannot_be_had(self):
        columns = {f"x{place}": (0, 1) for place in range(31)}
        study = protocol(
            columns=PublicColumns(columns),
            analyses=(Analysis("regression", "risk", options={"intervals": 0.2}),),
            evaluation_share=0.0,
            epsilon=1.0,
            ledger="registry.sqlite",
        )
        found = " ".join(StudyPlan.of(study, 1000).advice(ONCE))
        assert "risk: of 31 coefficients none will have a finite interval at epsilon 1" in found
        assert "; of 3 coefficients all would." in found
        assert "further than a factor of 2" in found
        assert "x0 (0.25 to 0.75): without end; x1 (" in found
        assert "With delta=1e-06" in found
        assert re.search(r"By simulation: .*C-index 0\.\d+ in place of 0\.\d+", found)
        assert "No ledger" not in found
        few = dataclasses.replace(study, columns=PublicColumns({"x": (0, 1), "z": (0, 1)}))
        plan = StudyPlan.of(few, 40_000)
        assert "interval" not in " ".join(plan.advice(ONCE))
        terms = plan.forecast(ONCE).filter(like="factor of the interval", axis=0)
        assert [what for _, what in terms.index] == [
            f"factor of the interval of {name} (0.25 to 0.75)" for name in ("x", "z")
        ]
        assert (terms["half epsilon"] > terms["in this study"]).all()
        assert (terms["in this study"] > terms["twice epsilon"]).all()
        assert (terms["twice epsilon"] > terms["without privacy"]).all()
        assert "factor of the interval of x (0.25 to 0.75)" in plan.page(ONCE)

    @pytest.mark.slow
    def test_strata_are_no_term(self):
        columns = {"site": ["A", "B"], "x": (0, 1), "z": bool}
        options = {"intervals": 0.3, "strata": "site"}
        study = protocol(
            columns=PublicColumns(columns),
            analyses=(Analysis("regression", "risk", options=options),),
            evaluation_share=0.0,
        )
        found = StudyPlan.of(study, 20_000).forecast(ONCE)
        terms = [what for _, what in found.index if what.startswith("factor of the interval")]
        assert [what.split()[5] for what in terms] == ["x", "z"]

    def test_a_midpoint_that_is_not_typical(self):
        stated = {"bounds": [80, 600], "missing": "midpoint"}
        columns = {"LDH": {**stated, "typical": 200}, "y": {**stated, "typical": 320}, "z": stated}
        dates = {"dates": ["2001-01-01", "2011-01-01"], "missing": "midpoint"}
        columns |= {"seen": {**dates, "typical": "2002-01-01"}}
        only = {"analyses": (Analysis("weibull", "weibull"),), "evaluation_share": 0.0}
        found = StudyPlan.of(protocol(columns=PublicColumns(columns), **only), 400).advice(ONCE)
        far = [text for text in found if "a missing one counts as" in text]
        assert [text.partition(":")[0] for text in far] == ["LDH", "seen"]
        assert "counts as 340" in far[0]
        assert "2002-01-01 is typical" in far[1]

    def test_other_shares_are_said_where_the_worst_gains(self):
        plan = StudyPlan.of(protocol(), 4000)
        for worst in (1.5, 3.0):
            forecast = outlook(plan, curves=(worst, 1.0), weibull=(1.5, 1.0), regression=(1.5, 1.0))
            plan._outlooks[ONCE] = forecast
            shares = plan.best_shares(ONCE)
            stated = ", ".join(f"{name} {share:g}" for name, share in shares.items())
            assert any(stated in text for text in plan.advice(ONCE)) == (worst > 2.0)

    def test_no_ledger_is_said(self, plan):
        assert any(text.startswith("No ledger is stated") for text in plan.advice(ONCE))

    def test_an_epsilon_or_a_delta_that_is_too_large(self):
        only = {"analyses": (Analysis("curves", "curves"),), "evaluation_share": 0.0}
        found = StudyPlan.of(protocol(epsilon=20.0, delta=1e-3, **only), 400).advice(ONCE)
        assert found[0].startswith("epsilon=20 is hardly a limit")
        assert found[1].startswith("delta=0.001 is not used")

    def test_what_a_delta_would_gain(self, plan):
        assert plan.gain_of_delta() == ""
        columns = PublicColumns({f"x{place}": (0, 1) for place in range(31)})
        only = (Analysis("regression", "risk"),)
        study = protocol(columns=columns, analyses=only, evaluation_share=0.0, epsilon=1.0)
        found = StudyPlan.of(study, 3000).gain_of_delta()
        assert re.match(r"risk: With delta=1e-07, .* would be 0\.\d\d of what it is", found)
        assert StudyPlan.of(dataclasses.replace(study, delta=1e-7), 3000).gain_of_delta() == ""


class TestPage:
    def test_it_says_what_will_be_charged_and_has_the_hash(self, plan):
        page = plan.page()
        assert page == plan.page()
        for text in (plan.protocol.sha256, "A. Curie", "protocol 7", "Epsilon = 6", "Signature"):
            assert text in page
        for part in plan.parts.values():
            assert f"<td><bdi>{part.spend.epsilon:g}</bdi></td>" in page
        assert "700 (training)" in page
        assert "What it will get" not in page

    def test_with_a_forecast(self, plan):
        page = plan.page(ONCE)
        assert "mean error of a predicted risk" in page
        assert ONCE.words in page
        assert plan.page(ONCE) == page

    def test_it_escapes_and_loads_nothing(self):
        page = StudyPlan.of(protocol(title="<script>alert(1)</script>"), 400).page()
        assert "<script>" not in page
        assert not re.search(r"(src|href)=|url\(|@import", page)


def test_numbers_of_a_plan_are_finite(plan):
    for expected in plan.outlook(ONCE).values():
        shown = [one for one in expected if not one.is_hidden]
        assert all(math.isfinite(x) for one in shown for x in (one.without, one.private))
    assert np.isfinite(list(plan.best_shares(ONCE).values())).all()
