"""What a fit will do with the records, decided before any of their values is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from skdpsurv.privacy import PrivacyGuarantee, RandomSource
from skdpsurv.privacy.plan import SPAN
from skdpsurv.privacy.plan import Plan as Tree

__all__ = ["SPAN", "Plan", "checked_plan", "promise"]


class Plan(Protocol):
    """How epsilon is spent: made of public parameters and of the shape of the records alone.

    What a plan says of itself is its guarantee (:func:`promise`), and what it runs is what an audit
    attacks: nobody works out either a second time.
    """

    @property
    def epsilon(self) -> float:
        """What is spent, all in all."""
        ...

    @property
    def mechanism(self) -> str:
        """What is released, in words."""
        ...

    @property
    def proof(self) -> str:
        """Where it is proved."""
        ...

    @property
    def assumptions(self) -> Sequence[str]:
        """What else must be true."""
        ...

    def public_inputs(self) -> Mapping[str, object]:
        """Return the values that the guarantee takes to be public."""
        ...

    def spans(self) -> Sequence[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        ...

    def run(self, records: Any, source: RandomSource) -> Mapping[str, Any]:
        """Return what is released of the records, with noise from a source."""
        ...


def promise(plan: Plan, status: str) -> PrivacyGuarantee:
    """Return the guarantee of what a plan releases."""
    if isinstance(plan, Tree):
        return plan.guarantee(status)
    return PrivacyGuarantee(
        epsilon=plan.epsilon,
        # Of plans that say so: those that know Gaussian noise.
        delta=getattr(plan, "delta", 0.0),
        rho=getattr(plan, "rho", None),
        renyi=getattr(plan, "renyi", ()),
        mechanism=plan.mechanism,
        status=status,
        public_inputs=plan.public_inputs(),
        assumptions=tuple(plan.assumptions),
        source=plan.proof,
    )


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
