"""Clipping of rows and times into public bounds, one record at a time.

How many were clipped is private, so nothing here counts, warns or logs. Rows are clipped in pieces
that a cache holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp.checks import positive_number
from skdpsurv.dp.input_errors import as_float_array, check_finite
from skdpsurv.dp.types import BoolArray, FloatArray

#: Entries of rows that are worked on at once; two or three such arrays fit a second-level cache.
CHUNK_ELEMENTS = 2**15


def row_pieces(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of rows, in their order, that a cache holds; singly beyond NumPy's buffer."""
    step = max(1, CHUNK_ELEMENTS // max(1, n_columns)) if n_columns <= 2**13 else 1
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def clip_rows(X: ArrayLike, norm: float) -> FloatArray:
    """Scale each row down to Euclidean norm at most ``norm``; shorter rows are unchanged.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Private records. NaN, infinity and text are a ValueError.
    norm : float
        Public bound, positive and finite.

    Returns
    -------
    ndarray of float64, shape (n_samples, n_features)
        A new array. Row norms are at most ``norm``, also in floats summed in any order.

    Notes
    -----
    Each row is projected on its own, so neighbours stay neighbours. Rows on the sphere are
    shortened by a further relative (n_features + 8) * 2^-53, more than a float sum of squares errs.

    Examples
    --------
    >>> from skdpsurv.dp.clipping import clip_rows
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], norm=1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    norm = positive_number("norm", norm)
    rows = as_float_array(X, "X")
    if rows.ndim != 2:
        raise ValueError("X must be two-dimensional.")
    radius = norm * (1.0 - (rows.shape[1] + 8) * 2.0**-53)
    clipped = np.empty(rows.shape)
    for piece in row_pieces(*rows.shape):
        _clip(rows[piece], radius, clipped[piece])
    return clipped


def _clip(rows: FloatArray, radius: float, clipped: FloatArray) -> None:
    rows = np.ascontiguousarray(rows)
    square = np.einsum("ij,ij->i", rows, rows)
    # Smaller squares may have underflowed, which matters beside a tiny radius alone.
    least = -1.0 if radius > 1e-40 else 1e-100
    ordinary = (square > least) & (square < 1e100) & (radius > 1e-200)
    if ordinary.all() or rows.size == 0:
        np.multiply(rows, (radius / np.maximum(np.sqrt(square), radius))[:, None], out=clipped)
        return
    check_finite(rows, "X")
    clipped[:], largest = rows, np.max(np.abs(rows), axis=1)
    # Other rows are divided by their largest entry, unless it is so small that they need no norm.
    may_exceed = ordinary | (largest > 0.5 * radius / math.sqrt(rows.shape[1]))
    largest = np.where(may_exceed & ~ordinary, largest, 1.0)
    unit = np.where(may_exceed[:, None], rows, 0.0) / largest[:, None]
    length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
    outside = length > radius / largest  # length * largest > radius, without an overflow
    clipped[outside] = unit[outside] * (radius / length[outside])[:, None]


def row_weights(rows: FloatArray, norm: float) -> FloatArray:
    """Return weights in (0, 1] for rows that count less instead of being scaled down to a norm.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Private, finite, of moderate size: clipped to a multiple of the norm.
    norm : float
        Public, positive and finite.

    Returns
    -------
    ndarray of shape (n_samples,)
        1 within the norm, else the square of the norm over that of the row's, rounded down as in
        :func:`clip_rows`: weight times squared row norm is at most ``norm**2`` in floats.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.dp.clipping import row_weights
    >>> row_weights(np.array([[6.0, 8.0], [0.3, 0.4]]), norm=5.0).round(6)
    array([0.25, 1.  ])
    """
    square = np.einsum("ij,ij->i", rows, rows)
    inside = norm**2 * (1.0 - (rows.shape[1] + 16) * 2.0**-51)
    return np.asarray(inside / np.maximum(square, inside))


def clip_times(time: ArrayLike, event: ArrayLike, max_time: float) -> tuple[FloatArray, BoolArray]:
    """Censor times beyond the public horizon ``max_time`` at the horizon.

    Parameters
    ----------
    time : array-like of shape (n_samples,)
        Private follow-up times. NaN or infinity is a ValueError.
    event : array-like of shape (n_samples,)
        True or 1 where the event was seen, False or 0 where censored.
    max_time : float
        Positive and finite, in the unit of ``time``.

    Returns
    -------
    time : ndarray of float64, shape (n_samples,)
    event : ndarray of bool, shape (n_samples,)
        New arrays. An event exactly at ``max_time`` stays an event.

    Examples
    --------
    >>> from skdpsurv.dp import clip_times
    >>> clip_times([2.0, 5.0, 9.0], [True, True, True], max_time=5.0)
    (array([2., 5., 5.]), array([ True,  True, False]))
    """
    max_time = positive_number("max_time", max_time)
    times = as_float_array(time, "time")
    check_finite(times, "time")
    flags = as_float_array(event, "event")
    if times.ndim != 1 or flags.shape != times.shape:
        raise ValueError("time and event must be one-dimensional and of the same length.")
    if not np.all((flags == 0) | (flags == 1)):
        raise ValueError("event must hold booleans, or 0 for censored and 1 for an event.")
    events = flags == 1
    return np.minimum(times, max_time), events & (times <= max_time)
