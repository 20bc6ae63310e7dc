"""A source that is asked what samplers are to draw, instead of for random numbers.

For replays of fits, which look at what each sampler is given. Samplers ask their source; as long as
fits are replayed, the code of what begins a part of a fit, and of the generators of vectors, is
another, whoever holds the functions. Sources of random numbers are drawn from as ever.

Who answers for a part of a release has three methods: ``part(what, price)`` begins another part,
``ask(draw)`` returns what is drawn, ``refuse()`` takes note of a draw whose law nobody knows.
"""

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.dp import RandomSource, exact_matrices, noise, selection
from skdpsurv.mechanisms import sums, vector_noise
from skdpsurv.mechanisms.perturbation import Problem
from skdpsurv.mechanisms.semidefinite_noise import SemidefiniteLaplace
from skdpsurv.published import weibull_fitters
from tests.fence.places import find

REPLAYED = find("REPLAYED")


class Draw(NamedTuple):
    """What a sampler is asked for."""

    law: str
    scale: float
    given: Any
    again: Callable[[RandomSource], Any]


class AskedSource(RandomSource):
    """A source that is asked. Nothing that comes of it is private."""

    __slots__ = ("_answers", "_independent")

    def __init__(self, answers, independent=None):
        super().__init__(0, seeded=True)
        self._answers = answers
        self._independent = RandomSource(0, seeded=True) if independent is None else independent

    @property
    def generator(self):
        """Refuse: what is drawn from random numbers by itself has a law that is not stated."""
        self._answers.refuse()
        raise TypeError("A draw whose law is not known cannot be asked for.")

    @property
    def exact(self):
        return True

    def begin(self, what, price):
        self._answers = self._answers.part(what, price)

    @contextmanager
    def part(self, what, price):
        before = self._answers
        self.begin(what, price)
        try:
            yield
        finally:
            self._answers = before

    def spawn(self, n):
        return [AskedSource(self._answers, self._independent) for _ in range(n)]

    def ask(self, draw):
        return self._answers.ask(draw)

    def draw(self, sampler, *given, **options):
        return SAMPLERS[sampler.__name__](sampler, *given, **options)


# ---- What samplers answer: their own code, but for a source that is asked.


def _lattice(law):
    def instead(honest, value, scale, source):
        exact = [noise._saturate(v) for v in np.asarray(value).ravel().tolist()]
        noisy = source.ask(Draw(law, float(scale), exact, lambda s: honest(value, scale, s)))
        shaped = isinstance(value, np.ndarray)
        return np.asarray(noisy, dtype=np.int64).reshape(value.shape) if shaped else noisy[0]

    return instead


def _vector(law):
    def instead(honest, dimension, scale, source):
        return source.ask(Draw(law, scale, dimension, lambda s: honest(dimension, scale, s)))

    return instead


def _matrix(honest, width, scale, source):
    law = SemidefiniteLaplace(width, scale)
    again = Draw("semidefinite Laplace, on a vector", scale, law, lambda s: honest(width, scale, s))
    return source.ask(again)


def _choice(law):
    def instead(honest, scores, epsilon, each, source):
        gaps = selection._scaled_gaps(scores, epsilon, each)
        return int(source.ask(Draw(law, 1.0, gaps, lambda s: honest(scores, epsilon, each, s))))

    return instead


def _stated_vector(honest, law, source):
    if type(law) in vector_noise.LAWS:
        return honest(law, source)
    return source.ask(Draw("stated on a vector", law.scale, law, lambda s: honest(law, s)))


def _cell(honest, levels, epsilon, source, n_levels=None):
    def again(other):
        return honest(levels, epsilon, other, n_levels)

    with source.part("ladder", epsilon):
        return int(source.ask(Draw("ladder", float(epsilon), (levels, n_levels), again)))


# ---- Where parts begin.

IN_A_PART = ContextVar("IN_A_PART", default=False)


def _query(name=""):
    def instead(honest, query, exact, price, source):
        if IN_A_PART.get():  # one of several sums, which are a part together
            return honest(query, exact, price, source)
        inside = IN_A_PART.set(True)
        try:
            with source.part(name or query, price):
                return honest(query, exact, price, source)
        finally:
            IN_A_PART.reset(inside)

    return instead


def _problem(honest, problem, source):
    source.begin(problem, None if problem.price is None else problem.price.price)
    return honest(problem, source)


def _chain(honest, chain, records, look, source):
    source.begin("noisy Langevin steps", chain.fit.price)
    return honest(chain, records, look, source)


def _independent(honest, *arguments):
    """Draw what no record has a part in."""
    *others, source = arguments
    return honest(*others, source._independent)


SAMPLERS = {
    "lattice_laplace": _lattice("discrete Laplace"),
    "lattice_gaussian": _lattice("discrete Gaussian"),
    "permute_and_flip": _choice("permute-and-flip"),
    "exponential_mechanism": _choice("exponential mechanism"),
    "draw_noise": _stated_vector,
    "draw_cell": _cell,
}
INSTEAD = {
    find("exact_spherical_laplace"): _vector("Laplace on a vector"),
    find("exact_spherical_gaussian"): _vector("Gaussian on a vector"),
    exact_matrices.exact_semidefinite_laplace: _matrix,
    sums._released: _query(),
    sums.Sums.release: _query(),
    sums.Sums.least: _query(),
    find("MeanOfRows").release: _query("mean of rows"),
    find("SecondMoments").release: _query("second moments of rows"),
    Problem.task: _problem,
    find("HazardChain").states: _chain,
    selection.RunCount.draw: _independent,
    find("uniform_below"): _independent,
    weibull_fitters.PublishedLadder.place: _independent,
    weibull_fitters.NoisyEstimates._estimates: _independent,
}


@contextmanager
def otherwise(function, instead):
    """Have a function do otherwise, whoever holds it: ``instead`` is given what it was, too."""
    code, name = function.__code__, f"_instead_of_{function.__qualname__.replace('.', '_')}"
    honest = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    honest.__kwdefaults__ = function.__kwdefaults__
    made = {}
    exec(f"def stub(*args, **kwargs): return {name}(*args, **kwargs)", made)
    function.__globals__[name] = lambda *args, **kwargs: instead(honest, *args, **kwargs)
    function.__code__ = made["stub"].__code__
    try:
        yield
    finally:
        function.__code__ = code
        del function.__globals__[name]


def _if_asked(instead):
    def chosen(honest, *args, **kwargs):
        if any(isinstance(each, AskedSource) for each in (*args, *kwargs.values())):
            return instead(honest, *args, **kwargs)
        return honest(*args, **kwargs)

    return chosen


@contextmanager
def asked_instead(answers):
    """Have fits with an integer ``random_state``, which are not private anyway, ask for noise."""
    token = REPLAYED.set(lambda key: AskedSource(answers.part(None, None)))
    try:
        with ExitStack() as stack:
            for function, instead in INSTEAD.items():
                stack.enter_context(otherwise(function, _if_asked(instead)))
            yield
    finally:
        REPLAYED.reset(token)
