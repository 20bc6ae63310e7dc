r"""Recalibration: level, course and slope of a released hazard, corrected by one private table.

A cap biases a released predictor :math:`\gamma(s) + x^\top\beta`, and noise spreads its scores.
Fitted to a table of counts by group of the score, band of time and outcome (event, censored, at the
horizon), and to sums of p and :math:`2 p^2 - 1/4` for positions p in [-1/2, 1/2] within groups, is

.. math:: \gamma(s) + c(s) + m(1 - b) + b\,x^\top\beta,

with a slope b, a broken line c and m the score of the rows' mean.

Neighbours: replace-one. Sensitivity: 2 in L1 for the table, whose layout is public and where each
record is in one cell; 3/2 in L1 and 1 in L2 for the sums, as p and :math:`2 p^2 - 1/4` are at most
3/4 together. Theorem: those of :mod:`skdpsurv.mechanisms.sums`; the prices of both queries add up
(docs/proofs/noise, docs/proofs/discrete_time). All the rest is post-processing.

The fit solves estimating equations. Those at risk in group g when band j begins, R, are all who are
in it less all who left before: linear in the noise, which has mean 0. With C of them censored in
the band and E events,

.. math:: \sum_g A_g^\top [E_g - R_g\,p_g(c, b) + C_g\,q_g(c, b)] = P(\theta - \theta_0),

p the probabilities of an event in the bands, and q those of a later event in the band of those
censored in it. The bracket has mean 0 at the truth, so there is no attenuation.

With late entries the table is by class of entry, too, from the start or in a band, and each class
has p and q of its own: of a class, the scores x of a group are left at time t in proportion to

.. math:: w_x(t) = \exp(-\int^t F\,d\Lambda_x)

with F the share of the class that has entered, which rises evenly over its band. The bracket's mean
at the truth is then 0 but for entries that are uneven within a band, and scores that depend on the
entry within a group. It is one joint table, as that has less noise with so few bands than two of
exits and entries. People who are never at risk have a cell in each group, and no position.

With strata the table is by stratum, too. Of stratum g the predictor is

.. math:: \gamma_g(s) + c(s) + c_g(s) + m_g(1 - b) + b\,x^\top\beta,

with one slope, lines c in common and c_g of its own, and m_g the mean score of its rows, from the
table: strata stay apart whatever the slope. A prior draws c_g to 0, and m_g to m.

Of competing causes each has a table of its own score, one after another: their prices add up. In
that of one cause, whoever had another event leaves without one, an interval earlier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy import special

from skdpsurv.dp.plan import Context
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.survival.hazards.fit import HazardFit, HazardSum
from skdpsurv.survival.hazards.model import HazardRecords, Recalibration, Records
from skdpsurv.survival.hazards.risk_layout import (
    ETA_RANGE,
    POSITIONS,
    RiskLayout,
    groups_of,
    outer_width_of,
)

# Tuned constants (docs/benchmarks/absolute_risk).
#: Share of ``recalibration_share`` for positions of scores within groups.
POSITIONS_PART = 0.15
#: Prior scales of the line's Legendre coefficients, and their degrees of freedom (Student's t).
LINE_SCALES, FREEDOM = (0.15, 0.2, 0.2, 0.2), 3.0
#: Prior scales of the lines of strata less their common one; and of the means of their scores.
STRATUM_SCALES, PIVOT_SCALE = (0.15, 0.075, 0.05, 0.05), 0.5
#: Slope: prior mean without information, information per root of the number of columns at which
#: it is halfway to 1, prior scale, and least value.
SLOPE, HALF_SIGNAL, SLOPE_SCALE, LEAST_SLOPE = 0.05, 0.25, 0.2, 0.05
#: Prior standard deviations of the mean position in a group, and of its square.
POSITION_DEVIATION, SQUARE_DEVIATION = 0.29, 0.06
#: Most blocks of time in a band, and points of the scores in a group.
BLOCKS_IN_BAND, N_POINTS = 10, 3
#: Steps of the fit: most of them, the longest, how many are not shortened, and the tolerance.
N_STEPS, LONGEST_STEP, WHOLE_STEPS, SHORT_STEP = 60, 0.7, 30, 0.005


def fit_table(
    layout: RiskLayout,
    counts: FloatArray,
    positions: FloatArray,
    n_records: int,
    prices: tuple[Price, Price],
    information: float,
) -> Recalibration:
    """Fit a recalibration to a noisy table."""
    noise = math.ldexp(POSITIONS.deviation(prices[1]), POSITIONS.exponent)
    weight = information / (HALF_SIGNAL * math.sqrt(layout.coef.size) + information)
    prior = SLOPE + (1.0 - SLOPE) * weight
    variance = HISTOGRAM.deviation(prices[0]) ** 2
    # A fit must not fail by the table's contents: where equations have no solution the prior holds.
    with np.errstate(all="ignore"):
        # Their sum is public, and cells are empty of who would leave before the entry.
        possible = np.broadcast_to(_can_be(layout), counts.shape)
        counts = counts * possible
        counts = counts + possible * ((n_records - counts.sum()) / possible.sum())
        shared = layout.n_strata > 1
        tables = [
            _Table(layout, own, places, baseline, noise, float(n_records), variance, shared)
            for own, places, baseline in zip(
                np.split(counts, layout.n_strata),
                np.split(positions, layout.n_strata, axis=1),
                layout.baselines,
                strict=True,
            )
        ]
        lines, slope = _solve(tables, prior)
    slope = max(slope, LEAST_SLOPE)
    centers = np.array([table.center for table in tables])
    shift = np.array([tables[0].line @ own for own in lines]) + centers[:, None] * (1.0 - slope)
    return Recalibration(slope, layout.knots, shift if shared else shift[0])


def _can_be(layout: RiskLayout) -> FloatArray:
    """Return 1 for columns of a table where records can be, and else 0."""
    entered = np.maximum(np.arange(layout.n_classes) - 1, 0)[:, None]
    leaves = np.append(np.tile(np.arange(layout.n_bands), 2), layout.n_bands)
    return np.append((leaves >= entered).astype(np.float64), np.ones(int(layout.has_entry)))


def _solve(tables: list[_Table], slope: float) -> tuple[FloatArray, float]:
    """Return lines by stratum and a slope that solve the equations, or else the prior's.

    With strata, lines are a common one and their deviations from it.
    """
    n_line, n_strata = len(LINE_SCALES), len(tables)
    ways = np.eye(n_line)[None]
    scales = np.append(LINE_SCALES, SLOPE_SCALE)
    if n_strata > 1:
        own = np.eye(n_strata * n_line).reshape(n_strata, n_line, -1)
        ways = np.concatenate([np.tile(ways, (n_strata, 1, 1)), own], axis=2)
        scales = np.concatenate([LINE_SCALES, np.tile(STRATUM_SCALES, n_strata), [SLOPE_SCALE]])
    # From all parameters to those of each table.
    ways = np.pad(ways, ((0, 0), (0, 1), (0, 1)))
    ways[:, -1, -1] = 1.0
    prior = np.append(np.zeros(scales.size - 1), slope)
    estimate = _steps(tables, ways, prior, scales)
    return (ways @ estimate)[:, :-1], float(estimate[-1])


def _steps(
    tables: list[_Table], ways: FloatArray, prior: FloatArray, scales: FloatArray
) -> FloatArray:
    """Return the solution of the equations of all tables, or else the prior."""
    estimate = prior
    for i in range(N_STEPS):
        try:
            found = [
                (way.T @ gradient, way.T @ hessian @ way)
                for table, way in zip(tables, ways, strict=True)
                for gradient, hessian in [table.equations(way @ estimate)]
            ]
            gradient, hessian = (np.sum(each, axis=0) for each in zip(*found, strict=True))
            away = estimate - prior
            precision = (FREEDOM + 1.0) / (FREEDOM * scales**2 + away**2)
            step = np.linalg.solve(hessian + np.diag(precision), gradient - precision * away)
        except np.linalg.LinAlgError:
            return prior
        longest = float(np.max(np.abs(step)))
        if not math.isfinite(longest):
            return prior
        # Weights change from step to step, so that whole ones may cycle.
        size = min(1.0, LONGEST_STEP / max(longest, 1e-300)) * (1.0 if i < WHOLE_STEPS else 0.5)
        estimate = estimate + size * step
        if longest < SHORT_STEP:
            break
    return estimate


@dataclass
class _Table:
    """The noisy table of risk groups by band of one stratum, and equations for line and slope.

    With ``shared`` records the number of this stratum's is not known.
    """

    layout: RiskLayout
    counts: FloatArray
    positions: FloatArray
    baseline: FloatArray
    noise: float
    n_records: float
    variance: float
    shared: bool = False

    def __post_init__(self) -> None:
        layout, q, n_bands = self.layout, self.layout.n_intervals, self.layout.n_bands
        bands = np.searchsorted(layout.bands, np.arange(n_bands + 1))
        inside = np.arange(BLOCKS_IN_BAND) / BLOCKS_IN_BAND
        starts = bands[:-1, None] + np.diff(bands)[:, None] * inside
        ends = np.unique(np.append(starts.astype(np.int64), q))
        middle, self.length = (ends[:-1] + ends[1:]) // 2, np.diff(ends).astype(np.float64)
        self.eta = (self.baseline + layout.center)[middle]
        self.band_of = layout.bands[middle]
        # Indices of bands' edges among those of blocks; shares of blocks in bands.
        self.edges = np.searchsorted(ends, bands)
        self.share = np.eye(n_bands)[self.band_of] * self.length[:, None]
        self.share /= self.share.sum(axis=0)
        # Legendre polynomials at the knots, and in the blocks.
        self.line = legendre.legvander(np.linspace(-1.0, 1.0, n_bands + 1), len(LINE_SCALES) - 1)
        time = (middle + 1) / q
        self.line_in_blocks = np.stack([np.interp(time, layout.knots, c) for c in self.line.T])
        # Indicators of an event, of censoring and of being at risk, by band and cell; the latter
        # two by class of entry. Who is never at risk is in none.
        cells, band = np.arange(layout.n_classes * layout.n_outcomes), np.arange(n_bands)[:, None]
        classes, outcomes = np.divmod(cells, layout.n_outcomes)
        entered = np.maximum(classes - 1, 0)
        leaves = np.where(outcomes < 2 * n_bands, outcomes % n_bands, n_bands)
        possible = leaves >= entered
        of_class = classes == np.arange(layout.n_classes)[:, None, None]
        self.is_event = (possible & (outcomes == band)).astype(np.float64)
        is_lost = of_class & possible & (outcomes == n_bands + band)
        self.is_lost = is_lost.astype(np.float64)
        self.is_at_risk = (of_class & (leaves >= band) & (band >= entered)).astype(np.float64)
        # The share of each class that has entered, in blocks: evenly in the intervals of its band.
        since = ends[:-1] + 0.5 * (self.length - 1.0) - bands[:-1, None]
        ramp = np.clip(since / np.maximum(np.diff(bands), 1)[:, None], 0.0, 1.0)
        self.entered = np.append(np.ones((1, since.shape[1])), ramp, axis=0)[: layout.n_classes]
        n = self.n_records
        if layout.has_entry:
            self.counts = self.counts[:, :-1]
        if layout.has_entry or self.shared:
            n = max(float(self.counts.sum()), 1.0)
        totals = self.counts.sum(axis=1)
        sizes = np.maximum(totals, 1.0)
        points = _normal_points(layout, totals, n)
        self.scores = _shifted(layout, points, self.positions / sizes, self.noise / sizes)
        pivot = self.pivot(totals) if self.shared else 0.0
        #: Score that stays where it is: of the rows' mean, or nearer to that of this stratum's.
        self.center = layout.center + pivot
        self.eta, self.scores = self.eta + pivot, self.scores - pivot
        # For weights alone, by margins, which have less noise: outcomes independent of groups.
        margins = (np.maximum(self.counts.sum(axis=i), 0.0) for i in (1, 0))
        group, outcome = (margin / np.maximum(margin.sum(), 1.0) for margin in margins)
        self.likely = n * np.outer(group, outcome)

    def pivot(self, totals: FloatArray) -> float:
        """Return the mean score of a stratum, shrunk to that of all, less the centre."""
        means, scale = self.scores.mean(axis=1), self.layout.scale
        sizes = np.maximum(totals, 0.0)
        n = max(float(sizes.sum()), 1.0)
        mean = float(sizes @ means) / n
        error = self.variance * self.counts.shape[1] * float(np.sum(((means - mean) / n) ** 2))
        prior = (PIVOT_SCALE * scale) ** 2
        return mean * prior / (prior + error)

    def outcome_probabilities(
        self, parameters: FloatArray, entered: FloatArray | float = 1.0
    ) -> tuple[FloatArray, ...]:
        """Return probabilities in bands, by group, and their derivatives.

        They are of people of whom a share has ``entered``, in each block of time.
        """
        line, slope = parameters[:-1] @ self.line_in_blocks, parameters[-1]
        eta = np.clip(self.eta + line, -ETA_RANGE, ETA_RANGE) + slope * self.scores[:, :, None]
        hazard = self.layout.link.survival(np.clip(eta, -ETA_RANGE, ETA_RANGE))
        length = self.length * entered
        by_eta = length * hazard.slope
        slopes = [*(by_eta * c for c in self.line_in_blocks), by_eta * self.scores[:, :, None]]
        so_far = np.cumsum(length * hazard.value, axis=-1)
        # Those at high risk leave first: each point is weighted by its survival.
        rest = special.logsumexp(-so_far, axis=1) - math.log(N_POINTS)
        by_rest = -np.sum(special.softmax(-so_far, axis=1) * np.cumsum(slopes, axis=-1), axis=2)
        rest, by_rest = (np.insert(x, 0, 0.0, axis=-1) for x in (rest, by_rest))
        at, by_at = rest[..., self.edges], by_rest[..., self.edges]
        stay, by_stay = np.diff(at, axis=-1), np.diff(by_at, axis=-1)
        # From the start of their band, at the ends of blocks, and the mean over the band.
        start, by_start = at[:, self.band_of], by_at[..., self.band_of]
        first, last = np.exp(rest[:, :-1] - start), np.exp(rest[:, 1:] - start)
        mean = 0.5 * (first + last) @ self.share
        by_first, by_last = by_rest[..., :-1] - by_start, by_rest[..., 1:] - by_start
        by_mean = 0.5 * (first * by_first + last * by_last) @ self.share / mean
        later = np.exp(stay) / mean
        return -np.expm1(stay), 1.0 - later, -np.exp(stay) * by_stay, -later * (by_stay - by_mean)

    def equations(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weighted differences of events from expected ones, and their slopes."""
        # Linear in a row of the table, so that the covariance of the noise is known.
        of_row, sampled, by_parameters = self.is_event, [], []
        for entered, is_at_risk, is_lost in zip(
            self.entered, self.is_at_risk, self.is_lost, strict=True
        ):
            event, later, slopes, later_slopes = self.outcome_probabilities(parameters, entered)
            of_row = of_row - event[:, :, None] * is_at_risk
            of_row += later[:, :, None] * is_lost
            at_risk, lost = (np.maximum(self.likely @ x.T, 0.25) for x in (is_at_risk, is_lost))
            sampled.append((at_risk - 0.5 * lost) * event * (1.0 - event))
            by_parameters.append(slopes * at_risk - later_slopes * lost)
        noise = self.variance * of_row @ np.swapaxes(of_row, 1, 2)
        variance = np.maximum(np.sum(sampled, axis=0), 0.5)
        covariance = noise + variance[:, :, None] * np.eye(self.layout.n_bands)
        expected = np.moveaxis(np.sum(by_parameters, axis=0), 0, -1)
        weighted = np.linalg.solve(covariance, expected)
        residual = of_row @ self.counts[:, :, None]
        gradient = np.sum(residual * weighted, axis=(0, 1))
        return gradient, np.einsum("gbi,gbk->ik", expected, weighted)


def _normal_points(layout: RiskLayout, sizes: FloatArray, n_records: float) -> FloatArray:
    """Fit a normal distribution to noisy group sizes; return its centred points in each."""
    edges = np.concatenate([[-np.inf], layout.inner_edges, [np.inf]])
    means, deviations = np.linspace(-1.5, 1.5, 31), np.geomspace(0.4, 2.2, 18)
    ends = special.ndtr((edges - means[:, None, None]) / deviations[:, None])
    shares = np.diff(ends, axis=-1)
    errors = np.sum((sizes - n_records * shares) ** 2, axis=-1)
    i, j = np.unravel_index(int(np.argmin(errors)), errors.shape)
    lower, share = ends[i, j, :-1], shares[i, j]
    quantiles = lower[:, None] + share[:, None] * (np.arange(N_POINTS) + 0.5) / N_POINTS
    points = means[i] + deviations[j] * special.ndtri(np.clip(quantiles, 1e-12, 1.0 - 1e-12))
    # Rounding must not carry a point out of its group.
    return np.asarray(np.clip(points, edges[:-1, None], edges[1:, None]) * layout.scale)


def _shifted(
    layout: RiskLayout, scores: FloatArray, positions: FloatArray, noise: FloatArray
) -> FloatArray:
    """Move points to the mean and spread of noisy positions within groups."""
    lower, upper = layout.group_ends
    width, middle = upper - lower, (lower + upper) / 2.0
    inside = (np.clip(scores, lower[:, None], upper[:, None]) - middle[:, None]) / width[:, None]
    expected, square = inside.mean(axis=1), (inside**2).mean(axis=1)
    mean = np.clip(_shrunk(expected, positions[0], POSITION_DEVIATION, noise), -0.5, 0.5)
    # Points that are moved as they are would have this square.
    square = square - expected**2 + mean**2
    square = _shrunk(square, (positions[1] + 0.25) / 2.0, SQUARE_DEVIATION, noise / 2.0)
    spread = np.sqrt(np.clip(square - mean**2, 0.0, 0.25))
    standard = inside - expected[:, None]
    standard /= np.maximum(np.sqrt(np.mean(standard**2, axis=1)), 1e-9)[:, None]
    moved = np.clip(mean[:, None] + spread[:, None] * standard, -0.5, 0.5)
    return np.asarray(middle[:, None] + width[:, None] * moved)


def _shrunk(prior: FloatArray, observed: FloatArray, scale: float, noise: FloatArray) -> FloatArray:
    """Return the posterior mean of a number that was observed with noise."""
    weight = scale**2 / (scale**2 + noise**2)
    return np.asarray(prior + weight * (observed - prior))


def of_cause(block: HazardRecords, cause: int) -> HazardRecords:
    """Return records of one cause, from 1, against surviving; 0: as they are."""
    if not cause:
        return block
    rows, seen = block
    own = seen.cause == cause
    exits = seen.exit - ((seen.cause > 0) & ~own)
    if seen.entry is None:  # an event of another cause in the first interval: at risk in that
        exits = np.maximum(exits, 1)
    return HazardRecords(rows, replace(seen, exit=exits, cause=own))


def layout_of(fit: HazardFit, context: Context, price: Price, cause: int = 0) -> RiskLayout:
    """Return the layout of a table at a price, by released coefficients and a released mean.

    They are those of a ``cause``, from 1, if there are several.
    """
    model, (baseline, coef) = fit.model, context["_fitted"]
    if cause:
        baseline, coef = baseline[cause - 1], coef[cause - 1]
    link, pilot = LINKS[model.link], fit.pilot(context)
    in_each = model.n_records / model.n_strata
    groups, width = groups_of(in_each, price), outer_width_of(in_each, price)
    # Not the pilot's row scale, which is that of clipped rows less the noise of their mean.
    spread = model.data_norm if pilot.scales is None else pilot.scales
    return RiskLayout(coef, baseline, link, pilot.mean, spread, groups, width, model.has_entry)


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskCounts(HazardSum):
    """Records by group of the score, band of time and outcome."""

    cause: int = 0

    name = "a table of risks over time"
    query = HISTOGRAM  # each record is in one cell

    def exact_answer(self, context: Context, records: Records) -> IntArray:
        layout = layout_of(self.fit, context, self.price, self.cause)
        return records.map_reduce(lambda block: layout.counts(*of_cause(block, self.cause)))

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        return {"_risk_table": noisy.astype(np.float64)}


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskPositions(HazardSum):
    """Sums of positions of scores within groups of a table, and the recalibration that follows."""

    table_price: Price
    cause: int = 0

    name = "positions in it"
    query = POSITIONS  # each record is in one group

    def exact_answer(self, context: Context, records: Records) -> IntArray:
        layout = layout_of(self.fit, context, self.table_price, self.cause)

        def positions(block: HazardRecords) -> IntArray:
            rows, seen = of_cause(block, self.cause)
            if seen.entry is not None:
                rows, seen = rows[seen.at_risk], seen.take(seen.at_risk)
            return layout.positions(rows, seen)

        return records.map_reduce(positions)

    def postprocess(self, context: Context, noisy: IntArray) -> dict[str, Any]:
        model, prices = self.fit.model, (self.table_price, self.price)
        layout = layout_of(self.fit, context, self.table_price, self.cause)
        table, positions = context["_risk_table"], POSITIONS.values(noisy)
        # Of coefficients and one baseline: slopes are of scores, which others say little of.
        information = replace(model, n_strata=1).information(self.fit.epsilon)
        found = fit_table(layout, table, positions, model.n_records, prices, information).values()
        if not self.cause:
            return found
        return {name: np.array([*context.get(name, ()), own]) for name, own in found.items()}
