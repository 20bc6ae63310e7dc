"""The hazard likelihood of people who enter late: sums over the intervals from entry to exit."""

import numpy as np
import pytest
from scipy import optimize

from skdpsurv.data.histories import Histories
from skdpsurv.likelihoods.hazard import DiscreteHazard, hazard_block
from skdpsurv.likelihoods.hazard_kernel import cap_thresholds, least_thresholds
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.likelihoods.hazards import gap
from tests.support.hazard_blocks import hazard_block as block_from_the_start

Q, N_BASIS, D = 30, 3, 2
CASES = [(name, cap) for name in sorted(LINKS) for cap in (0.3, 1.5, 30.0)] + [("logit", None)]
COEFS = np.array(
    [[-9.0, 0, 0, 0.5, -0.5], [-3, 4, -2, 1, 1], [0, -8, 3, 2, -2], [8, 6, 6, 5, 5]], dtype=float
)


def hazard(name, cap, q=Q):
    basis = orthogonal_basis(q, N_BASIS) * [0.4, 0.15, 0.15]
    return DiscreteHazard(basis, D, 1.0, LINKS[name].bounded_at(0.05), cap)


def records(n=300, seed=0, q=Q):
    """Rows, exits, events and entries: also after the exit, at it, and at the end of the grid."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) / 2.0
    exits, entries = rng.integers(1, q + 1, n), rng.integers(0, q + 1, n)
    entries[: n // 10] = exits[: n // 10]
    entries[n // 10 : n // 3] = 0
    return X, exits, rng.random(n) < 0.5, entries


def block_of(X, exits, events, entries):
    return hazard_block(X, Histories(exits, events, entries))


def one_loss(likelihood, coef, x, exit_, event, entry):
    """The definition, with the least over shifts found by a search."""
    if entry >= exit_:
        return 0.0
    a, b = likelihood.basis @ coef[:N_BASIS], x @ coef[N_BASIS:]
    eta = a[entry : exit_ - event] + b

    def survived(shift):
        shifted = likelihood.link.survival(eta - shift).value.sum()
        return shifted + (shift * likelihood.cap if shift else 0.0)

    value = survived(0.0)
    if likelihood.cap is not None and eta.size:
        found = optimize.minimize_scalar(survived, bounds=(0.0, 80.0), options={"xatol": 1e-11})
        value = min(value, found.fun)
    event_loss = likelihood.link.event(a[exit_ - 1 : exit_] + b).value[0] if event else 0.0
    return value + event_loss


@pytest.mark.parametrize(("name", "cap"), CASES)
def test_losses_and_derivatives_are_those_from_entry_to_exit(name, cap):
    likelihood, people = hazard(name, cap), records(100)
    block = block_of(*people)
    for coef in COEFS:
        expected = sum(one_loss(likelihood, coef, *one) for one in zip(*people, strict=True))
        total = likelihood.losses(coef, block).sum()
        assert total == pytest.approx(expected, rel=1e-9)
        found, step = likelihood.derivatives(coef, block), 1e-5 * np.eye(coef.size)
        ends = [[likelihood.losses(coef + s * h, block).sum() for s in (1, -1)] for h in step]
        slopes = np.subtract(*np.transpose(ends)) / 2e-5
        np.testing.assert_allclose(found.gradient, slopes, atol=1e-7 * max(1, np.abs(slopes).max()))
        ends = [
            [likelihood.derivatives(coef + s * h, block, order=1).gradient for s in (1, -1)]
            for h in step
        ]
        bends = np.array([plus - minus for plus, minus in ends]) / 2e-5
        np.testing.assert_allclose(found.hessian, bends, atol=1e-6 * max(1, np.abs(bends).max()))


@pytest.mark.parametrize(("name", "cap"), CASES)
def test_entries_at_the_start_change_nothing(name, cap):
    X, exits, events, _ = records(1000)
    late = block_of(X, exits, events, np.zeros_like(exits))
    usual, likelihood = block_from_the_start(X, exits, events), hazard(name, cap)
    for coef in COEFS:
        one, other = (likelihood.derivatives(coef, block) for block in (late, usual))
        size = np.abs(other.gradient).max()
        np.testing.assert_allclose(one.gradient, other.gradient, rtol=0, atol=1e-12 * size)
        size = np.abs(other.hessian).max()
        np.testing.assert_allclose(one.hessian, other.hessian, rtol=0, atol=1e-5 * size)


@pytest.mark.parametrize("name", sorted(LINKS))
def test_who_is_never_at_risk_counts_for_nothing(name):
    likelihood = hazard(name, 1.5)
    X, exits, events, entries = records()
    never = entries >= exits
    assert never.any()
    assert events[never].any()
    everybody = block_of(X, exits, events, entries)
    seen = block_of(X[~never], exits[~never], events[~never], entries[~never])
    for coef in COEFS:
        one, other = (likelihood.derivatives(coef, block) for block in (everybody, seen))
        np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-12, atol=1e-12)
        assert np.count_nonzero(likelihood.losses(coef, everybody)) <= np.count_nonzero(~never)


def test_hazards_before_the_entry_do_not_matter_however_large():
    """A difference of two sums would be off by 10^10 units of the sensitivity's last digit."""
    q = 40
    likelihood = DiscreteHazard(np.eye(q), 1, 1.0, LINKS["cloglog"], 1.5)
    coef = np.r_[np.full(20, 20.0), np.full(20, -8.0), 0.0]
    block = block_of(np.ones((1, 1)), np.array([q]), np.array([False]), np.array([20]))
    slope = likelihood.derivatives(coef, block, order=1).gradient[20:q]
    np.testing.assert_allclose(slope, np.exp(-8.0), rtol=1e-14)
    assert likelihood.losses(coef, block)[0] == pytest.approx(20 * np.exp(-8.0), rel=1e-14)


@pytest.mark.parametrize("name", sorted(LINKS))
def test_thresholds_of_pairs_reach_the_cap(name):
    link, cap = LINKS[name].bounded_at(0.05), 1.5
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a = rng.normal(scale=rng.choice([0.1, 3.0, 30.0]), size=Q)
        k, first = (each.ravel() for each in np.meshgrid(np.arange(1, Q + 1), np.arange(Q)))
        order = np.lexsort((first, k))
        order = order[first[order] < k[order]]
        k, first = k[order], first[order]
        found = cap_thresholds(link, a, k, cap, entered=first)
        assert (found >= least_thresholds(a, k, cap, first)).all()
        for threshold, i, j in zip(found, first, k, strict=True):
            if np.isfinite(threshold):
                total = link.survival(a[i:j] + threshold).slope.sum()
                assert total == pytest.approx(cap, rel=1e-10)
            else:
                assert link.bounded_slope
                assert j - i <= cap


# ---- Constants: a search for pairs of records that pass them.


class Climb:
    """A search over pairs of records and coefficients, for the largest share of a constant."""

    def __init__(self, name, cap, q, n_basis, seed, sizes=(0.4, 0.15)):
        self.rng, self.q = np.random.default_rng(seed), q
        basis = orthogonal_basis(q, n_basis) * np.r_[sizes[0], np.full(n_basis - 1, sizes[1])]
        self.likelihood = DiscreteHazard(basis, D, 1.0, LINKS[name].bounded_at(0.05), cap)

    def record(self):
        rng, q = self.rng, self.q
        angle = rng.uniform(0, 2 * np.pi)
        x = rng.choice([0.0, 1.0, 1.0]) * np.array([np.cos(angle), np.sin(angle)])
        exit_ = int(rng.integers(1, q + 1))
        entry = int(rng.choice([0, exit_, exit_ - 1, q, rng.integers(0, q + 1)]))
        return x, exit_, bool(rng.random() < 0.5), entry

    def start(self):
        p = self.likelihood.n_params
        coef = 10.0 ** self.rng.uniform(-1, 3.5, p) * self.rng.choice([-1.0, 1.0], p)
        return coef, self.record(), self.record()

    def moved(self, state):
        coef, one, other = state
        kind = self.rng.integers(5)
        if kind == 0:
            return coef * (1.0 + 0.3 * self.rng.normal(size=coef.size)), one, other
        if kind == 1:
            changed = coef.copy()
            changed[self.rng.integers(coef.size)] *= self.rng.choice([-1.0, 0.0, 0.5, 2.0])
            return changed, one, other
        if kind == 2:
            return coef, other, one if self.rng.random() < 0.5 else (-other[0], *other[1:])
        if kind == 3:
            return coef, self.record(), other
        x, exit_, event, entry = one
        exit_, entry = np.array([exit_, entry]) + self.rng.integers(-2, 3, 2)
        near = int(np.clip(exit_, 1, self.q)), int(np.clip(entry, 0, self.q))
        return coef, (x, near[0], event ^ (self.rng.random() < 0.2), near[1]), other

    def share(self, state):
        coef, *people = state
        pair = block_of(*map(np.array, zip(*people, strict=True)))
        return gap(self.likelihood, coef, pair)

    def run(self, n_pairs, patience=300):
        best, state, here, since = 0.0, None, -1.0, patience
        for _ in range(n_pairs):
            if since >= patience:
                state, here, since = self.start(), -1.0, 0
            new = self.moved(state)
            share = self.share(new)
            since += 1
            if share > here:
                state, here, since = new, share, 0
            best = max(best, share)
        return best


@pytest.mark.parametrize(("name", "cap"), CASES)
def test_no_pair_passes_the_sensitivity(name, cap):
    assert Climb(name, cap, 12, 2, seed=1).run(600) <= 1.0 + 1e-9


@pytest.mark.parametrize("name", sorted(LINKS))
def test_the_sensitivity_is_nearly_reached_with_entries(name):
    """Two people beyond the cap in one interval each, which their entries single out."""
    basis = orthogonal_basis(200, 2) * [0.4, 0.1]
    likelihood = DiscreteHazard(basis, 1, 1.0, LINKS[name].bounded_at(0.05), 1.5)
    steep = np.linalg.lstsq(basis, 1e4 * (np.arange(1, 201) - 4.5), rcond=None)[0]
    coef, ends = np.append(steep, 1e4), ((1.0, 7, 4), (-1.0, 200, 196))
    x, exits, entries = np.transpose(ends)
    pair = block_of(x[:, None], exits.astype(int), np.zeros(2, dtype=bool), entries.astype(int))
    assert 0.9 < gap(likelihood, coef, pair) <= 1.0 + 1e-9


@pytest.mark.parametrize(("name", "cap"), CASES)
def test_no_record_passes_trace_and_rank(name, cap):
    likelihood, rng = hazard(name, cap, 8), np.random.default_rng(3)
    constants = likelihood.constants
    X, exits, events, entries = records(40, seed=4, q=8)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    for _ in range(10):
        coef = 10.0 ** rng.uniform(-1, 2, 5) * rng.choice([-1.0, 1.0], 5)
        for i in range(40):
            one = block_of(X[[i]], exits[[i]], events[[i]], entries[[i]])
            eigenvalues = np.linalg.eigvalsh(likelihood.derivatives(coef, one).hessian)
            size = max(1.0, constants.hessian_trace)
            assert eigenvalues.min() >= -1e-9 * size
            assert eigenvalues.sum() <= constants.hessian_trace * (1 + 1e-9)
            assert np.sum(eigenvalues > 1e-8 * size) <= constants.hessian_rank
