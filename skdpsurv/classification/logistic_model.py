"""A private logistic regression, however it is fitted: its minimisers, and what it predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skdpsurv.blocks import Blocks
from skdpsurv.classification import budgets
from skdpsurv.classification.class_formula import chance, write_classes
from skdpsurv.classification.group_fit import Coefficients, GroupFit, SignedRows
from skdpsurv.classification.margin_table import LARGEST_SLOPE, LEAST_SLOPE
from skdpsurv.classification.private_classifier import (
    ASSUMPTIONS,
    LabelledShape,
    PrivateClassifier,
    checked_caps,
)
from skdpsurv.inference import Inference, Summarised
from skdpsurv.likelihoods.logistic import probability
from skdpsurv.mechanisms.perturbation import Minimisers, Perturbed, Problem
from skdpsurv.priors import Prior
from skdpsurv.privacy.cost import Cost
from skdpsurv.privacy.measurement import GAUSSIAN, Known
from skdpsurv.privacy.plan import Plan, Sequential
from skdpsurv.references import reference
from skdpsurv.release import Release, released_array
from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from skdpsurv.scoring.script import Script

__all__ = ["LogisticMinimisers", "LogisticModel"]


@dataclass(frozen=True, eq=False)
class LogisticMinimisers(Minimisers):
    """One model of all columns, or one for each class.

    Parameters
    ----------
    fit : GroupFit
    name : str
    slope : float
        What predicted log odds are multiplied with as long as no record says more: public.
    prior : Prior or None, default=None
        What improves the coefficients if they agree with it.
    """

    fit: GroupFit
    name: str
    slope: float
    prior: Prior | None = None

    @property
    def cost(self) -> Cost:
        """What the models were calibrated for."""
        return self.fit.cost

    @property
    def noise(self) -> float:  # type: ignore[override]
        """How long the noise on gradients is, in units of the cap."""
        return self.fit.noise((1.0,))

    @property
    def proof(self) -> str:  # type: ignore[override]
        """Where it is proved."""
        return GAUSSIAN if self.fit.prices else reference("docs/proofs/logistic", "chaudhuri")

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a prior promises."""
        return () if self.prior is None else self.prior.promises.assumptions()

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        return self.fit.spans()

    def stated(self) -> dict[str, Any]:
        """Return how the models were calibrated, and what a prior is."""
        prior = {} if self.prior is None else self.prior.promises.public_inputs()
        return {**self.fit.public_inputs(), "public_slope": self.slope, **prior}

    def problems(self, known: Known, records: Blocks[SignedRows]) -> list[Problem]:
        """Return the minimisations, output by output."""
        return self.fit.problems(records)

    def after(self, known: Known, found: list[Perturbed]) -> dict[str, Any]:
        """Return coefficients and intercepts, what they are worth, and their public slope."""
        fit, minimisers = self.fit, [each.coef for each in found]
        (model,), slope = fit.coefficients(minimisers), self.slope
        own: dict[str, Any] = {}
        if fit.calibrations[0].noise_scale:
            evidence = fit.evidence(minimisers)
            shrunk, model = model, fit.improved(model, evidence, self.prior)
            # What a prior is weighed with is not shrunk: there is nothing left to undo.
            slope = slope if np.array_equal(model.coef, shrunk.coef) else 1.0
            own = evidence.values()
        return {
            "_minimiser": found[0],
            "_model": model,
            "coef": model.coef,
            "intercept": model.intercept,
            "max_residual": fit.max_residual,
            "recalibration_slope": slope,
            **own,
        }


class LogisticModel(Summarised, PrivateClassifier, ABC):
    """Base of private logistic regressions: a subclass says by which plan they are fitted."""

    @abstractmethod
    def _plan(self, shape: LabelledShape) -> Plan:
        """Decide from public numbers alone how epsilon is spent."""

    def _set_fitted(self, release: Release) -> None:
        self._set_classes(release)
        shape = (self._n_outputs, release.n_features)
        self.coef_ = released_array(release, "coef", shape)
        self.intercept_ = released_array(release, "intercept", shape[:1])
        self.max_residual_ = float(checked_caps(np.array(release.values.get("max_residual")), ()))
        self.recalibration_slope_ = _checked_slope(release)
        n_common = int(bool(release.parameters.get("fit_intercept")))
        self.inference_ = Inference.of(release, n_common + release.n_features)

    def _scores(self, X: FloatArray) -> FloatArray:
        return Coefficients(self.coef_, self.intercept_).predictor(X)

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        return probability(scores, self.max_residual_, self.recalibration_slope_)

    def _group_setting(self, shape: LabelledShape) -> budgets.GroupSetting:
        """Return what is public of a fit: one group of all columns."""
        return budgets.GroupSetting(
            n_records=shape.n_records,
            n_outputs=shape.n_outputs,
            groups=(tuple(range(shape.n_features)),),
            weights=(1.0,),
            group_norms=(self._norm,),
            **self._numbers(),
        )

    def _without_privacy(self, shape: LabelledShape) -> Plan:
        """Plan the fit without noise."""
        fit = budgets.unperturbed(self._group_setting(shape))
        name = "penalised likelihood, no noise"
        return self._as_plan(shape, [LogisticMinimisers(fit, name, 1.0)], 0.0)

    def _as_plan(self, shape: LabelledShape, measurements: list[Any], delta: float) -> Plan:
        unit = "mu" if delta else "epsilon"
        return Plan(
            Sequential(tuple(measurements)),
            float(self.epsilon),
            delta,
            inputs={**self._public(shape), f"{unit}_recalibration": 0.0},
            assumed=ASSUMPTIONS,
        )

    def _formula(self, script: Script) -> str:
        scores = list(map(script.linear, self.coef_, self.intercept_))
        likely = chance(script, "{}", self.max_residual_, self.recalibration_slope_)
        return write_classes(script, self.classes_, scores, likely)


def _checked_slope(release: Release) -> float:
    """Return the slope that a release holds; releases of earlier versions have none.

    Raises
    ------
    ValueError
        If it is no slope that a fit can have.
    """
    if "recalibration_slope" not in release.values:
        return 1.0
    slope = float(released_array(release, "recalibration_slope", ()))
    if not LEAST_SLOPE <= slope <= LARGEST_SLOPE:
        raise ValueError(
            "values of the release must hold a recalibration_slope between "
            f"{LEAST_SLOPE:g} and {LARGEST_SLOPE:g}."
        )
    return slope
