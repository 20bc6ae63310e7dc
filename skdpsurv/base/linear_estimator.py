"""Private regressions of an outcome on a linear predictor, by one perturbed minimiser."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from skdpsurv.base.tabular import LinearEstimator, UnprotectedScore, checked_numbers
from skdpsurv.data.blocks import Blocks
from skdpsurv.data.shape import Shape
from skdpsurv.dp.checks import Check, choice, positive, zero_or
from skdpsurv.dp.clipping import clip_rows
from skdpsurv.dp.input_errors import check_unclipped
from skdpsurv.dp.plan import Context, Plan
from skdpsurv.dp.references import REAL_ARITHMETIC, WORDS, reference
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.linear import LinearBlock, LinearLikelihood, ScalarLoss
from skdpsurv.mechanisms import perturbation
from skdpsurv.mechanisms.perturbation import Calibrated, Perturbed, Problem
from skdpsurv.release import Release, check_parameters, released_array

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

ASSUMED = (*WORDS["assumptions"]["regression"], REAL_ARITHMETIC)
#: Ridge of the fit without privacy where ``alpha`` is 0: there may be no finite optimum.
LEAST_PENALTY = 1e-6


@dataclass(frozen=True, eq=False)
class LinearMinimiser(perturbation.Minimisers):
    """The measurement of a private linear model: its loss, minimised with calibrated noise."""

    likelihood: LinearLikelihood
    calibration: Calibrated
    price: float
    name: str

    one_source = True
    proof = reference("docs/proofs/linear", "chaudhuri")

    def rests_on(self) -> list[type]:
        """Return the classes of the loss, of its calibration and of noise."""
        parts = perturbation.theorem_classes(self.likelihood, self.calibration)
        return [*parts, type(self.likelihood.loss)]

    def scales(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        how = self.calibration
        return [self.likelihood.data_norm, how.kappa, how.noise_scale or 1.0]

    def stated(self) -> dict[str, Any]:
        """Return ridge and noise scale, for the guarantee."""
        return {"kappa": self.calibration.kappa, "noise_scale": self.calibration.noise_scale}

    def calibrated(self, context: Context | None) -> list[Any]:
        """Return the likelihood and the calibration, as one pair."""
        return [(self.likelihood, self.calibration)]

    def problems(self, context: Context, records: Blocks[LinearBlock]) -> list[Problem]:
        """Return the minimisation of the fit, in a list of one."""
        center = np.zeros(self.likelihood.n_params)
        price = perturbation.SharedPrice(self.price)
        return [Problem(self.likelihood, records, self.calibration, center, price)]

    def postprocess(self, context: Context, found: list[Perturbed]) -> dict[str, Any]:
        """Return the released coefficients; that of the constant column is last."""
        return {"coef": found[0].coef}


class PrivateLinearModel(UnprotectedScore, RegressorMixin, LinearEstimator, ABC):
    """Base of private regressions on a linear predictor, with an intercept.

    The intercept is the coefficient of a constant column of size ``data_norm``, by default 1: it
    counts in the norm of a row, and is regularised like the rest. A subclass says

    * ``_loss()``: its :class:`~skdpsurv.likelihoods.linear.ScalarLoss`;
    * ``_outcome_range()``: the least and the largest outcome, which are public;
    * ``_outcomes(y)``: outcomes, each by itself brought into the domain of the loss;
    * ``_mean(predictor)``: the expected outcome;
    * ``_mean_formula()``: the same as text, if the model is to have a formula.

    Parameters that it adds have rules in ``_rules``.
    """

    _rules: ClassVar[dict[str, Check]] = {
        "alpha": zero_or(positive()),
        "method": choice(*perturbation.PURE),
    }

    #: Constructor parameters that are left out of ``parameters`` of a release.
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
        """Return the expected outcome at each value of the linear predictor."""

    def _plan(self, shape: Shape) -> Plan:
        # Rows and the constant, each within data_norm.
        n, norm, loss = shape.n_records, math.sqrt(2.0) * self._norm, self._loss()
        least, most = getattr(loss, "outcome_range", (-math.inf, math.inf))
        if not least <= min(self._outcome_range()) <= max(self._outcome_range()) <= most:
            raise ValueError("_outcome_range must lie within the outcomes of the loss.")
        likelihood = LinearLikelihood(loss, shape.n_features + 1, norm)
        epsilon, alpha, d = float(self.epsilon), float(self.alpha), likelihood.n_params
        if math.isinf(self.epsilon):
            how: Calibrated = perturbation.Unperturbed(max(n * alpha, LEAST_PENALTY))
            mechanism = "penalised likelihood, no noise"
        else:
            public = likelihood.constants, epsilon, n, d, alpha, self._noise_law
            how = perturbation.calibrate(self.method, *public)
            mechanism = f"{perturbation.NAMES[self.method]} of a linear model"
        stated = {"n_records": n, **self._release_parameters(shape)}
        minimiser = LinearMinimiser(likelihood, how, epsilon, mechanism)
        return Plan(minimiser, epsilon, inputs=stated, assumed=ASSUMED)

    def _read(self, shape: Shape, X: ArrayLike, y: ArrayLike) -> Blocks[LinearBlock]:
        return self._blocks(PrivateLinearModel._with_outcomes, shape, X, y)

    def _with_outcomes(self, shape: Shape, block: tuple[Any, ...]) -> LinearBlock:
        """Return a block of records, after refusing values outside the public domain."""
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
        own = {name: getattr(self, name) for name in self._ruled() if name not in self._not_stated}
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
        predictor = self._of_rows(X, lambda rows: np.asarray(rows @ self.coef_))
        with np.errstate(over="ignore"):
            return self._mean(predictor + self.intercept_)

    def _score_of(self, y: ArrayLike, predicted: FloatArray, sample_weight: Any) -> float:
        outcomes = checked_numbers(y, predicted.size)
        return float(r2_score(outcomes, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The small data sets of scikit-learn's checks drown in noise, as they should.
        tags.regressor_tags.poor_score = True
        return tags

    def _mean_formula(self) -> str:
        """Return ``_mean`` as an expression of ``score`` in Python's grammar."""
        raise ValueError(f"{type(self).__name__} has no formula, for want of _mean_formula.")

    def _formula(self, script: Script) -> str:
        mean, score = self._mean_formula(), script.linear(self.coef_, self.intercept_)
        return f"score = {score}\nmean_outcome = {mean}"
