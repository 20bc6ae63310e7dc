"""Rows with given moments."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdpsurv import PublicColumns
from skdpsurv.data.blocks import InMemory
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.dp.noise import random_source
from skdpsurv.inference import Derivation, MomentRows, ReleasedMoments, RowMoments
from skdpsurv.inference.covariates import (
    EXPOSURE,
    KNOWN,
    SHAPES,
    CovariateDistribution,
    standard_rows,
)

CONSTANT = 0.5


class PlainMoments(RowMoments):
    def seen(self, context, records):
        return records

    def postprocess(self, context, noisy):
        return {}


def of_rows(X, noise):
    rows = np.column_stack([np.full(len(X), CONSTANT), X])
    return CovariateDistribution.of_moments(rows.T @ rows, CONSTANT, len(X), noise)


def test_standard_rows_have_the_identity_for_covariance():
    for shape, d in itertools.product(SHAPES, [1, 2, 5, 40]):
        rows = standard_rows(shape, d)
        assert rows.mean(axis=0) == pytest.approx(np.zeros(d), abs=1e-12)
        assert rows.T @ rows / len(rows) == pytest.approx(np.eye(d), abs=1e-9)
    fourth = [(standard_rows(shape, 1) ** 4).mean() for shape in SHAPES]
    assert fourth == pytest.approx([3.0, 1.8], rel=0.05)


def test_a_distribution_has_the_moments_that_it_was_made_of():
    X = np.random.default_rng(0).normal(size=(200, 3)) @ np.diag([1.0, 0.3, 0.1]) + 0.2
    found = of_rows(X, 1e-9)
    assert found.mass == pytest.approx(200)
    assert found.known.all()
    for rows in map(found.rows, SHAPES):
        assert rows.mean(axis=0) == pytest.approx(X.mean(axis=0))
        assert np.cov(rows.T, bias=True) == pytest.approx(np.cov(X.T, bias=True))


def test_directions_that_noise_hides_are_unknown():
    found = of_rows(np.random.default_rng(1).normal(size=(500, 2)) * [1.0, 0.01], 5.0)
    assert found.known.tolist() == [False, True]
    assert found.values[0] == pytest.approx(KNOWN * 5.0 / found.mass)
    assert abs(found.vectors[1, 0]) == pytest.approx(1.0, abs=1e-3)


def test_moments_that_no_rows_have_make_a_distribution_all_the_same():
    for size in [0.0, 1e-300, 1e3, 1e12]:
        noise = np.random.default_rng(2).normal(size=(4, 4)) * size
        found = CovariateDistribution.of_moments(noise + noise.T, CONSTANT, 100, size)
        assert 0 < found.mass <= 100
        assert (found.values > 0).all()
        assert np.isfinite([found.rows(shape).sum() for shape in SHAPES]).all()
    assert of_rows(np.zeros((100, 0)), 1.0).rows("normal").shape == (1, 0)


def test_labels_keep_their_shares_and_exclude_each_other():
    rng = np.random.default_rng(4)
    label = rng.choice(3, 4000, p=[0.7, 0.25, 0.05])
    X = np.column_stack([label == 1, rng.normal(size=4000), label == 2]).astype(float)
    shares = tuple(X[:, [0, 2]].mean(axis=0).tolist())
    found = replace(of_rows(X, 1e-9), labels=(((0, 2), shares),))
    for rows in map(found.rows, SHAPES):
        assert rows.mean(axis=0) == pytest.approx(X.mean(axis=0))
        assert np.cov(rows.T, bias=True) == pytest.approx(np.cov(X.T, bias=True), abs=1e-9)
        # Near 0 and 1, and one at a time.
        indicators = np.round(rows[:, [0, 2]], 1)
        assert np.abs(rows[:, [0, 2]] - np.clip(np.round(indicators), 0, 1)).max() < 0.1
        assert (np.round(indicators).sum(axis=1) <= 1.0).all()
    # Shares that noise has made impossible leave some rows to each label.
    for shares in [(2.0, 3.0), (-1.0, 0.0), (0.0, 1.0)]:
        rows = replace(found, labels=(((0, 2), shares),)).rows("normal")
        assert np.cov(rows.T, bias=True) == pytest.approx(np.cov(X.T, bias=True), abs=1e-9)


def test_rows_count_by_the_regression_of_exposures_on_them():
    """Of a label exactly, if there is no noise; less by what noise adds; evenly if it hides all."""
    rng = np.random.default_rng(7)
    rare, x = rng.random(20_000) < 0.1, rng.normal(size=20_000)
    X, exposure = np.column_stack([rare, x]).astype(float), np.where(rare, 0.1, 0.6)
    shares = ((0,), (float(rare.mean()),))
    products = np.column_stack([np.full(20_000, CONSTANT), X]).T @ (EXPOSURE * (exposure - 0.5))
    for noise, least, most in ((1e-9, 0.95, 1.05), (200.0, 1.1, 4.0), (2000.0, 6.0, 6.0)):
        plain = replace(of_rows(X, 1e-9), labels=(shares,))
        found = plain.exposed(products, CONSTANT, noise)
        assert found.mean_exposure == pytest.approx(exposure.mean(), rel=1e-6)
        for rows in map(found.rows, SHAPES):
            weight = found.exposure(rows)
            assert weight.mean() == pytest.approx(1.0)
            is_rare = np.round(rows[:, 0]) == 1.0
            ratio = weight[is_rare].mean() / weight[~is_rare].mean()
            assert least / 6.0 - 1e-6 <= ratio <= most / 6.0 + 1e-6
        assert plain.exposure(rows) == 1.0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_curves_and_products_follow_from_their_bases(shape, correlation):
    """Rows have the moments, and a bend is that of the line but for what moves it there."""
    rng, n = np.random.default_rng(3), 20_000
    z = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], n)
    people = pd.DataFrame({"age": 65 + 9 * np.abs(z[:, 0]), "treat": z[:, 1] > 0})
    columns = PublicColumns(
        {
            "age": {"spline": (60, 100), "df": 3},
            "treat": bool,
            "both": {"interaction": ["age", "treat"]},
        }
    )
    known = KnownColumns.of(columns._features())
    X = np.asarray(columns.fit(people).transform(people))
    center, unit = X.mean(axis=0), 4.0 * X.std(axis=0)
    rows = (X - center) / unit
    asked = PlainMoments(price=1e9, n_records=n, n_features=X.shape[1])
    exact = asked.query_for({}).total(InMemory([MomentRows(rows, None)]), asked.rows)
    moments = asked.query_for({}).release(exact, 1e9, random_source(0))
    ends = (known.low - center) / unit, (known.high - center) / unit
    plain = ReleasedMoments(asked, moments, known.groups, ends)
    gaps = []
    for derivation in (None, Derivation(known, center, unit)):
        law = replace(plain, derivation=derivation).distribution
        found = law.rows(shape)
        np.testing.assert_allclose(found.mean(axis=0), law.mean, atol=1e-9)
        np.testing.assert_allclose(np.cov(found.T, bias=True), np.cov(rows.T, bias=True), atol=1e-3)
        whole = found * unit + center
        gaps.append(np.abs(known.with_derived(whole) - whole).mean(axis=0))
    bends = [one.place for one in known.derived]
    assert bends == [1, 2, 4, 5, 6]
    assert (gaps[1][bends] < 0.6 * gaps[0][bends]).all()


@pytest.mark.parametrize("has_exposure", [False, True])
def test_classes_have_means_and_shares_of_labels_of_their_own(has_exposure):
    """Within them is one covariance. A class without anybody is like all, and has no mass."""
    rng, n = np.random.default_rng(9), 30_000
    group = rng.choice(4, n, p=[0.6, 0.3, 0.1, 0.0])
    label = rng.random(n) < np.array([0.2, 0.5, 0.8, 0.5])[group]
    X = np.column_stack([label, rng.normal(group, 1.0), rng.normal(size=n)]) / 8.0
    exposure = np.clip(0.2 + 0.2 * group + 0.1 * label, 0.0, 1.0) if has_exposure else None
    how = {"n_records": n, "n_features": 3, "n_classes": 4, "has_exposure": has_exposure}
    asked = PlainMoments(price=1e9, **how)
    block = MomentRows(X, None, exposure, group)
    lengths = np.linalg.norm(np.concatenate([*asked.rows(block)]), axis=1)
    alone = PlainMoments(price=1e9, **(how | {"n_classes": 1}))
    one = np.concatenate([*alone.rows(block._replace(group=None))])
    np.testing.assert_allclose(lengths, np.linalg.norm(one, axis=1), rtol=1e-12)
    exact = asked.query_for({}).total(InMemory([block]), asked.rows)
    moments = asked.query_for({}).release(exact, 1e9, random_source(0))
    ends = np.array([0.0, -1.0, -1.0]), np.array([0.125, 1.0, 1.0])
    law = ReleasedMoments(asked, moments, (), ends).distribution
    assert law.mass == pytest.approx(n, rel=1e-3)
    residual = X.copy()
    for place, own in enumerate(law.classes[:3]):
        rows = X[group == place]
        residual[group == place] -= rows.mean(axis=0)
        assert own.mass == pytest.approx(len(rows), rel=2e-3)
        np.testing.assert_allclose(own.mean, rows.mean(axis=0), atol=1e-3)
        (((at,), (share,)),) = own.labels
        assert at == 0
        assert share == pytest.approx(label[group == place].mean(), abs=0.01)
        if has_exposure:
            assert own.mean_exposure == pytest.approx(exposure[group == place].mean(), abs=0.01)
    within = residual.T @ residual / n
    drawn = law.classes[1].rows("normal")
    np.testing.assert_allclose(np.cov(drawn.T, bias=True), within, atol=1e-3)
    assert law.classes[3].mass == 1.0
    if has_exposure:
        weight = law.classes[0].exposure(law.classes[0].rows("uniform"))
        assert weight.max() / weight.min() == pytest.approx(1.45, abs=0.1)


def test_noise_on_the_mean_of_a_class_without_anybody_makes_no_difference_between_classes():
    rng, n = np.random.default_rng(10), 20_000
    X, group = rng.normal(size=(n, 2)), rng.integers(1, 3, n)
    constants = CONSTANT * (group[:, None] == np.arange(3))
    rows = np.column_stack([constants, X])
    for seed in range(20):
        noise = 30.0 * np.random.default_rng(seed).normal(size=(5, 5))
        moments = rows.T @ rows + (noise + noise.T) / 2.0
        law = CovariateDistribution.of_moments(moments, CONSTANT, n, 30.0, n_classes=3)
        assert law.values == pytest.approx(np.ones(2), abs=0.06)
        assert np.abs(law.classes[0].mean).max() < 0.5


def test_features_that_vary_as_two_values_do_are_taken_for_such():
    """A skewed feature, an even one and one with many values at both ends are none."""
    rng = np.random.default_rng(8)
    X = np.column_stack(
        [
            rng.random(4000) < 0.05,
            rng.uniform(size=4000),
            rng.exponential(0.05, 4000).clip(0, 1),
            rng.beta(0.5, 0.5, 4000),
            rng.random(4000) < 0.6,
        ]
    )
    asked = PlainMoments(price=1e9, n_records=4000, n_features=5)
    exact = asked.query_for({}).total(InMemory([MomentRows(X / 3.0, None)]), asked.rows)
    moments = asked.query_for({}).release(exact, 1e9, random_source(0))
    ends = np.zeros(5), np.full(5, 1.0 / 3.0)
    for groups, found in (((), [(0,), (4,)]), (((4, 3),), [(4, 3), (0,)])):
        law = ReleasedMoments(asked, moments, groups, ends).distribution
        assert [group for group, _ in law.labels] == found
    assert ReleasedMoments(asked, moments).distribution.labels == ()
