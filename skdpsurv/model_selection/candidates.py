"""The candidates of a search: public, and each of them checked before anything is charged.

What fits would charge to a ledger is counted here, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)
from sklearn.pipeline import Pipeline

from skdpsurv.base import PrivateEstimator
from skdpsurv.data.feature import known_names, unstated_norm
from skdpsurv.data.labels import class_indices
from skdpsurv.data.public_steps import input_names, learned_steps, valid_row
from skdpsurv.data.shape import length, placeholder, size
from skdpsurv.dp import (
    PrivacyGuarantee,
    call_without_data,
    suppressed_float_errors,
    suppressed_warnings,
)
from skdpsurv.dp.input_errors import NO_TABLE, unknown_parameter
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.dp.types import BoolArray

#: What the search sets, so that candidates may not.
RESERVED = ("epsilon", "delta", "random_state", "accountant")


@dataclass(frozen=True)
class Candidate:
    """One setting of the hyper-parameters, and an estimator that has it.

    Parameters
    ----------
    params : mapping
        As in the grid.
    estimator : estimator
        Not fitted; a private estimator, or a pipeline that ends in one.
    reads_classes : bool, default=False
        Whether its classes are read from the records, which voids its guarantee.
    """

    params: Mapping[str, Any]
    estimator: Any
    reads_classes: bool = False

    @property
    def private(self) -> PrivateEstimator:
        """The private estimator."""
        return private_step(self.estimator)[1]

    @property
    def void(self) -> bool:
        """Whether there is no guarantee: records reach what is released past every mechanism."""
        return self.reads_classes or bool(unprotected_steps(self.estimator))

    def knowing_classes(self, y: Any) -> Candidate:
        """Return a candidate with the classes of y, if it would read them from its own part."""
        if not self.reads_classes:
            return self
        with suppressed_warnings():
            classes, _ = class_indices(y, None, 0 if y is None else length(y))
        estimator = clone(self.estimator)
        private_step(estimator)[1].set_params(classes=classes)
        return Candidate(self.params, estimator, reads_classes=True)

    def ready(self, spend: Spend, seed: int | None = None) -> Any:
        """Return a fresh estimator that spends so much; it has no accountant."""
        fresh = clone(self.estimator)
        # Whoever speaks, or keeps what was computed, would tell how many runs there are; whoever
        # writes into the rows that it is given would make a run depend on the one before.
        fresh.set_params(**_calm(fresh))
        step = private_step(fresh)[1]
        given: dict[str, Any] = {"epsilon": spend.epsilon}
        if spend.delta and "delta" in step.get_params(deep=False):
            given["delta"] = spend.delta
        if seed is not None:
            given["random_state"] = seed
        step.set_params(**given)
        return fresh


def _calm(estimator: Any) -> dict[str, Any]:
    """Return parameters, at any depth, by which nothing is said, kept on disk, or overwritten."""
    calm: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=True).items():
        match name.split("__")[-1]:
            case "verbose":
                # Below 0 some are more silent than at 0.
                calm[name] = min(type(value)(0), value) if isinstance(value, bool | int) else 0
            case "copy":
                calm[name] = True
            case "memory":
                calm[name] = None
    return calm


def private_step(estimator: Any) -> tuple[str, PrivateEstimator]:
    """Return the private estimator, and the prefix of its parameters."""
    if isinstance(estimator, PrivateEstimator) and not isinstance(estimator, type):
        return "", estimator
    if isinstance(estimator, Pipeline) and estimator.steps:
        name, last = estimator.steps[-1]
        if any(isinstance(step, PrivateEstimator) for _, step in estimator.steps[:-1]):
            raise TypeError("estimator must have one private step, the last one.")
        prefix, step = private_step(last)
        return f"{name}__{prefix}", step
    raise TypeError(
        "estimator must be a private estimator of this package, or a Pipeline that ends in one, "
        f"got {type(estimator).__name__}."
    )


def one_of_each(estimator: Any) -> tuple[str, ...]:
    """Return the names of parameters of ``fit`` that have an entry for each record."""
    prefix, step = private_step(estimator)
    return tuple(prefix + name for name in step._one_of_each)


def flat_steps(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline, and of pipelines inside of it; the last is the estimator."""
    if not isinstance(estimator, Pipeline):
        return [] if estimator in (None, "passthrough") else [estimator]
    return [step for _, inner in estimator.steps for step in flat_steps(inner)]


def one_after_another(steps: Sequence[Any]) -> Pipeline:
    """Return a pipeline of steps, fitted where they are."""
    return Pipeline([(f"step_{k}", step) for k, step in enumerate(steps)])


def unprotected_steps(estimator: Any) -> list[str]:
    """Return the names of a pipeline's steps that may learn from records."""
    steps = flat_steps(estimator)[:-1]
    return list(dict.fromkeys(name for step in steps for name in learned_steps(step)))


def list_candidates(
    estimator: Any, param_grid: Any, n_candidates: int | None, seed: int | None, delta: float = 0.0
) -> list[Candidate]:
    """Return all candidates, or so many drawn at random, with parameters that break no rule."""
    if param_grid is None:
        raise ValueError("param_grid must be a dict of lists, or a list of these, got None.")
    # Where there are fewer than were asked for, scikit-learn warns, and all of them are tried.
    with suppressed_warnings():
        settings = list(
            ParameterGrid(param_grid)
            if n_candidates is None
            else ParameterSampler(param_grid, n_candidates, random_state=seed)
        )
    candidates = [_candidate(estimator, params, delta) for params in settings]
    if not candidates:
        raise ValueError("param_grid must hold at least one candidate.")
    return candidates


def _candidate(estimator: Any, params: Mapping[str, Any], delta: float) -> Candidate:
    prefix, _ = private_step(estimator)
    for name in RESERVED:
        if prefix + name in params:
            raise ValueError(
                f"{prefix + name} must not vary among candidates: it is set by the search, for "
                "all of them."
            )
    try:
        own = clone(estimator).set_params(**clone_values(params))
    except AttributeError as error:  # scikit-learn asks whatever stands before the "__"
        raise ValueError(
            "param_grid must name parameters that the estimator has: what stands before the '__' "
            f"in one of {', '.join(sorted(params))} is not set, or has no parameters."
        ) from error
    step = private_step(own)[1]
    if delta and "delta" in step.get_params(deep=False):
        step.set_params(delta=0.0)  # the search's, where a run has one
    unknown = step.get_params(deep=False).get("classes", ...) is None
    candidate = Candidate(dict(params), own, reads_classes=unknown)
    if step.accountant is not None:
        raise ValueError(
            "accountant must be passed to PrivateSearchCV, which charges the whole search once, "
            "and not to the estimator inside."
        )
    private_step(candidate.ready(Spend(1.0, delta)))[1]._check_parameters()
    return candidate


def clone_values(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with copies of those that are estimators."""
    return {name: clone(value, safe=False) for name, value in params.items()}


@dataclass(frozen=True)
class Fit:
    """A fit that is planned, of an estimator to some of the records, and not yet carried out.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline that ends in one.
    shape : object
        What is public of the records, as the private estimator sees them.
    guarantee : PrivacyGuarantee
        What the fit would promise.
    doubts : sequence of str
        What looks wrong in its public numbers.
    """

    estimator: Any
    shape: Any
    guarantee: PrivacyGuarantee
    doubts: Sequence[str]

    @classmethod
    def planned(
        cls, estimator: Any, X: Any, y: Any, parameters: Mapping[str, Any], public: BoolArray
    ) -> Fit:
        """Plan a fit; no private value is looked at, but by steps that void every guarantee."""
        _, step = private_step(estimator)
        steps = flat_steps(estimator)[:-1]
        with suppressed_warnings():
            if unprotected_steps(estimator):
                X = call_without_data(_behind, steps, X, y)
            elif steps:
                X = _behind(steps, placeholder(X, public, _valid_row(steps[0], X)), y)
            step._check_parameters()  # with the epsilon that it is given
            own = _own(estimator, parameters)
            shape, _, guarantee = step._planned(X, y, **own)
            doubts = step._input_warnings(shape, X, y, **own)
            if steps and not unprotected_steps(estimator):  # public bounds are stated there
                doubts = [doubt for doubt in doubts if doubt not in unstated_norm()]
        return cls(estimator, shape, guarantee, doubts)

    def check(self, X: Any, y: Any, parameters: Mapping[str, Any], *spared: type[Warning]) -> None:
        """Refuse records that the fit would refuse, as it would."""
        _, step = private_step(self.estimator)
        with suppressed_warnings(*spared):
            steps = flat_steps(self.estimator)[:-1]
            if steps:
                X = call_without_data(_behind, steps, X, y)
            with suppressed_float_errors():
                step._read(self.shape, X, y, **_own(self.estimator, parameters))


def _behind(steps: Sequence[Any], X: Any, y: Any) -> Any:
    """Put rows through the steps before the private one: what these refuse they may quote."""
    for step in steps:
        X = clone(step).fit_transform(X, y)
    return X


def _valid_row(step: Any, X: Any) -> list[Any]:
    """Return a row of nobody that the first step of a pipeline takes."""
    seen = call_without_data(size, X)
    if len(seen) != 2:
        raise ValueError(NO_TABLE)
    n_columns = seen[1]
    known = input_names(step, n_columns, getattr(X, "columns", None))
    return valid_row(step, known_names(known, n_columns))


def _own(estimator: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of ``fit`` that reach the private step."""
    prefix, step = private_step(estimator)
    known = set(inspect.signature(step.fit).parameters) - {"X", "y"}
    found = {name.removeprefix(prefix): value for name, value in parameters.items()}
    if others := sorted(set(found) - known):
        raise TypeError(unknown_parameter(type(step), "fit", others[0], known))
    return found


def charges_of(
    estimator: Any, X: Any, y: Any = None, options: Mapping[str, Any] | None = None
) -> list[PrivacyGuarantee]:
    """Return what ``estimator.fit(X, y, **options)`` would charge, in order."""
    options = {} if options is None else dict(options)
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        folds = check_cv(estimator.cv, y, classifier=is_classifier(estimator.estimator))
        n_folds = folds.get_n_splits(X, y, options.pop("groups", None))
        grid: Any = (
            ParameterGrid(estimator.param_grid)
            if isinstance(estimator, GridSearchCV)
            # Which ones are drawn is for the search to know; how many there are is not.
            else ParameterSampler(estimator.param_distributions, estimator.n_iter, random_state=0)
        )
        each = [
            charge
            for params in grid
            for charge in charges_of(clone(estimator.estimator).set_params(**params), X, y, options)
        ]
        last = [max(each, key=lambda charge: charge.epsilon)] * bool(estimator.refit)
        return [charge for charge in each for _ in range(n_folds)] + last
    private_step(estimator)  # or TypeError
    if isinstance(estimator, PrivateEstimator):
        return [estimator._without_ledger()._guarantee_of_fit(X, y, **options)]
    public = np.zeros(length(X), dtype=bool)
    return [Fit.planned(estimator, X, y, options, public).guarantee]
