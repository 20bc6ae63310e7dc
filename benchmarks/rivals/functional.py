r"""The functional mechanism for log-location-scale models (after Sheng and Fang 2024).

Their summary says: Laplace noise on the second-order Taylor expansion of the log-likelihood, for
the smallest extreme value and the logistic distribution (arXiv 2404.08715). The rest could not be
read. **This is written from the method's principle** (Zhang et al., VLDB 2012), **not from their
paper**: scales, sensitivity and ridge are those of the principle.

A log time y is mapped to [-1, 1]; columns in [-1, 1] are divided by the root of their number; and
:math:`w = (y, 1, x)`. With :math:`\theta = (1, -b) / \sigma` (Olsen's parameters), of which the
first is tau, :math:`z = w^\top\theta` is the standardised log time, and the loss of a record with
an event (d = 1) or without is :math:`-d(\log\tau + z) + e^z` for Weibull times, and
:math:`-d(\log\tau + z) + (1 + d)\log(1 + e^z)` for log-logistic ones. Expanded at z = 0, and
without constants, these are

.. math:: -d\log\tau + (1 - d)\,z + \tfrac12 z^2, \qquad
    -d\log\tau + \tfrac{1 - d}2\,z + \tfrac{1 + d}8\,z^2 ,

whose sums over records are polynomials in theta and log tau. Absolute coefficients of z add up
to at most :math:`m = 2 + \sqrt p` with p columns, those of :math:`z^2` to :math:`m^2`; a record
that replaces another makes the sensitivity twice the largest sum. In real arithmetic the noisy
polynomial is epsilon-differentially private, and the rest follows from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Log times are clipped to this much below the horizon's, as in Nguyen and Hui (2017).
OMEGA = 6.0
WEIBULL, LOG_LOGISTIC = "Weibull", "log-logistic"
#: Coefficients of z and of z² of a record without an event and with one.
LINEAR = {WEIBULL: (1.0, 0.0), LOG_LOGISTIC: (0.5, 0.0)}
SQUARE = {WEIBULL: (0.5, 0.5), LOG_LOGISTIC: (0.125, 0.25)}


def log_time(time: np.ndarray, max_time: float) -> np.ndarray:
    """Return log times in [-1, 1]."""
    least = max_time * math.exp(-OMEGA)
    return 1.0 + 2.0 * np.log(np.clip(time, least, max_time) / max_time) / OMEGA


@dataclass(frozen=True)
class Polynomial:
    r""":math:`-n_1 \log\theta_0 + a^\top\theta + \theta^\top M\theta`."""

    events: float
    linear: np.ndarray
    square: np.ndarray

    @classmethod
    def of(cls, family: str, w: np.ndarray, event: np.ndarray) -> Polynomial:
        """Return the sum of the expanded losses."""
        d = event.astype(int)
        linear, square = np.array(LINEAR[family])[d], np.array(SQUARE[family])[d]
        return cls(float(d.sum()), linear @ w, (w * square[:, None]).T @ w)

    def __call__(self, theta: np.ndarray) -> float:
        quadratic = theta @ self.square @ theta
        return float(-self.events * math.log(theta[0]) + self.linear @ theta + quadratic)

    def noisy(self, scale: float, rng: np.random.Generator) -> Polynomial:
        r"""Add Laplace noise to each coefficient, and a ridge of four standard deviations of it.

        That of :math:`\theta_j \theta_k` is :math:`M_{jk} + M_{kj}`.
        """
        k = self.linear.size
        upper = np.triu(rng.laplace(size=(k, k))) * scale
        return Polynomial(
            self.events + scale * rng.laplace(),
            self.linear + scale * rng.laplace(size=k),
            self.square + (upper + upper.T) / 2.0 + 4.0 * math.sqrt(2.0) * scale * np.eye(k),
        )

    def minimum(self) -> np.ndarray:
        r"""Return the minimiser, in the span of eigenvectors of M with positive eigenvalues.

        With :math:`M^+` there, :math:`2\theta = M^+(n_1 e_0/\tau - a)`, whose first entry is a
        quadratic equation for tau. Fewer events than one count as one.
        """
        values, vectors = np.linalg.eigh(self.square)
        kept = values > 1e-12 * np.abs(values).max()
        inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        events, half = max(self.events, 1.0), (inverse @ self.linear)[0] / 4.0
        tau = max(math.sqrt(half**2 + events * inverse[0, 0] / 2.0) - half, 1e-6)
        step = -self.linear
        step[0] += events / tau
        return np.asarray(inverse @ step / 2.0)


def sensitivity(family: str, n_columns: int) -> float:
    """Return the sensitivity of all coefficients by replacing a record."""
    m = 2.0 + math.sqrt(n_columns)
    return 2.0 * max(
        d + LINEAR[family][d] * m + SQUARE[family][d] * m**2
        for d in (0, 1)  # of log tau, z and z²
    )


@dataclass(frozen=True)
class LogLocationScale:
    """A fitted model."""

    family: str
    max_time: float
    theta: np.ndarray

    @classmethod
    def fit(
        cls,
        family: str,
        epsilon: float,
        X: np.ndarray,
        event: np.ndarray,
        time: np.ndarray,
        max_time: float,
        rng: np.random.Generator,
    ) -> LogLocationScale:
        """Minimise the noisy polynomial; with an infinite epsilon there is no noise."""
        n, p = X.shape
        w = np.column_stack([log_time(time, max_time), np.ones(n), X / math.sqrt(p)])
        noisy = Polynomial.of(family, w, event).noisy(sensitivity(family, p) / epsilon, rng)
        return cls(family, max_time, noisy.minimum())

    def risk(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X @ self.theta[2:] / math.sqrt(X.shape[1]))

    def survival(self, X: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return a row of probabilities for each person."""
        level = self.theta[1] + self.theta[0] * log_time(times, self.max_time)
        z = np.clip(self.risk(X)[:, None] + level, -30.0, 30.0)
        return np.exp(-np.exp(z)) if self.family == WEIBULL else 1.0 / (1.0 + np.exp(z))
