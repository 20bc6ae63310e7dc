"""The one way to look at records before a fit is charged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.budget import BudgetExceededError
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.ledger import N_CHARGES

FREE = (
    "a plan must not look at records where the ledger charges refusals: state classes, leave out "
    "groups and steps that learn, and give arrays in memory, of which only the shape is used."
)


@contextmanager
def looking(
    ledger: PrivacyAccountant | None,
    prices: Sequence[PrivacyGuarantee],
    name: str = "",
    *,
    charge: Callable[[PrivacyGuarantee], object] | None = None,
    spends: bool = True,
) -> Iterator[None]:
    """Ask a ledger before records are looked at; if that fails, charge it where it wants that.

    Whatever fails inside may be an answer about records, unless something was charged before it.

    Parameters
    ----------
    ledger : PrivacyAccountant or None
    prices : sequence of PrivacyGuarantee
        What a refusal may cost: first without a delta, then, if it may have one, with it. The
        dearest that fits is charged.
    name : str
        Of what looks, for the entry.
    charge : callable or None
        Charges a price. None: the ledger does.
    spends : bool, default=True
        Whether a success is charged. If not, a ledger that charges refusals allows no look.

    Raises
    ------
    BudgetExceededError
        If none of the prices fits. No record was looked at.
    ValueError
        If no look is allowed.
    """
    if ledger is None or not (spends or ledger.charge_refusals):
        yield
        return
    if not spends:
        raise ValueError(FREE)
    price, before = _dearest(ledger, prices), N_CHARGES.get()
    try:
        yield
        return
    except Exception as error:
        failed = error
    if ledger.charge_refusals and N_CHARGES.get() == before:
        if charge is None:
            ledger.charge(price, estimator=name)
        else:
            charge(price)
    raise failed


def _dearest(ledger: PrivacyAccountant, prices: Sequence[PrivacyGuarantee]) -> PrivacyGuarantee:
    """Return the dearest price that fits, or raise BudgetExceededError."""
    # To sums of deltas Gaussian noise adds more, and to divergences less.
    *dearer, last = prices[::-1] if ledger.composition == "basic" else prices
    for one in dearer:
        with suppress(BudgetExceededError):
            ledger.check(one)
            return one
    ledger.check(last)
    return last
