r"""Natural cubic splines between public knots, as curves that are nearly uncorrelated.

On [-1, 1], with knots :math:`-1 = t_0 < t_1 < \dots < t_K = 1`, natural cubic splines (of which the
second derivative is 0 at both ends) are

.. math::
    f(u) = a_0 + a_1 u + \sum_{k < K} b_k (u - t_k)_+^3, \qquad \sum_{k < K} b_k (1 - t_k) = 0.

The basis has the line u first. The others have mean 0, and no correlation with the line and each
other, over evenly spread values between the bounds; each is divided by its largest size. So they
are the departure from a straight line, and the least-squares line of the whole curve has the slope
of the first coefficient. Nothing is learnt from records.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skdpsurv.dp.types import FloatArray

#: Points between the bounds over which curves are uncorrelated.
POINTS = tuple((2 * j + 1 - 400) / 400 for j in range(400))


def curve(numbers: tuple[float, ...], u: FloatArray) -> FloatArray:
    """Return a curve at places u in [-1, 1]: ``numbers`` are a0, a1, t0, b0, t1, b1 and so on."""
    total = numbers[0] + numbers[1] * u
    for knot, size in zip(numbers[2::2], numbers[3::2], strict=True):
        above = np.maximum(u - knot, 0.0)
        total = total + size * (above * above * above)
    return np.asarray(total)


@lru_cache(maxsize=1024)
def natural_basis(inner: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Return the curves of the basis, one more than there are knots between -1 and 1.

    Sums are exact, so that the numbers are the same on every machine.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.data.natural_spline import curve, natural_basis
    >>> line, bend = natural_basis((0.0,))
    >>> curve(line, np.array([-1.0, 0.5])).tolist()
    [-1.0, 0.5]
    >>> curve(bend, np.array([-1.0, 0.0, 1.0])).round(3)
    array([ 1. , -0.6,  1. ])
    """
    knots = (-1.0, *inner)
    # Rows of a0, a1, b0, b1, ...
    line = [0.0, 1.0] + [0.0] * len(knots)
    found = [line]
    last = len(knots) - 1
    for k in range(last):
        row = [0.0] * (2 + len(knots))
        row[2 + k], row[2 + last] = 1.0 / (1.0 - knots[k]), -1.0 / (1.0 - knots[last])
        for _ in range(2):  # the second pass takes away what rounding left
            row[0] -= math.fsum(_values(row, knots)) / len(POINTS)
            own = _values(row, knots)
            for other in found:
                theirs = _values(other, knots)
                size = math.fsum(a * b for a, b in zip(own, theirs, strict=True))
                size /= math.fsum(b * b for b in theirs)
                row = [a - size * b for a, b in zip(row, other, strict=True)]
        largest = _largest(row, knots)
        found.append([one / largest for one in row])
    return tuple(_flat(row, knots) for row in found)


def _flat(row: list[float], knots: tuple[float, ...]) -> tuple[float, ...]:
    pairs = zip(knots, row[2:], strict=True)
    return (row[0], row[1], *(one for pair in pairs for one in pair))


def _value(row: list[float], knots: tuple[float, ...], u: float) -> float:
    above = [max(u - knot, 0.0) for knot in knots]
    return (
        row[0] + row[1] * u + math.fsum(b * d * d * d for b, d in zip(row[2:], above, strict=True))
    )


def _values(row: list[float], knots: tuple[float, ...]) -> list[float]:
    return [_value(row, knots, u) for u in POINTS]


def _largest(row: list[float], knots: tuple[float, ...]) -> float:
    """Return the largest size of a curve: at an end, or where its derivative is 0."""
    places = [-1.0, 1.0]
    for j, (low, high) in enumerate(zip(knots, (*knots[1:], 1.0), strict=True)):
        active = list(zip(row[2 : 3 + j], knots[: j + 1], strict=True))
        a = 3.0 * math.fsum(b for b, _ in active)
        half = -3.0 * math.fsum(b * t for b, t in active)
        c = row[1] + 3.0 * math.fsum(b * t * t for b, t in active)
        if (root := half * half - a * c) >= 0.0 and a:
            ends = ((-half + sign * math.sqrt(root)) / a for sign in (-1.0, 1.0))
            places += [u for u in ends if low <= u <= high]
    return max(abs(_value(row, knots, u)) for u in places)
