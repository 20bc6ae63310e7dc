"""The ledger of what was spent, and the budget it may not exceed."""

from __future__ import annotations

import copy
import html
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import compress
from operator import attrgetter
from pkgutil import resolve_name
from typing import Any

import pandas as pd

from skdpsurv.dp.appetite import RiskAppetite
from skdpsurv.dp.budget import (
    COMPOSITIONS,
    BudgetExceededError,
    Entry,
    LedgerSettings,
    Omitted,
    SpentSums,
    dataset_name,
    exact_sum,
    float_above,
    left_for,
    spent_pair,
    text,
)
from skdpsurv.dp.checks import (
    boolean,
    choice,
    fraction,
    instance,
    list_of,
    optional,
    positive_number,
)
from skdpsurv.dp.composition import compose
from skdpsurv.dp.guarantee import PrivacyGuarantee, weakest_status
from skdpsurv.dp.ledger import Ledger, MemoryLedger, Receipt, charge_of, digest, user_name, verify

_DEFAULT_DATASET = "default"
_UNLIMITED = Omitted("inf")
_PURE = Omitted(0.0)


def _read_only(attribute: str, doc: str) -> property:
    return property(attrgetter(attribute), doc=doc)


class PrivacyAccountant:
    """Keep the ledger of privacy spent on some data, and refuse what exceeds the budget.

    Give one accountant to every estimator fitted on the same people
    (``accountant=PrivacyAccountant(epsilon=10)``): each ``fit`` is charged, epsilons add up, and
    a fit that would exceed the budget raises :class:`BudgetExceededError` before it sees a
    record. Scikit-learn's ``clone`` keeps the same ledger, so a grid search pays for every fit.

    Parameters
    ----------
    epsilon, delta : float, default=inf and 0.0
        Budget of each data set, fixed when the ledger is made. A delta of 0 with an infinite
        epsilon is no limit.
    path : str or os.PathLike, optional
        SQLite file that keeps the ledger, for a budget that outlives this process or is shared by
        worker processes. With ``epsilon`` the ledger is made where there is no file; without, it
        must be there. An existing ledger must have been made with all arguments given; omitted
        ones are taken from it. The file system must have working locks, and the file stays beside
        its lock, ``path + ".lock"``.
    rehearsal : bool, default=False
        Count unproved fits (seeded, asymptotic, asserted, without guarantee) at their nominal
        epsilon, in a sum of their own with the same limits. Otherwise they cost infinity.
    charge_refusals : bool, default=False
        Charge a fit that is refused for the contents of its records as if it had run: for services
        that fit on behalf of others, who could learn from refusals. Nothing uncharged looks at
        records then: no plan, and no rehearsal.
    composition : {"basic", "renyi"}, default="basic"
        How charges add up. "basic": epsilons, and deltas. "renyi", for many fits with a delta:
        Renyi divergences of one order, up to those of ``epsilon`` at ``delta`` [1]_; charges
        without a delta also by their epsilons alone, whichever lets more pass.
    url : str, optional
        In place of ``path``: a database for people on several machines,
        ``"postgresql://user@host/database"``, which keeps one ledger, in its schema ``skdpsurv``.
        No password may stand in it (use ``~/.pgpass``). Needs the extra ``server``.
    purpose, who : str, optional
        Purpose of the charges, and who charges (by default the operating system's user name); kept
        with each of them.

    Raises
    ------
    ValueError
        If a budget is out of range, or there is a ledger with another one, or something else.
    FileNotFoundError
        If there is no ledger and no ``epsilon`` to make one.

    Notes
    -----
    Numbers count as the decimals they print as, and sums are exact. Without a path, threads of one
    process share the ledger; a copy in another process, by pickle or fork, can neither charge nor
    read it. With a path, a file that was made anew, replaced, or restored from an older copy is
    refused. A pickle holds no entry.

    References
    ----------
    .. [1] V. Feldman and T. Zrnic, "Individual privacy accounting via a Renyi filter", NeurIPS
       2021. Theorem 3.1: charges may be chosen in view of earlier results, the order not.

    Examples
    --------
    >>> from skdpsurv.dp import PrivacyAccountant, PrivacyGuarantee
    >>> accountant = PrivacyAccountant(epsilon=1.0)
    >>> receipt = accountant.charge(PrivacyGuarantee(0.75, mechanism="lattice Laplace"))
    >>> accountant.spent(), accountant.remaining()
    (0.75, 0.25)
    """

    def __init__(
        self,
        epsilon: float = _UNLIMITED,
        delta: float = _PURE,
        path: str | os.PathLike[str] | None = None,
        *,
        rehearsal: bool | None = None,
        charge_refusals: bool | None = None,
        composition: str | None = None,
        url: str | None = None,
        purpose: str = "",
        who: str | None = None,
    ) -> None:
        optional(choice(*COMPOSITIONS))("composition", composition)
        optional(boolean)("rehearsal", rehearsal)
        optional(boolean)("charge_refusals", charge_refusals)
        limit = positive_number("epsilon", epsilon, allow_inf=True)
        limit_delta = fraction("delta", delta, closed="left")
        flags = bool(rehearsal), bool(charge_refusals)
        settings = LedgerSettings(limit, limit_delta, *flags, composition or "basic")
        self._dataset = _DEFAULT_DATASET
        self._purpose = text("purpose", purpose)
        self._who = None if who is None else text("who", who)
        if path is None and url is None:
            self._ledger: Ledger = MemoryLedger(settings.completed())
            return
        arguments = (epsilon, delta, rehearsal, charge_refusals, composition)
        stated = [not (one is None or isinstance(one, Omitted)) for one in arguments]
        given = dict(compress(settings._asdict().items(), stated))
        # Databases take a while to import.
        from skdpsurv.dp.ledger_copy import ledger_at

        self._ledger = ledger_at(path, url, given)

    _appetite: RiskAppetite | None = None  # pickles of earlier versions have none

    epsilon = _read_only("_settings.epsilon", "Budget of each data set.")
    delta = _read_only("_settings.delta", "Budget of each data set for delta.")
    rehearsal = _read_only("_settings.rehearsal", "Whether what is not proved stands apart.")
    charge_refusals = _read_only("_settings.charge_refusals", "Whether refused fits are charged.")
    composition = _read_only("_settings.composition", 'How charges add up: "basic" or "renyi".')
    path = _read_only("_ledger.path", "Absolute path of the SQLite ledger, or None.")
    url = _read_only("_ledger.url", "Address of the server that keeps the ledger, or None.")
    dataset = _read_only("_dataset", "Name of the data set that is charged by default.")
    purpose = _read_only("_purpose", "What the charges of this accountant are for.")
    _settings = _read_only("_ledger.settings", "What the ledger was made with.")

    def for_dataset(self, name: str) -> PrivacyAccountant:
        """Return an accountant on the same ledger that charges another data set.

        Each name has the full budget for itself: give one name to data about the same people.
        White space counts as one space, and the encoding of an accent does not count. Characters
        that cannot be seen are refused.
        """
        return self._with(_dataset=dataset_name(name))

    def for_purpose(self, purpose: str) -> PrivacyAccountant:
        """Return an accountant on the same ledger whose charges say another purpose."""
        return self._with(_purpose=text("purpose", purpose))

    def within(self, appetite: RiskAppetite) -> PrivacyAccountant:
        """Return an accountant on the same ledger that refuses what an environment does."""
        return self._with(_appetite=instance(RiskAppetite)("appetite", appetite))

    def check(self, guarantee: PrivacyGuarantee, dataset: str | None = None) -> None:
        """Raise BudgetExceededError if a charge would not fit the budget now; record nothing."""
        self._ledger.check(self._entry([guarantee], dataset), appetite=self._appetite)

    def charge(
        self, guarantee: PrivacyGuarantee, dataset: str | None = None, *, estimator: str = ""
    ) -> Receipt:
        """Record a guarantee, or raise and record nothing.

        Proved guarantees cost their epsilon, others infinity (or their own sum in a ledger for
        rehearsals). Check and charge are one step: among threads, and with a path among processes,
        no interleaving overspends the budget.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            Guarantee of the result that is about to be released.
        dataset, estimator : str, optional
            Names of the data set, this accountant's own if omitted, and of the estimator.

        Returns
        -------
        Receipt
            Identity, number of entries and hash of the ledger. Public.

        Raises
        ------
        BudgetExceededError
            If it does not fit.
        RuntimeError
            If the ledger cannot be used.
        """
        entry = self._entry([guarantee], dataset, estimator)
        return self._ledger.pay(entry, appetite=self._appetite)

    def charge_parallel(
        self,
        guarantees: Sequence[PrivacyGuarantee],
        *,
        disjoint: bool,
        dataset: str | None = None,
        estimator: str = "",
    ) -> Receipt:
        """Charge mechanisms run on disjoint parts of the data: the largest epsilon and delta [1]_.

        One part that is not proved makes the whole cost infinity; in a ledger for rehearsals these
        parts are another entry.

        Parameters
        ----------
        guarantees : sequence of PrivacyGuarantee
            One for each part; the same neighbours in all.
        disjoint : bool
            Must be True: the caller states that no record is in two parts, and that a record's part
            depends on its position and on public values only. Parts chosen by a record's own values
            (by sex, by outcome) do not qualify under replace-one neighbours.
        dataset, estimator : str, optional
            As for :meth:`charge`, which returns and raises the same.

        References
        ----------
        .. [1] F. McSherry, "Privacy integrated queries", SIGMOD 2009. Theorem 4.
        """
        if disjoint is not True:
            raise ValueError(
                "disjoint must be True: the parts of the data must share no record. Otherwise "
                "charge each guarantee."
            )
        guarantees = list(guarantees)
        list_of(instance(PrivacyGuarantee))("guarantees", guarantees)
        if len({g.neighbours for g in guarantees}) != 1:
            raise ValueError("guarantees must be at least one, all for the same neighbours.")
        groups = [guarantees]
        if self.rehearsal:
            # Proved parts are released for good: one rehearsal of all would make them free.
            groups = [[g for g in guarantees if (g.status == "proved") == p] for p in (True, False)]
        entries = (self._entry(g, dataset, estimator) for g in groups if g)
        return self._ledger.pay(*entries, appetite=self._appetite)

    def spent(self) -> float:
        """Return the sum of the epsilons charged to this accountant's data set, rounded up.

        Infinite once anything that is not proved was charged; rehearsals are not counted. With
        ``composition="renyi"`` it is the epsilon of all divergences at :attr:`delta`, if that is
        less or the deltas exceed the budget: one statement with :meth:`spent_delta`.
        """
        return spent_pair(self._sums(), self._settings)[0]

    def spent_delta(self) -> float:
        """Return the sum of the deltas charged to this accountant's data set, rounded up.

        The budget's delta instead, if :meth:`spent` is the epsilon of divergences at it.
        """
        return spent_pair(self._sums(), self._settings)[1]

    def rehearsed(self) -> float:
        """Return the sum of the nominal epsilons of rehearsals, which promise nothing."""
        return float_above(self._sums(proved=False).epsilon) if self.rehearsal else 0.0

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon at which everything charged to this data set holds with ``delta``.

        By optimal composition (:func:`~skdpsurv.dp.compose`), which assumes that all epsilons were
        fixed before the first result was seen. The sums that enforce the budget assume nothing.
        """
        own = [entry for entry in self._ledger.entries() if entry.dataset == self._dataset]
        counted = [entry for entry in own if entry.proved or not self.rehearsal]
        return compose([(entry.epsilon, entry.delta) for entry in counted], delta)

    def remaining(self, delta: float = 0.0) -> float:
        """Return the rest of this data set's epsilon, rounded down; infinite if the budget is.

        Parameters
        ----------
        delta : float, default=0.0
            Delta of the next charge, which says its rho. If there is no room for it, 0 is left.
        """
        fraction("delta", delta, closed="left")
        return left_for(self._sums(), self._settings, delta)

    def entries(self) -> pd.DataFrame:
        """Return the whole ledger, all data sets, oldest entry first.

        Returns
        -------
        pandas.DataFrame
            Columns ``when`` (ISO 8601, UTC), ``estimator``, ``mechanism``, ``epsilon`` (as
            charged), ``delta``, ``status``, ``dataset``, ``neighbours``, ``who``, ``purpose``,
            ``guarantee`` (a hash of it), and ``renyi`` with that composition. A step of a move has
            status "closed", "moved" or "opened", and says where as its mechanism.
        """
        table = pd.DataFrame(self._ledger.entries(), columns=list(Entry._fields))
        table = table.astype({"epsilon": float, "delta": float, "renyi": float})
        return table if self._settings.order else table.drop(columns="renyi")

    def plan(self, fits: Iterable[Sequence[Any]]) -> pd.DataFrame:
        """Return the charges of future fits to this data set, in order; nothing is spent.

        Parameters
        ----------
        fits : iterable of (estimator, X, y) or (estimator, X, y, options)
            A private estimator, `PrivateSearchCV`, a pipeline that ends in a private step, or a
            `GridSearchCV` or `RandomizedSearchCV` of one, each of whose fits is a charge.
            ``options``: further arguments of ``fit``. Only the shape of the records is looked at,
            unless persons or out-of-core records must be counted, classes be read from y, or steps
            learn from X. If the ledger charges refusals, each row is taken for a person.

        Returns
        -------
        pandas.DataFrame
            A row for each: ``estimator``; ``charges``, how many; the sums of their ``epsilon`` and
            ``delta``; the weakest ``status``; ``allowed``, how many of them the budget has room
            for; and ``remaining``, the epsilon that is left after these.

        Raises
        ------
        ValueError
            If the ledger charges refusals, and records must be looked at. Or as ``fit`` does.
        """
        # Estimators are higher in the house.
        charges_of = resolve_name("skdpsurv.base.pipelines:charges_of")
        trial = self._with(_ledger=MemoryLedger(self._settings, self._ledger.entries()))
        rows = []
        for estimator, X, y, *options in fits:
            charges = charges_of(estimator, X, y, *options, ledger=self)
            allowed = 0
            with suppress(BudgetExceededError):
                for charge in charges:
                    trial.charge(charge)
                    allowed += 1
            rows.append(
                {
                    "estimator": type(estimator).__name__,
                    "charges": len(charges),
                    "epsilon": float_above(exact_sum(charge.epsilon for charge in charges)),
                    "delta": float_above(exact_sum(charge.delta for charge in charges)),
                    "status": weakest_status(charge.status for charge in charges),
                    "allowed": allowed,
                    "remaining": trial.remaining(),
                }
            )
        return pd.DataFrame(rows)

    def verify(self, *releases: object) -> None:
        """Check that the ledger still holds what it held when releases were charged to it.

        Each release carries the hash of the ledger's settings and of all entries up to its own,
        which has a hash of the guarantee that it states. Entries do not know values: two releases
        with one receipt are found only if both are given at once.

        Parameters
        ----------
        *releases : Release or Receipt
            Made by fits that this ledger was charged for. Without any, only the chain is checked,
            which whoever can write to a ledger can make anew.

        Raises
        ------
        ValueError
            If an entry does not fit its hash, or a release the ledger or another release.
        """
        verify(self._ledger, releases)

    def _holds(self, receipt: Receipt | None) -> bool:
        """Say whether a receipt is of a charge to this ledger and data set."""
        if receipt is None or receipt.ledger != self._ledger.identity:
            return False
        charge = self._ledger.entries()[max(receipt.entries - 1, 0) : receipt.entries]
        return any(entry.dataset == self._dataset for entry in charge)

    def _receipt_of(self, guarantee: PrivacyGuarantee) -> Receipt | None:
        """Return the receipt of the charge for a guarantee, or None if there is none.

        The hash of a guarantee stands in the entry: one with a nonce of its own is found again.
        """
        wanted = (self._dataset, digest(guarantee.to_dict()))
        found = [(entry.dataset, entry.guarantee) for entry in self._ledger.entries()]
        # The first receipt is that of the ledger without entries.
        return self._ledger.receipts()[found.index(wanted) + 1] if wanted in found else None

    def _sums(self, *, proved: bool = True) -> SpentSums:
        return self._ledger.sums(self._dataset, proved=proved)

    def _entry(
        self, parts: Sequence[PrivacyGuarantee], dataset: str | None, estimator: str = ""
    ) -> Entry:
        instance(PrivacyGuarantee)("guarantee", parts[0])
        return charge_of(
            parts,
            self._settings,
            self._appetite,
            dataset=self._dataset if dataset is None else dataset_name(dataset),
            estimator=text("estimator", str(estimator)),
            who=user_name() if self._who is None else self._who,
            purpose=self._purpose,
        )

    def __sklearn_clone__(self) -> PrivacyAccountant:
        # A clone with a ledger of its own would let every fold of a grid search spend the budget.
        return self

    def _with(self, **changes: Any) -> PrivacyAccountant:
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def __repr__(self) -> str:
        shown = [f"epsilon={self.epsilon:g}", f"delta={self.delta:g}"]
        for name in ("rehearsal", "charge_refusals", "composition", "path", "url", "dataset"):
            value = getattr(self, name)
            if value and value not in ("basic", _DEFAULT_DATASET):
                shown.append(f"{name}={value!r}")
        try:
            shown.append(f"spent={self.spent():g}")
            if self.rehearsal:
                shown.append(f"rehearsed={self.rehearsed():g}")
        except (OSError, RuntimeError, ValueError):
            # Printing a model must work where the ledger is out of reach.
            in_memory = isinstance(self._ledger, MemoryLedger)
            shown.append("detached" if in_memory else "ledger unavailable")
        return f"PrivacyAccountant({', '.join(shown)})"

    def _repr_html_(self) -> str:
        shown = f"<p>{html.escape(repr(self))}</p>"
        with suppress(OSError, RuntimeError, ValueError):
            shown += self.entries().to_html(index=False)
        return shown
