r"""How well anybody can tell two versions of one record apart, at best.

Of an (epsilon, delta)-private result, a test for one of two neighbours has a true-positive rate of
at most :math:`e^\epsilon` times its false-positive rate, plus delta, and so have the complements.
The difference of the two rates is largest where both bounds meet, at

.. math:: \frac{e^\epsilon - 1 + 2\delta}{e^\epsilon + 1} ,

which is :math:`\tanh(\epsilon / 2)` for delta = 0. With both versions equally likely, the answer is
right with probability one half and half of that. Numbers here are upper bounds, never rounded down.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import partial
from typing import Any, NamedTuple, Self

from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.report.figures import Figure, figures
from skdpsurv.report.text import exact, percent_up

#: Beyond, what is missing to 1 is less than rounding adds.
LARGEST = Decimal(200)
#: More than the last digit of what is computed, and less than anybody reads.
SLACK = Decimal("1e-40")
#: The curve is flat beyond.
WIDEST = 10.0


class Advantage(NamedTuple):
    """Bounds for one epsilon and delta, if they are proved.

    Parameters
    ----------
    factor : Decimal or None
        On probabilities; None where it has more digits than anybody reads.
    most : Decimal
        On true-positive rate less false-positive rate.
    right : Decimal
        On the probability of a right guess, with both versions equally likely.

    Examples
    --------
    >>> bound = Advantage.at(1.0)
    >>> f"{bound.most:.6f} {bound.right:.6f} {bound.factor:.6f}"
    '0.462117 0.731059 2.718282'
    """

    factor: Decimal | None
    most: Decimal
    right: Decimal

    @classmethod
    def at(cls, epsilon: float, delta: float = 0.0) -> Self:
        """Return the bounds for two numbers."""
        if epsilon > LARGEST:
            return cls(None, Decimal(1), Decimal(1))
        with localcontext() as context:
            context.prec = 150
            factor = Decimal(epsilon).exp()
            # At 0 all is exact; elsewhere the exponential is rounded.
            rounding = SLACK if epsilon else Decimal(0)
            most = min((factor - 1 + 2 * Decimal(delta)) / (factor + 1) + rounding, Decimal(1))
            return cls(factor + rounding, most, (1 + most) / 2)


def advantage_figures(guarantee: PrivacyGuarantee) -> list[Figure]:
    """Return a figure of what a proved guarantee means beside others."""
    caption = (
        "The largest advantage that an attacker can have, over epsilon. The point is this release."
    )
    return figures(partial(_draw, guarantee), "advantage", 2.7, caption)


def _draw(guarantee: PrivacyGuarantee, ax: Any) -> None:
    epsilon, most = guarantee.epsilon, Advantage.at(guarantee.epsilon, guarantee.delta).most
    end = min(max(4.0, 1.25 * epsilon), WIDEST)
    grid = [end * k / 100 for k in range(101)]
    at = [100 * float(Advantage.at(one, guarantee.delta).most) for one in grid]
    ax.plot(grid, at, color="#0072B2", linewidth=2.4)
    ax.fill_between(grid, at, color="#0072B2", alpha=0.08, linewidth=0.0)
    place, height = min(epsilon, end), 100 * float(most)
    ax.plot([place, place], [0.0, height], color="#D55E00", linewidth=1.5)
    marker = "o" if place == epsilon else ">"
    ax.plot([place], [height], marker, color="#D55E00", markersize=9, clip_on=False, zorder=5)
    stated = exact(epsilon)
    called = f"ε = {stated}" if len(stated) < 9 else f"ε ≈ {epsilon:.4g}"
    title = f"{called}: advantage at most {percent_up(most)}"
    ax.set_title(title, loc="left", fontsize="medium", fontweight="bold", color="#A34700")
    ax.set(xlim=(0.0, end), ylim=(0.0, 100.0), xlabel="epsilon (ε)", ylabel="Largest advantage, %")
    ax.grid(color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
