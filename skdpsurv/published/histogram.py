"""PerturbedHistogramMEstimator: an estimator fitted to the noisy cells of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.shape import Shape
from skdpsurv.dp import checks
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, integer, list_of, number_in, required
from skdpsurv.dp.input_errors import call_or_none
from skdpsurv.dp.plan import Context, NoisySum, Plan
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.hybrid.hybrid_records import places_of
from skdpsurv.hybrid.meta_estimator import (
    PrivateMetaEstimator,
    checked_outcome,
    fit_clone,
    fit_weighted,
)
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.mechanisms.vector_noise import MARGIN
from skdpsurv.release import Release

#: More cells than this do not fit in memory, and would hold nothing but noise.
MOST_CELLS = 2_000_000


def _is_range(pair: Any) -> bool:
    ends: Any = call_or_none(partial(np.asarray, dtype=np.float64), pair)
    return (
        ends is not None and ends.shape == (2,) and 0.0 < float(ends[1]) - float(ends[0]) < math.inf
    )


#: Rule of each of ``bounds``, and of a numeric ``outcome``.
RANGE = checks.rule_of("a pair (lowest, highest) of finite numbers, rising", holds=_is_range)


@dataclass(frozen=True, eq=False, kw_only=True)
class GridCounts(NoisySum):
    """Noisy counts of records in the cells of a public grid."""

    n_cells: int

    name = "noisy counts in the cells of a public grid"
    theorem = reference("docs/proofs/hybrid", "lei", "dwork")
    assumptions = ("bounds and outcome were not read off these records",)
    query = HISTOGRAM  # each record is in one cell
    gives = "weights"

    def exact_answer(self, context: Context, records: Blocks[IntArray]) -> IntArray:
        """Return exact counts."""
        return records.map_reduce(partial(np.bincount, minlength=self.n_cells))

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        """Return a weight for each cell."""
        return {"weights": noisy.astype(np.float64)}


class PerturbedHistogramMEstimator(
    PrivateMetaEstimator, takes=("cells",), beyond_release="the estimator inside"
):
    """Any estimator, fitted to the centres of a grid's cells with noisy counts as weights.

    The release, the counts of all cells, is epsilon-differentially private under replacement of one
    record. No public records are needed. Only few columns are possible, as the number of cells is a
    product.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Classifier or regressor whose ``fit`` takes ``sample_weight``. None:
        ``LogisticRegression()``.
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` adds no noise.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as :class:`~skdpsurv.data.PublicColumns`, which states
        public bounds and categories of the columns of X. It is cloned, learns nothing, and
        ``release_`` then stands alone. None: X holds numbers, taken as they are.
    bounds : sequence of (float, float)
        Public range of each column, as (lowest, highest); with ``columns``, of each feature that it
        makes, where numbers of ``PublicColumns`` are from -1 to 1. Required; values beyond are
        clipped.
    n_bins : int or sequence of int, default=10
        Cells of equal width in each column (and in the outcome of a regression).
    outcome : (float, float) or array-like of labels
        Public range of the outcome of a regression, or the classes. Required.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the cells' centres.
    weights_ : ndarray of shape (n_cells,)
        Released counts; negative ones are clipped to 0 in the fit.
    guarantee_ : PrivacyGuarantee
    release_ : Release
    columns_ : transformer or None
        Fitted copy of ``columns``, applied to rows passed to ``predict``. Public.
    n_features_in_ : int

    Raises
    ------
    ValueError, TypeError
        If a parameter is not allowed, the grid has more than 2,000,000 cells, or y holds a label
        that is not among the classes. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded.

    See Also
    --------
    HybridMEstimator : With the help of public records.

    Notes
    -----
    Neighbours: replace-one; counts have L1 sensitivity 2 (docs/proofs/hybrid).

    References
    ----------
    .. [1] J. Lei, "Differentially private M-estimators", NeurIPS 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.published import PerturbedHistogramMEstimator
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(4000, 1))
    >>> y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    >>> model = PerturbedHistogramMEstimator(bounds=[(-1, 1)], outcome=[0, 1]).fit(X, y)
    >>> bool(model.estimator_.coef_[0, 0] > 1)
    True
    """

    _rules: ClassVar[dict[str, Check]] = {
        "epsilon": number_in(1e-9, 1e9, allow_inf=True),
        "bounds": required("the public range of each column.", list_of(RANGE)),
        "n_bins": checks.one_or_list_of(integer()),
        "outcome": required("the classes, or the public range of the outcome.", checks.unchecked),
    }

    def __init__(
        self,
        estimator: Any = None,
        epsilon: float = 1.0,
        *,
        columns: Any = None,
        bounds: Sequence[tuple[float, float]] | None = None,
        n_bins: int | Sequence[int] = 10,
        outcome: ArrayLike | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.columns = columns
        self.bounds = bounds
        self.n_bins = n_bins
        self.outcome = outcome
        self.random_state = random_state
        self.accountant = accountant

    def fit(self, X: Any, y: Any, *, person: ArrayLike | None = None) -> Self:
        """Fit the model, spending ``epsilon``.

        Parameters
        ----------
        X : array-like or collection of Dask, of shape (n_samples, n_features)
            Finite. Private.
        y : array-like or collection of Dask, of shape (n_samples,)
            Labels or numbers. Private.
        person : array-like of shape (n_samples,), or None
            Person identifiers, as whole numbers or text. The first record of each person is used,
            and the guarantee is about people. Private. None: nobody has two records.

        Returns
        -------
        self
        """
        return self._fit(X, y, person=person)

    def _plan(self, shape: Shape) -> Plan:
        n_stated = len(self._bounds())
        if n_stated != shape.n_features:
            raise ValueError(f"bounds must have {shape.n_features} pairs, got {n_stated}.")
        self._fit_equally()  # shows whether the estimator can be fitted
        inputs = {"n_records": shape.n_records, "n_cells": math.prod(self._grid_shape())}
        counts = GridCounts(price=float(self.epsilon) / MARGIN, n_cells=inputs["n_cells"])
        return Plan(counts, float(self.epsilon), inputs=inputs)

    def _read(self, shape: Shape, X: Any, y: Any) -> Blocks[IntArray]:
        places = in_blocks(X, y).map(self._without_ledger()._places).persist()
        shape.require(places.map_reduce(np.size))
        return places

    def _places(self, block: tuple[Any, ...]) -> IntArray:
        """Return the cells of a block of records, after refusing values outside the domain."""
        X, y = block
        rows = self._fitting_rows(X)
        target = checked_outcome(y, rows.shape[0], self._classifies)
        values = rows if self._classifies else np.column_stack([rows, target])
        low, high = np.array(self._ranges()).reshape(-1, 2).T
        bins = np.array(self._bins(), dtype=np.int64)
        # Values beyond a bound are in the last cell.
        shares = (np.clip(values, low, high) - low) / (high - low)
        cells = list(np.minimum((shares * bins).astype(np.int64), bins - 1).T)
        if self._classifies:
            cells.append(places_of(target, self._labels.tolist()))
            if cells[-1].max() == self._labels.size:
                raise ValueError("y holds a label that is not among the classes in outcome.")
        return np.ravel_multi_index(cells, self._grid_shape())

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        return {
            "bounds": [list(pair) for pair in self._bounds()],
            "n_bins": self._bins(),
            "outcome": np.asarray(self.outcome).tolist(),
        }

    @classmethod
    def from_release(cls, release: Release, *, estimator: Any = None) -> Self:
        """Build a fitted estimator from a release.

        Parameters
        ----------
        release : Release
            As published by a fitted estimator of this class, in ``release_``.
        estimator : estimator or None
            As it was fitted; None: ``LogisticRegression()``.

        Returns
        -------
        PerturbedHistogramMEstimator
        """
        return cls._rebuilt(release, estimator=estimator)

    def _grid(self) -> list[NDArray[Any]]:
        """Return the cells' centres, column by column, and their outcomes last."""
        axes: list[NDArray[Any]] = [
            low + (high - low) * (np.arange(bins) + 0.5) / bins
            for (low, high), bins in zip(self._ranges(), self._bins(), strict=True)
        ]
        if self._classifies:
            axes.append(self._labels)
        return [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]

    def _fit_equally(self) -> Any:
        """Fit a new clone to all cells with equal weights."""
        *columns, outcomes = self._grid()
        weights = np.ones(outcomes.size)
        return fit_clone(self._estimator, np.column_stack(columns), outcomes, weights)

    def _set_fitted(self, release: Release) -> None:
        """Fit the estimator to the cells' centres with released weights."""
        if release.n_features != len(self._bounds()):
            raise ValueError("bounds of the release must hold a pair for each column.")
        self.weights_ = weights = np.array(release.values.get("weights"), dtype=np.float64)
        if weights.shape != (math.prod(self._grid_shape()),):
            raise ValueError("values of the release must hold a weight for each cell.")
        grid, held = self._grid(), weights > 0
        # A cell of each outcome stays, with or without weight: the classes are public.
        held[: self._grid_shape()[-1]] = True
        X, y = np.column_stack([axis[held] for axis in grid[:-1]]), grid[-1][held]
        self.estimator_ = fit_weighted(
            self._estimator, X, y, weights[held], False, self._fit_equally
        )

    def _bounds(self) -> list[tuple[float, float]]:
        """Return the range of each column."""
        assert self.bounds is not None
        return [(float(low), float(high)) for low, high in self.bounds]

    def _ranges(self) -> list[tuple[float, float]]:
        """Return the range of each column and, last, of a numeric outcome."""
        if self._classifies:
            return self._bounds()
        low, high = map(float, np.asarray(self.outcome))
        return [*self._bounds(), (low, high)]

    def _bins(self) -> list[int]:
        """Return the bins of each column and, last, of a numeric outcome."""
        if isinstance(self.n_bins, Sequence | np.ndarray):
            return [int(bins) for bins in self.n_bins]
        return [int(self.n_bins)] * len(self._ranges())

    def _grid_shape(self) -> tuple[int, ...]:
        return (*self._bins(), *([self._labels.size] if self._classifies else []))

    @property
    def _labels(self) -> NDArray[Any]:
        """The classes."""
        return np.unique(np.asarray(self.outcome))

    def _check_together(self) -> None:
        if not self._classifies:
            RANGE("outcome", self.outcome)
        elif not _are_classes(self.outcome):
            raise ValueError("outcome must be a list of classes: two or more numbers or texts.")
        wanted = len(self._ranges())
        if len(self._bins()) != wanted:
            raise ValueError(f"n_bins must be one number, or {wanted}, got {len(self._bins())}.")
        n_cells = math.prod(self._grid_shape())
        if n_cells > MOST_CELLS:
            raise ValueError(f"n_bins must make at most {MOST_CELLS:,} cells, got {n_cells:,}.")

    def _matrix(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "estimator_")
        return self._prediction_rows(X)


def _are_classes(stated: Any) -> bool:
    labels = np.asarray(stated)
    found: Any = call_or_none(np.unique, labels)  # labels may not compare
    several = labels.ndim == 1 and found is not None and found.size > 1
    return several and call_or_none(type_of_target, found) in ("binary", "multiclass")
