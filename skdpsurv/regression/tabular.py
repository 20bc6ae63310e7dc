"""Estimators of tables of raw rows, and among these regressions on a linear predictor."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from skdpsurv.base import PrivateEstimator, Weakness
from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.feature import (
    Feature,
    missing_from_prior,
    same_features,
    small_budget,
    unstated_norm,
    wide_bounds,
)
from skdpsurv.data.public_steps import (
    encoded,
    features_in,
    made_of_one,
    public_transformer,
    rebuild,
)
from skdpsurv.data.shape import (
    Shape,
    is_frame,
    public_shape,
    refuse_moments,
    refuse_no_target,
    require_in_memory,
    require_one_each,
)
from skdpsurv.dp import call_without_data, check_finite, check_unclipped, clip_rows, refuse_masked
from skdpsurv.dp.checks import Check, choice, optional, positive, zero_or
from skdpsurv.dp.guarantee import frozen
from skdpsurv.dp.input_errors import as_float_array, call_or_none, refuse_foreign_cells
from skdpsurv.dp.plan import Known, Plan
from skdpsurv.dp.references import REAL_ARITHMETIC, reference
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.linear import LinearBlock, LinearLikelihood, ScalarLoss
from skdpsurv.mechanisms.perturbation import (
    NAMES,
    PURE,
    Calibrated,
    Minimisers,
    Perturbed,
    Problem,
    SharedPrice,
    Unperturbed,
    calibrate,
)
from skdpsurv.priors import Prior, of_the_same_ledger
from skdpsurv.release import Release, check_parameters, released_array

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

ASSUMED = (
    "n, the columns and every constructor parameter are public",
    "bounds were not read off these records",
    REAL_ARITHMETIC,
)
#: Ridge of the fit without privacy where ``alpha`` is 0: there may be no finite optimum.
LEAST_PENALTY = 1e-6
NO_OUTCOME = "y must be a 1d array of labels or numbers."


def _transformer(name: str, columns: Any) -> None:
    if columns is not None:
        public_transformer(name, columns)


class TabularEstimator(PrivateEstimator):
    """Base of private estimators whose X is a table.

    A subclass has the parameter ``columns``, and sees rows of numbers: those of
    :meth:`_fitting_rows` in ``fit``, and of :meth:`_prediction_rows` later. With ``columns`` these
    are features, which a public transformer makes of raw rows. It is cloned, and applied to each
    block of rows by itself: as it learns nothing, what it makes of a row depends on that row
    alone, and neighbours stay neighbours (docs/proofs/columns).
    """

    columns: Any = None
    #: The transformer of the fit, or None. Public.
    columns_: Any
    n_features_in_: int

    _rules: ClassVar[dict[str, Check]] = {"columns": _transformer}

    def _shape(self, X: Any, *args: Any, **kwargs: Any) -> Shape:
        """Return how many records there are, and how many features their columns make."""
        seen = public_shape(self, X)
        if self.columns is None:
            return seen
        features = self._features(self.columns)
        # What a release will say of the columns must be what they are: else predictions would fail.
        names, description = self._described()
        again = rebuild(frozen("columns", description))
        n_columns = self.n_features_in_
        made, remade = (made_of_one(step, n_columns, names) for step in (self.columns, again))
        same = same_features(features, features_in(again, n_columns, names))
        if not (same and np.array_equal(made, remade)):
            raise ValueError("columns must be steps that a release can describe.")
        return replace(seen, n_features=len(features))

    def _input_warnings(self, shape: Any, X: Any, y: Any = None, **options: Any) -> list[str]:
        doubts = super()._input_warnings(shape, X, y, **options)
        if self.columns is not None:
            doubts += wide_bounds(self._features(self.columns))
        # Noise on coefficients is measured by a norm of rows; other noise has other rules.
        if hasattr(self, "data_norm") and math.isfinite(self.epsilon):
            number = shape.n_features * getattr(shape, "n_outputs", 1)
            doubts += small_budget(shape.n_records, float(self.epsilon), number)
            of_groups = getattr(getattr(self, "partition", None), "norms", None)
            norms = [self.data_norm, self.columns, of_groups]
            if all(norm is None or isinstance(norm, str) for norm in norms):
                doubts += unstated_norm()
        if self.columns is not None and math.isfinite(self.epsilon):
            # A stack, which is evidence of nothing, reads priors in another way.
            for model in getattr(self, "_is_evidence_of", ()):
                classes = getattr(shape, "classes", None)
                outputs = None if classes is None else classes.tolist()
                found = self._read_prior(model, shape.n_features, outputs)
                doubts += [] if found is None else missing_from_prior(found.lacking)
        return doubts

    def _weaknesses(self, shape: Any) -> list[Weakness]:
        found, prior = super()._weaknesses(shape), getattr(self, "prior", None)
        if prior is not None and self.accountant is not None:
            known = of_the_same_ledger(prior, self.accountant)
            found += [Weakness("proved", text) for text in known]
        return found

    def _features(self, columns: Any) -> list[Feature]:
        """Return what columns make, once their number and names were seen."""
        return features_in(columns, self.n_features_in_, self._raw_names())

    def _raw_names(self) -> list[str] | None:
        return list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    def _feature_names(self) -> list[str] | None:
        """Return the names of the features of a fit, or None if there are none."""
        if self.columns is None:
            return self._raw_names()
        return [feature.name for feature in self._features(self.columns)]

    def _read_prior(self, model: str, n_features: int, outputs: Any = None) -> Prior | None:
        """Return what ``prior`` says of the coefficients of a fit; None without one."""
        prior: Release | None = getattr(self, "prior", None)
        if prior is None:
            return None
        features = None if self.columns is None else self._features(self.columns)
        names = self._feature_names()
        return Prior.read(prior, model, n_features, names, self.columns, features, outputs)

    def _fitting_rows(self, X: Any) -> FloatArray:
        """Return the features of records, after refusing what has no place in the public domain."""
        return self._rows(X, self.columns)

    def _growth(self, shape: Shape) -> float:
        """Return how much more memory features take than the columns that they are made of."""
        return (shape.n_features + 2) / (self.n_features_in_ + 2)

    def _prediction_rows(self, X: Any) -> FloatArray:
        """Return the features of rows that somebody asks about."""
        check_is_fitted(self)
        # A product has other last bits in another layout of memory.
        return np.ascontiguousarray(self._rows(X, self.columns_))

    def _of_features(self) -> Self:
        """Return the same model, of rows that are features already."""
        plain = copy.copy(self)
        plain.columns_ = None
        plain.n_features_in_ = self.release_.n_features
        plain.__dict__.pop("feature_names_in_", None)
        return plain

    def _rows(self, X: Any, columns: Any) -> FloatArray:
        require_in_memory(X)
        if columns is None:
            refuse_moments(X)
            refuse_foreign_cells(X)
            options = {"dtype": np.float64, "reset": False}
            return np.asarray(call_without_data(validate_data, self, X, **options))
        if is_frame(X):  # others have no names that could be wrong
            call_without_data(validate_data, self, X, skip_check_array=True, reset=False)
        return encoded(columns, X, self.n_features_in_, self._raw_names())


@dataclass(frozen=True, eq=False)
class LinearMinimiser(Minimisers):
    """A perturbed minimiser of a loss of one predictor.

    Parameters
    ----------
    likelihood : LinearLikelihood
    calibration : Calibrated
    price : float
    name : str
    """

    likelihood: LinearLikelihood
    calibration: Calibrated
    price: float
    name: str

    alone = True
    proof = reference("docs/proofs/linear", "chaudhuri")

    def scales(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        how = self.calibration
        return [self.likelihood.data_norm, how.kappa, how.noise_scale or 1.0]

    def stated(self) -> dict[str, Any]:
        """Return ridge and noise."""
        return {"kappa": self.calibration.kappa, "noise_scale": self.calibration.noise_scale}

    def problems(self, known: Known, records: Blocks[LinearBlock]) -> list[Problem]:
        """Return the one minimisation."""
        center = np.zeros(self.likelihood.n_params)
        price = SharedPrice(self.price)
        return [Problem(self.likelihood, records, self.calibration, center, price)]

    def after(self, known: Known, found: list[Perturbed]) -> dict[str, Any]:
        """Return the coefficients, that of the constant last."""
        return {"coef": found[0].coef}


class LinearEstimator(TabularEstimator):
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
            Whose each record is, as whole numbers or text: of each person the first record is used,
            and the guarantee is about people. Private. None: nobody has two records.

        Returns
        -------
        self
        """
        return self._fit(X, y, person=person)

    @property
    def _norm(self) -> float:
        """The bound on the norm of a row that a fit uses."""
        return 1.0 if self.data_norm is None else float(self.data_norm)

    def _blocks(
        self, read: Callable[..., Any], shape: Any, X: ArrayLike, y: ArrayLike
    ) -> Blocks[Any]:
        """Return records, each block of them read by itself."""
        blocks = in_blocks(X, y).map(partial(read, self._without_ledger(), shape))
        records = blocks.held(self._growth(shape))
        shape.require(records.map_reduce(lambda block: block.X.shape[0]))
        return records


class PrivateLinearModel(RegressorMixin, LinearEstimator, ABC):
    """Base of private regressions on a linear predictor, with an intercept.

    The intercept is the coefficient of a constant column of size ``data_norm``: it counts in the
    norm of a row, and is regularised like the rest. With None, which a subclass should have as its
    default, that is 1, and a fit without ``columns`` asks whether rows are so short. A subclass
    says

    * ``_loss()``: its :class:`~skdpsurv.likelihoods.linear.ScalarLoss`;
    * ``_outcome_range()``: the public ends of what an outcome can be;
    * ``_outcomes(y)``: outcomes, each by itself brought into the domain of the loss;
    * ``_mean(predictor)``: the expected outcome;
    * ``_mean_formula()``: the same as text, if the model is to have a formula.

    Parameters that it adds have rules in ``_rules``.
    """

    _rules: ClassVar[dict[str, Check]] = {"alpha": zero_or(positive()), "method": choice(*PURE)}

    #: Parameters that no release needs, or holds in another place.
    _not_stated = ("epsilon", "random_state", "accountant", "columns")

    alpha: float
    method: str

    @abstractmethod
    def _loss(self) -> ScalarLoss:
        """Return the loss of one record."""

    @abstractmethod
    def _outcome_range(self) -> tuple[float, float]:
        """Return the least and the largest outcome; public."""

    @abstractmethod
    def _outcomes(self, y: FloatArray) -> FloatArray:
        """Return outcomes in the domain of the loss."""

    @abstractmethod
    def _mean(self, predictor: FloatArray) -> FloatArray:
        """Return expected outcomes."""

    def _plan(self, shape: Shape) -> Plan:
        # Rows and the constant, each within data_norm.
        n, norm = shape.n_records, math.sqrt(2.0) * self._norm
        likelihood = LinearLikelihood(self._loss(), shape.n_features + 1, norm)
        epsilon, alpha, d = float(self.epsilon), float(self.alpha), likelihood.n_params
        if math.isinf(epsilon):
            how: Calibrated = Unperturbed(max(n * alpha, LEAST_PENALTY))
            mechanism = "penalised likelihood, no noise"
        else:
            law, constants = self._noise_law, likelihood.constants
            how = calibrate(self.method, constants, epsilon, n, d, alpha, law)
            mechanism = f"{NAMES[self.method]} of a linear model"
        stated = {"n_records": n, **self._release_parameters(shape)}
        minimiser = LinearMinimiser(likelihood, how, epsilon, mechanism)
        return Plan(minimiser, epsilon, inputs=stated, assumed=ASSUMED)

    def _read(self, shape: Shape, X: ArrayLike, y: ArrayLike) -> Blocks[LinearBlock]:
        return self._blocks(PrivateLinearModel._with_outcomes, shape, X, y)

    def _with_outcomes(self, shape: Shape, block: tuple[Any, ...]) -> LinearBlock:
        """Return some of the records, after refusing what has no place in the public domain."""
        X, y = block
        rows = self._fitting_rows(X)
        outcomes = self._outcomes(checked_numbers(y, rows.shape[0]))
        if not np.isfinite(outcomes).all():
            raise ValueError("y must hold outcomes in the domain of the loss.")
        norm = self._norm
        constant = np.full((rows.shape[0], 1), norm)
        if math.isinf(self.epsilon):
            check_unclipped(rows, "X")
            check_unclipped(constant, "data_norm")
        else:
            rows = clip_rows(rows, norm)
        return LinearBlock(np.hstack([rows, constant]), np.clip(outcomes, *self._outcome_range()))

    def _release_parameters(self, shape: Shape) -> dict[str, Any]:
        names = inspect.signature(type(self)).parameters
        own = {name: getattr(self, name) for name in names if name not in self._not_stated}
        # In Python's own numbers, which a release can hold.
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in own.items()}
        return {**plain, "data_norm": self._norm}

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, *self._release_parameters(Shape(0, 0)))
        values = released_array(release, "coef", (release.n_features + 1,))
        self.coef_ = values[:-1]
        self.intercept_ = float(values[-1] * release.parameters["data_norm"])

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return expected outcomes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._prediction_rows(X)
        with np.errstate(over="ignore"):
            return self._mean(rows @ self.coef_ + self.intercept_)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination, which is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        float
        """
        require_in_memory(X, y, sample_weight)
        predicted = self.predict(X)
        outcomes = checked_numbers(y, predicted.size)
        return float(r2_score(outcomes, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The small data sets of scikit-learn's checks drown in noise, as they should.
        tags.regressor_tags.poor_score = True
        return tags

    def _mean_formula(self) -> str:
        """Return ``_mean`` as an expression of ``score`` in Python's grammar."""
        raise ValueError(
            f"A {type(self).__name__} has no formula: its class must say in _mean_formula what "
            "_mean computes."
        )

    def _formula(self, script: Script) -> str:
        mean, score = self._mean_formula(), script.linear(self.coef_, self.intercept_)
        return f"score = {score}\nmean_outcome = {mean}"


def one_column(y: Any, n_records: int, dtype: Any = None) -> NDArray[Any]:
    """Return outcomes as an array, one for each record; private."""
    refuse_no_target(y)
    refuse_masked(y, "y")
    found: NDArray[Any] | None = call_or_none(partial(np.asarray, dtype=dtype), y)
    column = np.empty((0, 0, 0)) if found is None else found
    if column.ndim == 2 and column.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            DataConversionWarning,
            stacklevel=3,
        )
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(NO_OUTCOME)
    require_one_each(column.size, n_records)
    return column


def checked_numbers(y: Any, n_records: int) -> FloatArray:
    """Return finite numbers, one for each record; private."""
    numbers = as_float_array(one_column(y, n_records), "y")
    check_finite(numbers, "y")
    return numbers
