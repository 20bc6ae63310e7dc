r"""Effects that change over time: functions as they are published, and as a fit scales them.

A column states functions :math:`F_k` of time (:mod:`skdpsurv.data.over_time`), of mean 0 over the
grid. With a centre m, the predictor of interval s is

.. math:: \gamma(s) + x\beta + \sum_{j, k} (x_j - m_j) F_k(s)\,\theta_{jk},

so that :math:`\beta_j` is the mean over the grid of the effect :math:`\beta_j + \sum_k
\theta_{jk} F_k(s)`. A fit takes functions :math:`G = F M - \ell` instead, which are orthogonal and
within a ball of radius 1/2, so that they add little to the sensitivity.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdpsurv.data.feature import Feature
from skdpsurv.data.over_time import OverTime
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.changing_hazard import TimeEffects

#: Largest norm of the functions of one column in a fit.
REACH = 0.5


@dataclass(frozen=True, eq=False)
class Changing:
    """Public functions of the covariates' effects.

    Parameters
    ----------
    functions : ndarray of shape (n_intervals, n_functions)
        F, of all columns.
    scaled : TimeEffects
        G, and which products there are; those of one function side by side.
    to_published : ndarray of shape (n_functions, n_functions)
        M.
    level : ndarray of shape (n_functions,)
        The constants that are taken off.
    names : tuple of str
        Names of the products, such as "age:log(time)".
    kinds : tuple of OverTime
        What states the functions.
    max_time : float
        The horizon.
    """

    functions: FloatArray
    scaled: TimeEffects
    to_published: FloatArray
    level: FloatArray
    names: tuple[str, ...]
    kinds: tuple[OverTime, ...]
    max_time: float

    @classmethod
    def of(cls, features: Sequence[Feature], n_intervals: int, max_time: float) -> Changing | None:
        """Return the functions that features state; None if no effect changes."""
        stated = [one.over_time for one in features]
        kinds = [*dict.fromkeys(one for one in stated if one is not None)]
        if not kinds:
            return None
        for feature in features:
            if feature.over_time is not None:
                feature.over_time.check(str(feature.column), n_intervals, max_time)
        each = [one.values(n_intervals, max_time) for one in kinds]
        scaled, maps, levels = zip(*map(_scaled, each), strict=True)
        number, size = 0, sum(one.shape[1] for one in each)
        to_published = np.zeros((size, size))
        columns: list[int] = []
        functions: list[int] = []
        names: list[str] = []
        for kind, own in zip(kinds, maps, strict=True):
            places = slice(number, number + len(own))
            to_published[places, places] = own
            for k, word in enumerate(kind.names, number):
                having = [j for j, one in enumerate(stated) if one == kind]
                columns += having
                functions += [k] * len(having)
                names += [f"{features[j].name}:{word}" for j in having]
            number += len(own)
        effects = TimeEffects(np.hstack(scaled), np.array(columns), np.array(functions))
        own = to_published, np.concatenate(levels), tuple(names), tuple(kinds), max_time
        return cls(np.hstack(each), effects, *own)

    @property
    def step_times(self) -> tuple[float, ...]:
        """Times of all steps of effects."""
        own = [one.numbers for one in self.kinds if one.kind == "steps"]
        return tuple(sorted(set(itertools.chain(*own))))

    @property
    def steps(self) -> FloatArray:
        """Functions that step at these times, shape (n_intervals, n_steps)."""
        return OverTime("steps", self.step_times).values(len(self.functions), self.max_time)

    @property
    def columns(self) -> IntArray:
        """The covariate of each product."""
        return self.scaled.columns

    @property
    def number(self) -> int:
        """Number of products."""
        return self.scaled.n_terms

    @property
    def by_function(self) -> tuple[IntArray, ...]:
        """The covariates of the products with each function."""
        own = self.scaled.functions
        return tuple(self.columns[own == k] for k in range(self.functions.shape[1]))

    def published(self, n_features: int) -> tuple[FloatArray, FloatArray]:
        """Return the matrices from coefficients of a fit's products to theirs, and to effects.

        They are of shapes (n_terms, n_terms) and (n_features, n_terms).
        """
        same = self.columns[:, None] == self.columns
        own = self.scaled.functions
        change = np.where(same, self.to_published[np.ix_(own, own)], 0.0)
        level = np.zeros((n_features, self.number))
        level[self.columns, np.arange(self.number)] = self.level[own]
        return change, level

    def at(self, time: FloatArray, max_time: float) -> FloatArray:
        """Return the functions at times in (0, max_time], by their interval."""
        q = len(self.functions)
        interval = np.clip(np.ceil(q * time / max_time).astype(np.int64), 1, q)
        return self.functions[interval - 1]


@dataclass(frozen=True, eq=False)
class FittedChanges:
    """Released coefficients of products of centred features with functions of time."""

    public: Changing
    coef: FloatArray
    center: FloatArray

    def with_factors(self, rows: FloatArray, scores: FloatArray) -> FloatArray:
        """Return scores with what multiplies each function, of shape (n, 1 + n_functions)."""
        factors = self.public.scaled.rows(rows - self.center, self.coef)
        return np.column_stack([scores, factors])

    def predictor(self, scores: FloatArray) -> FloatArray:
        """Return the covariates' part of the predictor of such scores, (n, n_intervals)."""
        return np.asarray(scores[:, :1] + scores[:, 1:] @ self.public.functions.T)

    def products(self, row: FloatArray) -> FloatArray:
        """Return the products of a row with functions of time, (n_intervals, n_terms)."""
        own = (row - self.center)[self.public.columns]
        return np.asarray(self.public.functions[:, self.public.scaled.functions] * own)


def with_products(
    change: FloatArray, mean: FloatArray, unit: FloatArray | float, changing: Changing
) -> FloatArray:
    """Return the matrix with products with time: released before the coefficients of X."""
    d, n_common = mean.size, len(change) - mean.size
    of_terms, level = changing.published(d)
    theta = of_terms / np.broadcast_to(unit, d)[changing.columns, None]
    effects = change[n_common:, n_common:] @ level
    # Baselines are less the effects of the mean row, as for those that do not change.
    common = change[:n_common, n_common:] @ level
    nothing = np.zeros((theta.shape[0], change.shape[1]))
    top = np.hstack([change[:n_common], common])
    below = np.hstack([change[n_common:], effects])
    return np.vstack([top, np.hstack([nothing, theta]), below])


def _scaled(functions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return orthogonal functions in a ball of radius 1/2, their map to F, and their constants.

    G = F M + l with the constants l.
    """
    q, r = np.linalg.qr(functions)
    unit = q * np.sign(np.diag(r))
    change = np.linalg.inv(r) * np.sign(np.diag(r))
    middle = 0.5 * (unit.max(axis=0) + unit.min(axis=0))
    size = REACH / float(np.linalg.norm(unit - middle, axis=1).max())
    return (unit - middle) * size, change * size, -middle * size
