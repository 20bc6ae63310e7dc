r"""Sanitised exponential mechanism: release one draw of a posterior whose losses are bounded.

.. math::
    p(f \mid D) \propto e^{-U(f)}, \qquad
    U(f) = \frac{\epsilon}{2v}\Big[\frac\sigma2\|f\|^2 + \sum_{i=1}^n C_v(\ell(f; z_i))\Big],
    \qquad C_v(x) = v\tanh(x/v)

Neighbours: replace-one. Sensitivity: :math:`C_v(\ell) \in [0, v)`, so that the two sums differ by
:math:`g(f) \in (-v, v)` and the log-density ratio, its normalising constant included, by at most
:math:`\frac{\epsilon}{2v}(\sup g - \inf g) \le \epsilon`. Theorem (docs/proofs/posterior_sampling;
Nguyen and Hui, arXiv 1708.07436, theorem 5.1): **an exact draw** is epsilon-differentially private.
The draws made here come from Markov chains that have this law in the limit only, so the guarantee
is *asymptotic*: nothing is proved about a chain of finite length.

Two chains are in :mod:`skdpsurv.mechanisms.langevin`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.base import Likelihood

#: The prior's precision, rate * sigma: a normal of standard deviation 10 on each coefficient.
PRIOR_PRECISION = 1e-2
#: Newton steps towards a mode, and the decrement at which they end: it only steers, so that a good
#: guess is good enough. No chain starts there: a record can decide which mode is found.
MODE_STEPS, MODE_DECREMENT = 50, 1e-6
#: Errors of losses, over all records and over a sample of them, relative to the largest.
TOLERANCE, SAMPLED_TOLERANCE = 1e-12, 1e-6


@dataclass(frozen=True)
class Sanitizer:
    """The public numbers of the target.

    Parameters
    ----------
    ceiling : float
        v, the bound on one record's loss.
    rate : float
        epsilon / (2 v).
    prior_precision : float
        rate * sigma, of the normal prior around 0.
    """

    ceiling: float
    rate: float
    prior_precision: float = PRIOR_PRECISION


def calibrate(epsilon: float, n_records: int) -> Sanitizer:
    """Return the paper's choices: v = 2 log n, and sigma = 10^-2 (2 v / epsilon)."""
    ceiling = 2.0 * math.log(max(n_records, 2))
    return Sanitizer(ceiling, epsilon / (2.0 * ceiling))


@dataclass(frozen=True)
class Target:
    """The law to be sampled, over private records.

    Parameters
    ----------
    likelihood : Likelihood
    blocks : Blocks
        Of the likelihood's blocks.
    sanitizer : Sanitizer
    """

    likelihood: Likelihood
    blocks: Blocks[Any]
    sanitizer: Sanitizer

    @property
    def n_records(self) -> int:
        """Number of records over all blocks."""
        return self.blocks.map_reduce(self.likelihood.n_records)

    def energy(self, coef: FloatArray) -> tuple[float, FloatArray]:
        """Return U and its gradient."""
        prior, v = self.sanitizer.prior_precision, self.sanitizer.ceiling
        total, pull = self.blocks.map_reduce(partial(_squashed, self.likelihood, v, coef))
        value = 0.5 * prior * float(coef @ coef) + self.sanitizer.rate * v * total
        return value, prior * coef + self.sanitizer.rate * pull

    def sampled_gradient(self, coef: FloatArray, rows: IntArray, starts: IntArray) -> FloatArray:
        """Return an unbiased estimate of the gradient of U from ``rows``, ascending.

        Parameters
        ----------
        coef : ndarray of shape (n_params,)
        rows : ndarray of int
            Positions over all blocks, drawn with replacement.
        starts : ndarray of int of shape (n_blocks + 1,)
            Where each block starts, and where the last one ends.
        """
        prior, v = self.sanitizer.prior_precision, self.sanitizer.ceiling
        n_blocks = starts.size - 1
        cuts = np.searchsorted(rows, starts) if n_blocks > 1 else (0, rows.size)
        by_block = [rows[cuts[i] : cuts[i + 1]] - starts[i] for i in range(n_blocks)]
        pull = self.blocks.map_reduce(partial(_sampled, self.likelihood, v, coef), by_block)
        return np.asarray(prior * coef + (self.sanitizer.rate * starts[-1] / rows.size) * pull)

    def curvature(self, coef: FloatArray) -> FloatArray:
        """Return the Hessian of U without the part of C'': positive definite, for steering."""
        bend = self.blocks.map_reduce(partial(_jacobian, self.likelihood, self.sanitizer, coef))
        hessian = self.sanitizer.prior_precision * np.eye(coef.size) + bend
        # Far more than its rounding, so that it can be factored whatever the records are.
        floor = 1e-12 * float(np.trace(hessian))
        return np.asarray(hessian + floor * np.eye(coef.size))

    def mode(self, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a point near a mode of the law, and the curvature there: for steering alone.

        Newton steps with :meth:`curvature`: as C is concave, its tangent at the present losses is a
        convex upper bound of U, whose minimum they approach.
        """
        coef, (value, gradient) = start, self.energy(start)
        hessian = self.curvature(coef)
        for _ in range(MODE_STEPS):
            step = linalg.solve(hessian, gradient, assume_a="pos")
            decrement = float(gradient @ step)
            if not decrement > MODE_DECREMENT:
                break
            length = 1.0
            while length > 1e-6:
                ahead = coef - length * step
                new, new_gradient = self.energy(ahead)
                if new <= value - 0.1 * length * decrement:
                    break
                length /= 2.0
            else:
                break
            coef, value, gradient = ahead, new, new_gradient
            hessian = self.curvature(coef)
        return coef, hessian


# What goes to where blocks are: a likelihood, public numbers, a point; the block comes last.


def _squashed(
    likelihood: Likelihood, ceiling: float, coef: FloatArray, block: Any
) -> tuple[float, FloatArray]:
    """Return the sum of tanh(losses / v), and that of C'(l) times the gradients of losses."""
    losses, gradient = likelihood.linearized(coef, block, TOLERANCE)
    squashed = np.tanh(losses / ceiling)
    return float(squashed.sum()), gradient(1.0 - squashed**2)


def _sampled(
    likelihood: Likelihood, ceiling: float, coef: FloatArray, block: Any, inside: IntArray
) -> FloatArray:
    """Return the sum of C'(l) times the gradients of losses, over some records of a block."""
    if not inside.size:
        return np.zeros_like(coef)
    batch = likelihood.take(block, inside)
    losses, gradient = likelihood.linearized(coef, batch, SAMPLED_TOLERANCE)
    squashed = np.tanh(losses / ceiling)
    return gradient(1.0 - squashed * squashed)


def _jacobian(likelihood: Likelihood, law: Sanitizer, coef: FloatArray, block: Any) -> FloatArray:
    """Return the part of a block in the Hessian of U without C''."""
    weights = 1.0 - np.tanh(likelihood.losses(coef, block) / law.ceiling) ** 2
    bend = likelihood.derivatives(coef, block, weights=weights).hessian
    return law.rate * np.asarray(bend)
