"""Public ends, centres and spreads of features, and what noisy moments add to them."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

from skdpsurv.data import PublicColumns
from skdpsurv.data.feature import raw_features
from skdpsurv.data.known_columns import SHARED_VARIANCE, KnownColumns
from skdpsurv.data.public_steps import encoded, features_in
from skdpsurv.mechanisms.moments import SQUARE_WEIGHT

CELLS = {
    "number": ({"bounds": (0, 10), "missing": "midpoint"}, [0.0, 10.0, 3.1, np.nan]),
    "gaps": ({"bounds": (0, 10), "missing": "category"}, [0.0, 10.0, 3.1, 5.0, np.nan]),
    "flag": ({"boolean": True}, [True, False]),
    "filled": ({"boolean": True, "missing": "midpoint"}, [1.0, 0.0, np.nan]),
    "marked": ({"boolean": True, "missing": "category"}, [1.0, 0.0, np.nan]),
    "label": (["a", "b", "c"], ["a", "b", "c"]),
    "pair": (["a", "b"], ["a", "b"]),
    "unsure": ({"categories": ["a", "b", "c"], "missing": "category"}, ["a", "b", "c", None]),
}


def known(spec, **options):
    return KnownColumns.of(PublicColumns(spec, **options)._features())


def vectors(columns, one, frame):
    """Return the records whose mean is asked, as the page has them."""
    u = one.units(columns.fit(frame).transform(frame))
    return np.hstack([u, SQUARE_WEIGHT * (u[:, ~one.two_valued] ** 2 - 0.5)])


class TestMoves:
    @pytest.mark.parametrize("drop", ["first", None])
    @pytest.mark.parametrize("kind", CELLS)
    def test_no_two_records_are_farther_apart(self, kind, drop):
        spec, cells = CELLS[kind]
        columns = PublicColumns({"x": spec}, drop=drop)
        one = KnownColumns.of(columns._features())
        rows = vectors(columns, one, pd.DataFrame({"x": pd.Series(cells, dtype=object)}))
        apart = [np.sum((a - b) ** 2) for a, b in itertools.combinations(rows, 2)]
        assert max(apart) <= one.squared_move + 1e-12
        assert max(apart) > 0.94 * one.squared_move  # 7.56 of 8, of a number with a gap

    def test_columns_add_up(self):
        spec = {kind: one for kind, (one, _) in CELLS.items()}
        assert known(spec).squared_move == sum(
            known({"x": one}).squared_move for one in spec.values()
        )

    def test_a_label_that_is_described_twice_moves_twice(self):
        labels = PublicColumns({"x": ["a", "b", "c"]})
        twice = ColumnTransformer([("one", labels, ["x"]), ("two", labels, ["x"])])
        frame = pd.DataFrame({"x": ["b", "c"]})
        one = KnownColumns.of(features_in(twice, 1, ["x"]))
        rows = one.units(np.asarray(twice.fit_transform(frame)))
        assert np.sum((rows[0] - rows[1]) ** 2) == 16.0 == one.squared_move

    @pytest.mark.parametrize("verbose", [True, False])
    def test_labels_of_a_column_under_another_name_are_refused(self, verbose):
        """Two raw columns that pass for one have indicators that do not exclude each other."""
        name = "t__a" if verbose else "b"
        first = ColumnTransformer([("t", "passthrough", ["a"])], verbose_feature_names_out=verbose)
        renamed = Pipeline([("r", first), ("p", PublicColumns({name: [0, 1, 2]}))])
        both = ColumnTransformer([("x", renamed, ["a"]), ("y", "passthrough", ["b"])])
        with pytest.raises(ValueError, match="PublicColumns"):
            features_in(both, 2, ["a", "b"])

    def test_columns_after_a_step_keep_their_names(self):
        """They were read in the order of the description, so that one passed for another."""
        described = PublicColumns({"bmi": (0, 50), "age": (0, 100)})
        first = ColumnTransformer(
            [("k", "passthrough", ["age", "bmi"])], verbose_feature_names_out=False
        )
        frame = pd.DataFrame({"age": [40.0, 80.0], "bmi": [25.0, 50.0]})
        rows = encoded(Pipeline([("k", first), ("p", described)]), frame, 2, ["age", "bmi"])
        np.testing.assert_allclose(rows, described.fit_transform(frame))

    def test_what_was_read_is_not_read_again(self):
        twice = Pipeline([("one", PublicColumns.of(a=bool)), ("two", PublicColumns.of(a=[0, 1]))])
        with pytest.raises(ValueError, match="PublicColumns must come before all other steps"):
            features_in(twice, 1, ["a"])

    def test_two_columns_are_no_group(self):
        assert known({"x": ["a", "b", "c"], "y": ["a", "b", "c"]}).squared_move == 16


class TestEnds:
    def test_they_must_be_public(self):
        assert KnownColumns.of(raw_features(["x"])) is None
        assert KnownColumns.of([]) is None
        products = PolynomialFeatures(2, include_bias=False)
        assert KnownColumns.of(features_in(products, 2, ["x", "y"])) is None

    def test_squares_are_asked_of_columns_with_more_than_two_values(self):
        spec = {kind: one for kind, (one, _) in CELLS.items()}
        one, names = known(spec), PublicColumns(spec).get_feature_names_out()
        asked = ["number", "gaps", "filled", "marked"]
        assert names[~one.two_valued].tolist() == asked

    def test_units_and_features_are_inverse(self):
        one = known({"x": (0, 10), "f": bool})
        center, spread = one.in_features(np.array([0.5, 0.0]), np.array([0.04, 1.0]), shared=True)
        np.testing.assert_allclose(center, [0.5, 0.5])
        np.testing.assert_allclose(spread, [0.2, 0.5])
        np.testing.assert_array_equal(
            one.units(np.array([[0.5, 1.0], [7.0, 0.0]])), [[0.5, 1], [1, -1]]
        )

    def test_extremes_are_kept_in_the_bounds(self):
        spread = {"bounds": (0, 100), "typical": 50, "spread": 1e-165}
        _, scales = known({"x": spread}).scales(shared=False)
        assert 0.0 < scales[0] < 1e-5


class TestVariances:
    def test_without_noise_they_are_those_measured(self):
        one = known({"x": (0, 10), "y": (0, 10), "f": bool})
        measured = np.array([0.3, 0.2, 0.5])
        np.testing.assert_allclose(one.variances(measured, np.zeros(3)), measured)

    def test_noise_leaves_those_of_the_kind(self):
        one = known({"x": (0, 10), "y": (0, 10), "f": bool})
        found = one.variances(np.array([0.9, 0.0, 0.5]), np.full(3, 1e6))
        np.testing.assert_allclose(found, 0.35, rtol=1e-3)

    def test_none_is_far_below_that_of_its_kind_or_above_one(self):
        one = known(dict.fromkeys("abcd", (0, 10)))
        found = one.variances(np.array([-0.5, 0.4, 0.4, 7.0]), np.full(4, 0.01))
        assert found[0] > 0.02
        assert found[-1] == 1.0
        exact = one.variances(np.array([1e-4, 0.4, 0.4, 0.4]), np.zeros(4))
        assert exact[0] == pytest.approx(1e-4)

    def test_a_stated_spread_is_its_prior(self):
        one = known({"x": (0, 10), "y": (0, 10)})
        stated = replace(one, center=np.array([0.1, np.nan]), variance=np.array([0.04, np.nan]))
        assert stated.states_spreads
        assert not stated.is_complete
        found = stated.variances(np.array([0.9, 0.9]), np.full(2, 1e3))
        assert found[0] == pytest.approx(0.04, rel=0.01)
        assert found[1] > 0.3

    def test_labels_share_a_scale_and_numbers_do_not(self):
        one = known({"x": (0, 10), "y": (0, 10), "f": bool, "g": bool})
        both = np.array([0, 0, 0.8, 0]), np.array([0.04, 0.25, 0.36, 1])
        center, scale = one.in_features(*both, shared=True)
        np.testing.assert_allclose(center, [0.0, 0.0, 0.9, 0.5])
        np.testing.assert_allclose(scale, [0.2, 0.5, *[0.5 * np.sqrt(0.68)] * 2])
        _, scale = one.in_features(*both, shared=False)
        np.testing.assert_allclose(scale, [0.2, 0.5, 0.3, 0.5])


class TestReleased:
    def test_what_is_stated_is_kept_and_the_rest_taken(self):
        spec = {"x": (0, 10), "y": (0, 10), "z": (0, 10)}
        features = PublicColumns(spec)._features()
        one = replace(known(spec), center=np.array([0.1, np.nan, np.nan]))
        rows = [(-0.2, 0.09, 0.0), (0.3, 0.04, 0.0)]  # of z nothing is known
        found = one.released(features, zip(features, rows, strict=False))
        np.testing.assert_allclose(found.center, [0.1, 0.3, np.nan])
        np.testing.assert_allclose(found.variance, [0.09, 0.04, np.nan])
        assert not found.is_complete

    def test_what_is_unknown_is_in_the_middle_with_a_usual_spread(self):
        found = replace(known({"x": (0, 10)}), center=np.array([np.nan])).completed()
        assert (found.center, found.variance) == (0.0, SHARED_VARIANCE)
        assert found.is_complete
