"""The one way to look at records before a fit is charged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.budget import BudgetExceededError
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.ledger import LOOKS, Look

Prices = Sequence[PrivacyGuarantee]


@contextmanager
def looking(
    ledger: PrivacyAccountant | None,
    prices: Prices,
    name: str | Callable[[PrivacyGuarantee], object],
) -> Iterator[None]:
    """Ask a ledger before records are looked at; if that fails, charge it where it wants that.

    Whatever fails inside may be an answer about records, unless this ledger was charged as much
    before it.

    Parameters
    ----------
    ledger : PrivacyAccountant or None
    prices : sequence of PrivacyGuarantee
        What a refusal may cost: first without a delta, then, if it may have one, with it. The
        dearest that fits is charged.
    name : str or callable
        Of what looks, for the entry. Or what charges a price, in place of the ledger.

    Raises
    ------
    BudgetExceededError
        If none of the prices fits. No record was looked at.
    """
    if ledger is None:
        yield
        return
    price = _dearest(ledger, prices)
    look = Look(ledger._ledger.identity, ledger._entry([price], None))
    opened = LOOKS.set((*LOOKS.get(), look))
    try:
        yield
        return
    except BaseException as error:
        failed = error
    finally:
        LOOKS.reset(opened)
    if ledger.charge_refusals and not look.paid:
        charge = name if callable(name) else partial(ledger.charge, estimator=name)
        charge(price)
    raise failed


def _dearest(ledger: PrivacyAccountant, prices: Prices) -> PrivacyGuarantee:
    """Return the dearest price that fits, or raise BudgetExceededError."""
    # To sums of deltas Gaussian noise adds more, and to divergences less.
    *dearer, last = prices[::-1] if ledger.composition == "basic" else prices
    for one in dearer:
        with suppress(BudgetExceededError):
            ledger.check(one)
            return one
    ledger.check(last)
    return last


def require_free(ledger: PrivacyAccountant | None, looks: object) -> None:
    """Refuse to look at records for a plan, where the ledger charges refusals."""
    if looks and ledger is not None and ledger.charge_refusals:
        raise ValueError(
            "a plan must not look at records where the ledger charges refusals: state classes, "
            "leave out groups and steps that learn, and give arrays in memory, of which only the "
            "shape is used."
        )
