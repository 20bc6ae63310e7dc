"""The exact arithmetic of a budget: what a ledger adds up, and what it refuses.

A number counts as the decimal it prints as: ten charges of 0.1 fill a budget of 1. Sums are exact,
and the budget has no tolerance.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from functools import reduce
from typing import NamedTuple

from skdpsurv.dp.privacy_cost import (
    MARGIN,
    SLACK,
    best_order,
    epsilon_at,
    epsilon_to_rdp,
    pure_to_rdp,
    rdp_to_epsilon,
)

#: Decimals of floats lie between 1e-324 and 2e308: digits enough for the sum of 1e60 of them.
#: Should they ever not do, a sum fails; it is never rounded.
_EXACT = Context(
    prec=700, Emin=-9999, Emax=9999, clamp=0, traps=[Inexact, InvalidOperation, Overflow]
)


class Omitted(float):
    """A default that differs from the same number given by the caller, and prints as it."""


class LedgerSettings(NamedTuple):
    """Settings that a ledger was made with; they never change."""

    epsilon: float
    delta: float
    rehearsal: bool = False
    charge_refusals: bool = False
    composition: str = "basic"
    #: Order of the Renyi divergences that are added up; 0 for sums of epsilons.
    order: float = 0.0

    def completed(self) -> LedgerSettings:
        """Return the settings as a ledger keeps them, with the best order."""
        self = self._replace(epsilon=self.epsilon + 0.0, delta=self.delta + 0.0)  # no -0.0
        if self.composition == "basic":
            return self
        if math.isinf(self.epsilon) or not self.delta:
            raise ValueError("composition='renyi' needs a finite epsilon and a positive delta.")
        return self._replace(order=best_order(self.epsilon, self.delta))

    @property
    def renyi_limit(self) -> float:
        """Renyi divergence that a data set may spend, if the filter adds these up."""
        return epsilon_to_rdp(self.epsilon, self.delta, self.order)


#: Statuses of entries for a move: the ledger was closed, is elsewhere now, or was opened there.
CLOSED, MOVED, OPENED = MOVES = ("closed", "moved", "opened")


class Entry(NamedTuple):
    """One charge, or one step of moving a ledger. Every field is public."""

    when: str
    estimator: str
    mechanism: str
    epsilon: float
    delta: float
    status: str
    dataset: str
    #: Renyi divergence at the ledger's order; inf if it is unknown or not used.
    renyi: float = math.inf
    neighbours: str = ""
    #: Name of who charged it, and their purpose, as stated by the caller.
    who: str = ""
    purpose: str = ""
    #: Hash of the whole guarantee; "" for charges from before ledgers kept it.
    guarantee: str = ""

    @property
    def is_charge(self) -> bool:
        """Whether this is a charge; else the ledger was moved, and ``mechanism`` says where to."""
        return self.status not in MOVES

    @property
    def proved(self) -> bool:
        """Whether a theorem covers what was charged."""
        return self.status == "proved"


@dataclass(eq=False, repr=False)
class BudgetExceededError(RuntimeError):
    """A charge does not fit what is left of the privacy budget. Nothing was recorded.

    Parameters
    ----------
    requested, remaining : float
        Cost of the charge, and the rest of the budget.
    dataset : str
        Name of the data set whose budget it is.
    quantity : str, default="epsilon"
        Exceeded budget: "epsilon", "delta", or "Renyi divergence of order ...".
    status : str, default="proved"
        Status of the guarantee that was to be charged.
    """

    requested: float
    remaining: float
    dataset: str
    quantity: str = "epsilon"
    status: str = "proved"

    def __post_init__(self) -> None:
        # Pickles of errors are made of their arguments.
        self.args = self.requested, self.remaining, self.dataset, self.quantity, self.status

    def __str__(self) -> str:
        message = (
            f"The privacy budget of data set {self.dataset!r} does not allow this: it asks for "
            f"{self.quantity}={self.requested!r}, but only {self.remaining!r} is left. Nothing was "
            "charged."
        )
        if math.isinf(self.requested) and self.status != "proved":
            message += (
                f" A guarantee with status {self.status!r} costs infinity: only what is proved "
                "costs its epsilon (random_state=None, classes given). To count fits that are not "
                "private, use PrivacyAccountant(..., rehearsal=True)."
            )
        elif math.isinf(self.requested) and self.quantity.startswith("Renyi"):
            message += " A guarantee with a delta must say its rho, or its Renyi divergences."
        return message


def exact_sum(values: Iterable[float]) -> Decimal:
    """Return the exact sum of non-negative floats, each taken as the decimal that it prints as."""
    return reduce(added, values, Decimal(0))


def added(exact: Decimal, value: float) -> Decimal:
    """Return an exact sum with one more float."""
    return _EXACT.add(exact, _decimal(value))


def float_above(exact: Decimal) -> float:
    """Return the least float whose printed decimal is at least ``exact``."""
    nearest = float(exact)
    return nearest if _decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def float_below(exact: Decimal) -> float:
    """Return the largest float whose printed decimal is at most ``exact``."""
    nearest = float(exact)
    return nearest if _decimal(nearest) <= exact else math.nextafter(nearest, -math.inf)


def remaining(spent: Decimal, budget: float) -> float:
    """Return the rest of a budget, rounded down; infinite if the budget is."""
    if math.isinf(budget):
        return math.inf
    left = _EXACT.subtract(_decimal(budget), spent)
    return float_below(max(Decimal(0), left))


COMPOSITIONS = ("basic", "renyi")


class SpentSums(NamedTuple):
    """Exact sums of the entries that share one budget."""

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)
    renyi: Decimal = Decimal(0)

    def plus(self, entry: Entry) -> SpentSums:
        """Return the sums with one more entry."""
        charged = entry.epsilon, entry.delta, entry.renyi
        return SpentSums(*map(added, self, charged))


#: Sums by data set and, in ledgers for rehearsals, by whether charges are proved.
Totals = Mapping[tuple[str, bool], SpentSums]
NOTHING = SpentSums()


def budget_of(settings: LedgerSettings, dataset: str, *, proved: bool) -> tuple[str, bool]:
    """Return the key, in totals, of the budget that a charge counts in."""
    return dataset, proved or not settings.rehearsal


def added_up(entries: Iterable[Entry], settings: LedgerSettings, before: Totals) -> Totals:
    """Return totals with more entries."""
    totals = dict(before)
    for entry in entries:
        key = budget_of(settings, entry.dataset, proved=entry.proved)
        totals[key] = totals.get(key, NOTHING).plus(entry)
    return totals


def require_room(totals: Totals, requests: Sequence[Entry], settings: LedgerSettings) -> None:
    """Raise BudgetExceededError unless all requests fit together.

    Basic composition: mechanisms that are (e_i, d_i)-DP are together (sum e_i, sum d_i)-DP, also
    when each is chosen in view of the earlier results (Dwork and Roth, 2014, theorem 3.16 and
    section 3.5).

    A Renyi filter at the ledger's order (:mod:`skdpsurv.dp.privacy_cost`): the sum of divergences
    is held below what epsilon at delta is worth. Beside it, charges that are all pure are held by
    the sum of their epsilons. Either of the two may let a charge pass: on the results for which the
    pure sum does, densities differ by at most exp(epsilon); on all others the filter's theorem
    holds, and delta is paid once (docs/proofs/composition).
    """
    for request in requests:
        key = budget_of(settings, request.dataset, proved=request.proved)
        before = totals.get(key, NOTHING)
        if settings.order:
            require_divergence(before, request, settings)
        else:
            # Without a limit to epsilon none to delta would mean anything, unless it was stated.
            unlimited = math.isinf(settings.epsilon) and not settings.delta
            require_sum(before, request, "epsilon", settings.epsilon)
            require_sum(before, request, "delta", math.inf if unlimited else settings.delta)
        totals = added_up([request], settings, totals)


def require_sum(
    before: SpentSums, request: Entry, quantity: str, limit: float, name: str = ""
) -> None:
    """Raise BudgetExceededError if one of the sums would exceed its limit."""
    if getattr(before.plus(request), quantity) > _decimal(limit):
        wanted, left = getattr(request, quantity), remaining(getattr(before, quantity), limit)
        raise BudgetExceededError(wanted, left, request.dataset, name or quantity, request.status)


def require_divergence(before: SpentSums, request: Entry, settings: LedgerSettings) -> None:
    """Raise BudgetExceededError unless a Renyi filter lets a charge pass."""
    together = before.plus(request)
    if together.delta or together.epsilon > _decimal(settings.epsilon):
        name = f"Renyi divergence of order {settings.order:.4g}"
        require_sum(before, request, "renyi", settings.renyi_limit, name)


def spent_pair(sums: SpentSums, settings: LedgerSettings) -> tuple[float, float]:
    """Return an epsilon and a delta that everything charged holds with, rounded upwards.

    The sums of both; or, in a ledger that adds up divergences, what their sum is worth at the
    budget's delta, where that is a smaller epsilon, or the deltas add up to more. Either pair is
    true as a whole; an epsilon of one and a delta of the other are no statement.
    """
    plain = float_above(sums.epsilon), float_above(sums.delta)
    if not settings.order or sums == NOTHING:
        return plain
    delta = settings.delta
    filtered = rdp_to_epsilon(float_above(sums.renyi), delta, settings.order), delta
    return filtered if filtered[0] < plain[0] or plain[1] > delta else plain


def largest_pure(sums: SpentSums, settings: LedgerSettings) -> float:
    """Return the largest pure epsilon, rounded downwards, that a Renyi filter lets pass now."""
    by_sum = 0.0 if sums.delta else remaining(sums.epsilon, settings.epsilon)
    left = remaining(sums.renyi, settings.renyi_limit)
    low, high = 0.0, settings.epsilon
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if pure_to_rdp(middle, settings.order) <= left else (low, middle)
    return max(by_sum, low)


def left_for(sums: SpentSums, settings: LedgerSettings, delta: float) -> float:
    """Return the epsilon, rounded downwards, that is left for a charge with a delta."""
    if settings.order and delta:
        rho = remaining(sums.renyi, settings.renyi_limit) / settings.order / MARGIN**3
        return max(0.0, epsilon_at(rho, delta) / MARGIN**2 - 2.0 * SLACK) if rho else 0.0
    if settings.order:
        return largest_pure(sums, settings)
    limited = not math.isinf(settings.epsilon) or settings.delta > 0.0
    if limited and added(sums.delta, delta) > _decimal(settings.delta):
        return 0.0
    return remaining(sums.epsilon, settings.epsilon)


def dataset_name(name: object) -> str:
    """Return the name of a data set, in the one form under which it is kept.

    One name must be one budget. White space counts as one space, and composed accents equal
    decomposed ones (Unicode's form NFC). Characters that cannot be seen are refused: control,
    formatting and default ignorable ones, and blank signs. Letters that only look alike differ.
    """
    plain = unicodedata.normalize("NFC", text("dataset", name)).strip()
    if not plain or any(map(_unidentified, plain)):
        raise ValueError(
            "dataset must be a name, not empty and without characters that cannot be seen."
        )
    return " ".join(plain.split())


#: Unicode's Default_Ignorable_Code_Point, but for those that are formatting characters anyway,
#: and characters that are drawn as nothing: first and last of each range.
_BLANK = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065),
    (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
    (0x13441, 0x13446), (0x16FE4, 0x16FE4), (0x1D159, 0x1D159), (0xE0000, 0xE0FFF),
)  # fmt: skip


def _unidentified(character: str) -> bool:
    code = ord(character)
    return unicodedata.category(character) in ("Cc", "Cf") or any(
        first <= code <= last for first, last in _BLANK
    )


def text(field: str, value: object) -> str:
    """Return a text that a ledger can keep, or raise TypeError or ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"{field} must be text, got {type(value).__name__}.")
    if any(c == "\0" or unicodedata.category(c) == "Cs" for c in value):
        raise ValueError(f"{field} must be text without NUL characters and lone surrogates.")
    return str(value)


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))
