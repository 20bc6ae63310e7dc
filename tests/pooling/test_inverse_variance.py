"""The formulas of pooling, against those written down plainly and against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.meta_analysis import combine_effects

from skdpsurv.inference import Inference
from skdpsurv.pooling.estimates import Heterogeneity, pooled_estimate, weighted_mean


def members(rng, n_sites=5, size=3):
    made = []
    for _ in range(n_sites):
        root = rng.normal(size=(size, size + 2))
        cov = root @ root.T
        made.append(Inference(rng.normal(size=size), 0.5 * (cov + cov.T), np.full(size, True)))
    return made


def diagonal(y, v, known=True):
    y = np.atleast_1d(np.asarray(y, float))
    return Inference(y, np.diag(np.atleast_1d(v)), np.broadcast_to(known, y.shape).copy())


def test_all_known():
    found = members(np.random.default_rng(0))
    precisions = [np.linalg.inv(one.covariance) for one in found]
    sigma = np.linalg.inv(sum(precisions))
    theta = sigma @ sum(p @ one.estimate for p, one in zip(precisions, found, strict=True))
    mean = weighted_mean(found)
    np.testing.assert_allclose(mean.covariance, sigma, rtol=1e-9)
    np.testing.assert_allclose(mean.estimate, theta, rtol=1e-9)
    assert (mean.covariance == mean.covariance.T).all()
    assert mean.known.all()


def test_who_does_not_know_a_coordinate_says_what_its_block_says():
    a, b = members(np.random.default_rng(1), 2)
    partial = Inference(b.estimate, b.covariance, np.array([True, False, True]))
    p = np.linalg.inv(a.covariance)
    q = np.zeros((3, 3))
    at = np.ix_([0, 2], [0, 2])
    q[at] = np.linalg.inv(b.covariance[at])
    mean = weighted_mean([a, partial])
    np.testing.assert_allclose(mean.covariance, np.linalg.inv(p + q), rtol=1e-9)
    # What stands at an unknown coordinate is not read.
    other = Inference(b.estimate + np.array([0.0, 1e9, 0.0]), b.covariance, partial.known)
    np.testing.assert_array_equal(weighted_mean([a, other]).estimate, mean.estimate)


def test_what_nobody_knows_stays_unknown():
    for known in (np.array([True, False, True]), np.full(3, False)):
        found = members(np.random.default_rng(2), 2)
        mean = weighted_mean([Inference(x.estimate, x.covariance, known) for x in found])
        assert mean.known.tolist() == known.tolist()
        assert not mean.estimate[~known].any()
        assert not mean.covariance[~known].any()
        assert np.isinf(mean.standard_errors()[~known]).all()
    assert Heterogeneity.of([diagonal([1.0], [1.0], False)] * 2).df.tolist() == [-1]


def test_very_different_scales():
    scale = np.array([1e-8, 1.0, 1e8])
    found = members(np.random.default_rng(3))
    squares = np.outer(scale, scale)
    stretched = [Inference(m.estimate * scale, m.covariance * squares, m.known) for m in found]
    expected = weighted_mean(found).estimate * scale
    np.testing.assert_allclose(weighted_mean(stretched).estimate, expected, rtol=1e-8)


def test_a_covariance_without_inverse_is_refused():
    flat = Inference(np.zeros(2), np.ones((2, 2)), np.array([True, True]))
    for found in ([flat, diagonal([0.0, 0.0], [1.0, 1.0])], [diagonal([0.0], [0.0])]):
        with pytest.raises(ValueError, match="releases must have standard errors whose covariance"):
            weighted_mean(found)


@pytest.mark.parametrize("seed", range(4))
def test_against_statsmodels(seed):
    rng = np.random.default_rng(seed)
    y, v = rng.normal(0.0, 1.0, 6), rng.uniform(0.1, 1.5, 6)
    theirs = combine_effects(y, v, method_re="dl", use_t=False)
    found = [diagonal(*pair) for pair in zip(y, v, strict=True)]
    spread = Heterogeneity.of(found)
    assert spread.q[0] == pytest.approx(theirs.q)
    assert spread.tau2[0] == pytest.approx(max(0.0, theirs.tau2))
    assert spread.i2[0] == pytest.approx(max(0.0, theirs.i2))
    frame = theirs.summary_frame()
    for effects, row in (("fixed", "fixed effect"), ("random", "random effect")):
        if effects == "random" and theirs.tau2 < 0:
            continue
        mean = pooled_estimate(found, effects)
        assert mean.estimate[0] == pytest.approx(frame.loc[row, "eff"])
        assert mean.standard_errors()[0] == pytest.approx(frame.loc[row, "sd_eff"])


def test_one_site_says_nothing_of_spread():
    one = Inference(np.array([1.0, 2.0]), np.eye(2), np.array([True, True]))
    other = Inference(np.array([9.0, 2.0]), np.eye(2), np.array([False, True]))
    spread = Heterogeneity.of([one, other])
    assert spread.df.tolist() == [0, 1]
    assert spread.tau2.tolist() == [0.0, 0.0]
    assert np.isnan(spread.p[0])
    assert np.isnan(spread.i2[0])
    assert spread.i2[1] == 0.0


def test_spread_is_added_to_the_diagonal():
    found = [diagonal([0.0, 1.0], [1.0, 2.0]), diagonal([5.0, 1.0], [1.0, 1.0])]
    added = np.diag(Heterogeneity.of(found).tau2)
    wider = [Inference(one.estimate, one.covariance + added, one.known) for one in found]
    assert added.any()
    np.testing.assert_array_equal(
        pooled_estimate(found, "random").covariance, weighted_mean(wider).covariance
    )
