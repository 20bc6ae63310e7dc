"""The public candidates of a search, checked before anything is charged; and planned charges."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)
from sklearn.pipeline import Pipeline

from skdpsurv.base import PrivateEstimator
from skdpsurv.data.cells import class_indices
from skdpsurv.data.public_steps import column_names, learned_steps, valid_row
from skdpsurv.data.shape import length, placeholder, size, unstated_norm
from skdpsurv.dp.containers import labels_of
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.input_errors import (
    NO_TABLE,
    call_without_data,
    suppressed_float_errors,
    suppressed_warnings,
    unknown_parameter,
)
from skdpsurv.dp.looking import require_free
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.dp.types import BoolArray

#: Parameters that the search sets.
RESERVED = ("epsilon", "delta", "random_state", "accountant")


@dataclass(frozen=True)
class Candidate:
    """One setting of the hyper-parameters, and an unfitted estimator with it.

    An estimator that reads its classes from the records has no guarantee.
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
        """True if there is no guarantee, as records reach the release past every mechanism."""
        return self.reads_classes or bool(unprotected_steps(self.estimator))

    def knowing_classes(self, y: Any) -> Candidate:
        """Return a candidate with the classes of all of y, if it reads classes."""
        if not self.reads_classes:
            return self
        with suppressed_warnings():
            classes, _ = class_indices(y, None, 0 if y is None else length(y))
        estimator = clone(self.estimator)
        private_step(estimator)[1].set_params(classes=classes)
        return Candidate(self.params, estimator, reads_classes=True)

    def ready(self, spend: Spend, seed: int | None = None) -> Any:
        """Return a fresh estimator with some privacy parameters; it has no accountant."""
        fresh = clone(self.estimator)
        # Output and caches would show the number of runs, and overwritten rows change the next one.
        fresh.set_params(**_isolated(fresh))
        step = private_step(fresh)[1]
        step.set_params(epsilon=spend.epsilon)
        if spend.delta and "delta" in step.get_params(deep=False):
            step.set_params(delta=spend.delta)
        if seed is not None:
            step.set_params(random_state=seed)
        return fresh


def _isolated(estimator: Any) -> dict[str, Any]:
    """Return nested parameters without output, caches, or changes to the rows."""
    changed: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=True).items():
        match name.split("__")[-1]:
            case "verbose":
                # Below 0 some are more silent than at 0.
                changed[name] = min(type(value)(0), value) if isinstance(value, bool | int) else 0
            case "copy":
                changed[name] = True
            case "memory":
                changed[name] = None
    return changed


def private_step(estimator: Any) -> tuple[str, PrivateEstimator]:
    """Return the prefix of the private estimator's parameters, and the estimator."""
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
    """Return the names of ``fit`` parameters with an entry for each record."""
    prefix, step = private_step(estimator)
    return tuple(prefix + name for name in step._one_of_each)


def flat_steps(estimator: Any) -> list[Any]:
    """Return the steps of nested pipelines; the last is the estimator."""
    if not isinstance(estimator, Pipeline):
        return [] if estimator in (None, "passthrough") else [estimator]
    return [step for _, inner in estimator.steps for step in flat_steps(inner)]


def one_after_another(steps: Sequence[Any]) -> Pipeline:
    """Return a pipeline of steps, which may be fitted."""
    return Pipeline([(f"step_{k}", step) for k, step in enumerate(steps)])


def unprotected_steps(estimator: Any) -> list[str]:
    """Return the names of a pipeline's steps that may learn from records."""
    steps = flat_steps(estimator)[:-1]
    return list(dict.fromkeys(name for step in steps for name in learned_steps(step)))


def list_candidates(
    estimator: Any, param_grid: Any, n_candidates: int | None, seed: int | None, delta: float = 0.0
) -> list[Candidate]:
    """Return all candidates, or some number drawn at random, with checked parameters."""
    if param_grid is None:
        raise ValueError("param_grid must be a dict of lists, or a list of these, got None.")
    with suppressed_warnings():  # with fewer than n_candidates all of them are tried
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
        copies = {name: clone(value, safe=False) for name, value in params.items()}
        own = clone(estimator).set_params(**copies)
    except AttributeError as error:  # from set_params of whatever stands before the "__"
        raise ValueError(
            "param_grid must name parameters that the estimator has: what stands before the '__' "
            f"in one of {', '.join(sorted(params))} is not set, or has no parameters."
        ) from error
    step = private_step(own)[1]
    if delta and "delta" in step.get_params(deep=False):
        step.set_params(delta=0.0)  # the search sets that of its runs
    reads_classes = step.get_params(deep=False).get("classes", ...) is None
    candidate = Candidate(dict(params), own, reads_classes)
    if step.accountant is not None:
        raise ValueError(
            "accountant must be passed to PrivateSearchCV, which charges the whole search once, "
            "and not to the estimator inside."
        )
    private_step(candidate.ready(Spend(1.0, delta)))[1]._check_parameters()
    return candidate


@dataclass(frozen=True)
class Fit:
    """A planned fit of an estimator to some of the records, with its public shape."""

    estimator: Any
    shape: Any
    guarantee: PrivacyGuarantee
    input_warnings: Sequence[str]

    @classmethod
    def planned(
        cls, estimator: Any, X: Any, y: Any, parameters: Mapping[str, Any], public: BoolArray
    ) -> Fit:
        """Plan a fit; only steps that void every guarantee see private values."""
        *steps, step = flat_steps(estimator)
        with suppressed_warnings():
            if unprotected_steps(estimator):
                X = call_without_data(_transformed, steps, X, y)
            elif steps:
                X = _transformed(steps, placeholder(X, public, _valid_row(steps[0], X)), y)
            step._check_parameters()
            own = _own(estimator, parameters)
            shape, _, guarantee = step._planned(X, y, **own)
            found = step._input_warnings(shape, X, y, **own)
            if steps and not unprotected_steps(estimator):  # these state public bounds
                found = [text for text in found if text not in unstated_norm()]
        return cls(estimator, shape, guarantee, found)

    def check(self, X: Any, y: Any, parameters: Mapping[str, Any], *spared: type[Warning]) -> None:
        """Refuse records that the fit would refuse, with its messages."""
        *steps, step = flat_steps(self.estimator)
        with suppressed_warnings(*spared):
            if steps:
                X = call_without_data(_transformed, steps, X, y)
            with suppressed_float_errors():
                step._read(self.shape, X, y, **_own(self.estimator, parameters))


def _transformed(steps: Sequence[Any], X: Any, y: Any) -> Any:
    """Fit and apply public steps; their messages may quote records."""
    for step in steps:
        X = clone(step).fit_transform(X, y)
    return X


def _valid_row(step: Any, X: Any) -> list[Any]:
    """Return an invented row that the first step of a pipeline takes."""
    shape = call_without_data(size, X)
    if len(shape) != 2:
        raise ValueError(NO_TABLE)
    return valid_row(step, column_names(step, shape[1], labels_of(X)))


def _own(estimator: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of ``fit`` that reach the private step."""
    prefix, step = private_step(estimator)
    known = set(inspect.signature(step.fit).parameters) - {"X", "y"}
    found = {name.removeprefix(prefix): value for name, value in parameters.items()}
    if others := sorted(set(found) - known):
        raise TypeError(unknown_parameter(type(step), "fit", others[0], known))
    return found


def charges_of(
    estimator: Any, X: Any, y: Any = None, options: Any = None, *, ledger: Any = None
) -> list[PrivacyGuarantee]:
    """Return the charges of ``estimator.fit(X, y, **options)``, in order.

    A ledger that charges refusals allows no look at records for that.
    """
    options = {} if options is None else dict(options)
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        groups = options.pop("groups", None)
        require_free(ledger, groups is not None)
        n_folds = check_cv(estimator.cv).get_n_splits(X, y, groups)
        grid: Any = (
            ParameterGrid(estimator.param_grid)
            if isinstance(estimator, GridSearchCV)
            # Their number matters, not which ones are drawn.
            else ParameterSampler(estimator.param_distributions, estimator.n_iter, random_state=0)
        )
        fits = (clone(estimator.estimator).set_params(**params) for params in grid)
        each = [one for fit in fits for one in charges_of(fit, X, y, options, ledger=ledger)]
        last = [max(each, key=lambda charge: charge.epsilon)] * bool(estimator.refit)
        return [charge for charge in each for _ in range(n_folds)] + last
    step = copy.copy(private_step(estimator)[1])  # or TypeError
    step.accountant = ledger
    if isinstance(estimator, PrivateEstimator):
        return [step._guarantee_of_fit(X, y, **options)]
    public = np.zeros(length(X), dtype=bool)
    require_free(ledger, unprotected_steps(estimator) or step._looks(X, y, None, {}))
    return [Fit.planned(estimator, X, y, options, public).guarantee]
