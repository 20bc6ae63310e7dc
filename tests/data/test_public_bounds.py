"""PublicBoundsScaler: the map, what it refuses, and that it learns and leaks nothing."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skdpsurv.data import PublicBoundsScaler
from skdpsurv.data.feature import Expression, Feature


@pytest.fixture
def frame():
    return pd.DataFrame({"age": [50.0, 75.0, 100.0, 140.0], "sex": [0, 1, 0, 1]})


LOWER = {"sex": 0.0, "age": 50.0}
UPPER = {"sex": 1.0, "age": 100.0}
SCALED = [[-1, -1], [0, 1], [1, -1], [1, 1]]


def test_bounds_by_position_and_by_name_are_the_same_map(frame):
    for lower, upper in (
        *((LOWER, UPPER), ([50, 0], [100, 1]), (np.array([50.0, 0.0]), (100, 1))),
        *((pd.Series(LOWER), pd.Series(UPPER)), (pd.Series([50, 0]), UPPER)),
    ):
        scaler = PublicBoundsScaler(lower, upper)
        np.testing.assert_array_equal(scaler.fit_transform(frame), SCALED)
        assert clone(scaler.set_params(lower=LOWER)).lower == LOWER
    named = PublicBoundsScaler.from_bounds({"age": (50, 100), "sex": (0, 1)})
    np.testing.assert_array_equal(make_pipeline(named).fit_transform(frame), SCALED)
    Z = PublicBoundsScaler(0, 4).fit_transform([[0, 1], [2, 3], [-9, 9]])
    np.testing.assert_array_equal(Z, [[-1, -0.5], [0, 0.5], [-1, 1]])
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, 3))
    np.testing.assert_array_equal(PublicBoundsScaler().fit_transform(X), X)
    widest = PublicBoundsScaler(-1.7e308, 1.7e308)
    np.testing.assert_allclose(widest.fit_transform([[-1.7e308], [0], [1.7e308]]), [[-1], [0], [1]])


def test_inside_the_bounds_it_is_min_max_scaling_with_those_bounds():
    rng = np.random.default_rng(1)
    lower, upper = np.array([-3.0, 10.0, 0.1]), np.array([5.0, 11.0, 0.3])
    X = rng.uniform(lower, upper, size=(200, 3))
    reference = MinMaxScaler(feature_range=(-1, 1)).fit(np.vstack([lower, upper]))
    scaler = PublicBoundsScaler(lower, upper)
    np.testing.assert_allclose(scaler.fit_transform(X), reference.transform(X), atol=1e-12)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, atol=1e-12)


def test_the_range_is_exact_for_awkward_bounds():
    rng = np.random.default_rng(2)
    lower = rng.normal(size=500) * 10.0 ** rng.integers(-12, 12, size=500)
    upper = lower + np.abs(lower) * rng.uniform(1e-9, 3, size=500)
    X = np.vstack([lower, upper, lower - 1, upper + 1, np.full(500, 1e308), np.full(500, -1e308)])
    Z = PublicBoundsScaler(lower, upper).fit_transform(X)
    assert np.all(np.abs(Z) <= 1)


@pytest.mark.parametrize("lower", [LOWER, [50, 0]])
def test_transform_needs_no_fit(frame, lower):
    scaler = PublicBoundsScaler(lower, UPPER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(scaler.transform(frame), SCALED)
    assert not hasattr(scaler, "n_features_in_")
    with pytest.raises(ValueError, match="3 features"):
        clone(scaler).fit(frame).inverse_transform(np.zeros((1, 3)))
    scaled = pd.DataFrame(SCALED, columns=["age", "sex"])
    np.testing.assert_allclose(scaler.inverse_transform(scaled)[:3], frame[:3])
    assert list(scaler.set_output(transform="pandas").transform(frame)) == ["age", "sex"]


def test_each_row_is_mapped_by_itself(frame):
    scaler = PublicBoundsScaler(LOWER, UPPER)
    rows = [scaler.transform(frame.iloc[[i]]) for i in range(len(frame))]
    np.testing.assert_array_equal(np.vstack(rows), scaler.transform(frame))


def test_missing_midpoint_is_the_public_midpoint(frame):
    scaler = PublicBoundsScaler(LOWER, UPPER, missing="midpoint")
    gap = frame.mask(frame["age"] == 75)
    Z = scaler.fit_transform(gap)
    np.testing.assert_array_equal(Z[1], [0, 0])
    np.testing.assert_array_equal(scaler.inverse_transform(Z)[1], [75, 0.5])


def test_what_is_no_number_is_refused_by_column_and_not_by_row(frame):
    for value, ways in ((np.nan, ["error"]), (np.inf, ["error", "midpoint"]), (-np.inf, ["error"])):
        for missing in ways:
            frame.loc[2, "sex"] = value
            scaler = PublicBoundsScaler(LOWER, UPPER, missing=missing)
            for method in (scaler.fit, scaler.transform):
                with pytest.raises(ValueError, match=r"found in column 'sex'\.") as info:
                    method(frame)
                assert not re.search(r"\d", str(info.value))
    with pytest.raises(ValueError, match="found in column 1"):
        PublicBoundsScaler([50, 0], [100, 1]).fit(frame.to_numpy())


def test_bounds_that_do_not_fit_are_refused(frame):
    for name, *wrong in (
        ("lower", (1, 1), ({"age": 50, "sex": 2}, UPPER), (np.nan, 1), ([0, 0, 0], 1)),
        ("lower", ({"age": 50}, UPPER), ("low", 1)),
        ("upper", (0, [100, np.inf]), (LOWER, UPPER | {"bmi": 60})),
    ):
        for bounds in wrong:
            with pytest.raises(ValueError, match=name):
                PublicBoundsScaler(*bounds).fit(frame)
    with pytest.raises(ValueError, match="missing"):
        PublicBoundsScaler(missing="mean").fit(frame)
    for X in (frame.to_numpy(), frame.set_axis([0, 1], axis=1)):
        with pytest.raises(ValueError, match="must be a DataFrame"):
            PublicBoundsScaler(0, UPPER).fit(X)


def test_what_is_stated_of_a_feature_is_scaled_with_it():
    raw = Feature("age", Expression("column", numbers=("age",)), center=60.0, spread=10.0)
    (scaled,) = PublicBoundsScaler(50, 100)._features([raw])
    assert (scaled.center, scaled.spread) == (-0.6, 0.4)
    (again,) = PublicBoundsScaler(-2, 2)._features([scaled])
    assert (again.center, again.spread) == (-0.3, 0.2)
    (clipped,) = PublicBoundsScaler(-0.5, 0.5)._features([scaled])
    assert (clipped.center, clipped.spread) == (None, None)
