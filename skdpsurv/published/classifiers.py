"""PublishedLogisticRegression and PublishedStackingClassifier: as the papers have them."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from skdpsurv.classification import budgets
from skdpsurv.classification.logistic_measurements import LogisticMinimisers
from skdpsurv.classification.private_classifier import LabelledShape, LogisticModel
from skdpsurv.classification.stack_plan import FeaturePartition, LogisticCombiner
from skdpsurv.classification.stacking_model import StackingModel
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, positive
from skdpsurv.dp.plan import Plan
from skdpsurv.mechanisms.perturbation import NAMES
from skdpsurv.release import Release


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

    # Parameters that it lacks.
    calibration = "published"
    max_residual = 1.0
    prior = None
    inference_share = 0.0

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


class PublishedStackingClassifier(StackingModel):
    """Private stacking with the algorithms and constants of the paper.

    Parameters
    ----------
    epsilon, columns, partition, n_partitions, combiner, data_norm
        As for :class:`~skdpsurv.PrivateStackingClassifier`.
    fit_intercept, intercept_scaling, prior, classes, random_state, accountant
        As for :class:`~skdpsurv.PrivateStackingClassifier`. The paper's stacks have
        ``combiner="logistic"``.
    alpha : float or "auto", default="auto"
        The paper's Lambda; "auto" is 0.01.

    Attributes
    ----------
    classes_, feature_groups_, weights_, guarantee_, release_
        As for :class:`~skdpsurv.PrivateStackingClassifier`.
    low_level_coef_, low_level_intercept_, high_level_coef_, high_level_intercept_
        As for :class:`~skdpsurv.PrivateStackingClassifier`; residuals are not capped.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem: docs/proofs/stacking.

    References
    ----------
    .. [1] X. Guo, Q. Yao, J. T. Kwok, W.-W. Tu, Y. Chen, W. Dai and Q. Yang, "Privacy-preserving
       stacking with application to cross-organizational diabetes prediction", arXiv 1811.09491.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpsurv.published import PublishedStackingClassifier
    >>> X = np.linspace(-1.0, 1.0, 400).reshape(-1, 2) / np.sqrt(2)
    >>> model = PublishedStackingClassifier(5.0, combiner="logistic", classes=[0, 1])
    >>> model.fit(X, X[:, 0] > 0).guarantee_.status
    'proved'
    """

    # Parameters that it lacks.
    calibration = "published"
    max_residual = 1.0
    delta = 0.0
    n_jobs = None

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        columns: Any = None,
        partition: str | FeaturePartition = "features",
        n_partitions: int | None = None,
        combiner: str | LogisticCombiner = "weighted_vote",
        alpha: float | str = "auto",
        data_norm: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.1,
        prior: Release | None = None,
        classes: ArrayLike | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.columns = columns
        self.partition = partition
        self.n_partitions = n_partitions
        self.combiner = combiner
        self.alpha = alpha
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.prior = prior
        self.classes = classes
        self.random_state = random_state
        self.accountant = accountant
