r"""Sanitised exponential mechanism: release one draw of a posterior with bounded losses.

.. math::
    p(f \mid D) \propto e^{-U(f)}, \qquad
    U(f) = \frac{\epsilon}{2v}\Big[\frac\sigma2\|f\|^2 + \sum_{i=1}^n C_v(\ell(f; z_i))\Big],
    \qquad C_v(x) = v\tanh(x/v)

Neighbours: replace-one. Sensitivity: :math:`C_v(\ell) \in [0, v)`, so that the two sums differ by
:math:`g(f) \in (-v, v)` and the log-density ratio, its normalising constant included, by at most
:math:`\frac{\epsilon}{2v}(\sup g - \inf g) \le \epsilon`. Theorem (docs/proofs/posterior_sampling;
Nguyen and Hui, arXiv 1708.07436, theorem 5.1): **an exact draw** is epsilon-differentially private.
Markov chains (:mod:`skdpsurv.mechanisms.langevin`) have this distribution in the limit only, so the
guarantee is *asymptotic*: nothing is proved about a chain of finite length.
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
from skdpsurv.likelihoods.loss import Likelihood

#: The prior's precision, rate * sigma: a normal of standard deviation 10 on each coefficient.
PRIOR_PRECISION = 1e-2
#: Newton steps towards a mode, and the decrement at which they end. A mode only steers: no chain
#: starts there, as a record can decide which mode is found.
MODE_STEPS, MODE_DECREMENT = 50, 1e-6
#: Errors of losses, over all records and over a sample of them, relative to the largest.
TOLERANCE, SAMPLED_TOLERANCE = 1e-12, 1e-6


@dataclass(frozen=True)
class Sanitizer:
    """Public numbers of the target: v, epsilon / (2 v), and rate * sigma of the normal prior."""

    ceiling: float
    rate: float
    prior_precision: float = PRIOR_PRECISION


def calibrate(epsilon: float, n_records: int) -> Sanitizer:
    """Return the paper's choices: v = 2 log n, and sigma = 10^-2 (2 v / epsilon)."""
    ceiling = 2.0 * math.log(max(n_records, 2))
    return Sanitizer(ceiling, epsilon / (2.0 * ceiling))


@dataclass(frozen=True)
class Target:
    """The distribution to be sampled, over private records in blocks of the likelihood."""

    likelihood: Likelihood
    blocks: Blocks[Any]
    sanitizer: Sanitizer

    @property
    def n_records(self) -> int:
        return self.blocks.map_reduce(self.likelihood.n_records)

    def energy(self, coef: FloatArray) -> tuple[float, FloatArray]:
        """Return the energy U of coefficients, and its gradient."""
        prior, v = self.sanitizer.prior_precision, self.sanitizer.ceiling
        total, gradient = self.blocks.map_reduce(partial(_squashed, self.likelihood, v, coef))
        value = 0.5 * prior * float(coef @ coef) + self.sanitizer.rate * v * total
        return value, prior * coef + self.sanitizer.rate * gradient

    def sampled_gradient(self, coef: FloatArray, rows: IntArray, starts: IntArray) -> FloatArray:
        """Return an unbiased estimate of the gradient of U from ``rows``, drawn with replacement.

        They are positions over all blocks, ascending; ``starts`` has each block's first position
        and the number of records.
        """
        prior, v = self.sanitizer.prior_precision, self.sanitizer.ceiling
        n_blocks = starts.size - 1
        cuts = np.searchsorted(rows, starts) if n_blocks > 1 else (0, rows.size)
        by_block = [rows[cuts[i] : cuts[i + 1]] - starts[i] for i in range(n_blocks)]
        total = self.blocks.map_reduce(partial(_sampled, self.likelihood, v, coef), by_block)
        return np.asarray(prior * coef + (self.sanitizer.rate * starts[-1] / rows.size) * total)

    def curvature(self, coef: FloatArray) -> FloatArray:
        """Return the Hessian of U without the part of C'': positive definite, for steering."""
        records = self.blocks.map_reduce(partial(_hessian, self.likelihood, self.sanitizer, coef))
        hessian = self.sanitizer.prior_precision * np.eye(coef.size) + records
        # Far more than rounding, so that it can be factored whatever the records are.
        floor = 1e-12 * float(np.trace(hessian))
        return np.asarray(hessian + floor * np.eye(coef.size))

    def mode(self, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a point near a mode, and the curvature there: for steering alone.

        As C is concave, its tangent at the present losses gives a convex upper bound of U, whose
        minimum the Newton steps with :meth:`curvature` approach.
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


# Workers get a likelihood, public numbers and a point; the block comes last.


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


def _hessian(
    likelihood: Likelihood, sanitizer: Sanitizer, coef: FloatArray, block: Any
) -> FloatArray:
    """Return the part of a block in the Hessian of U without C''."""
    weights = 1.0 - np.tanh(likelihood.losses(coef, block) / sanitizer.ceiling) ** 2
    hessian = likelihood.derivatives(coef, block, weights=weights).hessian
    return sanitizer.rate * np.asarray(hessian)
