"""Private classifiers: labels, parameters, predictions and formulas, for one model or many."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from skdpsurv.base.private_estimator import Caveat
from skdpsurv.base.tabular import LinearEstimator, UnprotectedScore
from skdpsurv.classification import budgets
from skdpsurv.classification import logistic_measurements as measured
from skdpsurv.classification.row_scales import CONSTANT, Coefficients, RowScales
from skdpsurv.data.blocks import Blocks
from skdpsurv.data.dask import supports_lazy_input
from skdpsurv.data.known_columns import KnownColumns
from skdpsurv.data.labels import class_indices, one_vs_rest, stated_classes
from skdpsurv.data.shape import Shape
from skdpsurv.dp.checks import Check, auto_or, boolean, custom, positive, zero_or
from skdpsurv.dp.input_errors import call_or_none, check_unclipped
from skdpsurv.dp.plan import Plan, Sequential
from skdpsurv.dp.references import DOUBLES, WORDS, phrase
from skdpsurv.dp.types import FloatArray
from skdpsurv.inference import Inference, Summarised
from skdpsurv.inference.uncertainty import NAMES
from skdpsurv.likelihoods.linear import probability
from skdpsurv.release import Release, released_array

if TYPE_CHECKING:
    from skdpsurv.release.script import Script


#: Formulas of probabilities where residuals are capped. With a slope of log odds they are in
#: logarithms, as a power of a number next to 0 would be 0.
HELPERS = {
    "chance": "chance(m, cap) = min(expit(m), cap) / (min(expit(m), cap) + min(expit(-m), cap))",
    "steep_chance": "part(m, cap) = min(log_expit(m), log(cap))\n"
    "steep_chance(m, cap, b) = expit(b * (part(m, cap) - part(-m, cap)))",
}
ASSUMPTIONS = (*WORDS["assumptions"]["classifier"], DOUBLES)


def chance(script: Script, predictor: str, max_residual: float, slope: float = 1.0) -> str:
    """Return the probability of a linear predictor, for the cap of its loss and a slope of odds."""
    if max_residual == 1:
        return f"expit({predictor if slope == 1 else f'{script.number(slope)} * ({predictor})'})"
    cap = script.number(max_residual)
    if slope == 1:
        return f"chance({predictor}, {cap})"
    return f"steep_chance({predictor}, {cap}, {script.number(slope)})"


def write_classes(
    script: Script,
    classes: NDArray[Any],
    scores: Sequence[str],
    probability: str,
    before: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the script that computes scores and class probabilities, as text."""
    labels = [script.label(label) for label in classes.tolist()]
    codes = " ".join(["", probability, *before.values()])
    lines = [HELPERS[name] for name in HELPERS if f" {name}(" in codes]
    lines += [f"{name} = {code}" for name, code in before.items()]
    if len(labels) == 1:
        lines += [f"score = {scores[0]}", f"# There is one class, {labels[0]}.", "probability = 1"]
    elif len(labels) == 2:
        said = f"# Of {labels[1]}, which is predicted where the score is above 0, else {labels[0]}:"
        lines += [f"score = {scores[0]}", said, f"probability = {probability.format('score')}"]
    else:
        named = list(enumerate(labels, 1))
        lines += [f"score_{k} = {scores[k - 1]}  # {label}" for k, label in named]
        lines += [f"p_{k} = {probability.format(f'score_{k}')}" for k, _ in named]
        lines.append(f"total = {script.total(f'+ p_{k}' for k, _ in named)}")
        lines.append("# Of each class; that of the highest score is predicted:")
        share = "where(total > 0, p_{k} / total, 1 / {n})".format
        lines += [f"probability_{k} = {share(k=k, n=len(labels))}  # {label}" for k, label in named]
    return "\n".join(lines)


def n_outputs(classes: NDArray[Any]) -> int:
    """Return the number of models: one for two classes, else one for each."""
    return classes.size if classes.size > 2 else 1


@dataclass(frozen=True, eq=False)
class LabelledShape(Shape):
    """Number of records, columns, and classes: sorted, as stated by the caller or read from y."""

    classes: NDArray[Any]

    @property
    def n_outputs(self) -> int:
        """Number of models."""
        return n_outputs(self.classes)


class PrivateClassifier(
    UnprotectedScore, ClassifierMixin, LinearEstimator, takes=("rows", "classes")
):
    """Base of the private classifiers: a subclass says how scores are fitted and combined."""

    _rules: ClassVar[dict[str, Check]] = {
        "alpha": auto_or(zero_or(positive())),
        "fit_intercept": boolean,
        "classes": custom(stated_classes),
    }

    classes: ArrayLike | None
    alpha: float | str
    fit_intercept: bool
    intercept_scaling: float
    max_residual: float | str
    prior: Release | None

    classes_: NDArray[Any]
    n_features_in_: int

    #: Constants by which noise is calibrated; public.
    calibration = "tight"

    def _predicted(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return scores of classes and their probabilities, of shape (n_samples, n_outputs)."""
        raise NotImplementedError

    @supports_lazy_input(lambda self: self.classes_.size if self.classes_.size > 2 else None)
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return scores: the higher, the more likely the class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive if the second of ``classes_`` is predicted.
        """
        scores = self._of_rows(X, lambda rows: self._predicted(rows)[0])
        return scores if self.classes_.size > 2 else scores[:, 0]

    @supports_lazy_input(lambda self: None, lambda self: self.classes_.dtype)
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most likely class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return np.asarray(self.classes_[scores.argmax(axis=1)])
        # A single class, read from y, is always predicted.
        second = (scores > 0.0) & (self.classes_.size > 1)
        return np.asarray(self.classes_[second.astype(np.intp)])

    @supports_lazy_input(lambda self: self.classes_.size)
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For more than two classes, those of each class against the rest, scaled to add up to 1.
        """
        likely = self._of_rows(X, lambda rows: self._predicted(rows)[1])
        if self.classes_.size == 1:
            return np.ones_like(likely)
        if self.classes_.size == 2:
            return np.hstack([1.0 - likely, likely])
        total = likely.sum(axis=1, keepdims=True)
        flat = np.full_like(likely, 1.0 / likely.shape[1])
        return np.divide(likely, total, out=flat, where=total > 0.0)

    @supports_lazy_input(lambda self: self.classes_.size)
    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return the logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _draw_outcomes(
        self, X: ArrayLike, censored: FloatArray, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw classes of made-up people by their probabilities."""
        below = np.cumsum(self.predict_proba(X), axis=1)[:, :-1]
        return np.asarray(self.classes_[(below < rng.random((len(below), 1))).sum(axis=1)])

    def _score_of(self, y: ArrayLike, predicted: NDArray[Any], sample_weight: Any) -> float:
        # scikit-learn's own message may quote labels.
        found = call_or_none(
            lambda: float(accuracy_score(y, predicted, sample_weight=sample_weight))
        )
        if found is None:
            raise ValueError("y must hold a label for each row of X, of the same type as classes.")
        return float(found)

    def _caveats(self, shape: LabelledShape) -> list[Caveat]:
        found = super()._caveats(shape)
        if self.classes is None:  # a new label shows
            found.append(Caveat("none", phrase("classes_from_y")))
        return found

    def _looks(self, *arguments: Any) -> bool:
        # To read classes is to release them: the ledger must allow that before it is done.
        return self.classes is None or super()._looks(*arguments)

    def _shape(self, X: ArrayLike, y: ArrayLike) -> LabelledShape:
        seen = super()._shape(X)
        classes = stated_classes(self.classes)
        if classes is None and isinstance(X, Blocks):
            raise ValueError("classes must be given where records are not in memory.")
        if classes is None:
            classes, _ = class_indices(y, None, seen.n_records)
        return LabelledShape(seen.n_records, seen.n_features, classes)

    def _read(
        self, shape: LabelledShape, X: ArrayLike, y: ArrayLike
    ) -> Blocks[measured.SignedRows]:
        if math.isinf(self.epsilon):
            constant = float(self._perturbation.intercept_scaling)
            check_unclipped(np.array([constant]), "intercept_scaling")
        return self._blocks(PrivateClassifier._labelled, shape, X, y)

    def _labelled(self, shape: LabelledShape, block: tuple[Any, ...]) -> measured.SignedRows:
        """Return a block of records, after refusing values outside the public domain."""
        X, y = block
        rows = self._fitting_rows(X)
        if math.isinf(self.epsilon):
            check_unclipped(rows, "X")
        elif (scales := self._row_scales) is not None:
            rows = scales.rows(rows)
        _, index = class_indices(y, shape.classes, rows.shape[0])
        return measured.SignedRows(rows, one_vs_rest(index, shape.classes.size))

    @property
    def _perturbation(self) -> Any:
        """The object that has ``max_residual`` and ``intercept_scaling``: this estimator."""
        return self

    @property
    def _row_scales(self) -> RowScales | None:
        """Public centres and spreads of the features, if rows are scaled by them."""
        norms = self.data_norm, getattr(getattr(self, "partition", None), "norms", None)
        plain = self.columns is None or math.isinf(self.epsilon) or self.calibration != "tight"
        if plain or any(norm is not None for norm in norms):
            return None
        known = KnownColumns.of(self._features(self.columns))
        shared = not getattr(self, "inference_share", 0.0)
        return RowScales.of(known, centred=bool(self.fit_intercept), shared=shared)

    @property
    def _row_norm(self) -> float:
        """Public bound on the norm of a row as it is read."""
        scales = self._row_scales
        return self._norm if scales is None else scales.radius

    def _group_setting(
        self,
        shape: LabelledShape,
        groups: tuple[tuple[int, ...], ...],
        weights: tuple[float, ...],
        norms: tuple[float, ...],
        **options: Any,
    ) -> budgets.GroupSetting:
        """Return the public setting of a fit of some groups of columns."""
        perturbed, scales = self._perturbation, self._row_scales
        constant, cap = float(perturbed.intercept_scaling), perturbed.max_residual
        constant *= 1.0 if scales is None else CONSTANT
        return budgets.GroupSetting(
            n_records=shape.n_records,
            n_outputs=shape.n_outputs,
            price=budgets.of_each(float(self.epsilon), shape.n_outputs),
            groups=groups,
            weights=weights,
            data_norm=self._row_norm,
            group_norms=norms,
            constant=constant if self.fit_intercept else 0.0,
            alpha=None if isinstance(self.alpha, str) else float(self.alpha),
            max_residual=None if isinstance(cap, str) else float(cap),
            scales=scales,
            distribution=self._noise_law,
            **options,
        )

    def _release_parameters(self, shape: LabelledShape) -> dict[str, Any]:
        return {
            "data_norm": self._norm if self._row_scales is None else None,
            "fit_intercept": bool(self.fit_intercept),
            "intercept_scaling": float(self._perturbation.intercept_scaling),
            "classes": shape.classes.tolist(),
        }

    def _public(self, shape: LabelledShape) -> dict[str, Any]:
        """Return the public inputs of every guarantee."""
        return {
            "n_records": shape.n_records,
            **PrivateClassifier._release_parameters(self, shape),
            "data_norm": self._row_norm,
            "alpha": self.alpha if isinstance(self.alpha, str) else float(self.alpha),
            "calibration": self.calibration,
        }

    def _set_classes(self, release: Release) -> None:
        classes = stated_classes(release.parameters.get("classes"))
        if classes is None:
            raise ValueError("parameters of the release must hold its classes.")
        self.classes_ = classes

    @classmethod
    def from_release(cls, release: Release) -> Self:
        """Build a fitted estimator from a release, without data.

        Parameters
        ----------
        release : Release
            As published by a fitted estimator of this class, in ``release_``.

        Returns
        -------
        estimator
            Predicts as the one that made the release.
        """
        built = super().from_release(release)
        if release.guarantee.status == "none":
            # Perhaps read from y: to state them would make the next fit claim a guarantee.
            built.classes = None
        return built

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The small data sets of scikit-learn's checks drown in noise, as they should.
        tags.classifier_tags.poor_score = True
        return tags


def checked_caps(caps: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return the caps on residuals that a release holds."""
    found = np.array(caps)
    if found.shape != shape or found.dtype.kind != "f" or not ((found >= 0.5) & (found <= 1)).all():
        raise ValueError("values of the release must hold max_residual, between 0.5 and 1.")
    return found


class LogisticModel(
    Summarised, PrivateClassifier, such_as={"classes": [0, 1]}, measure="auc", ratio="odds"
):
    """Base of private logistic regressions: a subclass says by which plan they are fitted."""

    def _set_fitted(self, release: Release) -> None:
        self._set_classes(release)
        values, shape = release.values, (n_outputs(self.classes_), release.n_features)
        self.coef_ = released_array(release, "coef", shape)
        self.intercept_ = released_array(release, "intercept", shape[:1])
        self.max_residual_ = float(checked_caps(values.get("max_residual"), ()))
        slope = 1.0  # as in releases of earlier versions
        if "recalibration_slope" in values:
            slope = float(released_array(release, "recalibration_slope", ()))
        least, largest = measured.LEAST_SLOPE, measured.LARGEST_SLOPE
        if not least <= slope <= largest:
            raise ValueError(f"recalibration_slope must be {least:g} to {largest:g}.")
        self.recalibration_slope_ = slope
        n_common = int(bool(release.parameters.get("fit_intercept")))
        self.inference_ = None
        if not values.keys().isdisjoint(NAMES):
            self.inference_ = Inference.of(release, n_common + release.n_features)

    def _predicted(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores = Coefficients(self.coef_, self.intercept_).predictor(X)
        return scores, probability(scores, self.max_residual_, self.recalibration_slope_)

    def _one_group(self, shape: LabelledShape) -> budgets.GroupSetting:
        """Return the public setting of a fit: one group of all columns."""
        every = tuple(range(shape.n_features))
        return self._group_setting(shape, (every,), (1.0,), (self._row_norm,))

    def _without_privacy(self, shape: LabelledShape) -> Plan:
        fit = budgets.unperturbed(self._one_group(shape))
        name = "penalised likelihood, no noise"
        return self._as_plan(shape, [measured.LogisticMinimisers(fit, name, 1.0)])

    def _as_plan(self, shape: LabelledShape, measurements: list[Any], delta: float = 0.0) -> Plan:
        inputs = {**self._public(shape), f"{'mu' if delta else 'epsilon'}_recalibration": 0.0}
        tree, epsilon = Sequential(tuple(measurements)), float(self.epsilon)
        return Plan(tree, epsilon, delta, inputs=inputs, assumed=ASSUMPTIONS)

    def _formula(self, script: Script) -> str:
        scores = list(map(script.linear, self.coef_, self.intercept_))
        likely = chance(script, "{}", self.max_residual_, self.recalibration_slope_)
        return write_classes(script, self.classes_, scores, likely)
