"""Private selection: choose a public candidate by its private score, or a number of runs, exactly.

Neighbours: replace-one, or any relation for which the sensitivity of a score holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpsurv.dp.checks import positive_number
from skdpsurv.dp.input_errors import as_float_array, check_finite
from skdpsurv.dp.noise import RandomSource, drawn_by_source, uniform_below


@drawn_by_source
def permute_and_flip(
    scores: ArrayLike, epsilon: float, sensitivity: float, source: RandomSource
) -> int:
    r"""Choose a candidate with a high score: permute-and-flip.

    Visit the candidates in uniformly random order; at candidate i stop and return it with
    probability :math:`\exp(-\epsilon (u_{\max} - u_i) / (2 \Delta))`. The best candidate stops
    for certain, so one pass is enough.

    Parameters
    ----------
    scores : array-like of shape (n_candidates,)
        Private score of each public candidate; higher is better. Finite.
    epsilon : float
        Public, positive. ``numpy.inf`` returns the best candidate, the first among equals.
    sensitivity : float
        Public bound on how far one record can move any one score.
    source : RandomSource

    Returns
    -------
    int
        Index of the chosen candidate.

    Notes
    -----
    Theorem: epsilon-DP, pure, and the expected score is at least the exponential mechanism's for
    every set of scores [1]_. Report-noisy-max with exponential noise has the same distribution in
    real numbers only [2]_.

    The draw is exact: scores, epsilon and sensitivity are rational numbers, and each coin
    :math:`e^{-x}` is flipped by integer arithmetic ([3]_, algorithm 1). The running time depends on
    the scores and is not part of the guarantee.

    References
    ----------
    .. [1] McKenna, R., Sheldon, D. (2020). Permute-and-flip: a new mechanism for differentially
       private selection. *NeurIPS 33*. Algorithm 1.
    .. [2] Ding, Z., Kifer, D., Saghaian N. E., S. M., Steinke, T., Wang, Y., Xiao, Y., Zhang, D.
       (2021). The permute-and-flip mechanism is identical to report-noisy-max with exponential
       noise. arXiv:2105.07260.
    .. [3] Canonne, C., Kamath, G., Steinke, T. (2020). The discrete Gaussian for differential
       privacy. *NeurIPS 33*.

    Examples
    --------
    >>> from skdpsurv.dp import random_source
    >>> from skdpsurv.dp.selection import permute_and_flip
    >>> permute_and_flip([10, 900, 20], 1.0, 1.0, random_source(None))
    1
    """
    gaps = _scaled_gaps(scores, epsilon, sensitivity)
    order = list(range(len(gaps)))
    while True:
        # Drawing without replacement, one candidate at a time, is a uniform permutation.
        candidate = order.pop(uniform_below(len(order), source))
        if _bernoulli_exp(gaps[candidate], source):
            return candidate


@drawn_by_source
def exponential_mechanism(
    scores: ArrayLike, epsilon: float, sensitivity: float, source: RandomSource
) -> int:
    r"""Choose candidate i with :math:`P(i) \propto \exp(\epsilon u_i / (2 \Delta))`.

    Arguments and result are as for :func:`permute_and_flip`, whose expected score is never worse.

    Notes
    -----
    Theorem: epsilon-DP, pure [1]_. The draw is exact: a candidate is proposed uniformly, and
    accepted with probability :math:`\exp(-\epsilon (u_{\max} - u_i) / (2 \Delta))`, else another is
    proposed. At most ``n_candidates`` proposals are expected.

    References
    ----------
    .. [1] McSherry, F., Talwar, K. (2007). Mechanism design via differential privacy. *FOCS*,
       94-103.

    Examples
    --------
    >>> from skdpsurv.dp import random_source
    >>> from skdpsurv.dp.selection import exponential_mechanism
    >>> exponential_mechanism([10, 900, 20], 1.0, 1.0, random_source(None))
    1
    """
    gaps = _scaled_gaps(scores, epsilon, sensitivity)
    while True:
        candidate = uniform_below(len(gaps), source)
        if _bernoulli_exp(gaps[candidate], source):
            return candidate


def _scaled_gaps(
    scores: ArrayLike, epsilon: float, sensitivity: float
) -> Sequence[Fraction | None]:
    """Return epsilon * (max - score) / (2 * sensitivity), exactly; None for never."""
    epsilon = positive_number("epsilon", epsilon, allow_inf=True)
    sensitivity = positive_number("sensitivity", sensitivity)
    array: NDArray[Any] = np.asarray(scores)
    if array.ndim != 1 or array.size == 0:
        raise ValueError("scores must be one-dimensional with at least one candidate.")
    if array.dtype.kind not in "iu":
        array = as_float_array(array, "scores")
        check_finite(array, "scores")
    values = array.tolist()
    best = max(values)
    if math.isinf(epsilon):
        first = values.index(best)
        return [Fraction(0) if i == first else None for i in range(len(values))]
    rate = Fraction(epsilon) / (2 * Fraction(sensitivity))
    return [rate * (Fraction(best) - Fraction(v)) for v in values]


def _bernoulli_exp(gamma: Fraction | None, source: RandomSource) -> bool:
    """Flip a coin that is True with probability exp(-gamma), gamma >= 0, exactly."""
    if gamma is None:
        return False
    if gamma == 0:
        return True
    whole = math.floor(gamma)
    # A generator, not a product: the first failure ends it, so a huge gap costs nothing.
    if not all(_first_failure_is_odd(Fraction(1), source) for _ in range(whole)):
        return False
    return _first_failure_is_odd(gamma - whole, source)


def _first_failure_is_odd(gamma: Fraction, source: RandomSource) -> bool:
    place = 1
    while uniform_below(gamma.denominator * place, source) < gamma.numerator:
        place += 1
    return place % 2 == 1


#: Bits of a uniform number that are drawn first; more follow if they do not decide.
_BITS = 128
#: Decimal digits that rounding may spoil: exp multiplies the relative error of its argument, at
#: most 300, by as much.
_SPARE_DIGITS = 12


@dataclass(frozen=True)
class RunCount:
    r"""Truncated negative binomial distribution of K, the number of runs, K = 1, 2, ...

    .. math:: P(K = k) \propto (1 - \gamma)^k \prod_{l=0}^{k-1} \frac{l + \eta}{l + 1} .

    :math:`\eta = 1` is the geometric one; :math:`\eta = 0`, as a limit, the logarithmic one,
    :math:`P(K = k) = (1 - \gamma)^k / (k \log(1/\gamma))`.

    Parameters
    ----------
    eta : float
        In (-1, 1]. Runs that are epsilon-DP make a search that is (2 + eta) epsilon-DP.
    gamma : float
        In (0, 1]. Does not matter for privacy: the smaller, the more runs.

    References
    ----------
    N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022,
    arXiv 2110.03620. Definition 1.
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        if not (-1.0 < self.eta <= 1.0 and 0.0 < self.gamma <= 1.0):
            raise ValueError("eta must be in (-1, 1], and gamma in (0, 1].")

    @classmethod
    def with_mean(cls, eta: float, mean: float) -> RunCount:
        """Return the distribution with an expected number of runs, at least 1."""
        low, high = -300.0, 0.0  # log(gamma)
        for _ in range(200):
            middle = 0.5 * (low + high)
            # The expectation falls as gamma grows.
            low, high = (middle, high) if cls(eta, math.exp(middle)).mean > mean else (low, middle)
        return cls(eta, math.exp(high))

    @property
    def mean(self) -> float:
        """Return the expected number of runs."""
        if self.gamma == 1.0:
            return 1.0
        log_gamma = math.log(self.gamma)
        # eta / (1 - gamma^eta), which is rounded once where eta is next to nothing, too.
        ratio = _over_expm1(self.eta * log_gamma) / -log_gamma
        return ratio * -math.expm1(log_gamma) / self.gamma

    def probability(self, k: int) -> float:
        """Return P(K = k)."""
        if self.gamma == 1.0:
            return float(k == 1)
        log_gamma = math.log(self.gamma)
        scale = _over_expm1(-self.eta * log_gamma) / -log_gamma
        product = math.prod((place + self.eta) / (place + 1) for place in range(1, k))
        return scale * (1.0 - self.gamma) ** k * product

    def draw(self, source: RandomSource) -> int:
        r"""Draw K exactly, in a time proportional to K.

        K is where the distribution function first exceeds a uniform number. Both are known between
        integers, in units of :math:`2^{-b}`; the bits are doubled where these do not decide.
        """
        bits, uniform = _BITS, uniform_below(2**_BITS, source)
        while (k := self._place(uniform, bits)) is None:
            uniform = (uniform << bits) + uniform_below(2**bits, source)
            bits *= 2
        return k

    def _place(self, uniform: int, bits: int) -> int | None:
        """Return K for a number between ``uniform`` and the next; None if that is too coarse."""
        eta, more = Fraction(self.eta), 1 - Fraction(self.gamma)
        if not more:
            return 1
        least, most = self._bounds(bits)
        below = above = 0  # bounds on P(K <= k)
        k = 1
        while True:
            if above + most > uniform:  # and P(K < k) is not
                return k if below + least > uniform else None
            below, above = below + least, above + most
            # P(K = k + 1) / P(K = k), in integers: fractions would be slow to reduce.
            over = more.numerator * (k * eta.denominator + eta.numerator)
            under = more.denominator * eta.denominator * (k + 1)
            least, most = least * over // under, -(-most * over // under)
            k += 1

    def _bounds(self, bits: int) -> tuple[int, int]:
        """Return integers that P(K = 1), in units of 2**-bits, lies between."""
        eta, gamma = Decimal(self.eta), Decimal(self.gamma)
        digits = math.ceil(bits * math.log10(2.0)) + _SPARE_DIGITS
        if eta:
            digits -= math.floor(math.log10(abs(self.eta)) + math.log10(1.0 - self.gamma))
        with localcontext(Context(digits, ROUND_HALF_EVEN, traps=[])):
            length = -gamma.ln()
            odds = eta / ((eta * length).exp() - 1) if eta else 1 / length
            middle = int((1 - gamma) * odds * 2**bits)
        return middle - 1, middle + 2


def _over_expm1(x: float) -> float:
    """Return x / (e^x - 1), which is 1 at 0."""
    return x / math.expm1(x) if x else 1.0
