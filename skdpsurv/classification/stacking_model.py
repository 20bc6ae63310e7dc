"""A stack of private logistic models, however it is calibrated: its plan and its predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skdpsurv.classification import budgets, private_classifier, stack_plan
from skdpsurv.classification.logistic_measurements import GroupFit
from skdpsurv.classification.private_classifier import n_outputs
from skdpsurv.classification.row_scales import Coefficients
from skdpsurv.classification.stack_plan import COMBINERS, FeaturePartition, Groups, LogisticCombiner
from skdpsurv.data.feature import require_same_units
from skdpsurv.dp.checks import Check, integer, one_of, optional, positive, word_or
from skdpsurv.dp.plan import Plan
from skdpsurv.dp.privacy_cost import split_gaussian
from skdpsurv.dp.types import FloatArray
from skdpsurv.likelihoods.linear import probability
from skdpsurv.mechanisms.perturbation import NAMES
from skdpsurv.priors import Promises, check_same_features, is_prior
from skdpsurv.release import Release, released_array

if TYPE_CHECKING:
    from skdpsurv.release.script import Script

#: Default of ``n_partitions``, if there are as many columns.
N_PARTITIONS = 5
#: Estimators whose releases can be the prior of a stack.
STACKS = ("PrivateStackingClassifier", "PublishedStackingClassifier")


@dataclass(frozen=True, eq=False)
class StackShape(private_classifier.LabelledShape):
    """Shape of the records, with the columns of each model below and the weight of its vote."""

    groups: Groups
    weights: tuple[float, ...]


class StackingModel(
    private_classifier.PrivateClassifier, beyond_constructor=("feature_groups_", "weights_")
):
    """Base of private stacks: a subclass has parameters, and says by which constants."""

    partition: str | FeaturePartition
    n_partitions: int | None
    combiner: str | LogisticCombiner
    delta: float
    n_jobs: int | None

    _rules: ClassVar[dict[str, Check]] = {
        "partition": word_or(FeaturePartition, "features", "samples"),
        "n_partitions": optional(integer()),
        "combiner": word_or(LogisticCombiner, *COMBINERS),
        "intercept_scaling": positive(),
        "prior": is_prior,
    }

    @property
    def _partition(self) -> FeaturePartition | None:
        """The partition of columns; None if rows are split instead."""
        if isinstance(self.partition, str):
            return FeaturePartition() if self.partition == "features" else None
        return self.partition

    @property
    def _top(self) -> LogisticCombiner | None:
        """The model on top, if there is one."""
        if isinstance(self.combiner, str):
            return LogisticCombiner() if self.combiner == "logistic" else None
        return self.combiner

    def _words(self) -> dict[str, str]:
        """Return ``partition`` and ``combiner``, each as one word."""
        return {
            "partition": "samples" if self._partition is None else "features",
            "combiner": self.combiner if isinstance(self.combiner, str) else "logistic",
        }

    def _shape(self, X: ArrayLike, y: ArrayLike) -> StackShape:
        seen = super()._shape(X, y)
        groups = self._groups(seen.n_features)
        return StackShape(seen.n_records, seen.n_features, seen.classes, *groups)

    def _release_parameters(self, shape: Any) -> dict[str, Any]:
        stated: dict[str, Any] = {**self._words(), "n_partitions": len(shape.groups)}
        if self._partition is not None:
            stated |= {"feature_groups_": shape.groups, "weights_": shape.weights}
        return {**stated, **super()._release_parameters(shape)}

    def _set_fitted(self, release: Release) -> None:
        parameters, values = release.parameters, release.values
        self._set_classes(release)
        self._combiner = one_of("combiner of the release", parameters.get("combiner"), COMBINERS)
        numbers = sum(np.size(value) for value in values.values())
        if max(release.n_features, self._n_models(release.n_features)) > numbers:
            raise ValueError("values of the release must hold a number for each column and model.")
        self.feature_groups_, self.weights_ = self._released_groups(release)
        n_models, n_each = len(self.feature_groups_), n_outputs(self.classes_)
        models = released_models(release, self.feature_groups_, n_each)
        self.low_level_coef_ = [model.coef for model in models]
        self.low_level_intercept_ = np.array([model.intercept for model in models])
        stacked = self._combiner == "logistic"
        caps = private_classifier.checked_caps(values.get("max_residual"), (1 + stacked,))
        self.max_residual_ = float(caps[0])
        for name in [name for name in vars(self) if name.startswith("high_level_")]:
            delattr(self, name)  # of an earlier fit with another combiner
        if stacked:
            shape = (n_each, n_models)
            self.high_level_coef_ = released_array(release, "high_level_coef", shape)
            self.high_level_intercept_ = released_array(release, "high_level_intercept", shape[:1])
            self.high_level_max_residual_ = float(caps[1])

    def _predicted(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        models = list(map(Coefficients, self.low_level_coef_, self.low_level_intercept_))
        cast = stack_plan.votes(models, X, self.feature_groups_, self.max_residual_)
        if self._combiner == "logistic":
            top = Coefficients(self.high_level_coef_, self.high_level_intercept_)
            scores = stack_plan.stacked_scores(cast, top)
            return scores, probability(scores, self.high_level_max_residual_)
        scores = stack_plan.weighted_scores(cast, self._vote_weights())
        return scores, 0.5 * (1.0 + scores)

    @property
    def coef_(self) -> FloatArray:
        """Coefficients of the features, of shape (n_outputs, n_features), of one model that votes.

        Votes of several models, and a model on top, are not linear in X: AttributeError.
        """
        self._require_linear("coef_")
        (coef,) = self.low_level_coef_
        placed = np.zeros((len(coef), self.release_.n_features))
        placed[:, self.feature_groups_[0]] = coef
        return placed

    @property
    def intercept_(self) -> FloatArray:
        """Intercepts, of shape (n_outputs,), of one model that votes; otherwise AttributeError."""
        self._require_linear("intercept_")
        return self.low_level_intercept_[0].copy()

    def _require_linear(self, name: str) -> None:
        if len(self.low_level_coef_) > 1 or self._combiner == "logistic":
            raise AttributeError(
                f"{type(self).__name__} has {name} only where one model votes "
                "(n_partitions=1): other stacks are not linear in X. Each model has low_level_"
                f"{name}."
            )

    def _vote_weights(self) -> tuple[float, ...]:
        n_models, weighted = len(self.weights_), self._combiner == "weighted_vote"
        return self.weights_ if weighted else (1.0 / n_models,) * n_models

    def _check_together(self) -> None:
        super()._check_together()
        if self.prior is None:
            return
        if self._partition is None:
            raise ValueError("prior must be None with partition='samples'.")
        if (source := self.prior.estimator) not in STACKS:
            raise ValueError(f"prior must come from a stack, got one from {source}.")

    def _n_models(self, n_features: int) -> int:
        """Return the number of models below, unless groups of columns are stated."""
        if self.n_partitions is not None:
            return int(self.n_partitions)
        return N_PARTITIONS if self._partition is None else min(N_PARTITIONS, n_features)

    def _groups(self, n_features: int) -> tuple[Groups, tuple[float, ...]]:
        """Return the columns of each model below, and the weight of its vote."""
        n_models, parted = self._n_models(n_features), self._partition
        if parted is None:
            return (tuple(range(n_features)),) * n_models, (1.0 / n_models,) * n_models
        importances = stack_plan.relative_importances(parted.importances)
        public = n_models, importances, n_features, self._feature_names()
        groups = stack_plan.feature_groups(parted.groups, *public)
        return groups, stack_plan.group_weights(groups, importances)

    def _released_groups(self, release: Release) -> tuple[Groups, tuple[float, ...]]:
        """Return the groups of columns, and their weights, that a release states."""
        if self._partition is None:
            return self._groups(release.n_features)
        stated, weights = map(release.parameters.get, self._card.beyond_constructor)
        name = "feature_groups_ of the release"
        groups = stack_plan.stated_groups(stated, release.n_features, None, name)
        return groups, stack_plan.checked_weights(weights, len(groups))

    def _centers(self, shape: StackShape) -> tuple[Coefficients, ...] | None:
        """Return the centres of ridges, from a prior of the same groups and classes."""
        prior = self.prior
        if prior is None:
            return None
        features = None if self.columns is None else self._features(self.columns)
        if not prior.has_columns(features):
            raise ValueError("prior must have the same columns: pass columns=prior.transformer().")
        if features is not None:
            require_same_units("prior", features, prior.features)
        check_same_features(prior, shape.n_features, self._feature_names())
        same_groups = (
            "have the same groups of columns, in the same order: pass its groups, "
            "partition=FeaturePartition(release.parameters['feature_groups_'])."
        )
        for name, wanted, rule in (
            ("partition", "features", "come from a stack with partition='features'."),
            ("feature_groups_", [list(group) for group in shape.groups], same_groups),
            ("classes", shape.classes.tolist(), "have the same classes."),
            ("fit_intercept", bool(self.fit_intercept), "have the same fit_intercept."),
        ):
            if not _equal(prior.parameters.get(name), wanted):
                raise ValueError(f"prior must {rule}")
        models = released_models(prior, shape.groups, shape.n_outputs)
        scales = self._row_scales
        return models if scales is None else tuple(map(scales.of_features, models, shape.groups))

    def _plan(self, shape: StackShape) -> Plan:
        """Decide from public numbers alone who gets which rows, and how epsilon is spent."""
        parted, groups, epsilon = self._partition, shape.groups, float(self.epsilon)
        below, norms = (groups[:1], None) if parted is None else (groups, parted.norms)
        weights = (1.0,) if parted is None else shape.weights
        bounds = stack_plan.group_norms(norms, self._row_norm, len(below))
        ridge: Any = {"ridge_multiple": self._ridge_multiple(len(groups))}
        ridge["centers"] = self._centers(shape)
        setting = self._group_setting(shape, below, weights, bounds, **ridge)
        calibrate: Callable[..., GroupFit] = partial(budgets.least_noise, pure=setting.price)
        if math.isinf(epsilon):
            calibrate = budgets.unperturbed
        elif self.calibration == "published":
            calibrate = budgets.published
        elif self.delta:
            (whole,) = split_gaussian(epsilon, float(self.delta), (1.0,))
            setting = replace(setting, price=budgets.of_each(whole, shape.n_outputs))
        holdout = 0.0 if self._top is None else float(self._top.holdout)
        stack = stack_plan.plan_stack(setting, len(groups) // len(below), holdout, calibrate)
        promises, words = Promises.of(self.prior), self._mechanism(stack)
        assumed = [*private_classifier.ASSUMPTIONS, *promises.assumptions()]
        if parted is not None and parted.importances is not None:
            outside = "importances come from outside these records"
            assumed.insert(len(private_classifier.ASSUMPTIONS), outside)
        inputs = {**self._public(shape), **self._words(), "feature_groups": shape.groups}
        inputs |= {"weights": shape.weights, "n_high_level": 0, **promises.public_inputs()}
        tree = stack.tree((words, f"{words} on votes"), self.n_jobs)
        return Plan(
            tree, epsilon, float(self.delta), inputs=inputs, assumed=tuple(assumed), words=words
        )

    def _mechanism(self, stack: stack_plan.Stack) -> str:
        kind = "parts of the rows" if self._partition is None else "groups of columns"
        names = [NAMES["noisy_gd" if fit.gaussian else "obj_pert"] for fit in stack.levels]
        again = "" if names[0] == names[-1] else f"{names[-1]} "
        top = "" if stack.high is None else f", and {again}on their votes"
        if math.isinf(self.epsilon):
            return f"penalised likelihoods on {kind}{top}, no noise"
        published = ", as published" if self.calibration == "published" else ""
        return f"{names[0]} of logistic likelihoods on {kind}{top}{published}"

    def _ridge_multiple(self, n_groups: int) -> float:
        if self.prior is not None:
            return budgets.TRANSFER_RIDGE
        groups_vote = self._partition is not None and self._top is None and n_groups > 1
        return budgets.VOTE_RIDGE if groups_vote else 1.0

    def _formula(self, script: Script) -> str:
        models = self.low_level_coef_, self.low_level_intercept_, self.feature_groups_
        n_each, stacked = n_outputs(self.classes_), self._combiner == "logistic"
        weights, likely = np.array([self._vote_weights()] * n_each), "(1 + {}) / 2"
        if stacked:
            weights = self.high_level_coef_ / math.sqrt(len(self.feature_groups_))
            likely = private_classifier.chance(script, "{}", self.high_level_max_residual_)
        cast, scores = {}, []
        for output, row in enumerate(weights):
            of_class = f"_{output + 1}" if n_each > 1 else ""
            names = [f"vote_{k + 1}{of_class}" for k in range(len(row))]
            for name, coef, intercept, group in zip(names, *models, strict=True):
                score = script.linear(coef[output], intercept[output], group)
                cast[name] = (
                    f"2 * {private_classifier.chance(script, score, self.max_residual_)} - 1"
                )
            end = script.signed(self.high_level_intercept_[output]) if stacked else ""
            scores.append(script.weighted(row, names) + end)
        return private_classifier.write_classes(script, self.classes_, scores, likely, cast)


def released_models(release: Release, groups: Groups, n_outputs: int) -> tuple[Coefficients, ...]:
    """Return the models below, one for each group of columns, or refuse the release."""
    intercepts = released_array(release, "low_level_intercept", (len(groups), n_outputs))
    shapes = [(n_outputs, len(group)) for group in groups]
    coefs = [released_array(release, f"low_level_coef_{k}", one) for k, one in enumerate(shapes)]
    return tuple(map(Coefficients, coefs, intercepts))


def _equal(given: Any, wanted: Any) -> bool:
    """Compare lists and tuples of whatever depth, and types of what is in them."""
    if isinstance(given, list | tuple) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(_equal, given, wanted))
    return type(given) is type(wanted) and bool(given == wanted)
