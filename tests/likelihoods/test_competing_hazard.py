"""The stacked likelihood of competing causes: its losses, and that no pair passes its constants."""

from itertools import product

import numpy as np
import pytest

from skdpsurv.data.histories import Histories
from skdpsurv.dp.clipping import row_weights
from skdpsurv.likelihoods.competing_hazard import CompetingHazard, of_cause, stacked_sensitivity
from skdpsurv.likelihoods.hazard import hazard_block
from skdpsurv.likelihoods.hazard_constants import extent, gradient_sensitivity
from skdpsurv.survival.hazards.model import orthogonal_basis
from tests.likelihoods.hazards import gap

Q, D = 12, 2
CAPS = [(0.8, 0.8), (1.28, 0.32), (0.5, 0.5, 0.5), (1.6, 0.3, 0.3), (4.0, 0.2), (None, None)]
SIZES = [0.4, 0.15, 0.15]


def likelihood_of(caps, q=Q, n_basis=2, n_features=D, weighted=False):
    basis = orthogonal_basis(q, n_basis) * SIZES[:n_basis]
    return CompetingHazard(basis, n_features, caps, weighted=weighted)


def block_of(X, exits, causes, entries=None, *, weighted=False):
    late = None if entries is None else np.atleast_1d(entries)
    seen = Histories(np.atleast_1d(exits), np.atleast_1d(causes), late)
    block = hazard_block(np.atleast_2d(X), seen)
    return block._replace(weight=row_weights(block.X, 1.0)) if weighted else block


def records(n=200, n_causes=2, q=Q, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) / 2.0
    return X, rng.integers(1, q + 1, n), rng.integers(0, n_causes + 1, n)


@pytest.mark.parametrize("caps", CAPS)
def test_each_cause_is_compared_with_those_who_survive(caps):
    """An interval with an event of another cause is left out: Begg and Gray."""
    likelihood, people = likelihood_of(caps), records(n_causes=len(caps))
    X, exits, causes = people
    coef = np.random.default_rng(1).normal(size=likelihood.n_params)
    expected, gradient = 0.0, []
    for j, (own, part) in enumerate(zip(likelihood.split(coef), likelihood.causes, strict=True), 1):
        left = exits - ((causes != 0) & (causes != j))  # 0 for who was never compared
        seen = left > 0
        block = block_of(X[seen], left[seen], causes[seen] == j)
        expected += part.losses(own, block).sum()
        gradient.append(part.derivatives(own, block, order=1).gradient)
    block = block_of(*people)
    assert likelihood.losses(coef, block).sum() == pytest.approx(expected, rel=1e-12)
    found = likelihood.derivatives(coef, block)
    np.testing.assert_allclose(found.gradient, np.concatenate(gradient), rtol=0, atol=1e-10)
    assert likelihood.derivatives(coef, block, order=1).hessian is None


@pytest.mark.parametrize("caps", CAPS)
def test_derivatives_are_numerical_derivatives(caps):
    likelihood, people = likelihood_of(caps), records(n_causes=len(caps))
    block, step = block_of(*people), 1e-5
    coef = np.random.default_rng(2).normal(size=likelihood.n_params)
    weights = np.random.default_rng(3).uniform(0.0, 2.0, 200)
    gradient, hessian = likelihood.derivatives(coef, block, weights)
    for j, unit in enumerate(step * np.eye(coef.size)):
        ends = [likelihood.losses(coef + s * unit, block) @ weights for s in (1, -1)]
        assert gradient[j] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-6)
        ends = [
            likelihood.derivatives(coef + s * unit, block, weights, order=1).gradient
            for s in (1, -1)
        ]
        np.testing.assert_allclose(hessian[j], (ends[0] - ends[1]) / (2 * step), atol=1e-3)


def test_a_record_is_seen_by_each_cause():
    block = block_of(np.zeros((3, D)), np.array([3, 3, 3]), np.array([0, 1, 2]))
    np.testing.assert_array_equal(block.survived, [2, 2, 3])
    assert [of_cause(block, j).event.tolist() for j in (1, 2)] == [
        [True, False, False],
        [False, True, False],
    ]


def test_one_cause_has_the_constants_of_a_hazard():
    likelihood = likelihood_of((1.5,))
    mine, theirs = likelihood.constants, likelihood.causes[0].constants
    assert mine.gradient_sensitivity == pytest.approx(theirs.gradient_sensitivity)
    assert mine.hessian_trace == pytest.approx(theirs.hessian_trace)
    assert (mine.hessian_rank, mine.rounding) == (theirs.hessian_rank, theirs.rounding)
    assert mine.loss_at_zero == theirs.loss_at_zero


def brute_force(radius, diameter, norm, caps, weights=(1.0,)):
    """The definition: both records' vertices in all causes at once, and their weights."""
    worst, units = 0.0, [*np.eye(len(caps)), np.zeros(len(caps))]
    vertices = [np.array(u) for u in product(*((0.0, cap) for cap in caps))]
    both = product(product(vertices, units), repeat=2)
    for ((u, v), (u2, v2)), w, w2 in product(both, weights, weights):
        plus, minus = w * u + w2 * v2, w2 * u2 + w * v
        baseline = np.minimum(plus, minus) * diameter + np.abs(plus - minus) * radius
        for sign in (1.0, -1.0):
            rows = norm * np.linalg.norm(u - v + sign * (u2 - v2))
            worst = max(worst, np.hypot(np.linalg.norm(baseline), rows))
    return worst


@pytest.mark.parametrize("caps", [(0.8,), (0.8, 0.8), (1.28, 0.32), (0.5, 0.7, 1.1)])
def test_the_sensitivity_is_the_largest_over_all_vertices(caps):
    rng = np.random.default_rng(4)
    for _ in range(5):
        radius, norm = rng.uniform(0.1, 2.0, 2)
        diameter = rng.uniform(0.0, 2.0 * radius)
        given = radius, diameter, norm, caps
        assert stacked_sensitivity(*given) == pytest.approx(brute_force(*given))
        expected = brute_force(*given, (0.0, 0.5, 1.0))
        assert stacked_sensitivity(*given, True) == pytest.approx(expected)


def test_sensitivity_bound_is_no_less_than_inside():
    rng = np.random.default_rng(5)
    for _ in range(300):
        radius, norm = rng.uniform(0.1, 2.0, 2)
        diameter, caps = rng.uniform(0.0, 2.0 * radius), rng.uniform(0.1, 2.0, 3)
        u, u2 = rng.uniform(0.0, caps, (2, 3))
        v, v2 = rng.uniform() * np.eye(3)[rng.integers(3)], rng.uniform() * np.eye(3)[0]
        rows = rng.normal(size=(2, 4))
        x, x2 = norm * rows / np.linalg.norm(rows, axis=1, keepdims=True)
        covariates = np.outer(u - v, x) - np.outer(u2 - v2, x2)
        plus, minus = u + v2, u2 + v
        baseline = np.minimum(plus, minus) * diameter + np.abs(plus - minus) * radius
        inside = np.hypot(np.linalg.norm(covariates), np.linalg.norm(baseline))
        assert inside <= stacked_sensitivity(radius, diameter, norm, caps) * (1.0 + 1e-12)


def test_caps_that_share_one_cost_less_than_the_cap_of_one_cause():
    """By how much, with the basis that fits have: docs/proofs/competing_risks."""
    radius, diameter = extent(orthogonal_basis(100, 3) * SIZES)
    H = 1.6
    found = {
        caps: stacked_sensitivity(radius, diameter, 1.0, np.array(caps) * H)
        for caps in ((0.5, 0.5), (1 / 3,) * 3, (0.8, 0.2), (0.8, 0.1, 0.1), (1, 1), (1, 1, 1))
    }
    expected = 2.92, 2.60, 3.37, 3.39, 4.70, 5.75
    np.testing.assert_allclose(list(found.values()), expected, atol=0.006)
    assert gradient_sensitivity(radius, diameter, 1.0, H, 1.0) == pytest.approx(3.32, abs=0.006)


def test_the_sensitivity_is_convex_in_the_caps():
    """So its largest value over a range of shares is at an end."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        one, other = rng.uniform(0.0, 2.0, (2, 3))
        middle, ends = (
            [stacked_sensitivity(0.56, 0.55, 1.0, caps) for caps in each]
            for each in ([(one + other) / 2.0], [one, other])
        )
        assert middle[0] <= np.mean(ends) * (1.0 + 1e-12)


# ---- A search for pairs of records that pass the constants.


class Climb:
    """Hill climbing over pairs of records and coefficients, for the largest share of S."""

    weighted, norms = False, (0.0, 1.0, 1.0, 1.0)

    def __init__(self, caps, q=Q, n_basis=2, seed=0, n_features=D):
        self.rng, self.q, self.n_causes = np.random.default_rng(seed), q, len(caps)
        self.n_features = n_features
        self.likelihood = likelihood_of(caps, q, n_basis, n_features, self.weighted)

    def record(self):
        """Rows at the bound and of zeros, any exit and cause."""
        rng = self.rng
        x = rng.normal(size=self.n_features)
        x *= rng.choice(self.norms) / np.linalg.norm(x)
        return x, int(rng.integers(1, self.q + 1)), int(rng.integers(0, self.n_causes + 1))

    def start(self):
        """Coefficients from tame to absurd, so that slopes sit on one interval."""
        p = self.likelihood.n_params
        coef = 10.0 ** self.rng.uniform(-1, 3.5, p) * self.rng.choice([-1.0, 1.0], p)
        return coef, self.record(), self.record()

    def moved(self, state):
        (coef, one, other), rng = state, self.rng
        kind = rng.integers(7)
        if kind == 0:
            return coef * (1.0 + 0.3 * rng.normal(size=coef.size)), one, other
        if kind == 1:
            changed = coef.copy()
            changed[rng.integers(coef.size)] *= rng.choice([-1.0, 0.0, 0.5, 2.0])
            return changed, one, other
        if kind == 2:  # the same row, opposite rows, both people exchanged
            x = one[0] * rng.choice([1.0, -1.0])
            return coef, other if rng.random() < 0.3 else one, (x, *other[1:])
        if kind == 3:  # causes exchanged, of people or of coefficients
            if rng.random() < 0.5:
                return coef, (*one[:2], other[2]), (*other[:2], one[2])
            parts = coef.reshape(self.n_causes, -1)
            return rng.permutation(parts, axis=0).ravel(), one, other
        if kind == 4:  # ties
            return coef, (one[0], other[1], one[2]), other
        if kind == 5:
            return coef, self.record(), other
        exit_ = int(np.clip(one[1] + rng.integers(-2, 3), 1, self.q))
        cause = one[2] if rng.random() < 0.7 else int(rng.integers(0, self.n_causes + 1))
        return coef, (one[0], exit_, cause), other

    def share(self, state):
        coef, *people = state
        pair = block_of(*map(np.array, zip(*people, strict=True)), weighted=self.weighted)
        return gap(self.likelihood, coef, pair)

    def run(self, n_pairs, patience=300):
        best, state, here, since = 0.0, None, -1.0, patience
        for _ in range(n_pairs):
            if since >= patience:
                state, here, since = self.start(), -1.0, 0
            new = self.moved(state)
            share, since = self.share(new), since + 1
            if share > here:
                state, here, since = new, share, 0
            best = max(best, share)
        return best


class LateClimb(Climb):
    """The same over people who may enter late, also after their exit."""

    def start(self):
        coef, *people = super().start()
        return coef, *((*one, self.entry()) for one in people)

    def entry(self):
        return int(self.rng.choice([0, self.rng.integers(0, self.q + 1)]))

    def moved(self, state):
        coef, one, other = state
        entries = [one[3], other[3]]
        if self.rng.random() < 0.2:
            entries[int(self.rng.integers(2))] = self.entry()
        coef, *people = super().moved((coef, one[:3], other[:3]))
        return coef, *((*person, entry) for person, entry in zip(people, entries, strict=True))


class WeightedClimb(LateClimb):
    """The same over rows that are longer than the bound, and count less."""

    weighted, norms = True, (0.0, 1.0, 1.0, 1.02, 1.5, 4.0)


@pytest.mark.parametrize("climb", [Climb, LateClimb, WeightedClimb])
@pytest.mark.parametrize("caps", CAPS)
def test_no_pair_passes_the_sensitivity(caps, climb):
    assert climb(caps).run(300) <= 1.0 + 1e-9


def test_losses_of_late_entries_are_those_of_each_cause_after_the_entry():
    """Of each cause by itself, with events of another one left out."""
    likelihood, (X, exits, causes) = likelihood_of((0.8, 0.4)), records()
    entries = np.random.default_rng(8).integers(0, Q + 1, 200)
    everybody = block_of(X, exits, causes, entries)
    coef = np.random.default_rng(9).normal(size=likelihood.n_params)
    expected, gradients = 0.0, []
    for j, (cause, own) in enumerate(
        zip(likelihood.causes, likelihood.split(coef), strict=True), 1
    ):
        seen = entries < exits
        last = exits - ((causes > 0) & (causes != j))  # the event of another cause is not seen
        seen &= (entries < last) | (causes == j)
        alone = Histories(last[seen], causes[seen] == j, entries[seen])
        block = hazard_block(X[seen], alone)
        expected += cause.losses(own, block).sum()
        gradients.append(cause.derivatives(own, block).gradient)
    assert likelihood.losses(coef, everybody).sum() == pytest.approx(expected, rel=1e-12)
    found = likelihood.derivatives(coef, everybody).gradient
    np.testing.assert_allclose(found, np.concatenate(gradients), rtol=1e-9, atol=1e-10)


def test_weights_can_pass_the_sensitivity_of_rows_that_are_not_weighed():
    """Of wide baselines, whose pulls cancel unless one of the records counts for nothing."""
    caps, radius, norm = (4.0, 1.0), 1.0, 1.0
    usual, weighed = (stacked_sensitivity(radius, 0.0, norm, caps, one) for one in (False, True))
    assert weighed > 1.05 * usual


@pytest.mark.parametrize("caps", [(0.8, 0.8), (1.28, 0.32), (0.5, 0.5, 0.5)])
def test_the_sensitivity_is_nearly_reached(caps):
    """Two people with events of two causes, or one who is beyond all caps, and opposite rows."""
    q, n_causes = 200, len(caps)
    basis = orthogonal_basis(q, 2) * [0.4, 0.1]
    likelihood = CompetingHazard(basis, 1, caps)
    s = np.arange(1, q + 1)

    def line(values):
        return np.linalg.lstsq(basis, values, rcond=None)[0]

    flat, late, early = (line(1e4 * each) for each in (-np.ones(q), s - q + 8.5, 8.5 - s))
    # A cause's part follows from its own coefficients: the largest gap is that of each by itself.
    squares = 0.0
    for baseline, slope in product((flat, late, early), (1e4, 0.0)):
        coef = np.tile(np.append(baseline, slope), n_causes)
        people = [
            likelihood.derivatives(coef, block_of([[x]], last, cause), order=1).gradient
            for x in (1.0, -1.0)
            for last in (1, q)
            for cause in range(n_causes + 1)
        ]
        parts = np.array(people).reshape(len(people), n_causes, -1)
        squares = np.maximum(squares, np.square(parts[:, None] - parts[None]).sum(axis=3))
    found = np.sqrt(squares.sum(axis=2).max())
    assert 0.9 < found / likelihood.constants.gradient_sensitivity <= 1.0 + 1e-9


@pytest.mark.parametrize("caps", CAPS)
def test_no_record_passes_trace_and_rank(caps):
    likelihood, rng = likelihood_of(caps, 8), np.random.default_rng(7)
    constants = likelihood.constants
    X, exits, causes = records(40, len(caps), 8, seed=8)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    p = likelihood.n_params
    for _ in range(10):
        coef = 10.0 ** rng.uniform(-1, 2, p) * rng.choice([-1.0, 1.0], p)
        for i in range(40):
            block = block_of(X[i], exits[i], causes[i])
            eigenvalues = np.linalg.eigvalsh(likelihood.derivatives(coef, block).hessian)
            size = max(1.0, constants.hessian_trace)
            assert eigenvalues.min() >= -1e-9 * size
            assert eigenvalues.sum() <= constants.hessian_trace * (1.0 + 1e-9)
            assert np.sum(eigenvalues > 1e-8 * size) <= constants.hessian_rank


def test_rounding_is_that_of_the_causes_together():
    """Each cause's error is in units of its own sensitivity, which is at most the stacked one."""
    likelihood = likelihood_of((1.28, 0.32, 0.5))
    constants, parts = likelihood.constants, [one.constants for one in likelihood.causes]
    S = constants.gradient_sensitivity
    assert max(part.gradient_sensitivity for part in parts) <= S
    together = np.linalg.norm([part.rounding * part.gradient_sensitivity for part in parts])
    assert together <= constants.rounding * S
    assert max(part.hessian_trace for part in parts) <= constants.hessian_trace
