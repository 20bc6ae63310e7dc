r"""The laws of private choices: the probability of each candidate, exactly.

Both take exponents :math:`x_i = \epsilon(u_{\max} - u_i) / (2\Delta)`, so that candidate i is kept
with probability :math:`q_i = e^{-x_i}`. The exponential mechanism has :math:`P(i) \propto q_i`. In
permute-and-flip let candidates arrive at independent uniform times: i is chosen at time t if it is
kept, and all that came before were not,

.. math:: P(i) = q_i\int_0^1 \prod_{j \ne i}(1 - t\,q_j)\,dt,

the integral of a polynomial of degree k - 1, for which Gauss's rule with k/2 points is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.polynomial import legendre
from scipy import special

from skdpsurv.dp.types import FloatArray

__all__ = ["log_exponential_mechanism", "log_permute_and_flip"]


def log_permute_and_flip(exponents: Sequence[Fraction]) -> FloatArray:
    """Return the log probabilities of permute-and-flip."""
    x = np.array([float(each) for each in exponents])
    points, weights = legendre.leggauss(x.size // 2 + 1)
    # Of each candidate, in a row, whether it was not kept before each time.
    missed = np.log1p(-np.exp(-x)[:, None] * (points + 1.0) / 2.0)
    others = missed.sum(axis=0) - missed
    return np.asarray(-x + special.logsumexp(others + np.log(weights / 2.0), axis=1))


def log_exponential_mechanism(exponents: Sequence[Fraction]) -> FloatArray:
    """Return the log probabilities of the exponential mechanism."""
    x = np.array([float(each) for each in exponents])
    return np.asarray(-x - special.logsumexp(-x))
