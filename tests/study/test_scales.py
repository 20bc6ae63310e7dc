"""A regression whose columns a table of the same study scales: planned before it is drawn."""

from dataclasses import replace

import numpy as np
import pytest

from skdpsurv import PublicColumns, Release
from skdpsurv.descriptive.released_moments import moments_of
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.evaluation.forecast_studies import _scaled
from skdpsurv.priors import PlannedScales
from skdpsurv.study import Analysis, StudyPlan
from skdpsurv.study.folder import Folder
from skdpsurv.study.run import _Run
from skdpsurv.study.study_forecast import Scenario
from skdpsurv.survival.hazards.life_table import LifeTable
from skdpsurv.survival.hazards.spreads import RowMean

from .studies import COLUMNS, protocol, records
from .test_run import Place
from .witness import KilledError, replaced

TABLE = Analysis("table", "table", options={"by": "stage"})
REGRESSION = Analysis("regression", "regression", 2.0)
EVALUATION = Analysis("evaluation", "evaluation", options={"of": "regression"})
BOTH = {"analyses": (REGRESSION, TABLE), "evaluation_share": 0.0}
FRAME = records(400)


def plan(*analyses, **changes):
    changes = {"evaluation_share": 0.0, "analyses": analyses, **changes}
    return StudyPlan.of(protocol(**changes), 400)


def kinds(found):
    return {type(leaf) for leaf in found.parts["regression"].plan.leaves}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, **BOTH)


class TestPlan:
    def test_the_mean_of_rows_is_not_asked(self):
        found = plan(REGRESSION, TABLE)
        assert RowMean not in kinds(found)
        assert LifeTable in kinds(found)
        assert RowMean in kinds(plan(REGRESSION))

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_the_promise_is_that_of_the_table_and_counts_once(self, delta):
        found = plan(REGRESSION, TABLE, delta=delta)
        own, table = (found.parts[name].guarantee for name in ("regression", "table"))
        ((entry),) = own.public_inputs["scales"]
        assert (entry["analysis"], entry["epsilon"]) == ("table", table.epsilon)
        assert (entry["delta"], entry["status"]) == (table.delta, "proved")
        assert own.epsilon + table.epsilon <= 6.0 or delta
        assert found.guarantee().epsilon == 6.0
        (said,) = [text for text in found.guarantee().assumptions if "same study" in text]
        assert said in found.page()
        assert said in own.assumptions

    def test_a_gaussian_table_is_promised_as_it_is(self):
        columns = {f"c{i}": ["a", "b"] for i in range(60)} | COLUMNS
        own = replace(REGRESSION, options={"columns": ["age"]})
        found = plan(own, TABLE, delta=1e-6, columns=PublicColumns(columns))
        table = found.parts["table"].guarantee
        assert table.delta > 0.0
        assert found.parts["regression"].scales.guarantee == table

    @pytest.mark.parametrize(
        ("table", "regression"),
        [({"columns": ["age"]}, {}), ({}, {"scales": False}), ({}, {"data_norm": 1.0})],
    )
    def test_elsewhere_nothing_changes(self, table, regression):
        own = replace(REGRESSION, options=regression)
        found = plan(own, replace(TABLE, options=table))
        assert RowMean in kinds(found)
        assert "scales" not in found.parts["regression"].guarantee.public_inputs

    def test_nothing_is_taken_where_the_schema_states_all_or_a_logarithm(self):
        age = {"bounds": [30, 95], "missing": "midpoint"}
        stage = {"categories": ["I", "II", "III"], "prevalence": [0.4, 0.3, 0.3]}
        stated = {"age": age | {"spread": 9, "typical": 62}, "stage": stage}
        logged = {**COLUMNS, "age": {"log": [30, 95], "missing": "midpoint"}}
        for columns in (stated, logged):
            found = plan(REGRESSION, TABLE, columns=PublicColumns(columns))
            assert found.parts["regression"].scales is None

    def test_the_option_is_true_or_false(self):
        with pytest.raises(TypeError, match="scales must be True or False"):
            plan(replace(REGRESSION, options={"scales": "table"}))


class TestForecast:
    def test_a_simulated_regression_is_scaled_by_a_table_of_its_people(self):
        part = plan(REGRESSION, TABLE).parts["regression"]
        table = TABLE.estimator(protocol(), Spend(1e6))
        columns = part.estimator.columns._names()
        rows = FRAME[list(columns)].dropna().reset_index(drop=True)
        found = _scaled(part.estimator, table, rows, np.random.default_rng(1)).scales
        assert found.guarantee == part.scales.guarantee
        moments = {one.name: said for one, said in moments_of(found.release._model)}
        units = (rows["age"] - 62.5) / 32.5  # between bounds of 30 and 95
        assert moments["age"][:2] == pytest.approx((units.mean(), units.var()), abs=0.003)

    @pytest.mark.slow
    def test_intervals_end_where_those_of_a_run_do(self):
        columns = PublicColumns({f"x{i}": bool if i % 3 == 2 else (0, 100) for i in range(7)})
        own = replace(REGRESSION, share=3.0, options={"intervals": 0.3})
        about = {"columns": columns, "epsilon": 1.6, "evaluation_share": 0.0}
        shown = []
        for scales in (True, False):
            each = replace(own, options={**own.options, "scales": scales})
            found = StudyPlan.of(
                protocol(analyses=(replace(TABLE, options={}), each), **about), 4000
            )
            shown.append(found.forecast(Scenario(event_rate=0.25, n_repeats=2)))
        name = ("regression", "share of coefficients with an interval")
        assert [one.loc[name, "in this study"] for one in shown] == pytest.approx([1, 1], abs=0.1)
        name = ("regression", "relative width of intervals of coefficients")
        scaled, unscaled = (one.loc[name, "in this study"] for one in shown)
        assert scaled < 1.1 * unscaled


class TestRun:
    def test_the_guarantee_is_that_of_the_plan_and_the_table_says_the_scales(self, place):
        assert place.run(FRAME) == []
        assert [name for name, _ in place.shown] == ["table", "regression"]
        found = Release.load(Folder(place.out).file_of("regression"))
        planned = StudyPlan.of(place.protocol, 400).parts["regression"]
        assert found.guarantee.to_dict() == planned.guarantee.to_dict()
        table = Release.load(Folder(place.out).file_of("table"))._model
        said = [mean for _, (mean, _, _) in moments_of(table)]
        np.testing.assert_allclose(found.values["row_center"], said)
        assert place.check() == []
        assert place.ledger.spent() == 6.0

    @pytest.mark.slow
    def test_an_evaluation_comes_last(self, tmp_path):
        place = Place(tmp_path, analyses=(EVALUATION, REGRESSION, TABLE))
        assert place.run(FRAME) == []
        assert [name for name, _ in place.shown] == ["table", "regression", "evaluation"]
        assert place.check() == []

    def test_a_study_that_goes_on_reads_the_released_table(self, place):
        def killed(real):
            def run(self, name, *args):
                if name == "regression":
                    raise KilledError
                return real(self, name, *args)

            return run

        with replaced(_Run, "_run", killed), pytest.raises(KilledError):
            place.run(FRAME)
        file = Folder(place.out).file_of("table")
        before = file.read_bytes()
        assert place.run(FRAME) == []
        assert file.read_bytes() == before
        assert place.check() == []

    def test_without_its_table_it_does_not_run(self, place):
        def killed(real):
            def save(self, name, *args):
                if name == "table":
                    raise KilledError
                return real(self, name, *args)

            return save

        with replaced(Folder, "save", killed), pytest.raises(KilledError):
            place.run(FRAME)
        assert place.run(FRAME) == ["regression", "table"]
        assert place.lines()[-1] == "lost table"
        assert place.ledger.spent() == 6.0

    def test_a_planted_table_is_refused(self, place, tmp_path):
        (tmp_path / "other").mkdir()
        other = Place(tmp_path / "other", **BOTH)
        other.run(records(400, seed=5))

        def planted(real):
            def run(self, name, *args):
                if name == "table":
                    real(self, name, *args)
                    stolen = Folder(other.out).file_of("table").read_bytes()
                    Folder(place.out).file_of("table").write_bytes(stolen)
                return None if name == "table" else real(self, name, *args)

            return run

        with replaced(_Run, "_run", planted), pytest.raises(ValueError, match="not the file"):
            place.run(FRAME)
        assert "released regression" not in place.lines()

    def test_only_the_planned_table_is_taken(self, place):
        place.run(FRAME)
        table = Release.load(Folder(place.out).file_of("table"))
        scales = PlannedScales("table", table.guarantee)
        assert scales.after(table).release is table
        others = replace(table.guarantee, epsilon=0.5)
        with pytest.raises(ValueError, match="table is not the table that was planned"):
            replace(scales, guarantee=others).after(table)


@pytest.mark.slow
def test_a_regression_with_strata_promises_what_was_planned(tmp_path):
    by_stage = {"strata": "stage"}
    place = Place(
        tmp_path,
        analyses=(TABLE, replace(REGRESSION, options=by_stage), EVALUATION),
        evaluation_share=0.3,
    )
    assert place.run(FRAME) == []
    found = Release.load(Folder(place.out).file_of("regression"))
    assert found.feature_names == ["age"]
    assert found.values["baseline_coef"].shape == (3, 3)
    assert place.check() == []
