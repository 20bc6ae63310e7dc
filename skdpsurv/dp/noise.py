r"""Noise and randomness: sources of random bits, and exact noise on a lattice and on vectors.

What is random in this package is drawn from a :class:`RandomSource`, but for lattice noise without
a seed, which OpenDP draws from a generator of its own.

Vectors of noise from random bits, in so many digits that a theorem covers the program.

A sampler of doubles ends its tails, leaves out most doubles, and betrays by its last bits what it
was added to. Here a draw is a vector of rational numbers, made of whole random integers by
correctly rounded logarithms, roots and divisions in :data:`DIGITS` decimals, and the sum with the
private value is rounded to a public lattice exactly, in rational arithmetic.

Theorem (docs/proofs/noise, "The program's noise"): if the bits are independent and fair, the
rounded sum has the law of the ideal one, value plus noise in real numbers, rounded to the lattice,
within a total variation of :math:`10^{-30}`, for up to
:math:`6 \cdot 10^5` coordinates; longer vectors are refused. So what is
:math:`\epsilon`-private in real arithmetic is :math:`(\epsilon, (1 + e^\epsilon) 10^{-30})`-private
as a program, for each such sum.
"""

from __future__ import annotations

import decimal
import hashlib
import itertools
import math
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from randomgen import ChaCha

from skdpsurv.dp.checks import as_float_array, check_finite, positive_int, positive_number, seed
from skdpsurv.dp.types import FloatArray, IntArray

_KEY_BITS = 256
#: What a source is for, if nothing else is said.
NOISE = "noise"


def _derive_key(label: str, *fields: str | bytes) -> int:
    """Hash a label and fields to a ChaCha key; length prefixes make the encoding injective."""
    digest = hashlib.blake2b(digest_size=_KEY_BITS // 8)
    for field in (b"skdpsurv", label, *fields):
        raw = field.encode() if isinstance(field, str) else field
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return int.from_bytes(digest.digest(), "big")


def _generator(key: int) -> np.random.Generator:
    # key=, not seed=: a seed would be squeezed through a SeedSequence, which is no
    # cryptographic function; the key is ChaCha's own 256-bit key.
    return np.random.Generator(ChaCha(key=key, rounds=20))


class RandomSource:
    """A stream of random numbers that knows whether it may be used for private noise.

    Make one with :func:`random_source`; the constructor is not meant for users.

    Parameters
    ----------
    key : int
        256-bit key of the ChaCha20 stream. Private when ``seeded`` is False.
    seeded : bool
        True when the key comes from an integer ``random_state``: anybody who knows the integer
        can draw the same noise, so nothing drawn from this source is private.

    Notes
    -----
    A source cannot be pickled or copied, and refuses to be used in a forked child: two holders of
    one stream would add the same noise twice, and a difference of two releases would cancel it.
    Give each model its own child with :meth:`spawn`, in the parent.
    """

    __slots__ = ("_children", "_generator", "_key", "_pid", "_seed", "_seeded")

    def __init__(self, key: int, *, seeded: bool, seed: int | None = None) -> None:
        self._seed = seed
        self._generator = _generator(key)
        self._seeded = seeded
        # Only a seeded parent needs its key again, to derive its children.
        self._key = key if seeded else None
        self._children = itertools.count()
        self._pid = os.getpid()

    @property
    def generator(self) -> np.random.Generator:
        """Numpy generator over the ChaCha20 stream."""
        self._refuse_fork()
        return self._generator

    def bits(self, count: int) -> int:
        """Return so many independent fair bits of the stream, as a non-negative integer.

        Parameters
        ----------
        count : int
            Public, at least 1.

        Returns
        -------
        int
        """
        whole, rest = divmod(count, 8)
        drawn = int.from_bytes(self.generator.bytes(whole + (rest > 0)), "big")
        return drawn >> (8 - rest if rest else 0)

    @property
    def seeded(self) -> bool:
        """Whether the stream can be reproduced from a public integer."""
        return self._seeded

    @property
    def exact(self) -> bool:
        """Whether vectors of noise are to be drawn in more digits than doubles have."""
        return not self._seeded

    def other(self, purpose: str) -> RandomSource:
        """Return a source for another purpose, unrelated to this one.

        Parameters
        ----------
        purpose : str
            As for :func:`random_source`.

        Returns
        -------
        RandomSource
            Of a source that was made from an integer, what that integer gives for the purpose.
        """
        self._refuse_fork()
        if self._key is None or self._seed is not None:
            return random_source(self._seed, purpose=purpose)
        key = _derive_key("other", self._key.to_bytes(_KEY_BITS // 8, "big"), purpose)
        return RandomSource(key, seeded=True)

    def spawn(self, n: int) -> list[RandomSource]:
        """Return ``n`` independent child sources, one for each model or worker thread.

        Parameters
        ----------
        n : int
            Number of children, at least 0.

        Returns
        -------
        list of RandomSource
            With operating-system entropy each child has a fresh key of its own. The children of
            a seeded source are determined by its key and their index; a second call continues
            the index, so no two children of one source share a stream.
        """
        self._refuse_fork()
        if self._key is None:
            return [RandomSource(secrets.randbits(_KEY_BITS), seeded=False) for _ in range(n)]
        parent = self._key.to_bytes(_KEY_BITS // 8, "big")
        return [
            RandomSource(_derive_key("child", parent, str(next(self._children))), seeded=True)
            for _ in range(n)
        ]

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


def random_source(random_state: int | None, *, purpose: str = NOISE) -> RandomSource:
    """Make the source of randomness that ``random_state`` asks for.

    Parameters
    ----------
    random_state : None or int
        None: a ChaCha20 stream under a fresh 256-bit key from the operating system. An int: a
        reproducible stream; what is computed with it is not private, because the noise can be
        drawn again and subtracted.
    purpose : str, default="noise"
        What the stream is for. Streams of one integer for different purposes are unrelated, so
        that publishing a split (``purpose="split"``) says nothing about the noise.

    Returns
    -------
    RandomSource

    Raises
    ------
    TypeError, ValueError
        If ``random_state`` is neither None nor a non-negative integer.

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
    return RandomSource(_derive_key("seed", purpose, str(known)), seeded=True, seed=known)


def uniform_below(bound: int, source: RandomSource) -> int:
    """Draw uniformly from 0, ..., bound - 1, exactly: random bits, rejected beyond the bound.

    Parameters
    ----------
    bound : int
        Positive, of any size.
    source : RandomSource

    Returns
    -------
    int
    """
    bits = (bound - 1).bit_length()
    n_bytes = (bits + 7) // 8
    while True:
        draw = int.from_bytes(source.generator.bytes(n_bytes), "big") >> (8 * n_bytes - bits)
        if draw < bound:
            return draw


#: One integer, or an array of them.
Integers = TypeVar("Integers", int, IntArray)

_INT64 = np.iinfo(np.int64)
# Of one record's term on the lattice: to saturate is 1-Lipschitz, and enlarges no sensitivity. A
# power of two, so that the float clip is exact.
_LARGEST_TERM = 2.0**62


def lattice_step(scale: float) -> float:
    """Return the largest power of two that is at most ``scale``.

    Parameters
    ----------
    scale : float
        Public positive finite number, such as the scale of the noise to be rounded.

    Returns
    -------
    float
        A step for :func:`round_to_lattice`. It is public, as ``scale`` is.

    Examples
    --------
    >>> from skdpsurv.dp import lattice_step
    >>> lattice_step(0.3), lattice_step(4.0)
    (0.25, 4.0)
    """
    _, exponent = math.frexp(positive_number("scale", scale))
    return math.ldexp(0.5, exponent)


def round_to_lattice(values: ArrayLike, step: float) -> FloatArray:
    """Round to the nearest multiple of a public power of two, ties to even.

    The last bits of a float sum "private value + noise" betray the private value [1]_; rounding
    the sum to a lattice chosen from public numbers, as post-processing, removes them.

    Parameters
    ----------
    values : array-like of float
        Values to round, already noisy.
    step : float
        Public power of two, so that every multiple that fits in 53 bits is exactly a float.

    Returns
    -------
    ndarray of float64
        Same shape as ``values``. Zero is always +0.0, since the sign of a rounded zero would tell
        on which side of zero the unrounded value was.

    Notes
    -----
    Unlike the integer sampler of :func:`lattice_laplace`, this is no proof.

    References
    ----------
    .. [1] Mironov, I. (2012). On significance of the least significant bits for differential
       privacy. *CCS 2012*, 650-661.

    Examples
    --------
    >>> from skdpsurv.dp import round_to_lattice
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
    """Round each term to a multiple of ``2**step_exponent`` and return the multiples as integers.

    Parameters
    ----------
    values : array-like of float
        One term of a sum for each record. Private.
    step_exponent : int, default=-30
        Public exponent of the lattice step.

    Returns
    -------
    ndarray of int64
        Multiples of the step, same shape as ``values``. Terms beyond ``2**62`` steps saturate.

    Notes
    -----
    Rounding is monotone: of terms in a public interval [a, b] the sum has sensitivity
    ``to_lattice(b) - to_lattice(a)`` under replace-one neighbours, in lattice units.

    Raises
    ------
    ValueError
        If a value is NaN or infinite.

    Examples
    --------
    >>> from skdpsurv.dp import to_lattice
    >>> to_lattice([0.5, -1.0], step_exponent=-2)
    array([ 2, -4])
    """
    array = as_float_array(values, "values")
    check_finite(array, "values")
    # Multiplying by a power of two is exact, or overflows to an infinity that saturates. A product
    # takes a tenth of the time of ldexp, which is for powers that no double is.
    with np.errstate(over="ignore"):
        if abs(step_exponent) < 1000:
            steps = np.rint(array * 2.0**-step_exponent)
        else:
            steps = np.rint(np.ldexp(array, -step_exponent))
    return np.clip(steps, -_LARGEST_TERM, _LARGEST_TERM).astype(np.int64)


def lattice_sum(values: ArrayLike, step_exponent: int = -30) -> int:
    """Sum the terms exactly, in units of ``2**step_exponent``.

    The sum is the same however the records are ordered or chunked, and its sensitivity is the true
    one. A float sum has neither property.

    Parameters
    ----------
    values : array-like of float
        One term for each record. Private.
    step_exponent : int, default=-30
        Public.

    Returns
    -------
    int
        Python's integers do not overflow; sums of several blocks add up to the sum of all.

    Examples
    --------
    >>> from skdpsurv.dp import lattice_sum
    >>> lattice_sum([0.1] * 10) == 10 * lattice_sum([0.1])
    True
    """
    terms = to_lattice(values, step_exponent)
    # Two int64 sums of 32-bit halves: neither overflows below 2^31 terms in one block.
    high = int(np.sum(terms >> 32, dtype=np.int64))
    low = int(np.sum(terms & 0xFFFFFFFF, dtype=np.int64))
    return (high << 32) + low


def lattice_laplace(value: Integers, scale: float, source: RandomSource) -> Integers:
    r"""Add discrete Laplace noise to integers (counts, or sums in lattice units).

    The noise has :math:`P(K = k) \propto e^{-|k| / \text{scale}}` on the integers, independently
    for each element.

    Parameters
    ----------
    value : int or ndarray of integers
        The exact, private value. Beyond 64 bits it saturates.
    scale : float
        Public, in lattice units, positive and finite: ``sensitivity / epsilon``, where the
        sensitivity is in lattice units and, for an array, in the L1 norm over all its elements.
    source : RandomSource
        With operating-system entropy the noise is OpenDP's exact sampler. With a seeded source
        it is the difference of two geometric variables from the ChaCha stream: the same law, on
        the same lattice, up to the rounding of floats, but reproducible and hence not private.

    Returns
    -------
    int or ndarray of int64
        As ``value``. Sums beyond 64 bits saturate, which is post-processing.

    Raises
    ------
    ValueError
        If ``scale`` is not a positive finite number.
    TypeError
        If ``value`` is not integer.

    Notes
    -----
    Neighbours: replace-one, or any relation for which ``sensitivity`` bounds the L1 distance.
    Theorem: the release is (sensitivity / scale)-DP, pure [1]_. The integers and the exact
    sampler are what makes it hold on a computer: a Laplace draw in floats, added to a float,
    does not satisfy it [2]_. OpenDP's sampler follows [3]_ and has a written proof.

    References
    ----------
    .. [1] Ghosh, A., Roughgarden, T., Sundararajan, M. (2012). Universally utility-maximizing
       privacy mechanisms. *SIAM J. Comput.* 41(6), 1673-1693.
    .. [2] Mironov, I. (2012). On significance of the least significant bits for differential
       privacy. *CCS 2012*, 650-661.
    .. [3] Canonne, C., Kamath, G., Steinke, T. (2020). The discrete Gaussian for differential
       privacy. *NeurIPS 33*. Algorithm 2.

    Examples
    --------
    >>> from skdpsurv.dp import lattice_laplace, random_source
    >>> type(lattice_laplace(1000, 2.0, random_source(None)))
    <class 'int'>
    """
    return _noisy(value, "laplace", positive_number("scale", scale), source)


def lattice_gaussian(value: Integers, deviation: float, source: RandomSource) -> Integers:
    r"""Add discrete Gaussian noise to integers (counts, or sums in lattice units).

    The noise has :math:`P(K = k) \propto e^{-k^2 / (2\sigma^2)}` on the integers, independently
    for each element.

    Parameters
    ----------
    value : int or ndarray of integers
        The exact, private value. Beyond 64 bits it saturates.
    deviation : float
        :math:`\sigma`, public, in lattice units, positive and finite: the sensitivity, in the L2
        norm over all elements, divided by mu.
    source : RandomSource
        With operating-system entropy the noise is OpenDP's exact sampler. With a seeded source
        it is drawn in floats, by rejection from discrete Laplace noise: the same law but for
        their rounding, reproducible and hence not private.

    Returns
    -------
    int or ndarray of int64
        As ``value``. Sums beyond 64 bits saturate, which is post-processing.

    Raises
    ------
    ValueError
        If ``deviation`` is not a positive finite number.
    TypeError
        If ``value`` is not integer.

    Notes
    -----
    Neighbours: replace-one, or any relation for which the sensitivity bounds the L2 distance.
    Theorem: the release is :math:`\tfrac12\mu^2`-zCDP [1]_. Integers and sampler are exact, so that
    it holds on the computer.

    References
    ----------
    .. [1] Canonne, C., Kamath, G., Steinke, T. (2020). The discrete Gaussian for differential
       privacy. *NeurIPS 33*. Theorem 4 and algorithm 3.

    Examples
    --------
    >>> from skdpsurv.dp import lattice_gaussian, random_source
    >>> type(lattice_gaussian(1000, 2.0, random_source(None)))
    <class 'int'>
    """
    return _noisy(value, "gaussian", positive_number("deviation", deviation), source)


def _noisy(value: Integers, law: str, scale: float, source: RandomSource) -> Integers:
    array = np.asarray(value)
    exact = array.ravel().tolist()
    # Python's integers beyond 64 bits, as lattice_sum may return, arrive as objects.
    if array.dtype.kind not in "iuO" or not all(type(v) is int for v in exact):
        raise TypeError("value must be an integer or an array of integers.")
    exact = [_saturate(v) for v in exact]
    if source.seeded:
        draw = _geometric_difference if law == "laplace" else _by_rejection
        noise = draw(len(exact), scale, source.generator)
        noisy = [_saturate(v + k) for v, k in zip(exact, noise, strict=True)]
    else:
        noisy = _opendp(law, exact, scale)
    if isinstance(value, np.ndarray):
        return np.asarray(noisy, dtype=np.int64).reshape(value.shape)
    return noisy[0]


def _saturate(value: int) -> int:
    return min(max(value, int(_INT64.min)), int(_INT64.max))


def _opendp(law: str, exact: list[int], scale: float) -> list[int]:
    import opendp.prelude as dp  # slow to import, and needed only when noise is drawn

    dp.enable_features("contrib")
    # T="i64": OpenDP reads a plain "int" as 32 bits.
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law == "laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale)
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale)
    return [int(v) for v in measurement(exact)]


def _geometric_difference(n: int, scale: float, generator: np.random.Generator) -> list[int]:
    # The integer part of an exponential of mean `scale` is geometric, P(G >= k) = exp(-k/scale),
    # and the difference of two is discrete Laplace. Python's integers, so nothing overflows.
    # Beyond the cap every sum saturates anyway, while exponential * scale could be infinite.
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
        kept += [k for k, one in zip(drawn, keep, strict=True) if one]
    return kept[:n]


def spherical_laplace(dimension: int, scale: float, source: RandomSource) -> FloatArray:
    r"""Draw a vector with density :math:`\nu(b) \propto e^{-\|b\|_2 / \text{scale}}`.

    Parameters
    ----------
    dimension : int
        Public number of coordinates, d, at least 1.
    scale : float
        Public, positive and finite: ``sensitivity / epsilon`` with the sensitivity in L2.
    source : RandomSource

    Returns
    -------
    ndarray of float64, shape (dimension,)

    Notes
    -----
    Neighbours: replace-one, or any relation for which ``sensitivity`` bounds the L2 distance of
    the released vectors. Theorem: value + b is (sensitivity / scale)-DP, pure, by the triangle
    inequality [1]_. In polar coordinates the density is :math:`r^{d-1} e^{-r/\text{scale}}` times
    the uniform law on the sphere, so :math:`\|b\| \sim` Gamma(d, scale), with mean d * scale, and
    the direction is that of a standard normal vector.

    The theorem is for real numbers. With operating-system entropy the doubles are those nearest to
    a draw in :data:`~skdpsurv.dp.noise.DIGITS` digits, whose law is this one within a
    total variation of 1e-30. But the last bits of a float sum betray its terms: add the draw of
    :func:`~skdpsurv.dp.noise.exact_spherical_laplace` by
    :meth:`~skdpsurv.dp.noise.ExactVector.added_to`, which rounds the sum exactly, as
    the estimators do. A seeded source's draw is made in doubles, whose tails end: it is
    reproducible and hence not private.

    References
    ----------
    .. [1] Chaudhuri, K., Monteleoni, C., Sarwate, A. (2011). Differentially private empirical
       risk minimization. *JMLR* 12, 1069-1109. Section 3.1.

    Examples
    --------
    >>> from skdpsurv.dp import random_source, spherical_laplace
    >>> spherical_laplace(3, 0.5, random_source(None)).shape
    (3,)
    """
    dimension = positive_int("dimension", dimension)
    scale = positive_number("scale", scale)
    if source.exact:
        return exact_spherical_laplace(dimension, scale, source).nearest_doubles()
    generator = source.generator
    radius = generator.gamma(dimension, scale)
    length = 0.0
    while not length > 0.0:  # in one dimension a normal draw may be exactly 0
        normal = generator.standard_normal(dimension)
        length = float(np.linalg.norm(normal))
    return np.asarray(radius * (normal / length), dtype=np.float64)


def spherical_gaussian(dimension: int, deviation: float, source: RandomSource) -> FloatArray:
    r"""Draw a vector of independent normal numbers.

    Parameters
    ----------
    dimension : int
        Public number of coordinates, at least 1.
    deviation : float
        Public, positive and finite: the sensitivity in L2, divided by mu.
    source : RandomSource

    Returns
    -------
    ndarray of float64, shape (dimension,)

    Notes
    -----
    Neighbours: replace-one, or any relation for which the sensitivity bounds the L2 distance of the
    released vectors. Theorem: value + draw is :math:`\tfrac12\mu^2`-zCDP [1]_, in real arithmetic.
    How draws are made, and a sum with them must be rounded, is as for :func:`spherical_laplace`.

    References
    ----------
    .. [1] Bun, M., Steinke, T. (2016). Concentrated differential privacy: simplifications,
       extensions, and lower bounds. *TCC 2016-B*. Proposition 1.6.

    Examples
    --------
    >>> from skdpsurv.dp import random_source, spherical_gaussian
    >>> spherical_gaussian(3, 0.5, random_source(None)).shape
    (3,)
    """
    dimension = positive_int("dimension", dimension)
    deviation = positive_number("deviation", deviation)
    if source.exact:
        return exact_spherical_gaussian(dimension, deviation, source).nearest_doubles()
    return np.asarray(deviation * source.generator.standard_normal(dimension), dtype=np.float64)


#: Random bits in each uniform number.
BITS = 320
#: Digits of each operation. 2^-320 is about 10^-96.
DIGITS = 110
#: Digits after the point of a drawn vector, in units of its scale.
PLACES = 100
#: Total variation from the ideal law that the theorem allows for, up to MOST_COORDINATES.
TOTAL_VARIATION = 1e-30
MOST_COORDINATES = 6 * 10**5
#: Noisy vectors that the least delta allows for: more than 200 of the longest chains.
MOST_VECTORS = 10**6

#: Gives so many independent fair bits, as a non-negative integer.
Bits = Callable[[int], int]

# Traps are off and exponents unlimited, as no outcome may be an error.
_CONTEXT = decimal.Context(
    prec=DIGITS,
    rounding=decimal.ROUND_HALF_EVEN,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    traps=[],
)
_ONE = decimal.Decimal(1)
_WHOLE = 1 << BITS
_SQUARE = decimal.Decimal(_WHOLE * _WHOLE)  # exact, in more digits than DIGITS
_TEN = 10**PLACES
_MOST = sys.float_info.max


@dataclass(frozen=True)
class ExactVector:
    """A vector of rational numbers, ``multiples * scale / 10^PLACES``.

    Parameters
    ----------
    multiples : list of int
        Private, as the noise is.
    scale : float
        Public, positive and finite.
    """

    multiples: list[int]
    scale: float

    def nearest_doubles(self) -> FloatArray:
        """Return the doubles nearest to the numbers."""
        top, bottom = self.scale.as_integer_ratio()
        return np.array([_quotient(k * top, bottom * _TEN) for k in self.multiples])

    def added_to(self, values: FloatArray, step: float) -> FloatArray:
        """Round values plus this vector to multiples of a step: exactly, ties to even.

        Parameters
        ----------
        values : ndarray of shape (n,)
            Private. What is not finite stays as it is.
        step : float
            Public power of two.

        Returns
        -------
        ndarray of shape (n,)
            The doubles nearest to the multiples, which beyond 2^53 steps need not be doubles: a
            function of the multiples. Zero is +0.0.
        """
        top, bottom = self.scale.as_integer_ratio()
        step_top, step_bottom = step.as_integer_ratio()

        def rounded(value: float, k: int) -> float:
            if not math.isfinite(value):
                return value
            over, under = value.as_integer_ratio()
            # (over / under + k top / (bottom 10^PLACES)) / step
            sum_over = (over * bottom * _TEN + k * top * under) * step_bottom
            nearest = _round_half_even(sum_over, under * bottom * _TEN * step_top)
            return _quotient(nearest * step_top, step_bottom)

        return np.array([rounded(float(v), k) for v, k in zip(values, self.multiples, strict=True)])


def program_delta(epsilon: float) -> float:
    r"""Return :math:`(1 + e^\epsilon) 10^{-30}`, what one noisy vector adds to delta; at most 1."""
    return min(1.0, TOTAL_VARIATION * (1.0 + math.exp(min(epsilon, 700.0))))


def require_delta(epsilon: float, delta: float) -> None:
    """Refuse a delta that the program's own distance from its laws could fill.

    Raises
    ------
    ValueError
        If it is below ten times what ``MOST_VECTORS`` noisy vectors add up to.
    """
    least = 10.0 * MOST_VECTORS * program_delta(epsilon)
    if delta < least:
        rule = f"0 or at least {least:.2g}" if least < 1.0 else "0"
        raise ValueError(
            f"delta must be {rule} at epsilon={epsilon:g}: the noise of a program is within a "
            f"distance of its law, and no nearer; got {delta:g}."
        )


def require_theorem(dimension: int) -> None:
    """Refuse vectors that are too long for the theorem; whoever plans noise asks before a charge.

    Raises
    ------
    ValueError
        If there are more coordinates than it is proved for.
    """
    if dimension > MOST_COORDINATES:
        raise ValueError(
            f"columns and classes must be so few that a vector with noise has at most "
            f"{MOST_COORDINATES:,} numbers, for which its law is proved; got {dimension:,}."
        )


def exact_spherical_laplace(dimension: int, scale: float, source: RandomSource) -> ExactVector:
    r"""Draw a vector of density :math:`\propto e^{-\|b\|_2 / \text{scale}}`.

    The radius is :math:`-\log \prod_{i=1}^d U_i` scales, a Gamma variable of shape d; the
    direction is that of a standard normal vector, in one dimension a sign.

    Parameters
    ----------
    dimension : int
    scale : float
        Public, positive and finite.
    source : RandomSource

    Returns
    -------
    ExactVector
        With ``dimension`` coordinates.

    Raises
    ------
    ValueError
        As :func:`require_theorem` does.
    """
    require_theorem(dimension)
    bits = source.bits
    with decimal.localcontext(_CONTEXT):
        radius = -math.prod((_uniform(bits) for _ in range(dimension)), start=_ONE).ln()
        if dimension == 1:
            vector = [radius if bits(1) else -radius]
        else:
            normal = _normals(dimension, bits)
            stretch = radius / sum((z * z for z in normal), decimal.Decimal(0)).sqrt()
            vector = [stretch * z for z in normal]
        return ExactVector([_whole(v) for v in vector], scale)


def exact_spherical_gaussian(dimension: int, deviation: float, source: RandomSource) -> ExactVector:
    """Draw a vector of independent normal numbers.

    Parameters
    ----------
    dimension : int
    deviation : float
        Public, positive and finite.
    source : RandomSource

    Returns
    -------
    ExactVector
        With ``dimension`` coordinates.

    Raises
    ------
    ValueError
        As :func:`require_theorem` does.
    """
    require_theorem(dimension)
    with decimal.localcontext(_CONTEXT):
        return ExactVector([_whole(z) for z in _normals(dimension, source.bits)], deviation)


def _uniform(bits: Bits) -> decimal.Decimal:
    """Return a number that is uniform on the multiples of 2^-BITS in (0, 1]."""
    return decimal.Decimal(bits(BITS) + 1) / _WHOLE


def _normals(n: int, bits: Bits) -> list[decimal.Decimal]:
    r"""Return n normal numbers, by Marsaglia's polar method."""
    drawn: list[decimal.Decimal] = []
    while len(drawn) < n:
        # The middles of the cells of a square: odd multiples of 2^-BITS between -1 and 1.
        x, y = 2 * bits(BITS) + 1 - _WHOLE, 2 * bits(BITS) + 1 - _WHOLE
        square = x * x + y * y  # exact
        if square >= _WHOLE * _WHOLE:
            continue
        s = square / _SQUARE
        stretch = (-2 * s.ln() / s).sqrt() / _WHOLE
        drawn += [stretch * x, stretch * y]
    return drawn[:n]


def _whole(value: decimal.Decimal) -> int:
    """Return how many 10^-PLACES a number is, cut off."""
    return int(value.scaleb(PLACES))


def _round_half_even(over: int, under: int) -> int:
    """Return the integer nearest to over / under, for under > 0."""
    nearest, rest = divmod(over, under)
    above = 2 * rest > under or (2 * rest == under and nearest % 2 == 1)
    return nearest + above


def _quotient(over: int, under: int) -> float:
    """Return the double nearest to a quotient, or the largest double."""
    try:
        return over / under
    except OverflowError:
        return _MOST if over > 0 else -_MOST
