"""Estimates with standard errors: how they are held, changed and shown."""

from dataclasses import replace

import numpy as np
import pytest
from lifelines import CoxPHFitter
from lifelines.datasets import load_rossi
from scipy import stats

from skdpsurv import PrivacyGuarantee, Release
from skdpsurv.data.feature import Expression, Feature, raw_features
from skdpsurv.inference import Inference
from skdpsurv.inference.uncertainty import interval, table

COVARIANCE = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.16]])
HELD = Inference(np.array([0.5, -1.0, 2.0]), COVARIANCE, np.array([True, True, False]))


def release(values):
    return Release("Example", PrivacyGuarantee(epsilon=1.0), {}, values, 2)


def test_a_release_holds_it():
    held = Inference.of(release(HELD.values()), 3)
    assert Inference.of(release({"coef": [1.0]}), 3) is None
    assert held.hidden is None  # as of earlier versions
    for name in ("estimate", "covariance", "known"):
        np.testing.assert_array_equal(getattr(held, name), getattr(HELD, name))


def test_a_release_holds_directions_that_noise_hides():
    directions = np.diag([1.0, 0.0])
    held = replace(HELD, hidden=directions).in_coordinates(np.diag([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(Inference.of(release(held.values()), 3).hidden, directions)


def test_a_crafted_release_is_refused():
    for change in [
        {"inference_estimate": [1.0, 2.0]},
        {"inference_covariance": np.eye(2)},
        {"inference_covariance": [[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]]},
        {"inference_covariance": -np.eye(3)},
        {"inference_covariance": [[1.0, 2.0, 0], [2.0, 1, 0], [0, 0, 1]]},
        {"inference_known": [1.0, 0.5, 0.0]},
        {"inference_known": None},
        {"inference_hidden": np.eye(3)},
        {"inference_hidden": -np.eye(2)},
    ]:
        values = {name: v for name, v in {**HELD.values(), **change}.items() if v is not None}
        with pytest.raises(ValueError, match="values of the release must hold"):
            Inference.of(release(values), 3)


def test_coordinates_that_take_from_the_unknown_are_unknown():
    found = Inference(np.array([1.0, 2.0]), np.diag([4.0, 9.0]), np.array([True, False]))
    changed = found.in_coordinates(np.array([[2.0, 0.0], [1.0, 1.0]]))
    assert changed.estimate.tolist() == [2.0, 3.0]
    np.testing.assert_allclose(changed.covariance, [[16.0, 8.0], [8.0, 13.0]])
    assert changed.known.tolist() == [True, False]
    assert changed.standard_errors() == pytest.approx([4.0, np.inf])
    with np.errstate(over="ignore"):  # what overflows is unknown
        changed = HELD.in_coordinates(np.diag([1e200, 1e200, 1.0]))
    assert not changed.known.any()
    assert np.isfinite(changed.covariance).all()


def test_rounding_makes_no_variance_negative():
    nearly = np.array([[1.0, 1.0 + 1e-15], [1.0 + 1e-15, 1.0]])
    changed = Inference(np.zeros(2), nearly, np.ones(2, dtype=bool)).in_coordinates(np.eye(2))
    assert np.linalg.eigvalsh(changed.covariance).min() >= -1e-15
    assert Inference.of(release(changed.values()), 2).known.all()


def test_table_is_that_of_lifelines():
    """The columns and numbers of CoxPHFitter.summary, for the same estimates and errors."""
    cox = CoxPHFitter().fit(load_rossi(), "week", "arrest")
    features = raw_features(list(cox.summary.index))
    ours = table(cox.params_.to_numpy(), cox.standard_errors_.to_numpy(), features)
    theirs = cox.summary.drop(columns="cmp to")
    assert list(ours) == list(theirs)
    assert ours.index.name == theirs.index.name
    np.testing.assert_allclose(ours, theirs[list(ours)], rtol=1e-6)
    ends = interval(np.array([1.0]), np.array([2.0]), 0.9)
    assert np.ravel(ends) == pytest.approx(stats.norm.interval(0.9, 1.0, 2.0))


def test_coefficients_are_per_unit_of_the_column():
    age = Expression("column", numbers=("age",))
    scaled = Feature("age", Expression("scale", (age,), (50, 25)), column="age", per_unit=1 / 25)
    mixed = Feature("norm", Expression("norm", (age,), ("l2",)))
    shown = table(np.array([2.5, 1.0]), np.array([0.5, 0.25]), [scaled, mixed])
    assert shown[["coef", "se(coef)"]].to_numpy().tolist() == [[0.1, 0.02], [1.0, 0.25]]
    expected = 5.0, 2 * stats.norm.sf(5.0)
    assert tuple(shown.loc["age", ["z", "p"]]) == pytest.approx(expected)


def test_where_nothing_is_known_the_interval_has_no_end_and_no_middle():
    shown = table(np.array([1.0]), np.array([np.inf]), raw_features(["a"])).iloc[0]
    assert shown[["coef", "exp(coef)", "z", "p"]].isna().all()
    assert shown["se(coef)"] == np.inf
    assert (shown["coef lower 95%"], shown["coef upper 95%"]) == (-np.inf, np.inf)
    assert (shown["exp(coef) lower 95%"], shown["exp(coef) upper 95%"]) == (0.0, np.inf)
