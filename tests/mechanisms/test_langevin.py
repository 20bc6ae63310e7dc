"""The two chains: do they have the law of their target, and stay within it?

Statistical tests have fixed seeds. Bin frequencies of a long chain are compared with numerical
integration by batch means: 25 means of hundreds of steps, as independent normals, in Student's
test. They reject below a p-value of 1e-9 over the number of bins, so that a correct chain would
fail with probability below 1e-6. Chains of many independent coordinates give independent draws.
"""

import math
from functools import cache
from itertools import islice

import numpy as np
import pytest
from scipy import special, stats

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.mechanisms import langevin
from skdpsurv.mechanisms.langevin import MALA, MEMORY, PSGLD, Frame
from skdpsurv.mechanisms.posterior_sampling import Sanitizer, Target, calibrate

REJECT = 1e-9
BATCHES = 25
BINS = 8


def labelled(n, n_features=1, seed=0, slope=2.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, n_features)) / math.sqrt(n_features)
    y = np.where(rng.random(n) < special.expit(slope * X[:, 0]), 1.0, -1.0)
    return LinearBlock(X, y)


def target(n, epsilon, n_features=1, **sanitizer):
    return Target(Logistic(n_features), InMemory([labelled(n, n_features)]), calibrate(epsilon, n))


#: Nearly the prior, with a step in it; a bump beside a prior that has weight; concentrated.
TARGETS = {"flat": (2, 4.0), "both": (6, 4.0), "bump": (12, 9.0), "concentrated": (60, 30.0)}


def energies(one, points):
    """Energies at many points at once, from the definition."""
    v, rate = one.sanitizer.ceiling, one.sanitizer.rate
    value = 0.5 * one.sanitizer.prior_precision * np.sum(points**2, axis=1)
    for block in one.blocks.blocks:
        losses = np.logaddexp(0.0, -block.y * (points @ block.X.T))
        value = value + rate * v * np.tanh(losses / v).sum(axis=1)
    return value


def grid_law(one, axes):
    mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    energy = np.concatenate([energies(one, part) for part in np.array_split(mesh, 8)])
    density = np.exp(energy.min() - energy)
    return mesh, density / density.sum()


def bin_edges(values, density):
    """Return edges of bins of about equal probability, and their exact probabilities."""
    order = np.argsort(values, kind="stable")
    values, total = values[order], np.cumsum(density[order])
    edges = values[np.searchsorted(total, np.arange(1, BINS) / BINS)]
    edges = np.concatenate([[values[0]], edges, [values[-1]]])
    below = np.interp(edges[1:-1], values, total - 0.5 * density[order])
    return edges[1:-1], np.diff(np.concatenate([[0.0], below, [1.0]]))


def worst_p_value(states, edges, probabilities):
    """Return the smallest p-value over bins, times their number."""
    inside = np.searchsorted(edges, states)[:, None] == np.arange(BINS)
    length = len(states) // BATCHES
    means = inside[: BATCHES * length].reshape(BATCHES, length, BINS).mean(axis=1)
    spread = np.maximum(means.std(axis=0, ddof=1), 1e-12) / math.sqrt(BATCHES)
    t = (means.mean(axis=0) - probabilities) / spread
    return BINS * float(2.0 * stats.t.sf(np.abs(t), BATCHES - 1).min())


def run(chain, one, n_steps, seed=1):
    return np.array(list(islice(chain.states(one, random_source(seed)), n_steps)))


def begin_at(monkeypatch, start):
    """Let chains of pSGLD begin there, without a warm-up and without using the randomness."""
    monkeypatch.setattr(langevin, "anneal", lambda *_: iter([(start, None)]))


def law_bins(one):
    grid, density = grid_law(one, [np.linspace(-70, 70, 14_001)])
    return bin_edges(grid[:, 0], density)


@cache
def long_chain(name):
    """Return 4,000 states of a chain for one of the targets."""
    return run(MALA(300), target(*TARGETS[name]), 4500)[500:, 0]


def mala_p_value(one, n_steps):
    return worst_p_value(run(MALA(300), one, n_steps + 500)[500:, 0], *law_bins(one))


class TestMALA:
    @pytest.mark.parametrize("name", TARGETS)
    def test_law_of_one_coefficient(self, name):
        assert worst_p_value(long_chain(name), *law_bins(target(*TARGETS[name]))) > REJECT

    def test_law_of_two_coefficients(self):
        one = target(40, 20.0, n_features=2)
        states = run(MALA(300), one, 4500)[500:]
        reach = 6.0 * states.std(axis=0).max() + np.abs(states.mean(axis=0)).max()
        axis = np.linspace(-min(reach, 60.0), min(reach, 60.0), 401)
        grid, density = grid_law(one, [axis, axis])
        for direction in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.01), (1.0, -0.99)):
            law = bin_edges(grid @ direction, density)
            assert worst_p_value(states @ direction, *law) > REJECT

    @pytest.mark.parametrize(("name", "factor"), [("both", 0.25), ("concentrated", 4.0)])
    def test_another_temperature_is_told_apart(self, name, factor):
        """A quarter or four times the epsilon on the records: the test would see it."""
        one = target(*TARGETS[name])
        other = Sanitizer(one.sanitizer.ceiling, factor * one.sanitizer.rate)
        wrong = Target(one.likelihood, one.blocks, other)
        assert worst_p_value(long_chain(name), *law_bins(wrong)) < REJECT

    def test_only_jumps_have_the_law(self, monkeypatch):
        """And if their density is left out of the rule, or half of it, they have not."""
        monkeypatch.setattr(langevin, "JUMPS", 1.0)
        one = target(*TARGETS["both"])
        assert mala_p_value(one, 3000) > REJECT
        monkeypatch.setattr(Frame, "log_density", lambda self, x: 0.0)
        assert mala_p_value(one, 3000) < REJECT

        def near_alone(self, x):
            return -0.5 * (langevin.JUMP_DF + 1) * math.log1p(float(x @ x) / langevin.JUMP_DF)

        monkeypatch.setattr(Frame, "log_density", near_alone)
        assert mala_p_value(one, 3000) < REJECT

    def test_only_local_moves_have_the_law_where_they_reach(self, monkeypatch):
        """Whatever the step is, also without a burn-in: the acceptance rule corrects it."""
        monkeypatch.setattr(langevin, "JUMPS", 0.0)
        one = target(*TARGETS["concentrated"])
        states = run(MALA(0), one, 4500)[500:, 0]
        assert worst_p_value(states, *law_bins(one)) > REJECT

    def test_the_step_follows_the_acceptance_rate_in_burn_in_only(self, monkeypatch):
        """After it the rate of accepted local moves is near 0.574; without it, what it was."""
        monkeypatch.setattr(langevin, "JUMPS", 0.0)
        one = target(200, 300.0, n_features=6)
        rates = []
        for burn_in in (0, 500):
            states = run(MALA(burn_in), one, 1500)[500:]
            rates.append(np.mean(np.any(np.diff(states, axis=0) != 0, axis=1)))
        # Steps are correlated: five standard deviations of 500 independent ones are 0.11.
        assert abs(rates[1] - langevin.ACCEPTANCE) < 0.12
        assert rates[0] != rates[1]

    def test_nan_is_never_accepted(self, monkeypatch):
        """An energy that is no number anywhere but near the mode."""
        one = target(*TARGETS["bump"])
        mode = one.mode(np.zeros(1))[0][0]
        plain, asked = Target.energy, []

        def broken(self, coef):
            value, gradient = plain(self, coef)
            if coef[0] <= mode + 0.5:
                return value, gradient
            asked.append(coef[0])
            return math.nan, gradient

        for seed in range(8):
            # A state beyond, from before, would not be an accepted one.
            monkeypatch.setattr(Target, "energy", plain)
            chain = MALA(50).states(one, random_source(seed))
            last = list(islice(chain, 60))[-1]
            monkeypatch.setattr(Target, "energy", broken)
            if last[0] > mode + 0.5:
                continue
            states = np.array(list(islice(chain, 100)))
            assert np.isfinite(states).all()
            assert (states <= mode + 0.5).all()
        assert len(asked) > 50


class Coordinates(Logistic):
    """A likelihood of one column for each of many coefficients, all alike: many chains in one."""

    def n_records(self, block):
        return int(block.y.size)


class Product(Target):
    """The product of equal one-dimensional targets, as far as a chain on all records asks."""

    def energy(self, coef):
        (block,), v = self.blocks.blocks, self.sanitizer.ceiling
        margin = np.multiply.outer(coef, block.y * block.X[:, 0])
        losses = np.logaddexp(0.0, -margin)
        slopes = -special.expit(-margin) * (block.y * block.X[:, 0])
        pull = ((1.0 - np.tanh(losses / v) ** 2) * slopes).sum(axis=1)
        return math.nan, self.sanitizer.prior_precision * coef + self.sanitizer.rate * pull

    def mode(self, start):
        mode, curvature = Target(Logistic(1), self.blocks, self.sanitizer).mode(start[:1])
        return np.full(start.size, mode[0]), curvature[0, 0] * np.eye(start.size)


SIZE = 400
STEPS = 1500


def psgld(published=False, burn_in=400, step_size=0.1, **changes):
    """A chain on all records, unless asked otherwise."""
    settings = {"batch_size": 10**6, "step_size": step_size, "step_exponent": 0.51}
    return PSGLD(**{"burn_in": burn_in, "published": published, **settings, **changes})


def by_hand(chain, gradient, n, start, seed, n_steps, floor=0.0):
    """Return states of a chain on all records, as its formulas have them."""
    thousands = math.ceil(n_steps / 1000)
    noise = random_source(seed).generator.standard_normal((1000 * thousands, start.size))
    f, second, states = start, floor, []
    for t in range(n_steps):
        g = gradient(f)
        if chain.published or t < chain.burn_in:
            second = 0.99 * second + 0.01 * (g / n) ** 2
        step = chain.step_size * (t + 1) ** -chain.step_exponent
        h = step / (1e-5 + np.sqrt(np.maximum(second, floor)))
        f = f - (h if chain.published else h / 2.0) * g + np.sqrt(h) * noise[t]
        states.append(f)
    return np.array(states)


class TestPSGLDSteps:
    """The chain is its formulas, step by step: no statistics."""

    @pytest.mark.parametrize("published", [False, True])
    def test_recursion(self, monkeypatch, published):
        """Twice the drift, or G going on after burn-in, would show at once."""
        assert (langevin.DAMPING, MEMORY) == (1e-5, 0.99)  # the paper's
        one = target(*TARGETS["concentrated"], n_features=2)
        chain = psgld(published, burn_in=150)
        begin_at(monkeypatch, np.full(2, 0.3))
        start = np.zeros(2) if published else np.full(2, 0.3)
        curvature = np.diag(one.mode(np.full(2, 0.3))[1])
        floor = 0.0 if published else one.sanitizer.rate * curvature / 60**2
        exact = by_hand(chain, lambda f: one.energy(f)[1], 60, start, 4, 1300, floor)
        states = run(chain, one, 1300, 4)
        np.testing.assert_allclose(states, exact, rtol=1e-8, atol=1e-10)

    def test_all_records_and_no_sampling_from_n_on(self, monkeypatch):
        def sampled(*args):
            raise AssertionError("records were sampled")

        monkeypatch.setattr(Target, "sampled_gradient", sampled)
        one = target(40, 3.0, n_features=2)
        states = run(psgld(batch_size=40), one, 60, 2)
        np.testing.assert_array_equal(states, run(psgld(), one, 60, 2))
        with pytest.raises(AssertionError, match="sampled"):
            run(psgld(batch_size=39), one, 60, 2)

    def test_batches_are_uniform_with_replacement(self, monkeypatch):
        """Ascending positions over all blocks; chi-square with p > 1e-7."""
        whole = labelled(30)
        parts = np.array_split(np.arange(30), 3)
        blocks = [LinearBlock(whole.X[part], whole.y[part]) for part in parts]
        one = Target(Logistic(1), InMemory(blocks), calibrate(1.0, 30))
        seen = []
        plain = Target.sampled_gradient

        def spy(self, coef, rows, starts):
            np.testing.assert_array_equal(starts, [0, *np.cumsum([len(p) for p in parts])])
            seen.append(rows.copy())
            return plain(self, coef, rows, starts)

        monkeypatch.setattr(Target, "sampled_gradient", spy)
        run(psgld(batch_size=7), one, 1200)
        rows = np.array(seen)
        assert rows.shape == (1200, 7)
        assert (np.diff(rows, axis=1) >= 0).all()
        assert (np.diff(rows, axis=1) == 0).any()
        assert stats.chisquare(np.bincount(rows.ravel(), minlength=30)).pvalue > 1e-7
        assert len(np.unique(rows, axis=0)) > 1190  # each step and each thousand anew

    def test_divergence(self):
        """A huge step leaves every bound: an error that says why, and no number."""
        one = target(*TARGETS["concentrated"])
        for chain in (psgld(step_size=1e9), psgld(True, step_size=1e30)):
            with pytest.raises(ValueError, match="step_size") as caught:
                run(chain, one, 5000)
            assert not any(character.isdigit() for character in str(caught.value))

    def test_a_state_that_is_no_number_is_never_returned(self, monkeypatch):
        one = target(*TARGETS["concentrated"])
        begin_at(monkeypatch, np.zeros(1))
        monkeypatch.setattr(Target, "mode", lambda self, start: (start, np.eye(1)))
        monkeypatch.setattr(Target, "energy", lambda self, coef: (0.0, np.full(1, np.nan)))
        with pytest.raises(ValueError, match="step_size"):
            run(psgld(), one, 1)


@pytest.fixture(scope="module")
def one():
    """Few records that count for much: cheap, and concentrated."""
    return target(12, 60.0)


@pytest.fixture(scope="module")
def law(one):
    grid, density = grid_law(one, [np.linspace(-20, 40, 30_001)])
    return grid[:, 0], density


@pytest.fixture(scope="module")
def last_states(one):
    """The last state of 400 independent chains, corrected and published."""
    product = Product(Coordinates(SIZE), one.blocks, one.sanitizer)
    with pytest.MonkeyPatch.context() as patch:
        begin_at(patch, product.mode(np.zeros(SIZE))[0])
        return {p: run(psgld(p), product, STEPS, 5)[-1] for p in (False, True)}


class TestPSGLDLaw:
    """Corrected steps have the target's law; the published ones that of the target squared.

    A coefficient of curvature c under steps h has stationary variance 1/(c (1 - ch/4)), published
    1/(2c (1 - ch/2)). ch is below 0.25 at the end and ch/2 adds up to more than 12: the standard
    deviation is off by less than 4 or 7 %, and the start has weight e^-12. That of 400 independent
    draws is within 5.5/sqrt(800) = 0.195 of itself with probability 1 - 4e-8 (its tails are no
    heavier than a normal's by much), and 1/sqrt(2) is 0.29 off.
    """

    def test_corrected_law(self, law, last_states):
        """Standard deviation, and Kolmogorov's test (p > 1e-7) of the whole law."""
        grid, density = law
        deviation = math.sqrt(density @ (grid - density @ grid) ** 2)
        last = last_states[False]
        assert last.std() / deviation == pytest.approx(1.0, abs=0.195 + 0.04)
        result = stats.kstest(last, lambda f: np.interp(f, grid, np.cumsum(density)))
        assert result.pvalue > 1e-7

    def test_published_law_is_that_of_the_target_squared(self, law, last_states):
        """Twice the energy, hence twice the epsilon: 1/sqrt(2) of the standard deviation."""
        grid, density = law
        squared = density**2 / np.sum(density**2)
        deviations = [math.sqrt(p @ (grid - p @ grid) ** 2) for p in (density, squared)]
        spread = last_states[True].std()
        assert spread / deviations[1] == pytest.approx(1.0, abs=0.195 + 0.07)
        assert spread / deviations[0] < 0.85
        assert deviations[1] / deviations[0] == pytest.approx(1.0 / math.sqrt(2.0), abs=0.06)


class TestAutomaticStep:
    """step_size=None: at the first step f goes to the mode along the steepest direction."""

    def test_stable_step(self):
        curvature = np.array([[4.0, 1.0], [1.0, 3.0]])
        scale = np.array([0.5, 2.0])
        step = langevin._stable_step(curvature, scale)
        contraction = np.eye(2) - 0.5 * step * scale[:, None] * curvature
        assert np.linalg.eigvals(contraction).real.min() == pytest.approx(0.0, abs=1e-12)
        assert np.linalg.eigvals(contraction).real.max() < 1.0

    def test_published_begins_with_one(self, monkeypatch):
        """No mode and no curvature are looked for; the first noise has variance G."""
        monkeypatch.setattr(Target, "mode", None)
        one, other = (
            next(PSGLD(10, 5, step, 0.51, published=True).states(target(6, 4.0), random_source(0)))
            for step in (None, 1.0)
        )
        assert one == other
