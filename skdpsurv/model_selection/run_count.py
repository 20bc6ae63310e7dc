"""How often to try: the truncated negative binomial law, drawn exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from skdpsurv.privacy import RandomSource, uniform_below

__all__ = ["RunCount"]

#: Halvings of log(gamma) in the search for the gamma that gives an expected number of runs.
_BISECTIONS = 200
_LEAST_LOG_GAMMA = -300.0


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
        if self.eta == 0.0:
            return -math.expm1(log_gamma) / (self.gamma * -log_gamma)
        ratio = self.eta / -math.expm1(self.eta * log_gamma)
        return ratio * -math.expm1(log_gamma) / self.gamma

    def probability(self, k: int) -> float:
        """Return P(K = k)."""
        if self.gamma == 1.0:
            return float(k == 1)
        log_gamma = math.log(self.gamma)
        if self.eta == 0.0:
            scale = 1.0 / -log_gamma
        else:
            scale = self.eta / math.expm1(-self.eta * log_gamma)
        product = math.prod((place + self.eta) / (place + 1) for place in range(1, k))
        return scale * (1.0 - self.gamma) ** k * product

    def draw(self, source: RandomSource) -> int:
        r"""Draw K exactly, by integer arithmetic.

        A geometric K is kept with probability :math:`\prod_{l=1}^{K-1} (l + \eta)/(l + 1)`, at
        most 1, and else drawn again: what is left has the law. Coins for length and for keeping
        are tossed in turns, so that a K that will not be kept ends early.
        """
        more, eta = 1 - Fraction(self.gamma), Fraction(self.eta)
        k = 1
        while _coin(more.numerator, more.denominator, source):
            # (k + eta) / (k + 1), in integers: fractions would be slow to reduce.
            kept = k * eta.denominator + eta.numerator, (k + 1) * eta.denominator
            k = k + 1 if _coin(*kept, source) else 1
        return k


def _coin(numerator: int, denominator: int, source: RandomSource) -> bool:
    return uniform_below(denominator, source) < numerator
