r"""Natural cubic spline over the time grid, for the baseline of a hazard model.

The published basis (Nguyen and Hui, arXiv 1708.07436, section 3.2), with knots
:math:`0 = k_1 < \dots < k_e = 1` equally spaced:

.. math::
    b_1 = 1,\quad b_2 = t,\quad b_{j+2} = d_j - d_{e-1},\qquad
    d_j(t) = \frac{(t - k_j)_+^3 - (t - k_e)_+^3}{k_e - k_j}

Its columns are nearly collinear. Fits use the same space in another basis: a constant column and
columns orthogonal to it and to each other over the grid. Both are public, and so is the map
between.

The public description of a hazard model, its records on the grid, the baseline that a private life
table of them suggests, and the frame of its plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp import RandomSource, clip_rows, clip_times, row_weights
from skdpsurv.dp.plan import Known, Mechanism, Node, Plan
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.references import DOUBLES, reference
from skdpsurv.dp.types import BoolArray, FloatArray, IntArray
from skdpsurv.likelihoods.hazard import DiscreteHazard, HazardBlock, hazard_block
from skdpsurv.likelihoods.links import LINKS, Link
from skdpsurv.mechanisms import newton
from skdpsurv.mechanisms.sums import HISTOGRAM


def published_basis(n_intervals: int, n_knots: int) -> FloatArray:
    """Return A of shape (n_intervals, n_knots): the paper's basis at s/q, s = 1..q.

    One knot leaves the constant, two leave the straight line.
    """
    t = np.arange(1, n_intervals + 1) / n_intervals
    columns = [np.ones(n_intervals), t][:n_knots]
    if n_knots > 2:
        knots = np.linspace(0.0, 1.0, n_knots)
        cubes = np.maximum(t[:, None] - knots, 0.0) ** 3
        d = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
        columns += [d[:, j] - d[:, -1] for j in range(n_knots - 2)]
    return np.stack(columns, axis=1)


def orthogonal_basis(n_intervals: int, n_knots: int) -> FloatArray:
    """Return the same space with orthogonal columns of mean square 1, the first one constant."""
    q, r = np.linalg.qr(published_basis(n_intervals, n_knots))
    return np.asarray(q * np.sign(np.diag(r)) * np.sqrt(n_intervals))


def to_published(values: FloatArray, n_knots: int) -> FloatArray:
    """Return the coefficients in the published basis of a baseline given on the grid."""
    basis = published_basis(values.size, n_knots)
    return np.asarray(np.linalg.lstsq(basis, values, rcond=None)[0])


def interval_ends(max_time: float, n_intervals: int) -> FloatArray:
    """Return the right ends of the intervals, shape (n_intervals,), in the unit of max_time."""
    return max_time * (np.arange(1, n_intervals + 1) / n_intervals)


def exit_intervals(
    time: FloatArray, event: BoolArray, max_time: float, n_intervals: int
) -> tuple[IntArray, BoolArray]:
    """Put times on the grid; each record on its own, so neighbours stay neighbours."""
    time, event = clip_times(time, event, max_time)
    with np.errstate(over="ignore"):  # near the largest double: infinity lands in interval q
        position = np.ceil(n_intervals * time / max_time)
    return np.clip(position, 1, n_intervals).astype(np.int64), event


#: max_cumulative_hazard="auto": a low cap means little noise, a high one little bias.
CAP_SCALE, CAP_POWER, CAP_RANGE = 0.9, 0.28, (0.8, 5.0)

#: What a guarantee states of a model.
STATED = (
    *("n_records", "max_time", "n_intervals", "n_knots", "link", "data_norm"),
    *("max_cumulative_hazard", "prior_event_rate"),
)
HAZARD_PROOF = reference("docs/proofs/discrete_time", "nguyen-hui", "chaudhuri")


@dataclass(frozen=True)
class HazardModel:
    """The public description of a model: all of it comes from the caller."""

    link: str
    n_intervals: int
    n_knots: int
    n_records: int
    n_features: int
    data_norm: float
    max_cumulative_hazard: float | str | None
    prior_event_rate: float
    max_time: float = 1.0

    @property
    def prior_hazard(self) -> float:
        """h0, the constant hazard that leads to the prior event rate by the horizon."""
        return float(-np.expm1(np.log1p(-self.prior_event_rate) / self.n_intervals))

    def signal(self, epsilon: float) -> float:
        """Return n epsilon in hundreds per parameter: how much there is to set against noise."""
        return self.n_records * epsilon / (100.0 * (self.n_knots + self.n_features))

    def cap(self, epsilon: float) -> float | None:
        """H: as given, or for "auto" the larger the less noise there is per parameter."""
        if not isinstance(self.max_cumulative_hazard, str):
            return self.max_cumulative_hazard
        return float(np.clip(CAP_SCALE * self.signal(epsilon) ** CAP_POWER, *CAP_RANGE))

    def bounded_link(self) -> Link:
        """Return the link with its event slope bounded at the prior hazard."""
        return LINKS[self.link].bounded_at(self.prior_hazard)


class HazardRecords(NamedTuple):
    """A block of private records on the public grid."""

    X: FloatArray
    interval: IntArray
    event: BoolArray

    @classmethod
    def on_grid(
        cls, X: FloatArray, event: BoolArray, time: FloatArray, max_time: float, n_intervals: int
    ) -> HazardRecords:
        """Put records on the grid, each on its own."""
        return cls(X, *exit_intervals(time, event, max_time, n_intervals))

    def within(
        self, mean: FloatArray | float, radius: float, reach: float | None = None
    ) -> HazardBlock:
        """Return rows less ``mean``, clipped to ``radius`` and divided by it (inf: as they are).

        With a ``reach`` they are clipped to so many radii, and those beyond one are weighed.
        """

        def change(rows: FloatArray) -> FloatArray:
            return clip_rows(rows - mean, radius * (reach or 1.0)) / radius

        clips = change if math.isfinite(radius) else None
        block = hazard_block(self.X, self.interval, self.event, clips)
        return block if reach is None else block._replace(weight=row_weights(block.X, 1.0))


#: Bands of the table: enough for the shape of a baseline with three knots.
N_BANDS = 4
#: How far, in standard deviations, the log-odds of the hazard and its shape may be from the prior.
LEVEL_DEVIATION, SHAPE_DEVIATION = 2.0, 0.7


def life_table_counts(exits: Blocks[tuple[IntArray, BoolArray]], n_intervals: int) -> IntArray:
    """Count private records, censored and with events, in each band of exit intervals."""
    n_bands = min(N_BANDS, n_intervals)

    def counts(block: tuple[IntArray, BoolArray]) -> IntArray:
        interval, event = block
        cell = 2 * ((interval - 1) * n_bands // n_intervals) + event
        return np.bincount(cell, minlength=2 * n_bands).astype(np.int64)

    return exits.map_reduce(counts)


def baseline_from_life_table(
    counts: IntArray, price: Price, basis: FloatArray, link: Link, prior: FloatArray
) -> FloatArray:
    """Fit baseline coefficients to a noisy life table, shrunk towards a prior."""
    q, n_basis = basis.shape
    table = np.maximum(counts, 0).reshape(-1, 2).astype(np.float64)
    n_bands = table.shape[0]
    middle = np.clip(np.rint((np.arange(n_bands) + 0.5) * q / n_bands), 1, q)
    censored = middle.copy()
    censored[-1] = q  # most of the last band's censored records reached the horizon
    block = hazard_block(
        np.zeros((2 * n_bands, 0)),
        np.concatenate([censored, middle]).astype(np.int64),
        np.repeat([False, True], n_bands),
    )
    # As ``hazard_block`` sorts the records that they belong to.
    weights = table.T.ravel()[np.argsort([*censored, *(middle - 1)], kind="stable")]
    likelihood = DiscreteHazard(basis, 0, 0.0, link)
    # Variance of the sum of the cells' noise.
    noise = HISTOGRAM.deviation(price) ** 2 * table.size
    size = np.sqrt(np.mean(basis**2, axis=0))
    deviation = np.full(n_basis, SHAPE_DEVIATION)
    deviation[0] = LEVEL_DEVIATION
    # Ridge that minimises the squared error of a coefficient of this deviation: noise variance
    # over information and variance.
    ridge = noise * size**2 / (max(table[:, 1].sum(), math.sqrt(noise)) * deviation**2)
    coef = prior
    for _ in range(25):
        gradient, hessian = likelihood.derivatives(coef, block, weights)
        assert hessian is not None
        # The small multiple of the identity keeps the system regular beside any table.
        damping = np.diag(ridge + 1e-9 * np.trace(hessian))
        step = np.linalg.solve(hessian + damping, gradient + ridge * (coef - prior))
        largest = float(np.max(np.abs(step * size)))
        coef = coef - step * min(1.0, 1.5 / max(largest, 1e-12))
        if largest < 1e-6:
            break
    return coef


def hazard_plan(
    model: HazardModel,
    epsilon: float,
    alpha: float,
    tree: Node,
    delta: float = 0.0,
    numbers: str = DOUBLES,
    stated: Mapping[str, Any] = MappingProxyType({}),
) -> Plan:
    """Return the plan of a hazard fit."""
    return Plan(
        tree,
        epsilon,
        delta,
        inputs={**{name: getattr(model, name) for name in STATED}, "alpha": alpha, **stated},
        assumed=(
            "n, the columns and every constructor parameter are public",
            "max_time and data_norm were not read off these records",
            numbers,
        ),
    )


def released(model: HazardModel, baseline: FloatArray, coef: FloatArray) -> dict[str, FloatArray]:
    """Return a fit as it is released: the baseline in the basis of the paper, and coefficients."""
    return {"coef": coef, "baseline_coef": to_published(baseline, model.n_knots)}


@dataclass(frozen=True, eq=False)
class MaximumLikelihood(Mechanism):
    """The fit without privacy: no clipping of rows, no ridge, and a cap only if it is a number.

    With one this is what private fits with that cap estimate.
    """

    model: HazardModel

    name = "maximum likelihood, no noise"
    proof = ""
    price = math.inf

    def run(
        self, known: Known, records: Blocks[HazardRecords], source: RandomSource
    ) -> dict[str, FloatArray]:
        """Return the maximum likelihood baseline and coefficients."""
        model = self.model
        basis = orthogonal_basis(model.n_intervals, model.n_knots)
        asked = model.max_cumulative_hazard
        cap = None if isinstance(asked, str) else asked
        link = LINKS[model.link] if cap is None else model.bounded_link()
        likelihood = DiscreteHazard(basis, model.n_features, link=link, max_cumulative_hazard=cap)
        start = np.zeros(likelihood.n_params)
        start[0] = likelihood.link.predictor(model.prior_hazard)
        coef = newton.maximum_likelihood(
            likelihood, records.map(lambda block: block.within(0.0, math.inf)), start
        )
        return released(model, basis @ coef[: model.n_knots], coef[model.n_knots :])
