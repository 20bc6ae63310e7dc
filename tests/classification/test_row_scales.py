"""Classifiers whose columns are centred and divided by stated spreads before rows are clipped."""

import math

import numpy as np
import pandas as pd
import pytest

from skdpsurv import (
    DPLogisticRegression,
    FeaturePartition,
    PrivateStackingClassifier,
    PublicColumns,
)
from skdpsurv.classification import Perturbation
from skdpsurv.classification.row_scales import CONSTANT, RADIUS, Coefficients, RowScales

WIDE = {"age": (0, 400), "ill": bool, "arm": ["a", "b", "c"]}
STATED = {
    "age": {"bounds": (0, 400), "typical": 60, "spread": 10},
    "ill": {"boolean": True, "prevalence": 0.2},
    "arm": {"categories": ["a", "b", "c"], "prevalence": [0.5, 0.25, 0.25]},
}
LOGISTIC, STACK = DPLogisticRegression, PrivateStackingClassifier


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(60.0, 10.0, n), "ill": rng.random(n) < 0.2})
    X["arm"] = rng.choice(["a", "b", "c"], n, p=[0.5, 0.25, 0.25])
    log_odds = 0.1 * (X.age - 60.0) + 0.8 * X.ill - 1.0
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds))).astype(int)


def model(kind=LOGISTIC, columns=STATED, **given):
    described = None if columns is None else PublicColumns(columns)
    options = {"epsilon": 2.0, "classes": [0, 1], "random_state": 0, "columns": described}
    return kind(**{**options, **given})


def scales_of(fitted):
    return RowScales(*(fitted.release_.values[name] for name in ("row_center", "row_scale")))


@pytest.mark.parametrize("kind", [LOGISTIC, STACK])
class TestWhatIsScaled:
    def test_the_release_states_how(self, kind):
        fitted = model(kind).fit(*people())
        values = fitted.release_.values
        # Middle 200, half 200; labels of two values share a scale.
        assert values["row_center"] == pytest.approx([-0.7, 0.2, 0.25, 0.25])
        shared = math.sqrt((0.16 + 2 * 0.1875) / 3)
        assert values["row_scale"] == pytest.approx([0.05, *[shared] * 3])
        assert values["row_radius"] == pytest.approx(RADIUS * 2.0)
        assert fitted.guarantee_.public_inputs["data_norm"] == pytest.approx(RADIUS * 2.0)
        again = kind.from_release(fitted.release_)
        assert again.data_norm is None
        X, _ = people(9, seed=1)
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))

    @pytest.mark.parametrize(
        "given", [{"columns": WIDE}, {"data_norm": 1.0}, {"epsilon": math.inf}]
    )
    def test_nothing_where_no_spread_is_stated_or_a_norm_is(self, kind, given):
        fitted = model(kind, **given).fit(*people())
        assert "row_scale" not in fitted.release_.values

    @pytest.mark.parametrize("method", ["obj_pert", "noisy_gd"])
    def test_is_the_fit_of_scaled_rows(self, kind, method):
        """Same noise: coefficients are those of a fit of z, clipped, mapped to the features."""
        given = {"method": method} if kind is LOGISTIC else {}
        given |= {"delta": 1e-9} if method == "noisy_gd" else {}
        X, y = people()
        fitted = model(kind, **given).fit(X, y)
        scales = scales_of(fitted)
        Z = scales.rows(PublicColumns(STATED).fit_transform(X))
        same = "method__intercept_scaling" if kind is LOGISTIC else "intercept_scaling"
        plain = model(kind, **given, columns=None, data_norm=scales.radius)
        if kind is LOGISTIC:
            plain.set_params(method=Perturbation(method))
        plain = plain.set_params(**{same: CONSTANT * 0.1}).fit(Z, y)
        np.testing.assert_allclose(
            fitted.decision_function(X), plain.decision_function(Z), rtol=1e-7, atol=1e-9
        )
        np.testing.assert_allclose(fitted.predict_proba(X), plain.predict_proba(Z), rtol=1e-6)

    def test_without_an_intercept_only_divided(self, kind):
        fitted = model(kind, fit_intercept=False).fit(*people())
        assert not fitted.release_.values["row_center"].any()
        values = fitted.release_.values
        assert not np.any(values["intercept" if kind is LOGISTIC else "low_level_intercept"])


class TestStacks:
    def test_stated_norms_of_groups_are_those_of_features(self):
        parts = FeaturePartition([["age"], ["ill", "arm_b", "arm_c"]], norms=np.array([0.5, 0.9]))
        assert "row_scale" not in model(STACK, partition=parts).fit(*people()).release_.values

    @pytest.mark.parametrize("partition", ["features", "samples"])
    def test_a_model_on_top_sees_the_votes_that_are_published(self, partition):
        given = {"partition": partition, "combiner": "logistic", "n_partitions": 2}
        X, y = people(20_000)
        fitted = model(STACK, epsilon=50.0, **given).fit(X, y)
        assert fitted.score(X, y) > max(y.mean(), 1.0 - y.mean()) + 0.02

    def test_a_prior_is_mapped(self):
        X, y = people()
        prior = model(STACK, columns=WIDE, epsilon=100.0).fit(X, y).release_
        far = {**STATED, "age": STATED["age"] | {"spread": 20, "typical": 100}}
        fitted = model(STACK, columns=far, epsilon=1e-3, prior=prior, alpha=1e6).fit(X, y)
        theirs = STACK.from_release(prior)
        for own, other in zip(fitted.low_level_coef_, theirs.low_level_coef_, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(
            fitted.low_level_intercept_, theirs.low_level_intercept_, rtol=1e-3, atol=1e-3
        )


class TestPriors:
    def test_log_odds_ratios_are_those_of_features(self):
        X, y = people(20_000)
        far = {**STATED, "age": STATED["age"] | {"spread": 20, "typical": 100}}
        prior = model(columns=far, epsilon=50.0).fit(X, y).release_
        alone = model(epsilon=1.0, random_state=1).fit(X, y)
        both = model(epsilon=1.0, prior=prior, random_state=1).fit(X, y)
        assert both.coef_[0, 0] != alone.coef_[0, 0]
        assert both.coef_[0, 0] / 200.0 == pytest.approx(0.1, rel=0.35)


class TestIntervals:
    def test_intercept_and_coefficients_are_mapped_together(self):
        X, y = people(20_000)
        fitted = model(epsilon=50.0, inference_share=0.3).fit(X, y)
        estimate = fitted.inference_.estimate
        error = fitted.inference_.standard_errors()
        per_feature = np.array([0.1 * 200.0, 0.8, 0.0, 0.0])
        intercept = -1.0 + 0.1 * (200.0 - 60.0)
        off = (estimate - np.array([intercept, *per_feature])) / error
        assert np.abs(off).max() < 4.0

    def test_extreme_rows_are_named(self, capsys):
        model(epsilon=20.0, inference_share=0.3).fit(*people(20_000)).print_summary()
        assert "mean weight" in capsys.readouterr().out


def test_models_of_scaled_rows_and_of_features_predict_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5))
    scales = RowScales(rng.normal(size=5), rng.uniform(0.1, 2.0, 5))
    some = [3, 1]
    of_rows = Coefficients(rng.normal(size=(2, 2)), rng.normal(size=2))
    of_features = scales.to_features(of_rows, some)
    expected = of_rows.predictor(scales.rows(X)[:, some])
    np.testing.assert_allclose(of_features.predictor(X[:, some]), expected)
    for one, other in zip(scales.of_features(of_features, some), of_rows, strict=True):
        np.testing.assert_allclose(one, other)
