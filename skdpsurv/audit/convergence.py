r"""Do several Markov chains agree? Split R-hat and effective sample size.

They can show that chains have not converged, and never that they have: chains that all miss a part
of the law agree, too. About privacy they say nothing.

Chains of N draws, cut in halves to give m chains of n = N/2 each: within-chain variance W,
between-chain variance B/n of the m means,

.. math:: \hat R = \sqrt{\widehat{\mathrm{var}}^+ / W}, \qquad
          \widehat{\mathrm{var}}^+ = \frac{n-1}{n} W + \frac{B}{n},

and, with :math:`\hat\rho_t` the autocorrelations that W, :math:`\widehat{\mathrm{var}}^+` and the
mean autocovariances of the chains imply, the effective sample size :math:`mn/(1 + 2\sum_t
\hat\rho_t)`, the sum cut off by Geyer's initial monotone sequence. Source: Gelman et al., Bayesian
Data Analysis, 3rd edition, section 11.4; Vehtari et al., Bayesian Analysis 16, 2021, equations 3
to 12 (without ranks).
"""

from __future__ import annotations

import numpy as np

from skdpsurv.types import FloatArray


def split_r_hat(draws: FloatArray) -> FloatArray:
    """Return split R-hat of each parameter; 1 where chains agree, and worry begins at 1.01.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
        At least 4 draws a chain.

    Returns
    -------
    ndarray of shape (n_params,)
        NaN for a parameter that never moved.
    """
    within, total = _variances(_halves(draws))
    return _ratio(total, within) ** 0.5


def effective_sample_size(draws: FloatArray) -> FloatArray:
    """Return how many independent draws the chains are worth, for the mean of each parameter.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
        At least 4 draws a chain.

    Returns
    -------
    ndarray of shape (n_params,)
        At most ``m n log10(m n)`` for m n draws in all; NaN for a parameter that never moved.
    """
    chains = _halves(draws)
    m, n, _ = chains.shape
    within, total = _variances(chains)
    covariance = _autocovariance(chains).mean(axis=0)  # by lag and parameter
    correlation = 1.0 - _ratio(within - covariance, total)
    # Sums of neighbours are positive and fall (Geyer 1992); noise begins where they do not.
    pairs = correlation[: n - n % 2].reshape(n // 2, 2, -1).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0.0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = 2.0 * falling.sum(axis=0) - 1.0
    size = m * n / np.maximum(time, 1.0 / np.log10(m * n))
    return np.where(within > 0.0, size, np.nan)


def _halves(draws: FloatArray) -> FloatArray:
    n = draws.shape[1] // 2
    if draws.ndim != 3 or n < 2:
        raise ValueError("draws must be of shape (n_chains, n_draws, n_params), n_draws >= 4.")
    return np.concatenate([draws[:, :n], draws[:, -n:]])


def _variances(chains: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return W and var+ of each parameter."""
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    return within, (n - 1.0) / n * within + between


def _autocovariance(chains: FloatArray) -> FloatArray:
    """Return autocovariances of shape (n_chains, n_lags, n_params), by Fourier transform."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    return np.asarray(np.fft.irfft(spectrum, axis=1)[:, :n] / (n - 1.0))


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom > 0.0)
