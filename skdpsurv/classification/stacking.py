"""PrivateStackingClassifier: private models of parts of the data, and their combination."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from skdpsurv.classification.stack_plan import FeaturePartition, LogisticCombiner
from skdpsurv.classification.stacking_model import StackingModel
from skdpsurv.dp.accountant import PrivacyAccountant
from skdpsurv.dp.checks import Check, auto_or, number_in, workers
from skdpsurv.release import Release


class PrivateStackingClassifier(StackingModel):
    r"""Private logistic models on parts of the data, combined by votes or by a model on top.

    Everything released (all models below, and the one on top) is together
    epsilon-differentially private under replacement of one record.

    With ``partition="features"`` each model sees a group of columns. Columns that are known to
    matter, from outside the data, get less of the noise (:class:`FeaturePartition`). With
    ``partition="samples"`` each model sees a part of the rows. A release of one organisation can be
    the ``prior`` that another organisation's models are shrunk towards: no row is ever shared.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, of all models together, spent whole. ``numpy.inf`` gives the
        same stack without any privacy, for reference.
    delta : float in [0, 1), default=0.0
        Probability with which the bound by epsilon may fail, at most :math:`1/n^2`. With one,
        models are fitted by noisy gradient descent if that needs less noise than objective
        perturbation, by public numbers; if no model is, ``guarantee_`` has ``delta=0``.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as :class:`~skdpsurv.data.PublicColumns`, which states
        public bounds and categories of the columns of X. It is cloned, learns nothing, and
        ``release_`` then stands alone. None: X holds numbers, taken as they are.
    partition : {"features", "samples"} or FeaturePartition, default="features"
        Parts of the data for the models below: columns, or rows. :class:`FeaturePartition` states
        groups of columns, their importances, and bounds on their norms; "features" is this with its
        defaults.
    n_partitions : int or None, default=None
        K. Ignored where groups of columns are given. None: 5, or a group for each column where
        there are fewer.
    combiner : {"weighted_vote", "logistic", "vote"} or LogisticCombiner, default="weighted_vote"
        Votes are probabilities, weighted by the groups' shares of importance or equally; they need
        no data, so all rows train the models below. :class:`LogisticCombiner`, by default for
        "logistic", is a private logistic regression on the votes, trained on rows held out.
    alpha : float or "auto", default="auto"
        Strength of the penalty :math:`\frac\alpha2\|w\|^2` beside the mean loss, in all models.
        "auto" is chosen from public numbers. More may be needed than you ask for.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X; longer rows are scaled down to it. None:
        where ``columns`` states spreads, columns are divided by them, as for
        :class:`DPLogisticRegression`, unless there are bounds on groups; otherwise 1, with a
        PublicInputWarning if neither ``columns`` nor bounds on groups are given.
    fit_intercept : bool, default=True
        Give each model an intercept, which is penalised and protected like the rest.
    intercept_scaling : float, default=0.1
        Size of the constant column in units of ``data_norm``, as for
        :class:`DPLogisticRegression` tripled where columns are centred.
    prior : Release or None, default=None
        Release of a stack elsewhere with the same columns, groups and classes: models here are
        shrunk towards its models. If the same people are in both data sets, their epsilons add up.
        The guarantee is about the records fitted here. A prior whose status is not "proved" gives a
        PrivacyLeakWarning, and the guarantee says so.
    classes : array-like of labels or None, default=None
        The classes, known without looking at the records. None reads them from y: the fit then
        has no guarantee (status "none"), with a PrivacyLeakWarning.
    max_residual : float in [0.5, 1] or "auto", default="auto"
        Cap on the residual of a record in a fit, as for :class:`DPLogisticRegression`.
    n_jobs : int or None, default=None
        Models fitted at the same time, as for :class:`joblib.Parallel`, under any of its backends.
    random_state : None or int, default=None
        None draws from the operating system's entropy. An int makes the fit reproducible and
        therefore not private: status "seeded", with a PrivacyLeakWarning.
    accountant : PrivacyAccountant or None, default=None
        Ledger that every fit is charged to, once.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted. Public.
    feature_groups_ : tuple of tuple of int
        Columns of each model below. Public.
    weights_ : tuple of float
        The groups' shares of all importance. Public.
    low_level_coef_ : list of ndarray of shape (n_outputs, n_columns)
        For each model below; one output for two classes, else one for each. Private release.
    low_level_intercept_ : ndarray of shape (n_models, n_outputs)
        Private release.
    coef_ : ndarray of shape (n_outputs, n_features)
        Only with one model that votes (``n_partitions=1``), whose log odds are linear in X; so is
        ``intercept_``. Other stacks are not linear: AttributeError. Private release.
    high_level_coef_ : ndarray of shape (n_outputs, n_models)
        Only with ``combiner="logistic"``. Private release.
    high_level_intercept_ : ndarray of shape (n_outputs,)
        Only with ``combiner="logistic"``. Private release.
    max_residual_ : float
        The cap that was used in the models below; ``high_level_max_residual_`` on top. Public.
    guarantee_ : PrivacyGuarantee
        Privacy guarantee of the fit, with its assumptions.
    release_ : Release
        The release to publish, and to pass as ``prior`` elsewhere;
        ``PrivateStackingClassifier.from_release`` rebuilds the model.
    columns_ : transformer or None
        Fitted copy of ``columns``, applied to rows passed to ``predict``. Public.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had text column names.

    Raises
    ------
    ValueError, TypeError
        If a parameter breaks its rule, the data are not finite or not of the right shape, or y
        holds a label that is not among ``classes``. No budget is spent.
    BudgetExceededError
        If the accountant's budget would be exceeded; no record has been read then.

    See Also
    --------
    DPLogisticRegression : One model of all columns.
    skdpsurv.published.PublishedStackingClassifier : With the constants of the paper.

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem and constants:
    docs/proofs/stacking. The guarantee covers one fit; choosing among fits by their scores on
    private records is not covered.

    Variants of the paper: PST-S is ``partition="samples", combiner="logistic"``; PST-F(U) is
    ``combiner="logistic"``; PST-F(W) gives importances too; PST-H gives a ``prior``; with
    ``n_partitions=1`` this is PPHTL.

    References
    ----------
    .. [1] X. Guo, Q. Yao, J. T. Kwok, W.-W. Tu, Y. Chen, W. Dai and Q. Yang, "Privacy-preserving
       stacking with application to cross-organizational diabetes prediction", arXiv 1811.09491.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from skdpsurv import FeaturePartition, PrivateStackingClassifier
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> X = normalize(X)  # each row by itself: nothing is learned from the others
    >>> centre = [[0, 0, 1, 2, 2, 1, 0, 0]] * 8  # images of 8 x 8 pixels: the margins are empty
    >>> importances = [number + 0.1 for row in centre for number in row]
    >>> model = PrivateStackingClassifier(
    ...     epsilon=2.0,
    ...     partition=FeaturePartition(importances=importances),
    ...     n_partitions=3,
    ...     classes=[0, 1],
    ... ).fit(X, y)
    >>> [len(group) for group in model.feature_groups_]
    [22, 21, 21]
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _rules: ClassVar[dict[str, Check]] = {
        "delta": number_in(0.0, 1.0, closed="left"),
        "max_residual": auto_or(number_in(0.5, 1.0)),
        "n_jobs": workers,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
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
        max_residual: float | str = "auto",
        n_jobs: int | None = None,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
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
        self.max_residual = max_residual
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.accountant = accountant
