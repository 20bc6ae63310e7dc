"""Estimates with standard errors: how they are held, changed and shown."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skdpsurv import PrivacyGuarantee, Release
from skdpsurv.data.feature import Expression, Feature, raw_features
from skdpsurv.inference import Inference
from skdpsurv.inference.inference import interval, table

COVARIANCE = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.16]])


def inference(known=(True, True, True)):
    return Inference(np.array([0.5, -1.0, 2.0]), COVARIANCE, np.array(known))


def release(values):
    return Release("Example", PrivacyGuarantee(epsilon=1.0), {}, values, 2)


def test_a_release_holds_it():
    held = Inference.of(release(inference((True, True, False)).values()), 3)
    assert Inference.of(release({"coef": [1.0]}), 3) is None
    assert held.estimate.tolist() == [0.5, -1.0, 2.0]
    assert (held.covariance == COVARIANCE).all()
    assert held.known.tolist() == [True, True, False]


def test_a_crafted_release_is_refused():
    for change in [
        {"inference_estimate": [1.0, 2.0]},
        {"inference_covariance": np.eye(2)},
        {"inference_covariance": [[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]]},
        {"inference_covariance": -np.eye(3)},
        {"inference_covariance": [[1.0, 2.0, 0], [2.0, 1, 0], [0, 0, 1]]},
        {"inference_known": [1.0, 0.5, 0.0]},
        {"inference_known": None},
    ]:
        values = {**inference().values(), **change}
        values = {name: value for name, value in values.items() if value is not None}
        with pytest.raises(ValueError, match="values of the release must hold"):
            Inference.of(release(values), 3)


def test_coordinates_that_take_from_the_unknown_are_unknown():
    found = Inference(np.array([1.0, 2.0]), np.diag([4.0, 9.0]), np.array([True, False]))
    changed = found.in_coordinates(np.array([[2.0, 0.0], [1.0, 1.0]]))
    assert changed.estimate.tolist() == [2.0, 3.0]
    assert changed.covariance == pytest.approx(np.array([[16.0, 8.0], [8.0, 13.0]]))
    assert changed.known.tolist() == [True, False]
    assert changed.standard_errors() == pytest.approx([4.0, np.inf])


def test_what_overflows_is_unknown():
    found = Inference(np.array([1.0, 2.0]), np.diag([4.0, 9.0]), np.array([True, True]))
    with np.errstate(over="ignore"):
        changed = found.in_coordinates(np.diag([1e200, 1.0]))
    assert not changed.known.any()
    assert np.isfinite(changed.covariance).all()


def test_rounding_makes_no_variance_negative():
    nearly = np.array([[1.0, 1.0 + 1e-15], [1.0 + 1e-15, 1.0]])
    changed = Inference(np.zeros(2), nearly, np.ones(2, dtype=bool)).in_coordinates(np.eye(2))
    assert np.linalg.eigvalsh(changed.covariance).min() >= -1e-15
    assert Inference.of(release(changed.values()), 2).known.all()


def test_table_is_that_of_lifelines():
    """The columns and numbers of CoxPHFitter.summary, for the same estimates and errors."""
    from lifelines import CoxPHFitter
    from lifelines.datasets import load_rossi

    cox = CoxPHFitter().fit(load_rossi(), "week", "arrest")
    names = list(cox.summary.index)
    ours = table(cox.params_.to_numpy(), cox.standard_errors_.to_numpy(), raw_features(names))
    theirs = cox.summary.drop(columns="cmp to")
    assert list(ours) == list(theirs)
    assert ours.index.name == theirs.index.name
    np.testing.assert_allclose(ours, theirs[list(ours)], rtol=1e-6)


def test_coefficients_are_per_unit_of_the_column():
    age = Expression("column", numbers=("age",))
    scaled = Feature("age", Expression("scale", (age,), (50, 25)), column="age", per_unit=1 / 25)
    mixed = Feature("norm", Expression("norm", (age,), ("l2",)))
    shown = table(np.array([2.5, 1.0]), np.array([0.5, 0.25]), [scaled, mixed])
    assert shown["coef"].tolist() == [0.1, 1.0]
    assert shown["se(coef)"].tolist() == [0.02, 0.25]
    assert shown.loc["age", "z"] == pytest.approx(5.0)
    assert shown.loc["age", "p"] == pytest.approx(2 * stats.norm.sf(5.0))


def test_where_nothing_is_known_the_interval_has_no_end_and_no_middle():
    shown = table(np.array([1.0]), np.array([np.inf]), raw_features(["a"])).iloc[0]
    assert shown[["coef", "exp(coef)", "z", "p"]].isna().all()
    assert shown["se(coef)"] == np.inf
    assert (shown["coef lower 95%"], shown["coef upper 95%"]) == (-np.inf, np.inf)
    assert (shown["exp(coef) lower 95%"], shown["exp(coef) upper 95%"]) == (0.0, np.inf)


def test_interval_ends_are_normal_quantiles():
    lower, upper = interval(np.array([1.0]), np.array([2.0]), 0.9)
    assert [lower[0], upper[0]] == pytest.approx(stats.norm.interval(0.9, 1.0, 2.0))
