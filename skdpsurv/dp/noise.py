"""Noise: Laplace and Gaussian on a lattice and in a vector space.

The functions know no model. Each takes public numbers (a scale, a sensitivity, epsilon), the
private quantity, and the :class:`~skdpsurv.dp.RandomSource` to draw from. Neighbouring data
sets differ in the values of one record (replace-one); a sensitivity is a bound over all such pairs.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp.checks import positive_int, positive_number
from skdpsurv.dp.exact_vectors import exact_spherical_gaussian, exact_spherical_laplace
from skdpsurv.dp.input_errors import as_float_array, check_finite
from skdpsurv.dp.noise import RandomSource
from skdpsurv.dp.types import FloatArray, IntArray

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
    a draw in :data:`~skdpsurv.dp.exact_vectors.DIGITS` digits, whose law is this one within a
    total variation of 1e-30. But the last bits of a float sum betray its terms: add the draw of
    :func:`~skdpsurv.dp.exact_vectors.exact_spherical_laplace` by
    :meth:`~skdpsurv.dp.exact_vectors.ExactVector.added_to`, which rounds the sum exactly, as
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
