"""The ledger of what was spent, and the budget it may not exceed."""

from __future__ import annotations

import getpass
import html
import math
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from skdpsurv.checks import boolean, choice, fraction, instance, list_of, optional, positive_number
from skdpsurv.privacy.budget import (
    COMPOSITIONS,
    BudgetExceededError,
    Entry,
    Sums,
    Terms,
    added,
    dataset_name,
    exact_sum,
    float_above,
    largest_pure,
    remaining,
    spent_pair,
    text,
)
from skdpsurv.privacy.chain import Receipt, digest
from skdpsurv.privacy.composition import compose
from skdpsurv.privacy.concentrated import MARGIN, SLACK, epsilon_at
from skdpsurv.privacy.guarantee import PrivacyGuarantee, weakest_status
from skdpsurv.privacy.ledger import Ledger, MemoryLedger, verify

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PrivacyAccountant"]

_DEFAULT_DATASET = "default"


class _Omitted(float):
    """A default that can be told from the same number given by the caller, and prints as it."""


_UNLIMITED = _Omitted("inf")
_PURE = _Omitted(0.0)


def _of_terms(name: str, doc: str) -> property:
    return property(lambda self: getattr(self._ledger.terms, name), doc=doc)


def _of_place(name: str, doc: str) -> property:
    # A ledger in memory has no place, and a place is a file or a server.
    return property(lambda self: getattr(getattr(self._ledger, "place", None), name, None), doc=doc)


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
        Budget of each data set for delta, in [0, 1). 0 with an infinite epsilon is no limit.
    path : str or os.PathLike, optional
        SQLite file that keeps the ledger. Needed for a budget that outlives this process or is
        shared by worker processes (``n_jobs=2``). With ``epsilon`` the ledger is made where there
        is no file; without, it must be there. What else is given must be what an existing ledger
        was made with; what is omitted is taken from it. The file must be on a file system with
        working locks, and stays beside its lock, ``path + ".lock"``.
    rehearsal : bool, optional
        Whether fits that promise nothing may be tried out on this ledger: what is not proved
        (seeded, asymptotic, without guarantee) then stands apart, at its nominal epsilon, in a
        sum of its own (:meth:`rehearsed`) with the same limits, and leaves the proved spend
        alone. By default False, and such fits cost infinity, as they promise nothing.
    charge_refusals : bool, optional
        Whether a fit that is refused for what its records hold is charged as if it had run. For
        services that fit on behalf of others, who could otherwise learn from refusals for
        nothing. By default False.
    composition : {"basic", "renyi"}, optional
        How charges add up. "basic", the default: epsilons, and deltas. "renyi": Renyi divergences
        of one order, up to what ``epsilon`` at ``delta`` is worth; charges without a delta also by
        their epsilons alone, whichever lets more pass. For many fits with a delta, each of which
        says its rho: three of (1, 1e-6) fill a basic budget of (3, 3e-6); one of (3, 1e-6) holds
        seven of them by Renyi divergences. Needs a finite epsilon and a positive delta.
    url : str, optional
        In place of ``path``: the database that keeps the ledger, for people on several machines,
        ``"postgresql://user@host/database"``. One database keeps one ledger, in its schema
        ``skdpsurv``. No password may stand in it (use ``~/.pgpass``). Needs the extra ``server``.
    purpose : str, default=""
        What the charges are for; kept with each of them.
    who : str, optional
        Who charges; kept with each charge. By default the operating system's name of the user.

    Raises
    ------
    ValueError
        If a budget is out of range, or ``path`` holds a ledger that was made otherwise, or
        something else.
    FileNotFoundError
        If there is no ledger at ``path`` and no ``epsilon`` to make one.

    Notes
    -----
    Basic composition: epsilons add up, and so do deltas (:meth:`epsilon_at` says what optimal
    composition makes of them). The Renyi filter [1]_ is a theorem about one order, which is chosen
    from epsilon and delta when the ledger is made, and about charges that are chosen in view of
    earlier results, as basic composition is.

    Numbers count as the decimals they print as, and sums are exact: ten times 0.1 fills a budget
    of 1 and leaves nothing. Budgets are per data set, named by the caller (:meth:`for_dataset`);
    whether two data sets share people is for the caller to know.

    Without a path, threads of one process share the ledger safely. A copy that reaches another
    process, by pickle or fork, neither charges nor knows what was charged. Unpickled in the
    process where the original lives it is the original again, so that models fitted by workers
    come home. With a path, an accountant knows its ledger: it refuses a file that was made anew,
    replaced, or restored from an older copy. A pickle holds no entry in either case.

    References
    ----------
    .. [1] V. Feldman and T. Zrnic, "Individual privacy accounting via a Renyi filter", NeurIPS
       2021. Theorem 3.1.

    Examples
    --------
    >>> from skdpsurv.privacy import PrivacyAccountant, PrivacyGuarantee
    >>> accountant = PrivacyAccountant(epsilon=1.0)
    >>> receipt = accountant.charge(PrivacyGuarantee(0.75, mechanism="lattice Laplace"))
    >>> accountant.spent(), accountant.remaining()
    (0.75, 0.25)
    >>> accountant.charge(PrivacyGuarantee(0.5))
    Traceback (most recent call last):
    ...
    skdpsurv.privacy.budget.BudgetExceededError: The privacy budget of data set 'default' does \
not allow this: it asks for epsilon=0.5, but only 0.25 is left. Nothing was charged.
    """

    #: Who knows what fits charge, which nothing here does: the floor that knows estimators enters
    #: its function.
    _charges_of: ClassVar[Callable[..., list[PrivacyGuarantee]]]

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
        terms = Terms(
            positive_number("epsilon", epsilon, allow_inf=True),
            fraction("delta", delta, closed="left"),
            bool(rehearsal),
            bool(charge_refusals),
            composition or "basic",
        )
        self._dataset = _DEFAULT_DATASET
        self._purpose = text("purpose", purpose)
        self._who = None if who is None else text("who", who)
        if path is None and url is None:
            self._ledger: Ledger = MemoryLedger(terms.settled())
            return
        arguments = (epsilon, delta, rehearsal, charge_refusals, composition)
        given = {
            field: value
            for field, value, argument in zip(Terms._fields, terms, arguments, strict=False)
            if argument is not None and not isinstance(argument, _Omitted)
        }
        self._ledger = _opened(path, url, given)

    epsilon = _of_terms("epsilon", "Budget of each data set.")
    delta = _of_terms("delta", "Budget of each data set for delta.")
    rehearsal = _of_terms(
        "rehearsal", "Whether what is not proved stands apart, at its nominal epsilon."
    )
    charge_refusals = _of_terms(
        "charge_refusals",
        "Whether a fit that is refused for what its records hold is charged as if it had run.",
    )
    composition = _of_terms("composition", 'How charges add up: "basic" or "renyi".')
    path = _of_place("path", "Absolute path of the SQLite ledger, links resolved, or None.")
    url = _of_place("url", "Address of the server that keeps the ledger, or None.")

    @property
    def dataset(self) -> str:
        """Name of the data set that this accountant charges unless told otherwise."""
        return self._dataset

    @property
    def purpose(self) -> str:
        """What the charges of this accountant are for."""
        return self._purpose

    def for_dataset(self, name: str) -> PrivacyAccountant:
        """Return an accountant on the same ledger that charges another data set.

        Parameters
        ----------
        name : str
            Name of the data set. Each has the full budget of this ledger for itself: give one
            name to data about the same people. White space counts as one space, at the ends as
            nothing; how an accent is encoded does not count (Unicode's form NFC is kept), and
            characters that cannot be seen are refused. Letters that look alike are not found.

        Returns
        -------
        PrivacyAccountant
        """
        return _restore(self._ledger, dataset_name(name), self._purpose, self._who)

    def for_purpose(self, purpose: str) -> PrivacyAccountant:
        """Return an accountant on the same ledger whose charges say another purpose.

        Parameters
        ----------
        purpose : str
            Such as "interim analysis, protocol 7". It is kept with each charge.

        Returns
        -------
        PrivacyAccountant
        """
        return _restore(self._ledger, self._dataset, text("purpose", purpose), self._who)

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
    ) -> Receipt:
        """Record a guarantee, or raise and record nothing.

        What is proved costs its epsilon. What is not costs infinity, or stands apart in a ledger
        for rehearsals. Check and charge are one step: among threads, and with a path among
        processes, no interleaving overspends the budget.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What is about to be released.
        dataset : str, optional
            Name of the data set; this accountant's own if omitted.
        estimator : str, default=""
            Name of the estimator, for the table.

        Returns
        -------
        Receipt
            How far the ledger had come with this charge: ``ledger`` (its identity), ``entries``
            and ``hash``. Public; :meth:`verify` holds the ledger against it later.

        Raises
        ------
        BudgetExceededError
            If it does not fit.
        RuntimeError
            If this is a copy, in another process, of an accountant without a path; if the ledger
            cannot be used.
        """
        return self._ledger.charge(self._entry(guarantee, dataset, estimator))

    def charge_parallel(
        self,
        guarantees: Sequence[PrivacyGuarantee],
        *,
        disjoint: bool,
        dataset: str | None = None,
        estimator: str = "",
    ) -> Receipt:
        """Charge mechanisms run on disjoint parts of the data: the largest epsilon and delta.

        One part that is not proved makes the whole cost infinity; in a ledger for rehearsals the
        proved parts are one entry, and the others another.

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

        Returns
        -------
        Receipt
            As of :meth:`charge`.

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
        guarantees = list(guarantees)
        list_of(instance(PrivacyGuarantee))("guarantees", guarantees)
        if not guarantees:
            raise ValueError("guarantees must hold at least one PrivacyGuarantee.")
        if len({g.neighbours for g in guarantees}) > 1:
            raise ValueError("guarantees must all be for the same neighbours.")
        groups = [guarantees]
        if self.rehearsal:
            # Together they would be one rehearsal, and the proved parts, which are released
            # for good, would cost nothing.
            groups = [[g for g in guarantees if (g.status == "proved") == p] for p in (True, False)]
        return self._ledger.charge(
            *(self._entry_of_parts(group, dataset, estimator) for group in groups if group)
        )

    def spent(self) -> float:
        """Return the sum of the epsilons charged to this accountant's data set.

        Infinite once anything that is not proved was charged; rehearsals are not counted. With
        ``composition="renyi"`` what the sum of divergences is worth at :attr:`delta`, if that is
        less, or the deltas add up to more. It is one statement with :meth:`spent_delta`, and none
        without it.

        Returns
        -------
        float
            The exact sum, rounded up where no float prints as it.
        """
        return spent_pair(self._sums(), self._ledger.terms)[0]

    def spent_delta(self) -> float:
        """Return the sum of the deltas charged to this accountant's data set.

        With ``composition="renyi"`` it is that of the budget, once, wherever :meth:`spent` is what
        divergences are worth at it: also if no charge has a delta.

        Returns
        -------
        float
            The exact sum, rounded up where no float prints as it.
        """
        return spent_pair(self._sums(), self._ledger.terms)[1]

    def rehearsed(self) -> float:
        """Return the sum of the nominal epsilons of this data set's rehearsals.

        They promise nothing: it is what they would have spent, had they been proved.

        Returns
        -------
        float
            0.0 in a ledger that is not for rehearsals.
        """
        if not self.rehearsal:
            return 0.0
        return float_above(self._sums(proved=False).epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon at which everything charged to this data set holds with ``delta``.

        Infinite once anything that is not proved was charged; rehearsals are not counted.

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
        return compose(
            [
                (entry.epsilon, entry.delta)
                for entry in self._ledger.entries()
                if entry.dataset == self._dataset and (entry.proved or not self.rehearsal)
            ],
            delta,
        )

    def remaining(self, delta: float = 0.0) -> float:
        """Return what is left of this data set's epsilon; infinite if the budget is.

        Parameters
        ----------
        delta : float, default=0.0
            Of the charge that is asked about, which says its rho.

        Returns
        -------
        float
            Rounded down where no float prints as it: a charge of this much fits. 0 where there is
            no room for such a delta.
        """
        fraction("delta", delta, closed="left")
        sums, terms = self._sums(), self._ledger.terms
        if terms.order and delta:
            left = remaining(sums.renyi, terms.room)
            rho = left / terms.order / MARGIN**3
            return max(0.0, epsilon_at(rho, delta) / MARGIN**2 - 2.0 * SLACK) if rho else 0.0
        if terms.order:
            return largest_pure(sums, terms)
        limited = not math.isinf(terms.epsilon) or terms.delta > 0.0
        if limited and added(sums.delta, delta) > exact_sum([terms.delta]):
            return 0.0
        return remaining(sums.epsilon, terms.epsilon)

    def entries(self) -> pd.DataFrame:
        """Return the whole ledger, all data sets, oldest entry first.

        Returns
        -------
        pandas.DataFrame
            Columns ``when`` (ISO 8601, UTC), ``estimator``, ``mechanism``, ``epsilon``,
            ``delta``, ``status``, ``dataset``, ``neighbours``, ``who``, ``purpose``, and
            ``guarantee``, a hash of all that was promised. The epsilon is what was charged; so is
            ``renyi``, a column where the composition is. Of a ledger that was moved also each step
            of that, which costs nothing: status "closed", "moved" or "opened", and the place for a
            mechanism.
        """
        import pandas as pd

        table = pd.DataFrame(self._ledger.entries(), columns=list(Entry._fields))
        table = table.astype({"epsilon": float, "delta": float, "renyi": float})
        return table if self._ledger.terms.order else table.drop(columns="renyi")

    def plan(self, fits: Iterable[Sequence[Any]]) -> pd.DataFrame:
        """Return what fits would charge to this data set, one after another; nothing is spent.

        Parameters
        ----------
        fits : iterable of (estimator, X, y) or (estimator, X, y, options)
            A private estimator, `PrivateSearchCV`, a pipeline that ends in a private step, or a
            `GridSearchCV` or `RandomizedSearchCV` of one, each of whose fits is a charge. Only what
            is public of the records is looked at. ``options``: further arguments of ``fit``.

        Returns
        -------
        pandas.DataFrame
            A row for each: ``estimator``; ``charges``, how many; the sums of their ``epsilon`` and
            ``delta``; the weakest ``status``; ``allowed``, how many of them the budget has room
            for; and ``remaining``, the epsilon that is left after these.

        Examples
        --------
        >>> from sklearn.model_selection import GridSearchCV
        >>> from skdpsurv import DPLogisticRegression
        >>> from skdpsurv.privacy import PrivacyAccountant
        >>> X, y = [[0.0], [0.5], [0.25], [0.75]] * 25, [0, 1] * 50
        >>> model = DPLogisticRegression(0.5, classes=[0, 1])
        >>> search = GridSearchCV(model, {"alpha": [0.01, 0.1]}, cv=3)
        >>> table = PrivacyAccountant(epsilon=2.0).plan([(model, X, y), (search, X, y)])
        >>> table[["charges", "epsilon", "allowed", "remaining"]].values.tolist()
        [[1.0, 0.5, 1.0, 1.5], [7.0, 3.5, 3.0, 0.0]]
        """
        import pandas as pd

        copy = MemoryLedger(self._ledger.terms, self._ledger.entries())
        rehearsed = _restore(copy, self._dataset)
        rows = []
        for fit in fits:
            estimator, X, y, *options = fit
            charges = self._charges_of(estimator, X, y, *options)
            allowed = 0
            for charge in charges:
                try:
                    rehearsed.charge(charge)
                except BudgetExceededError:
                    break
                allowed += 1
            rows.append(
                {
                    "estimator": type(estimator).__name__,
                    "charges": len(charges),
                    "epsilon": float_above(exact_sum(charge.epsilon for charge in charges)),
                    "delta": float_above(exact_sum(charge.delta for charge in charges)),
                    "status": weakest_status(charge.status for charge in charges),
                    "allowed": allowed,
                    "remaining": rehearsed.remaining(),
                }
            )
        columns = ["estimator", "charges", "epsilon", "delta", "status", "allowed", "remaining"]
        return pd.DataFrame(rows, columns=columns)

    def verify(self, *releases: object) -> None:
        """Check that the ledger still holds what it held when releases were charged to it.

        Entries are chained by hashes, from the ledger's terms on, and each release carries the hash
        of all that came before it. A ledger that was edited, shortened, or put together anew, or
        has another budget than it had, cannot have the same.

        An entry holds a hash of the whole guarantee, and a release must state that one. The values
        of a release are drawn after the charge, and no entry knows them: whoever changes a
        release's values, or puts other ones under its guarantee and receipt, is not found here,
        unless both are shown at once. Of a release that one does not trust, ask whoever made it.

        Parameters
        ----------
        *releases : Release or Receipt
            Made by fits that this ledger was charged for. Without any, only the chain itself is
            checked: whoever can write to a ledger can make another whole chain.

        Raises
        ------
        ValueError
            If an entry does not fit its hash, or a release the ledger; if two releases with
            different values have one receipt.

        Examples
        --------
        >>> from skdpsurv.privacy import PrivacyAccountant, PrivacyGuarantee
        >>> accountant = PrivacyAccountant(epsilon=1.0)
        >>> receipt = accountant.charge(PrivacyGuarantee(0.5))
        >>> receipt.entries
        1
        >>> accountant.verify(receipt)
        """
        verify(self._ledger, releases)

    def _holds(self, receipt: Receipt | None) -> bool:
        """Say whether a receipt is of a charge to this ledger and data set."""
        if receipt is None or receipt.ledger != self._ledger.identity:
            return False
        charge = self._ledger.entries()[max(receipt.entries - 1, 0) : receipt.entries]
        return any(entry.dataset == self._dataset for entry in charge)

    def _sums(self, *, proved: bool = True) -> Sums:
        return self._ledger.sums(self._dataset, proved=proved)

    def _entry_of_parts(
        self, parts: Sequence[PrivacyGuarantee], dataset: str | None, estimator: str
    ) -> Entry:
        entry = self._entry(_together(parts), dataset, estimator)
        order = self._ledger.terms.order
        if not order or math.isinf(entry.epsilon):
            return entry
        return entry._replace(renyi=max(part.renyi_at(order) for part in parts))

    def _entry(self, guarantee: PrivacyGuarantee, dataset: str | None, estimator: str) -> Entry:
        instance(PrivacyGuarantee)("guarantee", guarantee)
        counts = self.rehearsal or guarantee.status == "proved"
        order = self._ledger.terms.order
        return Entry(
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            estimator=text("estimator", str(estimator)),
            mechanism=text("mechanism", guarantee.mechanism),
            epsilon=guarantee.epsilon + 0.0 if counts else math.inf,  # no -0.0
            delta=guarantee.delta + 0.0,
            status=guarantee.status,
            dataset=self._dataset if dataset is None else dataset_name(dataset),
            renyi=guarantee.renyi_at(order) if order and counts else math.inf,
            neighbours=text("neighbours", guarantee.neighbours),
            who=user_name() if self._who is None else self._who,
            purpose=self._purpose,
            guarantee=digest(guarantee.to_dict()),
        )

    def __sklearn_clone__(self) -> PrivacyAccountant:
        # A clone with a ledger of its own would let every fold of a grid search spend the budget.
        return self

    def __reduce__(self) -> tuple[object, tuple[Ledger, str, str, str | None]]:
        return _restore, (self._ledger, self._dataset, self._purpose, self._who)

    def __repr__(self) -> str:
        shown = [f"epsilon={self.epsilon:g}", f"delta={self.delta:g}"]
        shown += [
            f"{name}=True" for name in ("rehearsal", "charge_refusals") if getattr(self, name)
        ]
        if self.composition != "basic":
            shown.append(f"composition={self.composition!r}")
        if self.path is not None:
            shown.append(f"path={self.path!r}")
        if self.url is not None:
            shown.append(f"url={self.url!r}")
        if self._dataset != _DEFAULT_DATASET:
            shown.append(f"dataset={self._dataset!r}")
        try:
            shown.append(f"spent={self.spent():g}")
            if self.rehearsal:
                shown.append(f"rehearsed={self.rehearsed():g}")
        except (OSError, RuntimeError, ValueError):
            # Printing a model must work where the ledger is out of reach.
            detached = isinstance(self._ledger, MemoryLedger)
            shown.append("detached" if detached else "ledger unavailable")
        return f"PrivacyAccountant({', '.join(shown)})"

    def _repr_html_(self) -> str:
        caption = f"<p>{html.escape(repr(self))}</p>"
        try:
            table: str = self.entries().to_html(index=False)
        except (OSError, RuntimeError, ValueError):
            return caption
        return caption + table


def _restore(
    ledger: Ledger, dataset: str, purpose: str = "", who: str | None = None
) -> PrivacyAccountant:
    accountant = PrivacyAccountant.__new__(PrivacyAccountant)
    accountant._ledger = ledger
    accountant._dataset = dataset
    accountant._purpose = purpose
    accountant._who = who
    return accountant


def _opened(
    path: str | os.PathLike[str] | None, url: str | None, given: dict[str, object]
) -> Ledger:
    # Databases are not needed for a ledger in memory, and take a while to import.
    from skdpsurv.privacy.postgresql_server import PostgreSQLServer
    from skdpsurv.privacy.sql_ledger import SQLLedger
    from skdpsurv.privacy.sqlite_file import SQLiteFile

    if path is not None and url is not None:
        raise ValueError("path and url must not be given together: a ledger is in one place.")
    if url is not None:
        instance(str, "a str or None")("url", url)
        return SQLLedger.open(PostgreSQLServer(url), given)
    name = os.fspath(path) if path is not None else ""
    instance(str, "a str or an os.PathLike of str")("path", name)
    return SQLLedger.open(SQLiteFile(name), given)


def user_name() -> str:
    """Return the name of the operating system's user, if there is one."""
    try:
        return text("who", getpass.getuser())
    except (ImportError, KeyError, OSError, ValueError):
        return ""


def _together(parts: Sequence[PrivacyGuarantee]) -> PrivacyGuarantee:
    mechanisms = ", ".join(dict.fromkeys(g.mechanism for g in parts if g.mechanism))
    return PrivacyGuarantee(
        epsilon=max(g.epsilon for g in parts),
        delta=max(g.delta for g in parts),
        neighbours=parts[0].neighbours,
        mechanism=f"{len(parts)} disjoint parts: {mechanisms or 'unnamed'}",
        status=weakest_status(g.status for g in parts),
    )
