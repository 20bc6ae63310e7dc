"""Sources of randomness that record a fit, and that answer as a recorded one did.

Samplers and measurements ask the source that they draw from. What these sources are asked is never
private, since they stand in place of seeded ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.audit.density_ratio import Density
from skdpsurv.dp.exact_vectors import ExactVector
from skdpsurv.dp.measurement import NoisySum
from skdpsurv.dp.noise import REPLAYED, RandomSource
from skdpsurv.dp.types import FloatArray
from skdpsurv.mechanisms.ladder import UNIT, LadderLevels, highest_level
from skdpsurv.mechanisms.newton import Objective, minimize
from skdpsurv.mechanisms.perturbation import Minimisers, Problem
from skdpsurv.mechanisms.semidefinite_noise import SemidefiniteLaplace, symmetric, trace_distance
from skdpsurv.mechanisms.sums import Sum
from skdpsurv.mechanisms.vector_noise import Drawn, nearest_doubles, with_noise

#: Nodes of a grid at which ladders are compared, at most.
N_NODES = 256


class Move(NamedTuple):
    """Distance of the inputs of one draw in two fits.

    ``unit`` is the distance that costs 1; ``declared`` is the sensitivity, if the draw states it.
    """

    what: str
    found: float
    unit: float
    declared: float | None = None


@dataclass(eq=False)
class Draw:
    """One draw: its law with public numbers, what it hides, and the answer.

    ``gaps`` compares what two draws hide. Noise on a vector is drawn before it is used; its
    ``hidden`` is what it was added to last.
    """

    public: tuple[Any, ...]
    gaps: Callable[[Draw, Draw], Sequence[Move]]
    hidden: Any = None
    answer: Any = None
    uses: int = 1

    #: Lattice of the answer, where noise is on a vector.
    step: float = 0.0

    @property
    def law(self) -> str:
        """Name of the distribution."""
        return str(self.public[0])

    def __str__(self) -> str:
        return " ".join(map(str, (*self.public, self.step) if self.step else self.public))


@dataclass(eq=False)
class Stage:
    """One measurement of a fit, and its draws; or the fit itself, outside of measurements."""

    node: Any = None
    context: Any = None
    records: Any = None
    draws: list[Draw] = field(default_factory=list)
    #: What it released, if it drew by no sampler but from random numbers directly.
    whole: Any = None
    problems: Iterator[Problem] = field(default_factory=lambda: iter(()))
    draws_itself: bool = False
    holds_fits: bool = False

    @property
    def name(self) -> str:
        """Name of the measurement."""
        return "the fit" if self.node is None else self.node.name

    @property
    def is_of_runs(self) -> bool:
        """Whether each number is of another run of a private selection, and has the price."""
        in_runs = isinstance(self.node, NoisySum) and "_drawn" in self.context
        return in_runs and isinstance(self.node.query_for(self.context), Sum)


class Tape:
    """The parts of a fit, in order; ``given`` is the tape of the fit whose answers are forced."""

    def __init__(self, given: Tape | None = None) -> None:
        self.given = given
        self.parts = [Stage()]
        self.sampling = _Exact(0, seeded=True)
        self._open = [self.parts[0]]
        self._n_sources = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have seeded fits of this thread draw from this tape's sources."""
        token = REPLAYED.set(lambda key: self.source(key))
        try:
            yield
        finally:
            REPLAYED.reset(token)

    def source(self, key: int = 0) -> RandomSource:
        """Return another source, the same for the same key and number."""
        self._n_sources += 1
        return _Source(self, key ^ self._n_sources)

    @property
    def part(self) -> Stage:
        """The part that is being measured."""
        return self._open[-1]

    def measured(self, source: RandomSource, node: Any, context: Any, records: Any) -> Any:
        """Run a measurement as a part, or release what it released as a whole before."""
        part = Stage(node, context, records)
        if isinstance(node, Minimisers):
            part.problems = (p for p in node.problems(context, records) if p.calibration.linear)
        self.part.holds_fits = True
        self.parts.append(part)
        before = self._before(len(self.parts) - 1)
        if before is not None and before.whole is not None:
            part.whole = before.whole
            return part.whole
        self._open.append(part)
        try:
            values = node.run(context, records, source)
        finally:
            self._open.pop()
        if part.draws_itself and not part.draws and not part.holds_fits:
            part.whole = values
        return values

    def drawn(self, draw: Draw) -> Draw | None:
        """Note a draw, and return that of the fit before if it is the same but for the records."""
        draws, before = self.part.draws, self._before(self.parts.index(self.part))
        draws.append(draw)
        theirs = [] if before is None else before.draws[len(draws) - 1 : len(draws)]
        return next((one for one in theirs if one.public == draw.public), None)

    def _before(self, place: int) -> Stage | None:
        if self.given is None or place >= len(self.given.parts):
            return None
        part = self.given.parts[place]
        return part if part.name == self.parts[place].name else None


class _Exact(RandomSource):
    """A seeded source that draws as one without a seed does."""

    __slots__ = ()
    exact = True


class _Source(RandomSource):
    """A source of a tape. What samplers do not draw comes from its stream, in each fit the same."""

    __slots__ = ("_tape",)
    exact = True

    def __init__(self, tape: Tape, key: int) -> None:
        super().__init__(key, seeded=True)
        self._tape = tape

    @property
    def generator(self) -> np.random.Generator:
        self._tape.part.draws_itself = True
        return super().generator

    def spawn(self, n: int) -> list[RandomSource]:
        return [self._tape.source() for _ in range(n)]

    def measure(self, measurement: Any, context: Any, records: Any) -> Any:
        return self._tape.measured(self, measurement, context, records)

    def draw(self, sampler: Callable[..., Any], *given: Any, **options: Any) -> Any:
        tape, name = self._tape, sampler.__name__

        def honest() -> Any:
            return sampler(*(tape.sampling if one is self else one for one in given), **options)

        if name == "draw_noise":
            return _Noise(tape, given[0], honest())
        others = (one for one in given if one is not self)
        draw = DRAWS[name](tape.part, name, *others, **options)
        before = tape.drawn(draw)
        draw.answer = honest() if before is None else before.answer
        return draw.answer


# ---- What is compared, sampler by sampler.


def _on_lattice(part: Stage, name: str, value: Any, scale: float) -> Draw:
    law = f"discrete {name.removeprefix('lattice_')}"
    gaps = partial(_of_integers, each=part.is_of_runs)
    return Draw((law, float(scale), np.shape(value)), gaps, value)


def _of_integers(one: Draw, other: Draw, *, each: bool) -> Sequence[Move]:
    exact = (np.ravel(np.asarray(draw.hidden, dtype=object)) for draw in (one, other))
    moved = [float(abs(a - b)) for a, b in zip(*exact, strict=True)]
    if each:
        return [Move("in a sum", max(moved), one.public[1])]
    if "gaussian" in one.law:
        return [Move("in L2", math.hypot(*moved), one.public[1])]
    return [Move("in L1", math.fsum(moved), one.public[1])]


def _choice(part: Stage, name: str, scores: Any, epsilon: float, sensitivity: float) -> Draw:
    public = (name.replace("_", " "), float(epsilon), float(sensitivity), len(scores))

    def gaps(one: Draw, other: Draw) -> Sequence[Move]:
        moved = [float(abs(a - b)) for a, b in zip(one.hidden, other.hidden, strict=True)]
        return [Move("scores", max(moved), sensitivity / epsilon, sensitivity)]

    return Draw(public, gaps, list(scores))


def _cell(
    part: Stage, name: str, levels: LadderLevels, epsilon: float, n_levels: int | None = None
) -> Draw:
    top, n_cells = highest_level(epsilon, n_levels), levels.n_cells

    def gaps(one: Draw, other: Draw) -> Sequence[Move]:
        nodes = {*range(1, n_cells, max(1, n_cells // N_NODES)), one.answer, one.answer + 1}
        ways = [(a.hidden.down_to, a.hidden.up_to) for a in (one, other)]
        moved = max(
            abs(min(mine(node), top) - min(theirs(node), top))
            for node in nodes
            for mine, theirs in zip(*ways, strict=True)
        )
        return [Move("levels", moved / UNIT, 1.0 / epsilon, 1.0)]

    return Draw(("ladder", float(epsilon), n_levels, n_cells), gaps, levels)


DRAWS: dict[str, Callable[..., Draw]] = {
    "lattice_laplace": _on_lattice,
    "lattice_gaussian": _on_lattice,
    "permute_and_flip": _choice,
    "exponential_mechanism": _choice,
    "draw_cell": _cell,
}


class _Noise(ExactVector):
    """Noise on a vector, which notes what it is added to, and makes the sum the one before."""

    _law: Any
    _drawn: Drawn
    _draw: Draw
    _before: Draw | None
    _part: Stage

    def __init__(self, tape: Tape, law: Any, noise: Drawn) -> None:
        if isinstance(noise, ExactVector):  # as it was drawn, whatever was stated
            law = replace(law, scale=noise.scale)
        super().__init__([0] * law.dimension, law.scale)
        draw = Draw((type(law).__name__, float(law.scale), law.dimension), self._gaps, uses=0)
        vars(self).update(_law=law, _drawn=noise, _draw=draw, _part=tape.part)
        vars(self).update(_before=tape.drawn(draw))

    def added_to(self, values: FloatArray, step: float) -> FloatArray:
        draw, before = self._draw, self._before
        draw.hidden, draw.uses, draw.step = np.array(values), draw.uses + 1, step
        draw.answer = None if before is None else before.answer
        if draw.answer is None:
            draw.answer = with_noise(values, self._drawn, self._law)
        return np.array(draw.answer)

    def nearest_doubles(self) -> FloatArray:
        """Return the noise in an objective; the minimum with it is the answer."""
        draw, before = self._draw, self._before
        problem = next(self._part.problems, None)
        certificate = None if problem is None else problem.calibration.certificate
        if problem is None or certificate is None:
            raise TypeError("estimator has noise that is added to nothing known: no replay.")
        density = replace(Density.of(problem), linear=self._law)
        objective, noise = density.objective, nearest_doubles(self._drawn)
        draw.hidden, draw.uses = density, draw.uses + 1
        if before is not None and before.uses:
            draw.answer = before.answer
            center = objective.center
            return -objective.derivatives(draw.answer - center, order=1).gradient
        parts = objective.likelihood, objective.blocks, objective.kappa, objective.center
        draw.answer = minimize(Objective(*parts, noise), certificate)
        return noise

    def _gaps(self, one: Draw, other: Draw) -> Sequence[Move]:
        law = self._law
        if isinstance(one.hidden, Density):
            return _of_objectives(one, other)
        with np.errstate(invalid="ignore"):
            gap = np.where(one.hidden == other.hidden, 0.0, one.hidden - other.hidden)
        if isinstance(law, SemidefiniteLaplace):
            return [Move("in traces", trace_distance(symmetric(gap, law.width)), law.scale)]
        far = float(np.nan_to_num(np.linalg.norm(gap), nan=math.inf))
        return [Move("in L2", far, far / law.cost(far) if far else law.scale)]


def _of_objectives(one: Draw, other: Draw) -> Sequence[Move]:
    """Compare gradients and densities at the minimum of the first objective with its noise."""
    at, both = one.answer, (one.hidden, other.hidden)
    logs = [density.log_density(at) for density in both]
    gradients = [
        density.objective.derivatives(at - density.objective.center, order=1).gradient
        for density in both
    ]
    found = float(np.linalg.norm(gradients[0] - gradients[1]))
    sensitivity = one.hidden.objective.likelihood.constants.gradient_sensitivity
    return [
        Move("gradients at the minimum", found, math.inf, float(sensitivity)),
        Move("log densities at the minimum", abs(logs[0] - logs[1]), 1.0),
    ]
