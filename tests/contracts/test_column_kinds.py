"""Every kind of column works wherever columns do: those of ``KINDS``, and two of somebody's own.

A new kind is a class and a line of ``KINDS``. All that is asked of it here is asked by its methods.
"""

import json
import math
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdpsurv import DPDiscreteTimeSurvival, DPTableOne, PublicColumns, Release, forecast_accuracy
from skdpsurv.audit import measurement_audit
from skdpsurv.audit.neighbours import worst_neighbours
from skdpsurv.data.cells import numbers
from skdpsurv.data.column_kind import Bounded
from skdpsurv.data.column_kinds import KINDS
from skdpsurv.data.feature import Expression, Feature, same_features
from skdpsurv.data.interaction import Interaction
from skdpsurv.data.number_kinds import Power
from skdpsurv.data.specification_rules import items, require
from skdpsurv.dp.checks import is_real
from skdpsurv.dp.input_errors import InputValueError
from skdpsurv.evaluation.forecast_records import SimulatedTable, columns_within
from skdpsurv.pooling import pool_releases
from skdpsurv.report import explain, formula, units
from skdpsurv.report.coefficients import coefficients
from skdpsurv.report.profiles import example_predictions
from tests.cli.study import Study
from tests.data.test_described_columns import evaluated
from tests.support.checks import quietly

SCHEMA = Path(__file__).parents[2] / "docs/schemas/release-3.json"
#: No kind reads it.
WRONG = "no cell of any kind"
PLACES = (0.0, 0.25, 0.5, 0.8, 1.0)
N = 200
RNG = partial(np.random.default_rng, 0)


@dataclass(frozen=True)
class Knee(Bounded):
    """A number whose slope changes in the middle."""

    low: float
    middle: float
    high: float

    key, must_hold, such_as = "knee", "numbers", [40, 60, 80]
    cell, words, _values = float, str, staticmethod(numbers)

    @classmethod
    def _specified(cls, column, missing, stated, option):
        knee = items(column, cls.key, stated)
        rises = len(knee) == 3 and all(map(is_real, knee)) and knee == sorted(set(knee))
        require(rises, column, "have three rising numbers as knee")
        return cls(column, missing, *map(float, knee))

    @property
    def ends(self):
        return self.low, self.high

    def _specification(self):
        return {"knee": [self.low, self.middle, self.high]}

    def _parts(self):
        return (self.low, self.middle), (self.middle, self.high)

    def _encoded(self, values, missing):
        scaled = [(np.clip(values, a, b) - (a + b) / 2) / ((b - a) / 2) for a, b in self._parts()]
        return [np.where(missing, 0.0, one) for one in scaled]

    def _features(self, raw):
        found = []
        for name, (a, b) in zip(("early", "late"), self._parts(), strict=True):
            scaled = Expression(
                "scale", (Expression("clip", (raw,), (a, b)),), ((a + b) / 2, (b - a) / 2)
            )
            slope = {"column": self.column, "per_unit": 2.0 / (b - a)}
            made = self._filled(scaled, 0.0)
            found.append(Feature(f"{self.column}_{name}", made, -1.0, 1.0, **slope))
        return found


@dataclass(frozen=True)
class Magnitude(Bounded):
    """A positive number that acts by its logarithm: it has no slope per unit."""

    ends: tuple[float, float]

    key, must_hold, such_as = "magnitude", "numbers", [0.1, 50.0]
    cell, words, _values = float, str, staticmethod(numbers)

    @classmethod
    def _specified(cls, column, missing, stated, option):
        ends = items(column, cls.key, stated)
        rises = len(ends) == 2 and all(map(is_real, ends)) and 0.0 < ends[0] < ends[1]
        require(rises, column, "have two positive bounds, the lower one first")
        return cls(column, missing, tuple(map(float, ends)))

    def _scale_of_logs(self):
        low, high = np.log(self.ends).tolist()
        return (low + high) / 2, (high - low) / 2

    def _encoded(self, values, missing):
        centre, half_width = self._scale_of_logs()
        scaled = (np.log(np.clip(values, *self.ends)) - centre) / half_width
        return [np.where(missing, 0.0, np.clip(scaled, -1.0, 1.0))]

    def _features(self, raw):
        log = Expression("log", (Expression("clip", (raw,), self.ends),))
        made = self._filled(Expression("scale", (log,), self._scale_of_logs()), 0.0)
        return [Feature(self.column, made, -1.0, 1.0, self.column)]


OWN = {kind.key: kind for kind in (Knee, Magnitude)}


@pytest.fixture(params=[*KINDS, *OWN])
def key(request, monkeypatch):
    if request.param in OWN:
        monkeypatch.setitem(KINDS, request.param, OWN[request.param])
    return request.param


def columns_of(key, **stated):
    return PublicColumns({"x": {key: KINDS[key].such_as, **stated}, "other": (0, 1)})


def kind_of(key, **stated):
    return columns_of(key, **stated)._kinds()[0]


def told(key):
    """Return what may be stated of how a column varies."""
    kind = kind_of(key)
    if kind.bounded:
        return {"spread": 1.5}
    shares = np.linspace(1.0, 2.0, len(kind.labels))
    return {"prevalence": 0.3 if kind.condition else (shares / shares.sum()).round(2).tolist()}


def ways(key):
    """Return how missing cells of a kind may be treated."""
    return ["error", *["midpoint"] * KINDS[key].fillable, "category"]


def rows(kind, n=N):
    """Return rows with cells of a kind at many places, some missing where they may be."""
    rng = RNG()
    cells = pd.Series([kind.cell_at(place) for place in rng.random(n)], dtype=object)
    missing = (rng.random(n) < 0.1) & (kind.missing != "error")
    return pd.DataFrame({"x": cells.mask(missing, None), "other": rng.random(n)})


def survival(columns, X, epsilon=math.inf, **more):
    rng = np.random.default_rng(1)
    y = pd.DataFrame({"event": rng.random(len(X)) < 0.6, "time": rng.exponential(5, len(X))})
    options = {"max_time": 10.0, "n_intervals": 6, "random_state": 0, **more}
    return quietly(DPDiscreteTimeSurvival(epsilon, columns=columns, **options).fit, X, y)


# ---- Cells.


def test_it_reads_its_cells(key):
    kind = kind_of(key)
    cells = [kind.cell_at(place) for place in PLACES]
    values = kind.read(np.array(cells, dtype=object))
    assert len({*values.tolist()}) >= 2
    assert not kind.out_of_bounds(values)
    assert kind.cell_at(1e9) is not None  # what a cell far beyond is, is for the kind to say
    np.testing.assert_array_equal(kind.read(kind.cells(values)), values)
    assert [kind.cell(value) for value in values.tolist()] == cells
    if kind.labels:
        assert values.tolist() == [kind.labels.index(cell) for cell in cells]
    if kind.bounded:
        low, high = kind.ends
        assert (values[0], values[-1]) == (low, high)
        assert low < high


@pytest.mark.parametrize("wrong", [WRONG, math.inf, None, object()])
def test_it_refuses_others_by_name_and_quotes_none(key, wrong):
    kind = kind_of(key)
    cells = np.array([kind.example, wrong, kind.example], dtype=object)
    with pytest.raises(InputValueError, match="column 'x'") as refused:
        kind.read(cells)
    assert WRONG not in str(refused.value)
    assert "object at" not in str(refused.value)


def test_missing_cells_are_read_where_they_may_be(key):
    for missing in ways(key)[1:]:
        kind = kind_of(key, missing=missing)
        assert np.isnan(kind.read(np.array([None, kind.example], dtype=object))).tolist() == [1, 0]
    if not KINDS[key].fillable:
        with pytest.raises(ValueError, match=r"columns\['x'\] must have missing as one of"):
            kind_of(key, missing="midpoint")


# ---- Specifications.


def test_a_specification_is_checked_by_name(key):
    with pytest.raises((ValueError, TypeError), match=r"columns\['x'\] must"):
        PublicColumns({"x": {key: None}})._check()
    with pytest.raises(ValueError, match=r"columns\['x'\] must hold no other key than"):
        columns_of(key, depth=1)._check()
    with pytest.raises(TypeError, match=rf"must be .* a mapping that holds .*'{key}'"):
        PublicColumns({"x": 1})._check()


def test_a_typical_cell_is_the_example_and_one_that_it_cannot_hold_is_refused(key):
    for place in PLACES:
        cell = kind_of(key).cell_at(place)
        kind = kind_of(key, typical=cell)
        assert kind.example == cell
        assert type(kind.example) is type(kind_of(key).example)
    for wrong in (WRONG, None, math.nan):
        with pytest.raises(ValueError, match=r"columns\['x'\] must have a typical value"):
            kind_of(key, typical=wrong)


def test_its_description_makes_the_same_through_json_and_a_file(key, tmp_path):
    for missing in ways(key):
        stated = {"typical": kind_of(key).cell_at(0.8), **told(key)}
        columns = columns_of(key, missing=missing, **stated)
        again = PublicColumns(**json.loads(json.dumps(columns._described(), sort_keys=True)))
        assert again._kinds() == columns._kinds()
        assert same_features(again._features(), columns._features())
    described = json.dumps(KINDS[key].such_as)
    (tmp_path / "columns.toml").write_text(f"[columns]\nx = {{ {key} = {described} }}\n")
    (read,) = PublicColumns.from_toml(tmp_path / "columns.toml")._kinds()
    assert read == kind_of(key)


def unpublished():
    """Return what kinds state that the published schema of releases has not, and the reverse."""
    schema = json.loads(SCHEMA.read_text())["$defs"]["column"]
    common = {"name", "typical", "per", "missing", "spread", "prevalence", "over_time"}
    keys = {*KINDS, Interaction.key}
    stated = keys | {word for kind in KINDS.values() for word in kind.options}
    known = {word for one in schema["oneOf"] for word in one["required"]}
    return (schema["properties"].keys() - common) ^ stated | (known ^ keys)


def test_the_published_schema_has_it(key):
    assert unpublished() == ({key} if key in OWN else set())


# ---- Features.


def range_of(kind, feature):
    """Return the values between which a feature moves."""
    step = feature.expression
    while step.of:
        if step.kind == "clip":
            return step.numbers
        step = step.of[0]
    return 0.0, float(len(kind.labels) - 1)


def test_its_features_are_their_formulas_within_their_range(key):
    for missing in ways(key):
        columns = columns_of(key, missing=missing)
        X, features = rows(columns._kinds()[0]), columns._features()
        Z = columns.transform(X)
        assert list(columns.get_feature_names_out()) == [one.name for one in features]
        records = X.astype(object).where(X.notna(), None).to_dict("records")
        table = [[evaluated(one.expression, record) for one in features] for record in records]
        np.testing.assert_allclose(Z, table, rtol=0.0, atol=4e-15)
        for j, feature in enumerate(features):
            assert feature.low <= Z[:, j].min() < Z[:, j].max() <= feature.high
    far = pd.DataFrame({"x": [kind_of(key).cell_at(1e9)], "other": [0.5]}, dtype=object)
    assert np.abs(columns_of(key).transform(far)).max() <= 1.0


def test_a_feature_moves_by_what_it_says_for_one_unit(key):
    kind = kind_of(key)
    for j, feature in enumerate(kind.features()):
        assert feature.column == "x"
        if feature.per_unit is None:
            continue
        ends = np.array(range_of(kind, feature), dtype=float)
        if feature.level is not None:  # between its label and the reference
            labels = [kind.reference if kind.reference is not None else False, feature.level]
            ends = np.array([float(kind.labels.index(label)) for label in labels])
        moved = np.diff(np.column_stack(kind.encode(ends)), axis=0)[0, j]
        width = 1.0 if feature.level is not None else ends[1] - ends[0]
        if feature.is_log:
            width = np.log2(ends[1] + kind.offset) - np.log2(ends[0] + kind.offset)
        if isinstance(kind, Power):
            width = ends[1] ** kind.exponent - ends[0] ** kind.exponent
        assert moved == pytest.approx(feature.per_unit * width, rel=1e-12)


# ---- Releases, and what is made of them.


@pytest.fixture
def model(key):
    return fitted(key)


@cache
def fitted(key):
    columns = columns_of(key)
    return survival(columns, rows(columns._kinds()[0]))


def test_a_release_predicts_alone_and_is_explained(model):
    X = rows(model.columns._kinds()[0], 5)
    again = Release.from_json(model.release_.to_json()).to_estimator()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert "x" in explain(model.release_)
    for feature in model.release_.features:
        assert feature.column in formula(model.release_)


def test_coefficients_have_units(key, model):
    features = model.release_.features
    if key == "spline":  # which has none, and an effect of its own
        assert units(model.release_).index.get_level_values("column").tolist() == ["other"]
        return
    if any(one.per_unit is None for one in features):
        with pytest.raises(ValueError, match=r"multiple of one column.* these are none: 'x"):
            units(model.release_)
        return
    table = units(model.release_)
    slopes = np.array([one.per_unit for one in features])
    np.testing.assert_allclose(table["coef"], model.coef_ * slopes, rtol=1e-12)
    assert table.index.is_unique
    assert table.index.get_level_values("column").tolist() == [one.column for one in features]
    (shown,) = coefficients(model.release_, model)["tables"]
    assert ("doubling of x" in [row[1] for row in shown.rows]) == (key == "log")
    if key == Knee.key:
        assert table.loc["x"].index.tolist() == ["40 to 60", "60 to 80"]


def test_slopes_that_do_not_follow_one_another_have_no_units(monkeypatch):
    """Two features of one column that move together are no slopes by themselves."""
    monkeypatch.setitem(KINDS, Knee.key, Knee)
    monkeypatch.setattr(Knee, "_parts", lambda self: ((self.low, self.high),) * 2)
    columns = columns_of(Knee.key)
    model = survival(columns, rows(columns._kinds()[0]))
    with pytest.raises(ValueError, match="one feature of each column; x has several"):
        units(model.release_)


def test_an_example_profile_has_other_cells_of_its_own(model):
    kind = model.columns._kinds()[0]
    others = kind.others()
    assert others
    assert kind.example not in others
    assert not np.isnan(kind.read(np.array([kind.example, *others], dtype=object))).any()
    found = example_predictions(model.release_, model)
    assert "refused" not in found
    assert found["column"] in ("x", "other")


def test_evidence_of_it_is_a_prior_for_the_same_columns(key, model):
    X = rows(model.columns._kinds()[0])
    again = survival(columns_of(key), X, prior=survival(model.columns, X, 5.0).release_)
    assert np.isfinite(again.coef_).all()


@pytest.mark.slow
def test_accuracy_is_forecast_by_cells_that_it_reads(key):
    for missing in ways(key):
        described = columns_of(key, missing=missing)
        kind = described._kinds()[0]
        X, _ = SimulatedTable(columns_within(described), ["x", "other"], RNG()).rows(N, RNG())
        values = kind.read(X["x"])
        assert not kind.out_of_bounds(values[~np.isnan(values)])
        assert len({*values[~np.isnan(values)].tolist()}) >= 2
        assert np.isnan(values).any() == (missing != "error")
    planned = DPDiscreteTimeSurvival(max_time=10.0, n_intervals=4, columns=described)
    fewest = {"n_records": 200, "n_repeats": 2, "epsilons": [1.0], "random_state": 0}
    found = quietly(forecast_accuracy, planned, **fewest)
    assert np.isfinite(found.table.to_numpy(dtype=float)).any()


# ---- Table 1, its audit, and commands.


def table_one(columns, X, **more):
    options = {"grid": 8, "random_state": 0, **more}
    return quietly(DPTableOne(1.0, columns=columns, **options).fit, X)


def test_table_one_counts_it(key):
    for missing in ways(key):
        columns = columns_of(key, missing=missing)
        kind = columns._kinds()[0]
        one = table_one(columns, rows(kind))
        again = Release.from_json(one.release_.to_json()).to_estimator()
        pd.testing.assert_frame_equal(again.table_, one.table_)
        levels = {level for level, _ in one.table_.loc["x"].index.droplevel("part").unique()}
        assert levels - {""} == {*map(str, kind.labels)}
        assert {str(name).partition(",")[0] for name, _ in one.to_frame().index} >= {"x"}
        assert one.expected_table(N).index.equals(one.table_.index)
        other = table_one(columns_of(key, missing=missing, **told(key)), rows(kind), random_state=1)
        pooled = pool_releases([one.release_, other.release_]).to_estimator()
        assert pooled.table_.index.equals(one.table_.index)


def test_labels_make_groups_and_what_has_none_is_refused_by_name(key):
    columns = columns_of(key)
    kind = columns._kinds()[0]
    if kind.labels:
        assert table_one(columns, rows(kind), by="x").groups_ == list(kind.labels)
    else:
        with pytest.raises(ValueError, match=r"by must be a category or a boolean .* got 'x'"):
            DPTableOne(1.0, columns=columns, by="x").fit(rows(kind))


def test_worst_neighbours_are_cells_that_it_reads(key):
    columns = columns_of(key, missing="category")
    grouped = [{"by": "x"}, {"by": "x", "by_is_public": True}] * bool(kind_of(key).labels)
    for options in ({}, *grouped):
        table = DPTableOne(1.0, columns=columns, grid=4, **options)
        pairs = list(worst_neighbours(table, n=1))
        assert len(pairs) >= 4
        for pair in pairs:
            result = measurement_audit(table, pair.data, pair.neighbour)
            assert result.passed, result


def test_a_command_reads_it_from_a_file(key, tmp_path):
    columns = columns_of(key, missing="category")
    frame = rows(columns._kinds()[0])
    study = Study(tmp_path, frame)
    described = json.dumps(KINDS[key].such_as)
    text = f'x = {{ {key} = {described}, missing = "category" }}\nother = [0, 1]\n'
    (tmp_path / "columns.toml").write_text(f"[columns]\n{text}")
    more = ("--schema", "@columns.toml", "--epsilon", "1", "--out", "@table.json")
    study.run("table", "@study.csv", *more, "--seed", "3", "--set", "grid=8", code=0)
    same = table_one(columns, frame, random_state=3)
    assert study.release("table") == same.release_
