"""What a fit will do with the records, decided before any of their values is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

__all__ = ["SPAN", "Plan", "checked_plan"]

#: Ridges and scales of noise that double precision can work with.
SPAN = (1e-12, 1e12)


class Plan(Protocol):
    """How epsilon is spent: made of public parameters and of the shape of the records alone."""

    def spans(self) -> Sequence[float]:
        """Return the public numbers that must be neither huge nor tiny."""


AnyPlan = TypeVar("AnyPlan", bound=Plan)


def checked_plan(make: Callable[[], AnyPlan], names: str) -> AnyPlan:
    """Return the plan that ``make`` makes of public numbers.

    Parameters
    ----------
    make : callable
    names : str
        The parameters that decide, for the message.

    Raises
    ------
    ValueError
        If double precision cannot work with the numbers.
    """
    try:
        plan = make()
        fits = all(SPAN[0] <= span <= SPAN[1] for span in plan.spans())
    except ArithmeticError:
        fits = False
    if not fits:
        raise ValueError(
            f"{names} must be such that ridge and noise lie between {SPAN[0]:g} and {SPAN[1]:g}; "
            "they are too extreme for double precision."
        )
    return plan
