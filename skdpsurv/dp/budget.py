r"""What a ledger adds up and what it refuses: the exact arithmetic of a budget.

A number counts as the decimal it is written as: ten charges of 0.1 fill a budget of 1 and leave
nothing. Sums are exact, whatever the sizes of their terms, and the budget has no tolerance.

Optimal composition of many guarantees at a chosen delta, by dp-accounting.

k mechanisms of :math:`(\epsilon_i, \delta_i)` together are :math:`(\epsilon, \delta)`-private with
an :math:`\epsilon` far below :math:`\sum_i \epsilon_i` where k is large: roughly
:math:`\epsilon_0\sqrt{2 k \log(1/\delta)} + k\epsilon_0^2/2` for k equal ones. The best such
epsilon follows from the law of the privacy loss, which for a mechanism known by its
:math:`(\epsilon_i, \delta_i)` alone is that of randomised response (Kairouz, Oh and Viswanath
2015); laws are convolved on a grid, rounded so that epsilon comes out too large rather than too
small (Koskela, Jälkö and Honkela 2020; Doroshenko et al. 2022).
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from functools import reduce
from typing import NamedTuple

from skdpsurv.dp.checks import fraction
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


class Terms(NamedTuple):
    """What a ledger was made with; fixed."""

    epsilon: float
    delta: float
    rehearsal: bool = False
    charge_refusals: bool = False
    composition: str = "basic"
    #: Of the Renyi divergences that a Renyi filter adds up; 0 for sums of epsilons.
    order: float = 0.0

    def settled(self) -> Terms:
        """Return the terms as a ledger keeps them, with the order that the best rho has."""
        self = self._replace(epsilon=self.epsilon + 0.0, delta=self.delta + 0.0)  # no -0.0
        if self.composition == "basic":
            return self
        if math.isinf(self.epsilon) or not self.delta:
            raise ValueError(
                "composition='renyi' needs a finite epsilon and a positive delta: it is the "
                "epsilon at a delta that many charges are worth together."
            )
        return self._replace(order=best_order(self.epsilon, self.delta))

    @property
    def room(self) -> float:
        """Renyi divergence that a data set may spend, if the filter adds these up."""
        return epsilon_to_rdp(self.epsilon, self.delta, self.order)


#: Entries that are no charges: the ledger was closed to be moved, is elsewhere now, or was opened.
CLOSED, MOVED, OPENED = MOVES = ("closed", "moved", "opened")


class Entry(NamedTuple):
    """One charge, or a step of a move. Every field is public."""

    when: str
    estimator: str
    mechanism: str
    epsilon: float
    delta: float
    status: str
    dataset: str
    #: Renyi divergence of the ledger's order; inf if none is known, or none asked for.
    renyi: float = math.inf
    neighbours: str = ""
    #: Who charged it, and what for, as they said.
    who: str = ""
    purpose: str = ""
    #: Hash of the whole guarantee; none where it was charged before ledgers kept one.
    guarantee: str = ""

    @property
    def is_charge(self) -> bool:
        """Whether something was charged; a step of a move has a place for its mechanism."""
        return self.status not in MOVES

    @property
    def proved(self) -> bool:
        """Whether a theorem covers it."""
        return self.status == "proved"


class BudgetExceededError(RuntimeError):
    """A charge does not fit what is left of the privacy budget. Nothing was recorded.

    Parameters
    ----------
    requested : float
        What the charge asked for.
    remaining : float
        What is left.
    dataset : str
        Name of the data set whose budget it is.
    quantity : str, default="epsilon"
        Which budget is exceeded: "epsilon", "delta", or "Renyi divergence of order ..." in a
        ledger with that composition.
    status : str, default="proved"
        Status of the guarantee that was to be charged.

    Attributes
    ----------
    requested, remaining, dataset, quantity, status
        As above.
    """

    def __init__(
        self,
        requested: float,
        remaining: float,
        dataset: str,
        quantity: str = "epsilon",
        status: str = "proved",
    ) -> None:
        super().__init__(requested, remaining, dataset, quantity, status)
        self.requested, self.remaining, self.dataset = requested, remaining, dataset
        self.quantity, self.status = quantity, status

    def __str__(self) -> str:
        why = ""
        if math.isinf(self.requested) and self.status != "proved":
            why = (
                f" A guarantee with status {self.status!r} costs infinity, whatever its epsilon: "
                "only what is proved costs its epsilon (random_state=None, classes given). To "
                "count fits that are not private, use PrivacyAccountant(..., rehearsal=True)."
            )
        elif math.isinf(self.requested) and self.quantity.startswith("Renyi"):
            why = (
                " A guarantee with a delta must say its rho, or its Renyi divergences of this or a "
                "higher order, to be added up in them."
            )
        return (
            f"The privacy budget of data set {self.dataset!r} does not allow this: it asks for "
            f"{self.quantity}={self.requested!r}, but only {self.remaining!r} is left. Nothing was "
            f"charged.{why}"
        )


def exact_sum(values: Iterable[float]) -> Decimal:
    """Return the exact sum of non-negative floats, each taken as the decimal that it prints as."""
    return reduce(added, values, Decimal(0))


def added(exact: Decimal, value: float) -> Decimal:
    """Return an exact sum with one more float."""
    return _EXACT.add(exact, _decimal(value))


def float_above(exact: Decimal) -> float:
    """Return the least float that does not print as less."""
    nearest = float(exact)
    return nearest if _decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def float_below(exact: Decimal) -> float:
    """Return the largest float that does not print as more."""
    nearest = float(exact)
    return nearest if _decimal(nearest) <= exact else math.nextafter(nearest, -math.inf)


def remaining(spent: Decimal, budget: float) -> float:
    """Return what is left of a budget, rounded down; an infinite budget always leaves infinity."""
    if math.isinf(budget):
        return math.inf
    left = _EXACT.subtract(_decimal(budget), spent)
    return float_below(max(Decimal(0), left))


COMPOSITIONS = ("basic", "renyi")


class Sums(NamedTuple):
    """What the entries add up to that share one budget, exactly."""

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)
    renyi: Decimal = Decimal(0)

    def plus(self, entry: Entry) -> Sums:
        """Return the sums with one more entry."""
        charged = entry.epsilon, entry.delta, entry.renyi
        return Sums(*map(added, self, charged))


#: Sums of each data set; in a ledger for rehearsals of what is proved, and of what is not.
Held = Mapping[tuple[str, bool], Sums]
NOTHING = Sums()


def budget_of(terms: Terms, dataset: str, *, proved: bool) -> tuple[str, bool]:
    """Return which budget a charge of this kind has a share in."""
    return dataset, proved or not terms.rehearsal


def added_up(entries: Iterable[Entry], terms: Terms, held: Held | None = None) -> Held:
    """Return the sums of entries, after those that are held."""
    sums = dict(held or {})
    for entry in entries:
        key = budget_of(terms, entry.dataset, proved=entry.proved)
        sums[key] = sums.get(key, NOTHING).plus(entry)
    return sums


def require_room(held: Held, requests: Sequence[Entry], terms: Terms) -> None:
    """Raise BudgetExceededError unless all requests fit together.

    Basic composition: mechanisms that are (e_i, d_i)-DP are together (sum e_i, sum d_i)-DP, also
    when each is chosen in view of the earlier results (Dwork and Roth, 2014, theorem 3.16 and
    section 3.5).

    A Renyi filter at the ledger's order (:mod:`skdpsurv.dp.privacy_cost`): the sum of divergences
    is held below what epsilon at delta is worth. Beside it, charges that are all pure are held
    by the sum of their epsilons. Either of the two may let a charge pass: on the results for which
    the pure sum does, densities differ by at most exp(epsilon); on all others the filter's theorem
    holds, and delta is paid once (docs/proofs/composition).
    """
    held = dict(held)
    for request in requests:
        key = budget_of(terms, request.dataset, proved=request.proved)
        beside = held.get(key, NOTHING)
        held[key] = together = beside.plus(request)
        if terms.order:
            require_divergence(beside, request, terms)
            continue
        # Without a limit to epsilon none to delta would mean anything, unless it was stated.
        slips = math.inf if math.isinf(terms.epsilon) and not terms.delta else terms.delta
        for quantity, used, asked, total, limit in (
            ("epsilon", beside.epsilon, request.epsilon, together.epsilon, terms.epsilon),
            ("delta", beside.delta, request.delta, together.delta, slips),
        ):
            if total > _decimal(limit):
                raise BudgetExceededError(
                    asked, remaining(used, limit), request.dataset, quantity, request.status
                )


def require_divergence(beside: Sums, request: Entry, terms: Terms) -> None:
    """Raise BudgetExceededError unless a Renyi filter lets a charge pass."""
    together = beside.plus(request)
    if not together.delta and together.epsilon <= _decimal(terms.epsilon):
        return
    if together.renyi > _decimal(terms.room):
        raise BudgetExceededError(
            request.renyi,
            remaining(beside.renyi, terms.room),
            request.dataset,
            f"Renyi divergence of order {terms.order:.4g}",
            request.status,
        )


def spent_pair(sums: Sums, terms: Terms) -> tuple[float, float]:
    """Return an epsilon and a delta that everything charged holds with, rounded upwards.

    The sums of both; or, in a ledger that adds up divergences, what their sum is worth at the
    budget's delta, where that is a smaller epsilon, or the deltas add up to more. Either pair is
    true as a whole; an epsilon of one and a delta of the other are no statement.
    """
    plain = float_above(sums.epsilon), float_above(sums.delta)
    if not terms.order or sums == NOTHING:
        return plain
    filtered = rdp_to_epsilon(float_above(sums.renyi), terms.delta, terms.order), terms.delta
    return filtered if filtered[0] < plain[0] or plain[1] > terms.delta else plain


def largest_pure(sums: Sums, terms: Terms) -> float:
    """Return the largest pure epsilon, rounded downwards, that a Renyi filter lets pass now."""
    by_sum = 0.0 if sums.delta else remaining(sums.epsilon, terms.epsilon)
    left = remaining(sums.renyi, terms.room)
    low, high = 0.0, terms.epsilon
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if pure_to_rdp(middle, terms.order) <= left else (low, middle)
    return max(by_sum, low)


def left_for(sums: Sums, terms: Terms, delta: float) -> float:
    """Return the epsilon, rounded downwards, that is left for a charge with a delta."""
    if terms.order and delta:
        rho = remaining(sums.renyi, terms.room) / terms.order / MARGIN**3
        return max(0.0, epsilon_at(rho, delta) / MARGIN**2 - 2.0 * SLACK) if rho else 0.0
    if terms.order:
        return largest_pure(sums, terms)
    limited = not math.isinf(terms.epsilon) or terms.delta > 0.0
    if limited and added(sums.delta, delta) > _decimal(terms.delta):
        return 0.0
    return remaining(sums.epsilon, terms.epsilon)


def dataset_name(name: object) -> str:
    """Return the name of a data set, in the one form under which it is kept.

    One name must be one budget. White space is one space, and none at the ends; composed and
    decomposed accents are equal (Unicode's form NFC). What cannot be seen is refused: control and
    formatting characters, all that Unicode calls default ignorable, and signs that are blank. So is
    what cannot be written in a ledger. Letters that look alike, of two alphabets, or of two widths,
    are different letters, and so are capitals and small ones.
    """
    plain = unicodedata.normalize("NFC", text("dataset", name)).strip()
    if not plain or any(map(_unidentified, plain)):
        raise ValueError(
            "dataset must be a name, not empty and without control and formatting characters, and "
            "others that cannot be seen."
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


#: Grid of the privacy loss: at most this, and at least so many steps for the smallest epsilon_i,
#: but never finer than what takes minutes.
GRID, STEPS, FINEST_GRID = 1e-4, 100.0, 1e-7
#: No more steps than this in all: coarser steps round epsilon up.
MOST_STEPS = 2e6
#: An epsilon beyond this gains nothing, and its exponential may be no number.
LARGEST = 50.0
#: What the sums of Fourier transforms may be off by, for up to ten thousand mechanisms: kept back
#: from delta.
ROUNDING = 1e-12
#: And what the epsilon that they give may be short by, of itself.
RAISED = 1e-9


def compose(guarantees: Iterable[tuple[float, float]], delta: float) -> float:
    """Return an epsilon that mechanisms on the same records have together at ``delta``.

    Parameters
    ----------
    guarantees : iterable of (float, float)
        Epsilon and delta of each mechanism, for one kind of neighbours. They must have been fixed
        before the first result was seen: the theorem does not cover budgets that were chosen in
        view of earlier results, which basic composition does.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Never more than the sum of the epsilons, where the deltas' sum is at most ``delta``; that
        sum where ``delta`` is below 1e-12 or an epsilon above 50; infinite where no epsilon does.

    Raises
    ------
    ImportError
        Without dp-accounting: ``pip install "skdpsurv[accounting]"``.

    References
    ----------
    Kairouz, P., Oh, S., Viswanath, P. (2015). The composition theorem for differential privacy.
    *ICML*, 1376-1385.

    Examples
    --------
    >>> from skdpsurv.dp import compose
    >>> float(round(compose([(0.1, 0.0)] * 100, delta=1e-6), 1))  # their sum is 10
    4.8
    """
    fraction("delta", delta)
    counts = Counter((float(epsilon), float(own)) for epsilon, own in guarantees)
    for epsilon, own in counts:
        if not (epsilon >= 0.0 and 0.0 <= own < 1.0):
            raise ValueError("guarantees must hold epsilons >= 0 and deltas in [0, 1).")
    if any(math.isinf(epsilon) for epsilon, _ in counts):
        return math.inf
    counts = Counter({pair: k for pair, k in counts.items() if pair != (0.0, 0.0)})
    if not counts:
        return 0.0
    basic = math.inf
    if float_above(exact_sum(own for _, own in counts.elements())) <= delta:
        basic = float_above(exact_sum(epsilon for epsilon, _ in counts.elements()))
    left = delta - ROUNDING * max(1.0, counts.total() / 1e4)
    if left <= 0.0 or max(epsilon for epsilon, _ in counts) > LARGEST:
        return basic
    # Upwards by more than the convolutions are off by: their grids and sums are of doubles.
    raised = math.nextafter(_by_privacy_loss(counts, left) * (1.0 + RAISED), math.inf)
    return min(basic, raised)


def _by_privacy_loss(counts: Counter[tuple[float, float]], delta: float) -> float:
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError as error:
        raise ImportError(
            'compose needs dp-accounting: pip install "skdpsurv[accounting]"'
        ) from error
    smallest = min((epsilon for epsilon, _ in counts if epsilon > 0.0), default=1.0)
    total_epsilon = math.fsum(epsilon * k for (epsilon, _), k in counts.items())
    grid = max(min(GRID, smallest / STEPS), FINEST_GRID, total_epsilon / MOST_STEPS)
    total = None
    for (epsilon, own), k in sorted(counts.items()):
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, own), value_discretization_interval=grid
        )
        several = one.self_compose(k) if k > 1 else one
        total = several if total is None else total.compose(several)
    assert total is not None
    return float(total.get_epsilon_for_delta(delta))
