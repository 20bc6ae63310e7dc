r"""Second moments of a likelihood's rows: a private query.

A row x has a weight w and is lengthened by a constant C, so that the moments :math:`\sum w (C, x)
(C, x)^\top` hold the number of records (each counted with its weight) and their mean. A caller
guarantees that :math:`w(\|x\|^2 + C^2) \le 1 + C^2`.

Where records have public classes, each class has a column for the constant: :math:`(C 1_{g = 1},
\dots, C 1_{g = G}, x)`, of the same length. The moments then hold numbers and means of classes.

Records may tell different amounts. Where each has an *exposure* :math:`e \in [0, 1]`, the rows are
:math:`(C, x, E(e - \tfrac12))`, with E a constant, and :math:`w(\|x\|^2 + C^2 + E^2/4)` is at most
:math:`1 + C^2 + E^2/4`.

Distributions with these moments: :mod:`~skdpsurv.inference.covariates`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.clipping import row_pieces
from skdpsurv.dp.noise import random_source
from skdpsurv.dp.plan import Context, NoisySum, Plan
from skdpsurv.dp.references import reference
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.inference.covariates import EXPOSURE, CovariateDistribution, Derivation, Labels
from skdpsurv.inference.uncertainty import MEAN_WEIGHT
from skdpsurv.mechanisms.moments import SecondMoments
from skdpsurv.mechanisms.perturbation import Minimisers, ridge_and_variances

#: With standard errors, rows longer than the bound are weighted instead of scaled down, up to so
#: many times the bound.
DOWNWEIGHTING_BOUND = 4.0
#: The constant entry of each row. A small one means less noise on moments, a large one less on
#: number and mean of the rows.
CONSTANT = 0.5
#: A feature with a larger part of the variance that its mean allows between its ends is two-valued.
#: Evenly spread ones have a third at most, and those with an arcsine law a half.
TWO_VALUED = 0.7
#: With more features, noise hides all moments.
MOST_FEATURES = 500


class MomentRows(NamedTuple):
    """A block of private rows (n, n_features), with weights and exposures (n,); None: all are 1.

    And the number of the class of each, of shape (n,); None: there is one.
    """

    X: FloatArray
    weight: FloatArray | None
    exposure: FloatArray | None = None
    group: IntArray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class RowMoments(NoisySum):
    """The query for the moments of rows, lengthened by ``constant``; a subclass gives the rows."""

    n_records: int
    n_features: int
    constant: float = CONSTANT
    has_exposure: bool = False
    n_classes: int = 1

    name = "second moments"
    theorem = reference("docs/proofs/inference", "dwork")

    def __post_init__(self) -> None:
        if self.n_features > MOST_FEATURES:
            raise ValueError(
                f"inference_share must be 0 with more than {MOST_FEATURES} features: their second "
                f"moments would drown in noise, got {self.n_features}."
            )
        self.query_for({})  # refuses vectors that are too long for the theorem

    def query_for(self, context: Context) -> SecondMoments:
        """Return the query for lengthened rows in units of :attr:`longest`."""
        width = self.n_features + self.n_classes + self.has_exposure
        return SecondMoments(self.n_records, width, 1.0)

    def scales(self) -> list[float]:
        return [self.query_for({}).distribution(self.price).scale]

    @property
    def noise(self) -> float:
        """Standard deviation of the noise on the moments in any direction."""
        return self.query_for({}).deviation(self.price)

    @property
    def longest(self) -> float:
        """The largest norm of a lengthened row, times the root of its weight."""
        return math.hypot(1.0, self.constant, 0.5 * EXPOSURE * self.has_exposure)

    @abstractmethod
    def seen(self, context: Context, records: Any) -> Blocks[MomentRows]:
        """Return the rows of the records, as the likelihood weights them."""

    def exact_answer(self, context: Context, records: Any) -> FloatArray:
        blocks = self.seen(context, records)
        return self.query_for(context).total(blocks, self.rows)

    def rows(self, block: MomentRows) -> Iterator[FloatArray]:
        """Yield lengthened rows, times the roots of their weights, in pieces."""
        for piece in row_pieces(block.X.shape[0], self.query_for({}).width):
            rows = block.X[piece, : self.n_features]
            root = 1.0 if block.weight is None else np.sqrt(block.weight[piece])
            root = np.broadcast_to(root / self.longest, rows.shape[:1])
            constant = self.constant * root
            if block.group is not None:
                own = block.group[piece, None] == np.arange(self.n_classes)
                constant = constant[:, None] * own
            columns = [constant, rows * root[:, None]]
            if block.exposure is not None:
                columns.append(EXPOSURE * (block.exposure[piece] - 0.5) * root)
            yield np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Noisy moments, and the distributions of rows that have them.

    ``groups`` are places of exclusive indicators, and ``ends`` the public ones of all features in
    the rows. What varies as only values at the ends do is taken for an indicator.
    """

    measurement: RowMoments
    moments: FloatArray
    groups: tuple[tuple[int, ...], ...] = ()
    ends: tuple[FloatArray, FloatArray] | None = None
    derivation: Derivation | None = None

    @cached_property
    def _labels(self) -> list[Labels]:
        """The shares of rows at the high ends in each class, the same for all drawn again."""
        if self.ends is None:
            return []
        found, (low, high) = self._distribution(self.moments), self.ends
        shares = [(one.mean - low) / (high - low) for one in found.classes]
        weights = [one.mass / found.mass for one in found.classes]
        usual = sum(w * own * (1.0 - own) for w, own in zip(weights, shares, strict=True))
        variances = np.square(found.vectors) @ found.values / (high - low) ** 2
        single = np.setdiff1d(
            np.flatnonzero(variances > TWO_VALUED * usual),
            [place for group in self.groups for place in group],
        )
        if self.derivation is not None:
            single = np.intersect1d(single, self.derivation.bases)
        groups = (*self.groups, *((place,) for place in single.tolist()))
        return [
            tuple((group, tuple(own[list(group)].tolist())) for group in groups) for own in shares
        ]

    @property
    def distribution(self) -> CovariateDistribution:
        """The distribution of rows with these moments, up to its shape."""
        return self._distribution(self.moments, self._labels)

    def values(self, n_records: float) -> dict[str, FloatArray]:
        """Return the mean weight of so many rows with its standard error by the noise."""
        asked = self.measurement
        unit = (asked.longest / asked.constant) ** 2 / n_records
        deviation = asked.query_for({}).deviation(asked.price) * math.sqrt(asked.n_classes)
        mass = float(np.trace(self.moments[: asked.n_classes, : asked.n_classes]))
        return {MEAN_WEIGHT: np.array([mass, deviation]) * unit}

    def redrawn(self, number: int) -> list[tuple[CovariateDistribution, CovariateDistribution]]:
        """Return pairs of distributions, with more noise and with the same noise less."""
        # Public noise, the same for everybody, hides nothing.
        source, query = random_source(0, purpose="moments"), self.measurement.query_for({})
        draws = [query.noise(self.measurement.price, source) for _ in range(number)]

        def moved(e: FloatArray) -> CovariateDistribution:
            return self._distribution(self.moments + e, self._labels)

        return [(moved(e), moved(-e)) for e in draws]

    def _distribution(
        self, moments: FloatArray, labels: Sequence[Labels] = ()
    ) -> CovariateDistribution:
        asked, unit = self.measurement, self.measurement.longest**2
        moments, noise = moments * unit, asked.noise * unit
        size = asked.n_features + asked.n_classes
        how = asked.constant, asked.n_records, noise, labels, asked.n_classes
        found = CovariateDistribution.of_moments(moments[:size, :size], *how)
        found = found.derived(self.derivation)
        return found.exposed(moments[size], asked.constant, noise) if asked.has_exposure else found


#: At most this part of the noise on moments is worth at most so many times that on the gradient.
LESS_ON_MOMENTS, MORE_ON_GRADIENT = 0.475, 1.5


def least_noise(plans: Sequence[Plan]) -> Plan:
    """Return the plan of a perturbed fit with the least noise, by public numbers.

    Another one is better if its second moments have far less noise, its gradient little more, and
    its ridge is no larger.
    """

    def of(plan: Plan, kind: type[Any]) -> list[float]:
        return [leaf.noise for leaf in plan.leaves if isinstance(leaf, kind)]

    best, *others = sorted(plans, key=lambda plan: of(plan, Minimisers))
    for other in others:
        pairs = list(zip(of(other, RowMoments), of(best, RowMoments), strict=True))
        (ridge, noise), (own_ridge, own_noise) = map(_ridge_and_noise, (other, best))
        if (
            any(a <= LESS_ON_MOMENTS * b for a, b in pairs)
            and noise <= MORE_ON_GRADIENT * own_noise
            and ridge <= own_ridge
        ):
            best = other
    return best


def _ridge_and_noise(plan: Plan) -> tuple[float, float]:
    """Return the ridge, and the deviation of the noise on the gradient, of a plan's first fit."""
    fits = (leaf.calibrated(None) for leaf in plan.leaves if isinstance(leaf, Minimisers))
    (_, how, *_), *_ = next(fits)
    ridge, linear, output = ridge_and_variances(how)
    return ridge, math.sqrt(linear + ridge**2 * output)
