r"""One source of randomness: operating-system entropy by default, seeded only when asked.

What is random in this package is drawn from a :class:`RandomSource`, made by
:func:`random_source` from an estimator's ``random_state`` at the start of ``fit`` and dropped at
its end; but for lattice Laplace noise without a seed, which OpenDP draws from a generator of its
own. A source is never stored on an estimator: whoever holds its key can subtract the noise.

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
from typing import NoReturn

import numpy as np
from randomgen import ChaCha

from skdpsurv.dp.checks import seed
from skdpsurv.dp.types import FloatArray

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
