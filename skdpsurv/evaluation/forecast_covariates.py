"""Made-up covariates: columns of a few typical shapes, within public bounds.

A latent normal vector, in which every two columns have the same correlation, is turned into
columns one by one. What matters for a private fit is how much of its bounds a column fills: noise
in a coefficient hurts the less, the less its column varies, but little can be learned of such a
column. Numbers fill a third of their bounds or so, as they do in studies whose bounds come from a
protocol (docs/benchmarks/forecast).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from skdpsurv.data import PublicColumns
from skdpsurv.data.column_kinds import Boolean, Category, Date, Number
from skdpsurv.dp.types import FloatArray

#: Of each two columns' latent normal values.
CORRELATION = 0.2
#: Numbers in the middle of their bounds: the standard deviation, the bounds being -1 and 1.
NORMAL = 0.4
#: Numbers that pile up at the lower bound are log-normal: the median, the bounds being 0 and 1, and
#: the standard deviation of the logarithm.
LOGNORMAL_MEDIAN, LOGNORMAL_DEVIATION = 0.1, 0.8
#: Shares of those who have what a boolean column says, in turn.
SHARES = (0.5, 0.1, 0.03)
#: The share of values that are missing, where a column may have such.
MISSING = 0.05
#: Mean of a column's effect per standard deviation, in standard deviations of such effects: bounds
#: are often such that more is worse, and then what goes together adds up.
EFFECT = 0.5
#: Points at which moments of a column are computed.
N_POINTS = 2000

#: Of latent normal values.
Map = Callable[[FloatArray], FloatArray]


def normal(latent: FloatArray) -> FloatArray:
    """Return numbers around the middle of -1 and 1."""
    return np.clip(NORMAL * latent, -1.0, 1.0)


def lognormal(latent: FloatArray) -> FloatArray:
    """Return numbers of which most are near -1."""
    return np.minimum(2.0 * LOGNORMAL_MEDIAN * np.exp(LOGNORMAL_DEVIATION * latent) - 1.0, 1.0)


def uniform(latent: FloatArray) -> FloatArray:
    """Return numbers that are uniform between -1 and 1."""
    return np.asarray(2.0 * special.ndtr(latent) - 1.0)


def steps(weights: Any, latent: FloatArray) -> FloatArray:
    """Return 0, 1, ... with shares that are in proportion to weights."""
    ends = np.cumsum(weights / np.sum(weights))[:-1]
    return np.searchsorted(special.ndtri(ends), latent).astype(np.float64)


def bernoulli(share: float, latent: FloatArray) -> FloatArray:
    """Return 1 for a share of the latent values, and -1 for the others."""
    return 2.0 * steps([1.0 - share, share], latent) - 1.0


@dataclass(frozen=True)
class Column:
    """What one latent normal value becomes, and how that acts on the outcome.

    Parameters
    ----------
    values : callable
        Numbers made of latent ones. For a category, the places of labels.
    n_labels : int, default=0
        Of a category; 0 for numbers, whose effect is linear.
    cells : callable, optional
        Raw cells made of the values, where a real fit would be given such.
    may_miss : bool, default=False
        Whether some cells are missing: what is missing has an average effect.
    """

    values: Map
    n_labels: int = 0
    cells: Callable[[FloatArray], Any] = np.asarray
    may_miss: bool = False

    def effect(self, rng: np.random.Generator) -> Map:
        """Draw how values act on the outcome: linearly, or by label, around 0."""
        labels = rng.normal(size=self.n_labels)

        def of(values: FloatArray) -> FloatArray:
            return np.asarray(labels[values.astype(int)] if self.n_labels else values)

        typical = of(self.values(special.ndtri((np.arange(N_POINTS) + 0.5) / N_POINTS)))
        size = rng.normal(EFFECT, 1.0) / max(float(typical.std()), 1e-9)
        return lambda values: size * (of(values) - typical.mean())


def plain_columns(n_columns: int) -> list[Column]:
    """Return columns in [-1, 1]: normal, lognormal and Bernoulli, in turn."""
    shapes = (
        shape for share in cycle(SHARES) for shape in (normal, lognormal, partial(bernoulli, share))
    )
    return [Column(shape) for shape in islice(shapes, n_columns)]


def columns_within(described: PublicColumns) -> list[Column]:
    """Return columns of raw cells, as a public description of them has it."""
    shapes, shares, found = cycle((normal, lognormal)), cycle(SHARES), []
    for kind in described._kinds():
        n_labels = len(kind.labels) if isinstance(kind, Category) else 0
        values: Map = uniform
        if isinstance(kind, Number):
            values = next(shapes)
        elif isinstance(kind, Boolean):
            values = partial(bernoulli, next(shares))
        elif n_labels:  # the k-th is as common as 1 / k says
            values = partial(steps, 1.0 / np.arange(1, n_labels + 1))
        found.append(Column(values, n_labels, partial(_cells, kind), kind.missing != "error"))
    return found


def _cells(kind: Any, values: FloatArray) -> Any:
    """Return raw cells of a kind, for values as a column has them."""
    if isinstance(kind, Number):
        # Halves first, since high - low may overflow.
        return (kind.low / 2 + kind.high / 2) + values * (kind.high / 2 - kind.low / 2)
    if isinstance(kind, Boolean):
        return values > 0.0
    if isinstance(kind, Category):
        return np.array(kind.labels, dtype=object)[values.astype(int)]
    assert isinstance(kind, Date)
    days = (values + 1.0) / 2.0 * (kind.last - kind.first).days
    return np.datetime64(kind.first) + np.rint(days).astype("timedelta64[D]")


class Table:
    """Columns with effects on an outcome, which rows can be drawn of.

    Parameters
    ----------
    columns : sequence of Column
    names : sequence of str or None
        Those of raw columns; None for an array of numbers.
    rng : numpy.random.Generator
        Of the effects.
    """

    def __init__(
        self, columns: Sequence[Column], names: Sequence[str] | None, rng: np.random.Generator
    ) -> None:
        self.columns, self.names = columns, names
        self.effects = [column.effect(rng) for column in columns]

    def rows(self, n_rows: int, rng: np.random.Generator) -> tuple[Any, FloatArray]:
        """Draw rows, and what their columns together do to the outcome, up to a factor."""
        shared = np.sqrt(CORRELATION) * rng.normal(size=n_rows)
        cells, total = [], np.zeros(n_rows)
        for column, effect in zip(self.columns, self.effects, strict=True):
            own = np.sqrt(1.0 - CORRELATION) * rng.normal(size=n_rows)
            values = column.values(shared + own)
            part = effect(values)
            made = column.cells(values)
            if column.may_miss:
                missing = rng.random(n_rows) < MISSING
                part = np.where(missing, 0.0, part)
                made = pd.Series(made).mask(missing)
            cells.append(made)
            total += part
        if self.names is None:
            return np.column_stack(cells), total
        return pd.DataFrame(dict(zip(self.names, cells, strict=True))), total
