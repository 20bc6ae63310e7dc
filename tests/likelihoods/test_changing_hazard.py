"""Effects that change over time: derivatives, and constants that hold for any pair of records."""

from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp, mpf

from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods.changing_hazard import ChangingHazard, TimeEffects
from skdpsurv.likelihoods.hazard import DiscreteHazard, hazard_block
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.likelihoods.stratified import StratifiedHazard, stratified_block
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.likelihoods.hazards import gap
from tests.support.combinations import thinned

Q, E, R = 8, 2, 0.8
CAPS = [("logit", None), *((name, cap) for name in sorted(LINKS) for cap in (0.5, 1.0, 2.0))]
TIME = np.arange(1, Q + 1) / Q
#: A line, a step and two functions of one covariate, within a ball of radius 1/2.
FUNCTIONS = {
    "line": TimeEffects((TIME - 0.5625)[:, None] / 0.875, np.array([0]), np.array([0])),
    "step": TimeEffects((TIME > 0.5)[:, None] - 0.5, np.array([0]), np.array([0])),
    "two": TimeEffects(
        0.5 * np.column_stack([np.cos(6 * TIME), np.sin(6 * TIME)]), np.array([0, 0]), np.arange(2)
    ),
}


def changing(name="logit", cap=1.0, which="line", size=0.3, n_features=1, weighted=False):
    link, basis = LINKS[name].bounded_at(0.05), size * orthogonal_basis(Q, E)
    how = basis, n_features, R, link, cap, weighted
    return ChangingHazard(*how, effects=FUNCTIONS[which])


def some_records(n=60, n_features=3, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    X *= R / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, Histories(rng.integers(1, Q + 1, n), rng.random(n) < 0.5)


class TestDerivatives:
    @pytest.mark.parametrize("late", [False, True])
    @pytest.mark.parametrize(("name", "cap"), CAPS)
    def test_are_those_of_the_losses(self, name, cap, late):
        effects = TimeEffects(
            np.column_stack([TIME - 0.5, TIME > 0.5]), np.array([0, 2, 2]), np.array([0, 0, 1])
        )
        likelihood = replace(changing(name, cap, n_features=3), effects=effects)
        X, histories = some_records()
        if late:
            entry = np.random.default_rng(2).integers(0, Q, histories.size)
            histories = replace(histories, entry=entry)
        block = hazard_block(X, histories)
        coef = 1.5 * np.random.default_rng(3).normal(size=likelihood.n_params)
        gradient, hessian = likelihood.derivatives(coef, block)
        steps = 1e-6 * np.eye(coef.size)

        def slope(f):
            return np.array([(f(coef + s) - f(coef - s)) / 2e-6 for s in steps])

        def gradient_at(at):
            return likelihood.derivatives(at, block, order=1).gradient

        expected = slope(lambda at: likelihood.losses(at, block).sum())
        np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.abs(expected).max())
        expected = slope(gradient_at)
        np.testing.assert_allclose(hessian, expected, atol=1e-6 * np.abs(expected).max())

    @pytest.mark.parametrize(("name", "cap"), CAPS)
    def test_without_a_change_they_are_those_of_constant_effects(self, name, cap):
        likelihood = changing(name, cap, n_features=3)
        plain = DiscreteHazard(
            likelihood.basis, 3, R, likelihood.link, likelihood.max_cumulative_hazard
        )
        block = hazard_block(*some_records(200))
        coef = 2.0 * np.random.default_rng(4).normal(size=plain.n_params)
        whole, size = np.append(coef, 0.0), plain.n_params
        gradient, hessian = likelihood.derivatives(whole, block)
        expected = plain.derivatives(coef, block)
        np.testing.assert_allclose(gradient[:size], expected.gradient, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(hessian[:size, :size], expected.hessian, rtol=1e-9, atol=1e-9)
        losses = likelihood.losses(whole, block), plain.losses(coef, block)
        np.testing.assert_allclose(*losses, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("late", [False, True])
    @pytest.mark.parametrize(("name", "cap"), CAPS)
    def test_no_record_changes_the_part_of_another(self, name, cap, late):
        """A block's sums are those of its records: some beyond the cap, others seen for longer."""
        likelihood, rng = changing(name, cap, "step", n_features=2), np.random.default_rng(11)
        for scale in (1.0, 4.0, 12.0):
            X, histories = some_records(40, 2, seed=int(scale))
            if late:
                histories = replace(histories, entry=rng.integers(0, Q, 40))
            coef = scale * rng.normal(size=likelihood.n_params)
            coef[[0, 2]], coef[-1] = [-5.0, 12.0], 12.0  # hazards rise with x, and rise late
            X[:20], histories.exit[:20] = [R, 0.0], Q // 2
            block = hazard_block(X, histories)
            each = [hazard_block(X[[i]], histories.take(np.array([i]))) for i in range(40)]
            found = likelihood.derivatives(coef, block)
            alone = [likelihood.derivatives(coef, one) for one in each]
            for whole, parts in zip(found, zip(*alone, strict=True), strict=True):
                expected = np.sum(parts, axis=0)
                np.testing.assert_allclose(whole, expected, atol=1e-11 * (1 + np.abs(parts).max()))
            losses = sorted(float(likelihood.losses(coef, one)[0]) for one in each)
            np.testing.assert_allclose(sorted(likelihood.losses(coef, block)), losses, rtol=1e-11)

    def test_weights_strata_and_empty_blocks(self):
        likelihood, (X, histories) = changing(n_features=3), some_records()
        stratum = np.arange(60) % 2
        both = StratifiedHazard(likelihood, 2)
        block = stratified_block(X, replace(histories, stratum=stratum))
        coef = np.random.default_rng(5).normal(size=both.n_params)
        weights = np.random.default_rng(6).integers(0, 3, 60)
        taken = both.take(block, np.repeat(np.arange(60), weights))
        found = both.derivatives(coef, block, weights.astype(float)).gradient
        np.testing.assert_allclose(found, both.derivatives(coef, taken).gradient, atol=1e-12)
        linear = both.linearized(coef, block)
        np.testing.assert_allclose(linear.gradient(weights.astype(float)), found, atol=1e-12)
        nobody = hazard_block(X[:0], histories.take(slice(0)))
        assert not likelihood.derivatives(np.ones(likelihood.n_params), nobody).gradient.any()


def _block(likelihood, records):
    x, exit_, event, stratum, entry = map(np.array, zip(*records, strict=True))
    histories = Histories(exit_, event, entry=entry)
    if isinstance(likelihood, StratifiedHazard):
        return stratified_block(x, replace(histories, stratum=stratum))
    return hazard_block(x, histories)


def random_record(rng):
    entry = int(rng.integers(0, Q)) if rng.random() < 0.3 else 0
    return (
        [R * rng.choice([-1.0, 0.0, 1.0])],
        int(rng.integers(1, Q + 1)),
        bool(rng.integers(2)),
        int(rng.integers(2)),
        entry,
    )


def climb(likelihood, rng, n_starts, n_steps):
    """Return the largest gap found: random pairs, of which each is then bettered step by step."""
    best = 0.0
    for _ in range(n_starts):
        coef = 10.0 ** rng.uniform(-1, 3, likelihood.n_params)
        coef *= rng.choice([-1.0, 1.0], coef.size)
        pair = [random_record(rng), random_record(rng)]
        reached = gap(likelihood, coef, _block(likelihood, pair))
        for _ in range(n_steps):
            step, changed = coef.copy(), list(pair)
            if rng.random() < 0.5:
                place = rng.integers(coef.size)
                step[place] *= rng.choice([-1.0, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0])
            else:
                place, new = rng.integers(2), random_record(rng)
                column = rng.integers(5)
                changed[place] = tuple(new[i] if i == column else pair[place][i] for i in range(5))
            found = gap(likelihood, step, _block(likelihood, changed))
            if found >= reached:
                coef, pair, reached = step, changed, found
        best = max(best, reached)
    return best


@pytest.mark.parametrize("n_strata", [1, 2])
@pytest.mark.parametrize(
    ("case", "which", "size"), thinned(CAPS, sorted(FUNCTIONS), [0.05, 0.5]), ids=str
)
def test_no_pair_of_records_passes_the_sensitivity(case, which, size, n_strata):
    likelihood = changing(*case, which, size)
    if n_strata == 2:
        likelihood = StratifiedHazard(likelihood, 2)
    assert climb(likelihood, np.random.default_rng(8), 3, 40) <= 1.0 + 1e-9


@pytest.mark.parametrize("name", sorted(LINKS))
def test_sensitivity_is_nearly_attained(name):
    """Where the covariates' part is most of it: S is 1.1 times that of constant effects or more."""
    likelihood = changing(name, 2.0, "step", 0.05)
    plain = DiscreteHazard(likelihood.basis, 1, R, likelihood.link, 2.0)
    more = likelihood.constants.gradient_sensitivity / plain.constants.gradient_sensitivity
    assert more > 1.1
    reached = climb(likelihood, np.random.default_rng(0), 12, 150)
    assert reached > 0.9
    assert reached * more > 1.0


@pytest.mark.parametrize(("name", "cap"), CAPS)
@pytest.mark.parametrize("which", sorted(FUNCTIONS))
def test_no_record_passes_trace_and_rank(name, cap, which):
    likelihood, rng = changing(name, cap, which), np.random.default_rng(6)
    constants, ranks = likelihood.constants, []
    for _ in range(60):
        coef = 10.0 ** rng.uniform(-1, 2, likelihood.n_params)
        coef *= rng.choice([-1.0, 1.0], coef.size)
        z = _block(likelihood, [random_record(rng)])
        eigenvalues = np.linalg.eigvalsh(likelihood.derivatives(coef, z).hessian)
        ranks.append(np.sum(eigenvalues > 1e-9 * max(1.0, constants.hessian_trace)))
        assert eigenvalues.sum() <= constants.hessian_trace * (1 + 1e-9)
        assert eigenvalues.min() >= -1e-9
    assert max(ranks) <= constants.hessian_rank == E + FUNCTIONS[which].values.shape[1]


def test_weighed_records_have_no_larger_gap():
    likelihood, rng = changing("logit", 1.0, "two", 0.5, weighted=True), np.random.default_rng(7)
    for _ in range(300):
        coef = 10.0 ** rng.uniform(-1, 2, likelihood.n_params)
        coef *= rng.choice([-1.0, 1.0], coef.size)
        long, people = rng.uniform(1.0, 4.0, 2), [random_record(rng) for _ in range(2)]
        pair = [([f * x[0]], *rest) for f, (x, *rest) in zip(long, people, strict=True)]
        weighed = _block(likelihood, pair)._replace(weight=np.minimum(1.0, long**-2))
        assert gap(likelihood, coef, weighed) <= 1.0 + 1e-9


@pytest.mark.parametrize("name", sorted(LINKS))
def test_gradients_beyond_the_cap_have_the_roundings_that_are_stated(name):
    """Beside the shift of 50 digits, found by halving."""
    likelihood = changing(name, 0.5, "line", 0.5)
    rng, constants = np.random.default_rng(9), likelihood.constants
    mp.dps = 50
    for _ in range(6):
        coef = rng.normal(size=likelihood.n_params) * 3.0 + np.array([4.0, 0.0, 0.0, 0.0])
        z = _block(likelihood, [([R], Q, False, 0, 0)])
        found = likelihood.derivatives(coef, z, order=1).gradient
        rows = np.column_stack(
            [likelihood.basis, np.full(Q, R), R * likelihood.effects.values[:, 0]]
        )
        eta = [mp.fsum(mpf(a) * mpf(b) for a, b in zip(row, coef, strict=True)) for row in rows]
        low, high, cap = mpf(0), max(eta) + 10, mpf(likelihood.cap)
        if mp.fsum(_slope(name, one) for one in eta) <= cap:
            continue
        for _ in range(200):
            middle = (low + high) / 2
            above = mp.fsum(_slope(name, one - middle) for one in eta) > cap
            low, high = (middle, high) if above else (low, middle)
        slopes = [_slope(name, one - low) for one in eta]
        exact = [
            mp.fsum(mpf(a) * s for a, s in zip(column, slopes, strict=True)) for column in rows.T
        ]
        off = mp.sqrt(mp.fsum((mpf(a) - b) ** 2 for a, b in zip(found, exact, strict=True)))
        S, m = constants.gradient_sensitivity, constants.predictor_rounding
        size = float(np.linalg.norm(coef))
        assert off <= 2.0**-53 * (constants.rounding * S + m * constants.hessian_trace * size)


def _slope(name, eta):
    if name == "logit":
        return 1 / (1 + mp.exp(-eta))
    if name == "cloglog":
        return mp.exp(eta)
    return mp.npdf(eta) / mp.ncdf(-eta)
