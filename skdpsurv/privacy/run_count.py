"""How often to try: the truncated negative binomial law, drawn exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from skdpsurv.privacy.randomness import RandomSource
from skdpsurv.privacy.selection import uniform_below

#: Halvings of log(gamma) in the search for the gamma that gives an expected number of runs.
_BISECTIONS = 200
_LEAST_LOG_GAMMA = -300.0
#: Bits of a uniform number, to begin with.
_BITS = 128
#: Decimal digits that rounding may spoil: exp multiplies the relative error of its argument, at
#: most 300, by as much.
_SPARE_DIGITS = 12


@dataclass(frozen=True)
class RunCount:
    r"""The law of K, the number of runs: truncated negative binomial, K = 1, 2, ...

    .. math:: P(K = k) \propto (1 - \gamma)^k \prod_{l=0}^{k-1} \frac{l + \eta}{l + 1} .

    :math:`\eta = 1` is the geometric law; :math:`\eta = 0`, as a limit, the logarithmic one,
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
        """Return the law with an expected number of runs, at least 1."""
        low, high = _LEAST_LOG_GAMMA, 0.0
        for _ in range(_BISECTIONS):
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

        A uniform number is drawn, and K is where the distribution function first exceeds it. Both
        are known between integers, in units of :math:`2^{-b}`; where these do not tell, which has
        a probability of about :math:`K^2 2^{-b}`, there are twice as many bits of both.
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
        """Return integers that P(K = 1), in units of 2**-bits, lies between.

        Logarithm and exponential of Python's decimals are rounded correctly; a difference from 1
        loses the digits by which its argument is small.
        """
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
