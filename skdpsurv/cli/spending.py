"""The ledger of a command, opened before any record is read."""

from __future__ import annotations

from typing import Any

from skdpsurv.cli.failures import CommandError
from skdpsurv.cli.options import Spending
from skdpsurv.privacy import PrivacyAccountant, PrivacyGuarantee
from skdpsurv.report.text import exact

__all__ = ["ledger_line", "ledger_state", "open_ledger", "opened", "promise_line"]


def opened(path: str, **terms: Any) -> PrivacyAccountant:
    """Open a ledger, in a file or on a server, or make it if its budget is given.

    Raises
    ------
    CommandError
        If there is none, or it is something else.
    """
    try:
        if "://" in path:
            return PrivacyAccountant(url=path, **terms)
        return PrivacyAccountant(path=path, **terms)
    except FileNotFoundError as error:
        message = str(error)
        if "There is no privacy ledger" in message:
            message = (
                f"there is no ledger {path}. --budget makes one, with the epsilon that all "
                "analyses of these people may spend together; so does skdpsurv ledger create."
            )
    except (ValueError, TypeError, OSError, RuntimeError, ImportError) as error:
        message = str(error)
        if "cannot be reopened with epsilon" in message:
            message = (
                f"the ledger {path} was made with another budget, which is fixed for ever: leave "
                "out --budget to charge it as it is."
            )
    raise CommandError("ledger", message)


def open_ledger(spending: Spending) -> PrivacyAccountant | None:
    """Return the accountant that a command charges; None if it is told of none.

    Raises
    ------
    CommandError
        If what is said of a charge has no ledger to be kept in, or the ledger cannot be used.
    """
    if spending.ledger is None:
        if spending.budget is not None:
            raise CommandError("parameter", "--budget needs --ledger, the file that keeps it.")
        for name, said in (("--purpose", spending.purpose), ("--who", spending.who)):
            if said:
                raise CommandError("parameter", f"{name} needs --ledger, which keeps it.")
        return None
    if spending.budget is not None and not spending.budget > 0:
        raise CommandError("parameter", "--budget must be a positive number.")
    terms: dict[str, Any] = {"purpose": spending.purpose, "who": spending.who}
    if spending.budget is not None:
        terms["epsilon"] = spending.budget
    if spending.dry_run and not _there(spending.ledger):
        if spending.budget is None:
            raise CommandError("ledger", f"there is no ledger {spending.ledger}.")
        accountant = PrivacyAccountant(**terms)  # in memory: a rehearsal makes no ledger
    else:
        accountant = opened(spending.ledger, **terms)
    return accountant.for_dataset(spending.dataset)


def _there(path: str) -> bool:
    """Return whether there is a ledger; one that cannot be used is there."""
    try:
        opened(path)
    except CommandError as error:
        return "there is no ledger" not in str(error)
    return True


def ledger_state(accountant: PrivacyAccountant | None) -> dict[str, Any] | None:
    """Return what a ledger holds, as JSON has it; None without a ledger."""
    if accountant is None:
        return None
    return {
        "path": accountant.path or accountant.url,
        "dataset": accountant.dataset,
        "budget": _number(accountant.epsilon),
        "spent": _number(accountant.spent()),
        "remaining": _number(accountant.remaining()),
        **(
            {
                "budget_delta": accountant.delta,
                "spent_delta": accountant.spent_delta(),
                "composition": accountant.composition,
            }
            if accountant.delta or accountant.spent_delta()
            else {}
        ),
    }


def ledger_line(accountant: PrivacyAccountant | None) -> str:
    """Return what a ledger holds, in a line."""
    if accountant is None:
        return "no ledger: epsilons of several fits to the same people add up, and nobody counts"
    slips, slipped = "", accountant.spent_delta()
    if accountant.delta or slipped:
        limit = exact(accountant.delta) if accountant.delta else "no limit"
        slips = f"; delta {exact(slipped)} of {limit}"
    return (
        f"spent {exact(accountant.spent())} of {exact(accountant.epsilon)}, "
        f"{exact(accountant.remaining())} left{slips} "
        f"(data set {accountant.dataset})"
    )


def promise_line(guarantee: PrivacyGuarantee) -> str:
    """Return what a guarantee promises, in a line."""
    epsilon = exact(guarantee.epsilon)
    if guarantee.delta:
        epsilon += f", delta = {exact(guarantee.delta)}"
    return f"epsilon = {epsilon}, {guarantee.neighbours}, status {guarantee.status}"


def _number(value: float) -> float | str:
    """Return a number as JSON has it."""
    return value if value < float("inf") else "inf"
