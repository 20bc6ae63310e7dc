"""Double-noise Newton's method for logistic regression.

A. Ganesh, M. Haghifam, T. Steinke and A. Thakurta, "Faster differentially private convex
optimization via second-order methods", NeurIPS 2023. Written from the paper, with the constants
of the authors' published runs. Two things are in its favour: budgets are converted by the exact
trade-off of Gaussian noise, and if a record is replaced, the direction moves by less than twice
what it does if one is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

#: Largest second derivative of the logistic loss.
L = 0.25


def gaussian_rho(epsilon: float, delta: float) -> float:
    r"""Return the largest rho of Gaussian noise that is (epsilon, delta)-private.

    Gaussian mechanisms one after the other, of rho in total, are :math:`\mu`-GDP with
    :math:`\mu = \sqrt{2\rho}`: :math:`\delta = \Phi(\frac\mu2 - \frac\epsilon\mu)
    - e^\epsilon\,\Phi(-\frac\mu2 - \frac\epsilon\mu)`.
    """

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        above = norm.cdf(mu / 2.0 - epsilon / mu)
        return float(above - math.exp(epsilon + norm.logcdf(-mu / 2.0 - epsilon / mu)) - delta)

    mu = math.exp(brentq(excess, -12.0, 5.0, xtol=1e-10))
    return mu * mu / 2.0


@dataclass(frozen=True)
class DoubleNoiseNewton:
    r"""Newton's method with noise on the gradient, and on the direction.

    Each of T steps has :math:`\rho/T`, of which the gradient gets the share :math:`\theta`:

    .. math:: \tilde g = \nabla f(w) + N_1,\qquad w \leftarrow w - M^{-1}\tilde g + N_2,

    with M the curvature whose eigenvalues are made at least :math:`\lambda_0`, by adding it or by
    clipping. Rows have norm at most 1, so a record has a gradient of at most 1/n and a curvature of
    at most L/n, L = 1/4. Leaving a record out moves the direction by at most
    :math:`\|\tilde g\| L / (n\lambda_0^2 \pm L\lambda_0)`, plus for adding, minus for clipping.
    Replacing one moves the gradient by twice as much, and the direction by at most twice as much
    and, if :math:`\lambda_0` is added, by at most :math:`\|\tilde g\| L / (n\lambda_0^2)`, since a
    curvature less another is no larger than either.

    Parameters
    ----------
    rho : float
        Of zero-concentrated differential privacy, for the whole fit.
    replaced : bool
        Whether neighbours differ by a replaced record, else by one that is left out (n is public).
    clip : bool
        Whether eigenvalues are clipped, or :math:`\lambda_0` is added.
    bound : bool
        Whether the curvature is that of the quadratic upper bound, or the Hessian.
    steps, gradient_share, trace_share, trace_factor
        T, theta, and the share of the rest for the trace that :math:`\lambda_0` follows from.
    """

    rho: float
    replaced: bool = True
    clip: bool = False
    bound: bool = False
    steps: int = 15
    gradient_share: float = 0.7
    trace_share: float = 0.1
    trace_factor: float = 0.5

    def fit(self, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return coefficients of rows of norm at most 1; labels are 0 and 1."""
        n, d = X.shape
        for_gradient = self.gradient_share * self.rho / self.steps
        for_curvature = (1.0 - self.gradient_share) * self.rho / self.steps
        for_trace = self.trace_share * for_curvature
        for_direction = for_curvature - for_trace
        signed = X * np.where(y == 1, 1.0, -1.0)[:, None]
        moves = 2.0 if self.replaced else 1.0
        w = np.zeros(d)
        for _ in range(self.steps):
            margin = signed @ w
            gradient = -signed.T @ np.exp(-np.logaddexp(0.0, margin)) / n
            gradient += rng.normal(scale=_scale(moves / n, for_gradient), size=d)
            curvature = (X.T * self.weights(margin)) @ X / n
            trace = np.trace(curvature) + rng.normal(scale=_scale(L / n, for_trace))
            least = self.trace_factor * max(trace, 0.0) / (n**2 * for_direction)
            least = max(least ** (1.0 / 3.0), 1.0 / n)
            values, axes = np.linalg.eigh(curvature)
            values = np.maximum(values, least) if self.clip else np.maximum(values, 0.0) + least
            size = float(np.linalg.norm(gradient))
            direction = axes @ ((axes.T @ gradient) / values)
            scale = _scale(size * self.moved(n, least), for_direction)
            w = w - direction + rng.normal(scale=scale, size=d)
            if not np.linalg.norm(w) < 1e3:  # a Newton step without a line search can diverge
                w = np.zeros(d)
        return w

    def weights(self, margin: np.ndarray) -> np.ndarray:
        """Return second derivatives of the loss, or of the tightest quadratic above it."""
        if self.bound:
            half = np.abs(margin) / 2.0
            return np.where(half > 1e-6, np.tanh(half) / np.maximum(4.0 * half, 1e-12), L)
        return np.exp(-np.logaddexp(0.0, margin) - np.logaddexp(0.0, -margin))

    def moved(self, n: int, least: float) -> float:
        """Return how far a direction moves, for a gradient of norm 1."""
        left_out = L / (n * least**2 + (-L if self.clip else L) * least)
        if not self.replaced:
            return left_out
        return 2.0 * left_out if self.clip else min(2.0 * left_out, L / (n * least**2))


def _scale(sensitivity: float, rho: float) -> float:
    """Return the standard deviation of Gaussian noise that is rho-zCDP."""
    return sensitivity * math.sqrt(0.5 / rho)
