"""PublishedStackingClassifier: as Guo et al. have it."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from skdpsurv.classification.feature_groups import FeaturePartition
from skdpsurv.classification.stack_plan import LogisticCombiner
from skdpsurv.classification.stacking_model import StackingModel
from skdpsurv.privacy import PrivacyAccountant
from skdpsurv.release import Release

__all__ = ["PublishedStackingClassifier"]


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

    # What it does not have.
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
