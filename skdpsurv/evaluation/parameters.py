"""Accuracy of released parameters.

Every function here compares a release with private data, or with a fit to private data, so what
it returns is **not** differentially private. Use it for research on data that may be disclosed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.dp.types import FloatArray


def relative_error(estimate: ArrayLike, reference: ArrayLike) -> float:
    """Distance of an estimate from a reference, relative to the reference's length.

    Parameters
    ----------
    estimate : array-like of shape (n_params,)
        Estimated parameters, for example released coefficients.
    reference : array-like of shape (n_params,)
        Parameters to compare with, for example those of a non-private fit. Not all zero.

    Returns
    -------
    float
        ``norm(estimate - reference) / norm(reference)``, Euclidean norms.

    Raises
    ------
    ValueError
        If the shapes differ, a value is not finite, or the reference is zero.

    References
    ----------
    T. T. Nguyên and S. C. Hui, "Differentially private regression for discrete-time survival
    analysis", arXiv:1708.07436, 2017, section 6 (RE).

    Examples
    --------
    >>> relative_error([3.0, 3.0], [3.0, 4.0])
    0.2
    """
    estimate = _finite("estimate", estimate)
    reference = _finite("reference", reference)
    if estimate.ndim != 1 or estimate.shape != reference.shape:
        raise ValueError(
            "estimate and reference must be 1-D and have the same shape, got "
            f"{estimate.shape} and {reference.shape}."
        )
    return mean_relative_error(estimate, reference)


def mean_relative_error(estimates: ArrayLike, reference: ArrayLike) -> float:
    r"""Relative error of an estimate, averaged over repetitions (MRE).

    Parameters
    ----------
    estimates : array-like of shape (n_repetitions, n_params) or (n_params,)
        One estimate per row; a 1-D array is a single repetition.
    reference : array-like of shape (n_params,)
        Parameters to compare with. Not all zero.

    Returns
    -------
    float
        Mean over the rows of ``norm(row - reference) / norm(reference)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, a value is not finite, or the reference is zero.

    Notes
    -----
    With repetitions :math:`f_1, \dots, f_t` and reference :math:`f^*`,

    .. math:: \mathrm{MRE} = \frac1t \sum_{i=1}^t \frac{\|f_i - f^*\|_2}{\|f^*\|_2}.

    References
    ----------
    T. T. Nguyên and S. C. Hui, "Differentially private regression for discrete-time survival
    analysis", arXiv:1708.07436, 2017, equation 9.

    Examples
    --------
    >>> mean_relative_error([[3.0, 4.0], [0.0, 0.0]], [3.0, 4.0])
    0.5
    """
    reference = _finite("reference", reference)
    if reference.ndim != 1 or reference.size == 0:
        raise ValueError(f"reference must have shape (n_params,), got {reference.shape}.")
    estimates = _repetitions(estimates, reference)
    length = np.linalg.norm(reference)
    if length == 0:
        raise ValueError("reference must not be zero: the error is relative to its length.")
    return float(np.mean(np.linalg.norm(estimates - reference, axis=1) / length))


def median_absolute_error(estimates: ArrayLike, reference: ArrayLike) -> float | FloatArray:
    r"""Median over repetitions of the absolute error of each parameter (MdAE).

    Parameters
    ----------
    estimates : array-like of shape (n_repetitions,) or (n_repetitions, n_params)
        Repeated estimates of a scalar parameter, or of several, one repetition per row. With
        1-D ``reference``, shape (n_params,) is a single repetition.
    reference : float or array-like of shape (n_params,)
        Value to compare with.

    Returns
    -------
    float or ndarray of shape (n_params,)
        Median of ``abs(estimate - reference)`` over the repetitions: a float for a scalar
        ``reference``, else one per parameter.

    Raises
    ------
    ValueError
        If the shapes do not fit or a value is not finite.

    Notes
    -----
    With repetitions :math:`x_1, \dots, x_t` and reference :math:`x^*`,
    :math:`\mathrm{MdAE} = \operatorname{median}(|x_i - x^*|, i = 1 \dots t)`.

    This is not :func:`sklearn.metrics.median_absolute_error`. There, ``y_true`` comes first and
    holds one true value per *record*, and the median is over records. Here one reference is
    compared with many *repetitions* of a randomised mechanism.

    References
    ----------
    T. T. Nguyên and S. C. Hui, "Privacy-preserving mechanisms for parametric survival analysis
    with Weibull distribution", arXiv:1708.04517, 2017, equation 9.

    Examples
    --------
    >>> median_absolute_error([0.75, 1.5, 2.0], 1.0)
    0.5
    >>> median_absolute_error([[1.0, 7.0], [2.0, 5.0], [4.0, 5.0]], [1.0, 5.0])
    array([1., 0.])
    """
    reference = _finite("reference", reference)
    if reference.ndim > 1:
        raise ValueError(
            f"reference must be a number or have shape (n_params,), got {reference.shape}."
        )
    errors = np.abs(_repetitions(estimates, reference) - reference)
    median = np.median(errors, axis=0)
    return float(median) if reference.ndim == 0 else np.asarray(median, dtype=np.float64)


def _finite(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite.")
    return array


def _repetitions(estimates: ArrayLike, reference: FloatArray) -> FloatArray:
    """Estimates with the repetitions on the first axis, one at least."""
    array = _finite("estimates", estimates)
    if array.shape == reference.shape:
        array = array[np.newaxis]
    if array.ndim != reference.ndim + 1 or array.shape[1:] != reference.shape or not len(array):
        raise ValueError(
            f"estimates must hold one or more repetitions of shape {reference.shape}, that of "
            f"reference, got shape {array.shape}."
        )
    return array
