"""Pipelines that end in a private step, and fits of that step inside of them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
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

from skdpsurv.base.prepared import PreparedFit
from skdpsurv.base.private_estimator import PrivateEstimator
from skdpsurv.data.public_steps import column_names, learned_steps, valid_row
from skdpsurv.data.shape import PublicInputWarning, length, placeholder, size
from skdpsurv.dp.checks import unknown_parameter
from skdpsurv.dp.containers import labels_of
from skdpsurv.dp.guarantee import PrivacyGuarantee
from skdpsurv.dp.input_errors import NO_TABLE, call_without_data
from skdpsurv.dp.looking import require_free
from skdpsurv.dp.thread_warnings import suppressed_warnings
from skdpsurv.dp.types import BoolArray


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


def last_step(estimator: Any) -> tuple[str, Any]:
    """Return the prefix of parameters of the last step of a pipeline, and that step."""
    prefix = ""
    while isinstance(estimator, Pipeline) and estimator.steps:
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


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


def prepare_in(
    model: Any, X: Any, y: Any, options: Mapping[str, Any], public: BoolArray | None = None
) -> PreparedFit:
    """Plan the fit of a private estimator, or of the private step that ends a pipeline.

    Only steps that void every guarantee see private values: others transform invented rows, or
    those that are ``public``.
    """
    *steps, step = flat_steps(model)
    own = fit_options(model, options)
    with suppressed_warnings():
        if unprotected_steps(model):
            X = call_without_data(transformed, steps, X, y)
        elif steps:
            shown = np.zeros(length(X), dtype=bool) if public is None else public
            X = transformed(steps, placeholder(X, shown, _valid_row(steps[0], X)), y)
        step = step.as_fitted()
        step._check_parameters()
        return step._prepared(X, y, own.pop("person", None), own, inner=True)


def transformed(steps: Sequence[Any], X: Any, y: Any) -> Any:
    """Fit and apply steps before the private one; their messages may quote records."""
    for step in steps:
        X = clone(step).fit_transform(X, y)
    return X


def _valid_row(step: Any, X: Any) -> list[Any]:
    """Return an invented row that the first step of a pipeline takes."""
    shape = call_without_data(size, X)
    if len(shape) != 2:
        raise ValueError(NO_TABLE)
    return valid_row(step, column_names(step, shape[1], labels_of(X)))


def fit_options(estimator: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of ``fit`` that reach the private step."""
    prefix, step = private_step(estimator)
    known = set(inspect.signature(step.fit).parameters) - {"X", "y"}
    found = {name.removeprefix(prefix): value for name, value in parameters.items()}
    if others := sorted(set(found) - known):
        raise TypeError(unknown_parameter(type(step), "fit", others[0], known))
    return found


def read_in(
    fit: PreparedFit, model: Any, X: Any, y: Any, options: Mapping[str, Any], *spared: type[Warning]
) -> None:
    """Refuse records that a planned fit would refuse, with its messages."""
    *steps, _ = flat_steps(model)
    with suppressed_warnings(*spared):
        if steps:
            X = call_without_data(transformed, steps, X, y)
        fit._of_others((X, y, fit_options(model, options))).read()


def charges_of(
    estimator: Any, X: Any, y: Any = None, options: Any = None, *, ledger: Any = None
) -> list[PrivacyGuarantee]:
    """Return the charges of ``estimator.fit(X, y, **options)``, in order; nothing is spent.

    A ledger that charges refusals allows no look at records for that: each row is taken for a
    person.
    """
    options = {} if options is None else dict(options)
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        groups = options.pop("groups", None)
        require_free(ledger, groups is not None)
        grid: Any = (
            ParameterGrid(estimator.param_grid)
            if isinstance(estimator, GridSearchCV)
            # Their number matters, not which ones are drawn.
            else ParameterSampler(estimator.param_distributions, estimator.n_iter, random_state=0)
        )
        fits = (clone(estimator.estimator).set_params(**params) for params in grid)
        each = [one for fit in fits for one in charges_of(fit, X, y, options, ledger=ledger)]
        # After that, as some count records.
        n_folds = call_without_data(check_cv(estimator.cv).get_n_splits, X, y, groups)
        last = [max(each, key=lambda charge: charge.epsilon)] * bool(estimator.refit)
        return [charge for charge in each for _ in range(n_folds)] + last
    prefix, step = private_step(estimator)  # or TypeError
    step, whose = step.as_fitted(), f"{prefix}person"
    step._check_parameters()
    as_rows = options.get(whose) is not None and ledger is not None and ledger.charge_refusals
    person = options[whose] = None if as_rows else options.get(whose)
    own = {name: values for name, values in options.items() if name != whose}
    require_free(ledger, unprotected_steps(estimator) or step._looks(X, y, person, own))
    if isinstance(estimator, PrivateEstimator):
        step.accountant = None
        fit = step.prepare(X, y, **options)
        for message in fit.warnings:
            warnings.warn(message, PublicInputWarning, stacklevel=3)
    else:
        fit = prepare_in(estimator, X, y, options)
    return [fit._about_people() if as_rows else fit.guarantee]
