r"""The slope of predicted log odds, from public numbers alone: it undoes a part of the penalty.

A ridge that balances much noise shrinks coefficients far more than it turns them, so that a model
which ranks well says "perhaps" of everybody. How strong the ridge is beside what n records can know
of d columns is public, and so is how little they tell of a column beside the noise:

.. math::
    b = \min(1 + r, e^4)^{w/2}, \qquad r = \frac{2 d \kappa}{n R^2}, \qquad
    w = \frac{u}{2 + u}, \qquad u = \frac{2 n \epsilon_k}{C d}

with :math:`\kappa` the ridge, R the bound on rows, C classes and :math:`\epsilon_k` for each of
their models. Where all directions of rows of length R are alike, coefficients that the ridge alone
has shrunk are short by the factor 1 + 2r. How much of what is left is noise depends on the records,
which nothing here reads: the root of 1 + r is what did well over many data sets and did little harm
where nearly all was noise (docs/benchmarks/classification).

Nothing is spent: b is a function of public numbers (docs/proofs/logistic).
"""

from __future__ import annotations

import math

__all__ = ["public_slope"]

#: The power of 1 + r where u is large, the u at which half of it is used, the largest log(1 + r).
POWER, HALF, LARGEST_LOG = 0.5, 2.0, 4.0


def public_slope(
    n_records: int, n_params: int, n_classes: int, epsilon: float, ridge: float
) -> float:
    """Return b, at least 1.

    Parameters
    ----------
    n_records, n_params, n_classes : int
        n, d and C; one class counts as two.
    epsilon : float
        Of one output.
    ridge : float
        Kappa for rows of norm 1.
    """
    excess = 2.0 * n_params * ridge / n_records
    signal = 2.0 * n_records * epsilon / (max(n_classes, 2) * n_params)
    weight = signal / (HALF + signal)
    return math.exp(POWER * weight * min(math.log1p(excess), LARGEST_LOG))
