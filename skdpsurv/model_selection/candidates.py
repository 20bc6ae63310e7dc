"""The candidates of a search: public, and each of them checked before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, Normalizer, PolynomialFeatures

from skdpsurv.base import PrivateEstimator
from skdpsurv.preprocessing import PublicBoundsScaler
from skdpsurv.privacy import PrivacyAccountant, PrivacyGuarantee, call_without_data, silence

__all__ = ["Candidate", "announced_guarantee", "list_candidates", "private_step"]

#: Transformers that map each row by itself, by public parameters and the number of columns alone.
LEARN_NOTHING: frozenset[type] = frozenset(
    {Binarizer, Normalizer, PolynomialFeatures, PublicBoundsScaler}
)
#: What the search sets, so that candidates may not.
RESERVED = ("epsilon", "random_state", "accountant")


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
        Whether its classes were read from the records, which voids its guarantee.
    """

    params: Mapping[str, Any]
    estimator: Any
    reads_classes: bool = False

    @property
    def private(self) -> PrivateEstimator:
        """The private estimator."""
        return private_step(self.estimator)[1]

    def knowing_classes(self, y: Any) -> Candidate:
        """Return a candidate with the classes of y, if it would read them from its own part."""
        missing = object()
        if self.private.get_params(deep=False).get("classes", missing) is not None:
            return self
        estimator = clone(self.estimator)
        private_step(estimator)[1].set_params(classes=np.unique(np.ravel(np.asarray(y))))
        return Candidate(self.params, estimator, reads_classes=True)

    def ready(self, epsilon: float, seed: int | None = None) -> Any:
        """Return a fresh estimator that spends ``epsilon``; it has no accountant.

        Parameters
        ----------
        epsilon : float
        seed : int or None
            Replaces its ``random_state``; None keeps it.
        """
        fresh = clone(self.estimator)
        # Whoever speaks, or keeps what was computed, would tell how many runs there are; whoever
        # writes into the rows that it is given would make a run depend on the one before.
        fresh.set_params(**_calm(fresh))
        seeds = {} if seed is None else {"random_state": seed}
        private_step(fresh)[1].set_params(epsilon=epsilon, **seeds)
        return fresh


def _calm(estimator: Any) -> dict[str, Any]:
    """Return parameters, at any depth, by which nothing is said, kept on disk, or overwritten."""
    calm: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=True).items():
        match name.split("__")[-1]:
            case "verbose":
                calm[name] = type(value)(0) if isinstance(value, bool | int) else 0
            case "copy":
                calm[name] = True
            case "memory":
                calm[name] = None
    return calm


def private_step(estimator: Any) -> tuple[str, PrivateEstimator]:
    """Return the private estimator, and the prefix of its parameters.

    Raises
    ------
    TypeError
        If there is none, or it is not the last step of a pipeline.
    """
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


def flat_steps(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline, and of pipelines inside of it; the last is the estimator."""
    if not isinstance(estimator, Pipeline):
        return [] if estimator in (None, "passthrough") else [estimator]
    return [step for _, inner in estimator.steps for step in flat_steps(inner)]


def unprotected_steps(estimator: Any) -> list[str]:
    """Return the names of a pipeline's steps that may learn from records, by their types."""
    steps = flat_steps(estimator)[:-1]
    return list(dict.fromkeys(type(s).__name__ for s in steps if type(s) not in LEARN_NOTHING))


def list_candidates(
    estimator: Any,
    param_grid: Any,
    param_distributions: Any,
    n_candidates: int,
    seed: int | None,
) -> list[Candidate]:
    """Return all candidates, with parameters that break no rule.

    Raises
    ------
    ValueError, TypeError
        If they cannot be made, or vary what the search itself sets.
    """
    if (param_grid is None) == (param_distributions is None):
        raise ValueError("param_grid or param_distributions must be given, and not both.")
    settings = (
        ParameterSampler(param_distributions, n_candidates, random_state=seed)
        if param_grid is None
        else ParameterGrid(param_grid)
    )
    candidates = [_candidate(estimator, params) for params in settings]
    if not candidates:
        raise ValueError("param_grid must hold at least one candidate.")
    return candidates


def _candidate(estimator: Any, params: Mapping[str, Any]) -> Candidate:
    prefix, _ = private_step(estimator)
    for name in RESERVED:
        if prefix + name in params:
            raise ValueError(
                f"{prefix + name} must not vary among candidates: it is set by the search, for "
                "all of them."
            )
    candidate = Candidate(dict(params), clone(estimator).set_params(**clone_values(params)))
    step = candidate.private
    if step.accountant is not None:
        raise ValueError(
            "accountant must be passed to PrivateSearchCV, which charges the whole search once, "
            "and not to the estimator inside."
        )
    private_step(candidate.ready(1.0))[1]._check_parameters()
    return candidate


def _before(estimator: Any, X: Any) -> None:
    """Put rows through the steps before the private one: what these refuse they may quote."""
    for step in flat_steps(estimator)[:-1]:
        if type(step) not in LEARN_NOTHING:
            return
        X = clone(step).fit_transform(X)


def clone_values(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with copies of those that are estimators."""
    return {name: clone(value, safe=False) for name, value in params.items()}


class _AnnouncedError(Exception):
    """Ends a fit at the place where it would be charged."""

    def __init__(self, guarantee: PrivacyGuarantee) -> None:
        super().__init__()
        self.guarantee = guarantee


class _Announcer(PrivacyAccountant):
    """Stands in for a ledger: a fit tells it what it would cost, and goes no further."""

    def check(self, guarantee: PrivacyGuarantee, dataset: str | None = None) -> None:
        pass

    def charge(
        self, guarantee: PrivacyGuarantee, dataset: str | None = None, *, estimator: str = ""
    ) -> None:
        raise _AnnouncedError(guarantee)


def announced_guarantee(
    estimator: Any, X: Any, y: Any, parameters: Mapping[str, Any], *, quiet: bool = True
) -> PrivacyGuarantee:
    """Return what a fit would promise, having checked all that it checks before its charge.

    A private ``fit`` checks its parameters, validates the records, plans from public numbers, and
    only then charges its accountant and computes. Here it is stopped there: a refusal comes as
    from a fit by itself, and nothing is computed from the records.

    Raises
    ------
    ValueError, TypeError
        As the fit does.
    """
    _, step = private_step(estimator)
    step.set_params(accountant=_Announcer())
    spared = () if quiet else (DataConversionWarning,)  # of y's shape alone
    with silence(*spared):
        try:
            call_without_data(_before, estimator, X)
            estimator.fit(X, y, **parameters)
        except _AnnouncedError as announced:
            return announced.guarantee
    raise TypeError(
        f"estimator must charge its accountant in fit, and {type(step).__name__} did not."
    )
