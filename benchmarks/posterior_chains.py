r"""Several whole chains of the posterior sampler, to see whether they agree.

Split R-hat and effective sample size can show that chains have not converged, and never that they
have: chains that all miss a part of the law agree, too. About privacy they say nothing.

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

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone

from skdpsurv.data.blocks import first
from skdpsurv.dp import random_source
from skdpsurv.dp.checks import integer, positive_int, verbosity
from skdpsurv.dp.input_errors import suppressed_float_errors
from skdpsurv.dp.types import FloatArray
from skdpsurv.survival.hazards.discrete_model import DiscreteTimeModel
from skdpsurv.survival.hazards.model import to_published
from skdpsurv.survival.hazards.posterior import PosteriorDraw


@dataclass(frozen=True)
class PosteriorChains:
    """Draws of a sanitised posterior: **not private**, each of them spends epsilon.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
        On the scale of the data: the baseline's coefficients in the paper's spline basis, then
        those of the covariates.
    names : tuple of str
        Of the parameters.
    """

    draws: FloatArray
    names: tuple[str, ...]

    def r_hat(self) -> FloatArray:
        """Return split R-hat of each parameter: 1 where chains agree, worry begins at 1.01.

        NaN for a parameter that never moved.
        """
        _, within, total = _halves(self.draws)
        return _ratio(total, within) ** 0.5

    def effective_sample_size(self) -> FloatArray:
        """Return how many independent draws the chains are worth, for the mean of each parameter.

        At most ``m n log10(m n)`` for m n draws in all; NaN for a parameter that never moved.
        """
        chains, within, total = _halves(self.draws)
        m, n, _ = chains.shape
        # Autocovariances by lag and parameter, by Fourier transform.
        centred = chains - chains.mean(axis=1, keepdims=True)
        spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
        covariance = (np.fft.irfft(spectrum, axis=1)[:, :n] / (n - 1.0)).mean(axis=0)
        correlation = 1.0 - _ratio(within - covariance, total)
        # Sums of neighbours are positive and fall (Geyer 1992); noise begins where they do not.
        pairs = correlation[: n - n % 2].reshape(n // 2, 2, -1).sum(axis=1)
        positive = np.logical_and.accumulate(pairs > 0.0, axis=0)
        falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
        time = 2.0 * falling.sum(axis=0) - 1.0
        size = m * n / np.maximum(time, 1.0 / np.log10(m * n))
        return np.where(within > 0.0, size, np.nan)

    def summary(self) -> pd.DataFrame:
        """Return mean, standard deviation, R-hat and effective sample size by parameter."""
        flat = self.draws.reshape(-1, self.draws.shape[2])
        return pd.DataFrame(
            {
                "mean": flat.mean(axis=0),
                "sd": flat.std(axis=0, ddof=1),
                "r_hat": self.r_hat(),
                "effective_sample_size": self.effective_sample_size(),
            },
            index=pd.Index(self.names, name="parameter"),
        )


def nonprivate_posterior_chains(
    estimator: DiscreteTimeModel,
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_chains: int = 4,
    n_draws: int = 1000,
    random_state: int | None = None,
    verbose: int = 0,
) -> PosteriorChains:
    """Run several long chains of ``method="psgld"`` and keep all of them: not private.

    For simulated data, or for data that you may see: to find chains that are too short to be
    accurate. **Chains that agree say nothing about privacy**: that is a claim about every pair of
    neighbours, the worst included, and these are chains on one data set (docs/user_guide/limits has
    a pair where they mislead). What they show must not be published, and must not be used to choose
    how a private release of the same data is made. Nothing is charged: there is no guarantee to
    charge for.

    Parameters
    ----------
    estimator : DPDiscreteTimeSurvival
        With ``method="psgld"``; not changed.
    X : array-like of shape (n_samples, n_features)
    y : structured array of shape (n_samples,), or array-like of times
    n_chains : int, default=4
    n_draws : int, default=1000
        Draws that each chain keeps after its burn-in. Its sampler "mala" keeps every state;
        "psgld" has the length that ``n_epochs`` says and keeps evenly spaced states,
        all of them if there are fewer.
    random_state : None or int, default=None
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    PosteriorChains

    Raises
    ------
    TypeError, ValueError
        If the estimator is another one, has another method or epsilon=inf, or the data are not
        what ``fit`` accepts.
    """
    if not isinstance(estimator, DiscreteTimeModel):
        raise TypeError(
            f"estimator must be a DPDiscreteTimeSurvival, got {type(estimator).__name__}."
        )
    positive_int("n_chains", n_chains)
    integer(at_least=4)("n_draws", n_draws)
    verbosity("verbose", verbose)
    model = clone(estimator).set_params(accountant=None)
    fit = model.prepare(X, y)
    draw = fit.plan.only_measurement
    if not isinstance(draw, PosteriorDraw):
        raise ValueError("estimator must have method='psgld', delta=0 and a finite epsilon.")
    with suppressed_float_errors():
        records = fit.records
        chains = [
            _one_chain(draw, records, source, n_draws, verbose)
            for source in random_source(random_state).spawn(n_chains)
        ]
    return PosteriorChains(np.array(chains), _names(model, draw))


def _one_chain(
    draw: PosteriorDraw, records: Any, source: Any, n_draws: int, verbose: int
) -> FloatArray:
    n_steps = draw.schedule.n_steps(draw.model.n_records)
    burn_in = draw.schedule.burn_in(draw.model.n_records)
    if draw.schedule.sampler == "mala":
        n_steps = burn_in + n_draws
    step = max(1, (n_steps - burn_in) // n_draws)
    states = first(draw.states(records, source), n_steps, "posterior chain", verbose)
    kept = list(islice(states, burn_in + step - 1, None, step))[:n_draws]
    draws = []
    for state in kept:
        baseline, coef = draw.unscaled(state)
        draws.append(np.concatenate([to_published(baseline, draw.model.n_knots), coef]))
    return np.array(draws)


def _names(model: DiscreteTimeModel, draw: PosteriorDraw) -> tuple[str, ...]:
    columns = getattr(model, "feature_names_in_", None)
    if columns is None:
        columns = [f"x{j}" for j in range(draw.model.n_features)]
    return (*(f"baseline_{j + 1}" for j in range(draw.model.n_knots)), *map(str, columns))


def _halves(draws: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return both halves of each chain, and W and var+ of each parameter."""
    if draws.ndim != 3 or draws.shape[1] < 4:
        raise ValueError("draws must be of shape (n_chains, n_draws, n_params), n_draws >= 4.")
    n = draws.shape[1] // 2
    chains = np.concatenate([draws[:, :n], draws[:, -n:]])
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    between = chains.mean(axis=1).var(axis=0, ddof=1)
    return chains, within, (n - 1.0) / n * within + between


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom > 0.0)
