"""PrivateLinearModel: the base of private regressions on a linear predictor."""

from __future__ import annotations

import inspect
import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score

from skdpsurv.data.blocks import Blocks, in_blocks
from skdpsurv.data.shape import Shape, refuse_no_target, require_in_memory, require_one_each
from skdpsurv.dp import check_unclipped, clip_rows, refuse_masked
from skdpsurv.dp.checks import Check, choice, optional, positive, zero_or
from skdpsurv.dp.domain import as_float_array
from skdpsurv.dp.measurement import Known
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.references import REAL_ARITHMETIC, reference
from skdpsurv.dp.refusals import REAL, all_of, attempted
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
from skdpsurv.regression.tabular import TabularEstimator
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

    def spans(self) -> list[float]:
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

    def _read(self, shape: Any, X: ArrayLike, y: ArrayLike) -> Blocks[Any]:
        block = partial(self._without_ledger()._block, shape)
        records = in_blocks(X, y).map(block).held(self._growth(shape))
        shape.require(records.map_sum(lambda block: block.X.shape[0]))
        return records

    def _block(self, shape: Any, block: tuple[Any, ...]) -> Any:
        """Return some of the records, after refusing what has no place in the public domain."""
        raise NotImplementedError


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
        stated = {"n_records": n, **self._stated(shape)}
        minimiser = LinearMinimiser(likelihood, how, epsilon, mechanism)
        return Plan(minimiser, epsilon, inputs=stated, assumed=ASSUMED)

    def _block(self, shape: Shape, block: tuple[Any, ...]) -> LinearBlock:
        X, y = block
        rows = self._fitting_rows(X)
        outcomes = self._outcomes(checked_outcomes(y, rows.shape[0]))
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

    def _stated(self, shape: Shape) -> dict[str, Any]:
        names = inspect.signature(type(self)).parameters
        own = [name for name in names if name not in PrivateLinearModel._not_stated]
        return {name: plain(getattr(self, name)) for name in own} | {"data_norm": self._norm}

    def _set_fitted(self, release: Release) -> None:
        check_parameters(release, *self._stated(Shape(0, 0)))
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
        rows = self._asked_rows(X)
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
        outcomes = checked_outcomes(y, predicted.size)
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


def plain(value: Any) -> Any:
    """Return a parameter as Python's own number, which a release can hold."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def checked_outcomes(y: Any, n_records: int) -> FloatArray:
    """Return finite numbers, one for each record."""
    refuse_no_target(y)
    refuse_masked(y, "y")
    column: Any = attempted(np.asarray, y)
    column = np.empty(0, dtype=object) if column is None else column
    if column.dtype.kind == "O" and all_of(REAL, column.ravel().tolist()):
        column = as_float_array(column, "y")
    if column.ndim == 2 and column.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            DataConversionWarning,
            stacklevel=9,
        )
        column = column[:, 0]
    if column.dtype.kind not in "biuf" or column.ndim != 1:
        raise ValueError("Unknown label type: y must be 1-D, a number for each record.")
    require_one_each(column.size, n_records)
    outcomes = column.astype(np.float64)
    if not np.isfinite(outcomes).all():
        raise ValueError("y must be finite: Input y contains NaN or infinity.")
    return np.asarray(outcomes)
