"""PublishedLogisticRegression: as Chaudhuri et al. and Guo et al. have it."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from skdpsurv.checks import Check, positive
from skdpsurv.classification import budgets
from skdpsurv.classification.logistic_model import LogisticMinimisers, LogisticModel
from skdpsurv.classification.logistic_regression import ENOUGH
from skdpsurv.classification.private_classifier import LabelledShape
from skdpsurv.mechanisms.methods import NAMES
from skdpsurv.privacy import PrivacyAccountant
from skdpsurv.privacy.plan import Plan

__all__ = ["PublishedLogisticRegression"]


class PublishedLogisticRegression(LogisticModel):
    """Logistic regression by objective perturbation, with the papers' algorithm and constants.

    Parameters
    ----------
    epsilon, columns, data_norm, fit_intercept, intercept_scaling, classes, random_state
        As for :class:`~skdpsurv.DPLogisticRegression`.
    accountant
        As for :class:`~skdpsurv.DPLogisticRegression`.
    alpha : float or "auto", default="auto"
        The papers' Lambda; "auto" is 0.01.

    Attributes
    ----------
    classes_, coef_, intercept_, guarantee_, release_
        As for :class:`~skdpsurv.DPLogisticRegression`; residuals are not capped, and predicted log
        odds are not recalibrated.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem: docs/proofs/stacking, of one
    group.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk
       minimization", JMLR 12, 2011.
    .. [2] X. Guo, Q. Yao, J. T. Kwok, W.-W. Tu, Y. Chen, W. Dai and Q. Yang, "Privacy-preserving
       stacking with application to cross-organizational diabetes prediction", arXiv 1811.09491.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.published import PublishedLogisticRegression
    >>> X = np.linspace(-1.0, 1.0, 200).reshape(-1, 1)
    >>> model = PublishedLogisticRegression(5.0, classes=[0, 1]).fit(X, X[:, 0] > 0)
    >>> model.guarantee_.status
    'proved'
    """

    # What it does not have.
    calibration = "published"
    max_residual = 1.0
    prior = None
    inference_share = 0.0
    _inference_needs = (", which DPLogisticRegression has", ENOUGH)

    _rules: ClassVar[dict[str, Check]] = {"intercept_scaling": positive()}

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        columns: Any = None,
        alpha: float | str = "auto",
        data_norm: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.1,
        classes: ArrayLike | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.columns = columns
        self.alpha = alpha
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.random_state = random_state
        self.accountant = accountant

    def _plan(self, shape: LabelledShape) -> Plan:
        if math.isinf(self.epsilon):
            return self._without_privacy(shape)
        fit = budgets.published(self._one_group(shape))
        name = f"{NAMES['obj_pert']} of a logistic likelihood, as published"
        return self._as_plan(shape, [LogisticMinimisers(fit, name, 1.0)])
