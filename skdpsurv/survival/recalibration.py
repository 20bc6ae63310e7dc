r"""Level, course and slope of a released hazard, set right by one private table.

A released predictor :math:`\gamma(s) + x^\top\beta` ranks people well and is wrong in two other
ways: a cap on hazards makes them too high where most people have an event, and noise in
:math:`\beta` spreads the scores. What is fitted here to a table of counts by score, exit time and
way out (:mod:`~skdpsurv.survival.risk_cells`) is

.. math:: \gamma(s) + c(s) + m(1 - b) + b\,x^\top\beta,

with a slope b, a broken line c and m the score of the rows' mean.

Neighbours: replace-one. Sensitivity: 2 in L1 for the table, as a record is in one cell; 3/2 for
sums of places within groups and of their squares. Theorem: those of
:mod:`skdpsurv.mechanisms.sums` on every number, however many there are, and the prices of both
queries add up (docs/proofs/noise, docs/proofs/discrete_time). All the rest is
post-processing.

The fit is a regression of the noisy counts on expected ones, each weighed by its variance, that of
sampling and that of the noise, which is known: cells where hardly anybody can be do no harm. Priors
take over where the noise does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial import legendre
from scipy import special

from skdpsurv.blocks import Blocks
from skdpsurv.mechanisms.sums import HISTOGRAM, noise_deviation
from skdpsurv.privacy import RandomSource
from skdpsurv.privacy.concentrated import Price, left, part
from skdpsurv.release import Release, released_array
from skdpsurv.survival.exit_law import exit_probabilities
from skdpsurv.survival.hazard_plans import HazardRecords
from skdpsurv.survival.risk_cells import ETA_RANGE, PLACES, RiskCells
from skdpsurv.types import FloatArray

#: Prior standard deviations of the line's Legendre coefficients over the bands, from the constant
#: up. Found on twelve data sets, and judged on fifteen others (docs/benchmarks/absolute_risk).
LINE_DEVIATIONS = (0.5, 0.4, 0.3, 0.3)
#: Prior mean of the slope where there is no signal, and the signal at which it is halfway from
#: there to 1: noise in coefficients spreads scores. Its standard deviation, and its least value.
SLOPE, HALF_SIGNAL, SLOPE_DEVIATION, LEAST_SLOPE = 0.6, 1.5, 0.3, 0.05
#: Prior standard deviations of what else the table depends on: log sizes of groups beside those of
#: a normal law, log censoring rates in bands, and their slope per standard deviation of the score.
GROUP_DEVIATION, CENSORING_DEVIATION, CENSORING_SLOPE_DEVIATION = 0.5, 1.5, 0.3
#: A band of time is cut into at most so many blocks, and a group's scores are this many points.
BLOCKS_IN_BAND, N_POINTS = 10, 3
#: Steps of the fit, and the longest of them.
N_STEPS, LONGEST_STEP = 40, 0.7

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
        return {
            "recalibration_slope": np.asarray(self.slope),
            "recalibration_knots": self.knots,
            "recalibration_shift": self.shift,
        }

    @classmethod
    def of(cls, release: Release) -> Recalibration:
        """Return that of a release, or one that changes nothing.

        Raises
        ------
        ValueError
            If the release holds parts of one only, or one that is none.
        """
        names = ("recalibration_slope", "recalibration_knots", "recalibration_shift")
        if not any(name in release.values for name in names):
            return cls()
        n_knots = np.size(release.values.get(names[1], ()))
        slope = released_array(release, names[0], ())
        knots, shift = (released_array(release, name, (n_knots,)) for name in names[1:])
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


def recalibrate(
    cells: RiskCells,
    exits: Blocks[HazardRecords],
    n_records: int,
    price: Price,
    source: RandomSource,
    signal: float,
) -> Recalibration:
    """Release a recalibration, its times in shares of the horizon.

    Parameters
    ----------
    cells : RiskCells
        From what was released before.
    exits : Blocks of HazardRecords
    n_records : int
        Public.
    price : float or Concentrated
    source : RandomSource
    signal : float
        Of the fit that released the coefficients: how much there was to set against noise, per
        parameter. Public.
    """
    exact, places = exits.map_sum(lambda block: cells.totals(*block))
    of_places = part(price, PLACES_PART)
    of_table = left(price, of_places)
    counts = HISTOGRAM.release(exact, of_table, source).astype(np.float64)
    sums = PLACES.values(PLACES.release(places, of_places, source))
    return fit_table(cells, counts, sums, n_records, (of_table, of_places), signal)


def fit_table(
    cells: RiskCells,
    counts: FloatArray,
    places: FloatArray,
    n_records: int,
    prices: tuple[Price, Price],
    signal: float,
) -> Recalibration:
    """Fit a recalibration to a noisy table.

    Parameters
    ----------
    cells : RiskCells
    counts : ndarray of shape ``cells.shape``
    places : ndarray of shape (2, n_groups)
        Noisy sums of places within groups, and of twice their squares less 1/4.
    n_records : int
    prices : tuple of float or of Concentrated
        That counts and places cost, which says how much noise they hold.
    signal : float
        Of the fit that released the coefficients.
    """
    place_noise = math.ldexp(noise_deviation(PLACES, prices[1]), PLACES.exponent)
    slope = 1.0 - (1.0 - SLOPE) * HALF_SIGNAL / (HALF_SIGNAL + signal)
    table = _Table(cells, counts, places, place_noise, n_records, slope)
    variance = noise_deviation(HISTOGRAM, prices[0]) ** 2
    mean, precision = table.prior
    estimate = mean.copy()
    for _ in range(N_STEPS):
        expected, slopes = table.expected(estimate)
        # A cell's variance, by a Poisson law: half a record at least.
        weighted = slopes / (np.maximum(expected, 0.5) + variance)[:, None]
        hessian = slopes.T @ weighted + np.diag(precision)
        gradient = weighted.T @ (counts.ravel() - expected) - precision * (estimate - mean)
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:  # nothing may fail by what the table holds
            step = np.full(mean.size, np.nan)
        longest = float(np.max(np.abs(step)))
        if not math.isfinite(longest):
            estimate = mean
            break
        estimate = estimate + step * min(1.0, LONGEST_STEP / max(longest, 1e-300))
        if longest < 1e-4:
            break
    slope = max(float(estimate[table.slope_at]), LEAST_SLOPE)
    shift = table.line @ estimate[: table.slope_at] + cells.center * (1.0 - slope)
    return Recalibration(slope, cells.knots, shift)


@dataclass
class _Table:
    """Expected counts as a function of line, slope, censoring and sizes of groups."""

    cells: RiskCells
    counts: FloatArray
    places: FloatArray
    place_noise: float
    n_records: int
    slope: float

    def __post_init__(self) -> None:
        cells, q = self.cells, self.cells.n_intervals
        bands = np.searchsorted(cells.bands, np.arange(cells.n_bands + 1))
        inside = np.arange(BLOCKS_IN_BAND) / BLOCKS_IN_BAND
        starts = bands[:-1, None] + np.diff(bands)[:, None] * inside
        ends = np.unique(np.append(starts.astype(np.int64), q))
        self.middle, self.length = (ends[:-1] + ends[1:]) // 2, np.diff(ends).astype(np.float64)
        self.eta = (cells.baseline + cells.center)[self.middle]
        self.in_band = np.eye(cells.n_bands)[cells.bands[self.middle]]
        over_bands = np.linspace(-1.0, 1.0, cells.n_bands + 1)
        #: Legendre polynomials at the knots, and in the blocks.
        self.line = legendre.legvander(over_bands, len(LINE_DEVIATIONS) - 1)
        place = (self.middle + 1) / q
        in_blocks = [np.interp(place, cells.knots, column) for column in self.line.T]
        self.line_in_blocks = np.stack(in_blocks)
        self.slope_at = len(LINE_DEVIATIONS)
        noisy_sizes = self.counts.sum(axis=1)
        sizes, normal = _normal_groups(cells, noisy_sizes, self.n_records)
        members = np.maximum(noisy_sizes, 1.0)
        self.scores = _placed(cells, normal, self.places / members, self.place_noise / members)
        self.log_sizes = np.log(np.maximum(sizes, 1e-4))

    @property
    def prior(self) -> tuple[FloatArray, FloatArray]:
        """Means and precisions of all parameters."""
        n_groups, n_bands = self.cells.shape[0], self.cells.n_bands
        line = np.zeros(len(LINE_DEVIATIONS))
        mean = np.concatenate(
            [line, [self.slope, 0.0], self._log_censoring_rates(), np.zeros(n_groups)]
        )
        deviation = np.concatenate(
            [
                LINE_DEVIATIONS,
                [SLOPE_DEVIATION, CENSORING_SLOPE_DEVIATION],
                np.full(n_bands, CENSORING_DEVIATION),
                np.full(n_groups, GROUP_DEVIATION),
            ]
        )
        return mean, deviation**-2.0

    def _log_censoring_rates(self) -> FloatArray:
        """Return logs of censoring rates per interval, as the noisy table has them."""
        n_bands = self.cells.n_bands
        left = np.maximum(self.counts.sum(axis=0)[: 2 * n_bands].reshape(2, n_bands), 1.0)
        leaving = left.sum(axis=0)
        at_risk = np.maximum(
            self.n_records - np.cumsum(leaving) + leaving / 2.0, 0.02 * self.n_records
        )
        intervals = np.maximum(self.length @ self.in_band, 1.0)
        return np.asarray(np.log(np.clip(left[1] / at_risk / intervals, 1e-6, 1.0)))

    def expected(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected counts of all cells, and their derivatives by each parameter."""
        n_line, n_bands = self.slope_at, self.cells.n_bands
        slope, censoring_slope = parameters[n_line : n_line + 2]
        censoring, delta = np.split(parameters[n_line + 2 :], [n_bands])
        standard = (self.scores / self.cells.scale)[:, :, None]
        line = parameters[:n_line] @ self.line_in_blocks
        eta = np.clip(self.eta + line, -ETA_RANGE, ETA_RANGE) + slope * self.scores[:, :, None]
        hazard = self.cells.link.survival(np.clip(eta, -ETA_RANGE, ETA_RANGE))
        by_eta = self.length * hazard.slope
        log_rate = self.in_band @ censoring + censoring_slope * standard
        censoring_rate = self.length * np.exp(np.clip(log_rate, -ETA_RANGE, 3.0))
        probability, slopes = exit_probabilities(
            self.length * hazard.value,
            censoring_rate,
            np.stack(
                [*(by_eta * c for c in self.line_in_blocks), by_eta * self.scores[:, :, None]]
            ),
            np.stack([censoring_rate * standard, *(censoring_rate * b for b in self.in_band.T)]),
            self.in_band,
        )
        # The mean over a group's points.
        probability, slopes = probability.mean(axis=1), slopes.mean(axis=2)
        sizes = special.softmax(self.log_sizes + delta)
        expected = self.n_records * sizes[:, None] * probability
        own = np.eye(sizes.size) - sizes[:, None]  # of the log of a softmax
        by_size = own[:, :, None] * expected
        slopes = np.concatenate([self.n_records * sizes[:, None] * slopes, by_size])
        return expected.ravel(), slopes.reshape(parameters.size, -1).T


def _normal_groups(
    cells: RiskCells, sizes: FloatArray, n_records: int
) -> tuple[FloatArray, FloatArray]:
    """Fit a normal law to noisy sizes of groups; return its sizes, and points in each group.

    Returns
    -------
    shares : ndarray of shape (n_groups,)
    scores : ndarray of shape (n_groups, N_POINTS)
        Less ``cells.center``.
    """
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
    return share, points * cells.scale


def _placed(
    cells: RiskCells, scores: FloatArray, places: FloatArray, noise: FloatArray
) -> FloatArray:
    """Move points so that mean and spread are what noisy places in groups say, as far as they do.

    Parameters
    ----------
    cells : RiskCells
    scores : ndarray of shape (n_groups, N_POINTS)
    places : ndarray of shape (2, n_groups)
        Noisy means of places, from -1/2 at a group's lower end to 1/2, and of twice their squares
        less 1/4.
    noise : ndarray of shape (n_groups,)
        Standard deviation of each.
    """
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
