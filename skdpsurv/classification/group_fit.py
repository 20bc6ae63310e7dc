"""Logistic models of one set of records: one for each group of columns and each class.

A plan is made from public numbers alone, before anything is charged: it knows what each model will
see of a record, and the scale of its noise. :mod:`skdpsurv.classification.budgets` makes plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.classification.column_group import ColumnGroup
from skdpsurv.likelihoods.logistic import Logistic
from skdpsurv.mechanisms.perturbation import Problem, Scales
from skdpsurv.types import FloatArray


class Coefficients(NamedTuple):
    """Linear models on the scale of X: coef (n_outputs, n_columns), intercept (n_outputs,)."""

    coef: FloatArray
    intercept: FloatArray

    def predictor(self, X: FloatArray) -> FloatArray:
        """Return linear predictors, of shape (n_samples, n_outputs)."""
        return np.asarray(X @ self.coef.T + self.intercept)


@dataclass(frozen=True)
class GroupFit:
    """The plan of a fit.

    Parameters
    ----------
    n_records : int
    n_outputs : int
        1 for two classes, else their number; each output has an equal share of epsilon.
    data_norm : float
        Bound on whole rows; inf for none.
    max_residual : float
        c of the logistic loss.
    groups : tuple of ColumnGroup
    calibrations : tuple
        One for each group.
    centers : tuple of ndarray of shape (n_outputs, n_params)
        What the models of each group are shrunk towards. Public.
    """

    n_records: int
    n_outputs: int
    data_norm: float
    max_residual: float
    groups: tuple[ColumnGroup, ...]
    calibrations: tuple[Scales, ...]
    centers: tuple[FloatArray, ...]

    def problems(
        self,
        X: FloatArray,
        signs: FloatArray,
    ) -> list[Problem]:
        """Return the minimisations, group by group and output by output within.

        Parameters
        ----------
        X : ndarray of shape (n_records, n_features)
            Rows within ``data_norm``. Private.
        signs : ndarray of shape (n_outputs, n_records)
            1 for the class of an output, -1 for the rest. Private.
        """
        problems = []
        for group, calibration, centers in zip(
            self.groups, self.calibrations, self.centers, strict=True
        ):
            rows = group.rows(X, self.data_norm)
            likelihood = Logistic(group.n_params, group.bound, self.max_residual)
            problems += [
                Problem(likelihood, group.blocks(rows, sign), calibration, center)
                for sign, center in zip(signs, centers, strict=True)
            ]
        return problems

    def coefficients(self, released: Sequence[FloatArray]) -> list[Coefficients]:
        """Return what was released, in the order of :meth:`problems`, on the scale of X."""
        models = []
        for k, group in enumerate(self.groups):
            outputs = released[k * self.n_outputs : (k + 1) * self.n_outputs]
            coefs, intercepts = zip(*(group.from_model(f) for f in outputs), strict=True)
            models.append(Coefficients(np.array(coefs), np.array(intercepts)))
        return models

    def spans(self) -> list[float]:
        """Return the public numbers that must be neither huge nor tiny."""
        spans = [group.norm for group in self.groups] + [group.factor for group in self.groups]
        for calibration in self.calibrations:
            scales = (calibration.linear_scale, calibration.output_scale)
            spans += [calibration.kappa, max(scales) or 1.0]
        return spans

    def public_inputs(self) -> dict[str, Any]:
        """Return how epsilon was spent."""
        return {
            "max_residual": self.max_residual,
            "kappa": [calibration.kappa for calibration in self.calibrations],
            "noise_scale": [
                max(calibration.linear_scale, calibration.output_scale)
                for calibration in self.calibrations
            ],
        }
