"""The risk appetite of an environment: what may be charged there, and what is looked at."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Self

from skdpsurv.dp.budget import (
    NOTHING,
    BudgetExceededError,
    Entry,
    LedgerSettings,
    Totals,
    added_up,
    budget_of,
    exact_sum,
    float_above,
    remaining,
    spent_pair,
)
from skdpsurv.dp.checks import check_each, choice, instance, integer, number_in, suggestion
from skdpsurv.dp.guarantee import PrivacyGuarantee, weakest_status
from skdpsurv.dp.references import WORDS

_RULES = {
    "max_epsilon": number_in(0.0, math.inf, closed="neither"),
    "max_delta": number_in(0.0, 1.0, closed="left"),
    "status": choice(*WORDS["statuses"]),
    "min_records": integer(1),
    "safe_threshold": integer(0),
    "safe_dof_threshold": integer(0),
    "name": instance(str, "text"),
}


@dataclass(eq=False, repr=False)
class AppetiteError(BudgetExceededError):
    """The risk appetite of an environment does not allow a charge. Nothing was recorded.

    Parameters
    ----------
    requested, remaining, dataset, quantity, status
        As of :class:`BudgetExceededError`; ``remaining`` is what the appetite leaves.
    rule : str, default=""
        The rule, such as "max_epsilon = 1.0 of appetite.toml".
    asked : str, default=""
        What was asked for, in words.
    """

    rule: str = ""
    asked: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.args += self.rule, self.asked

    def __str__(self) -> str:
        return f"{self.rule} does not allow this: it asks for {self.asked}. Nothing was charged."


@dataclass(frozen=True, kw_only=True)
class RiskAppetite:
    """What an environment lets be charged to a data set, and looks at in outputs.

    Parameters
    ----------
    max_epsilon : float
        The most that all charges to one data set may cost together, in this environment.
    max_delta : float, default=0.0
        The same of delta.
    status : str, default="proved"
        The weakest status of a guarantee that may be charged.
    min_records : int, default=1
        Fewest records, or people, that a result may be about. A first look at records of which
        nobody knows how many there are is let pass; an output that does not state it is not.
    safe_threshold : int, default=10
        Output checkers look at an output with a noisy count below this.
    safe_dof_threshold : int, default=10
        Output checkers look at an output with fewer residual degrees of freedom.
    name : str, default="the risk appetite"
        For messages: :meth:`from_toml` gives the name of the file.

    Raises
    ------
    ValueError, TypeError
        If an entry breaks a rule.

    Notes
    -----
    ``accountant.within(appetite)`` obeys it: what it does not allow raises :class:`AppetiteError`.
    Privacy accounting is that of the ledger: this is a second limit, which differs from the
    ledger's budget in that it may be made stricter while a ledger is in use. The last two entries
    stop no charge: noisy counts and residuals are known after it.

    Examples
    --------
    >>> from skdpsurv.dp import PrivacyAccountant, PrivacyGuarantee, RiskAppetite
    >>> appetite = RiskAppetite(max_epsilon=1.0, name="appetite.toml")
    >>> accountant = PrivacyAccountant(epsilon=6.0).within(appetite)
    >>> accountant.charge(PrivacyGuarantee(2.0))
    Traceback (most recent call last):
    ...
    skdpsurv.dp.appetite.AppetiteError: max_epsilon = 1.0 of appetite.toml does not allow this: it \
asks for epsilon = 2.0. Nothing was charged.
    """

    max_epsilon: float
    max_delta: float = 0.0
    status: str = "proved"
    min_records: int = 1
    safe_threshold: int = 10
    safe_dof_threshold: int = 10
    name: str = "the risk appetite"

    def __post_init__(self) -> None:
        check_each(_RULES, self)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Read an appetite from a TOML file, which has the parameters as keys, but for ``name``.

        Raises
        ------
        ValueError
            If the file breaks a rule; the message names both.
        OSError
            If it cannot be read.
        """
        known = [one.name for one in fields(cls) if one.name != "name"]
        try:
            stated = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            for key in stated:
                if key not in known:
                    raise ValueError(f"an appetite has no key {key!r}.{suggestion(key, known)}")
            if "max_epsilon" not in stated:
                raise ValueError("max_epsilon must be given.")
            return cls(**stated, name=Path(path).name)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None

    @property
    def words(self) -> str:
        """All entries in a line."""
        return ", ".join(f"{one.name} {getattr(self, one.name)}" for one in fields(self))

    def faults(self, guarantee: PrivacyGuarantee) -> Iterator[AppetiteError]:
        """Yield an error for each rule that a guarantee breaks by itself."""
        n, status = guarantee.n_protected, guarantee.status
        if weakest_status([self.status, status]) != self.status:
            yield self._error("status", f"a guarantee of the status {status!r}", guarantee)
        if n is not None and n < self.min_records:
            yield self._error("min_records", f"a result about {n:,}", guarantee)
        yield from self._beyond(guarantee, (guarantee.epsilon, guarantee.delta))

    def require(self, guarantee: PrivacyGuarantee) -> None:
        """Raise AppetiteError if a guarantee breaks a rule by itself."""
        for fault in self.faults(guarantee):
            raise fault

    def require_room(
        self, totals: Totals, requests: Sequence[Entry], settings: LedgerSettings
    ) -> None:
        """Raise AppetiteError unless all requests fit together, after what a ledger holds."""
        for request in requests:
            key = budget_of(settings, request.dataset, proved=request.proved)
            sums = totals.get(key, NOTHING).plus(request)
            plain = float_above(sums.epsilon), float_above(sums.delta)
            # Each pair is a true statement about all charges: one within the limits is enough.
            faults = [
                [*self._beyond(request, pair)] for pair in (plain, spent_pair(sums, settings))
            ]
            if all(faults):
                raise faults[-1][0]
            totals = added_up([request], settings, totals)

    def _beyond(
        self, request: PrivacyGuarantee | Entry, total: tuple[float, float]
    ) -> Iterator[AppetiteError]:
        """Yield an error for an epsilon and a delta that are too large, with all charges before."""
        for quantity, value in zip(("epsilon", "delta"), total, strict=True):
            own, limit = getattr(request, quantity), getattr(self, f"max_{quantity}")
            if value > limit:
                asked = f"{quantity} = {own!r}"
                asked += f", with earlier charges {value!r}" if value > own else ""
                earlier = exact_sum([value]) - exact_sum([own]) if value > own else NOTHING.epsilon
                left = remaining(earlier, limit)
                yield self._error(f"max_{quantity}", asked, request, quantity, own, left)

    def _error(
        self,
        rule: str,
        asked: str,
        request: PrivacyGuarantee | Entry,
        quantity: str = "epsilon",
        requested: float = math.inf,
        left: float = 0.0,
    ) -> AppetiteError:
        dataset = request.dataset if isinstance(request, Entry) else ""
        named = f"{rule} = {getattr(self, rule)} of {self.name}"
        return AppetiteError(requested, left, dataset, quantity, request.status, named, asked)
