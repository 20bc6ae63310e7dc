"""Baselines by stratum: sums of the likelihood of one, and constants that hold for any pair."""

import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.likelihoods.loss import LARGEST_BLOCK, block_derivatives
from skdpsurv.likelihoods.stratified import StratifiedHazard, stratified_block
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.likelihoods.hazards import gap
from tests.support.combinations import thinned
from tests.support.hazard_blocks import hazard_block

G, Q, E, R = 3, 6, 2, 0.8
CAPS = [("logit", None), *((name, cap) for name in sorted(LINKS) for cap in (0.5, 1.0, 2.0))]
#: Of a line whose rows differ, and of a constant, whose rows are as far apart as strata make them.
SHAPES = [(E, 1.0), (E, 0.3), (1, 1.0)]


def stratified(name="logit", cap=None, n_basis=E, size=1.0, n_features=2, n_strata=G):
    link = LINKS[name].bounded_at(0.05)
    basis = size * orthogonal_basis(Q, n_basis)
    return StratifiedHazard(DiscreteHazard(basis, n_features, R, link, cap), n_strata)


def some_records(n=60, n_features=2, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    X *= R / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, rng.integers(1, Q + 1, n), rng.random(n) < 0.5, rng.integers(0, G, n)


def block_of(X, interval, event, stratum):
    return stratified_block(X, Histories(interval, event, stratum=stratum))


class TestSums:
    @pytest.mark.parametrize(("name", "cap"), CAPS)
    def test_the_sum_over_strata_of_the_likelihood_of_one(self, name, cap):
        likelihood, (X, interval, event, stratum) = stratified(name, cap), some_records()
        coef = np.random.default_rng(2).normal(size=likelihood.n_params)
        block, found = block_of(X, interval, event, stratum), 0.0
        losses, gradient = [], np.zeros(likelihood.n_params)
        hessian = np.zeros((gradient.size, gradient.size))
        for g in range(G):
            # The design of a stratum in all coefficients, written out.
            select = np.zeros((E + 2, gradient.size))
            select[:E, g * E : (g + 1) * E] = np.eye(E)
            select[E:, G * E :] = np.eye(2)
            of = stratum == g
            own = hazard_block(X[of], interval[of], event[of])
            losses.append(likelihood.one.losses(select @ coef, own))
            one = likelihood.one.derivatives(select @ coef, own)
            gradient += select.T @ one.gradient
            hessian += select.T @ one.hessian @ select
        found = likelihood.derivatives(coef, block)
        np.testing.assert_array_equal(likelihood.losses(coef, block), np.concatenate(losses))
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(found.hessian, hessian, rtol=1e-13, atol=1e-13)
        assert likelihood.derivatives(coef, block, order=1).hessian is None

    def test_one_stratum_is_the_likelihood_without(self):
        likelihood, (X, interval, event, stratum) = stratified(n_strata=1), some_records()
        block = block_of(X, interval, event, np.zeros_like(stratum))
        coef = np.random.default_rng(3).normal(size=likelihood.n_params)
        expected = likelihood.one.derivatives(coef, hazard_block(X, interval, event))
        found = likelihood.derivatives(coef, block)
        np.testing.assert_array_equal(found.gradient, expected.gradient)
        np.testing.assert_array_equal(found.hessian, expected.hessian)
        assert likelihood.constants == likelihood.one.constants

    def test_weights_take_and_thin_choose_records(self):
        likelihood, block = stratified("cloglog", 1.0), block_of(*some_records())
        coef = np.random.default_rng(4).normal(size=likelihood.n_params)
        weights = np.random.default_rng(5).integers(0, 3, size=60)
        taken = likelihood.take(block, np.repeat(np.arange(60), weights))
        assert likelihood.n_records(taken) == weights.sum()
        found = likelihood.derivatives(coef, block, weights.astype(float)).gradient
        np.testing.assert_allclose(found, likelihood.derivatives(coef, taken).gradient, atol=1e-12)
        losses = likelihood.losses(coef, block)
        thin = likelihood.thin(block, 7)
        np.testing.assert_allclose(likelihood.losses(coef, thin), losses[::7], rtol=1e-14)
        linear = likelihood.linearized(coef, block)
        np.testing.assert_array_equal(linear.losses, losses)
        np.testing.assert_allclose(linear.gradient(weights.astype(float)), found, atol=1e-12)

    def test_blocks_without_records_or_strata(self):
        likelihood, (X, *rest) = stratified(), some_records()
        coef = np.ones(likelihood.n_params)
        nobody = block_of(X[:0], *(column[:0] for column in rest))
        assert not likelihood.derivatives(coef, nobody).gradient.any()
        assert likelihood.losses(coef, nobody).size == 0
        last = rest[-1] == G - 1
        only = block_of(X[last], *(column[last] for column in rest))
        assert not likelihood.derivatives(coef, only).gradient[: (G - 1) * E].any()

    def test_large_blocks_are_cut(self):
        likelihood, n = stratified(n_features=1), LARGEST_BLOCK + 100
        block = block_of(*some_records(n, 1))
        coef = np.full(likelihood.n_params, -0.5)
        whole = likelihood.derivatives(coef, block)
        found = block_derivatives(likelihood, coef, 2, block)
        np.testing.assert_allclose(found.gradient, whole.gradient, rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(found.hessian, whole.hessian, rtol=1e-9, atol=1e-6)


def test_minimum_is_that_of_statsmodels_with_a_baseline_by_stratum():
    """Person-periods whose design is the baseline's basis times dummies of strata."""
    likelihood, records = stratified(), some_records(400)
    block, coef = block_of(*records), np.zeros(likelihood.n_params)
    for _ in range(12):
        gradient, hessian = likelihood.derivatives(coef, block)
        coef = coef - np.linalg.solve(hessian, gradient)
    X, interval, event, stratum = records
    person = np.repeat(np.arange(400), interval)
    period = np.concatenate([np.arange(t) for t in interval])
    dummies = np.eye(G)[stratum[person]]
    baseline = dummies[:, :, None] * likelihood.one.basis[period][:, None, :]
    design = np.column_stack([baseline.reshape(person.size, -1), X[person]])
    response = event[person] & (period == interval[person] - 1)
    theirs = sm.Logit(response, design).fit(disp=0, method="newton", tol=1e-14, maxiter=100)
    np.testing.assert_allclose(coef, theirs.params, rtol=1e-8, atol=1e-8)


def gap_of(likelihood, coef, one, other):
    """Return the distance of two records' gradients, as a part of S."""
    return gap(likelihood, coef, block_of(*map(np.array, zip(one, other, strict=True))))


def random_record(rng):
    x = [R * rng.choice([-1.0, 0.0, 1.0])]
    return x, int(rng.integers(1, Q + 1)), bool(rng.integers(2)), int(rng.integers(2))


def bettered(record, rng):
    """Return a record with one of its columns drawn anew."""
    new, place = random_record(rng), rng.integers(4)
    return tuple(new[i] if i == place else record[i] for i in range(4))


def climb(likelihood, rng, n_starts, n_steps):
    """Return the largest gap found: random pairs, of which each is then bettered step by step."""
    best = 0.0
    for _ in range(n_starts):
        coef = 10.0 ** rng.uniform(-1, 3, likelihood.n_params)
        coef *= rng.choice([-1.0, 1.0], coef.size)
        pair = [random_record(rng), random_record(rng)]
        if rng.random() < 0.25:  # a tie, but for the stratum
            pair[1] = (*pair[0][:3], 1 - pair[0][3])
        reached = gap_of(likelihood, coef, *pair)
        for _ in range(n_steps):
            step, changed = coef.copy(), list(pair)
            if rng.random() < 0.5:
                place = rng.integers(coef.size)
                step[place] *= rng.choice([-1.0, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0])
            else:
                place = rng.integers(2)
                changed[place] = bettered(pair[place], rng)
            found = gap_of(likelihood, step, *changed)
            if found >= reached:
                coef, pair, reached = step, changed, found
        best = max(best, reached)
    return best


@pytest.mark.parametrize(("case", "shape"), thinned(CAPS, SHAPES), ids=str)
def test_no_pair_of_records_passes_the_sensitivity(case, shape):
    """Of the same stratum or of two."""
    likelihood = stratified(*case, *shape, n_features=1, n_strata=2)
    assert climb(likelihood, np.random.default_rng(8), 3, 40) <= 1.0 + 1e-9


@pytest.mark.parametrize("name", sorted(LINKS))
def test_sensitivity_is_nearly_attained(name):
    likelihood = stratified(name, 2.0, 1, n_features=1, n_strata=2)
    assert climb(likelihood, np.random.default_rng(0), 5, 60) > 0.9


def test_the_sensitivity_of_one_stratum_is_passed():
    """Two records beyond the cap cancel on a common baseline, and not on two."""
    likelihood = stratified("logit", 2.0, 1, n_features=1)
    coef = np.append(np.full(G, 1e3), 0.0)
    pair = ([R], Q, False, 0), ([-R], Q, False, 1)
    distance = gap_of(likelihood, coef, *pair) * likelihood.constants.gradient_sensitivity
    assert distance > 1.1 * likelihood.one.constants.gradient_sensitivity


@pytest.mark.parametrize(("name", "cap"), CAPS)
def test_no_record_passes_trace_and_rank(name, cap):
    likelihood, rng = stratified(name, cap, n_features=1), np.random.default_rng(6)
    constants, ranks = likelihood.constants, []
    assert constants.hessian_rank == E
    assert constants.hessian_trace == likelihood.one.constants.hessian_trace
    for _ in range(100):
        coef = 10.0 ** rng.uniform(-1, 2, likelihood.n_params)
        coef *= rng.choice([-1.0, 1.0], coef.size)
        z = block_of(*map(np.array, zip(random_record(rng), strict=True)))
        eigenvalues = np.linalg.eigvalsh(likelihood.derivatives(coef, z).hessian)
        ranks.append(np.sum(eigenvalues > 1e-9 * max(1.0, constants.hessian_trace)))
        assert eigenvalues.sum() <= constants.hessian_trace * (1 + 1e-9)
    assert max(ranks) <= E


def test_weighed_records_have_no_larger_gap():
    """Weights at most 1, of records in two strata, on bases of which weights make S larger."""
    likelihood, rng = stratified("logit", 1.0, n_features=1), np.random.default_rng(7)
    likelihood = replace(likelihood, one=replace(likelihood.one, weighted=True))
    for _ in range(300):
        coef = 10.0 ** rng.uniform(-1, 2, likelihood.n_params)
        coef *= rng.choice([-1.0, 1.0], coef.size)
        people = sorted((random_record(rng) for _ in range(2)), key=lambda one: one[3])
        x, *rest = map(np.array, zip(*people, strict=True))
        long = rng.uniform(1.0, 4.0, 2)
        pair = block_of(long[:, None] * x, *rest)
        weight = np.minimum(1.0, long**-2)
        pair = pair._replace(records=pair.records._replace(weight=weight))
        assert gap(likelihood, coef, pair) <= 1.0 + 1e-9


def test_sums_of_strata_have_the_roundings_that_are_stated():
    """Beside the likelihood of one: of 200 strata, whose gradients are added in 200 roundings."""
    n_strata, n, d = 200, 4000, 2
    likelihood, (X, interval, event, _) = stratified(n_strata=n_strata), some_records(n)
    extra = likelihood.constants.rounding - likelihood.one.constants.rounding
    assert extra >= n_strata - 1
    stratum = np.arange(n) % n_strata
    coef = np.random.default_rng(9).normal(size=likelihood.n_params)
    block = block_of(X, interval, event, stratum)
    parts = [likelihood.take(block, block.stratum == g) for g in range(n_strata)]
    ends = [likelihood.derivatives(coef, one, order=1).gradient[-d:] for one in parts]
    exact = np.array([math.fsum(column) for column in zip(*ends, strict=True)])
    found = likelihood.derivatives(coef, block, order=1).gradient[-d:]
    assert (np.abs(found - exact) <= extra * 2.0**-53 * np.abs(ends).sum(axis=0)).all()
