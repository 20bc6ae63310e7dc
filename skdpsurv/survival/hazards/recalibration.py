r"""Level, course and slope of a released hazard, set right by one private table.

A released predictor :math:`\gamma(s) + x^\top\beta` ranks people well and is wrong in two other
ways: a cap on hazards makes them too high where most people have an event, and noise in
:math:`\beta` spreads the scores. What is fitted here to a table of counts by score, exit time and
way out (:mod:`~skdpsurv.survival.hazards.risk_cells`) is

.. math:: \gamma(s) + c(s) + m(1 - b) + b\,x^\top\beta,

with a slope b, a broken line c and m the score of the rows' mean.

Neighbours: replace-one. Sensitivity: 2 in L1 for the table, as a record is in one cell; 3/2 for
sums of places within groups and of their squares. Theorem: those of
:mod:`skdpsurv.mechanisms.sums` on every number, however many there are, and the prices of both
queries add up (docs/proofs/noise, docs/proofs/discrete_time). All the rest is
post-processing.

The fit solves estimating equations. Of a group g, those at risk when band j begins are all who are
in it less all who left before: linear in the noise, which has mean 0, and not clipped. With R of
them, C censored in the band and E events,

.. math:: \sum_g A_g^\top [E_g - R_g\,p_g(c, b) + C_g\,q_g(c, b)] = P(\theta - \theta_0),

p the chances of an event in the bands, and q those of an event later in the band of those who are
censored in it. The bracket has mean 0 at the truth whatever the noise, the
law of scores, and censoring within a group's band, so that there is no attenuation. Weights only
say how well it is solved: derivatives of what is expected, by the inverse of the bands' covariance,
that of sampling and that of the noise, which those at risk share. Priors take over where noise
does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy import special

from skdpsurv.data.blocks import Blocks
from skdpsurv.dp.plan import Known
from skdpsurv.dp.privacy_cost import Price
from skdpsurv.dp.types import FloatArray, IntArray
from skdpsurv.likelihoods.links import LINKS
from skdpsurv.mechanisms.sums import HISTOGRAM
from skdpsurv.release import Release, released_array
from skdpsurv.survival.hazards.fit import HazardFit, HazardSum
from skdpsurv.survival.hazards.model import HazardRecords
from skdpsurv.survival.hazards.risk_cells import ETA_RANGE, N_GROUPS, PLACES, RiskCells

#: Prior scales of the line's Legendre coefficients over the bands, from the constant up, and the
#: degrees of freedom of this prior, Student's: a level may be far off, and then the table tells.
#: Found on other data sets and simulations than those that it is measured on
#: (docs/benchmarks/recalibration).
LINE_SCALES, FREEDOM = (0.15, 0.2, 0.2, 0.2), 3.0
#: Prior mean of the slope where there is no signal, and the signal, by the root of the number of
#: columns, at which it is halfway from there to 1: noise in coefficients spreads scores, and what
#: each of many columns adds to it is larger. Its scale, and its least value.
SLOPE, HALF_SIGNAL, SLOPE_SCALE, LEAST_SLOPE = 0.05, 0.25, 0.2, 0.05
#: The table has at least so many groups of scores and bands of time, and so many if there are as
#: many records as the second number times the noise of a count; their number grows with this power.
LEAST_GROUPS, RECORDS_TO_NOISE, GROWTH = 3, 45.0, 0.4
#: Outer groups are at least and at most so many inner ones wide: with the root of the number of
#: records, from the third number times the noise of a count. Places in wide ones are noisy, but
#: who is beyond the end of one, as few people with rare values are, is taken to be at it.
OUTER_WIDTHS, RECORDS_TO_WIDEN = (2.0, 5.0), 300.0
#: A band of time is cut into at most so many blocks, and a group's scores are this many points.
BLOCKS_IN_BAND, N_POINTS = 10, 3
#: Steps of the fit, the longest of them, how many are whole, and the first that is short enough.
N_STEPS, LONGEST_STEP, WHOLE_STEPS, SHORT_STEP = 60, 0.7, 30, 0.005

#: What a release calls slope, knots and shift.
NAMES = ("recalibration_slope", "recalibration_knots", "recalibration_shift")
#: Share of the epsilon of a recalibration for where scores are in their groups.
PLACES_PART = 0.15
#: Prior standard deviations of a group's mean place, in its width, and of the square of a place.
PLACE_DEVIATION, SQUARE_DEVIATION = 0.29, 0.06


@dataclass(frozen=True, eq=False)
class Recalibration:
    """What a prediction adds to a released predictor; all of it released.

    Parameters
    ----------
    slope : float, default=1.0
        Of the score.
    knots : ndarray of shape (n_knots,)
        Shares of the horizon, rising from 0 to 1.
    shift : ndarray of shape (n_knots,)
        What is added to the baseline there, on the scale of the link; straight between knots.
    """

    slope: float = 1.0
    knots: FloatArray = field(default_factory=lambda: np.array([0.0, 1.0]))
    shift: FloatArray = field(default_factory=lambda: np.zeros(2))

    @property
    def slopes(self) -> FloatArray:
        """Return the slopes of the shift between knots."""
        return np.asarray(np.diff(self.shift) / np.diff(self.knots))

    def at(self, shares: FloatArray) -> FloatArray:
        """Return what is added to the baseline at shares of the horizon."""
        return np.asarray(np.interp(shares, self.knots, self.shift))

    def values(self) -> dict[str, FloatArray]:
        """Return the numbers of a release."""
        return dict(zip(NAMES, (np.asarray(self.slope), self.knots, self.shift), strict=True))

    @classmethod
    def of(cls, release: Release) -> Recalibration:
        """Return that of a release, or one that changes nothing."""
        if not any(name in release.values for name in NAMES):
            return cls()
        n_knots = np.size(release.values.get(NAMES[1], ()))
        slope = released_array(release, NAMES[0], ())
        knots, shift = (released_array(release, name, (n_knots,)) for name in NAMES[1:])
        found = cls(float(slope), knots, shift)
        with np.errstate(all="ignore"):
            rises = n_knots > 1 and knots[0] == 0 and knots[-1] == 1 and (np.diff(knots) > 0).all()
            if not (rises and slope > 0 and np.isfinite(np.diff(found.slopes)).all()):
                raise ValueError(
                    "values of the release must hold a positive 'recalibration_slope', and two or "
                    "more 'recalibration_knots', which rise from 0 to 1 between finite slopes of "
                    "'recalibration_shift'."
                )
        return found


def groups_of(n_records: int, price: Price) -> int:
    """Return how many groups of scores, and bands of time, a table for a price has."""
    noise = HISTOGRAM.deviation(price)
    groups = LEAST_GROUPS * (n_records / (RECORDS_TO_NOISE * noise)) ** GROWTH
    return round(min(max(groups, LEAST_GROUPS), N_GROUPS))


def outer_width_of(n_records: int, price: Price) -> float:
    """Return how many inner groups wide the outer groups of a table for a price are."""
    least, most = OUTER_WIDTHS
    root = math.sqrt(n_records / (RECORDS_TO_WIDEN * HISTOGRAM.deviation(price)))
    return min(max(least * root, least), most)


def fit_table(
    cells: RiskCells,
    counts: FloatArray,
    places: FloatArray,
    n_records: int,
    prices: tuple[Price, Price],
    signal: float,
) -> Recalibration:
    """Fit a recalibration to a noisy table."""
    place_noise = math.ldexp(PLACES.deviation(prices[1]), PLACES.exponent)
    believed = signal / (HALF_SIGNAL * math.sqrt(cells.coef.size) + signal)
    prior = np.append(np.zeros(len(LINE_SCALES)), SLOPE + (1.0 - SLOPE) * believed)
    variance = HISTOGRAM.deviation(prices[0]) ** 2
    # Nothing may fail by what the table holds: what cannot be solved is left to the prior.
    with np.errstate(all="ignore"):
        # Their sum is public.
        counts = counts + (n_records - counts.sum()) / counts.size
        table = _Table(cells, counts, places, place_noise, n_records, variance)
        estimate = _solve(table, prior, np.append(LINE_SCALES, SLOPE_SCALE))
    slope = max(float(estimate[-1]), LEAST_SLOPE)
    shift = table.line @ estimate[:-1] + cells.center * (1.0 - slope)
    return Recalibration(slope, cells.knots, shift)


def _solve(table: _Table, prior: FloatArray, scales: FloatArray) -> FloatArray:
    """Return what solves the equations, or the prior where nothing does."""
    estimate = prior
    for i in range(N_STEPS):
        try:
            gradient, hessian = table.equations(estimate)
            away = estimate - prior
            precision = (FREEDOM + 1.0) / (FREEDOM * scales**2 + away**2)
            step = np.linalg.solve(hessian + np.diag(precision), gradient - precision * away)
        except np.linalg.LinAlgError:
            return prior
        longest = float(np.max(np.abs(step)))
        if not math.isfinite(longest):
            return prior
        # Weights change from step to step, so that whole ones may go round.
        size = min(1.0, LONGEST_STEP / max(longest, 1e-300)) * (1.0 if i < WHOLE_STEPS else 0.5)
        estimate = estimate + size * step
        if longest < SHORT_STEP:
            break
    return estimate


@dataclass
class _Table:
    """A noisy table, and what its events say of line and slope."""

    cells: RiskCells
    counts: FloatArray
    places: FloatArray
    place_noise: float
    n_records: int
    variance: float

    def __post_init__(self) -> None:
        cells, q = self.cells, self.cells.n_intervals
        bands = np.searchsorted(cells.bands, np.arange(cells.n_bands + 1))
        inside = np.arange(BLOCKS_IN_BAND) / BLOCKS_IN_BAND
        starts = bands[:-1, None] + np.diff(bands)[:, None] * inside
        ends = np.unique(np.append(starts.astype(np.int64), q))
        middle, self.length = (ends[:-1] + ends[1:]) // 2, np.diff(ends).astype(np.float64)
        self.eta = (cells.baseline + cells.center)[middle]
        self.band_of = cells.bands[middle]
        #: Places of bands' ends among those of blocks, and parts of bands that are blocks.
        self.ends = np.searchsorted(ends, bands)
        self.share = np.eye(cells.n_bands)[self.band_of] * self.length[:, None]
        self.share /= self.share.sum(axis=0)
        over_bands = np.linspace(-1.0, 1.0, cells.n_bands + 1)
        #: Legendre polynomials at the knots, and in the blocks.
        self.line = legendre.legvander(over_bands, len(LINE_SCALES) - 1)
        place = (middle + 1) / q
        self.line_in_blocks = np.stack([np.interp(place, cells.knots, c) for c in self.line.T])
        self._count()

    def _count(self) -> None:
        """Find who has an event, is censored and is at risk in bands, and the points of groups."""
        n_bands = self.cells.n_bands
        ways, band = np.arange(2 * n_bands + 1), np.arange(n_bands)[:, None]
        leaves = np.where(ways < 2 * n_bands, ways % n_bands, n_bands)
        self.is_event = (ways == band).astype(np.float64)
        self.is_lost = (ways == n_bands + band).astype(np.float64)
        self.is_at_risk = (leaves >= band).astype(np.float64)
        totals = self.counts.sum(axis=1)
        normal = _normal_points(self.cells, totals, self.n_records)
        members = np.maximum(totals, 1.0)
        self.scores = _placed(self.cells, normal, self.places / members, self.place_noise / members)
        # For weights alone, and so of sums, in which there is less noise: all groups leave alike.
        sizes, ways_out = (np.maximum(self.counts.sum(axis=i), 0.0) for i in (1, 0))
        sizes, ways_out = (x / np.maximum(x.sum(), 1.0) for x in (sizes, ways_out))
        self.likely = self.n_records * np.outer(sizes, ways_out)

    def outcome_probabilities(self, parameters: FloatArray) -> tuple[FloatArray, ...]:
        """Return chances in bands, by group, and their derivatives."""
        line, slope = parameters[:-1] @ self.line_in_blocks, parameters[-1]
        eta = np.clip(self.eta + line, -ETA_RANGE, ETA_RANGE) + slope * self.scores[:, :, None]
        hazard = self.cells.link.survival(np.clip(eta, -ETA_RANGE, ETA_RANGE))
        by_eta = self.length * hazard.slope
        slopes = [*(by_eta * c for c in self.line_in_blocks), by_eta * self.scores[:, :, None]]
        so_far = np.cumsum(self.length * hazard.value, axis=-1)
        # Those at high risk leave first: each point counts as far as it is still there.
        left = special.logsumexp(-so_far, axis=1) - math.log(N_POINTS)
        by_left = -np.sum(special.softmax(-so_far, axis=1) * np.cumsum(slopes, axis=-1), axis=2)
        left, by_left = (np.insert(x, 0, 0.0, axis=-1) for x in (left, by_left))
        at, by_at = left[..., self.ends], by_left[..., self.ends]
        stay, by_stay = np.diff(at, axis=-1), np.diff(by_at, axis=-1)
        # From the start of their band, at the ends of blocks, and the mean over the band.
        start = at[:, self.band_of]
        first, last = np.exp(left[:, :-1] - start), np.exp(left[:, 1:] - start)
        mean = 0.5 * (first + last) @ self.share
        by_first, by_last = (
            by_left[..., k] - by_at[..., self.band_of] for k in (slice(-1), slice(1, None))
        )
        by_mean = 0.5 * (first * by_first + last * by_last) @ self.share / mean
        later = np.exp(stay) / mean
        return -np.expm1(stay), 1.0 - later, -np.exp(stay) * by_stay, -later * (by_stay - by_mean)

    def equations(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weighed differences of events from expected ones, and their slopes."""
        event, later, slopes, later_slopes = self.outcome_probabilities(parameters)
        # Linear in a row of the table, so that the covariance of their noise is known.
        of_row = self.is_event - event[:, :, None] * self.is_at_risk
        of_row += later[:, :, None] * self.is_lost
        noise = self.variance * of_row @ np.swapaxes(of_row, 1, 2)
        at_risk, lost = (
            np.maximum(self.likely @ x.T, 0.25) for x in (self.is_at_risk, self.is_lost)
        )
        sampled = np.maximum((at_risk - 0.5 * lost) * event * (1.0 - event), 0.5)
        covariance = noise + sampled[:, :, None] * np.eye(self.cells.n_bands)
        expected = np.moveaxis(slopes * at_risk - later_slopes * lost, 0, -1)
        weighted = np.linalg.solve(covariance, expected)
        found = of_row @ self.counts[:, :, None]
        return np.sum(found * weighted, axis=(0, 1)), np.einsum("gbi,gbk->ik", expected, weighted)


def _normal_points(cells: RiskCells, sizes: FloatArray, n_records: int) -> FloatArray:
    """Fit a normal law to noisy sizes of groups; return its points in each, less the centre."""
    edges = np.concatenate([[-np.inf], cells.inner_edges, [np.inf]])
    means, deviations = np.linspace(-1.5, 1.5, 31), np.geomspace(0.4, 2.2, 18)
    ends = special.ndtr((edges - means[:, None, None]) / deviations[:, None])
    shares = np.diff(ends, axis=-1)
    errors = np.sum((sizes - n_records * shares) ** 2, axis=-1)
    i, j = np.unravel_index(int(np.argmin(errors)), errors.shape)
    lower, share = ends[i, j, :-1], shares[i, j]
    quantiles = lower[:, None] + share[:, None] * (np.arange(N_POINTS) + 0.5) / N_POINTS
    points = means[i] + deviations[j] * special.ndtri(np.clip(quantiles, 1e-12, 1.0 - 1e-12))
    # Rounding must not carry a point out of its group.
    points = np.clip(points, edges[:-1, None], edges[1:, None])
    return np.asarray(points * cells.scale)


def _placed(
    cells: RiskCells, scores: FloatArray, places: FloatArray, noise: FloatArray
) -> FloatArray:
    """Move points to the mean and spread that noisy places in groups tell."""
    lower, upper = cells.group_ends
    width, middle = upper - lower, (lower + upper) / 2.0
    inside = (np.clip(scores, lower[:, None], upper[:, None]) - middle[:, None]) / width[:, None]
    expected, square = inside.mean(axis=1), (inside**2).mean(axis=1)
    mean = expected + _believed(PLACE_DEVIATION, noise) * (places[0] - expected)
    mean = np.clip(mean, -0.5, 0.5)
    found = (places[1] + 0.25) / 2.0
    # Moved as they are, points would have this square; the table may know better.
    square = square - expected**2 + mean**2
    square += _believed(SQUARE_DEVIATION, noise / 2.0) * (found - square)
    spread = np.sqrt(np.clip(square - mean**2, 0.0, 0.25))
    standard = inside - expected[:, None]
    standard /= np.maximum(np.sqrt(np.mean(standard**2, axis=1)), 1e-9)[:, None]
    moved = np.clip(mean[:, None] + spread[:, None] * standard, -0.5, 0.5)
    return np.asarray(middle[:, None] + width[:, None] * moved)


def _believed(deviation: float, noise: FloatArray) -> FloatArray:
    """Return the part of a noisy deviation from a prior mean that is believed."""
    return np.asarray(deviation**2 / (deviation**2 + noise**2))


def cells_of(fit: HazardFit, known: Known, of_table: Price) -> RiskCells:
    """Return the layout of the table, by released coefficients, a released mean and its price."""
    model, (baseline, coef) = fit.model, known["_fitted"]
    return RiskCells(
        coef,
        baseline,
        LINKS[model.link],
        fit.look(known).mean,
        # Not what a first look says: that is of clipped rows, and the mean's noise takes from it.
        model.data_norm,
        groups_of(model.n_records, of_table),
        outer_width_of(model.n_records, of_table),
    )


class RiskTable(HazardSum):
    """Exits by group of the score, band of time and event."""

    name = "a table of risks over time"
    asked = HISTOGRAM  # each record is in one cell

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact counts."""
        cells = cells_of(self.fit, known, self.price)
        return records.map_reduce(lambda block: cells.counts(*block))

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return the counts."""
        return {"_risk_table": noisy.astype(np.float64)}


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskPlaces(HazardSum):
    """Sums of where scores are within their groups, and the recalibration that follows.

    Parameters
    ----------
    of_table : float or Concentrated
        The price of the table.
    """

    of_table: Price

    name = "places in it"
    asked = PLACES  # each record is in one group

    def ask(self, known: Known, records: Blocks[HazardRecords]) -> IntArray:
        """Return exact sums."""
        cells = cells_of(self.fit, known, self.of_table)
        return records.map_reduce(lambda block: cells.places(block.X))

    def after(self, known: Known, noisy: IntArray) -> dict[str, Any]:
        """Return level, course and slope, set right."""
        model = self.fit.model
        found = fit_table(
            cells_of(self.fit, known, self.of_table),
            known["_risk_table"],
            PLACES.values(noisy),
            model.n_records,
            (self.of_table, self.price),
            model.signal(self.fit.epsilon),
        )
        return found.values()
