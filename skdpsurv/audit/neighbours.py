"""worst_neighbours: pairs of data sets that are hard on an estimator's guarantee.

Each pair changes one record among several kinds of other records. :data:`PAIRS` maps what
estimators take of records to functions that make them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from skdpsurv.classification.private_classifier import PrivateClassifier
from skdpsurv.dp.checks import positive_int, seed
from skdpsurv.dp.types import FloatArray
from skdpsurv.hybrid import HybridMEstimator
from skdpsurv.release.card import Card
from skdpsurv.survival.weibull.fitter import WeibullCurve

#: Size of values far beyond a bound, which clipping must catch.
FAR = 1e9
#: Public records for each private one, and at least.
PUBLIC_SHARE, LEAST_PUBLIC = 2, 12

#: One value for each argument of ``fit``.
Record = tuple[Any, ...]


class NeighbourPair(NamedTuple):
    """Two data sets that differ in their first private record.

    Parameters
    ----------
    name : str
        Change of the record, and kind of the other records.
    data, neighbour : tuple
        Arguments of ``fit``.
    """

    name: str
    data: tuple[Any, ...]
    neighbour: tuple[Any, ...]


class _Sizes(NamedTuple):
    """Sizes of the data sets to make, and values for the records that both neighbours have."""

    n_others: int
    n_features: int
    seed: int

    def along(self, size: float, column: int = 0) -> FloatArray:
        """Return the row of norm ``size`` that is zero in all other columns."""
        return size * np.eye(self.n_features)[column]

    def shared(self, size: float) -> FloatArray:
        """Return a row of length ``size`` with equal entries."""
        return np.full(self.n_features, size / np.sqrt(self.n_features))

    def uniform(self, low: Any, high: Any, *shape: int) -> FloatArray:
        """Return uniform values for the records that both neighbours have."""
        return np.random.default_rng(self.seed).uniform(low, high, (self.n_others, *shape))

    def spread(self, size: float) -> FloatArray:
        """Return rows of norm at most ``size`` for the records that both neighbours have."""
        return size * self.uniform(-1.0, 1.0, self.n_features) / np.sqrt(self.n_features)

    def alternating(self, *values: Any) -> list[Any]:
        """Return alternating values for the records that both neighbours have."""
        return [values[i % len(values)] for i in range(self.n_others)]


class _Family(NamedTuple):
    """Changes of one record, kinds of other records, and how records become arguments."""

    changes: Mapping[str, tuple[Record, Record]]
    crowds: Callable[[Record], Mapping[str, Sequence[Record]]]
    data: Callable[..., tuple[Any, ...]]
    n_strongest: int = 0
    usual: tuple[int, ...] = (0, 1, 2)

    def pairs(self, n_others: int) -> Iterator[NeighbourPair]:
        for i, (change, pair) in enumerate(self.changes.items()):
            crowds = list(self.crowds(pair[0]).items())
            chosen = crowds if i < self.n_strongest else [crowds[j] for j in self.usual]
            for name, others in chosen if n_others else [("alone", ())]:
                made = (self.data(*zip(record, *others, strict=True)) for record in pair)
                yield NeighbourPair(f"{change}, {name}", *made)


def worst_neighbours(
    estimator: Any, *, n: int = 3, n_features: int = 1, random_state: int | None = None
) -> Iterator[NeighbourPair]:
    """Make pairs of data sets that differ in one record and are hard on an estimator.

    Records are at the public bounds and far beyond them, opposite to each other, or with other
    labels or times. The others are absent, alike, spread out or separable. Sensitivities are
    attained there, and clipping, intercepts, horizons and empty cells have their corner cases.

    Parameters
    ----------
    estimator : estimator
        Of this package, not fitted; its parameters (bounds, horizon, classes) give the extremes. A
        search gets the pairs of its ``estimator``.
    n : int, default=3
        Private records in each data set; with few, one of them weighs most.
    n_features : int, default=1
        Columns. More than one adds pairs with orthogonal rows and with rows of equal entries.
    random_state : None or int, default=None
        Seed of the records that are spread out; None is the same as 0.

    Yields
    ------
    NeighbourPair
        A tuple (name, data, neighbour), the latter two as :func:`audit_epsilon` takes them.

    Raises
    ------
    TypeError
        If there are no pairs for the estimator.

    See Also
    --------
    audit_epsilon : Try to tell them apart.

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
    while (make := PAIRS.get(getattr(model, "_card", Card()).takes)) is None:
        if not (hasattr(model, "estimator") and hasattr(model, "epsilon")):
            raise TypeError(
                "estimator must be a private estimator of this package, or a search over one, got "
                f"{type(estimator).__name__}."
            )
        model = model.estimator
    sizes = _Sizes(int(n) - 1, int(n_features), int(random_state or 0))
    return make(model, sizes).pairs(sizes.n_others)


def _rows(rows: Sequence[FloatArray], outcomes: Sequence[Any], dtype: Any = None) -> Any:
    return np.vstack(rows), np.array(list(outcomes), dtype=dtype)


def _moved_rows(sizes: _Sizes, bound: float, low: Any, high: Any, what: str) -> dict[str, Any]:
    """Return changes of rows, with one outcome or two: at their bound, at zero and far beyond."""
    top, zero = sizes.along(bound), sizes.along(0.0)
    changes = {
        "row and its negative": ((top, high), (-top, high)),
        "row at zero or at its bound": ((zero, low), (top, low)),
        f"row and {what} turned around": ((top, low), (-top, high)),
        f"{what} flipped at a row of zeros": ((zero, low), (zero, high)),
        "rows far beyond the bound": ((FAR * top, high), (-FAR * top, high)),
        "row far beyond the bound or at zero": ((FAR * top, high), (zero, high)),
    }
    if sizes.n_features > 1:
        shared, other = sizes.shared(bound), sizes.along(bound, sizes.n_features - 1)
        changes[f"{what} flipped at a row of all columns"] = ((shared, low), (shared, high))
        changes["rows at right angles"] = ((top, high), (other, high))
        changes["row of all columns and its negative"] = ((shared, high), (-shared, high))
    return changes


def _linear(estimator: Any, sizes: _Sizes) -> _Family:
    """Return the family of linear models: labels or outcomes at either end, and no columns."""
    bound, n = estimator._norm, sizes.n_others
    if labelled := isinstance(estimator, PrivateClassifier):
        stated = [0, 1] if estimator.classes is None else np.unique(estimator.classes).tolist()
    else:
        stated = list(estimator._outcome_range())
    what, low, high = "label" if labelled else "outcome", stated[0], stated[-1]
    top, zero = sizes.along(bound), sizes.along(0.0)
    changes = {f"{what} flipped": ((top, low), (top, high))}
    changes |= _moved_rows(sizes, bound, low, high, what)
    if not labelled:
        beyond = FAR * max(high, 1.0)
        changes["outcome far beyond its range"] = ((FAR * top, beyond), (-FAR * top, high))
    elif len(stated) > 2:
        changes["label of one class or of another"] = ((top, stated[0]), (top, stated[1]))
    outcomes = sizes.alternating(high, low)
    crowds = {
        "others alike": [(top, low)] * n,
        "others at zero": [(zero, outcome) for outcome in outcomes],
        f"others at zero with one {what}": [(zero, low)] * n,
        "others separable": sizes.alternating((top, high), (-top, low)),
        "others spread out": list(zip(sizes.spread(bound), outcomes, strict=True)),
    }
    return _Family(changes, lambda _: crowds, _rows, 3, (0, 1))


def _survival(estimator: Any, sizes: _Sizes) -> _Family:
    """Return the family of hazard models: rows with times at the ends of the grid; causes."""
    end, n = float(estimator.max_time), sizes.n_others
    given = estimator.data_norm
    bound = math.sqrt(sizes.n_features) / 2.0 if isinstance(given, str) else float(given)
    top, zero = sizes.along(bound), sizes.along(0.0)
    causes = getattr(estimator, "causes", None)
    none, *seen = (False, True) if causes is None else (estimator.censored, *causes)
    early, late = (seen[0], 0.5 * end / int(estimator.n_intervals)), (seen[-1], end)
    healthy = (none, end)
    changes = {
        "event at once or censored at the end": ((top, early), (top, healthy)),
        "event in the first or the last interval": ((top, early), (top, late)),
        "event or censored in the last interval": ((top, late), (top, healthy)),
        "opposite rows, both censored at the end": ((top, healthy), (-top, healthy)),
        "time far beyond the horizon or at once": ((top, (seen[0], FAR * end)), (top, early)),
        **_moved_rows(sizes, bound, healthy, early, "outcome"),
    }
    if len(seen) > 1:
        other = seen[-1], early[1]
        changes["events of two causes at once, opposite rows"] = (top, early), (-top, other)
    times = (end * sizes.uniform(0.0, 1.0)).tolist()
    outcomes = zip(sizes.alternating(*seen, none), times, strict=True)
    crowds = {
        "others at zero and censored": [(zero, healthy)] * n,
        "others with events at once": [(top, early)] * n,
        "others censored at the end": [(top, healthy)] * n,
        "others separable": sizes.alternating((top, early), (-top, healthy)),
        "others spread out": list(zip(sizes.spread(bound), outcomes, strict=True)),
    }
    target = [("event", np.asarray([none, *seen]).dtype), ("time", "f8")]
    # The strongest changes among all sorts of others, the rest among two.
    return _Family(changes, lambda _: crowds, partial(_rows, dtype=target), 2, (0, 1))


def _durations(estimator: Any, sizes: _Sizes) -> _Family:
    """Return the family of curves: durations at zero, at the horizon, beyond; causes, groups."""
    end, n = float(estimator.max_time), sizes.n_others
    groups, causes = (getattr(estimator, name, None) for name in ("groups", "causes"))
    none, *seen = (False, True) if causes is None else (estimator.censored, *causes)
    here, there = (None, None) if groups is None else (groups[0], groups[-1])
    early, late = (0.0, seen[0], here), (end, seen[-1], there)
    healthy, gone = (end, none, here), (0.0, none, there)
    mid = (end * math.exp(-1.0), seen[-1], there)
    changes = {
        "event at zero or censored at the horizon": (early, healthy),
        "event at zero or at the horizon": (early, late),
        "event or censored at the horizon": (late, healthy),
        "event or censored at zero": (early, gone),
        "censored at zero or at the horizon": (gone, healthy),
        "event far beyond the horizon or at zero": ((FAR * end, seen[0], here), early),
        "event in mid course or at the horizon": (mid, (end, seen[0], here)),
        "event in mid course or at zero": (mid, early),
        "event or censored in mid course": (mid, (mid[0], none, here)),
    }
    if isinstance(estimator, WeibullCurve):
        least = end * math.exp(-float(estimator.omega))
        # As far below the least time as can be.
        pair = (least, True, None), (least / FAR, True, None)
        changes["event at the least time or far below"] = pair
    times = sizes.uniform(0.0, end).tolist()
    spread = zip(times, sizes.alternating(*seen, none), sizes.alternating(here, there), strict=True)
    crowds = {
        "others censored at the horizon": [healthy] * n,
        "others with events at the horizon": [late] * n,
        "others with events at zero": [early] * n,
        "one event among others": [(0.5 * end, seen[0], here), *[healthy] * n][:n],
        "others half at zero, half censored": sizes.alternating(early, healthy),
        "others spread out": list(spread),
    }

    def data(times: Any, events: Any, groups: Any) -> tuple[Any, ...]:
        grouped = [] if here is None else [{"group": np.array(groups)}]
        return np.array(times), np.array(events), *grouped

    return _Family(changes, lambda _: crowds, data, 3, (0, 1, 2, 5))


def _cells(estimator: Any, sizes: _Sizes) -> _Family:
    """Return the family of grids: rows and outcomes in cells that a record enters or leaves."""
    classifies = estimator.estimator is None or is_classifier(estimator.estimator)
    hybrid, n = isinstance(estimator, HybridMEstimator), sizes.n_others
    n_public = max(PUBLIC_SHARE * (n + 1), LEAST_PUBLIC)
    steps = np.linspace(-1.0, 1.0, n_public)
    signs = (-1.0) ** np.arange(n_public)
    y = np.arange(n_public) % 2 if classifies else 0.5 * steps + 0.25 * signs
    # Columns take the grid's values in other orders, so that they are no multiples of each other.
    public = np.column_stack([np.roll(steps, 5 * j) for j in range(sizes.n_features)])
    bounds = [(-1.0, 1.0)] * sizes.n_features if hybrid else estimator.bounds
    bottom, top = np.asarray(bounds, dtype=float).T
    middle, far = (bottom + top) / 2.0, FAR * (top - bottom)
    stated = np.unique(y if hybrid else estimator.outcome).tolist()
    low, high = stated[0], stated[-1]
    changes = {
        "at opposite ends, other outcomes": ((bottom, low), (top, high)),
        "at opposite ends, one outcome": ((bottom, low), (top, low)),
        "outcome flipped at the end": ((top, low), (top, high)),
        "outcome flipped in the middle": ((middle, low), (middle, high)),
        "far beyond the range": ((bottom - far, low), (top + far, high)),
    }
    if hybrid:
        changes["at a public record or next to it"] = ((public[0], low), (public[1], low))
        unknown = 9 if classifies else FAR
        changes["outcome that no public record has"] = ((top, unknown), (top, low))
    elif not classifies:
        changes["outcome far beyond its range"] = ((middle, low - FAR), (middle, high + FAR))
    rows = sizes.spread(1.0) if hybrid else sizes.uniform(bottom, top, top.size)
    spread = list(zip(rows, sizes.alternating(low, high), strict=True))

    def crowds(record: Record) -> dict[str, Sequence[Record]]:
        row, outcome = record
        return {
            "others in its cell": [record] * n,
            "its cell emptied": [(bottom + top - row, high if outcome == low else low)] * n,
            "others at one end": [(bottom, low)] * n,
            "others spread out": spread,
        }

    def data(rows: Any, outcomes: Any) -> tuple[Any, ...]:
        if not hybrid:
            return _rows(rows, outcomes)
        X = np.vstack([public, *rows])
        return X, np.append(y, outcomes), np.arange(len(X)) < n_public

    return _Family(changes, crowds, data, 1, (0, 1) if hybrid else (0, 1, 3))


def _raw(estimator: Any, sizes: _Sizes) -> _Family:
    """Return the family of raw rows: all at either end of the bounds, beyond them, or missing."""
    n, kinds, kept = sizes.n_others, estimator.columns._kinds(), estimator.by_is_public

    def row(place: float, missing: bool = False) -> Record:
        cells = []
        for kind in kinds:
            group = kept and kind.column == estimator.by  # which is public: the first one
            hidden = missing and not group and kind.missing != "error"
            cells.append(None if hidden else kind.cell_at(0.0 if group else place))
        return (cells,)

    bottom, top, middle = row(0.0), row(1.0), row(0.5)
    changes = {
        "all columns at either end": (bottom, top),
        "all columns in the middle or at an end": (middle, top),
        "all columns far beyond or at an end": (row(FAR), bottom),
        "all columns missing or at an end": (row(0.5, True), top),
    }
    crowds = {
        "others alike": [bottom] * n,
        "others at the other end": [top] * n,
        "others spread out": [row(float(place)) for place in sizes.uniform(0.0, 1.0)],
    }

    def data(rows: Any) -> tuple[Any, ...]:
        frame = pd.DataFrame(list(rows), columns=[kind.column for kind in kinds], dtype=object)
        return frame, None

    return _Family(changes, lambda _: crowds, data)


#: Function of the estimator and of sizes that makes the pairs, by what its ``fit`` takes.
PAIRS: dict[tuple[str, ...], Callable[[Any, _Sizes], _Family]] = {
    ("rows", "times"): _survival,
    ("rows", "causes"): _survival,
    ("times",): _durations,
    ("times", "group"): _durations,
    ("causes", "group"): _durations,
    ("rows",): _raw,
    ("rows", "classes"): _linear,
    ("rows", "outcomes"): _linear,
    ("cells",): _cells,
}
