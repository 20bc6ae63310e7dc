r"""Noise on vectors, drawn in many digits and added exactly.

Neighbours: replace-one, or any relation for which the stated L2 sensitivity holds.

Theorem (docs/proofs/noise, "The program's noise"): noise is drawn in multiples of
:math:`2^{-384}` from independent fair bits, and its sum with a private vector is rounded to a
public lattice exactly. The rounded sum has the distribution of the ideal one, in real numbers,
within a total variation of :math:`10^{-30}`, for up to :math:`6 \cdot 10^5` coordinates. A
mechanism that is :math:`\epsilon`-private in real arithmetic is :math:`(\epsilon,
(1 + e^\epsilon) 10^{-30})`-private as a program, for each such sum.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cache

import numpy as np

from skdpsurv.dp.checks import positive_int, positive_number
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.types import FloatArray

#: Random bits in each uniform number.
BITS = 320
#: Binary digits after the point of all that is computed, in integers.
FRACTION = 384
#: Uniform numbers whose product has one logarithm; pairs that are drawn at once.
FACTORS, PAIRS = 16, 1024
#: Total variation from the ideal distribution that the theorem allows, up to MOST_COORDINATES.
TOTAL_VARIATION = 1e-30
MOST_COORDINATES = 6 * 10**5
#: Number of noisy vectors that the least delta allows: more than 200 of the longest chains have.
MOST_VECTORS = 10**6


def program_delta(epsilon: float) -> float:
    r"""Return the delta of one noisy vector: :math:`(1 + e^\epsilon) 10^{-30}`, at most 1."""
    return min(1.0, TOTAL_VARIATION * (1.0 + math.exp(min(epsilon, 700.0))))


def require_delta(epsilon: float, delta: float) -> None:
    """Refuse a delta below ten times what ``MOST_VECTORS`` vectors, drawn in floats, may add."""
    least = 10.0 * MOST_VECTORS * program_delta(epsilon)
    if delta < least:
        rule = f"0 or at least {least:.2g}" if least < 1.0 else "0"
        raise ValueError(
            f"delta must be {rule} at epsilon={epsilon:g}: the noise of a program is within a "
            f"distance of its law, and no nearer; got {delta:g}."
        )


def require_theorem(dimension: int) -> None:
    """Refuse vectors too long for the theorem; plans ask before anything is charged."""
    if dimension > MOST_COORDINATES:
        raise ValueError(
            f"columns and classes must be so few that a vector with noise has at most "
            f"{MOST_COORDINATES:,} numbers, for which its law is proved; got {dimension:,}."
        )


@dataclass(frozen=True)
class ExactVector:
    """A private vector of rational numbers, ``multiples * scale / 2^FRACTION``; scale is public."""

    multiples: list[int]
    scale: float

    def nearest_doubles(self) -> FloatArray:
        """Return the doubles nearest to the numbers."""
        top, bottom = self.scale.as_integer_ratio()
        return np.array([_quotient(k * top, bottom << FRACTION) for k in self.multiples])

    def added_to(self, values: FloatArray, step: float) -> FloatArray:
        """Round values plus this vector to multiples of a public power of two, exactly.

        Ties go to even, zero is +0.0, and values that are not finite stay as they are. Multiples
        beyond 2^53 steps become the nearest double.
        """
        top, bottom = self.scale.as_integer_ratio()
        step_top, step_bottom = step.as_integer_ratio()

        def rounded(value: float, k: int) -> float:
            if not math.isfinite(value):
                return value
            over, under = value.as_integer_ratio()
            # (over / under + k top / (bottom 2^FRACTION)) / step
            sum_over = ((over * bottom << FRACTION) + k * top * under) * step_bottom
            nearest = _round_half_even(sum_over, under * bottom * step_top << FRACTION)
            return _quotient(nearest * step_top, step_bottom)

        return np.array([rounded(float(v), k) for v, k in zip(values, self.multiples, strict=True)])


def exact_spherical_laplace(dimension: int, scale: float, source: RandomSource) -> ExactVector:
    r"""Draw a vector of density :math:`\propto e^{-\|b\|_2 / \text{scale}}` in many digits.

    The radius is :math:`-\log \prod_{i=1}^d U_i` scales, a Gamma variable of shape d; the direction
    is that of a standard normal vector, in one dimension a sign.
    """
    require_theorem(dimension)
    radius = exact_gamma(dimension, source)
    if dimension == 1:
        return ExactVector([radius if source.bits(1) else -radius], scale)
    normal = exact_normals(dimension, source)
    length = max(math.isqrt(sum(z * z for z in normal)), 1)
    return ExactVector([radius * z // length for z in normal], scale)


def exact_spherical_gaussian(dimension: int, deviation: float, source: RandomSource) -> ExactVector:
    """Draw a vector of independent normal numbers in many digits."""
    require_theorem(dimension)
    return ExactVector(exact_normals(dimension, source), deviation)


def exact_gamma(shape: int, source: RandomSource) -> int:
    """Return a Gamma variable of a whole shape in units of 2^-FRACTION."""
    # Uniform numbers on the multiples of 2^-BITS in (0, 1].
    uniform = [k + 1 for k in source.words(shape, BITS)]
    products = (math.prod(uniform[i : i + FACTORS]) for i in range(0, shape, FACTORS))
    return shape * BITS * _log_two(FRACTION) - sum(map(_log, products))


def exact_normals(n: int, source: RandomSource) -> list[int]:
    """Return n normal numbers in units of 2^-FRACTION, by Marsaglia's polar method."""
    whole, drawn = 1 << BITS, list[int]()
    while len(drawn) < n:
        # The middles of the cells of a square: odd multiples of 2^-BITS between -1 and 1.
        missing = min((n - len(drawn) + 1) // 2, PAIRS)
        middles = iter([2 * k + 1 - whole for k in source.words(2 * missing, BITS)])
        for x, y in zip(middles, middles, strict=True):
            square = x * x + y * y  # s, in units of whole^2
            if square < whole * whole:
                loss = max(2 * BITS * _log_two(FRACTION) - _log(square), 0)  # -log(s)
                stretch = math.isqrt((loss << FRACTION + 2 * BITS + 1) // square)
                drawn += [stretch * x >> BITS, stretch * y >> BITS]
    return drawn[:n]


# ---- Logarithms, in units of 2^-FRACTION.


def _log(number: int) -> int:
    """Return the natural logarithm of an integer from 1 to 2^(FACTORS BITS).

    Two divisions by short integers, whose logarithms are kept, leave a number near 1.
    """
    digits = FRACTION
    exponent = number.bit_length() - 1
    rest = number << digits - exponent if exponent <= digits else number >> exponent - digits
    half = rest >> digits - 8  # from 2^8 to 2^9 - 1
    rest = (rest << 8) // half
    near = rest >> digits - 16  # from 2^16 to 2^16 + 2^8
    rest = (rest << 16) // near
    return (
        exponent * _log_two(digits)
        + _log_short(half, 8, digits)
        + _log_short(near, 16, digits)
        + _log_near_one(rest, digits)
    )


@cache
def _log_short(over: int, power: int, digits: int) -> int:
    """Return the logarithm of ``over / 2^power``, from 1 to 2."""
    return _log_near_one(over << digits - power, digits)


def _log_two(digits: int) -> int:
    return _log_short(2, 0, digits)


def _log_near_one(number: int, digits: int) -> int:
    r"""Return the logarithm of a number from 1 to 2, off by at most 2^9 units.

    It is :math:`2(w + w^3/3 + w^5/5 + \dots)` with :math:`w = (x - 1)/(x + 1)`.
    """
    one = 1 << digits
    power = ((number - one) << digits) // (number + one)
    square = power * power >> digits
    total, k = 0, 1
    while power:
        total += power // k
        power = power * square >> digits
        k += 2
    return 2 * total


def _round_half_even(over: int, under: int) -> int:
    """Return the integer nearest to over / under, for under > 0."""
    nearest, rest = divmod(over, under)
    return nearest + (2 * rest > under or (2 * rest == under and nearest % 2 == 1))


def _quotient(over: int, under: int) -> float:
    """Return the double nearest to a quotient, or the largest double."""
    try:
        return over / under
    except OverflowError:
        return sys.float_info.max if over > 0 else -sys.float_info.max


def spherical_laplace(dimension: int, scale: float, source: RandomSource) -> FloatArray:
    r"""Draw a vector with density :math:`\nu(b) \propto e^{-\|b\|_2 / \text{scale}}`.

    Parameters
    ----------
    dimension : int
        Public number of coordinates, d, at least 1.
    scale : float
        Public, positive and finite: the L2 sensitivity divided by epsilon.
    source : RandomSource
        A seeded source's draw is made in doubles: reproducible and not private.

    Returns
    -------
    ndarray of float64, shape (dimension,)
        The doubles nearest to a draw in many digits. The last bits of a float sum betray its terms:
        add noise with :meth:`ExactVector.added_to`, as the estimators do.

    Notes
    -----
    Theorem: value plus draw is (sensitivity / scale)-DP, by the triangle inequality (Chaudhuri,
    Monteleoni and Sarwate 2011, section 3.1). The radius is Gamma(d, scale).

    Examples
    --------
    >>> from skdpsurv.dp import random_source
    >>> from skdpsurv.dp.exact_vectors import spherical_laplace
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
    r"""Draw a vector of independent normal numbers, as :func:`spherical_laplace` does.

    ``deviation`` is the L2 sensitivity divided by mu. Theorem: value plus draw is
    :math:`\tfrac12\mu^2`-zCDP in real arithmetic (Bun and Steinke 2016, proposition 1.6).

    Examples
    --------
    >>> from skdpsurv.dp import random_source
    >>> from skdpsurv.dp.exact_vectors import spherical_gaussian
    >>> spherical_gaussian(3, 0.5, random_source(None)).shape
    (3,)
    """
    dimension = positive_int("dimension", dimension)
    deviation = positive_number("deviation", deviation)
    if source.exact:
        return exact_spherical_gaussian(dimension, deviation, source).nearest_doubles()
    return np.asarray(deviation * source.generator.standard_normal(dimension), dtype=np.float64)
