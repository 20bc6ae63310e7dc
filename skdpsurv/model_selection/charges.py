"""What fits would charge to a ledger, counted before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

from skdpsurv.base import PrivateEstimator
from skdpsurv.model_selection.candidates import Fit, private_step
from skdpsurv.privacy import PrivacyGuarantee
from skdpsurv.shape import length


def charges_of(
    estimator: Any, X: Any, y: Any = None, options: Mapping[str, Any] | None = None
) -> list[PrivacyGuarantee]:
    """Return what ``estimator.fit(X, y, **options)`` would charge, in order.

    Parameters
    ----------
    estimator : estimator
        A private estimator (a `PrivateSearchCV` is one charge), a pipeline that ends in one, or
        scikit-learn's `GridSearchCV` or `RandomizedSearchCV` of these: a charge for each candidate
        and fold, and the dearest of the candidates for the last fit. Of a search by `GridSearchCV`,
        all records stand for those of each fold: the number of records does not change what a
        fit is charged.
    X, y : array-like
        Records; only what is public of them is looked at.
    options : mapping, optional
        Further arguments of ``fit``.

    Returns
    -------
    list of PrivacyGuarantee

    Raises
    ------
    TypeError
        If it is something else.
    """
    options = {} if options is None else dict(options)
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        folds = check_cv(estimator.cv, y, classifier=is_classifier(estimator.estimator))
        n_folds = folds.get_n_splits(X, y, options.pop("groups", None))
        each = [
            charge
            for params in _candidates(estimator)
            for charge in charges_of(clone(estimator.estimator).set_params(**params), X, y, options)
        ]
        last = [max(each, key=lambda charge: charge.epsilon)] * bool(estimator.refit)
        return [charge for charge in each for _ in range(n_folds)] + last
    private_step(estimator)  # or TypeError
    if isinstance(estimator, PrivateEstimator):
        return [estimator._without_ledger()._promised(X, y, **options)]
    public = np.zeros(length(X), dtype=bool)
    return [Fit.planned(estimator, X, y, options, public).guarantee]


def _candidates(search: GridSearchCV | RandomizedSearchCV) -> Sequence[Mapping[str, Any]]:
    if isinstance(search, GridSearchCV):
        return list(ParameterGrid(search.param_grid))
    # Which ones are drawn is for the search to know; how many there are is not.
    return list(ParameterSampler(search.param_distributions, search.n_iter, random_state=0))
