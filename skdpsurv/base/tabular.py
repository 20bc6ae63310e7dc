"""Estimators whose records are rows of a table, and predictions for each row alone."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from joblib import parallel_config
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from skdpsurv.base.private_estimator import Caveat, PrivateEstimator
from skdpsurv.data import public_steps
from skdpsurv.data import shape as shapes
from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.columns import PublicColumns
from skdpsurv.data.feature import Feature, same_features, wide_bounds
from skdpsurv.data.number_kinds import skewed_columns
from skdpsurv.data.shape import Shape
from skdpsurv.data.stratified_columns import StratifiedColumns
from skdpsurv.dp import input_errors
from skdpsurv.dp.checks import Check, optional, positive
from skdpsurv.dp.containers import is_frame, unlabelled
from skdpsurv.dp.guarantee import immutable
from skdpsurv.dp.input_errors import call_without_data, suppressed_float_errors
from skdpsurv.dp.references import phrase
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import FloatArray
from skdpsurv.priors import Prior, Promises, of_the_same_ledger
from skdpsurv.release import Release

#: Features that predictions make of raw rows at a time, 4 MiB in each array.
BLOCK_ELEMENTS = 2**19
#: Modules of scikit-learn that choose columns of X by their coefficients.
SELECTORS = "sklearn.feature_selection."
NO_OUTCOME = "y must be a 1d array of labels or numbers."


def _transformer(name: str, columns: Any) -> None:
    if columns is not None:
        public_steps.public_transformer(name, columns)


class TabularEstimator(PrivateEstimator):
    """Base of private estimators whose X is a table.

    A subclass has the parameter ``columns``, and sees rows of numbers: :meth:`_fitting_rows` in
    ``fit``, and :meth:`_prediction_rows` later. With ``columns`` these are features, which a public
    transformer makes of each raw row by itself: neighbours stay neighbours (docs/proofs/columns).
    """

    columns: Any = None
    #: Fitted copy of ``columns``, or None. Public.
    columns_: Any
    n_features_in_: int

    _rules: ClassVar[dict[str, Check]] = {"columns": _transformer}

    def _shape(self, X: Any, *args: Any, **kwargs: Any) -> Shape:
        """Return the number of records, and the number of features that their columns make."""
        seen = shapes.public_shape(self, X)
        if self.columns is None:
            return seen
        if isinstance(self.columns, StratifiedColumns) and getattr(self, "strata", None) is None:
            raise ValueError(
                f"columns must make features of {self.columns.strata!r}: they have it as strata."
            )
        public_steps.column_names(self.columns, self.n_features_in_, self._raw_names(), X)
        features = self._features(self.columns)
        # A release must describe the columns as they are: else predictions would fail.
        (names, description), n_columns = self._described(), self.n_features_in_
        rebuilt = public_steps.rebuild(immutable("columns", description))
        of_one = partial(public_steps.made_of_one, n_columns=n_columns, names=names)
        first, second = map(of_one, (self.columns, rebuilt))
        same = same_features(features, public_steps.features_in(rebuilt, n_columns, names))
        if not (same and np.array_equal(first, second)):
            raise ValueError("columns must be steps that a release can describe.")
        return replace(seen, n_features=len(features))

    def _input_warnings(self, shape: Any, X: Any, y: Any = None, **options: Any) -> list[str]:
        found = super()._input_warnings(shape, X, y, **options)
        if self.columns is not None:
            found += wide_bounds(self._features(self.columns))
        if math.isinf(self.epsilon):
            return found
        # Noise on coefficients is measured by a norm of rows; other noise has other rules.
        if hasattr(self, "data_norm"):
            number = shape.n_features * getattr(shape, "n_outputs", 1)
            public = shape.n_records, float(self.epsilon), number
            found += shapes.small_budget(*public)
            method = getattr(self, "method", None)
            if getattr(method, "kind", method) == "auto" and not getattr(self, "delta", 1.0):
                found += shapes.helpful_delta(*public, shape.n_features)
            of_groups = getattr(getattr(self, "partition", None), "norms", None)
            norms = [self.data_norm, self.columns, of_groups]
            if all(norm is None or isinstance(norm, str) for norm in norms):
                found += shapes.unstated_norm()
            names = public_steps.column_names(self.columns, self.n_features_in_, self._raw_names())
            found += skewed_columns(public_steps.raw_kinds(self.columns, names))
        if self.columns is not None:
            # A stack, which reads priors in another way, has none.
            for model in getattr(self, "_is_evidence_of", ()):
                classes = getattr(shape, "classes", None)
                outputs = None if classes is None else classes.tolist()
                prior = self._read_prior(model, shape.n_features, outputs)
                found += [] if prior is None else shapes.missing_from_prior(prior.missing)
        return found

    def _caveats(self, shape: Any) -> list[Caveat]:
        found, prior = super()._caveats(shape), getattr(self, "prior", None)
        if prior is not None:
            ledger = self.accountant
            known = [] if ledger is None else of_the_same_ledger(prior, ledger)
            found += [Caveat("proved", text) for text in (*known, *Promises.of(prior).leaks())]
        return found

    def _check_together(self) -> None:
        Promises.of(getattr(self, "prior", None))

    def _features(self, columns: Any) -> list[Feature]:
        """Return the features of raw columns, once their number and names are set."""
        if not hasattr(self, "n_features_in_") and isinstance(columns, PublicColumns):
            return columns._features()  # a plan without records
        return public_steps.features_in(columns, self.n_features_in_, self._raw_names())

    def _raw_names(self) -> list[str] | None:
        return list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    def _feature_names(self) -> list[str] | None:
        """Return the names of the features of a fit, or None if there are none."""
        if self.columns is None:
            return self._raw_names()
        return [feature.name for feature in self._features(self.columns)]

    def _read_prior(self, model: str, n_features: int, outputs: Any = None) -> Prior | None:
        """Return the evidence of ``prior`` about the coefficients of a fit; None without one."""
        prior: Release | None = getattr(self, "prior", None)
        if prior is None:
            return None
        features = None if self.columns is None else self._features(self.columns)
        names = self._feature_names()
        return Prior.read(prior, model, n_features, names, self.columns, features, outputs)

    def _fitting_rows(self, X: Any) -> FloatArray:
        """Return the features of records, after refusing values outside the public domain."""
        return self._rows(X, self.columns)

    def _memory_ratio(self, shape: Shape) -> float:
        """Return the memory of features relative to that of the raw columns."""
        return (shape.n_features + 2) / (self.n_features_in_ + 2)

    def _prediction_rows(self, X: Any) -> FloatArray:
        """Return the features of rows to predict for."""
        check_is_fitted(self)
        # A product has other last bits in another layout of memory.
        return np.ascontiguousarray(self._rows(X, self.columns_))

    def _of_rows(self, X: Any, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return a function of the features of rows to predict for, which are made in blocks."""
        check_is_fitted(self)
        n_rows = 0 if self.columns_ is None else input_errors.call_or_none(shapes.length, X) or 0
        step = max(1, BLOCK_ELEMENTS // self.release_.n_features)
        if n_rows <= step:
            return function(self._prediction_rows(X))
        blocks = (shapes.take(X, slice(start, start + step)) for start in range(0, n_rows, step))
        return np.concatenate([function(self._prediction_rows(block)) for block in blocks])

    def _of_features(self) -> Self:
        """Return a copy of the model that takes rows of features, in place of raw columns."""
        plain = copy.copy(self)
        plain.columns_ = None
        plain.n_features_in_ = self.release_.n_features
        plain.__dict__.pop("feature_names_in_", None)
        return plain

    def __sklearn_tags__(self) -> Any:
        # Selectors ask for tags before they look at X: later errors of theirs quote its cells.
        frame = inspect.currentframe() if self.columns is not None else None
        while frame is not None:
            selects = str(frame.f_globals.get("__name__")).startswith(SELECTORS)
            if selects and frame.f_code.co_name != "__sklearn_tags__":  # but not for a repr
                raise TypeError(phrase("no_selector"))
            frame = frame.f_back
        return super().__sklearn_tags__()

    def _rows(self, X: Any, columns: Any) -> FloatArray:
        shapes.require_in_memory(X)
        X = unlabelled(X)
        if columns is None:
            shapes.refuse_moments(X)
            input_errors.refuse_foreign_cells(X)
            options = {"dtype": np.float64, "reset": False, "ensure_min_samples": 0}
            return np.asarray(call_without_data(validate_data, self, X, **options))
        if is_frame(X):  # others have no names that could be wrong
            call_without_data(validate_data, self, X, skip_check_array=True, reset=False)
        return public_steps.encoded(columns, X, self.n_features_in_, self._raw_names())


def ask_alone(
    model: Any,
    ask: Callable[[Any, int], Any],
    n_times: int,
    shape: tuple[int, ...],
    *,
    copies: bool = True,
) -> FloatArray:
    """Return the numbers that a model, or a copy of it, gives for each record; NaN for a failure.

    No failure shows, and nothing is warned of. Threads would add up the trees of a forest in the
    order in which they end: in one thread no record moves the last bits of another one.
    """

    def answer(i: int) -> FloatArray:
        return np.asarray(ask(copy.deepcopy(model) if copies else model, i), dtype=np.float64)

    answers = np.full((n_times, *shape), np.nan)
    with suppressed_warnings(), suppressed_float_errors(), parallel_config("sequential"):
        for i in range(n_times):
            found = input_errors.call_or_none(answer, i)
            if found is not None and found.shape == shape:
                answers[i] = found
    return answers


class UnprotectedScore:
    """Mixin of a score that is not private."""

    predict: Callable[..., NDArray[Any]]

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of classes, or the coefficient of determination; not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        float
        """
        shapes.require_in_memory(X, y, sample_weight)
        return self._score_of(unlabelled(y, "y"), self.predict(X), unlabelled(sample_weight))

    def _score_of(self, y: ArrayLike, predicted: NDArray[Any], sample_weight: Any) -> float:
        raise NotImplementedError


class LinearEstimator(TabularEstimator, takes=("rows", "outcomes")):
    """Base of private models of a linear predictor, of rows whose norm has a public bound."""

    _rules: ClassVar[dict[str, Check]] = {"data_norm": optional(positive())}

    data_norm: float | None

    def fit(self, X: ArrayLike, y: ArrayLike, *, person: ArrayLike | None = None) -> Self:
        """Fit, spending ``epsilon`` on all that is released.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite. Private.
        y : array-like of shape (n_samples,)
            Outcomes, or labels of classes. Private.
        person : array-like of shape (n_samples,), or None
            Person identifiers, as whole numbers or text. The first record of each person is used,
            and the guarantee is about people. Private. None: nobody has two records.

        Returns
        -------
        self
        """
        return self._fit(X, y, person=person)

    @property
    def _norm(self) -> float:
        """Public bound on the Euclidean norm of a row: ``data_norm``, or 1 after scaling."""
        return 1.0 if self.data_norm is None else float(self.data_norm)

    def _blocks(
        self, read: Callable[..., Any], shape: Any, X: ArrayLike, y: ArrayLike
    ) -> Blocks[Any]:
        """Cut X and y into blocks of rows, and apply ``read`` to each block by itself."""
        blocks = in_blocks(X, y, width=shape.n_features)
        blocks = blocks.map(partial(read, self._without_ledger(), shape))
        records = blocks.persist(self._memory_ratio(shape))
        shape.require(records.map_reduce(lambda block: block.X.shape[0]))
        return records


def one_column(y: Any, n_records: int, dtype: Any = None) -> NDArray[Any]:
    """Return outcomes as an array, one for each record; private."""
    shapes.refuse_no_target(y)
    input_errors.refuse_masked(y, "y")
    column: NDArray[Any] | None = input_errors.call_or_none(partial(np.asarray, dtype=dtype), y)
    if column is not None and column.ndim == 2 and column.shape[1] == 1:
        said = "A column-vector y was passed when a 1d array was expected."
        warnings.warn(said, DataConversionWarning, stacklevel=3)
        column = column[:, 0]
    if column is None or column.ndim != 1:
        raise ValueError(NO_OUTCOME)
    shapes.require_one_each(column.size, n_records)
    return column


def checked_numbers(y: Any, n_records: int) -> FloatArray:
    """Return finite numbers, one for each record; private."""
    numbers = input_errors.as_float_array(one_column(y, n_records), "y")
    input_errors.check_finite(numbers, "y")
    return numbers
