"""Columns that act by a power or a natural spline, and products of two columns."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from patsy import dmatrix

from skdpsurv import PublicColumns
from skdpsurv.data.feature import same_features
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.data.natural_spline import curve, natural_basis
from tests.data.test_described_columns import evaluated

KNOTS = {2: (0.0,), 3: (-0.5, 0.7), 4: (-0.6, 0.0, 0.9), 5: (-0.98, -0.96, 0.2, 0.9)}
U = np.linspace(-1.0, 1.0, 20_001)


def spline(low=15.0, high=60.0, **stated):
    return PublicColumns({"age": {"spline": (low, high), **stated}})


class TestSpline:
    @pytest.mark.parametrize("df", KNOTS)
    def test_the_basis_spans_the_natural_splines_of_patsy(self, df):
        """Least squares of each basis by the other leave nothing, so that fits are the same."""
        inner = KNOTS[df]
        ours = np.column_stack([np.ones(U.size), *(curve(one, U) for one in natural_basis(inner))])
        inside = ", ".join(map(str, inner))
        theirs = np.asarray(
            dmatrix(f"cr(u, knots=[{inside}], lower_bound=-1, upper_bound=1) - 1", {"u": U})
        )
        assert theirs.shape == ours.shape == (U.size, df + 1)
        for a, b in ((ours, theirs), (theirs, ours)):
            found = np.linalg.lstsq(a, b, rcond=None)[0]
            np.testing.assert_allclose(a @ found, b, atol=1e-9)

    @pytest.mark.parametrize("df", KNOTS)
    def test_the_basis_is_well_conditioned_and_within_one(self, df):
        curves = np.array([curve(one, U) for one in natural_basis(KNOTS[df])])
        sizes = np.abs(curves).max(axis=1)
        assert (sizes <= 1.0 + 1e-12).all()
        assert (sizes > 0.9999).all()
        np.testing.assert_array_equal(curves[0], U)
        assert np.linalg.cond(np.corrcoef(curves)) < 1.05
        assert np.abs(curves.mean(axis=1)).max() < 1e-3
        # Each second derivative ends at 0.
        bends = np.diff(curves, 2, axis=1) / (U[1] - U[0]) ** 2
        assert (
            np.abs(bends[:, [0, -1]]).max(axis=1) < 0.01 * np.abs(bends).max(axis=1) + 1e-6
        ).all()

    def test_knots_are_evenly_spaced_or_stated(self):
        (even,), (own,) = (c._kinds() for c in (spline(df=4), spline(knots=[30, 45])))
        assert even.knots == (26.25, 37.5, 48.75)
        assert own.knots == (30.0, 45.0)
        assert even.described()["df"] == 4
        assert own.described()["knots"] == [30.0, 45.0]
        assert len(spline().get_feature_names_out()) == 3
        assert same_features(spline(df=3)._features(), spline(knots=[30, 45], df=3)._features())

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            ({"df": 1}, "have as df an integer from 2 to 5"),
            ({"df": 6}, "have as df an integer from 2 to 5"),
            ({"df": 2.5}, "have as df an integer from 2 to 5"),
            ({"df": 3, "knots": [30]}, "one more than there are knots"),
            ({"knots": []}, "have as df an integer"),
            ({"knots": [45, 30]}, "have rising knots between its bounds"),
            ({"knots": [15, 30]}, "have rising knots between its bounds"),
            ({"knots": [30, 30.1]}, "have rising knots between its bounds"),
            ({"knots": [30, math.nan]}, "have (rising|numbers)"),
            ({"knots": ["30"]}, "have numbers as knots"),
            ({"knots": 30}, "have knots as a list"),
            ({"exponent": 2}, "hold no other key"),
        ],
    )
    def test_others_are_refused_by_name(self, wrong, why):
        with pytest.raises((ValueError, TypeError), match=rf"columns\['age'\] must .*{why}"):
            spline(**wrong)._check()

    def test_what_is_stated_of_a_number_gives_means_and_deviations_of_curves(self):
        """As a large sample of a normal number has them, clipped at the bounds."""
        columns = spline(df=4, typical=40, spread=9)
        known = KnownColumns.of(columns._features())
        Z = columns.transform(np.random.default_rng(0).normal(40, 9, (400_000, 1)))
        assert known.is_complete
        np.testing.assert_allclose(known.center, Z.mean(axis=0), atol=0.01)
        np.testing.assert_allclose(np.sqrt(known.variance), Z.std(axis=0), atol=0.01)
        assert not KnownColumns.of(spline()._features()).states_spreads
        only = KnownColumns.of(spline(typical=40)._features())
        np.testing.assert_allclose(only.center, spline().transform([[40.0]])[0])
        assert not only.states_spreads

    def test_beyond_the_bounds_it_is_constant_and_missing_is_the_middle(self):
        columns = spline(missing="midpoint")
        Z = columns.transform(pd.DataFrame({"age": [1.0, 15.0, 60.0, 1e300, None, 37.5]}))
        np.testing.assert_array_equal(Z[[0, 3, 4]], Z[[1, 2, 5]])


class TestPower:
    def test_it_is_the_power_scaled_between_the_bounds(self):
        x = np.linspace(1.0, 9.0, 41)[:, None]
        for exponent in (-1, 0.5, 2, 3):
            columns = PublicColumns({"x": {"power": (1, 9), "exponent": exponent}})
            low, high = sorted((1.0, 9.0**exponent))
            wanted = (x**exponent - (low + high) / 2) / ((high - low) / 2)
            np.testing.assert_allclose(columns.transform(x), wanted, atol=1e-14)
            (feature,) = columns._features()
            assert feature.per_unit == pytest.approx(2.0 / (high - low))
            assert feature.unit == f"x^{exponent:g}"
            (kind,) = columns._kinds()
            places = columns.transform(kind.value_at(np.linspace(-1, 1, 9))[:, None]).ravel()
            np.testing.assert_allclose(places, np.linspace(-1, 1, 9)[:: int(np.sign(exponent))],
                                       atol=1e-12)  # fmt: skip

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            ({"power": (-1, 9)}, "have bounds that are not negative"),
            ({"power": (0, 9), "exponent": -1}, "have bounds that are positive"),
            ({"power": (0, 9), "exponent": 0}, "have as exponent a number other than 0"),
            ({"power": (0, 9), "exponent": 11}, "have as exponent"),
            ({"power": (0, 9), "exponent": "2"}, "have as exponent"),
            ({"power": (0, 9), "exponent": True}, "have as exponent"),
            ({"power": (0, 1e300), "exponent": 2}, "have bounds whose powers are finite"),
            ({"power": (0, 1e-300), "exponent": 2}, "have bounds whose powers are finite"),
            ({"power": (0, 9), "knots": [1]}, "hold no other key"),
        ],
    )
    def test_others_are_refused_by_name(self, wrong, why):
        with pytest.raises((ValueError, TypeError), match=rf"columns\['x'\] must {why}"):
            PublicColumns({"x": wrong})._check()


FACTORS = {
    "age": {"bounds": (20, 80), "unit": "years", "typical": 50, "spread": 12},
    "arm": {"categories": ["a", "b", "c"], "missing": "category", "prevalence": [0.5, 0.3, 0.2]},
    "treat": {"boolean": True, "prevalence": 0.5},
    "bmi": {"spline": (15, 60), "df": 2, "missing": "category"},
}


def products(*pairs):
    return FACTORS | {":".join(pair): {"interaction": list(pair)} for pair in pairs}


class TestInteraction:
    def test_features_are_products_of_those_of_their_columns(self):
        pairs = ("age", "treat"), ("arm", "treat"), ("bmi", "arm"), ("age", "bmi")
        columns = PublicColumns(products(*pairs))
        rng = np.random.default_rng(0)
        X = pd.DataFrame(
            {
                "age": rng.uniform(10, 90, 50),
                "arm": rng.choice(["a", "b", "c", None], 50),
                "treat": rng.random(50) < 0.5,
                "bmi": np.where(rng.random(50) < 0.2, np.nan, rng.uniform(10, 70, 50)),
            }
        )
        features = columns._features()
        rows = X.astype(object).where(X.notna(), None).to_dict("records")
        table = [[evaluated(one.expression, row) for one in features] for row in rows]
        Z = columns.fit_transform(X)
        np.testing.assert_allclose(Z, table, atol=1e-14)
        names = columns.get_feature_names_out().tolist()
        assert names[8:11] == ["age:treat", "arm_b:treat", "arm_c:treat"]
        assert not any("missing" in name for name in names if ":" in name)
        assert Z.shape[1] == len(names)
        for j, one in enumerate(features):
            assert one.low <= Z[:, j].min() <= Z[:, j].max() <= one.high
        assert columns.example().columns.tolist() == list(FACTORS)
        again = PublicColumns(**json.loads(json.dumps(columns._described())))
        assert same_features(again._features(), features)

    def test_a_coefficient_per_unit_is_that_of_the_product_of_raw_columns(self):
        """As with age * treat of patsy; beside it, effects hold in the middle of bounds."""
        columns = PublicColumns({name: products(("age", "treat"))[name] for name in
                                 ("age", "treat", "age:treat")})  # fmt: skip
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"age": rng.uniform(20, 80, 200), "treat": rng.random(200) < 0.5})
        y = rng.normal(size=200)
        theirs = np.linalg.lstsq(np.asarray(dmatrix("age * treat", X)), y, rcond=None)[0]
        Z = np.column_stack([np.ones(200), columns.transform(X)])
        slopes = [f.per_unit for f in columns._features()]
        age, treat, product = np.linalg.lstsq(Z, y, rcond=None)[0][1:] * slopes
        names = dmatrix("age * treat", X).design_info.column_names
        raw = dict(zip(names, theirs, strict=True))
        np.testing.assert_allclose(product, raw["age:treat[T.True]"], rtol=1e-9)
        np.testing.assert_allclose(age, raw["age"], rtol=1e-9)
        np.testing.assert_allclose(treat - 50 * product, raw["treat[T.True]"], rtol=1e-9)
        assert columns._features()[2].unit == "years"

    def test_stated_spreads_are_those_of_independent_columns(self):
        columns = PublicColumns(products(("age", "treat"), ("arm", "treat")))
        stated = {one.name: one for one in columns._features()}
        rng = np.random.default_rng(0)
        n = 400_000
        age, treat = (rng.normal(50, 12, n) - 50) / 30, rng.random(n) < 0.5
        for name, values in (
            ("age:treat", age * treat),
            ("arm_b:treat", (rng.random(n) < 0.3) * treat),
        ):
            assert stated[name].center == pytest.approx(values.mean(), abs=0.01)
            assert stated[name].spread == pytest.approx(values.std(), abs=0.01)
        unstated = PublicColumns({"a": (0, 1), "b": bool, "ab": {"interaction": ["a", "b"]}})
        assert unstated._features()[2].spread is None

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            (["age"], "have as interaction the names of two columns"),
            (["age", "treat", "arm"], "have as interaction the names of two columns"),
            ("age", "have interaction as a list"),
            (["age", "height"], "have an interaction of described columns"),
            (["age", 3], "have an interaction of described columns"),
            (["age", "other"], "have an interaction of described columns"),
            (["age", "age"], "have an interaction of two columns, not of one with itself"),
        ],
    )
    def test_others_are_refused_by_name(self, wrong, why):
        stated = FACTORS | {"other": {"interaction": ["age", "arm"]}, "x": {"interaction": wrong}}
        with pytest.raises((ValueError, TypeError), match=rf"columns\['x'\] must {why}"):
            PublicColumns(stated)._check()
        with pytest.raises(ValueError, match=r"columns\['x'\] must hold no other key"):
            PublicColumns(FACTORS | {"x": {"interaction": ["age", "arm"], "per": 1}})._check()
        twice = {"x": {"interaction": ["age", "treat"]}, "y": {"interaction": ["age", "treat"]}}
        with pytest.raises(
            ValueError, match=r"columns\['y'\] must make features of names of their"
        ):
            PublicColumns(FACTORS | twice)._check()
        twice["y"] = {"interaction": ["treat", "age"]}
        with pytest.raises(ValueError, match=r"columns\['x'\] must have an interaction that no"):
            PublicColumns(FACTORS | twice)._check()

    @pytest.mark.parametrize(
        "huge",
        [
            {"log": (1, 5), "offset": 10**400},
            {"spline": (1, 5), "knots": [10**400]},
            {"bounds": (1, 5), "spread": 10**400},
            {"bounds": (1, 5), "per": 10**400},
        ],
    )
    def test_integers_beyond_all_floats_are_refused_by_name(self, huge):
        with pytest.raises(ValueError, match=r"columns\['a'\] must hold no number beyond"):
            PublicColumns({"a": huge})._check()

    def test_files_state_them(self, tmp_path):
        text = (
            "[columns]\nage = [20, 80]\ntreat = { boolean = true }\nbmi = { spline = [15, 60] }\n"
        )
        text += '"age:treat" = { interaction = ["age", "treat"] }\n'
        (tmp_path / "columns.toml").write_text(text)
        names = PublicColumns.from_toml(tmp_path / "columns.toml").get_feature_names_out().tolist()
        assert names == ["age", "treat", *(f"bmi_spline{j}" for j in (1, 2, 3)), "age:treat"]


@pytest.mark.slow
def test_a_record_does_not_speak_for_others():
    """Each row is what it is alone, to the bit, wherever it stands, and within its range."""
    columns = PublicColumns(
        products(("age", "treat"), ("bmi", "arm"), ("age", "bmi"))
        | {"dose": {"power": (0, 9), "exponent": 1.7}}
    )
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            "age": rng.choice([-1e300, 1e300, 20.0, 80.0, *rng.normal(50, 12, 40)], n),
            "arm": rng.choice(["a", "b", "c", None], n),
            "treat": rng.random(n) < 0.5,
            "bmi": rng.choice([np.nan, -1e300, 1e300, 5e-324, *rng.uniform(15, 60, 40)], n),
            "dose": rng.choice([-1.0, 1e300, *rng.uniform(0, 9, 40)], n),
        }
    )
    Z = columns.transform(X)
    alone = np.vstack([columns.transform(X.iloc[[i]]) for i in range(n)])
    np.testing.assert_array_equal(alone, Z)
    order = rng.permutation(n)
    np.testing.assert_array_equal(columns.transform(X.iloc[order]), Z[order])
    low, high = (
        np.array([getattr(f, end) for f in columns._features()]) for end in ("low", "high")
    )
    assert ((low <= Z) & (high >= Z)).all()
    assert np.abs(np.concatenate([low, high])).max() == 1.0
