"""The public candidates of a search, checked before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdpsurv.base import PrivateEstimator
from skdpsurv.base.pipelines import private_step, unprotected_steps
from skdpsurv.data.labels import class_indices
from skdpsurv.data.shape import length
from skdpsurv.dp.privacy_cost import Spend
from skdpsurv.dp.thread_warnings import suppressed_warnings

#: Parameters of candidates that the search itself sets.
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
    if getattr(step, "strata", None) is not None:
        raise ValueError("strata must be None in a search: its losses know one baseline alone.")
    return candidate
