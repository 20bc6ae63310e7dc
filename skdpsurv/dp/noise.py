"""Sources of randomness, and exact noise on integers.

Everything random in this package is drawn from a :class:`RandomSource`. Lattice noise without a
seed is the exception: OpenDP draws it from a generator of its own. Neighbours: replace-one, or any
relation for which the stated sensitivity holds. Proofs: docs/proofs/noise.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from randomgen import ChaCha

from skdpsurv.dp.checks import positive_number, seed
from skdpsurv.dp.input_errors import as_float_array, check_finite
from skdpsurv.dp.types import FloatArray, IntArray

#: One integer, or an array of them.
Integers = TypeVar("Integers", int, IntArray)
Given = ParamSpec("Given")
Answer = TypeVar("Answer")

_KEY_BITS = 256
#: Default label from which a source derives its key.
NOISE = "noise"

_INT64 = np.iinfo(np.int64)
# Saturation of one record's term is 1-Lipschitz, so no sensitivity grows. A power of two, so that
# the float clip is exact.
_LARGEST_TERM = 2.0**62


# ---- Sources of random bits.


def _derive_key(label: str, *fields: str | bytes) -> int:
    """Hash a label and fields to a ChaCha key; length prefixes make the encoding injective."""
    digest = hashlib.blake2b(digest_size=_KEY_BITS // 8)
    for field in (b"skdpsurv", label, *fields):
        raw = field.encode() if isinstance(field, str) else field
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return int.from_bytes(digest.digest(), "big")


class RandomSource:
    """A stream of random numbers that knows whether it may be used for private noise.

    Make one with :func:`random_source`; the constructor is not meant for users.

    Parameters
    ----------
    key : int
        256-bit key of the ChaCha20 stream. Private when ``seeded`` is False.
    seeded : bool
        True when the key comes from an integer ``random_state``: anybody who knows the integer can
        draw the same noise, so nothing drawn from this source is private.
    seed : int or None, default=None
        That integer, if the source was made from it directly.

    Notes
    -----
    A source cannot be pickled, copied or used in a forked child: two holders of one stream would
    add the same noise, and a difference of two releases would cancel it. Give each model its own
    child with :meth:`spawn`, in the parent. Estimators do not store sources.
    """

    __slots__ = ("_children", "_generator", "_key", "_pid", "_seed", "_seeded")

    def __init__(self, key: int, *, seeded: bool, seed: int | None = None) -> None:
        self._seed = seed
        # key=, not seed=: a SeedSequence is no cryptographic function.
        self._generator = np.random.Generator(ChaCha(key=key, rounds=20))
        self._seeded = seeded
        # Only a seeded parent needs its key again, to derive its children.
        self._key = key.to_bytes(_KEY_BITS // 8, "big") if seeded else None
        self._children = itertools.count()
        self._pid = os.getpid()

    @property
    def generator(self) -> np.random.Generator:
        """NumPy generator over the ChaCha20 stream."""
        self._refuse_fork()
        return self._generator

    def bits(self, count: int) -> int:
        """Return ``count`` independent fair bits of the stream, as a non-negative integer."""
        n_bytes = -(-count // 8)
        return int.from_bytes(self.generator.bytes(n_bytes), "big") >> (8 * n_bytes - count)

    def words(self, n: int, count: int) -> list[int]:
        """Draw like ``n`` calls of ``bits(count)``, for a multiple of 32, in less time."""
        n_bytes = count // 8
        raw = self.generator.bytes(n * n_bytes)
        return [int.from_bytes(raw[i : i + n_bytes], "big") for i in range(0, n * n_bytes, n_bytes)]

    @property
    def seeded(self) -> bool:
        """Whether the stream can be reproduced from a public integer."""
        return self._seeded

    @property
    def exact(self) -> bool:
        """Whether noise on vectors is drawn in more digits than doubles have."""
        return not self._seeded

    def other(self, purpose: str) -> RandomSource:
        """Return an unrelated source for another purpose, reproducible if this one is seeded."""
        self._refuse_fork()
        if self._key is None or self._seed is not None:
            return random_source(self._seed, purpose=purpose)
        return RandomSource(_derive_key("other", self._key, purpose), seeded=True)

    def draw(self, sampler: Callable[..., Answer], *given: Any, **options: Any) -> Answer:
        """Return what a sampler draws; the source of an audit notes it, or answers itself."""
        return sampler(*given, **options)

    def measure(self, measurement: Any, context: Any, records: Any) -> Any:
        """Return what a measurement releases, with noise from this source."""
        return measurement.run(context, records, self)

    def spawn(self, n: int) -> list[RandomSource]:
        """Return ``n`` independent child sources, one for each model or worker thread.

        Without a seed each child has a fresh key. Children of a seeded source are determined by its
        key and their index; a second call continues the index.
        """
        self._refuse_fork()
        if self._key is None:
            return [random_source(None) for _ in range(n)]
        indices = itertools.islice(self._children, n)
        keys = [_derive_key("child", self._key, str(index)) for index in indices]
        return [RandomSource(key, seeded=True) for key in keys]

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "A RandomSource cannot be used in a forked process: parent and child would draw "
                "the same noise. Make a source in each process."
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A RandomSource cannot be pickled or copied: a second holder of the stream would "
            "repeat the same noise, and could subtract it. Use spawn() in the parent process."
        )

    def __repr__(self) -> str:
        return f"RandomSource(seeded={self._seeded})"


#: Makes the sources of seeded fits, which are not private, while an audit replays them.
REPLAYED: ContextVar[Callable[[int], RandomSource] | None] = ContextVar("REPLAYED", default=None)


def drawn_by_source(sampler: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Have a sampler's source call it (:meth:`RandomSource.draw`)."""

    @wraps(sampler)
    def draw(*given: Given.args, **options: Given.kwargs) -> Answer:
        every = (*given, *options.values())
        source = next((one for one in every if isinstance(one, RandomSource)), None)
        if source is None:  # the sampler says what is missing
            return sampler(*given, **options)
        return source.draw(sampler, *given, **options)

    return draw


def random_source(random_state: int | None, *, purpose: str = NOISE) -> RandomSource:
    """Make the source of randomness that ``random_state`` asks for.

    Parameters
    ----------
    random_state : None or int
        None: a ChaCha20 stream under a fresh 256-bit key from the operating system. A non-negative
        integer: a reproducible stream, which is not private.
    purpose : str, default="noise"
        Streams of one integer for different purposes are unrelated, so that a published split
        (``purpose="split"``) says nothing about the noise.

    Returns
    -------
    RandomSource

    Examples
    --------
    >>> from skdpsurv.dp import random_source
    >>> random_source(None)
    RandomSource(seeded=False)
    >>> first, again = random_source(7), random_source(7)
    >>> bool(first.generator.random() == again.generator.random())
    True
    """
    seed("random_state", random_state)
    if random_state is None:
        return RandomSource(secrets.randbits(_KEY_BITS), seeded=False)
    known = int(random_state)
    key, replayed = _derive_key("seed", purpose, str(known)), REPLAYED.get()
    if replayed is not None and purpose == NOISE:
        return replayed(key)
    return RandomSource(key, seeded=True, seed=known)


def uniform_below(bound: int, source: RandomSource) -> int:
    """Draw uniformly from 0, ..., ``bound`` - 1, exactly; ``bound`` is positive, of any size."""
    while True:
        draw = source.bits((bound - 1).bit_length())
        if draw < bound:
            return draw


# ---- Noise on integers.


def lattice_step(scale: float) -> float:
    """Return the largest power of two that is at most ``scale``, which is public and positive.

    Examples
    --------
    >>> from skdpsurv.dp.noise import lattice_step
    >>> lattice_step(0.3), lattice_step(4.0)
    (0.25, 4.0)
    """
    _, exponent = math.frexp(positive_number("scale", scale))
    return math.ldexp(0.5, exponent)


def round_to_lattice(values: ArrayLike, step: float) -> FloatArray:
    """Round noisy values to the nearest multiple of a public power of two, ties to even.

    The last bits of a float sum betray its terms (Mironov, CCS 2012). Rounding removes them, as
    post-processing; unlike :func:`lattice_laplace` this is a safeguard and no proof. Zero is always
    +0.0, since the sign of a rounded zero would tell on which side the unrounded value was.

    Examples
    --------
    >>> from skdpsurv.dp.noise import round_to_lattice
    >>> round_to_lattice([0.3, -0.1], 0.25)
    array([0.25, 0.  ])
    """
    step = positive_number("step", step)
    if math.frexp(step)[0] != 0.5:
        raise ValueError(f"step must be a power of two, got {step!r}.")
    array = as_float_array(values, "values")
    with np.errstate(over="ignore"):
        steps = array / step
    # From 2^52 steps on every float is a multiple already, and array / step may overflow.
    coarse = np.abs(steps) >= 2.0**52
    rounded = np.where(coarse, array, np.rint(np.where(coarse, 0.0, steps)) * step)
    return np.asarray(rounded + 0.0, dtype=np.float64)


def to_lattice(values: ArrayLike, step_exponent: int = -30) -> IntArray:
    """Round private terms, one per record, to integer multiples of ``2**step_exponent``.

    Terms beyond ``2**62`` steps saturate; NaN or infinity is a ValueError. Rounding is monotone: a
    sum of terms in a public interval [a, b] has sensitivity ``to_lattice(b) - to_lattice(a)`` under
    replace-one neighbours, in lattice units.

    Examples
    --------
    >>> from skdpsurv.dp.noise import to_lattice
    >>> to_lattice([0.5, -1.0], step_exponent=-2)
    array([ 2, -4])
    """
    array = as_float_array(values, "values")
    check_finite(array, "values")
    # Multiplying by a power of two is exact, or overflows to an infinity that saturates. It takes a
    # tenth of the time of ldexp, which is for powers beyond the doubles.
    with np.errstate(over="ignore"):
        if abs(step_exponent) < 1000:
            steps = np.rint(array * 2.0**-step_exponent)
        else:
            steps = np.rint(np.ldexp(array, -step_exponent))
    return np.clip(steps, -_LARGEST_TERM, _LARGEST_TERM).astype(np.int64)


def lattice_sum(values: ArrayLike, step_exponent: int = -30) -> int:
    """Sum private terms exactly, as a Python integer in units of ``2**step_exponent``.

    Unlike a float sum it does not depend on order or blocks, and has its true sensitivity.

    Examples
    --------
    >>> from skdpsurv.dp.noise import lattice_sum
    >>> lattice_sum([0.1] * 10) == 10 * lattice_sum([0.1])
    True
    """
    terms = to_lattice(values, step_exponent)
    # Two int64 sums of 32-bit halves: neither overflows below 2^31 terms in one block.
    high = int(np.sum(terms >> 32, dtype=np.int64))
    low = int(np.sum(terms & 0xFFFFFFFF, dtype=np.int64))
    return (high << 32) + low


@drawn_by_source
def lattice_laplace(value: Integers, scale: float, source: RandomSource) -> Integers:
    r"""Add discrete Laplace noise, :math:`P(k) \propto e^{-|k| / \text{scale}}`, to each integer.

    Parameters
    ----------
    value : int or ndarray of integers
        Exact and private, in lattice units.
    scale : float
        Public, positive and finite: the L1 sensitivity over all elements, divided by epsilon.
    source : RandomSource
        A seeded source gives the same distribution up to rounding, reproducible and not private.

    Returns
    -------
    int or ndarray of int64
        Values and sums beyond 64 bits saturate.

    Notes
    -----
    Theorem: (sensitivity / scale)-DP, pure (Ghosh, Roughgarden and Sundararajan 2012). OpenDP's
    sampler is exact (Canonne, Kamath and Steinke 2020, algorithm 2), so it holds on a computer.

    Examples
    --------
    >>> from skdpsurv.dp import random_source
    >>> from skdpsurv.dp.noise import lattice_laplace
    >>> type(lattice_laplace(1000, 2.0, random_source(None)))
    <class 'int'>
    """
    return _noisy(value, "laplace", positive_number("scale", scale), source)


@drawn_by_source
def lattice_gaussian(value: Integers, deviation: float, source: RandomSource) -> Integers:
    r"""Add discrete Gaussian noise, :math:`P(k) \propto e^{-k^2 / (2\sigma^2)}`, to each integer.

    Parameters and result are as for :func:`lattice_laplace`, but that ``deviation``,
    :math:`\sigma`, is the L2 sensitivity over all elements, divided by mu.

    Notes
    -----
    Theorem: :math:`\tfrac12\mu^2`-zCDP, exact on a computer (Canonne, Kamath and Steinke 2020,
    theorem 4 and algorithm 3).

    Examples
    --------
    >>> from skdpsurv.dp import random_source
    >>> from skdpsurv.dp.noise import lattice_gaussian
    >>> type(lattice_gaussian(1000, 2.0, random_source(None)))
    <class 'int'>
    """
    return _noisy(value, "gaussian", positive_number("deviation", deviation), source)


def _noisy(value: Integers, distribution: str, scale: float, source: RandomSource) -> Integers:
    array = np.asarray(value)
    exact = array.ravel().tolist()
    # Python's integers beyond 64 bits, as lattice_sum may return, arrive as objects.
    if array.dtype.kind not in "iuO" or not all(type(v) is int for v in exact):
        raise TypeError("value must be an integer or an array of integers.")
    exact = [_saturate(v) for v in exact]
    if source.seeded:
        noisy = _seeded(distribution, exact, scale, source.generator)
    else:
        noisy = _opendp(distribution, exact, scale)
    if isinstance(value, np.ndarray):
        return np.asarray(noisy, dtype=np.int64).reshape(value.shape)
    return noisy[0]


def _saturate(value: int) -> int:
    return min(max(value, int(_INT64.min)), int(_INT64.max))


def _seeded(
    distribution: str, exact: list[int], scale: float, generator: np.random.Generator
) -> list[int]:
    draw = _geometric_difference if distribution == "laplace" else _by_rejection
    noise = draw(len(exact), scale, generator)
    return [_saturate(v + k) for v, k in zip(exact, noise, strict=True)]


def _opendp(distribution: str, exact: list[int], scale: float) -> list[int]:
    import opendp.prelude as dp  # slow to import, and needed only when noise is drawn

    dp.enable_features("contrib")
    make = dp.m.make_laplace if distribution == "laplace" else dp.m.make_gaussian
    return [int(v) for v in make(*_space(distribution), scale)(exact)]


@cache
def _space(distribution: str) -> tuple[Any, Any]:
    """Return OpenDP's domain of vectors of integers, and the distance that a noise hides."""
    import opendp.prelude as dp

    # T="i64": OpenDP reads a plain "int" as 32 bits.
    distance = dp.l1_distance(T="i64") if distribution == "laplace" else dp.l2_distance(T=float)
    return dp.vector_domain(dp.atom_domain(T="i64")), distance


def _geometric_difference(n: int, scale: float, generator: np.random.Generator) -> list[int]:
    # The integer part of an exponential of mean `scale` is geometric, P(G >= k) = exp(-k/scale),
    # and the difference of two is discrete Laplace. Beyond the cap every sum saturates anyway.
    exponentials = min(scale, 2.0**512) * generator.standard_exponential((2, n))
    return [math.floor(a) - math.floor(b) for a, b in exponentials.T.tolist()]


def _by_rejection(n: int, deviation: float, generator: np.random.Generator) -> list[int]:
    # Discrete Laplace draws k of scale t are kept with probability
    # exp(-(|k| - deviation^2 / t)^2 / (2 deviation^2)), two of five or more.
    scale = math.floor(deviation) + 1.0
    kept: list[int] = []
    while len(kept) < n:
        drawn = _geometric_difference(2 * (n - len(kept)) + 8, scale, generator)
        away = (np.abs(np.array(drawn, dtype=np.float64)) - deviation**2 / scale) / deviation
        keep = generator.random(len(drawn)) < np.exp(-0.5 * away**2)
        kept += itertools.compress(drawn, keep)
    return kept[:n]


@contextmanager
def restored_streams() -> Iterator[None]:
    """Restore the global random streams, whose state would reveal the number of fits."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
