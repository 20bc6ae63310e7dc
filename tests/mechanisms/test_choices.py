"""Choices among public candidates: what they cost, and how far their losses are apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from skdpsurv.data.blocks import InMemory
from skdpsurv.dp import random_source
from skdpsurv.mechanisms import sums
from skdpsurv.mechanisms.sums import Choices, Sums


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranks(Choices):
    """The candidates that are nearest to some quarters."""

    name = "ranks"
    proof = "a page"
    moves: int = 4

    @property
    def queries(self):
        return [Sums(3, self.moves)] * 2

    def losses(self, known, records):
        below = records.map_reduce(lambda block: (block[:, None] <= np.arange(3)).sum(axis=0))
        n = known["n"]
        return [[abs(4 * int(rank) - part * n) for rank in below] for part in (1, 3)]

    def after(self, known, places):
        return {"places": list(places)}


ONE = InMemory([np.array([0.0, 1.0, 1.0, 2.0]), np.array([2.0])])
OTHER = InMemory([np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0])])


def test_each_has_an_equal_part_of_the_price(monkeypatch):
    asked = []

    def spy(scores, epsilon, sensitivity, source):
        asked.append((list(scores), epsilon, sensitivity))
        return 2

    monkeypatch.setattr(sums, "permute_and_flip", spy)
    ranks = Ranks(price=0.3)
    found = ranks.run({"n": 5}, ONE, random_source(0))
    assert found == {"places": [2, 2]}
    assert asked == [([-1, -7, -15], 0.15, 4.0), ([-11, -3, -5], 0.15, 4.0)]
    assert ranks.cost.epsilon == 2 * Fraction(0.15)
    assert ranks.scales() == [1.0 / 0.3]


def test_without_privacy_the_least_losses_are_chosen():
    ranks = Ranks(price=math.inf)
    assert ranks.run({"n": 5}, ONE, random_source(0)) == {"places": [0, 1]}
    assert ranks.cost.epsilon == math.inf


@pytest.mark.parametrize("moves", [4, 3])
def test_losses_of_neighbours_are_as_far_apart_as_they_may_be(moves):
    found = Ranks(price=0.3, moves=moves).distances({"n": 5}, ONE, OTHER)
    assert found == [("losses", 4.0, float(moves))] * 2
