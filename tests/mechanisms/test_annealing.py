"""Where chains begin, and which of two wells they end in."""

import math
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.likelihoods.hazard import DiscreteHazard
from skdpsurv.likelihoods.linear import LinearBlock, Logistic
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms import langevin
from skdpsurv.mechanisms.langevin import MALA
from skdpsurv.mechanisms.posterior_sampling import Target, calibrate
from skdpsurv.survival.hazards.model import HazardModel, orthogonal_basis
from skdpsurv.survival.hazards.posterior import PosteriorDraw, PosteriorSampling
from tests.support.hazard_blocks import hazard_block, hazard_records


def logistic(n=500, epsilon=5.0, label=1.0):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2)) / 2.0
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[0], y[0] = [0.7, 0.7], label
    return Target(Logistic(2), InMemory([LinearBlock(X, y)]), calibrate(epsilon, n))


class TestStart:
    """The first state is a function of public numbers and of the seed: exact, no statistics."""

    @staticmethod
    def first_state(sampler, records, seed, alpha=0.0):
        model = HazardModel("logit", 10, 3, len(records.X), 2, 1.0, "auto", 0.4)
        schedule = PosteriorSampling(sampler, n_epochs=500, batch_size=10, step_size=0.1)
        plan = PosteriorDraw(model, 20.0, alpha, schedule)
        return next(
            plan.states(InMemory([records]), random_source(seed))
        ), plan.sanitizer.prior_precision

    @pytest.mark.parametrize(("sampler", "alpha"), [("mala", 0.0), ("psgld", 0.3)])
    def test_any_records_have_the_same_one(self, monkeypatch, sampler, alpha):
        """pSGLD: without its passes of annealing and with a step that does not move."""
        monkeypatch.setattr(langevin, "WARM_UP", 0, raising=False)
        chain = PosteriorSampling.chain
        if sampler == "psgld":
            still = lambda *args: replace(chain(*args), step_size=1e-20)  # noqa: E731
            monkeypatch.setattr(PosteriorSampling, "chain", still)
        n, rng = 40, np.random.default_rng(1)
        one = hazard_records(rng.uniform(-1, 1, (n, 2)), np.full(n, 3), np.full(n, True))
        others = [
            hazard_records(one.X, one.histories.exit, np.arange(n) > 0),  # a neighbour
            hazard_records(-9.0 * one.X, np.full(n, 10), np.full(n, False)),
        ]
        for seed in (0, 1):
            state, precision = self.first_state(sampler, one, seed, alpha)
            draw = random_source(seed).generator.standard_normal(5) / math.sqrt(precision)
            np.testing.assert_allclose(state, draw, atol=1e-6)
            for other in others:
                again, _ = self.first_state(sampler, other, seed, alpha)
                np.testing.assert_allclose(again, draw, atol=1e-6)


class TestStages:
    def test_from_one_nat_to_the_law(self):
        for n, epsilon in ((1, 1e-3), (500, 5.0), (10**6, 1.0)):
            blocks = InMemory([LinearBlock(np.zeros((n, 1)), np.ones(n))])
            weights = langevin.weights(Target(Logistic(1), blocks, calibrate(epsilon, n)), 8)
            assert weights[-1] == pytest.approx(1.0)
            assert weights[0] * n * epsilon / 2.0 == pytest.approx(min(1.0, n * epsilon / 2.0))
            assert (np.diff(weights) >= 0.0).all()
            np.testing.assert_allclose(np.diff(np.log(weights), 2), 0.0, atol=1e-12)

    def test_one_state_for_each_move(self):
        """The first, of a draw of the prior, has read no record."""
        for n_moves in (0, 1, 9, 10, 37, 250):
            rng = np.random.default_rng(0)
            (first, _), *states = langevin.anneal(logistic(), n_moves, rng)
            assert len(states) == n_moves
            draw = np.random.default_rng(0).standard_normal(2) / math.sqrt(1e-2)
            np.testing.assert_array_equal(first, draw)

    def test_the_search_moves_no_state(self, monkeypatch):
        """Steering from somewhere else: the state goes on from where annealing left it."""
        seen = []
        plain = Target.mode

        def elsewhere(self, start):
            seen.append(start)
            return plain(self, start)[0] + 50.0, plain(self, start)[1]

        monkeypatch.setattr(Target, "mode", elsewhere)
        monkeypatch.setattr(langevin, "ANNEALED", 1.0)
        moves = islice(MALA(100).states(logistic(), random_source(0)), 101, 130)
        states = np.array(list(moves))
        (start,) = seen
        assert np.abs(states - start).max() < 20.0


@dataclass(frozen=True)
class Counted(Target):
    """Records of a few kinds, each as many times as ``counts`` says: exact, and quick."""

    counts: np.ndarray = field(default_factory=lambda: np.ones(1))

    @property
    def n_records(self):
        return int(self.counts.sum())

    def energy(self, coef):
        (block,), law = self.blocks.blocks, self.sanitizer
        losses, gradient = self.likelihood.linearized(coef, block, 1e-12)
        squashed = np.tanh(losses / law.ceiling)
        value = 0.5 * law.prior_precision * coef @ coef
        value += law.rate * law.ceiling * (self.counts @ squashed)
        pull = gradient(self.counts * (1.0 - squashed**2))
        return float(value), law.prior_precision * coef + law.rate * pull

    def curvature(self, coef):
        (block,), law = self.blocks.blocks, self.sanitizer
        slack = 1.0 - np.tanh(self.likelihood.losses(coef, block) / law.ceiling) ** 2
        part = self.likelihood.derivatives(coef, block, weights=self.counts * slack).hessian
        return law.prior_precision * np.eye(coef.size) + law.rate * np.asarray(part)


def two_wells(x, n=40_000, epsilon=0.1, q=200):
    """Records symmetric in beta but for one, censored after 44 intervals at ``x``.

    70 % have x = 0 and an event in interval 4; at x = 1 and x = -1 alike 24 % are censored at the
    end and the others have an event at once. The law has a well at beta = 3.2 and another at -3.2,
    43 nats deep; the exact law of neighbours has beta > 0 with probability 0.488 and 0.512.
    """
    side = (n - 1 - int(0.7 * n)) // 2
    censored = int(0.24 * side)
    at_once = side - censored
    kinds = [  # in the order of a block: by intervals survived
        (at_once, 1.0, 1, True),
        (at_once, -1.0, 1, True),
        (n - 1 - 2 * side, 0.0, 4, True),
        (1, x, 44, False),
        (censored, 1.0, q, False),
        (censored, -1.0, q, False),
    ]
    counts, X, interval, event = (np.array(column) for column in zip(*kinds, strict=True))
    block = hazard_block(X[:, None], interval, event)
    likelihood = DiscreteHazard(orthogonal_basis(q, 1), 1, 1.0, LINKS["logit"])
    return Counted(likelihood, InMemory([block]), calibrate(epsilon, n), counts)


@pytest.mark.slow
def test_one_record_does_not_choose_the_well():
    """Last states of 40 chains each: beta > 0 in 5 to 35 of them.

    By the exact law the number is binomial with probability 0.488 or 0.512, and by the laws on the
    way to it between these: outside with probability 3e-7. A chain that begins at the mode has 0 or
    40.
    """
    for x in (1.0, -1.0):
        target = two_wells(x)
        ends = [
            list(islice(MALA(120).states(target, random_source(seed)), 160))[-1][1]
            for seed in range(40)
        ]
        assert np.abs(ends).min() > 1.0
        assert 5 <= sum(end > 0.0 for end in ends) <= 35
