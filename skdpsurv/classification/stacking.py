"""PrivateStackingClassifier: private models of parts of the data, and their combination."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.checks import (
    Check,
    by,
    choice,
    integer,
    number_in,
    one_of,
    optional,
    verbosity,
    workers,
)
from skdpsurv.classification import budgets
from skdpsurv.classification.class_formula import chance, write_classes
from skdpsurv.classification.combiners import (
    COMBINERS,
    stacked_scores,
    votes,
    weighted_scores,
)
from skdpsurv.classification.feature_groups import (
    BOUNDS,
    GROUPS,
    checked_importances,
    feature_groups,
    group_norms,
    group_weights,
)
from skdpsurv.classification.group_fit import Coefficients
from skdpsurv.classification.private_classifier import (
    ASSUMPTIONS,
    LabelledShape,
    PrivateClassifier,
    checked_caps,
)
from skdpsurv.classification.ridge_and_cap import TRANSFER_RIDGE, VOTE_RIDGE
from skdpsurv.classification.stack_plan import Stack, plan_stack
from skdpsurv.classification.transfer import prior_centers, released_models
from skdpsurv.likelihoods.logistic import probability
from skdpsurv.mechanisms.methods import NAMES
from skdpsurv.priors import Promises, is_prior
from skdpsurv.privacy import PrivacyAccountant
from skdpsurv.privacy.concentrated import Concentrated, parts
from skdpsurv.privacy.plan import Plan
from skdpsurv.release import Release, released_array
from skdpsurv.types import FloatArray

if TYPE_CHECKING:
    from skdpsurv.scoring.script import Script

__all__ = ["PrivateStackingClassifier"]

Groups = tuple[tuple[int, ...], ...]

PARTITIONS = ("features", "samples")
#: Unless somebody says otherwise.
N_PARTITIONS = 5


@dataclass(frozen=True, eq=False)
class StackShape(LabelledShape):
    """With the columns of each model below, and the weight of its vote."""

    groups: Groups
    weights: tuple[float, ...]


class PrivateStackingClassifier(PrivateClassifier):
    r"""Private logistic models on parts of the data, combined by votes or by a model on top.

    Everything released (all models below, and the one on top) is together
    epsilon-differentially private under replacement of one record.

    With ``partition="features"`` each model sees a group of columns. Columns that are known to
    matter, from outside the data, get less of the noise. With ``partition="samples"`` each
    model sees a part of the rows. A release of one organisation can be the ``prior`` that
    another organisation's models are shrunk towards: no row is ever shared.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one ``fit``, of all models together, spent whole. ``numpy.inf`` gives the
        same stack without any privacy, for reference.
    delta : float in [0, 1), default=0.0
        Probability with which the bound by epsilon may fail, at most :math:`1/n^2`. With one,
        models are fitted by noisy gradient descent where that needs less noise than objective
        perturbation, by public numbers; where no model is, ``guarantee_`` has ``delta=0``.
    columns : transformer or None, default=None
        Public transformer of raw rows, such as a :class:`~skdpsurv.preprocessing.PublicColumns`:
        what the columns of X hold, by public bounds and categories. It is cloned, learns nothing,
        and ``release_`` then stands alone. None: X holds numbers, taken as they are.
    partition : {"features", "samples"}, default="features"
        What the models below are given a part of.
    n_partitions : int or None, default=None
        K. Ignored where ``feature_groups`` are given. None: 5, or a group for each column where
        there are fewer.
    feature_groups : sequence of sequences of int or str, or None, default=None
        Disjoint groups of columns (of features, if ``columns`` makes these), by index or name,
        that cover all of them. None: columns sorted
        by importance and cut into K, or, without importances, column j in group j mod K.
    importances : array-like of shape (n_features,) or None, default=None
        Public importance of each column, not negative, from experts or public data.
        **Importances computed from X void the guarantee.** Noise of a group is inversely
        proportional to its share of all importance. None: equal shares.
    combiner : {"weighted_vote", "logistic", "vote"}, default="weighted_vote"
        Votes are probabilities, weighted by the groups' shares of importance or equally; they need
        no data, so all rows train the models below. "logistic" is a private logistic regression on
        the votes, trained on rows that are held out.
    holdout : float in (0, 1), default=0.5
        Share of the rows for ``combiner="logistic"``.
    alpha : float or "auto", default="auto"
        Strength of the penalty :math:`\frac\alpha2\|w\|^2` beside the mean loss, in all models.
        "auto" is chosen from public numbers. More may be needed than you ask for.
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row of X; longer rows are scaled down to it. None:
        1, which a PublicInputWarning asks about where there are neither ``columns`` nor
        ``group_norms``.
    group_norms : array-like of shape (n_groups,) or None, default=None
        Public bounds on the norm of each group's columns, at most ``data_norm``, which is the
        default: give them where they are known to be smaller.
    fit_intercept : bool, default=True
        Whether each model has an intercept, which is penalised and protected like the rest.
    intercept_scaling : float, default=0.1
        Size of the constant column in units of ``data_norm``.
    prior : Release or None, default=None
        Released by a PrivateStackingClassifier elsewhere with the same columns, groups and
        classes: models here are shrunk towards its models. If the same people are in both data
        sets, their epsilons add up. What it reveals about its own people is passed on:
        one whose status is not "proved" gives a PrivacyLeakWarning, and the guarantee, which is
        about the records fitted here, says so.
    classes : array-like of labels or None, default=None
        The classes, known without looking at the records. None reads them from y: the fit then
        has no guarantee (status "none"), with a PrivacyLeakWarning.
    max_residual : float in [0.5, 1] or "auto", default="auto"
        Cap on the residual with which a record can pull at a fit, as for
        :class:`DPLogisticRegression`.
    calibration : {"tight", "published"}, default="tight"
        "published": constants of the paper, to compare with. ``alpha="auto"`` is then 0.01.
    n_jobs : int or None, default=None
        Models fitted at the same time, as for :class:`joblib.Parallel`, under any of its backends.
    verbose : int, default=0
        Progress messages of :class:`joblib.Parallel`. How long a fit takes depends on the records.
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
    high_level_coef_ : ndarray of shape (n_outputs, n_models)
        Only with ``combiner="logistic"``. Private release.
    high_level_intercept_ : ndarray of shape (n_outputs,)
        Only with ``combiner="logistic"``. Private release.
    max_residual_ : float
        The cap that was used in the models below; ``high_level_max_residual_`` on top. Public.
    guarantee_ : PrivacyGuarantee
        What was promised, about what, under which assumptions.
    release_ : Release
        The thing to publish, and to pass as ``prior`` elsewhere;
        ``PrivateStackingClassifier.from_release`` rebuilds the model.
    columns_ : transformer or None
        That of the fit, which reads the rows that predictions are asked for. Public.
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

    Notes
    -----
    Neighbours: replace-one; the number of records is public. Theorem and constants:
    docs/proofs/stacking. The guarantee covers one fit; choosing among fits by their scores on
    private records is not covered.

    Variants of the paper: PST-S is ``partition="samples", combiner="logistic"``; PST-F(U) is
    ``combiner="logistic"``; PST-F(W) gives ``importances`` too; PST-H gives a ``prior``; with
    ``n_partitions=1`` this is PPHTL.

    References
    ----------
    .. [1] X. Guo, Q. Yao, J. T. Kwok, W.-W. Tu, Y. Chen, W. Dai and Q. Yang, "Privacy-preserving
       stacking with application to cross-organizational diabetes prediction", arXiv 1811.09491.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from skdpsurv import PrivateStackingClassifier
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> X = normalize(X)  # each row by itself: nothing is learned from the others
    >>> centre = [[0, 0, 1, 2, 2, 1, 0, 0]] * 8  # images of 8 x 8 pixels: the margins are empty
    >>> importances = [number + 0.1 for row in centre for number in row]
    >>> model = PrivateStackingClassifier(
    ...     epsilon=2.0, n_partitions=3, importances=importances, classes=[0, 1]
    ... ).fit(X, y)
    >>> [len(group) for group in model.feature_groups_]
    [22, 21, 21]
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _rules: ClassVar[dict[str, Check]] = {
        "delta": number_in(0.0, 1.0, closed="left"),
        "partition": choice(*PARTITIONS),
        "n_partitions": optional(integer()),
        "feature_groups": optional(GROUPS),
        "importances": by(checked_importances),
        "combiner": choice(*COMBINERS),
        "holdout": number_in(0.0, 1.0, closed="neither"),
        "group_norms": optional(BOUNDS),
        "prior": is_prior,
        "n_jobs": workers,
        "verbose": verbosity,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        columns: Any = None,
        partition: str = "features",
        n_partitions: int | None = None,
        feature_groups: Sequence[Collection[Any]] | None = None,
        importances: ArrayLike | None = None,
        combiner: str = "weighted_vote",
        holdout: float = 0.5,
        alpha: float | str = "auto",
        data_norm: float | None = None,
        group_norms: ArrayLike | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.1,
        prior: Release | None = None,
        classes: ArrayLike | None = None,
        max_residual: float | str = "auto",
        calibration: str = "tight",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | None = None,
        accountant: PrivacyAccountant | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.partition = partition
        self.n_partitions = n_partitions
        self.feature_groups = feature_groups
        self.importances = importances
        self.combiner = combiner
        self.holdout = holdout
        self.alpha = alpha
        self.data_norm = data_norm
        self.group_norms = group_norms
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.prior = prior
        self.classes = classes
        self.max_residual = max_residual
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.accountant = accountant

    def fit(self, X: ArrayLike, y: ArrayLike, *, person: ArrayLike | None = None) -> Self:
        """Fit all models, spending ``epsilon``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite. Private.
        y : array-like of shape (n_samples,)
            Labels. Private.
        person : array-like of shape (n_samples,), or None
            Whose each record is, as whole numbers or text: of each person the first record is used,
            and the guarantee is about people. Private. None: nobody has two records.

        Returns
        -------
        self
        """
        return self._fit(X, y, person=person)

    def _shape(self, X: ArrayLike, y: ArrayLike) -> StackShape:
        seen = super()._shape(X, y)
        groups, weights = self._groups(self.feature_groups, seen.n_features, self._feature_names())
        return StackShape(seen.n_records, seen.n_features, seen.classes, groups, weights)

    def _stated(self, shape: Any) -> dict[str, Any]:
        importances = checked_importances(self.importances)
        return {
            "partition": self.partition,
            "n_partitions": len(shape.groups),
            "feature_groups": shape.groups if self.partition == "features" else None,
            "importances": None if importances is None else importances.tolist(),
            "combiner": self.combiner,
            **super()._stated(shape),
        }

    def _set_fitted(self, release: Release) -> None:
        parameters, values = release.parameters, release.values
        self._set_classes(release)
        self._combiner = one_of("combiner of the release", parameters.get("combiner"), COMBINERS)
        numbers = sum(np.size(value) for value in values.values())
        if max(release.n_features, self._n_models(release.n_features)) > numbers:
            raise ValueError("values of the release must hold a number for each column and model.")
        self.feature_groups_, self.weights_ = self._groups(
            parameters.get("feature_groups"), release.n_features, None
        )
        n_models, n_outputs = len(self.feature_groups_), self._n_outputs
        models = released_models(release, self.feature_groups_, n_outputs)
        self.low_level_coef_ = [model.coef for model in models]
        self.low_level_intercept_ = np.array([model.intercept for model in models])
        stacked = self._combiner == "logistic"
        caps = checked_caps(np.array(values.get("max_residual")), (1 + stacked,))
        self.max_residual_ = float(caps[0])
        # Of an earlier fit with another combiner.
        for name in ("high_level_coef_", "high_level_intercept_", "high_level_max_residual_"):
            self.__dict__.pop(name, None)
        if stacked:
            shape = (n_outputs, n_models)
            self.high_level_coef_ = released_array(release, "high_level_coef", shape)
            self.high_level_intercept_ = released_array(release, "high_level_intercept", shape[:1])
            self.high_level_max_residual_ = float(caps[1])

    def _scores(self, X: FloatArray) -> FloatArray:
        models = map(Coefficients, self.low_level_coef_, self.low_level_intercept_)
        parts = [X[:, group] for group in self.feature_groups_]
        cast = votes(list(models), parts, self.max_residual_)
        if self._combiner == "logistic":
            top = Coefficients(self.high_level_coef_, self.high_level_intercept_)
            return stacked_scores(cast, top)
        equal = (1.0 / len(parts),) * len(parts)
        return weighted_scores(cast, self.weights_ if self._combiner == "weighted_vote" else equal)

    def _probabilities(self, scores: FloatArray) -> FloatArray:
        if self._combiner == "logistic":
            return probability(scores, self.high_level_max_residual_)
        return np.asarray(0.5 * (1.0 + scores))

    def _check_together(self) -> None:
        super()._check_together()
        if self.delta and self.calibration == "published":
            raise ValueError(
                "delta must be 0 with calibration='published', which knows no Gaussian noise."
            )
        if self.partition == "samples":
            for name in ("feature_groups", "importances", "group_norms", "prior"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} must be None with partition='samples'.")
        if self.prior is not None and self.prior.estimator != type(self).__name__:
            raise ValueError(
                f"prior must come from a {type(self).__name__}, got one from "
                f"{self.prior.estimator}."
            )

    def _n_models(self, n_features: int) -> int:
        """Return how many models there are below, unless ``feature_groups`` say it."""
        if self.n_partitions is not None:
            return int(self.n_partitions)
        return N_PARTITIONS if self.partition == "samples" else min(N_PARTITIONS, n_features)

    def _groups(
        self, stated: Any, n_features: int, names: ArrayLike | None
    ) -> tuple[Groups, tuple[float, ...]]:
        """Return the columns of each model below, and the weight of its vote."""
        n_models = self._n_models(n_features)
        if self.partition == "samples":
            return (tuple(range(n_features)),) * n_models, (1.0 / n_models,) * n_models
        importances = checked_importances(self.importances)
        groups = feature_groups(stated, n_models, importances, n_features, names)
        return groups, group_weights(groups, importances)

    def _centers(self, shape: StackShape) -> tuple[Coefficients, ...] | None:
        if self.prior is None:
            return None
        return prior_centers(
            self.prior,
            groups=shape.groups,
            n_features=shape.n_features,
            names=self._feature_names(),
            features=None if self.columns is None else self._features(self.columns),
            classes=shape.classes,
            fit_intercept=bool(self.fit_intercept),
        )

    def _plan(self, shape: StackShape) -> Plan:
        """Decide from public numbers alone who gets which rows, and how epsilon is spent."""
        by_rows, groups = self.partition == "samples", shape.groups
        norms = group_norms(self.group_norms, self._norm, 1 if by_rows else len(groups))
        setting = budgets.GroupSetting(
            n_records=shape.n_records,
            n_outputs=shape.n_outputs,
            groups=groups[:1] if by_rows else groups,
            weights=(1.0,) if by_rows else shape.weights,
            group_norms=norms,
            ridge_multiple=self._ridge_multiple(len(groups)),
            centers=self._centers(shape),
            price=self._price(),
            **self._numbers(),
        )
        n_parts = len(groups) if by_rows else 1
        holdout = float(self.holdout) if self.combiner == "logistic" else 0.0
        calibrate = budgets.CALIBRATIONS[self.calibration]
        if math.isinf(self.epsilon):
            calibrate = budgets.unperturbed
        stack = plan_stack(setting, n_parts, holdout, calibrate)
        promises, given = Promises.of(self.prior), self.importances is not None
        words = self._mechanism(stack)
        return Plan(
            stack.tree((words, f"{words} on votes"), self.n_jobs, self.verbose),
            float(self.epsilon),
            float(self.delta),
            inputs={
                **self._public(shape),
                "partition": self.partition,
                "combiner": self.combiner,
                "feature_groups": shape.groups,
                "weights": shape.weights,
                "n_high_level": 0,
                **promises.public_inputs(),
            },
            assumed=(
                *ASSUMPTIONS,
                *(("importances come from outside these records",) if given else ()),
                *promises.assumptions(),
            ),
            words=words,
        )

    def _price(self) -> Concentrated | None:
        """Return the price of Gaussian noise, on all rows or on any part of them."""
        if not self.delta or math.isinf(self.epsilon):
            return None
        return parts(float(self.epsilon), float(self.delta), (1.0,))[0]

    def _mechanism(self, stack: Stack) -> str:
        kind = "groups of columns" if self.partition == "features" else "parts of the rows"
        top = ", and on their votes" if stack.high is not None else ""
        methods = [NAMES["noisy_gd" if plan.prices else "obj_pert"] for plan in stack.levels]
        if stack.high is not None and methods[0] != methods[-1]:
            top = f", and {methods[-1]} on their votes"
        if math.isinf(self.epsilon):
            return f"penalised likelihoods on {kind}{top}, no noise"
        published = ", as published" if self.calibration == "published" else ""
        return f"{methods[0]} of logistic likelihoods on {kind}{top}{published}"

    def _ridge_multiple(self, n_groups: int) -> float:
        if self.prior is not None:
            return TRANSFER_RIDGE
        votes_on_columns = self.partition == "features" and self.combiner != "logistic"
        return VOTE_RIDGE if votes_on_columns and n_groups > 1 else 1.0

    def _formula(self, script: Script) -> None:
        models = list(
            zip(self.low_level_coef_, self.low_level_intercept_, self.feature_groups_, strict=True)
        )
        cast, scores = {}, []
        weights = np.full((self._n_outputs, len(models)), 1.0 / len(models))
        if self._combiner == "weighted_vote":
            weights[:] = self.weights_
        elif self._combiner == "logistic":
            weights = self.high_level_coef_ / math.sqrt(len(models))
        for output, row in enumerate(weights):
            of_class = f"_{output + 1}" if self._n_outputs > 1 else ""
            names = [f"vote_{k + 1}{of_class}" for k in range(len(models))]
            for name, (coef, intercept, group) in zip(names, models, strict=True):
                score = script.linear(coef[output], intercept[output], group)
                cast[name] = f"2 * {chance(script, score, self.max_residual_)} - 1"
            score = script.weighted(row, names)
            if self._combiner == "logistic":
                score += script.signed(self.high_level_intercept_[output])
            scores.append(score)
        likely = "(1 + {}) / 2"
        if self._combiner == "logistic":
            likely = chance(script, "{}", self.high_level_max_residual_)
        write_classes(script, self.classes_, scores, likely, cast)
