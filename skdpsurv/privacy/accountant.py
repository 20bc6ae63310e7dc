"""The ledger of what was spent, and the budget it may not exceed."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skdpsurv.privacy.composition import compose
from skdpsurv.privacy.domain import fraction, positive_number
from skdpsurv.privacy.guarantee import PrivacyGuarantee, weakest_status
from skdpsurv.privacy.ledger import (
    Budget,
    BudgetExceededError,
    Entry,
    Ledger,
    MemoryLedger,
    SQLiteLedger,
    remaining,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BudgetExceededError", "PrivacyAccountant"]

_DEFAULT_DATASET = "default"


class _Omitted(float):
    """A default that can be told from the same number given by the caller, and prints as it."""


_UNLIMITED = _Omitted("inf")
_PURE = _Omitted(0.0)


class PrivacyAccountant:
    """Keep the ledger of privacy spent on some data, and refuse what exceeds the budget.

    Give one accountant to every estimator fitted on the same people
    (``accountant=PrivacyAccountant(epsilon=10)``): each ``fit`` is charged, epsilons add up, and
    a fit that would exceed the budget raises :class:`BudgetExceededError` before it sees a
    record. Scikit-learn's ``clone`` keeps the same ledger, so a grid search pays for every fit.

    Parameters
    ----------
    epsilon : float, default=inf
        Budget of each data set. ``inf`` records without limit. Fixed when the ledger is made.
    delta : float, default=0.0
        Budget of each data set for delta, in [0, 1).
    path : str or os.PathLike, optional
        SQLite file that keeps the ledger, made if missing. Needed for a budget that outlives
        this process or is shared by worker processes (``n_jobs=2``). On an existing ledger
        epsilon and delta, if given, must be what it was made with; if omitted, the stored
        budget is adopted. The file must be on a file system with working locks.

    Raises
    ------
    ValueError
        If a budget is out of range, or ``path`` holds a ledger with another budget.

    Notes
    -----
    Composition is basic: epsilons add up, and so do deltas (:meth:`epsilon_at` says what optimal
    composition makes of them). Budgets are per data set, named by
    the caller (:meth:`for_dataset`); whether two data sets share people is for the caller to know.
    A fit that is not private (epsilon=inf) is charged infinity; a seeded one its nominal epsilon.

    Without a path, threads of one process share the ledger safely. A copy that reaches another
    process, by pickle or fork, can be read there but refuses to charge. Unpickled in the process
    where the original lives it is the original again, so that models fitted by workers come home.

    Examples
    --------
    >>> from skdpsurv.privacy import PrivacyAccountant, PrivacyGuarantee
    >>> accountant = PrivacyAccountant(epsilon=1.0)
    >>> accountant.charge(PrivacyGuarantee(0.75, mechanism="lattice Laplace"))
    >>> accountant.spent(), accountant.remaining()
    (0.75, 0.25)
    >>> accountant.charge(PrivacyGuarantee(0.5))
    Traceback (most recent call last):
    ...
    skdpsurv.privacy.ledger.BudgetExceededError: The privacy budget of data set 'default' does \
not allow this: it asks for epsilon=0.5, but only 0.25 is left. Nothing was charged.
    """

    def __init__(
        self,
        epsilon: float = _UNLIMITED,
        delta: float = _PURE,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        asked_epsilon = positive_number("epsilon", epsilon, allow_inf=True)
        asked_delta = fraction("delta", delta, open_low=False)
        self._dataset = _DEFAULT_DATASET
        self._ledger: Ledger
        if path is None:
            self._ledger = MemoryLedger(Budget(asked_epsilon, asked_delta))
            return
        name = os.fspath(path)
        if not isinstance(name, str):
            raise TypeError("path must be a str or an os.PathLike of str.")
        self._ledger = SQLiteLedger.open(
            os.path.abspath(name),
            None if isinstance(epsilon, _Omitted) else asked_epsilon,
            None if isinstance(delta, _Omitted) else asked_delta,
        )

    @property
    def epsilon(self) -> float:
        """Budget of each data set."""
        return self._ledger.budget.epsilon

    @property
    def delta(self) -> float:
        """Budget of each data set for delta."""
        return self._ledger.budget.delta

    @property
    def dataset(self) -> str:
        """Name of the data set that this accountant charges unless told otherwise."""
        return self._dataset

    @property
    def path(self) -> str | None:
        """Absolute path of the SQLite ledger; None for a ledger in memory."""
        return self._ledger.path if isinstance(self._ledger, SQLiteLedger) else None

    def for_dataset(self, name: str) -> PrivacyAccountant:
        """Return an accountant on the same ledger that charges another data set.

        Parameters
        ----------
        name : str
            Name of the data set. Each has the full budget of this ledger for itself: give one
            name to data about the same people.

        Returns
        -------
        PrivacyAccountant
        """
        view = PrivacyAccountant.__new__(PrivacyAccountant)
        view._ledger = self._ledger
        view._dataset = _dataset_name(name)
        return view

    def check(self, guarantee: PrivacyGuarantee, dataset: str | None = None) -> None:
        """Raise if the guarantee would not fit the budget now; record nothing.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
        dataset : str, optional
            Name of the data set; this accountant's own if omitted.

        Raises
        ------
        BudgetExceededError
            If it would not fit.
        RuntimeError
            If this is a copy, in another process, of an accountant without a path.
        """
        self._ledger.check(self._entry(guarantee, dataset, ""))

    def charge(
        self, guarantee: PrivacyGuarantee, dataset: str | None = None, *, estimator: str = ""
    ) -> None:
        """Record a guarantee, or raise and record nothing.

        Check and charge are one step: among threads, and with a path among processes, no
        interleaving overspends the budget.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What is about to be released.
        dataset : str, optional
            Name of the data set; this accountant's own if omitted.
        estimator : str, default=""
            Name of the estimator, for the table.

        Raises
        ------
        BudgetExceededError
            If it does not fit.
        RuntimeError
            If this is a copy, in another process, of an accountant without a path.
        """
        self._ledger.charge(self._entry(guarantee, dataset, estimator))

    def charge_parallel(
        self,
        guarantees: Sequence[PrivacyGuarantee],
        *,
        disjoint: bool,
        dataset: str | None = None,
        estimator: str = "",
    ) -> None:
        """Charge mechanisms run on disjoint parts of the data: the largest epsilon and delta.

        Parameters
        ----------
        guarantees : sequence of PrivacyGuarantee
            One for each part; the same neighbours in all.
        disjoint : bool
            Must be True: the caller's statement that no record is in two parts, and that which
            part a record is in depends on its position and on public values only. Parts chosen
            by a record's own values (by sex, by outcome) do not qualify under replace-one
            neighbours, since a replaced record may change the part it leaves and the one it joins.
        dataset : str, optional
            Name of the data set; this accountant's own if omitted.
        estimator : str, default=""
            Name of the estimator, for the table.

        Raises
        ------
        ValueError
            If ``disjoint`` is not True, there are no guarantees, or their neighbours differ.
        BudgetExceededError
            If it does not fit.

        References
        ----------
        McSherry, F. (2009). Privacy integrated queries. *SIGMOD*, 19-30. Theorem 4.
        """
        if disjoint is not True:
            raise ValueError(
                "disjoint must be True: parallel composition holds only for parts of the data "
                "that share no record. Otherwise charge each guarantee."
            )
        if not guarantees:
            raise ValueError("guarantees must hold at least one PrivacyGuarantee.")
        if len({g.neighbours for g in guarantees}) > 1:
            raise ValueError("guarantees must all be for the same neighbours.")
        mechanisms = ", ".join(dict.fromkeys(g.mechanism for g in guarantees if g.mechanism))
        together = PrivacyGuarantee(
            epsilon=max(g.epsilon for g in guarantees),
            delta=max(g.delta for g in guarantees),
            neighbours=guarantees[0].neighbours,
            mechanism=f"{len(guarantees)} disjoint parts: {mechanisms or 'unnamed'}",
            status=weakest_status(g.status for g in guarantees),
        )
        self.charge(together, dataset, estimator=estimator)

    def spent(self) -> float:
        """Return the sum of the epsilons charged to this accountant's data set.

        Returns
        -------
        float
        """
        return math.fsum(e.epsilon for e in self._own_entries())

    def spent_delta(self) -> float:
        """Return the sum of the deltas charged to this accountant's data set.

        Returns
        -------
        float
        """
        return math.fsum(e.delta for e in self._own_entries())

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon at which everything charged to this data set holds with ``delta``.

        By optimal composition (:func:`~skdpsurv.privacy.compose`, which needs the extra
        ``accounting``), far below :meth:`spent` after many small charges. It is a statement about
        epsilons that were fixed before the first result was seen. The budget is enforced by plain
        sums, which hold for epsilons chosen in view of earlier results too.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
        """
        return compose([(e.epsilon, e.delta) for e in self._own_entries()], delta)

    def remaining(self) -> float:
        """Return what is left of this data set's epsilon; infinite if the budget is.

        Returns
        -------
        float
        """
        return remaining(self.spent(), self.epsilon)

    def entries(self) -> pd.DataFrame:
        """Return the whole ledger, all data sets, oldest entry first.

        Returns
        -------
        pandas.DataFrame
            Columns ``when`` (ISO 8601, UTC), ``estimator``, ``mechanism``, ``epsilon``,
            ``delta``, ``status``, ``dataset``.
        """
        import pandas as pd

        table = pd.DataFrame(self._ledger.entries(), columns=list(Entry._fields))
        return table.astype({"epsilon": float, "delta": float})

    def _own_entries(self) -> list[Entry]:
        return [e for e in self._ledger.entries() if e.dataset == self._dataset]

    def _entry(self, guarantee: PrivacyGuarantee, dataset: str | None, estimator: str) -> Entry:
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(
                f"guarantee must be a PrivacyGuarantee, got {type(guarantee).__name__}."
            )
        return Entry(
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            estimator=str(estimator),
            mechanism=guarantee.mechanism,
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            status=guarantee.status,
            dataset=self._dataset if dataset is None else _dataset_name(dataset),
        )

    def __sklearn_clone__(self) -> PrivacyAccountant:
        # A clone with a ledger of its own would let every fold of a grid search spend the budget.
        return self

    def __reduce__(self) -> tuple[object, tuple[Ledger, str]]:
        return _restore, (self._ledger, self._dataset)

    def __repr__(self) -> str:
        shown = [f"epsilon={self.epsilon:g}", f"delta={self.delta:g}"]
        if self.path is not None:
            shown.append(f"path={self.path!r}")
        if self._dataset != _DEFAULT_DATASET:
            shown.append(f"dataset={self._dataset!r}")
        try:
            shown.append(f"spent={self.spent():g}")
        except (OSError, RuntimeError, ValueError):
            # Printing a model must work where the ledger is out of reach.
            shown.append("ledger unavailable")
        if self._is_detached():
            shown.append("detached")
        return f"PrivacyAccountant({', '.join(shown)})"

    def _repr_html_(self) -> str:
        caption = html.escape(repr(self))
        try:
            entries = self._ledger.entries()
        except (OSError, RuntimeError, ValueError):
            return f"<p>{caption}</p>"
        head = "".join(f"<th>{name}</th>" for name in Entry._fields)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(v))}</td>" for v in entry) + "</tr>"
            for entry in entries
        )
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )

    def _is_detached(self) -> bool:
        return isinstance(self._ledger, MemoryLedger) and self._ledger.detached


def _restore(ledger: Ledger, dataset: str) -> PrivacyAccountant:
    accountant = PrivacyAccountant.__new__(PrivacyAccountant)
    accountant._ledger = ledger
    accountant._dataset = dataset
    return accountant


def _dataset_name(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError("dataset must be a non-empty string.")
    return name


def _cell(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
