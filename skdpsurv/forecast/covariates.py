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
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from skdpsurv.preprocessing import PublicColumns
from skdpsurv.preprocessing.column_kinds import Boolean, Category, Date, Number
from skdpsurv.types import FloatArray

__all__ = ["Column", "Table", "columns_within", "plain_columns"]

#: Of each two columns' latent normal values.
CORRELATION = 0.2
#: Numbers in the middle of their bounds: the standard deviation, the bounds being -1 and 1.
BELL = 0.4
#: Numbers that pile up at the lower bound are log-normal: the median, the bounds being 0 and 1, and
#: the standard deviation of the logarithm.
PILE_MEDIAN, PILE_DEVIATION = 0.1, 0.8
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


def bell(latent: FloatArray) -> FloatArray:
    """Return numbers around the middle of -1 and 1."""
    return np.clip(BELL * latent, -1.0, 1.0)


def pile(latent: FloatArray) -> FloatArray:
    """Return numbers of which most are near -1."""
    return np.minimum(2.0 * PILE_MEDIAN * np.exp(PILE_DEVIATION * latent) - 1.0, 1.0)


def even(latent: FloatArray) -> FloatArray:
    """Return numbers that are uniform between -1 and 1."""
    return np.asarray(2.0 * special.ndtr(latent) - 1.0)


def flag(share: float) -> Map:
    """Return what makes 1 of a share of the latent values, and -1 of the others."""
    return lambda latent: np.where(latent > special.ndtri(1.0 - share), 1.0, -1.0)


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

    @cached_property
    def _typical(self) -> FloatArray:
        return self.values(special.ndtri((np.arange(N_POINTS) + 0.5) / N_POINTS))

    def effect(self, rng: np.random.Generator) -> Map:
        """Draw how values act on the outcome: linearly, or by label, around 0."""
        labels = rng.normal(size=self.n_labels)

        def of(values: FloatArray) -> FloatArray:
            return np.asarray(labels[values.astype(int)] if self.n_labels else values)

        typical = of(self._typical)
        size = rng.normal(EFFECT, 1.0) / max(float(typical.std()), 1e-9)
        mean = float(typical.mean())
        return lambda values: size * (of(values) - mean)


def plain_columns(n_columns: int) -> list[Column]:
    """Return columns in [-1, 1]: bells, piles and flags in turn."""
    kinds = (bell, pile, None)
    flags = [flag(share) for share in SHARES]
    return [
        Column(kinds[j % len(kinds)] or flags[j // len(kinds) % len(flags)])
        for j in range(n_columns)
    ]


def columns_within(described: PublicColumns) -> list[Column]:
    """Return columns of raw cells, as a public description of them has it."""
    found, n_numbers, n_flags = [], 0, 0
    for kind in described._kinds():
        may_miss = kind.missing != "error"
        if isinstance(kind, Number):
            shape = (bell, pile)[n_numbers % 2]
            n_numbers += 1
            found.append(Column(shape, cells=_scaled(kind.low, kind.high), may_miss=may_miss))
        elif isinstance(kind, Boolean):
            values = flag(SHARES[n_flags % len(SHARES)])
            n_flags += 1
            found.append(Column(values, cells=lambda values: values > 0.0, may_miss=may_miss))
        elif isinstance(kind, Date):
            found.append(Column(even, cells=_dates(kind), may_miss=may_miss))
        elif isinstance(kind, Category):
            n_labels = len(kind.labels)
            found.append(Column(_places(n_labels), n_labels, _labels(kind), may_miss))
        else:
            raise TypeError(f"columns must hold kinds that are known, got {type(kind).__name__}.")
    return found


def _scaled(low: float, high: float) -> Callable[[FloatArray], FloatArray]:
    # Halves first, since high - low may overflow.
    return lambda values: (low / 2 + high / 2) + values * (high / 2 - low / 2)


def _dates(kind: Date) -> Callable[[FloatArray], Any]:
    first, days = np.datetime64(kind.first), (kind.last - kind.first).days
    return lambda values: first + np.rint((values + 1.0) / 2.0 * days).astype("timedelta64[D]")


def _places(n_labels: int) -> Map:
    """Return places of labels, of which the k-th is as common as 1 / k says."""
    sizes = 1.0 / np.arange(1, n_labels + 1)
    ends = special.ndtri(np.cumsum(sizes / sizes.sum())[:-1])
    return lambda latent: np.searchsorted(ends, latent).astype(np.float64)


def _labels(kind: Category) -> Callable[[FloatArray], Any]:
    labels = np.array(kind.labels, dtype=object)
    return lambda values: labels[values.astype(int)]


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
