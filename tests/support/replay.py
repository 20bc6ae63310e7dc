"""A fit that is replayed: what its samplers are asked, and what they answer.

On one data set a sum is answered by its exact value, as if noise had been 0, and on the neighbour
by the same answer. So are vectors: noise is such that the sum with it is the answer, whatever was
added. Noise in an objective is such that the minimum is at a given point. Which cell, candidate or
minimum is answered is for whoever compares both replays to say.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdpsurv.audit.density_ratio import Density
from skdpsurv.dp.exact_vectors import ExactVector
from skdpsurv.dp.noise import round_to_lattice
from skdpsurv.mechanisms.perturbation import Problem
from tests.support.asked_source import Draw


@dataclass
class DrawnOnce:
    draw: Draw
    part: Any
    answer: Any = None
    exact: Any = None
    step: float = 0.0
    law: Density | None = None
    used: int = 0

    @property
    def is_choice(self):
        """Whether the answer with the largest ratio has to be looked for."""
        unused = self.draw.law.endswith("on a vector") and not self.used
        return self.exact is None and not unused

    @property
    def is_gaussian(self):
        """Whether the price of the noise is a mu."""
        return "Gaussian" in self.draw.law


@dataclass
class ReplayedPart:
    """A part of a replayed fit, and all that is drawn for it."""

    replay: Any
    what: Any
    price: Any
    source: int
    drawn: list[DrawnOnce] = field(default_factory=list)

    def part(self, what, price):
        return self.replay.begin(what, price, self.source)

    def ask(self, draw):
        return self.replay.answered(draw, self)

    def refuse(self):
        self.replay.refused = True


@dataclass
class Replay:
    chosen: dict[int, Any]
    given: Sequence[Any] | None = None
    parts: list[ReplayedPart] = field(default_factory=list)
    drawn: list[DrawnOnce] = field(default_factory=list)
    refused: bool = False
    n_sources: int = 0

    def part(self, what, price):
        """Begin what is drawn from another source; draws are made for a source's parts."""
        self.n_sources += 1
        return self.begin(what, price, self.n_sources - 1)

    def begin(self, what, price, source):
        self.parts.append(ReplayedPart(self, what, price, source))
        return self.parts[-1]

    def answered(self, draw, part):
        place, asked = len(self.drawn), DrawnOnce(draw, part)
        self.drawn.append(asked)
        part.drawn.append(asked)
        if draw.law.endswith("on a vector"):
            return AskedVector(asked, place, self)
        if draw.law.startswith("discrete"):
            asked.exact = list(draw.given)
            asked.answer = self.known(place, asked.exact)
            return list(asked.answer)
        asked.answer = self.known(place, self.chosen.get(place, 0))
        return asked.answer

    def known(self, place, own):
        """Return a neighbour's answer, if it has one of this shape, or one's own."""
        if self.given is None or place >= len(self.given):
            return own
        given = self.given[place]
        return given if np.shape(given) == np.shape(own) else own


class AskedVector(ExactVector):
    """Noise on a vector that is drawn when it is known what it is added to."""

    def __init__(self, asked, place, replay):
        given = asked.draw.given
        size = given if isinstance(given, int) else given.dimension
        super().__init__([0] * size, asked.draw.scale)
        object.__setattr__(self, "_asked", (asked, place, replay))

    def added_to(self, values, step):
        """Return the answer, and note what noise would have been added to."""
        asked, place, replay = self._asked
        asked.exact, asked.step, asked.used = np.array(values), step, asked.used + 1
        asked.answer = replay.known(place, round_to_lattice(values, step))
        return np.array(asked.answer)

    def nearest_doubles(self):
        """Return the linear term with which an objective is least at the answer."""
        asked, place, replay = self._asked
        problem = asked.part.what
        if not isinstance(problem, Problem):
            asked.part.refuse()
            raise TypeError("Noise that is added to nothing cannot be asked for.")
        asked.law, asked.used = Density.of(problem), asked.used + 1
        asked.answer = replay.known(place, replay.chosen.get(place, problem.center))
        objective = asked.law.objective
        return -objective.derivatives(asked.answer - objective.center, order=1).gradient
