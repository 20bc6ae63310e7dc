"""Transformers that map rows one by one, and learn nothing: what each makes of columns.

What a leaf makes of a row depends on that row and on its own parameters alone. Another one is a
line in :data:`LEAVES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations, combinations_with_replacement
from math import comb
from numbers import Integral
from typing import Any

from sklearn.preprocessing import Binarizer, Normalizer, PolynomialFeatures

from skdpsurv.preprocessing.feature import Expression, Feature
from skdpsurv.preprocessing.public_bounds import PublicBoundsScaler
from skdpsurv.preprocessing.public_columns import PublicColumns
from skdpsurv.privacy.guarantee import frozen

Features = list[Feature]
#: Deeper nesting than anybody writes; a release that is nested deeper was crafted.
MOST_NESTED = 20
#: More features than anybody can fit: of polynomials in many columns.
MOST_FEATURES = 200_000


def refuse_too_many(n_features: int) -> None:
    """Refuse more features than anybody can fit."""
    if n_features > MOST_FEATURES:
        raise ValueError(f"columns must make at most {MOST_FEATURES:,} features.")


def _declared(step: PublicColumns, inputs: Features) -> Features:
    if any(one.expression.kind != "column" for one in inputs):
        raise ValueError("PublicColumns must come before all other steps: it reads raw columns.")
    given, stated = {one.name: None for one in inputs}, dict.fromkeys(step._names())
    if given != stated:
        lacking = ", ".join(name for name in stated if name not in given)
        unknown = ", ".join(name for name in given if name not in stated)
        said = f"X has no {lacking}" if lacking else ""
        said += f"{said and '; '}columns does not describe {unknown}" if unknown else ""
        raise ValueError(f"columns of PublicColumns must be those of X: {said}.")
    return step._features()


def _normalized(step: Normalizer, inputs: Features) -> Features:
    if step.norm not in ("l1", "l2", "max"):
        raise ValueError(f"norm of Normalizer must be 'l1', 'l2' or 'max', got {step.norm!r}.")
    norm = Expression("norm", tuple(one.expression for one in inputs), (step.norm,))
    return [
        Feature(one.name, Expression("share", (one.expression, norm)), -1.0, 1.0) for one in inputs
    ]


def _binarized(step: Binarizer, inputs: Features) -> Features:
    threshold = float(step.threshold)
    return [
        Feature(one.name, Expression("above", (one.expression,), (threshold,)), 0.0, 1.0)
        for one in inputs
    ]


def _multiplied(step: PolynomialFeatures, inputs: Features) -> Features:
    given = (0, step.degree) if isinstance(step.degree, Integral) else step.degree
    least, most = (int(degree) for degree in given)
    if not 0 <= least <= most <= MOST_NESTED:
        raise ValueError(f"degree of PolynomialFeatures must be at most {MOST_NESTED}.")
    pick = combinations if step.interaction_only else combinations_with_replacement
    degrees = range(max(least, 1), most + 1)
    n = len(inputs)
    numbers = (comb(n, k) if step.interaction_only else comb(n + k - 1, k) for k in degrees)
    refuse_too_many(sum(numbers))
    powers = chain.from_iterable(pick(range(n), degree) for degree in degrees)
    found: Features = [Feature("1", Expression("product"), 1.0, 1.0)] if step.include_bias else []
    for places in powers:
        if len(places) == 1:
            found.append(inputs[places[0]])
            continue
        counts = {inputs[j].name: places.count(j) for j in places}
        name = " ".join(f"{one}^{count}" if count > 1 else one for one, count in counts.items())
        factors = tuple(inputs[j].expression for j in places)
        found.append(Feature(name, Expression("product", factors)))
    return found


@dataclass(frozen=True)
class Leaf:
    """A transformer that maps rows one by one.

    Parameters
    ----------
    kind : type
    parameters : tuple of str
        Those that decide what it makes of a row.
    features : callable
        Of the transformer and of the features that go in: those that come out.
    """

    kind: type
    parameters: tuple[str, ...]
    features: Callable[[Any, Features], Features]
    #: Parameters that a description may lack, as those of earlier versions do.
    optional: tuple[str, ...] = ()

    def described(self, step: Any) -> dict[str, Any]:
        """Return its parameters as JSON has them."""
        if hasattr(step, "_described"):
            return dict(step._described())
        return {name: frozen(name, getattr(step, name)) for name in self.parameters}


#: By the exact type: a subclass may do anything.
LEAVES = {
    leaf.kind: leaf
    for leaf in (
        Leaf(PublicBoundsScaler, ("lower", "upper", "missing"), lambda s, i: s._features(i)),
        Leaf(PublicColumns, ("columns", "missing", "drop"), _declared, ("missing_values",)),
        Leaf(Normalizer, ("norm",), _normalized),
        Leaf(Binarizer, ("threshold",), _binarized),
        Leaf(PolynomialFeatures, ("degree", "interaction_only", "include_bias"), _multiplied),
    )
}
