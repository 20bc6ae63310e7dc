"""The public domain: how any record is forced into it.

Sensitivities hold for records inside public bounds. Clipping maps each record into the bounds on
its own, looking at no other record; how many were clipped is private, so nothing here counts,
warns or logs.

Rows are worked on in pieces that a cache holds: an array as large as a block of records is memory
fresh from the system each time, and the system's part of that can be longer than the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.dp.checks import positive_number
from skdpsurv.dp.input_errors import MATRIX, all_of, call_or_none
from skdpsurv.dp.types import BoolArray, FloatArray

#: Rows that are worked on at once, times columns. Two or three such arrays of doubles fit a
#: second-level cache.
CHUNK_ELEMENTS = 2**15


def row_pieces(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield the pieces of rows, in their order."""
    step = max(1, CHUNK_ELEMENTS // max(1, n_columns))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def by_pieces(function: Callable[[slice], FloatArray], n_rows: int, n_columns: int) -> FloatArray:
    """Return rows that a function makes piece by piece, in one array of doubles.

    Parameters
    ----------
    function : callable
        Of a slice: the rows there, of shape (n_piece, n_columns).
    n_rows, n_columns : int
    """
    made = np.empty((n_rows, n_columns))
    for piece in row_pieces(n_rows, n_columns):
        made[piece] = function(piece)
    return made


def clip_rows(X: ArrayLike, norm: float) -> FloatArray:
    """Scale each row down to Euclidean norm at most ``norm``; shorter rows are unchanged.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Private records, finite.
    norm : float
        Public bound, positive and finite.

    Returns
    -------
    ndarray of float64, shape (n_samples, n_features)
        A new array. The norm of every row is at most ``norm``, in real numbers and in floats
        summed in any order.

    Raises
    ------
    ValueError
        If ``X`` is not two-dimensional, not numeric, or holds NaN or infinity.

    Notes
    -----
    Clipping is the projection onto a ball, row by row, so it does not change who is a neighbour
    of whom. Rows on the sphere are shortened by a further relative (n_features + 8) * 2^-53: a
    float sum of n squares has relative error at most n * 2^-53, which must not push a row
    outside the ball that the sensitivity is proved for. Norms are taken after dividing by the
    row's largest magnitude, so that neither huge nor tiny values overflow or vanish.

    Examples
    --------
    >>> from skdpsurv.dp import clip_rows
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], norm=1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    norm = positive_number("norm", norm)
    rows = as_float_array(X, "X")
    if rows.ndim != 2:
        raise ValueError("X must be two-dimensional.")
    check_finite(rows, "X")
    radius = norm * (1.0 - (rows.shape[1] + 8) * 2.0**-53)
    return by_pieces(lambda piece: _clipped(rows[piece], radius), *rows.shape)


def _clipped(rows: FloatArray, radius: float) -> FloatArray:
    if rows.size == 0:
        return rows
    rows = rows.copy(order="C")
    largest = np.max(np.abs(rows), axis=1)
    # Where every entry is far below radius / sqrt(n_features) no norm is needed; this also keeps
    # zero rows and tiny ones out of the division.
    may_exceed = largest > 0.5 * radius / math.sqrt(rows.shape[1])
    largest = np.where(may_exceed, largest, 1.0)
    unit = np.where(may_exceed[:, None], rows, 0.0) / largest[:, None]  # entries in [-1, 1]
    length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
    # length * largest > radius, written so that nothing overflows.
    outside = may_exceed & (length > radius / largest)
    rows[outside] = unit[outside] * (radius / length[outside])[:, None]
    return rows


def row_weights(rows: FloatArray, norm: float) -> FloatArray:
    """Return how often each row may count instead of being scaled down to a norm.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Private, finite, of moderate size: clipped to a multiple of the norm.
    norm : float
        Public, positive and finite.

    Returns
    -------
    ndarray of shape (n_samples,)
        1 within the norm, else the square of the norm over that of the row's. Rounded down, as
        :func:`clip_rows` rounds: a weight times the square of a row's norm is at most ``norm**2``
        in floats summed in any order.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.dp import row_weights
    >>> row_weights(np.array([[6.0, 8.0], [0.3, 0.4]]), norm=5.0).round(6)
    array([0.25, 1.  ])
    """
    square = np.einsum("ij,ij->i", rows, rows)
    inside = norm**2 * (1.0 - (rows.shape[1] + 16) * 2.0**-51)
    return np.asarray(inside / np.maximum(square, inside))


def clip_times(time: ArrayLike, event: ArrayLike, max_time: float) -> tuple[FloatArray, BoolArray]:
    """Censor at the public horizon: times beyond ``max_time`` become censored at ``max_time``.

    Parameters
    ----------
    time : array-like of shape (n_samples,)
        Private follow-up times.
    event : array-like of shape (n_samples,)
        True where the event was seen, False where censored.
    max_time : float
        Public horizon, positive and finite, in the unit of ``time``.

    Returns
    -------
    time : ndarray of float64, shape (n_samples,)
    event : ndarray of bool, shape (n_samples,)
        New arrays. An event exactly at ``max_time`` stays an event.

    Raises
    ------
    ValueError
        If the arguments are not one-dimensional of one length, ``time`` holds NaN or infinity,
        or ``event`` holds something else than booleans or 0 and 1.

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


def check_finite(X: ArrayLike, name: str) -> None:
    """Refuse NaN and infinity, naming the argument and nothing else.

    Parameters
    ----------
    X : array-like of numbers
        Private values.
    name : str
        Name of the argument, for the message.

    Raises
    ------
    ValueError
        If any value is NaN or infinite. The refusal reveals that such a value exists, and no
        more: neither where, nor how many.
    """
    if not np.all(np.isfinite(as_float_array(X, name))):
        raise ValueError(
            f"{name} contains NaN or infinity; replace missing values with public constants "
            "before fitting."
        )


def as_float_array(values: ArrayLike, name: str) -> FloatArray:
    """Return ``values`` as float64, with an error that shows none of them.

    numpy's own message for a value that is no number quotes the value.

    Parameters
    ----------
    values : array-like of numbers
        Private values. Not copied if already float64.
    name : str
        Name of the argument, for the message.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ValueError
        If the values are not numbers, or the rows differ in length.
    """
    array: NDArray[Any] | None = call_or_none(np.asarray, values)
    found: FloatArray | None = None
    if array is not None and (array.dtype.kind in "biuf" or _is_plain(array)):
        # Long doubles overflow to infinity; text may be no number.
        with np.errstate(all="ignore"):
            found = call_or_none(partial(np.asarray, dtype=np.float64), array)
    if found is None:
        raise ValueError(f"{name} must be an array of real numbers.")
    return found


def _is_plain(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "O" and all_of(MATRIX, array.ravel().tolist())


#: Products of larger numbers may be none.
LARGEST_UNCLIPPED = 1e100


def check_unclipped(rows: FloatArray, name: str) -> None:
    """Refuse numbers that a fit without privacy, which clips nothing, could not multiply.

    Raises
    ------
    ValueError
        If one is beyond 1e100 in size.
    """
    if max(rows.max(initial=0.0), -rows.min(initial=0.0)) > LARGEST_UNCLIPPED:
        raise ValueError(
            f"{name} must be within {LARGEST_UNCLIPPED:g} with epsilon=inf, where nothing is "
            "clipped."
        )
