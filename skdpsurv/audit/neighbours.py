"""worst_neighbours: pairs of data sets that are hard on an estimator's guarantee.

One table, :data:`PAIRS`, says who makes the pairs of which estimator; a new estimator adds a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from skdpsurv.audit.exit_pairs import exit_pairs
from skdpsurv.audit.hybrid_pairs import histogram_pairs, hybrid_pairs
from skdpsurv.audit.labelled_pairs import labelled_pairs
from skdpsurv.audit.linear_pairs import linear_pairs
from skdpsurv.audit.neighbour_pair import NeighbourPair, PairSetting
from skdpsurv.audit.survival_pairs import survival_pairs
from skdpsurv.audit.weibull_pairs import weibull_pairs
from skdpsurv.checks import positive_int, seed
from skdpsurv.classification import DPLogisticRegression, PrivateStackingClassifier
from skdpsurv.hybrid import HybridMEstimator
from skdpsurv.published import (
    LaplaceWeibullFitter,
    PerturbedHistogramMEstimator,
    PublishedDiscreteTimeSurvival,
    PublishedLogisticRegression,
    PublishedStackingClassifier,
    PublishedWeibullFitter,
    SampleAggregateWeibullFitter,
)
from skdpsurv.regression import PrivateLinearModel
from skdpsurv.survival import (
    DPAalenJohansenFitter,
    DPDiscreteTimeSurvival,
    DPKaplanMeierFitter,
    DPNelsonAalenFitter,
    DPWeibullFitter,
)

__all__ = ["PAIRS", "worst_neighbours"]

#: Who makes the pairs: a function of the estimator and a PairSetting for each class, and its
#: subclasses.
PAIRS: dict[type, Callable[[Any, PairSetting], Iterator[NeighbourPair]]] = {
    DPDiscreteTimeSurvival: survival_pairs,
    PublishedDiscreteTimeSurvival: survival_pairs,
    DPWeibullFitter: weibull_pairs,
    PublishedWeibullFitter: weibull_pairs,
    LaplaceWeibullFitter: weibull_pairs,
    SampleAggregateWeibullFitter: weibull_pairs,
    DPKaplanMeierFitter: exit_pairs,
    DPNelsonAalenFitter: exit_pairs,
    DPAalenJohansenFitter: exit_pairs,
    DPLogisticRegression: labelled_pairs,
    PublishedLogisticRegression: labelled_pairs,
    PrivateStackingClassifier: labelled_pairs,
    PublishedStackingClassifier: labelled_pairs,
    PrivateLinearModel: linear_pairs,
    HybridMEstimator: hybrid_pairs,
    PerturbedHistogramMEstimator: histogram_pairs,
}


def worst_neighbours(
    estimator: Any, *, n: int = 3, n_features: int = 1, random_state: int | None = None
) -> Iterator[NeighbourPair]:
    """Make pairs of data sets that differ in one record and are hard on an estimator.

    Records at the public bounds and far beyond them, opposite to each other, with other labels or
    times, among other records that are absent, alike, spread out or separable: where sensitivities
    are attained, and where clipping, intercepts, horizons and empty cells have their corners.

    Parameters
    ----------
    estimator : estimator
        Of this package, not fitted; its parameters (bounds, horizon, classes) say what the extremes
        are. A search gets the pairs of its ``estimator``.
    n : int, default=3
        Private records in each data set. Few: then one of them weighs most.
    n_features : int, default=1
        Columns. More than one adds pairs with rows at right angles and with rows that are shared
        by all columns.
    random_state : None or int, default=None
        Of the records that are spread out; None is the same as 0, so that the pairs of an estimator
        are always the same.

    Yields
    ------
    NeighbourPair
        A tuple (name, data, neighbour), the latter two as :func:`audit_epsilon` takes them.

    Raises
    ------
    TypeError
        If nobody knows pairs for the estimator.

    See Also
    --------
    audit_epsilon : Tries to tell them apart.

    Examples
    --------
    >>> from skdpsurv import DPLogisticRegression
    >>> from skdpsurv.audit import worst_neighbours
    >>> pairs = list(worst_neighbours(DPLogisticRegression(classes=[0, 1]), n=2))
    >>> pairs[0].name
    'label flipped, others alike'
    >>> pairs[0].data
    (array([[1.],
           [1.]]), array([0, 0]))
    >>> pairs[0].neighbour[1]
    array([1, 0])
    """
    positive_int("n", n)
    positive_int("n_features", n_features)
    seed("random_state", random_state)
    model = estimator
    while (make := _maker(model)) is None:
        # What a search chooses among.
        if not (hasattr(model, "estimator") and hasattr(model, "epsilon")):
            known = ", ".join(kind.__name__ for kind in PAIRS)
            raise TypeError(
                f"estimator must be one of {known}, or a search over one, got "
                f"{type(estimator).__name__}."
            )
        model = model.estimator
    return make(model, PairSetting(int(n), int(n_features), int(random_state or 0)))


def _maker(estimator: Any) -> Callable[[Any, PairSetting], Iterator[NeighbourPair]] | None:
    return next((PAIRS[kind] for kind in type(estimator).__mro__ if kind in PAIRS), None)
