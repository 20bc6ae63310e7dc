"""What a delta would gain, from public numbers alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from skdpsurv.classification.private_classifier import LabelledShape
from skdpsurv.labels import stated_classes
from skdpsurv.mechanisms.perturbation import Minimisers
from skdpsurv.shape import Shape

#: What is left of the noise, at most: a promise is not weakened for less.
WORTH = 0.9


def gain_of_delta(
    estimator: Any, n_records: int, n_features: int, epsilons: Sequence[float]
) -> str:
    """Return what a delta of 1/n² would leave of the noise on coefficients, in words.

    Parameters
    ----------
    estimator : PrivateEstimator
        Of any kind; left as it is.
    n_records, n_features : int
    epsilons : sequence of float

    Returns
    -------
    str
        "" where it would gain little or nothing, or the estimator has a delta, or knows none.
    """
    if getattr(estimator, "delta", 1.0):
        return ""
    delta = _one_digit(n_records)
    shape = Shape(n_records, n_features)
    if hasattr(estimator, "classes"):
        classes = stated_classes(estimator.classes)
        if classes is None:
            return ""
        shape = LabelledShape(n_records, n_features, classes)
    left = {}
    for epsilon in filter(math.isfinite, epsilons):
        without, with_delta = (_noise(estimator, shape, epsilon, each) for each in (0.0, delta))
        if with_delta <= WORTH * without < math.inf:
            left[epsilon] = with_delta / without
    if not left:
        return ""
    one = len(epsilons) == 1
    shares = [f"{s:.2f}" + (not one) * f" (epsilon {epsilon:g})" for epsilon, s in left.items()]
    return (
        f"With delta={delta:.0e}, which is at most 1/n^2, the noise of coefficients would be "
        f"{', '.join(shares)} of what it is."
    )


def _one_digit(n_records: int) -> float:
    """Return 1/n², rounded down to a digit: above it a fit would ask."""
    exponent = math.floor(-2.0 * math.log10(n_records))
    digits = (float(f"{m}e{e}") for e in (exponent, exponent - 1) for m in range(9, 0, -1))
    return next(delta for delta in digits if delta * float(n_records) ** 2 <= 1.0)


def _noise(estimator: Any, shape: Shape, epsilon: float, delta: float) -> float:
    """Return the noise of a plan, as laws are compared by it; infinite if there is no such plan."""
    model = copy.copy(estimator)
    model.epsilon, model.delta = epsilon, delta
    model.prior = model.columns = model.accountant = None
    try:
        model._check_parameters()
        plan, _ = model._plan_and_guarantee(shape)
    except ValueError:
        return math.inf
    minimisers = (leaf for leaf in plan.leaves if isinstance(leaf, Minimisers))
    return min((leaf.noise for leaf in minimisers), default=math.inf)
