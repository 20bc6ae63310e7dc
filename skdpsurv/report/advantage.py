r"""How well anybody can tell two versions of one record apart, at best.

Of an (epsilon, delta)-private result, a test for one of two neighbours has a true-positive rate of
at most :math:`e^\epsilon` times its false-positive rate, plus delta, and so have the complements.
The difference of the two rates is largest where both bounds meet, at

.. math:: \frac{e^\epsilon - 1 + 2\delta}{e^\epsilon + 1} ,

which is :math:`\tanh(\epsilon / 2)` for delta = 0. With both versions equally likely, the answer is
right with probability one half and half of that. Numbers here are upper bounds, never rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Self

from skdpsurv.privacy import PrivacyGuarantee

__all__ = ["Advantage"]

#: Beyond, what is missing to 1 is less than rounding adds.
LARGEST = Decimal(200)
#: More than the last digit of what is computed, and less than anybody reads.
SLACK = Decimal("1e-40")


@dataclass(frozen=True)
class Advantage:
    """Bounds for one epsilon and delta.

    Parameters
    ----------
    factor : Decimal or None
        On probabilities; None where it has more digits than anybody reads.
    most : Decimal
        On true-positive rate less false-positive rate.

    Examples
    --------
    >>> from skdpsurv import PrivacyGuarantee
    >>> bound = Advantage.of(PrivacyGuarantee(1.0))
    >>> f"{bound.most:.6f} {bound.right:.6f} {bound.factor:.6f}"
    '0.462117 0.731059 2.718282'
    """

    factor: Decimal | None
    most: Decimal

    @classmethod
    def of(cls, guarantee: PrivacyGuarantee) -> Self:
        """Return the bounds that a guarantee would mean if it is proved."""
        return cls.at(guarantee.epsilon, guarantee.delta)

    @classmethod
    def at(cls, epsilon: float, delta: float = 0.0) -> Self:
        """Return the bounds for two numbers."""
        exponent, slip = Decimal(epsilon), Decimal(delta)
        if exponent > LARGEST:
            return cls(None, Decimal(1))
        with localcontext() as context:
            context.prec = 150
            factor = exponent.exp()
            most = (factor - 1 + 2 * slip) / (factor + 1)
            # At 0 all is exact; elsewhere the exponential is rounded.
            rounding = SLACK if exponent else Decimal(0)
            return cls(factor + rounding, min(most + rounding, Decimal(1)))

    @property
    def right(self) -> Decimal:
        """How probable a right guess is, with both versions equally likely."""
        with localcontext() as context:
            context.prec = 150
            return (1 + self.most) / 2
