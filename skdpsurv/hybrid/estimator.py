"""HybridMEstimator: an estimator fitted to public records that are weighted by private ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from skdpsurv.base.private_estimator import Published
from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.shape import Shape, require_in_memory
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, choice, integer, number_in, optional, unchecked, word_or
from skdpsurv.dp.containers import shape_of, unlabelled
from skdpsurv.dp.input_errors import call_without_data, suppressed_float_errors
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.hybrid import hybrid_records, meta_estimator
from skdpsurv.hybrid.hybrid_measurements import Fit, over
from skdpsurv.hybrid.hybrid_plan import METHODS, SHARES, WEIGHTS, hybrid_plan, shares
from skdpsurv.hybrid.subset import SubsetSelection
from skdpsurv.release import Release


@dataclass(frozen=True, eq=False)
class HybridShape(Shape):
    """Categorical columns, public records, and the estimator fitted to these alone."""

    categorical: tuple[int, ...]
    public: hybrid_records.PublicRecords
    equal: Any


class HybridMEstimator(
    meta_estimator.PrivateMetaEstimator,
    takes=("cells",),
    methods={"subset": SubsetSelection},
    beyond_release="the public records and the estimator inside",
):
    r"""Any estimator, fitted to openly consented records that are weighted by private ones.

    The release consists of weights of public records, and of a fit with these weights. It is
    epsilon-differentially private under replacement of one private record. Public records are used,
    and released, as they are.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Classifier or regressor whose ``fit`` takes ``sample_weight``: logistic, linear, Huber,
        quantile, Poisson regression and the like, or a Pipeline whose last step does. All its steps
        learn from public records alone. None: ``LogisticRegression()``.
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, spent whole. ``numpy.inf`` makes weights without noise, for
        reference.
    delta : float in [0, 1), default=0.0
        Probability with which the bound by epsilon may fail, at most :math:`1/n^2`. With one,
        moments of residuals have Gaussian noise if that is less, as with twenty to thirty columns
        or more, and more rounds of them are asked for. Else ``guarantee_`` has ``delta=0``.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as :class:`~skdpsurv.data.PublicColumns`, which states
        public bounds and categories of the columns of X. It is cloned and learns nothing, and
        ``release_`` holds it. None: X holds numbers, taken as they are.
    method : {"auto", "cells", "residuals", "all", "subset"} or SubsetSelection, default="auto"
        "cells": noisy counts of private records in cells of the public ones. "residuals": public
        weights that give public residuals the noisy moments of private residuals. "auto": cells,
        then residuals, for up to four columns, else residuals alone. "all", "subset": Algorithms 1
        and 2 of the paper, with corrected privacy accounting; "subset" is
        :class:`~skdpsurv.hybrid.SubsetSelection` with its defaults.
    n_cells : int or None, default=None
        Number of cells; None for a public rule, and for a method without cells.
    budget_split : sequence of float or None, default=None
        Shares of epsilon, added up to 1: for "auto", of cells and residuals, (1/2, 1/2); for
        "subset", of the order, the candidates and the choice, (0.1, 0.8, 0.1).
    weights : {"auto", "signed", "nonnegative"}, default="auto"
        Noisy counts may be negative. "signed" keeps them, which is unbiased, and
        allowed for LogisticRegression (two classes) and PoissonRegressor only: if a fit finds no
        minimum, counts are clipped at 0 after all. "auto" keeps them in "all"
        where the noise is small. The choice is post-processing.
    categorical_features : collection of int or str, or None, default=None
        Columns of categories. None: columns of a categorical type, and columns with a public value
        that cannot be read as a number. Name columns of codes like "1", "2". Categories that no
        public record has count as one, "other".
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the public records with the released weights.
    public_index_ : ndarray of int
        Positions of weighted records among the public ones.
    weights_ : ndarray of float
        Their released weights, which add up to about the number of private records.
    n_cells_ : int
        Cells, or distinct public records, that were counted; 0 if none were.
    curve_ : ndarray of float
        Noisy sums of losses, only with ``SubsetSelection("noisy_curve")``.
    classes_ : ndarray
        Labels of the public records; only for a classifier.
    guarantee_ : PrivacyGuarantee
    release_ : Release
        With the public records at hand, ``from_release`` rebuilds the model.
    columns_ : transformer or None
        Fitted copy of ``columns``, applied to rows passed to ``predict``. Public.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not allowed, there is no public or no private record, or the estimator
        cannot be fitted to the public records. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded; no record has been read then.

    See Also
    --------
    skdpsurv.published.PerturbedHistogramMEstimator : Without public records, in few dimensions.
    skdpsurv.classification.DPLogisticRegression : On private records alone.

    Notes
    -----
    Neighbours: replace-one among the private records. Proof: docs/proofs/hybrid. The outcome of a
    private record that the public ones do not have ("other" label) counts as equally far from all
    public outcomes. Numbers beyond the range of the public records are clipped to it. The guarantee
    assumes that the estimator predicts each row from that row alone.

    References
    ----------
    .. [1] M. Wang, Z. Ji, H. Kim, S. Wang, L. Xiong and X. Jiang, "Selecting optimal subset to
       release under differentially private M-estimators from hybrid datasets", IEEE TKDE, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv import HybridMEstimator
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> public = np.arange(4000) < 1000  # these people consented
    >>> slope = np.where(public, 0.5, 2.0)  # and differ from the others
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-slope * X[:, 0]))
    >>> model = HybridMEstimator(epsilon=1.0).fit(X, y, public=public)
    >>> bool(model.estimator_.coef_[0, 0] > 1.2)
    True
    """

    _one_of_each = ("public",)
    _rules: ClassVar[dict[str, Check]] = {
        "delta": number_in(0.0, 1.0, closed="left"),
        "method": word_or(SubsetSelection, *METHODS),
        "n_cells": optional(integer()),
        "budget_split": optional(SHARES),
        "weights": choice(*WEIGHTS),
        "categorical_features": unchecked,
    }

    def __init__(
        self,
        estimator: Any = None,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        columns: Any = None,
        method: str | SubsetSelection = "auto",
        n_cells: int | None = None,
        budget_split: Sequence[float] | None = None,
        weights: str = "auto",
        categorical_features: Collection[Any] | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.method = method
        self.n_cells = n_cells
        self.budget_split = budget_split
        self.weights = weights
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.accountant = accountant

    def fit(self, X: Any, y: ArrayLike, public: ArrayLike | None = None) -> Self:
        """Fit the model, spending ``epsilon``.

        Parameters
        ----------
        X : array-like, DataFrame, or collection of Dask, of shape (n_samples, n_features)
            All records, public and private. Numbers are finite; missing categories are a category.
            With Dask, private records stay on the workers, and public ones are brought here.
        y : array-like or collection of Dask, of shape (n_samples,)
            Labels, or numbers for a regression.
        public : array-like or collection of Dask, of bool, shape (n_samples,)
            True for the records whose owners agreed to publication. Public: an array in memory may
            go with collections of Dask.

        Returns
        -------
        self
        """
        return self._fit(X, y, public=public)

    def _shape(self, X: Any, y: ArrayLike, public: ArrayLike | None = None) -> HybridShape:
        """Return all that is public, and the estimator fitted to the public records."""
        hybrid_records.refuse_sparse(X)
        seen = super()._shape(X)
        with suppressed_float_errors():
            part_of = partial(meta_estimator.public_part, self._classifies)
            found = in_blocks(X, y, public).results(part_of)
            parts = [(rows, outcome) for rows, outcome in found if outcome.size]
            n_public = sum(outcome.size for _, outcome in parts)
            if not 0 < n_public < seen.n_records:
                raise ValueError(
                    f"public must be True for some of n_samples={seen.n_records}, False for others."
                )
            rows, outcomes = zip(*parts, strict=True)
            if self.columns is not None:
                rows = tuple(map(self._fitting_rows, rows))
            # One value that is no number, in any block, makes its column categorical.
            stated = self.categorical_features
            named = (hybrid_records.categorical_columns(part, stated) for part in rows)
            categorical = tuple(sorted(set().union(*named)))
            tables = [hybrid_records.read_table(part, categorical) for part in rows]
            table = hybrid_records.MixedTable.stacked(tables)
            outcome, n_private = np.concatenate(outcomes), seen.n_records - n_public
            records = hybrid_records.PublicRecords(table, outcome, self._classifies, n_private)
            # Public records show, before anything is spent, whether the estimator can be fitted.
            equal = self._fit_equally(records)
        return HybridShape(seen.n_records, seen.n_features, categorical, records, equal)

    def _read(
        self, shape: HybridShape, X: Any, y: ArrayLike, public: ArrayLike | None = None
    ) -> Blocks[hybrid_records.PrivateRecords]:
        read = partial(self._without_ledger()._private, shape.categorical, shape.public.range)
        private = in_blocks(X, y, public).map(read).persist(self._memory_ratio(shape))
        shape.require(shape.public.n_public + private.map_reduce(lambda block: block.size))
        return private

    def _private(
        self,
        categorical: tuple[int, ...],
        known: hybrid_records.PublicRange,
        block: tuple[Any, ...],
    ) -> hybrid_records.PrivateRecords:
        """Return the private records of a block, after refusing values outside the domain."""
        X, y, public = block
        table = self._table(X, categorical, self.columns)
        outcome = meta_estimator.checked_outcome(y, table.size, self._classifies)
        private = ~meta_estimator.boolean_mask(public, table.size)
        return known.clipped(table.rows(private), outcome[private])

    def _publish(self, shape: HybridShape, published: Published) -> Self:
        """Fit the estimator inside to the released weights, and keep the release."""
        values = published.values
        self._learn(shape.public, values["public_index"], values["weights"], values["signed"])
        fitted: Self = super()._publish(shape, published)
        return fitted

    def _release_parameters(self, shape: HybridShape) -> dict[str, Any]:
        return {
            "method": self._word,
            "weights": self.weights,
            "categorical_features": list(shape.categorical),
        }

    @classmethod
    def from_release(
        cls, release: Release, *, X: Any = None, y: ArrayLike | None = None, estimator: Any = None
    ) -> Self:
        """Build a fitted estimator from a release and the public records.

        Parameters
        ----------
        release : Release
            As published by a fitted estimator of this class, in ``release_``.
        X, y : array-like
            The public records, in the order in which they were fitted.
        estimator : estimator or None
            As it was fitted; None: ``LogisticRegression()``.

        Returns
        -------
        HybridMEstimator
            Predicts as the one that made the release.
        """
        built = super().from_release(release)
        built.estimator = estimator
        if X is None or y is None:
            raise ValueError("X and y must be the public records: a release does not hold them.")
        table = built._table(X, built._categorical, built.columns_)
        outcome = meta_estimator.checked_outcome(y, table.size, built._classifies)
        if built.public_index_.size and built.public_index_.max() >= table.size:
            raise ValueError("X must hold all public records that the release weighs.")
        records = hybrid_records.PublicRecords(table, outcome, built._classifies, 0)
        signed = bool(np.asarray(release.values.get("signed", 0.0)))
        if signed and not meta_estimator.takes_signed_weights(built._estimator):
            raise ValueError("signed of the release must be 0 with this estimator.")
        built._learn(records, built.public_index_, built.weights_, signed)
        return built

    def _fit_equally(self, records: hybrid_records.PublicRecords) -> Any:
        """Fit a new clone of the estimator to the public records alone."""
        public = records.design_public, records.y_public
        return meta_estimator.fit_clone(self._estimator, *public, np.ones(records.n_public))

    def _fit_with(self, records: hybrid_records.PublicRecords, signed: bool) -> Fit:
        """Return a function that fits a new clone to public records with released weights."""
        own, X, y = self._without_ledger(), records.design_public, records.y_public
        equally = partial(own._fit_equally, records)
        return lambda weights: meta_estimator.fit_weighted(
            own._estimator, X, y, weights, signed, equally
        )

    def _learn(
        self,
        records: hybrid_records.PublicRecords,
        index: IntArray,
        weights: FloatArray,
        signed: bool,
    ) -> None:
        """Fit the estimator inside to public records with released weights."""
        # Records without weight stay, so that the estimator knows all public labels.
        everybody = over(records.n_public, index, weights)
        self.estimator_ = self._fit_with(records, signed)(everybody)
        self._design = records.design

    def _set_fitted(self, release: Release) -> None:
        values, columns = release.values, range(release.n_features)
        index, weights = (np.array(values.get(n)) for n in ("public_index", "weights"))
        places = np.unique(index)
        if index.ndim != 1 or weights.shape != places.shape or index.dtype.kind != "f":
            raise ValueError("values of the release must hold public_index and weights.")
        if not ((index >= 0) & (index < 2.0**53) & (index == np.floor(index))).all():
            raise ValueError("public_index of the release must hold places of records.")
        chosen: Any = release.parameters.get("categorical_features")
        listed = isinstance(chosen, list | tuple)
        if not listed or not all(type(j) is int and j in columns for j in chosen):
            raise ValueError("parameters of the release must hold categorical_features.")
        counted, signed = (np.asarray(values.get(name, -1.0)) for name in ("n_cells", "signed"))
        if counted.ndim or signed.ndim or counted < 0 or signed not in (0.0, 1.0):
            raise ValueError("values of the release must hold n_cells and signed.")
        self._categorical = tuple(sorted(set(chosen)))
        self.public_index_, self.weights_ = index.astype(np.int64), weights
        self.n_cells_ = int(counted)
        self.__dict__.pop("curve_", None)
        if "curve" in values:
            self.curve_ = np.array(values["curve"])

    def _matrix(self, X: Any) -> FloatArray:
        check_is_fitted(self, "estimator_")
        table = self._table(X, self._categorical, self.columns_)
        # Comparing the caller's own objects may fail, with a message that shows them.
        return np.asarray(call_without_data(self._design.matrix, table))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        public: ArrayLike | None = None,
    ) -> float:
        """Return the score of ``estimator_``, which is not private.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None
        public : array-like of bool, shape (n_samples,), or None
            If given, only the other records, the private ones, are scored.

        Returns
        -------
        float
        """
        return self._score(X, *map(unlabelled, (y, sample_weight, public)))

    def _table(
        self, X: Any, categorical: Collection[int], columns: Any
    ) -> hybrid_records.MixedTable:
        require_in_memory(X)
        if columns is not None:  # which leaves numbers only
            return hybrid_records.read_table(self._rows(X, columns), ())
        # Columns are counted before any is looked for, if X is of a shape.
        table = None if len(shape_of(X) or ()) == 2 else hybrid_records.read_table(X, categorical)
        call_without_data(validate_data, self, X, skip_check_array=True, reset=False)
        return hybrid_records.read_table(X, categorical) if table is None else table

    def _check_together(self) -> None:
        stated = self.categorical_features
        if self.columns is not None and stated is not None and len(stated) > 0:
            raise ValueError("categorical_features must be None where columns says what X holds.")
        shares(self.budget_split, self._word)
        if self.weights == "signed" and not meta_estimator.takes_signed_weights(self._estimator):
            raise ValueError(f"weights='signed' is not sound for {type(self._estimator).__name__}.")

    @property
    def _word(self) -> str:
        """The method, as one word."""
        return self.method if isinstance(self.method, str) else "subset"

    def _plan(self, shape: HybridShape) -> Plan:
        fit = partial(self._fit_with, shape.public)
        price: Any = {"epsilon": float(self.epsilon), "delta": float(self.delta)}
        how: Any = {"method": self._word, "split": self.budget_split, "weights": self.weights}
        how["n_cells"] = None if self.n_cells is None else int(self.n_cells)
        how["subset"] = SubsetSelection() if isinstance(self.method, str) else self.method
        return hybrid_plan(shape.public, shape.equal, fit, **price, **how)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags
