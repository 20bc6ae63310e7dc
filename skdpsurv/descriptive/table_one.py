"""DPTableOne: counts, shares, means, quartiles and differences of all columns by group."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from skdpsurv.base.tabular import TabularEstimator
from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.column_kind import ColumnKind
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.public_steps import raw_values
from skdpsurv.data.shape import Shape, require_in_memory
from skdpsurv.descriptive import column_tables
from skdpsurv.descriptive.column_tables import Cells, TableBlock
from skdpsurv.descriptive.printed import Printed, markdown
from skdpsurv.descriptive.released_moments import moments_of
from skdpsurv.descriptive.rules import check_grid, check_points, check_sizes, require_columns
from skdpsurv.descriptive.share_intervals import Estimated, Level, share
from skdpsurv.descriptive.solution import Sizes, Solved
from skdpsurv.descriptive.summary import Summary
from skdpsurv.dp import PrivacyAccountant, checks
from skdpsurv.dp.containers import is_frame
from skdpsurv.dp.input_errors import call_without_data
from skdpsurv.dp.plan import Plan, Sequential
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.references import WORDS, phrase
from skdpsurv.dp.stated_noise import LAPLACE
from skdpsurv.mechanisms.sums import Histograms
from skdpsurv.release import Release, check_parameters, released_array, stated_records
from skdpsurv.release.raw_rows import headline
from skdpsurv.release.simulation import TABLE, Margin
from skdpsurv.release.values import LARGEST_VARIANCE, released_noise

#: Half-width of shares of a group above which a fit is warned of.
MUCH = 0.15
ASSUMED = tuple(WORDS["assumptions"]["table_one"])


class DPTableOne(
    TabularEstimator,
    word="table",
    adds_up="columns",
    moments=moments_of,
    takes=("rows",),
    such_as={
        "columns": PublicColumns({"group": ["a", "b"], "number": (0, 1), "flag": bool}),
        "by": "group",
    },
):
    r"""Table 1 of a study: descriptive statistics of all columns by group, which protect everyone.

    Noisy counts of each column by group are released. Shares, means, standard deviations,
    quartiles and standardised differences follow from them, each with two intervals: for these
    people (privacy noise alone), and for the population that they were drawn from (noise and
    sampling). It is differentially private under replacement of one record, with all its columns.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole, an equal part on each column. ``numpy.inf`` gives
        exact counts, without any privacy.
    columns : PublicColumns
        Bounds, categories and missing values of all columns of X. Required. Columns with
        ``missing="error"`` have no cell for missing values, and refuse them; others have one,
        whatever they state. A ``typical`` value makes skewed numbers more exact: see ``grid``.
    by : str or None, default=None
        The category or boolean of ``columns`` whose labels are the groups. None: no groups.
    by_is_public : bool, default=False
        True states that everybody may know each person's group, such as the arm in a register of
        trials. Sizes of groups are then exact, and the guarantee protects all but the group.
    grid : "auto", int, or mapping of str to int or list of float, default="auto"
        Points between the bounds of numbers and dates: for all, or by column; at least 2. Lists
        hold points from bound to bound, rising; those of dates are days since the first. A number
        of points are equally spaced; or if ``columns`` state a typical value between the bounds,
        half of them lie on either side, closest at the nearer bound. "auto": 8 to 200, by the
        number of records, groups and columns, epsilon and delta. More points resolve quartiles
        better, and add noise to means.
    delta : float, default=0.0
        If positive, Gaussian noise is used where it is smaller, as for 6 columns or more at
        ``delta=1e-6``; the guarantee then has this delta.
    random_state : None or int, default=None
        An int makes the fit reproducible and therefore not private: status "seeded", with a
        PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    table_ : pandas.DataFrame
        Indexed by column, level, statistic and part ("Overall", or a group), with the columns
        ``estimate``, ``people_low``, ``people_high``, ``population_low`` and ``population_high``:
        95 % intervals; counts have none for a population. Levels and parts are text.
        Statistics: n, missing, count, share, mean, sd, q1, median, q3, smd. Estimates of counts
        are not rounded, may be negative, and add up to n.
    groups_ : list
        Labels of the groups; empty without ``by``.
    n_records_ : int
        Number of records; public.
    release_ : Release
        All that was learnt from the records, ready to publish.
    guarantee_ : PrivacyGuarantee
        The promise, its assumptions and its source.
    columns_ : PublicColumns
        Copy of ``columns``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Their names, if X in ``fit`` had names.

    See Also
    --------
    DPKaplanMeierFitter : Survival curves of groups.
    skdpsurv.pool_releases : One table from those of several sites.

    Notes
    -----
    Proof: docs/proofs/table_one. Values beyond bounds count as the bounds, so means are those of
    clipped values. Intervals of standard deviations allow for any values between two points of the
    grid, and so cover more than their level. Intervals of quartiles suppose that values are spread
    evenly between points, but where neighbouring counts differ by more than noise. For values in
    steps, such as whole years, add half a step at either end. A standardised difference is the
    later group less the first, divided by the root of the mean variance; it is too large by noise,
    so read its interval, which covers more than its level. Categories with more than two labels
    have none.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdpsurv import DPTableOne, PublicColumns
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.choice(["control", "treated"], 2000)
    >>> X = pd.DataFrame({"arm": arm, "age": rng.normal(60, 10, 2000).round()})
    >>> X["smoker"] = rng.random(2000) < 0.2
    >>> columns = PublicColumns.of(arm=["control", "treated"], age=(18, 100), smoker=bool)
    >>> table = DPTableOne(epsilon=1.0, columns=columns, by="arm").fit(X)
    >>> row = table.table_.loc["age", "", "mean", "Overall"]
    >>> bool(58 < row.estimate < 62), bool(row.people_low < row.estimate < row.people_high)
    (True, True)
    >>> table.to_frame(intervals=None).columns.tolist()
    ['Missing', 'Overall', 'control', 'treated', 'SMD (control,treated)']
    """

    by: str | None
    by_is_public: bool
    grid: Any
    delta: float

    _rules: ClassVar[dict[str, checks.Check]] = {
        "epsilon": checks.number_in(1e-9, 1e9, allow_inf=True),
        "columns": checks.custom(require_columns),
        "by": checks.optional(checks.instance(str, "a name of columns")),
        "by_is_public": checks.boolean,
        "grid": check_grid,
        "delta": checks.number_in(0.0, 1.0, closed="left"),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        columns: PublicColumns | None = None,
        by: str | None = None,
        by_is_public: bool = False,
        grid: str | int | Mapping[str, int | Sequence[float]] = "auto",
        delta: float = 0.0,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.columns = columns
        self.by = by
        self.by_is_public = by_is_public
        self.grid = grid
        self.delta = delta
        self.random_state = random_state
        self.accountant = accountant

    def fit(self, X: Any, y: Any = None, *, person: ArrayLike | None = None) -> Self:
        """Count the records, spending ``epsilon`` once for the whole table.

        Parameters
        ----------
        X : DataFrame, collection of Dask or chunks, of shape (n_samples, n_columns)
            Raw columns, as ``columns`` describes them. Private.
        y : None
            Not used.
        person : array-like of shape (n_samples,), or None
            Person identifiers, as whole numbers or text. The first record of each person is used,
            and the guarantee is about people. Private. None: nobody has two records.

        Returns
        -------
        self
        """
        return self._fit(X, person=person)

    # ---- The plan, from public numbers.

    def _check_together(self) -> None:
        super()._check_together()
        kinds = {kind.column: kind for kind in self.columns._kinds()}
        if self.by is not None and not (self.by in kinds and kinds[self.by].labels):
            raise ValueError(f"by must be a category or a boolean of columns, got {self.by!r}.")
        if len(kinds) == (self.by is not None):
            raise ValueError("columns must describe a column beside that of by.")
        if self.by_is_public and self.by is None:
            raise ValueError("by_is_public must be False where by is None.")
        check_sizes(self._groups(), list(kinds.values()))
        if isinstance(self.grid, Mapping):
            check_points(self.grid, kinds)

    def _described_kinds(self) -> list[ColumnKind]:
        """Return the kinds of columns but that of the groups."""
        return [kind for kind in self.columns._kinds() if kind.column != self.by]

    def _groups(self) -> list[Any]:
        """Return the labels of the groups; none without groups."""
        own = (kind for kind in self.columns._kinds() if kind.column == self.by)
        return [label for kind in own for label in column_tables.group_labels(kind)]

    def _price(self) -> Price:
        n_columns = len(self._described_kinds())
        return column_tables.price_of(float(self.epsilon), float(self.delta), n_columns)

    def _deviation(self) -> float:
        """Return the standard deviation of the noise in a cell, in records."""
        return Histograms((1,) * len(self._described_kinds())).deviation(self._price())

    def _expected_share(self, in_group: int) -> Estimated:
        """Return the share of a label that half of a group have, where it is least sure.

        Labels of a column add up to the size of the group, which all columns tell: so the share of
        a yes or no has half of the variance that the noise of a cell would give it.
        """
        n_groups, variance = max(len(self._groups()), 1), self._deviation() ** 2
        cells = self._cells(self._points(n_groups * in_group))
        sizes = Sizes.known(np.full(n_groups, in_group))
        if not self.by_is_public:
            tables = [np.zeros((n_groups, one.number)) for one in cells]
            sizes = Sizes.solved(tables, variance, n_groups * in_group)
        level, found = Level(0.95, isinstance(self._price(), float)), []
        own = {(one.n_present, one.number) for one in cells if one.points is None}
        for n_labels, n_cells in own or {(2, 2)}:
            form, whole, counts = np.zeros((3, n_groups, n_cells))
            form[0, 0], whole[0, :n_labels] = 1.0, 1.0
            counts[:, :n_labels] = 0.5 * in_group / max(n_labels - 1, 1)
            counts[:, 0] = 0.5 * in_group
            found.append(share(Solved(counts, variance, sizes), form, whole, level))
        return max(found, key=lambda one: one.population.high - one.population.low)

    def _uncertainty(self, n_records: int) -> float:
        """Return half of a 95 % interval of a share, for these people in groups of equal size."""
        n_groups = max(len(self._groups()), 1)
        low, high = self._expected_share(max(n_records // n_groups, 1)).people
        return 0.5 * (high - low)

    def _points(self, n_records: int) -> dict[str, list[float]]:
        """Return the points of each number and date, by public numbers."""
        kinds = self._described_kinds()
        number = column_tables.n_points_for(
            n_records, max(len(self._groups()), 1), self._deviation()
        )
        stated = self.grid if isinstance(self.grid, Mapping) else {}
        every = number if isinstance(self.grid, Mapping | str) else self.grid
        grid = {
            kind.column: column_tables.points_of(kind, stated.get(kind.column, every)).tolist()
            for kind in kinds
            if kind.bounded
        }
        check_points(grid, {kind.column: kind for kind in kinds})
        return grid

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        by = {} if self.by is None else {"by": self.by, "by_is_public": bool(self.by_is_public)}
        return {**by, "grid": self._points(shape.n_records)}

    def _cells(self, points: Mapping[str, Sequence[float]]) -> tuple[Cells, ...]:
        return tuple(
            Cells(kind, np.asarray(points[kind.column]) if kind.bounded else None)
            for kind in self._described_kinds()
        )

    def _plan(self, shape: Shape) -> Plan:
        stated = self._release_parameters(shape)
        cells, n_groups = self._cells(stated["grid"]), max(len(self._groups()), 1)
        if n_groups * sum(one.number for one in cells) > column_tables.LARGEST_TABLE:
            raise ValueError(
                f"grid must make at most {column_tables.LARGEST_TABLE:,} cells in all."
            )
        if self._deviation() ** 2 > LARGEST_VARIANCE:
            raise ValueError("epsilon must be larger: noise would be beyond all use.")
        kind = (
            column_tables.ExactTableCounts
            if math.isinf(self.epsilon)
            else column_tables.TableCounts
        )
        table = kind(price=self._price(), columns=cells, n_groups=n_groups)
        sizes = [column_tables.GroupSizes(n_groups)] if self.by_is_public else []
        inputs = {"n_records": shape.n_records, "n_columns": len(cells), **stated}
        tree, budget = Sequential((*sizes, table)), (float(self.epsilon), float(self.delta))
        own: Any = {"inputs": inputs, "assumed": ASSUMED, "same_group": bool(self.by_is_public)}
        return Plan(tree, *budget, **own)

    def _input_warnings(self, shape: Shape, X: Any, y: Any = None, **options: Any) -> list[str]:
        found = super()._input_warnings(shape, X, y, **options)
        if math.isinf(self.epsilon):
            return found
        n_columns, n_groups = len(self._described_kinds()), max(len(self._groups()), 1)
        if (half := self._uncertainty(shape.n_records)) > MUCH:
            stated = {"points": 100 * half, "n_columns": n_columns, "n_groups": n_groups}
            found.append(phrase("uncertain_shares", **stated))
        return found

    # ---- The records.

    def _read(self, shape: Shape, X: Any, y: Any = None) -> Blocks[TableBlock]:
        records = in_blocks(X).map(self._without_ledger()._values)
        records = records.persist(self._memory_ratio(shape))
        shape.require(records.map_reduce(lambda block: block[0].size))
        return records

    def _values(self, block: tuple[Any, ...]) -> TableBlock:
        """Return groups and values of a block, after refusing what is outside the domain."""
        X = block[0]
        require_in_memory(X)
        if is_frame(X):  # others have no names that could be wrong
            call_without_data(validate_data, self, X, skip_check_array=True, reset=False)
        read = raw_values(self.columns, X, self.n_features_in_, self._raw_names())
        values = [found for kind, found in read if kind.column != self.by]
        if self.by is None:
            return np.zeros(values[0].size, dtype=np.intp), values
        ((_, group),) = [one for one in read if one[0].column == self.by]
        last = len(self._groups()) - 1
        return np.where(np.isnan(group), last, group).astype(np.intp), values

    # ---- The result.

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, "grid")
        stated: Any = release.parameters["grid"]
        numbers = {k.column for k in self._described_kinds() if k.bounded}
        if not isinstance(stated, Mapping) or set(stated) != numbers:
            raise ValueError("grid of the release must hold points for each number and date.")
        groups, cells = self._groups(), self._cells(stated)
        shape = max(len(groups), 1), sum(one.number for one in cells)
        n_records = stated_records(release, column_tables.MOST_RECORDS)
        law, variance = released_noise(release, "counts")
        found = released_array(release, "counts", shape)
        sizes = released_array(release, "group_sizes", shape[:1]) if self.by_is_public else None
        wrong = math.prod(shape) > column_tables.LARGEST_TABLE
        wrong |= bool(np.abs(found).max() > column_tables.LARGEST_COUNT)
        if sizes is not None:
            wrong |= bool(np.any(sizes != np.rint(np.maximum(sizes, 0.0))))
            wrong |= sizes.sum() != n_records
        if wrong:
            raise ValueError("values of the release must hold counts that are counts.")
        laplace = law == LAPLACE
        self._summary = Summary.of(cells, found, variance, n_records, groups, sizes, laplace)
        self.groups_, self.n_records_ = groups, n_records

    def _margins(self) -> tuple[str | None, dict[str, tuple[ColumnKind, list[Margin]]]]:
        """Return the column of groups, and kind and margins of each, of all and by group."""
        found, sizes = self._summary.margins(), self._summary.sizes.estimate
        for kind in self.columns._kinds():
            if kind.column == self.by:
                shares = np.clip(sizes / self.n_records_, 0.0, 1.0)
                k = len(kind.labels)
                found[kind.column] = kind, [Margin.of_shares(TABLE, shares[:k], shares[k:].sum())]
        return self.by, found

    def _draw_outcomes(self, X: pd.DataFrame, censored: Any, rng: np.random.Generator) -> None:
        """Draw no outcome of made-up people: ``fit`` takes none."""

    @property
    def table_(self) -> pd.DataFrame:
        """Estimates of all quantities, with their intervals."""
        check_is_fitted(self, "release_")
        return self._summary.frame(0.95)

    def expected_table(self, n_records: int) -> pd.DataFrame:
        """Return a table to be expected, for its intervals; nothing is fitted or spent.

        Records are taken to be spread evenly over groups, labels and bounds, none missing.

        Parameters
        ----------
        n_records : int
            Number of records of a planned fit.

        Returns
        -------
        pandas.DataFrame
            As ``table_``.
        """
        self._check_parameters()
        n_records = checks.positive_int("n_records", n_records)
        groups, cells = self._groups(), self._cells(self._points(n_records))
        n_groups = max(len(groups), 1)
        even = np.hstack([one.evenly_spread() for one in cells])
        counts_ = np.tile(n_records / n_groups * even, (n_groups, 1))
        variance = self._deviation() ** 2
        sizes = counts_[:, : cells[0].number].sum(axis=1) if self.by_is_public else None
        laplace = isinstance(self._price(), float)
        summary = Summary.of(cells, counts_, variance, n_records, groups, sizes, laplace)
        return summary.frame(0.95)

    def to_frame(
        self,
        *,
        intervals: str | None = "people",
        nonnormal: Collection[str] = (),
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Return the table as text, as it is printed in papers.

        Parameters
        ----------
        intervals : {"people", "population"} or None, default="people"
            Intervals in braces, of shares, means and medians: for these people, for their
            population, or none.
        nonnormal : collection of str, default=()
            Numbers of which the median and quartiles are printed, in place of mean and standard
            deviation.
        level : float, default=0.95
            Nominal coverage of the intervals.

        Returns
        -------
        pandas.DataFrame
            Text, in the layout of the package tableone: a row for each number and each label, and
            columns for missing values, all people, groups and standardised differences. Counts are
            rounded, negative ones to 0; all else shows as many decimals as the noise leaves, and a
            dash where its interval for these people is more than half of the public range.
        """
        check_is_fitted(self, "release_")
        checks.optional(checks.choice("people", "population"))("intervals", intervals)
        checks.list_of(checks.instance(str, "a name of columns"))("nonnormal", list(nonnormal))
        known = [one.kind.column for one in self._summary.columns if one.points is not None]
        if unknown := [name for name in nonnormal if name not in known]:
            raise ValueError(f"nonnormal must hold numbers of columns, got {unknown[0]!r}.")
        found = self._summary.frame(checks.fraction("level", level))
        return Printed(found, self.groups_, intervals).frame(self._summary.columns, nonnormal)

    def to_html(self, **options: Any) -> str:
        """Return the table as HTML; ``options`` as for :meth:`to_frame`."""
        return str(self.to_frame(**options).to_html())

    def to_latex(self, **options: Any) -> str:
        """Return the table as LaTeX; ``options`` as for :meth:`to_frame`."""
        return str(self.to_frame(**options).to_latex(escape=True))

    def to_markdown(self, **options: Any) -> str:
        """Return the table as Markdown; ``options`` as for :meth:`to_frame`."""
        return markdown(self.to_frame(**options))

    def print_summary(self, **options: Any) -> None:
        """Print the guarantee and the table; ``options`` as for :meth:`to_frame`."""
        print(headline(self.release_))
        print(self.to_frame(**options).to_string())
